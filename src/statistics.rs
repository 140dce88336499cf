//! Robust statistics of a few numbers: a minority of bad values changes most of them by a bounded amount.
//!
//! - The median and the trimmed mean of a coordinate: Yin, Chen, Ramchandran & Bartlett 2018, definitions 1 and 2.
//! - The geometric median argmin_x Σ_k ω_k ‖x − x_k‖ by Weiszfeld's iteration x ← Σ_k w_k x_k / Σ_k w_k with
//!   w_k = ω_k/‖x − x_k‖ (Weiszfeld 1937), distances bounded below as in Pillutla, Kakade & Harchaoui 2022, for any
//!   space with distances and weighted means: vectors here, sets of particles in [`crate::ot::robust`].
//! - Clipping of a change's norm: Sun, Kairouz, Suresh & McMahan 2019, section 5.

use crate::datasets::share::rounded_down;

/// The mean; NaN if there are no values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The median; for an even count the mean of the middle two values. The values are reordered; there must be at least
/// one.
pub fn median(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    let is_odd = values.len() % 2 == 1;
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    if is_odd {
        return *upper;
    }
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    lower + 0.5 * (*upper - lower)
}

/// The median of sorted values as ½·(lower + upper), with the middle two of an even count; `None` if there are no
/// values.
///
/// [`median`] computes lower + ½·(upper − lower), which cannot overflow. The two may differ in the last bit; both are
/// kept, so that numbers in files do not change.
pub fn median_of_sorted(sorted: &[f64]) -> Option<f64> {
    let upper = sorted.get(sorted.len() / 2)?;
    let lower = sorted.get((sorted.len() - 1) / 2)?;
    Some(0.5 * (lower + upper))
}

/// The mean without the `cut` smallest and the `cut` largest values. The values are reordered; there must be more than
/// 2·`cut` of them.
pub fn trimmed_mean(values: &mut [f64], cut: usize) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let kept = &values[cut..values.len() - cut];
    kept.iter().sum::<f64>() / kept.len() as f64
}

/// The number of values that a trimmed mean leaves out at either end: ⌊β·K⌋ of K for the share β, and less than half.
pub fn trimmed(share: f64, count: usize) -> usize {
    rounded_down(share, count).min(count.saturating_sub(1) / 2)
}

/// The factor by which a change of this norm is multiplied so that its norm is at most `bound`.
pub fn clipping(norm: f64, bound: f64) -> f64 {
    if norm > bound { bound / norm } else { 1.0 }
}

/// The largest number of iterations of Weiszfeld's algorithm.
const ITERATIONS: usize = 100;
/// The iteration has converged when the weights, which sum to 1, change by at most this much.
const CONVERGED: f64 = 1e-9;
/// The least distance, in units of the first median distance.
const NEAREST: f64 = 1e-9;

