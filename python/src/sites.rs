//! Both ends of a federation whose messages Python carries: the server's run, and a site's answer to one message.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fedstein::backend::AnyBackend;
use fedstein::command::on_threads;
use fedstein::experiment::at_site::{SiteClient, answer_without_rows};
use fedstein::experiment::{serve_on, split as split_rows};
use fedstein::protocol::RequestKind;
use fedstein::remote::records::{Field, NamedArray, Records};
use fedstein::remote::{Arrival, Carrier, Limits, Lost, Parcel, Peer, ask_who, seal_failure, who_answers};
use fedstein::site::{SiteConfig, SiteRows};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::errors::{ConfigError, DataError, RunFailed, of_config, of_run};
use crate::pool::detached;
use crate::train::Plan;
use crate::watched::{Courier, Event, Files, Message, State, watch};

/// A field of an envelope in Python.
#[derive(FromPyObject, IntoPyObject)]
pub enum Value {
    Whole(i64),
    Text(String),
}

/// A message as Python has it: the envelope, the numbers, and the arrays with their names and `.npy` bytes.
#[derive(FromPyObject)]
pub struct Carried<'py>(HashMap<String, Value>, BTreeMap<String, f64>, Vec<(String, Bound<'py, PyBytes>)>);

impl Carried<'_> {
    /// The message; its arrays may have this many bytes.
    fn parcel(self, most: Option<u64>) -> Result<Parcel, String> {
        let Self(envelope, numbers, arrays) = self;
        let bytes: u64 = arrays.iter().map(|(_, bytes)| bytes.as_bytes().len() as u64).sum();
        if let Some(most) = most.filter(|most| bytes > *most) {
            return Err(format!("its arrays have {bytes} bytes; at most {most} are read"));
        }
        let text =
            |(name, value): (&String, &Value)| name.len() + if let Value::Text(text) = value { text.len() } else { 8 };
        let text: usize = envelope.iter().map(text).sum();
        let longest = Limits::of(0).envelope;
        if most.is_some() && text as u64 > longest {
            return Err(format!("its text has {text} bytes; at most {longest} are read"));
        }
        let field = |(name, value)| match value {
            Value::Whole(number) => (name, Field::Whole(number)),
            Value::Text(text) => (name, Field::Text(text)),
        };
        let array = |(name, bytes): (String, Bound<'_, PyBytes>)| NamedArray {
            name,
            kind: "",
            shape: Vec::new(),
            bytes: Arc::new(bytes.as_bytes().to_vec()),
        };
        let envelope = envelope.into_iter().map(field).collect();
        Records { envelope, numbers, arrays: arrays.into_iter().map(array).collect() }.parcel()
    }

    /// The answer that this message cannot be answered. It has the message's number, by which the server knows it, also
    /// where the rest of the message is damaged.
    fn refused(number: Option<i64>, reason: String) -> Parcel {
        let envelope = number.map(|number| format!("{{\"number\":{number}}}")).unwrap_or_default();
        seal_failure(0, envelope.as_bytes(), reason)
    }

    fn number(&self) -> Option<i64> {
        match self.0.get("number") {
            Some(Value::Whole(number)) => Some(*number),
            _ => None,
        }
    }
}

/// A message for Python: the envelope, the numbers, the arrays with name, type, shape and `.npy` bytes, the kind of the
/// request or an empty text, and its round.
fn for_python<'py>(py: Python<'py>, parcel: &Parcel) -> PyResult<Bound<'py, PyAny>> {
    let (records, request) = Records::of(parcel).map_err(RunFailed::new_err)?;
    let envelope = PyDict::new(py);
    for (name, field) in records.envelope {
        match field {
            Field::Whole(number) => envelope.set_item(name, number)?,
            Field::Text(text) => envelope.set_item(name, text)?,
        }
    }
    let array = |array: NamedArray| (array.name, array.kind, array.shape, PyBytes::new(py, &array.bytes));
    let arrays = PyList::new(py, records.arrays.into_iter().map(array))?;
    let (kind, round) = request.map_or(("", 0), |(kind, round)| (RequestKind::word(kind), round));
    Ok((envelope, records.numbers, arrays, kind, round).into_pyobject(py)?.into_any())
}

/// The question which site a node is.
///
/// # Errors
/// None that a caller could change.
#[pyfunction]
pub fn ask_site(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    for_python(py, &ask_who().map_err(RunFailed::new_err)?)
}

/// The index and the name of the site that answers so.
///
/// # Errors
/// It is no such answer, or of another version of the protocol: a `RunFailed` with a sentence.
#[pyfunction]
pub fn site_answers(answer: Carried<'_>) -> PyResult<(usize, String)> {
    let identity = answer.parcel(Some(0)).and_then(who_answers).map_err(RunFailed::new_err)?;
    Ok((identity.index, identity.name))
}

/// The answer that a message cannot be answered, for this reason.
///
/// # Errors
/// None that a caller could change.
#[pyfunction]
pub fn decline<'py>(py: Python<'py>, message: Carried<'py>, reason: String) -> PyResult<Bound<'py, PyAny>> {
    for_python(py, &Carried::refused(message.number(), reason))
}

