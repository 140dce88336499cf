//! Point errors, proper scores and interval calibration of a mixture of normals.
//!
//! Sources: Gneiting and Raftery 2007 (CRPS), Grimit et al. 2006 (CRPS of a normal mixture), Ferro
//! 2014 (fair ensemble CRPS), Kuleshov et al. 2018 and uncertainty-toolbox (calibration over
//! levels).

use std::cmp::Ordering;
use std::f64::consts::{PI, SQRT_2};

use serde::Serialize;

use super::calibration::{BinRule, bin_index, check_bins};
use super::error::{MetricError, check_finite, finite, mean};
use super::mixture::RegressionPredictions;
use super::normal::{erf, normal_cdf, normal_pdf};

/// Levels of the central intervals in a report.
pub const COVERAGE_LEVELS: [f64; 4] = [0.5, 0.8, 0.9, 0.95];

/// Bins of the PIT histogram of a report.
pub(crate) const PIT_BINS: usize = 20;
/// Levels of the calibration curves of a report, 0 and 1 included.
pub(crate) const CURVE_LEVELS: usize = 100;

/// Moments of the predictive mixture, each `[n]`.
#[derive(Debug, Clone, PartialEq)]
pub struct PredictiveMoments {
    /// Mean over particles of the means.
    pub mean: Vec<f64>,
    /// `aleatoric + epistemic`.
    pub variance: Vec<f64>,
    /// Mean over particles of `1 / precision`: the noise in the data.
    pub aleatoric: Vec<f64>,
    /// Population variance over particles of the means: their disagreement.
    pub epistemic: Vec<f64>,
}

/// Moments of every row's mixture, each `[n]`.
pub fn predictive_moments(predictions: &RegressionPredictions<'_>) -> PredictiveMoments {
    let particles = predictions.particles() as f64;
    let of_row = |row: usize| {
        let average = |f: &dyn Fn(f64, f64) -> f64| {
            predictions.components(row).map(|(mean, sd)| f(mean, sd)).sum::<f64>() / particles
        };
        let center = average(&|mean, _| mean);
        (center, average(&|_, sd| sd * sd), average(&|mean, _| (mean - center).powi(2)))
    };
    let rows: Vec<_> = (0..predictions.rows()).map(of_row).collect();
    PredictiveMoments {
        mean: rows.iter().map(|r| r.0).collect(),
        variance: rows.iter().map(|r| r.1 + r.2).collect(),
        aleatoric: rows.iter().map(|r| r.1).collect(),
        epistemic: rows.iter().map(|r| r.2).collect(),
    }
}

/// Errors of the predictive mean, `[n]`.
pub(crate) fn errors(predictions: &RegressionPredictions<'_>) -> impl ExactSizeIterator<Item = f64> + Clone {
    let particles = predictions.particles() as f64;
    predictions
        .target()
        .iter()
        .enumerate()
        .map(move |(row, y)| predictions.components(row).map(|(mean, _)| mean).sum::<f64>() / particles - y)
}

/// Root mean squared error of the predictive mean.
pub fn rmse(predictions: &RegressionPredictions<'_>) -> Option<f64> {
    mean(errors(predictions).map(|e| e * e)).map(f64::sqrt)
}

/// Mean of prediction minus target: above 0 where predictions are too high.
pub fn mean_error(predictions: &RegressionPredictions<'_>) -> Option<f64> {
    mean(errors(predictions))
}

/// Mean absolute error of the predictive mean.
pub fn mae(predictions: &RegressionPredictions<'_>) -> Option<f64> {
    mean(errors(predictions).map(f64::abs))
}

/// Root of the mean predictive variance: how wide the predictive is, whatever the target.
pub fn sharpness(predictions: &RegressionPredictions<'_>) -> Option<f64> {
    mean(predictive_moments(predictions).variance.into_iter()).map(f64::sqrt)
}

/// Mean log density of the targets under the mixture, by log-sum-exp; minus the NLL.
pub fn log_likelihood(predictions: &RegressionPredictions<'_>) -> Option<f64> {
    mean(log_densities(predictions).into_iter())
}

