//! A report on predictions that Python has.

use std::path::PathBuf;
use std::sync::OnceLock;

use fedstein::metrics::Clusters;
use fedstein::report::{self, Content, Groups, PartitionTable, Rendered, Report, ReportError, RunSummary};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::arrays::{Floats, classes, indices, reals};
use crate::errors::{DataError, RunFailed, of_metric, of_report};
use crate::interruptible::reading;
use crate::kept::{Fingerprint, KeptFloats, KeptNumbers};

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
    clusters: Option<Clusters>,
    rendered: OnceLock<Rendered>,
}

/// Whether a report may be written into a directory in the place of what is there.
#[pyfunction]
pub fn takes_report(directory: PathBuf) -> bool {
    report::takes_report(&directory)
}

/// The names of groups, and the position in them of each row's group, `[n]`.
type RowGroups<'py> = (Vec<String>, PyReadonlyArray1<'py, i64>);

fn groups(of: Option<RowGroups<'_>>) -> PyResult<Option<Groups>> {
    let Some((names, of)) = of else { return Ok(None) };
    Groups::new(names, indices(&of, "group")?).map(Some).map_err(of_metric)
}

fn clusters(of: Option<PyReadonlyArray1<'_, i64>>) -> PyResult<Option<Clusters>> {
    of.map(|of| indices(&of, "cluster").map(Clusters::new)).transpose()
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
        (groups, clusters): (Option<Groups>, Option<Clusters>),
    ) -> Self {
        let (predictions, fingerprint) = (arrays.keep(), arrays.fingerprint());
        Self { predictions, fingerprint, title, bins, names, groups, clusters, rendered: OnceLock::new() }
    }

    /// Does some work on the report, which Ctrl-C does not wait for.
    ///
    /// # Errors
    /// The arrays are not predictions, or have changed.
    fn of_report<T: Send + 'static>(
        this: &Bound<'_, Self>,
        work: fn(&Report<'_>) -> Result<T, ReportError>,
    ) -> PyResult<T> {
        let kept = this.clone().unbind();
        reading(this.py(), move |here| {
            let scored = kept.get();
            let arrays = scored.predictions.read(here.py)?;
            scored.check(&arrays)?;
            let found = match &arrays {
                Arrays::Classes(probabilities, labels) => {
                    let predictions = classes(probabilities, labels)?;
                    let predictions = &predictions.with_clusters(scored.clusters.clone()).map_err(of_metric)?;
                    let report = scored.report(Content::Classification { predictions, uncertainty: None });
                    here.compute(|| work(&report))?
                }
                Arrays::Real(mean, sd, targets) => {
                    let predictions = reals(mean, sd, targets)?;
                    let predictions = &predictions.with_clusters(scored.clusters.clone()).map_err(of_metric)?;
                    let report = scored.report(Content::Regression { predictions });
                    here.compute(|| work(&report))?
                }
            };
            // Another thread may have written into them meanwhile.
            scored.check(&arrays)?;
            found.map_err(of_report)
        })
    }

    /// The files of the report, computed on the first call.
    fn rendered<'a>(this: &'a Bound<'_, Self>) -> PyResult<&'a Rendered> {
        let scored = this.get();
        if let Some(rendered) = scored.rendered.get() {
            return Ok(rendered);
        }
        let rendered = Self::of_report(this, report::render)?;
        Ok(scored.rendered.get_or_init(|| rendered))
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
        clusters: Option<PyReadonlyArray1<'_, i64>>,
    ) -> PyResult<Self> {
        let parts = (self::groups(groups)?, self::clusters(clusters)?);
        Ok(Self::new(&Arrays::Classes(probabilities, labels), bins, title, names, parts))
    }

    #[staticmethod]
    fn real(
        mean: Floats<'_>,
        sd: Floats<'_>,
        targets: Floats<'_>,
        bins: usize,
        title: String,
        groups: Option<RowGroups<'_>>,
        clusters: Option<PyReadonlyArray1<'_, i64>>,
    ) -> PyResult<Self> {
        let parts = (self::groups(groups)?, self::clusters(clusters)?);
        Ok(Self::new(&Arrays::Real(mean, sd, targets), bins, title, None, parts))
    }

    /// The headline numbers, as JSON.
    fn overall(this: &Bound<'_, Self>) -> PyResult<String> {
        let overall = Self::of_report(this, report::overall)?;
        serde_json::to_string(&overall).map_err(|error| RunFailed::new_err(error.to_string()))
    }

    /// The headline numbers of each group by its name, as JSON.
    fn groups(this: &Bound<'_, Self>) -> PyResult<String> {
        let of_groups = Self::of_report(this, report::overall_of_groups)?;
        let by_name = of_groups.iter().map(|(name, overall)| Ok((name.clone(), serde_json::to_value(overall)?)));
        let json = by_name.collect::<serde_json::Result<serde_json::Map<_, _>>>().map(serde_json::Value::Object);
        json.map(|json| json.to_string()).map_err(|error| RunFailed::new_err(error.to_string()))
    }

    /// `report.json` and `report.html`.
    fn render(this: &Bound<'_, Self>) -> PyResult<(String, String)> {
        let Rendered { json, html, .. } = Self::rendered(this)?;
        Ok((json.clone(), html.clone()))
    }

    /// Writes the files of the report; returns the path of the page.
    fn save(this: &Bound<'_, Self>, directory: PathBuf) -> PyResult<PathBuf> {
        let rendered = Self::rendered(this)?;
        let written = this.py().detach(|| rendered.write(&directory));
        Ok(written.map_err(|error| of_report(error.into()))?.html)
    }
}
