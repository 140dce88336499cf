//! A report on rows that belong together.

use super::*;
use crate::metrics::{Clusters, share_interval};

fn parsed(report: &Report<'_>) -> Value {
    serde_json::from_str(&render(report).unwrap().json).unwrap()
}

/// Four equal rows for each probability of the second of two classes and label.
fn four_times(of: &[(f64, usize)]) -> ClassPredictions<'static> {
    let rows = of.iter().flat_map(|row| [row; 4]);
    let labels = rows.clone().map(|(_, label)| *label).collect();
    ClassPredictions::new(labels, 2, rows.flat_map(|(p, _)| [1.0 - p, *p]).collect()).unwrap()
}

/// The same, each four a cluster.
fn together(of: &[(f64, usize)]) -> ClassPredictions<'static> {
    four_times(of).with_clusters(Clusters::new((0..4 * of.len()).map(|row| row / 4))).unwrap()
}

#[test]
fn the_verdict_counts_clusters() {
    // 16 patients, of whom 12 are right, with a confidence of .9: 64 independent rows would show a bias beyond chance.
    let patients: Vec<(f64, usize)> = (0..16).map(|at| (0.9, usize::from(at % 4 > 0))).collect();
    let (by_rows, by_clusters) = (four_times(&patients), together(&patients));
    let (by_rows, by_clusters) =
        (render(&report(&by_rows, None)).unwrap(), render(&report(&by_clusters, None)).unwrap());
    let json = |of: &Rendered| -> Value { serde_json::from_str(&of.json).unwrap() };
    let (rows, clusters) = (json(&by_rows), json(&by_clusters));
    assert_eq!(rows["verdict"]["kind"], "biased");
    assert_eq!(clusters["verdict"]["kind"], "too few rows");
    assert_eq!((&clusters["overall"]["clusters"], rows["overall"].get("clusters")), (&json!(16), None));
    let text = clusters["verdict"]["text"].as_str().unwrap();
    assert!(text.contains("right on 64 rows of 16 clusters."), "{text}");
    assert!(by_clusters.html.contains("resamples of the 16 clusters of 64 rows"), "{}", by_clusters.html);
    assert!(by_rows.html.contains("resamples of the 64 rows"));
    // All numbers but those of chance are the same.
    let mut overall = clusters["overall"].clone();
    overall.as_object_mut().unwrap().remove("clusters");
    assert_eq!(overall, rows["overall"]);
    assert_eq!((&clusters["bins"], &clusters["selective"]), (&rows["bins"], &rows["selective"]));
}

#[test]
fn shares_of_alike_rows_have_the_intervals_of_one_row_less_than_there_are_clusters() {
    let patients: Vec<(f64, usize)> =
        (0..40).map(|at| (if at % 3 == 0 { 0.3 } else { 0.8 }, usize::from(at % 5 > 1))).collect();
    let predictions = together(&patients);
    let one = |condition: &dyn Fn(&(f64, usize)) -> bool| patients.iter().filter(|of| condition(of)).count();
    let table = crate::metrics::threshold_table(&predictions, &[0.5]).unwrap();
    let row = &table[0];
    // The variance by m clusters has the divisor m − 1, that of Wilson's interval m.
    let (ill, found) = (one(&|of| of.1 == 1), one(&|of| of.1 == 1 && of.0 > 0.5));
    let expected = share_interval(found as f64 / ill as f64, ill - 1);
    let got = row.share_intervals[0].unwrap();
    assert!((got.lo - expected.lo).abs() < 1e-12 && (got.hi - expected.hi).abs() < 1e-12, "{got:?} {expected:?}");
    // The net benefit at one half, of parts 1, −1 and 0.
    let flagged = |label| one(&|of: &(f64, usize)| of.1 == label && of.0 > 0.5) as f64;
    let (mean, square) = ((flagged(1) - flagged(0)) / 40.0, (flagged(1) + flagged(0)) / 40.0);
    let half = 1.959_963_984_540_054 * ((square - mean * mean) / 39.0).sqrt();
    let got = row.net_benefit_interval.unwrap();
    assert!((got.lo - (mean - half)).abs() < 1e-12 && (got.hi - (mean + half)).abs() < 1e-12, "{got:?}");
    let json = parsed(&report(&predictions, None));
    let (wrong, accuracy) = (one(&|of| (of.0 > 0.5) != (of.1 == 1)), &json["confidence_intervals"]["accuracy"]);
    let expected = share_interval(1.0 - wrong as f64 / 40.0, 39);
    assert!((accuracy["lo"].as_f64().unwrap() - expected.lo).abs() < 1e-12, "{accuracy}");
}