/// Log density of each target, `[n]`.
pub(super) fn log_densities(predictions: &RegressionPredictions<'_>) -> Vec<f64> {
    let log_particles = (predictions.particles() as f64).ln();
    let mut logs = Vec::with_capacity(predictions.particles());
    let of_row = |(row, y): (usize, &f64)| {
        logs.clear();
        logs.extend(predictions.components(row).map(|(mean, sd)| {
            let z = (y - mean) / sd;
            -0.5 * (z * z + (2.0 * PI).ln()) - sd.ln()
        }));
        let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        largest + logs.iter().map(|l| (l - largest).exp()).sum::<f64>().ln() - log_particles
    };
    predictions.target().iter().enumerate().map(of_row).collect()
}

/// Mean continuous ranked probability score in closed form,
/// `mean_n A(y - m_n, s_n) - 1/2 mean_nm A(m_n - m_m, sqrt(s_n^2 + s_m^2))` with `A(u, s) = 2 s
/// pdf(u/s) + u (2 cdf(u/s) - 1)`; in the unit of the target, the absolute error of a certain point
/// forecast.
pub fn crps(predictions: &RegressionPredictions<'_>) -> Option<f64> {
    mean(crps_of_rows(predictions).into_iter())
}

/// The CRPS of each row, `[n]`.
pub(super) fn crps_of_rows(predictions: &RegressionPredictions<'_>) -> Vec<f64> {
    let particles = predictions.particles() as f64;
    let mut components = Vec::with_capacity(predictions.particles());
    let of_row = |(row, y): (usize, &f64)| {
        components.clear();
        components.extend(predictions.components(row));
        let to_target: f64 = components.iter().map(|(mean, sd)| mean_absolute(y - mean, *sd)).sum();
        let diagonal: f64 = components.iter().map(|(_, sd)| mean_absolute(0.0, SQRT_2 * sd)).sum();
        let mut above = 0.0;
        for (at, (mean, sd)) in components.iter().enumerate() {
            above += components[at + 1..].iter().map(|(m, s)| mean_absolute(mean - m, sd.hypot(*s))).sum::<f64>();
        }
        to_target / particles - 0.5 * (diagonal + 2.0 * above) / (particles * particles)
    };
    predictions.target().iter().enumerate().map(of_row).collect()
}

/// `E|X|` of `X ~ N(u, s^2)`.
fn mean_absolute(u: f64, s: f64) -> f64 {
    let z = u / s;
    2.0 * s * normal_pdf(z) + u * erf(z / SQRT_2)
}

/// The two estimators of the CRPS of an ensemble of point forecasts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct EnsembleCrps {
    /// `mean |x_i - y| - 1/2 mean_ij |x_i - x_j|` over all `M^2` pairs.
    pub nrg: f64,
    /// The pair sum divided by `M (M - 1)` instead, unbiased in M; `None` for one member.
    pub fair: Option<f64>,
}

/// CRPS of an ensemble of point forecasts at one target; `None` without members.
///
/// # Errors
/// A member or target that is not finite.
pub fn ensemble_crps(members: &[f64], y: f64) -> Result<Option<EnsembleCrps>, MetricError> {
    check_finite("member", members)?;
    check_finite("target", &[y])?;
    let m = members.len() as f64;
    let mut sorted = members.to_vec();
    sorted.sort_by(f64::total_cmp);
    // In ascending order each gap between neighbours counts once for every pair around it.
    let around = |(i, pair): (usize, &[f64])| (i + 1) as f64 * (m - (i + 1) as f64) * (pair[1] - pair[0]);
    let half_pairs: f64 = sorted.windows(2).enumerate().map(around).sum();
    let Some(error) = mean(members.iter().map(|x| (x - y).abs())) else {
        return Ok(None);
    };
    let fair = if members.len() > 1 { finite(error - half_pairs / (m * (m - 1.0))) } else { None };
    Ok(finite(error - half_pairs / (m * m)).map(|nrg| EnsembleCrps { nrg, fair }))
}

