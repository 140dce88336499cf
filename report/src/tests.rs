//! A report as its readers see it: files, JSON, page.

mod binary;
mod clients;
mod clusters;
mod confusion;
mod groups;
mod limits;

use std::fs;

use serde_json::{Value, json};

use super::*;
use crate::metrics::{
    ClassPredictions, ClientScores, Evaluation, ParticleLogProbs, RegressionPredictions, UncertaintySummary,
    equal_width,
};

/// Sixty rows of three classes with confidences from one half to one; every third row is wrong.
fn predictions() -> ClassPredictions<'static> {
    let mut probabilities = Vec::new();
    for row in 0..60 {
        let p = 0.5 + f64::from(row) / 120.0;
        probabilities.extend([p, 0.75 * (1.0 - p), 0.25 * (1.0 - p)]);
    }
    let labels = (0..60).map(|row| usize::from(row % 3 == 0)).collect();
    ClassPredictions::new(labels, 3, probabilities).unwrap()
}

fn run() -> RunSummary {
    let predictions = predictions();
    let evaluation = Evaluation::of_predictions(&predictions, 15).unwrap();
    let top = predictions.top_label();
    let bins = equal_width(&top.confidence, &top.correct, 15).unwrap().bins().to_vec();
    let rounds = vec![RoundRecord::new(1, evaluation.columns()), RoundRecord { round: 2, ..RoundRecord::default() }];
    RunSummary {
        personal_first: false,
        not_judged: None,
        personal: None,
        sites: Vec::new(),
        clients: Vec::new(),
        config_toml: "name = \"<script>alert(1)</script>\"".into(),
        rounds: rounds.clone(),
        partition: Some(PartitionTable {
            class_names: vec!["a".into(), "<b>".into(), "c & d".into()],
            counts: vec![vec![1, 0, 20], vec![0, 0, 0]],
            validation: vec![0, 0],
            calibration: Vec::new(),
            test: vec![5, 0],
            clients: ClientNames::new(vec!["north <1>".into(), "south".into()]),
        }),
        facts: vec![("device".into(), "<CPU>".into())],
        notes: vec!["2 of <4> clients never trained".into()],
        calibration: None,
        compare: vec![Comparison {
            name: "Fed<Avg>".into(),
            evaluation,
            bins,
            rounds,
            not_judged: None,
            clients: None,
        }],
    }
}

fn report<'a>(predictions: &'a ClassPredictions<'a>, run: Option<RunSummary>) -> Report<'a> {
    let content = Content::Classification { predictions, uncertainty: None };
    Report { title: "a <title> & \"more\"".into(), content, bins: 15, seed: 1, run, groups: None }
}

fn json_of(files: &ReportFiles) -> Value {
    serde_json::from_str(&fs::read_to_string(&files.json).unwrap()).unwrap()
}

