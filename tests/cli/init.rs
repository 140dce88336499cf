//! `fedstein init`: the config that it writes for a table trains as it stands, and says what is left out.

use super::place::{Place, gzip, in_shell, pets};

/// Few steps, for a config that the command has written.
pub const SHORT: &str = "--set rounds=2 --set algorithm.local_steps=5 --set algorithm.particles=3 --quiet";

/// A config as a table.
pub fn config(place: &Place, name: &str) -> toml::Table {
    place.text(name).parse().unwrap()
}

#[test]
fn a_table_of_numbers_trains_as_it_stands() {
    let place = Place::new();
    place.write("pets.csv", pets(120));
    let printed = place.works("init pets.csv --target kind").stdout;
    assert_eq!(
        printed,
        "pets.toml: classification of `kind` (3 classes) from 2 columns, 120 rows\nfedstein train pets.toml\n"
    );
    assert_eq!(place.names("."), ["pets.csv", "pets.toml"]);
    let written = place.text("pets.toml");
    for words in [
        "#   kind    text, 3 distinct, the target",
        "`kind` has 3 values: cat (40 rows), dog (40 rows), eel (40 rows).",
    ] {
        assert!(written.contains(words), "no {words:?} in\n{written}");
    }
    assert!(written.lines().all(|line| line.chars().count() <= 112), "{written}");
    place.works(&format!("train pets.toml {SHORT}"));
    assert_eq!(place.json("runs/pets/summary.json")["evaluation"]["rows"], 24);
    // The keys that are not written have their defaults: this is the whole experiment.
    assert_eq!(config(&place, "runs/pets/config.toml")["data"]["target"].as_str(), Some("kind"));
}

#[test]
fn separator_header_and_compression_are_found() {
    let place = Place::new();
    let rows: Vec<String> = pets(90).lines().skip(1).map(str::to_owned).collect();
    // Without a header, the label in the middle; with tabs; with semicolons; gzipped.
    place.write("bare.csv", rows.join("\n"));
    place.write("tabs.tsv", pets(90).replace(',', "\t"));
    place.write("semi.csv.gz", gzip(pets(90).replace(',', ";").as_bytes()));
    for (file, target, header, delimiter) in
        [("bare.csv", "1", "no", ","), ("tabs.tsv", "kind", "yes", "tab"), ("semi.csv.gz", "kind", "yes", ";")]
    {
        let name = file.split('.').next().unwrap();
        place.works(&format!("init {file} --target {target}"));
        let data = &config(&place, &format!("{name}.toml"))["data"];
        assert_eq!((data["header"].as_str(), data["delimiter"].as_str()), (Some(header), Some(delimiter)), "{file}");
        place.works(&format!("train {name}.toml {SHORT}"));
    }
}

#[test]
fn a_header_may_have_numbers_among_its_names() {
    let place = Place::new();
    let rows: String = (0..60).map(|i| format!("{}.5,{},{}\n", i % 7, i * 7 % 31, ["ill", "well"][i % 2])).collect();
    place.write("years.csv", format!("2019,2020,y\n{rows}")).write("named.csv", format!("age,5,y\n{rows}"));
    for command in ["init years.csv --target y", "init named.csv"] {
        let printed = place.works(command).stdout;
        assert!(printed.contains("classification of `y` (2 classes) from 2 columns, 60 rows\n"), "{printed}");
    }
    assert_eq!(config(&place, "years.toml")["data"]["header"].as_str(), Some("yes"));
    place.works(&format!("train named.toml {SHORT}"));
}

#[test]
fn a_quote_that_is_not_closed_is_refused_by_every_command() {
    let place = Place::new();
    place.write("pets.csv", pets(60)).works("init pets.csv --target kind");
    place.works(&format!("train pets.toml {SHORT}"));
    let text = pets(60);
    let broken: Vec<String> = text
        .lines()
        .enumerate()
        .map(|(at, line)| match at {
            30 => line.replacen(',', ",\"", 1),
            _ => line.to_owned(),
        })
        .collect();
    place.write("pets.csv", broken.join("\n"));
    let words = ["pets.csv: line 31, column 2", "the quote that opens here is not closed"];
    place.refuses("init pets.csv --target kind --out other.toml", &words);
    place.refuses(&format!("train pets.toml {SHORT} --set name=again"), &words);
    place.refuses("predict runs/pets --input pets.csv", &words);
    place.refuses("evaluate runs/pets --input pets.csv", &words);
}

