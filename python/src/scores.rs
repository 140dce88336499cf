//! The metrics as functions of arrays.

use fedstein::metrics::{self, Calibration, ClassPredictions, MetricError, RegressionPredictions};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::arrays::{Floats, classes, reals};
use crate::errors::{DataError, of_metric};
use crate::interruptible::reading;
use crate::kept::{KeptFloats, KeptNumbers};

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

/// What follows from predictions of classes; Ctrl-C does not wait for it.
fn of_classes<T: Send + 'static>(
    py: Python<'_>,
    probabilities: &Floats<'_>,
    labels: &PyReadonlyArray1<'_, i64>,
    work: impl FnOnce(&ClassPredictions<'_>) -> T + Send + 'static,
) -> PyResult<T> {
    let (probabilities, labels) = (KeptFloats::new(probabilities), KeptNumbers::new(labels));
    reading(py, move |here| {
        let (probabilities, labels) = (probabilities.read(here.py)?, labels.read(here.py)?);
        let predictions = classes(&probabilities, &labels)?;
        here.compute(|| work(&predictions))
    })
}

/// What follows from predictions of a regression; Ctrl-C does not wait for it.
fn of_reals<T: Send + 'static>(
    py: Python<'_>,
    mean: &Floats<'_>,
    sd: &Floats<'_>,
    targets: &Floats<'_>,
    work: impl FnOnce(&RegressionPredictions<'_>) -> T + Send + 'static,
) -> PyResult<T> {
    let [mean, sd, targets] = [mean, sd, targets].map(KeptFloats::new);
    reading(py, move |here| {
        let (mean, sd, targets) = (mean.read(here.py)?, sd.read(here.py)?, targets.read(here.py)?);
        let predictions = reals(&mean, &sd, &targets)?;
        here.compute(|| work(&predictions))
    })
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
    let calibration = of_classes(py, &probabilities, &labels, move |predictions| {
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
    let ece = of_classes(py, &probabilities, &labels, move |predictions| metrics::classwise_ece(predictions, bins))?;
    Ok(PyArray1::from_vec(py, ece.map_err(of_metric)?))
}

#[pyfunction]
pub fn brier(py: Python<'_>, probabilities: Floats<'_>, labels: PyReadonlyArray1<'_, i64>) -> PyResult<f64> {
    of_classes(py, &probabilities, &labels, metrics::brier)
}

#[pyfunction]
pub fn nll(py: Python<'_>, probabilities: Floats<'_>, labels: PyReadonlyArray1<'_, i64>) -> PyResult<f64> {
    of_classes(py, &probabilities, &labels, |predictions| metrics::nll(predictions).value)
}

/// Brier score, uncertainty, resolution, reliability and the part within the bins, of the top label.
#[pyfunction]
pub fn brier_parts(
    py: Python<'_>,
    probabilities: Floats<'_>,
    labels: PyReadonlyArray1<'_, i64>,
    bins: usize,
) -> PyResult<(f64, f64, f64, f64, f64)> {
    let parts = of_classes(py, &probabilities, &labels, move |predictions| {
        let top = predictions.top_label();
        metrics::brier_decomposition(&top.confidence, &top.correct, bins)
    })?
    .map_err(of_metric)?;
    let parts = parts.ok_or_else(|| DataError::new_err("there are no rows to score"))?;
    Ok((parts.brier, parts.uncertainty, parts.resolution, parts.reliability, parts.within))
}

#[pyfunction]
pub fn crps(py: Python<'_>, mean: Floats<'_>, sd: Floats<'_>, targets: Floats<'_>) -> PyResult<f64> {
    Ok(number(of_reals(py, &mean, &sd, &targets, metrics::crps)?))
}

#[pyfunction]
pub fn pit<'py>(py: Python<'py>, mean: Floats<'py>, sd: Floats<'py>, targets: Floats<'py>) -> PyResult<Column<'py>> {
    Ok(PyArray1::from_vec(py, of_reals(py, &mean, &sd, &targets, metrics::pit)?))
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
    let table = move |predictions: &RegressionPredictions<'_>| metrics::coverage_table(predictions, &levels);
    let table = of_reals(py, &mean, &sd, &targets, table)?.map_err(of_metric)?;
    let width = table.iter().map(|row| number(row.mean_width));
    Ok((PyArray1::from_iter(py, table.iter().map(|row| row.coverage)), PyArray1::from_iter(py, width)))
}
