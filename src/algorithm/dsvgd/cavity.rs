//! The densities of a visit: the global q, the client's factor t_k, the cavity q/t_k, and the factor after the visit.
//!
//! All centres stay fixed during the visit. [`Factors`] lists what a factor holds besides the client's likelihood;
//! docs/algorithms.md ("dsvgd") derives every formula of this file.

use std::sync::Arc;

use fedstein_models::Model;
use serde::{Deserialize, Serialize};

use crate::backend::Backend;
use crate::density::kde::{Kde, KdeConfig};
use crate::density::prior_score;
use crate::error::RunError;
use crate::particles::Particles;
use crate::statistics::mean;
use crate::stein::Score;

/// The content of a client's factor besides its likelihood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Factors {
    /// [`Self::Growing`] where one centre has all the weight at each of the initial particles, else
    /// [`Self::WithPrior`].
    #[default]
    Auto,
    /// t̂_k = p0^(1/K)·t_k, and p0^(1/K) itself until the client's first visit. The particles' part of a factor has the
    /// precision 1/(Kλ²), that of q the precision V/(Kλ²) of the V factors visited so far. This form is ours, for
    /// high dimensions, where one centre has all the weight of a density estimate; the paper does not have it.
    Growing,
    /// As `Growing`, with factors that start at Θ^(0), as if all had been visited: q has the precision 1/λ² from the
    /// first round on.
    SharedPrior,
    /// t̂_k = p0·t_k, a proper density that starts at Θ^(0); every local score contains p0 (the public code).
    WithPrior,
    /// t_k^(0) = 1 and q^(0) = p0, as printed in the paper.
    Paper,
}

use super::super::HELD;

impl Factors {
    /// The value of `algorithm.factors` in a config.
    pub fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Growing => "growing",
            Self::SharedPrior => "shared-prior",
            Self::WithPrior => "with-prior",
            Self::Paper => "paper",
        }
    }

    /// The effect of `algorithm.kde_bandwidth` where one centre has all the weight of a density.
    pub(super) fn one_hot_advice(self) -> &'static str {
        match self {
            Self::WithPrior | Self::Paper => {
                "with this value of algorithm.factors a smaller algorithm.kde_bandwidth makes it worse where clients differ; \
                 algorithm.factors = \"growing\" remembers them"
            }
            Self::Auto | Self::Growing | Self::SharedPrior => HELD,
        }
    }

    /// The form that [`Self::Auto`] stands for with these initial particles `[N, d]`; every other form stands for
    /// itself.
    ///
    /// # Errors
    /// The device does not answer.
    pub fn chosen<B: Backend>(self, kde: KdeConfig, initial: &Particles<B>) -> Result<Self, RunError> {
        Ok(match self {
            Self::Auto if Kde::new(initial, kde)?.is_one_hot() => Self::Growing,
            Self::Auto => Self::WithPrior,
            form => form,
        })
    }
}

/// The state of a client at the start of a visit.
pub(super) struct Start<'a, B: Backend> {
    /// The model, for its prior p0.
    pub model: &'a Arc<dyn Model>,
    /// Θ as received, `[N, d]`.
    pub theta: &'a Particles<B>,
    /// The factor's particles Θ_k, `[N, d]`.
    pub factor: &'a Particles<B>,
    /// Whether Θ_k is from an earlier visit.
    pub visited: bool,
    /// The round, from 1.
    pub round: usize,
    /// The number of clients K.
    pub clients: f64,
    /// The number V of clients visited before this round.
    pub seen: f64,
    /// The number V' of clients visited after this round; `None` where this client is the only one of the round.
    pub seen_after: Option<f64>,
}

/// A density estimate and its centres.
struct Density<B: Backend> {
    kde: Kde<B>,
    centres: Particles<B>,
}

impl<B: Backend> Density<B> {
    fn new(centres: Particles<B>, config: KdeConfig, widening: f64) -> Result<Self, RunError> {
        Ok(Self { kde: Kde::new(&centres, config)?.widened(widening), centres })
    }
}

