//! `fedstein site`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::load::load;
use super::options::{DataDir, MissingCells};
use crate::experiment::config::Config;
use crate::experiment::schema::{ConfigError, Overrides};

/// Take part in a run as a site of a federation, or check what this site would tell a server.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
Examples:
  fedstein site init cases.csv --index 0
                                    write a site.toml for a table
  fedstein site check site.toml     what the site would tell a server, and what not
  fedstein site site.toml --stdio   answer a server over standard input and output; `fedstein train --sites` starts this

The keys of site.toml: docs/federation.md")]
pub struct SiteArgs {
    #[command(subcommand)]
    pub action: Option<SiteAction>,

    /// The site's own file
    #[arg(value_name = "SITE.toml", required = true)]
    pub file: Option<PathBuf>,

    /// Read messages of a server on standard input, and write answers to standard output
    #[arg(long, required = true)]
    pub stdio: bool,
}

#[derive(Debug, Subcommand)]
pub enum SiteAction {
    Init(SiteInit),
    Check(SiteCheck),
    Split(SiteSplitArgs),
}

/// Look at the columns of a CSV file, and write a site's own file with comments for it.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_help = "\
Examples:
  fedstein site init cases.csv --index 0 --name north        writes site.toml
  fedstein site check site.toml                              what this site would tell a server

Every site has an index of its own, from 0. Separator, header, target, task and the kinds of the columns are found as by
`fedstein init`; the comments of the file say what was found, and what is to be decided.")]
pub struct SiteInit {
    /// The table, which stays where it is
    #[arg(value_name = "FILE.csv")]
    pub table: PathBuf,

    /// The index of the client that this site is, from 0
    #[arg(long, value_name = "K")]
    pub index: usize,

    /// The site's name, which the server and the reports of a run show [default: site-K]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// The column to predict, by name or by number from 0, -1 for the last [default: found by its name, else the last one]
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    pub target: Option<String>,

    #[command(flatten)]
    pub missing_values: MissingCells,

    /// The file to write, or `-` for standard output
    #[arg(long, value_name = "SITE.toml", default_value = "site.toml")]
    pub out: PathBuf,

    /// Replace the file of --out
    #[arg(long)]
    pub force: bool,
}

impl SiteInit {
    /// The site's name: that of `--name`, else one with its index.
    pub fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| format!("site-{}", self.index))
    }
}

/// Split the rows of an experiment into the files of sites, to rehearse a federation of them.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  fedstein site split configs/digits/newton-bnn.toml --out rehearsal
  fedstein train rehearsal/run.toml --sites rehearsal/0/site.toml,rehearsal/1/site.toml,...

The second command is printed in full. Each client's rows go to DIR/<client>/, with a site.toml.")]
pub struct SiteSplitArgs {
    /// The experiment whose [data] and [partition] say which rows each site gets [default: the built-in one]
    #[arg(value_name = "CONFIG.toml")]
    pub config: Option<PathBuf>,

    /// Directory of the sites, which must be new
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,

    /// Override a key of the config, such as partition.clients=5; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    #[command(flatten)]
    pub data_dir: DataDir,
}

/// Show what a site would tell a server about its rows, and what never leaves the machine; nothing is sent.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_help = "\
Examples:
  fedstein site check site.toml              what would be told, and what not
  fedstein site check site.toml --json       exactly what would be told, as JSON
  fedstein site check a.toml b.toml          whether these sites can train together

The keys of site.toml: docs/federation.md")]
pub struct SiteCheck {
    /// The site's own file; several files are also checked against each other
    #[arg(value_name = "SITE.toml", required = true)]
    pub files: Vec<PathBuf>,

    /// Print one JSON object per site, exactly what would be told, and nothing else
    #[arg(long)]
    pub json: bool,
}

/// Rows to split into the files of sites.
#[derive(Debug)]
pub struct SiteSplit {
    /// The experiment.
    pub config: Config,
    /// The directory of the data sets.
    pub data_dir: PathBuf,
    /// The directory of the sites.
    pub out: PathBuf,
}

impl SiteSplitArgs {
    /// The split that the arguments mean.
    ///
    /// # Errors
    /// The config or an override is invalid.
    pub(super) fn resolved(self) -> Result<SiteSplit, ConfigError> {
        let Self { config, out, set, data_dir } = self;
        let overrides = Overrides { set, ..Overrides::default() };
        let (config, _) = load(config.as_deref(), &overrides)?;
        Ok(SiteSplit { config, data_dir: data_dir.path().to_owned(), out })
    }
}
