//! The end of a run before its last round: budgets of traffic and time, and validation rows on which nothing becomes better.

use crate::array::Array;
use crate::backend::{Backend, Session};
use crate::checkpoint::{CheckpointError, State};
use crate::error::RunError;
use crate::metrics::{Evaluation, Metric};
use crate::particles::Particles;
use crate::protocol::{Posterior, ServerHalf};

use super::config::{StopConfig, StopMetric};
use super::evaluate::Evaluator;
use super::personal::Columns;

/// Bytes of a MiB.
const MIB: f64 = (1u32 << 20) as f64;

/// The best round so far.
#[derive(Clone, Debug)]
pub(super) struct Best {
    /// The round, from 1.
    pub round: usize,
    /// The metric of its validation rows.
    pub value: f64,
    /// The published particles after it, `[N, d]`.
    pub particles: Array,
    /// The posterior after it.
    pub posterior: Posterior,
}

/// What the validation rows say after a round.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The metric by which a round is better.
    pub value: Option<f64>,
    /// The columns of `rounds.csv`.
    pub columns: Columns,
}

/// Watches over the end of a run.
#[derive(Debug)]
pub(super) struct Stop<'a, B: Backend> {
    config: StopConfig,
    /// Whether a value of the validation rows decides about anything.
    is_watching: bool,
    /// The validation rows, where the metrics of every round are those of other rows.
    validation: Option<&'a Evaluator<B>>,
    best: Option<Best>,
    /// Why the run has ended.
    over: Option<String>,
}

impl<'a, B: Backend> Stop<'a, B> {
    /// Watches as the keys of `[stop]` say. `is_watching` tells whether a value of the validation rows decides about the end or
    /// the step size; `validation` are the validation rows, where the metrics of every round are those
    /// of other rows.
    pub fn new(config: StopConfig, is_watching: bool, validation: Option<&'a Evaluator<B>>) -> Self {
        Self { config, is_watching, validation, best: None, over: None }
    }

    /// The metrics of the validation rows that are columns of `rounds.csv`.
    fn shown(&self) -> Vec<StopMetric> {
        let Some(rows) = self.validation else { return Vec::new() };
        let first = if rows.has_classes() { StopMetric::Accuracy } else { StopMetric::Rmse };
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
    /// The device fails, or a prediction is not finite.
    pub fn look(
        &mut self,
        round: usize,
        server: &dyn ServerHalf<B>,
        evaluation: &Evaluation,
    ) -> Result<Seen, RunError> {
        if !self.is_watching && self.validation.is_none() {
            return Ok(Seen::default());
        }
        let (particles, posterior) = (server.particles(), server.posterior());
        let of_rows = match self.validation {
            Some(rows) => Some(rows.evaluate(&rows.predict(particles, &posterior)?)?),
            None => None,
        };
        let of = of_rows.as_ref().unwrap_or(evaluation);
        let value = |metric: StopMetric| of.value(Metric::of_key(metric.key())?).filter(|value| value.is_finite());
        let columns = self.shown().into_iter().map(|metric| (metric.column(), value(metric))).collect();
        let value = value(self.config.metric);
        let is_better =
            |value: f64| self.best.as_ref().is_none_or(|best| self.config.metric.is_better(value, best.value));
        if let Some(value) = value.filter(|value| self.config.patience > 0 && is_better(*value)) {
            self.best = Some(Best { round, value, particles: particles.to_array()?, posterior });
        }
        Ok(Seen { value, columns })
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
        let metric = self.config.metric.key();
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
        let (patience, best) = (self.config.patience, self.best.as_ref().map_or(0, |best| best.round));
        let metric = self.config.metric.key();
        (patience > 0 && round.saturating_sub(best) >= patience).then(|| {
            format!("no better {metric} of the validation rows since round {best} (stop.patience = {patience})")
        })
    }

    /// The best round, as a state; empty where there is none.
    pub fn save(&self) -> State {
        let Some(Best { round, value, particles, posterior }) = &self.best else { return State::default() };
        let state = State::default()
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

    /// Restores the state of [`Self::save`].
    ///
    /// # Errors
    /// The state is incomplete.
    pub fn restore(&mut self, state: &State) -> Result<(), CheckpointError> {
        if state.is_empty() || self.config.patience == 0 {
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
    pub fn particles<B: Backend>(&self, like: &Particles<B>, session: &Session<B>) -> Result<Particles<B>, RunError> {
        Ok(Particles::from_array(&self.particles, like.layout(), session)?)
    }
}
