//! `fedstein evaluate`: a finished run on labelled rows, against the run's own report and against other programs.

use std::fmt::Write as _;

use super::place::{Place, TINY, assert_near, cells, pets, prices};
use super::tables::{KEYS, config, patients};
use safetensors::tensor::{Dtype, TensorView};
use serde_json::{Value, json};

pub const PETS: &str = "--set data.kind=csv --set data.path=pets.csv --set data.test_path=more.csv --set data.target=kind --set partition.clients=2 --quiet";

const PRICES: &str = "--set data.kind=csv --set data.path=prices.csv --set data.test_path=more.csv --set data.target=price --set data.task=regression --set partition.clients=2 --set partition.calibration=0.3 --quiet";

/// A run on three kinds of pets, with a temperature and sets.
pub fn classification(keys: &str) -> Place {
    let place = Place::new();
    place.write("pets.csv", pets(60)).write("more.csv", pets(17)).works(&format!("{TINY} {PETS} {keys} --out run"));
    place
}

/// Rows of pets with the columns in another order, a site, and a column that no run knows.
fn of_sites(rows: usize, site: impl Fn(usize) -> &'static str) -> String {
    let table = pets(rows);
    let line = |(at, line): (usize, &str)| {
        let cells: Vec<&str> = line.split(',').collect();
        match at {
            0 => "kind,note,height,site,width\n".to_owned(),
            _ => format!("{},x y,{},{},{}\n", cells[1], cells[2], site(at - 1), cells[0]),
        }
    };
    table.lines().enumerate().map(line).collect()
}

/// The numbers of a report that do not depend on its title and its run.
fn numbers_of(place: &Place, report: &str) -> Value {
    let mut json = place.json(report);
    let calibration = json["run"]["calibration"].take();
    let object = json.as_object_mut().unwrap();
    object.remove("title");
    object.remove("run");
    object.insert("of calibration".into(), calibration);
    json
}

#[test]
fn on_its_own_test_rows_a_run_has_the_numbers_of_its_own_report() {
    for keys in [
        "",
        "--set partition.calibration=0.3",
        "--set partition.calibration=0.3 --set calibration.conformal=aps --set calibration.randomised=true",
        "--set data.rotate=principal",
    ] {
        let place = classification(keys);
        let printed = place.works("evaluate run --input more.csv --backend flex").stdout;
        assert!(printed.contains("\nrows of more.csv: 17\n  accuracy "), "{printed}");
        assert!(printed.ends_with("\nreport  run/evaluate/more/report/report.html\n"), "{printed}");
        for file in ["predictions.csv", "uncertainty.csv"] {
            assert_eq!(place.text(&format!("run/evaluate/more/{file}")), place.text(&format!("run/{file}")), "{keys}");
        }
        let (own, other) = ("run/report/report.json", "run/evaluate/more/report/report.json");
        assert_eq!(numbers_of(&place, own), numbers_of(&place, other), "{keys}");
        assert_eq!(keys.contains("calibration"), place.json(other)["run"]["calibration"]["rows"].is_u64());
        assert_eq!(keys.contains("calibration"), printed.contains("T = "));
    }
}

