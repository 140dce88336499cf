//! The arguments of the command line, as clap parses them. Doc comments here are the text of `--help`.
#![allow(rustdoc::invalid_html_tags)] // The doc comments are the texts of `--help`, where `<name>` is not HTML.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Args as ClapArgs, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::backend::KNOWN;
use crate::bench::Workload;

/// Federated Bayesian learning with Stein particles: train over data that stays where it is, and see how far the
/// result's confidence can be trusted.
#[derive(Debug, Parser)]
#[command(name = "fedstein", version, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Init(InitArgs),
    Train(TrainArgs),
    Report(ReportArgs),
    Predict(PredictArgs),
    Evaluate(EvaluateArgs),
    Runs(RunsArgs),
    /// List, describe or download data sets.
    Data {
        #[command(subcommand)]
        action: DataAction,
    },
    Study(StudyArgs),
    Reproduce(ReproduceArgs),
    /// Show which backends are compiled in, which of them work on this machine, and the hardware.
    Backends,
    Bench(BenchArgs),
    Site(SiteArgs),
    #[cfg(feature = "flower")]
    Supernode(SupernodeArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

/// Look at the columns of a CSV file, and write a config with comments that trains on it.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  fedstein init measurements.csv                        writes measurements.toml
  fedstein init measurements.csv --target species --out species.toml
  fedstein train measurements.toml

Separator, header, target, task and the column of the clients are found from the cells and the names of the columns; the
comments of the file say what was found and what else it could be.")]
pub struct InitArgs {
    /// The table
    #[arg(value_name = "FILE.csv")]
    pub table: PathBuf,

    /// The column to predict, by name or by number from 0, -1 for the last [default: found by its name, else the last one]
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    pub target: Option<String>,

    /// The config to write, or `-` for standard output [default: <FILE>.toml in the working directory]
    #[arg(long, value_name = "FILE.toml")]
    pub out: Option<PathBuf>,

    /// Replace the file of --out
    #[arg(long)]
    pub force: bool,
}

/// Print the completions of a shell, for its startup files.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  fedstein completions bash > ~/.local/share/bash-completion/completions/fedstein
  fedstein completions zsh > ~/.zfunc/_fedstein        a directory of $fpath
  fedstein completions fish > ~/.config/fish/completions/fedstein.fish")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

/// Print a page of the manual, in the format of man.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  fedstein man | man -l -
  fedstein man train > ~/.local/share/man/man1/fedstein-train.1")]
pub struct ManArgs {
    /// The command that the page is about, such as `train` or `site check` [default: fedstein as a whole]
    #[arg(value_name = "COMMAND")]
    pub of: Vec<String>,
}

/// Run an experiment and write its results and calibration report.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  fedstein train                                       the built-in digits, no download
  fedstein train configs/mnist/newton-bnn.toml --backend wgpu
  fedstein train --set model.hidden=[100,50] --set algorithm.particles=10 --out runs/wide
  fedstein train --set algorithm.kind=fedavg --out runs/fedavg
  fedstein train --resume runs/fedavg --set rounds=20
  fedstein train run.toml --sites a.toml,b.toml,c.toml the rows of three sites (docs/federation.md)

Keys and defaults: docs/configuration.md")]
pub struct TrainArgs {
    /// The experiment [default: the built-in configs/digits/newton-bnn.toml]
    #[arg(value_name = "CONFIG.toml")]
    pub config: Option<PathBuf>,

    /// Backend to use instead of the config's `backend`
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(KNOWN))]
    pub backend: Option<String>,

    /// Override a key of the config, such as algorithm.particles=50; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    /// Train with the rows of these sites, each in a process of its own; the sites' own files, separated by commas
    #[arg(long, value_name = "SITE.toml,...", value_delimiter = ',', num_args = 1)]
    pub sites: Vec<PathBuf>,

    /// Directory of the results [default: runs/<name>]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    #[command(flatten)]
    pub data_dir: DataDir,

    /// Seed to use instead of the config's `seed`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=i64::MAX as u64))]
    pub seed: Option<u64>,

    /// Show no progress
    #[arg(long, conflicts_with = "json")]
    pub quiet: bool,

    /// Print one JSON object per round on standard output, and nothing else
    #[arg(long)]
    pub json: bool,

    /// Also write start, rounds, notes and end of the run to a file, one JSON object a line (docs/runs.md)
    #[arg(long, value_name = "FILE.jsonl")]
    pub log: Option<PathBuf>,

    /// Also write the metrics of every round as an event file of TensorBoard into a directory
    #[arg(long, value_name = "DIR")]
    pub tensorboard: Option<PathBuf>,

    /// Replace the results of an earlier run in the same directory, and the file of --log
    #[arg(long)]
    pub force: bool,

    /// Resume a run that was stopped from its last checkpoint, or continue a finished run to more rounds
    #[arg(long, value_name = "RUN_DIR", conflicts_with_all = ["config", "out", "force"])]
    pub resume: Option<PathBuf>,
}

