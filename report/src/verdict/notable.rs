//! From which gap and how many rows on there is something to report.

/// The smallest gap that is reported: half a point.
pub(super) const NOTABLE: f64 = 0.005;

/// Fewer rows, or clusters of rows, have no verdict: the intervals of shares are approximations.
pub(crate) const FEWEST_ROWS: usize = 10;
