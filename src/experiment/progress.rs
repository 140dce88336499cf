//! Progress of a run: a progress bar, lines of JSON, or nothing.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::algorithm::Capabilities;
use crate::report::{ClientNames, RoundRecord, decimals};

/// Observes the progress of a run. The methods are called from several threads; they must not slow a step down or make
/// the run fail. Without a body of its own a method asks the [inner](Self::inner) observer, and does nothing where there is
/// none.
pub trait Observer: Send + Sync {
    /// The observer to which this one passes on what it does not handle itself. A method with a body of its own passes on what
    /// it sees by itself.
    fn inner(&self) -> Option<&dyn Observer> {
        None
    }
    /// What the clients of the run are called. Called before the first round.
    fn clients(&self, names: &ClientNames) {
        self.inner().into_iter().for_each(|inner| inner.clients(names));
    }
    /// What the run's method can do. Called before the first round.
    fn method(&self, can: Capabilities) {
        self.inner().into_iter().for_each(|inner| inner.method(can));
    }
    /// The run of so many rounds begins; the note describes it in one line.
    fn started(&self, rounds: usize, note: &str) {
        self.inner().into_iter().for_each(|inner| inner.started(rounds, note));
    }
    /// A round, counted from 1, begins with these clients.
    fn round(&self, round: usize, clients: &[usize]) {
        self.inner().into_iter().for_each(|inner| inner.round(round, clients));
    }
    /// A client has completed so many of the total of the steps of its round. Called after every step, and with 0 again and again
    /// while a server waits for its sites.
    fn step(&self, done: usize, total: usize) {
        self.inner().into_iter().for_each(|inner| inner.step(done, total));
    }
    /// A round has ended, with this record.
    fn finished_round(&self, record: &RoundRecord) {
        self.inner().into_iter().for_each(|inner| inner.finished_round(record));
    }
    /// The run has ended after its last round. Not called where it fails or [`Self::wants_to_stop`] ends it.
    fn finished(&self) {
        self.inner().into_iter().for_each(|inner| inner.finished());
    }
    /// The process ends at once, with this error: an interrupt came while the round before is in a checkpoint. Without an
    /// inner observer it is [`Self::finished`].
    fn abandoned(&self, error: &str) {
        self.inner().map_or_else(|| self.finished(), |inner| inner.abandoned(error));
    }
    /// A message for the user.
    fn note(&self, note: &str) {
        self.inner().into_iter().for_each(|inner| inner.note(note));
    }
    /// Why the run ended where it did, and which round its results are of: a message that asks nothing of the user. Without an
    /// inner observer it is [`Self::note`].
    fn ended(&self, note: &str) {
        self.inner().map_or_else(|| self.note(note), |inner| inner.ended(note));
    }
    /// The run goes on after this round, out of `rounds`. Without an inner observer it is a [`Self::note`].
    fn continued(&self, round: usize, rounds: usize) {
        self.inner().map_or_else(|| self.note(&continuing(round, rounds)), |inner| inner.continued(round, rounds));
    }
    /// A checkpoint of this round is on disk; the run can resume from it.
    fn saved(&self, round: usize) {
        self.inner().into_iter().for_each(|inner| inner.saved(round));
    }
    /// Whether the run should end after the round that has just been recorded. Queried once a round, after
    /// [`Self::finished_round`]. The run then returns [`RunError::Interrupted`](crate::error::RunError::Interrupted), after a
    /// checkpoint where it has files and `checkpoint.enabled`, and
    /// [`Artifacts::resume`](super::Artifacts::resume) goes on with it. After the last round the run is
    /// finished; [`serve`](super::serve()) then queries it while it waits for sites that are silent, and waits no longer once
    /// it has become true.
    fn wants_to_stop(&self) -> bool {
        self.inner().is_some_and(|inner| inner.wants_to_stop())
    }
    /// Whether nobody waits for the run any more. It then ends when a round ends, without a checkpoint, and writes nothing:
    /// its directory may be gone, or another run's. Queried before the directory is created, after every round and before
    /// the final files.
    fn gives_up(&self) -> bool {
        self.inner().is_some_and(|inner| inner.gives_up())
    }
}