/// Write the calibration report of a run, or of any model's predictions.
#[derive(Debug, ClapArgs)]
#[command(group(ArgGroup::new("source").required(true).args(["run", "predictions"])))]
#[command(after_help = "\
The file of --predictions has the header `label,p_0,...,p_{C-1}` (or `label,p_1` for two classes) and one row per sample.")]
pub struct ReportArgs {
    /// The directory of a run
    #[arg(value_name = "RUN_DIR")]
    pub run: Option<PathBuf>,

    /// A file of labels and predicted probabilities, instead of a run
    #[arg(long, value_name = "FILE.csv")]
    pub predictions: Option<PathBuf>,

    /// Number of bins of confidence [default: the run's `evaluation.bins`, else 15]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub bins: Option<u16>,

    /// Directory of the report [default: RUN_DIR/report, or <FILE>-report in the working directory]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Replace a report in the same directory (RUN_DIR/report is always replaced)
    #[arg(long)]
    pub force: bool,

    /// Compare with another run; may be repeated
    #[arg(long, value_name = "RUN_DIR")]
    pub compare: Vec<PathBuf>,

    /// Compare with runs on other test rows too
    #[arg(long)]
    pub other_rows: bool,

    /// The report's heading
    #[arg(long)]
    pub title: Option<String>,
}

/// List the runs below a directory with their state and metrics, or show how runs differ.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  fedstein runs                              every run in runs/ and below
  fedstein runs results --csv > runs.csv
  fedstein runs --diff runs/a runs/b         the keys in which their configs differ

States: finished; stopped (`fedstein train --resume` continues it); running (a process works on it); broken off (stopped
without a checkpoint).")]
pub struct RunsArgs {
    /// The directory
    #[arg(value_name = "DIR", default_value = "runs", conflicts_with = "diff")]
    pub dir: PathBuf,

    /// Show the keys in which the configs of these runs differ
    #[arg(long, value_name = "RUN_DIR", num_args = 2..)]
    pub diff: Vec<PathBuf>,

    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,

    /// Print CSV
    #[arg(long)]
    pub csv: bool,
}

/// How the cells of a file of new rows are written, where not as in the run's table.
#[derive(Debug, Default, ClapArgs)]
pub struct WrittenArgs {
    /// The separator of the cells of --input, such as `;` or `tab` [default: the run's `data.delimiter`]
    #[arg(long, value_name = "CHAR")]
    pub delimiter: Option<String>,

    /// The decimal mark of the numbers of --input, `.` or `,` [default: the run's `data.decimal`]
    #[arg(long, value_name = "MARK")]
    pub decimal: Option<String>,

    /// How the dates of --input are written, such as DD.MM.YYYY [default: the run's `data.date_format`]
    #[arg(long, value_name = "FORMAT")]
    pub date_format: Option<String>,
}

/// Predict the rows of a CSV file with a trained run.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Columns of --columns, after the others and in the order given:
  entropy             of the given probabilities, in nats
  mutual_information  what the particles disagree on, in nats (epistemic uncertainty); of a classification, at T = 1
  aleatoric_sd        of a regression: the part of the standard deviation that is noise in the data
  epistemic_sd        and the part that is disagreement of the particles
  outside             the features that lie far outside those of the training rows, separated by `|`

Examples:
  fedstein predict runs/a --input new.csv
  fedstein predict runs/a --input new.csv --columns entropy,mutual_information,outside
  fedstein predict runs/a --input new.csv --format jsonl --out new.jsonl
  fedstein predict runs/a --input new.csv --client north          what the predictor of client `north` says")]
pub struct PredictArgs {
    /// The directory of a run
    #[arg(value_name = "RUN_DIR")]
    pub run: PathBuf,

    /// Rows with the features of the training data
    #[arg(long, value_name = "FILE.csv")]
    pub input: PathBuf,

    /// File of the predictions; a pipe or a device is written to as it is [default: `-`, standard output]
    #[arg(long, value_name = "FILE.csv")]
    pub out: Option<PathBuf>,

    /// Replace the file of --out
    #[arg(long)]
    pub force: bool,

