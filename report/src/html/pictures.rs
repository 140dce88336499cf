//! The pictures that a page has.

use crate::svg::Picture;

/// The pictures of a report.
#[derive(Debug)]
pub(crate) struct Pictures<'a> {
    pub reliability: &'a Picture,
    pub curves: Option<&'a Picture>,
    /// The curves of further runs.
    pub more_curves: &'a [Picture],
    /// Of other runs, where they are too many for one picture.
    pub runs: Option<&'a Picture>,
    pub partition: Option<&'a Picture>,
    /// Of two classes.
    pub positive: Option<&'a Picture>,
    /// Of two classes that both have rows.
    pub decision: Option<&'a Picture>,
    /// Of the sites, or of the clients' personal predictors.
    pub clients: Option<&'a Picture>,
    /// Of three classes or more, but not too many.
    pub confusion: Option<&'a Picture>,
}
