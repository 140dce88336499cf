//! `fedstein study`: carries out the runs of a study that are not kept yet, then writes its tables and pictures.

use std::path::Path;

use super::reproduce::{all_worked, create};
use crate::cli::{CliError, StudyOrder, print_text};
use crate::experiment::schema::first;
use crate::reproduce::curve::Results;
use crate::reproduce::data::Needed;
use crate::reproduce::runner::{Pending, Places};
use crate::study::output::{self, Written};
use crate::study::plan::Chosen;
use crate::study::{Plan, Study, directory, tables};

/// Runs the command.
///
/// # Errors
/// The study, a config, a data set or the output directory cannot be used, a run fails, or an output cannot be written.
pub(super) fn study(typed: StudyOrder) -> Result<(), CliError> {
    let study = Study::load(&typed.file)?;
    let StudyOrder { seeds, backend, only, data_dir, pace, .. } = typed;
    let plan = Plan::new(&study, Chosen { seeds, backend, only: only.clone() })?;
    if plan.grid.count() == 0 {
        return Err(CliError::Usage(nothing_has(&plan, &only.unwrap_or_default())));
    }
    data_must_be_here(&plan, data_dir.path())?;
    let out = typed.out.unwrap_or_else(|| Path::new("studies").join(&study.name));
    directory::check(&out, &study).map_err(CliError::Usage)?;
    let kept = out.join(directory::RUNS);
    let pending = Pending::of(plan.grid.runs(&plan.figure)?, &kept);
    tables::check(&plan, &pending.left, data_dir.path())?;

    create(&out)?;
    let _lock = directory::lock(&out).map_err(CliError::Usage)?;
    // Before the lock was taken another study may have begun here.
    directory::check(&out, &study).map_err(CliError::Usage)?;
    let failed = |error: crate::report::ReportError| CliError::Failed(error.to_string());
    directory::open(&out, &study).map_err(failed)?;
    create(&kept)?;
    // Before the lock was taken another study may have carried out some of them.
    let pending = pending.again(&kept);
    let total = pending.total();
    let about = format!("{}: {total} runs, {} of them kept from before", study.title, pending.known.len());
    let places = Places { data_dir: data_dir.path(), kept: &kept };
    let failures = pending.carry_out(&about, (usize::from(pace.jobs), pace.quiet), places)?;
    let results = Results::read(&plan.figure, &plan.grid, &kept, &failures)?;
    let written = output::write(&plan, &results, &out).map_err(failed)?;
    if !pace.quiet {
        print_text(&summary(&written))?;
    }
    all_worked(&failures, total, "the tables show")
}

/// Refuses to start if a data set is missing. The user's own tables have been read before.
fn data_must_be_here(plan: &Plan<'_>, data_dir: &Path) -> Result<(), CliError> {
    let own = |data: &toml::Table| data.get("kind").and_then(toml::Value::as_str) == Some("csv");
    // A config without the key has the default, which is embedded.
    let named = |data: &toml::Table| data.contains_key("kind");
    let data = plan.grid.data().into_iter().map(|(data, _)| data).filter(|data| named(data) && !own(data));
    let missing = data.map(|data| Needed::of(&data, data_dir)).filter(|needed| !needed.is_here());
    let mut lines: Vec<String> = missing.map(|needed| format!("\n  {}", needed.advice())).collect();
    lines.dedup();
    if lines.is_empty() {
        return Ok(());
    }
    Err(CliError::Usage(format!(
        "{}: the study needs data that are not there:{}\n  the data directory is {}; name another with --data-dir or \
         FEDSTEIN_DATA",
        plan.study.file,
        lines.concat(),
        data_dir.display()
    )))
}

fn nothing_has(plan: &Plan<'_>, only: &str) -> String {
    let mut names: Vec<String> = Vec::new();
    for cell in &plan.grid.cells {
        let name = plan.grid.name(&plan.figure, cell);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let names = first(12, names.iter().map(|name| format!("`{name}`")));
    format!("no run of the study has `{only}` in its name; there are {names}")
}

fn summary(written: &Written) -> String {
    let claims: String = written.claims.iter().map(|claim| format!("{claim}\n")).collect();
    let pictures: String = written.pictures.iter().map(|path| format!("picture {}\n", path.display())).collect();
    format!("{claims}{pictures}table   {}\n", written.table.display())
}
