//! Parses the command line into an [`Invocation`]: all arguments are resolved and checked before a command runs.

mod args;
mod error;
mod load;
mod output;
mod pages;

use std::ffi::OsString;
use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

use crate::bench::Workload;
use crate::experiment::config::Config;
use crate::experiment::progress::{Bar, JsonLines, Observer, Quiet};
use crate::experiment::run_dir;
use crate::experiment::schema::{ConfigError, Overrides, Resolved};
use crate::reproduce::Scale;

use args::{
    Args, BenchArgs, Command, DataAction, DataDir, EvaluateArgs, InitArgs, Pace, PredictArgs, ReportArgs,
    ReproduceArgs, RunsArgs, SiteAction, SiteArgs, SiteCheckArgs, StudyArgs, TrainArgs, WrittenArgs,
};

use load::load;

pub use args::{Format, MoreColumn};
pub use error::CliError;
pub use load::load_built_in;
pub(crate) use output::{print_line, print_note, print_text, printable};

/// The environment variable that names the data directory.
pub const DATA_VARIABLE: &str = "FEDSTEIN_DATA";

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

/// A config to write for a table.
#[derive(Debug, PartialEq, Eq)]
pub struct Init {
    /// The CSV file.
    pub table: PathBuf,
    /// The column to predict; `None` for a guess.
    pub target: Option<String>,
    /// The file of the config.
    pub out: PathBuf,
    /// Whether an existing file is replaced.
    pub force: bool,
}

/// A site as a node of Flower's.
#[cfg(feature = "flower")]
#[derive(Debug)]
pub struct Supernode {
    /// The address of the SuperLink, `HOST:PORT`.
    pub superlink: String,
    /// The site's own file.
    pub site: PathBuf,
    /// The file of root certificates; `None` for those that are generally trusted.
    pub roots: Option<PathBuf>,
    /// Whether the connection is plain HTTP.
    pub insecure: bool,
    /// The file of the node's key; `None` for a new one.
    pub key: Option<PathBuf>,
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
    /// The observer that shows progress in this form.
    pub fn observer(self) -> Box<dyn Observer> {
        match self {
            Self::Bar => Box::new(Bar::stderr()),
            Self::Json => Box::new(JsonLines::stdout()),
            Self::Quiet => Box::new(Quiet),
        }
    }
}

/// A report to write.
#[derive(Debug, PartialEq, Eq)]
pub struct Report {
    /// The input of the report.
    pub source: ReportSource,
    /// The number of bins of confidence; `None` for the run's number, else 15.
    pub bins: Option<usize>,
    /// The directory of the report.
    pub out: PathBuf,
    /// Whether an existing report in that directory is replaced.
    pub replace: bool,
    /// Runs that the report compares.
    pub compare: Vec<PathBuf>,
    /// Whether these runs may have other test rows.
    pub other_rows: bool,
    /// The report's heading.
    pub title: Option<String>,
}

/// The input of a report.
#[derive(Debug, PartialEq, Eq)]
pub enum ReportSource {
    /// The directory of a run.
    Run(PathBuf),
    /// A CSV file of labels and probabilities.
    Predictions(PathBuf),
}

/// Predictions to make.
#[derive(Debug, PartialEq)]
pub struct Predict {
    /// The directory of the run.
    pub run: PathBuf,
    /// The file of the rows.
    pub input: PathBuf,
    /// The file of the predictions; `None` for standard output.
    pub out: Option<PathBuf>,
    /// Whether an existing file is replaced.
    pub force: bool,
    /// The client whose own predictor predicts; `None` for the published particles.
    pub client: Option<String>,
    /// The directory of the data sets, for that client.
    pub data_dir: PathBuf,
    /// The level of the prediction sets; `None` for the run's.
    pub level: Option<f64>,
    /// Whether the probabilities are given without the run's temperature or other map.
    pub raw: bool,
    /// Further columns.
    pub columns: Vec<MoreColumn>,
    /// The form of the predictions.
    pub format: Format,
    /// How the cells of the file are written.
    pub written: Written,
    /// The backend; `None` for the run's.
    pub backend: Option<String>,
}

/// How the cells of a file of new rows are written; `None` where as in the run's table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The separator of cells.
    pub delimiter: Option<String>,
    /// The decimal mark.
    pub decimal: Option<String>,
    /// The format of dates.
    pub date_format: Option<String>,
}

