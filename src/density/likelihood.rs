//! The likelihood of a client's rows and the prior, with scores by autodiff through the model.

use std::sync::Arc;

use burn::tensor::Tensor;
use fedstein_models::{Batch, Model, Prior, RowCurvature};

use crate::checkpoint::{CheckpointError, State};
use crate::error::RunError;
use crate::particles::Particles;
use crate::rows::{Minibatches, Rows, Shard};
use crate::stein::Score;

/// The number of rows whose scores are computed at once, where all rows are used.
const CHUNK: usize = 1000;

/// The fewest particles for which the gradient of a first layer's weights is left as a product: with fewer the pass over
/// the coordinates that multiplies it uses too few of the vector registers.
const WORTH_FACTORS: usize = 4;

fedstein_schema::words! {
    /// The factor by which the sum over a minibatch estimates the sum over all N_k rows of a client.
    #[derive(Default)]
    pub enum LikelihoodScale {
        /// N_k/B, which is unbiased.
        #[default]
        Full = "full",
        /// 1, which gives the sum over the batch, as in the FedWBA code.
        BatchSum = "batch-sum",
        /// 1/B, which gives the mean over the batch, as in the PFLlib baselines.
        Mean = "mean",
    }
}

impl LikelihoodScale {
    /// The factor of the sum over a minibatch of `batch` rows out of `rows`.
    pub(crate) fn factor(self, rows: usize, batch: usize) -> f64 {
        match self {
            Self::Full => rows as f64 / batch as f64,
            Self::BatchSum => 1.0,
            Self::Mean => 1.0 / batch as f64,
        }
    }
}

/// The tempered log-likelihood −(1/α) L_k(θ) of one client, and log p0(θ).
#[derive(Debug)]
pub struct Likelihood {
    model: Arc<dyn Model>,
    shard: Shard,
    minibatches: Minibatches,
    scale: f64,
    /// λ and the remaining factor of p0; see [`Prior::isotropic_part`].
    prior: (f64, Prior),
}

impl Likelihood {
    /// The likelihood of a client's rows at temperature α.
    pub fn new(
        model: Arc<dyn Model>,
        shard: Shard,
        minibatches: Minibatches,
        scale: LikelihoodScale,
        temperature: f64,
    ) -> Self {
        let factor = scale.factor(shard.rows(), minibatches.batch());
        let prior = model.prior().isotropic_part(model.layout());
        Self { model, shard, minibatches, scale: factor / temperature, prior }
    }

    /// The scaled score of the next minibatch: (1/α)(N_k/B) ∇ Σ_{i ∈ batch} log p(y_i | x_i, θ), plus
    /// `prior_weight`·∇ log p0(θ).
    pub fn next_score(&mut self, at: &Particles, prior_weight: f64) -> Score {
        let batch = self.draw();
        // The prior's −λθ is a multiple of Θ, which SVGD adds to its coefficients without a pass over the coordinates.
        let (lambda, rest) = &self.prior;
        let score = match self.factored_score(&batch, at, prior_weight) {
            Some(score) => score,
            None => {
                let score = self.model.likelihood_score(at.blocks(), &batch, self.scale);
                let score = if prior_weight > 0.0 { rest.add_score(at.blocks(), score, prior_weight) } else { score };
                Score::dense(Particles::from_blocks(score, at.layout().clone()))
            }
        };
        let pull = lambda * prior_weight;
        if pull == 0.0 { score } else { score.plus(Score::multiple(at.count(), -pull)) }
    }

    /// The likelihood's scaled score as a product of two matrices. `None` where it is faster to multiply them at once, and
    /// where the rest of the prior has a score. On a CPU the loop over coordinates that follows multiplies them in passing.
    fn factored_score(&self, batch: &Batch, at: &Particles, prior_weight: f64) -> Option<Score> {
        let [rows, inputs] = batch.inputs.dims();
        let rest_is_flat = prior_weight == 0.0 || self.prior.1.terms.is_empty();
        if at.count() < WORTH_FACTORS || rows >= inputs || !rest_is_flat || !at.is_on_host() {
            return None;
        }
        let score = self.model.factored_score(at.blocks(), batch, self.scale)?;
        Some(Score::factored(score, at.layout().clone()))
    }

    /// [`Self::next_score`] as one set `[N, d]`, for N in the thousands, where the `[N, N]` coefficients of a [`Score`]
    /// would be too large.
    pub fn next_gradient(&mut self, at: &Particles, prior_weight: f64) -> Particles {
        let batch = self.draw();
        self.gradient_on(&batch, at, prior_weight)
    }

    /// The next minibatch, for several scores on the same rows.
    pub fn draw(&mut self) -> Batch {
        self.shard.batch(self.minibatches.next_batch())
    }

