//! The progress of a figure's runs: finished runs, and the expected remaining time.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::grid::Run;
use crate::algorithm::Capabilities;
use crate::experiment::RoundRecord;
use crate::experiment::progress::Observer;
use crate::report::files::write_atomic;

/// Ticks of the bar per run.
const TICKS: u64 = 1000;

/// The progress of a figure on standard error: a bar, plain lines where standard error is not a terminal, or nothing.
#[derive(Debug)]
pub struct Progress {
    show: Show,
    total: usize,
    jobs: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
enum Show {
    Bar(ProgressBar),
    Lines,
    Nothing,
}

#[derive(Debug, Default)]
struct State {
    begun: usize,
    /// Total seconds and number of finished runs, by cell: another seed will take as long.
    seconds: BTreeMap<usize, (f64, usize)>,
    /// The number of unfinished runs, by cell.
    left: BTreeMap<usize, usize>,
}

impl Progress {
    /// The progress of these runs, `jobs` at once; `known` are the seconds of earlier runs by their cell.
    pub fn new(runs: &[Run], known: &[(usize, f64)], jobs: usize, quiet: bool) -> Self {
        let show = match (quiet, io::stderr().is_terminal()) {
            (true, _) => Show::Nothing,
            (false, false) => Show::Lines,
            (false, true) => {
                let bar = ProgressBar::new(runs.len() as u64 * TICKS).with_style(style());
                bar.enable_steady_tick(Duration::from_millis(250));
                Show::Bar(bar)
            }
        };
        let mut state = State::default();
        for run in runs {
            *state.left.entry(run.cell).or_default() += 1;
        }
        known.iter().for_each(|(cell, seconds)| state.learn(*cell, *seconds));
        Self { show, total: runs.len(), jobs: jobs.max(1), state: Mutex::new(state) }
    }

    /// Prints a line for the user.
    pub fn note(&self, line: &str) {
        match &self.show {
            Show::Bar(bar) => bar.println(line),
            // A failure is ignored: the stream may be closed, which must not fail the run.
            Show::Lines => {
                let _ = writeln!(io::stderr(), "{line}");
            }
            Show::Nothing => {}
        }
    }

    /// Marks the beginning of a run, and returns its observer.
    pub fn begins<'a>(&'a self, run: &'a Run) -> Watched<'a> {
        let mut state = self.state();
        state.begun += 1;
        let label = format!("run {}/{}  {}  seed {}", state.begun, self.total, run.label, run.config.seed);
        if let Show::Bar(bar) = &self.show {
            bar.set_prefix(label.clone());
            bar.set_message(self.left(&state));
        }
        let watched = Seen { notes: Vec::new(), file: None, ticks: 0, last: String::new() };
        Watched { progress: self, run, label, start: Instant::now(), seen: Mutex::new(watched) }
    }

    /// Marks the end of all runs.
    pub fn finished(&self) {
        if let Show::Bar(bar) = &self.show {
            bar.finish_and_clear();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn left(&self, state: &State) -> String {
        match state.expected() {
            Some(seconds) => format!("{} left", span(seconds / self.jobs as f64)),
            None => String::new(),
        }
    }
}

impl State {
    fn learn(&mut self, cell: usize, seconds: f64) {
        let (sum, count) = self.seconds.entry(cell).or_default();
        (*sum, *count) = (*sum + seconds, *count + 1);
    }

    /// The seconds that the unfinished runs will take: as long as other seeds of the same cell, else the mean of all
    /// known runs.
    fn expected(&self) -> Option<f64> {
        let (sum, count) = self.seconds.values().fold((0.0, 0), |(sum, count), (s, c)| (sum + s, count + c));
        let mean = (count > 0).then(|| sum / count as f64)?;
        let of = |cell: &usize| self.seconds.get(cell).map_or(mean, |(sum, count)| sum / *count as f64);
        Some(self.left.iter().map(|(cell, runs)| *runs as f64 * of(cell)).sum())
    }
}

/// The observer of one run.
#[derive(Debug)]
pub struct Watched<'a> {
    progress: &'a Progress,
    run: &'a Run,
    label: String,
    start: Instant,
    seen: Mutex<Seen>,
}

#[derive(Debug)]
struct Seen {
    notes: Vec<String>,
    /// The file of the notes, of a run that has checkpoints.
    file: Option<PathBuf>,
    ticks: u64,
    last: String,
}

impl Watched<'_> {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the notes in a file beside the run's checkpoints. Those that are there already are of this run before it was
    /// stopped; it gives them again where it starts anew.
    pub fn keeps_notes(&self, file: PathBuf) {
        let mut seen = self.seen();
        // A note is informative: without the file, or with half of it, the run is worth no less.
        let text = fs::read_to_string(&file).ok();
        seen.notes = text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        seen.file = Some(file);
    }

    /// The notes that the run has given.
    pub fn notes(&self) -> Vec<String> {
        self.seen().notes.clone()
    }

