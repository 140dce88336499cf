//! Independent Gaussians by their means and raw deviations (μ, ρ), σ = softplus(ρ): what pFedBayes and pFedVEM share.
//!
//! - Gradients through draws θ_s = μ + σ ⊙ z_s: with g_s = ∇ log p(θ_s), ∇_μ E log p ≈ mean_s g_s and
//!   ∇_ρ E log p ≈ mean_s (g_s ⊙ z_s) ⊙ sigmoid(ρ).
//! - KL(q ‖ p) = Σ_i [log(σ_p/σ_q) + (σ_q² + (μ_q − μ_p)²)/(2σ_p²) − ½], with its gradients in closed form.
//!
//! Source: Blundell et al. 2015, section 3.2, as both papers use it. Natural parameters
//! ([`super::gaussian`]) do not fit here, because averages and steps are taken in (μ, ρ).

use std::sync::Arc;

use burn::tensor::Tensor;
use fedstein_models::{Layout, logistic, softplus};
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::array::{Array, ArrayError, Values};
use crate::backend::Session;
use crate::checkpoint::State;
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::Message;
use crate::stein::{Direction, Optimizer, OptimizerState};

/// N(μ, diag σ²), σ = softplus(ρ) = log(1 + e^ρ); also a gradient with respect to (μ, ρ).
#[derive(Clone, Debug)]
pub struct MeanField {
    /// μ, `[1, d]`.
    pub mean: Particles,
    /// ρ, `[1, d]`.
    pub rho: Particles,
}

/// The optimiser states of μ and of ρ.
#[derive(Clone, Debug, Default)]
pub struct MeanFieldState {
    mean: OptimizerState,
    rho: OptimizerState,
}

impl MeanFieldState {
    /// The values as a part of a state.
    ///
    /// # Errors
    /// The device does not answer.
    pub fn save(&self) -> Result<State, RunError> {
        Ok(State::default().with_optimizer(MEAN, &self.mean)?.with_optimizer(RHO, &self.rho)?)
    }

    /// Reads the values from a state.
    ///
    /// # Errors
    /// A part is missing or malformed.
    pub fn in_state(state: &State, session: &Session) -> Result<Self, RunError> {
        Ok(Self { mean: state.optimizer(MEAN, session)?, rho: state.optimizer(RHO, session)? })
    }
}

/// The names of μ and ρ in messages and states.
const MEAN: &str = "mean";
/// The name of ρ; see [`MEAN`].
const RHO: &str = "rho";

impl MeanField {
    /// A Gaussian with this mean `[1, d]` and the same ρ for every coordinate.
    pub fn with_rho(mean: Particles, rho: f64) -> Self {
        let rho = mean.map(|block| block.full_like(rho));
        Self { mean, rho }
    }

    /// The Gaussian N(μ, sd²·I) for a mean `[1, d]` and sd > 0.
    pub fn isotropic(mean: Particles, sd: f64) -> Self {
        // softplus⁻¹(s) = log(e^s − 1), without e^s.
        Self::with_rho(mean, sd + (-(-sd).exp_m1()).ln())
    }

    /// The standard deviations σ, `[1, d]`.
    pub fn sd(&self) -> Particles {
        self.rho.map(softplus)
    }

    /// The points μ + σ ⊙ z_s `[S, d]` for the rows of z `[S, d]`.
    pub fn at(&self, z: &Particles) -> Particles {
        let spread = self.sd().zip(z.clone(), |sd, z| sd * z);
        self.mean.clone().zip(spread, |mean, spread| mean + spread)
    }

    /// The gradient ∇_(μ, ρ) of (1/S) Σ_s log p(μ + σ ⊙ z_s), given the scores `[S, d]` at these points and z `[S, d]`.
    pub fn pulled_back(&self, scores: &Particles, z: &Particles) -> Self {
        let along = scores.clone().zip(z.clone(), |score, z| score * z).mean();
        Self { mean: scores.mean(), rho: self.through_softplus(along) }
    }

    /// The gradient ∇_(μ, ρ) KL(self ‖ other).
    pub fn kl_gradient(&self, other: &Self) -> Self {
        let (sd, precision) = (self.sd(), other.sd().map(|sd| sd.square().recip()));
        let apart = self.mean.clone().zip(other.mean.clone(), |mean, other| mean - other);
        let mean = apart.zip(precision.clone(), |apart, precision| apart * precision);
        let by_sd = sd.zip(precision, |sd, precision| sd.clone() * precision - sd.recip());
        Self { mean, rho: self.through_softplus(by_sd) }
    }

