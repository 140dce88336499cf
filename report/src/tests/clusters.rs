//! A report on rows that belong together.

use super::*;
use crate::metrics::{Clusters, Share, share_interval};

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
fn all_four_shares_count_clusters_and_a_row_at_the_threshold_is_flagged() {
    // Patients with four alike rows each, whose probability and label are these; 0.5 is the threshold.
    let of = |p: f64, label: usize, patients: usize| vec![(p, label); patients];
    let patients = [of(0.8, 1, 9), of(0.5, 1, 5), of(0.8, 0, 2), of(0.5, 0, 4), of(0.3, 1, 6), of(0.3, 0, 14)].concat();
    let table = crate::metrics::threshold_table(&together(&patients), &[0.5]).unwrap();
    // 14 hits, 6 false alarms, 6 missed and 14 spared: 14 of 20 each. By m clusters the divisor is m − 1, in Wilson's interval m.
    let expected = share_interval(0.7, 19);
    for got in table[0].share_intervals.map(Option::unwrap) {
        assert!((got.lo - expected.lo).abs() < 1e-12 && (got.hi - expected.hi).abs() < 1e-12, "{got:?} {expected:?}");
    }
    // 11, 7, 6 and 16 patients, so that no two shares are equal.
    let patients = [of(0.8, 1, 11), of(0.5, 0, 7), of(0.3, 1, 6), of(0.3, 0, 16)].concat();
    let table = crate::metrics::threshold_table(&together(&patients), &[0.5]).unwrap();
    for (got, (part, all)) in table[0].share_intervals.into_iter().zip([(11, 17), (16, 23), (11, 18), (16, 22)]) {
        let (got, expected) = (got.unwrap(), share_interval(f64::from(part) / f64::from(all), all as usize - 1));
        assert!(
            (got.lo - expected.lo).abs() < 1e-12 && (got.hi - expected.hi).abs() < 1e-12,
            "{part} of {all}: {got:?}"
        );
    }
}

