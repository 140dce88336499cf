//! Rows with targets on the host: the result of every file format and generator, and the input of a partition.

use crate::DataError;
use ndarray::Array2;
use std::collections::BTreeSet;

/// A set of rows, held on the host.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// The name for tables and reports, e.g. `mnist`.
    pub name: String,
    /// The features `[rows, p]`, one row per sample.
    pub features: Array2<f32>,
    /// The shape of one row: `[28, 28]` for an image, `[p]` otherwise. Its product is `p`.
    pub feature_shape: Vec<usize>,
    /// The names of the columns `[p]`, if the data have them.
    pub feature_names: Option<Vec<String>>,
    /// The targets, one per row.
    pub targets: Targets,
    /// The natural client of each row, `0..K`, if the data have clients.
    pub clients: Option<Vec<usize>>,
    /// The names of the natural clients `[K]`, if the data have them.
    pub client_names: Option<Vec<String>>,
    /// The group of each row, `0..G`, if rows of one group are to stay together: see [`Dataset::with_groups`].
    pub groups: Option<Vec<usize>>,
    /// The line of its file that each row is in, from 1, if the data are a table that a user has written.
    pub lines: Option<Vec<u64>>,
}

/// The targets of a [`Dataset`].
#[derive(Clone, Debug, PartialEq)]
pub enum Targets {
    /// Classification.
    Classes {
        /// The class index of each row, `0..names.len()`.
        labels: Vec<usize>,
        /// One name per class.
        names: Vec<String>,
    },
    /// Regression.
    Real {
        /// The value of each row, in the original scale and unit.
        values: Vec<f64>,
    },
    /// There are no targets: the rows are themselves likelihoods (the toy densities of [`crate::synthetic::mixture`]).
    None {
        /// The number of rows.
        rows: usize,
    },
}

