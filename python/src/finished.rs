//! A finished run, from its directory.

use std::path::PathBuf;
use std::sync::Arc;

use fedstein::error::RunError;
use fedstein::experiment::finished::Finished as Run;
use fedstein::experiment::forecast::Forecast;
use fedstein::experiment::new_rows::Besides;
use fedstein::experiment::recalibrated::Recalibrated;
use fedstein::experiment::{Config, ReportOptions, run_dir};
use fedstein::federation::labelled::Labelled;
use fedstein::metrics::{RegressionPredictions, RowUncertainty, predictive_moments};
use fedstein::report::conformal::TargetInterval;
use fedstein::report::files;
use ndarray::Array2;
use numpy::{PyArray1, PyArray2, PyArrayDyn};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use safetensors::{Dtype, SafeTensors};

use crate::arrays::{Floats, shaped};
use crate::errors::{ConfigError, DataError, RunFailed, of_config, of_run, with_arguments};
use crate::interruptible::{interruptible, interruptible_on_pool};

/// A finished run.
#[pyclass(module = "fedstein._fedstein", frozen)]
pub struct Finished {
    run: Arc<Run>,
    config: Arc<Config>,
}

/// Float64 arrays by name.
type Arrays<'py> = Bound<'py, PyDict>;

/// The names of the columns of cells, where they have any, and the texts of each that is a category.
type CellColumns = (Option<Vec<String>>, Vec<Vec<String>>);

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
        Ok(Self { run: Arc::new(run), config: Arc::new(config) })
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

    /// The names of the clients by their numbers, where they have names: those of the data's clients, or of sites.
    fn clients(&self) -> Option<Vec<String>> {
        let summary = &self.run.summary;
        let of_rows = summary.partition.iter().flat_map(|table| table.clients.as_slice().to_vec());
        let of_sites = summary.sites.iter().map(|site| site.name.clone());
        [of_rows.collect(), of_sites.collect()].into_iter().find(|names: &Vec<String>| !names.is_empty())
    }

    /// The names of the features, where the training rows had them.
    fn feature_names(&self) -> Option<Vec<String>> {
        self.run.shape().feature_names
    }

    /// The columns of cells that become the features; None where the columns are the features.
    fn cell_columns(&self) -> Option<CellColumns> {
        let encoding = self.run.card.encoding.as_ref()?;
        Some((encoding.column_names(), encoding.columns.iter().map(|column| column.categories.clone()).collect()))
    }

    /// The features `[n, p]` of a file of cells, and notes on them.
    ///
    /// # Errors
    /// A column is missing, or a cell does not fit its column.
    fn cells<'py>(&self, py: Python<'py>, file: PathBuf) -> PyResult<(Bound<'py, PyArray2<f32>>, Vec<String>)> {
        let (run, config) = (self.run.clone(), self.config.clone());
        let rows = interruptible(py, move || run.new_rows(&config, &file, Besides::Nothing, None))?.map_err(of_run)?;
        Ok((PyArray2::from_owned_array(py, rows.features), rows.notes))
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
        let run = self.run.clone();
        match interruptible(py, move || run.test_predictions())?.map_err(of_run)? {
            Labelled::Classes(predictions) => {
                let shape = [predictions.len(), predictions.classes()];
                out.set_item("labels", labels(py, predictions.labels()))?;
                out.set_item("probabilities", shaped(py, predictions.probabilities().to_vec(), &shape)?)?;
            }
            Labelled::Real(predictions) => {
                out.set_item("targets", PyArray1::from_slice(py, predictions.target()))?;
                members(py, &out, &predictions)?;
            }
        }
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
    /// Notes come with them: on rows far outside the training rows, unless a program brought these; with `sets` on too few
    /// calibration rows.
    #[pyo3(signature = (features, with_members, raw, level, sets))]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        features: Floats<'py>,
        with_members: bool,
        raw: bool,
        level: Option<f64>,
        sets: bool,
    ) -> PyResult<(Arrays<'py>, Vec<String>)> {
        let recalibrated = self.run.recalibrated(level).map_err(of_run)?;
        let shape = features.shape();
        let [rows, width] = *shape else {
            return Err(DataError::new_err(format!("features have the shape {shape:?}; they must be [n, p]")));
        };
        if rows == 0 {
            return Err(DataError::new_err("there are no rows to predict"));
        }
        let rows_of_run = Array2::from_shape_vec((rows, width), features.to_f32());
        let rows_of_run = rows_of_run.map_err(|error| DataError::new_err(error.to_string()))?;
        let (run, config) = (self.run.clone(), self.config.clone());
        let mut notes = self.run.notes_on_predictions(&self.config, false);
        if sets {
            notes.extend(recalibrated.note_on_few());
        }
        let asked = Asked { recalibrated, with_members, raw };
        let predicted = interruptible_on_pool(py, move || {
            let note = note_on_rows(&run, &rows_of_run);
            Ok((asked.arrays(run.forecast(&config, rows_of_run, "the rows")?)?, note))
        })?;
        let (arrays, note) = predicted.map_err(|error| self.of_prediction(error, &features))?;
        notes.extend(note);
        let out = PyDict::new(py);
        for Named { name, values, shape } in arrays {
            out.set_item(name, shaped(py, values, &shape)?)?;
        }
        Ok((out, notes.iter().map(|note| with_arguments(note)).collect()))
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
        let run = self.run.clone();
        let render = move || -> Result<_, RunError> {
            let compare = compare.iter().map(|path| Run::open(path)).collect::<Result<Vec<_>, _>>()?;
            run.rendered(ReportOptions { bins, title, compare: &compare, other_rows })
        };
        // An interrupt leaves no file: they are written when all is computed.
        let Some(report) = interruptible(py, render)?.map_err(of_run)? else { return Ok(None) };
        Ok(Some(py.detach(|| report.write(&out)).map_err(of_run)?.html))
    }
}

