//! `fedstein init` and tables as spreadsheets and registries write them: many patients, hospitals with a gap, thousands.

use std::fmt::Write as _;

use super::place::{Place, in_shell, works};

fn config(place: &Place, name: &str) -> toml::Table {
    place.text(name).parse().unwrap()
}

/// `rows` rows of `patients` patients.
fn visits(patients: usize, rows: usize) -> String {
    let mut text = "patient_id,age,outcome\n".to_owned();
    for row in 0..rows {
        let _ = writeln!(text, "p{},{},{}", row % patients, 40.5 + (row % 37) as f64, ["ill", "well"][row % 2]);
    }
    text
}

#[test]
fn rows_of_a_patient_stay_together_whatever_the_number_of_patients() {
    let place = Place::new();
    for (patients, values) in [(990, "990"), (1010, "about 1010"), (6000, "about ")] {
        place.write("visits.csv", visits(patients, 2 * patients)).works("init visits.csv --force");
        let data = &config(&place, "visits.toml")["data"];
        assert_eq!(data["group_column"].as_str(), Some("patient_id"), "{patients}");
        let found = format!("`patient_id` has {values}");
        assert!(place.text("visits.toml").contains(&found), "{}", place.text("visits.toml"));
        place.works("site init visits.csv --name north --index 0 --out site.toml --force");
        assert_eq!(config(&place, "site.toml")["data"]["group_column"].as_str(), Some("patient_id"), "{patients}");
    }
    // Some have their second row far below, spelled in another way, as pandas writes whole numbers beside a missing one.
    let twice = |row: usize| format!("{},{},{}\n", 5000 + row, row % 37, ["ill", "well"][row % 2]);
    let again = (0..3).map(|row| format!("{}.0,{},ill\n", 5000 + 700 * row, row)).collect::<String>();
    let table = format!("patient_id,age,outcome\n{}{again}", (0..6000).map(twice).collect::<String>());
    place.write("visits.csv", table).works("init visits.csv --force");
    assert_eq!(config(&place, "visits.toml")["data"]["group_column"].as_str(), Some("patient_id"));
    assert!(place.text("visits.toml").contains("`patient_id` has about 6000 values in 6003 rows"));
    // One row each: nothing belongs together.
    place.write("visits.csv", visits(1500, 1500)).works("init visits.csv --force");
    let data = config(&place, "visits.toml")["data"].clone();
    assert!(data.get("group_column").is_none() && data["id"].to_string().contains("patient_id"), "{data}");
    assert!(place.text("visits.toml").contains("Each row has another cell in `patient_id`."));
}

/// Ninety rows of three hospitals, and what `below` adds.
fn hospitals(below: &str) -> String {
    let row = |row: usize| {
        format!(
            "{row},{},{:.2},{}\n",
            ["north", "south", "east"][row % 3],
            (row % 29) as f64 / 3.0,
            ["ill", "well"][row / 3 % 2]
        )
    };
    format!("row,hospital,dose,outcome\n{}{below}", (0..90).map(row).collect::<String>())
}

#[test]
fn a_hospital_that_is_missing_in_a_row_is_named_and_rows_without_any_cell_are_none() {
    let place = Place::new();
    place.write("cases.csv", hospitals(",,,\n,,,\n"));
    let printed = place.works("init cases.csv").stdout;
    assert!(printed.contains("90 rows, clients by `hospital`") && !printed.contains("note:"), "{printed}");
    place.works("train cases.toml --set rounds=1 --set algorithm.local_steps=2 --quiet");

    place.write("gap.csv", hospitals("90,,2.5,ill\n"));
    let note = "`hospital` would be the clients, but one of its cells is missing, the first in line 92: write the client there";
    let printed = place.works("init gap.csv").stdout;
    assert!(printed.contains(&format!("note: {note}")) && !printed.contains("clients by"), "{printed}");
    assert_eq!(config(&place, "gap.toml")["partition"]["kind"].as_str(), Some("iid"));
    assert!(place.text("gap.toml").contains("`hospital` would be the clients"));
    // Patients who become the clients in its place do not hide it.
    let of_patients = |line: (usize, &str)| {
        format!("{},{}\n", if line.0 == 0 { "patient_id".into() } else { format!("p{}", line.0 % 4) }, line.1)
    };
    let table: String = place.text("gap.csv").lines().enumerate().map(of_patients).collect();
    place.write("both.csv", table);
    let printed = place.works("init both.csv --target outcome").stdout;
    assert!(
        printed.contains("clients by `patient_id`") && printed.contains("`hospital` would be the clients"),
        "{printed}"
    );
    // Nor does another place.
    let with_ward = |line: (usize, &str)| {
        format!("{},{}\n", line.1, if line.0 == 0 { "ward".into() } else { format!("w{}", line.0 % 3) })
    };
    let table: String = place.text("gap.csv").lines().enumerate().map(with_ward).collect();
    place.write("wards.csv", table);
    let printed = place.works("init wards.csv --target outcome").stdout;
    let note = "note: `hospital` could be the clients in the place of `ward`, but one of its cells is missing";
    assert!(printed.contains("clients by `ward`") && printed.contains(note), "{printed}");
    assert!(place.text("wards.toml").contains("`hospital` could be the clients"));
}