#[test]
fn a_regression_too_with_its_intervals() {
    let place = Place::new();
    place.write("prices.csv", prices(60)).write("more.csv", prices(17));
    place.works(&format!("{TINY} {PRICES} --out run"));
    let printed = place.works("evaluate run --input more.csv --out elsewhere/new").stdout;
    assert!(printed.contains("rmse") && printed.contains("Conformal intervals (normalised)"), "{printed}");
    assert_eq!(numbers_of(&place, "run/report/report.json"), numbers_of(&place, "elsewhere/new/report/report.json"));
    assert_eq!(place.text("elsewhere/new/predictions.csv"), place.text("run/predictions.csv"));
    // Half of the rows have a price that is 1000 too high: no interval of theirs holds it.
    let shifted = |(at, line): (usize, &str)| match at {
        0 => format!("{line},market\n"),
        at if at % 2 == 0 => format!("{line},old\n"),
        _ => {
            let (cells, price) = line.rsplit_once(',').unwrap();
            format!("{cells},{},new\n", price.parse::<f64>().unwrap() + 1000.0)
        }
    };
    place.write("markets.csv", prices(40).lines().enumerate().map(shifted).collect::<String>());
    let printed = place.works("evaluate run --input markets.csv --by market").stdout;
    let json = place.json("run/evaluate/markets/report/report.json");
    assert_eq!([&json["groups"][0]["name"], &json["groups"][1]["name"]], ["new", "old"]);
    let sets = &json["run"]["calibration"]["sets"];
    let line = |name: &str| sets["groups"].as_array().unwrap().iter().find(|line| line["name"] == name).unwrap();
    assert_eq!((&line("new")["rows"], &line("new")["covered"]), (&json!(20), &json!(0)));
    assert_eq!(line("old")["covered"], sets["all"]["covered"]);
    assert!(printed.contains("group, worst first"), "{printed}");
}

/// A run whose particles are those of the golden case.
fn golden() -> (Place, Value) {
    let text = include_str!("../golden/external_rows.json");
    let case = serde_json::from_str::<Value>(text).unwrap()["cases"][0].take();
    let (place, inputs) = (Place::new(), &case["inputs"]);
    let mut table = String::from("a,b,c,label,site\n");
    for (row, x) in inputs["x"].as_array().unwrap().iter().enumerate() {
        let (label, site) = (&inputs["label"][row], &inputs["site"][row]);
        writeln!(table, "{},{},{},{label},{site}", x[0], x[1], x[2]).unwrap();
    }
    place.write("rows.csv", &table);
    let keys = "--set data.kind=csv --set data.path=rows.csv --set data.target=label --set data.client_column=site \
                --set data.normalise=none --set model.hidden=[] --set partition.clients=3 --set algorithm.particles=5";
    place.works(&format!("{TINY} {keys} --quiet --out run"));
    let bytes = |of: &Value| -> Vec<u8> {
        let mut numbers = Vec::new();
        flatten(of, &mut numbers);
        numbers.iter().flat_map(|number| (*number as f32).to_le_bytes()).collect()
    };
    let (bias, weight) = (bytes(&inputs["bias"]), bytes(&inputs["weight"]));
    let tensor = |shape: &[usize], bytes| TensorView::new(Dtype::F32, shape.to_vec(), bytes).unwrap();
    let tensors = [("layers.0.bias", tensor(&[5, 2, 1], &bias)), ("layers.0.weight", tensor(&[5, 2, 3], &weight))];
    place.write("run/particles.safetensors", safetensors::serialize(tensors, None).unwrap());
    (place, case)
}

fn flatten(of: &Value, to: &mut Vec<f64>) {
    match of.as_array() {
        Some(list) => list.iter().for_each(|of| flatten(of, to)),
        None => to.push(of.as_f64().unwrap()),
    }
}

const NEAR: f64 = 1e-5; // outputs of the model in f32

