//! Features that say the class by themselves: often the outcome in other words, or what is known only after it.

use crate::{Dataset, Targets};
use ndarray::{ArrayView1, Axis};
use std::collections::BTreeMap;

/// The largest number of different cells of a column that is looked at.
const MOST: usize = 20;
/// The least number of rows for each different cell: of fewer, chance can give every cell one class.
const ROWS: usize = 5;
/// The number of columns that the note names.
const NAMED: usize = 3;

/// A note on columns of which each cell, or whether there is one, goes with one class in all training rows; `None` where there
/// is no such column.
///
/// # Arguments
/// - `train`: the training rows as cells, NaN where one is missing
pub(crate) fn note(train: &Dataset) -> Option<String> {
    let Targets::Classes { labels, .. } = &train.targets else { return None };
    if labels.iter().min() == labels.iter().max() {
        return None;
    }
    let called = |column: usize| match &train.feature_names {
        Some(names) => format!("`{}`", crate::columns::text(names[column].as_bytes())),
        None => format!("feature {column}"),
    };
    let columns = train.features.axis_iter(Axis(1)).enumerate();
    let found: Vec<String> =
        columns.filter(|(_, cells)| tell_the_class(*cells, labels)).map(|(column, _)| called(column)).collect();
    (!found.is_empty()).then(|| {
        format!(
            "columns of which each cell, or whether one is missing, goes with one class in all training rows: {}; where such a \
             column is the outcome in other words, or is known only after it, leave it out with data.ignore",
            fedstein_schema::first(NAMED, found)
        )
    })
}

/// Whether each different cell, or else whether there is one, goes with one class.
fn tell_the_class(cells: ArrayView1<f32>, labels: &[usize]) -> bool {
    let is_missing = cells.iter().map(|cell| u32::from(cell.is_nan()));
    is_function(cells.iter().map(|cell| cell.to_bits()), labels) || is_function(is_missing, labels)
}

/// Whether the class of a row follows from its value: two values or more, and few for so many rows.
fn is_function(values: impl Iterator<Item = u32>, labels: &[usize]) -> bool {
    let mut class_of = BTreeMap::new();
    for (value, label) in values.zip(labels) {
        if *class_of.entry(value).or_insert(label) != label || class_of.len() > MOST {
            return false;
        }
    }
    class_of.len() > 1 && labels.len() >= ROWS * class_of.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;

    /// A table of 60 rows with these columns, of two classes.
    fn table(columns: &[(&str, &dyn Fn(usize) -> f32)]) -> Dataset {
        let features = Array2::from_shape_fn((60, columns.len()), |(row, column)| columns[column].1(row));
        let labels = (0..60).map(|row| usize::from(row % 3 == 0)).collect();
        let targets = Targets::Classes { labels, names: vec!["a".into(), "b".into()] };
        let names = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
        let rows =
            Dataset::new("t", Array2::zeros(features.dim()), targets).unwrap().with_feature_names(names).unwrap();
        // Cells may be missing, as features may not.
        Dataset { features, ..rows }
    }

    #[test]
    fn the_outcome_in_other_words_and_what_is_missing_without_it_are_named() {
        let number = |row: usize| row as f32 * 0.5;
        let other_words = |row: usize| [7.0, 3.0, 5.0][row % 3];
        let of_those = |row: usize| if row.is_multiple_of(3) { row as f32 } else { f32::NAN };
        let found = note(&table(&[("dose", &number), ("dead", &other_words), ("day_of_death", &of_those)])).unwrap();
        assert!(found.contains("training rows: `dead`, `day_of_death`; where such a column"), "{found}");
    }

    #[test]
    fn what_only_some_cells_tell_or_too_few_rows_show_is_not_named() {
        // One row is another one; constant; 15 values in 60 rows.
        let nearly = |row: usize| if row == 5 { 1.0 } else { f32::from(u8::from(row.is_multiple_of(3))) };
        let (constant, many) = (|_: usize| 1.0, |row: usize| (row % 3 + 3 * (row / 12)) as f32);
        assert_eq!(note(&table(&[("nearly", &nearly), ("constant", &constant), ("many", &many)])), None);
    }
}
