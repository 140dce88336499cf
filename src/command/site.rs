//! `fedstein site check`: what a site would tell a server, and what not; nothing is sent.

use std::path::Path;

use crate::backend::AnyBackend;
use crate::cli::{CliError, SiteCheck, print_text, printable};
use crate::datasets::columns::{CellKind, Tally};
use crate::datasets::{Encoding, FeatureScale, Normalisation, Normalise};
use crate::report::files::can_be_written;
use crate::report::quoted;
use crate::site::{
    Agreement, ColumnsTold, Description, ScaleError, SiteConfig, SiteRows, TargetDescription, agree, describe,
    means_for, measure, problems, scale, states_are_apart, unlike,
};

/// The number of the run that prints of files are computed for. A real run has another.
const RUN: u64 = 0;

/// A site that has been read.
struct Read<'a> {
    file: &'a Path,
    site: SiteConfig,
    rows: SiteRows,
    told: Description,
}

/// Runs the command.
///
/// # Errors
/// A file of a site or of its rows is wrong, the sites cannot train together, or standard output cannot be written.
pub(super) fn check(typed: &SiteCheck) -> Result<(), CliError> {
    let sites = typed.files.iter().map(|file| read(file)).collect::<Result<Vec<_>, _>>()?;
    let descriptions: Vec<Description> = sites.iter().map(|read| read.told.clone()).collect();
    let agreed = match sites.len() {
        1 => None,
        _ => Some(agree(&descriptions).map_err(|error| CliError::Usage(error.to_string()))?),
    };
    if typed.json {
        return print_text(&descriptions.iter().map(json).collect::<Result<String, _>>()?);
    }
    let mut blocks: Vec<String> = sites.iter().map(in_words).collect();
    if let Some(agreed) = agreed {
        let (scales, mut notes) = scales(&sites, &descriptions, &agreed)?;
        let one_state = states_are_apart(&typed.files).err();
        notes.extend(one_state.map(|problem| format!("these sites cannot train on one machine: {problem}")));
        blocks.push(agreement(&agreed, scales.as_ref(), &notes));
    }
    print_text(&blocks.join("\n"))
}

fn read(file: &Path) -> Result<Read<'_>, CliError> {
    let site = SiteConfig::load(file)?;
    let rows = SiteRows::read(&site).map_err(|error| CliError::Usage(format!("{}: {error}", file.display())))?;
    let told = describe(&site, &rows, RUN);
    told.check().map_err(|problem| CliError::Usage(format!("{}: what it would tell: {problem}", file.display())))?;
    Ok(Read { file, site, rows, told })
}

