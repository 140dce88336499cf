//! Parses the command line into an [`Invocation`]: all arguments are checked before a command runs.
//!
//! Each command has a file here with its options, whose doc comments are the text of `--help`; what it does is in the file of
//! that name in [`command`](crate::command).
#![allow(rustdoc::invalid_html_tags)] // The doc comments are the texts of `--help`, where `<name>` is not HTML.

mod bench;
mod data;
mod error;
mod evaluate;
mod init;
mod load;
mod options;
mod output;
mod pages;
mod predict;
mod report;
mod reproduce;
mod runs;
mod site;
mod study;
#[cfg(feature = "flower")]
mod supernode;
mod train;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use pages::{CompletionsArgs, ManArgs};
use report::ReportArgs;
use site::{SiteAction, SiteArgs};
use train::TrainArgs;

use crate::error::without_functions;

pub use bench::Bench;
pub use data::Data;
pub use error::CliError;
pub use evaluate::Evaluate;
pub use init::Init;
pub use load::load_built_in;
pub use options::{DataDir, MissingCells, OwnPredictor, Pace, Written};
pub(crate) use output::{print_line, print_note, print_text, printable};
pub use predict::{Format, MoreColumn, Predict};
pub use report::{Report, ReportSource};
pub use reproduce::Reproduce;
pub use runs::{Listing, Runs};
pub use site::{SiteCheck, SiteInit, SiteSplit};
pub use study::StudyOrder;
#[cfg(feature = "flower")]
pub use supernode::Supernode;
pub use train::{Display, Train};

/// The environment variable that names the data directory.
pub const DATA_VARIABLE: &str = "FEDSTEIN_DATA";

/// Federated Bayesian learning with Stein particles: train over data that stays where it is, and see how far the
/// result's confidence can be trusted.
#[derive(Debug, Parser)]
#[command(name = "fedstein", version, arg_required_else_help = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

/// The commands, in the order of `--help`.
#[derive(Debug, Subcommand)]
enum Command {
    Init(Init),
    Train(TrainArgs),
    Report(ReportArgs),
    Predict(Predict),
    Evaluate(Evaluate),
    Runs(Runs),
    /// List, describe or download data sets.
    #[command(subcommand)]
    Data(Data),
    Study(StudyOrder),
    Reproduce(Reproduce),
    /// Show which backends are compiled in, which of them work on this machine, and the hardware.
    Backends,
    Bench(Bench),
    Site(SiteArgs),
    #[cfg(feature = "flower")]
    Supernode(Supernode),
    /// Not in this build
    #[cfg(not(feature = "flower"))]
    #[command(hide = true, disable_help_flag = true)]
    Supernode {
        #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    Completions(CompletionsArgs),
    Man(ManArgs),
}

/// The command and the arguments that the user typed.
#[derive(Debug)]
pub enum Invocation {
    /// The command `fedstein init`.
    Init(Init),
    /// The command `fedstein train`.
    Train(Box<Train>),
    /// The command `fedstein report`.
    Report(Report),
    /// The command `fedstein predict`.
    Predict(Predict),
    /// The command `fedstein evaluate`.
    Evaluate(Evaluate),
    /// The command `fedstein runs`.
    Runs(Runs),
    /// The command `fedstein data`.
    Data(Data),
    /// The command `fedstein backends`.
    Backends,
    /// The command `fedstein bench`.
    Bench(Bench),
    /// The command `fedstein reproduce`.
    Reproduce(Reproduce),
    /// The command `fedstein study`.
    Study(StudyOrder),
    /// The command `fedstein site init`.
    SiteInit(SiteInit),
    /// The command `fedstein site check`.
    SiteCheck(SiteCheck),
    /// The command `fedstein site split`.
    SiteSplit(Box<SiteSplit>),
    /// The command `fedstein site FILE --stdio`, with the site's own file.
    SiteServe(PathBuf),
    /// The command `fedstein supernode`.
    #[cfg(feature = "flower")]
    Supernode(Supernode),
    /// The commands `fedstein completions` and `fedstein man`: a text that follows from the arguments of the program.
    Print(String),
}

/// Runs the whole command: parses `args` (the program's name first), passes the invocation to `execute`, and reports
/// errors on standard error.
///
/// Exit code 0: success; 1: the command failed; 2: the arguments, or a file they name, are wrong; 130: ended by Ctrl-C.
pub fn run<A, T>(args: A, execute: impl FnOnce(Invocation) -> Result<(), CliError>) -> ExitCode
where
    A: IntoIterator<Item = T>,
    T: Into<OsString> + Clone,
{
    let args = match CommandLine::try_parse_from(args) {
        Ok(args) => args,
        // Help and version also end here: clap prints them on standard output with exit code 0.
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
        }
    };
    let result = Invocation::from_args(args, std::env::var_os(DATA_VARIABLE)).and_then(execute);
    let code = match &result {
        Ok(()) | Err(CliError::Closed) => return ExitCode::SUCCESS,
        Err(CliError::Failed(_)) => 1,
        Err(CliError::Usage(_)) => 2,
        Err(CliError::Interrupted(_)) => 130,
    };
    if let Err(error) = result {
        let what = if code == 130 { "" } else { "error: " };
        // A failed write is ignored, because standard error may be closed; the exit code remains.
        let _ = writeln!(io::stderr(), "{what}{}", printable(&without_functions(&error.to_string())));
    }
    ExitCode::from(code)
}

