//! The section on two classes.

use super::*;

/// Rows of two classes with these probabilities of class 1.
fn of(labels: &[usize], p: &[f64]) -> ClassPredictions<'static> {
    ClassPredictions::new(labels.to_vec(), 2, p.iter().flat_map(|p| [1.0 - p, *p]).collect()).unwrap()
}

/// Two hundred rows; the share of class 1 rises with the probability, but less than it should.
fn two_hundred() -> ClassPredictions<'static> {
    let p: Vec<f64> = (0..200).map(|row| (f64::from(row) + 0.5) / 200.0).collect();
    let labels: Vec<usize> = (0..200).map(|row| usize::from((row * 37) % 100 < 30 + row / 5)).collect();
    of(&labels, &p)
}

fn named(names: [&str; 2]) -> Option<RunSummary> {
    let class_names = names.map(String::from).to_vec();
    let partition = PartitionTable {
        class_names,
        counts: Vec::new(),
        validation: Vec::new(),
        calibration: Vec::new(),
        test: Vec::new(),
        clients: ClientNames::default(),
    };
    Some(RunSummary { partition: Some(partition), ..RunSummary::default() })
}

fn rendered(predictions: &ClassPredictions<'_>) -> (Rendered, Value) {
    let rendered = render(&report(predictions, named(["alive", "dead & <gone>"]))).unwrap();
    let json = serde_json::from_str(&rendered.json).unwrap();
    (rendered, json)
}

#[test]
fn two_classes_have_numbers_pictures_and_a_table_for_decisions() {
    let (rendered, json) = rendered(&two_hundred());
    let binary = &json["binary"];
    assert_eq!(binary["positive"]["name"], "dead & <gone>");
    assert_eq!((binary["bins"].as_array().unwrap().len(), binary["thresholds"].as_array().unwrap().len()), (15, 108));
    for key in ["auroc", "auprc", "calibration_slope", "calibration_intercept", "calibration_in_the_large"] {
        let (value, range) = (json["overall"][key].as_f64().unwrap(), &json["confidence_intervals"][key]);
        assert!(range["lo"].as_f64().unwrap() < value && value < range["hi"].as_f64().unwrap(), "{key}: {range}");
        assert!(json["definitions"][key].is_string(), "{key}");
    }
    let slope = &binary["recalibration"]["slope"];
    assert_eq!(slope["value"], json["overall"]["calibration_slope"]);
    assert_eq!(slope["lo"], json["confidence_intervals"]["calibration_slope"]["lo"]);
    let page = &rendered.html;
    assert!(page.contains("The positive class is dead &amp; &lt;gone&gt; (index 1"));
    assert!(page.contains("The probabilities are too extreme") && page.contains("Decision curve for class dead"));
    assert!(!page.contains("<gone>") && !page.contains("NaN") && !page.contains(">inf"));
    for picture in [rendered.positive.unwrap(), rendered.decision.unwrap()] {
        assert!(picture.contains("dead &amp; &lt;gone&gt;") && !picture.contains("NaN"), "{picture}");
    }
    let table = rendered.thresholds.unwrap();
    assert_eq!(table.lines().count(), 109);
    assert!(rendered.confusion.is_none() && rendered.confusion_table.is_none());
}

#[test]
fn the_page_shows_the_thresholds_that_it_promises() {
    let (rendered, json) = rendered(&two_hundred());
    let rows = json["binary"]["thresholds"].as_array().unwrap();
    assert!(!rendered.html.contains("<td>0.005</td>"), "the class is not rare");
    for threshold in ["0.01", "0.05", "0.1", "0.2", "0.5", "0.9", "0.95"] {
        let found = rows.iter().find(|row| row["threshold"] == threshold.parse::<f64>().unwrap()).unwrap();
        let flagged = found["true_positives"].as_u64().unwrap() + found["false_positives"].as_u64().unwrap();
        let line = format!("<tr><td>{threshold}</td><td>{flagged}</td>");
        assert!(rendered.html.contains(&line), "{line}");
    }
}

#[test]
fn a_rare_class_has_small_thresholds_up_to_the_first_that_flags_nobody() {
    let p: Vec<f64> = (0..1000).map(|row| 0.00004 * f64::from(row)).collect();
    let labels: Vec<usize> = (0..1000).map(|row| usize::from(row % 100 == 99)).collect();
    let (rendered, _) = rendered(&of(&labels, &p));
    for threshold in ["0.001", "0.005", "0.01", "0.02", "0.05"] {
        assert!(rendered.html.contains(&format!("<tr><td>{threshold}</td>")), "{threshold}");
    }
    assert!(!rendered.html.contains("<tr><td>0.1</td>"));
}

