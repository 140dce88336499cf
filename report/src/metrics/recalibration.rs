//! Logistic recalibration of two classes: the calibration slope, the calibration intercept, and calibration in the large.
//!
//! Source: Cox 1958; Van Calster et al. 2019 for the names. The model is `logit P(y = 1) = a + b l` of the rows'
//! `l = logit p`, fitted by maximum likelihood without a penalty. The slope is b, the intercept a; calibration in the
//! large is a of the model with b = 1. A calibrated model has b = 1 and a = 0. Intervals are Wald's, from the inverse I⁻¹
//! of the observed information. Of rows with m clusters they are from m/(m − 1) I⁻¹ (Σ_g s_g s_gᵀ) I⁻¹, where s_g is the sum of
//! the rows' scores, the gradients of their log-likelihoods, in cluster g (Liang and Zeger 1986), and at least those of
//! independent rows.

use serde::{Serialize, Serializer};

use super::classification::PROBABILITY_FLOOR;
use super::clusters::Clusters;
use super::interval::Interval;
use super::normal::two_sided_quantile;
use super::predictions::ClassPredictions;

/// The most steps of Newton's method; a fit takes five to ten.
const STEPS: usize = 100;
/// The most halvings of a step that does not raise the likelihood.
const HALVINGS: usize = 40;
/// The fit ends where Newton's decrement, which is twice the likelihood that is left to gain, is below this share of the
/// number of rows.
const DECREMENT: f64 = 1e-20;
/// Log odds that differ by less than this, and by less than this share of them, are one probability: numbers of 32 bits do
/// not tell them apart.
const SAME: f64 = 1e-6;
/// The largest standard error that calibration in the large may have. Log odds lie between those of 1e-12 and of 1 − 1e-12, so
/// that no two differ by more than 56, and no probability can be wrong by more: an interval of ±196 knows nothing. The information
/// of all rows together is then below 1e-4, about that of a single row with a probability of 1e-4.
const LARGEST_ERROR: f64 = 100.0;

/// A maximum-likelihood estimate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Its standard error.
    pub standard_error: f64,
}

impl Estimate {
    /// Wald's interval.
    pub fn interval(&self, level: f64) -> Interval {
        let half = two_sided_quantile(level) * self.standard_error;
        Interval { lo: self.value - half, hi: self.value + half }
    }
}

/// The recalibration of two classes. What has no finite estimate is `None`, and `missing` and `missing_in_the_large` say why.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Recalibration {
    /// The slope b: below 1 the probabilities are too extreme, above 1 not extreme enough.
    #[serde(serialize_with = "value")]
    pub slope: Option<Estimate>,
    /// The intercept a of the same fit.
    #[serde(serialize_with = "value")]
    pub intercept: Option<Estimate>,
    /// The intercept with the slope 1: above 0 the probabilities of class 1 are too low on average.
    #[serde(serialize_with = "value")]
    pub in_the_large: Option<Estimate>,
    /// Rows with a probability below 1e-12 of either class, which are taken as 1e-12.
    pub floored: usize,
    /// The reason why slope and intercept have no estimate.
    pub missing: Option<NoEstimate>,
    /// The reason why calibration in the large has none.
    pub missing_in_the_large: Option<NoEstimate>,
}

/// In `report.json` an estimate is a number with its standard error and its 95 % interval.
fn value<S: Serializer>(of: &Option<Estimate>, serializer: S) -> Result<S::Ok, S::Error> {
    let shown = |of: &Estimate| {
        let Interval { lo, hi } = of.interval(0.95);
        [("value", of.value), ("standard_error", of.standard_error), ("lo", lo), ("hi", hi)]
    };
    match of {
        Some(of) => serializer.collect_map(shown(of)),
        None => serializer.serialize_none(),
    }
}

/// The reason why the calibration slope or an intercept has no estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoEstimate {
    /// All rows have the same class.
    OneClass,
    /// All rows have the same probability.
    OneProbability,
    /// A threshold separates the classes: the slope is infinite.
    Separable,
    /// Very different intercepts fit the rows alike, of which the standard error is beyond all bounds.
    Flat,
    /// The fit did not converge.
    NoConvergence,
    /// All rows are of one cluster.
    OneCluster,
}

impl NoEstimate {
    /// The reason as a sentence.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::OneClass => {
                "All rows have the same class, so that the calibration slope and intercepts have no finite value."
            }
            Self::OneProbability => "All rows have the same probability, so that there is no calibration slope.",
            Self::Separable => {
                "A threshold separates the rows of the two classes, so that the calibration slope is infinite; more rows \
                 would give it a value."
            }
            Self::Flat => {
                "The log odds of the rows lie so far apart that shifts of very different sizes fit these rows alike, so that \
                 calibration in the large has no value."
            }
            Self::NoConvergence => {
                "The fit of the calibration slope, or of calibration in the large, did not converge."
            }
            Self::OneCluster => {
                "All rows are of one cluster, so that nothing is known of the sampling of calibration slope and intercepts."
            }
        }
    }
}

