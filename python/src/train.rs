//! Runs an experiment on the pool while the calling thread serves Python.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use fedstein::backend::{Backend, OnBackend, dispatch};
use fedstein::cli::load_built_in;
use fedstein::command::STACK;
use fedstein::error::RunError;
use fedstein::experiment::progress::{Bar, Observer, plain_line};
use fedstein::experiment::schema::Resolved;
use fedstein::experiment::{
    Artifacts, Config, ConfigLoader, Experiment, Overrides, RoundRecord, Source, run, run_dir, write_report,
};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::data::Rows;
use crate::errors::{ConfigError, Interrupted, RunFailed, of_config, of_run};
use crate::pool::{enter, on_worker, panicked};

/// The longest time between two looks at Python's signals.
const LOOK: Duration = Duration::from_millis(50);

/// What a run tells.
enum Event {
    Started(usize, String),
    Round(String, String),
    Note(String),
}

/// Tells the calling thread what happens, and lets it end the run.
struct Told {
    to: Sender<Event>,
    bar: Option<Bar>,
    rounds: AtomicUsize,
    state: Arc<State>,
}

/// What both threads see.
#[derive(Default)]
struct State {
    stop: AtomicBool,
    /// The round of the newest checkpoint; 0 without one.
    saved: AtomicUsize,
}

impl Told {
    fn tell(&self, event: Event) {
        // The receiver is gone where a second interrupt ended the call; the run then ends soon.
        let _ = self.to.send(event);
    }
}

impl Observer for Told {
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
            self.tell(Event::Round(json, plain_line(record, self.rounds.load(Relaxed))));
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

    fn saved(&self, round: usize) {
        self.state.saved.store(round, Relaxed);
    }

    fn wants_to_stop(&self) -> bool {
        self.state.stop.load(Relaxed)
    }
}

/// A resolved experiment.
#[pyclass(module = "fedstein._fedstein", frozen)]
pub struct Plan {
    config: Config,
    resolved: Resolved,
}

#[pymethods]
impl Plan {
    /// Resolves a config: the TOML text of `source` with its name in messages, or the built-in experiment; `set` are
    /// assignments `key=value` in TOML.
    ///
    /// # Errors
    /// A key or a value is invalid.
    #[new]
    fn new(source: Option<(String, String)>, mut set: Vec<String>, data: Option<&Rows>) -> PyResult<Self> {
        if let Some(Rows(data)) = data {
            let is_set = |set: &String| set.split('=').next().is_some_and(|key| key.trim() == "partition.kind");
            let table = source.as_ref().and_then(|(_, text)| text.parse::<toml::Table>().ok());
            let in_file =
                table.is_some_and(|table| table.get("partition").and_then(|section| section.get("kind")).is_some());
            // Rows with clients of their own go to these, unless the user wants something else.
            if data.train.clients.is_some() && !in_file && !set.iter().any(is_set) {
                set.push("partition.kind=\"by-column\"".into());
            }
        }
        let overrides = Overrides { set, ..Overrides::default() };
        let loaded = match (&source, data) {
            (None, None) => load_built_in(&overrides),
            (Some((name, text)), None) => Config::load(Source { name, text }, &overrides),
            (source, Some(Rows(data))) => {
                let (name, text) = source.as_ref().map_or(("the defaults", ""), |(name, text)| (name, text));
                ConfigLoader::default().with_data(data).load(Source { name, text }, &overrides)
            }
        };
        // The option of the command has no name here: keys are keywords or entries of a dict.
        let (config, resolved) = loaded.map_err(|error| match of_config_text(&error.to_string()) {
            Some(text) => ConfigError::new_err(text),
            None => of_config(error),
        })?;
        Ok(Self { config, resolved })
    }

    /// The resolved config as TOML.
    fn to_toml(&self) -> String {
        self.resolved.to_toml()
    }

    /// The run's name.
    fn name(&self) -> &str {
        &self.config.name
    }

    /// Notes for the user.
    fn notes(&self) -> Vec<String> {
        self.resolved.notes.clone()
    }
}

/// The message about a keyword without the name of the command's option.
fn of_config_text(text: &str) -> Option<String> {
    text.strip_prefix("--set: ").map(ToOwned::to_owned)
}

/// All that the run's own thread needs.
struct Job {
    experiment: Experiment,
    resolved: Resolved,
    out: PathBuf,
    force: bool,
    resume: bool,
    report: bool,
    told: Told,
}