impl Invocation {
    /// The invocation of a command line, given the value of [`DATA_VARIABLE`].
    ///
    /// # Errors
    /// [`CliError::Usage`] with a message for the user; for clap's own errors, clap's message.
    pub fn parse<A, T>(args: A, data_variable: Option<OsString>) -> Result<Self, CliError>
    where
        A: IntoIterator<Item = T>,
        T: Into<OsString> + Clone,
    {
        let args = CommandLine::try_parse_from(args).map_err(|error| CliError::Usage(error.to_string()))?;
        Self::from_args(args, data_variable)
    }

    fn from_args(typed: CommandLine, data_variable: Option<OsString>) -> Result<Self, CliError> {
        Ok(match typed.command {
            Command::Init(typed) => Self::Init(typed),
            Command::Train(mut typed) => {
                typed.data_dir.set_default(data_variable);
                Self::Train(Box::new(typed.resolved()?))
            }
            Command::Report(typed) => Self::Report(typed.resolved()),
            Command::Predict(mut typed) => {
                typed.own.set_default(data_variable);
                Self::Predict(typed)
            }
            Command::Evaluate(mut typed) => {
                typed.own.set_default(data_variable);
                Self::Evaluate(typed)
            }
            Command::Runs(typed) => Self::Runs(typed),
            Command::Data(mut typed) => {
                typed.set_default(data_variable);
                Self::Data(typed)
            }
            Command::Backends => Self::Backends,
            Command::Bench(typed) => Self::Bench(typed),
            Command::Reproduce(mut typed) => {
                typed.data_dir.set_default(data_variable);
                Self::Reproduce(typed)
            }
            Command::Study(mut typed) => {
                typed.data_dir.set_default(data_variable);
                Self::Study(typed)
            }
            Command::Site(SiteArgs { action: Some(SiteAction::Init(typed)), .. }) => Self::SiteInit(typed),
            Command::Site(SiteArgs { action: Some(SiteAction::Check(typed)), .. }) => Self::SiteCheck(typed),
            Command::Site(SiteArgs { action: Some(SiteAction::Split(mut typed)), .. }) => {
                typed.data_dir.set_default(data_variable);
                Self::SiteSplit(Box::new(typed.resolved()?))
            }
            // Clap requires the file where there is no subcommand.
            Command::Site(SiteArgs { action: None, file, .. }) => Self::SiteServe(file.unwrap_or_default()),
            #[cfg(feature = "flower")]
            Command::Supernode(typed) => Self::Supernode(typed),
            #[cfg(not(feature = "flower"))]
            Command::Supernode { .. } => {
                return Err(CliError::Usage(
                    "this program was built without Flower's node; build it with `cargo build --release --features flower` \
                     (docs/supernode.md)"
                        .into(),
                ));
            }
            Command::Completions(typed) => Self::Print(pages::completions(typed.shell, CommandLine::command())),
            Command::Man(typed) => Self::Print(pages::manual(&typed.of, CommandLine::command())?),
        })
    }
}

#[cfg(test)]
mod tests;