/// Probability integral transform: the mixture's distribution function at the target, `[n]`;
/// uniform when calibrated.
pub fn pit(predictions: &RegressionPredictions<'_>) -> Vec<f64> {
    predictions
        .target()
        .iter()
        .enumerate()
        .map(|(row, &y)| mixture_cdf(predictions, row, y).0.clamp(0.0, 1.0))
        .collect()
}

/// Counts of PIT values in equal-width bins `(lo, hi]`, the first closed.
///
/// # Errors
/// A number of bins outside `1..=`[`super::MAX_BINS`].
pub fn pit_histogram(pit: &[f64], bins: usize) -> Result<Vec<usize>, MetricError> {
    check_bins(bins)?;
    check_finite("PIT value", pit)?;
    let mut counts = vec![0; bins];
    for &value in pit {
        counts[bin_index(value, bins, BinRule::UpperClosed)] += 1;
    }
    Ok(counts)
}

/// `(cdf, density)` of one row's mixture.
fn mixture_cdf(predictions: &RegressionPredictions<'_>, row: usize, y: f64) -> (f64, f64) {
    let (mut cdf, mut density) = (0.0, 0.0);
    for (mean, sd) in predictions.components(row) {
        let z = (y - mean) / sd;
        cdf += normal_cdf(z);
        density += normal_pdf(z) / sd;
    }
    let particles = predictions.particles() as f64;
    (cdf / particles, density / particles)
}

/// Quantile of one row's mixture. `row` is less than the number of rows.
///
/// Newton steps on the distribution function, replaced by bisection where they leave the bracket,
/// which starts at the smallest and largest quantile of a component.
///
/// # Errors
/// A share outside (0, 1).
pub fn quantile(predictions: &RegressionPredictions<'_>, row: usize, share: f64) -> Result<f64, MetricError> {
    if !(share > 0.0 && share < 1.0) {
        return Err(MetricError::Share { what: "the share of a quantile", value: share });
    }
    let z = solve(share, -40.0, 40.0, |z| (normal_cdf(z), normal_pdf(z)));
    Ok(mixture_quantile(predictions, row, share, z))
}

/// [`quantile`] where the standard normal quantile `z` of the same share is known.
fn mixture_quantile(predictions: &RegressionPredictions<'_>, row: usize, share: f64, z: f64) -> f64 {
    let ends = predictions.components(row).map(|(mean, sd)| mean + z * sd);
    let (lo, hi) = ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), q| (lo.min(q), hi.max(q)));
    solve(share, lo, hi, |y| mixture_cdf(predictions, row, y))
}

/// Root of `cdf = share` inside `[lo, hi]`, to the last digits of `f64`: Newton's method, and a halving of the bracket where a
/// step of Newton's leaves it or is not half of the step before. Between the modes of a mixture Newton's steps can go to and
/// fro for ever.
fn solve(share: f64, mut lo: f64, mut hi: f64, cdf: impl Fn(f64) -> (f64, f64)) -> f64 {
    let mut y = 0.5 * lo + 0.5 * hi;
    let mut step = hi - lo;
    // 200 halvings exhaust any bracket of f64; Newton needs about six.
    for _ in 0..200 {
        let (value, density) = cdf(y);
        match value.total_cmp(&share) {
            Ordering::Less => lo = y,
            Ordering::Greater => hi = y,
            Ordering::Equal => break,
        }
        let newton = y - (value - share) / density;
        let converges = newton > lo && newton < hi && (newton - y).abs() <= 0.5 * step;
        let next = if converges { newton } else { 0.5 * lo + 0.5 * hi };
        step = (next - y).abs();
        y = next;
        if step <= 1e-14 * y.abs().max(hi - lo) || hi <= lo {
            break;
        }
    }
    y
}

/// One central interval of the predictive against the data.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CoverageRow {
    /// Nominal mass of the interval.
    pub level: f64,
    /// Share of targets inside (PICP).
    pub coverage: f64,
    /// Mean width (MPIW), in the unit of the target.
    pub mean_width: Option<f64>,
}

/// Whether a target with this PIT value lies inside the central interval of a level.
pub(crate) fn is_central(pit: f64, level: f64) -> bool {
    (pit - 0.5).abs() <= 0.5 * level
}

