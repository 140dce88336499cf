//! Computes the points of a figure from kept results: one sample per seed, then means with their standard errors.

use std::collections::BTreeMap;
use std::path::Path;

use super::density::{Drawn, Toy};
use super::figure::{Along, DENSITY, Figure, Panel, Statistic};
use super::grid::{Cell, Grid};
use super::held::Held;
use super::kept::{Kept, notes};
use super::runner::Failure;
use crate::error::RunError;
use crate::metrics::Metric;

/// The kept results of a figure's runs.
#[derive(Debug)]
pub struct Results<'a> {
    /// The figure.
    pub figure: &'a Figure,
    /// The figure's cells.
    pub grid: &'a Grid,
    /// The seeds and results of the finished runs, by cell.
    pub kept: Vec<Vec<(u64, Kept)>>,
    /// The exact densities, for panels that show a toy's.
    pub toys: Vec<Option<Toy>>,
    /// The samples that a panel shows, by panel.
    pub samples: Vec<Vec<Sample>>,
    /// Mean seconds of a run over seeds, by cell; `None` where no run has finished or the time is unknown.
    pub seconds: Vec<Option<f64>>,
    /// The distinct notes of the runs, with the number of runs that gave each.
    pub notes: BTreeMap<String, usize>,
    /// Descriptions of the runs that failed.
    pub failures: Vec<String>,
    /// The numbers known of each cell's runs; `None` if all are known.
    pub held: Option<Vec<Held>>,
}

/// One value of one seed: a row of the figure's CSV file.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The curve. The curves of a panel are its series, then the exact density, then the local ones.
    pub curve: Curve,
    /// The index of the point on the curve, the same for every seed.
    pub slot: usize,
    /// The case's name, the sweep's value or the second coordinate.
    pub case: String,
    /// The seed; 0 for values without one.
    pub seed: u64,
    /// The horizontal coordinate.
    pub x: f64,
    /// The vertical coordinate.
    pub value: f64,
}

/// A curve of a panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Curve {
    /// The curve of a series, by its index in [`Figure::series`].
    Series(usize),
    /// The exact posterior of a toy.
    Exact,
    /// The local posterior of client k alone.
    Local(usize),
}

/// The mean of a point over seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanPoint {
    /// Mean horizontal coordinate.
    pub x: f64,
    /// Mean vertical coordinate.
    pub y: f64,
    /// Standard error of the mean; `None` for one seed.
    pub sem: Option<f64>,
}

impl<'a> Results<'a> {
    /// Reads the kept results of a figure's runs, of unwanted cells too; `failures` are the runs that have just failed.
    ///
    /// # Errors
    /// A toy's config is inconsistent.
    pub fn read(figure: &'a Figure, grid: &'a Grid, directory: &Path, failures: &[Failure]) -> Result<Self, RunError> {
        let of_cell = |cell: &Cell| {
            // A cell whose config cannot be resolved has no result either.
            let kept = grid.seeds.clone().filter_map(|seed| {
                let (_, resolved) = grid.config(figure, cell, seed).ok()?;
                Some((seed, Kept::read(directory, &resolved)?))
            });
            kept.collect()
        };
        let kept: Vec<Vec<(u64, Kept)>> = grid.cells.iter().map(of_cell).collect();
        let seconds = |kept: &Vec<(u64, Kept)>| {
            let sum: f64 = kept.iter().map(|(_, kept)| kept.seconds).sum();
            (!kept.is_empty()).then(|| sum / kept.len() as f64)
        };
        let mut results = Self {
            figure,
            grid,
            seconds: kept.iter().map(seconds).collect(),
            notes: notes(kept.iter().flatten().map(|(_, kept)| kept)),
            failures: failures.iter().map(|failure| format!("{}: {}", failure.label, failure.problem)).collect(),
            kept,
            toys: Self::toys(figure, grid)?,
            samples: Vec::new(),
            held: None,
        };
        results.samples = (0..figure.panels.len()).map(|panel| results.shown(panel)).collect();
        Ok(results)
    }