#[test]
fn validation_rows_end_the_run_where_there_are_enough() {
    let place = Place::new();
    let keys = |rows: usize| {
        place.write("pets.csv", pets(rows)).works("init pets.csv --target kind --force");
        let written = config(&place, "pets.toml");
        let number = |section: &str, key: &str| written.get(section).and_then(|keys| keys.get(key)).cloned();
        (written["rounds"].as_integer(), number("partition", "validation"), number("stop", "patience"))
    };
    assert_eq!(keys(99), (Some(10), None, None));
    assert_eq!(keys(500), (Some(200), Some(0.1.into()), Some(20.into())));
    place.works("train pets.toml --set algorithm.local_steps=5 --set algorithm.particles=3 --quiet");
    // A tenth of the 400 training rows, to within one row of each of the 10 clients.
    let partition = &place.json("runs/pets/summary.json")["partition"]["validation"];
    let held_out: u64 =
        partition.to_string().split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse::<u64>().ok()).sum();
    assert!((30..=50).contains(&held_out), "{partition}");
    // Rows of one patient count once: 40 patients are too few.
    place.write("admissions.csv", admissions(120)).works("init admissions.csv");
    assert!(config(&place, "admissions.toml").get("stop").is_none());
}

#[test]
fn a_column_of_sites_makes_natural_clients() {
    let place = Place::new();
    let (table, sites) = (pets(120), ["Ulm", "Bonn", "Kiel", "Jena"]);
    let lines = table.lines().enumerate().map(|(i, line)| match i {
        0 => format!("hospital,{line}\n"),
        _ => format!("{},{line}\n", sites[i % 4]),
    });
    place.write("pets.csv", lines.collect::<String>());
    let printed = place.works("init pets.csv --target kind").stdout;
    assert!(printed.contains("from 2 columns, 120 rows, clients by `hospital`"), "{printed}");
    let written = config(&place, "pets.toml");
    assert_eq!(written["data"]["client_column"].as_str(), Some("hospital"));
    assert_eq!(written["partition"]["kind"].as_str(), Some("by-column"));
    place.works(&format!("train pets.toml {SHORT}"));
    let listed = place.text("runs/pets/partition.txt");
    assert!(listed.lines().count() >= 5, "{listed}");
}

#[test]
fn measured_values_are_no_clients_whatever_their_name() {
    let place = Place::new();
    let table = |value: &dyn Fn(usize) -> String| -> String {
        let rows = (0..80).map(|i| format!("{},{},{}\n", value(i), i * 7 % 31, ["no", "yes"][i % 2]));
        format!("lab,age,died\n{}", rows.collect::<String>())
    };
    place.write("fractions.csv", table(&|i| format!("{}.{}", 1 + i % 4, i % 5)));
    place.write("bounds.csv", table(&|i| if i % 9 == 2 { "<5".into() } else { (5 + i % 8).to_string() }));
    place.write("names.csv", table(&|i| format!("Lab {}", i % 4)));
    for (name, client) in [("fractions", None), ("bounds", None), ("names", Some("lab"))] {
        place.works(&format!("init {name}.csv"));
        let data = config(&place, &format!("{name}.toml"))["data"].clone();
        assert_eq!(data.get("client_column").map(|client| client.as_str().unwrap()), client, "{name}");
    }
}

/// A table of a clinic; every fifth dose and every seventh ward is missing.
pub fn clinic(rows: usize) -> String {
    let row = |i: usize| {
        let dose = if i.is_multiple_of(5) { String::new() } else { format!("{},{}", i * 37 % 41, i % 9 + 1) };
        let ward = if i.is_multiple_of(7) { "NA" } else { ["west", "east", "north"][i * 5 % 3] };
        let smokes = ["yes", "No"][i * 3 % 7 % 2];
        let lab = if i % 11 == 3 { "<5".to_owned() } else { format!("{}", 5 + i) };
        format!(
            "P-{i:03};{ward};{dose};came {i} times, then left;{:02}.{:02}.2024;{smokes};{lab};;{}\n",
            1 + i % 28,
            1 + i % 12,
            ["well", "ill"][i % 2]
        )
    };
    format!("patient;unit;dose;note;admitted;smokes;lab;void;outcome\n{}", (0..rows).map(row).collect::<String>())
}

