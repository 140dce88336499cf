//! The scales of features and targets. They are computed from the training rows alone, applied to any rows, and saved
//! with a run.

use crate::moments::{ColumnSum, not_zero, squared_deviations, standard_deviation};
use crate::{DataError, Encoding, Targets};
use ndarray::{Array2, Axis};
use serde::{Deserialize, Serialize};

/// The scales by which raw data were transformed for a model.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Normalisation {
    /// The scale of the features.
    pub features: FeatureScale,
    /// The scale of a regression target; `None` for classification.
    pub target: Option<TargetScale>,
}

/// The least number of different values to a standard deviation that is not coarse.
const STEPS: f64 = 128.0;

/// The scale of the features.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum FeatureScale {
    /// The features are not scaled.
    Identity,
    /// `scale * x + offset` everywhere.
    AffineAll {
        /// Factor.
        scale: f64,
        /// Added after the factor.
        offset: f64,
    },
    /// `(x - shift[j]) / scale[j]` in column `j`.
    PerColumn {
        /// What these numbers are of the training rows.
        #[serde(default)]
        by: ColumnScale,
        /// Subtracted first, one per column.
        shift: Vec<f64>,
        /// Divided by afterwards, one per column, never 0.
        scale: Vec<f64>,
    },
    /// `(x - shift[c]) / scale[c]` in channel `c`: a row is C blocks of equal length, one channel after the other.
    PerChannel {
        /// Subtracted first, one per channel.
        shift: Vec<f64>,
        /// Divided by afterwards, one per channel, never 0.
        scale: Vec<f64>,
    },
}

/// What the numbers of a scale of columns are of the training rows.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum ColumnScale {
    /// Mean and standard deviation.
    #[default]
    Standard,
    /// The smallest value, and the range.
    Minmax,
}

/// The scale of a regression target: a model sees `(y - mean) / sd`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq)]
pub struct TargetScale {
    /// Mean of the training targets.
    pub mean: f64,
    /// Their standard deviation (divisor n); 1 where they are all equal.
    pub sd: f64,
}

impl FeatureScale {
    /// Whether the scale belongs to so many columns.
    pub fn fits(&self, columns: usize) -> bool {
        match self {
            Self::Identity | Self::AffineAll { .. } => true,
            Self::PerColumn { shift, scale, .. } => shift.len() == columns && scale.len() == columns,
            Self::PerChannel { shift, scale } => {
                !shift.is_empty() && shift.len() == scale.len() && columns.is_multiple_of(shift.len())
            }
        }
    }

