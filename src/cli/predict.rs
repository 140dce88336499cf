//! `fedstein predict`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};

use super::options::{OwnPredictor, Written, level};
use crate::backend::KNOWN;

/// Predict the rows of a CSV file with a trained run.
#[derive(Debug, PartialEq, Args)]
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
pub struct Predict {
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

    /// Whose predictor.
    #[command(flatten)]
    pub own: OwnPredictor,

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

    /// How the cells of the file are written.
    #[command(flatten)]
    pub written: Written,

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
