//! The SVGD loop that every particle method uses: score, direction, step.
//!
//! [`super::reference`] has one step of it in plain tensors.

use burn::tensor::TensorReadError;
use thiserror::Error;

use super::direction::direction;
use super::kernel::Kernel;
use super::optimizer::{Optimizer, OptimizerState};
use crate::particles::Particles;
use crate::statistics::mean;
use crate::stein::Score;

/// The kernel and the optimiser of an SVGD loop.
#[derive(Clone, Copy, Debug)]
pub struct Svgd {
    /// The kernel with its bandwidth rule; h is computed from the current particles in every step.
    pub kernel: Kernel,
    /// The optimiser.
    pub optimizer: Optimizer,
}

/// The error with which an SVGD loop stops.
#[derive(Clone, Debug, Error)]
pub enum SvgdError {
    /// A particle has a coordinate that is not finite. It is never replaced by zeros.
    #[error("step {step}: particle {particle} is not finite; a smaller optimizer.lr usually helps")]
    NotFinite {
        /// The step of the loop, from 1.
        step: usize,
        /// Index of the first such particle.
        particle: usize,
    },
    /// The norm of a score is NaN or larger than [`MAX_SCORE_NORM`]: the iteration diverges.
    #[error("step {step}: the score of particle {particle} {}", diverged(*step, *norm))]
    Diverged {
        /// The step of the loop, from 1.
        step: usize,
        /// Index of the first such particle.
        particle: usize,
        /// ‖S_n‖; NaN where the score is NaN.
        norm: f64,
    },
    /// Reading from the device failed.
    #[error("step {step}: the device failed: {reason}")]
    Device {
        /// The step of the loop, from 1.
        step: usize,
        /// The device's message.
        reason: String,
    },
}

/// What a score of such a norm says after this number of steps.
fn diverged(step: usize, norm: f64) -> String {
    match (norm.is_nan(), step) {
        // This loop has taken no step yet.
        (true, 1) => {
            "is NaN before the first step: the model gives it for these rows and particles; in a later round a smaller \
             optimizer.lr usually helps"
                .into()
        }
        (true, _) => "is NaN; a smaller optimizer.lr usually helps".into(),
        (false, _) => {
            format!("has norm {norm:.1e}, beyond {MAX_SCORE_NORM:e}; a smaller optimizer.lr usually helps")
        }
    }
}

/// The largest norm of a score with which a loop continues. Its square is still finite in f32.
pub const MAX_SCORE_NORM: f64 = 1e15;

/// Steps from one check of the scores' norms to the next; a check takes a pass over the coordinates and waits for the
/// device.
const CHECK_EVERY: usize = 10;

impl Svgd {
    /// The same loop with its step size times `factor`.
    pub fn scaled(self, factor: f64) -> Self {
        Self { optimizer: self.optimizer.scaled(factor), ..self }
    }

    /// The particles `[N, d]` after `steps` steps of Θ ← step(Θ, φ(Θ, S)) with S = score(Θ).
    ///
    /// # Arguments
    /// - `state`: the optimiser's state, which the loop continues from and updates.
    /// - `score`: the score at given particles, called once before each step; it draws its own minibatches.
    /// - `after`: called after each step with the number of steps done.
    ///
    /// # Errors
    /// A particle or a score is not finite, a score's norm is larger than [`MAX_SCORE_NORM`], `score` fails, or reading
    /// from the device fails. `state` is then that of the failed step.
    pub fn run<E: From<SvgdError>>(
        &self,
        mut particles: Particles,
        steps: usize,
        state: &mut OptimizerState,
        mut score: impl FnMut(&Particles) -> Result<Score, E>,
        mut after: impl FnMut(usize),
    ) -> Result<Particles, E> {
        for step in 1..=steps {
            let scores = score(&particles)?;
            let device = |error: TensorReadError| SvgdError::Device { step, reason: error.to_string() };
            // An optimiser that divides by the root of an infinite square stands still, so the last step is checked too.
            if step % CHECK_EVERY == 1 || step == steps {
                let norms = scores.row_norms().map_err(device)?;
                let beyond = |norm: &f64| norm.is_nan() || *norm > MAX_SCORE_NORM;
                if let Some(particle) = norms.iter().position(beyond) {
                    return Err(SvgdError::Diverged { step, particle, norm: norms[particle] }.into());
                }
            }
            let phi = direction(&self.kernel, &particles, scores).map_err(device)?;
            // The sum is not finite if one element is not, and it is quicker than a check of each element.
            if let Some(kernel) = phi.kernel.as_ref().filter(|kernel| !kernel.values.sum().is_finite()) {
                let bad = kernel.values.rows().into_iter().position(|row| !row.iter().all(|k| k.is_finite()));
                if let Some(first) = bad {
                    // One particle that is not finite makes the mean, and with it every distance, NaN: check the
                    // particles.
                    let particle = first_non_finite(&particles).map_err(device)?.unwrap_or(first);
                    return Err(SvgdError::NotFinite { step: step - 1, particle }.into());
                }
            }
            particles = self.optimizer.follow(particles, phi, state);
            after(step);
        }
        let device = |error: TensorReadError| SvgdError::Device { step: steps, reason: error.to_string() };
        match first_non_finite(&particles).map_err(device)? {
            Some(particle) => Err(SvgdError::NotFinite { step: steps, particle }.into()),
            None => Ok(particles),
        }
    }
}

/// The mean norm of the first score of a loop, a diagnostic of a client's visit.
#[derive(Clone, Copy, Debug, Default)]
pub struct FirstNorm(Option<f64>);

impl FirstNorm {
    /// Takes the mean over particles of ‖S_n‖ at the particles Θ `[N, d]`, unless an earlier one was taken. Then it waits for
    /// the device.
    ///
    /// # Errors
    /// A norm is not finite, in the terms of densities too: an optimiser that divides by it would no longer move, without
    /// any other sign. Or reading from the device fails.
    pub fn take(&mut self, score: &Score, at: &Particles) -> Result<(), SvgdError> {
        if self.0.is_some() {
            return Ok(());
        }
        let device = |error: TensorReadError| SvgdError::Device { step: 1, reason: error.to_string() };
        let norms = score.evaluate(at).row_norms().map_err(device)?;
        if let Some(particle) = norms.iter().position(|norm| !norm.is_finite()) {
            return Err(SvgdError::Diverged { step: 1, particle, norm: norms[particle] });
        }
        self.0 = Some(mean(&norms));
        Ok(())
    }

    /// The norm; `None` before the first score.
    pub fn get(self) -> Option<f64> {
        self.0
    }
}

/// The index of the first particle with a coordinate that is not finite.
///
/// # Errors
/// Reading from the device fails.
pub fn first_non_finite(particles: &Particles) -> Result<Option<usize>, TensorReadError> {
    let sums = particles.blocks().iter().map(|block| block.clone().abs().sum_dim(1));
    let total = sums.reduce(|sum, block| sum + block);
    let total = total.expect("a layout has at least one block").try_into_vec_as::<f64>()?;
    Ok(total.iter().position(|value| !value.is_finite()))
}
