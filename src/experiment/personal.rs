//! The personalised side of a run: every client's own predictor on that client's own test rows, round by round.
//!
//! Two results come out: those of the last round, and those of the round whose pooled *validation* NLL was lowest. The
//! test rows choose nothing.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::backend::{Backend, Session};
use crate::checkpoint::{CheckpointError, State};
use crate::datasets::{Dataset, Normalisation, Partition, Targets};
use crate::error::RunError;
use crate::federation::event::{Event, Happening};
use crate::federation::exam::{Exam, HeldOut, TEST_SCORES, VALIDATION_SCORES};
use crate::federation::fleet::Fleet;
use crate::federation::guard::Guard;
use crate::federation::inquiry::{Scores, ask_for_scores};
use crate::metrics::{ClientScores, PersonalScores, Scale};
use crate::models::Model;
use crate::protocol::{ClientId, Reply, RequestKind, ServerHalf};
use crate::rows::Table;

use super::evaluate::EvaluatorConfig;

/// Columns of `rounds.csv`; undefined ones are `None`.
type Columns = Vec<(&'static str, Option<f64>)>;

/// The column of `rounds.csv` that says how many clients the personal numbers are of.
pub const SCORED_CLIENTS: &str = "scored_clients";

/// The personalised numbers after one round, by the names of their columns in `rounds.csv`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PersonalPoint {
    /// The round, from 1.
    pub round: usize,
    /// Columns; undefined ones are `None`.
    pub numbers: BTreeMap<String, Option<f64>>,
}

/// What the clients' own predictors came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PersonalResults {
    /// After the last round.
    pub last: PersonalPoint,
    /// After the round with the lowest pooled validation NLL, among those with scores of the most clients; `None` where no validation rows were held out.
    pub best_validation: Option<PersonalPoint>,
    /// Number of clients K; 0 in a file from before it was kept.
    #[serde(default)]
    pub clients: usize,
}

impl PersonalPoint {
    /// How many clients its numbers are of, where that is known.
    pub fn scored(&self) -> Option<usize> {
        self.numbers.get(SCORED_CLIENTS).copied().flatten().map(|count| count as usize)
    }
}

/// Rows held out, by client: what [`Exam`] needs beside a model.
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

    /// The exam of a partition's clients.
    pub fn exam<B: Backend>(
        self,
        partition: &Partition,
        model: Arc<dyn Model>,
        session: &Session<B>,
        normalisation: &Normalisation,
        config: EvaluatorConfig,
    ) -> Exam<B> {
        let held = |(table, targets), rows| HeldOut { table, targets, rows };
        let clients = 0..partition.clients().len();
        let test: Vec<Vec<usize>> = clients.clone().map(|client| partition.test(client).to_vec()).collect();
        let validation: Vec<Vec<usize>> = clients.map(|client| partition.validation(client).to_vec()).collect();
        Exam {
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

/// Asks the clients for their scores, and remembers the best round.
#[derive(Debug)]
pub(super) struct Personal {
    clients: Vec<ClientId>,
    /// Bins of confidence.
    bins: usize,
    best: Option<(f64, PersonalPoint)>,
    latest: Option<(PersonalPoint, PersonalScores)>,
}

impl Personal {
    /// Of clients 0..`clients`, whose scores have this many bins of confidence.
    pub fn new(clients: usize, bins: usize) -> Self {
        Self { clients: (0..clients).collect(), bins, best: None, latest: None }
    }

    /// The columns of this round, over the clients that answered, and what happened to the requests.
    pub fn score<B: Backend>(
        &mut self,
        round: usize,
        fleet: &dyn Fleet,
        guard: &Guard,
        server: &dyn ServerHalf<B>,
    ) -> Result<(Columns, Vec<Event>), RunError> {
        let Scores { replies, mut events } = ask_for_scores(fleet, guard, server, round, &self.clients)?;
        let mut scored = 0;
        let (mut test, mut validation) = (Vec::new(), Vec::new());
        for (client, reply) in self.clients.iter().zip(&replies) {
            let of = |reply, name| sums(reply, name, self.bins);
            let sums = reply.as_ref().map(|reply| Ok((of(reply, TEST_SCORES)?, of(reply, VALIDATION_SCORES)?)));
            let sums = sums.transpose().unwrap_or_else(|reason: String| {
                let refused = Event::new(round, 1, *client, Happening::Refused).on(RequestKind::Scores);
                events.push(refused.because(reason));
                None
            });
            scored += usize::from(sums.is_some());
            // An absent client has no rows in any sum.
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

    /// The best round so far. The latest can be scored again.
    pub fn save(&self) -> State {
        let Some((nll, point)) = &self.best else { return State::default() };
        let numbers: Vec<Option<f64>> = point.numbers.values().copied().collect();
        State::default()
            .with_count("round", point.round)
            .with_numbers("nll", [*nll])
            .with_words("columns", point.numbers.keys().cloned().collect::<Vec<_>>().join(","))
            .with_optional("numbers", &numbers)
    }

    /// Takes over what [`Self::save`] has returned.
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

    /// The columns of a round that is not scored.
    pub fn blank() -> Columns {
        let nobody = PersonalScores::new(vec![ClientScores::new(1)]).expect("one client");
        let others = ["validation_accuracy", "validation_nll", SCORED_CLIENTS];
        let names = nobody.columns().into_iter().map(|(name, _)| name).chain(others);
        names.map(|name| (name, None)).collect()
    }

    /// What came of it, and the scores of the last round by client.
    pub fn finish(self) -> Option<(PersonalResults, PersonalScores)> {
        let (last, scores) = self.latest?;
        let (best_validation, clients) = (self.best.map(|(_, point)| point), self.clients.len());
        Some((PersonalResults { last, best_validation, clients }, scores))
    }
}

/// Whether a round is better than the best so far: numbers of clients scored, and NLLs of their validation rows.
///
/// NLLs of different clients do not compare: a round with more of them goes first.
fn is_better((scored, nll): (usize, f64), (best_scored, lowest): (Option<usize>, f64)) -> bool {
    match scored.cmp(&best_scored.unwrap_or(0)) {
        Ordering::Greater => true,
        Ordering::Equal => nll < lowest,
        Ordering::Less => false,
    }
}

/// The sums of that name in a reply.
fn sums(reply: &Reply, name: &str, bins: usize) -> Result<ClientScores, String> {
    let sums = ClientScores::from_values(&reply.message.array(name)?.values.to_f64());
    // Bins of another number cannot be added up.
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
