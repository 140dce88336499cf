//! The inner loop that every particle method shares: score, direction, step.

use burn::tensor::TensorReadError;
use thiserror::Error;

use super::direction::direction;
use super::kernel::Kernel;
use super::optimizer::{Optimizer, OptimizerState};
use crate::backend::Backend;
use crate::journey::Journey;
use crate::particles::Particles;
use crate::stein::Score;

/// Kernel and step rule of an SVGD loop.
#[derive(Clone, Copy, Debug)]
pub struct Svgd {
    /// k and its bandwidth rule; h is taken anew from the moving particles in every step.
    pub kernel: Kernel,
    /// The step rule.
    pub optimizer: Optimizer,
}

/// Why an SVGD loop stopped.
#[derive(Clone, Debug, Error)]
pub enum SvgdError {
    /// A particle is no longer a number. Never replaced by zeros.
    #[error("step {step}: particle {particle} is not finite; a smaller optimizer.lr usually helps")]
    NotFinite {
        /// Step of the loop, from 1.
        step: usize,
        /// Index of the first bad particle.
        particle: usize,
    },
    /// A score is beyond all reason: the particles have left the region where the model says anything.
    #[error(
        "step {step}: the score of particle {particle} has norm {norm:.1e}, beyond {MAX_SCORE_NORM:e}; a smaller optimizer.lr usually helps"
    )]
    Diverged {
        /// Step of the loop, from 1.
        step: usize,
        /// Index of the first bad particle.
        particle: usize,
        /// ‖S_n‖; NaN where the score is no number.
        norm: f64,
    },
    /// The device did not answer.
    #[error("step {step}: the device failed: {reason}")]
    Device {
        /// Step of the loop, from 1.
        step: usize,
        /// What it said.
        reason: String,
    },
}

/// The largest norm of a score; beyond it a loop stops. Its square is still a number in f32.
pub const MAX_SCORE_NORM: f64 = 1e15;

/// Steps from one look at the scores' norms to the next: a pass over the coordinates and a wait for the device each.
const LOOK_EVERY: usize = 10;

impl Svgd {
    /// `steps` times: S = score(Θ); Θ ← step(Θ, φ(Θ, S)).
    ///
    /// # Errors
    /// Those of `score`; a particle or a score that is no number, a score's norm beyond [`MAX_SCORE_NORM`]; the state is
    /// then half-way.
    ///
    /// # Arguments
    /// - `score` draws its own minibatches; `after` is told the number of steps done.
    pub fn run<B: Backend, E: From<SvgdError>>(
        &self,
        mut particles: Particles<B>,
        steps: usize,
        state: &mut OptimizerState,
        mut score: impl FnMut(&Particles<B>) -> Result<Score<B>, E>,
        mut after: impl FnMut(usize),
    ) -> Result<Particles<B>, E> {
        let mut journey = Journey::begin();
        let longest = self.optimizer.longest_step(particles.dim());
        for step in 1..=steps {
            particles = particles.on(journey);
            let scores = score(&particles)?;
            let device = |error: TensorReadError| SvgdError::Device { step, reason: error.to_string() };
            if step % LOOK_EVERY == 1 {
                let norms = scores.row_norms().map_err(device)?;
                let beyond = |norm: &f64| norm.is_nan() || *norm > MAX_SCORE_NORM;
                if let Some(particle) = norms.iter().position(beyond) {
                    return Err(SvgdError::Diverged { step, particle, norm: norms[particle] }.into());
                }
            }
            let phi = direction(&self.kernel, &particles, scores).map_err(device)?;
            // A sum is not finite if a number in it is not, and quicker to take than to look at each.
            if let Some(kernel) = phi.kernel.as_ref().filter(|kernel| !kernel.values.sum().is_finite()) {
                let bad = kernel.values.rows().into_iter().position(|row| !row.iter().all(|k| k.is_finite()));
                if let Some(first) = bad {
                    // One bad particle spoils the centre and with it every distance: ask the particles themselves.
                    let particle = first_non_finite(&particles).map_err(device)?.unwrap_or(first);
                    return Err(SvgdError::NotFinite { step: step - 1, particle }.into());
                }
            }
            particles = self.optimizer.follow(particles, phi, state);
            journey = journey.after(longest);
            after(step);
        }
        let device = |error: TensorReadError| SvgdError::Device { step: steps, reason: error.to_string() };
        match first_non_finite(&particles).map_err(device)? {
            Some(particle) => Err(SvgdError::NotFinite { step: steps, particle }.into()),
            None => Ok(particles),
        }
    }
}

/// The first particle with a coordinate that is not finite.
fn first_non_finite<B: Backend>(particles: &Particles<B>) -> Result<Option<usize>, TensorReadError> {
    let sums = particles.map(|block| block.abs().sum_dim(1));
    let total = sums.blocks().iter().cloned().reduce(|sum, block| sum + block);
    let total = total.expect("a layout has at least one block").try_into_vec_as::<f64>()?;
    Ok(total.iter().position(|value| !value.is_finite()))
}