impl Finished {
    /// The exception of an error in predictions.
    fn of_prediction(&self, error: RunError, features: &Floats<'_>) -> PyErr {
        let RunError::Feature { row, column, .. } = error else { return of_run(error) };
        let names = self.run.shape().feature_names;
        features.not_finite((row, column), names.as_deref(), "on the scale of the training rows")
    }
}

/// An array of predictions.
struct Named {
    name: &'static str,
    values: Vec<f64>,
    shape: Vec<usize>,
}

/// What is wanted of a forecast.
struct Asked {
    recalibrated: Recalibrated,
    with_members: bool,
    raw: bool,
}

impl Asked {
    /// The arrays that [`Finished::predict`] describes.
    fn arrays(self, forecast: Forecast) -> Result<Vec<Named>, RunError> {
        let Self { recalibrated, with_members, raw } = self;
        let mut arrays = Vec::new();
        let mut put = |name, values, shape: &[usize]| arrays.push(Named { name, values, shape: shape.to_vec() });
        match forecast {
            Forecast::Classes { log_probs, .. } => {
                let (particles, rows, classes) = (log_probs.particles(), log_probs.rows(), log_probs.classes());
                let (mean, uncertainty) = (log_probs.ensemble(), RowUncertainty::new(&log_probs));
                let scaled = recalibrated.probabilities(mean.clone(), classes)?;
                if let Some(sets) = recalibrated.sets(&mean, &scaled, classes) {
                    put("sets", sets.concat().into_iter().map(f64::from).collect(), &[rows, classes]);
                }
                put("probabilities", if raw { mean } else { scaled }, &[rows, classes]);
                put("total", uncertainty.total, &[rows]);
                put("aleatoric", uncertainty.aleatoric, &[rows]);
                put("epistemic", uncertainty.epistemic, &[rows]);
                if with_members {
                    let of = |at| log_probs.row(at / rows, at % rows).into_iter().map(f64::exp);
                    put("members", (0..particles * rows).flat_map(of).collect(), &[particles, rows, classes]);
                }
            }
            Forecast::Real(predictions) => {
                let (particles, rows) = (predictions.particles(), predictions.rows());
                let moments = predictive_moments(&predictions);
                put("mean", moments.mean, &[rows]);
                if let Some(intervals) = recalibrated.intervals(&predictions)? {
                    let ends = |interval: Option<TargetInterval>| {
                        interval.map_or([f64::NAN; 2], |TargetInterval { lower, upper }| [lower, upper])
                    };
                    put("intervals", intervals.into_iter().flat_map(ends).collect(), &[rows, 2]);
                }
                put("total", moments.variance, &[rows]);
                put("aleatoric", moments.aleatoric, &[rows]);
                put("epistemic", moments.epistemic, &[rows]);
                if with_members {
                    put("members", predictions.mean().to_vec(), &[particles, rows]);
                }
            }
        }
        Ok(arrays)
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

/// A note on rows `[n, p]` far outside the training rows.
fn note_on_rows(run: &Run, rows: &Array2<f32>) -> Option<String> {
    // Rows of another width are an error of the forecast.
    let range = run.training_range().filter(|_| rows.ncols() == run.card.features)?;
    range.note(&range.outside(rows))
}