#[test]
fn the_page_says_where_the_model_is_worth_using() {
    // Two groups of rows with the probabilities 0.2 and 0.8 that are right: better than all or none between them, where
    // 800 hits and 200 false alarms of 2,000 rows leave no doubt.
    let p: Vec<f64> = [0.2, 0.8].into_iter().flat_map(|p| [p; 1000]).collect();
    let labels: Vec<usize> =
        (0..2000).map(|row| usize::from(if row < 1000 { row % 5 == 0 } else { row % 5 > 0 })).collect();
    let (rendered, _) = rendered(&of(&labels, &p));
    let sentence = "flagging none from 0.21 to 0.79; beyond what chance explains it is so from 0.2";
    assert!(rendered.html.contains(sentence), "{}", rendered.html);
    let (chance, _) = self::rendered(&of(&[0, 1].repeat(20), &[0.3, 0.3, 0.7, 0.7].repeat(10)));
    assert!(chance.html.contains("At no threshold is the net benefit of the model above"));
}

#[test]
fn ids_in_a_page_are_unique() {
    let (rendered, _) = rendered(&two_hundred());
    let ids: Vec<&str> = rendered.html.split(" id=\"").skip(1).filter_map(|text| text.split('"').next()).collect();
    let mut unique = ids.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(ids.len(), unique.len(), "{ids:?}");
    assert!(ids.contains(&"rel-over") && ids.contains(&"pos-over"));
}

#[test]
fn rows_of_one_class_have_a_sentence_instead_of_numbers() {
    let (rendered, json) = rendered(&of(&[1; 30], &[0.2, 0.7, 0.9].repeat(10)));
    for key in ["auroc", "calibration_slope", "calibration_intercept", "calibration_in_the_large"] {
        assert!(json["overall"][key].is_null() && json["confidence_intervals"][key].is_null(), "{key}");
    }
    assert_eq!(json["binary"]["recalibration"]["missing"], "one_class");
    assert_eq!(json["binary"]["recalibration"]["missing_in_the_large"], "one_class");
    assert!(rendered.html.contains("All rows have the same class.") && rendered.decision.is_none());
    assert!(!rendered.html.contains("Decision curve"));
}

#[test]
fn separable_rows_and_probabilities_of_zero_and_one_have_a_sentence() {
    let (separable, json) = rendered(&of(&[0, 0, 1, 1], &[0.0, 0.3, 0.6, 1.0]));
    assert_eq!((&json["overall"]["auroc"], &json["overall"]["auprc"]), (&json!(1.0), &json!(1.0)));
    assert_eq!(json["binary"]["recalibration"]["missing"], "separable");
    assert_eq!(json["binary"]["recalibration"]["floored"], 2);
    assert!(separable.html.contains("the calibration slope is infinite"));
    assert!(separable.html.contains("2 rows have a probability of 0 or 1"));
    let (constant, json) = rendered(&of(&[0, 1, 1], &[0.5; 3]));
    assert_eq!(json["overall"]["auroc"], 0.5);
    assert!(constant.html.contains("All rows have the same probability"));
    for page in [separable.html, constant.html] {
        assert!(!page.contains("NaN") && !page.contains(">inf"));
    }
}

#[test]
fn calibration_in_the_large_of_rows_that_do_not_tell_it_has_a_sentence() {
    let labels = [[0; 15].as_slice(), &[1; 5]].concat();
    let (rendered, json) = rendered(&of(&labels, &labels.iter().map(|label| *label as f64).collect::<Vec<_>>()));
    let key = "calibration_in_the_large";
    assert!(json["overall"][key].is_null() && json["confidence_intervals"][key].is_null(), "{json}");
    let of = &json["binary"]["recalibration"];
    assert!(of["in_the_large"].is_null(), "{of}");
    assert_eq!((&of["missing"], &of["missing_in_the_large"]), (&json!("separable"), &json!("flat")));
    let page = &rendered.html;
    assert!(
        page.contains("the calibration slope is infinite") && page.contains("calibration in the large has no value")
    );
    assert!(!page.contains("neither too high nor too low on average"), "{page}");
    assert!(page.contains("Calibration in the large</b><strong>–</strong><small>0 is perfect</small>"), "{page}");
}

