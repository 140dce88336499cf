//! How a unit of work is timed: warm-up aside, then as often as fits the budget; median, least, most, and how far other
//! processes disturbed it.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::Size;
use super::cost::Cost;
use super::machine::{self, Activity};
use crate::backend::{Backend, Session};
use crate::error::RunError;
use crate::statistics::median_of_sorted;

/// Units before the first that counts, as far as they fit a quarter of the budget; one always.
const WARM_UNITS: usize = 3;
/// Units that count, however long they take.
const LEAST_UNITS: usize = 3;
/// Units that count, however short they are.
const MOST_UNITS: usize = 300;

/// How a bench is run.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Seconds for each line.
    pub seconds: f64,
    /// How much work.
    pub size: Size,
    /// Allocations of the whole program so far, where its allocator counts them.
    pub allocations: Option<fn() -> u64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { seconds: 2.0, size: Size::Full, allocations: None }
    }
}

/// An open device and how to use it.
#[derive(Debug)]
pub struct Bench<B: Backend> {
    /// The device.
    pub session: Session<B>,
    /// How long, how large.
    pub settings: Settings,
}

/// A measured quantity: the record of the yardsticks, field by field, so that one program reads both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Record {
    /// The workload and its size.
    pub name: String,
    /// Which program on which backend.
    #[serde(rename = "impl")]
    pub implementation: String,
    /// Milliseconds.
    pub median: f64,
    /// Milliseconds.
    pub min: f64,
    /// Milliseconds.
    pub max: f64,
    /// Threads of the CPU, or the GPU's backend.
    pub threads: Threads,
    /// Units timed.
    pub n: usize,
    /// Load of the machine at the end.
    pub load: Option<f64>,
    /// Cores that other processes took on average; above 0.1 the line is disturbed.
    pub foreign: Option<f64>,
    /// What else there is to say.
    pub note: String,
    /// When, UTC.
    pub t: String,
}

/// On what a line ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Threads {
    /// Threads of the CPU.
    Cpu(usize),
    /// The GPU's backend.
    Gpu(&'static str),
}

/// A record, the work behind it, and what it allocated.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The times.
    pub record: Record,
    /// Of one unit; `None` for parts whose work is not counted.
    pub cost: Option<Cost>,
    /// Heap allocations of one unit, where the program counts them.
    pub allocations: Option<f64>,
}

impl Line {
    /// The line with a remark.
    pub fn noted(mut self, note: impl Into<String>) -> Self {
        self.record.note = note.into();
        self
    }
}

/// Times and circumstances of a series of units.
#[derive(Debug)]
pub(super) struct Timed {
    /// Milliseconds of each unit; never empty.
    pub milliseconds: Vec<f64>,
    pub foreign: Option<f64>,
    /// Of each unit.
    pub allocations: Option<f64>,
}

impl<B: Backend> Bench<B> {
    /// Times one unit of work, made of `parts` equal parts, and tells the time of a part.
    pub(super) fn line(
        &self,
        name: impl Into<String>,
        cost: Cost,
        parts: usize,
        unit: impl FnMut() -> Result<(), RunError>,
    ) -> Result<Line, RunError> {
        let mut timed = self.time(unit)?;
        timed.milliseconds.iter_mut().for_each(|value| *value /= parts as f64);
        timed.allocations = timed.allocations.map(|count| count / parts as f64);
        Ok(self.told(name, Some(cost), &timed))
    }

    /// Runs a unit until the budget is spent.
    pub(super) fn time(&self, mut unit: impl FnMut() -> Result<(), RunError>) -> Result<Timed, RunError> {
        let device = self.session.device();
        let mut once = || {
            unit()?;
            // A GPU answers later than it is asked.
            device.sync().map_err(|error| RunError::Device(format!("{error:?}")))
        };
        let budget = Duration::from_secs_f64(self.settings.seconds);
        let begun = Instant::now();
        for _ in 0..WARM_UNITS {
            once()?;
            if 4 * begun.elapsed() > budget {
                break;
            }
        }
        let mut milliseconds = Vec::with_capacity(MOST_UNITS);
        let count = || self.settings.allocations.map(|count| count());
        let (activity, before, begun) = (Activity::begin(), count(), Instant::now());
        while milliseconds.len() < MOST_UNITS && (milliseconds.len() < LEAST_UNITS || begun.elapsed() < budget) {
            let start = Instant::now();
            once()?;
            milliseconds.push(1e3 * start.elapsed().as_secs_f64());
        }
        let allocations =
            count().zip(before).map(|(after, before)| (after - before) as f64 / milliseconds.len() as f64);
        Ok(Timed { milliseconds, foreign: activity.foreign(), allocations })
    }

    /// The line that times make.
    pub(super) fn told(&self, name: impl Into<String>, cost: Option<Cost>, timed: &Timed) -> Line {
        let threads =
            if B::PARALLEL_CLIENTS { Threads::Cpu(rayon::current_num_threads()) } else { Threads::Gpu(B::NAME) };
        let times = &timed.milliseconds;
        let record = Record {
            name: name.into(),
            implementation: format!("fedstein/{}", B::NAME),
            median: median(times),
            min: times.iter().copied().fold(f64::INFINITY, f64::min),
            max: times.iter().copied().fold(0.0, f64::max),
            threads,
            n: times.len(),
            load: machine::load(),
            foreign: timed.foreign.map(|share| (1e3 * share).round() / 1e3),
            note: String::new(),
            t: machine::timestamp(),
        };
        Line { record, cost, allocations: timed.allocations }
    }
}

/// The middle value, or the mean of the two: that of Python's `statistics`, and so of the yardsticks.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    median_of_sorted(&sorted).unwrap_or(f64::NAN)
}
