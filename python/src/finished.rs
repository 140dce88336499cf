//! A finished run, from its directory.

use std::path::PathBuf;

use fedstein::backend::{Backend, OnBackend, dispatch};
use fedstein::error::RunError;
use fedstein::experiment::finished::Finished as Run;
use fedstein::experiment::forecast::Forecast;
use fedstein::experiment::{Config, ReportOptions, run_dir};
use fedstein::metrics::{RegressionPredictions, RowUncertainty, predictive_moments};
use fedstein::report::conformal::TargetInterval;
use fedstein::report::{csv, files};
use ndarray::Array2;
use numpy::{PyArray1, PyArrayDyn};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use safetensors::{Dtype, SafeTensors};

use crate::arrays::{Floats, shaped};
use crate::errors::{ConfigError, DataError, RunFailed, of_config, of_report, of_run};
use crate::pool::detached;

/// A finished run.
#[pyclass(module = "fedstein._fedstein", frozen)]
pub struct Finished {
    run: Run,
    config: Config,
}

/// Float64 arrays by name.
type Arrays<'py> = Bound<'py, PyDict>;

#[pymethods]
impl Finished {
    /// Opens the directory of a run.
    ///
    /// # Errors
    /// It is not that of a finished run.
    #[new]
    fn new(path: PathBuf) -> PyResult<Self> {
        let run = Run::open(&path).map_err(of_run)?;
        let config = run.config().map_err(of_config)?;
        Ok(Self { run, config })
    }

    /// The resolved config as TOML.
    fn config_toml(&self) -> &str {
        &self.run.config_toml
    }

    /// The run's name.
    fn name(&self) -> &str {
        &self.run.summary.name
    }

    /// The names of the classes; None for a regression.
    fn classes(&self) -> Option<Vec<String>> {
        self.run.card.classes.clone()
    }

    /// The names of the features, where the training rows had them.
    fn feature_names(&self) -> Option<Vec<String>> {
        self.run.shape().feature_names
    }

    /// The metrics after the last round, as JSON.
    fn evaluation(&self) -> PyResult<String> {
        serde_json::to_string(&self.run.summary.evaluation).map_err(|error| RunFailed::new_err(error.to_string()))
    }

