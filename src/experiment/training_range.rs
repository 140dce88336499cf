//! Features of new rows that lie far outside those of the training rows, as far as a run's `model.json` knows these.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use ndarray::{Array2, ArrayView1};

use super::finished::Finished;
use crate::datasets::{ColumnScale, FeatureScale};
use crate::report::quoted;

/// The most standard deviations from the mean. Of the training rows themselves, whatever their distribution, at most one in
/// 36 is further away (Chebyshev).
const DEVIATIONS: f64 = 6.0;
/// The most widths of the range of the training rows beyond its ends.
const WIDTHS: f64 = 1.0;

/// What a run knows of the features of its training rows.
#[derive(Clone, Debug)]
pub struct TrainingRange {
    shift: Vec<f64>,
    scale: Vec<f64>,
    /// The least and the largest usual value of (x - shift) / scale.
    usual: (f64, f64),
    /// Whether a feature is a number or a date, `[p]`, rather than one of a text or of yes and no.
    are_numbers: Vec<bool>,
    /// The names of the features, `[p]`; their numbers from 0 where they have none.
    names: Vec<String>,
    /// What a feature is that lies outside, in words.
    about: String,
}

impl Finished {
    /// What the run knows of the features of its training rows: means and standard deviations, or the smallest and largest
    /// values. `None` where it knows neither.
    pub fn training_range(&self) -> Option<TrainingRange> {
        let FeatureScale::PerColumn { by, shift, scale } = &self.card.normalisation.features else { return None };
        let (usual, about) = match by {
            ColumnScale::Minmax => (
                (-WIDTHS, 1.0 + WIDTHS),
                "further from the range of the training rows than this range is wide".to_owned(),
            ),
            ColumnScale::Standard => (
                (-DEVIATIONS, DEVIATIONS),
                format!("more than {DEVIATIONS} standard deviations from the mean of the training rows"),
            ),
        };
        let numbered = || (0..self.card.features).map(|column| column.to_string()).collect();
        let names = self.card.feature_names.clone().unwrap_or_else(numbered);
        let are_numbers = match &self.card.encoding {
            Some(encoding) => encoding.are_numbers(),
            None => vec![true; self.card.features],
        };
        Some(TrainingRange { shift: shift.clone(), scale: scale.clone(), usual, are_numbers, names, about })
    }
}

impl TrainingRange {
    /// The names of the features of each row, `[n]`, that lie outside, in the order of the features; their numbers from 0
    /// where they have no names.
    ///
    /// # Arguments
    /// * `features`: `[n, p]`, in the units of the data
    pub fn outside(&self, features: &Array2<f32>) -> Vec<Vec<&str>> {
        let (low, high) = self.usual;
        let of_row = |row: ArrayView1<f32>| {
            let is_outside = |(column, x): &(usize, &f32)| {
                let value = (f64::from(**x) - self.shift[*column]) / self.scale[*column];
                self.are_numbers[*column] && !(low..=high).contains(&value)
            };
            row.iter().enumerate().filter(is_outside).map(|(column, _)| self.names[column].as_str()).collect()
        };
        features.rows().into_iter().map(of_row).collect()
    }

    /// How many rows have a feature outside, and which features these are most often; `None` where no row has one.
    pub fn note(&self, outside: &[Vec<&str>]) -> Option<String> {
        const LISTED: usize = 3;
        let rows = outside.iter().filter(|names| !names.is_empty()).count();
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        outside.iter().flatten().for_each(|name| *counts.entry(name).or_default() += 1);
        let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
        counts.sort_by_key(|(_, count)| Reverse(*count));
        let name = |(name, count): &(&str, usize)| format!("`{}` in {count}", quoted(name));
        let listed: Vec<String> = counts.iter().take(LISTED).map(name).collect();
        let more = if counts.len() > LISTED { ", \u{2026}" } else { "" };
        let (of, about) = (outside.len(), &self.about);
        let have = if rows == 1 { "has" } else { "have" };
        (rows > 0).then(|| format!("{rows} of {of} rows {have} a feature {about}: {}{more}", listed.join(", ")))
    }
}