    /// Predict with the own predictor of this client, by its name as in clients.csv (its number where clients have none); of
    /// a personalised method
    #[arg(long, value_name = "NAME")]
    pub client: Option<String>,

    /// With --client: directory of the data sets, if the run was trained on one [default: $FEDSTEIN_DATA, else data]
    #[arg(long, value_name = "DIR", requires = "client")]
    pub data_dir: Option<PathBuf>,

    /// Level of the prediction sets: the share of rows whose set is to hold the truth [default: the run's `calibration.level`]
    #[arg(long, value_name = "L", value_parser = level)]
    pub level: Option<f64>,

    /// Give the probabilities of a classification without the run's temperature or other map
    #[arg(long)]
    pub raw: bool,

    /// Further columns, separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 1)]
    pub columns: Vec<MoreColumn>,

    /// Form of the predictions: a table, or a JSON object a line, with the probabilities by the names of the classes
    #[arg(long, value_name = "FORMAT", default_value = "csv")]
    pub format: Format,

    #[command(flatten)]
    pub written: WrittenArgs,

    /// Backend to use instead of the run's
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(KNOWN))]
    pub backend: Option<String>,
}

/// A further column of predictions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum MoreColumn {
    Entropy,
    MutualInformation,
    AleatoricSd,
    EpistemicSd,
    Outside,
}

impl MoreColumn {
    /// Its name.
    pub fn word(self) -> &'static str {
        match self {
            Self::Entropy => "entropy",
            Self::MutualInformation => "mutual_information",
            Self::AleatoricSd => "aleatoric_sd",
            Self::EpistemicSd => "epistemic_sd",
            Self::Outside => "outside",
        }
    }

    /// Whether it is of a classification; `None` where it is of both tasks.
    pub fn is_of_classes(self) -> Option<bool> {
        match self {
            Self::Entropy | Self::MutualInformation => Some(true),
            Self::AleatoricSd | Self::EpistemicSd => Some(false),
            Self::Outside => None,
        }
    }
}

/// The form of predictions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Csv,
    Jsonl,
}

/// Score a trained run on labelled rows of a CSV file, such as those of another place or year, with a full report.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  fedstein evaluate runs/a --input other.csv                 the report is in runs/a/evaluate/other
  fedstein evaluate runs/a --input other.csv --by hospital   each hospital by itself too, the worst first
  fedstein evaluate runs/a --input pixels.csv --target label --out elsewhere

Columns are found by their names, as `fedstein predict` finds them. See docs/evaluate.md")]
pub struct EvaluateArgs {
    /// The directory of a run
    #[arg(value_name = "RUN_DIR")]
    pub run: PathBuf,

    /// Rows with the features of the training data, and their targets
    #[arg(long, value_name = "FILE.csv")]
    pub input: PathBuf,

    /// The column of the targets, by name or by number from 0, -1 for the last [default: the run's `data.target`]
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    pub target: Option<String>,

    /// A column of groups, such as hospital, year or sex; each has numbers of its own
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    pub by: Option<String>,

    /// Score the own predictor of this client, by its name as in clients.csv (its number where clients have none); of
    /// a personalised method
    #[arg(long, value_name = "NAME")]
    pub client: Option<String>,

    /// With --client: directory of the data sets, if the run was trained on one [default: $FEDSTEIN_DATA, else data]
    #[arg(long, value_name = "DIR", requires = "client")]
    pub data_dir: Option<PathBuf>,

    /// Directory of predictions and report [default: RUN_DIR/evaluate/<FILE>, with --client <FILE>-client-<NAME>]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Replace an earlier evaluation in the same directory
    #[arg(long)]
    pub force: bool,

    /// The report's heading
    #[arg(long)]
    pub title: Option<String>,

    /// Level of the prediction sets whose coverage is counted [default: the run's `calibration.level`]
    #[arg(long, value_name = "L", value_parser = level)]
    pub level: Option<f64>,

    #[command(flatten)]
    pub written: WrittenArgs,

    /// Backend to use instead of the run's
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(KNOWN))]
    pub backend: Option<String>,
}

fn level(word: &str) -> Result<f64, String> {
    match word.parse::<f64>() {
        Ok(level) if level > 0.0 && level < 1.0 => Ok(level),
        _ => Err("must be a number between 0 and 1, such as 0.9".into()),
    }
}

/// Compare variants of an experiment over seeds and data: means with intervals, paired differences, pictures, claims.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  fedstein study methods.toml                     the runs of methods.toml, into studies/methods
  fedstein study methods.toml --seeds 1           a first look, with one seed; the same runs count later
  fedstein study methods.toml --only fedavg --jobs 4

