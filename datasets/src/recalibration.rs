//! What a run learned from calibration rows, as `model.json` keeps it beside the description of a model's rows.

use serde::{Deserialize, Serialize};

/// The largest number of levels.
const MOST_LEVELS: usize = 1000;

/// The map of probabilities and the thresholds of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recalibration {
    /// The number of calibration rows n.
    pub rows: usize,
    /// The temperature T of a classification, by which the logarithms of the probabilities are divided; `None` where none was
    /// fitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Vector scaling, in the place of a temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector: Option<KeptVector>,
    /// The corners (probability, value) of each function of an isotonic regression, in the place of a temperature: one function
    /// of two classes, for the second, else one for each class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isotonic: Option<Vec<Vec<(f64, f64)>>>,
    /// What prediction sets are made from; `None` where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conformal: Option<KeptSets>,
}

/// Vector scaling: the probabilities are softmax(a_k ln p_k + b_k).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptVector {
    /// The factors a, `[C]`.
    pub scale: Vec<f64>,
    /// The offsets b, `[C]`.
    pub bias: Vec<f64>,
}

/// What prediction sets are made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptSets {
    /// The name of the nonconformity score.
    pub score: String,
    /// Parameter λ of the score `raps`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub penalty: Option<f64>,
    /// Parameter k of the score `raps`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free: Option<usize>,
    /// The seed of the score's random form; `None` for the form without chance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The number of the client whose own results these are, from 0: its test rows have draws of their own in the random form.
    /// `None` at the server and in one process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<usize>,
    /// The level that is used where no other one is asked for.
    pub level: f64,
    /// Every level for which sets can be made, ascending, with its threshold; `None` where the calibration rows are too few,
    /// and every set is everything.
    pub thresholds: Vec<(f64, Option<f64>)>,
}

impl Recalibration {
    /// Checks that the numbers can be used. The file may come from an untrusted source.
    ///
    /// # Errors
    /// A message that names the first invalid field and the valid values.
    pub fn check(&self) -> Result<(), String> {
        let wrong = |field: &str, valid: &str| Err(format!("`calibration.{field}` must be {valid}"));
        if self.temperature.is_some_and(|t| !(t.is_finite() && t > 0.0)) {
            return wrong("temperature", "finite and greater than 0");
        }
        let maps = [self.temperature.is_some(), self.vector.is_some(), self.isotonic.is_some()];
        if maps.into_iter().filter(|is_there| *is_there).count() > 1 {
            return wrong("temperature", "the only one of `temperature`, `vector` and `isotonic`");
        }
        let Some(KeptSets { penalty, level, thresholds, .. }) = &self.conformal else { return Ok(()) };
        if penalty.is_some_and(|penalty| !(penalty.is_finite() && penalty >= 0.0)) {
            return wrong("conformal.penalty", "finite and at least 0");
        }
        let is_level = |level: f64| level > 0.0 && level < 1.0;
        let is_ascending = thresholds.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let is_valid = |(level, threshold): &(f64, Option<f64>)| {
            is_level(*level) && threshold.is_none_or(|threshold| threshold.is_finite())
        };
        if thresholds.len() > MOST_LEVELS || !is_ascending || !thresholds.iter().all(is_valid) {
            return wrong(
                "conformal.thresholds",
                "pairs of ascending levels between 0 and 1 and finite thresholds or null",
            );
        }
        match thresholds.iter().any(|(kept, _)| kept == level) {
            true => Ok(()),
            false => wrong("conformal.level", "one of the levels of `thresholds`"),
        }
    }
}

impl KeptSets {
    /// The threshold of a level; outer `None` where it is not kept, inner `None` where every set is everything.
    pub fn threshold(&self, level: f64) -> Option<Option<f64>> {
        self.thresholds.iter().find(|(kept, _)| *kept == level).map(|(_, threshold)| *threshold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> Recalibration {
        let thresholds = vec![(0.5, Some(0.25)), (0.9, Some(0.75)), (0.99, None)];
        let sets = KeptSets {
            score: "lac".into(),
            penalty: None,
            free: None,
            seed: None,
            client: None,
            level: 0.9,
            thresholds,
        };
        Recalibration { rows: 30, temperature: Some(1.5), vector: None, isotonic: None, conformal: Some(sets) }
    }

    #[test]
    fn the_file_has_these_fields_and_no_more_than_are_used() {
        let text = r#"{"rows":30,"temperature":1.5,"conformal":{"score":"lac","level":0.9,"thresholds":[[0.5,0.25],[0.9,0.75],[0.99,null]]}}"#;
        assert_eq!(serde_json::to_string(&kept()).unwrap(), text);
        assert_eq!(serde_json::from_str::<Recalibration>(text).unwrap(), kept());
        assert_eq!(kept().check(), Ok(()));
        let sets = kept().conformal.unwrap();
        assert_eq!([0.9, 0.99, 0.8].map(|level| sets.threshold(level)), [Some(Some(0.75)), Some(None), None]);
    }

    #[test]
    fn what_cannot_be_used_is_refused_by_its_field() {
        let message = |change: &dyn Fn(&mut Recalibration, &mut KeptSets)| {
            let mut kept = kept();
            let mut sets = kept.conformal.take().unwrap();
            change(&mut kept, &mut sets);
            kept.conformal = Some(sets);
            kept.check().unwrap_err()
        };
        assert!(message(&|kept, _| kept.temperature = Some(0.0)).contains("`calibration.temperature`"));
        assert!(message(&|_, sets| sets.penalty = Some(f64::NAN)).contains("`calibration.conformal.penalty`"));
        assert!(message(&|kept, _| kept.isotonic = Some(Vec::new())).contains("the only one of"));
        assert!(message(&|_, sets| sets.level = 0.8).contains("`calibration.conformal.level`"));
        for thresholds in [vec![(0.9, Some(f64::INFINITY))], vec![(1.0, None)], vec![(0.9, None), (0.9, None)]] {
            assert!(message(&|_, sets| sets.thresholds = thresholds.clone()).contains("conformal.thresholds"));
        }
    }
}
