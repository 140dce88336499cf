//! Isotonic regression and vector scaling against scikit-learn and SciPy (tests/golden/maps.json, scripts/golden_maps.py).

use fedstein_report::maps::{IsotonicMap, PENALTY, VectorMap, VectorSearch, isotonic_counts, vector_sums};
use fedstein_report::metrics::{ClassPredictions, logits_of};
use serde::Deserialize;
use serde_json::Value;

fn golden(case: &str) -> Value {
    let golden: Value = serde_json::from_str(include_str!("../../tests/golden/maps.json")).unwrap();
    golden[case].clone()
}

fn read<T: for<'a> Deserialize<'a>>(value: &Value) -> T {
    T::deserialize(value).unwrap()
}

fn predictions(case: &Value) -> ClassPredictions<'static> {
    let p: Vec<Vec<f64>> = read(&case["p"]);
    ClassPredictions::new(read(&case["y"]), p[0].len(), p.concat()).unwrap()
}

#[test]
fn isotonic_regression_is_that_of_scikit_learn_for_two_classes_and_for_one_against_the_rest() {
    for name in ["isotonic_2", "isotonic_3"] {
        let case = golden(name);
        let known = predictions(&case);
        let map = IsotonicMap::fit(&isotonic_counts(&known), known.classes()).unwrap();
        let new: Vec<Vec<f64>> = read(&case["new"]);
        let new = ClassPredictions::new(vec![0; new.len()], known.classes(), new.concat()).unwrap();
        let want: Vec<Vec<f64>> = read(&case["mapped"]);
        let mapped = map.apply(&new).unwrap();
        for (at, (got, want)) in mapped.probabilities().iter().zip(want.concat()).enumerate() {
            assert!((got - want).abs() < 1e-12, "{name}: {got} is not {want}, at {at}");
        }
        assert_eq!(mapped.probabilities().len(), 60 * known.classes());
        // The corners are all that is kept.
        assert_eq!(IsotonicMap::of(map.corners().to_vec(), known.classes()).unwrap(), map);
    }
}

#[test]
fn vector_scaling_is_that_of_an_independent_fit() {
    for name in ["vector_2", "vector_4"] {
        let case = golden(name);
        let known = predictions(&case);
        let (logits, mut search) = (logits_of(&known), VectorSearch::new(known.len(), known.classes()));
        let mut asked = 0;
        while let Some(numbers) = search.question() {
            let map = VectorMap::of(numbers, known.classes()).unwrap();
            search.answer(&vector_sums(&logits, known.labels(), &map).unwrap());
            asked += 1;
        }
        assert!(asked < 15, "{name}: {asked} questions");
        let (map, want) = (search.map(), read::<Vec<f64>>(&case["numbers"]));
        for (got, want) in map.numbers().iter().zip(&want) {
            assert!((got - want).abs() < 1e-9, "{name}: {:?} is not {want:?}", map.numbers());
        }
        let off: f64 = map.scale.iter().map(|a| (a - 1.0).powi(2)).chain(map.bias.iter().map(|b| b * b)).sum();
        let objective = vector_sums(&logits, known.labels(), &map).unwrap()[0] + 0.5 * PENALTY * off;
        assert!((objective - read::<f64>(&case["objective"])).abs() < 1e-9);
        if let Ok(unpenalised) = Vec::<f64>::deserialize(&case["unpenalised"]) {
            // The penalty is a normal prior of the standard deviation 10: 600 rows leave little of it.
            let mapped = map.apply(&known).unwrap();
            let worst = mapped.rows().zip(&unpenalised).map(|(row, want)| (row[1] - want).abs()).fold(0.0, f64::max);
            assert!(worst < 1e-3, "{worst}");
        }
    }
}
