//! The end of a run before its last round: budgets of traffic and time, and validation rows on which nothing becomes better.

use crate::array::Array;
use crate::backend::Session;
use crate::checkpoint::{CheckpointError, State};
use crate::error::RunError;
use crate::metrics::{ClientScores, Evaluation, PersonalScores};
use crate::particles::Particles;
use crate::protocol::{Posterior, ServerHalf};

use super::config::{StopConfig, StopMetric};
use super::evaluate::Predicted;
use super::personal::Columns;
use super::round_evaluator::{EvaluatedRound, Measured};

/// The clients' last scores in a state.
const SCORES: &str = "scores";

/// Bytes of a MiB.
const MIB: f64 = (1u32 << 20) as f64;

/// The best round so far.
#[derive(Clone, Debug)]
pub(super) struct Best {
    /// The round, from 1.
    pub round: usize,
    /// The metric of its validation rows.
    pub value: f64,
    /// The global particles after it, `[N, d]`.
    pub particles: Array,
    /// The posterior after it.
    pub posterior: Posterior,
}

/// What the validation rows say after a round.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The metric by which a round is better.
    pub value: Option<f64>,
    /// Whether the value is over rows of more clients than the values before, with which it cannot be compared.
    pub has_more_clients: bool,
    /// The columns of `rounds.csv`.
    pub columns: Columns,
}

/// Watches over the end of a run.
#[derive(Debug)]
pub(super) struct Stop {
    config: StopConfig,
    /// Whether a value of the validation rows decides about anything.
    is_watching: bool,
    /// Whether the validation rows have classes, where they are scored beside the rows of all metrics.
    apart: Option<bool>,
    /// The last scores of each client that has the validation rows.
    last: LastScores,
    /// The first round that may be the best: before it, some clients have had no turn.
    first: usize,
    best: Option<Best>,
    /// Why the run has ended.
    over: Option<String>,
}

/// The last scores that each client has sent. A client that does not answer counts with these, so that the values of rounds
/// are over the same rows once each client has answered.
#[derive(Debug, Default)]
struct LastScores(Vec<ClientScores>);

impl LastScores {
    /// Takes the scores of a round in the place of earlier ones, unless they are of no row, and returns the metrics of all.
    fn add(&mut self, scores: &PersonalScores) -> Evaluation {
        match self.0.len() == scores.clients().len() {
            true => {
                let sent = self.0.iter_mut().zip(scores.clients()).filter(|(_, scores)| scores.rows() > 0);
                sent.for_each(|(last, scores)| last.clone_from(scores));
            }
            false => self.0 = scores.clients().to_vec(),
        }
        let all = PersonalScores::new(self.0.clone());
        Evaluation::of_sums(all.as_ref().unwrap_or(scores).pooled())
    }

    /// The number of clients with scores of some rows.
    fn clients(&self) -> usize {
        self.0.iter().filter(|scores| scores.rows() > 0).count()
    }

    /// The sums of all clients, one after the other, each behind its number of values.
    fn to_values(&self) -> Vec<f64> {
        let of_client = |scores: &ClientScores| {
            let values = scores.to_values();
            [&[values.len() as f64], &values[..]].concat()
        };
        self.0.iter().flat_map(of_client).collect()
    }

    /// Reads [`Self::to_values`], given the sums over no rows.
    fn of_values(mut values: &[f64], none: &ClientScores) -> Result<Self, CheckpointError> {
        let wrong = |problem: String| CheckpointError::Content(problem);
        let mut clients = Vec::new();
        while let Some((length, rest)) = values.split_first() {
            let of_client = rest.split_at_checked(*length as usize);
            let (of_client, rest) =
                of_client.ok_or_else(|| wrong("the last scores of clients are incomplete".into()))?;
            clients.push(none.read(of_client).map_err(|error| wrong(error.to_string()))?);
            values = rest;
        }
        Ok(Self(clients))
    }
}

impl Stop {
    /// Watches as the keys of `[stop]` say. `is_watching` tells whether a value of the validation rows decides about the end or
    /// the step size; `apart` whether these rows have classes, where the metrics of every round are those of other rows.
    pub fn new(config: StopConfig, is_watching: bool, apart: Option<bool>) -> Self {
        Self { config, is_watching, apart, last: LastScores::default(), first: 1, best: None, over: None }
    }

    /// Looks for the best round from this one on.
    pub fn judges_from(&mut self, first: usize) {
        self.first = first;
    }