/// The cavity q/t_k in terms of kernel density estimates.
pub(super) struct Cavity<B: Backend> {
    kde: KdeConfig,
    model: Arc<dyn Model>,
    /// Θ as received, `[N, d]`.
    theta: Particles<B>,
    /// The particles' part of q; `None` where no factor is in q yet.
    q: Option<Density<B>>,
    /// The particles' part of t_k; `None` where the client has no factor yet.
    t: Option<Density<B>>,
    /// Whether q is p0 in closed form (the printed first round).
    q_is_prior: bool,
    /// The weight of ∇ log p0 in the local score.
    pub prior_weight: f64,
    /// Whether the scores of all densities are 0. No factor is kept then, and nothing is distilled.
    pub zero_score: bool,
    /// The bandwidth λ of the configuration, before any widening.
    lambda: f64,
    after: After,
}

/// The precisions of q and of the factor after the visit.
#[derive(Clone, Copy)]
struct After {
    form: Factors,
    /// The number of clients K.
    clients: f64,
    /// The number V of clients visited before the round.
    seen_before: f64,
    /// The number of clients visited before the round or in this visit.
    seen_with: f64,
    /// The number V' of clients visited after the round, all its clients included.
    seen: f64,
}

impl After {
    /// λ² times the precision of the particles' part of q where `seen` clients have been visited.
    fn q_precision(self, seen: f64) -> f64 {
        if self.form == Factors::Growing { seen / self.clients } else { 1.0 }
    }

    /// λ² times the precision of the factor.
    fn factor_precision(self) -> f64 {
        if matches!(self.form, Factors::Growing | Factors::SharedPrior) { 1.0 / self.clients } else { 1.0 }
    }

    /// The ratio κ of the precision of the particles' part of q to that of the factor, where `seen` clients have been
    /// visited.
    fn kappa(self, seen: f64) -> f64 {
        self.q_precision(seen) / self.factor_precision()
    }
}

impl<B: Backend> Cavity<B> {
    /// The densities of a visit that starts from `start`.
    ///
    /// # Errors
    /// The device does not answer.
    pub fn new(form: Factors, kde: KdeConfig, start: &Start<B>) -> Result<Self, RunError> {
        let Start { model, theta, factor, visited, round, clients, seen, seen_after } = *start;
        let own = f64::from(u8::from(visited));
        let plain = Kde::new(theta, kde)?;
        let zero_score = plain.has_zero_score() && Kde::new(factor, kde)?.has_zero_score();
        // Densities without a score carry no prior: then the local score has to contain all of it.
        let form = if zero_score { Factors::WithPrior } else { form };
        let seen_with = seen + 1.0 - own;
        let after = After { form, clients, seen_before: seen, seen_with, seen: seen_after.unwrap_or(seen_with) };
        let lambda = plain.lambda();
        let cavity = Self {
            kde,
            model: model.clone(),
            theta: theta.clone(),
            q: None,
            t: None,
            q_is_prior: false,
            prior_weight: 1.0,
            zero_score,
            lambda,
            after,
        };
        // A single client's factor is all of q: its cavity is 1, up to the prior.
        if clients == 1.0 && form != Factors::Paper {
            return Ok(cavity);
        }
        let density = |centres: &Particles<B>, widening| Density::new(centres.clone(), kde, widening);
        Ok(match form {
            Factors::Growing => Self {
                q: match seen > 0.0 {
                    true => Some(density(&cavity.q_centres(theta, seen), (clients / seen).sqrt())?),
                    false => None,
                },
                t: if visited { Some(density(factor, clients.sqrt())?) } else { None },
                // p0^((K−V)/K) of those not visited, and this client's own share where t̂_k divides it out.
                prior_weight: (clients - seen + own) / clients,
                ..cavity
            },
            Factors::SharedPrior => Self {
                q: Some(Density { kde: plain, centres: theta.clone() }),
                t: Some(density(factor, clients.sqrt())?),
                prior_weight: 1.0 / clients,
                ..cavity
            },
            Factors::Auto | Factors::WithPrior => Self {
                q: Some(Density { kde: plain, centres: theta.clone() }),
                t: Some(density(factor, 1.0)?),
                ..cavity
            },
            Factors::Paper => Self {
                q: (round > 1).then(|| Density { kde: plain, centres: theta.clone() }),
                t: if visited { Some(density(factor, 1.0)?) } else { None },
                q_is_prior: round == 1,
                prior_weight: 0.0,
                ..cavity
            },
        })
    }

