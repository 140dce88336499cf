//! What each column of a user's table is: target, client, a feature of some kind, or none of these.

use super::csv_table::CsvOptions;
use super::lines::Lines;
use crate::DataError;
use crate::columns::{CellKind, MissingCells, Notation, Purpose, Reading, text};
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hasher as _};
use std::path::Path;

/// What a column is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The target.
    Target,
    /// The natural client.
    Client {
        /// Whether it is a feature too, a category.
        is_feature: bool,
    },
    /// No feature.
    None,
    /// A feature.
    Feature(CellKind),
}

impl Role {
    /// What its cells hold as a feature; `None` where it is none.
    pub fn feature(self) -> Option<CellKind> {
        match self {
            Self::Feature(kind) => Some(kind),
            Self::Client { is_feature: true } => Some(CellKind::Category),
            Self::Client { is_feature: false } | Self::Target | Self::None => None,
        }
    }
}

/// Finds the header, and the role of each column.
///
/// # Arguments
/// - `texts`: whether each column was found to hold texts; empty where none was looked at.
///
/// # Errors
/// A column that a key names does not exist or is named twice, or no column is left for the features.
pub(super) fn roles(lines: &mut Lines, options: &CsvOptions, texts: &[bool]) -> Result<Vec<Role>, DataError> {
    let reading = options.reading;
    let others = reading.no_features().into_iter().chain(reading.named_features());
    let keys: Vec<&str> = others.flat_map(|(_, columns)| columns).map(String::as_str).collect();
    lines.header(options.header, &[&[options.target, options.client], &keys[..]].concat(), &reading.notation())?;
    if options.first.is_none() {
        lines.check_missing_values(reading)?;
    }

    let mut named = Named { roles: vec![Role::Feature(CellKind::Number); lines.width], by: HashMap::new() };
    let target = lines.find(options.target)?.ok_or_else(|| lines.no_column_of("data.target", options.target))?;
    named.name(lines, target, "data.target", Role::Target)?;
    if !options.client.is_empty() {
        let client = lines.find(options.client)?;
        let client = client.ok_or_else(|| lines.no_column_of(CLIENT, options.client))?;
        if client == target {
            return Err(lines.columns(format!("column `{}` cannot be both target and client", options.client)));
        }
        named.name(lines, client, CLIENT, Role::Client { is_feature: false })?;
        if let [group] = options.reading.group()
            && lines.find(group)? == Some(client)
        {
            return Err(lines.columns(format!(
                "column `{group}` cannot be both client (data.client_column) and group (data.group_column): all rows of a \
                 client would be training rows, or all test rows"
            )));
        }
    }
    for (key, columns) in reading.no_features() {
        for column in columns {
            match lines.find(column)? {
                // Predictions may be written beside the group.
                Some(column) if key == Reading::GROUP && named.by.get(&column) == Some(&"data.id") => {}
                Some(column) => named.name(lines, column, key, Role::None)?,
                None if options.first.is_some() => {}
                None => return Err(lines.no_column_of(key, column)),
            }
        }
    }
    if let (Some(first), Some(names)) = (options.first.and_then(|first| first.names.as_ref()), &lines.names) {
        let names: HashSet<&String> = names.iter().collect();
        if let Some(absent) = first.iter().find(|name| !names.contains(name)) {
            let absent = text(absent.as_bytes());
            return Err(lines.columns(format!("it has no column `{absent}` of the training file")));
        }
    }
    let kinds = [CellKind::Category, CellKind::Boolean, CellKind::Date];
    for ((key, columns), kind) in reading.named_features().into_iter().zip(kinds) {
        for column in columns {
            let found = lines.find(column)?.ok_or_else(|| lines.no_column_of(key, column))?;
            // In the same spelling, by which new rows know that it is a feature. Of a second file the keys are those that the
            // first one has found.
            let is_same = options.first.is_some() || *column == options.client;
            let is_client = named.roles[found] == Role::Client { is_feature: false } && is_same;
            match is_client && kind == CellKind::Category {
                true => named.roles[found] = Role::Client { is_feature: true },
                false => named.name(lines, found, key, Role::Feature(kind))?,
            }
        }
    }
    let mut roles = named.roles;
    for (role, holds_texts) in roles.iter_mut().zip(texts) {
        if *holds_texts && *role == Role::Feature(CellKind::Number) {
            *role = Role::Feature(CellKind::Category);
        }
    }
    match roles.iter().any(|role| role.feature().is_some()) {
        true => Ok(roles),
        false => Err(lines.columns("no column is left for the features".to_owned())),
    }
}

/// The key of the column of natural clients.
const CLIENT: &str = "data.client_column";

/// The roles, and the key of each column that is named.
struct Named {
    roles: Vec<Role>,
    by: HashMap<usize, &'static str>,
}

