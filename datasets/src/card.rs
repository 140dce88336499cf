//! The description of a model's rows: names, classes and scales.

use crate::recalibration::Recalibration;
use crate::{Dataset, Encoding, FeatureScale, Normalisation, Targets};
use ndarray::Array2;
use serde::{Deserialize, Serialize};

/// The names of columns that the configuration gives by their numbers, where the training file has a header.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberedColumns {
    /// That of `data.target`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// That of `data.group_column`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

impl NumberedColumns {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Version of the layout of `model.json`.
const VERSION: u32 = 1;

/// What a model takes and gives: all that predictions need besides particles and configuration. A run writes it as
/// `model.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelCard {
    schema_version: u32,
    /// The data set that the model was trained on.
    pub data: String,
    /// Number of features p.
    pub features: usize,
    /// The shape of a row: `[H, W]` or `[C, H, W]` for an image; empty in a file written before this field existed.
    #[serde(default)]
    pub feature_shape: Vec<usize>,
    /// The names of the features, `[p]`, where the data has them.
    #[serde(default)]
    pub feature_names: Option<Vec<String>>,
    /// Names of the classes; `None` for a regression.
    pub classes: Option<Vec<String>>,
    /// How features and targets were scaled.
    pub normalisation: Normalisation,
    /// How the columns of a table become the features, before they are scaled; `None` where they are the features.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<Encoding>,
    /// The names of the columns beside the features that the configuration gives by their numbers.
    #[serde(default, skip_serializing_if = "NumberedColumns::is_empty")]
    pub numbered_columns: NumberedColumns,
    /// Whether the model is one of the program that made the run, which no configuration describes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_model: bool,
    /// What such a model predicts for made-up rows, by which it is known again; empty where it is unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_model_fingerprint: Vec<f64>,
    /// Whether the rows are those of the program that made the run, which no configuration describes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_data: bool,
    /// What the run learned from calibration rows; absent where it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Recalibration>,
    /// What is added to the log-probabilities of the classes, `[C]`, before they are normalised: in a site's results, the
    /// logarithm of how much more frequent each class is there. Absent for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prior_correction: Option<Vec<f64>>,
}

/// The largest number of features, classes and the like in a `model.json`: tensors index them with 32 bits.
const MOST: usize = i32::MAX as usize;

impl ModelCard {
    /// The card of a model of such rows.
    ///
    /// # Arguments
    /// - `data`: scaled rows, or none of them; their values are not used.
    pub fn of(data: &Dataset, normalisation: Normalisation) -> Self {
        Self {
            schema_version: VERSION,
            data: data.name.clone(),
            features: data.width(),
            feature_shape: data.feature_shape.clone(),
            feature_names: data.feature_names.clone(),
            classes: match &data.targets {
                Targets::Classes { names, .. } => Some(names.clone()),
                Targets::Real { .. } | Targets::None { .. } => None,
            },
            normalisation,
            encoding: None,
            numbered_columns: NumberedColumns::default(),
            own_model: false,
            own_model_fingerprint: Vec::new(),
            own_data: false,
            calibration: None,
            prior_correction: None,
        }
    }

    /// The same card with the way from a table's columns to features.
    #[must_use]
    pub fn with_encoding(self, encoding: Option<Encoding>) -> Self {
        Self { encoding, ..self }
    }

    /// The names of the table's columns that are features, where it has them.
    pub fn column_names(&self) -> Option<Vec<String>> {
        match &self.encoding {
            Some(encoding) => encoding.column_names(),
            None => self.feature_names.clone(),
        }
    }

    /// Checks that the numbers are consistent with each other. The file may come from an untrusted source.
    ///
    /// # Errors
    /// A message that names the first invalid field and the valid values.
    pub fn check(&self) -> Result<(), String> {
        let wrong = |field: &str, problem: String| Err(format!("`{field}` {problem}"));
        if self.schema_version != VERSION {
            return wrong("schema_version", format!("is {}; this program reads {VERSION}", self.schema_version));
        }
        if !(1..=MOST).contains(&self.features) {
            return wrong("features", format!("is {}; it must be from 1 to {MOST}", self.features));
        }
        if let Some(names) = self.feature_names.as_ref().filter(|names| names.len() != self.features) {
            return wrong("feature_names", format!("has {} names for {} features", names.len(), self.features));
        }
        if let Some(names) = self.classes.as_ref().filter(|names| names.len() < 2) {
            return wrong("classes", format!("has {}; a classification has at least 2", names.len()));
        }
        if let Some(encoding) = &self.encoding {
            encoding.check().or_else(|problem| wrong("encoding", format!(": {problem}")))?;
            if encoding.width() != self.features {
                return wrong("encoding", format!("gives {} features, not {}", encoding.width(), self.features));
            }
        }
        let is_scale = |x: &f64| x.is_finite() && *x != 0.0;
        let finite = match &self.normalisation.features {
            FeatureScale::Identity => true,
            FeatureScale::AffineAll { scale, offset } => is_scale(scale) && offset.is_finite(),
            FeatureScale::PerColumn { shift, scale, .. } | FeatureScale::PerChannel { shift, scale } => {
                shift.iter().all(|x| x.is_finite()) && scale.iter().all(is_scale)
            }
        };
        if !self.normalisation.features.fits(self.features) {
            return wrong("normalisation.features", format!("does not belong to {} features", self.features));
        }
        let target = self.normalisation.target.as_ref();
        if !finite
            || target.is_some_and(|target| !(target.mean.is_finite() && target.sd.is_finite() && target.sd > 0.0))
        {
            return wrong("normalisation", "divides by a number that is 0 or not finite".into());
        }
        let Some(classes) = self.classes.as_ref().map(Vec::len) else {
            if self.prior_correction.is_some() {
                return wrong("prior_correction", "is one of classes, and a regression has none".into());
            }
            let calibration = self.calibration.as_ref();
            if calibration.is_some_and(|of| of.temperature.is_some() || of.vector.is_some() || of.isotonic.is_some()) {
                return wrong("calibration", "maps probabilities of classes, and a regression has none".into());
            }
            return calibration.map_or(Ok(()), Recalibration::check);
        };
        if let Some(log_ratios) = &self.prior_correction
            && (log_ratios.len() != classes || !log_ratios.iter().all(|ratio| ratio.is_finite()))
        {
            return wrong("prior_correction", format!("must be {classes} finite numbers, one of each class"));
        }
        self.calibration.as_ref().map_or(Ok(()), Recalibration::check)
    }

