//! Progress of a run: a progress bar, lines of JSON, or nothing.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::record::RoundRecord;

/// Watches a run. Called from several threads; nothing here may slow a step down or make a run fail.
pub trait Observer: Send + Sync {
    /// The run begins; `note` says in a line what it is.
    fn started(&self, rounds: usize, note: &str);
    /// Round `round` (from 1) begins with these clients.
    fn round(&self, round: usize, clients: &[usize]);
    /// A client has done `done` of the `total` steps of its round. Called every step.
    fn step(&self, done: usize, total: usize);
    /// A round has ended.
    fn finished_round(&self, record: &RoundRecord);
    /// The run has ended.
    fn finished(&self);
    /// A note for the user.
    fn note(&self, note: &str);
    /// The run can go on from a checkpoint of this round, which is on the disk.
    fn saved(&self, _round: usize) {}
    /// Whether the run is to end when its present round does. Asked once a round.
    fn wants_to_stop(&self) -> bool {
        false
    }
}

/// Reports nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Quiet;

impl Observer for Quiet {
    fn started(&self, _: usize, _: &str) {}
    fn round(&self, _: usize, _: &[usize]) {}
    fn step(&self, _: usize, _: usize) {}
    fn finished_round(&self, _: &RoundRecord) {}
    fn finished(&self) {}
    fn note(&self, _: &str) {}
}

/// One JSON object a round on standard output, which gets nothing else; notes go to standard error.
#[derive(Debug)]
pub struct JsonLines<W: Write + Send> {
    out: Mutex<W>,
    /// Whether the reader has gone; the run goes on, for its files.
    closed: AtomicBool,
}

impl JsonLines<io::Stdout> {
    /// Writes to standard output.
    pub fn stdout() -> Self {
        Self::new(io::stdout())
    }
}

impl<W: Write + Send> JsonLines<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self { out: Mutex::new(out), closed: AtomicBool::new(false) }
    }
}

impl<W: Write + Send> Observer for JsonLines<W> {
    fn started(&self, _: usize, note: &str) {
        self.note(note);
    }

    fn round(&self, _: usize, _: &[usize]) {}

    fn step(&self, _: usize, _: usize) {}

    fn finished_round(&self, record: &RoundRecord) {
        if self.closed.load(Relaxed) {
            return;
        }
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let written = record.to_json().and_then(|line| writeln!(out, "{line}")).and_then(|()| out.flush());
        if written.is_err() {
            self.closed.store(true, Relaxed);
        }
    }

    fn finished(&self) {}

    fn note(&self, note: &str) {
        to_stderr(note);
    }
}

/// A progress bar on standard error; one plain line a round where that is no terminal.
#[derive(Debug)]
pub struct Bar {
    /// `None`: plain lines.
    bar: Option<ProgressBar>,
    rounds: AtomicUsize,
    /// Ticks at the beginning of the present round.
    base: AtomicU64,
    /// Ticks shown; clients that work side by side must not move the bar to and fro.
    shown: AtomicU64,
}

/// Ticks of the bar in a round: finer than the bar, coarse enough that most steps draw nothing.
const TICKS: u64 = 1000;

impl Bar {
    /// On standard error.
    pub fn stderr() -> Self {
        Self::new(io::stderr().is_terminal())
    }

    fn new(live: bool) -> Self {
        let bar = live.then(|| ProgressBar::new(0).with_style(style()));
        Self { bar, rounds: AtomicUsize::new(0), base: AtomicU64::new(0), shown: AtomicU64::new(0) }
    }

    /// Moves the bar forward, never back.
    fn advance(&self, ticks: u64) {
        if self.shown.fetch_max(ticks, Relaxed) < ticks
            && let Some(bar) = &self.bar
        {
            bar.set_position(ticks);
        }
    }
}

impl Observer for Bar {
    fn started(&self, rounds: usize, note: &str) {
        self.rounds.store(rounds, Relaxed);
        self.note(note);
        if let Some(bar) = &self.bar {
            bar.set_length(rounds as u64 * TICKS);
            bar.reset();
            // Clock and time left go on when a round is long.
            bar.enable_steady_tick(Duration::from_millis(250));
        }
    }

    fn round(&self, round: usize, clients: &[usize]) {
        let ticks = round.saturating_sub(1) as u64 * TICKS;
        self.base.store(ticks, Relaxed);
        self.advance(ticks);
        if let Some(bar) = &self.bar {
            bar.set_prefix(format!("round {round}/{}  {}", self.rounds.load(Relaxed), describe_clients(clients)));
        }
    }

    fn step(&self, done: usize, total: usize) {
        let ticks = (done as u64).saturating_mul(TICKS) / (total as u64).max(1);
        self.advance(self.base.load(Relaxed) + ticks.min(TICKS));
    }

