//! The score of a density estimate at the particles of one loop, without the products of steps that cannot change it.
//!
//! In high dimensions one centre has all the weight at each particle, and keeps it for many steps. [`Evaluator`] bounds
//! the distance that the particles have moved since the weights were computed: every call adds the length of the
//! longest possible step. While that bound is below the distance at which a weight could change by a bit, the weights
//! are reused and no product of particles with centres is taken.

use super::Kde;
use super::kde::TruncatedWeights;
use crate::error::RunError;
use crate::particles::Particles;
use crate::stein::Score;

/// A [`Kde`] whose score is evaluated once before every step of one loop; made by [`Kde::evaluator`].
#[derive(Clone, Debug)]
pub struct Evaluator {
    kde: Kde,
    longest_step: f64,
    weights: Option<TruncatedWeights>,
    /// Bound on the displacement of each particle since the weights were computed.
    displacement: f64,
}

impl Kde {
    /// An evaluator for one loop, in which no particle moves farther than `longest_step` from one call to the next,
    /// such as [`Optimizer::longest_step`](crate::stein::Optimizer::longest_step); infinity where there is no bound.
    pub fn evaluator(&self, longest_step: f64) -> Evaluator {
        Evaluator { kde: self.clone(), longest_step, weights: None, displacement: 0.0 }
    }
}

impl Evaluator {
    /// The density.
    pub fn kde(&self) -> &Kde {
        &self.kde
    }

    /// ∇ log q at the loop's particles `[N, d]`: the bits of [`Kde`]'s own score.
    ///
    /// # Errors
    /// Reading from the device fails.
    pub fn score(&mut self, at: &Particles) -> Result<Score, RunError> {
        let Self { kde, longest_step, weights, displacement } = self;
        *displacement += *longest_step;
        kde.score_by(at, || {
            if let Some(known) = weights.as_ref().filter(|known| *displacement <= known.reach) {
                return Ok(known.values.clone());
            }
            let found = kde.truncated_weights(at)?;
            *displacement = 0.0;
            let values = found.values.clone();
            *weights = Some(found).filter(|found| found.reach > 0.0);
            Ok(values)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fedstein_models::{BlrConfig, Layout, Model, Network};
    use ndarray::Array2;
    use rand::rngs::ChaCha12Rng;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::array::{Array, Values};
    use crate::backend::{Flex, Precision, Session};
    use crate::density::{KdeBandwidth, KdeConfig, KdeMode};

    /// Five coordinates.
    fn layout() -> Arc<Layout> {
        Network::new(BlrConfig::new(4)).layout().clone()
    }

    fn set(rows: &[[f32; 5]]) -> Particles {
        let session = Session::open::<Flex>(Precision::F32).unwrap();
        let array = Array { shape: vec![rows.len(), 5], values: Values::F32(rows.concat()) };
        Particles::from_array(&array, &layout(), &session).unwrap()
    }

    fn density(centres: &[[f32; 5]], lambda: f64) -> Kde {
        let config = KdeConfig { mode: KdeMode::Exact, bandwidth: KdeBandwidth::Fixed(lambda) };
        Kde::new(&set(centres), config).unwrap()
    }

    /// The weights that a call at these particles uses.
    fn weights(evaluator: &mut Evaluator, at: &[[f32; 5]]) -> Array2<f64> {
        evaluator.score(&set(at)).unwrap();
        evaluator.weights.as_ref().unwrap().values.clone()
    }

    #[test]
    fn the_weights_of_a_single_centre_are_reused_until_a_particle_may_have_moved_far() {
        let centres = [[0.0; 5], [10.0, 0.0, 0.0, 0.0, 0.0]];
        let density = density(&centres, 0.5);
        // The exponents 0 and −200 may approach each other by 200 − 64: 3.4 of the 10 between the centres. Within this
        // bound the particles themselves are not read.
        let mut evaluator = density.evaluator(1.1);
        assert_eq!(weights(&mut evaluator, &centres[..1]), ndarray::array![[1.0, 0.0]]);
        for _ in 0..3 {
            assert_eq!(weights(&mut evaluator, &centres[1..]), ndarray::array![[1.0, 0.0]]);
        }
        for _ in 0..4 {
            assert_eq!(weights(&mut evaluator, &centres[1..]), ndarray::array![[0.0, 1.0]]);
        }
        assert_eq!(weights(&mut evaluator, &centres[..1]), ndarray::array![[1.0, 0.0]]);
        // Without a bound, and in another loop, the weights are computed again.
        let mut unbounded = density.evaluator(f64::INFINITY);
        assert_eq!(weights(&mut unbounded, &centres[..1]), ndarray::array![[1.0, 0.0]]);
        assert_eq!(weights(&mut unbounded, &centres[1..]), ndarray::array![[0.0, 1.0]]);
        assert_eq!(weights(&mut density.evaluator(1.1), &centres[1..]), ndarray::array![[0.0, 1.0]]);
    }

    #[test]
    fn weights_that_several_centres_share_are_computed_every_time() {
        let density = density(&[[0.0; 5], [1.0, 0.0, 0.0, 0.0, 0.0]], 0.5);
        let mut evaluator = density.evaluator(0.0);
        let mut score = |x: f32| {
            let at = set(&[[x, 0.0, 0.0, 0.0, 0.0]]);
            evaluator.score(&at).unwrap().evaluate(&at).to_array().unwrap().values.to_f64()[0]
        };
        assert!(score(0.1) > score(0.2) && score(0.2) < score(0.1));
    }

    #[test]
    fn within_reach_no_other_centre_has_weight() {
        let mut rng = ChaCha12Rng::seed_from_u64(3);
        let mut reached = 0;
        for _ in 0..200 {
            let mut row = || std::array::from_fn(|_| rng.random_range(-10.0f32..10.0));
            let centres: Vec<[f32; 5]> = (0..4).map(|_| row()).collect();
            let x = row();
            let density = density(&centres, 0.4);
            let known = density.truncated_weights(&set(&[x])).unwrap();
            if known.reach == 0.0 {
                continue;
            }
            reached += 1;
            // Straight from the centre with all the weight to each other centre.
            let own = known.values.row(0).iter().position(|w| *w == 1.0).unwrap();
            for other in (0..4).filter(|other| *other != own) {
                let apart = (0..5).map(|i| (centres[other][i] - centres[own][i]).powi(2)).sum::<f32>().sqrt();
                let share = known.reach as f32 / apart;
                let moved = std::array::from_fn(|i| x[i] + share * (centres[other][i] - centres[own][i]));
                let weights = density.truncated_weights(&set(&[moved])).unwrap().values;
                assert_eq!(weights, known.values, "{centres:?}, {x:?}");
            }
        }
        assert!(reached > 50, "{reached}");
    }
}
