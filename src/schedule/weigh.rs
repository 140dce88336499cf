//! From indicators to probabilities to a draw: what KSD and HIP selection share.

use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::Selection;
use super::indicator::{Indicators, Measure};
use crate::random::{Purpose, Streams};

/// What becomes of negative indicators, which (24) turns into no distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Negative {
    /// P_k ∝ max(S_k, 0): a client whose update would undo the others' is not asked.
    #[default]
    Clip,
    /// P_k ∝ S_k − min S.
    Shift,
    /// P_k ∝ exp(S_k/τ).
    Softmax {
        /// τ > 0; `None` takes the standard deviation of S, so that units do not matter.
        temperature: Option<f64>,
    },
}

/// What was done to get a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// P_k = S_k/ΣS, as printed.
    Proportional,
    /// Negative values were cut to 0.
    Clipped,
    /// All values were raised by a constant.
    Shifted,
    /// A softmax.
    Softmax,
    /// The values say nothing (all equal, none positive, or not finite): every client is as likely.
    Uniform,
}

/// Why these clients.
#[derive(Clone, Debug, PartialEq)]
pub struct Reasons {
    /// P, `[K]`; 0 for those that gave no answer while others did.
    pub probabilities: Vec<f64>,
    /// What was done to get it.
    pub action: Action,
    /// Δ/ε = Σ_k S_k P_k − mean S: what the bound on the decrease of the free energy gains over a uniform choice;
    /// (18) for KSD, (25) for HIP.
    pub gain: f64,
    /// Entropy of P over the logarithm of the number of clients that answered: 1 where selection is uniform.
    pub entropy: f64,
    /// Number of negative indicators.
    pub negative: usize,
}

/// How probabilities become clients.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    /// Clients a round; more than one are drawn without replacement.
    pub per_round: usize,
    /// No client is less likely than `floor` over the number of those that answered.
    pub floor: f64,
    /// The run's random numbers.
    pub streams: Streams,
}

impl Draw {
    /// Weighs the indicators of those that answered and draws among them; where nobody did, every client is as likely.
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

    /// Inverse distribution function, again and again over those that are left: places among the probabilities.
    fn draw(&self, round: usize, probabilities: &[f64]) -> Vec<usize> {
        let mut rng = self.streams.rng(Purpose::Schedule, round, 0);
        let mut left = probabilities.to_vec();
        let mut drawn = Vec::with_capacity(self.per_round);
        for _ in 0..self.per_round.min(left.len()) {
            let total: f64 = left.iter().sum();
            if total <= 0.0 {
                // Everyone with a chance is drawn: the rest are as likely as each other.
                (0..left.len()).filter(|place| !drawn.contains(place)).for_each(|place| left[place] = 1.0);
            }
            let total: f64 = left.iter().sum();
            let mut at = rng.random::<f64>() * total;
            let hit = left.iter().position(|p| {
                at -= p;
                at < 0.0 && *p > 0.0
            });
            // Rounding may leave `at` at 0 behind the last one.
            let last = left.iter().rposition(|p| *p > 0.0);
            let Some(place) = hit.or(last) else { break };
            drawn.push(place);
            left[place] = 0.0;
        }
        drawn
    }
}

/// (17) and (24): P_k = S_k/ΣS, after the policy for negative values.
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