#[test]
fn the_numbers_of_all_rows_and_of_groups_are_those_of_scikit_learn() {
    let (place, case) = golden();
    place.works("evaluate run --input rows.csv --by site");
    let json = place.json("run/evaluate/rows/report/report.json");
    let expected = &case["expected"];
    let check = |got: &Value, want: &Value| {
        assert_eq!(got["n"], want["rows"]);
        for key in ["nll", "accuracy", "auroc", "auprc", "brier"] {
            assert_near(got[key].as_f64().unwrap(), want[key].as_f64().unwrap(), NEAR);
        }
    };
    check(&json["overall"], &expected["all"]);
    let groups = json["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 3);
    groups.iter().for_each(|group| check(&group["overall"], &expected["groups"][group["name"].as_str().unwrap()]));
    assert_near(
        json["uncertainty"]["nll_mean_particle"].as_f64().unwrap(),
        expected["nll_of_members"].as_f64().unwrap(),
        NEAR,
    );
    let table = place.table("run/evaluate/rows/predictions.csv");
    let of_rows = place.table("run/evaluate/rows/uncertainty.csv");
    for row in 0..90 {
        let number = |cell: &str| cell.parse::<f64>().unwrap();
        assert_near(number(&table[row + 1][2]), expected["p_1"][row].as_f64().unwrap(), NEAR);
        assert_near(number(&of_rows[row + 1][0]), expected["mutual_information"][row].as_f64().unwrap(), NEAR);
    }
    assert!(place.text("run/evaluate/rows/report/groups.csv").contains("\"C, north\",14,"));
}

#[test]
fn further_columns_of_predictions_are_those_of_scipy() {
    let (place, case) = golden();
    let expected = &case["expected"];
    let check = |key: &str| {
        let lines =
            place.works("predict run --input rows.csv --format jsonl --columns entropy,mutual_information").stdout;
        assert_eq!(lines.lines().count(), 90);
        for (row, line) in lines.lines().enumerate() {
            let line: Value = serde_json::from_str(line).unwrap();
            let near =
                |got: &Value, of: &str| assert_near(got.as_f64().unwrap(), expected[of][row].as_f64().unwrap(), NEAR);
            near(&line["entropy"], key);
            near(&line["mutual_information"], "mutual_information");
        }
    };
    check("entropy");
    // With a temperature the entropy is that of the probabilities that are given.
    let mut model = place.json("run/model.json");
    model["calibration"] = json!({ "rows": 9, "temperature": case["inputs"]["temperature"] });
    place.write("run/model.json", model.to_string());
    check("entropy_at_temperature");
}

#[test]
fn the_worst_group_is_first_everywhere_and_nothing_of_the_run_changes() {
    let place = classification("--set partition.calibration=0.3");
    // At `north` cats are called eels, and dogs cats.
    let table = of_sites(60, |row| if row % 4 == 0 { "north" } else { "south" });
    let line = |line: &str| match line.contains(",north,") {
        true => line.replacen("cat", "x", 1).replacen("dog", "cat", 1).replacen("x,", "eel,", 1) + "\n",
        false => format!("{line}\n"),
    };
    place.write("sites.csv", table.lines().map(line).collect::<String>());
    let before: Vec<_> = place.names("run").into_iter().filter(|name| name.contains('.')).collect();
    let bytes: Vec<_> = before.iter().map(|name| place.bytes(&format!("run/{name}"))).collect();
    let report = place.text("run/report/report.json");
    let printed = place.works("evaluate run --input sites.csv --by site --title Elsewhere").stdout;
    let json = place.json("run/evaluate/sites/report/report.json");
    assert_eq!(json["title"], "Elsewhere");
    let groups = json["groups"].as_array().unwrap();
    let name = |at: usize| groups[at]["name"].as_str().unwrap();
    // How far the interval of the mean gap is from 0.
    let beyond = |at: usize| {
        let gap = &groups[at]["confidence_intervals"]["signed_gap"];
        gap["lo"].as_f64().unwrap().max(-gap["hi"].as_f64().unwrap()).max(0.0)
    };
    assert!(groups.len() == 2 && beyond(0) > beyond(1), "{groups:?}");
    let at = |group: usize| printed.find(&format!("  {} ", name(group))).unwrap();
    assert!(at(0) < at(1), "{printed}");
    let page = place.text("run/evaluate/sites/report/report.html");
    assert!(page.contains("The worst calibrated are first") && page.contains("Group, worst first"));
    let sets = &json["run"]["calibration"]["sets"];
    let counts =
        |key: &str| -> u64 { sets["groups"].as_array().unwrap().iter().map(|line| line[key].as_u64().unwrap()).sum() };
    assert_eq!((counts("rows"), counts("covered")), (60, sets["all"]["covered"].as_u64().unwrap()));
    // Of the training there is what the model is, and nothing of its clients and rounds.
    assert_eq!(json["run"]["facts"]["trained on"], "pets, 42 training, 18 calibration and 17 test rows");
    assert_eq!(json["run"]["rounds"], json!([]));
    let after: Vec<_> = before.iter().map(|name| place.bytes(&format!("run/{name}"))).collect();
    assert!(bytes == after && report == place.text("run/report/report.json"));
    // A run that is replaced takes its evaluations with it.
    place.works(&format!("{TINY} {PETS} --out run --force"));
    assert!(!place.path("run/evaluate").exists());
}

#[test]
fn columns_are_found_as_predict_finds_them_and_classes_by_name() {
    let place = classification("");
    place.works("evaluate run --input more.csv");
    let want = place.text("run/evaluate/more/predictions.csv");
    // Another order, with a header, and the target under another name.
    place.write("other.csv", of_sites(17, |_| "a").replacen("kind", "animal", 1));
    place.works("evaluate run --input other.csv --target animal");
    assert_eq!(place.text("run/evaluate/other/predictions.csv"), want);
    // Without a header: by position, and the group may be a feature or not.
    let bare = pets(17).split_once('\n').unwrap().1.to_owned();
    place.write("bare.csv", &bare);
    for by in ["", " --by 0", " --by 1"] {
        place.works(&format!("evaluate run --input bare.csv --target 1 --out bare --force{by}"));
        assert_eq!(place.text("bare/predictions.csv"), want, "{by}");
    }
    assert!(place.path("bare/report/groups.csv").exists());
    place.works("evaluate run --input bare.csv --target 1 --out bare --force");
    assert!(!place.path("bare/report/groups.csv").exists(), "nothing of the earlier evaluation stays");
    let more = bare.lines().map(|line| format!("{line},b\n")).collect::<String>();
    place.write("bare.csv", more);
    place.works("evaluate run --input bare.csv --target 1 --by -1 --out bare --force");
    assert_eq!(place.text("bare/predictions.csv"), want);
    place.refuses("evaluate run --input bare.csv --target 1 --out no", &["bare.csv", "3 feature columns", "takes 2"]);
}

#[test]
fn a_target_by_number_is_found_by_its_name() {
    let place = Place::new();
    place.write("prices.csv", prices(60));
    let keys = PRICES.replace("data.target=price", "data.target=-1").replace("--set data.test_path=more.csv", "");
    place.works(&format!("{TINY} {keys} --out run"));
    place.works("evaluate run --input prices.csv");
    let want = place.text("run/evaluate/prices/predictions.csv");
    // A column behind it, and the columns in another order.
    place.write("longer.csv", behind(&prices(60), "year", &["2020"]));
    place.works("evaluate run --input longer.csv");
    assert_eq!(place.text("run/evaluate/longer/predictions.csv"), want);
    let swapped = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        format!("{},{},{}\n", cells[2], cells[0], cells[1])
    };
    place.write("swapped.csv", prices(60).lines().map(swapped).collect::<String>());
    place.works("evaluate run --input swapped.csv");
    assert_eq!(place.text("run/evaluate/swapped/predictions.csv"), want);
    // Without its name the number says nothing; without a header it is all that there is.
    place.write("renamed.csv", prices(60).replacen("price", "cost", 1));
    place.refuses("evaluate run --input renamed.csv", &["no column `price` (data.target of the run; --target"]);
    place.write("bare.csv", prices(60).split_once('\n').unwrap().1);
    place.works("evaluate run --input bare.csv");
    assert_eq!(place.text("run/evaluate/bare/predictions.csv"), want);
}