/// The message of [`Observer::continued`].
pub fn continuing(round: usize, rounds: usize) -> String {
    format!("continuing after round {round} of {rounds}")
}

/// An observer that reports nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Quiet;

impl Observer for Quiet {}

/// Writes one JSON object per round to standard output, and nothing else there; notes go to standard error.
#[derive(Debug)]
pub struct JsonLines<W: Write + Send> {
    out: Mutex<W>,
    /// Why no more lines are written: the reader has closed the output, or a line could not be written. The run continues,
    /// for its files.
    ended: Mutex<Option<io::Error>>,
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
        Self { out: Mutex::new(out), ended: Mutex::new(None) }
    }

    /// Whether all lines were written, as far as there was somebody to read them.
    ///
    /// # Errors
    /// Why one could not be written.
    pub fn written(&self) -> io::Result<()> {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner).take();
        match ended.filter(|error| error.kind() != io::ErrorKind::BrokenPipe) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

impl<O: Observer> Observer for Arc<O> {
    fn inner(&self) -> Option<&dyn Observer> {
        Some(&**self)
    }
}

impl<W: Write + Send> Observer for JsonLines<W> {
    fn started(&self, _: usize, note: &str) {
        self.note(note);
    }

    fn finished_round(&self, record: &RoundRecord) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if ended.is_some() {
            return;
        }
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let written = record.to_json().and_then(|line| writeln!(out, "{line}")).and_then(|()| out.flush());
        *ended = written.err();
    }

    fn note(&self, note: &str) {
        to_stderr(note);
    }
}

/// A progress bar on standard error; one plain line per round where standard error is not a terminal.
#[derive(Debug)]
pub struct Bar {
    /// The bar; `None` for plain lines.
    bar: Option<ProgressBar>,
    rounds: AtomicUsize,
    names: OnceLock<ClientNames>,
    /// Whether a part of the published parameters is untrained.
    untrained: AtomicBool,
    /// The position of the bar at the beginning of the present round, in ticks.
    base: AtomicU64,
    /// The position shown, in ticks; it only increases, although clients that run in parallel report in any order.
    shown: AtomicU64,
}

/// Ticks of the bar per round: finer than the bar's display, coarse enough that most steps redraw nothing.
const TICKS: u64 = 1000;

impl Bar {
    /// A bar on standard error.
    pub fn stderr() -> Self {
        Self::new(io::stderr().is_terminal())
    }

    fn new(live: bool) -> Self {
        let bar = live.then(|| ProgressBar::new(0).with_style(style()));
        Self {
            bar,
            rounds: AtomicUsize::new(0),
            names: OnceLock::new(),
            untrained: AtomicBool::new(false),
            base: AtomicU64::new(0),
            shown: AtomicU64::new(0),
        }
    }

    fn names(&self) -> &ClientNames {
        self.names.get_or_init(ClientNames::default)
    }

    /// Moves the bar forward to this position, never back.
    fn advance(&self, ticks: u64) {
        if self.shown.fetch_max(ticks, Relaxed) < ticks
            && let Some(bar) = &self.bar
        {
            bar.set_position(ticks);
        }
    }
}

impl Observer for Bar {
    fn clients(&self, names: &ClientNames) {
        // A bar shows one run.
        let _ = self.names.set(names.clone());
    }

    fn method(&self, can: Capabilities) {
        self.untrained.store(can.untrained_part, Relaxed);
    }

    fn started(&self, rounds: usize, note: &str) {
        self.rounds.store(rounds, Relaxed);
        self.note(note);
        if let Some(bar) = &self.bar {
            bar.set_length(rounds as u64 * TICKS);
            bar.reset();
            // The elapsed and remaining time continue to update while a round is long.
            bar.enable_steady_tick(Duration::from_millis(250));
        }
    }

    fn round(&self, round: usize, clients: &[usize]) {
        let ticks = round.saturating_sub(1) as u64 * TICKS;
        self.base.store(ticks, Relaxed);
        self.advance(ticks);
        if let Some(bar) = &self.bar {
            let clients = describe_clients(clients, self.names());
            bar.set_prefix(format!("round {round}/{}  {clients}", self.rounds.load(Relaxed)));
        }
    }

