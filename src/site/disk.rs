//! What a site keeps on its disk during a run: the terms, after every visit the state of its half together with its reply,
//! and after the last round the site's own results.
//!
//! `<state>/<run>/` has mode 0700 and a lock. A visit is committed by one rename, before its reply is sent: a process that
//! ends at any moment leaves the visit out or has all of it. The generation of a visit has the number of its round. The
//! server says with every request from which of them a client begins ([`Request::counted`]); so a visit whose reply was
//! not aggregated is discarded, a server that resumes from its checkpoint finds the states of that time, and the same
//! request gets the same reply without a step.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::terms::Terms;
use crate::checkpoint::lock::{Lock, LockError};
use crate::checkpoint::{CheckpointError, Identity, Position, State, Store, codec, rounds};
use crate::protocol::{Message, Request};
use crate::report::files::{create_private, read_text, read_whole, write_atomic};

/// How long a process waits for another one of this site.
const PATIENCE: Duration = Duration::from_secs(5);
/// The time between two attempts.
const RETRY: Duration = Duration::from_millis(50);
/// The file with the terms of the run.
const TERMS: &str = "terms.json";
/// The file with the initial particles.
const INITIAL: &str = "initial.safetensors";
/// The file with the means over all rows, to which the site has told its deviations.
pub const MEANS: &str = "means.json";
/// The file with the form of the rows whose sums of products the site has told.
pub const PRODUCTS: &str = "products.json";
/// The file with the fingerprint of the particles whose squared residuals the site has told.
pub const RESIDUALS: &str = "residuals.json";
/// The directory of the visits.
const VISITS: &str = "visits";
/// The directory of the results after the last round.
const RESULTS: &str = "results";
/// The part of a generation with the state of the half.
const HALF: &str = "half";
/// The part of a generation with the reply.
const REPLY: &str = "reply";

/// Why a site cannot use what it keeps.
#[derive(Debug, Error)]
pub enum DiskError {
    /// Another process of this site is at work.
    #[error("this site is busy with another message ({0})")]
    Busy(String),
    /// A visit that counts is not on the disk.
    #[error(
        "this site has lost its state of round {counted}: `{}` {}. What it has sent belongs to that state. Bring that directory \
         back, or start the run anew",
        dir.display(), have(rounds)
    )]
    Lost {
        /// The directory of the run.
        dir: PathBuf,
        /// The round whose state is missing.
        counted: usize,
        /// The rounds whose states are there.
        rounds: Vec<usize>,
    },
    /// A request from before a visit to which the server has said that it does not go back.
    #[error(
        "the request begins at the end of round {counted}, and the server has said before that it does not go back beyond round {keep}"
    )]
    Past {
        /// The round at whose end the request begins.
        counted: usize,
        /// The oldest round to which the server goes back.
        keep: usize,
    },
    /// The rows are not those with which the run began.
    #[error(
        "the rows of this site have changed since the run began: one of the files, or in its own file `index`, a key of [data], \
         `tell.min_rows` or `tell.statistics`; bring them back, or start the run anew"
    )]
    Changed,
    /// A file cannot be read or written.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
}

/// The error about a file of a run that does not have the content that this site has written.
fn damaged(path: &Path, reason: &str) -> CheckpointError {
    let path = path.display();
    CheckpointError::Content(format!(
        "`{path}` is damaged: {reason}. Remove this file and go on with the run: the server sends its content again"
    ))
}

fn have(rounds: &[usize]) -> String {
    let rounds: Vec<String> = rounds.iter().map(ToString::to_string).collect();
    match &rounds[..] {
        [] => "has none".into(),
        [round] => format!("has that of round {round}"),
        _ => format!("has those of rounds {}", rounds.join(", ")),
    }
}

/// The content of [`TERMS`].
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    /// What the site's rows follow from: see [`SiteRows::fingerprint`](super::SiteRows::fingerprint).
    rows: String,
    terms: Terms,
}

