//! The kinds of verdicts.

use std::fmt;

use serde::{Serialize, Serializer};

/// What a verdict says, without its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VerdictKind {
    /// Of a regression or of two classes: predictions that are too high or too low on average.
    Biased,
    /// Too sure.
    OverConfident,
    /// Not sure enough.
    UnderConfident,
    /// Nothing is off beyond chance.
    CalibratedOnAverage,
    /// The rows do not tell.
    TooFewRows,
    /// [`RunSummary::not_judged`](crate::RunSummary::not_judged) says why.
    NotJudged,
}

impl VerdictKind {
    /// All kinds, in the order in which numbers of them are given.
    pub(crate) const ALL: [Self; 6] = [
        Self::Biased,
        Self::OverConfident,
        Self::UnderConfident,
        Self::CalibratedOnAverage,
        Self::TooFewRows,
        Self::NotJudged,
    ];

    /// The word in files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Biased => "biased",
            Self::OverConfident => "over-confident",
            Self::UnderConfident => "under-confident",
            Self::CalibratedOnAverage => "calibrated on average",
            Self::TooFewRows => "too few rows",
            Self::NotJudged => "not judged",
        }
    }

    /// The words behind a number of groups.
    pub(crate) fn of_groups(self) -> &'static str {
        match self {
            Self::TooFewRows => "with too few rows to tell",
            kind => kind.word(),
        }
    }

    /// The class of the page's style: which colour the headline has.
    pub(crate) fn style(self) -> &'static str {
        match self {
            Self::Biased | Self::OverConfident => "over",
            Self::UnderConfident => "under",
            Self::CalibratedOnAverage | Self::TooFewRows | Self::NotJudged => "level",
        }
    }
}

impl fmt::Display for VerdictKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl Serialize for VerdictKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}
