//! `fedstein evaluate`: external validation of a finished run on labelled rows.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::client;
use super::new_rows;
use super::output::NewDirectory;
use super::{headline, output};
use crate::cli::{CliError, Evaluate, print_note, print_text};
use crate::datasets::columns::{Notation, note_on_alike_groups, numbered, places};
use crate::datasets::{AskedColumn, Beside, DataError, MissingAnswer, NewRows, Reading, Targets};
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
/// The same where a group has that name.
const NO_GROUP_HERE: &str = "no group";
/// What is read for a missing cell, which no other cell is.
const BLANK: &str = "";
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
    let reading = config.data()?.reading().cloned().unwrap_or_default();
    let columns = asked_columns(&run, &typed, &target, &reading);
    let of_rows = new_rows::config_of_rows(&run, &config, &typed.written, &columns.names())?;
    let (rows, about) = read((&run, &of_rows), (&typed, asked), (&target, &columns))?;
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
    /// Its name in the training file, where `column` is its number there.
    name: Option<String>,
    /// What named it.
    key: &'static str,
}

impl Target {
    /// The column that was asked for, or that of the training file.
    fn of(run: &Finished, config: &Config, typed: Option<&str>) -> Result<Self, CliError> {
        if let Some(column) = typed {
            return Ok(Self { column: column.to_owned(), name: None, key: "--target" });
        }
        let column = config.data()?.target_column().to_owned();
        match column.is_empty() {
            false => {
                let name = run.card.numbered_columns.target.clone();
                Ok(Self { column, name, key: "data.target of the run; --target names another" })
            }
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
    (target, asked): (&Target, &Columns<AskedColumn<'_>>),
) -> Result<(LabelledRows, About), CliError> {
    let input = typed.input.display().to_string();
    let reading = config.data()?.reading().cloned().unwrap_or_default();
    let read = run.new_rows(config, &typed.input, Besides::Asked(&asked.all()), asked_client.rows_of)?;
    let NewRows { features, asked: columns, lines, notes, .. } = read;
    let columns = asked.found(columns)?;
    let notation = reading.notation();
    let targets = targets(run, &notation, &columns.target, (&typed.input, &lines))?;
    let groups = columns.group.as_ref().map(|column| groups_of(&column.cells));
    let (clusters, alike_clusters) = match &columns.cluster {
        Some(of) => {
            let (numbers, names) = numbered(of.cells.iter().map(|cell| notation.name(cell)));
            (Some(Clusters::new(numbers)), note_on_alike_groups(&input, &of.place, &names))
        }
        None => (None, None),
    };
    let rows = LabelledRows { features, targets, groups, clusters, input };
    let trained = run.note_on_trained_rows(config, &typed.input, &lines);
    let outside = run.training_range().and_then(|range| range.note(&range.outside(&rows.features)));
    let by_index = note_on_index(typed, target, &columns.target);
    let taken_alone = note_on_missing_clusters(&rows, asked, &reading.group_column);
    let about = About {
        title: title(run, typed),
        facts: facts(run, asked_client, &rows, &columns),
        notes: [trained, by_index, taken_alone, alike_clusters]
            .into_iter()
            .flatten()
            .chain(notes)
            .chain(outside)
            .collect(),
    };
    Ok((rows, about))
}

/// The columns that are read beside the features, as they are asked for or as they are found.
struct Columns<T> {
    target: T,
    /// That of `--by`.
    group: Option<T>,
    /// That of `--cluster`, or of the run's `data.group_column`.
    cluster: Option<T>,
}

/// The columns that the command and the run ask for.
fn asked_columns<'a>(
    run: &'a Finished,
    typed: &'a Evaluate,
    target: &'a Target,
    reading: &'a Reading,
) -> Columns<AskedColumn<'a>> {
    let of_targets = AskedColumn {
        key: target.key,
        column: &target.column,
        name: target.name.as_deref(),
        what: if run.card.classes.is_some() { "a label" } else { "a finite number" },
        missing: match reading.leaves_out_unlabelled() {
            true => MissingAnswer::LeftOut,
            false => MissingAnswer::Refused(UNLABELLED),
        },
        may_be_feature: false,
        required: true,
    };
    let group = typed.by.as_deref().map(|column| AskedColumn {
        key: "--by",
        column,
        name: None,
        what: "the name of a group",
        missing: MissingAnswer::Text(BLANK),
        may_be_feature: true,
        required: true,
    });
    let of_run = run.card.numbered_columns.group.as_ref().unwrap_or(&reading.group_column);
    Columns { target: of_targets, group, cluster: cluster(typed, of_run) }
}

impl<'a> Columns<AskedColumn<'a>> {
    /// The target first, then those of the others that are asked for.
    fn all(&self) -> Vec<AskedColumn<'a>> {
        [Some(self.target), self.group, self.cluster].into_iter().flatten().collect()
    }

