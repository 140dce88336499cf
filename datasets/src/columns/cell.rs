//! The cells of a table: numbers, booleans and dates, missing cells, and what a message says about a cell that is
//! refused.

use std::borrow::Cow;

use crate::columns::{DateFormat, has_thousands, may_be_thousands, sign};
use serde::{Deserialize, Serialize};

/// What the cells of a feature column hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CellKind {
    /// Numbers.
    Number,
    /// Yes and no, as 1 and 0.
    Boolean,
    /// Dates, as days since 1970-01-01.
    Date,
    /// Texts, which are one-hot encoded.
    Category,
}

fedstein_schema::words! {
    /// The mark between the whole part and the fraction of a number.
    #[derive(Default)]
    pub enum Decimal {
        /// `1.5`
        #[default]
        Point = ".",
        /// `1,5`
        Comma = ",",
    }
}

impl Decimal {
    /// The mark.
    pub(crate) fn mark(self) -> char {
        match self {
            Self::Point => '.',
            Self::Comma => ',',
        }
    }

    /// The other one.
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Point => Self::Comma,
            Self::Comma => Self::Point,
        }
    }
}

/// How numbers and dates are written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Notation {
    /// The decimal mark.
    pub decimal: Decimal,
    /// The format of dates.
    pub date: DateFormat,
}

/// What rows are read for, which decides about the remedy in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To train and test on: keys of the config may be changed.
    Train,
    /// To predict: the run is given.
    Predict,
}

/// Whether a cell is missing.
pub(crate) fn is_missing(cell: &[u8]) -> bool {
    const MARKS: [&[u8]; 6] = [b"", b"na", b"n/a", b"nan", b"null", b"?"];
    MARKS.iter().any(|mark| cell.eq_ignore_ascii_case(mark))
}

/// A cell as readable text of limited length, for a message.
pub(crate) fn text(cell: &[u8]) -> String {
    let cell = cell.trim_ascii();
    // 40 characters are at most 160 bytes.
    let shown: String = String::from_utf8_lossy(&cell[..cell.len().min(160)]).chars().take(40).collect();
    shown.escape_debug().to_string()
}

/// `true` as 1 and `false` as 0, in one of several spellings.
fn boolean(cell: &str) -> Option<f64> {
    let is = |words: [&str; 5]| words.iter().any(|word| cell.eq_ignore_ascii_case(word));
    match () {
        () if is(["true", "yes", "t", "y", "1"]) => Some(1.0),
        () if is(["false", "no", "f", "n", "0"]) => Some(0.0),
        () => None,
    }
}

impl Notation {
    /// A number, which may be infinite or NaN.
    pub fn number(&self, cell: &str) -> Option<f64> {
        match self.decimal {
            Decimal::Point => cell.parse().ok(),
            // A point might be the mark of thousands.
            Decimal::Comma if cell.contains('.') => None,
            Decimal::Comma => cell.replacen(',', ".", 1).parse().ok(),
        }
    }