    /// The centres of the particles' part of q where `seen` clients have been visited.
    ///
    /// With [`Factors::Growing`], q = p0^((K−V)/K)·N(c, (K/V)λ²) has its mode at Θ, so c lies where the rest of the
    /// prior does not pull Θ away: c = Θ − λ²·((K−V)/V)·∇ log p0(Θ).
    fn q_centres(&self, theta: &Particles<B>, seen: f64) -> Particles<B> {
        let After { form, clients, .. } = self.after;
        if form != Factors::Growing || seen == clients {
            return theta.clone();
        }
        self.shifted(theta, -(clients - seen) / seen)
    }

    /// Θ + c·λ²·∇ log p0(Θ).
    fn shifted(&self, theta: &Particles<B>, c: f64) -> Particles<B> {
        let shift = prior_score(&*self.model, theta, c * self.lambda * self.lambda).evaluate(theta);
        theta.clone().zip(shift, |theta, shift| theta + shift)
    }

    /// The score ∇ log q − ∇ log t_k, for one loop with steps of at most this length; see [`Kde::evaluator`].
    fn difference(&self, longest_step: f64) -> impl FnMut(&Particles<B>) -> Result<Score<B>, RunError> {
        let evaluator = |density: &Density<B>| density.kde.evaluator(longest_step);
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
    /// norm of every row is at most c·√d/λ, with the λ of the configuration.
    ///
    /// # Errors
    /// The closure fails when the device does not answer.
    pub fn score(
        &self,
        damping: f64,
        clip: Option<f64>,
        longest_step: f64,
    ) -> impl FnMut(&Particles<B>) -> Result<Score<B>, RunError> {
        let mut difference = self.difference(longest_step);
        move |at| {
            let score = difference(at)?.times(damping);
            let Some(clip) = clip else { return Ok(score) };
            Ok(score.clipped(at, clip * (at.dim() as f64).sqrt() / self.lambda)?)
        }
    }

    /// The effective number of q's centres at a particle, averaged over the particles `at` `[N, d]`; `None` where q has
    /// no centres.
    ///
    /// # Errors
    /// The device does not answer.
    pub fn effective_sample_size(&self, at: &Particles<B>) -> Result<Option<f64>, RunError> {
        match &self.q {
            Some(q) if !self.zero_score => Ok(Some(mean(&q.kde.effective_sample_size(at)?))),
            _ => Ok(None),
        }
    }

    /// The particles `[N, d]` of the factor t_k·q_new/q, given the particles `moved` `[N, d]` of q_new. They have a
    /// closed form for a single client, and where each centre of these densities has all the weight at itself;
    /// otherwise the result is `None`. In the second case the score of the new factor, ∇ log t_k + ∇ log q_new − ∇ log
    /// q, is zero at
    ///
    /// Θ_k,new = Θ_k + κ(c_new − c),
    ///
    /// with κ the precision of q over that of the factor, c_new the centres of q after the round, and c those that it
    /// would have if no client had moved Θ. Before a client's first visit Θ_k is the neutral factor
    /// ([`Self::neutral_factor`]).
    ///
    /// # Errors
    /// The device does not answer.
    pub fn factor_in_closed_form(&self, moved: &Particles<B>) -> Result<Option<Particles<B>>, RunError> {
        let After { form, clients, seen, .. } = self.after;
        if form == Factors::Paper {
            // The loop exactly as printed.
            return Ok(None);
        }
        let new = self.density_of(moved, seen)?;
        if clients == 1.0 {
            return Ok(Some(new.centres));
        }
        let one_hot = |density: &Density<B>| density.kde.is_one_hot();
        if !one_hot(&new) || self.q.iter().chain(&self.t).any(|density| !one_hot(density)) {
            return Ok(None);
        }
        let kappa = self.after.kappa(seen);
        let step = new.centres.zip(self.q_centres(&self.theta, seen), |new, old| (new - old).mul_scalar(kappa));
        let factor = self.t.as_ref().map_or_else(|| self.neutral_factor(), |t| t.centres.clone());
        Ok(Some(factor.zip(step, |factor, step| factor + step)))
    }

    /// The particles of a growing factor before its first visit, with which Θ would stay where it is: its score at Θ is
    /// that of p0^(1/K). Where no factor is in q yet, q = p0 does not have its mode at Θ, and the first factors bring
    /// it there.
    fn neutral_factor(&self) -> Particles<B> {
        let After { seen_before, seen, .. } = self.after;
        if seen_before > 0.0 { self.shifted(&self.theta, 1.0) } else { self.q_centres(&self.theta, seen) }
    }

    /// The particles' part of q where `seen` clients have been visited and `theta` are its particles.
    fn density_of(&self, theta: &Particles<B>, seen: f64) -> Result<Density<B>, RunError> {
        Density::new(self.q_centres(theta, seen), self.kde, self.after.q_precision(seen).powf(-0.5))
    }

    /// The score ∇ log t_k + ∇ log q_new − ∇ log q of the factor after the visit, given the particles `moved` `[N, d]`
    /// of q_new, for one loop with steps of at most `longest_step`.
    ///
    /// # Errors
    /// The device does not answer.
    pub fn factor_score(
        &self,
        moved: &Particles<B>,
        longest_step: f64,
    ) -> Result<impl FnMut(&Particles<B>) -> Result<Score<B>, RunError>, RunError> {
        let mut q_new = self.density_of(moved, self.after.seen_with)?.kde.evaluator(longest_step);
        let mut difference = self.difference(longest_step);
        Ok(move |at: &Particles<B>| Ok(q_new.score(at)?.minus(difference(at)?)))
    }

    /// The particles `[N, d]` from which distillation starts: those of the factor, or `moved` for a growing factor,
    /// which has none before its first visit.
    pub fn distillation_start(&self, factor: &Particles<B>, moved: &Particles<B>) -> Particles<B> {
        if self.after.form == Factors::Growing && self.t.is_none() { moved.clone() } else { factor.clone() }
    }

    /// The ratio of the step length of distillation to that of Θ: a factor with 1/κ of q's precision moves κ
    /// times as far.
    pub fn pace(&self) -> f64 {
        self.after.kappa(self.after.seen_with)
    }
}

#[cfg(test)]
mod tests {
    use fedstein_models::{BlrConfig, Network};

