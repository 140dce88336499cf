//! Rows that belong together, from the table to the report: intervals count patients and not visits.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::place::Place;

/// So many patients with six alike visits each: the outcome is that of the patient, and x says little of it.
fn visits(patients: std::ops::Range<usize>, number: &str) -> String {
    let row = |visit: usize| {
        let patient = patients.start + visit / 6;
        let (ill, x) = ((patient * 7 + patient / 3) % 5 < 2, patient * 13 % 11);
        format!("{number}{patient},{}.{},{}\n", x, visit % 6, ["well", "ill"][usize::from(ill)])
    };
    format!("patient,x,outcome\n{}", (0..6 * patients.len()).map(row).collect::<String>())
}

const CONFIG: &str = "[data]\nkind = \"csv\"\npath = \"visits.csv\"\ntarget = \"outcome\"\npositive = \"ill\"\n\
                      group_column = \"patient\"\ntest_fraction = 0.5\n[partition]\nclients = 2\n\
                      calibration = 0.3\n[model]\nkind = \"blr\"\n[algorithm]\nkind = \"dsvgd\"\n";

/// A finished run on 80 patients, whose names begin so.
fn finished(number: &str) -> Place {
    let place = Place::new();
    place.write("visits.csv", visits(0..80, number)).write("run.toml", CONFIG);
    place.works("train run.toml --set rounds=2 --set algorithm.local_steps=20 --out run --quiet");
    place
}

/// The width of a 95 % interval of `report.json`.
fn width(report: &Value, key: &str) -> f64 {
    let of = &report["confidence_intervals"][key];
    of["hi"].as_f64().unwrap() - of["lo"].as_f64().unwrap()
}

#[test]
fn a_run_with_groups_has_intervals_by_groups() {
    let place = Place::new();
    place.write("visits.csv", visits(0..80, "P"));
    place.write("run.toml", CONFIG);
    let printed = place.works("train run.toml --set rounds=2 --set algorithm.local_steps=20 --out run").stderr;
    assert!(printed.contains("groups of rows: 40 in training, 40 in test, none in both\n"), "{printed}");

    // Two rows have one cluster where their lines have one patient.
    let (table, lines) = (place.text("visits.csv"), place.table("run/test_lines.csv"));
    let predictions = place.table("run/predictions.csv");
    assert_eq!(predictions[0], ["label", "p_0", "p_1", "cluster"]);
    let mut patients = BTreeMap::new();
    for (line, row) in lines[1..].iter().zip(&predictions[1..]) {
        let patient = table.lines().nth(line[0].parse::<usize>().unwrap() - 1).unwrap().split(',').next().unwrap();
        assert_eq!(patients.entry(row[3].clone()).or_insert(patient.to_owned()), patient);
    }
    let distinct: std::collections::BTreeSet<&String> = patients.values().collect();
    assert_eq!((patients.len(), distinct.len(), predictions.len()), (40, 40, 241));

    let by_patient = place.json("run/report/report.json");
    assert_eq!((&by_patient["overall"]["n"], &by_patient["overall"]["clusters"]), (&240.into(), &40.into()));
    assert!(by_patient["verdict"]["text"].as_str().unwrap().contains("on 240 rows of 40 clusters."));
    assert!(by_patient["overall"]["nll"].is_number());
    let sets = &by_patient["run"]["calibration"]["sets"]["all"];
    let independent = sets["independent_rows"].as_f64().unwrap();
    assert!((35.0..=240.0).contains(&independent), "{independent}");
    let card = place.text("run/report/MODEL_CARD.md");
    assert!(
        card.contains("On 240 test rows of 40 groups, which") && card.contains("- 40 groups of rows that belong"),
        "{card}"
    );
    let page = place.text("run/report/report.html");
    assert!(page.contains("(which belong together, and tell as much as "), "{page}");

    // Without the column, the same predictions are taken for independent.
    let alone = predictions.iter().map(|row| row[..3].join(",") + "\n").collect::<String>();
    place.write("alone.csv", alone);
    place.works("report --predictions alone.csv --out alone");
    let by_row = place.json("alone/report.json");
    assert!(by_row["overall"].get("clusters").is_none());
    assert_eq!(by_row["overall"]["accuracy"], by_patient["overall"]["accuracy"]);
    for key in ["accuracy", "nll", "auroc", "calibration_slope"] {
        let ratio = width(&by_patient, key) / width(&by_row, key);
        assert!((1.5..3.5).contains(&ratio), "{key}: {ratio}");
    }
    // And with it, the report of the file is that of the run.
    place.works("report --predictions run/predictions.csv --out again");
    assert_eq!(place.json("again/report.json")["confidence_intervals"], by_patient["confidence_intervals"]);
}