    /// `labels` and `probabilities`, or `targets`, `mean` and `sd` of the members, of the test rows.
    ///
    /// # Errors
    /// The run has no predictions, or their file is damaged.
    fn predictions<'py>(&self, py: Python<'py>) -> PyResult<Arrays<'py>> {
        let path = self.run.path.join(run_dir::PREDICTIONS);
        if !path.exists() {
            let problem = "a toy density predicts nothing, and the rows of a federation stay at its sites";
            return Err(DataError::new_err(format!("no {}: {problem}", path.display())));
        }
        let out = PyDict::new(py);
        if self.run.card.classes.is_none() {
            let predictions = detached(py, || csv::read_regression(&path))?.map_err(of_report)?;
            out.set_item("targets", PyArray1::from_slice(py, predictions.target()))?;
            members(py, &out, &predictions)?;
            return Ok(out);
        }
        let predictions = detached(py, || csv::read_predictions(&path))?.map_err(of_report)?;
        let shape = [predictions.len(), predictions.classes()];
        out.set_item("labels", labels(py, predictions.labels()))?;
        out.set_item("probabilities", shaped(py, predictions.probabilities().to_vec(), &shape)?)?;
        Ok(out)
    }

    /// The particles, by the names of the model's blocks, `[N, ...]`.
    ///
    /// # Errors
    /// The file is missing or damaged.
    fn particles<'py>(&self, py: Python<'py>) -> PyResult<Arrays<'py>> {
        let path = self.run.path.join(run_dir::PARTICLES);
        let wrong = |reason: String| ConfigError::new_err(format!("{}: {reason}", path.display()));
        let bytes = files::read_whole(&path).map_err(|error| wrong(error.to_string()))?;
        let tensors = SafeTensors::deserialize(&bytes).map_err(|error| wrong(error.to_string()))?;
        let out = PyDict::new(py);
        let mut tensors = tensors.tensors();
        tensors.sort_by(|(one, _), (other, _)| one.cmp(other));
        for (name, tensor) in tensors {
            let (shape, bytes) = (tensor.shape(), tensor.data());
            match tensor.dtype() {
                Dtype::F32 => {
                    let values = bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
                    out.set_item(name, shaped(py, values, shape)?)?;
                }
                Dtype::F64 => {
                    let values = bytes.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
                    out.set_item(name, shaped(py, values, shape)?)?;
                }
                other => return Err(wrong(format!("tensor \"{name}\" is {other:?}, not F32 or F64"))),
            }
        }
        Ok(out)
    }

    /// Predicts rows `[n, p]`: `probabilities`, after the run's temperature or other map unless `raw`, or `mean` of the
    /// mixture; `total`, `aleatoric` and `epistemic` uncertainty without it; with `with_members` also what every particle
    /// predicts. Where the run has sets, `sets` `[n, C]`, or `intervals` `[n, 2]`, which are NaN where they are empty.
    ///
    /// # Errors
    /// The rows do not fit the run, it keeps no sets of the level, or a file of the run is damaged.
    #[pyo3(signature = (features, with_members, raw, level))]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        features: Floats<'py>,
        with_members: bool,
        raw: bool,
        level: Option<f64>,
    ) -> PyResult<Arrays<'py>> {
        let recalibrated = self.run.recalibrated(level).map_err(of_run)?;
        let shape = features.shape();
        let [rows, width] = *shape else {
            return Err(DataError::new_err(format!("features have the shape {shape:?}; they must be [n, p]")));
        };
        if rows == 0 {
            return Err(DataError::new_err("there are no rows to predict"));
        }
        let features = Array2::from_shape_vec((rows, width), features.to_f32());
        let features = features.map_err(|error| DataError::new_err(error.to_string()))?;
        let job = Predict { run: &self.run, config: &self.config, features };
        let forecast = detached(py, || dispatch(&self.config.backend, job))?;
        let forecast = forecast.map_err(|error| ConfigError::new_err(error.to_string()))?.map_err(of_run)?;
        let out = PyDict::new(py);
        let put = |name: &str, values: &[f64]| out.set_item(name, PyArray1::from_slice(py, values));
        match forecast {
            Forecast::Classes { log_probs, .. } => {
                let (particles, classes) = (log_probs.particles(), log_probs.classes());
                let (mean, uncertainty) = detached(py, || (log_probs.ensemble(), RowUncertainty::new(&log_probs)))?;
                let scaled = recalibrated.probabilities(mean.clone(), classes).map_err(of_run)?;
                if let Some(sets) = recalibrated.sets(&mean, &scaled, classes) {
                    let values = sets.concat().into_iter().map(f64::from).collect();
                    out.set_item("sets", shaped(py, values, &[rows, classes])?)?;
                }
                let probabilities = if raw { mean } else { scaled };
                out.set_item("probabilities", shaped(py, probabilities, &[rows, classes])?)?;
                put("total", &uncertainty.total)?;
                put("aleatoric", &uncertainty.aleatoric)?;
                put("epistemic", &uncertainty.epistemic)?;
                if with_members {
                    let of = |at| log_probs.row(at / rows, at % rows).iter().map(|log| log.exp());
                    let values: Vec<f64> = (0..particles * rows).flat_map(of).collect();
                    out.set_item("members", shaped(py, values, &[particles, rows, classes])?)?;
                }
            }
            Forecast::Real(predictions) => {
                let moments = detached(py, || predictive_moments(&predictions))?;
                put("mean", &moments.mean)?;
                if let Some(intervals) = recalibrated.intervals(&predictions).map_err(of_run)? {
                    let ends = |interval: Option<TargetInterval>| {
                        interval.map_or([f64::NAN; 2], |TargetInterval { lower, upper }| [lower, upper])
                    };
                    let values = intervals.into_iter().flat_map(ends).collect();
                    out.set_item("intervals", shaped(py, values, &[rows, 2])?)?;
                }
                put("total", &moments.variance)?;
                put("aleatoric", &moments.aleatoric)?;
                put("epistemic", &moments.epistemic)?;
                if with_members {
                    let shape = [predictions.particles(), rows];
                    out.set_item("members", shaped(py, predictions.mean().to_vec(), &shape)?)?;
                }
            }
        }
        Ok(out)
    }

    /// Writes the report into a directory; returns the path of the page, or None where there is nothing to report on.
    ///
    /// # Errors
    /// A file of a run is damaged, a run to compare has another task or other test rows, or the report cannot be written.
    fn report(
        &self,
        py: Python<'_>,
        out: PathBuf,
        bins: Option<usize>,
        title: Option<String>,
        compare: Vec<PathBuf>,
        other_rows: bool,
    ) -> PyResult<Option<PathBuf>> {
        let write = || -> Result<_, RunError> {
            let compare = compare.iter().map(|path| Run::open(path)).collect::<Result<Vec<_>, _>>()?;
            self.run.report(&out, ReportOptions { bins, title, compare: &compare, other_rows })
        };
        Ok(detached(py, write)?.map_err(of_run)?.map(|files| files.html))
    }
}

#[allow(clippy::cast_possible_wrap, reason = "labels are numbers of classes")]
fn labels<'py>(py: Python<'py>, labels: &[usize]) -> Bound<'py, PyArray1<i64>> {
    PyArray1::from_iter(py, labels.iter().map(|label| *label as i64))
}

/// Adds the means and standard deviations of all members, `[N, n]`.
fn members<'py>(py: Python<'py>, out: &Arrays<'py>, predictions: &RegressionPredictions<'_>) -> PyResult<()> {
    let shape = [predictions.particles(), predictions.rows()];
    let sd = predictions.precision().iter().map(|precision| precision.recip().sqrt()).collect();
    let array = |values| -> PyResult<Bound<'py, PyArrayDyn<f64>>> { shaped(py, values, &shape) };
    out.set_item("mean", array(predictions.mean().to_vec())?)?;
    out.set_item("sd", array(sd)?)
}

struct Predict<'a> {
    run: &'a Run,
    config: &'a Config,
    features: Array2<f32>,
}

impl OnBackend for Predict<'_> {
    type Output = Result<Forecast, RunError>;

    fn run<B: Backend>(self) -> Self::Output {
        self.run.forecast::<B>(self.config, self.features, "the rows")
    }
}