Finished runs are kept: the same command continues where it was stopped. The keys of the file: docs/study.md")]
pub struct StudyArgs {
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

    #[command(flatten)]
    pub data_dir: DataDir,

    /// Only runs with this in their name, such as a variant's; the tables show all kept runs
    #[arg(long, value_name = "SUBSTRING")]
    pub only: Option<String>,

    #[command(flatten)]
    pub pace: Pace,
}

// Not a doc comment: it would be the text of `--help` of the commands that have these.
// How the runs of a study or a figure are carried out.
#[derive(Debug, Clone, Copy, ClapArgs)]
pub struct Pace {
    /// Number of runs at once; more need more memory and, for small models, less time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: u16,

    /// Show no progress
    #[arg(long)]
    pub quiet: bool,
}

/// Reproduce a figure of the papers: a picture of each panel, all numbers, and a comparison with the paper.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  fedstein reproduce list                                  every figure, its data and its number of runs
  fedstein reproduce dsvgd/fig4 --quick                    the shape of its curves, in a minute or two
  fedstein reproduce dsvgd/fig4 --only twonorm --seeds 3   a part of it at the paper's size
  fedstein reproduce dsvgd/fig4 --from results/dsvgd/fig4/fig4.csv --out again
                                                           its table and pictures from kept numbers
  fedstein reproduce dsvgd/fig4 --seeds 4-6                 three of its seeds, on another machine
  fedstein reproduce dsvgd/fig4 --from here.csv --from there.csv
                                                           the numbers of both

Finished runs are kept: the same command continues where it was stopped. See docs/reproducing.md")]
pub struct ReproduceArgs {
    /// `list`, or a figure such as dsvgd/fig4
    #[arg(value_name = "list|PAPER/FIGURE")]
    pub item: String,

    /// Much smaller than the paper's setting, one seed: shows the shape of the curves and checks no claim
    #[arg(long, conflicts_with = "middle")]
    pub quick: bool,

    /// Smaller than the paper's setting, for figures that take hours
    #[arg(long)]
    pub middle: bool,

    /// Trials: N for the seeds 1 to N, A-B for the seeds A to B [default: the figure's]
    #[arg(long, value_name = "N|A-B", value_parser = seed_range)]
    pub seeds: Option<RangeInclusive<u64>>,

    /// Backend to use
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(KNOWN))]
    pub backend: Option<String>,

    #[command(flatten)]
    pub data_dir: DataDir,

    /// Run nothing: compare and draw the numbers of a figure's kept CSV file (plain or .gz), at the file's scale; may be
    /// repeated, for runs of several machines
    #[arg(long, value_name = "FILE.csv", conflicts_with_all = ["quick", "middle", "backend", "only", "jobs"])]
    pub from: Vec<PathBuf>,

    /// Directory of figures and kept runs [default: results, or results/quick, results/middle]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Only runs with this in their name, panel/series or panel/case/series
    #[arg(long, value_name = "SUBSTRING")]
    pub only: Option<String>,

    #[command(flatten)]
    pub pace: Pace,
}

fn seed_range(word: &str) -> Result<RangeInclusive<u64>, String> {
    let seed = |word: &str| word.parse::<u64>().ok().filter(|seed| (1..=1_000_000).contains(seed));
    let range = match word.split_once('-') {
        None => seed(word).map(|last| 1..=last),
        Some((first, last)) => seed(first).zip(seed(last)).map(|(first, last)| first..=last),
    };
    let wrong = "must be a number of trials from 1 to 1000000, such as 3, or a first and a last seed, such as 4-6";
    range.filter(|range| !range.is_empty()).ok_or_else(|| wrong.into())
}

/// Time eight workloads on this machine, and its fastest matrix product and copy.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Workloads:
  W1  one SVGD step of the network 784-100-10      W5  one FedWBA round and its barycenter
  W2  one DSVGD round on it                        W6  predictions on 10,000 images
  W3  200 SVGD steps of a logistic regression      W7  one SVGD step of the LeNet
  W4  client selection among 120 clients           W8  one visit of newton-dsvgd

Examples:
  fedstein bench                                   all of them, about two minutes
  fedstein bench --only W1,W3 --seconds 5
  fedstein bench --backend wgpu --json times.jsonl
  fedstein bench --growth                          time against N, d, K and B, with growth.svg
  fedstein bench --record bands.json               before a change: what the times are here
  fedstein bench --check bands.json                after it: which workloads are slower or faster

