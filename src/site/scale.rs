//! The scales of features and target from the sums of all sites, and the description of a model's rows that all sites
//! get.

use ndarray::Array2;
use thiserror::Error;

use super::agree::{Agreement, Means};
use super::describe::listed;
use super::measure::Deviations;
use crate::datasets::moments::standard_deviation;
use crate::datasets::{ColumnScale, Dataset, FeatureScale, ModelCard, Normalisation, Normalise, TargetScale, Targets};

/// Why the rows of all sites cannot be scaled as the config asks.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ScaleError {
    /// A scale that is not known from sums.
    #[error("data.normalise = \"{word}\" {reason}; with sites it can be \"standard\", \"none\" or \"mnist\"")]
    Kind {
        /// The value of `data.normalise`.
        word: &'static str,
        /// Why it cannot be had.
        reason: &'static str,
    },
    /// Sites tell no sums.
    #[error(
        "no sums are told (tell.statistics = false, or fewer training rows, or groups of them, than tell.min_rows) by {sites}, and \
         {need}"
    )]
    NoSums {
        /// The sites.
        sites: String,
        /// What needs them, and a remedy.
        need: &'static str,
    },
    /// The sum of the target of a regression overflows.
    #[error("the sum of the target over all training rows overflows; give the target another unit at all sites")]
    Overflow,
    /// The answers of the second exchange are not one of each client.
    #[error("{found} sites have told their deviations; there are {expected}, each of which tells them once")]
    Answers {
        /// The number of answers.
        found: usize,
        /// The number of sites K.
        expected: usize,
    },
    /// An answer of the second exchange that does not fit the question.
    #[error("{site} tells the deviations of other columns than it was asked for, or negative ones")]
    Deviations {
        /// The site.
        site: String,
    },
}

/// The means that the second exchange sends to all sites: no more than the scale needs. `None` where it needs no sums
/// and there is no second exchange.
///
/// # Errors
/// A scale that sums do not give, or sums that are missing.
pub fn means_for(agreed: &Agreement, normalise: Normalise) -> Result<Option<Means>, ScaleError> {
    let standard = is_standard(normalise)?;
    let regression = agreed.classes.is_none();
    if !standard && !regression {
        return Ok(None);
    }
    let Some(means) = &agreed.means else {
        let need = match regression {
            true => {
                "the target of a regression is scaled by those of all clients; change the site's file, or leave the \
                 site out"
            }
            false => {
                "data.normalise = \"standard\" needs those of all clients; change the site's file, or set \
                 data.normalise = \"none\""
            }
        };
        let sites = listed(agreed.silent.iter().map(|site| agreed.called(*site)));
        return Err(ScaleError::NoSums { sites, need });
    };
    if regression && means.target.is_none() {
        return Err(ScaleError::Overflow);
    }
    let features = if standard { means.features.clone() } else { Vec::new() };
    Ok(Some(Means { features, target: means.target }))
}

/// Whether features are scaled by mean and standard deviation, which `auto` is for a table.
fn is_standard(normalise: Normalise) -> Result<bool, ScaleError> {
    let reason = match normalise {
        Normalise::Auto | Normalise::Standard => return Ok(true),
        Normalise::None | Normalise::Mnist => return Ok(false),
        Normalise::Minmax => "needs the smallest and the largest value of each column, which are of single rows",
        Normalise::Unit | Normalise::Published => "is for images of a known data set",
    };
    Err(ScaleError::Kind { word: normalise.word(), reason })
}

/// The scales of features and target over the training rows of all sites, with the bits of one table with all rows.
///
/// # Arguments
/// - `told`: the answers of all sites to [`means_for`], in any order; empty where there was no second exchange.
///
/// # Errors
/// Those of [`means_for`], or answers that do not belong to it.
pub fn scale(agreed: &Agreement, told: &[Deviations], normalise: Normalise) -> Result<Normalisation, ScaleError> {
    let fixed = normalise.without_rows();
    let Some(means) = means_for(agreed, normalise)? else {
        return Ok(Normalisation { features: fixed.unwrap_or(FeatureScale::Identity), target: None });
    };
    check(agreed, &means, told)?;
    let rows = agreed.rows.iter().sum();
    let features = fixed.unwrap_or_else(|| {
        let sd = |feature: usize| standard_deviation(told.iter().map(|site| &site.features[feature]), rows);
        let scale = (0..means.features.len()).map(sd).collect();
        let (by, shift) = (ColumnScale::Standard, means.features.clone());
        FeatureScale::PerColumn { by, shift, scale }.of_numbers_alone(agreed.encoding.as_ref())
    });
    let target = means.target.map(|mean| {
        let sd = standard_deviation(told.iter().filter_map(|site| site.target.as_ref()), rows);
        TargetScale { mean, sd }
    });
    Ok(Normalisation { features, target })
}

/// Checks that every client has told once what it was asked.
fn check(agreed: &Agreement, means: &Means, told: &[Deviations]) -> Result<(), ScaleError> {
    let sites = agreed.rows.len();
    let mut missing = vec![true; sites];
    for site in told {
        let columns = site.features.len() == means.features.len() && site.target.is_some() == means.target.is_some();
        if !columns || site.features.iter().chain(&site.target).any(|sum| sum.value() < 0.0) {
            return Err(ScaleError::Deviations { site: agreed.called(site.index) });
        }
        if let Some(missing) = missing.get_mut(site.index) {
            *missing = false;
        }
    }
    if told.len() != sites || missing.contains(&true) {
        return Err(ScaleError::Answers { found: told.len(), expected: sites });
    }
    Ok(())
}

impl Agreement {
    /// A client's site for a message.
    fn called(&self, client: usize) -> String {
        self.called.get(client).cloned().unwrap_or_else(|| format!("client {client}"))
    }

