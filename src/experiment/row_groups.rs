//! Groups of rows that are named by a text of each row.

use std::collections::BTreeMap;

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
}
