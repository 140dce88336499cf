//! Timing of a unit of work: some warm-up units, then as many units as fit the budget. The result holds the median, the
//! minimum, the maximum, and the disturbance by other processes.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::activity::{self, Activity};
use super::cost::Cost;
use super::size::Size;
use crate::backend::Session;
use crate::error::RunError;
use crate::machine;
use crate::statistics::median_of_sorted;

/// The number of warm-up units, as far as they fit a quarter of the budget; at least one is run.
const WARM_UNITS: usize = 3;
/// The minimum number of timed units, however long they take.
const LEAST_UNITS: usize = 3;
/// The maximum number of timed units, however short they are.
const MOST_UNITS: usize = 300;

/// The settings of a bench.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Seconds for each line.
    pub seconds: f64,
    /// The amount of work in a unit.
    pub size: Size,
    /// A function that returns the allocations of the whole program so far, where its allocator counts them.
    pub allocations: Option<fn() -> u64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { seconds: 2.0, size: Size::Full, allocations: None }
    }
}

/// An open device and the settings of the bench.
#[derive(Debug)]
pub struct Bench {
    /// The device.
    pub session: Session,
    /// The budget and the size.
    pub settings: Settings,
}

/// A measured quantity: the record of the yardsticks, field by field, so that one program reads both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Record {
    /// The workload and its size.
    pub name: String,
    /// The program and its backend.
    #[serde(rename = "impl")]
    pub implementation: String,
    /// The median time of a unit, milliseconds.
    pub median: f64,
    /// The least time of a unit, milliseconds.
    pub min: f64,
    /// The largest time of a unit, milliseconds.
    pub max: f64,
    /// The threads of the CPU, or the GPU's backend.
    pub threads: Threads,
    /// The number of timed units.
    pub n: usize,
    /// The load of the machine at the end.
    pub load: Option<f64>,
    /// The average number of cores that other processes used; above 0.1 the line counts as disturbed.
    pub foreign: Option<f64>,
    /// Remarks.
    pub note: String,
    /// The time of the measurement, UTC.
    pub t: String,
}

/// The hardware on which a line ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Threads {
    /// The number of CPU threads.
    Cpu(usize),
    /// The GPU's backend.
    Gpu(&'static str),
}

/// A record, its operations and bytes, and its allocations.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The times.
    pub record: Record,
    /// The cost of one unit; `None` for parts whose work is not counted.
    pub cost: Option<Cost>,
    /// Heap allocations of one unit, where the program counts them.
    pub allocations: Option<f64>,
}

impl Line {
    /// Adds a remark to the line.
    pub fn noted(mut self, note: impl Into<String>) -> Self {
        self.record.note = note.into();
        self
    }
}

/// The times and the circumstances of a series of units.
#[derive(Debug)]
pub(super) struct Timed {
    /// The milliseconds of each unit; never empty.
    pub milliseconds: Vec<f64>,
    pub foreign: Option<f64>,
    /// The heap allocations of one unit, where they are counted.
    pub allocations: Option<f64>,
}

impl Timed {
    /// The times and allocations of one part of units that consist of `parts` equal parts.
    pub fn of_one(mut self, parts: usize) -> Self {
        self.milliseconds.iter_mut().for_each(|value| *value /= parts as f64);
        self.allocations = self.allocations.map(|count| count / parts as f64);
        self
    }
}

/// A unit of work.
pub(super) type Unit<'a> = &'a mut dyn FnMut() -> Result<(), RunError>;

/// A unit with what was measured so far.
struct Series<'a> {
    run: Unit<'a>,
    milliseconds: Vec<f64>,
    allocations: u64,
}

impl Bench {
    /// Times a unit of work that consists of `parts` equal parts, and returns the time of one part.
    ///
    /// # Errors
    /// The unit's work fails, or the device fails.
    pub(super) fn line(
        &self,
        name: impl Into<String>,
        cost: Cost,
        parts: usize,
        unit: impl FnMut() -> Result<(), RunError>,
    ) -> Result<Line, RunError> {
        Ok(self.line_of(name, Some(cost), &self.time(unit)?.of_one(parts)))
    }

    /// Runs a unit repeatedly until the budget is spent.
    ///
    /// # Errors
    /// The unit's work fails, or the device fails.
    pub(super) fn time(&self, mut unit: impl FnMut() -> Result<(), RunError>) -> Result<Timed, RunError> {
        let [timed] = self.time_in_turn([&mut unit])?;
        Ok(timed)
    }

    /// Runs units in turn, until the budget of all of them is spent: what slows the machine for a while slows all alike.
    ///
    /// # Errors
    /// The work of a unit fails, or the device fails.
    pub(super) fn time_in_turn<const U: usize>(&self, units: [Unit<'_>; U]) -> Result<[Timed; U], RunError> {
        let device = self.session.device();
        let once = |unit: &mut Series| {
            (unit.run)()?;
            // A GPU executes asynchronously, so the time ends only after a synchronisation.
            device.sync().map_err(|error| RunError::Device(format!("{error:?}")))
        };
        let mut units = units.map(|run| Series { run, milliseconds: Vec::with_capacity(MOST_UNITS), allocations: 0 });
        let budget = Duration::from_secs_f64(U as f64 * self.settings.seconds);
        let begun = Instant::now();
        for _ in 0..WARM_UNITS {
            units.iter_mut().try_for_each(once)?;
            if 4 * begun.elapsed() > budget {
                break;
            }
        }
        let count = || self.settings.allocations.map_or(0, |count| count());
        let (activity, begun, mut turns) = (Activity::begin(), Instant::now(), 0);
        while turns < MOST_UNITS && (turns < LEAST_UNITS || begun.elapsed() < budget) {
            for unit in &mut units {
                let (before, start) = (count(), Instant::now());
                once(unit)?;
                unit.milliseconds.push(1e3 * start.elapsed().as_secs_f64());
                unit.allocations += count() - before;
            }
            turns += 1;
        }
        let foreign = activity.foreign();
        Ok(units.map(|unit| {
            let allocations = self.settings.allocations.map(|_| unit.allocations as f64 / turns as f64);
            Timed { milliseconds: unit.milliseconds, foreign, allocations }
        }))
    }

    /// The line of these times.
    pub(super) fn line_of(&self, name: impl Into<String>, cost: Option<Cost>, timed: &Timed) -> Line {
        let backend = self.session.backend();
        let threads = match backend.has_parallel_clients() {
            true => Threads::Cpu(rayon::current_num_threads()),
            false => Threads::Gpu(backend.name()),
        };
        let times = &timed.milliseconds;
        let record = Record {
            name: name.into(),
            implementation: format!("fedstein/{}", backend.name()),
            median: median(times),
            min: times.iter().copied().fold(f64::INFINITY, f64::min),
            max: times.iter().copied().fold(0.0, f64::max),
            threads,
            n: times.len(),
            load: activity::load(),
            foreign: timed.foreign.map(|share| (1e3 * share).round() / 1e3),
            note: String::new(),
            t: machine::timestamp(),
        };
        Line { record, cost, allocations: timed.allocations }
    }
}

/// The median; the mean of the two middle values of an even number, as in Python's `statistics`, which the yardsticks
/// use.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    median_of_sorted(&sorted).unwrap_or(f64::NAN)
}