#[test]
fn a_model_is_useful_beyond_chance_by_clusters() {
    // 10 patients with four hits each, 3 with false alarms, 3 missed and 10 spared, at one half. Of 104 rows 28 hits more than
    // flagging none; with an adverse row more 27 ± 1.96·√(53 − 27²/104) = 27 ± 13.3. The design effect is 4·26/25 = 4.16:
    // with as many adverse rows 23.8 ± 1.96·√(4.16·(56.2 − 23.8²/104)) = 23.8 ± 28.5.
    let of = |p: f64, label: usize, patients: usize| vec![(p, label); patients];
    let patients = [of(0.8, 1, 10), of(0.8, 0, 3), of(0.3, 1, 3), of(0.3, 0, 10)].concat();
    let useful = |of: &ClassPredictions<'_>| crate::metrics::threshold_table(of, &[0.5]).unwrap()[0].is_useful();
    assert_eq!((useful(&four_times(&patients)), useful(&together(&patients))), ((true, true), (true, false)));
    // Ten times as many patients: 276 ± 1.96·√(4.02·(524 − 276²/1040)) = 276 ± 83.
    let patients = patients.repeat(10);
    assert_eq!(useful(&together(&patients)), (true, true));
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

/// Sums over the rows `[at..end]` of two classes, added in parts of seven rows, with clusters.
fn sums(predictions: &ClassPredictions<'_>, rows: std::ops::Range<usize>, clusters: Option<&Clusters>) -> ClientScores {
    let mut builder = ClientScores::of_classes(2, 15).builder(clusters);
    let (all, labels): (Vec<usize>, _) = (rows.collect(), predictions.labels());
    for part in all.chunks(7) {
        let (first, last) = (part[0], part[part.len() - 1]);
        let logs = predictions.probabilities()[2 * first..2 * (last + 1)].iter().map(|p| p.ln()).collect();
        let logs = ParticleLogProbs::new(1, part.len(), 2, logs).unwrap();
        builder.add_classes(&logs, &labels[first..=last]).unwrap();
    }
    builder.finish().unwrap()
}

/// Predictions of two classes for 40 patients with six rows each, of which most have one outcome.
fn visits() -> (ClassPredictions<'static>, Vec<usize>) {
    let p = |row: usize| 0.05 + 0.9 * ((row / 6 * 7 + row % 6) % 40) as f64 / 39.0;
    let outcome = |row: usize| usize::from((row / 6 * 13 % 40) as f64 / 39.0 < p(row) || row % 23 == 5);
    let probabilities = (0..240).flat_map(|row| [1.0 - p(row), p(row)]).collect();
    let predictions = ClassPredictions::new((0..240).map(outcome).collect(), 2, probabilities).unwrap();
    (predictions, (0..240).map(|row| row / 6).collect())
}

#[test]
fn sums_of_sites_have_the_standard_errors_of_all_their_clusters() {
    let (predictions, patients) = visits();
    // 16 patients at one site and 24 at the other.
    let cut = 96;
    let of = |rows: std::ops::Range<usize>| Clusters::new(patients[rows].iter());
    let (north, south) = (of(0..cut), of(cut..240));
    let (north, south) = (sums(&predictions, 0..cut, Some(&north)), sums(&predictions, cut..240, Some(&south)));
    assert_eq!((north.clusters(), south.clusters()), (Some(16), Some(24)));
    let mut scores = north.without_rows().read(&north.to_values()).unwrap();
    scores.merge(&south.without_rows().read(&south.to_values()).unwrap()).unwrap();
    assert_eq!((north.to_values().len(), scores.clusters(), scores.rows()), (14 + 5 * 15 + 8, Some(40), 240));
    let text = serde_json::to_string(&scores).unwrap();
    assert_eq!(serde_json::from_str::<ClientScores>(&text).unwrap(), scores);

    // The design effect of the gap is the one of the rows, and the interval is wider by its root.
    let top = predictions.top_label();
    let gaps: Vec<f64> =
        top.confidence.iter().zip(&top.correct).map(|(p, right)| p - f64::from(u8::from(*right))).collect();
    let effect = Clusters::new(&patients).design_effect(gaps.into_iter().enumerate());
    assert!(effect > 1.5, "{effect}");
    let width = |of: &ClientScores| of.signed_gap_interval().map(|of| of.hi - of.lo).unwrap();
    let by_rows = sums(&predictions, 0..240, None);
    assert_eq!(by_rows.clusters(), None);
    assert!((width(&scores) / width(&by_rows) - effect.sqrt()).abs() < 1e-9);

    // A site whose rows are independent counts them.
    let mut mixed = north.clone();
    mixed.merge(&sums(&predictions, cut..240, None)).unwrap();
    let clusters = Clusters::new((0..240).map(|row| if row < cut { patients[row] } else { 1000 + row }));
    let expected = sums(&predictions, 0..240, Some(&clusters));
    assert_eq!(mixed.clusters(), Some(16 + 144));
    assert!((width(&mixed) - width(&expected)).abs() < 1e-12);

    // The verdict and the shares of the report count patients.
    let sites = vec![
        SiteScores::of_sums("north".into(), 0, &north, None),
        SiteScores::of_sums("south".into(), 1, &south, Some(&south)),
    ];
    let content = Content::Sums { scores: &scores, uncertainty: None };
    let run = Some(RunSummary { sites, ..run() });
    let rendered = render(&Report { run, ..Report::new("sites", content) }).unwrap();
    let json: Value = serde_json::from_str(&rendered.json).unwrap();
    assert_eq!(json["overall"]["clusters"], 40);
    assert!(json["verdict"]["text"].as_str().unwrap().contains("240 rows of 40 clusters"));
    assert!(
        json["left_out"]
            .as_str()
            .unwrap()
            .ends_with("the variance of the clusters; the bars of the bins take rows for independent.")
    );
    let right = Share::of(Some(&Clusters::new(&patients[..cut])), (0..cut).map(|row| (row, top.correct[row]))).unwrap();
    let independent = &json["run"]["sites"][0]["clusters"]["independent"]["accuracy"];
    assert!((independent.as_f64().unwrap() - right.independent).abs() < 1e-9, "{independent}");
    let interval = right.interval(0.95);
    let small = format!("<small>{:.1}\u{a0}% to {:.1}\u{a0}%</small>", 100.0 * interval.lo, 100.0 * interval.hi);
    assert!(rendered.html.contains(&small), "{small}");
}

#[test]
fn sums_of_few_patients_say_nothing_and_of_one_have_no_interval() {
    let (predictions, patients) = visits();
    let few = Clusters::new(&patients[..54]);
    let scores = sums(&predictions, 0..54, Some(&few));
    let content = Content::Sums { scores: &scores, uncertainty: None };
    assert_eq!(crate::verdict(&Report::new("few", content)).unwrap().kind, VerdictKind::TooFewRows);
    let one = Clusters::new([0; 54]);
    assert_eq!(sums(&predictions, 0..54, Some(&one)).signed_gap_interval(), None);
    // More rows than clusters were told of, or fewer.
    let mut builder = ClientScores::of_classes(2, 15).builder(Some(&few));
    let logs = ParticleLogProbs::new(1, 60, 2, [0.5_f64.ln(); 120].to_vec()).unwrap();
    assert!(builder.add_classes(&logs, &[0; 60]).is_err());
    assert!(ClientScores::of_classes(2, 15).builder(Some(&few)).finish().is_err());
}

#[test]
fn a_regression_at_sites_counts_patients_in_its_coverages() {
    // Normals of variance 1 around 0: the central 90 % interval is ± 1.645.
    let target: Vec<f64> = (0..240).map(|row| if row / 6 % 10 < 2 { 2.0 } else { 0.1 * (row % 7) as f64 }).collect();
    let all = RegressionPredictions::new(1, vec![0.0; 240], vec![1.0; 240], target).unwrap();
    let clusters = Clusters::new((0..240).map(|row| row / 6));
    let mut builder = ClientScores::of_targets().builder(Some(&clusters));
    builder.add_real(&all).unwrap();
    let scores = builder.finish().unwrap();
    assert_eq!(scores.to_values().len(), 231 + 10);
    let verdict = |scores: &ClientScores| {
        let content = Content::Sums { scores, uncertainty: None };
        crate::verdict(&Report::new("regression", content)).unwrap()
    };
    let of_rows = all.clone().with_clusters(Some(clusters)).unwrap();
    let content = Content::Regression { predictions: &of_rows };
    let of_rows = crate::verdict(&Report::new("regression", content)).unwrap();
    // Eight of forty patients are outside, 20 % of the rows: beyond chance for 240 rows, and not for 40.
    let by_chance = |text: &str| text.split("up to ").nth(1).map(|rest| rest.split(')').next().unwrap().to_owned());
    let found = verdict(&scores);
    assert!(found.text.contains("240 targets of 40 clusters"), "{}", found.text);
    assert_eq!(by_chance(&found.text), by_chance(&of_rows.text));
    let mut alone = ClientScores::of_targets();
    alone.add_real(&all).unwrap();
    assert_ne!(by_chance(&found.text), by_chance(&verdict(&alone).text));
    let site = SiteScores::of_sums("a".into(), 0, &scores, None);
    let independent = site.clusters.unwrap().independent;
    assert!((independent["coverage_90"] - 39.0).abs() < 1e-9, "{independent:?}");
}
