//! Scores of predictions on the rows of one client, as sums over the rows. A client sends them in the place of rows.
//!
//! The sums of several clients add up to those of all their rows. What is not a sum over rows, such as the calibration
//! error over bins of equal mass, cannot be computed from them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::calibration::{Bin, Calibration, check_bins};
use super::class_sums::{CLASS_SCORES, CORRECT, ClassScore, ClassSums, SECOND};
use super::cluster_sums::{ClusterSums, ClusterTally, Moments};
use super::clusters::Clusters;
use super::error::{MetricError, check_length, finite};
use super::interval::Interval;
use super::mixture::RegressionPredictions;
use super::predictions::ParticleLogProbs;
use super::regression::COVERAGE_LEVELS;
use super::sums_reader::Reader;
use super::target_sums::{TargetScore, TargetSums};

/// Sums of scores over the rows of one client, or of several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Saved", into = "Saved")]
pub struct ClientScores {
    rows: usize,
    sums: Sums,
    /// The sums over clusters; `None` where rows are independent.
    clusters: Option<ClusterSums>,
}

/// Adds the rows of one client to the sums of their scores, in parts of any size.
#[derive(Debug)]
pub struct ClientScoresBuilder<'c> {
    scores: ClientScores,
    /// Those of all rows; `None` where rows are independent.
    clusters: Option<ClusterTally<'c>>,
}

/// The sums of either task.
#[derive(Debug, Clone, PartialEq)]
enum Sums {
    Classes(ClassSums),
    Targets(Box<TargetSums>),
}

impl ClientScores {
    /// The scores of no row of a classification.
    ///
    /// # Arguments
    /// * `classes`: number of classes `C`
    /// * `bins`: number of bins of confidence, from 1 to [`super::MAX_BINS`]; other numbers become the nearest of these
    pub fn of_classes(classes: usize, bins: usize) -> Self {
        Self { rows: 0, sums: Sums::Classes(ClassSums::new(classes, bins)), clusters: None }
    }

    /// The scores of no row of a regression.
    pub fn of_targets() -> Self {
        Self { rows: 0, sums: Sums::Targets(Box::new(TargetSums::new())), clusters: None }
    }

    /// The scores of no row, with sums of the same kind.
    pub fn without_rows(&self) -> Self {
        match &self.sums {
            Sums::Classes(sums) => Self::of_classes(sums.classes(), sums.bins()),
            Sums::Targets(_) => Self::of_targets(),
        }
    }

    /// Adds independent rows with their labels.
    ///
    /// # Arguments
    /// * `log_probs`: `[N, n, C]`
    /// * `labels`: `[n]`
    ///
    /// # Errors
    /// Labels out of range or not one per row; another number of classes, or sums of a regression.
    pub fn add_classes(&mut self, log_probs: &ParticleLogProbs, labels: &[usize]) -> Result<(), MetricError> {
        let mut builder = self.without_rows().builder(None);
        builder.add_classes(log_probs, labels)?;
        self.merge(&builder.finish()?)
    }

    /// Adds independent rows with real targets, in the units in which they are to be reported.
    ///
    /// # Errors
    /// A score that is not finite; sums of a classification.
    pub fn add_real(&mut self, predictions: &RegressionPredictions<'_>) -> Result<(), MetricError> {
        let mut builder = self.without_rows().builder(None);
        builder.add_real(predictions)?;
        self.merge(&builder.finish()?)
    }

