//! Which cells of a table are missing: blank ones and the usual marks, and what a config declares besides, such as 999
//! among ages.

use crate::columns::{Notation, is_missing};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};

/// Cells that stand for missing values besides the usual marks.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum MissingValues {
    /// These cells in every column.
    Everywhere(Vec<String>),
    /// These cells in the column of each name.
    InColumns(BTreeMap<String, Vec<String>>),
}

impl Default for MissingValues {
    fn default() -> Self {
        Self::Everywhere(Vec::new())
    }
}

impl MissingValues {
    /// Whether no cell is declared.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Everywhere(cells) => cells.is_empty(),
            Self::InColumns(columns) => columns.values().all(Vec::is_empty),
        }
    }

    /// These and the cells of some columns: in their columns alone, unless there is no header or cells are declared for
    /// every column already.
    ///
    /// # Arguments
    /// * `columns`: the names of columns with cells of them
    /// * `header`: whether the names are those of a header
    pub fn with(&self, columns: &[(String, Vec<String>)], header: bool) -> Self {
        let add = |cells: &mut Vec<String>, more: &[String]| {
            let new: Vec<String> = more.iter().filter(|cell| !cells.contains(cell)).cloned().collect();
            cells.extend(new);
        };
        match self {
            Self::Everywhere(cells) if !header || !cells.is_empty() => {
                let mut cells = cells.clone();
                columns.iter().for_each(|(_, more)| add(&mut cells, more));
                Self::Everywhere(cells)
            }
            declared => {
                let mut all = match declared {
                    Self::InColumns(declared) => declared.clone(),
                    Self::Everywhere(_) => BTreeMap::new(),
                };
                columns.iter().for_each(|(name, more)| add(all.entry(name.clone()).or_default(), more));
                Self::InColumns(all)
            }
        }
    }

    /// The columns that are named.
    pub fn columns(&self) -> impl Iterator<Item = &String> {
        let columns = match self {
            Self::Everywhere(_) => None,
            Self::InColumns(columns) => Some(columns.keys()),
        };
        columns.into_iter().flatten()
    }

    /// The missing cells of columns with these names, in their order; none where they have no names.
    pub(crate) fn cells<'a>(&self, names: impl Iterator<Item = &'a str>, notation: Notation) -> MissingCells {
        let declared = |cells: &[String]| cells.iter().map(|cell| Declared::of(cell.trim(), &notation)).collect();
        let (everywhere, in_columns) = match self {
            Self::Everywhere(cells) => (declared(cells), BTreeMap::new()),
            Self::InColumns(columns) => {
                let of_name = |(at, name): (usize, &str)| Some((at, declared(columns.get(name)?)));
                (Vec::new(), names.enumerate().filter_map(of_name).collect())
            }
        };
        MissingCells { everywhere, in_columns, notation }
    }
}

/// The value of the key in TOML.
impl Display for MissingValues {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Everywhere(cells) => write!(formatter, "[{}]", list(cells)),
            Self::InColumns(columns) => {
                let of = |(name, cells): (&String, &Vec<String>)| format!("{} = [{}]", key(name), list(cells));
                write!(formatter, "{{ {} }}", columns.iter().map(of).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// Cells between commas: numbers as they are, texts in quotes.
fn list(cells: &[String]) -> String {
    let is_number =
        |cell: &String| cell.parse().is_ok_and(|number: f64| number.is_finite() && number.to_string() == *cell);
    let cell = |cell: &String| if is_number(cell) { cell.clone() } else { format!("{cell:?}") };
    cells.iter().map(cell).collect::<Vec<_>>().join(", ")
}

/// A name as a key of TOML.
fn key(name: &str) -> String {
    let is_bare = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    if is_bare { name.to_owned() } else { format!("{name:?}") }
}

/// The missing cells of the columns of a table.
#[derive(Clone, Debug)]
pub(crate) struct MissingCells {
    everywhere: Vec<Declared>,
    /// Those of single columns, by their place.
    in_columns: BTreeMap<usize, Vec<Declared>>,
    notation: Notation,
}

/// A cell that a config declares missing.
#[derive(Clone, Debug)]
struct Declared {
    text: String,
    number: Option<f64>,
}

impl Declared {
    /// The config writes numbers with a point; a text may have the mark of the file.
    fn of(cell: &str, notation: &Notation) -> Self {
        let number = cell.parse().ok().or_else(|| notation.number(cell));
        Self { text: cell.to_owned(), number: number.filter(|number: &f64| number.is_finite()) }
    }
}

impl MissingCells {
    /// Whether a cell of the column at a place is missing.
    pub fn hold(&self, at: usize, cell: &[u8]) -> bool {
        is_missing(cell) || self.declare(at, cell)
    }

    /// Whether a cell is one that the config declares missing: the same text in upper or lower case, or the same number.
    pub fn declare(&self, at: usize, cell: &[u8]) -> bool {
        let declared = self.in_columns.get(&at).unwrap_or(&self.everywhere);
        if declared.is_empty() {
            return false;
        }
        let number = std::str::from_utf8(cell).ok().and_then(|cell| self.notation.number(cell));
        let is = |declared: &Declared| {
            cell.eq_ignore_ascii_case(declared.text.as_bytes()) || (number.is_some() && declared.number == number)
        };
        declared.iter().any(is)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::Decimal;

    #[test]
    fn declared_cells_are_the_same_text_or_the_same_number() {
        let everywhere = MissingValues::Everywhere(vec!["999".into(), "-9.5".into(), "Unknown".into()]);
        let comma = Notation { decimal: Decimal::Comma, ..Notation::default() };
        let of = |notation: Notation| everywhere.cells(std::iter::empty(), notation);
        let (point, comma) = (of(Notation::default()), of(comma));
        for cell in ["999", "999.0", "9.99e2", "-9.5", "unknown", "UNKNOWN", "", "NA"] {
            assert!(point.hold(3, cell.as_bytes()), "{cell}");
        }
        for cell in ["999", "999,0", "-9,5", "-9.5", "?"] {
            assert!(comma.hold(0, cell.as_bytes()), "{cell}");
        }
        for cell in ["99", "9999", "-999", "none", "unknown drug"] {
            assert!(!point.hold(3, cell.as_bytes()), "{cell}");
        }
        assert!(!point.declare(0, b"") && !comma.declare(0, b"9.99e2"));
    }

    #[test]
    fn cells_of_a_column_are_missing_there_alone() {
        let columns = MissingValues::InColumns([("age".to_owned(), vec!["999".to_owned()])].into());
        let of = columns.cells(["weight", "age"].into_iter(), Notation::default());
        assert!(of.hold(1, b"999") && !of.hold(0, b"999") && of.hold(0, b"NA"));
        assert!(!columns.cells(std::iter::empty(), Notation::default()).hold(1, b"999"));
        assert_eq!(columns.columns().collect::<Vec<_>>(), ["age"]);
    }
}