/// A table with a further column of this name behind the others, which has these cells in turn.
fn behind(table: &str, name: &str, cells: &[&str]) -> String {
    let end = |at: usize| if at == 0 { name } else { cells[at % cells.len()] };
    table.lines().enumerate().map(|(at, line)| format!("{line},{}\n", end(at))).collect()
}

#[test]
fn rows_without_a_group_are_not_those_of_a_group_named_missing() {
    let place = classification("");
    place.write("shelters.csv", behind(&pets(18), "shelter", &["missing", "", "x"]));
    let groups = |options: &str| {
        place.works(&format!("evaluate run --input shelters.csv --by shelter --force {options}"));
        let json = place.json("run/evaluate/shelters/report/report.json");
        let groups = json["groups"].as_array().unwrap().iter();
        let mut groups: Vec<_> = groups
            .map(|group| (group["name"].as_str().unwrap().to_owned(), group["overall"]["n"].as_u64().unwrap()))
            .collect();
        groups.sort_unstable();
        groups
    };
    let named =
        |groups: &[(&str, u64)]| groups.iter().map(|(name, rows)| ((*name).to_owned(), *rows)).collect::<Vec<_>>();
    assert_eq!(groups(""), named(&[("missing", 6), ("no group", 6), ("x", 6)]));
    // A column that is read beside those of the run may have codes of its own.
    assert_eq!(groups("--missing-values {shelter=[\"x\"]}"), named(&[("missing", 6), ("no group", 12)]));
}

