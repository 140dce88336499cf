//! The step size over the rounds: `[lr_schedule]`.

use std::f64::consts::PI;

use crate::checkpoint::{CheckpointError, State};

use super::config::{LrScheduleConfig, StopMetric};

/// The column of the factor in `rounds.csv`.
pub(super) const COLUMN: &str = "lr_factor";

/// The factor of `optimizer.lr` over the rounds, and what a plateau is found by.
#[derive(Clone, Debug)]
pub(super) struct LrSchedule {
    config: LrScheduleConfig,
    metric: StopMetric,
    /// The best value so far.
    best: Option<f64>,
    /// The number of evaluations in a row without a better value.
    waited: usize,
    /// The number of plateaus.
    plateaus: usize,
}

impl LrSchedule {
    /// Before the first round; `metric` is that by which a plateau is found.
    pub fn new(config: LrScheduleConfig, metric: StopMetric) -> Self {
        Self { config, metric, best: None, waited: 0, plateaus: 0 }
    }

    /// The factor in a round, from 1.
    pub fn factor(&self, round: usize) -> f64 {
        let past = round.saturating_sub(1);
        match self.config {
            LrScheduleConfig::Constant => 1.0,
            LrScheduleConfig::Cosine { rounds, end } => {
                let share = past.min(rounds) as f64 / rounds.max(1) as f64;
                end + (1.0 - end) * (1.0 + (PI * share).cos()) / 2.0
            }
            LrScheduleConfig::Step { rounds, factor } => power(factor, past / rounds.max(1)),
            LrScheduleConfig::Plateau { factor, .. } => power(factor, self.plateaus),
        }
    }

    /// The column of a round in `rounds.csv`, unless the step size is constant.
    pub fn column(&self, round: usize) -> Option<(&'static str, Option<f64>)> {
        (self.config != LrScheduleConfig::Constant).then(|| (COLUMN, Some(self.factor(round))))
    }

    /// Looks at the value of the validation rows after a round; one that is not defined is not better. One that `begins_anew`
    /// is not compared with those before.
    pub fn look(&mut self, value: Option<f64>, begins_anew: bool) {
        let LrScheduleConfig::Plateau { rounds, .. } = self.config else { return };
        if begins_anew {
            self.best = None;
        }
        let better = value.filter(|value| self.best.is_none_or(|best| self.metric.is_better(*value, best)));
        match better {
            Some(value) => (self.best, self.waited) = (Some(value), 0),
            None => self.waited += 1,
        }
        if self.waited >= rounds {
            (self.plateaus, self.waited) = (self.plateaus + 1, 0);
        }
    }

    /// The state for a checkpoint; empty where nothing is kept.
    pub fn save(&self) -> State {
        match self.config {
            LrScheduleConfig::Plateau { .. } => State::default()
                .with_numbers("best", self.best)
                .with_count("waited", self.waited)
                .with_count("plateaus", self.plateaus),
            _ => State::default(),
        }
    }

    /// Restores the state of [`Self::save`].
    ///
    /// # Errors
    /// The state is incomplete.
    pub fn restore(&mut self, state: &State) -> Result<(), CheckpointError> {
        if !matches!(self.config, LrScheduleConfig::Plateau { .. }) || state.is_empty() {
            return Ok(());
        }
        self.best = state.numbers("best")?.first().copied();
        (self.waited, self.plateaus) = (state.count("waited")?, state.count("plateaus")?);
        Ok(())
    }
}

/// `factor` to this power; at least the smallest normal number, so that a step size is never 0.
fn power(factor: f64, exponent: usize) -> f64 {
    factor.powi(i32::try_from(exponent).unwrap_or(i32::MAX)).max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factors(config: LrScheduleConfig, rounds: usize) -> Vec<f64> {
        let schedule = LrSchedule::new(config, StopMetric::Nll);
        (1..=rounds).map(|round| schedule.factor(round)).collect()
    }

    fn assert_close(found: &[f64], want: &[f64]) {
        assert_eq!(found.len(), want.len());
        for (found, want) in found.iter().zip(want) {
            assert!((found - want).abs() < 1e-12, "{found}, not {want}");
        }
    }

    // optax 0.2.8: cosine_decay_schedule(1, 4, alpha = 0.01), and exponential_decay(1, 2, 0.5, staircase = True).
    #[test]
    fn the_factors_are_those_of_optax() {
        let cosine = factors(LrScheduleConfig::Cosine { rounds: 4, end: 0.01 }, 7);
        assert_close(&cosine, &[1.0, 0.855017856687341, 0.505, 0.15498214331265903, 0.01, 0.01, 0.01]);
        let step = factors(LrScheduleConfig::Step { rounds: 2, factor: 0.5 }, 7);
        assert_close(&step, &[1.0, 1.0, 0.5, 0.5, 0.25, 0.25, 0.125]);
        assert_eq!(factors(LrScheduleConfig::Constant, 3), [1.0; 3]);
        assert!(LrSchedule::new(LrScheduleConfig::Step { rounds: 1, factor: 0.1 }, StopMetric::Nll).factor(9999) > 0.0);
    }

    // optax 0.2.8: contrib.reduce_on_plateau(factor = 0.5, patience = 2, rtol = 1e-12, atol = 0).
    #[test]
    fn a_plateau_is_found_where_optax_finds_it_and_after_a_resume() {
        let values = [1.0, 0.8, 0.9, 0.8, 0.7, 0.75, 0.74, 0.73, 0.72, 0.6];
        let want = [1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.25, 0.25, 0.125, 0.125];
        let config = LrScheduleConfig::Plateau { rounds: 2, factor: 0.5 };
        for (metric, sign) in [(StopMetric::Nll, 1.0), (StopMetric::Accuracy, -1.0)] {
            let mut schedule = LrSchedule::new(config, metric);
            for (round, (value, want)) in values.iter().zip(want).enumerate() {
                schedule.look(Some(sign * value), false);
                let mut resumed = LrSchedule::new(config, metric);
                resumed.restore(&schedule.save()).unwrap();
                assert_eq!([schedule.factor(round + 2), resumed.factor(round + 2)], [want; 2]);
                schedule = resumed;
            }
        }
        let mut schedule = LrSchedule::new(config, StopMetric::Nll);
        schedule.look(None, false);
        schedule.look(None, false);
        assert_eq!(schedule.factor(3), 0.5, "a value that is not defined is not better");
        let mut schedule = LrSchedule::new(config, StopMetric::Nll);
        [(0.3, false), (0.7, true), (0.8, false)].iter().for_each(|(value, anew)| schedule.look(Some(*value), *anew));
        assert_eq!(schedule.factor(4), 1.0, "0.7 is the first of its kind");
    }
}
