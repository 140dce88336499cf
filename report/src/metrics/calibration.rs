//! Calibration: whether predictions with a confidence of 0.8 are right in 80 of 100 cases.
//!
//! Bins are `((j-1)/B, j/B]` with edges that are the `f64` quotients `j/B`; a confidence of 0
//! belongs to the first bin. Sources: Naeini et al. 2015 and Guo et al. 2017 (ECE, MCE), Nixon et
//! al. 2019 (equal-mass bins, classwise ECE), Kumar et al. 2019 (debiased squared error), Murphy
//! 1973 and Stephenson et al. 2008 (Brier decomposition with within-bin terms).

use serde::{Deserialize, Serialize};

use super::error::{MetricError, check_finite, check_length, finite};
use super::interval::Interval;
use super::predictions::ClassPredictions;
use super::share::wilson;

/// Largest number of bins.
pub const MAX_BINS: usize = 100_000;

/// The end of a bin that belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BinRule {
    /// `(lo, hi]`, the first bin closed: the rule of Guo et al. and of every number in a report.
    #[default]
    UpperClosed,
    /// `[lo, hi)`, the last bin closed: the rule of torchmetrics and netcal.
    LowerClosed,
}

/// One bin of a reliability diagram; an empty bin has no accuracy and no confidence, which is not
/// the same as 0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bin {
    /// Lower edge: of the interval, or the smallest confidence of an equal-mass bin.
    pub lo: f64,
    /// Upper edge: of the interval, or the largest confidence of an equal-mass bin.
    pub hi: f64,
    /// Rows in the bin.
    pub n: usize,
    /// Share of right predictions.
    pub accuracy: Option<f64>,
    /// Mean confidence.
    pub confidence: Option<f64>,
    /// `confidence - accuracy`: positive when over-confident.
    pub gap: Option<f64>,
}

impl Bin {
    fn new(lo: f64, hi: f64, sums: Sums) -> Self {
        let mean = |sum: f64| (sums.n > 0).then(|| sum / sums.n as f64);
        let (accuracy, confidence) = (mean(sums.correct as f64), mean(sums.confidence));
        let gap = confidence.zip(accuracy).map(|(c, a)| c - a);
        Self { lo, hi, n: sums.n, accuracy, confidence, gap }
    }
}

/// Running sums of one bin.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Sums {
    n: usize,
    correct: usize,
    confidence: f64,
}

impl Sums {
    pub(super) fn push(&mut self, confidence: f64, correct: bool) {
        self.n += 1;
        self.correct += usize::from(correct);
        self.confidence += confidence;
    }
}

/// Equal-width bins of `[0, 1]` that are filled row by row.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Histogram {
    sums: Vec<Sums>,
    rule: BinRule,
}

impl Histogram {
    pub(super) fn new(bins: usize, rule: BinRule) -> Result<Self, MetricError> {
        check_bins(bins)?;
        Ok(Self::empty(bins, rule))
    }

    /// The histogram without rows. `bins` is at least 1.
    pub(super) fn empty(bins: usize, rule: BinRule) -> Self {
        Self { sums: vec![Sums::default(); bins], rule }
    }

    /// Number of bins, at least 1.
    pub(super) fn len(&self) -> usize {
        self.sums.len()
    }

    pub(super) fn push(&mut self, confidence: f64, correct: bool) {
        let bin = bin_index(confidence, self.sums.len(), self.rule);
        self.sums[bin].push(confidence, correct);
    }

    /// Adds what another histogram of the same bins has counted.
    pub(super) fn merge(&mut self, other: &Self) {
        for (sums, more) in self.sums.iter_mut().zip(&other.sums) {
            sums.n += more.n;
            sums.correct += more.correct;
            sums.confidence += more.confidence;
        }
    }

    /// Rows, right predictions and sum of confidences, bin by bin.
    pub(super) fn values(&self) -> impl Iterator<Item = f64> + '_ {
        self.sums.iter().flat_map(|sums| [sums.n as f64, sums.correct as f64, sums.confidence])
    }

    /// The histogram from the numbers of [`Histogram::values`].
    pub(super) fn of_values(values: &[f64]) -> Self {
        let sums = |of: &[f64]| Sums { n: of[0] as usize, correct: of[1] as usize, confidence: of[2] };
        Self { sums: values.chunks_exact(3).map(sums).collect(), rule: BinRule::UpperClosed }
    }

    /// The sum over rows of the confidence less 1 where the prediction is right.
    pub(super) fn sum_of_gaps(&self) -> f64 {
        self.sums.iter().map(|sums| sums.confidence - sums.correct as f64).sum()
    }

    pub(super) fn finish(&self) -> Calibration {
        let count = self.sums.len();
        let bin = |(j, sums): (usize, &Sums)| Bin::new(edge(j, count), edge(j + 1, count), *sums);
        Calibration::new(self.sums.iter().enumerate().map(bin).collect())
    }
}