    /// The exact densities, for panels that show a toy's.
    ///
    /// # Errors
    /// A toy's config is inconsistent.
    pub(super) fn toys(figure: &Figure, grid: &Grid) -> Result<Vec<Option<Toy>>, RunError> {
        let toy = |(at, panel): (usize, &Panel)| -> Result<Option<Toy>, RunError> {
            let shown = matches!(panel.x, Along::Theta | Along::Plane);
            let first = grid.cells.iter().find(|cell| cell.panel == at).filter(|_| shown);
            match first.and_then(|cell| grid.config(figure, cell, 1).ok()) {
                Some((config, _)) => Toy::of(&config),
                None => Ok(None),
            }
        };
        figure.panels.iter().enumerate().map(toy).collect()
    }

    /// Whether a statistic of a metric is available for a cell's runs.
    pub fn holds(&self, cell: usize, metric: &str, statistic: Statistic) -> bool {
        self.held.as_ref().is_none_or(|held| held[cell].has(metric, statistic))
    }

    /// The cells of a panel with their results.
    pub fn of_panel(&self, panel: usize) -> impl Iterator<Item = (&Cell, &Vec<(u64, Kept)>)> {
        self.grid.cells.iter().zip(&self.kept).filter(move |(cell, _)| cell.panel == panel)
    }

    /// All samples that a panel shows, computed from the runs.
    fn shown(&self, panel: usize) -> Vec<Sample> {
        let here = &self.figure.panels[panel];
        match here.x {
            Along::Round | Along::UplinkBytes | Along::DownlinkBytes => self.over_rounds(panel),
            Along::Sweep => self.over_cells(panel, |cell, _| Some(cell.x.unwrap_or(cell.slot as f64))),
            Along::Series => self.over_cells(panel, |cell, seed| {
                let axis = |(other, _): &(&Cell, _)| other.slot == cell.slot && Some(other.series) == here.against;
                let (axis, kept) = self.of_panel(panel).find(axis).filter(|(axis, _)| axis.series != cell.series)?;
                let (_, kept) = kept.iter().find(|(other, _)| *other == seed)?;
                self.final_value(axis, kept, &here.y)
            }),
            Along::Confidence => self.bins(panel),
            Along::Theta | Along::Plane => self.densities(panel),
        }
    }

    /// The metric of the last round, or of the round that the cell's series selects.
    pub fn final_value(&self, cell: &Cell, kept: &Kept, metric: &str) -> Option<f64> {
        let values = kept.values(metric);
        match self.figure.series[cell.series].round {
            Some(round) => values.iter().find(|(at, _)| *at == round).map(|(_, value)| *value),
            None => kept.result(metric),
        }
    }

    fn over_rounds(&self, panel: usize) -> Vec<Sample> {
        let here = &self.figure.panels[panel];
        let mut samples = Vec::new();
        for (cell, results) in self.of_panel(panel) {
            for (seed, kept) in results {
                let values = kept.values(&here.y);
                // A horizontal line shows only its height.
                let skip = if self.figure.series[cell.series].flat { values.len().saturating_sub(1) } else { 0 };
                for (round, value) in values.into_iter().skip(skip) {
                    let (up, down) = kept.bytes_until(round);
                    let x = match here.x {
                        Along::UplinkBytes => up,
                        Along::DownlinkBytes => down,
                        _ => round as f64,
                    };
                    samples.push(sample(cell, round, *seed, x, value));
                }
            }
        }
        samples
    }

    fn over_cells(&self, panel: usize, x: impl Fn(&Cell, u64) -> Option<f64>) -> Vec<Sample> {
        let metric = &self.figure.panels[panel].y;
        let mut samples = Vec::new();
        for (cell, results) in self.of_panel(panel) {
            for (seed, kept) in results {
                if let (Some(x), Some(value)) = (x(cell, *seed), self.final_value(cell, kept, metric)) {
                    samples.push(sample(cell, cell.slot, *seed, x, value));
                }
            }
        }
        samples
    }