#[test]
fn a_target_by_number_whose_name_is_unknown_is_named_in_a_note() {
    let place = Place::new();
    // As in a run of a table without a header, or of an earlier version.
    place.write("bare.csv", prices(60).split_once('\n').unwrap().1);
    place.write("prices.csv", prices(60));
    let keys = PRICES.replace("data.target=price", "data.target=-1").replace("--set data.test_path=more.csv", "");
    place.works(&format!("{TINY} {} --out run", keys.replace("prices.csv", "bare.csv")));
    let printed = place.works("evaluate run --input prices.csv");
    assert!(printed.stderr.contains("note: the target is column 3 (price), by the index -1"), "{}", printed.stderr);
}

#[test]
fn labels_that_do_not_fit_are_refused_with_line_and_column() {
    let place = classification("");
    let rows = "width,kind,height,site\n-2,cat,0.5,a\n2,eel,0.1,b\n";
    for (text, options, words) in [
        (
            rows.replace("eel", "cow"),
            "",
            vec!["line 3, column 2 (kind)", "`cow` is not a class of the run, `cat`, `dog`, `eel`"],
        ),
        (
            rows.replace("eel", "Eel"),
            "",
            vec!["`Eel` is not a class of the run, `cat`, `dog`, `eel`; did you mean `eel`?"],
        ),
        (
            rows.replace("eel", ""),
            "",
            vec!["line 3, column 2 (kind)", "an empty cell is not a label", "data.missing_target = \"drop\""],
        ),
        (rows.replace("0.1", "low"), "", vec!["line 3, column 3 (height)", "`low` is not a finite number"]),
        (
            rows.replace("kind", "sort"),
            "",
            vec!["no column `kind` (data.target of the run; --target", "`width`, `sort`"],
        ),
        (rows.into(), "--by place", vec!["no column `place` (--by)", "`height`, `site`"]),
        (rows.into(), "--target height", vec!["column `height` (--target) is a feature of the model"]),
        (rows.replace("height", "depth"), "", vec!["no column `height`"]),
        ("width,kind,height\n".into(), "", vec!["no data rows"]),
    ] {
        place.write("new.csv", text);
        place.refuses(&format!("evaluate run --input new.csv {options}"), &[&words[..], &["new.csv"]].concat());
    }
    place.write("prices.csv", prices(60)).write("more.csv", prices(17));
    place.works(&format!("{TINY} {PRICES} --out priced"));
    place.write("new.csv", "size,age,price\n1,2,3\n1,2,dear\n");
    place.refuses(
        "evaluate priced --input new.csv",
        &["new.csv: line 3, column 3 (price)", "`dear` is not a finite number"],
    );
}