/// Share of PIT values inside the central interval of a level; what [`coverage_table`] counts,
/// without its quantiles.
pub(crate) fn coverage_of_pit(pit: &[f64], level: f64) -> f64 {
    let inside = pit.iter().filter(|f| is_central(**f, level)).count();
    inside as f64 / pit.len().max(1) as f64
}

/// Coverage and mean width of the central intervals `[q(1/2 - l/2), q(1/2 + l/2)]`.
///
/// # Errors
/// A level outside (0, 1).
pub fn coverage_table(
    predictions: &RegressionPredictions<'_>,
    levels: &[f64],
) -> Result<Vec<CoverageRow>, MetricError> {
    let pit = pit(predictions);
    let mut table = Vec::with_capacity(levels.len());
    for &level in levels {
        if !(level > 0.0 && level < 1.0) {
            return Err(MetricError::Share { what: "the level of an interval", value: level });
        }
        let (below, above) = (0.5 - 0.5 * level, 0.5 + 0.5 * level);
        let z = solve(above, -40.0, 40.0, |z| (normal_cdf(z), normal_pdf(z)));
        let width = |row| mixture_quantile(predictions, row, above, z) - mixture_quantile(predictions, row, below, -z);
        let mean_width = mean((0..predictions.rows()).map(width));
        table.push(CoverageRow { level, coverage: coverage_of_pit(&pit, level), mean_width });
    }
    Ok(table)
}

/// Distance between nominal and observed shares over a grid of levels.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LevelCalibration {
    /// The pair `(nominal, observed)` of each level.
    pub curve: Vec<(f64, f64)>,
    /// Mean absolute distance.
    pub mean_absolute: Option<f64>,
    /// Root mean squared distance.
    pub root_mean_squared: Option<f64>,
}

impl LevelCalibration {
    fn new(levels: &[f64], observed: impl Fn(f64) -> f64) -> Self {
        Self::of_curve(levels.iter().map(|&level| (level, observed(level))).collect())
    }

    /// From the pairs `(nominal, observed)`.
    pub(super) fn of_curve(curve: Vec<(f64, f64)>) -> Self {
        let distances = || curve.iter().map(|(nominal, observed)| observed - nominal);
        let (mean_absolute, squared) = (mean(distances().map(f64::abs)), mean(distances().map(|d| d * d)));
        Self { mean_absolute, root_mean_squared: squared.map(f64::sqrt), curve }
    }
}

/// `count` levels from 0 to 1, both included.
pub fn level_grid(count: usize) -> Vec<f64> {
    (0..count).map(|i| i as f64 / count.saturating_sub(1).max(1) as f64).collect()
}

/// Share of PIT values `[n]` at or below each level: the calibration of quantiles.
pub fn quantile_calibration(pit: &[f64], levels: &[f64]) -> LevelCalibration {
    let n = pit.len().max(1) as f64;
    LevelCalibration::new(levels, |level| pit.iter().filter(|f| **f <= level).count() as f64 / n)
}

/// Share of PIT values `[n]` inside the central interval of each level: the calibration of intervals.
pub fn interval_calibration(pit: &[f64], levels: &[f64]) -> LevelCalibration {
    LevelCalibration::new(levels, |level| coverage_of_pit(pit, level))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_between_modes_is_found_where_newtons_steps_go_to_and_fro() -> Result<(), MetricError> {
        // Newton's steps from −1.191 and 4.578 lead to each other.
        let mean =
            vec![0.134_942_962_621_884_57, 27.987_783_190_872_94, 3.056_695_820_293_931_4, -11.347_759_375_964_523];
        let mixture = RegressionPredictions::new(4, mean, vec![0.01, 0.1, 1.0, 10.0], vec![0.0])?;
        let share = 0.418_922_558_075_352_8;
        let y = quantile(&mixture, 0, share)?;
        // SciPy: brentq of the mean of norm.cdf.
        assert!((y - 1.823_030_268_677_116_5).abs() < 1e-12, "{y}");
        Ok(())
    }
}
