//! What corrects the clients' own predictors to their frequencies of classes: `evaluation.prior_correction`.

use std::collections::BTreeMap;

use super::config::Config;
use crate::error::RunError;
use crate::federation::prior_correction::PriorCorrection;
use crate::protocol::ClientId;

/// The note on a run whose clients' predictions are corrected.
const CORRECTED: &str = "evaluation.prior_correction: the scores of the clients' own predictors (personal_*, clients.csv) and predictions \
                         for one client are with the frequencies of that client's own classes";

/// The frequencies of the classes that a model of all clients' rows learns, `[C]`, and a note; `None` where none are
/// corrected.
///
/// # Arguments
/// * `counts`: the number of training rows of each client and class, `[K][C]`; an error where they are not known
/// * `weights`: how often a row of each class counts, `[C]`; `None` for once
///
/// # Errors
/// The counts are asked for, and not known.
pub(super) fn learned(
    config: &Config,
    counts: impl FnOnce() -> Result<Vec<Vec<usize>>, RunError>,
    weights: Option<&[f64]>,
) -> Result<Option<(Vec<f64>, String)>, RunError> {
    match config.evaluation.prior_correction {
        true => Ok(Some((frequencies(&counts()?, weights), CORRECTED.into()))),
        false => Ok(None),
    }
}

/// The share of each class among the rows of all clients, `[C]`, where a row of class c counts `weights[c]` times.
fn frequencies(counts: &[Vec<usize>], weights: Option<&[f64]>) -> Vec<f64> {
    let classes = counts.first().map_or(0, Vec::len);
    let weight = |class: usize| weights.map_or(1.0, |weights| weights[class]);
    let rows = |class: usize| counts.iter().map(|client| client[class]).sum::<usize>() as f64 * weight(class);
    let rows: Vec<f64> = (0..classes).map(rows).collect();
    let all: f64 = rows.iter().sum();
    rows.into_iter().map(|rows| rows / all).collect()
}

/// The correction of each client; empty where none is asked for.
///
/// # Arguments
/// * `counts`: the number of training rows of each client and class
/// * `learned`: the frequencies of [`learned`]
pub(super) fn of_clients(
    counts: impl IntoIterator<Item = (ClientId, Vec<usize>)>,
    learned: Option<&[f64]>,
) -> BTreeMap<ClientId, PriorCorrection> {
    let Some(learned) = learned else { return BTreeMap::new() };
    counts.into_iter().map(|(client, rows)| (client, PriorCorrection::new(&rows, learned))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_are_those_of_the_likelihood() {
        let counts = [vec![1, 2, 0], vec![3, 0, 2]];
        assert_eq!(frequencies(&counts, None), [0.5, 0.25, 0.25]);
        // Balanced weights of these counts: 8/(3·4), 8/(3·2), 8/(3·2).
        let equal = frequencies(&counts, Some(&[2.0 / 3.0, 4.0 / 3.0, 4.0 / 3.0]));
        assert!(equal.iter().all(|share| (share - 1.0 / 3.0).abs() < 1e-15), "{equal:?}");
    }
}