impl Named {
    fn name(&mut self, lines: &Lines, column: usize, key: &'static str, role: Role) -> Result<(), DataError> {
        if let Some(before) = self.by.insert(column, key) {
            let keys = if before == key { format!("twice by {key}") } else { format!("by {before} and by {key}") };
            return Err(lines.columns(format!("column `{}` is named {keys}; name it once", lines.called(column))));
        }
        self.roles[column] = role;
        Ok(())
    }
}

/// The columns of a file that hold texts, for `categorical = "auto"`: those with a cell that is neither missing nor a
/// number. Empty where the config names the columns.
///
/// # Errors
/// The file cannot be read, or not twice; or a column has a cell that is not a number, and most of its others are numbers or
/// dates.
pub(super) fn by_content(path: &Path, options: &CsvOptions) -> Result<Vec<bool>, DataError> {
    if !options.reading.categorical.is_automatic() {
        return Ok(Vec::new());
    }
    // A directory is refused like any other that is no table.
    if !path.is_file() && !path.is_dir() {
        let problem = "reads the file twice, which must be a regular file then; name the columns instead";
        return Err(DataError::config("data.categorical", "auto", problem));
    }
    let mut lines = Lines::open(path, options.delimiter)?;
    let all = roles(&mut lines, options, &[])?;
    let (notation, missing) = (options.reading.notation(), lines.missing_cells(options.reading));
    let is_number = |field: &[u8]| std::str::from_utf8(field).is_ok_and(|cell| notation.number(cell).is_some());
    let mut texts = vec![false; lines.width];
    while lines.next()? {
        for (column, found) in texts.iter_mut().enumerate().filter(|(_, found)| !**found) {
            let field = lines.field(column);
            *found =
                all[column] == Role::Feature(CellKind::Number) && !missing.hold(column, field) && !is_number(field);
        }
    }
    let columns: Vec<usize> = (0..texts.len()).filter(|column| texts[*column]).collect();
    if !columns.is_empty() {
        refuse_measured(path, options, &columns)?;
    }
    Ok(texts)
}

/// The number of different values from which on a column looks like one of measured values, not of codes.
const MEASURED: usize = 20;

/// What the cells of a column with texts are.
#[derive(Clone, Default)]
struct Content {
    /// The cells that are not missing.
    present: u32,
    /// Those that are numbers with either decimal mark, or dates.
    values: u32,
    /// Hashes of different ones of these, one more than [`MEASURED`] at most.
    distinct: Vec<u32>,
}

impl Content {
    fn count(&mut self, (column, field): (usize, &[u8]), notation: &Notation, missing: &MissingCells) {
        if missing.hold(column, field) {
            return;
        }
        self.present += 1;
        if std::str::from_utf8(field).is_ok_and(|cell| notation.is_value(cell)) {
            self.values += 1;
            let mut hasher = DefaultHasher::new();
            hasher.write(field);
            let hash = hasher.finish() as u32;
            if self.distinct.len() <= MEASURED && !self.distinct.contains(&hash) {
                self.distinct.push(hash);
            }
        }
    }

    fn is_measured(&self) -> bool {
        self.distinct.len() > MEASURED && 2 * u64::from(self.values) > u64::from(self.present)
    }
}

/// Refuses columns with texts that are mostly numbers or dates: one cell such as `<0.5`, or another decimal mark, would
/// make a category of every value.
///
/// # Errors
/// There is such a column; the message is about its first cell that is not a number.
fn refuse_measured(path: &Path, options: &CsvOptions, columns: &[usize]) -> Result<(), DataError> {
    let notation = options.reading.notation();
    let again = || -> Result<Lines, DataError> {
        let mut lines = Lines::open(path, options.delimiter)?;
        roles(&mut lines, options, &[])?;
        Ok(lines)
    };
    let (mut lines, mut contents) = (again()?, vec![Content::default(); columns.len()]);
    let missing = lines.missing_cells(options.reading);
    while lines.next()? {
        columns.iter().zip(&mut contents).for_each(|(&column, content)| {
            content.count((column, lines.field(column)), &notation, &missing);
        });
    }
    let Some(at) = contents.iter().position(Content::is_measured) else { return Ok(()) };
    let (column, mut lines) = (columns[at], again()?);
    while lines.next()? {
        let field = lines.field(column);
        if !missing.hold(column, field)
            && std::str::from_utf8(field).ok().and_then(|cell| notation.number(cell)).is_none()
        {
            let remedy = notation.remedy(CellKind::Number, field, &lines.called(column), Purpose::Train);
            let why = "data.categorical = \"auto\" takes this column for measured values or dates";
            return Err(lines.bad(column, format!("a number, and {why}{remedy}")));
        }
    }
    Ok(())
}