/// The scales over the rows of all sites, `None` where one tells no sums, and notes on columns in different units.
fn scales(
    sites: &[Read<'_>],
    descriptions: &[Description],
    agreed: &Agreement,
) -> Result<(Option<Normalisation>, Vec<String>), CliError> {
    let refused = |error: ScaleError| CliError::Usage(error.to_string());
    if agreed.means.is_none() {
        return Ok((None, Vec::new()));
    }
    let Some(means) = means_for(agreed, Normalise::Standard).map_err(refused)? else {
        return Ok((None, Vec::new()));
    };
    let told = sites
        .iter()
        .map(|read| measure(&read.site, &read.rows, agreed.features.as_deref(), &means, agreed.encoding.as_ref()));
    let mut told = told.collect::<Result<Vec<_>, _>>().map_err(|error| CliError::Usage(error.to_string()))?;
    let scale = scale(agreed, &told, Normalise::Standard).map_err(refused)?;
    told.sort_by_key(|told| told.index);
    let mut descriptions = descriptions.to_vec();
    descriptions.sort_by_key(|site| site.index);
    Ok((Some(scale), unlike(&descriptions, agreed, &told)))
}

/// A description on one line.
fn json(told: &Description) -> Result<String, CliError> {
    let text = serde_json::to_string(told).map_err(|error| CliError::Failed(error.to_string()))?;
    Ok(text + "\n")
}

fn in_words(read: &Read<'_>) -> String {
    let Read { file, site, rows, told } = read;
    let mut text = format!("{}: site `{}`\n", printable(&file.display().to_string()), site.name);
    text += &list("told to the server", &lines_told(site, told));
    text += &list(
        "not told before the first round (what training sends says something about rows: docs/privacy.md)",
        &lines_kept(site, told),
    );
    let problems = [rows.notes.clone(), problems(site, rows, told), of_this_machine(site)].concat();
    if !problems.is_empty() {
        text += &list("please note", &problems);
    }
    text
}

/// What would keep this machine from training as the site. It is no error, for the site may have another machine.
fn of_this_machine(site: &SiteConfig) -> Vec<String> {
    let backend = AnyBackend::named(&site.backend).err().map(|error| format!("No run can begin here: {error}."));
    // The directory is made by the first visit, with those above it.
    let there = site.state.ancestors().find(|path| path.exists()).unwrap_or(Path::new("."));
    let state = match (there.is_dir(), can_be_written(&there.join("state"))) {
        (true, Ok(())) => None,
        (false, _) => Some("it is below a file".to_owned()),
        (true, Err(error)) => Some(error.to_string()),
    };
    let state = state.map(|problem| {
        let path = printable(&site.state.display().to_string());
        format!("No run can begin here: nothing can be written into `state`, {path}: {problem}.")
    });
    backend.into_iter().chain(state).collect()
}

fn list(heading: &str, lines: &[String]) -> String {
    let lines: String = lines.iter().map(|line| format!("  - {line}\n")).collect();
    format!("\n{heading}:\n{lines}")
}

fn lines_told(site: &SiteConfig, told: &Description) -> Vec<String> {
    let mut lines = vec![
        format!("name `{}`, client {}", told.name, told.index),
        format!("number of training rows: {}", told.rows),
        match (told.validation_rows, told.calibration_rows) {
            (0, 0) => format!("number of test rows: {}", told.test_rows),
            (held_out, 0) => format!("number of validation rows: {held_out}, of test rows: {}", told.test_rows),
            (validation, calibration) => format!(
                "number of validation rows: {validation}, of calibration rows: {calibration}, of test rows: {}",
                told.test_rows
            ),
        },
        match &told.features {
            Some(names) => names_of(names, "feature", "features"),
            None => format!("number of features: {}", told.width),
        },
    ];
    match &told.target {
        TargetDescription::Classes { names, counts, untrained } => {
            lines.push(names_of(names, "class", "classes"));
            if !untrained.is_empty() {
                lines.push(format!("which of them are not in the file of the training rows: {}", joined(untrained)));
            }
            if let Some(counts) = counts {
                let each = names.iter().zip(counts).map(|(name, count)| format!("{} {count}", quoted(name)));
                lines.push(format!("number of training rows of each class: {}", each.collect::<Vec<_>>().join(", ")));
            }
        }
        TargetDescription::Fractions => lines.push("target: numbers with fractions (none is told)".into()),
        TargetDescription::Real => lines.push("target: real numbers".into()),
    }
    lines.extend(lines_of_columns(told));
    lines.extend(lines_of_sums(told, site.tell.products));
    if told.target == TargetDescription::Real && told.sums.is_some() {
        lines.push(
            "before the first round: the sums of the squared residuals of untrained networks on up to 1,000 training rows"
                .into(),
        );
    }
    lines.push(
        "in each round: what the method sends, and sums of scores over the rows that are evaluated (docs/privacy.md)"
            .into(),
    );
    if !site.data.name_column.is_empty() {
        lines.push(format!(
            "with the feature `{}`: the level of this site, which whoever has the particles can read (docs/privacy.md, \"The \
             client as a feature\")",
            quoted(&site.data.name_column)
        ));
    }
    lines.push(
        "after the last round, where a site has calibration rows: sums and counts over the calibration and the test rows, those \
         of each class too (docs/privacy.md, \"Calibration rows\")"
            .into(),
    );
    lines.push(format!("fingerprint of the file of training rows, for the run with the number {RUN}: {}", told.print));
    lines
}

/// What columns hold that are not numbers alone.
fn lines_of_columns(told: &Description) -> Vec<String> {
    let Some(ColumnsTold { kinds, missing, texts }) = &told.columns else { return Vec::new() };
    let named = |at: usize| match &told.features {
        Some(names) => quoted(&names[at]),
        None => format!("feature {at}"),
    };
    let kinds_of = |(at, kind): (usize, &CellKind)| {
        let kind = match kind {
            CellKind::Number => return None,
            CellKind::Boolean => "yes or no",
            CellKind::Date => "dates",
            CellKind::Category => "texts",
        };
        Some(format!("{} ({kind})", named(at)))
    };
    let held: Vec<String> = kinds.iter().enumerate().filter_map(kinds_of).collect();
    let mut lines = vec![format!("data.missing: {}", missing.word())];
    if !held.is_empty() {
        lines.push(format!("columns that are not numbers: {}", held.join(", ")));
    }
    for (at, texts) in texts.iter().flatten().enumerate().filter(|(_, texts)| !texts.is_empty()) {
        lines.push(format!("texts of `{}` in the training rows: {}", named(at), joined(texts)));
    }
    lines
}

/// What is counted and summed over a column that may have missing cells or texts.
fn counted(tally: &Tally) -> String {
    let texts = tally.texts.iter().map(|(text, rows)| format!("{} {rows}", quoted(text)));
    let sum = match tally.texts.is_empty() {
        true => format!("{} over {}", tally.sum.sum.value(), count_of_rows(tally.present)),
        false => texts.collect::<Vec<_>>().join(", "),
    };
    format!("{sum}; missing in {}", tally.missing)
}

/// The sums over the training rows, one column after another, and those of the second exchange.
fn lines_of_sums(told: &Description, products: bool) -> Vec<String> {
    let Some(sums) = &told.sums else { return Vec::new() };
    let columns = sums.features.iter().enumerate().map(|(at, column)| (told.column(at), column));
    let columns = columns.chain(sums.target.iter().map(|column| ("Target".to_owned(), column)));
    let lines = columns.map(|(name, column)| {
        let constant = column.constant.map_or_else(String::new, |value| format!(", {value} in every row"));
        format!("\n      {name}: {}{constant}", column.sum.value())
    });
    let tallies = sums.tallies.iter().flatten().enumerate();
    let tallies = tallies.map(|(at, tally)| format!("\n      {}: {}", told.column(at), counted(tally)));
    let lines: String = tallies.chain(lines).collect();
    let products = products.then(|| {
        "sum of the products of each two columns over the training rows, where the server's `data.rotate` asks for it".to_owned()
    });
    let sums = [
        format!("sum of each column over the training rows, exactly:{lines}"),
        "sum of the squared deviations of each column from its mean over all sites, once the server has sent the means"
            .to_owned(),
    ];
    sums.into_iter().chain(products).collect()
}

fn lines_kept(site: &SiteConfig, told: &Description) -> Vec<String> {
    let path = |path: &Path| printable(&path.display().to_string());
    let mut lines = vec![
        "the rows: no value of one row is told, except where a whole column has one value".to_owned(),
        format!("path and name of the file: {}", path(&site.data.path)),
    ];
    let held_out = site.data.held_out_files();
    lines.extend(held_out.map(|(key, file)| format!("path and name of the file {key}: {}", printable(file))));
    if matches!(told.target, TargetDescription::Classes { counts: None, .. }) {
        lines.push("number of training rows of each class (tell.class_counts = false)".into());
    }
    if told.columns.as_ref().is_some_and(|told| told.texts.is_none() && told.kinds.contains(&CellKind::Category)) {
        lines.push("texts of the columns of categories (tell.categories = false)".into());
    }
    if !site.tell.statistics {
        lines.push("sums of columns (tell.statistics = false)".into());
    } else if told.sums.is_none() {
        let few = if site.data.reading.group_column.is_empty() { "" } else { " with too few groups" };
        let rows = count_of_rows(told.rows);
        lines.push(format!("sums of columns ({rows}{few}, tell.min_rows = {})", site.tell.min_rows));
    }
    if told.sums.is_some() && !site.tell.products {
        lines.push("sums of the products of two columns (tell.products = false)".into());
    }
    lines.push(format!("directory of the site's state: {}", path(&site.state)));
    let threads = if site.threads == 0 { "all".to_owned() } else { site.threads.to_string() };
    lines.push(format!("backend and threads: {}, {threads}", site.backend));
    lines
}

fn agreement(agreed: &Agreement, scales: Option<&Normalisation>, more_notes: &[String]) -> String {
    let counts = |counts: &[usize]| counts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let mut lines = vec![
        format!("training rows of clients 0 to {}: {}", agreed.rows.len() - 1, counts(&agreed.rows)),
        format!("test rows: {}", counts(&agreed.test_rows)),
        match &agreed.features {
            Some(names) => format!("features, in the order of client 0: {}", joined(names)),
            None => format!("features, by position: {}", agreed.width),
        },
    ];
    if let Some(names) = agreed.encoding.as_ref().and_then(Encoding::names) {
        lines.push(format!("as the model takes them: {}", joined(&names)));
    }
    lines.push(match &agreed.classes {
        Some(names) => format!("classes: {}", joined(names)),
        None => "target: real numbers".into(),
    });
    let numbers = |numbers: &[f64]| numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if let Some(Normalisation { features: FeatureScale::PerColumn { shift, scale, .. }, target }) = scales {
        lines.push(format!("means of the features over all training rows: {}", numbers(shift)));
        lines.push(format!("standard deviations, 1 for a constant and for what is 0 or 1: {}", numbers(scale)));
        let target =
            target.map(|target| format!("mean and standard deviation of the target: {}, {}", target.mean, target.sd));
        lines.extend(target);
    }
    let notes = agreed.notes.iter().chain(more_notes).map(|note| format!("note: {note}"));
    list(&format!("these {} sites agree", agreed.rows.len()), &lines.into_iter().chain(notes).collect::<Vec<_>>())
}

/// The names of some things, with the word for one of them and that for several.
fn names_of(names: &[String], one: &str, several: &str) -> String {
    match names.len() {
        1 => format!("name of the {one}: {}", joined(names)),
        count => format!("names of the {count} {several}: {}", joined(names)),
    }
}

fn count_of_rows(rows: usize) -> String {
    format!("{rows} row{}", if rows == 1 { "" } else { "s" })
}

fn joined(names: &[String]) -> String {
    names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ")
}
