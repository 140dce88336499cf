//! A report on predictions that Python has.

use std::path::PathBuf;

use fedstein::metrics::{ClassPredictions, RegressionPredictions};
use fedstein::report::{self, Content, PartitionTable, Rendered, Report, ReportError, RunSummary};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::arrays::{Floats, classes, reals};
use crate::errors::{RunFailed, of_report};
use crate::pool::detached;

/// Predictions with their report.
#[pyclass(module = "fedstein._fedstein", frozen)]
pub struct Scored {
    predictions: Predictions,
    title: String,
    bins: usize,
    names: Option<Vec<String>>,
}

enum Predictions {
    Classes(ClassPredictions),
    Real(RegressionPredictions),
}

impl Scored {
    fn report(&self) -> Report<'_> {
        let content = match &self.predictions {
            Predictions::Classes(predictions) => Content::Classification { predictions, uncertainty: None },
            Predictions::Real(predictions) => Content::Regression { predictions },
        };
        let named = |names: &Vec<String>| {
            let (counts, validation, test) = Default::default();
            let partition = Some(PartitionTable { class_names: names.clone(), counts, validation, test });
            RunSummary { partition, ..RunSummary::default() }
        };
        Report { title: self.title.clone(), content, bins: self.bins, seed: 1, run: self.names.as_ref().map(named) }
    }
}

#[pymethods]
impl Scored {
    #[staticmethod]
    fn classes(
        probabilities: Floats<'_>,
        labels: PyReadonlyArray1<'_, i64>,
        bins: usize,
        title: String,
        names: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let predictions = Predictions::Classes(classes(&probabilities, &labels)?);
        Ok(Self { predictions, title, bins, names })
    }

    #[staticmethod]
    fn real(mean: Floats<'_>, sd: Floats<'_>, targets: Floats<'_>, bins: usize, title: String) -> PyResult<Self> {
        Ok(Self { predictions: Predictions::Real(reals(&mean, &sd, &targets)?), title, bins, names: None })
    }

    /// The headline numbers, as JSON.
    fn overall(&self, py: Python<'_>) -> PyResult<String> {
        let overall = detached(py, || report::overall(&self.report()))?.map_err(of_report)?;
        serde_json::to_string(&overall).map_err(|error| RunFailed::new_err(error.to_string()))
    }

    /// `report.json` and `report.html`.
    fn render(&self, py: Python<'_>) -> PyResult<(String, String)> {
        let rendered = detached(py, || report::render(&self.report()))?.map_err(of_report)?;
        let Rendered { json, html, .. } = rendered;
        Ok((json, html))
    }

    /// Writes the files of the report; returns the path of the page.
    fn save(&self, py: Python<'_>, directory: PathBuf) -> PyResult<PathBuf> {
        let write = || -> Result<_, ReportError> { report::write(&self.report(), &directory) };
        Ok(detached(py, write)?.map_err(of_report)?.html)
    }
}
