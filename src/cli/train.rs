//! `fedstein train`.

use std::io::Stdout;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::load::load;
use super::options::DataDir;
use crate::backend::KNOWN;
use crate::datasets::DataConfig;
use crate::experiment::config::Config;
use crate::experiment::inventory::own_data;
use crate::experiment::progress::{Bar, JsonLines, Observer, Quiet};
use crate::experiment::run_dir::{self, RunDirError};
use crate::experiment::schema::{ConfigError, Overrides, Resolved};
use crate::site::states_are_apart;

/// The key of the number of clients.
const CLIENTS: &str = "partition.clients";

/// Run an experiment and write its results and calibration report.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fedstein train                                       the built-in digits, no download
  fedstein train configs/mnist/newton-bnn.toml --backend wgpu
  fedstein train --set model.hidden=[100,50] --set algorithm.particles=10 --out runs/wide
  fedstein train --set algorithm.kind=fedavg --out runs/fedavg
  fedstein train --resume runs/fedavg --set rounds=100
  fedstein train run.toml --sites a.toml,b.toml,c.toml the rows of three sites (docs/federation.md)

Keys and defaults: docs/configuration.md")]
pub struct TrainArgs {
    /// The experiment [default: the built-in configs/digits/newton-bnn.toml]
    #[arg(value_name = "CONFIG.toml")]
    config: Option<PathBuf>,

    /// Backend to use instead of the config's `backend`
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(KNOWN))]
    backend: Option<String>,

    /// Override a key of the config, such as algorithm.particles=50; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Train with the rows of these sites, each in a process of its own; the sites' own files, separated by commas
    #[arg(long, value_name = "SITE.toml,...", value_delimiter = ',', num_args = 1)]
    sites: Vec<PathBuf>,

    /// Directory of the results [default: runs/<name>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    #[command(flatten)]
    pub data_dir: DataDir,

    /// Seed to use instead of the config's `seed`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=i64::MAX as u64))]
    seed: Option<u64>,

    /// Print nothing but errors
    #[arg(long, conflicts_with = "json")]
    quiet: bool,

    /// Print one JSON object per round on standard output, and nothing else
    #[arg(long)]
    json: bool,

    /// Also write start, rounds, notes and end of the run to a file, one JSON object a line (docs/runs.md)
    #[arg(long, value_name = "FILE.jsonl")]
    log: Option<PathBuf>,

    /// Also write the metrics of every round as an event file of TensorBoard into a directory
    #[arg(long, value_name = "DIR")]
    tensorboard: Option<PathBuf>,

    /// Replace the results of an earlier run in the same directory, and the file of --log
    #[arg(long)]
    force: bool,

    /// Resume a run that was stopped from its last checkpoint, or continue a finished run to more rounds
    #[arg(long, value_name = "RUN_DIR", conflicts_with_all = ["config", "out", "force"])]
    resume: Option<PathBuf>,
}

/// An experiment to run.
#[derive(Debug)]
pub struct Train {
    /// The experiment's configuration.
    pub config: Config,
    /// The same as a table, for the run's `config.toml`, with warnings for the user.
    pub resolved: Resolved,
    /// The directory of the data sets.
    pub data_dir: PathBuf,
    /// The sites' own files, by which the run is a federation; empty for a run in one process.
    pub sites: Vec<PathBuf>,
    /// The directory of the results.
    pub out: PathBuf,
    /// The file of the log, if one is written.
    pub log: Option<PathBuf>,
    /// The directory of event files for TensorBoard, if they are written.
    pub tensorboard: Option<PathBuf>,
    /// Whether an existing run in that directory is replaced.
    pub force: bool,
    /// Whether an existing run in that directory is resumed.
    pub resume: bool,
    /// How progress is shown.
    pub display: Display,
}

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Display {
    /// A bar on standard error, or plain lines where standard error is not a terminal.
    Bar,
    /// One JSON object per round on standard output, and nothing else there.
    Json,
    /// No progress is shown.
    Quiet,
}

