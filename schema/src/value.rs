//! The values that a key accepts: checks a TOML value and converts it to its final form, or says what is allowed.

use std::ops::Bound;

use serde::{Deserialize, Serialize};
use toml::Value;

use super::suggest::{did_you_mean, list};

/// A default, as a constant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Literal {
    /// A whole number.
    Int(i64),
    /// A real number.
    Float(f64),
    /// `true` or `false`.
    Bool(bool),
    /// Text.
    Text(&'static str),
    /// A list of whole numbers.
    Ints(&'static [i64]),
    /// A list of real numbers.
    Floats(&'static [f64]),
    /// A list of texts.
    Texts(&'static [&'static str]),
}

impl Literal {
    /// The literal as TOML.
    pub fn to_value(self) -> Value {
        match self {
            Self::Int(n) => n.into(),
            Self::Float(x) => x.into(),
            Self::Bool(b) => b.into(),
            Self::Text(text) => text.into(),
            Self::Ints(numbers) => numbers.to_vec().into(),
            Self::Floats(numbers) => numbers.to_vec().into(),
            Self::Texts(texts) => Value::Array(texts.iter().map(|text| (*text).into()).collect()),
        }
    }
}

/// A number, or a rule that computes one: the type of a field whose key accepts [`Accepts::NumberOr`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum NumberOr<Rule> {
    /// A number.
    Fixed(f64),
    /// The result of a rule.
    Rule(Rule),
}

/// An interval of real numbers; infinite and NaN values are outside of every interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval(pub Bound<f64>, pub Bound<f64>);

impl Interval {
    /// Every finite number.
    pub const FINITE: Self = Self(Bound::Unbounded, Bound::Unbounded);
    /// (0, ∞)
    pub const POSITIVE: Self = Self(Bound::Excluded(0.0), Bound::Unbounded);
    /// [0, ∞)
    pub const NOT_NEGATIVE: Self = Self(Bound::Included(0.0), Bound::Unbounded);
    /// (−∞, 0)
    pub const NEGATIVE: Self = Self(Bound::Unbounded, Bound::Excluded(0.0));
    /// (0, 1)
    pub const INSIDE_UNIT: Self = Self(Bound::Excluded(0.0), Bound::Excluded(1.0));
    /// (0, 1]
    pub const FRACTION: Self = Self(Bound::Excluded(0.0), Bound::Included(1.0));
    /// (0, ½)
    pub const HALF: Self = Self(Bound::Excluded(0.0), Bound::Excluded(0.5));
    /// [0, 1)
    pub const DECAY: Self = Self(Bound::Included(0.0), Bound::Excluded(1.0));

    fn contains(self, x: f64) -> bool {
        use std::ops::RangeBounds;
        x.is_finite() && (self.0, self.1).contains(&x)
    }

    fn describe(self) -> String {
        let low = match self.0 {
            Bound::Included(x) => Some(format!("at least {x}")),
            Bound::Excluded(x) => Some(format!("greater than {x}")),
            Bound::Unbounded => None,
        };
        let high = match self.1 {
            Bound::Included(x) => Some(format!("at most {x}")),
            Bound::Excluded(x) => Some(format!("less than {x}")),
            Bound::Unbounded => None,
        };
        match (low, high) {
            (Some(low), Some(high)) => format!("a number {low} and {high}"),
            (Some(bound), None) | (None, Some(bound)) => format!("a number {bound}"),
            (None, None) => "a finite number".to_string(),
        }
    }
}