    /// The metrics of the validation rows that are columns of `rounds.csv`.
    fn shown(&self) -> Vec<StopMetric> {
        let Some(has_classes) = self.apart else { return Vec::new() };
        let first = if has_classes { StopMetric::Accuracy } else { StopMetric::Rmse };
        let chosen =
            Some(self.config.metric).filter(|metric| self.is_watching && ![first, StopMetric::Nll].contains(metric));
        [first, StopMetric::Nll].into_iter().chain(chosen).collect()
    }

    /// The columns of the validation rows in `rounds.csv` after a round that was not evaluated.
    pub fn blank(&self) -> Columns {
        self.shown().into_iter().map(|metric| (metric.column(), None)).collect()
    }

    /// Whether the budgets are used up at the end of a round.
    pub fn is_used_up(&self, uplink_bytes: u64, seconds: f64) -> bool {
        self.budget(uplink_bytes, seconds).is_some()
    }

    /// Looks at a round that was evaluated: it may be the best so far.
    ///
    /// # Errors
    /// The device fails.
    pub fn look(
        &mut self,
        round: usize,
        server: &dyn ServerHalf,
        evaluated: &EvaluatedRound,
    ) -> Result<Seen, RunError> {
        if !self.is_watching && self.apart.is_none() {
            return Ok(Seen::default());
        }
        let clients = self.last.clients();
        let of_clients = match (&evaluated.validation, &evaluated.predicted) {
            (Some(Measured::Clients(scores)), _) => Some(&**scores),
            (None, Predicted::Pooled { scores, .. }) => Some(scores),
            _ => None,
        };
        let of = match (of_clients, &evaluated.validation) {
            (Some(scores), _) => &self.last.add(scores),
            (None, Some(Measured::Here(evaluation))) => evaluation,
            (None, _) => &evaluated.evaluation,
        };
        let has_more_clients = self.last.clients() > clients;
        if has_more_clients {
            self.best = None;
        }
        let columns = self.shown().into_iter().map(|metric| (metric.column(), metric.value(of))).collect();
        let value = self.config.metric.value(of);
        let is_better =
            |value: f64| self.best.as_ref().is_none_or(|best| self.config.metric.is_better(value, best.value));
        let is_judged = self.config.patience > 0 && round >= self.first;
        if let Some(value) = value.filter(|value| is_judged && is_better(*value)) {
            let (particles, posterior) = (server.particles().to_array()?, server.posterior());
            self.best = Some(Best { round, value, particles, posterior });
        }
        Ok(Seen { value, has_more_clients, columns })
    }

    /// Decides after a round whether the run is over, given all traffic and time so far.
    ///
    /// # Arguments
    /// * `evaluated`: whether the round was evaluated; patience ends only with one that was
    pub fn decide(&mut self, round: usize, evaluated: bool, uplink_bytes: u64, seconds: f64) {
        self.over = self.budget(uplink_bytes, seconds).or_else(|| self.impatience(round).filter(|_| evaluated));
    }

    /// Why the run is over, if it is.
    pub fn over(&self) -> Option<&str> {
        self.over.as_deref()
    }

    /// The best round, where validation rows have chosen one.
    pub fn best(&self) -> Option<&Best> {
        self.best.as_ref()
    }

    /// The choice of the best round in a sentence, for the user.
    pub fn choice(&self, round: usize) -> Option<String> {
        let Best { round: best, value, .. } = self.best.as_ref()?;
        let metric = self.config.metric.word();
        Some(format!(
            "the results are those of round {best} of {round}, the best by validation rows ({metric} {value:.4}, stop.metric)"
        ))
    }

    fn budget(&self, uplink_bytes: u64, seconds: f64) -> Option<String> {
        let StopConfig { uplink_mib, seconds: most, .. } = self.config;
        let sent = uplink_bytes as f64 / MIB;
        if uplink_mib > 0.0 && sent >= uplink_mib {
            return Some(format!("clients have sent {sent:.3} MiB (stop.uplink_mib = {uplink_mib})"));
        }
        (most > 0.0 && seconds >= most).then(|| format!("{seconds:.1} s are over (stop.seconds = {most})"))
    }

    fn impatience(&self, round: usize) -> Option<String> {
        let (patience, first) = (self.config.patience, self.first);
        let best = self.best.as_ref().map(|best| best.round);
        let metric = self.config.metric.word();
        (patience > 0 && round.saturating_sub(best.unwrap_or(first - 1)) >= patience).then(|| match best {
            Some(best) => {
                format!("no better {metric} of the validation rows since round {best} (stop.patience = {patience})")
            }
            None => format!("no {metric} of the validation rows from round {first} on (stop.patience = {patience})"),
        })
    }

