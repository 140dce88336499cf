//! `fedstein report`: on a run, on predictions of other programs, and in comparison with other runs.

use fedstein::experiment::write_report;
use serde_json::Value;

use super::place::{Place, TINY, assert_near, numbers, prices};

/// The least contents of every report on classes (issue 2).
const OVERALL: [&str; 10] =
    ["n", "accuracy", "nll", "brier", "ece", "mce", "ace", "classwise_ece", "signed_gap", "mean_confidence"];

/// The files of a report on two classes.
const FILES: [&str; 7] =
    ["bins.csv", "decision.svg", "positive.svg", "reliability.svg", "report.html", "report.json", "thresholds.csv"];

/// Binary predictions away from the bins' edges: rows 0 and 1 are right, 2 and 3 wrong.
const BINARY: &str = "label,p_1\n1,0.91\n0,0.22\n1,0.37\n0,0.64\n";

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

/// The form of a report: keys, finite numbers, nulls in empty bins only, files that need no network.
#[track_caller]
fn assert_sound(place: &Place, directory: &str, bins: usize) -> Value {
    let report = place.json(&format!("{directory}/report.json"));
    assert_eq!(report["schema_version"], 1);
    for key in OVERALL {
        assert!(number(&report["overall"][key]).is_finite(), "{key}");
        assert!(report["definitions"][key].as_str().is_some_and(|text| !text.is_empty()), "{key} is not defined");
    }
    let overall = &report["overall"];
    for key in ["accuracy", "ece", "mce", "ace", "classwise_ece", "mean_confidence"] {
        assert!((0.0..=1.0).contains(&number(&overall[key])), "{key}");
    }
    assert_near(
        number(&overall["signed_gap"]),
        number(&overall["mean_confidence"]) - number(&overall["accuracy"]),
        1e-12,
    );

    let listed = report["bins"].as_array().unwrap();
    assert_eq!(listed.len(), bins);
    let mut ece = 0.0;
    for (index, bin) in listed.iter().enumerate() {
        assert_near(number(&bin["lo"]), index as f64 / bins as f64, 1e-12);
        assert_near(number(&bin["hi"]), (index + 1) as f64 / bins as f64, 1e-12);
        let n = number(&bin["n"]);
        for key in ["accuracy", "confidence", "gap"] {
            assert_eq!(bin[key].is_null(), n == 0.0, "{key} of {bin}");
        }
        if n > 0.0 {
            assert_near(number(&bin["gap"]), number(&bin["confidence"]) - number(&bin["accuracy"]), 1e-12);
            ece += n * number(&bin["gap"]).abs() / number(&overall["n"]);
        }
    }
    assert_eq!(listed.iter().map(|bin| number(&bin["n"])).sum::<f64>(), number(&overall["n"]));
    assert_near(number(&overall["ece"]), ece, 1e-12);

    let table = place.table(&format!("{directory}/bins.csv"));
    assert_eq!(table[0].join(","), "lo,hi,n,accuracy,confidence,gap");
    assert_eq!(table.len(), 1 + bins);
    for (row, bin) in table[1..].iter().zip(listed) {
        let of_json = ["lo", "hi", "n"].map(|key| number(&bin[key]));
        numbers(&row[..3]).iter().zip(of_json).for_each(|(cell, number)| assert_near(*cell, number, 1e-15));
        assert!(row[3..].iter().all(|cell| cell.is_empty() == bin["gap"].is_null()), "{row:?}");
    }
    let html = place.text(&format!("{directory}/report.html"));
    let picture = place.text(&format!("{directory}/reliability.svg"));
    assert!(html.starts_with("<!DOCTYPE html>") || html.starts_with("<!doctype html>"), "{}", &html[..80]);
    assert!(picture.contains("<svg"));
    for text in [&html, &picture] {
        for foreign in ["<script", "src=\"http", "href=\"http", "@import", "url(http", "NaN", "inf%"] {
            assert!(!text.contains(foreign), "{foreign}");
        }
    }
    report
}

