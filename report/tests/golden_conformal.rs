//! Conformal scores, thresholds, sets and intervals against MAPIE and crepes (tests/golden/conformal.json).

use fedstein_report::conformal::{Score, TargetInterval, class_scores, class_set, intervals, target_scores, threshold};
use fedstein_report::metrics::{ClassPredictions, RegressionPredictions};
use serde::Deserialize;
use serde_json::Value;

fn golden() -> Value {
    serde_json::from_str(include_str!("../../tests/golden/conformal.json")).unwrap()
}

fn read<T: for<'a> Deserialize<'a>>(value: &Value) -> T {
    T::deserialize(value).unwrap()
}

fn score(case: &Value) -> Score {
    match case["score"].as_str().unwrap() {
        "lac" => Score::Lac,
        "aps" => Score::Aps,
        "raps" => Score::Raps { penalty: read(&case["penalty"]), free: read(&case["free"]) },
        "normalised" => Score::Normalised,
        "cqr" => Score::Cqr,
        other => panic!("{other}"),
    }
}

#[test]
fn scores_thresholds_and_sets_of_classes_are_those_of_mapie_to_the_last_digit() {
    let golden = golden();
    let (calibration, new) = (&golden["calibration"], &golden["new"]);
    let probabilities: Vec<Vec<f64>> = read(&calibration["probabilities"]);
    let predictions = ClassPredictions::new(read(&calibration["labels"]), 4, probabilities.concat()).unwrap();
    let (draws, new_draws): (Vec<f64>, Vec<f64>) = (read(&calibration["draws"]), read(&new["draws"]));
    let rows: Vec<Vec<f64>> = read(&new["probabilities"]);
    let cases = golden["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 10);
    for case in cases {
        let (score, random) = (score(case), read::<bool>(&case["random"]));
        let got = class_scores(score, &predictions, random.then_some(&draws[..])).unwrap();
        let want: Vec<f64> = read(&case["scores"]);
        // MAPIE adds the penalty to the sum less the draw, another order of two additions.
        let close = |(got, want): (&f64, &f64)| (got - want).abs() <= 2.0 * f64::EPSILON;
        assert!(got.len() == want.len() && got.iter().zip(&want).all(close), "{case}");
        let limit = threshold(&got, read(&case["level"])).unwrap().unwrap();
        assert!((limit - read::<f64>(&case["threshold"])).abs() <= 2.0 * f64::EPSILON, "{limit} {case}");
        let sets: Vec<Vec<u8>> = read(&case["sets"]);
        assert_eq!(sets.len(), rows.len());
        for (row, want) in sets.iter().enumerate() {
            let draw = random.then(|| new_draws[row]);
            let got: Vec<u8> = class_set(score, &rows[row], Some(limit), draw).into_iter().map(u8::from).collect();
            assert_eq!(&got, want, "row {row} of {} at {}", case["score"], case["level"]);
        }
    }
}

#[test]
fn scores_and_intervals_of_regressions_are_those_of_crepes_and_mapie() {
    let golden = golden();
    let given = &golden["regression"];
    let of = |mean: &str, sd: &str, target: Vec<f64>| {
        let precision = read::<Vec<f64>>(&given[sd]).iter().map(|sd| 1.0 / (sd * sd)).collect();
        RegressionPredictions::new(1, read(&given[mean]), precision, target).unwrap()
    };
    let calibration = of("mean", "sd", read(&given["target"]));
    let new = of("new_mean", "new_sd", vec![0.0; 12]);
    let cases = given["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 4);
    for case in cases {
        let (score, level) = (score(case), read::<f64>(&case["level"]));
        let mut got = target_scores(score, &calibration, level).unwrap();
        let limit = threshold(&got, level).unwrap();
        got.sort_by(f64::total_cmp);
        let want: Vec<f64> = read(&case["sorted"]);
        // The precision is a rounded reciprocal, and the quantile's iteration ends within 1e-14 of the bracket.
        let close = |got: f64, want: f64| (got - want).abs() <= 1e-12 * want.abs().max(1.0);
        assert!(got.iter().zip(&want).all(|(got, want)| close(*got, *want)) && got.len() == want.len(), "{case}");
        let want: Vec<[f64; 2]> = read(&case["intervals"]);
        let got = intervals(score, &new, level, limit).unwrap();
        assert_eq!(got.len(), want.len());
        for (got, [lower, upper]) in got.into_iter().zip(want) {
            let TargetInterval { lower: got_lower, upper: got_upper } = got.unwrap();
            assert!(close(got_lower, lower) && close(got_upper, upper), "{case}: {got_lower} {got_upper}");
        }
    }
}
