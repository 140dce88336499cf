//! Optimal assignments against all permutations, exchanges of columns, ties and limits.

use fedstein::ot::assign;
use ndarray::{Array2, array};
use proptest::prelude::*;
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};

use crate::common::normal;
use crate::transport::host_costs;

/// The least total over all permutations.
fn brute_force(cost: &Array2<f64>) -> f64 {
    fn descend(cost: &Array2<f64>, row: usize, used: &mut [bool], sum: f64) -> f64 {
        if row == cost.nrows() {
            return sum;
        }
        let mut least = f64::INFINITY;
        for column in 0..cost.ncols() {
            if !used[column] {
                used[column] = true;
                least = least.min(descend(cost, row + 1, used, sum + cost[[row, column]]));
                used[column] = false;
            }
        }
        least
    }
    descend(cost, 0, &mut vec![false; cost.ncols()], 0.0)
}

/// The most that any cyclic exchange of columns would gain: 0 for an optimal matching, by Bellman and Ford. Row i takes
/// the column of row j at the price C_{iπ(j)} − C_{iπ(i)}.
fn gain_of_exchange(cost: &Array2<f64>, permutation: &[usize]) -> f64 {
    let n = permutation.len();
    let price = |i: usize, j: usize| cost[[i, permutation[j]]] - cost[[i, permutation[i]]];
    let mut length = vec![0.0f64; n];
    let mut gain = 0.0f64;
    for _ in 0..=n {
        let before = length.clone();
        for (i, from) in before.iter().enumerate() {
            for (j, length) in length.iter_mut().enumerate() {
                *length = length.min(from + price(i, j));
            }
        }
        gain = before.iter().zip(&length).fold(0.0, |most, (before, after)| (before - after).max(most));
    }
    gain
}

/// Costs of several kinds: generic, with many ties, of points in a plane, of widely different magnitudes.
fn random_costs(kind: usize, n: usize, rng: &mut ChaCha12Rng) -> Array2<f64> {
    match kind {
        0 => normal((n, n), rng),
        1 => Array2::from_shape_fn((n, n), |_| f64::from(rng.random_range(-2i32..3))),
        2 => host_costs(&normal((n, 2), rng), &normal((n, 2), rng)),
        _ => Array2::from_shape_fn((n, n), |_| 10f64.powf(rng.random_range(-6.0..6.0))),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn an_assignment_is_the_best_of_all_permutations(n in 1usize..8, kind in 0usize..4, seed in any::<u64>()) {
        let cost = random_costs(kind, n, &mut ChaCha12Rng::seed_from_u64(seed));
        let got = assign(cost.view()).unwrap();
        let best = brute_force(&cost);
        let unit = 1e-14 * cost.fold(0.0, |most: f64, value| most.max(value.abs()));
        prop_assert!((got.total - best).abs() <= unit * n as f64, "{} instead of {best}", got.total);
    }

    #[test]
    fn no_cycle_of_exchanges_improves_a_large_assignment(n in 8usize..60, kind in 0usize..4, seed in any::<u64>()) {
        let cost = random_costs(kind, n, &mut ChaCha12Rng::seed_from_u64(seed));
        let got = assign(cost.view()).unwrap();
        let unit = 1e-14 * cost.fold(0.0, |most: f64, value| most.max(value.abs()));
        let gain = gain_of_exchange(&cost, &got.permutation);
        prop_assert!(gain <= unit * n as f64, "an exchange gains {gain}");
    }

    #[test]
    fn constants_added_to_rows_and_columns_do_not_change_an_assignment(n in 1usize..30, seed in any::<u64>()) {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        let (cost, of_row, of_column) = (normal((n, n), &mut rng), normal((n, 1), &mut rng), normal((1, n), &mut rng));
        let (plain, shifted) = (assign(cost.view()).unwrap(), assign((&cost + &of_row + &of_column).view()).unwrap());
        prop_assert_eq!(plain.permutation, shifted.permutation);
    }
}

#[test]
fn a_suboptimal_matching_is_detected_by_the_exchange_check() {
    let cost = array![[4.0, 1.0, 3.0], [2.0, 0.0, 5.0], [3.0, 2.0, 2.0]];
    assert!(gain_of_exchange(&cost, &[0, 1, 2]) > 0.0);
    assert_eq!(gain_of_exchange(&cost, &[1, 0, 2]), 0.0);
}

#[test]
fn ties_go_to_the_lowest_index() {
    let equal = assign(Array2::ones((5, 5)).view()).unwrap();
    assert_eq!(equal.permutation, [0, 1, 2, 3, 4]);
    // Rows 0 and 1 like columns 1 and 2 alike.
    let tied = assign(array![[9.0, 1.0, 1.0], [9.0, 1.0, 1.0], [5.0, 1.0, 1.0]].view()).unwrap();
    assert_eq!(tied.permutation, [1, 2, 0]);
}

#[test]
fn a_transposed_view_is_read_in_its_logical_order() {
    let cost = array![[1.0, 5.0, 9.0], [2.0, 9.0, 8.0], [7.0, 3.0, 9.0]];
    let whole = assign(cost.view()).unwrap();
    let turned = assign(cost.t()).unwrap();
    assert_eq!(whole.total, turned.total);
    turned.permutation.iter().enumerate().for_each(|(column, row)| assert_eq!(whole.permutation[*row], column));
}

#[test]
fn invalid_costs_are_errors() {
    let of = |cost: Array2<f64>| assign(cost.view()).unwrap_err().to_string();
    assert!(of(Array2::zeros((0, 0))).contains("no entries"));
    assert!(of(Array2::zeros((0, 3))).contains("no entries"));
    assert!(of(Array2::zeros((2, 3))).contains("2 x 3"));
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX] {
        let message = of(array![[1.0, 2.0], [value, 3.0]]);
        assert!(message.contains("[1, 0]") && message.contains("finite"), "{message}");
    }
}

#[test]
fn the_largest_costs_that_are_accepted_do_not_overflow() {
    let limit = f64::MAX / 32.0;
    let cost =
        limit * array![[1.0, -1.0, 1.0, 1.0], [-1.0, -1.0, 1.0, 1.0], [1.0, -1.0, 1.0, -1.0], [1.0, 1.0, 1.0, -1.0]];
    assert_eq!(assign(cost.view()).unwrap().total, -2.0 * limit);
}
