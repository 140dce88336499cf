//! The personalised results of a run: every client's own predictor on that client's own test rows, round by round.
//!
//! There are two results: the last round's, and that of the round with the lowest pooled *validation* NLL. The test
//! rows are not used for any choice.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::backend::{Backend, Session};
use crate::checkpoint::{CheckpointError, State};
use crate::datasets::{Dataset, Normalisation, Partition, Targets};
use crate::error::RunError;
use crate::federation::client_evaluator::{ClientEvaluator, HeldOut, TEST_SCORES, VALIDATION_SCORES};
use crate::federation::event::{Event, EventKind};
use crate::federation::fault_policy::FaultPolicy;
use crate::federation::fleet::Fleet;
use crate::federation::inquiry::{Scores, ask_for_scores};
use crate::metrics::{ClientScores, Metric, PersonalColumn, PersonalScores, Scale, View};
use crate::models::Model;
use crate::protocol::{ClientId, Reply, RequestKind, ServerHalf};
use crate::report::{PersonalRow, PersonalTable};
use crate::rows::Table;

use super::evaluate::EvaluatorConfig;

/// Columns of `rounds.csv`; undefined ones are `None`.
type Columns = Vec<(&'static str, Option<f64>)>;

/// The column of `rounds.csv` with the number of clients that the personalised metrics cover.
pub const SCORED_CLIENTS: &str = "scored_clients";

/// The personalised metrics after one round, by the names of their columns in `rounds.csv`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PersonalPoint {
    /// The round, from 1.
    pub round: usize,
    /// The values by column; undefined ones are `None`.
    pub numbers: BTreeMap<String, Option<f64>>,
}

/// The final metrics of the clients' own predictors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PersonalResults {
    /// The metrics after the last round.
    pub last: PersonalPoint,
    /// The metrics after the round with the lowest pooled validation NLL among those that scored the most clients;
    /// `None` where no validation rows were held out.
    pub best_validation: Option<PersonalPoint>,
    /// Number of clients K; 0 in a file written before this field existed.
    #[serde(default)]
    pub clients: usize,
}

impl PersonalPoint {
    /// The number of clients that the metrics cover, where it is known.
    pub fn scored(&self) -> Option<usize> {
        self.numbers.get(SCORED_CLIENTS).copied().flatten().map(|count| count as usize)
    }
}

impl PersonalResults {
    /// The metrics that have a value, for a report: the last round beside the round that the validation rows choose.
    pub fn table(&self) -> PersonalTable {
        let value = |point: &PersonalPoint, name: &str| point.numbers.get(name).copied().flatten();
        let best = self.best_validation.as_ref();
        let row = |column: &PersonalColumn| {
            let last = value(&self.last, column.key)?;
            let best = best.and_then(|best| value(best, column.key));
            Some(PersonalRow { name: column.name.to_owned(), about: column.note.to_owned(), last, best })
        };
        let columns = Metric::in_view(View::Personal).into_iter().filter_map(|metric| metric.personal);
        let shown = columns.flat_map(|metric| metric.columns).filter(|column| !column.name.is_empty());
        let scored = self.last.scored().filter(|scored| *scored < self.clients);
        PersonalTable {
            last_round: self.last.round,
            best_round: best.map(|best| best.round),
            scored: scored.map(|scored| (scored, self.clients)),
            rows: shown.filter_map(row).collect(),
        }
    }
}

/// The held-out rows of each client: what [`ClientEvaluator`] needs besides a model.
pub(super) struct HeldOutRows {
    train: (Table, Targets),
    test: (Table, Targets),
}

impl HeldOutRows {
    /// Both tables, with their targets in the units of the data.
    pub fn new(train: &Table, train_targets: Targets, test: Dataset, normalisation: &Normalisation) -> Self {
        let test_targets = test.targets.clone();
        Self { train: (train.clone(), train_targets), test: (Table::new(test, normalisation), test_targets) }
    }

    /// The evaluator of a partition's clients.
    pub fn evaluator<B: Backend>(
        self,
        partition: &Partition,
        model: Arc<dyn Model>,
        session: &Session<B>,
        normalisation: &Normalisation,
        config: EvaluatorConfig,
    ) -> ClientEvaluator<B> {
        let held = |(table, targets), rows| HeldOut { table, targets, rows };
        let clients = 0..partition.clients().len();
        let test: Vec<Vec<usize>> = clients.clone().map(|client| partition.test(client).to_vec()).collect();
        let validation: Vec<Vec<usize>> = clients.map(|client| partition.validation(client).to_vec()).collect();
        ClientEvaluator {
            model,
            session: session.clone(),
            test: held(self.test, test),
            validation: held(self.train, validation),
            scale: normalisation.target.as_ref().map_or(Scale::IDENTITY, |t| Scale { mean: t.mean, sd: t.sd }),
            chunk: config.chunk,
            bins: config.bins,
        }
    }
}

/// Requests the clients' scores, and records the best round.
#[derive(Debug)]
pub(super) struct Personal {
    clients: Vec<ClientId>,
    /// Number of bins of confidence.
    bins: usize,
    best: Option<(f64, PersonalPoint)>,
    latest: Option<(PersonalPoint, PersonalScores)>,
}

impl Personal {
    /// A record for clients 0..`clients`, whose scores have this many bins of confidence.
    pub fn new(clients: usize, bins: usize) -> Self {
        Self { clients: (0..clients).collect(), bins, best: None, latest: None }
    }