#[test]
fn a_report_on_a_run_holds_all_sections() {
    let place = Place::new();
    place.works(&format!("{TINY} --out run --quiet"));
    let report = assert_sound(&place, "run/report", 15);
    assert_eq!(report["overall"]["n"], 359);
    // The same numbers as the run's own.
    let evaluation = place.json("run/summary.json")["evaluation"].clone();
    for key in ["accuracy", "nll", "brier", "ece", "classwise_ece"] {
        assert_near(number(&report["overall"][key]), number(&evaluation[key]), 1e-12);
    }
    let html = place.text("run/report/report.html");
    assert!(
        html.contains("digits-newton-bnn") && html.contains("curvature_scale"),
        "name and config stand in the page"
    );

    // Written again, it is the same; --title is its heading.
    let before = place.bytes("run/report/report.json");
    let printed = place.works("report run");
    assert_eq!(printed.stdout, "run/report/report.html\n");
    assert!(place.bytes("run/report/report.json") == before);
    // A program that calls the library writes the same.
    let files = write_report(&place.path("run"), &place.path("own/report")).unwrap().unwrap();
    assert_eq!(files.html, place.path("own/report/report.html"));
    assert_eq!(place.names("own/report"), place.names("run/report"));
    for name in place.names("run/report") {
        assert!(place.bytes(&format!("own/report/{name}")) == place.bytes(&format!("run/report/{name}")), "{name}");
    }
    assert_eq!(write_report(&place.path("gone"), &place.path("own/report")).unwrap_err().exit_code(), 2);
    place.works("report run --title Ours");
    assert_eq!(place.json("run/report/report.json")["title"], "Ours");
}

#[test]
fn bins_are_the_options_else_the_runs_else_15() {
    let place = Place::new();
    place.works(&format!("{TINY} --out run --quiet --set evaluation.bins=7"));
    assert_sound(&place, "run/report", 7);
    place.works("report run --bins 10 --out ten");
    assert_sound(&place, "ten", 10);
    place.works("report run");
    assert_sound(&place, "run/report", 7);
    place.write("p.csv", BINARY).works("report --predictions p.csv");
    assert_sound(&place, "p-report", 15);
    for bins in ["0", "1001", "-1", "ten"] {
        place.refuses(&format!("report run --bins={bins}"), &["--bins", bins]);
    }
}

#[test]
fn binary_predictions_are_reported_from_their_positive_column() {
    let place = Place::new();
    let printed = place.write("p.csv", BINARY).works("report --predictions p.csv --bins 10 --out r").stdout;
    assert_eq!(printed, "r/report.html\n");
    assert_eq!(place.names("r"), FILES);
    let report = assert_sound(&place, "r", 10);
    let overall = |key: &str| number(&report["overall"][key]);
    // Confidences 0.91, 0.78 (right), 0.63, 0.64 (wrong, in one bin).
    assert_eq!((overall("n"), overall("accuracy")), (4.0, 0.5));
    assert_near(overall("mean_confidence"), (0.91 + 0.78 + 0.63 + 0.64) / 4.0, 1e-12);
    assert_near(overall("nll"), -(0.91f64.ln() + 0.78f64.ln() + 0.37f64.ln() + 0.36f64.ln()) / 4.0, 1e-12);
    let squares = 0.09f64.powi(2) + 0.22f64.powi(2) + 0.63f64.powi(2) + 0.64f64.powi(2);
    assert_near(overall("brier"), 2.0 * squares / 4.0, 1e-12);
    assert_near(overall("ece"), (0.09 + 0.22 + 0.63 + 0.64) / 4.0, 1e-12);
    assert_near(overall("mce"), (0.63 + 0.64) / 2.0, 1e-12);
}

#[test]
fn predictions_of_a_regression_are_reported_from_means_and_deviations() {
    let place = Place::new();
    let rows = "target,mean,sd\n1.5,1,0.5\n-2,0,1\n0.25,0.5,2\n";
    let printed = place.write("p.csv", rows).works("report --predictions p.csv --out r").stdout;
    assert_eq!(printed, "r/report.html\n");
    let overall = &place.json("r/report.json")["overall"];
    // Of normal distributions: errors −0.5, 2 and 0.25.
    assert_near(number(&overall["rmse"]), ((0.25 + 4.0 + 0.0625) / 3.0_f64).sqrt(), 1e-12);
    let nll = |error: f64, sd: f64| 0.5 * (2.0 * std::f64::consts::PI).ln() + sd.ln() + 0.5 * (error / sd).powi(2);
    assert_near(number(&overall["nll"]), (nll(0.5, 0.5) + nll(2.0, 1.0) + nll(0.25, 2.0)) / 3.0, 1e-12);
    // A run's own file gives the run's numbers.
    let csv: String = (0..60).map(|row| format!("{},{}.5\n", row % 11, row % 11 * 2 + row % 3)).collect();
    place.write("t.csv", format!("x,y\n{csv}"));
    place.works(
        "train --quiet --out run --set data.kind=csv --set data.path=t.csv --set data.target=y \
                 --set data.task=regression --set rounds=2 --set algorithm.local_steps=5 --set partition.clients=2",
    );
    place.works("report --predictions run/predictions.csv --out again --compare run");
    assert_eq!(place.json("again/report.json")["overall"], place.json("run/report/report.json")["overall"]);
    place.refuses("report --predictions r/coverage.csv --out other", &["r/coverage.csv"]);
    place.write("bad.csv", "target,mean,sd\n1,1,0\n");
    place.refuses("report --predictions bad.csv", &["bad.csv, line 2, column sd: 0 is not a standard deviation"]);
}