    /// Shows the metric of a round at the end of the run: of the last one that was given, and that has a metric.
    pub fn shows(&self, record: &RoundRecord) {
        if let Some(shown) = headline(record, self.run.config.algorithm.capabilities()) {
            self.seen().last = shown;
        }
    }

    /// Marks the end of the run; `problem` is the reason of a failure.
    pub fn ended(&self, problem: Option<&str>) {
        let seconds = self.start.elapsed().as_secs_f64();
        let seen = self.seen();
        let mut state = self.progress.state();
        if let Some(left) = state.left.get_mut(&self.run.cell) {
            *left = left.saturating_sub(1);
        }
        state.learn(self.run.cell, seconds);
        let left = self.progress.left(&state);
        drop(state);
        if let Show::Bar(bar) = &self.progress.show {
            bar.inc(TICKS.saturating_sub(seen.ticks));
            bar.set_message(left.clone());
        }
        match (&self.progress.show, problem) {
            (_, Some(problem)) => self.progress.note(&format!("{}  failed: {problem}", self.label)),
            (Show::Lines, None) => {
                let last = if seen.last.is_empty() { String::new() } else { format!("  {}", seen.last) };
                self.progress.note(&format!("{}{last}  {}, {left}", self.label, span(seconds)));
            }
            _ => {}
        }
    }
}

impl Observer for Watched<'_> {
    fn started(&self, _: usize, _: &str) {}

    fn round(&self, _: usize, _: &[usize]) {}

    fn step(&self, _: usize, _: usize) {}

    fn finished_round(&self, record: &RoundRecord) {
        self.shows(record);
        let mut seen = self.seen();
        if let Show::Bar(bar) = &self.progress.show {
            let ticks = TICKS * record.round as u64 / (self.run.config.rounds as u64).max(1);
            bar.inc(ticks.saturating_sub(seen.ticks));
            seen.ticks = ticks.max(seen.ticks);
        }
    }

    fn finished(&self) {}

    fn note(&self, note: &str) {
        let mut seen = self.seen();
        if !note.is_empty() && !seen.notes.iter().any(|known| known == note) {
            seen.notes.push(note.to_owned());
            if let Some(file) = &seen.file {
                let _ = serde_json::to_vec(&seen.notes).map(|notes| write_atomic(file, &notes));
            }
        }
    }

    fn continued(&self, round: usize, rounds: usize) {
        // It is not a note of the run: a run that was never stopped has none.
        self.progress.note(&format!("{}  continuing after round {round} of {rounds}", self.label));
    }
}

/// The metric of a round that a line shows, with its name: that of the clients' personal predictors where they were
/// scored; never that of published parameters of which a part is untrained.
fn headline(record: &RoundRecord, can: Capabilities) -> Option<String> {
    let names = ["personal_accuracy", "personal_rmse", "accuracy", "rmse", "kl"];
    let mut names = names.into_iter().filter(|name| !can.untrained_part || name.starts_with("personal_"));
    let (name, value) = names.find_map(|name| Some((name, record.metric(name)?)))?;
    Some(format!("{} {value:.3}", name.replace('_', " ")))
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{prefix}  {wide_bar}  {elapsed}  {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// Formats a time span as `12 s`, `5 min` or `2.5 h`.
pub fn span(seconds: f64) -> String {
    match seconds {
        s if s < 9.95 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 2.0 * 3600.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_that_of_other_seeds_else_the_mean() {
        let mut state = State { left: BTreeMap::from([(0, 2), (1, 1)]), ..State::default() };
        assert_eq!(state.expected(), None);
        state.learn(0, 10.0);
        state.learn(0, 20.0);
        assert_eq!(state.expected(), Some(2.0 * 15.0 + 15.0));
        state.learn(1, 3.0);
        assert_eq!(state.expected(), Some(2.0 * 15.0 + 3.0));
    }

    #[test]
    fn a_line_shows_the_clients_predictors_before_the_particles_and_untrained_ones_never() {
        let record =
            |metrics: &[(&str, f64)]| RoundRecord::new(1, metrics.iter().map(|(name, value)| (*name, Some(*value))));
        let (trained, untrained) =
            (Capabilities::FEDERATED, Capabilities { untrained_part: true, ..Capabilities::FEDERATED });
        let global = record(&[("accuracy", 0.026), ("nll", 4.0)]);
        assert_eq!(headline(&global, trained).as_deref(), Some("accuracy 0.026"));
        assert_eq!(headline(&global, untrained), None);
        let own = record(&[("rmse", 3.0), ("personal_rmse", 0.5)]);
        assert_eq!(headline(&own, trained).as_deref(), Some("personal rmse 0.500"));
        assert_eq!(headline(&own, untrained).as_deref(), Some("personal rmse 0.500"));
    }

    #[test]
    fn durations_are_formatted_readably() {
        assert_eq!([0.04, 11.6, 119.0, 150.0, 8000.0].map(span), ["0.0 s", "12 s", "119 s", "2 min", "2.2 h"]);
    }
}