    /// [`Self::next_gradient`] on a minibatch that was drawn before.
    pub fn gradient_on(&self, batch: &Batch, at: &Particles, prior_weight: f64) -> Particles {
        let mut score = self.model.likelihood_score(at.blocks(), batch, self.scale);
        if prior_weight > 0.0 {
            score = self.model.prior().add_score(at.blocks(), score, prior_weight);
        }
        Particles::from_blocks(score, at.layout().clone())
    }

    /// (1/α)(N_k/B) log p(batch | θ_n) of the next minibatch, `[N]`. Waits for the device.
    ///
    /// # Errors
    /// Reading from the device fails.
    pub fn next_log_likelihood(&mut self, at: &Particles) -> Result<Vec<f64>, RunError> {
        let batch = self.draw();
        let values = self.model.log_likelihood(at.blocks(), &batch).try_into_vec_as::<f64>()?;
        Ok(values.into_iter().map(|value| self.scale * value).collect())
    }

    /// The score whose estimates the minibatches give, which is −(1/α) ∇L_k(θ) with [`LikelihoodScale::Full`], plus
    /// `prior_weight`·∇ log p0(θ), `[N, d]`. It is computed from all rows or from one minibatch of this round; the
    /// order of the minibatches for training does not change.
    pub fn score_in(&self, at: &Particles, rows: Rows, round: usize, prior_weight: f64) -> Particles {
        let mut score = match rows {
            Rows::Minibatch => {
                let batch = self.shard.batch(&self.minibatches.question_batch(round));
                self.model.likelihood_score(at.blocks(), &batch, self.scale)
            }
            Rows::Full => {
                let parts = self.chunks(CHUNK).map(|chunk| {
                    let batch = self.shard.batch(&chunk);
                    self.model.likelihood_score(at.blocks(), &batch, self.whole_scale())
                });
                let sum = parts.reduce(|sum, part| sum.into_iter().zip(part).map(|(a, b)| a + b).collect());
                sum.unwrap_or_else(|| at.blocks().iter().map(|block| block.zeros_like()).collect())
            }
        };
        if prior_weight > 0.0 {
            score = self.model.prior().add_score(at.blocks(), score, prior_weight);
        }
        Particles::from_blocks(score, at.layout().clone())
    }

    /// The Gauss-Newton curvature of all rows at the particles `[N, d]`, in groups of at most `at_once` rows; a sum over
    /// groups has the scale of [`Self::score_in`] after multiplication with [`Self::whole_scale`]. `uniforms` draws numbers
    /// in [0, 1) of a shape.
    pub fn row_curvatures(
        &self,
        at: &Particles,
        at_once: usize,
        uniforms: &mut dyn FnMut([usize; 2]) -> Tensor<2>,
    ) -> impl Iterator<Item = RowCurvature> {
        self.chunks(at_once.min(CHUNK)).filter_map(move |chunk| {
            let Batch { inputs, weights, .. } = self.shard.batch(&chunk);
            let drawn = uniforms([at.count(), chunk.len()]);
            let curvature = self.model.row_curvature(at.blocks(), inputs, drawn)?;
            Some(weights.iter().fold(curvature, RowCurvature::weighted))
        })
    }

    /// −(1/α) L_k(θ_n) from all rows, `[N]`, in the scale of [`Self::score_in`]. Waits for the device.
    ///
    /// # Errors
    /// Reading from the device fails.
    pub fn log_likelihood(&self, at: &Particles) -> Result<Vec<f64>, RunError> {
        let mut total = vec![0.0; at.count()];
        for chunk in self.chunks(CHUNK) {
            let batch = self.shard.batch(&chunk);
            let values = self.model.log_likelihood(at.blocks(), &batch).try_into_vec_as::<f64>()?;
            total.iter_mut().zip(values).for_each(|(sum, value)| *sum += self.whole_scale() * value);
        }
        Ok(total)
    }

    /// The indices of all rows of the shard in groups of `size`, so that memory does not grow with N_k.
    fn chunks(&self, size: usize) -> impl Iterator<Item = Vec<usize>> + use<> {
        let rows = self.shard.rows();
        (0..rows).step_by(size).map(move |start| (start..(start + size).min(rows)).collect())
    }

    /// The factor of the sum over all rows that agrees with that of a minibatch.
    pub fn whole_scale(&self) -> f64 {
        self.scale * self.minibatches.batch() as f64 / self.shard.rows() as f64
    }

    /// The model whose likelihood this is.
    pub fn model(&self) -> &Arc<dyn Model> {
        &self.model
    }

    /// Begins a new visit; see [`Minibatches::start_visit`].
    pub fn start_visit(&mut self, round: usize) {
        self.minibatches.start_visit(round);
    }

