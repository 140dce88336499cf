//! The densities of a visit: the global q, the client's factor t_k, the cavity q/t_k, and the factor after the visit.
//!
//! All centres stay fixed during the visit. [`Factors`] lists what a factor holds besides the client's likelihood;
//! docs/algorithms.md ("dsvgd") derives every formula of this file.

use std::sync::Arc;

use fedstein_models::Model;

use crate::algorithm::keys::DensityConfig;
use crate::density::kde::{Kde, KdeConfig};
use crate::density::prior_score;
use crate::error::RunError;
use crate::particles::Particles;
use crate::statistics::mean;
use crate::stein::Score;

fedstein_schema::words! {
    /// The content of a client's factor besides its likelihood.
    #[derive(Default)]
    pub enum Factors {
        /// t̂_k = p0·t_k, a proper density that starts at Θ^(0); every local score contains p0 (the public code).
        #[default]
        WithPrior = "with-prior",
        /// t_k^(0) = 1 and q^(0) = p0, as printed in the paper.
        Paper = "paper",
    }
}

/// The state of a client at the start of a visit.
pub(super) struct Start<'a> {
    /// The model, for its prior p0.
    pub model: &'a Arc<dyn Model>,
    /// Θ as received, `[N, d]`.
    pub theta: &'a Particles,
    /// The factor's particles Θ_k, `[N, d]`.
    pub factor: &'a Particles,
    /// Whether Θ_k is from an earlier visit.
    pub visited: bool,
    /// The round, from 1.
    pub round: usize,
    /// The number of clients K.
    pub clients: usize,
}

/// A density estimate and its centres.
struct Density {
    kde: Kde,
    centres: Particles,
}

impl Density {
    fn new(centres: Particles, config: KdeConfig) -> Result<Self, RunError> {
        Ok(Self { kde: Kde::new(&centres, config)?, centres })
    }
}

/// The cavity q/t_k in terms of kernel density estimates.
pub(super) struct Cavity {
    kde: KdeConfig,
    model: Arc<dyn Model>,
    /// The density of Θ; `None` where q has none, where both densities are negligible, or for a single client.
    q: Option<Density>,
    /// The density of Θ_k; `None` where the client has no factor yet, and in the same cases.
    t: Option<Density>,
    /// Whether q is p0 in closed form (the printed first round).
    q_is_prior: bool,
    /// The weight of ∇ log p0 in the local score.
    pub prior_weight: f64,
    /// Whether the scores of all densities are negligible, and taken for 0. No factor is kept then, and nothing is distilled.
    pub zero_score: bool,
    /// The bandwidth λ.
    lambda: f64,
    form: Factors,
    /// Whether this is the only client.
    alone: bool,
}

impl Cavity {
    /// The densities of a visit that starts from `start`.
    ///
    /// # Errors
    /// The device does not answer.
    pub fn new(form: Factors, kde: KdeConfig, start: &Start) -> Result<Self, RunError> {
        let Start { model, theta, factor, visited, round, clients } = *start;
        let q = Density::new(theta.clone(), kde)?;
        let t = Density::new(factor.clone(), kde)?;
        let zero_score = q.kde.is_negligible() && t.kde.is_negligible();
        // Densities without a score contain no prior: then the local score has to contain all of it.
        let form = if zero_score { Factors::WithPrior } else { form };
        let lambda = q.kde.lambda();
        // A single client's factor is all of q: its cavity is 1, up to the prior.
        let alone = clients == 1 && form != Factors::Paper;
        let (q, t, q_is_prior, prior_weight) = match form {
            _ if alone || zero_score => (None, None, false, 1.0),
            Factors::WithPrior => (Some(q), Some(t), false, 1.0),
            Factors::Paper => ((round > 1).then_some(q), visited.then_some(t), round == 1, 0.0),
        };
        Ok(Self { kde, model: model.clone(), q, t, q_is_prior, prior_weight, zero_score, lambda, form, alone })
    }

    /// The score ∇ log q − ∇ log t_k, for one loop with steps of at most this length; see [`Kde::evaluator`].
    fn difference(&self, longest_step: f64) -> impl FnMut(&Particles) -> Result<Score, RunError> {
        let evaluator = |density: &Density| density.kde.evaluator(longest_step);
        let (mut q, mut t) = (self.q.as_ref().map(evaluator), self.t.as_ref().map(evaluator));
        move |at| {
            let q = match &mut q {
                Some(q) => q.score(at)?,
                None if self.q_is_prior => prior_score(&*self.model, at, 1.0),
                None => Score::zero(at.count()),
            };
            match &mut t {
                Some(t) => Ok(q.minus(t.score(at)?)),
                None => Ok(q),
            }
        }
    }

