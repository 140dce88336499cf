//! Carries out the runs that are not kept yet, several at once if asked, and keeps each result as soon as it is
//! complete.

use std::path::Path;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use super::grid::Run;
use super::kept::Kept;
use super::progress::Progress;
use crate::backend::{Backend, OnBackend, dispatch};
use crate::error::RunError;
use crate::experiment::progress::Observer;
use crate::experiment::{Experiment, run};

/// A run that failed while the others continued.
#[derive(Debug)]
pub struct Failure {
    /// The run's readable name.
    pub label: String,
    /// The reason.
    pub problem: String,
}

/// The directories that runs use.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    /// The directory of the data sets.
    pub data_dir: &'a Path,
    /// The directory of the kept results, which must exist.
    pub kept: &'a Path,
}

/// Carries out the runs, `jobs` at once.
///
/// # Errors
/// The request itself is wrong (data, backend, config), or a result cannot be written, so that every other run would
/// fail too. A run that fails by itself, such as by divergence, is returned as a [`Failure`].
pub fn carry_out(runs: &[Run], jobs: usize, places: Places<'_>, progress: &Progress) -> Result<Vec<Failure>, RunError> {
    let (next, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
    let failures = Mutex::new(Vec::new());
    let fatal = Mutex::new(None);
    let work = || {
        while let Some(run) = runs.get(next.fetch_add(1, Relaxed)).filter(|_| !stopped.load(Relaxed)) {
            let watched = progress.begins(run);
            let Err(error) = one(run, places, &watched) else {
                watched.ended(None);
                continue;
            };
            watched.ended(Some(&error.to_string()));
            if error.exit_code() == 2 || matches!(error, RunError::Output(_)) {
                stopped.store(true, Relaxed);
                locked(&fatal).get_or_insert(error);
            } else {
                let label = format!("{}, seed {}", run.label, run.config.seed);
                locked(&failures).push(Failure { label, problem: error.to_string() });
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..jobs.clamp(1, runs.len().max(1)) {
            scope.spawn(work);
        }
        work();
    });
    progress.finished();
    match fatal.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(failures.into_inner().unwrap_or_else(PoisonError::into_inner)),
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn one(run: &Run, places: Places<'_>, watched: &super::progress::Watched<'_>) -> Result<(), RunError> {
    let experiment = Experiment::new(run.config.clone(), places.data_dir);
    let job = Job { experiment: &experiment, resolved: &run.resolved, watched };
    let kept = dispatch(&run.config.backend, job)??;
    kept.write(places.kept).map_err(|error| RunError::Output(format!("cannot write {error}")))
}

/// A run that waits for its backend to be opened.
struct Job<'a> {
    experiment: &'a Experiment,
    resolved: &'a str,
    watched: &'a super::progress::Watched<'a>,
}

impl OnBackend for Job<'_> {
    type Output = Result<Kept, RunError>;

    fn run<B: Backend>(self) -> Self::Output {
        let observer: &dyn Observer = self.watched;
        let outcome = run::<B>(self.experiment, observer, None)?;
        Kept::of(&self.experiment.config, self.resolved, &outcome, self.watched.notes())
    }
}
