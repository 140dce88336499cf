//! Reads the user's own tables before the first run, so that a mistake that shows in them alone does not end the study later.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::plan::Plan;
use crate::datasets::DataConfig;
use crate::error::RunError;
use crate::experiment::{Config, check_rows};
use crate::reproduce::grid::Run;

/// Runs that read the same rows: one of each model.
#[derive(Default)]
struct Group<'r> {
    /// The `[model]` of each.
    models: BTreeSet<String>,
    runs: Vec<&'r Run>,
}

/// Reads the rows of every `[data]` and `[partition]` among the runs on tables of the user's own, once, with the first seed;
/// rows at sites are none that a study can read.
///
/// # Errors
/// The first mistake, at the file and the line of the study.
pub fn check(plan: &Plan<'_>, runs: &[Run], data_dir: &Path) -> Result<(), RunError> {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut groups: Vec<Group<'_>> = Vec::new();
    let reads = |run: &&Run| !run.tables.is_empty() || run.config.data_kind() == DataConfig::AT_SITES;
    for run in runs.iter().filter(reads) {
        let section = |name: &str| run.settings.table.get(name).map_or_else(String::new, ToString::to_string);
        let place = *places.entry(section("data") + &section("partition")).or_insert_with(|| {
            groups.push(Group::default());
            groups.len() - 1
        });
        if groups[place].models.insert(section("model")) {
            groups[place].runs.push(run);
        }
    }
    for Group { runs, .. } in groups {
        let configs: Vec<&Config> = runs.iter().map(|run| &run.config).collect();
        check_rows(&configs, data_dir).map_err(|(at, error)| match error.exit_code() {
            2 => RunError::Config(plan.located(runs[at], &error).to_string()),
            _ => error,
        })?;
    }
    Ok(())
}
