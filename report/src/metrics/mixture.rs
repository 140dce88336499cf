//! Checked predictions of a regression: a mixture of normals and a target per row.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::clusters::Clusters;
use super::error::{MetricError, check_finite, check_length};

/// Mean and standard deviation that bring a standardised target back: `y = mean + sd * z`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Scale {
    /// Mean of the training targets.
    pub mean: f64,
    /// Standard deviation of the training targets, greater than 0.
    pub sd: f64,
}

impl Scale {
    /// The scale of targets that were never standardised.
    pub const IDENTITY: Self = Self { mean: 0.0, sd: 1.0 };

    /// A standardised target or mean on the scale of the data.
    pub fn value(&self, z: f64) -> f64 {
        self.mean + self.sd * z
    }

    /// The precision on the scale of the data of a standardised target.
    pub fn precision(&self, precision: f64) -> f64 {
        precision / self.sd / self.sd
    }
}

/// Equal-weight mixture of normals per row, `p(y|x) = (1/N) sum_n N(y; mean_n, 1/precision_n)`,
/// with the true targets. The arrays are its own, or borrowed for `'a`.
#[derive(Debug, Clone, PartialEq)]
pub struct RegressionPredictions<'a> {
    particles: usize,
    rows: usize,
    mean: Cow<'a, [f64]>,
    precision: Cow<'a, [f64]>,
    target: Cow<'a, [f64]>,
    clusters: Option<Clusters>,
}

impl RegressionPredictions<'static> {
    /// Checks and keeps the predictions of `target.len()` rows.
    ///
    /// # Arguments
    /// * `mean`, `precision`: `[particles, n]`, row-major; a precision is an inverse variance
    /// * `target`: `[n]`
    ///
    /// # Errors
    /// A mean or target that is not finite, a precision that is not finite and positive, lengths
    /// that do not fit.
    pub fn new(particles: usize, mean: Vec<f64>, precision: Vec<f64>, target: Vec<f64>) -> Result<Self, MetricError> {
        Self::of(particles, mean, precision, target)
    }

    /// The predictions, on the scale of the data, behind a network's outputs: a mean and the logarithm of a precision per
    /// row, of the standardised target.
    ///
    /// # Arguments
    /// * `outputs`: `[particles, n, 2]`, row-major
    /// * `scale`: that of the standardised target
    /// * `target`: `[n]`, on the scale of the data
    ///
    /// # Errors
    /// As [`RegressionPredictions::new`]; a standard deviation that is not finite and positive.
    pub fn from_outputs(
        particles: usize,
        outputs: &[f32],
        scale: Scale,
        target: Vec<f64>,
    ) -> Result<Self, MetricError> {
        if !(scale.sd.is_finite() && scale.sd > 0.0) {
            return Err(MetricError::NotPositive { what: "scale", index: 0, value: scale.sd });
        }
        let mean = outputs.iter().step_by(2).map(|mean| scale.value(f64::from(*mean))).collect();
        let precision = outputs.iter().skip(1).step_by(2).map(|log| scale.precision(f64::from(*log).exp())).collect();
        Self::new(particles, mean, precision, target)
    }
}

impl<'a> RegressionPredictions<'a> {
    /// As [`RegressionPredictions::new`], of arrays that may be borrowed.
    ///
    /// # Errors
    /// As [`RegressionPredictions::new`].
    pub fn of(
        particles: usize,
        mean: impl Into<Cow<'a, [f64]>>,
        precision: impl Into<Cow<'a, [f64]>>,
        target: impl Into<Cow<'a, [f64]>>,
    ) -> Result<Self, MetricError> {
        let (mean, precision, target) = (mean.into(), precision.into(), target.into());
        let rows = target.len();
        if particles == 0 {
            return Err(MetricError::NoParticles);
        }
        if rows == 0 {
            return Err(MetricError::NoRows);
        }
        check_length("means", mean.len(), particles * rows)?;
        check_length("precisions", precision.len(), particles * rows)?;
        check_finite("mean", &mean)?;
        check_finite("target", &target)?;
        if let Some(index) = precision.iter().position(|&v| !(v.is_finite() && v > 0.0)) {
            return Err(MetricError::NotPositive { what: "precision", index, value: precision[index] });
        }
        Ok(Self { particles, rows, mean, precision, target, clusters: None })
    }