/// The values that a key accepts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Accepts {
    /// A whole number from `min` to `max`.
    Int {
        /// Smallest value.
        min: i64,
        /// Largest value.
        max: i64,
    },
    /// A real number; a whole number is turned into one.
    Float(Interval),
    /// `true` or `false`.
    Bool,
    /// Any text.
    Text {
        /// Whether `""` is a value.
        may_be_empty: bool,
    },
    /// A CSV column by its name or number (from 0; negative: from the end), which is turned into text.
    Column {
        /// Whether `""` is a value.
        may_be_empty: bool,
    },
    /// CSV columns, each by its name or number: a list of them, or one, which is turned into a list of texts; or one of
    /// these words.
    Columns {
        /// The words.
        words: &'static [&'static str],
    },
    /// The name of a class, or `""`; a whole number is turned into text.
    Class,
    /// Clients by their names, each a text that is not empty or a number: a list of them, or one, which are turned into a
    /// list of texts.
    Clients,
    /// A run's name, fit to be a directory: letters, digits, `-`, `_`, `.`, not starting with a dot.
    Name,
    /// One ASCII character, or `tab`.
    Character,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Whole numbers of at least `min`; the list may be empty.
    IntList {
        /// Smallest element.
        min: i64,
    },
    /// Real numbers, at least `length` of them.
    FloatList {
        /// Where each element lies.
        each: Interval,
        /// Fewest elements.
        length: usize,
    },
    /// Texts, which their reader checks; the list may be empty.
    TextList {
        /// An example in TOML, to complete "such as …".
        example: &'static str,
    },
    /// Cells of a CSV table, each a number or a text that is not empty: a list of them, or one, which are turned into a
    /// list of texts; or a table of these by the names of columns.
    Cells,
    /// A real number, or one of these words.
    NumberOr(Interval, &'static [&'static str]),
}

impl Accepts {
    /// The allowed values, to complete "it must be …".
    pub fn describe(self) -> String {
        match self {
            Self::Int { min, max: i64::MAX } => format!("a whole number of at least {min}"),
            Self::Int { min, max } => format!("a whole number from {min} to {max}"),
            Self::Float(interval) => interval.describe(),
            Self::Bool => "true or false".to_string(),
            Self::Text { may_be_empty: true } => "text".to_string(),
            Self::Text { .. } => "text that is not empty".to_string(),
            Self::Column { may_be_empty: true } => "a column's name or number, or \"\"".to_string(),
            Self::Column { .. } => "a column's name or its number from 0".to_string(),
            Self::Columns { words: [] } => {
                "a column's name or number, or a list of them, such as [\"ward\", 3]".to_string()
            }
            Self::Columns { words } => {
                let columns = Self::Columns { words: &[] }.describe();
                format!("{columns}; or {}", list(words))
            }
            Self::Class => "a class as the target column writes it, or \"\"".to_string(),
            Self::Clients => "a client's name, or a list of them, such as [\"north\", 3]".to_string(),
            Self::Name => "a name of letters, digits, `-`, `_` and `.`, at most 100, not starting with `.`".to_string(),
            Self::Character => "one ASCII character, or `tab`".to_string(),
            Self::Choice(words) => format!("one of {}", list(words)),
            Self::IntList { min } => format!("a list of whole numbers of at least {min}, such as [100, 50]"),
            Self::FloatList { each, length } => format!("a list of {length} or more numbers, each {}", each.describe()),
            Self::TextList { example } => format!("a list of texts, such as {example}"),
            Self::Cells => "a cell or a list of them, such as [999, \"unknown\"], or these for each column, such as \
                            { age = 999, weight = [-9, \"unknown\"] }"
                .to_string(),
            Self::NumberOr(interval, [word]) => format!("{} or `{word}`", interval.describe()),
            Self::NumberOr(interval, words) => format!("{} or one of {}", interval.describe(), list(words)),
        }
    }