impl Targets {
    /// The number of rows.
    pub fn len(&self) -> usize {
        match self {
            Targets::Classes { labels, .. } => labels.len(),
            Targets::Real { values } => values.len(),
            Targets::None { rows } => *rows,
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The targets of some rows, in the order given.
    ///
    /// # Panics
    /// When a row is out of range.
    pub fn select(&self, rows: &[usize]) -> Targets {
        match self {
            Targets::Classes { labels, names } => {
                Targets::Classes { labels: rows.iter().map(|&r| labels[r]).collect(), names: names.clone() }
            }
            Targets::Real { values } => Targets::Real { values: rows.iter().map(|&r| values[r]).collect() },
            Targets::None { .. } => Targets::None { rows: rows.len() },
        }
    }

    /// The number of these rows in each class `[C]`; one number where the targets are not classes.
    ///
    /// # Panics
    /// When a row is out of range.
    pub fn counts(&self, rows: impl Iterator<Item = usize>) -> Vec<usize> {
        match self {
            Targets::Classes { labels, names } => {
                let mut counts = vec![0; names.len()];
                rows.for_each(|row| counts[labels[row]] += 1);
                counts
            }
            _ => vec![rows.count()],
        }
    }
}

impl Dataset {
    /// A data set of these rows, without names of the features or natural clients.
    ///
    /// # Arguments
    /// - `name`: for tables and reports.
    /// - `features`: `[rows, p]`, finite.
    /// - `targets`: one per row. Classes are numbers below the number of names, which differ; real values are finite.
    ///
    /// # Errors
    /// [`DataError::Rows`] where there are no rows or columns, where features and targets do not fit together, or where
    /// a number is not finite.
    pub fn new(name: impl Into<String>, features: Array2<f32>, targets: Targets) -> Result<Self, DataError> {
        let feature_shape = vec![features.ncols()];
        let name = name.into();
        let data = Self {
            name,
            features,
            feature_shape,
            feature_names: None,
            targets,
            clients: None,
            client_names: None,
            groups: None,
            lines: None,
        };
        data.check()?;
        Ok(data)
    }

    /// Sets the names of the features `[p]`.
    ///
    /// # Errors
    /// [`DataError::Rows`] where there is not one name per column, or two are the same.
    pub fn with_feature_names(mut self, names: Vec<String>) -> Result<Self, DataError> {
        self.feature_names = Some(names);
        self.check()?;
        Ok(self)
    }

    /// Sets the shape of each row: `[28, 28]` or `[3, 32, 32]` for images.
    ///
    /// # Errors
    /// [`DataError::Rows`] where the shape's product is not the number of columns.
    pub fn with_feature_shape(mut self, shape: Vec<usize>) -> Result<Self, DataError> {
        self.feature_shape = shape;
        self.check()?;
        Ok(self)
    }

    /// Sets the natural client of each row `[rows]`, numbered from 0.
    ///
    /// # Errors
    /// [`DataError::Rows`] where there is not one client per row.
    pub fn with_clients(mut self, clients: Vec<usize>) -> Result<Self, DataError> {
        self.clients = Some(clients);
        self.check()?;
        Ok(self)
    }

    /// Sets the names of the natural clients, by their numbers.
    ///
    /// # Errors
    /// [`DataError::Rows`] where a row is of a client without a name, or two names are the same.
    pub fn with_client_names(mut self, names: Vec<String>) -> Result<Self, DataError> {
        self.client_names = Some(names);
        self.check()?;
        Ok(self)
    }

    /// Sets the group of each row `[rows]`, such as the patient of a visit, numbered from 0. The rows of a group stay
    /// together where rows are drawn for testing, validation or calibration, and with the partition `iid`.
    ///
    /// # Errors
    /// [`DataError::Rows`] where there is not one group per row.
    pub fn with_groups(mut self, groups: Vec<usize>) -> Result<Self, DataError> {
        self.groups = Some(groups);
        self.check()?;
        Ok(self)
    }

    /// Checks that the fields fit together.
    ///
    /// # Errors
    /// [`DataError::Rows`] with the first field that does not.
    pub(crate) fn check(&self) -> Result<(), DataError> {
        let (rows, width) = (self.rows(), self.width());
        let refuse = |problem: String| Err(DataError::Rows { name: self.name.clone(), problem });
        if rows == 0 || width == 0 {
            return refuse(format!("{rows} rows of {width} features; there must be at least one of both"));
        }
        if let Some(((row, column), value)) = self.features.indexed_iter().find(|(_, value)| !value.is_finite()) {
            return refuse(format!("row {row}, feature {column} is {value}; features must be finite"));
        }
        if self.targets.len() != rows {
            return refuse(format!("{} targets for {rows} row(s)", self.targets.len()));
        }
        match &self.targets {
            Targets::Classes { labels, names } => {
                if names.len() < 2 {
                    return refuse(format!("{} class(es); there must be at least 2", names.len()));
                }
                if let Some(name) = repeated(names) {
                    return refuse(format!("two classes are called `{name}`; each needs a name of its own"));
                }
                if let Some((row, label)) = labels.iter().enumerate().find(|(_, label)| **label >= names.len()) {
                    return refuse(format!("row {row} has class {label}; the classes are 0 to {}", names.len() - 1));
                }
            }
            Targets::Real { values } => {
                // Models have numbers of 32 bits, and the squares of larger ones may overflow in 64.
                let is_usable = |value: f64| (value as f32).is_finite();
                if let Some((row, value)) = values.iter().enumerate().find(|(_, value)| !is_usable(**value)) {
                    return refuse(format!(
                        "row {row} has the target {value:e}; targets must be finite, and below 3.4e38"
                    ));
                }
            }
            Targets::None { .. } => {}
        }
        let product = self.feature_shape.iter().try_fold(1usize, |product, &side| product.checked_mul(side));
        if product != Some(width) {
            return refuse(format!("a row of {width} features cannot have the shape {:?}", self.feature_shape));
        }
        if let Some(names) = self.feature_names.as_ref().filter(|names| names.len() != width) {
            return refuse(format!("{} names for {width} features", names.len()));
        }
        if let Some(name) = self.feature_names.as_deref().and_then(repeated) {
            return refuse(format!("two features are called `{name}`; each needs a name of its own"));
        }
        if let Some(name) = self.client_names.as_deref().and_then(repeated) {
            return refuse(format!("two clients are called `{name}`; each needs a name of its own"));
        }
        if let Some(clients) = self.clients.as_ref().filter(|clients| clients.len() != rows) {
            return refuse(format!("{} natural clients for {rows} row(s)", clients.len()));
        }
        if let Some(groups) = self.groups.as_ref().filter(|groups| groups.len() != rows) {
            return refuse(format!("{} groups for {rows} row(s)", groups.len()));
        }
        if let Some(lines) = self.lines.as_ref().filter(|lines| lines.len() != rows) {
            return refuse(format!("{} lines for {rows} row(s)", lines.len()));
        }
        let last = self.clients.iter().flatten().max().copied();
        if let (Some(names), Some(last)) = (&self.client_names, last)
            && last >= names.len()
        {
            return refuse(format!("{} names of clients, and a row is of client {last}", names.len()));
        }
        Ok(())
    }

    /// What a natural client is called: its name, or its number where it has none.
    pub fn client_name(&self, client: usize) -> String {
        let named = self.client_names.as_ref().and_then(|names| names.get(client));
        named.map_or_else(|| client.to_string(), String::clone)
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.features.nrows()
    }

    /// The number of features `p`.
    pub fn width(&self) -> usize {
        self.features.ncols()
    }

    /// A copy of some rows, in the order given; rows may repeat.
    ///
    /// # Panics
    /// When a row is out of range.
    pub fn select(&self, rows: &[usize]) -> Dataset {
        Dataset {
            name: self.name.clone(),
            features: select_rows(&self.features, rows),
            feature_shape: self.feature_shape.clone(),
            feature_names: self.feature_names.clone(),
            targets: self.targets.select(rows),
            clients: self.clients.as_ref().map(|clients| rows.iter().map(|&r| clients[r]).collect()),
            client_names: self.client_names.clone(),
            groups: self.groups.as_ref().map(|groups| rows.iter().map(|&r| groups[r]).collect()),
            lines: self.lines.as_ref().map(|lines| rows.iter().map(|&r| lines[r]).collect()),
        }
    }

    /// The number of classes, `None` when this is not classification.
    pub fn classes(&self) -> Option<usize> {
        match &self.targets {
            Targets::Classes { names, .. } => Some(names.len()),
            _ => None,
        }
    }

    /// The class index of each row, `None` when this is not classification.
    pub fn labels(&self) -> Option<&[usize]> {
        match &self.targets {
            Targets::Classes { labels, .. } => Some(labels),
            _ => None,
        }
    }
}

/// The first name that has occurred before.
fn repeated(names: &[String]) -> Option<&str> {
    let mut seen = BTreeSet::new();
    names.iter().find(|name| !seen.insert(*name)).map(String::as_str)
}

/// Copies rows `[rows.len(), p]`. Several times faster than `ndarray`'s `select` on half a million short rows.
fn select_rows(features: &Array2<f32>, rows: &[usize]) -> Array2<f32> {
    let width = features.ncols();
    let mut flat = Vec::with_capacity(rows.len() * width);
    for &row in rows {
        let row = features.row(row);
        match row.as_slice() {
            Some(slice) => flat.extend_from_slice(slice),
            None => flat.extend(row.iter()),
        }
    }
    Array2::from_shape_vec((rows.len(), width), flat).expect("rows.len() * width numbers were copied")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{ShapeBuilder, array};

    fn small() -> Dataset {
        Dataset {
            name: "small".into(),
            features: array![[1., 2.], [3., 4.], [5., 6.]],
            feature_shape: vec![2],
            feature_names: Some(vec!["x".into(), "y".into()]),
            targets: Targets::Classes { labels: vec![0, 1, 1], names: vec!["a".into(), "b".into()] },
            clients: Some(vec![7, 8, 9]),
            client_names: None,
            groups: Some(vec![4, 4, 0]),
            lines: Some(vec![2, 3, 5]),
        }
    }

    #[test]
    fn select_keeps_order_repeats_rows_and_takes_everything_along() {
        let picked = small().select(&[2, 0, 2]);
        assert_eq!(picked.features, array![[5., 6.], [1., 2.], [5., 6.]]);
        assert_eq!(picked.labels(), Some(&[1, 0, 1][..]));
        assert_eq!(picked.clients, Some(vec![9, 7, 9]));
        assert_eq!((&picked.groups, &picked.lines), (&Some(vec![0, 4, 0]), &Some(vec![5, 2, 5])));
        assert_eq!(picked.feature_names, small().feature_names);
        assert_eq!(picked.classes(), Some(2));
        assert_eq!((picked.rows(), picked.width()), (3, 2));
    }

    #[test]
    fn select_works_on_features_in_column_order() {
        let mut data = small();
        data.features = Array2::from_shape_vec((3, 2).f(), vec![1., 3., 5., 2., 4., 6.]).unwrap();
        assert!(data.features.row(0).as_slice().is_none());
        assert_eq!(data.select(&[1]).features, array![[3., 4.]]);
    }

    #[test]
    fn selecting_no_rows_keeps_the_width() {
        assert_eq!(small().select(&[]).features.dim(), (0, 2));
    }

    #[test]
    fn rows_whose_fields_do_not_fit_together_are_refused() {
        let two = || vec!["a".to_owned(), "b".to_owned()];
        let classes = |labels| Targets::Classes { labels, names: two() };
        let message = |result: Result<Dataset, DataError>| result.unwrap_err().to_string();
        let new = |features, targets| Dataset::new("mine", features, targets);
        assert_eq!(
            message(new(array![[1.], [f32::NAN]], classes(vec![0, 1]))),
            "rows of `mine`: row 1, feature 0 is NaN; features must be finite"
        );
        assert!(message(new(array![[1.], [2.]], classes(vec![0]))).ends_with("1 targets for 2 row(s)"));
        assert!(message(new(array![[1.]], classes(vec![2]))).ends_with("row 0 has class 2; the classes are 0 to 1"));
        assert!(message(new(Array2::zeros((0, 3)), classes(vec![]))).contains("0 rows of 3 features"));
        let one = Targets::Classes { labels: vec![0], names: vec!["a".into()] };
        assert!(message(new(array![[1.]], one)).contains("at least 2"));
        let values = vec![f64::INFINITY];
        assert!(message(new(array![[1.]], Targets::Real { values })).contains("row 0 has the target inf"));
        let fine = || new(array![[1., 2.], [3., 4.]], classes(vec![0, 1])).unwrap();
        assert!(message(fine().with_feature_names(vec!["x".into()])).ends_with("1 names for 2 features"));
        assert!(message(fine().with_clients(vec![0])).ends_with("1 natural clients for 2 row(s)"));
        assert!(message(fine().with_feature_shape(vec![3])).contains("cannot have the shape [3]"));
        assert!(message(fine().with_feature_shape(vec![usize::MAX, 2])).contains("cannot have the shape"));
        assert_eq!(fine().with_feature_shape(vec![2, 1]).unwrap().feature_shape, [2, 1]);
        let twice = || vec!["x".to_owned(), "x".to_owned()];
        let repeated = Targets::Classes { labels: vec![0, 1], names: twice() };
        assert!(
            message(new(array![[1.], [2.]], repeated))
                .ends_with("two classes are called `x`; each needs a name of its own")
        );
        assert!(message(fine().with_feature_names(twice())).contains("two features are called `x`"));
        assert!(message(fine().with_client_names(twice())).contains("two clients are called `x`"));
    }

    #[test]
    fn targets_have_a_length() {
        assert_eq!(Targets::None { rows: 2 }.select(&[1]).len(), 1);
        let real = Targets::Real { values: vec![1.5, 2.5] };
        assert_eq!(real.select(&[1]), Targets::Real { values: vec![2.5] });
        assert!(!real.is_empty());
    }
}