    /// The name in a cell, of a class, a category, a client or a group: a plain number with the table's decimal mark has a
    /// point, so that one value is one name in all tables. Any other text is itself.
    pub fn name<'a>(&self, cell: &'a str) -> Cow<'a, str> {
        let is_plain = || cell.bytes().all(|byte| byte.is_ascii_digit() || b"+-,".contains(&byte));
        match self.decimal {
            Decimal::Comma if cell.contains(',') && is_plain() && self.number(cell).is_some() => {
                Cow::Owned(cell.replacen(',', ".", 1))
            }
            _ => Cow::Borrowed(cell),
        }
    }

    /// Whether a cell is a number with either decimal mark, or a date.
    pub(crate) fn is_value(&self, cell: &str) -> bool {
        let number = |decimal| Self { decimal, ..Self::default() }.number(cell).is_some();
        number(Decimal::Point) || number(Decimal::Comma) || self.date.days(cell).is_some() || looks_like_a_date(cell)
    }

    /// The value of a cell; `None` where it does not belong into a column of this kind. A text has none.
    pub(crate) fn value(&self, kind: CellKind, cell: &str) -> Option<f64> {
        match kind {
            CellKind::Number => self.number(cell).filter(|value| value.is_finite()),
            CellKind::Boolean => {
                boolean(cell).or_else(|| self.number(cell).filter(|number| [0.0, 1.0].contains(number)))
            }
            CellKind::Date => self.date.days(cell),
            CellKind::Category => None,
        }
    }

    /// What a cell of this kind must be.
    pub(crate) fn wanted(&self, kind: CellKind) -> String {
        match kind {
            CellKind::Number => "a finite number".into(),
            CellKind::Boolean => "true or false, yes or no, 1 or 0 (data.boolean)".into(),
            CellKind::Date => format!("a date {} (data.date_format)", self.date.as_str()),
            CellKind::Category => "UTF-8 text".into(),
        }
    }

    /// Which key would accept missing cells.
    pub(crate) const fn remedy_of_missing(purpose: Purpose) -> &'static str {
        match purpose {
            Purpose::Train => "; data.missing = \"mean\", \"indicator\" or \"drop\" accepts missing cells",
            Purpose::Predict => {
                "; a run with data.missing = \"mean\" or \"indicator\" predicts rows with missing cells"
            }
        }
    }

    /// How to write a number that has a sign or marks between its thousands; `None` for other cells.
    ///
    /// # Arguments
    /// * `in_other`: whether the cell is a number with the other decimal mark
    fn written_otherwise(&self, cell: &str, (in_other, purpose): (bool, Purpose)) -> Option<String> {
        let (other, mark) = (self.decimal.other(), self.decimal.other().mark());
        if let Some(sign) = sign(cell) {
            return Some(format!("; write the number without `{sign}`"));
        }
        if !in_other {
            return has_thousands(cell).then(|| "; write the number without marks between its thousands".to_owned());
        }
        may_be_thousands(cell, other).then(|| {
            let decimal = match purpose {
                Purpose::Train => format!("data.decimal = \"{mark}\" reads it as a decimal mark"),
                Purpose::Predict => "if it is a decimal mark, the run has another data.decimal".to_owned(),
            };
            format!("; if its `{mark}` stands between thousands, write the number without it; {decimal}")
        })
    }

    /// Which key would accept a cell that is refused and not missing; empty where none would. `column` is its name or number.
    pub(crate) fn remedy(&self, kind: CellKind, cell: &[u8], column: &str, purpose: Purpose) -> String {
        let Ok(cell) = std::str::from_utf8(cell) else { return String::new() };
        let other = self.decimal.other();
        let elsewise = Self { decimal: other, ..self.clone() };
        let in_other = kind == CellKind::Number && elsewise.value(kind, cell).is_some();
        let key = |key: &str, does: &str| format!("; data.{key} = [\"{column}\"] {does}");
        if kind == CellKind::Number
            && self.number(cell).is_none()
            && let Some(remedy) = self.written_otherwise(cell, (in_other, purpose))
        {
            return remedy;
        }
        match purpose {
            Purpose::Train if in_other => format!("; data.decimal = \"{}\" reads it", other.mark()),
            // The run's config has the format of its own file.
            Purpose::Predict if in_other => "; the run has another data.decimal".into(),
            Purpose::Predict if kind == CellKind::Number && self.number(cell).is_none() => {
                "; --missing-values declares cells that stand for missing values".into()
            }
            Purpose::Predict => String::new(),
            Purpose::Train if kind == CellKind::Date => {
                "; data.date_format = \"DD.MM.YYYY\" and the like read other formats".into()
            }
            // A number that is not finite.
            Purpose::Train if self.number(cell).is_some() => String::new(),
            Purpose::Train if kind != CellKind::Boolean && boolean(cell).is_some() => key("boolean", "reads it"),
            Purpose::Train if self.date.days(cell).is_some() => key("date", "reads it"),
            Purpose::Train if looks_like_a_date(cell) => key("date", "reads dates, in the format of data.date_format"),
            Purpose::Train => {
                key("categorical", "takes texts as categories")
                    + &key("ignore", "leaves the column out")
                    + &format!("; data.missing_values = [{cell:?}] takes it for a missing value")
            }
        }
    }
}