    /// Sums of the same kind, to which the rows of one client are to be added.
    ///
    /// # Arguments
    /// * `clusters`: those of all these rows; `None` where rows are independent
    pub fn builder<'c>(&self, clusters: Option<&'c Clusters>) -> ClientScoresBuilder<'c> {
        let clusters = clusters.filter(|of| of.count() < of.rows());
        let tally = |clusters| ClusterTally::new(clusters, self.least().len());
        ClientScoresBuilder { scores: self.without_rows(), clusters: clusters.map(tally) }
    }

    /// Adds another client's sums.
    ///
    /// # Errors
    /// They are of another task, or have another number of classes or bins.
    pub fn merge(&mut self, other: &Self) -> Result<(), MetricError> {
        let has_clusters = self.clusters.is_some() || other.clusters.is_some();
        let clusters = has_clusters.then(|| {
            let mut all = self.clusters_or_rows();
            all.add(&other.clusters_or_rows());
            all
        });
        match (&mut self.sums, &other.sums) {
            (Sums::Classes(sums), Sums::Classes(more)) => sums.merge(more)?,
            (Sums::Targets(sums), Sums::Targets(more)) => sums.merge(more),
            _ => return Err(MetricError::OtherSums),
        }
        self.rows += other.rows;
        self.clusters = clusters;
        Ok(())
    }

    /// The sums over clusters; where rows are independent, over rows.
    fn clusters_or_rows(&self) -> ClusterSums {
        self.clusters.clone().unwrap_or_else(|| ClusterSums::of_independent(self.rows, &self.moments()))
    }

    /// The smallest value of each number of a row that is added up by clusters.
    fn least(&self) -> &'static [f64] {
        match &self.sums {
            Sums::Classes(sums) => sums.least(),
            Sums::Targets(_) => TargetSums::least(),
        }
    }

    /// The sums of these numbers over rows.
    fn moments(&self) -> Vec<Moments> {
        match &self.sums {
            Sums::Classes(sums) => sums.moments(),
            Sums::Targets(sums) => sums.moments(),
        }
    }

    /// The sums as a message carries them: the number of rows, then the sums of the task.
    ///
    /// A classification has `14 + 3 B + C B` of them for C classes and B bins: counts and scores, the rows, right
    /// predictions and confidence of every bin, and for every class and bin the sum of `p_c - [label = c]`. A regression
    /// has 231: scores, counts of the intervals that hold the target, and counts of PIT values.
    ///
    /// Of rows with clusters follow the number of clusters, the sum of their squared numbers of rows, and for each number x of
    /// a row the sums over clusters of the rows times the sum of x, and of its square: for the confidence less 1 where the
    /// prediction is right, that 1 or 0, and with two classes the probability of the second less 1 where it is the label (6
    /// values more, with two classes 8); of a regression for 1 where the target lies in a central interval (10 more).
    pub fn to_values(&self) -> Vec<f64> {
        let mut values = vec![self.rows as f64];
        match &self.sums {
            Sums::Classes(sums) => sums.write(&mut values),
            Sums::Targets(sums) => sums.write(&mut values),
        }
        self.clusters.iter().for_each(|clusters| clusters.write(&mut values));
        values
    }

    /// The sums of a message, which must be of the same kind as these and possible for their number of rows.
    ///
    /// # Errors
    /// Another number of values than [`Self::to_values`] has, or a value that no rows can give: one that is not finite,
    /// a count that is negative, no whole number or larger than the number of rows, a score beyond its bounds.
    pub fn read(&self, values: &[f64]) -> Result<Self, MetricError> {
        let mut reader = Reader::new(values)?;
        let sums = match &self.sums {
            Sums::Classes(sums) => Sums::Classes(sums.read(&mut reader)?),
            Sums::Targets(sums) => Sums::Targets(Box::new(sums.read(&mut reader)?)),
        };
        let clusters = match reader.is_at_end() {
            true => None,
            false => Some(ClusterSums::read(&mut reader, self.least())?),
        };
        reader.end()?;
        Ok(Self { rows: reader.rows as usize, sums, clusters })
    }

    /// The 95 % interval of the signed gap, that of a normal distribution with the variance of the rows, or by clusters where
    /// they have them; `None` for a regression, without a row, and of one cluster.
    pub fn signed_gap_interval(&self) -> Option<Interval> {
        self.class_sums().and_then(|sums| sums.signed_gap_interval(self.rows, self.clusters.as_ref()))
    }

    /// Number of clusters; `None` where rows are independent. Clusters of different clients are different ones.
    pub fn clusters(&self) -> Option<usize> {
        self.clusters.as_ref().map(ClusterSums::count)
    }

    /// The number of independent rows that tell as much of the mean of a number as these rows do, by its place among those that
    /// are added up by clusters.
    fn independent(&self, number: usize) -> f64 {
        let Some(clusters) = &self.clusters else { return self.rows as f64 };
        self.rows as f64 / clusters.design_effect(number, self.rows, self.moments()[number])
    }

    /// The number of independent rows that tell as much of the mean probability of the second of two classes.
    pub(crate) fn independent_of_second(&self) -> f64 {
        self.independent(SECOND)
    }

    /// The number of independent rows that tell as much of the coverage of one of [`COVERAGE_LEVELS`].
    pub(crate) fn independent_of_coverage(&self, level: f64) -> f64 {
        COVERAGE_LEVELS.iter().position(|of| *of == level).map_or(self.rows as f64, |number| self.independent(number))
    }

    /// For each metric that is a share of rows the number of independent rows that tell as much of it, by its key; none where
    /// rows are independent.
    pub(crate) fn independent_of_shares(&self) -> BTreeMap<String, f64> {
        let coverage = |level| self.independent_of_coverage(level);
        let shares = match (&self.clusters, &self.sums) {
            (None, _) => Vec::new(),
            (_, Sums::Classes(_)) => vec![("accuracy", self.independent(CORRECT))],
            (_, Sums::Targets(_)) => {
                vec![("coverage_50", coverage(0.5)), ("coverage_90", coverage(0.9)), ("coverage_95", coverage(0.95))]
            }
        };
        shares.into_iter().map(|(key, rows)| (key.to_owned(), rows)).collect()
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of classes `C`; `None` for a regression.
    pub fn classes(&self) -> Option<usize> {
        self.class_sums().map(ClassSums::classes)
    }

    /// The sums of a classification.
    pub(crate) fn class_sums(&self) -> Option<&ClassSums> {
        match &self.sums {
            Sums::Classes(sums) => Some(sums),
            Sums::Targets(_) => None,
        }
    }

    /// The sums of a regression.
    pub(crate) fn target_sums(&self) -> Option<&TargetSums> {
        match &self.sums {
            Sums::Classes(_) => None,
            Sums::Targets(sums) => Some(sums),
        }
    }

    /// A sum over the number of rows; `None` without a row.
    fn mean(&self, sum: f64) -> Option<f64> {
        if self.rows > 0 { finite(sum / self.rows as f64) } else { None }
    }

    /// The mean over rows of a score of a classification.
    pub(super) fn of_class_score(&self, score: ClassScore) -> Option<f64> {
        self.mean(self.class_sums()?.get(score))
    }

    /// The mean over rows of a score of a regression.
    pub(super) fn of_target_score(&self, score: TargetScore) -> Option<f64> {
        self.mean(self.target_sums()?.get(score))
    }

    /// Share of the targets inside the central interval of one of [`super::COVERAGE_LEVELS`].
    pub(super) fn coverage(&self, level: f64) -> Option<f64> {
        self.mean(self.target_sums()?.covered(level)?)
    }

    /// Calibration of the top label over equal-width bins; `None` for a regression.
    pub fn calibration(&self) -> Option<Calibration> {
        self.class_sums().map(ClassSums::calibration)
    }

    /// One-vs-rest ECE of every class, `[C]`; `None` for a regression and without a row.
    pub(crate) fn classwise_ece(&self) -> Option<Vec<f64>> {
        (self.rows > 0).then_some(self.class_sums()?.classwise_ece(self.rows))
    }

    /// Mean share of pairs of components that predict different classes, over the rows that have pairs.
    pub(super) fn disagreement(&self) -> Option<f64> {
        let sums = self.class_sums()?;
        finite(sums.get(ClassScore::Disagreement) / sums.get(ClassScore::Paired))
    }

    /// Bins of confidence; none for a regression.
    pub fn bins(&self) -> Vec<Bin> {
        self.calibration().map_or_else(Vec::new, |calibration| calibration.bins().to_vec())
    }

    /// Accuracy of the ensemble.
    pub fn accuracy(&self) -> Option<f64> {
        self.of_class_score(ClassScore::Correct)
    }

    /// Negative log-likelihood of the predictive, nats.
    pub fn nll(&self) -> Option<f64> {
        self.of_class_score(ClassScore::Nll).or_else(|| self.of_target_score(TargetScore::Nll))
    }

    /// Expected calibration error of the top label.
    pub fn ece(&self) -> Option<f64> {
        self.calibration()?.ece()
    }
}