Other work on the machine disturbs the times. See docs/performance.md")]
pub struct BenchArgs {
    /// Backend to use
    #[arg(long, value_name = "NAME", default_value = "flex", value_parser = PossibleValuesParser::new(KNOWN))]
    pub backend: String,

    /// Only these workloads, such as W1,W3
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub only: Vec<Workload>,

    /// Number of CPU threads [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,

    /// Seconds for each line of the table; every unit is timed at least three times
    #[arg(long, value_name = "S", default_value_t = 2.0, value_parser = seconds)]
    pub seconds: f64,

    /// Append one JSON object per line of the table to a file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Record each line's ratio to the machine's matrix product in a file; bands that it has grow
    #[arg(long, value_name = "BANDS.json", conflicts_with_all = ["check", "growth"])]
    pub record: Option<PathBuf>,

    /// Compare the ratios with such a file, and fail if one has left its band
    #[arg(long, value_name = "BANDS.json", conflicts_with = "growth")]
    pub check: Option<PathBuf>,

    /// Show and draw how time grows with sizes instead
    #[arg(long, value_name = "FILE.svg", num_args = 0..=1, default_missing_value = "growth.svg", conflicts_with_all = ["only", "json"])]
    pub growth: Option<PathBuf>,
}

fn seconds(word: &str) -> Result<f64, String> {
    match word.parse::<f64>() {
        Ok(seconds) if (0.01..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("must be a number of seconds from 0.01 to 3600".into()),
    }
}

#[derive(Debug, Subcommand)]
pub enum DataAction {
    /// List the data sets and show which are on this machine.
    List {
        #[command(flatten)]
        data_dir: DataDir,
    },
    /// Describe a data set: size, source, licence, files.
    Info {
        name: String,
        #[command(flatten)]
        data_dir: DataDir,
    },
    /// Download a data set and verify its checksums.
    Fetch {
        name: String,
        #[command(flatten)]
        data_dir: DataDir,
    },
}

/// Take part in a run as a site of a federation, or check what this site would tell a server.
#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
Examples:
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
    Check(SiteCheckArgs),
    Split(SiteSplitArgs),
}

/// Split the rows of an experiment into the files of sites, to rehearse a federation of them.
#[derive(Debug, ClapArgs)]
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
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  fedstein site check site.toml              what would be told, and what not
  fedstein site check site.toml --json       exactly what would be told, as JSON
  fedstein site check a.toml b.toml          whether these sites can train together

The keys of site.toml: docs/federation.md")]
pub struct SiteCheckArgs {
    /// The site's own file; several files are also checked against each other
    #[arg(value_name = "SITE.toml", required = true)]
    pub files: Vec<PathBuf>,

    /// Print one JSON object per site, exactly what would be told, and nothing else
    #[arg(long)]
    pub json: bool,
}

/// Take part in runs of a Flower SuperLink as a site, in the place of a SuperNode of Flower's.
#[cfg(feature = "flower")]
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  fedstein supernode --superlink lab.example:9092 --root-certificates ca.crt --site site.toml
  fedstein supernode --superlink 127.0.0.1:9092 --insecure --site site.toml

Nothing that a server sends is executed: the node answers fedstein's messages, and nothing else. docs/supernode.md")]
pub struct SupernodeArgs {
    /// The address of the SuperLink
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    pub superlink: String,

    /// The site's own file
    #[arg(long, value_name = "SITE.toml")]
    pub site: PathBuf,

    /// Root certificates in PEM form, to check the SuperLink with [default: those that are generally trusted]
    #[arg(long = "root-certificates", value_name = "FILE")]
    pub roots: Option<PathBuf>,

    /// Connect without TLS: whoever is on the way can read and change everything
    #[arg(long, conflicts_with_all = ["roots", "key"])]
    pub insecure: bool,

    /// The node's private key, of OpenSSH and without a passphrase, whose public key the SuperLink knows [default: a new one]
    #[arg(long = "auth-supernode-private-key", value_name = "FILE")]
    pub key: Option<PathBuf>,
}

#[cfg(feature = "flower")]
fn address(word: &str) -> Result<String, String> {
    match word.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && !host.contains('/') && port.parse::<u16>().is_ok() => {
            Ok(word.to_owned())
        }
        _ => Err("must be a host and a port, such as 127.0.0.1:9092".into()),
    }
}

#[derive(Debug, ClapArgs)]
pub struct DataDir {
    /// Directory of the data sets [default: $FEDSTEIN_DATA, else data]
    #[arg(long = "data-dir", value_name = "DIR")]
    pub path: Option<PathBuf>,
}
