//! The metrics of a report's task, and the section `overall` of `report.json` that shows them.

use serde::{Serialize, Serializer};

use crate::metrics::{Metric, Unit, View};

/// The metrics of a report.
#[derive(Debug, Clone)]
pub struct Overall {
    /// Number of rows.
    pub n: usize,
    /// Other sizes by their keys in `report.json`: classes and bins, or particles.
    pub sizes: Vec<(&'static str, usize)>,
    /// Every metric of the task with its value, in the order of the table of metrics.
    pub values: Vec<(&'static Metric, Option<f64>)>,
}

impl Overall {
    /// The metrics of a task; `value` gives `None` for metrics of the other one.
    pub(crate) fn new(
        n: usize,
        sizes: Vec<(&'static str, usize)>,
        value: impl Fn(&Metric) -> Option<Option<f64>>,
    ) -> Self {
        Self { n, sizes, values: Metric::all().filter_map(|metric| Some((metric, value(metric)?))).collect() }
    }

    /// The value of a metric by its key; `None` where it has none.
    pub fn get(&self, key: &str) -> Option<f64> {
        self.values.iter().find(|(metric, _)| metric.key == key).and_then(|(_, value)| *value)
    }

    /// Another size by its key in `report.json`.
    pub(crate) fn size(&self, key: &str) -> Option<usize> {
        self.sizes.iter().find(|(known, _)| *known == key).map(|(_, size)| *size)
    }

    /// The number of rows that a metric counts; 0 where it has no value.
    pub(crate) fn count(&self, key: &str) -> usize {
        self.get(key).map_or(0, |count| count as usize)
    }

    /// The metrics of a view that the task has, in the view's order.
    pub(crate) fn in_view(&self, view: View) -> Vec<(&'static Metric, Option<f64>)> {
        let own = |metric: &Metric| self.values.iter().find(|(own, _)| own.key == metric.key).copied();
        Metric::in_view(view).into_iter().filter_map(own).collect()
    }
}

/// A number of rows is written as a whole number.
#[derive(Serialize)]
#[serde(untagged)]
enum Number {
    Whole(usize),
    Real(Option<f64>),
}

impl Serialize for Overall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let size = |(key, size)| (key, Number::Whole(size));
        let value = |(metric, value): (&'static Metric, Option<f64>)| match value {
            Some(count) if metric.unit == Unit::Rows => (metric.key, Number::Whole(count as usize)),
            value => (metric.key, Number::Real(value)),
        };
        let sizes = [("n", self.n)].into_iter().chain(self.sizes.iter().copied()).map(size);
        serializer.collect_map(sizes.chain(self.in_view(View::Overall).into_iter().map(value)))
    }
}
