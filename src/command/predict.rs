//! `fedstein predict`: the predictive distribution of a finished run on new rows.

use std::ops::Range;
use std::path::Path;

use ndarray::{Axis, Slice};

use super::client;
use super::columns::{self, Column};
use super::new_rows;
use super::output;
use crate::cli::{CliError, Format, MoreColumn, Predict};
use crate::datasets::{Beside, NewRows};
use crate::error::RunError;
use crate::experiment::finished::Finished;
use crate::experiment::forecast::Forecast;
use crate::experiment::new_rows::Besides;
use crate::experiment::recalibrated::Recalibrated;
use crate::experiment::training_range::TrainingRange;
use crate::experiment::{Config, run_dir};
use crate::metrics::{ParticleLogProbs, PredictiveMoments, RowUncertainty, argmax, entropy, predictive_moments};
use crate::report::conformal::TargetInterval;

/// Runs the command.
///
/// # Errors
/// The run or the input cannot be read, the backend cannot be opened, or the predictions are not finite or cannot be
/// written.
pub(super) fn predict(typed: Predict) -> Result<(), CliError> {
    let run = Finished::open(&typed.run)?;
    let config = new_rows::on_backend(run.config()?, typed.backend.as_deref())?;
    if let Some(out) = typed.out.as_deref().filter(|out| same_file(out, &typed.input)) {
        let message = "is the file of --input; the predictions need another name";
        return Err(CliError::Usage(format!("--out `{}` {message}", out.display())));
    }
    let out = typed.out.as_deref().unwrap_or(Path::new("-"));
    output::check(out, typed.force)?;
    let asked = client::Asked::of((&run, &config), typed.own.client.as_deref())?;
    let recalibrated = client::recalibrated((&run, &config), asked.predictor, typed.level)?;
    check_columns(&run, &typed.columns)?;
    let range = run.training_range();
    if range.is_none() && typed.columns.contains(&MoreColumn::Outside) {
        return Err(no_range(&run));
    }
    let of_rows = new_rows::config_of_rows(&run, &config, &typed.written, &[])?;
    let (text, notes) = predictions(&run, (&config, &of_rows), (&typed, asked), &recalibrated, range.as_ref())?;
    let is_own = asked.predictor.is_some();
    for note in run.notes_on_predictions(&config, is_own).iter().chain(&recalibrated.notes(typed.raw)).chain(&notes) {
        crate::cli::print_note(note);
    }
    output::write(out, &text, typed.force)
}

/// Checks that the columns which are asked for are of the run's task.
///
/// # Errors
/// One is of the other task, or is named twice.
fn check_columns(run: &Finished, columns: &[MoreColumn]) -> Result<(), CliError> {
    let classifies = run.card.classes.is_some();
    for (at, column) in columns.iter().enumerate() {
        let word = column.word();
        if columns[..at].contains(column) {
            return Err(CliError::Usage(format!("--columns names `{word}` twice")));
        }
        if column.is_of_classes().is_some_and(|of_classes| of_classes != classifies) {
            let (other, own) = match classifies {
                true => ("a regression", "entropy, mutual_information and outside"),
                false => ("a classification", "aleatoric_sd, epistemic_sd and outside"),
            };
            let run = run.path.display();
            return Err(CliError::Usage(format!("--columns `{word}` is of {other}; the run {run} can have {own}")));
        }
    }
    Ok(())
}

/// The error for a run that does not know the features of its training rows.
fn no_range(run: &Finished) -> CliError {
    CliError::Usage(format!(
        "--columns `outside` needs the means and standard deviations, or the ranges, of the training rows' features, and {} \
         has none: train with `data.normalise = \"standard\"` or \"minmax\"",
        run.path.join(run_dir::MODEL).display()
    ))
}

