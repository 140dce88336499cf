//! A report on rows in groups.

use super::*;

/// The rows of [`predictions`] in the groups `south <1>` (every third row), `north, 2` (another third) and `a` (the rest).
fn groups() -> Groups {
    let names = ["south <1>", "north, 2", "a"].map(String::from).to_vec();
    Groups::new(names, (0..60).map(|row| row % 3).collect()).unwrap()
}

fn parsed(report: &Report<'_>) -> Value {
    serde_json::from_str(&render(report).unwrap().json).unwrap()
}

#[test]
fn each_group_has_the_numbers_and_the_verdict_of_a_report_on_its_rows_alone() {
    let (predictions, groups) = (predictions(), groups());
    let grouped = Report { groups: Some(&groups), ..report(&predictions, None) };
    let json = parsed(&grouped);
    let overalls = overall_of_groups(&grouped).unwrap();
    assert_eq!(json["groups"].as_array().unwrap().len(), 3);
    for (at, name) in ["south <1>", "north, 2", "a"].into_iter().enumerate() {
        let own = predictions.select(&(0..60).filter(|row| row % 3 == at).collect::<Vec<_>>()).unwrap();
        let own = parsed(&report(&own, None));
        let group = &json["groups"][at];
        assert_eq!(group["name"], name);
        for key in ["overall", "verdict", "confidence_intervals"] {
            assert_eq!(group[key], own[key], "{name}: {key}");
        }
        assert_eq!((&*overalls[at].0, json!(overalls[at].1)), (name, own["overall"].clone()));
    }
    // Without groups nothing of them is there.
    assert!(parsed(&report(&predictions, None)).get("groups").is_none());
    assert!(overall_of_groups(&report(&predictions, None)).unwrap().is_empty());
}

#[test]
fn groups_of_predictions_that_are_not_those_of_the_run_are_not_judged_either() {
    let (predictions, groups) = (predictions(), groups());
    let not_judged = Some("A part of these parameters is untrained.".to_owned());
    let run = Some(RunSummary { not_judged, ..run() });
    let report = Report { groups: Some(&groups), ..report(&predictions, run) };
    let json = parsed(&report);
    let kinds: Vec<&Value> = json["groups"].as_array().unwrap().iter().map(|group| &group["verdict"]["kind"]).collect();
    assert_eq!(kinds, ["not judged"; 3]);
    assert!(render(&report).unwrap().html.contains("Of 3 groups: 3 not judged."));
}

#[test]
fn a_single_group_is_not_told_in_the_plural() {
    let (predictions, groups) = (predictions(), Groups::new(vec!["all".into()], vec![0; 60]).unwrap());
    let page = render(&Report { groups: Some(&groups), ..report(&predictions, None) }).unwrap().html;
    assert!(page.contains("Of 1 group: 1 "), "{page}");
}

#[test]
fn groups_are_on_the_page_with_escaped_names_and_in_a_table_with_quoted_ones() {
    let (predictions, groups) = (predictions(), groups());
    let dir = tempfile::tempdir().unwrap();
    let files = write(&Report { groups: Some(&groups), ..report(&predictions, None) }, dir.path()).unwrap();
    let page = fs::read_to_string(&files.html).unwrap();
    assert!(page.contains("<h2>Groups</h2>") && page.contains("<th scope=\"row\">south &lt;1&gt;</th><td>20</td>"));
    assert!(!page.contains("south <1>") && !page.contains("NaN"));
    let table = fs::read_to_string(files.groups.unwrap()).unwrap();
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].starts_with("group,n,verdict,accuracy,") && lines.len() == 4);
    assert!(lines[2].starts_with("\"north, 2\",20,"));
    let fields = |line: &str| line.replace("north, 2", "north").split(',').count();
    assert!(lines.iter().all(|line| fields(line) == fields(lines[0])));
    let without = write(&report(&predictions, None), &dir.path().join("without")).unwrap();
    assert!(without.groups.is_none() && !fs::read_to_string(without.html).unwrap().contains("Groups"));
}