#[test]
fn new_rows_are_judged_by_the_column_of_the_run_or_another() {
    let place = finished("P");
    place.write("north.csv", visits(100..130, "N"));
    let evaluate = |options: &str| {
        let printed = place.works(&format!("evaluate run --input north.csv --force {options}")).stderr;
        (place.json("run/evaluate/north/report/report.json"), printed)
    };
    let (report, printed) = evaluate("");
    assert_eq!((&report["overall"]["n"], &report["overall"]["clusters"]), (&180.into(), &30.into()));
    assert!(!printed.contains("independent"), "{printed}");
    assert_eq!(place.table("run/evaluate/north/predictions.csv")[0][3], "cluster");

    let other = place.text("north.csv").replace("patient,", "person,");
    place.write("north.csv", &other);
    let (report, printed) = evaluate("");
    assert!(report["overall"].get("clusters").is_none());
    let note = "north.csv has no column `patient` (data.group_column of the run): intervals and verdict take its rows for \
                independent; --cluster names another column";
    assert!(printed.contains(note), "{printed}");
    let (report, printed) = evaluate("--cluster person --by person");
    assert_eq!(report["overall"]["clusters"], 30);
    assert!(!printed.contains("independent"), "{printed}");
    assert_eq!(report["groups"].as_array().unwrap().len(), 30);

    place.refuses("evaluate run --input north.csv --force --cluster patient", &["no column `patient` (--cluster)"]);
    place.write("north.csv", other.replacen("N100", "", 1));
    let words = ["line 2, column 1 (person)", "take the row out"];
    place.refuses("evaluate run --input north.csv --force --cluster person", &words);
}