/// Whether a cell has three numbers with two equal marks between them, and perhaps a time of day.
fn looks_like_a_date(cell: &str) -> bool {
    let date = cell.split(['T', ' ']).next().unwrap_or(cell);
    ['-', '.', '/'].iter().any(|mark| {
        let parts: Vec<&str> = date.split(*mark).collect();
        parts.len() == 3 && parts.iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_cells_are_these() {
        for cell in ["", "NA", "na", "N/A", "NaN", "nan", "NULL", "null", "?"] {
            assert!(is_missing(cell.as_bytes()), "{cell}");
        }
        for cell in ["0", "none", "-", "nano", "N"] {
            assert!(!is_missing(cell.as_bytes()), "{cell}");
        }
    }

    #[test]
    fn booleans_have_five_spellings() {
        let notation = Notation::default();
        for (yes, no) in [("true", "false"), ("Yes", "NO"), ("t", "F"), ("y", "n"), ("1", "0")] {
            assert_eq!(notation.value(CellKind::Boolean, yes), Some(1.0));
            assert_eq!(notation.value(CellKind::Boolean, no), Some(0.0));
        }
        assert_eq!(notation.value(CellKind::Boolean, "maybe"), None);
        assert_eq!(notation.value(CellKind::Boolean, "2"), None);
    }

    #[test]
    fn booleans_may_be_numbers_that_are_1_or_0() {
        let comma = Notation { decimal: Decimal::Comma, ..Notation::default() };
        let value = |notation: &Notation, cell| notation.value(CellKind::Boolean, cell);
        for (cell, number) in [("1.0", Some(1.0)), ("0.00", Some(0.0)), ("0.5", None), ("1.5", None), ("1,0", None)] {
            assert_eq!(value(&Notation::default(), cell), number, "{cell}");
        }
        assert_eq!((value(&comma, "1,0"), value(&comma, "1.0")), (Some(1.0), None));
    }

    #[test]
    fn a_decimal_comma_excludes_the_point() {
        let comma = Notation { decimal: Decimal::Comma, ..Notation::default() };
        assert_eq!(comma.number("-1,25e2"), Some(-125.0));
        assert_eq!(comma.number("7"), Some(7.0));
        for cell in ["1.5", "1.234,5", "1,2,3", ","] {
            assert_eq!(comma.number(cell), None, "{cell}");
        }
        assert_eq!(Notation::default().number("1,5"), None);
    }

    #[test]
    fn a_name_that_is_a_plain_number_has_a_point() {
        let comma = Notation { decimal: Decimal::Comma, ..Notation::default() };
        for (cell, name) in [("1,0", "1.0"), ("-2,50", "-2.50"), (",5", ".5"), ("7", "7")] {
            assert_eq!(comma.name(cell), name);
        }
        for text in ["1,5 mg", "1,2,3", "1,5e3", "oak, elm", ",", "1.5"] {
            assert_eq!(comma.name(text), text);
        }
        assert_eq!(Notation::default().name("1,0"), "1,0");
    }

    #[test]
    fn a_refused_cell_has_the_key_that_would_accept_it() {
        let remedy = |cell: &str| Notation::default().remedy(CellKind::Number, cell.as_bytes(), "x", Purpose::Train);
        for (cell, words) in [
            ("1,5", "; data.decimal = \",\" reads it"),
            ("yes", "; data.boolean = [\"x\"] reads it"),
            ("2024-05-01", "; data.date = [\"x\"] reads it"),
            ("1.5.2024 10:00", "; data.date = [\"x\"] reads dates, in the format of data.date_format"),
            ("west", "; data.categorical = [\"x\"] takes texts as categories; data.ignore = [\"x\"] leaves"),
        ] {
            assert!(remedy(cell).starts_with(words), "{cell}: {}", remedy(cell));
        }
        assert_eq!(remedy("inf"), "");
        let comma = Notation { decimal: Decimal::Comma, ..Notation::default() };
        let words = comma.remedy(CellKind::Number, b"1.5", "x", Purpose::Train);
        assert_eq!(words, "; data.decimal = \".\" reads it");
        let new = Notation::remedy_of_missing(Purpose::Predict);
        assert!(new.contains("a run with data.missing"), "{new}");
        let words = Notation::default().remedy(CellKind::Boolean, b"maybe", "x", Purpose::Train);
        assert!(words.starts_with("; data.categorical"), "{words}");
    }
}