#[test]
fn a_report_on_two_classes_has_what_a_decision_needs() {
    let place = Place::new();
    place.write("p.csv", BINARY).works("report --predictions p.csv --out r");
    let report = place.json("r/report.json");
    // Of the four pairs of a row of class 1 (0.91, 0.37) and one of class 0 (0.22, 0.64) three are in order.
    assert_near(number(&report["overall"]["auroc"]), 0.75, 1e-12);
    // The rows of class 1 are the first and the third from the highest probability down.
    assert_near(number(&report["overall"]["auprc"]), (1.0 + 2.0 / 3.0) / 2.0, 1e-12);
    let slope = &report["binary"]["recalibration"]["slope"];
    assert!(number(&slope["lo"]) < number(&slope["value"]) && number(&slope["value"]) < number(&slope["hi"]));
    let table = place.table("r/thresholds.csv");
    let half = table.iter().find(|row| row[0] == "0.5").unwrap();
    assert_eq!(half[..9], ["0.5", "1", "1", "1", "1", "0.5", "0.5", "0.5", "0.5"]);
    assert_eq!((number(&report["binary"]["mean_probability"]), half[9].as_str()), (0.535, "0"));
    assert!(place.text("r/report.html").contains("The positive class is 1 (index 1 of the two classes)"));

    // Rows of one class, and rows that a threshold separates: a sentence instead of a number.
    place.write("one.csv", "label,p_1\n1,0.91\n1,0.22\n").works("report --predictions one.csv --out one");
    assert!(place.json("one/report.json")["overall"]["auroc"].is_null());
    assert!(place.text("one/report.html").contains("All rows have the same class."));
    place.write("cut.csv", "label,p_1\n1,1\n0,0\n").works("report --predictions cut.csv --out cut");
    assert_eq!(place.json("cut/report.json")["binary"]["recalibration"]["missing"], "separable");
    assert!(place.text("cut/report.html").contains("the calibration slope is infinite"));
}

#[test]
fn a_report_on_three_classes_says_which_are_taken_for_which() {
    let place = Place::new();
    let rows = "label,p_0,p_1,p_2\n0,0.2,0.7,0.1\n0,0.1,0.6,0.3\n1,0.1,0.8,0.1\n2,0.1,0.5,0.4\n";
    place.write("p.csv", rows).works("report --predictions p.csv --out r");
    assert_eq!(place.text("r/confusion.csv"), "label,predicted,n\n0,1,2\n1,1,1\n2,1,1\n");
    let pair = &place.json("r/report.json")["confusion"]["pairs"][0];
    assert_eq!((number(&pair["label"]), number(&pair["predicted"]), number(&pair["n"])), (0.0, 1.0, 2.0));
    assert_near(number(&pair["confidence"]), 0.65, 1e-12);
}

#[test]
fn predictions_of_many_classes_are_reported() {
    let place = Place::new();
    place.write("three.csv", "label,p_0,p_1,p_2\n0,0.7,0.2,0.1\n1,0.1,0.85,0.05\n2,0.25,0.35,0.4\n2,0.6,0.3,0.1\n");
    place.works("report --predictions three.csv");
    let report = assert_sound(&place, "three-report", 15);
    assert_near(number(&report["overall"]["accuracy"]), 0.75, 1e-12);
    assert_near(number(&report["overall"]["nll"]), -(0.7f64 * 0.85 * 0.4 * 0.1).ln() / 4.0, 1e-12);
    // The same file as two columns of two classes.
    place.write("a.csv", BINARY).write("b.csv", "label,p_0,p_1\n1,0.09,0.91\n0,0.78,0.22\n1,0.63,0.37\n0,0.36,0.64\n");
    place.works("report --predictions a.csv --title T");
    place.works("report --predictions b.csv --title T");
    let overall = |name: &str| place.json(name)["overall"].clone();
    let (a, b) = (overall("a-report/report.json"), overall("b-report/report.json"));
    OVERALL.iter().for_each(|key| assert_near(number(&a[key]), number(&b[key]), 1e-12));
}