#[test]
fn a_site_and_the_server_count_groups() {
    let place = Place::new();
    for (index, site) in ["north", "south"].into_iter().enumerate() {
        let keys = "path = \"visits.csv\"\ntarget = \"outcome\"\ngroup_column = \"patient\"";
        let text = format!("name = \"{site}\"\nindex = {index}\n[data]\n{keys}\ntest_fraction = 0.5\n");
        place.write(&format!("{site}/site.toml"), text);
        place.write(&format!("{site}/visits.csv"), visits(100 * index..100 * index + 80, "P"));
    }
    place.write(
        "run.toml",
        "rounds = 2\n[data]\nkind = \"sites\"\n[model]\nkind = \"blr\"\n[algorithm]\nkind = \"dsvgd\"\n\
         particles = 4\nlocal_steps = 10\n",
    );
    place.works("train run.toml --quiet --sites north/site.toml,south/site.toml --out run");
    let mut runs = place.names("north/state");
    runs.retain(|name| name != "rows");
    let results = format!("north/state/{}/results", runs[0]);
    assert_eq!(place.table(&format!("{results}/predictions.csv"))[0][3], "cluster");
    let own = place.json(&format!("{results}/report/report.json"));
    assert_eq!(own["overall"]["clusters"], 40);
    // Classes have their names, although no site tells how many rows each has.
    assert_eq!(
        (&own["binary"]["positive"]["name"], &own["binary"]["positive"]["other"]),
        (&"well".into(), &"ill".into())
    );
    assert!(place.text("run/report/report.html").contains("<th scope=\"row\">well</th>"));
    let report = place.json("run/report/report.json");
    assert_eq!((&report["overall"]["n"], &report["overall"]["clusters"]), (&480.into(), &80.into()));
    let text = report["verdict"]["text"].as_str().unwrap();
    assert!(text.contains("480 rows of 80 clusters"), "{text}");
    assert_eq!(report["run"]["sites"][1]["clusters"]["count"], 40);
    assert!(place.text("run/report/MODEL_CARD.md").contains("480 test rows of 80 groups"));
    // The gap's interval is about as wide as that of the rows of both sites, which their own predictions have.
    let rows: Vec<Vec<String>> = ["north", "south"]
        .iter()
        .flat_map(|site| {
            let mut runs = place.names(&format!("{site}/state"));
            runs.retain(|name| name != "rows");
            let mut table = place.table(&format!("{site}/state/{}/results/predictions.csv", runs[0]));
            // Each site numbers its groups from 0.
            table[1..].iter_mut().for_each(|row| row[3].insert_str(0, site));
            if *site == "south" { table.split_off(1) } else { table }
        })
        .collect();
    let lines: Vec<String> = rows.iter().map(|row| row.join(",")).collect();
    place.write("both.csv", lines.join("\n") + "\n");
    place.works("report --predictions both.csv --out both");
    let both = place.json("both/report.json");
    assert_eq!(both["overall"]["clusters"], 80);
    let interval = |text: &str| {
        let words: Vec<&str> =
            text.split("95 % interval ").nth(1).unwrap().split(')').next().unwrap().split(" to ").collect();
        words[1].parse::<f64>().unwrap() - words[0].replace('\u{2212}', "-").parse::<f64>().unwrap()
    };
    let (sums, rows) = (interval(text), interval(both["verdict"]["text"].as_str().unwrap()));
    assert!((sums / rows - 1.0).abs() < 0.2, "{sums}, and of the rows {rows}");

    // Test rows of the server's own; where one has no group, none has.
    place.write("public.csv", visits(300..330, "P").replacen("P300,", ",", 1));
    let some = "--set data.test_path=public.csv --set data.target=outcome --set data.group_column=patient --out some";
    let printed = place.works(&format!("train run.toml --sites north/site.toml,south/site.toml {some}")).stderr;
    assert!(printed.contains("not each of the server's test rows has a group (data.group_column)"), "{printed}");
    assert!(place.json("some/report/report.json")["overall"].get("clusters").is_none());
    place.write("public.csv", visits(300..330, "P"));
    let own = "--set data.test_path=public.csv --set data.target=outcome --set data.group_column=patient";
    place.works(&format!("train run.toml --quiet --sites north/site.toml,south/site.toml {own} --out public"));
    let report = place.json("public/report/report.json");
    assert_eq!((&report["overall"]["n"], &report["overall"]["clusters"]), (&180.into(), &30.into()));
    place.works("evaluate public --input public.csv");
    let again = place.json("public/evaluate/public/report/report.json");
    assert_eq!(again["confidence_intervals"], report["confidence_intervals"]);
}

#[test]
fn a_report_on_other_predictions_leaves_no_card_of_the_run_before() {
    let place = finished("P");
    place.works("report run --out page");
    assert!(place.names("page").contains(&"MODEL_CARD.md".to_owned()));
    place.write("other.csv", "label,p_1,Cluster\n1,0.75,a\n0,0.5,b\n1,0.5,a\n");
    place.works("report --predictions other.csv --out page --force");
    assert!(!place.names("page").contains(&"MODEL_CARD.md".to_owned()));
    assert_eq!(place.json("page/report.json")["overall"]["clusters"], 2);
}

#[test]
fn spellings_of_one_number_are_one_patient_and_a_missing_one_is_refused() {
    let place = finished("1");
    let table = visits(100..130, "1").replace("\n1100,", "\n1100.0,").replacen("\n1101,", "\n1101.0,", 3);
    place.write("north.csv", &table);
    let printed = place.works("evaluate run --input north.csv").stderr;
    assert_eq!(place.json("run/evaluate/north/report/report.json")["overall"]["clusters"], 30);
    assert!(!printed.contains("differ in"), "{printed}");
    // Beside a text, no spelling is that of a number.
    place.write("north.csv", table.replace("\n1103,", "\nP3,").replacen("\nP3,", "\np3,", 2));
    let printed = place.works("evaluate run --input north.csv --force").stderr;
    let note = "groups of north.csv (`1 (patient)`) that differ in upper and lower case or in blanks around them alone from \
                another one, and are groups of their own: 1; if they mean the same, write them alike\n";
    assert!(printed.contains(note), "{printed}");
    place.write("north.csv", table.replacen("\n1102,", "\nNA,", 1));
    place.refuses(
        "evaluate run --input north.csv --force",
        &["column 1 (patient)", "`NA` is not the name of a cluster"],
    );
}