    /// A data set without rows of the shape that the model takes.
    pub fn shape(&self) -> Dataset {
        let targets = match &self.classes {
            Some(names) => Targets::Classes { labels: Vec::new(), names: names.clone() },
            None => Targets::Real { values: Vec::new() },
        };
        Dataset {
            name: self.data.clone(),
            features: Array2::zeros((0, self.features)),
            feature_shape: self.row_shape(),
            feature_names: self.feature_names.clone(),
            targets,
            clients: None,
            client_names: None,
            groups: None,
            lines: None,
        }
    }

    /// The stored shape of a row if its sides multiply to the number of features, else `[p]`.
    fn row_shape(&self) -> Vec<usize> {
        let size = self.feature_shape.iter().try_fold(1usize, |size, side| size.checked_mul(*side));
        if size == Some(self.features) { self.feature_shape.clone() } else { vec![self.features] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ColumnScale, TargetScale};
    use ndarray::array;

    fn card() -> ModelCard {
        let names = vec!["a".to_owned(), "b".to_owned()];
        let features = array![[1., 2., 3., 4.], [3., 4., 5., 6.]];
        let normalisation = Normalisation { features: FeatureScale::standard(&features), target: None };
        let data = Dataset::new("mine", features, Targets::Classes { labels: vec![0, 1], names }).unwrap();
        ModelCard::of(&data.with_feature_shape(vec![2, 2]).unwrap(), normalisation)
    }

    #[test]
    fn the_file_has_these_fields_in_this_order() {
        let expected = r#"{"schema_version":1,"data":"mine","features":4,"feature_shape":[2,2],"feature_names":null,"classes":["a","b"],"normalisation":{"features":{"kind":"per-column","by":"standard","shift":[2.0,3.0,4.0,5.0],"scale":[1.0,1.0,1.0,1.0]},"target":null}}"#;
        assert_eq!(serde_json::to_string(&card()).unwrap(), expected);
        let read: ModelCard = serde_json::from_str(expected).unwrap();
        assert!(read.check().is_ok());
        let shape = read.shape();
        assert_eq!((shape.features.dim(), shape.feature_shape), ((0, 4), vec![2, 2]));
        assert_eq!(shape.targets, Targets::Classes { labels: vec![], names: vec!["a".into(), "b".into()] });
    }

    #[test]
    fn a_card_whose_numbers_do_not_fit_together_is_refused_by_its_field() {
        let message = |change: &dyn Fn(&mut ModelCard)| {
            let mut card = card();
            change(&mut card);
            card.check().unwrap_err()
        };
        assert_eq!(message(&|card| card.schema_version = 2), "`schema_version` is 2; this program reads 1");
        assert!(message(&|card| card.features = 0).starts_with("`features` is 0; it must be from 1 to"));
        let names = Some(vec!["x".to_owned()]);
        assert_eq!(message(&|card| card.feature_names = names.clone()), "`feature_names` has 1 names for 4 features");
        assert!(message(&|card| card.classes = Some(vec!["a".into()])).starts_with("`classes` has 1;"));
        let scale = FeatureScale::PerColumn { by: ColumnScale::Standard, shift: vec![0.0], scale: vec![1.0] };
        assert!(message(&|card| card.normalisation.features = scale.clone()).contains("does not belong to 4 features"));
        // A regression has no probabilities of classes to correct.
        let regression = |change: &dyn Fn(&mut ModelCard)| {
            message(&|card| {
                card.classes = None;
                change(card);
            })
        };
        let correction = regression(&|card| card.prior_correction = Some(Vec::new()));
        assert!(correction.starts_with("`prior_correction` is one of classes"), "{correction}");
        let map = Recalibration { rows: 5, temperature: Some(2.0), vector: None, isotonic: None, conformal: None };
        let calibration = regression(&|card| card.calibration = Some(map.clone()));
        assert!(calibration.starts_with("`calibration` maps probabilities"), "{calibration}");
        let target = Some(TargetScale { mean: 0.0, sd: 0.0 });
        assert!(message(&|card| card.normalisation.target = target).starts_with("`normalisation` divides by"));
    }
}