#[test]
fn ids_with_missing_cells_have_no_warning_of_rows_that_share_one() {
    let place = Place::new();
    let row = |row: usize| {
        let id = if row.is_multiple_of(10) { String::new() } else { format!("c{row}") };
        format!("{id},{},{}\n", row % 31, ["ill", "well"][row % 2])
    };
    place.write("cases.csv", format!("case_id,age,outcome\n{}", (0..2500).map(row).collect::<String>()));
    place.works("init cases.csv");
    let written = place.text("cases.toml");
    assert!(written.contains("case_id") && !written.contains("test scores are then too good"), "{written}");
}

#[test]
fn evaluate_leaves_out_the_rows_without_any_cell_that_training_leaves_out_and_predict_predicts_them() {
    let place = Place::new();
    place.write("cases.csv", hospitals(",,,\n,,,\n")).works("init cases.csv");
    place.works("train cases.toml --set rounds=1 --set algorithm.local_steps=2 --quiet --out run");
    place.works("evaluate run --input cases.csv --out judged");
    assert_eq!(place.json("judged/report/report.json")["overall"]["n"], 90);
    place.refuses("predict run --input cases.csv", &["line 92"]);
}

#[test]
fn thousands_and_signs_are_named_and_tell_which_mark_is_the_decimal_one() {
    let place = Place::new();
    // `11.390` is eleven thousand: the other column has decimal commas.
    let row = |row: usize| {
        format!("{}.{:03};0,{row:02}1;{} %;{}\n", 11 + row, row * 7 % 1000, row * 3, ["ill", "well"][row % 2])
    };
    let table: String = (0..60).map(row).collect();
    place.write("doses.csv", format!("units;dose;share;outcome\n{table}"));
    let printed = place.works("init doses.csv").stdout;
    assert!(printed.contains("left out: `units` (thousands separators?), `share`"), "{printed}");
    let written = place.text("doses.toml");
    assert!(
        written.contains("decimal = \",\"") && written.contains("`share`: its numbers have signs such as"),
        "{written}"
    );
    place.works("train doses.toml --set rounds=1 --set algorithm.local_steps=2 --quiet");
}

#[test]
fn the_last_column_with_too_many_texts_is_not_predicted_and_that_is_said() {
    let place = Place::new();
    let row = |row: usize| format!("{},{},k{}\n", row % 50, ["a", "b"][row % 2], row % 101);
    place.write("kinds.csv", format!("x,group,kind\n{}", (0..404).map(row).collect::<String>()));
    let printed = place.works("init kinds.csv").stdout;
    let note = "note: `kind`, the last column, has more than 100 texts, which are many for classes; `group` is predicted instead";
    assert!(printed.contains(note), "{printed}");
    assert!(!place.works("init kinds.csv --target group --force").stdout.contains("the last column"));
}

#[test]
fn a_number_beyond_single_precision_is_named_as_it_is_written() {
    let place = Place::new();
    let row =
        |row: usize| format!("{},{}\n", if row == 40 { "1e300".into() } else { row.to_string() }, ["a", "b"][row % 2]);
    place.write("big.csv", format!("x,y\n{}", (0..80).map(row).collect::<String>()));
    let printed = place.works("init big.csv").stdout;
    let cells = in_shell("{ x = [\"1e300\"] }");
    assert!(printed.contains("`x` (1e300 in 1 row") && printed.contains(&cells), "{printed}");
    works(place.command("init big.csv --force").args(["--missing-values", "{ x = [\"1e300\"] }"]));
    place.works("train big.toml --set rounds=1 --set algorithm.local_steps=2 --quiet");
}

#[test]
fn a_table_in_the_place_of_a_config_leads_to_init() {
    let place = Place::new();
    place.write("cases.csv", hospitals("")).write("cases.csv.gz", "");
    for table in ["cases.csv", "cases.csv.gz"] {
        place
            .refuses(&format!("train {table}"), &[&format!("{table} is a table"), &format!("`fedstein init {table}`")]);
    }
    place.refuses("train nowhere.csv", &["nowhere.csv"]);
}

