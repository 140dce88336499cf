//! `fedstein train --log`: what happens in a run, as JSON lines.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use fedstein_schema::flat;
use serde_json::{Map, Value, json};

use super::output;
use crate::cli::CliError;
use crate::experiment::progress::{Observer, continuing};
use crate::experiment::provenance::command_line;
use crate::experiment::schema::Resolved;
use crate::machine;
use crate::metrics::Evaluation;
use crate::report::RoundRecord;
use crate::report::files::can_be_written;

/// The file, which exists from the beginning of the first round on.
pub(super) struct Log {
    path: PathBuf,
    /// Whether lines are added to a file that exists.
    appends: bool,
    /// Whether a log that exists is replaced.
    force: bool,
    /// What the first line says besides the first words of the run.
    about: Map<String, Value>,
    out: Mutex<Option<File>>,
    /// Why there is no log, or only its beginning.
    failure: Mutex<Option<String>>,
}

impl Log {
    /// A log at `path`, which must be new unless lines are appended to it or, with `force`, it is a log that may be replaced.
    ///
    /// # Errors
    /// Something is there that may not be replaced, or a directory or a link; or no file can be written there.
    pub fn new(
        (path, out): (&Path, &Path),
        (appends, force): (bool, bool),
        name: &str,
        resolved: &Resolved,
    ) -> Result<Arc<Self>, CliError> {
        outside("--log", path, out)?;
        output::check_as("--log", path, force || appends)?;
        output::check_parent("--log", path)?;
        if path.is_file() && !is_log(path) {
            let what = if appends { "lines are added to" } else { "--force replaces" };
            return Err(CliError::Usage(format!(
                "--log `{}` is no log of fedstein, and {what} nothing else; choose another file",
                path.display()
            )));
        }
        let can = match fs::metadata(path) {
            Ok(there) if there.is_file() => OpenOptions::new().append(true).open(path).map(drop),
            // A pipe or a device.
            Ok(_) => Ok(()),
            Err(_) => can_be_written(path),
        };
        can.map_err(|error| {
            CliError::Usage(format!("--log `{}` cannot be written: {error}; choose another file", path.display()))
        })?;
        let mut about = Map::new();
        about.insert("name".into(), json!(name));
        about.insert("version".into(), json!(env!("CARGO_PKG_VERSION")));
        about.insert("command".into(), json!(command_line()));
        let keys = flat(&resolved.table).map(|(key, value)| (key, json!(value)));
        about.insert("config".into(), Value::Object(keys.collect()));
        Ok(Arc::new(Self {
            path: path.to_path_buf(),
            appends,
            force,
            about,
            out: Mutex::new(None),
            failure: Mutex::new(None),
        }))
    }

    fn open(&self) -> io::Result<File> {
        // Lines go to the end, also where another program cuts the file meanwhile. A new file must still be new: another run
        // may have the same one.
        let is_stream = fs::symlink_metadata(&self.path).is_ok_and(|there| !there.is_file());
        let may_exist = self.appends || self.force || is_stream;
        let mut options = OpenOptions::new();
        options.append(true).create(may_exist).create_new(!may_exist);
        let mut file = options.open(&self.path)?;
        if self.force && !self.appends && !is_stream {
            file.set_len(0)?;
        }
        // A process that was killed, or a full disk, may have left a part of a line.
        if self.appends && !ends_with_a_line(&self.path)? {
            file.write_all(b"\n")?;
        }
        Ok(file)
    }

    /// Writes a line. A log that cannot be written does not end the run.
    fn write(&self, event: &str, fields: Map<String, Value>) {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(file) = out.as_mut() else { return };
        let time = machine::timestamp().replace(' ', "T") + "Z";
        let mut line = Map::new();
        line.insert("event".into(), json!(event));
        line.insert("time".into(), json!(time));
        line.extend(fields);
        // In one piece, for those who read the file meanwhile.
        if let Err(error) = file.write_all(format!("{}\n", Value::Object(line)).as_bytes()) {
            *out = None;
            self.failed(&error);
        }
    }

