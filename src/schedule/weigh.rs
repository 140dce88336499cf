//! From indicators to probabilities to a draw of clients, for KSD and HIP selection.

use rand::RngExt;

use super::indicator::{Indicators, Measure};
use super::selection::{Action, Reasons, Selection};
use crate::random::{Purpose, Streams};

/// The treatment of negative indicators, with which (24) is not a distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Negative {
    /// P_k ∝ max(S_k, 0): a client whose update opposes the mean direction is not selected.
    #[default]
    Clip,
    /// P_k ∝ S_k − min S.
    Shift,
    /// P_k ∝ exp(S_k/τ).
    Softmax {
        /// τ > 0; `None` stands for the standard deviation of S, which makes P independent of the units of S.
        temperature: Option<f64>,
    },
}

/// The draw of clients by their probabilities.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    /// The number of clients per round. They are drawn without replacement.
    pub per_round: usize,
    /// The least probability of a client is `floor` over the number of clients that answered.
    pub floor: f64,
    /// The run's random streams.
    pub streams: Streams,
}

impl Draw {
    /// Draws clients among those that answered, by their indicators. If no client answered, all are equally likely.
    pub fn select(&self, round: usize, indicators: &Indicators, negative: Negative) -> Selection {
        let mut answered = indicators.answered();
        if answered.is_empty() {
            answered = (0..indicators.values.len()).collect();
        }
        let values: Vec<f64> = answered.iter().map(|client| indicators.values[*client]).collect();
        let (mut weights, action) = probabilities(&values, negative);
        let uniform = 1.0 / values.len() as f64;
        weights.iter_mut().for_each(|p| *p = self.floor * uniform + (1.0 - self.floor) * *p);
        let mean = values.iter().sum::<f64>() * uniform;
        let gain = values.iter().zip(&weights).map(|(value, p)| value * p).sum::<f64>() - mean;
        let information: f64 = weights.iter().filter(|p| **p > 0.0).map(|p| -p * p.ln()).sum();
        let entropy = if values.len() > 1 { information / (values.len() as f64).ln() } else { 1.0 };
        let negative = match indicators.measure {
            Measure::Ksd => 0,
            Measure::Hip => values.iter().filter(|value| **value < 0.0).count(),
        };
        let clients = self.draw(round, &weights).into_iter().map(|place| answered[place]).collect();
        let mut probabilities = vec![0.0; indicators.values.len()];
        answered.iter().zip(weights).for_each(|(client, weight)| probabilities[*client] = weight);
        Selection { clients, reasons: Some(Reasons { probabilities, action, gain, entropy, negative }) }
    }

    /// Draws without replacement by the inverse distribution function. Returns indices into the probabilities.
    fn draw(&self, round: usize, probabilities: &[f64]) -> Vec<usize> {
        let mut rng = self.streams.rng(Purpose::Schedule, round, 0);
        let mut left = probabilities.to_vec();
        let mut drawn = Vec::with_capacity(self.per_round);
        for _ in 0..self.per_round.min(left.len()) {
            let total: f64 = left.iter().sum();
            if total <= 0.0 {
                // All clients of positive probability are drawn: the rest are equally likely.
                (0..left.len()).filter(|place| !drawn.contains(place)).for_each(|place| left[place] = 1.0);
            }
            let total: f64 = left.iter().sum();
            let mut at = rng.random::<f64>() * total;
            let hit = left.iter().position(|p| {
                at -= p;
                at < 0.0 && *p > 0.0
            });
            // With rounding errors `at` may still not be negative after the last one.
            let last = left.iter().rposition(|p| *p > 0.0);
            let Some(place) = hit.or(last) else { break };
            drawn.push(place);
            left[place] = 0.0;
        }
        drawn
    }
}

/// The probabilities `[K]` of (17) and (24), P_k = S_k/ΣS, with this treatment of negative values.
pub fn probabilities(values: &[f64], negative: Negative) -> (Vec<f64>, Action) {
    let uniform = || (vec![1.0 / values.len() as f64; values.len()], Action::Uniform);
    if values.iter().any(|value| !value.is_finite()) {
        return uniform();
    }
    let min = values.iter().copied().fold(f64::INFINITY, f64::min);
    let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (weights, action): (Vec<f64>, Action) = match negative {
        Negative::Clip if min < 0.0 => (values.iter().map(|value| value.max(0.0)).collect(), Action::Clipped),
        Negative::Clip => (values.to_vec(), Action::Proportional),
        Negative::Shift => (values.iter().map(|value| value - min).collect(), Action::Shifted),
        Negative::Softmax { temperature } => {
            let tau = temperature.unwrap_or_else(|| standard_deviation(values));
            if tau == 0.0 {
                return uniform();
            }
            (values.iter().map(|value| ((value - max) / tau).exp()).collect(), Action::Softmax)
        }
    };
    let total: f64 = weights.iter().sum();
    if total > 0.0 && total.is_finite() {
        (weights.into_iter().map(|weight| weight / total).collect(), action)
    } else {
        uniform()
    }
}

fn standard_deviation(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n).sqrt()
}