#[test]
fn other_data_need_a_target_and_what_is_there_is_not_replaced() {
    let place = classification("");
    place.works(&format!("{TINY} --out digits --quiet"));
    place.refuses("evaluate digits --input more.csv", &["--target is needed", "`digits`"]);
    place.refuses(
        "evaluate digits --input more.csv --target kind",
        &["2 feature columns besides 1 left out", "takes 64"],
    );
    let pixels = |row: usize| (0..64).map(|at| ((row + at) % 17).to_string()).collect::<Vec<_>>().join(",");
    place.write("digits.csv", (0..9).map(|row| format!("{},{row}\n", pixels(row))).collect::<String>());
    let printed = place.works("evaluate digits --input digits.csv --target -1").stdout;
    assert!(printed.contains("rows of digits.csv: 9"), "{printed}");

    place.works("evaluate run --input more.csv");
    place.refuses("evaluate run --input more.csv", &["`run/evaluate/more` exists and is not empty", "--force"]);
    place.works("evaluate run --input more.csv --force");
    for (out, words) in
        [("run", &["`run` holds"][..]), ("more.csv", &["exists and is not a directory"]), (".", &["`.` holds"])]
    {
        place.refuses(&format!("evaluate run --input more.csv --out {out} --force"), words);
    }
    place.write("mine/notes.txt", "mine");
    place.refuses("evaluate run --input more.csv --out mine --force", &["`mine` holds `notes.txt`"]);
    place.write("theirs/report/notes.txt", "theirs");
    place.refuses("evaluate run --input more.csv --out theirs --force", &["`theirs` holds no `report/report.json`"]);
    place.refuses("evaluate gone --input more.csv", &["gone/summary.json"]);
    place.refuses("evaluate run --input gone.csv", &["gone.csv", "(os error 2)"]);
    place.refuses("evaluate run --input more.csv --level 0.9 --out x", &["level 0.9: ", "no prediction sets"]);
}