/// The directory of a run under a site's `state`.
fn directory(state: &Path, run: u64) -> PathBuf {
    state.join(format!("{run:016x}"))
}

/// The directory of one run at one site, locked by this process.
#[derive(Debug)]
pub struct Disk {
    dir: PathBuf,
    /// The generations up to that from which the next visit begins; `None` until it is known.
    store: Option<Store>,
    /// The lock. It is the last field, so that it is released after everything else.
    _lock: Lock,
}

impl Disk {
    /// Opens or creates the directory of a run under a site's `state`.
    ///
    /// # Errors
    /// Another process of this site has locked it, or it cannot be created.
    pub fn open(state: &Path, run: u64) -> Result<Self, DiskError> {
        let dir = directory(state, run);
        create_private(&dir).map_err(CheckpointError::io("create", &dir))?;
        let start = Instant::now();
        loop {
            match Lock::take(&dir) {
                Ok(lock) => return Ok(Self { dir, store: None, _lock: lock }),
                // A process whose server has ended first finishes its visit.
                Err(LockError::Held(_)) if start.elapsed() < PATIENCE => sleep(RETRY),
                Err(LockError::Held(holder)) => return Err(DiskError::Busy(holder)),
                Err(LockError::Io(source)) => return Err(CheckpointError::io("lock", &dir)(source).into()),
            }
        }
    }

    /// Checks that a site's rows, by their fingerprint, are those with which a run began, where this site has a part in the run.
    ///
    /// # Errors
    /// They are others, or the run's directory cannot be read.
    pub fn check_rows(state: &Path, run: u64, rows: &str) -> Result<(), DiskError> {
        match directory(state, run).join(TERMS).exists() {
            true => Self::open(state, run)?.terms(rows).map(drop),
            false => Ok(()),
        }
    }

    /// The directory of the site's own results after the last round.
    pub fn results(&self) -> PathBuf {
        self.dir.join(RESULTS)
    }