    fn finished_round(&self, record: &RoundRecord) {
        self.advance(record.round as u64 * TICKS);
        match &self.bar {
            Some(bar) => bar.set_message(describe_metrics(record)),
            None => to_stderr(&plain_line(record, self.rounds.load(Relaxed))),
        }
    }

    fn finished(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn note(&self, note: &str) {
        match &self.bar {
            _ if note.is_empty() => {}
            Some(bar) => bar.println(note),
            None => to_stderr(note),
        }
    }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{prefix}  {wide_bar}  {msg}  {elapsed}, {eta} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// A line that nobody may be there to read: its failure is no failure of the run.
fn to_stderr(line: &str) {
    if !line.is_empty() {
        let _ = writeln!(io::stderr(), "{line}");
    }
}

/// `client 3`, or the first few of many.
fn describe_clients(clients: &[usize]) -> String {
    const SHOWN: usize = 4;
    let mut text = String::from(if clients.len() == 1 { "client" } else { "clients" });
    for client in clients.iter().take(SHOWN) {
        let _ = write!(text, " {client}");
    }
    if clients.len() > SHOWN {
        let _ = write!(text, " and {} more", clients.len() - SHOWN);
    }
    text
}

/// The headline metrics that the record has.
fn describe_metrics(record: &RoundRecord) -> String {
    // Of a personalised run the clients' own predictors are what counts.
    let personal = record.metric("personal_nll").is_some();
    let shown: &[(&str, &str)] = match personal {
        true => &[
            ("personal_accuracy", "personal accuracy"),
            ("personal_rmse", "RMSE"),
            ("personal_nll", "NLL"),
            ("personal_ece", "ECE"),
            ("accuracy", "global accuracy"),
        ],
        false => &[("accuracy", "accuracy"), ("rmse", "RMSE"), ("nll", "NLL"), ("ece", "ECE")],
    };
    let parts = shown.iter().filter_map(|(name, label)| {
        let value = record.metric(name)?;
        Some(format!("{label} {value:.3}"))
    });
    parts.collect::<Vec<_>>().join("  ")
}

fn plain_line(record: &RoundRecord, rounds: usize) -> String {
    let mut parts = vec![format!("round {}/{rounds}", record.round), describe_clients(&record.clients)];
    parts.extend(Some(describe_metrics(record)).filter(|metrics| !metrics.is_empty()));
    // Rounds cost about the same.
    #[allow(clippy::cast_precision_loss)]
    let left = record.seconds / record.round.max(1) as f64 * rounds.saturating_sub(record.round) as f64;
    parts.push(format!("{:.1} s, {left:.0} s left", record.seconds));
    parts.join("  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> RoundRecord {
        RoundRecord {
            round: 2,
            clients: vec![7],
            metrics: vec![("accuracy".into(), Some(0.95)), ("nll".into(), Some(0.25)), ("ece".into(), None)],
            uplink_bytes: 0,
            downlink_bytes: 0,
            seconds: 4.0,
            round_seconds: 2.0,
        }
    }

    #[test]
    fn a_plain_line_has_round_client_metrics_and_time_left() {
        assert_eq!(plain_line(&record(), 10), "round 2/10  client 7  accuracy 0.950  NLL 0.250  4.0 s, 16 s left");
    }

    #[test]
    fn of_many_clients_the_first_four_are_named() {
        assert_eq!(describe_clients(&[1, 2]), "clients 1 2");
        assert_eq!(describe_clients(&[1, 2, 3, 4, 5, 6]), "clients 1 2 3 4 and 2 more");
    }

    #[test]
    fn steps_from_many_threads_move_the_bar_forward_only_and_to_the_rounds_end() {
        let bar = Bar::new(false);
        bar.started(3, "");
        bar.round(2, &[0, 1, 2, 3]);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..=5000).for_each(|done| bar.step(done, 5000)));
            }
        });
        assert_eq!(bar.shown.load(Relaxed), 2 * TICKS);
        bar.step(0, 0);
        assert_eq!(bar.shown.load(Relaxed), 2 * TICKS);
    }

    #[test]
    fn json_lines_hold_one_object_a_round_and_nothing_else() {
        let observer = JsonLines::new(Vec::new());
        observer.started(2, "a note for standard error");
        observer.round(1, &[0]);
        observer.finished_round(&record());
        observer.finished();
        let out = String::from_utf8(observer.out.into_inner().unwrap()).unwrap();
        assert_eq!(out, record().to_json().unwrap() + "\n");
    }

    #[test]
    fn json_lines_go_silent_when_nobody_reads() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let observer = JsonLines::new(Closed);
        observer.finished_round(&record());
        assert!(observer.closed.load(Relaxed));
        observer.finished_round(&record());
    }
}