    fn failed(&self, error: &io::Error) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
    }

    /// The error of a run that has ended with all its results but for this log.
    ///
    /// # Errors
    /// The log could not be written.
    pub fn written(&self) -> Result<(), CliError> {
        match &*self.failure.lock().unwrap_or_else(PoisonError::into_inner) {
            None => Ok(()),
            Some(error) => Err(CliError::Failed(format!(
                "--log `{}` could not be written: {error}; the run and its files are whole",
                self.path.display()
            ))),
        }
    }

    fn note(&self, text: &str) {
        let mut fields = Map::new();
        fields.insert("text".into(), json!(text));
        self.write("note", fields);
    }

    /// Writes how the run has ended.
    pub fn end(&self, result: Result<&Evaluation, &CliError>) {
        let mut fields = Map::new();
        let state = match result {
            Ok(evaluation) => {
                let metrics: Map<String, Value> =
                    evaluation.columns().into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect();
                fields.insert("metrics".into(), Value::Object(metrics));
                "finished"
            }
            Err(error) => {
                fields.insert("error".into(), json!(error.to_string()));
                if matches!(error, CliError::Interrupted(_)) { "interrupted" } else { "failed" }
            }
        };
        fields.insert("state".into(), json!(state));
        self.write("end", fields);
    }
}

/// Checks that a file or directory is not in the run's own directory, of which a run knows every file.
///
/// # Errors
/// It is.
pub(super) fn outside(option: &str, path: &Path, out: &Path) -> Result<(), CliError> {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    match absolute(path).starts_with(absolute(out)) {
        true => Err(CliError::Usage(format!(
            "{option} `{}` is in the run's own directory `{}`; name a place outside of it",
            path.display(),
            out.display()
        ))),
        false => Ok(()),
    }
}

/// Whether a file is empty, or begins with a line of a log.
fn is_log(path: &Path) -> bool {
    let start = br#"{"event":""#;
    let mut first = Vec::new();
    let read = File::open(path).and_then(|file| file.take(start.len() as u64).read_to_end(&mut first));
    read.is_ok() && (first.is_empty() || first == start)
}

/// Whether a file that is there is empty or ends with a line end.
fn ends_with_a_line(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    if !file.metadata()?.is_file() || file.metadata()?.len() == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// An observer that also writes a log.
pub(super) struct Logged {
    pub inner: Box<dyn Observer>,
    pub log: Arc<Log>,
}

impl Observer for Logged {
    fn inner(&self) -> Option<&dyn Observer> {
        Some(&*self.inner)
    }

    fn started(&self, rounds: usize, note: &str) {
        match self.log.open() {
            Ok(file) => *self.log.out.lock().unwrap_or_else(PoisonError::into_inner) = Some(file),
            Err(error) => {
                self.inner.note(&format!("--log `{}`: {error}; there is no log", self.log.path.display()));
                self.log.failed(&error);
            }
        }
        let mut fields = self.log.about.clone();
        fields.insert("about".into(), json!(note));
        fields.insert("rounds".into(), json!(rounds));
        self.log.write("start", fields);
        self.inner.started(rounds, note);
    }

    fn finished_round(&self, record: &RoundRecord) {
        if let Ok(Value::Object(fields)) = serde_json::to_value(record) {
            self.log.write("round", fields);
        }
        self.inner.finished_round(record);
    }

    fn abandoned(&self, error: &str) {
        self.log.end(Err(&CliError::Interrupted(error.to_owned())));
        self.inner.abandoned(error);
    }

    fn note(&self, note: &str) {
        self.log.note(note);
        self.inner.note(note);
    }

    fn ended(&self, note: &str) {
        self.log.note(note);
        self.inner.ended(note);
    }

    fn continued(&self, round: usize, rounds: usize) {
        self.log.note(&continuing(round, rounds));
        self.inner.continued(round, rounds);
    }
}