    /// Keeps a question about the rows in its file, [`MEANS`], [`PRODUCTS`] or [`RESIDUALS`]; whether it is the first of this run, or the
    /// same again.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn asked_once(&self, file: &str, question: &str) -> Result<bool, DiskError> {
        let path = self.dir.join(file);
        if path.exists() {
            let kept = read_text(&path).map_err(CheckpointError::io("read", &path))?;
            // No question is empty: a disk that was full, or a machine that went down, has left this.
            return if kept.is_empty() { Err(damaged(&path, "it is empty").into()) } else { Ok(kept == question) };
        }
        let written = write_atomic(&path, question.as_bytes());
        written.map_err(|error| CheckpointError::Write(error.to_string()))?;
        Ok(true)
    }

    /// Keeps the terms of the run, the initial particles, and the fingerprint of the site's rows.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn keep_terms(&self, terms: &Terms, initial: &Message, rows: &str) -> Result<(), DiskError> {
        let write = |name: &str, bytes: &[u8]| {
            let written = write_atomic(&self.dir.join(name), bytes);
            written.map_err(|error| CheckpointError::Write(error.to_string()))
        };
        write(INITIAL, &codec::encode(&initial.to_state())?)?;
        let kept = Kept { rows: rows.to_owned(), terms: terms.clone() };
        let text = serde_json::to_vec_pretty(&kept).map_err(|error| CheckpointError::Content(error.to_string()))?;
        Ok(write(TERMS, &text)?)
    }

    /// The terms and the initial particles; `None` where none are kept.
    ///
    /// # Errors
    /// A file cannot be read, or the rows are not those with which the run began.
    pub fn terms(&self, rows: &str) -> Result<Option<(Terms, Message)>, DiskError> {
        let path = self.dir.join(TERMS);
        if !path.exists() {
            return Ok(None);
        }
        let text = read_text(&path).map_err(CheckpointError::io("read", &path))?;
        let kept: Kept = serde_json::from_str(&text).map_err(|error| damaged(&path, &error.to_string()))?;
        if kept.rows != rows {
            return Err(DiskError::Changed);
        }
        // Without the terms the server sends both again.
        let of_initial = |reason: String| damaged(&path, &format!("its {INITIAL}: {reason}"));
        let bytes = read_whole(&self.dir.join(INITIAL)).map_err(|error| of_initial(error.to_string()))?;
        let initial = codec::decode(&bytes).map_err(of_initial)?;
        Ok(Some((kept.terms, Message::from_state(&initial)?)))
    }

    /// Begins anew: the next visit that is committed takes the place of all that are on the disk.
    pub fn begin_anew(&mut self) {
        self.store = Some(Store::new(self.dir.join(VISITS)));
    }

    /// The round of the last visit on the disk; 0 where there is none.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn visited(&self) -> Result<usize, DiskError> {
        Ok(self.rounds()?.last().copied().unwrap_or(0))
    }

    fn rounds(&self) -> Result<Vec<usize>, DiskError> {
        Ok(rounds(&self.dir.join(VISITS))?)
    }

    /// The reply to this request, if it has been answered: training for the same state in the same round.
    ///
    /// # Errors
    /// The generation cannot be read.
    pub fn reply(&self, request: &Request) -> Result<Option<Message>, DiskError> {
        let Some(store) = Store::open_at(&self.dir.join(VISITS), request.round)? else { return Ok(None) };
        let reply = store.read(REPLY)?;
        match reply.words("state")? == format!("{:016x}", request.state) {
            true => Ok(Some(Message::from_state(&reply.part("message"))?)),
            false => Ok(None),
        }
    }

    /// The state of the half with which it answers a request: that at the end of the round `counted`. `None` for a half
    /// as it was built.
    ///
    /// # Errors
    /// That state is not there or cannot be read, or the server has said that it does not go back so far.
    pub fn state_at(&mut self, counted: usize) -> Result<Option<State>, DiskError> {
        let visits = self.dir.join(VISITS);
        let keep = self.oldest()?;
        if counted < keep {
            return Err(DiskError::Past { counted, keep });
        }
        if counted == 0 {
            self.begin_anew();
            return Ok(None);
        }
        let Some(store) = Store::open_at(&visits, counted)? else {
            return Err(DiskError::Lost { dir: self.dir.clone(), counted, rounds: self.rounds()? });
        };
        let state = store.read(HALF)?;
        self.store = Some(store);
        Ok(Some(state))
    }

    /// The oldest round to whose end the server goes back, by what it said with the last visit.
    fn oldest(&self) -> Result<usize, DiskError> {
        match Store::open_at(&self.dir.join(VISITS), self.visited()?)? {
            Some(store) => Ok(store.read(REPLY)?.count("keep")?),
            None => Ok(0),
        }
    }

    /// Commits a visit that began from [`Self::state_at`]: the state of the half after it, and its reply. States before
    /// the round `keep` are removed.
    ///
    /// # Errors
    /// A file cannot be written; the visit is then not committed.
    pub fn commit(&mut self, request: &Request, keep: usize, half: State, reply: &Message) -> Result<(), DiskError> {
        let mut store = match self.store.take() {
            Some(store) => store,
            None => Store::new(self.dir.join(VISITS)),
        };
        store.keep_from(keep.min(request.counted));
        let stamped = State::default().with_words("state", format!("{:016x}", request.state)).with_count("keep", keep);
        let reply = stamped.with_part("message", reply.to_state());
        let position = Position { round: request.round, identity: Identity::default(), logs: BTreeMap::new() };
        let parts = [(HALF.to_owned(), half), (REPLY.to_owned(), reply)];
        store.write(position, parts.into_iter().map(Ok::<_, CheckpointError>))?;
        self.store = Some(store);
        Ok(())
    }
}