#[test]
fn a_full_report_is_eight_files_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let predictions = predictions();
    let files = write(&report(&predictions, Some(run())), &dir.path().join("new/report")).unwrap();
    let mut names: Vec<String> = fs::read_dir(dir.path().join("new/report"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let pictures = ["confusion.svg", "curves.svg", "partition.svg", "reliability.svg"];
    let others = ["bins.csv", "confusion.csv", "report.html", "report.json"];
    let mut want = [pictures, others].concat();
    want.sort_unstable();
    assert_eq!(names, want);
    assert!(files.curves.is_some() && files.partition.is_some());
}

#[test]
fn predictions_that_are_not_those_of_the_run_are_not_judged() {
    // Every row is wrong, and all are of one class.
    let predictions = ClassPredictions::new(vec![1; 60], 3, [0.7, 0.2, 0.1].repeat(60)).unwrap();
    let judged = render(&report(&predictions, Some(run()))).unwrap();
    assert!(judged.warning.is_some() && judged.html.contains("Over-confident"));
    let reason = Some("A part of these parameters is untrained.".to_owned());
    let rendered = render(&report(&predictions, Some(RunSummary { not_judged: reason, ..run() }))).unwrap();
    assert_eq!(rendered.warning, None);
    let headline = "<h2>Not judged</h2><p>A part of these parameters is untrained.</p>";
    assert!(rendered.html.contains(headline) && !rendered.html.contains("Over-confident"), "{}", rendered.html);
    let json: Value = serde_json::from_str(&rendered.json).unwrap();
    assert_eq!((&json["verdict"]["kind"], json["run"].get("not_judged")), (&"not judged".into(), None));
    let judged: Value = serde_json::from_str(&judged.json).unwrap();
    assert_eq!(json["overall"], judged["overall"]);
}

#[test]
fn a_compared_run_that_is_not_judged_has_a_reason_in_the_place_of_its_numbers() {
    let predictions = predictions();
    let rows = |not_judged: Option<&str>| {
        let mut run = run();
        run.compare[0].not_judged = not_judged.map(str::to_owned);
        let page = render(&report(&predictions, Some(run))).unwrap().html;
        let line = page.lines().find(|line| line.contains("Fed&lt;Avg&gt;</th>")).unwrap_or_default().to_owned();
        (line, page)
    };
    let (judged, untrained) = (rows(None), rows(Some("A <part> is untrained.")));
    assert!(judged.1.contains("Comparison with other runs") && !judged.1.contains("untrained"));
    assert_ne!(judged.0, untrained.0);
    assert!(
        untrained.1.contains("<p class=\"note\">Fed&lt;Avg&gt;: A &lt;part&gt; is untrained.</p>"),
        "{}",
        untrained.1
    );
}

#[test]
fn the_json_has_what_a_reader_relies_on() {
    let dir = tempfile::tempdir().unwrap();
    let predictions = predictions();
    let json = json_of(&write(&report(&predictions, None), dir.path()).unwrap());
    assert_eq!(json["schema_version"], 1);
    let overall = ["accuracy", "nll", "brier", "ece", "mce", "ace", "classwise_ece", "signed_gap", "mean_confidence"];
    for key in overall {
        assert!(json["overall"][key].is_f64(), "{key}");
        assert!(json["definitions"][key].is_string(), "{key}");
    }
    assert_eq!(json["overall"]["n"], 60);
    assert_eq!(json["bins"].as_array().unwrap().len(), 15);
    // The first bin is empty: no accuracy, which is not 0.
    let empty = &json["bins"][0];
    assert_eq!((&empty["n"], &empty["accuracy"], &empty["gap"]), (&Value::from(0), &Value::Null, &Value::Null));
    assert_eq!(json["temperature_scaling"]["fit_rows"], 30);
    assert_eq!(json["confidence_intervals"]["resamples"], 1000);
    assert!((json["overall"]["accuracy"].as_f64().unwrap() - 2.0 / 3.0).abs() < 1e-12);
}

#[test]
fn the_json_has_the_headline_metrics_of_every_round() {
    let dir = tempfile::tempdir().unwrap();
    let predictions = predictions();
    let first = RoundRecord::new(1, [("nll", Some(0.25)), ("accuracy", Some(0.5)), ("ece", None), ("kl", Some(2.0))]);
    let mut run = run();
    run.rounds = vec![first, RoundRecord { round: 2, clients: vec![3], ..RoundRecord::default() }];
    run.compare[0].rounds = run.rounds.clone();
    let json = json_of(&write(&report(&predictions, Some(run)), dir.path()).unwrap());
    let expected = json!([
        { "round": 1, "accuracy": 0.5, "nll": 0.25, "ece": null, "rmse": null },
        { "round": 2, "accuracy": null, "nll": null, "ece": null, "rmse": null },
    ]);
    assert_eq!((&json["run"]["rounds"], &json["run"]["compare"][0]["rounds"]), (&expected, &expected));
}

#[test]
fn every_number_of_the_overall_section_is_defined() {
    let dir = tempfile::tempdir().unwrap();
    let predictions = predictions();
    let json = json_of(&write(&report(&predictions, None), dir.path()).unwrap());
    let known = |key: &str| json["definitions"][key].is_string() || ["classes", "bins", "mce_n"].contains(&key);
    let keys = ["overall", "selective", "confidence_intervals"].map(|section| json[section].as_object().unwrap());
    for key in keys.iter().flat_map(|section| section.keys()) {
        assert!(known(key) || ["level", "resamples"].contains(&key.as_str()), "{key}");
    }
}

#[test]
fn the_headline_alone_and_the_report_in_memory_are_those_of_the_files() {
    let predictions = predictions();
    let report = report(&predictions, Some(run()));
    let dir = tempfile::tempdir().unwrap();
    let files = write(&report, dir.path()).unwrap();
    assert_eq!(json!(overall(&report).unwrap()), json_of(&files)["overall"]);
    let rendered = render(&report).unwrap();
    let text = |path: &std::path::Path| fs::read_to_string(path).unwrap();
    assert_eq!((rendered.json, rendered.html), (text(&files.json), text(&files.html)));
    assert_eq!((rendered.bins, rendered.reliability), (text(&files.bins), text(&files.reliability)));
    assert_eq!(rendered.curves, files.curves.as_deref().map(text));
    assert_eq!(rendered.partition, files.partition.as_deref().map(text));
}

#[test]
fn the_verdict_begins_with_a_model_that_is_no_better_than_the_most_frequent_class() {
    let forty_of_sixty: [usize; 60] = std::array::from_fn(|row| usize::from(row >= 40));
    let verdict = |probabilities: Vec<f64>| {
        let predictions = ClassPredictions::new(forty_of_sixty.to_vec(), 2, probabilities).unwrap();
        let of = verdict(&report(&predictions, None)).unwrap();
        (of.text.replace('\u{a0}', " "), of.warning.map(|warning| warning.replace('\u{a0}', " ")))
    };
    let warns = |sure: [f64; 2], words: &str| {
        let (text, warning) = verdict(sure.repeat(60));
        assert_eq!(warning.as_deref(), Some(words));
        assert!(text.starts_with(&format!("{words} On average")), "{text}");
    };
    let than = "often right than always naming the most frequent class:";
    // The entropy of (1/3, 2/3) is 0.63651 nats.
    let nll = "The NLL is no lower than that of predicting the frequencies of the classes for every row:";
    warns([0.6, 0.4], &format!("The model is no more {than} 66.7 % against 66.7 %. {nll} 0.6460 against 0.6365."));
    warns([0.1, 0.9], &format!("The model is less {than} 33.3 % against 66.7 %. {nll} 1.5702 against 0.6365."));
    // Always right.
    let right =
        |sure: f64| (0..60).flat_map(|row| if row < 40 { [sure, 1.0 - sure] } else { [1.0 - sure, sure] }).collect();
    let (text, warning) = verdict(right(0.9));
    assert_eq!(warning, None);
    assert!(text.starts_with("On average") && text.contains("the model is 33.3 points more often right"), "{text}");
    // Always right, and hardly sure of it.
    let (text, warning) = verdict(right(0.52));
    assert_eq!(warning.unwrap(), format!("{nll} 0.6539 against 0.6365."));
    assert!(text.contains("the model is 33.3 points more often right"), "{text}");
}

#[test]
fn the_gain_over_the_most_frequent_class_of_a_rare_class_is_measured_by_what_there_is_to_gain() {
    // Of 1,000 rows the last four are of class 1; `found` of them are given to it.
    let labels: [usize; 1000] = std::array::from_fn(|row| usize::from(row >= 996));
    let warning = |found: usize| {
        let row = |row: usize| if row >= 1000 - found { [0.02, 0.98] } else { [0.999, 0.001] };
        let predictions = ClassPredictions::new(labels.to_vec(), 2, (0..1000).flat_map(row).collect()).unwrap();
        verdict(&report(&predictions, None)).unwrap().warning.unwrap_or_default().replace('\u{a0}', " ")
    };
    let accuracy = |found| warning(found).split(':').next().unwrap().to_owned();
    assert_eq!(accuracy(0), "The model is no more often right than always naming the most frequent class");
    assert_eq!([1, 4].map(warning), ["", ""], "a quarter of the rare rows, and all of them");
    // 20,000 rows of which 0.4 % more are right than by the most frequent class: less than half a point.
    let labels: Vec<usize> = (0..20_000).map(|row| usize::from(row >= 18_000)).collect();
    let row = |row: usize| if row >= 19_920 { [0.1, 0.9] } else { [0.93, 0.07] };
    let predictions = ClassPredictions::new(labels, 2, (0..20_000).flat_map(row).collect()).unwrap();
    let warning = verdict(&report(&predictions, None)).unwrap().warning.unwrap().replace('\u{a0}', " ");
    let words =
        "The model is hardly more often right than always naming the most frequent class: 90.4 % against 90.0 %.";
    assert_eq!(warning, words);
}

#[test]
fn a_regression_that_is_no_better_than_the_normal_distribution_of_the_targets_is_told_so() {
    // Mean 3 and variance 2.
    let targets = vec![1.0, 2.0, 3.0, 4.0, 5.0];
    let warning = |mean: Vec<f64>, precision: f64| {
        let predictions = RegressionPredictions::new(1, mean, vec![precision; 5], targets.clone()).unwrap();
        let report = Report::new("r", Content::Regression { predictions: &predictions });
        let of = verdict(&report).unwrap();
        assert!(of.text.starts_with(of.warning.as_deref().unwrap_or("The central 90 % intervals")), "{}", of.text);
        of.warning
    };
    assert_eq!(warning(vec![1.5, 2.0, 3.0, 4.0, 4.5], 4.0), None);
    let rmse = "The RMSE is no lower than that of predicting the mean of the targets for every row:";
    let nll = "The NLL is no lower than that of a normal distribution with the mean and the standard deviation of the targets for \
               every row:";
    // Half of ln(2π · 2) + 1; the constant mean with the variance 1/4.
    assert_eq!(
        warning(vec![3.0; 5], 4.0).unwrap(),
        format!("{rmse} 1.4142 against 1.4142. {nll} 4.2258 against 1.7655.")
    );
    // Better means, too sure of them.
    assert_eq!(warning(vec![2.0, 2.0, 3.0, 4.0, 4.0], 100.0).unwrap(), format!("{nll} 18.616 against 1.7655."));
}

#[test]
fn the_same_seed_gives_the_same_report() {
    let dir = tempfile::tempdir().unwrap();
    let predictions = predictions();
    let text = |name: &str| {
        let files = write(&report(&predictions, Some(run())), &dir.path().join(name)).unwrap();
        [files.json, files.html, files.reliability].map(|path| fs::read_to_string(path).unwrap())
    };
    assert_eq!(text("a"), text("b"));
}

#[test]
fn the_page_is_one_file_without_script_and_escapes_what_it_shows() {
    let dir = tempfile::tempdir().unwrap();
    let predictions = predictions();
    let files = write(&report(&predictions, Some(run())), dir.path()).unwrap();
    let page = fs::read_to_string(files.html).unwrap();
    assert!(!page.contains("<script") && !page.contains(" src=") && !page.contains(" href="));
    // The only address is the name of the SVG namespace.
    assert!(!page.replace("http://www.w3.org/2000/svg", "").contains("http"));
    assert!(!page.contains("<title> &") && !page.contains("Fed<Avg>") && !page.contains("<CPU>"));
    assert!(page.contains("&lt;script&gt;") && page.contains("prefers-color-scheme"));
    assert!(page.contains("2 of &lt;4&gt; clients never trained"));
    assert!(!page.contains("NaN") && !page.contains(">inf"));
}

#[test]
fn what_scrolls_is_reached_by_the_keyboard_and_has_the_name_of_its_part() {
    let predictions = predictions();
    let page = render(&report(&predictions, Some(run()))).unwrap().html;
    let region = |title: &str| format!(" tabindex=\"0\" role=\"region\" aria-label=\"{title}");
    for title in [
        "The bins as a table",
        "Comparison with other runs",
        "The numbers of rows as a table",
        "Classes that are taken for one another",
        "Class by class",
        "The run",
        "Resolved config (TOML)",
    ] {
        assert!(page.contains(&format!("{}\">", region(title))), "{title}");
    }
    assert_eq!(page.matches("<pre").count(), 1);
    assert_eq!(page.matches("<div class=\"scroll").count() + 1, page.matches(&region("")).count());
    assert!(page.contains("<tr><th scope=\"row\">Fed&lt;Avg&gt;</th><td>"));
    assert!(page.contains("<tr><th scope=\"row\">device</th><td>&lt;CPU&gt;</td></tr>"));
    assert!(page.contains("<tr><td>0.000 to 0.067</td><td>0</td>"), "the range of a bin is no name");
}

#[test]
fn extreme_predictions_make_a_report() {
    let certain = ClassPredictions::new(vec![1], 2, vec![1.0, 0.0]).unwrap();
    let right = ClassPredictions::new(vec![0; 40], 2, [1.0, 0.0].repeat(40)).unwrap();
    for (predictions, bins) in [(&certain, 1), (&right, 1000)] {
        let dir = tempfile::tempdir().unwrap();
        let files = write(&Report { bins, ..report(predictions, None) }, dir.path()).unwrap();
        let json = json_of(&files);
        assert_eq!(json["bins"].as_array().unwrap().len(), bins);
        let picture = fs::read_to_string(files.reliability).unwrap();
        assert!(!picture.contains("NaN") && !picture.contains("inf"));
    }
}

#[test]
fn the_diagram_of_two_classes_begins_at_one_half() {
    let of = |classes: usize, probabilities: &[f64]| {
        let rows = probabilities.len() / classes;
        let predictions = ClassPredictions::new(vec![0; rows], classes, probabilities.to_vec()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let files = write(&report(&predictions, None), dir.path()).unwrap();
        fs::read_to_string(files.reliability).unwrap()
    };
    let hatched = |picture: &str| picture.matches("fill=\"url(#rel-empty)\"").count();
    let two = of(2, &[[0.9, 0.1], [0.6, 0.4], [0.3, 0.7]].concat());
    // Only there every tenth has a tick. Of the 8 bins from 7/15 on 3 have rows; one more is the legend's.
    assert!(two.contains(">0.7</text>") && hatched(&two) == 8 - 3 + 1, "{}", hatched(&two));
    let three = of(3, &[[0.8, 0.1, 0.1], [0.4, 0.3, 0.3]].concat());
    assert!(!three.contains(">0.7</text>") && hatched(&three) == 15 - 2 + 1, "{}", hatched(&three));
    // A confidence of one half that is in the bin below is not cut off.
    let half = of(2, &[0.5, 0.5]);
    assert!(hatched(&half) <= 8, "{}", hatched(&half));
}

#[test]
fn no_bins_is_an_error_and_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let predictions = predictions();
    let target = dir.path().join("report");
    let error = write(&Report { bins: 0, ..report(&predictions, None) }, &target).unwrap_err();
    assert!(error.to_string().contains("0 bins"), "{error}");
    assert!(!target.exists());
}

#[test]
fn a_regression_has_its_own_report() {
    let n = 200;
    let target: Vec<f64> = (0..n).map(|i| 5.0 + 2.0 * (f64::from(i) / 10.0).sin()).collect();
    let mean = [target.clone(), target.iter().map(|y| y + 0.6).collect()].concat();
    let predictions = RegressionPredictions::new(2, mean, vec![1.0; 2 * n as usize], target).unwrap();
    let content = Content::Regression { predictions: &predictions };
    let report = Report::new("r", content);
    let dir = tempfile::tempdir().unwrap();
    let files = write(&report, dir.path()).unwrap();
    let json = json_of(&files);
    assert!((json["overall"]["rmse"].as_f64().unwrap() - 0.3).abs() < 1e-12);
    assert_eq!(json["coverage"].as_array().unwrap().len(), 4);
    assert_eq!(json["verdict"]["kind"], "under-confident");
    for key in json["overall"].as_object().unwrap().keys().filter(|key| *key != "particles") {
        assert!(json["definitions"][key].is_string(), "{key}");
    }
}

/// The verdict on predictions of 0 with a standard deviation of 1 for targets that are given.
fn verdict_on(target: Vec<f64>) -> (String, String) {
    let n = target.len();
    let predictions = RegressionPredictions::new(1, vec![0.0; n], vec![1.0; n], target).unwrap();
    let verdict = crate::verdict(&Report::new("r", Content::Regression { predictions: &predictions })).unwrap();
    (verdict.headline, verdict.text)
}

#[test]
fn the_verdict_on_intervals_sees_a_bias_and_the_middle_of_the_predictive() {
    // The quantiles of a normal distribution at (i + 1/2)/n.
    let normal: Vec<f64> = (0..2000).map(|i| normal_quantile((f64::from(i) + 0.5) / 2000.0)).collect();
    assert_eq!(verdict_on(normal.clone()).0, "The intervals cover as many targets as they should");
    // Predictions of 0 for a mean of -0.8 are too high by that; the standard deviation is 1, its standard error 1/√2000.
    let (headline, text) = verdict_on(normal.iter().map(|z| z - 0.8).collect());
    assert_eq!(headline, "Biased: the predictions are too high by 0.8000 on average");
    assert!(text.contains("too high by 0.8000 ± 0.0224 (one standard error), which is 39.0"), "{text}");
    assert_eq!(
        verdict_on(normal.iter().map(|z| z + 0.8).collect()).0.split(" by ").next(),
        Some("Biased: the predictions are too low")
    );
    // A bias that is small beside the predictive is none of the headline.
    assert!(!verdict_on(normal.iter().map(|z| z + 0.1).collect()).0.contains("Biased"));
    // Nine of ten within the 90 % interval, and none within the 50 % interval, or all of those.
    let sign = |row: i32| if row / 10 % 2 == 0 { 1.0 } else { -1.0 };
    let within = |size: f64| (0..2000).map(|row| sign(row) * if row % 10 == 0 { 2.2 } else { size }).collect();
    let off = "The 90 % intervals cover as many targets as they should, the 50 % intervals are too";
    assert_eq!(verdict_on(within(0.9)).0, format!("{off} narrow"));
    assert_eq!(verdict_on(within(0.3)).0, format!("{off} wide"));
}

#[test]
fn intervals_that_hold_on_average_alone_are_told_with_the_third_where_they_do_not() {
    // Noise that grows with the prediction, beside intervals of one width: 1.05 times 1.645 are 5.8, 2.5 and 1.15 deviations.
    let noise = |row: usize| [0.3, 0.7, 1.5][row / 200] * normal_quantile(((row % 200) as f64 + 0.5) / 200.0);
    let headline = |noise: &dyn Fn(usize) -> f64, sd: f64| {
        let means: Vec<f64> = (0..600).map(|row| row as f64).collect();
        let targets = means.iter().enumerate().map(|(row, mean)| mean + noise(row)).collect();
        let predictions = RegressionPredictions::new(1, means, vec![1.0 / (sd * sd); 600], targets).unwrap();
        let content = Content::Regression { predictions: &predictions };
        let report = Report { title: "noise".into(), content, bins: 15, seed: 1, run: None, groups: None };
        let found = verdict(&report).unwrap();
        (found.kind, found.headline, found.text)
    };
    let (kind, found, text) = headline(&noise, 1.05);
    assert_eq!(kind, VerdictKind::OverConfident);
    assert_eq!(
        found,
        "The 90 % intervals hold on average, and 75.0\u{a0}% of the targets where predictions are highest"
    );
    assert!(
        text.contains("Of the 200 rows each with the lowest, middle and highest predictions they contain 100.0"),
        "{text}"
    );
    let equal = |row: usize| normal_quantile(((row % 200) as f64 + 0.5) / 200.0);
    assert_eq!(headline(&equal, 1.0).1, "The intervals cover as many targets as they should");
}

/// The quantile of a standard normal distribution, by bisection on its distribution function.
fn normal_quantile(p: f64) -> f64 {
    let (mut lo, mut hi) = (-9.0, 9.0);
    for _ in 0..80 {
        let mid = 0.5 * (lo + hi);
        if crate::metrics::normal_cdf(mid) < p { lo = mid } else { hi = mid }
    }
    0.5 * (lo + hi)
}

/// Sums over the rows `[at..end]` of [`predictions`] with one particle.
fn sums(at: usize, end: usize) -> ClientScores {
    let predictions = predictions();
    let log_probs = predictions.probabilities()[3 * at..3 * end].iter().map(|p| p.ln()).collect();
    let log_probs = ParticleLogProbs::new(1, end - at, 3, log_probs).unwrap();
    let mut scores = ClientScores::of_classes(3, 15);
    scores.add_classes(&log_probs, &predictions.labels()[at..end]).unwrap();
    scores
}

fn site(name: &str, index: usize, scores: &ClientScores) -> SiteScores {
    SiteScores::of_sums(name.into(), index, scores, (index == 0).then_some(scores))
}

/// Asserts that each number is the other report's, or null where sums do not give it.
fn assert_same_or_null(of_sums: &Value, of_rows: &Value, null: &[&str]) {
    for (key, want) in of_rows.as_object().unwrap().iter().filter(|(key, _)| *key != "particles") {
        let got = &of_sums[key];
        if null.contains(&key.as_str()) {
            assert!(got.is_null() && !want.is_null(), "{key}");
            continue;
        }
        match (got.as_f64(), want.as_f64()) {
            (Some(got), Some(want)) => assert!((got - want).abs() < 1e-12, "{key}: {got}, not {want}"),
            (got, want) => assert_eq!(got, want, "{key}"),
        }
    }
}

#[test]
fn a_report_of_pooled_sums_has_the_numbers_of_the_report_of_all_rows() {
    let dir = tempfile::tempdir().unwrap();
    let predictions = predictions();
    let of_rows = json_of(&write(&report(&predictions, None), &dir.path().join("rows")).unwrap());
    let (north, south) = (sums(0, 25), sums(25, 60));
    let mut scores = north.clone();
    scores.merge(&south).unwrap();
    let silent = site("west", 2, &north.without_rows());
    let sites = vec![site("north <ward>", 0, &north), site("south", 1, &south), silent];
    let uncertainty = UncertaintySummary::of_sums(&scores, 1);
    let content = Content::Sums { scores: &scores, uncertainty };
    let run = Some(RunSummary { sites, ..run() });
    let files = write(&Report { content, ..report(&predictions, run) }, &dir.path().join("sums")).unwrap();
    let of_sums = json_of(&files);
    assert_same_or_null(&of_sums["overall"], &of_rows["overall"], &["ace"]);
    assert_same_or_null(&of_sums["brier_decomposition"], &of_rows["brier_decomposition"], &[]);
    for (got, want) in of_sums["bins"].as_array().unwrap().iter().zip(of_rows["bins"].as_array().unwrap()) {
        assert_same_or_null(got, want, &[]);
    }
    for key in ["confidence_intervals", "selective", "temperature_scaling"] {
        assert!(of_sums[key].is_null() && !of_rows[key].is_null(), "{key}");
    }
    assert!(of_rows.get("left_out").is_none() && of_sums["left_out"].as_str().unwrap().contains("bootstrap"));
    assert_eq!(of_sums["verdict"]["kind"], of_rows["verdict"]["kind"]);
    assert_eq!(of_sums["run"]["sites"][1]["name"], "south");
    assert_eq!(of_sums["run"]["sites"][1]["evaluation"]["rows"], 35);
    let page = fs::read_to_string(files.html).unwrap();
    assert!(page.contains("north &lt;ward&gt;") && page.contains("No scores of test rows came from west"));
    assert!(page.contains("personal predictor") && page.contains("single rows are left out"));
    assert!(!page.contains("NaN") && !page.contains("resamples"));
}

#[test]
fn sites_of_particles_that_are_not_judged_have_their_personal_predictors_or_the_reason_that_there_are_none() {
    let (predictions, scores) = (predictions(), sums(0, 60));
    let page_of = |own| {
        let sites = vec![SiteScores::of_sums("north".into(), 0, &scores, own)];
        let content = Content::Sums { scores: &scores, uncertainty: UncertaintySummary::of_sums(&scores, 1) };
        let run = Some(RunSummary { sites, not_judged: Some("A part is untrained.".into()), ..run() });
        render(&Report { content, ..report(&predictions, run) }).unwrap().html
    };
    let reason = "evaluation.personal = true lets the sites do so";
    let (with, without) = (page_of(Some(&scores)), page_of(None));
    let table = "personal predictor on the same rows";
    assert!(with.contains(table) && !with.contains(reason));
    assert!(without.contains(reason) && !without.contains(table));
}

#[test]
fn a_regression_has_a_report_of_pooled_sums_too() {
    let target: Vec<f64> = (0..90).map(|i| (f64::from(i) / 7.0).sin()).collect();
    // Sums do not tell the mean error: it is 0 here.
    let other = target.iter().enumerate().map(|(row, y)| if row % 2 == 0 { y + 0.4 } else { y - 0.4 });
    let mean = [target.clone(), other.collect()].concat();
    let all = RegressionPredictions::new(2, mean, vec![6.0; 180], target).unwrap();
    let mut scores = ClientScores::of_targets();
    scores.add_real(&all).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let json = |content, name: &str| json_of(&write(&Report::new("r", content), &dir.path().join(name)).unwrap());
    let of_rows = json(Content::Regression { predictions: &all }, "rows");
    let of_sums = json(Content::Sums { scores: &scores, uncertainty: None }, "sums");
    assert_same_or_null(&of_sums["overall"], &of_rows["overall"], &["mean_error"]);
    for key in ["pit_histogram", "quantile_calibration", "interval_calibration", "verdict"] {
        assert_eq!(of_sums[key], of_rows[key], "{key}");
    }
    for (got, want) in of_sums["coverage"].as_array().unwrap().iter().zip(of_rows["coverage"].as_array().unwrap()) {
        assert_same_or_null(got, want, &["mean_width"]);
    }
    let none = ClientScores::of_targets();
    let content = Content::Sums { scores: &none, uncertainty: None };
    assert!(write(&Report::new("r", content), &dir.path().join("none")).is_err());
}