#[test]
fn a_table_with_texts_dates_ids_and_missing_cells_trains_and_predicts_as_it_stands() {
    let place = Place::new();
    place.write("clinic.csv", clinic(80));
    let printed = place.works("init clinic.csv").stdout;
    assert_eq!(
        printed,
        "clinic.toml: classification of `outcome` (2 classes) from 4 columns, 80 rows\n\
         left out: `note`, `lab`, `void`; the file says why\nfedstein train clinic.toml\n"
    );
    let written = place.text("clinic.toml");
    for words in [
        "#   patient   text, 80 distinct, no feature\n",
        "#   dose      numbers, 64 distinct, 16 missing\n",
        "#   lab       numbers and other cells,",
        "#   void      nothing, 0 distinct, 80 missing, left out\n",
        "ignore = [\"note\", \"lab\", \"void\"]\n",
        "# `note`: almost every row has a text of its own, such as `came 0 times, then left` in line 2; `lab`: most of",
        "`<5` in line 5; `void`: all its cells are missing.",
        "# Each row has another cell in `patient`.\nid = [\"patient\"]\n",
        "# `unit` has 3 values: east (",
        "categorical = [\"unit\"]\n",
        "boolean = [\"smokes\"]\n",
        "date = [\"admitted\"]\n",
        "# Such as `01.01.2024` in line 2.\ndate_format = \"DD.MM.YYYY\"\n",
        "# In `dose`.\ndecimal = \",\"\n",
        "# Missing are cells of `unit` (12 of 80), `dose` (16 of 80).\nmissing = \"indicator\"\n",
    ] {
        assert!(written.contains(words), "no {words:?} in\n{written}");
    }
    place.works(&format!("train clinic.toml {SHORT}"));
    let features = &place.json("runs/clinic/model.json")["feature_names"];
    let names =
        ["unit=east", "unit=north", "unit=west", "unit is missing", "dose", "dose is missing", "admitted", "smokes"];
    assert_eq!(*features, serde_json::json!(names));
    let predicted = place.works("predict runs/clinic --input clinic.csv").stdout;
    assert!(predicted.starts_with("patient,prediction,confidence,p_0,p_1\nP-000,"), "{predicted}");
    assert_eq!(predicted.lines().count(), 81);
}

#[test]
fn numbers_that_are_0_or_1_are_yes_and_no() {
    let place = Place::new();
    // `rare` has missing cells beside 0 and 1, `none` one value, `visits` three; `seen` is 0 or 1 as words, too.
    let row = |i: usize| {
        let rare = if i.is_multiple_of(9) { String::new() } else { usize::from(i.is_multiple_of(8)).to_string() };
        let seen = ["yes", "no", "1", "0"][i % 4];
        format!("{},{rare},0,{},{seen},{},{}\n", i % 2, i % 3, i * 7 % 31, i / 2 % 2)
    };
    let rows: String = (0..120).map(row).collect();
    place.write("cases.csv", format!("centre,rare,none,visits,seen,age,died\n{rows}"));
    let printed = place.works("init cases.csv").stdout;
    let words = "cases.toml: classification of `died` (2 classes) from 5 columns, 120 rows, clients by `centre`\n";
    assert!(printed.starts_with(words), "{printed}");
    let written = place.text("cases.toml");
    for words in [
        "boolean = [\"rare\", \"seen\"]\n",
        "# `rare` holds only 0 and 1. A count, of which new rows may have more,",
        "#   rare    whole numbers, 2 distinct, 14 missing\n",
        "missing = \"indicator\"\n",
    ] {
        assert!(written.contains(words), "no {words:?} in\n{written}");
    }
    assert_eq!(config(&place, "cases.toml")["data"]["client_column"].as_str(), Some("centre"));
    place.works(&format!("train cases.toml {SHORT}"));
    let card = place.json("runs/cases/model.json");
    let names = ["rare", "rare is missing", "none", "visits", "seen", "age"];
    assert_eq!(card["feature_names"], serde_json::json!(names));
    // Centred alone, as `seen` is; 0, 1 and 2 are divided by their deviation.
    let deviations = &card["normalisation"]["features"]["scale"];
    let deviation = |name: &str| deviations[names.iter().position(|other| *other == name).unwrap()].as_f64();
    assert_eq!((deviation("rare"), deviation("seen")), (Some(1.0), Some(1.0)), "{card}");
    assert_ne!(deviation("visits"), Some(1.0), "{card}");
    // As pandas writes a column of whole numbers with missing cells.
    let new = "rare,none,visits,seen,age\n1,0,2,no,30\n1.0,0,2,0.0,30\n,0,2,no,30\n";
    let predicted = place.write("new.csv", new).works("predict runs/cases --input new.csv").stdout;
    let lines: Vec<&str> = predicted.lines().collect();
    assert!(lines.len() == 4 && lines[1] == lines[2] && lines[2] != lines[3], "{predicted}");
    place.write("new.csv", new.replace("\n1,", "\n2,"));
    place.refuses(
        "predict runs/cases --input new.csv",
        &["new.csv: line 2, column 1 (rare)", "`2` is not true or false"],
    );

    // A site's file says nothing of them: another site may have other numbers in the column.
    place.works("site init cases.csv --index 0");
    assert!(place.text("site.toml").contains("boolean = [\"seen\"]\n"), "{}", place.text("site.toml"));
}

