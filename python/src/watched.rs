//! A run on a thread of its own, while the calling thread serves Python.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fedstein::algorithm::Capabilities;
use fedstein::command::STACK;
use fedstein::error::RunError;
use fedstein::experiment::progress::{Bar, Observer, continuing, plain_line};
use fedstein::experiment::schema::Resolved;
use fedstein::experiment::{Artifacts, Finished, ReportOptions, RoundRecord, run_dir};
use fedstein::remote::{Parcel, Peer};
use fedstein::report::ClientNames;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::errors::{Interrupted, RunFailed, of_run, with_arguments};
use crate::interruptible::LOOK;
use crate::pool::{enter, on_worker, panicked};

/// How long a run without a connection may take to end.
const PATIENCE: Duration = Duration::from_secs(3);

/// What is said after the first Ctrl-C.
const STOPPING: &str = "stopping after this round; a second Ctrl-C does not wait for its end, and loses it";

/// What a run tells the calling thread.
pub enum Event {
    Started(usize, String),
    Round(String, String),
    Note(String),
    /// A message that asks nothing of the user.
    Info(String),
    /// A message to a site.
    Message(Message),
}

/// A message to a site, with the number of bytes that the arrays of its answer may have.
pub struct Message {
    pub to: Peer,
    pub parcel: Parcel,
    pub bytes: u64,
}

/// Tells the calling thread what happens, and lets it end the run.
pub struct Told {
    to: Sender<Event>,
    bar: Option<Arc<Bar>>,
    rounds: AtomicUsize,
    names: OnceLock<ClientNames>,
    /// Whether a part of the published parameters is untrained.
    untrained: AtomicBool,
    state: Arc<State>,
}

/// What both threads see.
#[derive(Default)]
pub struct State {
    /// Whether the run has begun, or will not.
    begun: OnceLock<bool>,
    /// Whether the run ends at its round's end.
    stop: AtomicBool,
    /// Whether nobody waits for the run any more.
    given_up: AtomicBool,
    /// The round of the newest checkpoint; 0 without one.
    saved: AtomicUsize,
    /// Why messages to sites are not delivered any more.
    closed: Mutex<Option<String>>,
}

impl State {
    /// Why messages to sites are not delivered any more, if that is so.
    pub fn closed(&self) -> Option<String> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Begins the run; false where it was called off before.
    fn begin(&self) -> bool {
        *self.begun.get_or_init(|| true)
    }

    /// Calls the run off; false where it has begun.
    fn call_off(&self) -> bool {
        !*self.begun.get_or_init(|| false)
    }

    fn close(&self, reason: String) {
        *self.closed.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
    }
}

impl Told {
    fn tell(&self, event: Event) {
        // The receiver is gone where a second interrupt ended the call; the run then ends soon.
        let _ = self.to.send(event);
    }

    /// To the calling thread, and what both threads see.
    pub fn connection(&self) -> (Sender<Event>, Arc<State>) {
        (self.to.clone(), self.state.clone())
    }
}

impl Observer for Told {
    fn clients(&self, names: &ClientNames) {
        if let Some(bar) = &self.bar {
            bar.clients(names);
        }
        // An observer observes one run.
        let _ = self.names.set(names.clone());
    }

    fn method(&self, can: Capabilities) {
        if let Some(bar) = &self.bar {
            bar.method(can);
        }
        self.untrained.store(can.untrained_part, Relaxed);
    }

    fn started(&self, rounds: usize, note: &str) {
        self.rounds.store(rounds, Relaxed);
        if let Some(bar) = &self.bar {
            bar.started(rounds, note);
        }
        self.tell(Event::Started(rounds, note.to_owned()));
    }

    fn round(&self, round: usize, clients: &[usize]) {
        if let Some(bar) = &self.bar {
            bar.round(round, clients);
        }
    }

    fn step(&self, done: usize, total: usize) {
        if let Some(bar) = &self.bar {
            bar.step(done, total);
        }
    }

    fn finished_round(&self, record: &RoundRecord) {
        if let Some(bar) = &self.bar {
            bar.finished_round(record);
        }
        if let Ok(json) = record.to_json() {
            let names = self.names.get_or_init(ClientNames::default);
            let line = plain_line(record, self.rounds.load(Relaxed), names, self.untrained.load(Relaxed));
            self.tell(Event::Round(json, line));
        }
    }

    fn finished(&self) {
        if let Some(bar) = &self.bar {
            bar.finished();
        }
    }

    fn note(&self, note: &str) {
        self.tell(Event::Note(note.to_owned()));
    }

    fn ended(&self, note: &str) {
        self.tell(Event::Info(note.to_owned()));
    }

    fn continued(&self, round: usize, rounds: usize) {
        self.tell(Event::Info(continuing(round, rounds)));
    }

    fn saved(&self, round: usize) {
        self.state.saved.store(round, Relaxed);
    }

    fn wants_to_stop(&self) -> bool {
        self.state.stop.load(Relaxed)
    }