    fn step(&self, done: usize, total: usize) {
        let ticks = (done as u64).saturating_mul(TICKS) / (total as u64).max(1);
        self.advance(self.base.load(Relaxed) + ticks.min(TICKS));
    }

    fn finished_round(&self, record: &RoundRecord) {
        self.advance(record.round as u64 * TICKS);
        let untrained = self.untrained.load(Relaxed);
        match &self.bar {
            Some(bar) => bar.set_message(describe_metrics(record, untrained)),
            None => to_stderr(&plain_line(record, self.rounds.load(Relaxed), self.names(), untrained)),
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

/// Writes a line to standard error. A failure is ignored: the stream may be closed, which must not fail the run.
pub fn to_stderr(line: &str) {
    if !line.is_empty() {
        let _ = writeln!(io::stderr(), "{line}");
    }
}

/// Describes clients as `client 3` or `client north`, or by the first few of many.
fn describe_clients(clients: &[usize], names: &ClientNames) -> String {
    const SHOWN: usize = 4;
    let called: Vec<String> = clients.iter().take(SHOWN).map(|client| names.of(*client)).collect();
    let called = called.join(if names.is_empty() { " " } else { ", " });
    let mut text = format!("{} {called}", if clients.len() == 1 { "client" } else { "clients" });
    if clients.len() > SHOWN {
        let _ = write!(text, " and {} more", clients.len() - SHOWN);
    }
    text
}

/// The headline metrics of the record as text; without those of published parameters of which a part is untrained.
fn describe_metrics(record: &RoundRecord, untrained: bool) -> String {
    // In a personalised run the clients' personal predictors are the result of interest.
    let personal = record.metric("personal_nll").is_some();
    let shown: &[(&str, &str)] = match personal {
        true => &[
            ("personal_accuracy", "personal accuracy"),
            ("personal_rmse", "personal RMSE"),
            ("personal_nll", "personal NLL"),
            ("personal_ece", "personal ECE"),
            ("accuracy", "global accuracy"),
            ("rmse", "global RMSE"),
        ],
        false => &[("accuracy", "accuracy"), ("rmse", "RMSE"), ("nll", "NLL"), ("ece", "ECE")],
    };
    let shown = shown.iter().filter(|(name, _)| !untrained || name.starts_with("personal_"));
    let parts = shown.filter_map(|(name, label)| {
        let value = record.metric(name)?;
        Some(format!("{label} {}", decimals(value, 3)))
    });
    parts.collect::<Vec<_>>().join("  ")
}

/// A round as one line of text: its number, its clients, the headline metrics and the time, in seconds.
///
/// # Arguments
/// - `untrained`: whether a part of the published parameters is untrained ([`Capabilities::untrained_part`]); the line then
///   leaves their metrics out, which say nothing of the method.
pub fn plain_line(record: &RoundRecord, rounds: usize, names: &ClientNames, untrained: bool) -> String {
    let clients = describe_clients(&record.clients, names);
    let mut parts = vec![format!("round {}/{rounds}", record.round), clients];
    parts.extend(Some(describe_metrics(record, untrained)).filter(|metrics| !metrics.is_empty()));
    // The rounds take roughly equal time.
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
            evaluation_seconds: 0.5,
        }
    }

    /// Keeps the names of the calls.
    #[derive(Default)]
    struct Calls(Mutex<Vec<&'static str>>);

    impl Calls {
        fn add(&self, name: &'static str) {
            self.0.lock().unwrap().push(name);
        }
    }

    impl Observer for Calls {
        fn clients(&self, _: &ClientNames) {
            self.add("clients");
        }
        fn method(&self, _: Capabilities) {
            self.add("method");
        }
        fn started(&self, _: usize, _: &str) {
            self.add("started");
        }
        fn round(&self, _: usize, _: &[usize]) {
            self.add("round");
        }
        fn step(&self, _: usize, _: usize) {
            self.add("step");
        }
        fn finished_round(&self, _: &RoundRecord) {
            self.add("finished_round");
        }
        fn finished(&self) {
            self.add("finished");
        }
        fn abandoned(&self, _: &str) {
            self.add("abandoned");
        }
        fn note(&self, _: &str) {
            self.add("note");
        }
        fn ended(&self, _: &str) {
            self.add("ended");
        }
        fn continued(&self, _: usize, _: usize) {
            self.add("continued");
        }
        fn saved(&self, _: usize) {
            self.add("saved");
        }
        fn wants_to_stop(&self) -> bool {
            self.add("wants_to_stop");
            true
        }
        fn gives_up(&self) -> bool {
            self.add("gives_up");
            true
        }
    }

    /// Passes all on.
    struct Through<'a>(&'a dyn Observer);

    impl Observer for Through<'_> {
        fn inner(&self) -> Option<&dyn Observer> {
            Some(self.0)
        }
    }