    /// Converts `value` to its final form (a whole number becomes a real one where the key is real).
    ///
    /// # Errors
    /// The allowed values, if `value` is not one of them.
    pub fn check(self, value: &Value) -> Result<Value, String> {
        let accepted = match (self, value) {
            (Self::Int { min, max }, Value::Integer(n)) => (min..=max).contains(n).then(|| value.clone()),
            (Self::Float(interval) | Self::NumberOr(interval, _), Value::Integer(_) | Value::Float(_)) => {
                number_in(interval, value)
            }
            (Self::Bool, Value::Boolean(_)) => Some(value.clone()),
            (Self::Text { may_be_empty } | Self::Column { may_be_empty }, Value::String(text)) => {
                (may_be_empty || !text.is_empty()).then(|| value.clone())
            }
            (Self::Class, Value::String(_)) => Some(value.clone()),
            (Self::Column { .. } | Self::Class, Value::Integer(n)) => Some(Value::String(n.to_string())),
            (Self::Columns { words }, Value::String(text)) if words.contains(&text.as_str()) => Some(value.clone()),
            (Self::Columns { .. }, Value::Array(items)) => {
                items.iter().map(column).collect::<Option<Vec<_>>>().map(Value::Array)
            }
            (Self::Columns { .. }, one) => column(one).map(|column| Value::Array(vec![column])),
            (Self::Cells, Value::Table(columns)) => {
                let of_column = |(name, value): (&String, &Value)| Some((name.clone(), cells(value)?));
                columns.iter().map(of_column).collect::<Option<_>>().map(Value::Table)
            }
            (Self::Cells | Self::Clients, value) => cells(value),
            (Self::Name, Value::String(text)) => is_name(text).then(|| value.clone()),
            (Self::Character, Value::String(text)) => is_character(text).then(|| value.clone()),
            (Self::Choice(words) | Self::NumberOr(_, words), Value::String(text)) => {
                words.contains(&text.as_str()).then(|| value.clone())
            }
            (Self::IntList { min }, Value::Array(items)) => {
                items.iter().all(|item| item.as_integer().is_some_and(|n| n >= min)).then(|| value.clone())
            }
            (Self::TextList { .. }, Value::Array(items)) => items.iter().all(Value::is_str).then(|| value.clone()),
            (Self::FloatList { each, length }, Value::Array(items)) if items.len() >= length => {
                items.iter().map(|item| number_in(each, item)).collect::<Option<Vec<_>>>().map(Value::Array)
            }
            _ => None,
        };
        accepted.ok_or_else(|| self.describe() + &self.hint(value))
    }

    /// Whether the value of `--set` is taken as text even where it could be read as a TOML number or date.
    pub(super) fn takes_text(self) -> bool {
        matches!(self, Self::Text { .. } | Self::Column { .. } | Self::Class | Self::Name | Self::Character)
    }

    /// Whether a real number is a value.
    pub(super) fn takes_real(self) -> bool {
        matches!(self, Self::Float(_) | Self::NumberOr(..))
    }

    /// "; did you mean …?" where a word is close to one of the choices.
    fn hint(self, value: &Value) -> String {
        match (self, value) {
            (Self::Choice(words) | Self::NumberOr(_, words), Value::String(text)) => {
                did_you_mean(text, words.iter().copied())
            }
            // TOML has no greater whole numbers; the command line's are texts.
            (Self::Int { max: i64::MAX, .. }, Value::String(text)) if text.parse::<u64>().is_ok() => {
                format!(" and at most {}", i64::MAX)
            }
            _ => String::new(),
        }
    }
}

/// "one of …", with a hint where `given` is close to one of the words.
pub(super) fn not_one_of(words: &[&str], given: Option<&str>) -> String {
    format!(
        "one of {}{}",
        list(words),
        given.map_or_else(String::new, |given| did_you_mean(given, words.iter().copied()))
    )
}

/// A column's name or number as text, if it is one.
fn column(value: &Value) -> Option<Value> {
    match value {
        Value::String(name) => (!name.is_empty()).then(|| value.clone()),
        Value::Integer(number) => Some(Value::String(number.to_string())),
        _ => None,
    }
}

/// A cell, or a list of cells, as a list of texts.
fn cells(value: &Value) -> Option<Value> {
    let cell = |value: &Value| match value {
        Value::String(text) => (!text.trim().is_empty()).then(|| value.clone()),
        Value::Integer(number) => Some(Value::String(number.to_string())),
        Value::Float(number) => number.is_finite().then(|| Value::String(number.to_string())),
        _ => None,
    };
    match value {
        Value::Array(items) => items.iter().map(cell).collect::<Option<Vec<_>>>().map(Value::Array),
        one => cell(one).map(|cell| Value::Array(vec![cell])),
    }
}

/// `value` as a real number, if it is one within the interval.
fn number_in(interval: Interval, value: &Value) -> Option<Value> {
    let x = match value {
        // The conversion is exact below 2^53; no key has a meaning beyond that.
        #[allow(clippy::cast_precision_loss)]
        Value::Integer(n) => *n as f64,
        Value::Float(x) => *x,
        _ => return None,
    };
    interval.contains(x).then_some(Value::Float(x))
}

fn is_character(text: &str) -> bool {
    text == "tab" || (text.is_ascii() && text.len() == 1)
}

fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    (1..=100).contains(&text.len()) && !text.starts_with('.') && text.chars().all(fits)
}
