//! The personalised results of a run: every client's personal predictor on that client's own test rows, round by round.
//!
//! There are two results: the last round's, and that of the round with the lowest pooled *validation* NLL. The test
//! rows are not used for any choice.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::algorithm::Capabilities;
use crate::backend::Session;
use crate::checkpoint::{CheckpointError, State};
use crate::datasets::{Dataset, Normalisation, Partition, Targets};
use crate::federation::client_evaluator::ClientEvaluator;
use crate::federation::held_out::{CalibrationRows, HeldOut};
use crate::federation::prior_correction::PriorCorrection;
use crate::metrics::{ClientScores, Evaluation, Metric, PersonalColumn, PersonalScores, View};
use crate::models::Model;
use crate::protocol::ClientId;
use crate::report::{ClientNames, PersonalRow, PersonalTable, csv};
use crate::rows::Table;

use super::config::{Config, StopMetric};
use super::evaluate::{EvaluatorConfig, target_scale};
use super::round_evaluator::OwnScores;

/// Columns of `rounds.csv`; undefined ones are `None`.
pub(super) type Columns = Vec<(&'static str, Option<f64>)>;

/// That the scores and predictions of the published parameters are not those of the method, whose clients complete them;
/// `None` for a method that publishes what it trains.
pub(super) fn note_on_published(config: &Config, can: Capabilities) -> Option<String> {
    let name = config.algorithm.name();
    let at_sites = config.rows_are_at_sites();
    let remedy = match (config.evaluation.personal, at_sites) {
        (true, false) => {
            "the clients' personal predictors are scored in personal_* and clients.csv, and predict with --client"
        }
        (true, true) => "the clients' personal predictors are scored in personal_*, and are in the sites' own results",
        (false, _) => "set `evaluation.personal` = true for the scores of the clients' personal predictors",
    };
    can.untrained_part.then(|| {
        format!(
            "algorithm kind `{name}` publishes parameters of which a part stays untrained, because each client has its own: \
             accuracy, NLL, report and predictions of these parameters say nothing of the method; {remedy}"
        )
    })
}

/// Why a report has no verdict on predictions with the published parameters, in a sentence; `None` for a method that
/// publishes what it trains.
pub(super) fn not_judged(config: &Config, can: Capabilities) -> Option<String> {
    can.untrained_part.then(|| {
        format!(
            "Algorithm kind `{}` publishes parameters of which a part stays untrained, because each client has its own: the \
             numbers of these parameters say nothing of the method.",
            config.algorithm.name()
        )
    })
}

/// The column of `rounds.csv` with the number of clients that the personalised metrics cover.
pub const SCORED_CLIENTS: &str = "scored_clients";

/// The metrics of the validation rows that are columns of `rounds.csv`, for either task.
const VALIDATION: [StopMetric; 3] = [StopMetric::Accuracy, StopMetric::Rmse, StopMetric::Nll];

/// The personalised metrics after one round, by the names of their columns in `rounds.csv`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PersonalPoint {
    /// The round, from 1.
    pub round: usize,
    /// The values by column; undefined ones are `None`.
    pub numbers: BTreeMap<String, Option<f64>>,
}

/// The final metrics of the clients' personal predictors.
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
        let columns = Metric::in_view(View::Personal).into_iter().flat_map(|metric| metric.personal);
        let shown = columns.filter(|column| !column.name.is_empty());
        let scored = self.last.scored().filter(|scored| *scored < self.clients);
        PersonalTable {
            last_round: self.last.round,
            best_round: best.map(|best| best.round),
            scored: scored.map(|scored| (scored, self.clients)),
            rows: shown.filter_map(row).collect(),
        }
    }
}

/// The metrics of `clients.csv`, by their keys.
const OF_CLIENTS: [&str; 6] = ["accuracy", "nll", "ece", "mce", "brier", "rmse"];

/// One line per client: its name where clients have names, the number of its test rows, the number of rounds in which its reply
/// was used, and the metrics of its personal predictor on these rows; blank where undefined.
pub(super) fn clients_csv(scores: &PersonalScores, visits: &[usize], names: &ClientNames) -> String {
    let names = names.as_slice();
    let line = |(client, scores): (usize, &ClientScores)| {
        let of = Evaluation::of_sums(scores);
        let value = |key: &str| Metric::of_key(key).and_then(|metric| of.value(metric));
        let cells = OF_CLIENTS.map(|key| value(key).map_or_else(String::new, |value| value.to_string()));
        let name = names.get(client).map(|name| format!(",{}", csv::text_cell(name))).unwrap_or_default();
        format!("{client}{name},{},{},{}\n", scores.rows(), visits[client], cells.join(","))
    };
    let lines: String = scores.clients().iter().enumerate().map(line).collect();
    let name = if names.is_empty() { "" } else { ",name" };
    format!("client{name},rows,visits,{}\n{lines}", OF_CLIENTS.join(","))
}