    fn bins(&self, panel: usize) -> Vec<Sample> {
        let mut samples = Vec::new();
        for (cell, results) in self.of_panel(panel) {
            for (seed, kept) in results {
                for (slot, bin) in kept.bins.iter().enumerate() {
                    if let (Some(x), Some(value)) = (bin.confidence, bin.accuracy) {
                        let case = format!("bin {} of {}: {} rows", slot + 1, kept.bins.len(), bin.rows);
                        samples.push(Sample { case, ..sample(cell, slot, *seed, x, value) });
                    }
                }
            }
        }
        samples
    }

    fn densities(&self, panel: usize) -> Vec<Sample> {
        let Some(toy) = &self.toys[panel] else { return Vec::new() };
        let plane = self.figure.panels[panel].x == Along::Plane;
        let mut samples = Vec::new();
        for (cell, results) in self.of_panel(panel) {
            // Contours show a single run.
            for (seed, kept) in results.iter().take(if plane { 1 } else { usize::MAX }) {
                if let Some(density) = &kept.density {
                    push_drawn(&mut samples, Curve::Series(cell.series), *seed, &toy.reached(density));
                }
            }
        }
        if samples.is_empty() {
            return samples;
        }
        push_drawn(&mut samples, Curve::Exact, 0, &toy.exact());
        for client in (0..toy.clients()).filter(|_| !plane) {
            push_drawn(&mut samples, Curve::Local(client), 0, &toy.local(client));
        }
        samples
    }

    /// The name of a curve in files.
    pub fn curve_id(&self, curve: Curve) -> String {
        match curve {
            Curve::Series(series) => self.figure.series[series].id.clone(),
            Curve::Exact => "exact".into(),
            Curve::Local(client) => format!("local-{}", client + 1),
        }
    }

    /// The name of a curve in legends.
    pub fn curve_name(&self, curve: Curve) -> String {
        match curve {
            Curve::Series(series) => self.figure.series[series].name.clone(),
            Curve::Exact => "exact posterior".into(),
            Curve::Local(client) => format!("local posterior of agent {}", client + 1),
        }
    }
}

fn sample(cell: &Cell, slot: usize, seed: u64, x: f64, value: f64) -> Sample {
    Sample { curve: Curve::Series(cell.series), slot, case: cell.case.clone(), seed, x, value }
}

fn push_drawn(samples: &mut Vec<Sample>, curve: Curve, seed: u64, drawn: &Drawn) {
    for (slot, (point, value)) in drawn.points.iter().zip(&drawn.values).enumerate() {
        let case = point.get(1).map_or_else(String::new, |second| format!("{second:.2}"));
        samples.push(Sample { curve, slot, case, seed, x: point[0], value: *value });
    }
}

/// The samples of each curve up to the point at which the first of its seeds ends. A curve of which a seed begins later than
/// that is left whole.
pub fn until_a_seed_ends(samples: &[Sample]) -> Vec<Sample> {
    let mut spans: BTreeMap<Curve, BTreeMap<u64, (usize, usize)>> = BTreeMap::new();
    for Sample { curve, seed, slot, .. } in samples {
        let (first, last) = spans.entry(*curve).or_default().entry(*seed).or_insert((*slot, *slot));
        (*first, *last) = ((*first).min(*slot), (*last).max(*slot));
    }
    let end = |seeds: &BTreeMap<u64, (usize, usize)>| {
        let end = seeds.values().map(|(_, last)| *last).min().unwrap_or(usize::MAX);
        if seeds.values().all(|(first, _)| *first <= end) { end } else { usize::MAX }
    };
    let ends: BTreeMap<Curve, usize> = spans.iter().map(|(curve, seeds)| (*curve, end(seeds))).collect();
    samples.iter().filter(|sample| sample.slot <= ends[&sample.curve]).cloned().collect()
}