/// The edge `j / bins`.
fn edge(j: usize, bins: usize) -> f64 {
    j as f64 / bins as f64
}

/// Bin of a value in `[0, 1]`. The product is only a first guess: 0.07 * 100 is 7.000000000000001,
/// the edge 7/100 is 0.07.
pub(super) fn bin_index(value: f64, bins: usize, rule: BinRule) -> usize {
    let below = |j: usize| match rule {
        BinRule::UpperClosed => value <= edge(j, bins),
        BinRule::LowerClosed => value < edge(j, bins),
    };
    let mut bin = ((value * bins as f64) as usize).min(bins - 1);
    while bin > 0 && below(bin) {
        bin -= 1;
    }
    while bin + 1 < bins && !below(bin + 1) {
        bin += 1;
    }
    bin
}

pub(super) fn check_bins(bins: usize) -> Result<(), MetricError> {
    if (1..=MAX_BINS).contains(&bins) { Ok(()) } else { Err(MetricError::Bins { got: bins, max: MAX_BINS }) }
}

/// Filled bins and the numbers that summarise them. Every number is `None` without a row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibration {
    bins: Vec<Bin>,
    n: usize,
}

impl Calibration {
    /// The calibration of bins that were filled elsewhere.
    pub(crate) fn new(bins: Vec<Bin>) -> Self {
        let n = bins.iter().map(|bin| bin.n).sum();
        Self { bins, n }
    }

    /// The bins in ascending order.
    pub fn bins(&self) -> &[Bin] {
        &self.bins
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.n
    }

    /// `sum_j (n_j / n) f(gap_j)` over non-empty bins.
    fn weighted(&self, f: impl Fn(f64) -> f64) -> Option<f64> {
        let sum: f64 = self.filled().map(|(bin, gap)| bin.n as f64 * f(gap)).sum();
        if self.n == 0 { None } else { finite(sum / self.n as f64) }
    }

    fn filled(&self) -> impl Iterator<Item = (&Bin, f64)> {
        self.bins.iter().filter_map(|bin| Some((bin, bin.gap?)))
    }

    /// Expected calibration error `sum_j (n_j/n) |acc_j - conf_j|`.
    pub fn ece(&self) -> Option<f64> {
        self.weighted(f64::abs)
    }

    /// Root mean square calibration error `sqrt(sum_j (n_j/n) (acc_j - conf_j)^2)`.
    pub fn rmsce(&self) -> Option<f64> {
        self.weighted(|gap| gap * gap).map(f64::sqrt)
    }

    /// Mean confidence minus accuracy: positive when over-confident.
    pub fn signed_gap(&self) -> Option<f64> {
        self.weighted(|gap| gap)
    }

    /// The interval of the signed gap: `interval`, unless every row is right, or every row wrong. Resampled rows are then so
    /// too, and the variance is that of the confidence alone; the interval is that of the accuracy instead (Wilson's), of so
    /// many independent rows.
    pub(super) fn interval_of_gap(
        &self,
        level: f64,
        interval: Option<Interval>,
        independent: usize,
    ) -> Option<Interval> {
        let are_all = |share: f64| self.filled().all(|(bin, _)| bin.accuracy == Some(share));
        let confidence = self.mean_confidence().filter(|_| are_all(1.0) || are_all(0.0));
        let Some((confidence, gap)) = confidence.zip(self.signed_gap()) else { return interval };
        let Interval { lo, hi } = wilson(level, (confidence - gap).clamp(0.0, 1.0), independent as f64);
        Some(Interval { lo: confidence - hi, hi: confidence - lo })
    }

    /// The 95 % interval of the accuracy of each bin that has rows, of independent rows (Wilson).
    pub(crate) fn accuracy_intervals(&self) -> Vec<Option<Interval>> {
        let of = |bin: &Bin| Some(wilson(0.95, bin.accuracy?, bin.n as f64));
        self.bins.iter().map(of).collect()
    }

    /// Mean confidence.
    pub fn mean_confidence(&self) -> Option<f64> {
        let sum: f64 = self.bins.iter().filter_map(|bin| Some(bin.n as f64 * bin.confidence?)).sum();
        if self.n == 0 { None } else { finite(sum / self.n as f64) }
    }

    /// Plain mean of `|acc_j - conf_j|` over non-empty bins.
    pub fn ace_unweighted(&self) -> Option<f64> {
        let filled = self.filled().count();
        let sum: f64 = self.filled().map(|(_, gap)| gap.abs()).sum();
        (filled > 0).then(|| sum / filled as f64)
    }

