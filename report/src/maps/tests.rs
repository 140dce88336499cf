//! What maps do to probabilities, and what a fit makes of impossible numbers.

use std::slice::from_ref;

use proptest::collection::vec;
use proptest::prelude::*;
use rand::SeedableRng as _;
use rand::rngs::StdRng;

use super::vector::push_softmax;
use super::*;
use crate::metrics::{logits_of, nll};

/// Rows of a model that is too sure, and gives the last class too little.
fn rows(count: usize, classes: usize, seed: u64) -> ClassPredictions<'static> {
    let mut rng = StdRng::seed_from_u64(seed);
    let (mut labels, mut probabilities) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let logits: Vec<f64> = (0..classes).map(|_| rng.random_range(-2.0..2.0)).collect();
        let (mut truth, mut given) = (Vec::new(), Vec::new());
        push_softmax(logits.iter().copied(), &mut truth);
        let sure = |(class, logit): (usize, &f64)| 2.5 * logit - if class + 1 == classes { 3.0 } else { 0.0 };
        push_softmax(logits.iter().enumerate().map(sure), &mut given);
        let (draw, mut sum) = (rng.random_range(0.0..1.0), 0.0);
        let is_passed = |p: &&f64| {
            sum += **p;
            sum < draw
        };
        labels.push(truth.iter().take_while(is_passed).count().min(classes - 1));
        probabilities.extend(given);
    }
    ClassPredictions::new(labels, classes, probabilities).unwrap()
}