/// A run to score on other rows.
#[derive(Debug, PartialEq)]
pub struct Evaluate {
    /// The directory of the run.
    pub run: PathBuf,
    /// The file of the rows.
    pub input: PathBuf,
    /// The column of the targets; `None` for the run's.
    pub target: Option<String>,
    /// The column of groups.
    pub by: Option<String>,
    /// The client whose own predictor predicts; `None` for the published particles.
    pub client: Option<String>,
    /// The directory of the data sets, for that client.
    pub data_dir: PathBuf,
    /// The directory of predictions and report; `None` for one in the run's.
    pub out: Option<PathBuf>,
    /// Whether an earlier evaluation there is replaced.
    pub force: bool,
    /// The report's heading.
    pub title: Option<String>,
    /// The level of the prediction sets; `None` for the run's.
    pub level: Option<f64>,
    /// How the cells of the file are written.
    pub written: Written,
    /// The backend; `None` for the run's.
    pub backend: Option<String>,
}

/// Runs to list or to compare.
#[derive(Debug, PartialEq, Eq)]
pub struct Runs {
    /// The directory of the runs to list.
    pub dir: PathBuf,
    /// The runs whose configs are compared; if given, nothing is listed.
    pub diff: Vec<PathBuf>,
    /// The form of the output.
    pub listing: Listing,
}

/// The form of a table on standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// Aligned columns.
    Text,
    /// JSON.
    Json,
    /// CSV.
    Csv,
}

/// A figure to reproduce.
#[derive(Debug, PartialEq, Eq)]
pub struct Reproduce {
    /// The figure's name, or `list`.
    pub item: String,
    /// The scale of the figure's runs.
    pub scale: Scale,
    /// The seeds; `None` for the figure's.
    pub seeds: Option<RangeInclusive<u64>>,
    /// The backend; `None` for the figure's.
    pub backend: Option<String>,
    /// The directory of the data sets.
    pub data_dir: PathBuf,
    /// The directory of figures and kept runs; `None` for the scale's default.
    pub out: Option<PathBuf>,
    /// A substring of the names to which the runs are restricted.
    pub only: Option<String>,
    /// CSV files whose numbers are compared and drawn; nothing is run. Empty to run the figure.
    pub from: Vec<PathBuf>,
    /// The number of runs at once.
    pub jobs: usize,
    /// Whether progress is hidden.
    pub quiet: bool,
}

/// A study to carry out.
#[derive(Debug, PartialEq, Eq)]
pub struct StudyOrder {
    /// The study's file.
    pub file: PathBuf,
    /// The directory of its results; `None` for one with the file's name.
    pub out: Option<PathBuf>,
    /// The number of seeds; `None` for the file's.
    pub seeds: Option<u64>,
    /// The backend; `None` for that of the configs.
    pub backend: Option<String>,
    /// The directory of the data sets.
    pub data_dir: PathBuf,
    /// A substring of the names to which the runs are restricted.
    pub only: Option<String>,
    /// The number of runs at once.
    pub jobs: usize,
    /// Whether progress is hidden.
    pub quiet: bool,
}

/// Sites to check.
#[derive(Debug, PartialEq, Eq)]
pub struct SiteCheck {
    /// The sites' own files.
    pub files: Vec<PathBuf>,
    /// Whether the descriptions are printed as JSON.
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

/// Workloads to time.
#[derive(Debug, PartialEq)]
pub struct Bench {
    /// The backend.
    pub backend: String,
    /// The workloads, in order.
    pub only: Vec<Workload>,
    /// The number of CPU threads; `None` for all.
    pub threads: Option<usize>,
    /// The seconds for each line.
    pub seconds: f64,
    /// The file to which records are appended.
    pub json: Option<PathBuf>,
    /// The file of bands to write or to widen.
    pub record: Option<PathBuf>,
    /// The file of bands to compare with.
    pub check: Option<PathBuf>,
    /// The file of the growth picture; if given, growth is measured instead of workloads.
    pub growth: Option<PathBuf>,
}

/// A request about data sets.
#[derive(Debug, PartialEq, Eq)]
pub struct Data {
    /// The request.
    pub action: DataRequest,
    /// The directory of the data sets.
    pub data_dir: PathBuf,
}

/// What to do, with which data set.
#[derive(Debug, PartialEq, Eq)]
pub enum DataRequest {
    /// List all data sets.
    List,
    /// Describe the named data set.
    Info(String),
    /// Download the named data set.
    Fetch(String),
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
    let args = match Args::try_parse_from(args) {
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
        let _ = writeln!(io::stderr(), "{what}{}", printable(&error.to_string()));
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
        let args = Args::try_parse_from(args).map_err(|error| CliError::Usage(error.to_string()))?;
        Self::from_args(args, data_variable)
    }

