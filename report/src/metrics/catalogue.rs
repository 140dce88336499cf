//! Looking up metrics in the table: all of them, one by its key, those of a view.

use super::metric::{Metric, View};
use super::report_table::REPORT;
use super::table::ROUND;

impl Metric {
    /// All metrics: first those of every round, then those that only a report computes.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        ROUND.iter().chain(REPORT)
    }

    /// The metric of a key; `None` where there is none.
    pub fn of_key(key: &str) -> Option<&'static Self> {
        Self::all().find(|metric| metric.key == key)
    }

    /// The metric behind a column: its own, or one on the clients' personal predictors.
    pub fn of_column(column: &str) -> Option<&'static Self> {
        let is_personal = |metric: &Self| metric.personal.iter().any(|of| of.key == column);
        Self::of_key(column).or_else(|| Self::all().find(|metric| is_personal(metric)))
    }

    /// The metrics of a view in its order.
    pub fn in_view(view: View) -> Vec<&'static Self> {
        let mut metrics: Vec<_> = Self::all().filter_map(|metric| Some((metric.place(view)?, metric))).collect();
        metrics.sort_by_key(|(place, _)| *place);
        metrics.into_iter().map(|(_, metric)| metric).collect()
    }
}