    fn gives_up(&self) -> bool {
        self.state.given_up.load(Relaxed)
    }
}

/// The files of a run.
pub struct Files {
    pub resolved: Resolved,
    pub out: PathBuf,
    pub force: bool,
    pub resume: bool,
    /// A temporary directory around `out`, which the calling thread removes. Such a run has no report.
    pub temporary: Option<PathBuf>,
}

impl Files {
    /// Does the run, with its files.
    ///
    /// # Errors
    /// The directory cannot be used, the run fails, or the report cannot be written.
    pub fn with<T>(self, told: &Told, run: impl FnOnce(&mut Artifacts) -> Result<T, RunError>) -> Result<(), RunError> {
        let Self { resolved, out, force, resume, temporary } = self;
        let mut artifacts = match resume {
            true => Artifacts::resume(out.clone(), resolved, &mut |note| told.note(note))?,
            false => Artifacts::new(out.clone(), force, resolved),
        };
        let result = run(&mut artifacts);
        told.finished();
        if told.gives_up() {
            // It was removed when the run was given up, which may have been while a file was written.
            drop(artifacts);
            drop(temporary.map(fs::remove_dir_all));
            return result.map(drop);
        }
        result?;
        if temporary.is_some() {
            return Ok(());
        }
        let report = Finished::open(&out)?.rendered(ReportOptions::default())?;
        match report.filter(|_| !told.gives_up()) {
            Some(report) => report.write(&out.join(run_dir::REPORT)).map(drop),
            None => Ok(()),
        }
    }
}

/// What delivers messages to sites.
pub trait Courier {
    /// Whether the run ends at once, as after the last round that was completed, when something is raised: its sites may take
    /// long, and whoever raises may end this process soon. Else it ends at the round's end.
    fn ends_at_once(&self) -> bool;

    /// Sends these messages, and hands over what has arrived.
    ///
    /// # Errors
    /// What Python raises. No message is delivered any more.
    fn deliver(&mut self, messages: Vec<Message>) -> PyResult<()>;
}

/// The courier of a run in one process, which has no messages.
pub struct NoCourier;

impl Courier for NoCourier {
    fn ends_at_once(&self) -> bool {
        false
    }

    fn deliver(&mut self, _: Vec<Message>) -> PyResult<()> {
        Ok(())
    }
}

/// Does a run on a thread of its own.
///
/// `tell` is called with `("started", rounds, headline)`, `("round", record as JSON, line)`, `("note", "", text)`,
/// `("info", "", text)` for what asks nothing of the user, and after Ctrl-C, where there is no bar, `("stopping", "", text)`.
/// If it raises, or a signal's handler does, the run ends at the round's end, with a checkpoint, or at once
/// ([`Courier::ends_at_once`]); what was raised is raised again. A run that still waits for a thread of the pool is called
/// off. What is raised a second time is raised at once; the run then writes nothing more.
///
/// # Arguments
/// - `out`: the directory to resume from.
/// - `bar`: whether a progress bar is shown.
///
/// # Errors
/// The run fails, or what was raised meanwhile.
pub fn watch<J>(
    py: Python<'_>,
    out: &Path,
    bar: bool,
    tell: &Bound<'_, PyAny>,
    courier: &mut dyn Courier,
    job: J,
) -> PyResult<()>
where
    J: FnOnce(Told) -> Result<(), RunError> + Send + 'static,
{
    enter()?;
    let bar = bar.then(Bar::stderr).map(Arc::new);
    let Begun { thread, mut from, state } = Begun::with(bar.clone(), job)?;

    // What was raised while the run went on.
    let mut raised: Option<PyErr> = None;
    loop {
        let (events, back) = py.detach(move || wait(from));
        from = back;
        let Some(events) = events else { break };
        let mut messages = Vec::new();
        let mut result = Ok(());
        for event in events {
            result = result.and_then(|()| match event {
                Event::Message(message) => {
                    messages.push(message);
                    Ok(())
                }
                event if raised.is_none() => call(tell, event),
                _ => Ok(()),
            });
        }
        let result = result.and(py.check_signals().and_then(|()| courier.deliver(messages)));
        if let Err(error) = &result
            && state.call_off()
        {
            return Err(match error.is_instance_of::<PyKeyboardInterrupt>(py) {
                true => interruption(py, "the run was interrupted before it began; nothing was written".into(), None),
                false => error.clone_ref(py),
            });
        }
        if courier.ends_at_once()
            && let Err(error) = result
        {
            // Without messages no round can be completed.
            state.close(error.to_string());
            py.detach(|| patiently(&thread));
            return Err(error);
        }
        let second = match (raised.is_some(), result) {
            (false, Err(error)) => {
                state.stop.store(true, Relaxed);
                let said = match (&bar, error.is_instance_of::<PyKeyboardInterrupt>(py)) {
                    (Some(bar), true) => {
                        bar.note(STOPPING);
                        Ok(())
                    }
                    (None, true) => tell.call1(("stopping", "", STOPPING)).map(drop),
                    (_, false) => Ok(()),
                };
                raised = Some(error);
                said
            }
            (_, result) => result,
        };
        // A second interrupt does not wait for the round's end.
        if let Err(error) = second {
            state.given_up.store(true, Relaxed);
            bar.iter().for_each(|bar| bar.finished());
            return Err(error);
        }
    }
    let result = py.detach(|| thread.join()).unwrap_or_else(|_| Err("the run's thread panicked".into()));
    let result = result.map_err(|message| panicked(&message))?;
    ended(py, result, raised, (state.saved.load(Relaxed), out))
}

