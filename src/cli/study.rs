//! `fedstein study`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::options::{DataDir, Pace};
use crate::backend::KNOWN;

/// Compare variants of an experiment over seeds and data: means with intervals, paired differences, pictures, claims.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_help = "\
Examples:
  fedstein study methods.toml                     the runs of methods.toml, into studies/methods
  fedstein study methods.toml --seeds 1           a first look, with one seed; the same runs count later
  fedstein study methods.toml --only fedavg --jobs 4

Finished runs are kept: the same command continues where it was stopped. The keys of the file: docs/study.md")]
pub struct StudyOrder {
    /// What varies, over which seeds, and what is reported
    #[arg(value_name = "FILE.toml")]
    pub file: PathBuf,

    /// Directory of tables, pictures and kept runs [default: studies/<FILE>]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Number of seeds, 1 to N, instead of the file's `seeds`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub seeds: Option<u64>,

    /// Backend to use instead of the configs' `backend`
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(KNOWN))]
    pub backend: Option<String>,

    /// Where the data sets are.
    #[command(flatten)]
    pub data_dir: DataDir,

    /// Only the run of this name, setting/variant, or runs with this in their name; the tables show all kept runs
    #[arg(long, value_name = "NAME")]
    pub only: Option<String>,

    /// How the runs are carried out.
    #[command(flatten)]
    pub pace: Pace,
}