    #[test]
    fn an_observer_passes_on_what_it_does_not_handle() {
        let calls = Calls::default();
        let once = Through(&calls);
        let twice = Through(&once);
        let observer: &dyn Observer = &twice;
        observer.clients(&ClientNames::default());
        observer.method(Capabilities::FEDERATED);
        observer.started(1, "");
        observer.round(1, &[0]);
        observer.step(1, 2);
        observer.finished_round(&record());
        observer.finished();
        observer.abandoned("");
        observer.note("");
        observer.ended("");
        observer.continued(1, 2);
        observer.saved(1);
        assert!(observer.wants_to_stop() && observer.gives_up());
        let all = "clients method started round step finished_round finished abandoned note ended continued saved \
                   wants_to_stop gives_up";
        assert_eq!(calls.0.into_inner().unwrap().join(" "), all);
        assert!(!Quiet.wants_to_stop() && !Quiet.gives_up());
    }

    #[test]
    fn a_plain_line_has_round_client_metrics_and_time_left() {
        let numbers = ClientNames::default();
        assert_eq!(
            plain_line(&record(), 10, &numbers, false),
            "round 2/10  client 7  accuracy 0.950  NLL 0.250  4.0 s, 16 s left"
        );
    }

    #[test]
    fn metrics_of_untrained_parameters_are_in_no_line_and_those_of_the_clients_come_first() {
        let numbers = ClientNames::default();
        assert_eq!(plain_line(&record(), 10, &numbers, true), "round 2/10  client 7  4.0 s, 16 s left");
        let mut own = record();
        own.metrics.extend([("personal_accuracy".into(), Some(0.9)), ("personal_nll".into(), Some(0.3))]);
        let line = |untrained| plain_line(&own, 10, &numbers, untrained);
        let start = "round 2/10  client 7  personal accuracy 0.900  personal NLL 0.300";
        assert_eq!(line(false), format!("{start}  global accuracy 0.950  4.0 s, 16 s left"));
        assert_eq!(line(true), format!("{start}  4.0 s, 16 s left"));
    }

    #[test]
    fn of_many_clients_the_first_four_are_named() {
        let numbers = ClientNames::default();
        assert_eq!(describe_clients(&[1, 2], &numbers), "clients 1 2");
        assert_eq!(describe_clients(&[1, 2, 3, 4, 5, 6], &numbers), "clients 1 2 3 4 and 2 more");
        let names = ClientNames::new(["north", "far east", "south"].map(str::to_owned).to_vec());
        assert_eq!(describe_clients(&[1], &names), "client far east");
        assert_eq!(describe_clients(&[0, 1], &names), "clients north, far east");
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
    fn json_lines_hold_one_object_per_round_and_nothing_else() {
        let observer = JsonLines::new(Vec::new());
        observer.started(2, "a note for standard error");
        observer.round(1, &[0]);
        observer.finished_round(&record());
        observer.finished();
        let out = String::from_utf8(observer.out.into_inner().unwrap()).unwrap();
        assert_eq!(out, record().to_json().unwrap() + "\n");
    }

    #[test]
    fn json_lines_stop_when_the_reader_is_gone() {
        struct Closed(io::ErrorKind);
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(self.0.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let observer = JsonLines::new(Closed(io::ErrorKind::BrokenPipe));
        observer.finished_round(&record());
        assert!(observer.ended.lock().unwrap().is_some());
        observer.finished_round(&record());
        observer.written().unwrap();
        let full = Arc::new(JsonLines::new(Closed(io::ErrorKind::StorageFull)));
        Observer::finished_round(&full, &record());
        assert_eq!(full.written().unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
