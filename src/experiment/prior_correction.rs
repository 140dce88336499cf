//! What corrects the clients' personal predictors to their frequencies of classes: `evaluation.prior_correction`.

use std::collections::BTreeMap;

use super::config::Config;
use crate::algorithm::Capabilities;
use crate::error::RunError;
use crate::federation::prior_correction::PriorCorrection;
use crate::protocol::ClientId;
use crate::site::class_prior::{ClassPrior, dependence};

/// The note on a run whose clients' predictions are corrected.
const CORRECTED: &str = "evaluation.prior_correction: the scores of the clients' personal predictors (personal_*, clients.csv) and predictions \
                         for one client are with the frequencies of that client's own classes";
/// The dependence of classes on clients from which on a run without the correction has a note.
const NOTED: f64 = 0.02;

/// How frequent the classes are at all clients, and a note; `None` where clients' predictions are not corrected.
///
/// # Arguments
/// * `counts`: the number of training rows of each client and class, `[K][C]`; an error where they are not known
/// * `weights`: how often a row of each class counts, `[C]`; `None` for once
///
/// # Errors
/// The counts are asked for, and not known.
pub(super) fn class_prior(
    config: &Config,
    counts: impl FnOnce() -> Result<Vec<Vec<usize>>, RunError>,
    weights: Option<&[f64]>,
) -> Result<Option<(ClassPrior, String)>, RunError> {
    match config.evaluation.prior_correction {
        true => Ok(Some((ClassPrior::of_clients(&counts()?, weights), CORRECTED.into()))),
        false => Ok(None),
    }
}

/// The correction of each client; empty where none is asked for.
///
/// # Arguments
/// * `counts`: the number of training rows of each client and class
/// * `prior`: that of [`class_prior`]
pub(super) fn of_clients(
    counts: impl IntoIterator<Item = (ClientId, Vec<usize>)>,
    prior: Option<&ClassPrior>,
) -> BTreeMap<ClientId, PriorCorrection> {
    let Some(prior) = prior else { return BTreeMap::new() };
    counts.into_iter().map(|(client, rows)| (client, PriorCorrection::new(&rows, prior))).collect()
}

/// The note on a run that scores its clients' personal predictors, which could be corrected and are not, although the classes'
/// frequencies differ.
///
/// # Arguments
/// * `counts`: the number of training rows of each client and class, `[K][C]`
/// * `client_is_feature`: whether the model knows of each row whose it is, and with it that client's frequencies
pub(super) fn uncorrected(
    config: &Config,
    can: Capabilities,
    counts: &[Vec<usize>],
    client_is_feature: bool,
) -> Option<String> {
    let shared = config.evaluation.personal && !can.personal;
    if !shared || config.evaluation.prior_correction || client_is_feature {
        return None;
    }
    let dependence = dependence(counts);
    (dependence >= NOTED).then(|| {
        format!(
            "clients differ in how frequent their classes are (Theil's U of class given client: {dependence:.2}), and the clients' own \
             predictors (personal_*, clients.csv) have the frequencies of all rows; evaluation.prior_correction = true predicts \
             with each client's own"
        )
    })
}