    /// Maximum calibration error: largest `|acc_j - conf_j|` over non-empty bins.
    pub fn mce(&self) -> Option<f64> {
        self.worst(1).and_then(|bin| bin.gap).map(f64::abs)
    }

    /// The bin with the largest `|acc_j - conf_j|` among those of at least `min_n` rows, the first
    /// on ties.
    pub fn worst(&self, min_n: usize) -> Option<&Bin> {
        self.largest(|bin, gap| if bin.n >= min_n { Some(gap.abs()) } else { None })
    }

    /// The bin that contributes most to the ECE, the first on ties.
    pub fn heaviest(&self) -> Option<&Bin> {
        self.largest(|bin, gap| Some(bin.n as f64 * gap.abs()))
    }

    fn largest(&self, score: impl Fn(&Bin, f64) -> Option<f64>) -> Option<&Bin> {
        let mut best: Option<(&Bin, f64)> = None;
        for (bin, gap) in self.filled() {
            let Some(value) = score(bin, gap) else {
                continue;
            };
            if best.is_none_or(|(_, largest)| value > largest) {
                best = Some((bin, value));
            }
        }
        best.map(|(bin, _)| bin)
    }

    /// Squared calibration error as the bins show it, `sum_j (n_j/n) gap_j^2`; biased upwards by
    /// the noise in the bins.
    pub fn plugin_l2_squared(&self) -> Option<f64> {
        self.weighted(|gap| gap * gap)
    }

    /// The same less its bias, `sum_{n_j >= 2} (n_j/n) [gap_j^2 - acc_j (1 - acc_j) / (n_j - 1)]`
    /// (Kumar et al. 2019).
    ///
    /// May be negative. `None` without a bin of two rows.
    pub fn debiased_l2_squared(&self) -> Option<f64> {
        let of_bin = |bin: &Bin| {
            let (accuracy, gap) = bin.accuracy.zip(bin.gap).filter(|_| bin.n >= 2)?;
            let noise = accuracy * (1.0 - accuracy) / (bin.n - 1) as f64;
            Some(bin.n as f64 * (gap * gap - noise))
        };
        let terms: Vec<f64> = self.bins.iter().filter_map(of_bin).collect();
        if terms.is_empty() { None } else { finite(terms.iter().sum::<f64>() / self.n as f64) }
    }

    /// `sqrt(max(0, debiased_l2_squared))`.
    pub fn debiased_l2(&self) -> Option<f64> {
        self.debiased_l2_squared().map(|squared| squared.max(0.0).sqrt())
    }
}

/// Equal-width bins `((j-1)/B, j/B]`.
///
/// # Arguments
/// * `confidence`: `[n]`, each in `[0, 1]`
/// * `correct`: `[n]`
///
/// # Errors
/// Lengths that differ, a confidence that is not finite, or a number of bins outside
/// `1..=`[`MAX_BINS`].
pub fn equal_width(confidence: &[f64], correct: &[bool], bins: usize) -> Result<Calibration, MetricError> {
    equal_width_by(BinRule::UpperClosed, confidence, correct, bins)
}

/// [`equal_width`] with the other convention for edges, to compare with other libraries.
///
/// # Errors
/// As [`equal_width`].
pub fn equal_width_by(
    rule: BinRule,
    confidence: &[f64],
    correct: &[bool],
    bins: usize,
) -> Result<Calibration, MetricError> {
    check(confidence, correct, bins)?;
    let mut histogram = Histogram::new(bins, rule)?;
    for (&p, &right) in confidence.iter().zip(correct) {
        histogram.push(p, right);
    }
    Ok(histogram.finish())
}

/// Equal-mass bins: rows in ascending order of confidence (stable), cut into `min(bins, n)` parts
/// whose sizes differ by at most one, the longer ones first. Their [`Calibration::ece`] is the
/// adaptive calibration error.
///
/// # Errors
/// As [`equal_width`].
pub fn equal_mass(confidence: &[f64], correct: &[bool], bins: usize) -> Result<Calibration, MetricError> {
    check(confidence, correct, bins)?;
    let n = confidence.len();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| confidence[a].total_cmp(&confidence[b]));
    let parts = bins.min(n);
    let mut rest = order.as_slice();
    let mut filled = Vec::with_capacity(parts);
    for part in 0..parts {
        let (rows, after) = rest.split_at(n / parts + usize::from(part < n % parts));
        rest = after;
        let mut sums = Sums::default();
        for &row in rows {
            sums.push(confidence[row], correct[row]);
        }
        if let (Some(&first), Some(&last)) = (rows.first(), rows.last()) {
            filled.push(Bin::new(confidence[first], confidence[last], sums));
        }
    }
    Ok(Calibration::new(filled))
}

