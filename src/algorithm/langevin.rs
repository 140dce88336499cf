//! A step of Langevin dynamics: θ ← θ + (ε_t/2)·∇ log p(θ) + √ε_t·z, z ~ N(0, I), ε_t = a0 (½ + t)^(−power).
//!
//! Source: Welling & Teh 2011; Kassab & Simeone Appendix B (a0 = 0.01, power 0.55).

use fedstein_schema::Accepts::{Choice, Float};
use fedstein_schema::Literal::{Float as F, Text as T};
use fedstein_schema::{Interval, Key, POSITIVE, key};
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::keys::PARTICLE_COUNT;
use crate::array::{Array, Values};
use crate::backend::Session;
use crate::error::RunError;
use crate::particles::Particles;
use crate::random::{Purpose, Streams};

/// The number of chains N.
pub(super) const CHAINS: Key = PARTICLE_COUNT.doc("Chains N.");
/// The step size a0.
pub(super) const STEP_SIZE: Key = key(
    "step_size",
    POSITIVE,
    F(0.01),
    "a0 of the Langevin step ε_t = a0 (½ + t)^-step_power ([D]: 0.01; MNIST `sgld` 0.001, `dsgld` 0.0005).",
);
/// The exponent with which step sizes fall.
pub(super) const STEP_POWER: Key = key(
    "step_power",
    Float(Interval::NOT_NEGATIVE),
    F(0.55),
    "Exponent of the decay of Langevin steps ([D]: 0.55); 0: constant steps.",
);
/// The noise of a step.
pub(super) const NOISE: Key = key(
    "noise",
    Choice(Noise::WORDS),
    T(Noise::Correct.word()),
    "Langevin noise: independent for every coordinate, with variance ε_t; or as in the public code, one number of sd ε_t²/n for all coordinates of the n chains at a worker.",
)
.reference(T(Noise::Reference.word()));

fedstein_schema::words! {
    /// The noise of a step.
    #[derive(Default)]
    pub enum Noise {
        /// √ε_t·z with an independent z ~ N(0, 1) for every coordinate.
        #[default]
        Correct = "correct",
        /// ε_t²·z/n with one z for all coordinates of the n chains at a worker, as in the DSVGD code: almost no noise.
        Reference = "reference",
    }
}

/// The step sizes and the noise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Langevin {
    /// The step size a0.
    pub step_size: f64,
    /// The exponent with which ε_t falls; 0 keeps it constant.
    #[serde(rename = "step_power")]
    pub power: f64,
    /// The noise of a step.
    pub noise: Noise,
}

impl Langevin {
    /// The step size ε_t, with t from 0.
    pub fn epsilon(&self, t: usize) -> f64 {
        self.step_size * (0.5 + t as f64).powf(-self.power)
    }

    /// Step t of all chains `[N, d]` along their scores `[N, d]`. Chain n draws its noise from stream `stream(n)`,
    /// which must differ from the streams of chains that make step t at other clients.
    ///
    /// # Errors
    /// The device does not answer.
    pub fn step(
        &self,
        chains: Particles,
        score: &Particles,
        t: usize,
        streams: Streams,
        stream: impl Fn(usize) -> usize + Sync,
        session: &Session,
    ) -> Result<Particles, RunError> {
        let (n, d, epsilon) = (chains.count(), chains.dim(), self.epsilon(t));
        let moved = chains.zip(score.clone(), |theta, score| theta + score.mul_scalar(0.5 * epsilon));
        let draws = |coordinates: usize| -> Vec<Vec<f32>> {
            let row = |chain: usize| {
                let mut rng = streams.rng(Purpose::Langevin, t, stream(chain));
                (0..coordinates).map(|_| StandardNormal.sample(&mut rng)).collect()
            };
            (0..n).into_par_iter().map(row).collect()
        };
        match self.noise {
            Noise::Correct => {
                let array = Array { shape: vec![n, d], values: Values::F32(draws(d).concat()) };
                let z = Particles::from_array(&array, moved.layout(), session)?;
                Ok(moved.zip(z, |theta, z| theta + z.mul_scalar(epsilon.sqrt())))
            }
            Noise::Reference => {
                let shift = f64::from(draws(1)[0][0]) * epsilon * epsilon / n as f64;
                Ok(moved.map(|theta| theta.add_scalar(shift)))
            }
        }
    }
}

/// Checks that all chains are finite after step t.
///
/// # Errors
/// A chain is not finite, in which case the error names the first such chain and the step; or the device does not
/// answer.
pub(super) fn check_finite(chains: &Particles, t: usize) -> Result<(), RunError> {
    let bad = chains.squared_norms()?.iter().position(|norm| !norm.is_finite());
    match bad {
        Some(chain) => Err(RunError::Langevin { step: t, chain }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fedstein_models::Layout;

    use super::*;
    use crate::backend::{Flex, Precision};

    #[test]
    fn steps_without_a_score_are_noise_of_the_size_that_is_documented() {
        let session = Session::open::<Flex>(Precision::F64).unwrap();
        let (streams, t, n, d) = (Streams::new(5), 3, 4, 10_000);
        let layout = Arc::new(Layout::new([("theta", [d].as_slice())]));
        let zero = Array { shape: vec![n, d], values: Values::F64(vec![0.0; n * d]) };
        let zero = Particles::from_array(&zero, &layout, &session).unwrap();
        let step = |noise| {
            let langevin = Langevin { step_size: 0.2, power: 0.55, noise };
            let moved = langevin.step(zero.clone(), &zero, t, streams, |chain| 7 + chain, &session).unwrap();
            moved.to_array().unwrap().values.to_f64()
        };
        let epsilon = 0.2 * 3.5f64.powf(-0.55);
        // Independent for every coordinate, with variance ε: 40,000 draws have a variance within √(2/40000) = .7 %.
        let correct = step(Noise::Correct);
        let variance = correct.iter().map(|x| x * x).sum::<f64>() / correct.len() as f64;
        assert!((variance / epsilon - 1.0).abs() < 0.035, "{variance}, not {epsilon}");
        // One number of the first chain's stream for all: ε²z/n.
        let z: f32 = StandardNormal.sample(&mut streams.rng(Purpose::Langevin, t, 7));
        let shift = f64::from(z) * epsilon * epsilon / 4.0;
        assert!(step(Noise::Reference).iter().all(|x| (x - shift).abs() < 1e-15), "not {shift}");
    }
}