/// Means over seeds for every point of every curve.
pub fn means(samples: &[Sample]) -> BTreeMap<Curve, Vec<MeanPoint>> {
    let mut points: BTreeMap<(Curve, usize), Vec<&Sample>> = BTreeMap::new();
    for sample in samples {
        points.entry((sample.curve, sample.slot)).or_default().push(sample);
    }
    let mut curves: BTreeMap<Curve, Vec<MeanPoint>> = BTreeMap::new();
    for ((curve, _), samples) in points {
        let values: Vec<f64> = samples.iter().map(|sample| sample.value).collect();
        let (y, sem) = mean_and_sem(&values);
        let x = samples.iter().map(|sample| sample.x).sum::<f64>() / samples.len() as f64;
        curves.entry(curve).or_default().push(MeanPoint { x, y, sem });
    }
    curves
}

/// The mean of values `[n]` and its standard error, sd/√n with n − 1 in the variance; no error for one value, NaN for
/// none.
pub fn mean_and_sem(values: &[f64]) -> (f64, Option<f64>) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (values.len() > 1).then(|| (squares / (n - 1.0) / n).sqrt()))
}

/// The axis label of a metric.
pub fn label(metric: &str) -> String {
    match metric {
        "client_uplink_mib" => return "Uplink of a client in a round (MiB)".to_owned(),
        DENSITY => return "Density".to_owned(),
        _ => {}
    }
    match (Metric::of_key(metric), metric.strip_prefix("personal_").and_then(Metric::of_key)) {
        (Some(known), _) => known.axis_label(),
        (None, Some(known)) => known.axis_label() + " on clients' own rows",
        (None, None) => metric.replace('_', " "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_ends_with_the_first_of_its_seeds() {
        let point = |curve, seed, slot: usize| Sample {
            curve: Curve::Series(curve),
            slot,
            case: String::new(),
            seed,
            x: slot as f64,
            value: 1.0,
        };
        // Two seeds of a curve with 3 and 5 rounds; one with a single point each, at its own last round.
        let rounds = |curve, seed, last| (1..=last).map(move |slot| point(curve, seed, slot));
        let mut samples: Vec<Sample> = rounds(0, 1, 3).chain(rounds(0, 2, 5)).collect();
        samples.extend([point(1, 1, 3), point(1, 2, 5)]);
        let shown = until_a_seed_ends(&samples);
        let slots = |curve| {
            let of_curve = shown.iter().filter(|sample| sample.curve == Curve::Series(curve));
            of_curve.map(|sample| (sample.seed, sample.slot)).collect::<Vec<_>>()
        };
        assert_eq!(slots(0), [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]);
        assert_eq!(slots(1), [(1, 3), (2, 5)]);
    }

    #[test]
    fn the_standard_error_is_that_of_the_textbook() {
        // The values 1, 2, 3 have sd 1 and n = 3.
        let (mean, sem) = mean_and_sem(&[1.0, 2.0, 3.0]);
        assert!((mean - 2.0).abs() < 1e-15 && (sem.unwrap() - (1.0_f64 / 3.0).sqrt()).abs() < 1e-15);
        assert_eq!(mean_and_sem(&[4.0]), (4.0, None));
    }

    #[test]
    fn points_of_equal_slots_are_averaged_and_keep_their_order() {
        let point =
            |slot, seed, x, value| Sample { curve: Curve::Series(0), slot, case: String::new(), seed, x, value };
        let means = means(&[point(2, 1, 20.0, 1.0), point(10, 1, 100.0, 5.0), point(2, 2, 22.0, 3.0)]);
        let curve = &means[&Curve::Series(0)];
        assert_eq!((curve[0].x, curve[0].y, curve[0].sem), (21.0, 2.0, Some(1.0)));
        assert_eq!((curve[1].x, curve[1].y, curve[1].sem), (100.0, 5.0, None));
    }
}
