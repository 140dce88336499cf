//! The option `--client` of `predict` and `evaluate`: a client's personal predictor in the place of the global particles, and
//! whose rows the file has, where the client is a feature.

use std::path::Path;

use crate::cli::{CliError, print_note};
use crate::error::RunError;
use crate::experiment::Config;
use crate::experiment::client_predictor::{AskedClient, ClientPredictor};
use crate::experiment::finished::Finished;
use crate::experiment::recalibrated::Recalibrated;

/// What `--client` means for a run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Asked<'a> {
    /// The client whose personal predictor predicts; `None` for the global particles.
    pub predictor: Option<&'a str>,
    /// The client whose rows the file has.
    pub rows_of: Option<&'a str>,
}

impl<'a> Asked<'a> {
    /// What the option means: where the client is a feature of a run in which all clients have one predictor, its rows alone.
    ///
    /// # Errors
    /// The client is a feature, and there is none of this name.
    pub fn of((run, config): (&Finished, &Config), client: Option<&'a str>) -> Result<Self, CliError> {
        let Some(name) = client else { return Ok(Self::default()) };
        let column = run.rows_of_client(config, name).map_err(of_option)?;
        if let Some(column) = column.filter(|_| !Finished::has_client_predictors(config)) {
            print_note(&format!(
                "all clients of {} have one predictor, in which the client is a feature: --client says that the rows are of \
                 `{name}` (column `{column}`)",
                run.path.display()
            ));
            return Ok(Self { predictor: None, rows_of: client });
        }
        Ok(Self { predictor: client, rows_of: client })
    }
}

/// What is done to predictions: nothing to those of a client's personal predictor. The temperature was fitted to the published
/// particles, and the guarantee of prediction sets is for scores by the predictor that made the thresholds.
///
/// # Errors
/// The run does not keep the states of its clients, a level is asked for of a client's sets, or the error of
/// [`Finished::recalibrated`].
pub(super) fn recalibrated(
    (run, config): (&Finished, &Config),
    client: Option<&str>,
    level: Option<f64>,
) -> Result<Recalibrated, CliError> {
    if client.is_none() {
        return Ok(run.recalibrated(level)?);
    }
    run.check_clients(config).map_err(of_option)?;
    if let Some(level) = level {
        return Err(CliError::Usage(format!(
            "--level {level}: prediction sets are learned from the predictions of the global particles and hold for these, \
             not for a client's personal predictor; leave --level out, or --client"
        )));
    }
    if run.card.calibration.is_some() {
        print_note(
            "the run's temperature and prediction sets are those of the global particles; a client's personal predictor has \
             neither",
        );
    }
    Ok(Recalibrated::default())
}

/// The predictor of the client that is asked for, if one is.
///
/// # Errors
/// As [`Finished::client_predictor`].
pub(super) fn predictor(
    (run, config): (&Finished, &Config),
    client: Option<&str>,
    data_dir: &Path,
) -> Result<Option<ClientPredictor>, RunError> {
    let Some(name) = client else { return Ok(None) };
    let predictor = run.client_predictor(config, AskedClient { name, data_dir }).map_err(of_option)?;
    predictor.note().into_iter().for_each(print_note);
    Ok(Some(predictor))
}

/// The error of a wrong request, with the option that made it.
fn of_option(error: RunError) -> RunError {
    match error {
        RunError::Config(message) => RunError::Config(format!("--client: {message}")),
        other => other,
    }
}