    /// The columns of this round, over the clients that answered, and the events of the requests.
    ///
    /// # Errors
    /// Anything fails but a client.
    pub fn score<B: Backend>(
        &mut self,
        round: usize,
        fleet: &dyn Fleet,
        policy: &FaultPolicy,
        server: &dyn ServerHalf<B>,
    ) -> Result<(Columns, Vec<Event>), RunError> {
        let Scores { replies, mut events } = ask_for_scores(fleet, policy, server, round, &self.clients)?;
        let mut scored = 0;
        let (mut test, mut validation) = (Vec::new(), Vec::new());
        for (client, reply) in self.clients.iter().zip(&replies) {
            let of = |reply, name| sums(reply, name, self.bins);
            let sums = reply.as_ref().map(|reply| Ok((of(reply, TEST_SCORES)?, of(reply, VALIDATION_SCORES)?)));
            let sums = sums.transpose().unwrap_or_else(|reason: String| {
                let refused = Event::new(round, 1, *client, EventKind::Refused).of_request(RequestKind::Scores);
                events.push(refused.with_detail(reason));
                None
            });
            scored += usize::from(sums.is_some());
            // An absent client adds no rows to any sum.
            let (of_test, of_validation) =
                sums.unwrap_or_else(|| (ClientScores::new(self.bins), ClientScores::new(self.bins)));
            test.push(of_test);
            validation.push(of_validation);
        }
        let (test, validation) = (together(test)?, together(validation)?);
        let mut columns = test.columns();
        let validation = validation.pooled();
        let (accuracy, nll) = (validation.accuracy(), validation.nll());
        columns.extend([("validation_accuracy", accuracy), ("validation_nll", nll)]);
        columns.push((SCORED_CLIENTS, Some(scored as f64)));
        let numbers = columns.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        let point = PersonalPoint { round, numbers };
        if let Some(nll) = nll
            && self.best.as_ref().is_none_or(|(lowest, best)| is_better((scored, nll), (best.scored(), *lowest)))
        {
            self.best = Some((nll, point.clone()));
        }
        self.latest = Some((point, test));
        Ok((columns, events))
    }

    /// The state with the best round so far. The latest round is not in it, because it can be scored again.
    pub fn save(&self) -> State {
        let Some((nll, point)) = &self.best else { return State::default() };
        let numbers: Vec<Option<f64>> = point.numbers.values().copied().collect();
        State::default()
            .with_count("round", point.round)
            .with_numbers("nll", [*nll])
            .with_words("columns", point.numbers.keys().cloned().collect::<Vec<_>>().join(","))
            .with_optional("numbers", &numbers)
    }

    /// Restores the state of [`Self::save`].
    ///
    /// # Errors
    /// The state is incomplete.
    pub fn restore(&mut self, state: &State) -> Result<(), CheckpointError> {
        if state.is_empty() {
            return Ok(());
        }
        let names = state.words("columns")?.split(',').map(str::to_owned);
        let point =
            PersonalPoint { round: state.count("round")?, numbers: names.zip(state.optional("numbers")?).collect() };
        self.best = Some((state.number("nll")?, point));
        Ok(())
    }

    /// The blank columns of a round that is not scored.
    pub fn blank() -> Columns {
        let empty = PersonalScores::new(vec![ClientScores::new(1)]).expect("one client");
        let others = ["validation_accuracy", "validation_nll", SCORED_CLIENTS];
        let names = empty.columns().into_iter().map(|(name, _)| name).chain(others);
        names.map(|name| (name, None)).collect()
    }

    /// The final results, and the scores of the last round by client; `None` where no round was scored.
    pub fn finish(self) -> Option<(PersonalResults, PersonalScores)> {
        let (last, scores) = self.latest?;
        let (best_validation, clients) = (self.best.map(|(_, point)| point), self.clients.len());
        Some((PersonalResults { last, best_validation, clients }, scores))
    }
}

/// Whether a round is better than the best so far, given the numbers of clients scored and the NLLs of their validation
/// rows.
///
/// NLLs over different sets of clients cannot be compared, so a round with more clients takes precedence.
fn is_better((scored, nll): (usize, f64), (best_scored, lowest): (Option<usize>, f64)) -> bool {
    match scored.cmp(&best_scored.unwrap_or(0)) {
        Ordering::Greater => true,
        Ordering::Equal => nll < lowest,
        Ordering::Less => false,
    }
}

/// The sums of this name in a reply.
fn sums(reply: &Reply, name: &str, bins: usize) -> Result<ClientScores, String> {
    let sums =
        ClientScores::from_values(&reply.message.array(name).map_err(|error| error.to_string())?.values.to_f64());
    // Sums with another number of bins cannot be added.
    let sums = sums.filter(|sums| sums.bins().len() == bins);
    sums.ok_or_else(|| format!("the reply's \"{name}\" are not sums of scores with {bins} bins"))
}

fn together(clients: Vec<ClientScores>) -> Result<PersonalScores, RunError> {
    PersonalScores::new(clients).ok_or_else(|| RunError::Config("there are no clients to be scored".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_round_is_one_with_scores_of_the_most_clients() {
        assert!(is_better((7, 0.4), (Some(7), 0.5)) && !is_better((7, 0.5), (Some(7), 0.5)));
        assert!(is_better((8, 0.9), (Some(7), 0.5)) && !is_better((6, 0.1), (Some(7), 0.5)));
    }
}
