//! Rows with targets on the host: what every file format and generator becomes, and what a partition divides.

use ndarray::Array2;

/// A set of rows, held on the host.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// Name for tables and reports, e.g. `mnist`.
    pub name: String,
    /// One row a sample: `[rows, p]`.
    pub features: Array2<f32>,
    /// Shape of one row: `[28, 28]` for an image, `[p]` otherwise. Its product is `p`.
    pub feature_shape: Vec<usize>,
    /// Names of the columns `[p]`, where the data come with them.
    pub feature_names: Option<Vec<String>>,
    /// What is to be predicted, one a row.
    pub targets: Targets,
    /// The natural client of each row, `0..K`, where the data come with one.
    pub clients: Option<Vec<usize>>,
}

/// The targets of a [`Dataset`].
#[derive(Clone, Debug, PartialEq)]
pub enum Targets {
    /// Classification.
    Classes {
        /// Class index of each row, `0..names.len()`.
        labels: Vec<usize>,
        /// One name a class.
        names: Vec<String>,
    },
    /// Regression.
    Real {
        /// Value of each row, in the original scale and unit.
        values: Vec<f64>,
    },
    /// Nothing to predict: the rows are themselves likelihoods (the toys of [`crate::synthetic::mixture`]).
    None {
        /// Number of rows.
        rows: usize,
    },
}

impl Targets {
    /// Number of rows.
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
}

impl Dataset {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.features.nrows()
    }

    /// Number of features `p`.
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
        }
    }

    /// Number of classes, `None` when this is not classification.
    pub fn classes(&self) -> Option<usize> {
        match &self.targets {
            Targets::Classes { names, .. } => Some(names.len()),
            _ => None,
        }
    }

    /// Superclass of each class, `None` where the classes have none; CIFAR-100's have.
    pub fn superclasses(&self) -> Option<&'static [usize]> {
        match &self.targets {
            Targets::Classes { names, .. } => crate::source::cifar::superclasses(names),
            _ => None,
        }
    }

    /// Class index of each row, `None` when this is not classification.
    pub fn labels(&self) -> Option<&[usize]> {
        match &self.targets {
            Targets::Classes { labels, .. } => Some(labels),
            _ => None,
        }
    }
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
        }
    }

    #[test]
    fn select_keeps_order_repeats_rows_and_takes_everything_along() {
        let picked = small().select(&[2, 0, 2]);
        assert_eq!(picked.features, array![[5., 6.], [1., 2.], [5., 6.]]);
        assert_eq!(picked.labels(), Some(&[1, 0, 1][..]));
        assert_eq!(picked.clients, Some(vec![9, 7, 9]));
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
    fn targets_know_their_length() {
        assert_eq!(Targets::None { rows: 2 }.select(&[1]).len(), 1);
        let real = Targets::Real { values: vec![1.5, 2.5] };
        assert_eq!(real.select(&[1]), Targets::Real { values: vec![2.5] });
        assert!(!real.is_empty());
    }
}
