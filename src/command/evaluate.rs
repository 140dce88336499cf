//! `fedstein evaluate`: external validation of a finished run on labelled rows.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::client;
use super::new_rows;
use super::output::NewDirectory;
use super::{headline, output};
use crate::cli::{CliError, Evaluate, print_note, print_text};
use crate::datasets::columns::{Notation, note_on_alike_groups, numbered, places};
use crate::datasets::{AskedColumn, Beside, DataError, MissingAnswer, NewRows, Targets};
use crate::error::RunError;
use crate::experiment::external::{About, Evaluated, LabelledRows};
use crate::experiment::finished::Finished;
use crate::experiment::forecast::listed;
use crate::experiment::new_rows::Besides;
use crate::experiment::row_groups::RowGroups;
use crate::experiment::schema::did_you_mean;
use crate::experiment::{Config, run_dir};
use crate::metrics::Clusters;
use crate::report::{decimals, quoted};

/// The name of a report for programs.
const JSON: &str = "report.json";
/// The most groups on standard output; the report has all.
const LISTED: usize = 10;
/// The most letters of a client's name in that of a directory.
const LONGEST: usize = 40;
/// The group of the rows whose cell is missing.
const NO_GROUP: &str = "missing";
/// What to do with a row without a cluster.
const NO_CLUSTER: &str = ", such as a patient's number; write it there, or take the row out";
/// What to do with a row without a target.
const UNLABELLED: &str =
    "; remove the rows without one, or train with data.missing_target = \"drop\", which leaves them out here too";
/// Why a site's own results have no section on calibration rows.
const NO_SETS: &str = "these are a site's own results by an earlier version: predictions have the temperature or map and the sets that all \
     sites learned together, and only the server's run can score them (`fedstein evaluate` on its directory)";

/// Runs the command.
///
/// # Errors
/// The run or the rows cannot be read, the backend cannot be opened, or the predictions cannot be made or written.
pub(super) fn evaluate(typed: Evaluate) -> Result<(), CliError> {
    let run = Finished::open(&typed.run)?;
    let config = new_rows::on_backend(run.config()?, typed.backend.as_deref())?;
    let out = match &typed.out {
        Some(out) => out.clone(),
        None => default_out(&run, &typed)?,
    };
    output::check_new_directory(&out, run_dir::EVALUATION, &Path::new(run_dir::REPORT).join(JSON), typed.force)?;
    // If the rows are refused, it is gone again.
    let directory = NewDirectory::create(&out)?;
    let asked = client::Asked::of((&run, &config), typed.own.client.as_deref())?;
    let recalibrated = client::recalibrated((&run, &config), asked.predictor, typed.level)?;
    if asked.predictor.is_none() && run.keeps_calibration_alone() {
        if let Some(level) = typed.level {
            return Err(CliError::Usage(format!("--level {level}: {NO_SETS}")));
        }
        print_note(NO_SETS);
    }
    let target = Target::of(&run, &config, typed.target.as_deref())?;
    let of_rows = new_rows::config_of_rows(&run, &config, &typed.written)?;
    let (rows, about) = read((&run, &of_rows), (&typed, asked), &target)?;
    let client = client::predictor((&run, &config), asked.predictor, typed.own.data_dir())?;
    let evaluated = run.evaluate(&config, client, &recalibrated, rows)?;

    let is_own = asked.predictor.is_some();
    run.notes_on_predictions(&config, is_own).iter().chain(&about.notes).for_each(|note| print_note(note));
    let warning = evaluated.write(&run, &config, about, directory.staging())?.warning;
    directory.keep(run_dir::EVALUATION)?;
    print_text(&text((&evaluated, warning), (&typed, asked), &out)?)
}

/// The column of the targets.
struct Target {
    column: String,
    /// What named it.
    key: &'static str,
}

impl Target {
    /// The column that was asked for, or that of the training file.
    fn of(run: &Finished, config: &Config, typed: Option<&str>) -> Result<Self, CliError> {
        if let Some(column) = typed {
            return Ok(Self { column: column.to_owned(), key: "--target" });
        }
        let column = config.data()?.target_column().to_owned();
        match column.is_empty() {
            false => Ok(Self { column, key: "data.target of the run; --target names another" }),
            true => Err(CliError::Usage(format!(
                "--target is needed: the run's data, `{}`, name no column of targets",
                run.data_name(config)
            ))),
        }
    }
}

/// `RUN/evaluate/NAME`, with the name of the input up to its first dot, and that of a client behind it.
fn default_out(run: &Finished, Evaluate { input, own, .. }: &Evaluate) -> Result<PathBuf, CliError> {
    let all = run.path.join(run_dir::EVALUATE);
    // The run may come from an untrusted source.
    if all.is_symlink() {
        return Err(CliError::Usage(format!("`{}` is a link; name where the report goes with --out", all.display())));
    }
    let name = input.file_name().unwrap_or_default().to_string_lossy();
    let name = name.split('.').find(|part| !part.is_empty()).unwrap_or("rows");
    Ok(all.join(match &own.client {
        Some(client) => format!("{name}-client-{}", in_file_name(client)),
        None => name.to_owned(),
    }))
}