    /// The score ρ·(∇ log q − ∇ log t_k) at particles `[N, d]`, for one loop with steps of at most `longest_step`. The
    /// norm of every row is at most c·√d/λ.
    ///
    /// # Errors
    /// The closure fails when the device does not answer.
    pub fn score(
        &self,
        density: DensityConfig,
        longest_step: f64,
    ) -> impl FnMut(&Particles) -> Result<Score, RunError> {
        let mut difference = self.difference(longest_step);
        move |at| density.bounded(difference(at)?, at, self.lambda)
    }

    /// The effective number of q's centres at a particle, averaged over the particles `at` `[N, d]`; `None` where q has
    /// no centres.
    ///
    /// # Errors
    /// The device does not answer.
    pub fn effective_sample_size(&self, at: &Particles) -> Result<Option<f64>, RunError> {
        match &self.q {
            Some(q) => Ok(Some(mean(&q.kde.effective_sample_size(at)?))),
            None => Ok(None),
        }
    }

    /// The particles `[N, d]` of the factor t_k·q_new/q, given the particles `moved` `[N, d]` of q_new. They have a
    /// closed form for a single client, and where each centre of these densities has all the weight at itself;
    /// otherwise the result is `None`. In the second case the score of the new factor, ∇ log t_k + ∇ log q_new − ∇ log
    /// q, is zero at
    ///
    /// Θ_k,new = Θ_k + (Θ_new − Θ).
    ///
    /// # Errors
    /// The device does not answer.
    pub fn factor_in_closed_form(&self, moved: &Particles) -> Result<Option<Particles>, RunError> {
        if self.form == Factors::Paper {
            // The loop exactly as printed.
            return Ok(None);
        }
        if self.alone {
            return Ok(Some(moved.clone()));
        }
        let new = Density::new(moved.clone(), self.kde)?;
        let (Some(q), Some(t)) = (&self.q, &self.t) else { return Ok(None) };
        if ![&new, q, t].into_iter().all(|density| density.kde.is_one_hot()) {
            return Ok(None);
        }
        let step = new.centres.zip(q.centres.clone(), |new, old| new - old);
        Ok(Some(t.centres.clone().zip(step, |factor, step| factor + step)))
    }

    /// The score ∇ log t_k + ∇ log q_new − ∇ log q of the factor after the visit, given the particles `moved` `[N, d]`
    /// of q_new, for one loop with steps of at most `longest_step`.
    ///
    /// # Errors
    /// The device does not answer.
    pub fn factor_score(
        &self,
        moved: &Particles,
        longest_step: f64,
    ) -> Result<impl FnMut(&Particles) -> Result<Score, RunError>, RunError> {
        let mut q_new = Kde::new(moved, self.kde)?.evaluator(longest_step);
        let mut difference = self.difference(longest_step);
        Ok(move |at: &Particles| Ok(q_new.score(at)?.minus(difference(at)?)))
    }
}

#[cfg(test)]
mod tests {
    use fedstein_models::{BlrConfig, Network};
    use fedstein_schema::NumberOr;

    use super::*;
    use crate::array::{Array, Values};
    use crate::backend::{Flex, Precision, Session};
    use crate::density::kde::KdeMode;

    /// One particle of a logistic regression with four weights and log ξ, all coordinates alike.
    fn particle(value: f64) -> (Arc<dyn Model>, Particles) {
        let model: Arc<dyn Model> = Arc::new(Network::new(BlrConfig::new(4)));
        let session = Session::open::<Flex>(Precision::F64).unwrap();
        let array = Array { shape: vec![1, 5], values: Values::F64(vec![value; 5]) };
        let particle = Particles::from_array(&array, model.layout(), &session).unwrap();
        (model, particle)
    }

    #[test]
    fn the_clip_is_in_units_of_the_lambda_of_the_configuration() {
        let (model, theta) = particle(0.5);
        let (_, factor) = particle(900.0);
        let (lambda, clip) = (0.2, 3.0);
        let (kde, kde_bandwidth) = (KdeMode::Exact, NumberOr::Fixed(lambda));
        let density = DensityConfig { kde, kde_bandwidth, kde_damping: 1.0, kde_clip: clip };
        let bound = clip * 5.0f64.sqrt() / lambda;
        for form in [Factors::WithPrior, Factors::Paper] {
            let (model, theta, factor) = (&model, &theta, &factor);
            let start = Start { model, theta, factor, visited: true, round: 4, clients: 8 };
            let cavity = Cavity::new(form, density.kde(), &start).unwrap();
            let score = cavity.score(density, f64::INFINITY)(theta).unwrap();
            let norm = score.evaluate(theta).row_norms().unwrap()[0];
            assert!((norm / bound - 1.0).abs() < 1e-12, "{form:?}: {norm}, not {bound}");
        }
    }
}