fn fit_vector(places: &[ClassPredictions<'_>]) -> VectorMap {
    let classes = places[0].classes();
    let mut search = VectorSearch::new(places.iter().map(ClassPredictions::len).sum(), classes);
    while let Some(numbers) = search.question() {
        let map = VectorMap::of(numbers, classes).unwrap();
        let mut all = vec![0.0; vector_sums_len(classes)];
        for place in places {
            let sums = vector_sums(&logits_of(place), place.labels(), &map).unwrap();
            all.iter_mut().zip(sums).for_each(|(all, one)| *all += one);
        }
        search.answer(&all);
    }
    search.map()
}

fn fit_isotonic(places: &[ClassPredictions<'_>]) -> IsotonicMap {
    let mut all = vec![0; isotonic_counts(&places[0]).len()];
    for place in places {
        all.iter_mut().zip(isotonic_counts(place)).for_each(|(all, one)| *all += one);
    }
    IsotonicMap::fit(&all, places[0].classes()).unwrap()
}

/// The map of each kind.
fn fitted(rows: &ClassPredictions<'_>) -> [ProbabilityMap; 2] {
    [MapKind::Vector, MapKind::Isotonic].map(|kind| kind.fit(rows).unwrap())
}

#[test]
fn maps_improve_new_rows_of_a_model_that_a_temperature_cannot_repair() {
    for classes in [2, 5] {
        let (known, new) = (rows(2000, classes, 1), rows(4000, classes, 2));
        let fit = crate::metrics::fit_temperature(&logits_of(&known), known.labels(), classes).unwrap();
        let at_t = nll(&ProbabilityMap::Temperature(fit.temperature).apply(&new).unwrap()).value;
        assert!(at_t < nll(&new).value);
        for map in fitted(&known) {
            let after = nll(&map.apply(&new).unwrap()).value;
            // The temperature leaves a bias of 3 in the last class's logit; 0.02 nats are beyond five standard errors.
            assert!(after < at_t - 0.02, "{classes} classes: {after} is not below {at_t}");
        }
    }
}

#[test]
fn a_fit_gives_a_map_of_its_kind() {
    for kind in [MapKind::Vector, MapKind::Isotonic] {
        assert_eq!(kind.fit(&rows(60, 3, 4)).unwrap().kind(), Some(kind));
    }
}

#[test]
fn rows_that_are_all_right_have_a_finite_map() {
    let p = [[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.1, 0.8]].concat().repeat(30);
    let known = ClassPredictions::new([0, 1, 2].repeat(30), 3, p).unwrap();
    for map in fitted(&known) {
        let mapped = map.apply(&known).unwrap();
        assert!(nll(&mapped).value < 0.1 && mapped.probabilities().iter().all(|p| *p > 0.0 && *p < 1.0), "{map:?}");
    }
}

#[test]
fn certain_and_impossible_probabilities_have_a_place_on_the_grid() {
    let known = ClassPredictions::new(vec![1, 0, 1, 0], 2, vec![0.0, 1.0, 1.0, 0.0, 0.5, 0.5, 0.5, 0.5]).unwrap();
    let map = fit_isotonic(from_ref(&known));
    // One of eight: half a row of four.
    assert_eq!(map.corners(), [[(grid_point(0), 0.125), (0.5, 0.5), (grid_point(GRID - 1), 0.875)]]);
    assert_eq!(map.apply(&known).unwrap().probabilities(), [0.125, 0.875, 0.875, 0.125, 0.5, 0.5, 0.5, 0.5]);
    assert!(fit_vector(&[known]).numbers().iter().all(|value| value.is_finite()));
}

#[test]
fn maps_that_cannot_be_are_refused() {
    let message = |corners: &[(f64, f64)]| IsotonicMap::of(vec![corners.to_vec()], 2).unwrap_err().to_string();
    assert!(message(&[(0.1, 0.3), (0.2, 0.2)]).contains("function 0 of the isotonic regression falls"));
    assert!(message(&[(0.2, 0.2), (0.1, 0.3)]).contains("not in order"));
    let zero = "corner 1 of the isotonic regression of class 1 has the probability 0; it must lie in (0, 1)";
    assert_eq!(message(&[(0.1, 0.2), (0.2, 0.0)]), zero);
    assert!(
        message(&[(0.1, f64::NAN)]).contains("NaN")
            && message(&[(-0.1, 0.5)]).contains("probability -0.1; it must lie in [0, 1]")
    );
    assert_eq!(message(&[]), "there are no rows to score");
    assert!(IsotonicMap::of(vec![vec![(0.1, 0.5)]], 3).unwrap_err().to_string().contains("1 values, expected 3"));
    assert!(VectorMap::of(&[1.0, 1.0, 0.0], 2).is_err() && VectorMap::of(&[1.0, 1.0, 0.0, f64::NAN], 2).is_err());
    let (two, three) = (rows(50, 2, 1), rows(50, 3, 1));
    for map in fitted(&two) {
        assert!(map.apply(&three).is_err());
    }
    assert!(IsotonicMap::fit(&[0; 7], 2).is_err() && IsotonicMap::fit(&[0; 2 * GRID], 2).is_err());
}

proptest! {
    #[test]
    fn places_together_have_the_map_of_all_rows_in_one(count in 60usize..200, cut in 0.1f64..0.9, classes in 2usize..4) {
        let all = rows(count, classes, count as u64);
        let at = ((count as f64 * cut) as usize).max(1);
        let places = [all.select(&(0..at).collect::<Vec<_>>())?, all.select(&(at..count).collect::<Vec<_>>())?];
        // Counts are exact, sums are up to rounding.
        prop_assert_eq!(fit_isotonic(&places), fit_isotonic(from_ref(&all)));
        let (apart, together) = (fit_vector(&places).numbers(), fit_vector(&[all]).numbers());
        prop_assert!(apart.iter().zip(&together).all(|(a, b)| (a - b).abs() < 1e-8), "{apart:?} {together:?}");
    }

    #[test]
    fn a_search_ends_whatever_is_answered(answers in vec(vec(any::<f64>(), 15), 1..300)) {
        let mut search = VectorSearch::new(10, 2);
        answers.iter().cycle().take(5000).for_each(|sums| search.answer(sums));
        prop_assert!(search.question().is_none());
        prop_assert!(search.map().numbers().iter().all(|value| value.is_finite()));
    }

    #[test]
    fn functions_do_not_fall_and_rows_sum_to_one(p in vec(0f64..=1.0, 2..40), seed in any::<u64>()) {
        let map = ProbabilityMap::Isotonic(fit_isotonic(&[rows(80, 2, seed)]));
        let mut sorted = p;
        sorted.sort_by(f64::total_cmp);
        let given = ClassPredictions::new(vec![0; sorted.len()], 2, sorted.iter().flat_map(|p| [1.0 - p, *p]).collect())?;
        let mapped = map.apply(&given)?;
        let second: Vec<f64> = mapped.rows().map(|row| row[1]).collect();
        prop_assert!(second.is_sorted() && mapped.rows().all(|row| row[0] + row[1] == 1.0));
    }
}
