//! Ctrl-C and SIGTERM: the first signal ends the run without loss of completed rounds, a second one ends it at once.
//!
//! A checkpoint is the state at a round's end. If the last round's checkpoint is on the disk, only the present round
//! can be lost, so the clients' work is aborted at their next step. Otherwise the present round is finished first, and
//! its state is saved.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::experiment::progress::Observer;
use crate::shell;

/// The exit code 128 + SIGINT, by the convention of shells.
pub(super) const INTERRUPTED: i32 = 130;

/// Forwards to another observer, and lets a signal end the run.
pub(super) struct Interruptible {
    shown: Box<dyn Observer>,
    out: PathBuf,
    /// The sites' own files, of a federation.
    sites: Vec<PathBuf>,
    asked: Arc<AtomicBool>,
    /// Whether the user has been informed that the signal arrived.
    said: AtomicBool,
    rounds: AtomicUsize,
    /// The number of the present round.
    round: AtomicUsize,
    /// The round of the newest checkpoint; 0 without one.
    saved: AtomicUsize,
}

impl Interruptible {
    /// Wraps the observer of a run whose directory is `out`, over the sites of these files.
    pub fn new(shown: Box<dyn Observer>, out: PathBuf, sites: Vec<PathBuf>) -> Self {
        let (rounds, round, saved) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        Self { shown, out, sites, asked: Arc::default(), said: AtomicBool::new(false), rounds, round, saved }
    }

    /// The advice on how to resume; `None` without a checkpoint.
    pub fn resume_advice(&self) -> Option<String> {
        let saved = self.saved.load(Relaxed);
        (saved > 0).then(|| {
            let command = shell::resume(&self.out, &self.sites);
            format!("the checkpoint of round {saved} is complete; resume with: {command}")
        })
    }

    /// Installs the handlers: from now on a first signal ends the run, not the process; a second one ends the process.
    fn listen(&self) -> io::Result<()> {
        for signal in [SIGINT, SIGTERM] {
            // The order matters: registered so, the second signal ends the process.
            flag::register_conditional_shutdown(signal, INTERRUPTED, self.asked.clone())?;
            flag::register(signal, self.asked.clone())?;
        }
        Ok(())
    }

    /// Ends the process: work in progress is in no checkpoint.
    fn abandon(&self, saved: usize) -> ! {
        let (round, rounds) = (self.round.load(Relaxed), self.rounds.load(Relaxed));
        let advice = self.resume_advice().unwrap_or_default();
        let text = format!("interrupted in round {round} of {rounds}, after round {saved}");
        self.shown.abandoned(&text);
        // A failed write is ignored, because standard error may be closed; the exit code remains.
        let _ = writeln!(io::stderr(), "{text}\n{advice}");
        std::process::exit(INTERRUPTED);
    }
}

impl Observer for Interruptible {
    fn inner(&self) -> Option<&dyn Observer> {
        Some(&*self.shown)
    }

    fn started(&self, rounds: usize, note: &str) {
        self.rounds.store(rounds, Relaxed);
        if let Err(error) = self.listen() {
            self.note(&format!("Ctrl-C will end the run without a checkpoint: {error}"));
        }
        self.shown.started(rounds, note);
    }

    fn round(&self, round: usize, clients: &[usize]) {
        self.round.store(round, Relaxed);
        self.shown.round(round, clients);
    }

    fn step(&self, done: usize, total: usize) {
        self.shown.step(done, total);
        if !self.asked.load(Relaxed) || self.said.swap(true, Relaxed) {
            return;
        }
        let (round, saved) = (self.round.load(Relaxed), self.saved.load(Relaxed));
        // At most the present round is lost.
        if saved > 0 && saved + 1 >= round {
            self.abandon(saved);
        }
        self.note(&format!("stopping after round {round}; a second interrupt ends at once and loses unsaved rounds"));
    }

    fn saved(&self, round: usize) {
        self.saved.store(round, Relaxed);
        self.shown.saved(round);
    }

    fn wants_to_stop(&self) -> bool {
        self.asked.load(Relaxed) || self.shown.wants_to_stop()
    }
}
