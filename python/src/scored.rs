//! A report on predictions that Python has.

use std::path::PathBuf;
use std::sync::OnceLock;

use fedstein::report::{self, Content, Groups, PartitionTable, Rendered, Report, ReportError, RunSummary};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::arrays::{Floats, classes, indices, reals};
use crate::errors::{DataError, RunFailed, of_metric, of_report};
use crate::kept::{Fingerprint, KeptFloats, KeptNumbers};
use crate::pool::detached;

/// Predictions with their report. The arrays are kept, not copied, and read for each part of the report.
#[pyclass(module = "fedstein._fedstein", frozen)]
pub struct Scored {
    predictions: Predictions,
    /// That of the arrays when the report was made.
    fingerprint: Fingerprint,
    title: String,
    bins: usize,
    names: Option<Vec<String>>,
    groups: Option<Groups>,
    rendered: OnceLock<Rendered>,
}

/// The names of groups, and the position in them of each row's group, `[n]`.
type RowGroups<'py> = (Vec<String>, PyReadonlyArray1<'py, i64>);

fn groups(of: Option<RowGroups<'_>>) -> PyResult<Option<Groups>> {
    let Some((names, of)) = of else { return Ok(None) };
    Groups::new(names, indices(&of, "group")?).map(Some).map_err(of_metric)
}

enum Predictions {
    /// Probabilities and labels.
    Classes(KeptFloats, KeptNumbers),
    /// Means, standard deviations and targets.
    Real(KeptFloats, KeptFloats, KeptFloats),
}

/// The arrays of [`Predictions`] while they are read.
enum Arrays<'py> {
    Classes(Floats<'py>, PyReadonlyArray1<'py, i64>),
    Real(Floats<'py>, Floats<'py>, Floats<'py>),
}

impl Predictions {
    fn read<'py>(&self, py: Python<'py>) -> PyResult<Arrays<'py>> {
        Ok(match self {
            Self::Classes(probabilities, labels) => Arrays::Classes(probabilities.read(py)?, labels.read(py)?),
            Self::Real(mean, sd, targets) => Arrays::Real(mean.read(py)?, sd.read(py)?, targets.read(py)?),
        })
    }
}

impl Arrays<'_> {
    fn keep(&self) -> Predictions {
        match self {
            Self::Classes(probabilities, labels) => {
                Predictions::Classes(KeptFloats::new(probabilities), KeptNumbers::new(labels))
            }
            Self::Real(mean, sd, targets) => {
                Predictions::Real(KeptFloats::new(mean), KeptFloats::new(sd), KeptFloats::new(targets))
            }
        }
    }

    fn fingerprint(&self) -> Fingerprint {
        match self {
            Self::Classes(probabilities, labels) => Fingerprint::EMPTY.floats(probabilities).numbers(labels),
            Self::Real(mean, sd, targets) => Fingerprint::EMPTY.floats(mean).floats(sd).floats(targets),
        }
    }
}

impl Scored {
    fn new(
        arrays: &Arrays<'_>,
        bins: usize,
        title: String,
        names: Option<Vec<String>>,
        groups: Option<Groups>,
    ) -> Self {
        let (predictions, fingerprint) = (arrays.keep(), arrays.fingerprint());
        Self { predictions, fingerprint, title, bins, names, groups, rendered: OnceLock::new() }
    }

    /// Does some work on the report, without the lock of Python.
    ///
    /// # Errors
    /// The arrays are not predictions, or have changed.
    fn of_report<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Report<'_>) -> Result<T, ReportError> + Send,
    ) -> PyResult<T> {
        let arrays = self.predictions.read(py)?;
        self.check(&arrays)?;
        let found = match &arrays {
            Arrays::Classes(probabilities, labels) => {
                let predictions = &classes(probabilities, labels)?;
                let report = self.report(Content::Classification { predictions, uncertainty: None });
                detached(py, || work(&report))?
            }
            Arrays::Real(mean, sd, targets) => {
                let predictions = &reals(mean, sd, targets)?;
                let report = self.report(Content::Regression { predictions });
                detached(py, || work(&report))?
            }
        };
        // Another thread may have written into them meanwhile.
        self.check(&arrays)?;
        found.map_err(of_report)
    }

    /// The files of the report, computed on the first call.
    fn rendered(&self, py: Python<'_>) -> PyResult<&Rendered> {
        if let Some(rendered) = self.rendered.get() {
            return Ok(rendered);
        }
        let rendered = self.of_report(py, report::render)?;
        Ok(self.rendered.get_or_init(|| rendered))
    }

    fn check(&self, arrays: &Arrays<'_>) -> PyResult<()> {
        match arrays.fingerprint() == self.fingerprint {
            true => Ok(()),
            false => Err(DataError::new_err(
                "the arrays have changed since the report was made; make the report anew, or pass copies of arrays that \
                 change",
            )),
        }
    }

    fn report<'a>(&'a self, content: Content<'a>) -> Report<'a> {
        let named = |names: &Vec<String>| {
            let (counts, validation, calibration, test) = Default::default();
            let partition = Some(PartitionTable {
                class_names: names.clone(),
                counts,
                validation,
                calibration,
                test,
                clients: Default::default(),
            });
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
        Ok(Self::new(&Arrays::Classes(probabilities, labels), bins, title, names, self::groups(groups)?))
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
        Ok(Self::new(&Arrays::Real(mean, sd, targets), bins, title, None, self::groups(groups)?))
    }

    /// The headline numbers, as JSON.
    fn overall(&self, py: Python<'_>) -> PyResult<String> {
        let overall = self.of_report(py, report::overall)?;
        serde_json::to_string(&overall).map_err(|error| RunFailed::new_err(error.to_string()))
    }

    /// The headline numbers of each group by its name, as JSON.
    fn groups(&self, py: Python<'_>) -> PyResult<String> {
        let of_groups = self.of_report(py, report::overall_of_groups)?;
        let by_name = of_groups.iter().map(|(name, overall)| Ok((name.clone(), serde_json::to_value(overall)?)));
        let json = by_name.collect::<serde_json::Result<serde_json::Map<_, _>>>().map(serde_json::Value::Object);
        json.map(|json| json.to_string()).map_err(|error| RunFailed::new_err(error.to_string()))
    }

    /// `report.json` and `report.html`.
    fn render(&self, py: Python<'_>) -> PyResult<(String, String)> {
        let Rendered { json, html, .. } = self.rendered(py)?;
        Ok((json.clone(), html.clone()))
    }

    /// Writes the files of the report; returns the path of the page.
    fn save(&self, py: Python<'_>, directory: PathBuf) -> PyResult<PathBuf> {
        let rendered = self.rendered(py)?;
        Ok(detached(py, || rendered.write(&directory))?.map_err(|error| of_report(error.into()))?.html)
    }
}