/// A client's name with a `-` in the place of other characters than letters, digits, `-` and `_`.
fn in_file_name(client: &str) -> String {
    let allowed = |letter: char| letter.is_alphanumeric() || "-_".contains(letter);
    client.chars().map(|letter| if allowed(letter) { letter } else { '-' }).take(LONGEST).collect()
}

/// The labelled rows of the file, and what the report says about them.
fn read(
    (run, config): (&Finished, &Config),
    (typed, asked_client): (&Evaluate, client::Asked<'_>),
    target: &Target,
) -> Result<(LabelledRows, About), CliError> {
    let input = typed.input.display().to_string();
    let what = if run.card.classes.is_some() { "a label" } else { "a finite number" };
    let reading = config.data()?.reading().cloned().unwrap_or_default();
    let missing = match reading.leaves_out_unlabelled() {
        true => MissingAnswer::LeftOut,
        false => MissingAnswer::Refused(UNLABELLED),
    };
    let wanted =
        AskedColumn { key: target.key, column: &target.column, what, missing, may_be_feature: false, required: true };
    let missing = MissingAnswer::Text(NO_GROUP);
    let by = typed.by.as_deref().map(|column| AskedColumn {
        key: "--by",
        column,
        what: "the name of a group",
        missing,
        may_be_feature: true,
        required: true,
    });
    let cluster = cluster(typed, &reading.group_column);
    let columns: Vec<AskedColumn> = [Some(wanted), by, cluster].into_iter().flatten().collect();
    let read = run.new_rows(config, &typed.input, Besides::Asked(&columns), asked_client.rows_of)?;
    let NewRows { features, asked, lines, notes, .. } = read;
    let mut asked = asked.into_iter();
    let Some(of_targets) = asked.next().flatten() else {
        return Err(CliError::Failed("the column of the targets was not read".into()));
    };
    let of_groups = by.and_then(|_| asked.next().flatten());
    let of_clusters = cluster.and_then(|_| asked.next().flatten());
    let trained = run.note_on_trained_rows(config, &typed.input, &lines);
    let outside = run.training_range().and_then(|range| range.note(&range.outside(&features)));
    let targets = targets(run, &reading.notation(), &of_targets, (&typed.input, &lines))?;
    let groups = of_groups.as_ref().map(|column| RowGroups::of_texts(&column.cells));
    let notation = reading.notation();
    let (clusters, alike_clusters) = match &of_clusters {
        Some(of) => {
            let (numbers, names) = numbered(of.cells.iter().map(|cell| notation.name(cell)));
            (Some(Clusters::new(numbers)), note_on_alike_groups(&input, &of.place, &names))
        }
        None => (None, None),
    };
    let mut facts = vec![
        ("rows".to_owned(), format!("{input}, {} rows", lines.len())),
        ("target".to_owned(), format!("column {}", of_targets.place)),
        ("run".to_owned(), run.path.display().to_string()),
    ];
    facts.extend(asked_client.predictor.map(|client| ("predictor".to_owned(), format!("that of client {client}"))));
    if let (Some(groups), Some(column)) = (&groups, &of_groups) {
        facts.push(("groups".to_owned(), format!("{} of column {}", groups.names.len(), column.place)));
    }
    if let (Some(clusters), Some(column)) = (&clusters, &of_clusters) {
        facts.push(("clusters".to_owned(), format!("{} of column {}", clusters.count(), column.place)));
    }
    let taken_alone = || {
        format!(
            "{input} has no column `{}` (data.group_column of the run): intervals and verdict take its rows for independent; \
             --cluster names another column",
            quoted(&reading.group_column)
        )
    };
    let taken_alone = (clusters.is_none() && !reading.group_column.is_empty()).then(taken_alone);
    let has_another_name = of_targets.name.as_deref().is_some_and(|name| name != target.column);
    let is_index = typed.target.is_none() && target.column.parse::<i64>().is_ok() && has_another_name;
    let note = || {
        format!(
            "the target is column {}, by the index {} of the run's `data.target`; --target names another",
            of_targets.place, target.column
        )
    };
    let name = typed.input.file_name().map_or_else(|| input.clone(), |name| name.to_string_lossy().into_owned());
    let about = About {
        title: typed.title.clone().unwrap_or_else(|| match &typed.own.client {
            Some(client) => format!("{} on {name}, client {client}", run.summary.name),
            None => format!("{} on {name}", run.summary.name),
        }),
        facts,
        notes: trained
            .into_iter()
            .chain(is_index.then(note))
            .chain(taken_alone)
            .chain(alike_clusters)
            .chain(notes)
            .chain(outside)
            .collect(),
    };
    Ok((LabelledRows { features, targets, groups, clusters, input }, about))
}

/// The column of the clusters: the one that is asked for, or the run's by its name, where the file has it.
fn cluster<'a>(typed: &'a Evaluate, of_run: &'a str) -> Option<AskedColumn<'a>> {
    let is_name = !of_run.is_empty() && of_run.parse::<i64>().is_err();
    let (column, key) = match &typed.cluster {
        Some(column) => (Some(column.as_str()), "--cluster"),
        None => (is_name.then_some(of_run), "data.group_column of the run"),
    };
    Some(AskedColumn {
        key,
        column: column?,
        what: "the name of a cluster",
        missing: MissingAnswer::Needed(NO_CLUSTER),
        may_be_feature: true,
        required: typed.cluster.is_some(),
    })
}

/// The targets out of their cells.
///
/// # Errors
/// The first cell that is no class of the run, or no finite number.
fn targets(
    run: &Finished,
    notation: &Notation,
    of: &Beside,
    (path, lines): (&Path, &[u64]),
) -> Result<Targets, RunError> {
    let wrong = |row: usize, expected: String| DataError::Field {
        path: path.to_owned(),
        line: lines[row],
        column: of.place.clone(),
        value: quoted(&of.cells[row]),
        expected,
    };
    let Some(names) = &run.card.classes else {
        let number = |(row, cell): (usize, &String)| {
            let value = notation.number(cell).filter(|value| value.is_finite());
            value.ok_or_else(|| wrong(row, "a finite number".into()))
        };
        return Ok(Targets::Real { values: of.cells.iter().enumerate().map(number).collect::<Result<_, _>>()? });
    };
    let cells: Vec<String> = of.cells.iter().map(|cell| notation.name(cell).into_owned()).collect();
    let labels = places(&cells, names).map_err(|unknown| {
        let row = cells.iter().position(|cell| cell == unknown).unwrap_or_default();
        let hint = did_you_mean(unknown, names.iter().map(String::as_str));
        wrong(row, format!("a class of the run, {}{hint}", listed(names)))
    })?;
    Ok(Targets::Classes { labels, names: names.clone() })
}

/// The headline, what temperature and sets do, the groups and the place of the report.
fn text(
    (evaluated, warning): (&Evaluated, Option<String>),
    (Evaluate { input, own, .. }, asked): (&Evaluate, client::Asked<'_>),
    out: &Path,
) -> Result<String, CliError> {
    let evaluation = &evaluated.evaluation;
    let whose = if asked.predictor.is_some() { "predictor of client" } else { "client" };
    let by = own.client.as_ref().map(|client| format!(", {whose} {client}")).unwrap_or_default();
    let rows = format!("rows of {}{by}: {}", input.display(), evaluation.rows);
    let mut text = match evaluated.not_judged() {
        None => headline::table(evaluation, &rows),
        Some(reason) => format!("\n{rows}\n\n{reason}\n"),
    };
    warning.iter().for_each(|warning| text += &format!("\n{warning}\n"));
    if let Some(results) = &evaluated.calibration {
        results.sentences().iter().for_each(|sentence| text += &format!("\n{sentence}\n"));
    }
    let report = out.join(run_dir::REPORT);
    text += &groups(&report.join(JSON))?;
    let _ = writeln!(text, "\nreport  {}", headline::link(&report.join("report.html").display().to_string()));
    Ok(text)
}

/// The first groups of a report, one per line; nothing where it has none.
fn groups(report: &Path) -> Result<String, CliError> {
    let failed = |error: &dyn std::fmt::Display| CliError::Failed(format!("{}: {error}", report.display()));
    let json = crate::report::read_text(report).map_err(|error| failed(&error))?;
    let json: serde_json::Value = serde_json::from_str(&json).map_err(|error| failed(&error))?;
    let Some(groups) = json["groups"].as_array() else { return Ok(String::new()) };
    let line = |group: &serde_json::Value| {
        let (name, verdict) = (group["name"].as_str().unwrap_or_default(), &group["verdict"]["headline"]);
        let nll = group["overall"]["nll"].as_f64().map_or_else(String::new, |nll| decimals(nll, 4));
        let (name, rows) = (quoted(name), group["overall"]["n"].as_u64().unwrap_or_default());
        format!("  {name:<24}{rows:>8}{nll:>10}   {}\n", verdict.as_str().unwrap_or_default())
    };
    let mut text = format!("\n{:<26}{:>8}{:>10}\n", "group, worst first", "rows", "NLL");
    groups.iter().take(LISTED).for_each(|group| text += &line(group));
    if groups.len() > LISTED {
        let _ = writeln!(text, "  and {} more in the report", groups.len() - LISTED);
    }
    Ok(text)
}
