//! A report on predictions that Python has.

use std::path::PathBuf;

use fedstein::metrics::{ClassPredictions, RegressionPredictions};
use fedstein::report::{self, Content, Groups, PartitionTable, Rendered, Report, ReportError, RunSummary};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::arrays::{Floats, classes, indices, reals};
use crate::errors::{RunFailed, of_metric, of_report};
use crate::pool::detached;

/// Predictions with their report.
#[pyclass(module = "fedstein._fedstein", frozen)]
pub struct Scored {
    predictions: Predictions,
    title: String,
    bins: usize,
    names: Option<Vec<String>>,
    groups: Option<Groups>,
}

/// The names of groups, and the position in them of each row's group, `[n]`.
type RowGroups<'py> = (Vec<String>, PyReadonlyArray1<'py, i64>);

fn groups(of: Option<RowGroups<'_>>) -> PyResult<Option<Groups>> {
    let Some((names, of)) = of else { return Ok(None) };
    Groups::new(names, indices(&of, "group")?).map(Some).map_err(of_metric)
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
        let (title, run) = (self.title.clone(), self.names.as_ref().map(named));
        Report { title, content, bins: self.bins, seed: 1, run, groups: self.groups.as_ref() }
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
        groups: Option<RowGroups<'_>>,
    ) -> PyResult<Self> {
        let predictions = Predictions::Classes(classes(&probabilities, &labels)?);
        Ok(Self { predictions, title, bins, names, groups: self::groups(groups)? })
    }

    #[staticmethod]
    fn real(
        mean: Floats<'_>,
        sd: Floats<'_>,
        targets: Floats<'_>,
        bins: usize,
        title: String,
        groups: Option<RowGroups<'_>>,
    ) -> PyResult<Self> {
        let predictions = Predictions::Real(reals(&mean, &sd, &targets)?);
        Ok(Self { predictions, title, bins, names: None, groups: self::groups(groups)? })
    }

    /// The headline numbers, as JSON.
    fn overall(&self, py: Python<'_>) -> PyResult<String> {
        let overall = detached(py, || report::overall(&self.report()))?.map_err(of_report)?;
        serde_json::to_string(&overall).map_err(|error| RunFailed::new_err(error.to_string()))
    }

    /// The headline numbers of each group by its name, as JSON.
    fn groups(&self, py: Python<'_>) -> PyResult<String> {
        let of_groups = detached(py, || report::overall_of_groups(&self.report()))?.map_err(of_report)?;
        let by_name = of_groups.iter().map(|(name, overall)| Ok((name.clone(), serde_json::to_value(overall)?)));
        let json = by_name.collect::<serde_json::Result<serde_json::Map<_, _>>>().map(serde_json::Value::Object);
        json.map(|json| json.to_string()).map_err(|error| RunFailed::new_err(error.to_string()))
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