#[test]
fn confused_classes_have_intervals_by_clusters_too() {
    let three = |clusters: Option<Clusters>| {
        let predictions = predictions().with_clusters(clusters).unwrap();
        let pairs = parsed(&report(&predictions, None))["confusion"]["pairs"].clone();
        let of = |end: &str| pairs[0]["share_interval"][end].as_f64().unwrap();
        of("hi") - of("lo")
    };
    // The rows of a label are alike: all are taken for the first class.
    assert!(three(Some(Clusters::new((0..60).map(|row| row / 12)))) > three(None) + 0.1);
}

#[test]
fn groups_and_temperature_keep_the_rows_of_a_cluster_together() {
    let patients: Vec<(f64, usize)> = (0..40).map(|at| (0.8, usize::from(at % 4 > 0))).collect();
    let predictions = together(&patients);
    let groups =
        Groups::new(vec!["a".into(), "b".into()], (0..160).map(|row| usize::from(row >= 100)).collect()).unwrap();
    let json = parsed(&Report { groups: Some(&groups), ..report(&predictions, None) });
    let of = |at: usize| (&json["groups"][at]["overall"]["n"], &json["groups"][at]["overall"]["clusters"]);
    assert_eq!((of(0), of(1)), ((&json!(100), &json!(25)), (&json!(60), &json!(15))));
    let halves = &json["temperature_scaling"];
    assert_eq!((&halves["fit_rows"], &halves["evaluated_rows"]), (&json!(80), &json!(80)));
    // 19 patients are too few to split.
    assert!(parsed(&report(&together(&patients[..19]), None))["temperature_scaling"].is_null());
    assert!(!parsed(&report(&together(&patients[..20]), None))["temperature_scaling"].is_null());
}

#[test]
fn the_verdict_on_intervals_counts_clusters() {
    // 15 machines with six alike errors each; the 90 % intervals hold 12 of them, which 90 rows would not do by chance.
    let errors = (0..90).map(|row| match row / 6 {
        0 | 10 => 3.0,
        5 => -3.0,
        _ => 0.2,
    });
    let predictions = RegressionPredictions::new(1, vec![0.0; 90], vec![1.0; 90], errors.collect()).unwrap();
    let kind = |predictions: &RegressionPredictions<'_>| {
        let content = Content::Regression { predictions };
        parsed(&Report { title: "a".into(), content, bins: 15, seed: 1, run: None, groups: None })
    };
    let by_rows = kind(&predictions);
    let by_clusters = kind(&predictions.with_clusters(Clusters::new((0..90).map(|row| row / 6))).unwrap());
    assert_eq!(
        (&by_rows["verdict"]["kind"], &by_clusters["verdict"]["kind"]),
        (&json!("over-confident"), &json!("too few rows"))
    );
    let text = by_clusters["verdict"]["text"].as_str().unwrap();
    assert!(text.contains("of the 90 targets of 15 clusters, "), "{text}");
    let width = |of: &Value, key: &str| {
        let of = &of["confidence_intervals"][key];
        of["hi"].as_f64().unwrap() - of["lo"].as_f64().unwrap()
    };
    for key in ["rmse", "mae", "mean_error", "coverage_90"] {
        let ratio = width(&by_clusters, key) / width(&by_rows, key);
        assert!((1.9..3.2).contains(&ratio), "{key}: {ratio}");
    }
}

#[test]
fn few_rows_of_a_regression_or_few_clusters_have_no_verdict() {
    let kind = |rows: usize, clusters: Option<Clusters>| {
        let (mean, target) = (vec![5.0; rows], (0..rows).map(|row| (row as f64).sin() * 0.1).collect());
        let predictions = RegressionPredictions::new(1, mean, vec![1.0; rows], target).unwrap();
        let content = Content::Regression { predictions: &predictions.with_clusters(clusters).unwrap() };
        parsed(&Report::new("r", content))["verdict"]["kind"].clone()
    };
    assert_eq!((kind(9, None), kind(10, None)), (json!("too few rows"), json!("biased")));
    assert_eq!(kind(60, Some(Clusters::new((0..60).map(|row| row % 9)))), "too few rows");
    assert_eq!(kind(60, Some(Clusters::new((0..60).map(|row| row % 10)))), "biased");
}

#[test]
fn the_page_says_how_many_clusters_have_the_positive_class() {
    let patients: Vec<(f64, usize)> = (0..20).map(|at| (0.3, usize::from(at == 4))).collect();
    let rendered = render(&report(&together(&patients), None)).unwrap();
    assert!(rendered.html.contains("4 are of class 1, all of one cluster: a share of"), "{}", rendered.html);
    let json: Value = serde_json::from_str(&rendered.json).unwrap();
    assert_eq!(json["binary"]["positive"]["clusters"], 1);
    let rows = parsed(&report(&four_times(&patients), None));
    assert!(rows["binary"]["positive"].get("clusters").is_none());
}
