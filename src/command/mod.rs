//! The commands: what each one does with its parsed arguments.

mod backends;
mod bench;
mod client;
mod columns;
mod data;
mod evaluate;
mod for_site;
mod headline;
mod init;
mod interrupt;
mod log;
mod new_rows;
mod output;
mod personal;
mod predict;
mod program;
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
mod threads;
mod train;

use crate::backend::BackendError;
use crate::cli::{CliError, Invocation, print_text};
use crate::error::RunError;

pub use program::set_program;
pub use threads::{STACK, on_threads};

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