    fn from_args(args: Args, data_variable: Option<OsString>) -> Result<Self, CliError> {
        let data_dir = |typed: DataDir| data_dir(typed.path, data_variable);
        Ok(match args.command {
            Command::Init(typed) => Self::Init(init(typed)),
            Command::Train(mut typed) => {
                let data_dir = data_dir(DataDir { path: typed.data_dir.path.take() });
                Self::Train(Box::new(train(typed, data_dir)?))
            }
            Command::Report(typed) => Self::Report(report(typed)),
            Command::Predict(args) => {
                let PredictArgs { run, input, out, force, client, level, raw, columns, format, backend, .. } = args;
                let written = written(args.written);
                let data_dir = data_dir(DataDir { path: args.data_dir });
                Self::Predict(Predict {
                    run,
                    input,
                    out,
                    force,
                    client,
                    data_dir,
                    level,
                    raw,
                    columns,
                    format,
                    written,
                    backend,
                })
            }
            Command::Evaluate(args) => {
                let EvaluateArgs { run, input, target, by, client, out, force, title, level, backend, .. } = args;
                let written = written(args.written);
                let data_dir = data_dir(DataDir { path: args.data_dir });
                Self::Evaluate(Evaluate {
                    run,
                    input,
                    target,
                    by,
                    client,
                    data_dir,
                    out,
                    force,
                    title,
                    level,
                    written,
                    backend,
                })
            }
            Command::Runs(RunsArgs { dir, diff, json, csv }) => {
                let listing = match (json, csv) {
                    (true, _) => Listing::Json,
                    (_, true) => Listing::Csv,
                    _ => Listing::Text,
                };
                Self::Runs(Runs { dir, diff, listing })
            }
            Command::Data { action } => {
                let (action, typed) = match action {
                    DataAction::List { data_dir } => (DataRequest::List, data_dir),
                    DataAction::Info { name, data_dir } => (DataRequest::Info(name), data_dir),
                    DataAction::Fetch { name, data_dir } => (DataRequest::Fetch(name), data_dir),
                };
                Self::Data(Data { action, data_dir: data_dir(typed) })
            }
            Command::Backends => Self::Backends,
            Command::Bench(typed) => Self::Bench(bench(typed)),
            Command::Reproduce(mut typed) => {
                let data_dir = data_dir(DataDir { path: typed.data_dir.path.take() });
                Self::Reproduce(reproduce(typed, data_dir))
            }
            Command::Study(mut typed) => {
                let data_dir = data_dir(DataDir { path: typed.data_dir.path.take() });
                Self::Study(study(typed, data_dir))
            }
            Command::Site(SiteArgs { action: Some(SiteAction::Check(SiteCheckArgs { files, json })), .. }) => {
                Self::SiteCheck(SiteCheck { files, json })
            }
            Command::Site(SiteArgs { action: Some(SiteAction::Split(mut typed)), .. }) => {
                let data_dir = data_dir(DataDir { path: typed.data_dir.path.take() });
                let overrides = Overrides { set: typed.set, ..Overrides::default() };
                let (config, _) = load(typed.config.as_deref(), &overrides)?;
                Self::SiteSplit(Box::new(SiteSplit { config, data_dir, out: typed.out }))
            }
            // Clap requires the file where there is no subcommand.
            Command::Site(SiteArgs { action: None, file, .. }) => Self::SiteServe(file.unwrap_or_default()),
            #[cfg(feature = "flower")]
            Command::Supernode(args::SupernodeArgs { superlink, site, roots, insecure, key }) => {
                Self::Supernode(Supernode { superlink, site, roots, insecure, key })
            }
            Command::Completions(typed) => Self::Print(pages::completions(typed.shell)),
            Command::Man(typed) => Self::Print(pages::manual(&typed.of)?),
        })
    }
}

fn written(WrittenArgs { delimiter, decimal, date_format }: WrittenArgs) -> Written {
    Written { delimiter, decimal, date_format }
}

fn init(InitArgs { table, target, out, force }: InitArgs) -> Init {
    // `table.csv.gz` has the name `table` too.
    let name = table.file_name().unwrap_or_default().to_string_lossy();
    let name = name.split('.').find(|part| !part.is_empty()).unwrap_or("own-data");
    let out = out.unwrap_or_else(|| PathBuf::from(format!("{name}.toml")));
    Init { table, target, out, force }
}

fn train(args: TrainArgs, data_dir: PathBuf) -> Result<Train, ConfigError> {
    let mut set = args.set;
    if !args.sites.is_empty() && args.resume.is_none() {
        // The sites are the clients. Without a config nothing else says where the rows are.
        set.push(format!("partition.clients={}", args.sites.len()));
        if args.config.is_none() {
            set.push("data.kind=sites".into());
        }
    }
    let overrides = Overrides { set, seed: args.seed, backend: args.backend };
    let of_run = args.resume.as_ref().map(|run| run.join(run_dir::CONFIG));
    let (config, resolved) = load(of_run.as_deref().or(args.config.as_deref()), &overrides)?;
    if let (Some(_), Some(clients)) = (&args.resume, config.partition()?.scheme.clients())
        && ![0, clients].contains(&args.sites.len())
    {
        return Err(ConfigError::Conflict(format!(
            "--sites names {} files, and the run has {clients} sites; name each of them",
            args.sites.len()
        )));
    }
    let display = match (args.json, args.quiet) {
        (true, _) => Display::Json,
        (_, true) => Display::Quiet,
        _ => Display::Bar,
    };
    let (resume, log, tensorboard) = (args.resume.is_some(), args.log, args.tensorboard);
    let out = args.resume.or(args.out).unwrap_or_else(|| Path::new("runs").join(&config.name));
    Ok(Train {
        config,
        resolved,
        data_dir,
        sites: args.sites,
        out,
        log,
        tensorboard,
        force: args.force,
        resume,
        display,
    })
}

fn report(args: ReportArgs) -> Report {
    let ReportArgs { run, predictions, bins, out, force, compare, other_rows, title } = args;
    // A run's own report may always be replaced: it is generated from the run alone.
    let (source, default_out, own) = match (run, predictions) {
        (Some(run), _) => (ReportSource::Run(run.clone()), run.join("report"), true),
        (None, predictions) => {
            // Clap's group of arguments requires one of the two.
            let file = predictions.unwrap_or_default();
            let mut name = file.file_stem().unwrap_or_default().to_os_string();
            name.push("-report");
            (ReportSource::Predictions(file), PathBuf::from(name), false)
        }
    };
    Report {
        source,
        bins: bins.map(usize::from),
        replace: force || (own && out.is_none()),
        out: out.unwrap_or(default_out),
        compare,
        other_rows,
        title,
    }
}

fn reproduce(args: ReproduceArgs, data_dir: PathBuf) -> Reproduce {
    let ReproduceArgs { item, quick, middle, seeds, backend, out, only, from, pace: Pace { jobs, quiet }, .. } = args;
    let scale = match (quick, middle) {
        (true, _) => Scale::Quick,
        (_, true) => Scale::Middle,
        _ => Scale::Full,
    };
    Reproduce { item, scale, seeds, backend, data_dir, out, only, from, jobs: usize::from(jobs), quiet }
}

fn study(args: StudyArgs, data_dir: PathBuf) -> StudyOrder {
    let StudyArgs { file, out, seeds, backend, only, pace: Pace { jobs, quiet }, .. } = args;
    StudyOrder { file, out, seeds, backend, data_dir, only, jobs: usize::from(jobs), quiet }
}

fn bench(BenchArgs { backend, only, threads, seconds, json, record, check, growth }: BenchArgs) -> Bench {
    let mut only = if only.is_empty() { Workload::ALL.to_vec() } else { only };
    only.sort_unstable();
    only.dedup();
    Bench { backend, only, threads: threads.map(usize::from), seconds, json, record, check, growth }
}

/// The data directory: `--data-dir`, else [`DATA_VARIABLE`], else `data`.
fn data_dir(typed: Option<PathBuf>, variable: Option<OsString>) -> PathBuf {
    let variable = variable.filter(|value| !value.is_empty()).map(PathBuf::from);
    typed.or(variable).unwrap_or_else(|| PathBuf::from("data"))
}

#[cfg(test)]
mod tests;
