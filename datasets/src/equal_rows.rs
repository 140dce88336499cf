//! Test rows that are training rows too.

use crate::{Dataset, Targets};
use ndarray::{ArrayView1, Axis};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The most training rows whose values are counted, column by column.
const COUNTED: usize = 10_000;
/// How many times as many equal rows as by chance are told.
const BEYOND: f64 = 10.0;
/// The least share of the training rows that are different rows: of fewer, equal rows are the rule.
const DIFFERENT: f64 = 0.25;

/// A note on test rows that have the features and the target of a training row, such as those of a table in which each row
/// stands twice; `None` where there are none, where so few different rows are possible that chance may explain them, or where a
/// program scores all its training rows.
pub fn note(train: &Dataset, test: &Dataset) -> Option<String> {
    let known: HashSet<u64> = prints(train).collect();
    let equal = prints(test).filter(|print| known.contains(print)).count();
    if equal == 0 {
        return None;
    }
    let are_different = known.len() as f64 >= DIFFERENT * train.rows() as f64;
    let are_the_same = equal == test.rows() && equal == train.rows();
    // Where each row had each of the possible ones with the same probability.
    let by_chance = test.rows() as f64 * train.rows() as f64 / possible_rows(train);
    (!are_the_same && are_different && equal as f64 >= BEYOND * by_chance).then(|| {
        let (rows, have) = (test.rows(), if equal == 1 { "has" } else { "have" });
        format!(
            "{equal} of {rows} test rows {have} the features and the target of a training row: test scores are too good where \
             these are one row of the data twice"
        )
    })
}

/// A number for each row, which equal rows share.
fn prints(data: &Dataset) -> impl Iterator<Item = u64> {
    data.features.rows().into_iter().enumerate().map(|(row, features)| {
        let mut hasher = DefaultHasher::new();
        features.iter().for_each(|value| value.to_bits().hash(&mut hasher));
        match &data.targets {
            Targets::Classes { labels, .. } => labels[row].hash(&mut hasher),
            Targets::Real { values } => values[row].to_bits().hash(&mut hasher),
            Targets::None { .. } => {}
        }
        hasher.finish()
    })
}

/// The number of different rows that the values of the columns could make up, as far as some rows have them.
fn possible_rows(data: &Dataset) -> f64 {
    let different = |column: ArrayView1<f32>| {
        let values: HashSet<u32> = column.iter().take(COUNTED).map(|value| value.to_bits()).collect();
        values.len() as f64
    };
    data.features.axis_iter(Axis(1)).map(different).product()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;

    fn rows(features: Array2<f32>, labels: impl Fn(usize) -> usize) -> Dataset {
        let labels = (0..features.nrows()).map(labels).collect();
        Dataset::new("t", features, Targets::Classes { labels, names: vec!["a".into(), "b".into()] }).unwrap()
    }

    #[test]
    fn rows_that_stand_twice_are_counted_and_those_of_other_classes_are_not() {
        let of = |first: usize, count: usize| {
            let value = |(row, column): (usize, usize)| ((first + row) * (2 * column + 3) % 97) as f32;
            Array2::from_shape_fn((count, 3), value)
        };
        let train = rows(of(0, 80), |row| row % 2);
        let note_on = |first, class: usize| note(&train, &rows(of(first, 10), |row| (first + row + class) % 2));
        assert!(note_on(74, 0).unwrap().starts_with("6 of 10 test rows have the features and the target"));
        assert!(note_on(79, 0).unwrap().starts_with("1 of 10 test rows has"));
        assert_eq!((note_on(80, 0), note_on(74, 1)), (None, None));
        assert_eq!(note(&train, &train), None);
    }

    #[test]
    fn where_few_rows_are_possible_equal_ones_are_no_news() {
        // Eight different rows are possible.
        let of = |count| Array2::from_shape_fn((count, 3), |(row, column)| (row >> column & 1) as f32);
        assert_eq!(note(&rows(of(40), |_| 0), &rows(of(8), |_| 0)), None);
        // 2^20 are possible, but nearly all rows are the same one.
        let of = |count| Array2::from_shape_fn((count, 20), |(row, column)| f32::from(u8::from(row == column)));
        assert_eq!(note(&rows(of(200), |_| 0), &rows(of(40), |_| 0)), None);
    }
}