    /// The gradient ∇_(μ, ρ) KL(other ‖ self).
    pub fn reverse_kl_gradient(&self, other: &Self) -> Self {
        let (sd, precision) = (self.sd(), self.sd().map(|sd| sd.square().recip()));
        let apart = self.mean.clone().zip(other.mean.clone(), |mean, other| mean - other);
        let mean = apart.clone().zip(precision.clone(), |apart, precision| apart * precision);
        let second = other.sd().zip(apart, |sd, apart| sd.square() + apart.square());
        let ratio = second.zip(precision, |second, precision| second * precision);
        let by_sd = sd.zip(ratio, |sd, ratio| ratio.sub_scalar(1.0).neg() / sd);
        Self { mean, rho: self.through_softplus(by_sd) }
    }

    /// The sum self + c·other in (μ, ρ).
    pub fn plus(self, other: Self, c: f64) -> Self {
        let add = |to: Tensor<2>, from: Tensor<2>| to + from.mul_scalar(c);
        Self { mean: self.mean.zip(other.mean, add), rho: self.rho.zip(other.rho, add) }
    }

    /// The product c·self in (μ, ρ).
    pub fn times(&self, c: f64) -> Self {
        let scale = |block: Tensor<2>| block.mul_scalar(c);
        Self { mean: self.mean.map(scale), rho: self.rho.map(scale) }
    }

    /// One step of (μ, ρ) along a direction.
    pub fn step(self, along: Self, optimizer: &Optimizer, state: &mut MeanFieldState) -> Self {
        let follow = |at, along, state| optimizer.follow(at, Direction::given(along), state);
        let mean = follow(self.mean, along.mean, &mut state.mean);
        Self { mean, rho: follow(self.rho, along.rho, &mut state.rho) }
    }

    /// Whether μ and ρ are finite. The call waits for the device.
    ///
    /// # Errors
    /// The device does not answer.
    pub fn is_finite(&self) -> Result<bool, RunError> {
        let norms = [self.mean.squared_norms()?, self.rho.squared_norms()?];
        Ok(norms.iter().flatten().all(|norm| norm.is_finite()))
    }

    /// The number of bytes of μ and ρ.
    pub fn bytes(&self) -> u64 {
        self.mean.bytes() + self.rho.bytes()
    }

    /// The values as a part of a state.
    ///
    /// # Errors
    /// The device does not answer.
    pub fn save(&self) -> Result<State, RunError> {
        Ok(State::default().with_particles(MEAN, &self.mean)?.with_particles(RHO, &self.rho)?)
    }

    /// Reads the values from a state.
    ///
    /// # Errors
    /// An array is missing or has another shape.
    pub fn in_state(state: &State, layout: &Arc<Layout>, session: &Session) -> Result<Self, RunError> {
        let read = |name| state.particles(name, layout, session);
        Ok(Self { mean: read(MEAN)?, rho: read(RHO)? })
    }

    /// A message with μ and ρ as arrays `mean` and `rho`, `[1, d]` each.
    ///
    /// # Errors
    /// The device does not answer.
    pub fn to_message(&self) -> Result<Message, RunError> {
        Ok(Message::default().with_array(MEAN, self.mean.to_array()?).with_array(RHO, self.rho.to_array()?))
    }

    /// Reads the message that [`Self::to_message`] wrote.
    ///
    /// # Errors
    /// An array is missing, or its shape is not `[1, d]` for this layout.
    pub fn from_message(message: &Message, layout: &Arc<Layout>, session: &Session) -> Result<Self, RunError> {
        let read = |name| single(message, name, layout, session);
        Ok(Self { mean: read(MEAN)?, rho: read(RHO)? })
    }

    /// ∂/∂ρ from ∂/∂σ: dσ/dρ = 1/(1 + e^−ρ).
    fn through_softplus(&self, by_sd: Particles) -> Particles {
        self.rho.clone().zip(by_sd, |rho, by_sd| logistic(rho) * by_sd)
    }
}

/// Reads the single particle `[1, d]` of an array of a message.
///
/// # Errors
/// The array is missing, or its shape is not `[1, d]` for this layout.
pub(super) fn single(
    message: &Message,
    name: &str,
    layout: &Arc<Layout>,
    session: &Session,
) -> Result<Particles, RunError> {
    let array = message.array(name)?;
    if array.shape.first() != Some(&1) {
        let (name, expected, found) = (name.to_owned(), vec![1, layout.dim()], array.shape.clone());
        return Err(ArrayError::Shape { name, expected, found }.into());
    }
    Particles::from_array(array, layout, session).map_err(RunError::Array)
}

/// Draws from N(0, variance·I) `[count, d]`, made on the host.
///
/// # Errors
/// The device does not take the array.
pub fn noise(
    rng: &mut impl Rng,
    variance: f64,
    count: usize,
    layout: &Arc<Layout>,
    session: &Session,
) -> Result<Particles, RunError> {
    let sd = variance.sqrt();
    let draw = |_| {
        let z: f64 = StandardNormal.sample(rng);
        sd * z
    };
    let values = Values::F64((0..count * layout.dim()).map(draw).collect());
    Particles::from_array(&Array { shape: vec![count, layout.dim()], values }, layout, session).map_err(RunError::Array)
}
