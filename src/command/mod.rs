//! The commands: what each one does with its parsed arguments.

mod backends;
mod bench;
mod client;
mod columns;
mod data;
mod evaluate;
mod headline;
mod init;
mod interrupt;
mod log;
mod new_rows;
mod output;
mod personal;
mod predict;
mod report;
mod reproduce;
mod runs;
mod site;
mod site_serve;
mod site_split;
mod study;
#[cfg(feature = "flower")]
mod supernode;
mod tensorboard;
mod train;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::backend::{BackendError, OnBackend, dispatch};
use crate::cli::{CliError, Invocation, print_text};
use crate::error::RunError;
use crate::site::{SiteConfig, SiteRows};

/// The stack size in bytes of a thread that runs commands: the usual size of a main thread.
pub const STACK: usize = 8 << 20;

/// The program that answers `fedstein site FILE --stdio`, where it is not the one that runs.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Names the program by which this command starts itself again for sites; otherwise that is the running program, which in
/// a script is the interpreter. The first call counts.
pub fn set_program(path: PathBuf) {
    // A second call changes nothing.
    let _ = PROGRAM.set(path);
}

/// The program by which this command starts itself again.
///
/// # Errors
/// The running program has no path.
fn program() -> io::Result<PathBuf> {
    PROGRAM.get().cloned().map_or_else(std::env::current_exe, Ok)
}

/// Carries out an invocation.
///
/// # Errors
/// The errors of the command.
pub fn execute(invocation: Invocation) -> Result<(), CliError> {
    match invocation {
        Invocation::Init(typed) => init::init(&typed),
        Invocation::Train(train) => train::train(*train),
        Invocation::Report(report) => report::report(report),
        Invocation::Predict(predict) => predict::predict(predict),
        Invocation::Evaluate(typed) => evaluate::evaluate(typed),
        Invocation::Runs(typed) => runs::runs(&typed),
        Invocation::Data(data) => data::data(data),
        Invocation::Backends => backends::backends(),
        Invocation::Bench(typed) => bench::bench(typed),
        Invocation::Reproduce(typed) => reproduce::reproduce(typed),
        Invocation::Study(typed) => study::study(typed),
        Invocation::SiteInit(typed) => init::site_init(&typed),
        Invocation::SiteCheck(typed) => site::check(&typed),
        Invocation::SiteSplit(typed) => site_split::split(&typed),
        Invocation::SiteServe(file) => site_serve::serve(&file),
        #[cfg(feature = "flower")]
        Invocation::Supernode(typed) => supernode::serve(&typed),
        Invocation::Print(text) => print_text(&text),
    }
}

/// Does some work on a pool of this many threads; 0 stands for the pool that is there.
///
/// # Errors
/// The threads cannot be started: a sentence.
pub fn on_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> Result<T, String> {
    if threads == 0 {
        return Ok(work());
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).stack_size(STACK).build();
    Ok(pool.map_err(|error| format!("cannot start {threads} threads: {error}"))?.install(work))
}

/// Opens a site, and does some work for it on its own backend and threads.
///
/// # Errors
/// The site's own file, its rows or its backend is unusable, the threads cannot be started, or the error of the work.
fn for_site<J>(file: &Path, job: impl FnOnce(SiteConfig, SiteRows) -> J) -> Result<(), CliError>
where
    J: OnBackend<Output = Result<(), CliError>> + Send,
{
    let site = SiteConfig::load(file)?;
    let rows = SiteRows::open(&site).map_err(|error| CliError::Usage(format!("{}: {error}", file.display())))?;
    let (backend, threads) = (site.backend.clone(), site.threads);
    let job = job(site, rows);
    on_threads(threads, || dispatch(&backend, job)).map_err(CliError::Failed)??
}

impl From<RunError> for CliError {
    fn from(error: RunError) -> Self {
        match error.exit_code() {
            2 => Self::Usage(error.to_string()),
            130 => Self::Interrupted(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl From<BackendError> for CliError {
    fn from(error: BackendError) -> Self {
        Self::Usage(error.to_string())
    }
}