    /// `(x - min) / (max - min)` per column of the features `[n, p]`; a constant column keeps its scale.
    pub fn minmax(features: &Array2<f32>) -> Self {
        let columns = features.axis_iter(Axis(1)).map(|column| {
            let (low, high) =
                column.iter().fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), &x| (low.min(x), high.max(x)));
            if low > high { (0.0, 1.0) } else { (f64::from(low), not_zero(f64::from(high) - f64::from(low))) }
        });
        let (shift, scale) = columns.unzip();
        FeatureScale::PerColumn { by: ColumnScale::Minmax, shift, scale }
    }

    /// `(x - mean) / sd` per column of the features `[n, p]`, sd with divisor n; a constant column keeps its scale.
    pub fn standard(features: &Array2<f32>) -> Self {
        let columns = features.axis_iter(Axis(1)).map(|column| {
            let moments = mean_sd(column.iter().map(|&x| f64::from(x)));
            (moments.mean, moments.sd)
        });
        let (shift, scale) = columns.unzip();
        FeatureScale::PerColumn { by: ColumnScale::Standard, shift, scale }
    }

    /// The same scale, but for the features that are 0 or 1, those of texts, of yes and no, and of missing cells: they are
    /// centred and not divided. Divided by its standard deviation, the feature of a text that few rows have would be far from 0
    /// in these rows, and the prior would hardly hold its weight. Source: Gelman 2008, "Scaling regression inputs by dividing by
    /// two standard deviations".
    ///
    /// # Arguments
    /// - `encoding`: how the columns of a table became the features; without it all are numbers.
    #[must_use]
    pub fn of_numbers_alone(mut self, encoding: Option<&Encoding>) -> Self {
        if let (FeatureScale::PerColumn { scale, .. }, Some(encoding)) = (&mut self, encoding) {
            let others = scale.iter_mut().zip(encoding.are_numbers()).filter(|(_, is_number)| !is_number);
            others.for_each(|(scale, _)| *scale = 1.0);
        }
        self
    }

    /// A scale of bytes by the mean and the standard deviation of each channel of x / 255, as in papers.
    pub fn of_pixels(mean: &[f64], sd: &[f64]) -> Self {
        let bytes = |values: &[f64]| values.iter().map(|value| 255.0 * value).collect();
        FeatureScale::PerChannel { shift: bytes(mean), scale: bytes(sd) }
    }

    /// A scale of bytes by the mean and the standard deviation of x / 255 over all pixels, as in FedWBA's code.
    pub(crate) fn of_gray_pixels(mean: f64, sd: f64) -> Self {
        FeatureScale::AffineAll { scale: 1.0 / (255.0 * sd), offset: -mean / sd }
    }

    /// A note on each column that f32 keeps too coarsely.
    ///
    /// # Arguments
    /// - `names`: the names of the features `[p]`, if they have any.
    pub fn coarse_notes(&self, names: Option<&[String]>) -> Vec<String> {
        let note = |(column, value, step): (usize, f64, f64)| {
            let name = match names.and_then(|names| names.get(column)) {
                Some(name) => format!("feature `{name}`"),
                None => format!("feature {column}"),
            };
            format!(
                "{name}: near {value} the numbers of f32, in which features are kept, are {step} apart; where its \
                 values differ by little, subtract a constant from the column, so that they are near 0"
            )
        };
        self.coarse().into_iter().map(note).collect()
    }

    /// The columns that f32 keeps too coarsely, each with its shift and the distance of neighbouring numbers there: fewer than
    /// [`STEPS`] of them to a standard deviation or range, as where a time in seconds counts from 1970.
    fn coarse(&self) -> Vec<(usize, f64, f64)> {
        let FeatureScale::PerColumn { shift, scale, .. } = self else { return Vec::new() };
        let step = |shift: f64| 2f64.powf(shift.abs().log2().floor()) * f64::from(f32::EPSILON);
        let columns = shift.iter().zip(scale).enumerate();
        let coarse = columns.filter(|(_, (shift, scale))| step(**shift) * STEPS > **scale);
        coarse.map(|(column, (shift, _))| (column, *shift, step(*shift))).collect()
    }

    /// Scales raw features `[rows, p]` in place.
    ///
    /// # Errors
    /// The features have another number of columns than the scale, or one that is not a multiple of its channels. They
    /// are then not changed.
    pub fn apply(&self, features: &mut Array2<f32>) -> Result<(), DataError> {
        match self {
            FeatureScale::Identity => {}
            FeatureScale::AffineAll { scale, offset } => {
                features.mapv_inplace(|x| (f64::from(x) * scale + offset) as f32);
            }
            FeatureScale::PerColumn { shift, scale, .. } => {
                let found = features.ncols();
                if let Some(&expected) = [shift.len(), scale.len()].iter().find(|&&width| width != found) {
                    return Err(DataError::Width { expected, found });
                }
                for mut row in features.rows_mut() {
                    for (x, (shift, scale)) in row.iter_mut().zip(shift.iter().zip(scale)) {
                        *x = ((f64::from(*x) - shift) / scale) as f32;
                    }
                }
            }
            FeatureScale::PerChannel { shift, scale } => {
                let (found, channels) = (features.ncols(), shift.len());
                if channels == 0 || channels != scale.len() || found % channels != 0 {
                    return Err(DataError::Channels { channels, found });
                }
                if found == 0 {
                    return Ok(());
                }
                for mut row in features.rows_mut() {
                    let blocks = row.exact_chunks_mut(found / channels);
                    for (mut block, (shift, scale)) in blocks.into_iter().zip(shift.iter().zip(scale)) {
                        block.mapv_inplace(|x| ((f64::from(x) - shift) / scale) as f32);
                    }
                }
            }
        }
        Ok(())
    }
}