/// `ln(p_1 / p_0)` of two probabilities, each at least 1e-12.
fn logit(row: &[f64]) -> f64 {
    row[1].max(PROBABILITY_FLOOR).ln() - row[0].max(PROBABILITY_FLOOR).ln()
}

impl Recalibration {
    /// The recalibration of p(y = 1); `None` unless there are two classes.
    pub fn of(predictions: &ClassPredictions<'_>) -> Option<Self> {
        let rows = predictions.rows().zip(predictions.labels().iter().copied());
        (predictions.classes() == 2).then(|| Self::of_rows(rows, predictions.clusters()))
    }

    /// The same of rows of two probabilities with their labels, and their clusters.
    pub(super) fn of_rows<'a>(rows: impl Iterator<Item = (&'a [f64], usize)>, clusters: Option<&Clusters>) -> Self {
        let mut floored = 0;
        let of_row = |(row, label): (&[f64], usize)| {
            floored += usize::from(row.iter().any(|p| *p < PROBABILITY_FLOOR));
            Row { logit: logit(row), positive: label == 1 }
        };
        let rows: Vec<Row> = rows.map(of_row).collect();
        let missing = match clusters {
            Some(clusters) if clusters.count() < 2 => Some(NoEstimate::OneCluster),
            _ => missing(&rows),
        };
        let in_the_large = match missing {
            Some(reason @ (NoEstimate::OneClass | NoEstimate::OneCluster)) => Err(reason),
            _ => in_the_large(&rows, clusters),
        };
        let both = if missing.is_none() { fit(&rows, true, clusters) } else { None };
        Self {
            slope: both.map(|[_, slope]| slope),
            intercept: both.map(|[intercept, _]| intercept),
            in_the_large: in_the_large.ok(),
            floored,
            missing: missing.or_else(|| both.is_none().then_some(NoEstimate::NoConvergence)),
            missing_in_the_large: in_the_large.err(),
        }
    }
}

/// A row of the fit.
#[derive(Debug, Clone, Copy)]
struct Row {
    logit: f64,
    positive: bool,
}

/// The reason why the likelihood has no maximum (Albert and Anderson 1984, for one covariate).
fn missing(rows: &[Row]) -> Option<NoEstimate> {
    let range = |positive: bool| {
        let of = rows.iter().filter(|row| row.positive == positive).map(|row| row.logit);
        of.fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), logit| (lo.min(logit), hi.max(logit)))
    };
    let (negative, positive) = (range(false), range(true));
    match () {
        () if negative.0 > negative.1 || positive.0 > positive.1 => Some(NoEstimate::OneClass),
        () if are_same(negative.0.min(positive.0), negative.1.max(positive.1)) => Some(NoEstimate::OneProbability),
        () if negative.1 <= positive.0 || positive.1 <= negative.0 => Some(NoEstimate::Separable),
        () => None,
    }
}

fn are_same(lo: f64, hi: f64) -> bool {
    hi - lo <= SAME * (1.0 + hi.abs())
}

/// Sums over rows at an intercept and a slope.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    /// Log-likelihood.
    likelihood: f64,
    /// Its gradient.
    gradient: [f64; 2],
    /// Minus its second derivatives: of a twice, of a and b, of b twice.
    information: [f64; 3],
}

impl Sums {
    fn of(rows: &[Row], [a, b]: [f64; 2]) -> Self {
        let mut sums = Self::default();
        for &Row { logit, positive } in rows {
            let eta = a + b * logit;
            let (p, q, small) = probabilities(eta);
            let (residual, against) = if positive { (q, -eta) } else { (-p, eta) };
            sums.likelihood -= against.max(0.0) + small.ln_1p();
            let weight = p * q;
            sums.gradient[0] += residual;
            sums.gradient[1] += residual * logit;
            sums.information[0] += weight;
            sums.information[1] += weight * logit;
            sums.information[2] += weight * logit * logit;
        }
        sums
    }

    /// The inverse of the information, of the intercept alone with a fixed slope; `None` where it is singular.
    fn covariance(&self, slope: bool) -> Option<[f64; 3]> {
        let [aa, ab, bb] = self.information;
        if !slope {
            return (aa > 0.0 && (1.0 / aa).is_finite()).then(|| [1.0 / aa, 0.0, 0.0]);
        }
        let determinant = aa * bb - ab * ab;
        let inverse = [bb / determinant, -ab / determinant, aa / determinant];
        (determinant > 0.0 && inverse.iter().all(|v| v.is_finite())).then_some(inverse)
    }
}