#[test]
fn a_runs_own_predictions_give_the_same_numbers_as_the_run() {
    let place = Place::new();
    place.works(&format!("{TINY} --out run --quiet"));
    place.works("report --predictions run/predictions.csv --out r");
    let (run, file) = (place.json("run/report/report.json"), place.json("r/report.json"));
    assert_eq!((&run["overall"], &run["bins"]), (&file["overall"], &file["bins"]));
}

#[test]
fn a_run_or_predictions_are_compared_with_other_runs() {
    let place = Place::new();
    place.works(&format!("{TINY} --out a --quiet --set name=first"));
    place.works(&format!("{TINY} --out b --quiet --set name=second --seed 2"));
    // Another seed draws other test rows.
    place.works("report a --compare b --out both --other-rows");
    assert_sound(&place, "both", 15);
    let html = place.text("both/report.html");
    assert!(html.contains("first") && html.contains("second"));
    place.write("p.csv", BINARY).works("report --predictions p.csv --compare a --compare b --other-rows");
    let html = place.text("p-report/report.html");
    assert!(html.contains("first") && html.contains("second"));
    place.refuses("report a --compare no-such --out c", &["no-such/summary.json", "finished run"]);
}

#[test]
fn runs_are_compared_over_the_bins_of_the_report() {
    let place = Place::new();
    // Two runs alike but for the bins of their own reports.
    place.works(&format!("{TINY} --out a --quiet --set evaluation.bins=7"));
    place.works(&format!("{TINY} --out b --quiet --set evaluation.bins=30"));
    for (options, out) in [("", "own"), ("--bins 12", "asked")] {
        place.works(&format!("report a --compare b {options} --out {out}"));
        let json = place.json(&format!("{out}/report.json"));
        let (own, other) = (&json["overall"], &json["run"]["compare"][0]["evaluation"]);
        for metric in ["ece", "mce", "ace", "classwise_ece"] {
            assert!(own[metric].is_f64() && own[metric] == other[metric], "{metric}: {own} {other}");
        }
    }
}

#[test]
fn regressions_are_compared_with_regressions_alone() {
    let place = Place::new();
    place.write("prices.csv", prices(60));
    let regression = "--set data.kind=csv --set data.path=prices.csv --set data.target=price --set data.task=regression --set partition.clients=2 --quiet";
    place.works(&format!("{TINY} {regression} --out a --set name=first"));
    place.works(&format!("{TINY} {regression} --out b --set name=second --seed 2"));
    // Another seed draws other test rows.
    place.works("report a --compare b --out both --other-rows");
    let html = place.text("both/report.html");
    assert!(html.contains("first") && html.contains("second"));
    let report = place.json("both/report.json");
    assert_eq!((&report["schema_version"], &report["task"]), (&Value::from(1), &Value::from("regression")));
    let evaluation = place.json("a/summary.json")["evaluation"].clone();
    for key in ["rmse", "mae", "nll", "crps"] {
        assert_near(number(&report["overall"][key]), number(&evaluation[key]), 1e-9);
    }
    place.works(&format!("{TINY} --out classes --quiet"));
    let words = ["--compare `a` is a regression, the report is on a classification"];
    place.refuses("report classes --compare a --out c", &words);
    let words = ["--compare `classes` is a classification, the report is on a regression"];
    place.refuses("report a --compare classes --out c", &words);
}

