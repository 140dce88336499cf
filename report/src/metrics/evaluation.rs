//! The flat record of headline numbers that a run writes every round, from the table of metrics.

use super::client_scores::ClientScores;
use super::error::MetricError;
use super::metric::{Metric, View};
use super::mixture::RegressionPredictions;
use super::predictions::{ClassPredictions, ParticleLogProbs};
use super::scored::{ScoredClasses, ScoredTargets};
use super::table::Evaluation;

impl Evaluation {
    /// The numbers by name, in the order of the columns of `rounds.csv`.
    pub fn columns(&self) -> Vec<(&'static str, Option<f64>)> {
        let column = |metric: &Metric| (metric.key, self.value(metric));
        Metric::in_view(View::Column).into_iter().map(column).collect()
    }

    /// The value of a metric; `None` where it has none, and for metrics that only a report computes.
    pub fn value(&self, metric: &Metric) -> Option<f64> {
        self.values().find(|(other, _)| other.key == metric.key).and_then(|(_, value)| value)
    }

    /// Scores a particle set.
    ///
    /// # Arguments
    /// * `log_probs`: `[N, n, C]`
    /// * `labels`: `[n]`
    /// * `bins`: number of calibration bins
    ///
    /// # Errors
    /// Labels out of range or not one per row; a number of bins outside `1..=`[`super::MAX_BINS`].
    pub fn classification(log_probs: &ParticleLogProbs, labels: &[usize], bins: usize) -> Result<Self, MetricError> {
        Ok(Self::of_scored(&ScoredClasses::of_particles(log_probs, labels, bins)?))
    }

    /// Scores a predictive whose particles are not known.
    ///
    /// # Errors
    /// A number of bins outside `1..=`[`super::MAX_BINS`].
    pub fn of_predictions(predictions: &ClassPredictions<'_>, bins: usize) -> Result<Self, MetricError> {
        Ok(Self::of_scored(&ScoredClasses::of_predictions(predictions, bins)?))
    }

    fn of_scored(scored: &ScoredClasses<'_>) -> Self {
        Self::from_metrics(scored.len(), |metric| (metric.classes?.of)(scored))
    }

    /// The same with the numbers over calibration bins of another evaluation, or without them.
    #[must_use]
    pub fn with_bins_of(self, other: Option<&Self>) -> Self {
        Self {
            ece: other.and_then(|other| other.ece),
            mce: other.and_then(|other| other.mce),
            ace: other.and_then(|other| other.ace),
            classwise_ece: other.and_then(|other| other.classwise_ece),
            ..self
        }
    }

    /// The numbers that sums over rows give. `ace` and `auroc`, which need all rows at once, and `kl` have no value.
    pub fn of_sums(scores: &ClientScores) -> Self {
        Self::from_metrics(scores.rows(), |metric| (metric.sums?)(scores))
    }

    /// The numbers of [`Self::of_sums`] for sums over mean predictions, which say nothing of single particles: metrics that
    /// need these have no value.
    pub fn of_sums_of_means(scores: &ClientScores) -> Self {
        let needs_particles = |metric: &Metric| metric.classes.is_some_and(|classes| classes.needs_particles);
        let value = |metric: &'static Metric| if needs_particles(metric) { None } else { (metric.sums?)(scores) };
        Self::from_metrics(scores.rows(), value)
    }

    /// Scores a regression on the scale of its predictions.
    pub fn regression(predictions: &RegressionPredictions<'_>) -> Self {
        let scored = ScoredTargets::new(predictions);
        Self::from_metrics(predictions.rows(), |metric| (metric.targets?.of)(&scored))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_metric_has_a_key_and_a_name_of_its_own() {
        let keys: BTreeSet<&str> = Metric::all().map(|metric| metric.key).collect();
        let names: BTreeSet<&str> = Metric::all().map(|metric| metric.name).collect();
        assert!(keys.len() == Metric::all().count() && names.len() == keys.len());
        assert!(!keys.contains("") && !names.contains(""));
    }

    #[test]
    fn the_columns_are_those_of_the_files() {
        let names: Vec<&str> = Evaluation::default().columns().into_iter().map(|(name, _)| name).collect();
        let expected = "accuracy accuracy_mean_particle nll nll_mean_particle ece mce ace classwise_ece brier signed_gap \
                        mean_confidence entropy mutual_information disagreement reference_max log_likelihood rmse mae crps \
                        coverage_90 kl auroc";
        assert_eq!(names, expected.split_whitespace().collect::<Vec<_>>());
    }

    #[test]
    fn no_two_metrics_of_a_task_have_the_same_place() {
        let views = [View::Column, View::Overall, View::Card, View::Comparison, View::Definition, View::Personal];
        for view in views.into_iter().chain([View::Decision, View::Group]) {
            for of_task in [|m: &&Metric| m.classes.is_some(), |m: &&Metric| m.targets.is_some()] {
                let places: Vec<u16> = Metric::all().filter(of_task).filter_map(|m| m.place(view)).collect();
                assert_eq!(places.iter().collect::<BTreeSet<_>>().len(), places.len(), "{view:?}");
            }
        }
    }
}