impl ClientScoresBuilder<'_> {
    /// Adds the next rows with their labels.
    ///
    /// # Arguments
    /// * `log_probs`: `[N, n, C]`
    /// * `labels`: `[n]`
    ///
    /// # Errors
    /// Labels out of range or not one per row; another number of classes, or sums of a regression; more rows than have
    /// clusters.
    pub fn add_classes(&mut self, log_probs: &ParticleLogProbs, labels: &[usize]) -> Result<(), MetricError> {
        let Self { scores: ClientScores { rows, sums, .. }, clusters } = self;
        let Sums::Classes(sums) = sums else { return Err(MetricError::OtherSums) };
        check_room(clusters.as_ref(), *rows + labels.len())?;
        sums.add(log_probs, labels, each_row(clusters, *rows))?;
        *rows += labels.len();
        Ok(())
    }

    /// Adds the next rows with real targets, in the units in which they are to be reported.
    ///
    /// # Errors
    /// A score that is not finite; sums of a classification; more rows than have clusters.
    pub fn add_real(&mut self, predictions: &RegressionPredictions<'_>) -> Result<(), MetricError> {
        let Self { scores: ClientScores { rows, sums, .. }, clusters } = self;
        let Sums::Targets(sums) = sums else { return Err(MetricError::OtherSums) };
        check_room(clusters.as_ref(), *rows + predictions.rows())?;
        sums.add(predictions, each_row(clusters, *rows))?;
        *rows += predictions.rows();
        Ok(())
    }

    /// The sums of all rows.
    ///
    /// # Errors
    /// There are fewer rows than have clusters.
    pub fn finish(self) -> Result<ClientScores, MetricError> {
        let Self { scores, clusters } = self;
        if let Some(tally) = &clusters {
            check_length("rows with clusters", scores.rows, tally.rows())?;
        }
        Ok(ClientScores { clusters: clusters.map(ClusterTally::finish), ..scores })
    }
}

