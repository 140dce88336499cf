//! What is counted and summed over some training rows of a column. The rows may be at several places: merged, the
//! tallies are those of one table.

use crate::ExactSum;
use crate::columns::CellKind;
use crate::moments::ColumnSum;
use ndarray::ArrayView1;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Counts and a sum over the rows of one column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tally {
    /// The number of missing cells.
    pub missing: usize,
    /// The number of the other cells.
    pub present: usize,
    /// The sum of the other cells; 0 for a category.
    pub sum: ColumnSum,
    /// The number of rows with each text, in the order of the texts; empty for other kinds.
    pub texts: BTreeMap<String, usize>,
}

impl Tally {
    /// The tally of some cells.
    ///
    /// # Arguments
    /// - `texts`: the texts to which the cells of a category refer.
    pub fn of(kind: CellKind, cells: ArrayView1<'_, f32>, texts: &[String]) -> Self {
        let present = || cells.iter().copied().filter(|cell| !cell.is_nan());
        let there = present().count();
        let missing = cells.len() - there;
        if kind != CellKind::Category {
            let sum = ColumnSum::of(present().map(f64::from));
            return Self { missing, present: there, sum, texts: BTreeMap::new() };
        }
        let mut counts = vec![0; texts.len()];
        // A cell of a category is a small whole number.
        present().for_each(|cell| counts[cell as usize] += 1);
        let used = texts.iter().zip(counts).filter(|(_, count)| *count > 0);
        let texts = used.map(|(text, count)| (text.clone(), count)).collect();
        Self { missing, present: there, sum: ColumnSum { sum: ExactSum::default(), constant: None }, texts }
    }

    /// The mean of the cells that are not missing, of all parts of a column; 0 where all are missing.
    pub(crate) fn mean(parts: &[&Self]) -> f64 {
        // A part without such a cell says nothing about a constant.
        let sums: Vec<&ColumnSum> = parts.iter().filter(|part| part.present > 0).map(|part| &part.sum).collect();
        match Self::present(parts) {
            0 => 0.0,
            present => ColumnSum::mean(&sums, present),
        }
    }

    /// The number of cells of all parts that are not missing.
    pub(crate) fn present(parts: &[&Self]) -> usize {
        parts.iter().map(|part| part.present).sum()
    }

    /// The number of rows of all parts with each text.
    pub(crate) fn texts(parts: &[&Self]) -> BTreeMap<String, usize> {
        let mut all = BTreeMap::new();
        for (text, count) in parts.iter().flat_map(|part| &part.texts) {
            *all.entry(text.clone()).or_insert(0) += count;
        }
        all
    }

    /// The number of missing cells of all parts.
    pub(crate) fn missing(parts: &[&Self]) -> usize {
        parts.iter().map(|part| part.missing).sum()
    }
}

/// Adds a number `count` times, exactly.
pub(crate) fn times(sum: &mut ExactSum, count: usize, value: f32) {
    // A product of 24 bits of the value and up to 24 bits of the count is exact.
    const HALF: u32 = 24;
    let low = count & ((1 << HALF) - 1);
    let high = (count >> HALF) << HALF;
    for part in [low, high] {
        sum.add(part as f64 * f64::from(value));
    }
}