#[test]
fn numbers_with_thousands_separators_are_left_out_with_the_reason() {
    let place = Place::new();
    let row = |i: usize, cost: &str| format!("{cost};{},5;{}\n", i * 7 % 31, ["no", "yes"][i % 2]);
    let english: String = (0..60).map(|i| row(i, &format!("{},{:03}.25", 1 + i, i * 37 % 1000))).collect();
    let german: String = (0..60).map(|i| row(i, &format!("{}.{:03},25", 1 + i, i * 37 % 1000))).collect();
    for (name, rows) in [("english", english.replace(",5;", ".5;")), ("german", german)] {
        place.write(&format!("{name}.csv"), format!("cost;age;died\n{rows}"));
        let printed = place.works(&format!("init {name}.csv")).stdout;
        assert!(printed.contains("left out: `cost` (thousands separators?); the file says why\n"), "{printed}");
        let written = place.text(&format!("{name}.toml")).replace("\n# ", " ");
        let words = "`cost`: its numbers probably have thousands separators, which are not read, such as `1";
        assert!(written.contains(words), "{written}");
        assert!(written.contains("#   cost  numbers with thousands separators, 60 distinct, left out"), "{written}");
        let data = &config(&place, &format!("{name}.toml"))["data"];
        assert_eq!(data["ignore"].as_array().unwrap()[0].as_str(), Some("cost"));
        assert!(data.get("id").is_none());
    }
}

#[test]
fn a_config_is_never_replaced_without_force() {
    let place = Place::new();
    place.write("pets.csv", pets(60)).write("pets.toml", "mine");
    place.refuses("init pets.csv --target kind", &["--out `pets.toml` exists", "--force"]);
    let printed = place.works("init pets.csv --target kind --out -").stdout;
    assert_eq!(place.text("pets.toml"), "mine");
    place.works("init pets.csv --target kind --force");
    assert_eq!(place.text("pets.toml"), printed);
    // The run of another config has another name.
    place.works("init pets.csv --target kind --out elsewhere.toml");
    assert_eq!(place.text("elsewhere.toml"), printed.replace("name = \"pets\"", "name = \"elsewhere\""));
}

#[test]
fn what_is_no_table_is_refused() {
    let place = Place::new();
    place
        .write("empty.csv", "")
        .write("one.csv", "a\n1\n2\n")
        .write("same.csv", "a,a\n1,2\n")
        .write("pets.csv", pets(9));
    place.refuses("init none.csv", &["none.csv"]);
    place.refuses("init empty.csv", &["empty.csv", "no data rows"]);
    place.refuses("init one.csv", &["one.csv", "single column"]);
    place.refuses("init same.csv", &["same.csv", "two columns are named `a`"]);
    place.refuses("init pets.csv --target colour", &["pets.csv", "no column `colour`", "`width`, `kind`, `height`"]);
}

/// Admissions of patients, each three times; lab values and outcomes are missing in some.
fn admissions(rows: usize) -> String {
    let row = |i: usize| {
        let lactate = if i.is_multiple_of(4) { String::new() } else { format!("{}.5", i * 7 % 13) };
        let outcome = if i % 10 == 7 { "" } else { ["no", "yes"][usize::from(i.is_multiple_of(5))] };
        format!("P{:03},{},{},{lactate},{outcome}\n", i / 3, ["Ulm", "Bonn", "Kiel"][i % 3], ["f", "m"][i / 2 % 2])
    };
    format!("patient_id,hospital,sex,lactate,complication\n{}", (0..rows).map(row).collect::<String>())
}