    /// What every site needs to bring its rows into the form that the model takes.
    ///
    /// # Arguments
    /// - `data`: the name of the data set in the run's files.
    pub fn card(&self, data: &str, normalisation: Normalisation) -> ModelCard {
        let targets = match &self.classes {
            Some(names) => Targets::Classes { labels: Vec::new(), names: names.clone() },
            None => Targets::Real { values: Vec::new() },
        };
        let (width, names) = match &self.encoding {
            Some(encoding) => (encoding.width(), encoding.names()),
            None => (self.width, self.features.clone()),
        };
        let shape = Dataset {
            name: data.to_owned(),
            features: Array2::zeros((0, width)),
            feature_shape: vec![width],
            feature_names: names,
            targets,
            clients: None,
            client_names: None,
            groups: None,
            lines: None,
        };
        ModelCard::of(&shape, normalisation).with_encoding(self.encoding.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datasets::ExactSum;

    /// Two sites with 3 and 1 rows of one feature with mean 2; the target of a regression has mean 5.
    fn agreed(classes: Option<&[&str]>) -> Agreement {
        Agreement {
            rows: vec![3, 1],
            validation_rows: vec![0, 0],
            calibration_rows: vec![0, 0],
            test_rows: vec![1, 1],
            width: 1,
            features: None,
            encoding: None,
            classes: classes.map(|names| names.iter().map(ToString::to_string).collect()),
            means: Some(Means { features: vec![2.0], target: classes.is_none().then_some(5.0) }),
            called: vec!["site `north`".into(), "site `south`".into()],
            silent: vec![],
            notes: vec![],
        }
    }

    fn told(index: usize, features: &[f64], target: Option<f64>) -> Deviations {
        let sum = |value: &f64| [*value].into_iter().collect::<ExactSum>();
        Deviations { index, features: features.iter().map(sum).collect(), target: target.as_ref().map(sum) }
    }

    const TREES: Option<&[&str]> = Some(&["alder", "oak"]);

    #[test]
    fn the_deviation_is_that_of_all_rows_with_divisor_n() {
        let answers = [told(1, &[6.0], None), told(0, &[10.0], None)];
        for normalise in [Normalise::Auto, Normalise::Standard] {
            let scale = scale(&agreed(TREES), &answers, normalise).unwrap();
            let expected = FeatureScale::PerColumn { by: ColumnScale::Standard, shift: vec![2.0], scale: vec![2.0] };
            assert_eq!(scale, Normalisation { features: expected, target: None });
        }
        let answers = [told(0, &[], Some(27.0)), told(1, &[], Some(9.0))];
        let scale = scale(&agreed(None), &answers, Normalise::None).unwrap();
        let target = Some(TargetScale { mean: 5.0, sd: 3.0 });
        assert_eq!(scale, Normalisation { features: FeatureScale::Identity, target });
    }

    #[test]
    fn no_more_is_asked_than_the_scale_needs() {
        let ask = |classes, normalise| means_for(&agreed(classes), normalise).unwrap();
        assert_eq!(ask(TREES, Normalise::None), None);
        assert_eq!(ask(TREES, Normalise::Standard), Some(Means { features: vec![2.0], target: None }));
        assert_eq!(ask(None, Normalise::Mnist), Some(Means { features: vec![], target: Some(5.0) }));
        let mnist = scale(&agreed(TREES), &[], Normalise::Mnist).unwrap();
        assert_eq!(mnist.features, FeatureScale::AffineAll { scale: 0.99 / 255.0, offset: 0.01 });
    }

    #[test]
    fn scales_that_sums_do_not_give_are_refused_with_those_that_they_give() {
        let message = |agreed: &Agreement, normalise| means_for(agreed, normalise).unwrap_err().to_string();
        assert_eq!(
            message(&agreed(TREES), Normalise::Minmax),
            "data.normalise = \"minmax\" needs the smallest and the largest value of each column, which are of single \
             rows; with sites it can be \"standard\", \"none\" or \"mnist\""
        );
        assert!(message(&agreed(TREES), Normalise::Unit).contains("is for images"));
        let silent = |classes| Agreement { means: None, silent: vec![1], ..agreed(classes) };
        assert_eq!(
            message(&silent(TREES), Normalise::Standard),
            "no sums are told (tell.statistics = false, or fewer training rows, or groups of them, than tell.min_rows) by site `south`, and \
             data.normalise = \"standard\" needs those of all clients; change the site's file, or set data.normalise = \
             \"none\""
        );
        assert_eq!(means_for(&silent(TREES), Normalise::None), Ok(None));
        assert!(message(&silent(None), Normalise::None).contains("the target of a regression is scaled"));
        let means = Some(Means { features: vec![2.0], target: None });
        assert!(message(&Agreement { means, ..agreed(None) }, Normalise::None).contains("overflows"));
    }

    #[test]
    fn answers_of_other_columns_clients_or_signs_are_refused() {
        let message = |told: &[Deviations]| scale(&agreed(TREES), told, Normalise::Standard).unwrap_err().to_string();
        let good = |index| told(index, &[1.0], None);
        for bad in [told(1, &[], None), told(1, &[1.0, 1.0], None), told(1, &[1.0], Some(1.0)), told(1, &[-1.0], None)]
        {
            assert!(message(&[good(0), bad]).starts_with("site `south` tells the deviations of other columns"));
        }
        for answers in [vec![good(0)], vec![good(0), good(0)], vec![good(0), good(2)], vec![good(0), good(1), good(1)]]
        {
            assert!(message(&answers).ends_with("there are 2, each of which tells them once"));
        }
    }
}
