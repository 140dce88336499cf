//! The amount of work of a bench.

/// The amount of work in a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Size {
    /// The size of the yardsticks.
    #[default]
    Full,
    /// A size that takes milliseconds in all: it tests that everything runs, and gives no information about speed.
    Tiny,
}

impl Size {
    /// One of two values, by the size.
    pub(super) fn pick<T>(self, full: T, tiny: T) -> T {
        match self {
            Self::Full => full,
            Self::Tiny => tiny,
        }
    }
}