    /// The state of the minibatches; see [`Minibatches::save`].
    pub fn save(&self) -> State {
        self.minibatches.save()
    }

    /// Restores a state; see [`Minibatches::restore`].
    ///
    /// # Errors
    /// The state is not one of these minibatches.
    pub fn restore(&mut self, state: &State) -> Result<(), CheckpointError> {
        self.minibatches.restore(state)
    }

    /// The number of rows N_k.
    pub fn rows(&self) -> usize {
        self.shard.rows()
    }
}

#[cfg(test)]
mod tests {
    use fedstein_datasets::{Dataset, FeatureScale, Normalisation, Targets};
    use fedstein_models::{BlrConfig, Network};
    use ndarray::Array2;

    use super::*;
    use crate::array::{Array, Values};
    use crate::backend::{Flex, Precision, Session};
    use crate::random::Streams;
    use crate::rows::{Order, Table};

    const ROWS: usize = 12;
    const BATCH: usize = 4;
    const TEMPERATURE: f64 = 2.5;

    /// Every scale, with the factor of the sum over a minibatch and that of the sum over all rows.
    const SCALES: [(LikelihoodScale, f64, f64); 3] = [
        (LikelihoodScale::Full, 3.0, 1.0),
        (LikelihoodScale::BatchSum, 1.0, 1.0 / 3.0),
        (LikelihoodScale::Mean, 0.25, 1.0 / 12.0),
    ];

    /// A logistic regression on twelve rows of two features, minibatches of four.
    fn likelihood(scale: LikelihoodScale) -> Likelihood {
        let features = Array2::from_shape_fn((ROWS, 2), |(row, column)| ((7 * row + 3 * column) as f32).sin());
        let targets = Targets::Classes {
            labels: (0..ROWS).map(|row| row * row % 2).collect(),
            names: vec!["0".into(), "1".into()],
        };
        let rows = Dataset::new("rows", features, targets).unwrap();
        let table = Table::new(rows, &Normalisation { features: FeatureScale::Identity, target: None });
        let shard = Shard::new(table, (0..ROWS).collect(), Session::open::<Flex>(Precision::F64).unwrap());
        let minibatches = Minibatches::new(Order::EpochPermutation, ROWS, BATCH, Streams::new(1), 0);
        Likelihood::new(Arc::new(Network::new(BlrConfig::new(2))), shard, minibatches, scale, TEMPERATURE)
    }

    #[test]
    fn the_factor_of_a_minibatch_is_rows_over_batch_or_one_or_one_over_batch() {
        for (scale, of_batch, _) in SCALES {
            assert_eq!(scale.factor(ROWS, BATCH), of_batch, "{scale:?}");
        }
    }

    #[test]
    fn the_score_of_all_rows_is_the_mean_of_the_minibatches_of_an_epoch() {
        for (scale, of_batch, of_all) in SCALES {
            let mut likelihood = likelihood(scale);
            let whole_scale = likelihood.whole_scale();
            // A few products and quotients in f64.
            assert!((whole_scale * TEMPERATURE / of_all - 1.0).abs() < 1e-15, "{scale:?}: {whole_scale}");

            let layout = likelihood.model().layout().clone();
            let array = Array { shape: vec![2, 3], values: Values::F64(vec![0.3, -0.7, 0.1, 1.2, 0.4, -0.5]) };
            let at = Particles::from_array(&array, &layout, &Session::open::<Flex>(Precision::F64).unwrap()).unwrap();
            let values = |of: &Particles| of.to_array().unwrap().values.to_f64();
            let all = values(&likelihood.score_in(&at, Rows::Full, 1, 0.0));
            let mut mean = vec![0.0; 6];
            for _ in 0..ROWS / BATCH {
                let batch = likelihood.draw();
                let got = values(&likelihood.gradient_on(&batch, &at, 0.0));
                let score = likelihood.model.likelihood_score(at.blocks(), &batch, of_batch / TEMPERATURE);
                let want = values(&Particles::from_blocks(score, layout.clone()));
                // Sums of four terms of order 1 in f64.
                assert!(
                    got.iter().zip(&want).all(|(got, want)| (got - want).abs() < 1e-13),
                    "{scale:?}: {got:?}, {want:?}"
                );
                mean.iter_mut().zip(got).for_each(|(mean, got)| *mean += got * BATCH as f64 / ROWS as f64);
            }
            assert!(
                all.iter().zip(&mean).all(|(all, mean)| (all - mean).abs() < 1e-13),
                "{scale:?}: {all:?}, {mean:?}"
            );
            assert!(all.iter().any(|value| value.abs() > 0.01), "{scale:?}: no slope");
        }
    }
}
