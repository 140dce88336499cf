//! The properties of data by which the configuration of a model or a partition scheme is checked.

/// The properties of a data set that a model or a partition scheme depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataProperties {
    /// The kind of the target.
    pub target: TargetKind,
    /// Whether every row has a natural client.
    pub natural_clients: bool,
    /// Whether the classes belong to superclasses.
    pub superclasses: bool,
    /// Whether rows have groups that stay together.
    pub groups: bool,
    /// Whether the test rows are those of natural clients without training rows.
    pub unseen_clients: bool,
}

/// The kind of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// A class, with the number of classes; `None` if that number is known only after the rows are read.
    Classes(Option<usize>),
    /// A number.
    Real,
    /// There is no target: a row is itself a likelihood, as in the toy densities.
    Likelihoods,
    /// A class or a number, which the sites of a federation tell at its beginning.
    AtSites,
}

impl DataProperties {
    /// The properties of rows with this number of classes, without natural clients or superclasses.
    pub const fn classes(count: usize) -> Self {
        Self::of_target(TargetKind::Classes(Some(count)))
    }

    /// The properties of rows with real targets, without natural clients.
    pub const REGRESSION: Self = Self::of_target(TargetKind::Real);

    /// The properties of rows with such a target, without natural clients, superclasses or groups.
    pub(crate) const fn of_target(target: TargetKind) -> Self {
        Self { target, natural_clients: false, superclasses: false, groups: false, unseen_clients: false }
    }

    /// Whether the target is a number.
    pub fn is_regression(&self) -> bool {
        self.target == TargetKind::Real
    }

    /// Whether the target is a class.
    pub fn is_classification(&self) -> bool {
        matches!(self.target, TargetKind::Classes(_))
    }

    /// Whether the rows are likelihoods without targets: a toy density.
    pub fn is_toy(&self) -> bool {
        self.target == TargetKind::Likelihoods
    }

    /// The number of classes, where the target is a class and their number is known.
    pub fn known_classes(&self) -> Option<usize> {
        match self.target {
            TargetKind::Classes(count) => count,
            _ => None,
        }
    }
}