#[test]
fn few_rows_without_a_mistake_have_no_verdict_and_the_interval_of_a_share() {
    // Two sure and right rows, beside 60 others.
    let all = predictions();
    let labels = [all.labels(), &[0, 0]].concat();
    let few =
        ClassPredictions::new(labels, 3, [all.probabilities(), &[0.9, 0.1, 0.0, 0.8, 0.1, 0.1]].concat()).unwrap();
    let of = (0..62).map(|row| usize::from(row >= 60)).collect();
    let groups = Groups::new(vec!["many".into(), "few".into()], of).unwrap();
    let grouped = Report { groups: Some(&groups), ..report(&few, None) };
    assert_eq!(parsed(&grouped)["groups"][1]["verdict"]["kind"], "too few rows");
    let page = render(&grouped).unwrap().html;
    let line = page.lines().find(|line| line.starts_with("<tr><th scope=\"row\">few</th>")).unwrap();
    // Wilson's interval of 2 of 2.
    assert!(line.contains("<td>100.0\u{a0}%<br><small>34.2\u{a0}% to 100.0\u{a0}%</small></td>"), "{line}");
    assert!(line.contains("Too few rows to tell"), "{line}");
    // The same holds of a report on these rows alone, and 400 right rows do tell: no row is of the class that gets .2.
    let rows = |n| ClassPredictions::new(vec![0; n], 2, [0.8, 0.2].repeat(n)).unwrap();
    assert_eq!(verdict(&report(&rows(2), None)).unwrap().kind, VerdictKind::TooFewRows);
    assert_eq!(verdict(&report(&rows(400), None)).unwrap().kind, VerdictKind::Biased);
}

#[test]
fn of_very_many_groups_the_page_has_those_with_the_most_rows() {
    // Group g of 0..59 has the row g; the groups 3 and 59 have one more of two further rows.
    let all = predictions();
    let picked: Vec<usize> = (0..60).chain([3, 59]).collect();
    let predictions = all.select(&picked).unwrap();
    let names = (0..60).map(|group| format!("group {group}")).collect();
    let groups = Groups::new(names, picked).unwrap();
    let rendered = render(&Report { groups: Some(&groups), ..report(&predictions, None) }).unwrap();
    assert!(rendered.html.contains("The table has the 50 groups with the most rows, of 60"));
    let lines: Vec<&str> =
        rendered.html.split("<tr>").filter(|line| line.starts_with("<th scope=\"row\">group ")).collect();
    let has =
        |group: usize| lines.iter().any(|line| line.starts_with(&format!("<th scope=\"row\">group {group}</th>")));
    assert!(lines.len() == 50 && has(3) && has(48) && !has(49) && has(59));
    assert!(lines[0].contains("group 0<") && lines[49].contains("group 59<"));
    assert_eq!(rendered.groups.unwrap().lines().count(), 61);
}

#[test]
fn a_regression_has_groups_too() {
    let target: Vec<f64> = (0..90).map(|row| (f64::from(row) / 7.0).sin()).collect();
    let mean = [target.clone(), target.iter().map(|y| y + 0.4).collect()].concat();
    let predictions = RegressionPredictions::new(2, mean, vec![6.0; 180], target).unwrap();
    let groups =
        Groups::new(vec!["x".into(), "y".into()], (0..90).map(|row| usize::from(row >= 60)).collect()).unwrap();
    let content = || Content::Regression { predictions: &predictions };
    let grouped = Report { groups: Some(&groups), ..Report::new("r", content()) };
    let own = predictions.select(&(60..90).collect::<Vec<_>>()).unwrap();
    let (json, own) = (parsed(&grouped), parsed(&Report::new("r", Content::Regression { predictions: &own })));
    for key in ["overall", "verdict", "confidence_intervals"] {
        assert_eq!(json["groups"][1][key], own[key], "{key}");
    }
    assert_eq!(json!(overall_of_groups(&grouped).unwrap()[1].1), own["overall"]);
    let rendered = render(&grouped).unwrap();
    assert!(rendered.html.contains("<th scope=\"row\">y</th><td>30</td>"));
    assert!(
        rendered.html.contains("interval over resamples of the group") && rendered.html.contains("of coverages Wilson")
    );
    assert!(rendered.groups.unwrap().lines().next().unwrap().contains(",rmse,"));
}