#[test]
fn a_last_column_with_missing_cells_is_the_target_and_its_rows_are_left_out() {
    let place = Place::new();
    place.write("admissions.csv", admissions(120));
    let printed = place.works("init admissions.csv").stdout;
    assert!(printed.contains("classification of `complication` (2 classes) from 2 columns, 120 rows"), "{printed}");
    let written = place.text("admissions.toml");
    for words in [
        "# Missing are cells of `lactate` (30 of 120).\nmissing = \"indicator\"\n",
        "# Missing are cells of `complication` (12 of 120): rows without it are left out.\nmissing_target = \"drop\"\n",
        // 24 rows have a number that five divides, and none of these is left out.
        "# Of 108 rows, 24 have the rarest class, `yes`.\nsplit = \"by-class\"\n",
    ] {
        assert!(written.contains(words), "no {words:?} in\n{written}");
    }
    let printed = place.works(&format!("train admissions.toml {}", SHORT.replace("--quiet", ""))).stderr;
    assert!(printed.contains("data.missing_target = \"drop\" leaves out 12 of the 120 rows of"), "{printed}");
    assert!(printed.contains("groups of rows: 32 in training, 8 in test, none in both"), "{printed}");
    // The rows of a fifth of the 40 patients, each with two or three.
    let rows = place.json("runs/admissions/summary.json")["evaluation"]["rows"].as_u64().unwrap();
    assert!((16..=24).contains(&rows), "{rows}");
    // Each prediction has the label of its line in the file.
    let (table, labels) = (place.text("admissions.csv"), ["no", "yes"]);
    let (lines, predictions) = ("runs/admissions/test_lines.csv", "runs/admissions/predictions.csv");
    let (lines, predictions) = (place.text(lines), place.text(predictions));
    assert_eq!((lines.lines().count(), lines.lines().next()), (rows as usize + 1, Some("line")));
    for (line, predicted) in lines.lines().zip(predictions.lines()).skip(1) {
        let row = table.lines().nth(line.parse::<usize>().unwrap() - 1).unwrap();
        let label: usize = predicted.split(',').next().unwrap().parse().unwrap();
        assert!(row.ends_with(labels[label]), "{row} is not of class {label}");
    }
    // The other rows with an outcome are those of the clients: each line is in one of the two files.
    let others = place.table("runs/admissions/train_lines.csv");
    assert_eq!(others[0], ["line", "client", "use"]);
    let tested = lines.lines().skip(1).map(|line| line.parse::<usize>().unwrap());
    let mut used: Vec<usize> = others[1..].iter().map(|row| row[0].parse().unwrap()).chain(tested).collect();
    used.sort_unstable();
    let with_outcome =
        table.lines().zip(1..).skip(1).filter(|(row, _)| labels.iter().any(|label| row.ends_with(label)));
    assert_eq!(used, with_outcome.map(|(_, line)| line).collect::<Vec<usize>>());
    let held_out = "--set partition.validation=0.2 --set partition.calibration=0.2 --out held";
    place.works(&format!("train admissions.toml {SHORT} {held_out}"));
    let others = place.table("held/train_lines.csv");
    let [training, validation, calibration] =
        ["training", "validation", "calibration"].map(|word| others[1..].iter().filter(|row| row[2] == word).count());
    assert_eq!(training + validation + calibration + rows as usize, 108);
    let counted =
        format!("{training} training, {validation} validation, {calibration} calibration and {rows} test rows");
    let facts = place.json("held/summary.json")["facts"].to_string();
    assert!(validation > 0 && calibration > 0 && facts.contains(&counted), "no {counted:?} in {facts}");
    // Every patient's hospital is the client of its line.
    for row in &others[1..] {
        let line = table.lines().nth(row[0].parse::<usize>().unwrap() - 1).unwrap();
        assert!(line.contains(&format!(",{},", row[1])), "{line} is not of {}", row[1]);
    }
    // A patient without a lab value has a prediction.
    place.write("new.csv", "patient_id,sex,lactate\nP9,f,\nP8,m,1.5\n");
    let predicted = place.works("predict runs/admissions --input new.csv").stdout;
    assert_eq!(predicted.lines().count(), 3, "{predicted}");

    // An outcome by its name, wherever it is.
    let named = admissions(60).replace("sex,lactate,complication", "died,lactate,complication");
    place.write("named.csv", named).works("init named.csv");
    assert_eq!(config(&place, "named.toml")["data"]["target"].as_str(), Some("died"));
}