/// The geometric median of K points with weights ω, and the weights w `[K]`, of sum 1, of which it is the mean.
///
/// # Arguments
/// - `start`: the first iterate.
/// - `weights`: ω, `[K]`.
/// - `distances`: computes the distances `[K]` from an iterate to the points.
/// - `mean`: computes the mean of the points from the current iterate and the weights `[K]`, which sum to 1.
///
/// # Errors
/// Those of `distances` and `mean`.
pub fn geometric_median<P, E>(
    start: P,
    weights: &[f64],
    mut distances: impl FnMut(&P) -> Result<Vec<f64>, E>,
    mut mean: impl FnMut(&P, &[f64]) -> Result<P, E>,
) -> Result<(P, Vec<f64>), E> {
    let (mut at, mut used) = (start, weights.to_vec());
    let mut floor = None;
    for iteration in 0..ITERATIONS {
        let apart = distances(&at)?;
        // The iteration would stay at a start on one of the points: in the first iteration that point's distance is
        // taken as that of the nearest other one.
        let floor = *floor.get_or_insert_with(|| NEAREST * median(&mut apart.clone()));
        let nearest = apart.iter().copied().filter(|distance| *distance > floor).fold(f64::INFINITY, f64::min);
        if nearest == f64::INFINITY {
            return Ok((at, used)); // All points are the same.
        }
        let least = if iteration == 0 { nearest } else { floor.max(f64::MIN_POSITIVE) };
        let raw: Vec<f64> = weights.iter().zip(&apart).map(|(weight, distance)| weight / distance.max(least)).collect();
        let total: f64 = raw.iter().sum();
        let next: Vec<f64> = raw.into_iter().map(|weight| weight / total).collect();
        at = mean(&at, &next)?;
        let change: f64 = next.iter().zip(&used).map(|(next, used)| (next - used).abs()).sum();
        used = next;
        // Equal weights in the first iteration do not mean convergence.
        if iteration > 0 && change <= CONVERGED {
            break;
        }
    }
    Ok((at, used))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn plane_median(points: &[[f64; 2]], weights: &[f64], start: [f64; 2]) -> ([f64; 2], Vec<f64>) {
        let distances = |at: &[f64; 2]| -> Result<Vec<f64>, Infallible> {
            Ok(points.iter().map(|point| (point[0] - at[0]).hypot(point[1] - at[1])).collect())
        };
        let mean = |_: &[f64; 2], weights: &[f64]| -> Result<[f64; 2], Infallible> {
            let sum = |axis: usize| points.iter().zip(weights).map(|(point, weight)| weight * point[axis]).sum();
            Ok([sum(0), sum(1)])
        };
        geometric_median(start, weights, distances, mean).unwrap()
    }

    #[test]
    fn a_median_is_the_middle_or_the_mean_of_the_middle_two() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 1e300, 2.0]), 3.0);
        assert_eq!(median(&mut [7.0]), 7.0);
        assert_eq!(median(&mut [2.0, 1.0]), 1.5);
    }

    #[test]
    fn a_median_of_sorted_values_is_the_middle_or_the_mean_of_the_middle_two() {
        assert_eq!(median_of_sorted(&[1.0, 2.0, 3.0, 10.0]), Some(2.5));
        assert_eq!(median_of_sorted(&[1.0, 2.0, 7.0]), Some(2.0));
        assert_eq!(median_of_sorted(&[4.0]), Some(4.0));
        assert_eq!(median_of_sorted(&[]), None);
    }

    #[test]
    fn a_trimmed_mean_leaves_out_both_ends() {
        assert_eq!(trimmed_mean(&mut [1e9, 1.0, 2.0, 3.0, -1e9], 1), 2.0);
        assert_eq!(trimmed_mean(&mut [1.0, 2.0, 6.0], 0), 3.0);
        assert_eq!(trimmed_mean(&mut [5.0, 1.0, 9.0], 1), 5.0, "with the largest cut it is the median");
    }

    #[test]
    fn a_change_is_shortened_to_its_bound_and_never_lengthened() {
        assert_eq!(clipping(8.0, 2.0), 0.25);
        assert_eq!(clipping(2.0, 2.0), 1.0);
        assert_eq!(clipping(0.0, 0.0), 1.0);
    }

    #[test]
    fn the_geometric_median_of_a_triangle_is_its_fermat_point() {
        // With all angles below 120 degrees, it is the point from which every side subtends 120 degrees. For the
        // isosceles triangle (-1, 0), (1, 0), (0, 2) it lies at height 1/√3.
        let thirds = [1.0 / 3.0; 3];
        let triangle = [[-1.0, 0.0], [1.0, 0.0], [0.0, 2.0]];
        for start in [[0.0, 2.0], [-1.0, 0.0], [5.0, -3.0], [0.0, 0.6]] {
            let (at, _) = plane_median(&triangle, &thirds, start);
            assert!(at[0].abs() < 1e-6 && (at[1] - 1.0 / 3.0_f64.sqrt()).abs() < 1e-6, "{at:?} from {start:?}");
        }
        // With an angle of 120 degrees or more, it is that corner.
        let (at, weights) = plane_median(&[[-5.0, 0.0], [5.0, 0.0], [0.0, 0.5]], &thirds, [3.0, 3.0]);
        assert!(at[0].abs() < 1e-3 && (at[1] - 0.5).abs() < 1e-3, "{at:?}");
        assert!(weights[2] > 0.99, "{weights:?}");
    }

    #[test]
    fn on_a_line_it_is_the_weighted_median() {
        let points = [[0.0, 0.0], [1.0, 0.0], [10.0, 0.0]];
        let (at, _) = plane_median(&points, &[0.2, 0.2, 0.6], [10.0, 0.0]);
        assert!((at[0] - 10.0).abs() < 1e-3, "more than half of the weight lies at 10: {at:?}");
        let (at, _) = plane_median(&points, &[0.3, 0.4, 0.3], [0.0, 0.0]);
        assert!((at[0] - 1.0).abs() < 1e-3, "{at:?}");
    }

    #[test]
    fn a_far_point_has_bounded_influence() {
        let centre = |far: f64| {
            let points = [[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, -1.0], [far, 0.0]];
            plane_median(&points, &[0.2; 5], [0.0, 1.0]).0[0]
        };
        assert!(centre(1e6) < 1.0 && (centre(1e6) - centre(1e3)).abs() < 1e-2, "{} {}", centre(1e3), centre(1e6));
        let same = plane_median(&[[2.0, 3.0]; 4], &[0.25; 4], [2.0, 3.0]);
        assert_eq!(same, ([2.0, 3.0], vec![0.25; 4]));
    }
}
