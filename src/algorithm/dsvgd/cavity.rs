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

    /// A logistic regression with four weights and log ξ.
    fn model() -> Arc<dyn Model> {
        Arc::new(Network::new(BlrConfig::new(4)))
    }

    /// Particles of that model, each with all coordinates alike.
    fn particles(values: &[f64]) -> Particles {
        let (model, session) = (model(), Session::open::<Flex>(Precision::F64).unwrap());
        let rows = values.iter().flat_map(|value| [*value; 5]).collect();
        let array = Array { shape: vec![values.len(), 5], values: Values::F64(rows) };
        Particles::from_array(&array, model.layout(), &session).unwrap()
    }

    fn density(lambda: f64, kde_damping: f64, kde_clip: f64) -> DensityConfig {
        DensityConfig { kde: KdeMode::Exact, kde_bandwidth: NumberOr::Fixed(lambda), kde_damping, kde_clip }
    }

    /// The cavity of one of two clients, with λ = 1 and factors that hold the prior; Θ is `q`, and Θ_k is `t`.
    fn cavity(q: &[f64], t: &[f64]) -> Cavity {
        let (model, theta, factor) = (model(), particles(q), particles(t));
        let start = Start { model: &model, theta: &theta, factor: &factor, visited: true, round: 4, clients: 2 };
        Cavity::new(Factors::WithPrior, density(1.0, 1.0, 0.0).kde(), &start).unwrap()
    }

    /// Asserts that every coordinate of each particle is the wanted number.
    fn assert_alike(got: &Particles, want: &[f64], what: &str) {
        let got = got.to_array().unwrap().values.to_f64();
        assert_eq!(got.len(), 5 * want.len(), "{what}");
        for (row, want) in got.chunks_exact(5).zip(want) {
            // A few operations of order 1 in f64.
            assert!(row.iter().all(|value| (value - want).abs() < 1e-12), "{what}: {row:?}, not {want}");
        }
    }

    #[test]
    fn the_clip_is_in_units_of_the_lambda_of_the_configuration() {
        let (model, theta, factor) = (model(), particles(&[0.5]), particles(&[900.0]));
        let (lambda, clip) = (0.2, 3.0);
        let density = density(lambda, 1.0, clip);
        let bound = clip * 5.0f64.sqrt() / lambda;
        for form in [Factors::WithPrior, Factors::Paper] {
            let start = Start { model: &model, theta: &theta, factor: &factor, visited: true, round: 4, clients: 8 };
            let cavity = Cavity::new(form, density.kde(), &start).unwrap();
            let score = cavity.score(density, f64::INFINITY)(&theta).unwrap();
            let norm = score.evaluate(&theta).row_norms().unwrap()[0];
            assert!((norm / bound - 1.0).abs() < 1e-12, "{form:?}: {norm}, not {bound}");
        }
    }

    /// The share of the farther of two centres with λ = 1, where the other one is nearer by this much in ‖x − θ_j‖².
    fn farther(nearer: f64) -> f64 {
        1.0 / (1.0 + (0.5 * nearer).exp())
    }

    #[test]
    fn the_score_of_the_cavity_is_damped_before_it_is_clipped() {
        // q has the centres 0 and 1, whose distance is √5, and both centres of t are at ¼.
        let (cavity, at) = (cavity(&[0.0, 1.0], &[0.25, 0.25]), particles(&[0.0, 1.0]));
        let share = farther(5.0);
        let difference = [share - 0.25, -share + 0.75];
        for (damping, clip, want) in [
            (1.0, 0.0, difference),
            (0.5, 0.0, difference.map(|score| 0.5 * score)),
            (1.0, 0.1, [-0.1, 0.1]),
            // Half of −.174 is within the bound, half of .674 is not.
            (0.5, 0.1, [0.5 * difference[0], 0.1]),
        ] {
            let score = cavity.score(density(1.0, damping, clip), f64::INFINITY)(&at).unwrap();
            assert_alike(&score.evaluate(&at), &want, &format!("damping {damping}, clip {clip}"));
        }
    }

    #[test]
    fn a_factor_is_distilled_from_the_whole_difference() {
        // At ¼, q_new with centres at ½ and 1½, q with centres at 0 and 1, and t, whose score is 0 there.
        let (cavity, moved, at) = (cavity(&[0.0, 1.0], &[0.25, 0.25]), particles(&[0.5, 1.5]), particles(&[0.25]));
        let new = 0.5 + farther(5.0 * (1.5625 - 0.0625)) - 0.25;
        let old = farther(5.0 * (0.5625 - 0.0625)) - 0.25;
        let mut score = cavity.factor_score(&moved, f64::INFINITY).unwrap();
        assert_alike(&score(&at).unwrap().evaluate(&at), &[new - old], "∇ log t_k + ∇ log q_new − ∇ log q");
    }

    #[test]
    fn the_effective_sample_size_is_that_of_the_global_density() {
        // Both centres of q are equally far from ½.
        for factor in [[0.25, 0.25], [0.0, 900.0]] {
            let size = cavity(&[0.0, 1.0], &factor).effective_sample_size(&particles(&[0.5])).unwrap().unwrap();
            assert!((size - 2.0).abs() < 1e-12, "Θ_k = {factor:?}: {size}");
        }
    }

    #[test]
    fn a_factor_has_a_closed_form_where_all_three_densities_are_one_hot() {
        let closed = |q: &[f64], t: &[f64], new: &[f64]| {
            cavity(q, t).factor_in_closed_form(&particles(new)).unwrap().map(|factor| {
                let centres: Vec<f64> = t.iter().zip(new).zip(q).map(|((t, new), q)| t + new - q).collect();
                assert_alike(&factor, &centres, "Θ_k + Θ_new − Θ");
            })
        };
        // Two centres δ apart in each coordinate: e^(−5δ²/2) < .01 where δ > 1.35723.
        let two = |from: f64, apart: f64| [from, from + apart];
        let of_two = |q, t, new| closed(&two(0.0, q), &two(-2.0, t), &two(0.25, new)).is_some();
        assert!(!of_two(1.35, 1.35, 1.35) && of_two(1.36, 1.36, 1.36));
        assert!(!of_two(1.0, 1.36, 1.36) && !of_two(1.36, 1.0, 1.36) && !of_two(1.36, 1.36, 1.0));
        // Of three in a row the one between the others decides: 2e^(−5δ²/2) < .01 where δ > 1.45579.
        let three = |apart: f64| {
            let row = |from: f64| [from, from + apart, from + 2.0 * apart];
            closed(&row(0.0), &row(-2.0), &row(0.25)).is_some()
        };
        assert!(!three(1.45) && three(1.46));
    }
}
