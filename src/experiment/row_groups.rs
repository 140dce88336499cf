//! Groups of rows that are named by a text of each row.

use std::collections::BTreeMap;

use crate::error::RunError;

/// The groups of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowGroups {
    /// The names of the groups, `[G]`, as text in ascending order.
    pub names: Vec<String>,
    /// The group of each row, `[n]`.
    pub of: Vec<usize>,
}

impl RowGroups {
    /// Groups of rows with the same text, `[n]`.
    pub fn of_texts(texts: &[String]) -> Self {
        let mut places: BTreeMap<&String, usize> = texts.iter().map(|text| (text, 0)).collect();
        places.values_mut().enumerate().for_each(|(place, at)| *at = place);
        Self { of: texts.iter().map(|text| places[text]).collect(), names: places.into_keys().cloned().collect() }
    }

    /// Checks that each of so many rows has a group with a name.
    ///
    /// # Arguments
    /// * `input`: what the rows are, for messages
    ///
    /// # Errors
    /// A sentence about the first that is not so.
    pub(super) fn check(&self, rows: usize, input: &str) -> Result<(), RunError> {
        let (groups, names) = (self.of.len(), self.names.len());
        let problem = match self.of.iter().position(|group| *group >= names) {
            _ if groups != rows => format!("the groups of {groups} rows for {rows} rows; each row has one"),
            Some(row) => {
                format!("data row {} is of group {}, and there are {names} names of groups", row + 1, self.of[row])
            }
            None => return Ok(()),
        };
        Err(RunError::Config(format!("{input}: {problem}")))
    }
}
