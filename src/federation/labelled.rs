//! Predictions of labelled rows, of either task: their nonconformity scores, and what their sets hold. No tensor.

use std::borrow::Cow;

use crate::error::RunError;
use crate::metrics::{
    ClassPredictions, ClientScores, Clusters, MetricError, ParticleLogProbs, RegressionPredictions, apply_temperature,
};
use crate::protocol::{ClientId, ScoreForm, SetForm};
use crate::report::conformal::{Score, SetCounts, class_scores, class_set, draws, intervals, target_scores};
use crate::report::maps::ProbabilityMap;

/// The stream of draws for the test rows of a run in one process, or of the server.
const TEST_STREAM: u64 = 1 << 40;
/// The stream of draws for new rows.
pub const NEW_STREAM: u64 = 1 << 41;

/// The stream of draws for test rows: those here, or those that a client holds out. Clients have other draws than each other,
/// so that their rows are independent; a site's own results have those of its answers to the server.
pub fn test_stream(client: Option<ClientId>) -> u64 {
    client.map_or(TEST_STREAM, |client| TEST_STREAM + 1 + client as u64)
}

/// The predictive distribution of some rows with their labels, in the units of the data.
#[derive(Clone, Debug)]
pub enum Labelled {
    /// Of a classification.
    Classes(ClassPredictions<'static>),
    /// Of a regression.
    Real(RegressionPredictions<'static>),
}

/// What the sets of some rows hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SetResults {
    /// Of all rows.
    pub all: SetCounts,
    /// Of the rows of each class, `[C]`; none of a regression.
    pub classes: Vec<SetCounts>,
}

impl Labelled {
    /// The number of rows, at least 1.
    pub fn rows(&self) -> usize {
        match self {
            Self::Classes(predictions) => predictions.len(),
            Self::Real(predictions) => predictions.rows(),
        }
    }

    /// The clusters of the rows; `None` where rows are independent.
    pub fn clusters(&self) -> Option<&Clusters> {
        match self {
            Self::Classes(predictions) => predictions.clusters(),
            Self::Real(predictions) => predictions.clusters(),
        }
    }

    /// The same at a temperature, which the predictions of a regression do not have.
    ///
    /// # Errors
    /// The temperature is not finite and positive.
    pub fn at(&self, temperature: f64) -> Result<Cow<'_, Self>, RunError> {
        match self {
            Self::Classes(predictions) if temperature != 1.0 => {
                let scaled = apply_temperature(predictions, temperature).map_err(RunError::Predictions)?;
                Ok(Cow::Owned(Self::Classes(scaled)))
            }
            _ => Ok(Cow::Borrowed(self)),
        }
    }