impl Job {
    fn run(self) -> Result<(), RunError> {
        let backend = self.experiment.config.backend.clone();
        dispatch(&backend, self)?
    }
}

impl OnBackend for Job {
    type Output = Result<(), RunError>;

    fn run<B: Backend>(self) -> Self::Output {
        let Self { experiment, resolved, out, force, resume, report, told } = self;
        let mut artifacts = match resume {
            true => Artifacts::resume(out.clone(), resolved, &mut |note| told.note(note))?,
            false => Artifacts::new(out.clone(), force, resolved),
        };
        let result = run::<B>(&experiment, &told, Some(&mut artifacts));
        told.finished();
        result?;
        if report {
            write_report(&out, &out.join(run_dir::REPORT))?;
        }
        Ok(())
    }
}

/// Runs an experiment into the directory `out`.
///
/// `tell` is called with `("started", rounds, headline)`, `("round", record as JSON, line)` and `("note", "", text)`. If
/// it raises, or a signal's handler does, the run ends at the round's end, with a checkpoint.
///
/// # Errors
/// Config or data are unusable, the run fails, or what was raised meanwhile.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "one for each argument of Python's function")]
pub fn train(
    py: Python<'_>,
    plan: &Plan,
    data: Option<&Rows>,
    data_dir: PathBuf,
    out: PathBuf,
    force: bool,
    resume: bool,
    report: bool,
    bar: bool,
    tell: &Bound<'_, PyAny>,
) -> PyResult<()> {
    enter()?;
    let mut experiment = Experiment::new(plan.config.clone(), data_dir);
    if let Some(Rows(data)) = data {
        experiment = experiment.with_data(data.clone());
    }
    let (to, mut from) = channel();
    let state = Arc::new(State::default());
    let told = Told { to, bar: bar.then(Bar::stderr), rounds: AtomicUsize::new(0), state: state.clone() };
    let job = Job { experiment, resolved: plan.resolved.clone(), out: out.clone(), force, resume, report, told };
    let started = thread::Builder::new().name("fedstein".into()).stack_size(STACK);
    let thread = started.spawn(move || on_worker(|| job.run()));
    let thread = thread.map_err(|error| RunFailed::new_err(format!("cannot start a thread: {error}")))?;

    // What was raised while the run went on.
    let mut raised: Option<PyErr> = None;
    loop {
        let (event, back) = py.detach(move || wait(from));
        from = back;
        let told = match event {
            Err(RecvTimeoutError::Disconnected) => break,
            Ok(event) if raised.is_none() => call(tell, event),
            Ok(_) | Err(RecvTimeoutError::Timeout) => Ok(()),
        };
        let signals = py.check_signals();
        if raised.is_some() {
            // A second interrupt does not wait for the round's end.
            signals?;
        } else if let Err(error) = told.and(signals) {
            state.stop.store(true, Relaxed);
            raised = Some(error);
        }
    }
    let result = py.detach(|| thread.join()).unwrap_or_else(|_| Err("the run's thread panicked".into()));
    let result = result.map_err(|message| panicked(&message))?;
    match (result, raised) {
        (Ok(()) | Err(RunError::Interrupted { .. }), Some(error))
            if !error.is_instance_of::<PyKeyboardInterrupt>(py) =>
        {
            Err(error)
        }
        (Err(error @ RunError::Interrupted { .. }), _) => {
            let saved = state.saved.load(Relaxed);
            Err(interrupted(py, &error, (saved > 0).then_some((saved, out))))
        }
        (Ok(()), Some(error)) => Err(error),
        (Ok(()), None) => Ok(()),
        (Err(error), _) => Err(of_run(error)),
    }
}

/// Waits for an event, and returns the receiver, which only one thread may have.
fn wait(from: Receiver<Event>) -> (Result<Event, RecvTimeoutError>, Receiver<Event>) {
    (from.recv_timeout(LOOK), from)
}

fn call(tell: &Bound<'_, PyAny>, event: Event) -> PyResult<()> {
    match event {
        Event::Started(rounds, note) => tell.call1(("started", rounds, note)),
        Event::Round(json, line) => tell.call1(("round", json, line)),
        Event::Note(note) => tell.call1(("note", "", note)),
    }
    .map(drop)
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
    let exception = Interrupted::new_err(text);
    match exception.value(py).setattr("resume", checkpoint.map(|(_, out)| out)) {
        Ok(()) => exception,
        Err(error) => error,
    }
}
