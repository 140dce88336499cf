//! Carries out the runs that are not kept yet, several at once if asked, and keeps each result as soon as it is
//! complete.

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use super::grid::Run;
use super::kept::{self, Kept};
use super::progress::{Progress, Watched};
use crate::backend::AnyBackend;
use crate::checkpoint::digest;
use crate::error::RunError;
use crate::experiment::progress::Observer;
use crate::experiment::{Artifacts, Experiment, run_on};

/// The file of a run's notes in the directory of its checkpoints.
const NOTES: &str = "notes.json";

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

/// The runs that are not kept yet, and the seconds of those that are.
#[derive(Debug)]
pub struct Pending {
    /// The runs to carry out.
    pub left: Vec<Run>,
    /// The cells of the kept runs with the seconds of each.
    pub known: Vec<(usize, f64)>,
}

impl Pending {
    /// Looks for the kept result of each run.
    pub fn of(runs: Vec<Run>, kept: &Path) -> Self {
        let (mut left, mut known) = (Vec::new(), Vec::new());
        for run in runs {
            match Kept::read(kept, &run.resolved) {
                Some(result) => known.push((run.cell, result.seconds)),
                None => left.push(run),
            }
        }
        Self { left, known }
    }

    /// The same, with those among them that have a kept result by now.
    #[must_use]
    pub fn again(self, kept: &Path) -> Self {
        let Self { left, mut known } = self;
        let now = Self::of(left, kept);
        known.extend(now.known);
        Self { left: now.left, known }
    }

    /// The number of all runs.
    pub fn total(&self) -> usize {
        self.left.len() + self.known.len()
    }

    /// Carries out the runs that are not kept, after a line about all of them.
    ///
    /// # Errors
    /// Those of [`carry_out`].
    pub fn carry_out(
        &self,
        about: &str,
        (jobs, quiet): (usize, bool),
        places: Places<'_>,
    ) -> Result<Vec<Failure>, RunError> {
        let progress = Progress::new(&self.left, &self.known, jobs, quiet);
        progress.note(about);
        carry_out(&self.left, jobs, places, &progress)
    }
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

/// Carries out a run from its checkpoint on, or from the beginning, and keeps its result.
fn one(run: &Run, places: Places<'_>, watched: &Watched<'_>) -> Result<(), RunError> {
    let place = kept::place(places.kept, &run.resolved);
    // Where another process carries out the same run, this one has no checkpoints.
    let Some(mut checkpoints) = Artifacts::checkpoints(place.clone(), run.settings.clone())? else {
        return from_here(run, places, watched, None);
    };
    watched.keeps_notes(place.join(NOTES));
    let ended = from_here(run, places, watched, Some(&mut checkpoints));
    drop(checkpoints);
    clear(&place, &ended);
    ended
}

/// Removes the directory of a run that has ended, unless the run may go on from its checkpoints at another time: when there
/// is space again for its result, perhaps.
fn clear(place: &Path, ended: &Result<(), RunError>) {
    // What is left of the directory does no harm.
    let _ = match ended {
        // Without checkpoints the directory is empty.
        Err(error) if error.may_pass() => fs::remove_dir(place),
        _ => fs::remove_dir_all(place),
    };
}

fn from_here(
    run: &Run,
    places: Places<'_>,
    watched: &Watched<'_>,
    checkpoints: Option<&mut Artifacts>,
) -> Result<(), RunError> {
    let experiment = Experiment::new(run.config.clone(), places.data_dir);
    let observer: &dyn Observer = watched;
    let outcome = run_on(AnyBackend::named(&run.config.backend)?, &experiment, observer, checkpoints)?;
    // The results are those of the best round, where validation rows have chosen one.
    let best = outcome.best.and_then(|best| outcome.rounds.iter().find(|record| record.round == best));
    best.iter().for_each(|record| watched.shows(record));
    let kept = Kept::of(&run.config, &run.resolved, &outcome, watched.notes())?;
    for (path, sha256) in &run.tables {
        // The result would be kept as that of the earlier table.
        if digest::of_file(path).ok().as_ref() != Some(sha256) {
            let path = path.display();
            return Err(RunError::Output(format!("`{path}` has changed since the command began; start it again")));
        }
    }
    kept.write(places.kept).map_err(|error| RunError::Output(format!("cannot write {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::BackendError;
    use crate::checkpoint::CheckpointError;
    use crate::stein::SvgdError;

    #[test]
    fn checkpoints_stay_where_the_run_may_go_on_and_go_where_it_would_end_in_the_same_way() {
        let full = || std::io::Error::from(std::io::ErrorKind::StorageFull);
        let io = |path: &Path| CheckpointError::Io { action: "write", path: path.to_path_buf(), source: full() };
        let device = || SvgdError::Device { step: 3, reason: "it is lost".into() };
        let diverged = || SvgdError::NotFinite { step: 3, particle: 1 };
        let client = RunError::Client { round: 2, client: 0, reason: diverged().to_string() };
        let no_device = BackendError::NoDevice { name: "cuda", reason: "no driver".into() };
        let dir = tempfile::tempdir().unwrap();
        for (ended, stays) in [
            (Ok(()), false),
            (Err(RunError::Output("no space".into())), true),
            (Err(RunError::Device("it is lost".into())), true),
            (Err(RunError::Svgd(device())), true),
            (Err(RunError::Server { round: 2, error: device() }), true),
            (Err(RunError::Checkpoint(io(dir.path()))), true),
            (Err(RunError::Backend(no_device)), true),
            (Err(RunError::Interrupted { round: 2, rounds: 9 }), true),
            (Err(RunError::Svgd(diverged())), false),
            (Err(RunError::Server { round: 2, error: diverged() }), false),
            (Err(client), false),
            (Err(RunError::Config("a key".into())), false),
            (Err(RunError::Checkpoint(CheckpointError::Content("a state of another kind".into()))), false),
        ] {
            let place = dir.path().join("run");
            fs::create_dir(&place).unwrap();
            clear(&place, &ended);
            assert!(!place.exists(), "empty after {ended:?}");
            fs::create_dir(&place).unwrap();
            fs::write(place.join("round-5.json"), "{}").unwrap();
            clear(&place, &ended);
            assert_eq!(place.exists(), stays, "{ended:?}");
            let _ = fs::remove_dir_all(&place);
        }
    }
}