    /// What each is found by: its number, and its name.
    fn names(&self) -> Vec<&'a str> {
        self.all().into_iter().flat_map(|asked| [Some(asked.column), asked.name]).flatten().collect()
    }

    /// What was read for [`Self::all`], in its order; `None` for a column that the file lacks.
    fn found(&self, read: Vec<Option<Beside>>) -> Result<Columns<Beside>, CliError> {
        let mut read = read.into_iter();
        let Some(target) = read.next().flatten() else {
            return Err(CliError::Failed("the column of the targets was not read".into()));
        };
        let mut next = |asked: Option<_>| asked.and_then(|_| read.next().flatten());
        Ok(Columns { target, group: next(self.group), cluster: next(self.cluster) })
    }
}

/// The headline of the report.
fn title(run: &Finished, typed: &Evaluate) -> String {
    let of_run = || {
        let name = typed.input.file_name().unwrap_or(typed.input.as_os_str()).to_string_lossy();
        let client = typed.own.client.as_ref().map_or_else(String::new, |client| format!(", client {client}"));
        format!("{} on {name}{client}", run.summary.name)
    };
    typed.title.clone().unwrap_or_else(of_run)
}

/// The facts on the rows, for the report.
fn facts(
    run: &Finished,
    asked: client::Asked<'_>,
    rows: &LabelledRows,
    columns: &Columns<Beside>,
) -> Vec<(String, String)> {
    let count =
        |of: Option<usize>, column: &Option<Beside>| Some(format!("{} of column {}", of?, column.as_ref()?.place));
    let facts = [
        ("rows", Some(format!("{}, {} rows", rows.input, rows.features.nrows()))),
        ("target", Some(format!("column {}", columns.target.place))),
        ("run", Some(run.path.display().to_string())),
        ("predictor", asked.predictor.map(|client| format!("that of client {client}"))),
        ("groups", count(rows.groups.as_ref().map(|groups| groups.names.len()), &columns.group)),
        ("clusters", count(rows.clusters.as_ref().map(Clusters::count), &columns.cluster)),
    ];
    facts.into_iter().filter_map(|(name, fact)| Some((name.to_owned(), fact?))).collect()
}

/// That the run's `data.target` is the number of a column whose name is not known, and finds this one.
fn note_on_index(typed: &Evaluate, target: &Target, found: &Beside) -> Option<String> {
    let has_another_name = found.name.as_deref().is_some_and(|name| name != target.column);
    let is_index =
        typed.target.is_none() && target.name.is_none() && target.column.parse::<i64>().is_ok() && has_another_name;
    is_index.then(|| {
        format!(
            "the target is column {}, by the index {} of the run's `data.target`; --target names another",
            found.place, target.column
        )
    })
}

/// That the file lacks the run's column of clusters, or that it cannot be found.
fn note_on_missing_clusters(
    rows: &LabelledRows,
    asked: &Columns<AskedColumn<'_>>,
    group_column: &str,
) -> Option<String> {
    let input = &rows.input;
    let problem = match asked.cluster {
        _ if rows.clusters.is_some() || group_column.is_empty() => return None,
        Some(AskedColumn { column, .. }) => format!("{input} has no column `{}`", quoted(column)),
        None => format!("column {group_column} of the training file has no name to be found by in {input}"),
    };
    Some(format!(
        "{problem} (data.group_column of the run): intervals and verdict take its rows for independent; --cluster names \
         another column"
    ))
}

/// The groups of these cells, of which one without a text names no group.
fn groups_of(cells: &[String]) -> RowGroups {
    let mut groups = RowGroups::of_texts(cells);
    let blank = if groups.names.iter().any(|name| name == NO_GROUP) { NO_GROUP_HERE } else { NO_GROUP };
    groups.names.iter_mut().filter(|name| *name == BLANK).for_each(|name| blank.clone_into(name));
    groups
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
        name: None,
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