/// The held-out rows of each client: what [`ClientEvaluator`] needs besides a model.
pub(super) struct HeldOutRows {
    train: Rows,
    test: Rows,
}

/// A table, with the targets of its rows in the units of the data, and their groups.
type Rows = (Table, Targets, Option<Vec<usize>>);

impl HeldOutRows {
    /// The training rows, and the test rows.
    pub fn new(train: Rows, test: Dataset, normalisation: &Normalisation) -> Self {
        let (targets, groups) = (test.targets.clone(), test.groups.clone());
        Self { train, test: (Table::new(test, normalisation), targets, groups) }
    }

    /// The evaluator of a partition's clients, with the calibration rows of each, and what corrects their predictions.
    pub fn evaluator(
        self,
        partition: &Partition,
        (calibration, corrections): (Vec<Vec<usize>>, BTreeMap<ClientId, PriorCorrection>),
        model: Arc<dyn Model>,
        session: &Session,
        normalisation: &Normalisation,
        config: EvaluatorConfig,
    ) -> ClientEvaluator {
        let held = |(table, targets, groups), rows| HeldOut { table, targets, groups, rows };
        let clients = 0..partition.clients().len();
        let test: Vec<Vec<usize>> = clients.clone().map(|client| partition.test(client).to_vec()).collect();
        let validation: Vec<Vec<usize>> = clients.map(|client| partition.validation(client).to_vec()).collect();
        ClientEvaluator {
            model,
            session: session.clone(),
            test: held(self.test, test),
            calibration: CalibrationRows::new(held(self.train.clone(), calibration)),
            validation: held(self.train, validation),
            corrections,
            scale: target_scale(normalisation),
            chunk: config.chunk,
            bins: config.bins,
        }
    }
}

/// Records the scores of the clients' personal predictors, and the best round.
#[derive(Debug)]
pub(super) struct Personal {
    /// Number of clients K.
    clients: usize,
    best: Option<(f64, PersonalPoint)>,
    latest: Option<(PersonalPoint, PersonalScores)>,
}

impl Personal {
    /// A record for K clients.
    pub fn new(clients: usize) -> Self {
        Self { clients, best: None, latest: None }
    }

    /// Records the scores of a round, which `scored` clients have sent. Returns their columns.
    pub fn record(&mut self, round: usize, own: OwnScores, scored: usize) -> Columns {
        let OwnScores { test, validation } = own;
        let (validation, nll) = (Evaluation::of_sums(validation.pooled()), validation.pooled().nll());
        let mut columns = test.columns();
        columns.extend(VALIDATION.map(|metric| (metric.column(), metric.value(&validation))));
        let numbers = columns.iter().copied().chain([(SCORED_CLIENTS, Some(scored as f64))]);
        let numbers = numbers.map(|(name, value)| (name.to_owned(), value)).collect();
        let point = PersonalPoint { round, numbers };
        if let Some(nll) = nll
            && self.best.as_ref().is_none_or(|(lowest, best)| is_better((scored, nll), (best.scored(), *lowest)))
        {
            self.best = Some((nll, point.clone()));
        }
        self.latest = Some((point, test));
        columns
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
        PersonalScores::column_names().chain(VALIDATION.map(StopMetric::column)).map(|name| (name, None)).collect()
    }

    /// The final results, and the scores of the last round by client; `None` where no round was scored.
    pub fn finish(self) -> Option<(PersonalResults, PersonalScores)> {
        let (last, scores) = self.latest?;
        let best_validation = self.best.map(|(_, point)| point);
        Some((PersonalResults { last, best_validation, clients: self.clients }, scores))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_round_is_one_with_scores_of_the_most_clients() {
        assert!(is_better((7, 0.4), (Some(7), 0.5)) && !is_better((7, 0.5), (Some(7), 0.5)));
        assert!(is_better((8, 0.9), (Some(7), 0.5)) && !is_better((6, 0.1), (Some(7), 0.5)));
    }
}
