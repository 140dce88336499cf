//! `fedstein init`.

use std::path::PathBuf;

use clap::Args;

use super::options::MissingCells;

/// Look at the columns of a CSV file, and write a config with comments that trains on it.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_help = "\
Examples:
  fedstein init measurements.csv                        writes measurements.toml
  fedstein init measurements.csv --target species --out species.toml
  fedstein init measurements.csv --missing-values 999,unknown
  fedstein init measurements.csv --study                writes measurements-models.toml too: which model is best?
  fedstein train measurements.toml

Separator, header, target, task and the column of the clients are found from the cells and the names of the columns; the
comments of the file say what was found and what else it could be.")]
pub struct Init {
    /// The table
    #[arg(value_name = "FILE.csv")]
    pub table: PathBuf,

    /// The column to predict, by name or by number from 0, -1 for the last [default: found by its name, else the last one]
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    pub target: Option<String>,

    #[command(flatten)]
    pub missing_values: MissingCells,

    /// The config to write, or `-` for standard output [default: <FILE>.toml in the working directory]
    #[arg(long, value_name = "FILE.toml")]
    out: Option<PathBuf>,

    /// Write studies beside the config as well: <FILE>-models.toml compares models on validation rows, and for a table with
    /// three clients or more <FILE>-left-out.toml scores the model at each client when it takes no part
    #[arg(long)]
    pub study: bool,

    /// Replace the files that are written
    #[arg(long)]
    pub force: bool,
}

impl Init {
    /// The file of the config: that of `--out`, else one with the name of the table. `table.csv.gz` has the name `table` too.
    pub fn out(&self) -> PathBuf {
        let name = self.table.file_name().unwrap_or_default().to_string_lossy();
        let name = name.split('.').find(|part| !part.is_empty()).unwrap_or("own-data");
        self.out.clone().unwrap_or_else(|| PathBuf::from(format!("{name}.toml")))
    }
}