impl TargetScale {
    /// The scale of regression targets; `None` for other targets.
    pub fn of(targets: &Targets) -> Option<Self> {
        match targets {
            Targets::Real { values } => Some(mean_sd(values.iter().copied())),
            _ => None,
        }
    }

    /// The note on targets of training rows that are all the same number; `None` where they are not.
    ///
    /// # Arguments
    /// - `parts`: the sums of all parts of the targets.
    pub fn constant_note(parts: &[&ColumnSum]) -> Option<String> {
        let value = parts.first()?.constant?;
        let is_it = |part: &&ColumnSum| part.constant == Some(value);
        parts
            .iter()
            .all(is_it)
            .then(|| format!("the target is {value} in all training rows: there is nothing to learn but this number"))
    }

    /// Converts a value from the original scale to the model's.
    pub fn standardise(&self, y: f64) -> f64 {
        (y - self.mean) / self.sd
    }

    /// Converts a value from the model's scale to the original. (A log density in the original scale is smaller by
    /// `ln sd`.)
    pub fn restore(&self, z: f64) -> f64 {
        z * self.sd + self.mean
    }
}

/// The mean and the standard deviation; 0 and 1 without values, the value and 1 for equal values.
fn mean_sd(values: impl Iterator<Item = f64> + Clone) -> TargetScale {
    let count = values.clone().count();
    if count == 0 {
        return TargetScale { mean: 0.0, sd: 1.0 };
    }
    let mean = ColumnSum::mean(&[&ColumnSum::of(values.clone())], count);
    TargetScale { mean, sd: standard_deviation(&[squared_deviations(values, mean)], count) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ExactSum;
    use crate::columns::{CellKind, Column};
    use ndarray::array;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn minmax_maps_the_training_rows_onto_0_to_1_and_leaves_constants_finite() {
        let train = array![[2., 5.], [4., 5.], [6., 5.]];
        let scale = FeatureScale::minmax(&train);
        let mut rows = array![[2., 5.], [6., 5.], [8., 6.]];
        scale.apply(&mut rows).unwrap();
        assert_eq!(rows, array![[0., 0.], [1., 0.], [1.5, 1.]]);
    }

    #[test]
    fn standard_gives_mean_0_and_sd_1_with_divisor_n() {
        let train = array![[1., 0.1], [3., 0.1]];
        let scale = FeatureScale::standard(&train);
        let tenth = f64::from(0.1f32);
        assert_eq!(
            scale,
            FeatureScale::PerColumn { by: ColumnScale::Standard, shift: vec![2., tenth], scale: vec![1., 1.] }
        );
        let mut rows = train.clone();
        scale.apply(&mut rows).unwrap();
        assert_eq!(rows, array![[-1., 0.], [1., 0.]]);
    }

    proptest! {
        /// A server adds what three sites tell it: sums, then sums of squared deviations from the mean that it sent.
        #[test]
        fn sums_of_sites_give_the_scale_of_the_pooled_rows_to_the_bit(
            rows in vec((-1e6f32..1e6, -1f32..1.0, 0usize..3, any::<u32>()), 2..60),
        ) {
            let pooled = Array2::from_shape_fn((rows.len(), 2), |(row, column)| [rows[row].0, rows[row].1][column]);
            let mut elsewhere = rows.clone();
            elsewhere.sort_by_key(|(.., key)| *key);
            let merged = |of: &dyn Fn(f64) -> f64, column: usize| {
                let mut sites = [(); 3].map(|()| ExactSum::default());
                for row in &elsewhere {
                    sites[row.2].add(of(f64::from([row.0, row.1][column])));
                }
                let mut all = ExactSum::default();
                sites.iter().for_each(|site| all.merge(site));
                all.value() / rows.len() as f64
            };
            let mean = [0, 1].map(|column| merged(&|x| x, column));
            let sd = [0, 1].map(|column| merged(&|x| (x - mean[column]) * (x - mean[column]), column).sqrt());
            // A column of equal values, whose standard deviation is 1, is rare among random numbers.
            prop_assume!(sd.iter().all(|sd| *sd > 0.0));
            let together = FeatureScale::PerColumn { by: ColumnScale::Standard, shift: mean.to_vec(), scale: sd.to_vec() };
            prop_assert_eq!(FeatureScale::standard(&pooled), together);
        }
    }

    #[test]
    fn a_constant_column_whose_mean_rounds_has_sd_1() {
        let column = vec![0.1; 1000];
        assert_eq!(TargetScale::of(&Targets::Real { values: column }).unwrap().sd, 1.0);
    }

    #[test]
    fn the_mnist_scale_of_the_papers_maps_into_the_open_interval() {
        // x * 0.99 / 255 + 0.01
        let scale = FeatureScale::AffineAll { scale: 0.99 / 255.0, offset: 0.01 };
        let mut rows = array![[0., 255.]];
        scale.apply(&mut rows).unwrap();
        assert_eq!(rows, array![[0.01, 1.0]]);
    }

    #[test]
    fn another_width_is_an_error_and_changes_nothing() {
        let scale = FeatureScale::standard(&array![[1., 2.], [3., 4.]]);
        let mut rows = array![[1., 2., 3.]];
        assert!(scale.apply(&mut rows).unwrap_err().to_string().contains("2 columns, the features have 3"));
        assert_eq!(rows, array![[1., 2., 3.]]);
    }

    #[test]
    fn a_scale_per_channel_takes_each_block_of_a_row_by_its_own_numbers() {
        let scale = FeatureScale::of_pixels(&[0.2, 0.6], &[0.2, 0.4]);
        let mut rows = array![[0., 51., 153., 255.], [102., 153., 255., 51.]];
        scale.apply(&mut rows).unwrap();
        // (x/255 - m)/s: -1, 0 and 0, 1; 1, 2 and 1, -1
        let expected = array![[-1., 0., 0., 1.], [1., 2., 1., -1.]];
        assert!(rows.iter().zip(&expected).all(|(x, y): (&f32, &f32)| (x - y).abs() < 1e-6), "{rows}");
        let message = scale.apply(&mut array![[1., 2., 3.]]).unwrap_err().to_string();
        assert!(message.contains("2 channels") && message.contains("3 columns"), "{message}");
        let text = serde_json::to_string(&scale).unwrap();
        assert!(text.contains(r#""kind":"per-channel""#), "{text}");
        assert_eq!(serde_json::from_str::<FeatureScale>(&text).unwrap(), scale);
    }

    #[test]
    fn features_of_texts_are_centred_and_not_divided() {
        let train = array![[1., 0.], [3., 0.], [5., 0.], [7., 1.]];
        let column =
            |kind| Column { name: None, kind, categories: vec![], fill: None, indicator: false, default: None };
        let encoding = Encoding { columns: vec![column(CellKind::Number), column(CellKind::Boolean)] };
        let scale = FeatureScale::standard(&train).of_numbers_alone(Some(&encoding));
        let FeatureScale::PerColumn { shift, scale, .. } = scale else { unreachable!() };
        assert_eq!((shift, scale), (vec![4.0, 0.25], vec![5f64.sqrt(), 1.0]));
        assert_eq!(FeatureScale::standard(&train).of_numbers_alone(None), FeatureScale::standard(&train));
        assert_eq!(FeatureScale::Identity.of_numbers_alone(Some(&encoding)), FeatureScale::Identity);
    }

    #[test]
    fn target_scales_are_inverted_by_restore() {
        let scale = TargetScale::of(&Targets::Real { values: vec![1.0, 3.0] }).unwrap();
        assert_eq!((scale.mean, scale.sd), (2.0, 1.0));
        assert_eq!(scale.restore(scale.standardise(17.0)), 17.0);
        assert_eq!(TargetScale::of(&Targets::None { rows: 3 }), None);
    }

    #[test]
    fn a_normalisation_survives_json() {
        let saved = Normalisation {
            features: FeatureScale::PerColumn {
                by: ColumnScale::Minmax,
                shift: vec![0.1, -3.0],
                scale: vec![1.0, 2.5],
            },
            target: Some(TargetScale { mean: 0.1 + 0.2, sd: 1.0 / 3.0 }),
        };
        let text = serde_json::to_string(&saved).unwrap();
        assert!(text.contains(r#""kind":"per-column""#), "{text}");
        assert_eq!(serde_json::from_str::<Normalisation>(&text).unwrap(), saved);
    }
}