fn check(confidence: &[f64], correct: &[bool], bins: usize) -> Result<(), MetricError> {
    check_bins(bins)?;
    check_length("correct", correct.len(), confidence.len())?;
    check_finite("confidence", confidence)
}

/// One-vs-rest ECE of every class: `p_k` against the indicator `label = k`, all rows, `[C]`. Its
/// mean is the classwise ECE.
///
/// # Errors
/// A number of bins outside `1..=`[`MAX_BINS`].
pub fn classwise_ece(predictions: &ClassPredictions<'_>, bins: usize) -> Result<Vec<f64>, MetricError> {
    let mut ece = Vec::with_capacity(predictions.classes());
    for class in 0..predictions.classes() {
        ece.push(one_vs_rest(predictions, class, bins)?.ece().unwrap_or(0.0));
    }
    Ok(ece)
}

/// Binary mode: `p(y = 1)` against the frequency of label 1; other numbers than those of the top
/// label. `None` unless `C = 2`.
///
/// # Errors
/// A number of bins outside `1..=`[`MAX_BINS`].
pub fn binary_positive(predictions: &ClassPredictions<'_>, bins: usize) -> Result<Option<Calibration>, MetricError> {
    (predictions.classes() == 2).then(|| one_vs_rest(predictions, 1, bins)).transpose()
}

fn one_vs_rest(predictions: &ClassPredictions<'_>, class: usize, bins: usize) -> Result<Calibration, MetricError> {
    let mut histogram = Histogram::new(bins, BinRule::UpperClosed)?;
    for (row, &label) in predictions.rows().zip(predictions.labels()) {
        histogram.push(row[class], label == class);
    }
    Ok(histogram.finish())
}

/// Exact decomposition of the top-label Brier score: `brier = uncertainty - resolution +
/// reliability + within`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BrierDecomposition {
    /// `mean (confidence - correct)^2`.
    pub brier: f64,
    /// `acc (1 - acc)`: the variance of the outcomes, which no forecast can remove.
    pub uncertainty: f64,
    /// `sum_j (n_j/n) (acc_j - acc)^2`: the variance of the accuracy over the bins.
    pub resolution: f64,
    /// `sum_j (n_j/n) (conf_j - acc_j)^2`: the calibration error.
    pub reliability: f64,
    /// `sum_j (n_j/n) [var_j(conf) - 2 cov_j(conf, correct)]`: the variance of the confidence inside the bins less twice its
    /// covariance with being right; below 0 where it tells right from wrong inside them.
    pub within: f64,
}

/// Decomposes the top-label Brier score over equal-width bins; `None` without a row.
///
/// # Errors
/// As [`equal_width`].
pub fn brier_decomposition(
    confidence: &[f64],
    correct: &[bool],
    bins: usize,
) -> Result<Option<BrierDecomposition>, MetricError> {
    let calibration = equal_width(confidence, correct, bins)?;
    let n = confidence.len() as f64;
    if confidence.is_empty() {
        return Ok(None);
    }
    let (mut brier, mut within) = (0.0, 0.0);
    for (&p, &right) in confidence.iter().zip(correct) {
        let bin = &calibration.bins[bin_index(p, bins, BinRule::UpperClosed)];
        let c = f64::from(u8::from(right));
        brier += (p - c).powi(2);
        if let Some((conf, acc)) = bin.confidence.zip(bin.accuracy) {
            within += (p - conf) * ((p - conf) - 2.0 * (c - acc));
        }
    }
    Ok(Some(BrierDecomposition { within: within / n, ..BrierDecomposition::of_bins(&calibration, brier / n) }))
}

impl BrierDecomposition {
    /// The decomposition of a top-label Brier score over filled bins; the part within the bins is what the others leave.
    pub(super) fn of_bins(calibration: &Calibration, brier: f64) -> Self {
        let mean = |f: &dyn Fn(f64, f64) -> f64| {
            let term = |bin: &Bin| Some(bin.n as f64 * f(bin.confidence?, bin.accuracy?));
            calibration.bins.iter().filter_map(term).sum::<f64>() / calibration.n as f64
        };
        let accuracy = mean(&|_, acc| acc);
        let uncertainty = accuracy * (1.0 - accuracy);
        let resolution = mean(&|_, acc| (acc - accuracy).powi(2));
        let reliability = mean(&|conf, acc| (conf - acc).powi(2));
        let within = brier - uncertainty + resolution - reliability;
        Self { brier, uncertainty, resolution, reliability, within }
    }
}