/// A run on a thread of its own.
struct Begun {
    thread: JoinHandle<Result<Result<(), RunError>, String>>,
    from: Receiver<Event>,
    state: Arc<State>,
}

impl Begun {
    /// Begins a run as soon as the pool has a thread for it, unless it is called off before.
    ///
    /// # Errors
    /// There can be no further thread.
    fn with<J>(bar: Option<Arc<Bar>>, job: J) -> PyResult<Self>
    where
        J: FnOnce(Told) -> Result<(), RunError> + Send + 'static,
    {
        let (to, from) = channel();
        let state = Arc::new(State::default());
        let told = Told {
            to,
            bar,
            rounds: AtomicUsize::new(0),
            names: OnceLock::new(),
            untrained: AtomicBool::new(false),
            state: state.clone(),
        };
        let begins = state.clone();
        let thread = thread::Builder::new().name("fedstein".into()).stack_size(STACK).spawn(move || {
            on_worker(|| match begins.begin() {
                true => job(told),
                false => Err(RunError::Interrupted { round: 0, rounds: 0 }),
            })
        });
        let thread = thread.map_err(|error| RunFailed::new_err(format!("cannot start a thread: {error}")))?;
        Ok(Self { thread, from, state })
    }
}

/// What is raised for a run that has ended.
///
/// # Arguments
/// - `raised`: what was raised while it went on.
/// - `saved`, `out`: the round of its newest checkpoint, 0 without one, and the directory to resume from.
fn ended(
    py: Python<'_>,
    result: Result<(), RunError>,
    raised: Option<PyErr>,
    (saved, out): (usize, &Path),
) -> PyResult<()> {
    match (result, raised) {
        (Ok(()) | Err(RunError::Interrupted { .. }), Some(error))
            if !error.is_instance_of::<PyKeyboardInterrupt>(py) =>
        {
            Err(error)
        }
        (Err(error @ RunError::Interrupted { .. }), _) => {
            Err(interrupted(py, &error, (saved > 0).then(|| (saved, out.to_path_buf()))))
        }
        (Ok(()), Some(error)) => Err(error),
        (Ok(()), None) => Ok(()),
        (Err(error), _) => Err(of_run(error)),
    }
}

/// Waits for events, and returns the receiver, which only one thread may have; `None` where none can come any more.
fn wait(from: Receiver<Event>) -> (Option<Vec<Event>>, Receiver<Event>) {
    let events = match from.recv_timeout(LOOK) {
        Ok(first) => Some(std::iter::once(first).chain(from.try_iter()).collect()),
        Err(RecvTimeoutError::Timeout) => Some(Vec::new()),
        Err(RecvTimeoutError::Disconnected) => None,
    };
    (events, from)
}

/// Waits for the end of a thread, but not for long: it may be computing.
fn patiently<T>(thread: &JoinHandle<T>) {
    let start = Instant::now();
    while !thread.is_finished() && start.elapsed() < PATIENCE {
        thread::sleep(LOOK);
    }
}

fn call(tell: &Bound<'_, PyAny>, event: Event) -> PyResult<()> {
    match event {
        Event::Started(rounds, note) => tell.call1(("started", rounds, note)).map(drop),
        Event::Round(json, line) => tell.call1(("round", json, line)).map(drop),
        Event::Note(note) => tell.call1(("note", "", with_arguments(&note))).map(drop),
        Event::Info(note) => tell.call1(("info", "", note)).map(drop),
        Event::Message(_) => Ok(()),
    }
}

/// The exception of a run that was interrupted, with the checkpoint's round and the directory to resume from.
fn interrupted(py: Python<'_>, error: &RunError, checkpoint: Option<(usize, PathBuf)>) -> PyErr {
    let text = match &checkpoint {
        Some((round, out)) => format!(
            "{error}; the checkpoint of round {round} is complete; resume with fedstein.resume({:?})",
            out.display().to_string()
        ),
        None => format!("{error}; with checkpoint.enabled = false there is no checkpoint to resume from"),
    };
    interruption(py, text, checkpoint.map(|(_, out)| out))
}

fn interruption(py: Python<'_>, text: String, resume: Option<PathBuf>) -> PyErr {
    let exception = Interrupted::new_err(text);
    match exception.value(py).setattr("resume", resume) {
        Ok(()) => exception,
        Err(error) => error,
    }
}
