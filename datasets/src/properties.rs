//! What is known of data before they are read, or once they are: whether a model or a partition scheme fits them.

/// What a model and a partition scheme need to know of the rows of a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataProperties {
    /// What is to be predicted.
    pub target: TargetKind,
    /// Whether every row comes with its natural client.
    pub natural_clients: bool,
    /// Whether the classes belong to superclasses.
    pub superclasses: bool,
}

/// What is to be predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// One of so many classes; `None`: their number is known only when the rows are read.
    Classes(Option<usize>),
    /// A number.
    Real,
    /// Nothing: a row is itself a likelihood, as in the toy densities.
    Likelihoods,
}

impl DataProperties {
    /// Rows of so many classes, with neither natural clients nor superclasses.
    pub const fn classes(count: usize) -> Self {
        Self { target: TargetKind::Classes(Some(count)), natural_clients: false, superclasses: false }
    }

    /// Rows with numbers to predict, without natural clients.
    pub const REGRESSION: Self = Self { target: TargetKind::Real, natural_clients: false, superclasses: false };

    /// Whether the target is a number.
    pub fn is_regression(&self) -> bool {
        self.target == TargetKind::Real
    }

    /// Whether the rows are likelihoods without targets: a toy density.
    pub fn is_toy(&self) -> bool {
        self.target == TargetKind::Likelihoods
    }

    /// Number of classes, where the target is a class and their number is known.
    pub fn known_classes(&self) -> Option<usize> {
        match self.target {
            TargetKind::Classes(count) => count,
            _ => None,
        }
    }
}