    /// The best round and the clients' last scores, as a state; empty where there are none.
    pub fn save(&self) -> State {
        let scores = self.last.to_values();
        let state = if scores.is_empty() { State::default() } else { State::default().with_numbers(SCORES, scores) };
        let Some(Best { round, value, particles, posterior }) = &self.best else { return state };
        let state = state
            .with_count("round", *round)
            .with_numbers("value", [*value])
            .with_array("particles", particles.clone());
        match posterior {
            Posterior::Particles => state,
            Posterior::Gaussian { mean, covariance } => {
                state.with_numbers("mean", mean.iter().copied()).with_numbers("covariance", covariance.iter().copied())
            }
            Posterior::Mixture { variances } => state.with_numbers("variances", variances.iter().copied()),
        }
    }

    /// Restores the state of [`Self::save`]; `none` are the sums over no rows of the kind that clients send, where they send
    /// any.
    ///
    /// # Errors
    /// The state is incomplete.
    pub fn restore(&mut self, state: &State, none: Option<&ClientScores>) -> Result<(), CheckpointError> {
        if let Some(none) = none.filter(|_| state.has(SCORES)) {
            self.last = LastScores::of_values(&state.numbers(SCORES)?, none)?;
        }
        if !state.has("round") || self.config.patience == 0 {
            return Ok(());
        }
        let posterior = match (state.has("mean"), state.has("variances")) {
            (true, _) => Posterior::Gaussian { mean: state.numbers("mean")?, covariance: state.numbers("covariance")? },
            (_, true) => Posterior::Mixture { variances: state.numbers("variances")? },
            _ => Posterior::Particles,
        };
        let (round, value, particles) =
            (state.count("round")?, state.number("value")?, state.array("particles")?.clone());
        self.best = Some(Best { round, value, particles, posterior });
        Ok(())
    }
}

impl Best {
    /// The particles on a device, in the form of others of the same model.
    ///
    /// # Errors
    /// They are not of this model.
    pub fn particles(&self, like: &Particles, session: &Session) -> Result<Particles, RunError> {
        Ok(Particles::from_array(&self.particles, like.layout(), session)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::ParticleLogProbs;

    /// The sums of a client whose rows all have this probability of their class.
    fn sums(rows: usize, right: f64) -> ClientScores {
        let values: Vec<f32> = (0..rows).flat_map(|_| [right.ln() as f32, (1.0 - right).ln() as f32]).collect();
        let mut scores = ClientScores::of_classes(2, 10);
        if rows > 0 {
            let log_probs = ParticleLogProbs::from_f32(1, rows, 2, values).unwrap();
            scores.add_classes(&log_probs, &vec![0; rows]).unwrap();
        }
        scores
    }

    fn nll(last: &mut LastScores, clients: [ClientScores; 3]) -> f64 {
        last.add(&PersonalScores::new(clients.to_vec()).unwrap()).nll.unwrap()
    }

    #[test]
    fn a_client_that_does_not_answer_counts_with_its_last_scores() {
        let absent = || sums(0, 0.5);
        let mut last = LastScores::default();
        // Client 2 has no rows at all; client 1 has not answered yet.
        let of = |value: f64| -value.ln();
        let is = |got: f64, want: f64| assert!((got - want).abs() < 1e-6, "{got}, not {want}");
        is(nll(&mut last, [sums(4, 0.5), absent(), absent()]), of(0.5));
        assert_eq!(last.clients(), 1);
        is(nll(&mut last, [sums(4, 0.8), sums(6, 0.4), absent()]), 0.4 * of(0.8) + 0.6 * of(0.4));
        // Without it the others alone would be better, and no row has become better.
        is(nll(&mut last, [sums(4, 0.8), absent(), absent()]), 0.4 * of(0.8) + 0.6 * of(0.4));
        let none = absent();
        let mut again = LastScores::of_values(&last.to_values(), &none).unwrap();
        for last in [&mut last, &mut again] {
            is(nll(last, [absent(), sums(6, 0.9), absent()]), 0.4 * of(0.8) + 0.6 * of(0.9));
        }
        let values = last.to_values();
        for wrong in [&values[1..], &values[..values.len() - 1], &[1e300]] {
            assert!(LastScores::of_values(wrong, &none).is_err());
        }
    }
}