#[test]
fn repeated_patients_are_ids_unless_they_are_the_only_clients_and_few() {
    let place = Place::new();
    let without_hospital = |text: String| -> String {
        let keep = |line: &str| {
            let cells: Vec<&str> = line.split(',').collect();
            format!("{},{}\n", cells[0], cells[2..].join(","))
        };
        text.lines().map(keep).collect()
    };
    place.write("wards.csv", admissions(90)).works("init wards.csv");
    let written = config(&place, "wards.toml");
    assert_eq!(written["data"]["client_column"].as_str(), Some("hospital"));
    assert_eq!(written["data"]["id"].as_array().unwrap()[0].as_str(), Some("patient_id"));
    assert_eq!(written["data"]["categorical"].as_array().unwrap().len(), 1);
    assert_eq!(written["data"]["group_column"].as_str(), Some("patient_id"));
    let text = place.text("wards.toml");
    for words in ["# `patient_id` has 30 values in 90 rows", "# `patient_id`, `sex` could be the clients as well."] {
        assert!(text.contains(words), "no {words:?} in {text}");
    }

    place.write("few.csv", without_hospital(admissions(90))).works("init few.csv");
    let few = config(&place, "few.toml");
    assert_eq!(few["data"]["client_column"].as_str(), Some("patient_id"));
    assert!(few["data"].get("group_column").is_none());
    place.write("many.csv", without_hospital(admissions(303))).works("init many.csv");
    let written = config(&place, "many.toml");
    assert_eq!(written["data"]["client_column"].as_str(), Some(""));
    assert_eq!(written["data"]["id"].as_array().unwrap()[0].as_str(), Some("patient_id"));
    assert!(place.text("many.toml").contains("# `patient_id`, `sex` could be the clients"));

    // Of a few patients, or of one, a fifth may be none.
    for (name, patients) in [("one", 1), ("four", 4)] {
        let rows: String =
            (0..120).map(|i| format!("P{},{},{}\n", i % patients, i * 7 % 31, ["no", "yes"][i % 3 % 2])).collect();
        place.write(&format!("{name}.csv"), format!("patient_id,dose,sick\n{rows}"));
        place.works(&format!("init {name}.csv"));
        assert!(config(&place, &format!("{name}.toml"))["data"].get("group_column").is_none());
        place.works(&format!("train {name}.toml {SHORT}"));
    }

    // A code with an id's name has few values; `PAID` and `VOID` are no ids.
    let rows: String = (0..120).map(|i| format!("{},{},{}\n", i % 5, i % 40, i % 2)).collect();
    place.write("codes.csv", format!("drug_id,PAID,y\n{rows}")).works("init codes.csv");
    assert!(config(&place, "codes.toml")["data"].get("id").is_none());
}

#[test]
fn a_column_that_numbers_the_rows_is_no_feature() {
    let place = Place::new();
    let rows = |first: usize, step: usize| -> String {
        (0..30).map(|i| format!("{},{},{}\n", first + step * i, i * 7 % 11, i % 2)).collect()
    };
    for (name, header, text, id) in [
        ("r", "V1,age,y\n", rows(1, 1), Some("V1")),
        ("pandas", "Unnamed: 0,age,y\n", rows(0, 1), Some("Unnamed: 0")),
        ("bare", "", rows(1, 1), Some("0")),
        // Not one by one, or with a name of its own.
        ("steps", "", rows(1, 2), None),
        ("day", "day,age,y\n", rows(1, 1), None),
    ] {
        place.write(&format!("{name}.csv"), format!("{header}{text}")).works(&format!("init {name}.csv"));
        let data = config(&place, &format!("{name}.toml"))["data"].clone();
        let found = data.get("id").map(|ids| ids.as_array().unwrap()[0].as_str().unwrap());
        assert_eq!(found, id, "{name}");
    }
}