#[test]
fn a_report_is_not_written_over_anything_without_force() {
    let place = Place::new();
    place.write("p.csv", BINARY).works("report --predictions p.csv");
    place.refuses("report --predictions p.csv", &["`p-report`", "exists and is not empty", "--force"]);
    place.works("report --predictions p.csv --bins 3 --force");
    assert_sound(&place, "p-report", 3);
    place.refuses("report --predictions p.csv --out p.csv", &["`p.csv`", "exists"]);
    place.works(&format!("{TINY} --out run --quiet"));
    place.refuses("report run --out p-report", &["`p-report`", "exists and is not empty"]);
    // Files of others are not replaced, and not removed where this report has none of their names.
    place.write("mine/groups.csv", "of the user").write("mine/MODEL_CARD.md", "of the user");
    for report_json in [None, Some("[]"), Some("{\"title\": \"of another program\"}")] {
        report_json.map(|text| place.write("mine/report.json", text));
        place.refuses("report --predictions p.csv --out mine --force", &["`mine`", "no report of fedstein", "--out"]);
    }
    // A run's own report is written anew, also where its files were lost.
    std::fs::remove_file(place.path("run/report/report.json")).unwrap();
    place.works("report run --force");
    assert!(place.path("run/report/report.json").exists());
    // A link is not followed, whoever made it.
    #[cfg(unix)]
    {
        std::fs::create_dir(place.path("elsewhere")).unwrap();
        std::os::unix::fs::symlink(place.path("elsewhere"), place.path("link")).unwrap();
        place.refuses("report run --out link --force", &["`link` is a link"]);
    }
}

#[test]
fn predictions_that_cannot_be_scored_are_refused_with_line_and_column() {
    let place = Place::new();
    let head = "label,p_0,p_1,p_2\n0,0.5,0.25,0.25\n";
    let row = |row: &str| format!("{head}{row}\n");
    for (text, words) in [
        (row("3,0.5,0.25,0.25"), ["line 3, column label", "label 3 is out of range", "0 to 2"]),
        (row("-1,0.5,0.25,0.25"), ["line 3, column label", "label -1 is out of range", "0 to 2"]),
        (row("cat,0.5,0.25,0.25"), ["line 3, column label", "`cat` is not an integer", "0 to 2"]),
        (row("0,0.5,NaN,0.5"), ["line 3, column p_1", "NaN is not a probability", "[0, 1]"]),
        (row("0,0.5,-0.25,0.75"), ["line 3, column p_1", "-0.25 is not a probability", "[0, 1]"]),
        (row("0,inf,0,0"), ["line 3, column p_0", "inf is not a probability", "[0, 1]"]),
        (row("0,0.5,0.25,0.5"), ["line 3", "sum to 1.25", "must sum to 1"]),
        (row("0,0.5,0.25"), ["line 3", "3 fields", "the header has 4"]),
        (row("0,0.5,0.25,x"), ["line 3, column p_2", "`x` is not a number", "0.25"]),
        (String::new(), ["line 1", "empty", "`label,p_0,...,p_{C-1}`"]),
        (head.lines().next().unwrap().to_owned(), ["line 1", "no rows", "header"]),
        ("y,p_0,p_1\n0,0.5,0.5\n".into(), ["line 1", "the first column is `y`", "`label,p_1`"]),
        ("label,p_0,p_2\n0,0.5,0.5\n".into(), ["line 1, column p_2", "`p_1` is missing", "`label,p_0,...,p_{C-1}`"]),
    ] {
        place.write("p.csv", text);
        place.refuses("report --predictions p.csv", &[&words[..], &["p.csv"]].concat());
    }
    place.write("p.csv", [b"label,p_1\n1,".as_slice(), &[0xff, 0xfe]].concat());
    place.refuses("report --predictions p.csv", &["p.csv, line 2", "UTF-8"]);
    place.refuses("report --predictions gone.csv", &["gone.csv", "(os error 2)"]);
    place.refuses("report --predictions .", &[".: is a directory"]);
    place.refuses("report gone", &["gone/summary.json", "is this the directory of a finished run?"]);
    place.refuses("report", &["RUN_DIR"]);
}

#[test]
fn a_damaged_run_is_refused_with_the_file() {
    let place = Place::new();
    place.works(&format!("{TINY} --out run --quiet"));
    // A file that was cut at the end of a line.
    let whole = place.text("run/predictions.csv");
    let rows = whole.lines().count() - 1;
    place.write("run/predictions.csv", whole.lines().take(rows).fold(String::new(), |text, line| text + line + "\n"));
    let (has, scored) = (format!("run/predictions.csv: {} row(s)", rows - 1), format!("the run has scored {rows}"));
    place.refuses("report run --out r", &[&has, &scored]);
    std::fs::remove_file(place.path("run/predictions.csv")).unwrap();
    place.refuses("report run --out r", &["run/predictions.csv: No such file"]);
    place.write("run/predictions.csv", whole);
    let of_a_later_version = "{\"schema_version\": 2}";
    for (file, text, words) in [
        ("predictions.csv", "label,p_0,p_1\n0,2,0\n", ["run/predictions.csv, line 2", "2 is not a probability"]),
        ("config.toml", "rounds = 0\n", ["run/config.toml, line 1", "`rounds` cannot be 0"]),
        ("uncertainty.csv", "mutual_information\n0.1\n", ["run/uncertainty.csv: 1 row(s)", "the file was cut"]),
        ("uncertainty.csv", "mutual_information\nx\n", ["run/uncertainty.csv: line 2", "`x` is not a number"]),
        ("model.json", "{}", ["run/model.json", "missing field"]),
        ("summary.json", "{", ["run/summary.json", "line 1"]),
        ("summary.json", of_a_later_version, ["run/summary.json", "`schema_version` is 2; this program reads 1"]),
    ] {
        place.write(&format!("run/{file}"), text);
        place.refuses("report run --out r", &words);
    }
}