/// `Ok` if so many rows have clusters.
fn check_room(clusters: Option<&ClusterTally<'_>>, rows: usize) -> Result<(), MetricError> {
    match clusters {
        Some(tally) if rows > tally.rows() => check_length("rows with clusters", rows, tally.rows()),
        _ => Ok(()),
    }
}

/// Adds the numbers of each row to those of its cluster, where so many rows are before it.
fn each_row(clusters: &mut Option<ClusterTally<'_>>, before: usize) -> impl FnMut(usize, &[f64]) {
    move |row, numbers| {
        if let Some(tally) = clusters {
            tally.add(before + row, numbers);
        }
    }
}

/// Sums in a file.
#[derive(Serialize, Deserialize)]
struct Saved {
    /// Number of classes; `None` for a regression.
    classes: Option<usize>,
    /// Number of bins of confidence; 0 for a regression.
    bins: usize,
    /// As in a message.
    values: Vec<f64>,
}

impl From<ClientScores> for Saved {
    fn from(scores: ClientScores) -> Self {
        let bins = scores.class_sums().map_or(0, ClassSums::bins);
        Self { classes: scores.classes(), bins, values: scores.to_values() }
    }
}

impl TryFrom<Saved> for ClientScores {
    type Error = MetricError;

    fn try_from(Saved { classes, bins, values }: Saved) -> Result<Self, MetricError> {
        let Some(classes) = classes else { return Self::of_targets().read(&values) };
        check_bins(bins)?;
        if classes < 2 {
            return Err(MetricError::TooFewClasses { got: classes });
        }
        // There is no room for sums that are not there.
        let expected = classes.saturating_add(3).saturating_mul(bins).saturating_add(1 + CLASS_SCORES);
        if values.len() < expected {
            check_length("sums of scores", values.len(), expected)?;
        }
        Self::of_classes(classes, bins).read(&values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log_probs(rows: &[[f64; 2]]) -> ParticleLogProbs {
        let values: Vec<f32> = rows.iter().flatten().map(|p| p.ln() as f32).collect();
        ParticleLogProbs::from_f32(1, rows.len(), 2, values).unwrap()
    }

    fn of_classes() -> ClientScores {
        let mut scores = ClientScores::of_classes(2, 10);
        scores.add_classes(&log_probs(&[[0.9, 0.1], [0.4, 0.6], [0.2, 0.8]]), &[0, 0, 1]).unwrap();
        scores
    }

    fn of_targets() -> ClientScores {
        let mut scores = ClientScores::of_targets();
        let predictions = RegressionPredictions::new(1, vec![0.5, -1.0], vec![4.0, 0.25], vec![0.4, 3.0]).unwrap();
        scores.add_real(&predictions).unwrap();
        scores
    }

    #[test]
    fn the_interval_of_the_gap_of_independent_rows_is_that_of_their_mean() {
        // Confidence less outcome is −.1, .6 and −.2: the mean .1, and the variance .41/3 − .1². The accuracy is not above 1, so
        // that the gap is at least the mean confidence 2.3/3 less 1; it is at most 2.3/3.
        let got = of_classes().signed_gap_interval().unwrap();
        let half = 1.959_963_984_540_054 * ((0.41_f64 / 3.0 - 0.01) / 3.0).sqrt();
        assert!(0.1 - half < 2.3 / 3.0 - 1.0 && 0.1 + half < 2.3 / 3.0);
        // The probabilities are logarithms in f32.
        assert!((got.lo - (2.3 / 3.0 - 1.0)).abs() < 1e-6 && (got.hi - (0.1 + half)).abs() < 1e-6, "{got:?}");
        // Each row ten times: a tenth of the variance, and both ends are those of the normal distribution.
        let mut ten = ClientScores::of_classes(2, 10);
        (0..10).for_each(|_| ten.merge(&of_classes()).unwrap());
        let (got, half) = (ten.signed_gap_interval().unwrap(), half / 10f64.sqrt());
        assert!((got.lo - (0.1 - half)).abs() < 1e-6 && (got.hi - (0.1 + half)).abs() < 1e-6, "{got:?}");
        assert_eq!(of_targets().signed_gap_interval(), None);
    }

    #[test]
    fn sums_are_read_back_from_their_values_to_the_bit() {
        for (sent, length) in [(of_classes(), 14 + 3 * 10 + 2 * 10), (of_targets(), 231)] {
            assert_eq!(sent.to_values().len(), length);
            let came = sent.without_rows().read(&sent.to_values()).unwrap();
            let bits = |of: &ClientScores| of.to_values().into_iter().map(f64::to_bits).collect::<Vec<_>>();
            assert_eq!((bits(&came), &came), (bits(&sent), &sent));
            let text = serde_json::to_string(&sent).unwrap();
            assert_eq!(serde_json::from_str::<ClientScores>(&text).unwrap(), sent);
            let none = sent.without_rows();
            assert_eq!(none.read(&none.to_values()), Ok(none));
        }
    }

    #[test]
    fn values_that_no_rows_can_give_are_refused() {
        for sent in [of_classes(), of_targets()] {
            let good = sent.to_values();
            let is_refused = |values: &[f64]| sent.without_rows().read(values).is_err();
            assert!(is_refused(&[]) && is_refused(&good[1..]) && is_refused(&good[..good.len() - 1]));
            assert!(is_refused(&[good.as_slice(), &[0.0]].concat()));
            for at in 0..good.len() {
                for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                    let mut values = good.clone();
                    values[at] = wrong;
                    assert!(is_refused(&values), "value {at} is {wrong}");
                }
            }
            // The number of rows: negative, a fraction, too large to be exact, another than that of the bins.
            for rows in [-1.0, 2.5, 1e300, 1.0, 7.0] {
                let mut values = good.clone();
                values[0] = rows;
                assert!(is_refused(&values), "{rows} rows");
            }
        }
        let rows = 3.0;
        for (at, wrong) in [(1, -1.0), (1, 1.5), (1, 4.0), (4, rows + 1.0), (5, -0.5), (5, 1e9), (8, 9.0), (40, 0.5)] {
            let mut values = of_classes().to_values();
            values[at] = wrong;
            assert!(of_classes().read(&values).is_err(), "value {at} is {wrong}");
        }
        for (at, wrong) in [(2, -1.0), (3, -1.0), (7, 0.5), (7, 3.0), (11, 1.0), (229, -1.0)] {
            let mut values = of_targets().to_values();
            values[at] = wrong;
            assert!(of_targets().read(&values).is_err(), "value {at} is {wrong}");
        }
    }

    #[test]
    fn a_file_with_sums_that_no_rows_can_give_is_refused() {
        let is_refused = |text: &str| serde_json::from_str::<ClientScores>(text).is_err();
        assert!(is_refused(r#"{"classes":2,"bins":0,"values":[]}"#));
        assert!(is_refused(r#"{"classes":1000000000000,"bins":15,"values":[0.0]}"#));
        assert!(is_refused(r#"{"classes":2,"bins":100000,"values":[0.0]}"#));
        assert!(is_refused(&format!(r#"{{"classes":1,"bins":1,"values":{:?}}}"#, [0.0; 18])));
        assert!(is_refused(r#"{"classes":null,"bins":0,"values":[1.0]}"#));
        let text = serde_json::to_string(&of_classes()).unwrap();
        assert!(!is_refused(&text) && is_refused(&text.replace("[3.0", "[4.0")));
    }

    #[test]
    fn sums_of_another_kind_are_refused() {
        let (classes, targets) = (of_classes(), of_targets());
        let others = [ClientScores::of_classes(3, 10), ClientScores::of_classes(2, 9), targets.clone()];
        for other in others {
            assert!(classes.clone().merge(&other).is_err() && other.clone().merge(&classes).is_err());
            assert!(other.read(&classes.to_values()).is_err());
        }
        assert!(targets.clone().add_classes(&log_probs(&[[0.5, 0.5]]), &[0]).is_err());
        assert!(ClientScores::of_classes(3, 10).add_classes(&log_probs(&[[0.5, 0.5]]), &[0]).is_err());
    }
}
