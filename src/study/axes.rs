//! What varies in a study: its axes, and the variants of each.

use toml::{Table, Value};

use super::columns::COLUMNS;
use super::keys::Keys;
use crate::experiment::schema::{ConfigError, Lines, did_you_mean, list};
use crate::report::files::quoted;
use crate::reproduce::figure::known_metric;

/// The table of the axes.
pub(super) const VARY: &str = "vary";

/// The keys of an axis of one key.
const KEY: &str = "key";
const VALUES: &str = "values";

/// Something that varies.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Its name.
    pub name: String,
    /// Its variants: at least one.
    pub variants: Vec<Variant>,
}

/// A value of an axis.
#[derive(Clone, Debug)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// Its keys.
    pub keys: Keys,
}

impl Axis {
    /// The names of its variants.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.variants.iter().map(|variant| variant.name.as_str())
    }
}

/// The known names, to complete a message about one that is not among them.
pub(super) fn or_near(name: &str, known: &[&str]) -> String {
    match did_you_mean(name, known.iter().copied()) {
        hint if hint.is_empty() => format!("; there are {}", list(known)),
        hint => hint,
    }
}

/// Reads the axes of a file, each a table in `[vary]`.
///
/// # Errors
/// There is none, or one has no variants, a name that is not one or a key that is unknown or does not accept its value.
pub(super) fn axes(vary: &Table, lines: &Lines) -> Result<Vec<Axis>, ConfigError> {
    if vary.is_empty() {
        return Err(ConfigError::conflict(format!(
            "{}: nothing varies; a study has at least one variant, such as [vary.method.newton]",
            lines.at(VARY)
        )));
    }
    vary.iter().map(|(name, value)| axis(name, value, lines)).collect()
}

fn axis(name: &str, value: &Value, lines: &Lines) -> Result<Axis, ConfigError> {
    let path = format!("{VARY}.{name}");
    let refuse = |path: &str, given: &Value, allowed: &str| ConfigError::Value {
        at: lines.at(path),
        path: path.to_owned(),
        given: quoted(&given.to_string()),
        allowed: allowed.to_owned(),
    };
    let forms = format!("a table of variants, such as [{path}.NAME], or `key` and `values`");
    named(name, &lines.at(&path))?;
    if COLUMNS.contains(&name) || known_metric(name).is_ok() {
        let problem =
            format!("{}: an axis cannot be named `{name}`, which is a column of the results", lines.at(&path));
        return Err(ConfigError::conflict(problem));
    }
    let Some(table) = value.as_table() else { return Err(refuse(&path, value, &forms)) };
    let variants = match table.values().all(Value::is_table) {
        true => table.iter().map(|(name, keys)| variant(&format!("{path}.{name}"), name, keys, lines)).collect(),
        false => of_values(&path, table, lines),
    }?;
    if variants.is_empty() {
        return Err(ConfigError::conflict(format!("{}: `{path}` has no variants; it is {forms}", lines.at(&path))));
    }
    Ok(Axis { name: name.to_owned(), variants })
}

/// A variant by its name, with its keys.
fn variant(path: &str, name: &str, keys: &Value, lines: &Lines) -> Result<Variant, ConfigError> {
    named(name, &lines.at(path))?;
    let empty = Table::new();
    let keys = Keys::of(keys.as_table().unwrap_or(&empty), &|key| lines.at(&format!("{path}.{key}")));
    keys.check()?;
    Ok(Variant { name: name.to_owned(), keys })
}

/// The variants of an axis that is one key and its values.
fn of_values(path: &str, table: &Table, lines: &Lines) -> Result<Vec<Variant>, ConfigError> {
    if let Some((name, _)) = table.iter().find(|(name, _)| ![KEY, VALUES].contains(&name.as_str())) {
        return Err(ConfigError::UnknownKey {
            at: lines.at(&format!("{path}.{name}")),
            path: format!("{path}.{}", quoted(name)),
            hint: String::new(),
            known: format!(
                "[{path}] takes `{KEY}` and `{VALUES}`, or tables that are variants, such as [{path}.{name}]"
            ),
        });
    }
    let missing = |name: &str, allowed: &str| ConfigError::Missing {
        at: lines.at(path),
        path: format!("{path}.{name}"),
        section: "".into(),
        kind: "".into(),
        allowed: allowed.to_owned(),
    };
    let key = table.get(KEY).and_then(Value::as_str);
    let key = key.ok_or_else(|| missing(KEY, "a key of the config, such as \"algorithm.particles\""))?;
    let values = table.get(VALUES).and_then(Value::as_array).filter(|values| !values.is_empty());
    let values = values.ok_or_else(|| missing(VALUES, "a list of one or more values of that key, such as [5, 20]"))?;
    let place = lines.at(&format!("{path}.{VALUES}"));
    let mut variants: Vec<Variant> = Vec::new();
    for value in values {
        let name = shown(value);
        named(&name, &place)?;
        if variants.iter().any(|variant| variant.name == name) {
            return Err(ConfigError::conflict(format!("{place}: `{path}.{VALUES}` has {} twice", quoted(&name))));
        }
        let keys = Keys::one(key, value.clone(), place.clone());
        keys.check()?;
        variants.push(Variant { name, keys });
    }
    Ok(variants)
}

/// A value as it is typed.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        // Rust's form with an exponent where that is the shorter one.
        Value::Float(number) => format!("{number:?}"),
        other => other.to_string(),
    }
}

/// Checks a name that stands in tables and pictures.
fn named(name: &str, place: &str) -> Result<(), ConfigError> {
    match name.trim().is_empty() || name.chars().any(char::is_control) {
        false => Ok(()),
        true => Err(ConfigError::conflict(format!("{place}: `{}` is not a name; it is a line of text", quoted(name)))),
    }
}