/// Whether two paths lead to the same existing file.
fn same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// The predictions as the text of a file, and notes for the user.
///
/// # Arguments
/// * `of_rows`: the configuration by which the new rows are read
/// * `asked`: what `--client` means
/// * `range`: the usual features, where the run knows them
fn predictions(
    run: &Finished,
    (config, of_rows): (&Config, &Config),
    (typed, asked): (&Predict, client::Asked<'_>),
    recalibrated: &Recalibrated,
    range: Option<&TrainingRange>,
) -> Result<(String, Vec<String>), RunError> {
    let read = run.new_rows(of_rows, &typed.input, Besides::Ids, asked.rows_of)?;
    let NewRows { features, beside, mut notes, .. } = read;
    let rows = features.nrows();
    let outside = range.map(|range| range.outside(&features)).unwrap_or_default();
    notes.extend(range.and_then(|range| range.note(&outside)));
    let more = More { wanted: &typed.columns, outside };
    let client = client::predictor((run, config), asked.predictor, typed.own.data_dir())?;
    let forecaster = run.forecaster(config, client)?;
    let (input, mut text) = (typed.input.display().to_string(), String::new());
    let block = forecaster.block();
    // Without a row there is an error of it.
    for first in (0..rows.max(1)).step_by(block) {
        let of = first..(first + block).min(rows);
        let features = features.slice_axis(Axis(0), Slice::from(of.clone())).to_owned();
        match forecaster.forecast((features, first), &input)? {
            Forecast::Classes { log_probs, names } => {
                let unscaled = log_probs.ensemble();
                let scaled = recalibrated.probabilities(unscaled.clone(), names.len())?;
                let sets = recalibrated.sets_from(first, (&unscaled, &scaled), names.len());
                let given = if typed.raw { unscaled } else { scaled };
                let mut columns = ids(&beside, first);
                columns.extend(of_classes(&given, &names, sets.as_deref()));
                columns.extend(more.of_classes(of.clone(), &given, &log_probs));
                write(&mut text, &columns, of, typed.format);
            }
            Forecast::Real(predictions) => {
                let intervals = recalibrated.intervals(&predictions)?;
                let moments = predictive_moments(&predictions);
                let mut columns = ids(&beside, first);
                columns.extend(of_targets(&moments, intervals.as_deref()));
                columns.extend(more.of_targets(of.clone(), &moments));
                write(&mut text, &columns, of, typed.format);
            }
        }
    }
    Ok((text, notes))
}

/// Appends some rows to the text of a file, which begins with a header where it has one.
fn write(text: &mut String, columns: &[Column<'_>], rows: Range<usize>, format: Format) {
    match format {
        Format::Csv => {
            if rows.start == 0 {
                text.push_str(&columns::csv_header(columns));
            }
            text.push_str(&columns::csv(columns, rows.len()));
        }
        Format::Jsonl => text.push_str(&columns::json_lines(columns, rows.len())),
    }
}

/// The columns of `data.id` from a row on, where there are any.
fn ids(beside: &[Beside], first: usize) -> Vec<Column<'_>> {
    if beside.is_empty() { Vec::new() } else { vec![Column::Ids(beside, first)] }
}

/// The predicted class's name, its probability, and the probabilities `[n, C]` in the order of the classes; where there are
/// sets, the names of the classes in a row's set.
fn of_classes<'a>(probabilities: &'a [f64], names: &'a [String], sets: Option<&[Vec<bool>]>) -> Vec<Column<'a>> {
    let best: Vec<usize> = probabilities.chunks_exact(names.len()).map(argmax).collect();
    let confidence = probabilities.chunks_exact(names.len()).zip(&best).map(|(of, best)| of[*best]).collect();
    let of_set =
        |set: &Vec<bool>| names.iter().zip(set).filter(|(_, is_in)| **is_in).map(|(name, _)| &**name).collect();
    let sets = sets.map(|sets| Column::Lists("set", sets.iter().map(of_set).collect()));
    let predictions = Column::Texts("prediction", best.iter().map(|best| &*names[*best]).collect());
    let columns = [predictions, Column::Numbers("confidence", confidence), Column::Probabilities(names, probabilities)];
    columns.into_iter().chain(sets).collect()
}

/// Mean and standard deviation of the predictive mixture, on the scale of the data; where there are intervals, that of a row.
fn of_targets<'a>(moments: &PredictiveMoments, intervals: Option<&'a [Option<TargetInterval>]>) -> Vec<Column<'a>> {
    let columns = [Column::Numbers("mean", moments.mean.clone()), Column::Numbers("sd", roots(&moments.variance))];
    columns.into_iter().chain(intervals.map(Column::Intervals)).collect()
}

fn roots(variances: &[f64]) -> Vec<f64> {
    variances.iter().map(|variance| variance.sqrt()).collect()
}

/// The columns that are asked for besides.
struct More<'a> {
    wanted: &'a [MoreColumn],
    /// The names of the features of each row that lie outside those of the training rows.
    outside: Vec<Vec<&'a str>>,
}

impl More<'_> {
    /// Those of a classification: the entropy of the probabilities that are given, and the mutual information of the
    /// particles' own predictions.
    fn of_classes(&self, rows: Range<usize>, given: &[f64], log_probs: &ParticleLogProbs) -> Vec<Column<'_>> {
        let column = |wanted: &MoreColumn| match wanted {
            MoreColumn::Entropy => {
                Column::Numbers(wanted.word(), given.chunks_exact(log_probs.classes()).map(entropy).collect())
            }
            MoreColumn::MutualInformation => Column::Numbers(wanted.word(), RowUncertainty::new(log_probs).epistemic),
            _ => self.outside(rows.clone()),
        };
        self.wanted.iter().map(column).collect()
    }

    /// Those of a regression: the two parts of the standard deviation.
    fn of_targets(&self, rows: Range<usize>, moments: &PredictiveMoments) -> Vec<Column<'_>> {
        let column = |wanted: &MoreColumn| match wanted {
            MoreColumn::AleatoricSd => Column::Numbers(wanted.word(), roots(&moments.aleatoric)),
            MoreColumn::EpistemicSd => Column::Numbers(wanted.word(), roots(&moments.epistemic)),
            _ => self.outside(rows.clone()),
        };
        self.wanted.iter().map(column).collect()
    }

    fn outside(&self, rows: Range<usize>) -> Column<'_> {
        Column::Lists(MoreColumn::Outside.word(), self.outside[rows].to_vec())
    }
}