#[test]
fn the_worst_calibrated_group_is_first_where_that_is_asked_for() {
    // A confidence of 0.9: always right in `right`, one time of two in `half`, and nine of ten in `fair`.
    let label = |row: usize| {
        usize::from(match row / 200 {
            0 => false,
            1 => row.is_multiple_of(2),
            _ => row.is_multiple_of(10),
        })
    };
    let predictions = ClassPredictions::new((0..600).map(label).collect(), 2, [0.9, 0.1].repeat(600)).unwrap();
    let names = ["right", "half", "fair"].map(String::from).to_vec();
    let groups = Groups::new(names, (0..600).map(|row| row / 200).collect()).unwrap();
    let order = |groups: &Groups| -> Vec<String> {
        let rendered = render(&Report { groups: Some(groups), ..report(&predictions, None) }).unwrap();
        let half_is_first = rendered.html.find(">half</th>").unwrap() < rendered.html.find(">right</th>").unwrap();
        assert_eq!(rendered.html.contains("The worst calibrated are first"), half_is_first);
        rendered.groups.unwrap().lines().skip(1).map(|line| line.split(',').next().unwrap().to_owned()).collect()
    };
    assert_eq!(order(&groups), ["right", "half", "fair"]);
    assert_eq!(order(&groups.worst_first()), ["half", "right", "fair"]);
    // One row that is wrong, or right, tells little: 100 rows of which 60 are right with a confidence of 0.9 tell more.
    let label = |row: usize| usize::from(row < 1 || (1..41).contains(&row));
    let predictions = ClassPredictions::new((0..102).map(label).collect(), 2, [0.9, 0.1].repeat(102)).unwrap();
    let of_row = |row: usize| if row == 0 { 0 } else { 1 + usize::from(row > 100) };
    let names = ["unlucky", "many", "lucky"].map(String::from).to_vec();
    let groups = Groups::new(names, (0..102).map(of_row).collect()).unwrap().worst_first();
    let json = parsed(&Report { groups: Some(&groups), ..report(&predictions, None) });
    let first = |at: usize| json["groups"][at]["name"].as_str().unwrap().to_owned();
    assert_eq!([first(0), first(1), first(2)], ["many", "unlucky", "lucky"]);
    // 0.9 minus SciPy's binomtest(0, 1).proportion_ci(0.95, "wilson"), 0 to 0.7935.
    let interval = &json["groups"][1]["confidence_intervals"]["signed_gap"];
    assert!((interval["lo"].as_f64().unwrap() - 0.1065).abs() < 1e-4, "{interval}");
    // Of a regression the coverage of 90 % intervals counts: all rows of `y` are outside.
    let mean = (0..90).map(|row| if row < 60 { 0.0 } else { 9.0 }).collect();
    let target = (0..90).map(|row| (f64::from(row) * 0.7).sin()).collect();
    let predictions = RegressionPredictions::new(1, mean, vec![1.0; 90], target).unwrap();
    let groups =
        Groups::new(vec!["x".into(), "y".into()], (0..90).map(|row| usize::from(row >= 60)).collect()).unwrap();
    let groups = groups.worst_first();
    let content = Content::Regression { predictions: &predictions };
    let json = parsed(&Report { groups: Some(&groups), ..Report::new("r", content) });
    assert_eq!([&json["groups"][0]["name"], &json["groups"][1]["name"]], ["y", "x"]);
}

#[test]
fn groups_that_do_not_fit_are_refused() {
    let predictions = predictions();
    let short = Groups::new(vec!["a".into()], vec![0; 59]).unwrap();
    let grouped = Report { groups: Some(&short), ..report(&predictions, None) };
    assert_eq!(render(&grouped).unwrap_err().to_string(), "groups: 59 values, expected 60");
    assert_eq!(overall_of_groups(&grouped).unwrap_err().to_string(), "groups: 59 values, expected 60");
    let scores = sums(0, 60);
    let content = Content::Sums { scores: &scores, uncertainty: None };
    let of_sums = Report { groups: Some(&short), ..Report::new("r", content) };
    assert!(render(&of_sums).unwrap_err().to_string().contains("have no groups of rows"));
    assert!(overall_of_groups(&of_sums).is_err());
}
