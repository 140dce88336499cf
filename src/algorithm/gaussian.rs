//! Gaussian posteriors in natural parameters: what PVI and GVI share. Source: Bui et al. 2018, Property 4; Kassab &
//! Simeone Algorithm 2.
//!
//! A client looks for the Gaussian q closest to its tilted density, argmin KL(q ‖ cavity · exp f), f = −L_k/α. In the
//! mean parameters μ of the family this is stationary where η = η_cav + ∇_μ E_q f, and the natural gradient step is
//!
//! η ← (1 − ρ)η + ρ(η_cav + g(η)),  g(η) = ∇_μ E_q f = (E[∇f] − E[∇²f]·m, −E[∇²f]) in (η1, Λ),
//!
//! with the diagonal of E[∇²f] alone in the mean field. [`expectation`] computes the expectations, [`StepBound`] limits
//! a step.
//!
//! # The prior
//! q = p0·Π_k t_k needs p0 in the family. Terms that are (normal ones; coupled normals in the full family) enter q by
//! their natural parameters, and their factors begin at 1. Every other term p' is known by its score alone: each of K
//! factors holds p'^(1/K) besides its likelihood, f = −L_k/α + (1/K) log p'. At a fixed point every client has
//! η = η_cav,k + g_k(η), so η − η_exact = Σ_k η_k = Σ_k g_k(η), which is the condition of one client with all rows:
//! PVI and GVI have the same fixed points. In the coordinates of such terms q begins as some Gaussian, a K-th of it in
//! each factor, and no longer depends on it when each client was visited once:
//!
//! | term | start |
//! |---|---|
//! | U(a, b) | its mean and variance; its score is 0, so q is that of a flat prior |
//! | log γ, γ ~ Gamma(a, b) | N(log(a/b), 1/a), Laplace's approximation |
//! | w given ξ ~ Gamma(a, b) | N(0, b/a), the prior at E ξ; w itself has no variance for a ≤ 1 |
//! | coupled normal in the mean field | its mean and the diagonal of its precision |
//! | none | N(0, 1) |
//!
//! Starts of hierarchical priors are no wider than 1.

pub mod expectation;
mod family;
mod fitter;
pub mod natural;
mod prior;
mod problem;
mod server;
mod symmetric;

use std::sync::Arc;

use expectation::Rule;
use fedstein_schema::Accepts::{Choice, Float};
use fedstein_schema::Literal::{Float as F, Text as T};
use fedstein_schema::{Interval, Key, key};
use serde::{Deserialize, Serialize};

use super::keys::{LocalConfig, PARTICLE_COUNT, SAMPLES};
use crate::error::RunError;
use crate::protocol::{ClientId, LocalData, Setup};

pub use family::Family;
pub(super) use fitter::Fitter;
pub use fitter::fit;
use natural::{Natural, StepBound};
use prior::DividedPrior;
use problem::{COVARIANCE, Problem};
pub(super) use server::Server;

/// The constants of the local optimisation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GaussianConfig {
    /// The family of Gaussians.
    pub family: Family,
    /// The share ρ ∈ (0, 1] of the new natural parameters in a step.
    pub damping: f64,
    /// The number of draws behind an expectation in more than two dimensions.
    pub samples: usize,
}

/// The number of draws N.
pub(super) const DRAWS: Key = PARTICLE_COUNT.doc("Number of draws N from q for predictions.");
/// The family of Gaussians.
pub(super) const FAMILY: Key = key(
    "family",
    Choice(Family::WORDS),
    T(Family::MeanField.word()),
    "Gaussians with independent coordinates, or with any covariance (a few dimensions).",
);
/// The share ρ of a step.
pub(super) const DAMPING: Key = key(
    "damping",
    Float(Interval::FRACTION),
    F(0.1),
    "ρ: the share of the new natural parameters in a step; 1 where expectations are exact, small where they are noisy.",
);
/// The number of draws behind an expectation.
pub(super) const EXPECTATION_SAMPLES: Key =
    SAMPLES.doc("Number of draws per expectation, in pairs on either side of the mean, so that an odd number is rounded up; models of one or two dimensions use quadrature instead.");

/// The parts from which both algorithms are built.
pub(super) struct GaussianHalves {
    /// The server half.
    pub server: Server,
    /// The fitters of the clients in this process.
    pub fitters: Vec<(ClientId, Fitter)>,
    /// The prior's terms inside the family.
    pub prior: Natural,
    /// A factor before its first visit.
    pub factor: Natural,
}

impl GaussianHalves {
    /// Builds the server half and one fitter per client in this process.
    ///
    /// # Errors
    /// The model has more dimensions than the family is for, or its prior is not a density.
    pub fn new(
        config: GaussianConfig,
        local: LocalConfig,
        data: LocalData,
        mut setup: Setup,
    ) -> Result<Self, RunError> {
        let layout = setup.model.layout().clone();
        let d = layout.dim();
        if config.family == Family::Full && d > COVARIANCE {
            return Err(RunError::Config(format!(
                "algorithm.family = \"full\" keeps a {d} x {d} matrix and is for at most {COVARIANCE} dimensions; \
                 use \"mean-field\""
            )));
        }
        let DividedPrior { exact, start, shared } = DividedPrior::new(setup.model.prior(), &layout, config.family);
        let initial = exact.plus(&start).normalised().ok_or_else(|| {
            RunError::Config("the model's prior has a Gaussian term whose precision is not positive definite".into())
        })?;
        let likelihoods = setup.likelihoods(data);
        let share = 1.0 / setup.roster.len() as f64;
        let rule = Rule::new(d, config.samples);
        let problem = Arc::new(Problem {
            family: config.family,
            damping: config.damping,
            local,
            shared,
            share,
            bound: StepBound::new(&initial, rule.is_sampled()),
            initial,
            rule,
            layout,
            streams: setup.streams,
            session: setup.session,
        });
        let fitter = |(client, likelihood)| (client, Fitter::new(problem.clone(), likelihood, client));
        let fitters = likelihoods.into_iter().map(fitter).collect();
        let server = Server::new(problem.clone(), setup.initial.count())?;
        Ok(Self { server, fitters, prior: exact, factor: start.times(share) })
    }
}