#[test]
fn one_odd_line_does_not_hide_the_separator_and_is_named() {
    let place = Place::new();
    let row = |i: usize| {
        format!("{},5;{},25;{}{}\n", i * 7 % 13, i * 5 % 11, ["no", "yes"][i % 2], if i == 9 { ";" } else { "" })
    };
    place.write("ragged.csv", format!("lactate;pulse;outcome\n{}", (0..40).map(row).collect::<String>()));
    place.refuses("init ragged.csv", &["ragged.csv", "line 11: 4 columns, expected 3"]);
}

#[test]
fn a_workbook_is_called_one() {
    let place = Place::new();
    place.write("wards.xlsx", b"PK\x03\x04\x14\x00").write("wards.xls", b"\xd0\xcf\x11\xe0\xa1\xb1");
    for name in ["wards.xlsx", "wards.xls"] {
        place.refuses(&format!("init {name}"), &[name, "a workbook of a spreadsheet", "CSV UTF-8"]);
    }
}

#[test]
fn a_separator_at_the_ends_of_lines_makes_no_target() {
    let place = Place::new();
    let row = |row: usize| {
        format!("{};{};{};\n", row % 7, ["a", "b", "c"][row % 3], ["well", "ill"][usize::from(row.is_multiple_of(4))])
    };
    place.write("cases.csv", format!("dose;ward;kind;\n{}", (0..60).map(row).collect::<String>()));
    let said = place.works("init cases.csv").stdout;
    assert!(said.contains("classification of `kind` (2 classes)"), "{said}");
}

#[test]
fn dates_in_digits_are_dates_and_numbers_with_a_unit_are_named() {
    let place = Place::new();
    let row = |i: usize| {
        let (month, day, weight) = (1 + i % 12, 1 + i % 28, 40 + i * 3 % 70);
        let dose = ["10 mg", "20 mg"][i % 2];
        format!("2021{month:02}{day:02},{weight} kg,{dose},{}\n", ["ill", "well"][i * i % 7 % 2])
    };
    let table = |head: &str, row: &dyn Fn(usize) -> String| head.to_owned() + &(0..140).map(row).collect::<String>();
    place.write("visits.csv", table("seen,weight,dose,outcome\n", &row));
    let printed = place.works("init visits.csv").stdout;
    assert!(!printed.contains("persons or cases"), "{printed}");
    let data = config(&place, "visits.toml")["data"].clone();
    assert_eq!(data["date"], toml::Value::from(vec!["seen"]));
    assert_eq!(data["date_format"].as_str(), Some("YYYYMMDD"));
    assert_eq!(data["categorical"], toml::Value::from(vec!["dose"]));
    assert_eq!(data["ignore"], toml::Value::from(vec!["weight"]));
    assert!(place.text("visits.toml").contains("its numbers have the unit `kg`, which is not read"));
    place.works("train visits.toml --set rounds=1 --set stop.patience=0 --quiet");

    // Beside dates of another format, a whole number is none that a distance can be measured with.
    let both = |i: usize| format!("2020-{:02}-01,{}", 1 + i % 12, row(i));
    place.write("both.csv", table("born,seen,weight,dose,outcome\n", &both));
    place.works("init both.csv");
    let data = config(&place, "both.toml")["data"].clone();
    assert_eq!(data["date"], toml::Value::from(vec!["born"]));
    assert_eq!(data["ignore"], toml::Value::from(vec!["seen", "weight"]));
    assert!(place.text("both.toml").contains("its dates are not written as `YYYY-MM-DD`"));
}

#[test]
fn a_blank_name_beside_names_that_are_numbers_is_a_column_by_its_place_from_the_end() {
    let place = Place::new();
    let row = |i: usize| format!("{},{},{},{}\n", i, i * 7 % 13, i * 5 % 11, usize::from(i * 7 % 13 > 6));
    // As pandas writes a table without names, with the numbers of the rows, or with nothing in their place.
    let counted = ",0,1,2\n".to_owned() + &(0..60).map(row).collect::<String>();
    let blank = counted.lines().enumerate().map(|(i, line)| match i {
        0 => format!("{line}\n"),
        _ => format!("{}\n", &line[line.find(',').unwrap()..]),
    });
    let blank: String = blank.collect();
    for (table, key) in [(counted, "id"), (blank, "ignore")] {
        place.write("p.csv", table).works("init p.csv --force");
        let data = &config(&place, "p.toml")["data"];
        assert_eq!((data[key][0].as_str(), data["target"].as_str()), (Some("-4"), Some("2")), "{data}");
        place.works("train p.toml --quiet --set rounds=1 --set algorithm.local_steps=1 --force");
        assert_eq!(place.json("runs/p/model.json")["feature_names"], serde_json::json!(["0", "1"]));
        place.works("site init p.csv --name north --index 0 --out site.toml --force");
        assert_eq!(config(&place, "site.toml")["data"][key][0].as_str(), Some("-4"));
    }
}
