//! The metrics as functions of arrays.

use fedstein::metrics::{self, Calibration, MetricError};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::arrays::{Floats, classes, reals};
use crate::errors::{DataError, of_metric};
use crate::pool::detached;

/// One number for each row, bin, class or level.
type Column<'py> = Bound<'py, PyArray1<f64>>;

/// ECE, RMSCE and MCE.
type Errors = (f64, f64, f64);

/// `lo`, `hi`, rows, accuracy and confidence of each bin, and the errors.
type Binned<'py> = (Column<'py>, Column<'py>, Bound<'py, PyArray1<i64>>, Column<'py>, Column<'py>, Errors);

/// A measure of bins of confidence.
type Binning = fn(&[f64], &[bool], usize) -> Result<Calibration, MetricError>;

fn number(value: Option<f64>) -> f64 {
    value.unwrap_or(f64::NAN)
}

#[pyfunction]
#[allow(clippy::cast_possible_wrap, reason = "numbers of rows")]
pub fn bins<'py>(
    py: Python<'py>,
    probabilities: Floats<'py>,
    labels: PyReadonlyArray1<'py, i64>,
    bins: usize,
    binning: &str,
) -> PyResult<Binned<'py>> {
    let by: Binning = match binning {
        "width" => metrics::equal_width,
        "mass" => metrics::equal_mass,
        other => {
            let message = format!("binning is \"{other}\"; it must be \"width\" or \"mass\"");
            return Err(DataError::new_err(message));
        }
    };
    let predictions = classes(&probabilities, &labels)?;
    let calibration = detached(py, || {
        let top = predictions.top_label();
        by(&top.confidence, &top.correct, bins)
    })?
    .map_err(of_metric)?;
    let column = |of: fn(&metrics::Bin) -> f64| PyArray1::from_iter(py, calibration.bins().iter().map(of));
    let rows = PyArray1::from_iter(py, calibration.bins().iter().map(|bin| bin.n as i64));
    let errors = (number(calibration.ece()), number(calibration.rmsce()), number(calibration.mce()));
    let (accuracy, confidence) = (column(|bin| number(bin.accuracy)), column(|bin| number(bin.confidence)));
    Ok((column(|bin| bin.lo), column(|bin| bin.hi), rows, accuracy, confidence, errors))
}

#[pyfunction]
pub fn classwise_ece<'py>(
    py: Python<'py>,
    probabilities: Floats<'py>,
    labels: PyReadonlyArray1<'py, i64>,
    bins: usize,
) -> PyResult<Column<'py>> {
    let predictions = classes(&probabilities, &labels)?;
    let ece = detached(py, || metrics::classwise_ece(&predictions, bins))?.map_err(of_metric)?;
    Ok(PyArray1::from_vec(py, ece))
}

#[pyfunction]
pub fn brier(py: Python<'_>, probabilities: Floats<'_>, labels: PyReadonlyArray1<'_, i64>) -> PyResult<f64> {
    let predictions = classes(&probabilities, &labels)?;
    detached(py, || metrics::brier(&predictions))
}

#[pyfunction]
pub fn nll(py: Python<'_>, probabilities: Floats<'_>, labels: PyReadonlyArray1<'_, i64>) -> PyResult<f64> {
    let predictions = classes(&probabilities, &labels)?;
    detached(py, || metrics::nll(&predictions).value)
}

/// Brier score, uncertainty, resolution, reliability and the part within the bins, of the top label.
#[pyfunction]
pub fn brier_parts(
    py: Python<'_>,
    probabilities: Floats<'_>,
    labels: PyReadonlyArray1<'_, i64>,
    bins: usize,
) -> PyResult<(f64, f64, f64, f64, f64)> {
    let predictions = classes(&probabilities, &labels)?;
    let parts = detached(py, || {
        let top = predictions.top_label();
        metrics::brier_decomposition(&top.confidence, &top.correct, bins)
    })?
    .map_err(of_metric)?;
    let parts = parts.ok_or_else(|| DataError::new_err("there are no rows to score"))?;
    Ok((parts.brier, parts.uncertainty, parts.resolution, parts.reliability, parts.within))
}

#[pyfunction]
pub fn crps(py: Python<'_>, mean: Floats<'_>, sd: Floats<'_>, targets: Floats<'_>) -> PyResult<f64> {
    let predictions = reals(&mean, &sd, &targets)?;
    Ok(number(detached(py, || metrics::crps(&predictions))?))
}

#[pyfunction]
pub fn pit<'py>(py: Python<'py>, mean: Floats<'py>, sd: Floats<'py>, targets: Floats<'py>) -> PyResult<Column<'py>> {
    let predictions = reals(&mean, &sd, &targets)?;
    Ok(PyArray1::from_vec(py, detached(py, || metrics::pit(&predictions))?))
}

/// The share of targets inside, and the mean width, of the central interval of each level.
#[pyfunction]
pub fn coverage<'py>(
    py: Python<'py>,
    mean: Floats<'py>,
    sd: Floats<'py>,
    targets: Floats<'py>,
    levels: Vec<f64>,
) -> PyResult<(Column<'py>, Column<'py>)> {
    let predictions = reals(&mean, &sd, &targets)?;
    let table = detached(py, || metrics::coverage_table(&predictions, &levels))?.map_err(of_metric)?;
    let width = table.iter().map(|row| number(row.mean_width));
    Ok((PyArray1::from_iter(py, table.iter().map(|row| row.coverage)), PyArray1::from_iter(py, width)))
}