/// The logistic function of a number and of its negative, and exp(−|number|).
fn probabilities(eta: f64) -> (f64, f64, f64) {
    // exp of a number at most 0: neither overflow nor cancellation.
    let small = (-eta.abs()).exp();
    let (p, q) = if eta > 0.0 { (1.0, small) } else { (small, 1.0) };
    (p / (1.0 + small), q / (1.0 + small), small)
}

/// The variances of intercept and slope by clusters, from the inverse of the information; `None` of one cluster.
fn variances_by_clusters(
    rows: &[Row],
    [a, b]: [f64; 2],
    [aa, ab, bb]: [f64; 3],
    clusters: &Clusters,
) -> Option<[f64; 2]> {
    let mut scores = vec![[0.0; 2]; clusters.count()];
    for (&Row { logit, positive }, &cluster) in rows.iter().zip(clusters.of_rows()) {
        let (p, q, _) = probabilities(a + b * logit);
        let residual = if positive { q } else { -p };
        scores[cluster][0] += residual;
        scores[cluster][1] += residual * logit;
    }
    let m = clusters.count() as f64;
    let of = |[on_a, on_b]: [f64; 2]| {
        let squares = scores.iter().map(|score| (on_a * score[0] + on_b * score[1]).powi(2));
        m / (m - 1.0) * squares.sum::<f64>()
    };
    (clusters.count() > 1).then(|| [of([aa, ab]), of([ab, bb])])
}

/// Intercept and slope of the highest likelihood by Newton's method, the slope 1 where it is not fitted; `None` where
/// the method does not converge.
fn fit(rows: &[Row], slope: bool, clusters: Option<&Clusters>) -> Option<[Estimate; 2]> {
    let mut at = [0.0, 1.0];
    let mut sums = Sums::of(rows, at);
    for _ in 0..STEPS {
        let [aa, ab, bb] = sums.covariance(slope)?;
        let [a, b] = sums.gradient;
        let step = [aa * a + ab * b, ab * a + bb * b];
        let decrement = step[0] * a + step[1] * b;
        if decrement <= DECREMENT * rows.len() as f64 {
            let of = |value: f64, variance: f64| Estimate { value, standard_error: variance.sqrt() };
            let [of_intercept, of_slope] = match clusters {
                None => [aa, bb],
                Some(clusters) => {
                    let [of_intercept, of_slope] = variances_by_clusters(rows, at, [aa, ab, bb], clusters)?;
                    [of_intercept.max(aa), of_slope.max(bb)]
                }
            };
            return Some([of(at[0], of_intercept), of(at[1], of_slope)]);
        }
        (at, sums) = uphill(rows, at, step, sums.likelihood)?;
    }
    None
}

/// Calibration in the large of rows of both classes, or the reason why they do not tell it.
fn in_the_large(rows: &[Row], clusters: Option<&Clusters>) -> Result<Estimate, NoEstimate> {
    let [intercept, _] = fit(rows, false, clusters).ok_or(NoEstimate::NoConvergence)?;
    if intercept.standard_error <= LARGEST_ERROR { Ok(intercept) } else { Err(NoEstimate::Flat) }
}