    /// The same with rows that belong together, such as the visits of one patient: intervals and verdicts then count clusters
    /// and not rows. Clusters of one row each are independent rows.
    ///
    /// # Errors
    /// Another number of rows.
    pub fn with_clusters(self, clusters: impl Into<Option<Clusters>>) -> Result<Self, MetricError> {
        let clusters = clusters.into();
        check_length("clusters", clusters.as_ref().map_or(self.rows(), Clusters::rows), self.rows())?;
        Ok(Self { clusters: clusters.filter(|of| of.count() < of.rows()), ..self })
    }

    /// The predictions of some of the rows, in this order; each is less than `n`.
    ///
    /// # Errors
    /// There are no rows.
    pub(crate) fn select(&self, rows: &[usize]) -> Result<RegressionPredictions<'static>, MetricError> {
        let of = |values: &[f64]| -> Vec<f64> {
            values.chunks_exact(self.rows).flat_map(|of_particle| rows.iter().map(|&row| of_particle[row])).collect()
        };
        let clusters = self.clusters().map(|clusters| clusters.select(rows));
        RegressionPredictions::new(self.particles, of(&self.mean), of(&self.precision), of(&self.target))?
            .with_clusters(clusters)
    }

    /// The clusters of the rows; `None` where rows are independent.
    pub fn clusters(&self) -> Option<&Clusters> {
        self.clusters.as_ref()
    }

    /// Number of particles `N`, at least 1.
    pub fn particles(&self) -> usize {
        self.particles
    }

    /// Number of rows `n`, at least 1.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// True targets, `[n]`.
    pub fn target(&self) -> &[f64] {
        &self.target
    }

    /// Means, `[N, n]` row-major.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// Precisions (inverse variances), `[N, n]` row-major.
    pub fn precision(&self) -> &[f64] {
        &self.precision
    }

    /// `(mean, standard deviation)` of every particle on one row.
    pub fn components(&self, row: usize) -> impl Iterator<Item = (f64, f64)> + Clone + '_ {
        (0..self.particles).map(move |particle| {
            let at = particle * self.rows + row;
            (self.mean[at], self.precision[at].recip().sqrt())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_means_and_logarithms_of_precisions() {
        let outputs = [1.0, 0.0, 2.0, 1.0, 3.0, -1.0, 4.0, 0.5];
        let target = vec![0.1, 0.7];
        let got = RegressionPredictions::from_outputs(2, &outputs, Scale::IDENTITY, target.clone()).unwrap();
        assert_eq!(got.mean(), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(got.precision(), [1.0, 1.0_f64.exp(), (-1.0_f64).exp(), 0.5_f64.exp()]);
        let scale = Scale { mean: 5.0, sd: 2.0 };
        let got = RegressionPredictions::from_outputs(2, &outputs, scale, target.clone()).unwrap();
        assert_eq!((got.mean(), got.target()), (&[7.0, 9.0, 11.0, 13.0][..], &target[..]));
        assert_eq!(got.precision()[0], 0.25);
        for sd in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let wrong = RegressionPredictions::from_outputs(2, &outputs, Scale { mean: 0.0, sd }, target.clone());
            assert!(matches!(wrong, Err(MetricError::NotPositive { what: "scale", .. })), "{sd}");
        }
    }

    #[test]
    fn a_precision_of_zero_is_refused() {
        let zero = RegressionPredictions::new(1, vec![0.0], vec![0.0], vec![0.0]);
        assert!(matches!(zero, Err(MetricError::NotPositive { index: 0, .. })));
    }
}
