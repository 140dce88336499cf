//! The two parts of a particle set's uncertainty: noise in the data (aleatoric) and disagreement of the particles
//! (epistemic).
//!
//! `H(mean p) = mean H(p_n) + MI`, in nats; the mutual information lies in `[0, ln min(N, C)]`
//! (Depeweg et al. 2018).

use super::predictions::{ParticleLogProbs, argmax};
use crate::exponential::exp;

/// Entropy `-sum p ln p` in nats with `0 ln 0 = 0`.
pub fn entropy(probabilities: &[f64]) -> f64 {
    probabilities.iter().filter(|p| **p > 0.0).map(|p| -p * p.ln()).sum()
}

/// Uncertainty of every row, each of length `n`.
#[derive(Debug, Clone, PartialEq)]
pub struct RowUncertainty {
    /// Entropy of the predictive, nats.
    pub total: Vec<f64>,
    /// Mean entropy of the particles, nats.
    pub aleatoric: Vec<f64>,
    /// Their difference, the mutual information, nats; never negative.
    pub epistemic: Vec<f64>,
    /// Share of particle pairs that predict different classes; `None` with one particle.
    pub disagreement: Option<Vec<f64>>,
}

impl RowUncertainty {
    /// Splits the uncertainty of every row.
    pub fn new(log_probs: &ParticleLogProbs) -> Self {
        let (n, particles) = (log_probs.rows(), log_probs.particles());
        let mut rows = Self {
            total: Vec::with_capacity(n),
            aleatoric: Vec::with_capacity(n),
            epistemic: Vec::with_capacity(n),
            disagreement: (particles > 1).then(|| Vec::with_capacity(n)),
        };
        let mut scratch = RowScratch::new(log_probs.classes());
        for row in 0..n {
            let split = scratch.split(log_probs, row);
            rows.total.push(split.total);
            rows.aleatoric.push(split.aleatoric);
            rows.epistemic.push(split.epistemic);
            if let Some((all, one)) = rows.disagreement.as_mut().zip(split.disagreement) {
                all.push(one);
            }
        }
        rows
    }
}

/// The split of one row.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowSplit {
    pub(super) total: f64,
    pub(super) aleatoric: f64,
    pub(super) epistemic: f64,
    pub(super) disagreement: Option<f64>,
}

/// Buffers of one row, reused over rows.
#[derive(Debug)]
pub(super) struct RowScratch {
    /// The predictive, `[C]`.
    pub(super) probabilities: Vec<f64>,
    /// Particles that predict each class, `[C]`.
    pub(super) votes: Vec<usize>,
    /// The log probabilities of one particle, `[C]`.
    values: Vec<f64>,
}

impl RowScratch {
    pub(super) fn new(classes: usize) -> Self {
        Self { probabilities: vec![0.0; classes], votes: vec![0; classes], values: vec![0.0; classes] }
    }

    /// Fills the buffers and splits the row's uncertainty; one `exp` an entry. The predictive has the bits of
    /// [`ParticleLogProbs::ensemble`].
    pub(super) fn split(&mut self, log_probs: &ParticleLogProbs, row: usize) -> RowSplit {
        let particles = log_probs.particles();
        self.probabilities.fill(0.0);
        self.votes.fill(0);
        let mut aleatoric = 0.0;
        for particle in 0..particles {
            log_probs.read_row(particle, row, &mut self.values);
            self.votes[argmax(&self.values)] += 1;
            for (sum, &log_prob) in self.probabilities.iter_mut().zip(&self.values) {
                let p = exp(log_prob);
                *sum += p;
                // A probability of 0 has log -inf; its term of the entropy is 0.
                if p > 0.0 {
                    aleatoric -= p * log_prob;
                }
            }
        }
        for p in &mut self.probabilities {
            *p = (*p / particles as f64).min(1.0);
        }
        let (total, aleatoric) = (entropy(&self.probabilities), aleatoric / particles as f64);
        let epistemic = if particles == 1 { 0.0 } else { (total - aleatoric).max(0.0) };
        let pairs = particles * (particles - 1) / 2;
        let agreeing: usize = self.votes.iter().map(|v| v * v.saturating_sub(1) / 2).sum();
        let disagreement = (pairs > 0).then(|| (pairs - agreeing) as f64 / pairs as f64);
        RowSplit { total, aleatoric, epistemic, disagreement }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::MetricError;

    #[test]
    fn disagreement_counts_pairs() -> Result<(), MetricError> {
        let p = |a: f64| [a.ln(), (1.0 - a).ln()];
        let three = ParticleLogProbs::new(3, 1, 2, [p(0.9), p(0.8), p(0.1)].concat())?;
        // Pairs (0,1) agree; (0,2) and (1,2) do not.
        assert_eq!(RowUncertainty::new(&three).disagreement, Some(vec![2.0 / 3.0]));
        let one = ParticleLogProbs::new(1, 1, 2, p(0.9).to_vec())?;
        assert_eq!(RowUncertainty::new(&one).disagreement, None);
        Ok(())
    }
}
