//! Robust barycenters of K sets of N particles: the median in Wasserstein space, and a trimmed barycenter.
//!
//! A minority of arbitrary sets moves them only a bounded distance. Each function returns a set and the weights of
//! which it is the barycenter.
//! - [`RobustBarycenter::Median`]: argmin_X Σ_k ω_k W₂(X, Θ_k), the geometric median for the distance W₂, by
//!   Weiszfeld's iteration: w_k ∝ ω_k/W₂(X, Θ_k), X ← one update of the barycenter with these weights. Like the median
//!   of subset posteriors of Minsker, Srivastava, Lin & Dunson 2017; iteration as in Pillutla, Kakade & Harchaoui 2022.
//! - [`RobustBarycenter::Trimmed`]: the barycenter of the sets without the ⌊βK⌋ that are farthest from that median.
//!
//! Both start at the medoid, the set with the least Σ_j ω_j W₂ to all others. The mean by index, at which the plain
//! barycenter starts, would follow the farthest set.

use super::{Barycenter, BarycenterConfig, Iterate, TransportError, barycenter, index_mean, wasserstein2_squared};
use crate::particles::Particles;
use crate::statistics::{geometric_median, trimmed};

/// A robust alternative to the barycenter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RobustBarycenter {
    /// The set with the least weighted sum of distances W₂, not of their squares.
    Median,
    /// The barycenter without this share of the sets, those farthest from the median; < ½.
    Trimmed(f64),
}

/// The robust barycenter of K sets `[N, d]` with weights ω `[K]`, and the weights `[K]`, of sum 1, of which it is the
/// barycenter: 0 for sets that were left out.
///
/// # Errors
/// Those of [`barycenter()`].
pub fn robust_barycenter(
    rule: RobustBarycenter,
    sets: &[Particles],
    weights: &[f64],
    config: &BarycenterConfig,
) -> Result<(Barycenter, Vec<f64>), TransportError> {
    if sets.len() < 3 {
        return Ok((barycenter(sets, Some(weights), &index_mean(sets)?, config)?, weights.to_vec()));
    }
    // Validates sets and weights.
    barycenter(sets, Some(weights), &index_mean(sets)?, &BarycenterConfig { max_iterations: 1, ..*config })?;
    let step = BarycenterConfig { iterate: Iterate::OneStep, ..*config };
    let distances = |at: &Particles| sets.iter().map(|set| distance(at, set)).collect();
    let mean = |at: &Particles, weights: &[f64]| Ok(barycenter(sets, Some(weights), at, &step)?.particles);
    let (centre, used) = geometric_median(medoid(sets, weights)?, weights, distances, mean)?;
    match rule {
        RobustBarycenter::Median => {
            // One more barycenter, from its own result, for the record of the iteration.
            let used = normalised(used);
            Ok((barycenter(sets, Some(&used), &centre, config)?, used))
        }
        RobustBarycenter::Trimmed(share) => {
            let apart = sets.iter().map(|set| distance(&centre, set)).collect::<Result<Vec<f64>, _>>()?;
            let mut order: Vec<usize> = (0..sets.len()).collect();
            order.sort_by(|a, b| apart[*a].total_cmp(&apart[*b]));
            let mut left = vec![0.0; sets.len()];
            let kept = sets.len() - trimmed(share, sets.len());
            order[..kept].iter().for_each(|set| left[*set] = weights[*set]);
            let left = normalised(left);
            Ok((barycenter(sets, Some(&left), &centre, config)?, left))
        }
    }
}

fn distance(first: &Particles, second: &Particles) -> Result<f64, TransportError> {
    Ok(wasserstein2_squared(first, second)?.sqrt())
}

fn normalised(weights: Vec<f64>) -> Vec<f64> {
    let total: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / total).collect()
}