/// A table with codes for missing values: 999 and the text `unknown` among ages, and -99 among doses.
fn coded_table() -> String {
    let row = |i: usize| {
        let age = if i % 10 == 3 { "unknown".to_owned() } else { (20 + i * 7 % 60).to_string() };
        let age = if i % 10 == 5 { "999".to_owned() } else { age };
        let dose = if i == 7 { "-99".to_owned() } else { format!("{:.1}", (i * 13 % 40) as f64 / 10.0) };
        format!("{age},{dose},{}\n", if i.is_multiple_of(3) { "yes" } else { "no" })
    };
    format!("age,dose,ill\n{}", (0..120).map(row).collect::<String>())
}

#[test]
fn cells_that_the_user_declares_missing_are_so_in_the_first_config() {
    let place = Place::new();
    place.write("cases.csv", coded_table());
    // As it is, a column of numbers and texts is left out, and the option is named.
    let left_out = place.works("init cases.csv --out -").stdout.replace("\n#", "");
    assert!(left_out.contains("declared with --missing-values"), "{left_out}");
    let said = place.works("init cases.csv").stdout;
    assert!(said.contains("`age` (`unknown` in 12 rows, all others are numbers)"), "{said}");
    let both = in_shell("{ age = [\"unknown\", 999], dose = [-99] }");
    assert!(said.contains(&format!("--missing-values {both} --force")), "{said}");

    for (cells, value) in [
        ("999,unknown,-99", "missing_values = [999, \"unknown\", -99]"),
        ("{age=[999,\"unknown\"],dose=-99}", "missing_values = { age = [999, \"unknown\"], dose = [-99] }"),
    ] {
        let said = place.works(&format!("init cases.csv --missing-values {cells} --force")).stdout;
        assert!(!said.contains("note:") && !said.contains("left out"), "{said}");
        let config = place.text("cases.toml");
        for words in
            [value, "age   whole numbers", "24 missing", "Declared are cells of `age` (24 of 120), `dose` (1 of 120)."]
        {
            assert!(config.contains(words), "no {words:?} in {config}");
        }
        assert!(config.contains("missing = \"indicator\""), "{config}");
        let trained = place.works("train cases.toml --set rounds=2 --set algorithm.local_steps=2 --out run --force");
        assert!(!trained.stderr.contains("far beyond"), "{}", trained.stderr);
    }

    // Codes that were not declared are to be declared with those that were.
    let said = place.works("init cases.csv --missing-values {age=[\"unknown\"]} --force").stdout;
    assert!(said.contains(&format!("--missing-values {both}")), "{said}");
    let none = place.works("init cases.csv --missing-values 777 --out -").stdout;
    assert!(none.contains("No cell is one of those declared."), "{none}");

    place.works("site init cases.csv --index 0 --missing-values 999,unknown,-99");
    assert!(place.text("site.toml").contains("missing_values = [999, \"unknown\", -99]"));
    let checked = place.works("site check site.toml").stdout;
    assert!(checked.contains("age"), "{checked}");

    let refused = "init cases.csv --out new.toml --missing-values ";
    place.refuses(&format!("{refused}{{weight=1}}"), &["cases.csv", "data.missing_values", "weight"]);
    place.refuses(&format!("{refused}999,,"), &["--missing-values `999,,`: it must be a cell or a list of them"]);
    place.refuses(&format!("{refused}{{age=true}}"), &["it must be a cell or a list of them"]);
}

#[test]
fn classes_that_differ_in_case_alone_are_noted_before_the_first_run() {
    let place = Place::new();
    let row = |i: usize| format!("{},{},{}\n", i % 17, (i * 7) % 23, ["ill", "ILL", "well"][i % 3]);
    place.write("cases.csv", format!("age,dose,outcome\n{}", (0..120).map(row).collect::<String>()));
    let said = place.works("init cases.csv").stdout;
    let note = "note: texts of the table that differ in upper and lower case or in blanks around them alone, and are different \
                texts in training: `outcome` (`ILL` and `ill`); if they mean the same, write them alike\n";
    assert!(said.contains("(3 classes)") && said.contains(note), "{said}");
    let trained = place.works("train cases.toml --set rounds=1 --set algorithm.local_steps=2 --out run");
    assert!(trained.stderr.contains("different texts in training: `outcome` (`ILL` and `ill`)"), "{}", trained.stderr);
}