#[cfg(unix)]
#[test]
fn an_evaluation_follows_no_link_out_of_the_run() {
    let place = classification("");
    std::fs::create_dir(place.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink(place.path("elsewhere"), place.path("run/evaluate")).unwrap();
    place.refuses("evaluate run --input more.csv", &["`run/evaluate` is a link", "--out"]);
    place.refuses("evaluate run --input more.csv --out run/evaluate --force", &["is a link"]);
    assert!(place.names("elsewhere").is_empty());
}

#[test]
fn rows_far_outside_those_of_the_training_are_noted() {
    let place = classification("--set data.normalise=standard");
    let far = pets(30).replacen("\n", "\n300,cat,0\n2,eel,-400\n2,eel,500\n", 1);
    place.write("far.csv", far);
    let printed = place.works("evaluate run --input far.csv");
    let note = "3 of 33 rows have a feature more than 6 standard deviations from the mean of the training rows: `height` in 2, \
                `width` in 1";
    assert!(printed.stderr.contains(note), "{}", printed.stderr);
    assert_eq!(place.json("run/evaluate/far/report/report.json")["run"]["notes"], json!([note]));
    assert!(!place.works("evaluate run --input more.csv").stderr.contains("outside"));
}

#[test]
fn a_table_as_it_is_is_evaluated_with_its_encoding() {
    let place = Place::new();
    place.write("table.csv", patients(0, 80)).write("test.csv", patients(200, 20));
    place.write("run.toml", config(KEYS, "test_path = \"test.csv\"\n"));
    place.works("train run.toml --quiet --out run");
    let printed = place.works("evaluate run --input test.csv");
    assert!(
        printed.stderr.contains("missing cells of test.csv have the means of the training rows"),
        "{}",
        printed.stderr
    );
    assert_eq!(place.text("run/evaluate/test/predictions.csv"), place.text("run/predictions.csv"));
    let (own, other) = ("run/report/report.json", "run/evaluate/test/report/report.json");
    assert_eq!(numbers_of(&place, own), numbers_of(&place, other));
    // A feature may be the group, in the words of the file; ids need not be there.
    let without_ids: String =
        patients(200, 20).lines().map(|line| format!("{}\n", line.split_once(';').unwrap().1)).collect();
    place.write("test.csv", without_ids);
    place.works("evaluate run --input test.csv --by smokes --force");
    let groups = place.json(other)["groups"].take();
    let mut names: Vec<_> = groups.as_array().unwrap().iter().map(|group| group["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["no", "yes"]);
    // Rows without a ward are a group of their own: those with the numbers 203, 210 and 217.
    place.works("evaluate run --input test.csv --by ward --force");
    let groups = place.json(other)["groups"].take();
    let rows_of = |name: &str| {
        let group = groups.as_array().unwrap().iter().find(|group| group["name"] == name);
        group.map(|group| group["overall"]["n"].as_u64().unwrap())
    };
    assert_eq!((groups.as_array().unwrap().len(), rows_of("missing")), (4, Some(3)));

    // A date far from those of the training; a ward that nobody knows is not a number.
    let new = "smokes;dose;patient;admitted;ward\nno;1,5;P-1;05.02.2024;west\nno;2;P-2;29.02.1904;cellar\n";
    place.write("new.csv", new);
    let table = cells(&place.works("predict run --input new.csv --columns outside").stdout);
    assert_eq!(table[0].join(","), "patient,prediction,confidence,p_0,p_1,outside");
    assert_eq!(table[1..].iter().map(|row| row[5].as_str()).collect::<Vec<_>>(), ["", "admitted"]);
    let lines = place.works("predict run --input new.csv --format jsonl").stdout;
    assert!(lines.starts_with(r#"{"id":{"patient":"P-1"},"prediction":"#), "{lines}");
}

#[test]
fn rows_without_a_target_are_left_out_where_the_run_leaves_them_out() {
    let place = Place::new();
    // Every tenth kind is unknown.
    let line = |(at, line): (usize, &str)| match at % 10 {
        9 => line.replace("cat", "").replace("dog", "NA").replace("eel", "?") + "\n",
        _ => format!("{line}\n"),
    };
    let unknown = |rows: usize| pets(rows).lines().enumerate().map(line).collect::<String>();
    place.write("pets.csv", unknown(60)).write("more.csv", unknown(20));
    place.refuses(
        &format!("{TINY} {PETS} --out run"),
        &["pets.csv: line 10, column 2 (kind): `?` is not a label", "data.missing_target"],
    );
    place.works(&format!("{TINY} {PETS} --set data.missing_target=drop --out run"));
    let notes = place.json("run/summary.json")["notes"].to_string();
    for note in ["leaves out 6 of the 60 rows of", "leaves out 2 of the 20 rows of"] {
        assert!(notes.contains(note), "{notes}");
    }
    let printed = place.works("evaluate run --input more.csv");
    let note = "2 of the 20 rows of more.csv are left out: their cell of column 2 (kind) is missing";
    assert!(printed.stderr.contains(note), "{}", printed.stderr);
    assert!(printed.stdout.contains("rows of more.csv: 18"), "{}", printed.stdout);
    // The same rows as the run's own test rows.
    assert_eq!(place.text("run/evaluate/more/predictions.csv"), place.text("run/predictions.csv"));
    place.write("none.csv", "width,kind,height\n1,,2\n");
    place.refuses("evaluate run --input none.csv", &["none of its 1 rows has a label in column 2 (kind)"]);
    // A temperature is judged on the rows of this file, which are no test rows.
    place.works(&format!("{TINY} {PETS} --set data.missing_target=drop --set partition.calibration=0.3 --out warm"));
    let printed = place.works("evaluate warm --input more.csv").stdout;
    assert!(printed.contains(", on the scored rows from "), "{printed}");
}

#[test]
fn targets_with_a_decimal_comma_are_read_as_in_the_training() {
    let place = Place::new();
    let comma = |table: String| table.replace(',', ";").replace('.', ",");
    place.write("prices.csv", comma(prices(60))).write("more.csv", comma(prices(17)));
    let keys = PRICES.replace("--quiet", "--set data.delimiter=; --set data.decimal=, --quiet");
    place.works(&format!("{TINY} {keys} --out run"));
    place.works("evaluate run --input more.csv");
    assert_eq!(
        numbers_of(&place, "run/report/report.json"),
        numbers_of(&place, "run/evaluate/more/report/report.json")
    );
}

/// Whole numbers that another program has written as reals.
#[test]
fn codes_with_a_decimal_comma_are_the_classes_and_categories_of_the_whole_numbers() {
    let place = Place::new();
    let table = |codes: [&str; 3], rows: usize| -> String {
        let line = |row: usize| {
            let (kind, dose) = (codes[row % 3], row as f64 / 7.0 - 4.0);
            format!("{kind};{};{}\n", dose.to_string().replace('.', ","), codes[usize::from(row % 5 > 1)])
        };
        (0..rows).map(line).fold("kind;dose;outcome\n".to_owned(), |all, line| all + &line)
    };
    let (whole, real) = (["0", "1", "2"], ["0,0", "1,00", "+2"]);
    let mixed = table(whole, 60) + table(real, 30).split_once('\n').unwrap().1;
    place.write("mixed.csv", mixed).write("whole.csv", table(whole, 20)).write("real.csv", table(real, 20));
    let keys = "--set data.kind=csv --set data.path=mixed.csv --set data.test_path=real.csv --set data.target=outcome \
                --set data.categorical=[\"kind\"] --set data.delimiter=; --set data.decimal=, --set data.positive=1 \
                --set partition.clients=2 --quiet";
    place.works(&format!("{TINY} {keys} --out run"));
    let card = place.json("run/model.json");
    assert_eq!((&card["classes"], &card["features"]), (&json!(["0", "1"]), &json!(4)));
    let of = |input: &str| {
        place.works(&format!("evaluate run --input {input}.csv --force"));
        let predicted = place.works(&format!("predict run --input {input}.csv")).stdout;
        (predicted, numbers_of(&place, &format!("run/evaluate/{input}/report/report.json")))
    };
    assert_eq!(of("whole"), of("real"));
}

#[test]
fn a_model_of_sites_is_evaluated_at_a_place_that_took_no_part() {
    let place = Place::new();
    for (index, name) in ["a", "b"].into_iter().enumerate() {
        let table = pets(60);
        let rows = table.lines().skip(1).enumerate().filter(|(at, _)| at % 2 == index);
        let rows: String = rows.map(|(_, line)| format!("{line}\n")).collect();
        place.write(&format!("{name}/rows.csv"), format!("width,kind,height\n{rows}"));
        let tell = "[tell]\ncategories = true\nclass_counts = true\nmin_rows = 5\n";
        let file =
            format!("name = \"{name}\"\nindex = {index}\n[data]\npath = \"rows.csv\"\ntarget = \"kind\"\n{tell}");
        place.write(&format!("{name}/site.toml"), file);
    }
    let keys = "--set rounds=2 --set algorithm.local_steps=5 --set algorithm.particles=4";
    place.works(&format!("train --sites a/site.toml,b/site.toml {keys} --quiet --out run"));
    place.write("more.csv", pets(17));
    place.refuses("evaluate run --input more.csv", &["--target is needed", "`sites`"]);
    place.works("evaluate run --input more.csv --target kind");
    let overall = place.json("run/evaluate/more/report/report.json")["overall"].take();
    assert_eq!(overall["n"], 17);
    // The same NLL as that of the probabilities that `predict` writes.
    let kinds = place.table("more.csv");
    let table = cells(&place.works("predict run --input more.csv").stdout);
    let classes = ["cat", "dog", "eel"];
    let of_row = |(row, kind): (&Vec<String>, &Vec<String>)| {
        let class = classes.iter().position(|class| *class == kind[1]).unwrap();
        -row[2 + class].parse::<f64>().unwrap().ln()
    };
    let nll: f64 = table.iter().zip(&kinds).skip(1).map(of_row).sum();
    assert_near(overall["nll"].as_f64().unwrap(), nll / 17.0, 1e-9);
}