/// The first of the step, its half, its quarter, ..., that does not lower the likelihood.
fn uphill(rows: &[Row], at: [f64; 2], step: [f64; 2], likelihood: f64) -> Option<([f64; 2], Sums)> {
    let mut share = 1.0;
    for _ in 0..HALVINGS {
        let next = [at[0] + share * step[0], at[1] + share * step[1]];
        let sums = Sums::of(rows, next);
        // Close to the maximum the gain is below the rounding of the sum.
        if sums.likelihood >= likelihood - 1e-12 * likelihood.abs() {
            return Some((next, sums));
        }
        share *= 0.5;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn predictions(labels: &[usize], p: &[f64]) -> ClassPredictions<'static> {
        let probabilities = p.iter().flat_map(|p| [1.0 - p, *p]).collect();
        ClassPredictions::new(labels.to_vec(), 2, probabilities).unwrap()
    }

    fn of(labels: &[usize], p: &[f64]) -> Recalibration {
        Recalibration::of(&predictions(labels, p)).unwrap()
    }

    #[test]
    fn two_probabilities_have_a_closed_form() {
        // Among the rows with p = 0.2 a share of 1/4 is positive, among those with p = 0.8 one of 3/5: a saturated model,
        // whose fitted logits are those of the shares, and whose variances are 1/count summed over the four cells.
        let labels = [[1, 0, 0, 0].as_slice(), &[1, 1, 1, 0, 0]].concat();
        let got = of(&labels, &[[0.2; 4].as_slice(), &[0.8; 5]].concat());
        let (low, high) = (-(3.0_f64.ln()), 1.5_f64.ln());
        let x = 4.0_f64.ln();
        let (slope, intercept) = (got.slope.unwrap(), got.intercept.unwrap());
        assert!((slope.value - (high - low) / (2.0 * x)).abs() < 1e-12, "{slope:?}");
        assert!((intercept.value - 0.5 * (high + low)).abs() < 1e-12, "{intercept:?}");
        let variance: f64 = 1.0 + 1.0 / 3.0 + 1.0 / 3.0 + 0.5;
        assert!((slope.standard_error - variance.sqrt() / (2.0 * x)).abs() < 1e-12, "{slope:?}");
        assert!((intercept.standard_error - 0.5 * variance.sqrt()).abs() < 1e-12, "{intercept:?}");
        assert_eq!((got.missing, got.floored), (None, 0));
    }

    #[test]
    fn what_has_no_maximum_is_said() {
        let one_class = of(&[1, 1, 1], &[0.2, 0.5, 0.9]);
        assert_eq!(
            (one_class.missing, one_class.slope, one_class.in_the_large),
            (Some(NoEstimate::OneClass), None, None)
        );
        assert_eq!(one_class.missing_in_the_large, one_class.missing);
        let separable = of(&[0, 0, 1, 1], &[0.1, 0.3, 0.6, 0.9]);
        assert_eq!((separable.missing, separable.slope), (Some(NoEstimate::Separable), None));
        assert!(separable.in_the_large.is_some() && separable.missing_in_the_large.is_none());
        // Reversed, and separable but for one probability that both classes have.
        assert_eq!(of(&[1, 1, 0, 0], &[0.1, 0.3, 0.6, 0.9]).missing, Some(NoEstimate::Separable));
        assert_eq!(of(&[0, 0, 1, 1], &[0.1, 0.5, 0.5, 0.9]).missing, Some(NoEstimate::Separable));
        let one = of(&[0, 1, 0, 0], &[0.5; 4]);
        assert_eq!(one.missing, Some(NoEstimate::OneProbability));
        // The intercept of a constant is the logit of the share less that of the constant.
        assert!((one.in_the_large.unwrap().value + 3.0_f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn neighbouring_numbers_of_32_bits_are_one_probability() {
        let (below, above) = (0.01_f32, f32::from_bits(0.01_f32.to_bits() + 1));
        let p: Vec<f64> = (0..500).map(|row| f64::from(if row % 3 == 0 { below } else { above })).collect();
        let labels: Vec<usize> = (0..500).map(|row| usize::from(row % 7 == 0)).collect();
        let got = of(&labels, &p);
        assert_eq!((got.missing, got.missing_in_the_large), (Some(NoEstimate::OneProbability), None));
        // A hundred times as far apart they have a slope, of which little is known.
        let apart: Vec<f64> = p.iter().map(|p| if *p == f64::from(below) { *p } else { 0.01 + 1e-6 }).collect();
        let slope = of(&labels, &apart).slope.unwrap();
        assert!(slope.standard_error > 1e3 && slope.value.is_finite(), "{slope:?}");
    }

    #[test]
    fn probabilities_of_zero_and_one_are_floored_and_counted() {
        let got = of(&[0, 1, 1, 0, 1, 0], &[0.0, 1.0, 0.0, 0.4, 0.7, 0.6]);
        assert_eq!((got.floored, got.missing), (3, None));
        assert!(got.slope.is_some_and(|slope| slope.value.is_finite() && slope.standard_error.is_finite()));
        assert!(got.in_the_large.is_some_and(|large| large.value.is_finite() && large.standard_error < 10.0));
    }

    #[test]
    fn calibration_in_the_large_has_no_value_where_its_likelihood_is_flat() {
        // Ten rows with the probability p, and ten with 1 − p: the intercept is 0 by symmetry, and its standard error
        // 1/sqrt(20 p (1 − p)), which is 71 for 1e-5 and 224 for 1e-6.
        let ten_of_each = |labels: [usize; 2], p: f64| {
            let rows = |of: [f64; 2]| of.into_iter().flat_map(|of| [of; 10]).collect::<Vec<_>>();
            let labels: Vec<usize> = labels.into_iter().flat_map(|label| [label; 10]).collect();
            of(&labels, &rows([p, 1.0 - p]))
        };
        let known = ten_of_each([0, 1], 1e-5);
        let large = known.in_the_large.unwrap();
        assert!(large.value.abs() < 1e-6, "{large:?}");
        assert!((large.standard_error * (20.0 * 1e-5 * (1.0 - 1e-5_f64)).sqrt() - 1.0).abs() < 1e-6, "{large:?}");
        assert_eq!((known.missing, known.missing_in_the_large), (Some(NoEstimate::Separable), None));
        // All right or all wrong, with probabilities that are near the floor or below it.
        for (labels, p) in [([0, 1], 1e-6), ([0, 1], 0.0), ([1, 0], 0.0)] {
            let flat = ten_of_each(labels, p);
            assert_eq!(
                (flat.in_the_large, flat.missing_in_the_large),
                (None, Some(NoEstimate::Flat)),
                "{labels:?} {p}"
            );
            assert_eq!(flat.missing, Some(NoEstimate::Separable));
        }
        // A row in between that any large shift suits does not tell it; one of each class does, ln(3/2) of 0.4.
        assert_eq!(of(&[0, 0, 1, 1, 1], &[0.0, 0.0, 1.0, 1.0, 0.4]).missing_in_the_large, Some(NoEstimate::Flat));
        let told = of(&[0, 0, 1, 1, 1, 0], &[0.0, 0.0, 1.0, 1.0, 0.4, 0.4]).in_the_large.unwrap();
        assert!(
            (told.value - 1.5_f64.ln()).abs() < 1e-9 && (told.standard_error - 2.0_f64.sqrt()).abs() < 1e-6,
            "{told:?}"
        );
    }

    /// Rows of five clusters.
    const P: [f64; 15] = [0.1, 0.2, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7, 0.8, 0.9, 0.25, 0.65, 0.15];
    const LABELS: [usize; 15] = [0, 0, 0, 0, 0, 1, 1, 0, 1, 1, 1, 1, 0, 0, 1];
    const CLUSTERS: [usize; 15] = [0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 4];

    #[test]
    fn variances_by_clusters_are_those_of_statsmodels() {
        let rows: Vec<Row> =
            P.iter().zip(LABELS).map(|(p, label)| Row { logit: logit(&[1.0 - p, *p]), positive: label == 1 }).collect();
        let clusters = Clusters::new(CLUSTERS);
        let of = |slope: bool| {
            let [a, b] = fit(&rows, slope, None).unwrap();
            let at = [a.value, b.value];
            let covariance = Sums::of(&rows, at).covariance(slope).unwrap();
            (at, variances_by_clusters(&rows, at, covariance, &clusters).unwrap().map(f64::sqrt))
        };
        // GLM(y, X, family=Binomial()).fit(cov_type="cluster", cov_kwds={"groups": g, "use_correction": False}) of statsmodels
        // 0.15, its standard errors times sqrt(5 / 4); of the last with offset= in the place of the slope.
        let (([a, b], [of_a, of_b]), ([large, _], [of_large, _])) = (of(true), of(false));
        for (got, want) in [
            (a, 0.049_328_469_603),
            (of_a, 0.592_125_322_827),
            (b, 1.094_920_932_871),
            (of_b, 0.845_728_665_402),
            (large, 0.034_270_179_983),
            (of_large, 0.629_465_085_035),
        ] {
            assert!((got - want).abs() < 1e-10, "{got} {want}");
        }
    }

    #[test]
    fn clusters_never_make_an_interval_narrower_and_one_alone_has_none() {
        let of = |clusters: Option<Clusters>| {
            let of = Recalibration::of(&predictions(&LABELS, &P).with_clusters(clusters).unwrap()).unwrap();
            (of.slope.map(|of| of.standard_error), of.in_the_large.map(|of| of.standard_error), of.missing)
        };
        let (slope, large, _) = of(None);
        let (clustered, clustered_large, _) = of(Some(Clusters::new(CLUSTERS)));
        assert!(clustered >= slope && clustered_large >= large, "{clustered:?} {slope:?}");
        // Rows that balance in their clusters tell no more than independent ones.
        let balanced = of(Some(Clusters::new([0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4])));
        assert!(balanced.0 >= slope && balanced.1 >= large, "{balanced:?} {slope:?}");
        assert_eq!(of(Some(Clusters::new([7; 15]))), (None, None, Some(NoEstimate::OneCluster)));
    }

    #[test]
    fn other_numbers_of_classes_have_no_recalibration() {
        let three = ClassPredictions::new(vec![0], 3, vec![0.2, 0.3, 0.5]).unwrap();
        assert_eq!(Recalibration::of(&three), None);
    }
}