    /// The same with a map of probabilities applied, which the predictions of a regression do not have.
    ///
    /// # Errors
    /// The map does not fit the predictions.
    pub fn mapped(&self, map: &ProbabilityMap) -> Result<Cow<'_, Self>, RunError> {
        match (self, map) {
            (_, ProbabilityMap::Temperature(temperature)) => self.at(*temperature),
            (Self::Classes(predictions), map) => {
                let mapped = map.apply(predictions).map_err(RunError::Predictions)?;
                Ok(Cow::Owned(Self::Classes(mapped)))
            }
            (Self::Real(_), _) => Ok(Cow::Borrowed(self)),
        }
    }

    /// The number of classes; 0 of a regression.
    pub fn classes(&self) -> usize {
        match self {
            Self::Classes(predictions) => predictions.classes(),
            Self::Real(_) => 0,
        }
    }

    /// The scores of the true labels at each level, ascending: one list for all levels where the score does not depend on
    /// them.
    ///
    /// # Arguments
    /// * `stream`: the client, by which the draws of a random form differ
    ///
    /// # Errors
    /// The score is of the other task, or a score is not finite.
    pub fn sorted_scores(&self, form: &ScoreForm, levels: &[f64], stream: u64) -> Result<Vec<Vec<f64>>, RunError> {
        let scaled = self.at(form.temperature)?;
        let of_level = |level: &f64| {
            let mut scores = match &*scaled {
                Self::Classes(predictions) => {
                    class_scores(form.score, predictions, drawn(form, stream, predictions.len()).as_deref())?
                }
                Self::Real(predictions) => target_scores(form.score, predictions, *level)?,
            };
            scores.sort_by(f64::total_cmp);
            Ok(scores)
        };
        let count = if form.score.depends_on_level() { levels.len() } else { levels.len().min(1) };
        levels[..count].iter().map(of_level).collect::<Result<_, MetricError>>().map_err(RunError::Predictions)
    }

    /// What the sets of the rows hold.
    ///
    /// # Arguments
    /// * `stream`: as [`Self::sorted_scores`], another one than that of any calibration rows
    ///
    /// # Errors
    /// As [`Self::sorted_scores`].
    pub fn sets(&self, form: &SetForm, stream: u64) -> Result<SetResults, RunError> {
        let rows = self.set_of_each(form, stream)?;
        let all = SetCounts::of_rows(rows.iter().enumerate(), self.clusters());
        let classes = match self {
            Self::Classes(predictions) => merged(&rows, predictions.labels(), predictions.classes(), self.clusters()),
            Self::Real(_) => Vec::new(),
        };
        Ok(SetResults { all, classes })
    }

    /// What the set of each row holds, `[n]`.
    ///
    /// # Errors
    /// As [`Self::sets`].
    pub fn set_of_each(
        &self,
        SetForm { form, level, threshold }: &SetForm,
        stream: u64,
    ) -> Result<Vec<SetCounts>, RunError> {
        match &*self.at(form.temperature)? {
            Self::Classes(predictions) => {
                check(form.score, true)?;
                let draws = drawn(form, stream, predictions.len());
                let of_row = |(row, (probabilities, &label)): (usize, (&[f64], &usize))| {
                    let draw = draws.as_ref().map(|draws| draws[row]);
                    let mut counts = SetCounts::default();
                    counts.add_set(&class_set(form.score, probabilities, *threshold, draw), label);
                    counts
                };
                Ok(predictions.rows().zip(predictions.labels()).enumerate().map(of_row).collect())
            }
            Self::Real(predictions) => {
                let intervals = intervals(form.score, predictions, *level, *threshold);
                let of_row = |(interval, target): (_, &f64)| {
                    let mut counts = SetCounts::default();
                    counts.add_interval(interval, *target);
                    counts
                };
                let intervals = intervals.map_err(RunError::Predictions)?;
                Ok(intervals.into_iter().zip(predictions.target()).map(of_row).collect())
            }
        }
    }

    /// The sums of the scores of the predictive distribution, as one component.
    ///
    /// # Errors
    /// The predictions cannot be scored.
    pub fn sums(&self, bins: usize) -> Result<ClientScores, RunError> {
        let clusters = self.clusters();
        let sums = match self {
            Self::Classes(predictions) => {
                let (rows, classes) = (predictions.len(), predictions.classes());
                let logs = predictions.probabilities().iter().map(|p| p.ln()).collect();
                let mut sums = ClientScores::of_classes(classes, bins).builder(clusters);
                ParticleLogProbs::new(1, rows, classes, logs)
                    .and_then(|logs| sums.add_classes(&logs, predictions.labels()))
                    .and_then(|()| sums.finish())
            }
            Self::Real(predictions) => {
                let mut sums = ClientScores::of_targets().builder(clusters);
                sums.add_real(predictions).and_then(|()| sums.finish())
            }
        };
        sums.map_err(RunError::Predictions)
    }
}

/// The counts of the rows of each of so many parts.
///
/// # Arguments
/// * `rows`: those of each row, `[n]`
/// * `of`: the part of each row, `[n]`
/// * `clusters`: those of the rows; `None` where rows are independent
pub fn merged(rows: &[SetCounts], of: &[usize], parts: usize, clusters: Option<&Clusters>) -> Vec<SetCounts> {
    let mut rows_of = vec![Vec::new(); parts];
    rows.iter().enumerate().zip(of).for_each(|(row, part)| rows_of[*part].push(row));
    rows_of.iter().map(|rows| SetCounts::of_rows(rows.iter().copied(), clusters)).collect()
}

fn check(score: Score, classes: bool) -> Result<(), RunError> {
    let is_for = if classes { "real targets" } else { "classes" };
    match score.is_of_classes() == classes {
        true => Ok(()),
        false => Err(RunError::Predictions(MetricError::OtherTask { score: score.word(), is_for })),
    }
}

/// The draws of the form, if it is random.
fn drawn(form: &ScoreForm, stream: u64, rows: usize) -> Option<Vec<f64>> {
    Some(draws(form.seed?, stream, rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_several_clients_have_independent_draws() {
        const ROWS: usize = 2_000;
        let of = |client| draws(7, test_stream(client), ROWS);
        let all: Vec<Vec<f64>> = [None, Some(0), Some(1), Some(2)].into_iter().map(of).collect();
        for (at, one) in all.iter().enumerate() {
            for other in &all[..at] {
                // The mean of products of independent uniforms is 1/4, with a standard deviation of √(7/144 / n).
                let mean = one.iter().zip(other).map(|(a, b)| a * b).sum::<f64>() / ROWS as f64;
                assert!((mean - 0.25).abs() < 4.0 * (7.0 / 144.0 / ROWS as f64).sqrt(), "{mean}");
            }
        }
    }
}
