//! Labelled rows that are rows of a run's training: a finished run scores them too well.

use std::fs;
use std::path::Path;

use super::config::{Config, EvaluationRows};
use super::finished::Finished;
use super::provenance::Provenance;
use super::rows_of_run::USES;
use super::run_dir;
use crate::checkpoint::digest;
use crate::datasets::DataConfig;

impl Finished {
    /// A note on the rows of a file that are rows of the run's training, by their lines. `None` where there are none, where the
    /// file is not the table of the training, and where this table or the file of its lines is not there any more.
    ///
    /// # Arguments
    /// * `config`: the run's, from [`Finished::config`]
    /// * `input`: the file
    /// * `lines`: the lines of the rows that are scored, in ascending order, from 1
    pub fn note_on_trained_rows(&self, config: &Config, input: &Path, lines: &[u64]) -> Option<String> {
        if self.card.own_data {
            return None;
        }
        let Ok(DataConfig::Csv(csv)) = config.data() else { return None };
        if !has_content_of(input, &csv.path) {
            return None;
        }
        let counts = counts_of_uses(&self.path.join(run_dir::TRAIN_LINES), lines);
        let count: usize = counts.iter().sum();
        if count == 0 {
            return None;
        }
        let are = if count == 1 { "is a row" } else { "are rows" };
        let each = USES.iter().zip(counts).filter(|(_, count)| *count > 0);
        let each: Vec<String> = each.map(|(word, count)| format!("{count} {word}")).collect();
        let remedy = match csv.test_path.is_empty() || config.evaluation.rows == EvaluationRows::Validation {
            true => format!(
                "the run's own report has no training row, and neither has a copy of the file with its header and the lines of \
                 the run's {} alone",
                run_dir::TEST_LINES
            ),
            false => format!("the run's test rows are those of {}", csv.test_path),
        };
        // The lines of a table that was written anew, as an export of each month is, may be those of other rows.
        let doubt = match self.began_before(&csv.path) {
            true => {
                "; the table was written since the run has begun: this holds if these lines are the same rows still"
            }
            false => "",
        };
        Some(format!(
            "{count} of the {} rows {are} of the run's training, by their lines ({}: {}), and such rows mostly have better \
             scores than new ones; {remedy}{doubt}",
            lines.len(),
            run_dir::TRAIN_LINES,
            each.join(", ")
        ))
    }

    /// Whether the run began before a file was written for the last time, as far as both are known.
    fn began_before(&self, file: &Path) -> bool {
        let written = fs::metadata(file).and_then(|file| file.modified());
        let run = Provenance::read(&self.path.join(run_dir::PROVENANCE));
        run.zip(written.ok()).is_some_and(|(run, written)| run.began_before(written))
    }
}

/// How many of these lines a file of the lines of the training has for each of [`USES`]; none where it cannot be read.
fn counts_of_uses(path: &Path, lines: &[u64]) -> [usize; USES.len()] {
    let mut counts = [0; USES.len()];
    let Ok(mut rows) = csv::Reader::from_path(path) else { return counts };
    // Line, client, use.
    let listed = rows.records().map_while(Result::ok).filter_map(|row| {
        let line: u64 = row.get(0)?.parse().ok()?;
        let place = USES.iter().position(|word| row.get(2) == Some(*word))?;
        lines.binary_search(&line).is_ok().then_some(place)
    });
    listed.for_each(|place| counts[place] += 1);
    counts
}

/// Whether two paths are one file, or two with the same bytes. What is no file, such as a pipe, is not read.
fn has_content_of(one: &Path, other: &Path) -> bool {
    let size = |path: &Path| fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|file| file.len());
    if size(one).is_none() || size(one) != size(other) {
        return false;
    }
    let is_same_file = matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other);
    let sha256 = |path: &Path| digest::of_file(path).ok();
    is_same_file || sha256(one).is_some_and(|of_one| sha256(other) == Some(of_one))
}
