//! `fedstein reproduce`.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::options::{DataDir, Pace};
use crate::backend::KNOWN;
use crate::reproduce::Scale;

/// Reproduce a figure of the papers: a picture of each panel, all numbers, and a comparison with the paper.
#[derive(Debug, PartialEq, Eq, Args)]
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
pub struct Reproduce {
    /// `list`, or a figure such as dsvgd/fig4
    #[arg(value_name = "list|PAPER/FIGURE")]
    pub item: String,

    /// Much smaller than the paper's setting, one seed: shows the shape of the curves and checks no claim
    #[arg(long, conflicts_with = "middle")]
    quick: bool,

    /// Smaller than the paper's setting, for figures that take hours
    #[arg(long)]
    middle: bool,

    /// Trials: N for the seeds 1 to N, A-B for the seeds A to B [default: the figure's]
    #[arg(long, value_name = "N|A-B", value_parser = seed_range)]
    pub seeds: Option<RangeInclusive<u64>>,

    /// Backend to use
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(KNOWN))]
    pub backend: Option<String>,

    /// Where the data sets are.
    #[command(flatten)]
    pub data_dir: DataDir,

    /// Run nothing: compare and draw the numbers of a figure's kept CSV file (plain or .gz), at the file's scale; may be
    /// repeated, for runs of several machines
    #[arg(long, value_name = "FILE.csv", conflicts_with_all = ["quick", "middle", "backend", "only", "jobs"])]
    pub from: Vec<PathBuf>,

    /// Directory of figures and kept runs [default: results, or results/quick, results/middle]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Only the run of this name, panel/series or panel/case/series, or runs with this in their name
    #[arg(long, value_name = "NAME")]
    pub only: Option<String>,

    /// How the runs are carried out.
    #[command(flatten)]
    pub pace: Pace,
}

impl Reproduce {
    /// The scale of the figure's runs.
    pub fn scale(&self) -> Scale {
        match (self.quick, self.middle) {
            (true, _) => Scale::Quick,
            (_, true) => Scale::Middle,
            _ => Scale::Full,
        }
    }
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