#[test]
fn runs_on_other_test_rows_are_compared_only_where_that_is_asked_for() {
    let place = Place::new();
    place.works(&format!("{TINY} --out a --quiet"));
    place.works(&format!("{TINY} --set data.test_fraction=0.3 --out b --quiet"));
    place.refuses("report a --compare b --out c", &["--compare `b` has other test rows", "--other-rows"]);
    place.works("report a --compare b --out c --other-rows");
    place.works(&format!("{TINY} --set algorithm.particles=3 --out d --quiet"));
    let runs = ["d"; 5].map(|run| format!("--compare {run}")).join(" ");
    place.works(&format!("report a {runs} --out e"));
    // Five other runs: each has a small diagram, and the curves are two pictures of three and of two others.
    let page = place.text("e/report.html");
    assert!(page.contains("here is each by itself") && page.contains("The other runs"));
    assert_eq!(page.matches(">d \u{b7} ").count(), 5);
    assert_eq!(page.matches("aria-label=\"Metrics over rounds of").count(), 2);
    place.works("report a --compare d --out f");
    assert!(!place.text("f/report.html").contains("here is each by itself"));
}

/// Every client's personal predictor on its own test rows.
const PERSONAL: &str = "name = \"own\"\nrounds = 3\n[evaluation]\npersonal = true\n[data]\nkind = \"digits\"\n[model]\nkind = \"bnn\"\nhidden = [20]\n[algorithm]\nkind = \"dsvgd\"\nparticles = 4\nlocal_steps = 10\n[partition]\nkind = \"labels-per-client\"\nclients = 3\nlabels = 4\n";

#[test]
fn a_report_has_each_client_with_its_own_rows_the_worst_first() {
    let place = Place::new();
    place.write("own.toml", PERSONAL).works("train own.toml --out run --quiet");
    let clients = place.json("run/summary.json")["clients"].as_array().unwrap().clone();
    let table = place.table("run/clients.csv");
    assert_eq!((clients.len(), table.len()), (3, 4));
    for (client, row) in clients.iter().zip(&table[1..]) {
        assert_eq!(client["name"], format!("client {}", row[0]));
        let of = &client["evaluation"];
        assert_eq!(
            [number(&of["rows"]), number(&of["accuracy"]), number(&of["ece"])],
            numbers(&[1, 3, 5].map(|at| row[at].clone()))[..]
        );
        let gap = &client["gap_interval"];
        assert!(number(&gap["lo"]) < number(&of["signed_gap"]) && number(&of["signed_gap"]) < number(&gap["hi"]));
    }
    let html = place.text("run/report/report.html");
    let section = &html[html.find("<h2>Clients</h2>").unwrap()..];
    let at =
        |client: &Value| section.find(&format!("<th scope=\"row\">{}</th>", client["name"].as_str().unwrap())).unwrap();
    let distance = |client: &Value| {
        let [lo, hi] = ["lo", "hi"].map(|end| number(&client["gap_interval"][end]));
        lo.max(-hi).max(0.0)
    };
    for (a, b) in clients.iter().flat_map(|a| clients.iter().map(move |b| (a, b))) {
        assert!(distance(a) <= distance(b) || at(a) < at(b), "{} before {}", a["name"], b["name"]);
    }
    assert!(place.text("run/report/clients.svg").contains("client 2 \u{b7}"));
    // A summary of before has no clients, and its report no such section.
    let mut before = place.json("run/summary.json");
    before.as_object_mut().unwrap().remove("clients");
    place.write("run/summary.json", before.to_string()).works("report run --out before");
    assert!(!place.text("before/report.html").contains("<h2>Clients</h2>"));
}
