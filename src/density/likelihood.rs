//! The local term of a tilted density: prior and likelihood of a client's rows, by autodiff through the model.

use std::sync::Arc;

use fedstein_models::Model;
use serde::{Deserialize, Serialize};

use super::Score;
use crate::backend::Backend;
use crate::federation::shard::{Minibatches, Shard};
use crate::particles::Particles;

/// How a minibatch stands for all N_k rows of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LikelihoodScale {
    /// N_k/B: unbiased for the whole likelihood.
    #[default]
    Full,
    /// 1, the sum over the batch (FedWBA code).
    BatchSum,
    /// 1/B, the mean over the batch (PFLlib baselines).
    Mean,
}

impl LikelihoodScale {
    fn factor(self, rows: usize, batch: usize) -> f64 {
        match self {
            Self::Full => rows as f64 / batch as f64,
            Self::BatchSum => 1.0,
            Self::Mean => 1.0 / batch as f64,
        }
    }
}

/// −(1/α) L_k(θ) of one client, and log p0(θ) beside it.
#[derive(Debug)]
pub struct Likelihood<B: Backend> {
    model: Arc<dyn Model>,
    shard: Shard<B>,
    minibatches: Minibatches,
    scale: f64,
}

impl<B: Backend> Likelihood<B> {
    /// The likelihood of a client's rows at temperature α.
    pub fn new(
        model: Arc<dyn Model>,
        shard: Shard<B>,
        minibatches: Minibatches,
        scale: LikelihoodScale,
        temperature: f64,
    ) -> Self {
        let factor = scale.factor(shard.rows(), minibatches.batch());
        Self { model, shard, minibatches, scale: factor / temperature }
    }

    /// The scaled score of the next minibatch: (1/α)(N_k/B) ∇ Σ_{i ∈ batch} log p(y_i | x_i, θ), plus
    /// `prior_weight`·∇ log p0(θ).
    pub fn next_score(&mut self, at: &Particles<B>, prior_weight: f64) -> Score<B> {
        let batch = self.shard.batch(self.minibatches.next_batch());
        let mut score = self.model.likelihood_score(at.blocks(), &batch, self.scale);
        if prior_weight > 0.0 {
            score = self.model.prior().add_score(at.blocks(), score, prior_weight);
        }
        Score::dense(Particles::from_blocks(score, at.layout().clone()))
    }

    /// A new visit begins; see [`Minibatches::start_visit`].
    pub fn start_visit(&mut self, round: usize) {
        self.minibatches.start_visit(round);
    }

    /// Number of rows N_k.
    pub fn rows(&self) -> usize {
        self.shard.rows()
    }
}