/// The answer of the site with this file to a message. The site's state is on its disk, so every message may go to another
/// process.
///
/// # Errors
/// The site's own file or its rows cannot be used, or it is not of the client `index`. The error is for the site's log; the
/// server is not to see its paths.
#[pyfunction]
pub fn answer<'py>(
    py: Python<'py>,
    file: PathBuf,
    index: Option<usize>,
    message: Carried<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let site = SiteConfig::load(&file).map_err(of_config)?;
    if let Some(index) = index.filter(|index| *index != site.index) {
        return Err(ConfigError::new_err(format!(
            "{}: the site has index = {}, and its node partition-id={index}; they must be equal",
            file.display(),
            site.index
        )));
    }
    let number = message.number();
    let parcel = match message.parcel(Some(site.limits.bytes())) {
        Ok(parcel) => parcel,
        Err(reason) => return for_python(py, &Carried::refused(number, reason)),
    };
    let answered = detached(py, || answered(site, parcel))??;
    for_python(py, &answered)
}

fn answered(site: SiteConfig, parcel: Parcel) -> PyResult<Parcel> {
    if let Some(answer) = answer_without_rows(&site, &parcel) {
        return Ok(answer);
    }
    let rows = SiteRows::open(&site).map_err(|error| DataError::new_err(error.to_string()))?;
    let threads = site.threads;
    let mut client = SiteClient::new(site, rows).map_err(|error| ConfigError::new_err(error.to_string()))?;
    on_threads(threads, || client.answer(parcel)).map_err(RunFailed::new_err)
}

/// Writes the rows of every client of an experiment as the files of sites, and returns the names of their `site.toml`.
///
/// # Errors
/// The rows cannot be read or assigned, or a file cannot be written.
#[pyfunction]
pub fn split(py: Python<'_>, plan: &Plan, data_dir: PathBuf, out: PathBuf) -> PyResult<(Vec<PathBuf>, Vec<String>)> {
    let split = detached(py, || split_rows::split(&plan.config, &data_dir, &out))?;
    split.map(|split| (split.files, split.notes)).map_err(of_run)
}

/// Runs the server of a federation into the directory `out`; [`watch`] says how it is watched.
///
/// `network.send(messages)` gets a list of `(site, message)`, and `network.receive()` returns a list of `(site, message,
/// reason)`, where the message is `None` for a site that cannot be reached any more, for this reason. Both are called often
/// and must not wait.
///
/// # Errors
/// The config is unusable, the sites do not agree, the run fails, or what was raised meanwhile.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "one for each argument of Python's function")]
pub fn serve(
    py: Python<'_>,
    plan: &Plan,
    names: Vec<String>,
    out: PathBuf,
    force: bool,
    resume: bool,
    network: &Bound<'_, PyAny>,
    tell: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let (arrived, from) = channel();
    let limits = vec![0; names.len()];
    let mut courier = Network { network, arrived, limits };
    let config = plan.config.clone();
    let files = Files { resolved: plan.resolved.clone(), out: out.clone(), force, resume, temporary: None };
    watch(py, &out, false, tell, &mut courier, move |told| {
        let (to, state) = told.connection();
        let carrier = PythonCarrier { names, to, from: Mutex::new(from), state };
        let backend = AnyBackend::named(&config.backend)?;
        files.with(&told, |artifacts| serve_on(backend, &config, &carrier, &told, Some(artifacts)))
    })
}

/// A carrier whose messages the calling thread hands to Python.
struct PythonCarrier {
    names: Vec<String>,
    to: Sender<Event>,
    from: Mutex<Receiver<Arrival>>,
    state: Arc<State>,
}

impl Carrier for PythonCarrier {
    fn peers(&self) -> usize {
        self.names.len()
    }

    fn name(&self, peer: Peer) -> String {
        self.names.get(peer).cloned().unwrap_or_else(|| format!("site {peer}"))
    }

    fn send(&self, to: Peer, parcel: &Parcel, limits: Limits) -> Result<(), String> {
        let message = Message { to, parcel: parcel.clone(), bytes: limits.bytes };
        self.to.send(Event::Message(message)).map_err(|_| "the run was stopped".into())
    }

    fn receive(&self, wait: Duration) -> Vec<Arrival> {
        let from = self.from.lock().unwrap_or_else(PoisonError::into_inner);
        match from.recv_timeout(wait) {
            Ok(first) => std::iter::once(first).chain(from.try_iter()).collect(),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Vec::new(),
        }
    }

    fn closed(&self) -> Option<String> {
        self.state.closed()
    }
}

/// The calling thread's end of a [`PythonCarrier`].
struct Network<'a, 'py> {
    network: &'a Bound<'py, PyAny>,
    arrived: Sender<Arrival>,
    /// The number of bytes that the arrays of each site's answer may have.
    limits: Vec<u64>,
}

impl Courier for Network<'_, '_> {
    fn ends_at_once(&self) -> bool {
        true
    }

    fn deliver(&mut self, messages: Vec<Message>) -> PyResult<()> {
        let py = self.network.py();
        if !messages.is_empty() {
            let list = PyList::empty(py);
            for Message { to, parcel, bytes } in messages {
                if let Some(limit) = self.limits.get_mut(to) {
                    *limit = bytes;
                }
                list.append((to, for_python(py, &parcel)?))?;
            }
            self.network.call_method1("send", (list,))?;
        }
        for arrival in self.network.call_method0("receive")?.try_iter()? {
            let (from, message, reason): (Peer, Option<Carried<'_>>, String) = arrival?.extract()?;
            let lost = |reason| Lost { reason, was_killed: false };
            let what = match message {
                Some(message) => message.parcel(self.limits.get(from).copied()).map_err(lost),
                None => Err(lost(reason)),
            };
            // The run has ended where nobody receives.
            let _ = self.arrived.send(Arrival { from, what });
        }
        Ok(())
    }
}