impl Display {
    /// The observer that shows progress in this form; with JSON also the lines, which know whether all were written.
    pub fn observer(self) -> (Box<dyn Observer>, Option<Arc<JsonLines<Stdout>>>) {
        match self {
            Self::Bar => (Box::new(Bar::stderr()), None),
            Self::Json => {
                let lines = Arc::new(JsonLines::stdout());
                (Box::new(lines.clone()), Some(lines))
            }
            Self::Quiet => (Box::new(Quiet), None),
        }
    }
}

impl TrainArgs {
    /// The experiment that the arguments mean.
    ///
    /// # Errors
    /// The config or an override is invalid, or the sites are not those of the run to resume.
    pub(super) fn resolved(self) -> Result<Train, ConfigError> {
        let Self { config, backend, mut set, sites, out, data_dir, seed, quiet, json, log, tensorboard, force, resume } =
            self;
        let sites: Vec<PathBuf> = sites.into_iter().map(trimmed).collect();
        if !sites.is_empty() && resume.is_none() {
            // The sites are the clients. Without a config nothing else says where the rows are.
            set.push(format!("{CLIENTS}={}", sites.len()));
            if config.is_none() {
                set.push(format!("data.kind={}", DataConfig::AT_SITES));
            }
        }
        states_are_apart(&sites)?;
        if let Some(run) = resume.as_ref().filter(|run| own_data(run).is_some()) {
            return Err(ConfigError::conflict(format!(
                "the run in `{}` has rows of its own, which are not in its directory; resume it in the program that brought \
                 them (in Python: fedstein.resume with data=)",
                run.display()
            )));
        }
        if let Some(run) = resume.as_ref().filter(|run| run.is_dir() && !run.join(run_dir::CONFIG).exists()) {
            return Err(ConfigError::conflict(RunDirError::NothingToResume(run.clone()).to_string()));
        }
        let file = resume.as_ref().map(|run| run.join(run_dir::CONFIG)).or(config);
        let overrides = Overrides { set, seed, backend };
        let (config, resolved) = match sites.is_empty() {
            true => load(file.as_deref(), &overrides)?,
            false => load_for_sites(file.as_deref(), overrides)?,
        };
        if let (Some(_), Some(clients)) = (&resume, config.partition()?.scheme.clients())
            && ![0, clients].contains(&sites.len())
        {
            return Err(ConfigError::conflict(format!(
                "--sites names {} files, and the run has {clients} sites; name each of them",
                sites.len()
            )));
        }
        let display = match (json, quiet) {
            (true, _) => Display::Json,
            (_, true) => Display::Quiet,
            _ => Display::Bar,
        };
        let (resume, continued) = (resume.is_some(), resume);
        let out = continued.or(out).unwrap_or_else(|| Path::new("runs").join(&config.name));
        let data_dir = data_dir.path().to_owned();
        Ok(Train { config, resolved, data_dir, sites, out, log, tensorboard, force, resume, display })
    }
}

/// A path of a list without the spaces around it, as after a comma.
fn trimmed(path: PathBuf) -> PathBuf {
    path.to_str().map_or(path.clone(), |text| text.trim().into())
}

/// The experiment of a federation of sites, in which `[partition]` is not used: one whose kind does not take the number of
/// clients is replaced. A config of other data may not take it either: it is loaded without, and the run says what it needs.
fn load_for_sites(file: Option<&Path>, mut overrides: Overrides) -> Result<(Config, Resolved), ConfigError> {
    load(file, &overrides).or_else(|error| {
        // A config whose own partition does not take the number is told what else is wrong with it.
        let mut of_sites = overrides.clone();
        of_sites.set.push("partition.kind=iid".into());
        let error = match load(file, &of_sites) {
            Ok(loaded) if loaded.0.rows_are_at_sites() => return Ok(loaded),
            Err(conflict @ ConfigError::Conflict { .. }) => conflict,
            _ => error,
        };
        overrides.set.retain(|set| !set.starts_with(CLIENTS));
        load(file, &overrides).ok().filter(|(config, _)| !config.rows_are_at_sites()).ok_or(error)
    })
}
