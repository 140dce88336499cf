//! `fedstein bench`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::backend::KNOWN;
use crate::bench::Workload;

/// Time eight workloads on this machine, and its fastest matrix product and copy.
#[derive(Debug, PartialEq, Args)]
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
pub struct Bench {
    /// Backend to use
    #[arg(long, value_name = "NAME", default_value = "flex", value_parser = PossibleValuesParser::new(KNOWN))]
    pub backend: String,

    /// Only these workloads, such as W1,W3
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    only: Vec<Workload>,

    /// Number of CPU threads [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

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

impl Bench {
    /// The workloads, in order and each once.
    pub fn workloads(&self) -> Vec<Workload> {
        let mut only = if self.only.is_empty() { Workload::ALL.to_vec() } else { self.only.clone() };
        only.sort_unstable();
        only.dedup();
        only
    }

    /// The number of CPU threads; `None` for all.
    pub fn threads(&self) -> Option<usize> {
        self.threads.map(usize::from)
    }
}

fn seconds(word: &str) -> Result<f64, String> {
    match word.parse::<f64>() {
        Ok(seconds) if (0.01..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("must be a number of seconds from 0.01 to 3600".into()),
    }
}
