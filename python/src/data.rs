//! Rows that Python has.

use fedstein::datasets::{DataError as RowsError, Dataset, Normalise, Targets, TrainTest};
use fedstein::random::{Purpose, Streams};
use ndarray::Array2;
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::arrays::{Floats, indices};
use crate::errors::DataError;

/// Training and test rows, scaled.
#[pyclass(module = "fedstein._fedstein", frozen)]
pub struct Rows(pub TrainTest);

/// Rows before they are scaled.
#[pyclass(module = "fedstein._fedstein", frozen)]
pub struct RawRows(Dataset);

fn wrong(error: RowsError) -> PyErr {
    DataError::new_err(error.to_string())
}

#[pymethods]
impl RawRows {
    /// Features `[n, p]` with labels and the classes' names, or with values; and the clients with their names, if these differ.
    ///
    /// # Errors
    /// They do not fit together, or a number is not finite.
    #[new]
    #[allow(clippy::too_many_arguments, reason = "one for each field of the rows")]
    fn new(
        name: &str,
        features: Floats<'_>,
        shape: Vec<usize>,
        feature_names: Option<Vec<String>>,
        labels: Option<(PyReadonlyArray1<'_, i64>, Vec<String>)>,
        values: Option<PyReadonlyArray1<'_, f64>>,
        clients: Option<(PyReadonlyArray1<'_, i64>, Option<Vec<String>>)>,
        groups: Option<PyReadonlyArray1<'_, i64>>,
    ) -> PyResult<Self> {
        let [rows, width] = *features.shape() else {
            return Err(DataError::new_err(format!(
                "features have the shape {:?}; they must be [n, p]",
                features.shape()
            )));
        };
        let narrow = Array2::from_shape_vec((rows, width), features.to_f32());
        let narrow = narrow.map_err(|error| DataError::new_err(error.to_string()))?;
        if let Some((at, _)) = narrow.indexed_iter().find(|(_, value)| !value.is_finite()) {
            return Err(features.not_finite(at, feature_names.as_deref(), "for numbers of 32 bits"));
        }
        let targets = match (labels, values) {
            (Some((labels, names)), _) => Targets::Classes { labels: indices(&labels, "label")?, names },
            (None, Some(values)) => Targets::Real { values: values.as_array().to_vec() },
            (None, None) => Targets::None { rows },
        };
        let mut data = Dataset::new(name, narrow, targets).map_err(wrong)?;
        data = data.with_feature_shape(shape).map_err(wrong)?;
        if let Some(names) = feature_names {
            data = data.with_feature_names(names).map_err(wrong)?;
        }
        if let Some((clients, names)) = clients {
            data = data.with_clients(indices(&clients, "client")?).map_err(wrong)?;
            if let Some(names) = names {
                data = data.with_client_names(names).map_err(wrong)?;
            }
        }
        if let Some(groups) = groups {
            data = data.with_groups(indices(&groups, "group")?).map_err(wrong)?;
        }
        Ok(Self(data))
    }
}

#[pymethods]
impl Rows {
    /// Scales training and test rows.
    ///
    /// # Errors
    /// They do not fit together, or the scale does not fit the rows.
    #[staticmethod]
    fn of(train: &RawRows, test: &RawRows, normalise: &str) -> PyResult<Self> {
        let normalise = scale(normalise)?;
        TrainTest::from_rows(train.0.clone(), test.0.clone(), normalise).map(Self).map_err(wrong)
    }

    /// Splits rows at random and scales them.
    ///
    /// # Errors
    /// As `of`; the fraction is not between 0 and 1.
    #[staticmethod]
    fn split(rows: &RawRows, fraction: f64, seed: u64, normalise: &str) -> PyResult<Self> {
        let mut rng = Streams::new(seed).rng(Purpose::Data, 0, 0);
        TrainTest::split(&rows.0, fraction, scale(normalise)?, &mut rng).map(Self).map_err(wrong)
    }

    /// Numbers of training and of test rows.
    fn counts(&self) -> (usize, usize) {
        (self.0.train.rows(), self.0.test.rows())
    }
}

fn scale(word: &str) -> PyResult<Normalise> {
    let all = [Normalise::Auto, Normalise::None, Normalise::Minmax, Normalise::Standard, Normalise::Mnist];
    all.into_iter().find(|scale| scale.word() == word).ok_or_else(|| {
        let words = all.map(|scale| format!("\"{}\"", scale.word())).join(", ");
        DataError::new_err(format!("normalise is \"{word}\"; it must be one of {words}"))
    })
}