/// The set with the least weighted sum of distances to the others.
fn medoid(sets: &[Particles], weights: &[f64]) -> Result<Particles, TransportError> {
    let mut sums = vec![0.0; sets.len()];
    for first in 0..sets.len() {
        for second in 0..first {
            let apart = distance(&sets[first], &sets[second])?;
            sums[first] += weights[second] * apart;
            sums[second] += weights[first] * apart;
        }
    }
    let least = (0..sets.len()).min_by(|a, b| sums[*a].total_cmp(&sums[*b]));
    least.map(|set| sets[set].clone()).ok_or(TransportError::NoClients)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fedstein_models::Layout;

    use super::*;
    use crate::array::{Array, Values};
    use crate::backend::{Flex, Precision, Session};

    fn set(rows: &[[f64; 2]]) -> Particles {
        let array = Array { shape: vec![rows.len(), 2], values: Values::F64(rows.iter().flatten().copied().collect()) };
        let layout = Arc::new(Layout::new([("theta", [2].as_slice())]));
        Particles::from_array(&array, &layout, &Session::open::<Flex>(Precision::F64).unwrap()).unwrap()
    }

    fn of(rule: RobustBarycenter, sets: &[Particles]) -> (Vec<f64>, Vec<f64>) {
        weighted(rule, sets, &vec![1.0 / sets.len() as f64; sets.len()])
    }

    fn weighted(rule: RobustBarycenter, sets: &[Particles], weights: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let (found, weights) = robust_barycenter(rule, sets, weights, &BarycenterConfig::default()).unwrap();
        (numbers(&found.particles), weights)
    }

    fn numbers(set: &Particles) -> Vec<f64> {
        set.to_array().unwrap().values.to_f64()
    }

    fn assert_near(got: &[f64], want: &[f64], within: f64) {
        let near = got.iter().zip(want).all(|(got, want)| (got - want).abs() <= within);
        assert!(near && got.len() == want.len(), "{got:?}, not {want:?}");
    }

    #[test]
    fn the_median_of_single_particles_is_the_fermat_point() {
        let triangle = [set(&[[-1.0, 0.0]]), set(&[[1.0, 0.0]]), set(&[[0.0, 2.0]])];
        assert_near(&of(RobustBarycenter::Median, &triangle).0, &[0.0, 1.0 / 3.0_f64.sqrt()], 1e-5);
    }

    #[test]
    fn the_median_of_moved_sets_moves_as_the_median_of_the_moves() {
        // W₂ between translates of one set is the length of the move, whatever the numbering.
        let shape = [[0.0, 0.0], [9.0, 0.0], [0.0, 5.0]];
        let moved = |x: f64, y: f64, turn: usize| {
            let mut rows = shape.map(|[a, b]| [a + x, b + y]);
            rows.rotate_left(turn);
            set(&rows)
        };
        let sets = [moved(-1.0, 0.0, 0), moved(1.0, 0.0, 1), moved(0.0, 2.0, 2)];
        let (got, _) = of(RobustBarycenter::Median, &sets);
        let mut rows: Vec<&[f64]> = got.chunks_exact(2).collect();
        rows.sort_by(|a, b| (a[0] + 0.1 * a[1]).total_cmp(&(b[0] + 0.1 * b[1])));
        let up = 1.0 / 3.0_f64.sqrt();
        assert_near(&rows.concat(), &[0.0, up, 0.0, 5.0 + up, 9.0, up], 1e-4);
    }

    #[test]
    fn a_far_set_is_trimmed_or_has_bounded_influence() {
        let near = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]].map(|row| set(&[row]));
        let with = |far: f64| [near.to_vec(), vec![set(&[[far, 0.5]])]].concat();
        let (got, weights) = of(RobustBarycenter::Trimmed(0.2), &with(1e4));
        assert_near(&got, &[0.5, 0.5], 1e-9);
        assert_near(&weights, &[0.25, 0.25, 0.25, 0.25, 0.0], 1e-12);
        let (far, farther) = (of(RobustBarycenter::Median, &with(1e3)).0, of(RobustBarycenter::Median, &with(1e5)).0);
        assert!(far[0] < 1.0 && (far[0] - farther[0]).abs() < 1e-3, "{far:?} {farther:?}");
        // The plain barycenter moves with the outlying set.
        let plain =
            barycenter(&with(1e3), None, &index_mean(&with(1e3)).unwrap(), &BarycenterConfig::default()).unwrap();
        assert!(numbers(&plain.particles)[0] > 100.0);
    }

    #[test]
    fn a_far_set_leaves_the_matching_of_the_others() {
        // Ten sets of four particles that are far apart beside their noise, in 32 bits and in other orders; one is moved away.
        let (count, dim, sets) = (4, 256, 10);
        let layout = Arc::new(Layout::new([("theta", [dim].as_slice())]));
        let session = Session::open::<Flex>(Precision::F32).unwrap();
        let noise = |at: usize| ((at * 7919 + 13) % 1009) as f32 / 1009.0 - 0.5;
        let of = |k: usize, far: f32| {
            let row = |i: usize| {
                let particle = (i + k) % count;
                let at = |j: usize| {
                    4.0 * noise(particle * dim + j) + 0.1 * noise(k * count * dim + particle * dim + j) + far
                };
                (0..dim).map(at).collect::<Vec<f32>>()
            };
            let values = (0..count).flat_map(row).collect();
            Particles::from_array(&Array { shape: vec![count, dim], values: Values::F32(values) }, &layout, &session)
        };
        let near: Vec<Particles> = (0..sets - 1).map(|k| of(k, 0.0).unwrap()).collect();
        let config = BarycenterConfig::default();
        let alone = barycenter(&near, None, &near[0], &config).unwrap();
        for far in [1e4, 1e6] {
            let all = [near.clone(), vec![of(9, far).unwrap()]].concat();
            let (found, _) = robust_barycenter(RobustBarycenter::Trimmed(0.1), &all, &[0.1; 10], &config).unwrap();
            let apart = wasserstein2_squared(&found.particles, &alone.particles).unwrap();
            assert!(apart < 1e-6, "{far}: {apart}");
        }
    }

    #[test]
    fn sets_of_unequal_weights_count_by_their_weights() {
        // ω at (±1, 0) and 1 − 2ω at (0, 2): 2ω·y/√(1 + y²) = 1 − 2ω, with ω = .3 y = .4/√(.6² − .4²).
        let triangle = [set(&[[-1.0, 0.0]]), set(&[[1.0, 0.0]]), set(&[[0.0, 2.0]])];
        let (got, used) = weighted(RobustBarycenter::Median, &triangle, &[0.3, 0.3, 0.4]);
        let up = 0.4 / 0.2_f64.sqrt();
        assert_near(&got, &[0.0, up], 1e-5);
        // The median is the mean with the weights ω over distance, which here is 2·w₃.
        assert_near(&used, &[0.5 - 0.25 * up, 0.5 - 0.25 * up, 0.5 * up], 1e-5);

        let near = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]].map(|row| set(&[row]));
        let sets = [near.to_vec(), vec![set(&[[1e4, 0.5]])]].concat();
        let (got, used) = weighted(RobustBarycenter::Trimmed(0.2), &sets, &[0.1, 0.2, 0.3, 0.3, 0.1]);
        assert_near(&used, &[1.0 / 9.0, 2.0 / 9.0, 3.0 / 9.0, 3.0 / 9.0, 0.0], 1e-12);
        assert_near(&got, &[5.0 / 9.0, 6.0 / 9.0], 1e-12);
    }

    #[test]
    fn the_medoid_is_the_set_with_the_least_weighted_sum_of_distances() {
        let sets = [0.0, 4.0, 7.0].map(|x| set(&[[x, 0.0]]));
        for (weights, want) in [
            ([1.0 / 3.0; 3], 4.0),  // 11/3, 7/3, 10/3
            ([0.6, 0.2, 0.2], 0.0), // 2.2, 3, 4.8
            ([0.1, 0.2, 0.7], 7.0), // 5.7, 2.5, 1.3
        ] {
            assert_eq!(numbers(&medoid(&sets, &weights).unwrap()), [want, 0.0], "{weights:?}");
        }
    }

    #[test]
    fn equal_sets_are_their_own_median_and_of_two_it_is_the_barycenter() {
        let one = set(&[[0.0, 1.0], [2.0, 3.0]]);
        for rule in [RobustBarycenter::Median, RobustBarycenter::Trimmed(0.3)] {
            assert_near(&of(rule, &[one.clone(), one.clone(), one.clone()]).0, &[0.0, 1.0, 2.0, 3.0], 1e-12);
            assert_near(&of(rule, &[set(&[[0.0, 0.0]]), set(&[[2.0, 4.0]])]).0, &[1.0, 2.0], 1e-12);
        }
    }
}
