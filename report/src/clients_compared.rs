//! The predictors of the clients in two runs, client by client: who gains, and by how much.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::metrics::{Evaluation, standard_error};
use crate::site_scores::SiteScores;
use crate::text::number;

/// The predictors of the clients in this run and in another one, on the test rows of each client.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClientsCompared {
    /// The clients that have scores in both runs, the one that loses most in this run first.
    pub clients: Vec<ClientPair>,
    /// The number of clients whose NLL is lower in this run.
    pub better: usize,
    /// The number of clients whose NLL is higher in this run.
    pub worse: usize,
    /// The mean over the clients of [`ClientPair::difference`], nats.
    pub mean_difference: f64,
    /// The standard error of this mean; `None` with one client.
    pub standard_error: Option<f64>,
}

/// The predictors of one client in two runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClientPair {
    /// The name of the client.
    pub name: String,
    /// Its index, from 0.
    pub index: usize,
    /// The number of its test rows.
    pub rows: usize,
    /// The headline numbers in this run.
    pub here: Evaluation,
    /// The headline numbers in the other run.
    pub there: Evaluation,
    /// The NLL in this run less that in the other run, nats: below 0 this run is better.
    pub difference: f64,
}

impl ClientsCompared {
    /// The scores of the same clients in two runs, in any order. The predictor of a client is its own one, where it has one, and
    /// otherwise that of all clients. `None` where no client has scores in both runs, or a client has another number of rows.
    pub fn new(here: &[&SiteScores], there: &[&SiteScores]) -> Option<Self> {
        let by_index: BTreeMap<usize, &SiteScores> = there.iter().map(|other| (other.index, *other)).collect();
        let mut clients = Vec::new();
        for (one, other) in here.iter().filter_map(|one| Some((one, *by_index.get(&one.index)?))) {
            let (a, b) = (predictor(one), predictor(other));
            if a.rows == 0 || b.rows == 0 {
                continue;
            }
            if a.rows != b.rows {
                return None;
            }
            let difference = a.nll? - b.nll?;
            let (name, here, there) = (one.name.clone(), a.clone(), b.clone());
            clients.push(ClientPair { name, index: one.index, rows: a.rows, here, there, difference });
        }
        clients.sort_by(|a, b| b.difference.total_cmp(&a.difference));
        let differences: Vec<f64> = clients.iter().map(|client| client.difference).collect();
        let count = |holds: fn(f64) -> bool| differences.iter().filter(|difference| holds(**difference)).count();
        (!clients.is_empty()).then(|| Self {
            better: count(|difference| difference < 0.0),
            worse: count(|difference| difference > 0.0),
            mean_difference: differences.iter().sum::<f64>() / differences.len() as f64,
            standard_error: standard_error(&differences),
            clients,
        })
    }

    /// The result in words; `other` is the name of the other run.
    pub(crate) fn sentence(&self, other: &str) -> String {
        let Self { clients, better, worse, mean_difference, standard_error } = self;
        let have = if *better == 1 { "has" } else { "have" };
        let mut text = format!(
            "{better} of {} clients {have} a lower NLL here than in {other}, and {worse} a higher one. The \
             mean difference is {} nats",
            clients.len(),
            number(*mean_difference)
        );
        if let Some(error) = standard_error {
            text += &format!(", with a standard error over the clients of {}", number(*error));
            text += match mean_difference.abs() > 2.0 * error {
                _ if clients.len() < FEWEST => "; so few clients do not tell whether that is chance",
                true => ": beyond two standard errors",
                false => ": within two standard errors",
            };
        }
        text + "."
    }
}

/// The fewest clients of which a mean difference is judged, as with seeds.
const FEWEST: usize = 3;

/// The scores of the predictor that a client uses.
fn predictor(client: &SiteScores) -> &Evaluation {
    client.own.as_ref().unwrap_or(&client.evaluation)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(index: usize, rows: usize, nll: f64, own: Option<f64>) -> SiteScores {
        let evaluation = |nll| Evaluation { rows, nll: Some(nll), ..Evaluation::default() };
        SiteScores {
            name: format!("client {index}"),
            index,
            evaluation: evaluation(nll),
            bins: Vec::new(),
            own: own.map(evaluation),
            clusters: None,
            own_clusters: None,
            gap_interval: None,
        }
    }

    fn compared(here: &[SiteScores], there: &[SiteScores]) -> Option<ClientsCompared> {
        ClientsCompared::new(&Vec::from_iter(here), &Vec::from_iter(there))
    }

    #[test]
    fn clients_are_paired_by_index_and_their_own_predictors_count() {
        let here =
            [client(0, 10, 0.5, None), client(1, 20, 0.4, None), client(2, 0, 0.0, None), client(3, 5, 0.2, None)];
        let there =
            [client(3, 5, 9.0, Some(0.3)), client(1, 20, 0.1, None), client(0, 10, 0.8, None), client(2, 7, 1.0, None)];
        let got = compared(&here, &there).unwrap();
        let order: Vec<usize> = got.clients.iter().map(|pair| pair.index).collect();
        assert_eq!((order, got.better, got.worse), (vec![1, 3, 0], 2, 1));
        // The differences are 0.3, -0.1 and -0.3: mean -1/30, standard deviation 0.30551.
        assert!((got.mean_difference + 1.0 / 30.0).abs() < 1e-15);
        assert!((got.standard_error.unwrap() - 0.176_383).abs() < 1e-6);
        let start = "2 of 3 clients have a lower NLL here than in alone, and 1 a higher one.";
        let sentence = got.sentence("alone");
        assert!(sentence.starts_with(start) && sentence.ends_with("within two standard errors."), "{sentence}");
    }

    #[test]
    fn clients_with_other_rows_are_not_compared() {
        let here = [client(0, 10, 0.5, None)];
        assert_eq!(compared(&here, &[client(0, 11, 0.5, None)]), None);
        assert_eq!(compared(&here, &[client(1, 10, 0.5, None)]), None);
        assert_eq!(compared(&here, &[]), None);
    }
}