    use super::*;
    use crate::array::{Array, Values};
    use crate::backend::{Flex, Precision, Session};
    use crate::density::kde::{KdeBandwidth, KdeMode};

    /// One particle of a logistic regression with four weights and log ξ, all coordinates alike.
    fn particle(value: f64) -> (Arc<dyn Model>, Particles<Flex>) {
        let model: Arc<dyn Model> = Arc::new(Network::new(BlrConfig::new(4)));
        let session = Session::open(Precision::F64).unwrap();
        let array = Array { shape: vec![1, 5], values: Values::F64(vec![value; 5]) };
        let particle = Particles::from_array(&array, model.layout(), &session).unwrap();
        (model, particle)
    }

    #[test]
    fn the_clip_is_in_units_of_the_lambda_of_the_configuration() {
        // The widening of λ by the form must not matter: a bound that jumped with the number of clients visited would
        // have a different meaning in every round.
        let (model, theta) = particle(0.5);
        let (_, factor) = particle(900.0);
        let (lambda, clip) = (0.2, 3.0);
        let kde = KdeConfig { mode: KdeMode::Exact, bandwidth: KdeBandwidth::Fixed(lambda) };
        let bound = clip * 5.0f64.sqrt() / lambda;
        for (form, round, seen) in [
            (Factors::Growing, 4, 2.0),
            (Factors::Growing, 9, 8.0),
            (Factors::SharedPrior, 4, 2.0),
            (Factors::WithPrior, 4, 2.0),
            (Factors::Paper, 4, 2.0),
        ] {
            let (model, theta, factor) = (&model, &theta, &factor);
            let start = Start { model, theta, factor, visited: true, round, clients: 8.0, seen, seen_after: None };
            let score = Cavity::new(form, kde, &start).unwrap().score(1.0, Some(clip), f64::INFINITY)(theta).unwrap();
            let norm = score.evaluate(theta).row_norms().unwrap()[0];
            assert!((norm / bound - 1.0).abs() < 1e-12, "{form:?}, V = {seen}: {norm}, not {bound}");
        }
    }
}
