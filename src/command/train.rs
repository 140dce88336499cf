//! `fedstein train`: runs the experiment, prints the final table, writes the report.

use std::io::{self, Write};
use std::path::PathBuf;

use super::interrupt::Interruptible;
use super::log::{Log, Logged, outside};
use super::tensorboard::Events;
use super::{headline, personal};
use crate::backend::AnyBackend;
use crate::cli::{CliError, Display, Train};
use crate::error::RunError;
use crate::experiment::artifact::Artifacts;
use crate::experiment::progress::Observer;
use crate::experiment::schema::{Given, places};
use crate::experiment::{Config, Experiment, Outcome, run_dir, run_on, serve_on, write_report};
use crate::remote::Pipes;
use crate::shell;

/// Runs the command.
///
/// # Errors
/// The configuration, the data or the backend is unusable, the run fails, or an output cannot be written.
pub(super) fn train(train: Train) -> Result<(), CliError> {
    let Train { config, resolved, data_dir, sites, out, log, tensorboard, force, resume, display } = train;
    let log = log.map(|path| Log::new((&path, &out), (resume, force), &config.name, &resolved)).transpose()?;
    let (mut shown, lines) = display.observer();
    if let Some(dir) = &tensorboard {
        outside("--tensorboard", dir, &out)?;
        shown = Box::new(Events::new(dir, shown)?);
    }
    if let Some(log) = &log {
        shown = Box::new(Logged { inner: shown, log: log.clone() });
    }
    let observer = Interruptible::new(shown, out.clone(), sites.clone());
    resolved.notes.iter().for_each(|note| observer.note(note));
    let backend = AnyBackend::named(&config.backend)?;
    // The keys of sites are in their own files.
    let given = if sites.is_empty() { resolved.given.clone() } else { Vec::new() };
    let experiment = Experiment::new(config, data_dir);
    let mut artifacts = match resume {
        true => Artifacts::resume(out.clone(), resolved, &mut |note| observer.note(note))?,
        false => Artifacts::new(out.clone(), force, resolved),
    };
    let result = match sites.is_empty() {
        true => run_on(backend, &experiment, &observer, Some(&mut artifacts)),
        false => over_sites(backend, &experiment.config, sites, &observer, &mut artifacts),
    };
    let result = result.map_err(|error| with_advice(error, &observer, &given));
    log.iter().for_each(|log| log.end(result.as_ref().map(|outcome| &outcome.evaluation)));
    let Outcome { evaluation, personal, calibrated, .. } = result?;
    let personal = personal.map(|(results, _)| results);
    let report = write_report(&out, &out.join(run_dir::REPORT)).map_err(|error| match CliError::from(error) {
        CliError::Failed(message) => {
            let again = shell::line(&["fedstein", "report", &shell::path(&out)]);
            CliError::Failed(format!("{message}\nthe run has its results, and no report; to write it: {again}"))
        }
        error => error,
    })?;

    // With --json standard output holds only the JSON lines, and with --quiet nothing is printed.
    if display == Display::Bar {
        let mut stdout = io::stdout().lock();
        let own = personal.map(|results| personal::text(&results.table()));
        // A personalised method is for the clients' personal predictors.
        let can = experiment.config.algorithm.capabilities();
        let own_first = own.is_some() && can.personal;
        // Where a part of the server's particles is untrained, their scores say nothing.
        let global_counts = !can.untrained_part;
        let whose = if own_first { "the server's particles, " } else { "" };
        let which = experiment.config.evaluation.rows.word();
        let of_global = || headline::table(&evaluation, &format!("{whose}{which} rows: {}", evaluation.rows));
        let global = if global_counts { of_global() } else { String::new() };
        let own = own.unwrap_or_default();
        let (first, second) = if own_first { (own, global) } else { (global, own) };
        write!(stdout, "{first}{second}")?;
        if let Some(calibrated) = calibrated {
            calibrated.results.sentences().iter().try_for_each(|sentence| writeln!(stdout, "\n{sentence}"))?;
        }
        if let Some(warning) = report.as_ref().and_then(|files| files.warning.as_ref()) {
            writeln!(stdout, "\n{warning}")?;
        }
        match report {
            Some(files) => writeln!(stdout, "\nreport  {}", headline::link(&files.html.display().to_string()))?,
            None => writeln!(stdout, "\nrun     {}", out.display())?,
        }
    }
    if let Some(error) = lines.and_then(|lines| lines.written().err()) {
        return Err(CliError::Failed(format!("not all lines could be written to standard output: {error}")));
    }
    log.map_or(Ok(()), |log| log.written())
}

/// Converts the error, with the places of the keys that it names, and appends how to resume where that is possible.
fn with_advice(error: RunError, observer: &Interruptible, given: &[Given]) -> CliError {
    observer.finished();
    let is_there = !matches!(error, RunError::Moved(_));
    match (CliError::from(error), observer.resume_advice().filter(|_| is_there)) {
        (CliError::Failed(message), Some(advice)) => CliError::Failed(format!("{message}\n{advice}")),
        (CliError::Interrupted(message), Some(advice)) => CliError::Interrupted(format!("{message}\n{advice}")),
        (CliError::Interrupted(message), None) => CliError::Interrupted(format!(
            "{message}; with checkpoint.enabled = false there is no checkpoint to resume from"
        )),
        (CliError::Usage(message), _) => CliError::Usage(match places(&message, given) {
            Some(at) => format!("{at}: {message}"),
            None => message,
        }),
        (error, _) => error,
    }
}

/// Runs the server over sites, each a process of this program.
fn over_sites(
    backend: AnyBackend,
    config: &Config,
    sites: Vec<PathBuf>,
    observer: &dyn Observer,
    artifacts: &mut Artifacts,
) -> Result<Outcome, RunError> {
    let program = super::program::program();
    let program = program.map_err(|error| RunError::Output(format!("this program has no path: {error}")))?;
    serve_on(backend, config, &Pipes::new(program, sites), observer, Some(artifacts))
}