#[test]
fn groups_of_two_classes_have_their_own_ranking_and_slope() {
    let predictions = two_hundred();
    let groups = Groups::new(vec!["even".into(), "odd".into()], (0..200).map(|row| row % 2).collect()).unwrap();
    let grouped = Report { groups: Some(&groups), ..report(&predictions, None) };
    let rendered = render(&grouped).unwrap();
    let json: Value = serde_json::from_str(&rendered.json).unwrap();
    let even: Vec<usize> = (0..200).step_by(2).collect();
    let own = render(&report(&predictions.select(&even).unwrap(), None)).unwrap();
    let own: Value = serde_json::from_str(&own.json).unwrap();
    for key in ["auroc", "calibration_slope", "calibration_in_the_large"] {
        assert_eq!(json["groups"][0]["overall"][key], own["overall"][key], "{key}");
        assert_eq!(json["groups"][0]["confidence_intervals"][key], own["confidence_intervals"][key], "{key}");
    }
    assert!(rendered.html.contains("<th scope=\"col\">Slope</th>"));
    assert!(rendered.groups.unwrap().lines().next().unwrap().contains(",auroc,auprc,calibration_slope,"));
}

#[test]
fn three_classes_have_no_section_on_two() {
    let rendered = render(&report(&predictions(), None)).unwrap();
    let json: Value = serde_json::from_str(&rendered.json).unwrap();
    assert!(json.get("binary").is_none() && json["overall"]["auroc"].is_null());
    assert!(!rendered.html.contains("The probability of one class") && rendered.positive.is_none());
}

/// Rows of two classes: of each probability of the second one `count` rows, and this share of them is of it.
fn shares(of: &[(f64, f64)], count: usize) -> ClassPredictions<'static> {
    let rows = of.iter().flat_map(|(p, _)| [1.0 - p, *p].repeat(count)).collect();
    let labels =
        of.iter().flat_map(|(_, share)| (0..count).map(move |at| usize::from((at as f64) < share * count as f64)));
    ClassPredictions::new(labels.collect(), 2, rows).unwrap()
}

#[test]
fn a_shift_of_two_classes_is_found_where_the_confidence_is_right_on_average() {
    // Sure to 60 % of either class, and right in 70 and in 50 % of the rows: no gap, and 50 % for 40 %.
    let found = verdict(&report(&shares(&[(0.4, 0.3), (0.6, 0.5)], 500), None)).unwrap();
    assert_eq!(found.headline, "Biased: the probability of `1` is too high by 10.0 points on average");
    assert!(
        found.text.contains("The mean probability of `1` is 50.0\u{a0}%, and 40.0\u{a0}% of the rows"),
        "{}",
        found.text
    );
    // .75 and .2 at .6 and .95: no gap and no shift, and probabilities that are too extreme.
    let extreme = [(0.6, 0.75), (0.4, 0.25), (0.95, 0.8), (0.05, 0.2)];
    let found = verdict(&report(&shares(&extreme, 100), None)).unwrap();
    assert!(
        found.headline.starts_with("Over-confident: the probabilities are too extreme (calibration slope 0."),
        "{}",
        found.headline
    );
    let right = [(0.6, 0.6), (0.4, 0.4), (0.95, 0.95), (0.05, 0.05)];
    assert_eq!(verdict(&report(&shares(&right, 500), None)).unwrap().kind, VerdictKind::CalibratedOnAverage);
    // Twenty rows at .05, of which one is expected and none comes with a probability of .36; and one hundred and fifty.
    let none = |rows| verdict(&report(&shares(&[(0.05, 0.0)], rows), None)).unwrap().kind;
    assert_ne!(none(20), VerdictKind::Biased);
    assert_eq!(none(150), VerdictKind::Biased);
    // A rare class that is given three times its share: half a point, and beyond chance.
    let rare = verdict(&report(&shares(&[(0.006, 0.002)], 20_000), None)).unwrap();
    assert_eq!(rare.kind, VerdictKind::Biased);
}

#[test]
fn sums_of_sites_find_the_same_shift() {
    let rows = shares(&[(0.4, 0.3), (0.6, 0.5)], 500);
    let log_probs = rows.probabilities().iter().map(|p| p.ln() as f32).collect::<Vec<_>>();
    let mut scores = ClientScores::of_classes(2, 15);
    let log_probs = ParticleLogProbs::from_f32(1, rows.len(), 2, log_probs).unwrap();
    scores.add_classes(&log_probs, rows.labels()).unwrap();
    let content = Content::Sums { scores: &scores, uncertainty: None };
    let found = verdict(&Report { content, ..report(&rows, None) }).unwrap();
    assert_eq!(found.headline, "Biased: the probability of `1` is too high by 10.0 points on average");
}
