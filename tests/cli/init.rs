//! `fedstein init`: the config that it writes for a table trains as it stands, or says what is in the way.

use super::place::{Place, gzip, pets, prices};

/// Few steps, for a config that the command has written.
const SHORT: &str = "--set rounds=2 --set algorithm.local_steps=5 --set algorithm.particles=3 --quiet";

fn config(place: &Place, name: &str) -> toml::Table {
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
fn a_target_of_numbers_is_a_regression_and_of_few_whole_numbers_a_classification() {
    let place = Place::new();
    place.write("prices.csv", prices(100));
    place.works("init prices.csv");
    assert_eq!(config(&place, "prices.toml")["data"]["task"].as_str(), Some("regression"));
    assert_eq!(config(&place, "prices.toml")["data"]["target"].as_str(), Some("price"));
    place.works(&format!("train prices.toml {SHORT}"));
    assert!(place.json("runs/prices/summary.json")["evaluation"]["rmse"].is_f64());

    let rows: String = (0..80).map(|row| format!("{},{},{}\n", row % 7, row % 3, (row / 3) % 2)).collect();
    place.write("scores.csv", format!("a,b,c\n{rows}"));
    place.works("init scores.csv");
    assert_eq!(config(&place, "scores.toml")["data"]["task"].as_str(), Some("classification"));
    place.works(&format!("train scores.toml {SHORT}"));
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
fn the_target_is_found_by_its_name_else_it_is_the_last_column() {
    let place = Place::new();
    let rows: String = (0..60).map(|row| format!("{},{},{}.5\n", row % 2, row % 11, row)).collect();
    place.write("named.csv", format!("Outcome,age,weight\n{rows}"));
    place.write("other.csv", format!("sex,age,weight\n{rows}"));
    place.works("init named.csv");
    place.works("init other.csv");
    let target = |name: &str| config(&place, name)["data"]["target"].as_str().unwrap().to_owned();
    assert_eq!((target("named.toml"), target("other.toml")), ("Outcome".into(), "weight".into()));
    assert!(
        place.text("other.toml").contains("# `sex`, `age` could be predicted as well."),
        "{}",
        place.text("other.toml")
    );
}

#[test]
fn columns_that_are_not_numbers_are_named_with_a_cell_and_its_line() {
    let place = Place::new();
    place.write("mixed.csv", "age,city,dose,y\n1,Ulm,\"1,5\",0\n2,Bonn,2,1\n,Ulm,3,0\n4,Kiel,4,1\n");
    let printed = place.works("init mixed.csv --target y").stdout;
    assert!(printed.contains("does not train as it is: cells of `age`, `city`, `dose` are not numbers"), "{printed}");
    let written = place.text("mixed.toml");
    for words in [
        "#   `age`: `` in line 4; numbers and other cells, 4 distinct, 1 missing",
        "#   `city`: `Ulm` in line 2; text, 3 distinct",
        "#   `dose`: `1,5` in line 2, a decimal comma; numbers with a decimal comma, 4 distinct",
    ] {
        assert!(written.contains(words), "no {words:?} in\n{written}");
    }
    // What training says of the first of them.
    place.refuses("train mixed.toml", &["mixed.csv", "line 2", "city"]);
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
    place.works("init pets.csv --target kind --out elsewhere.toml");
    assert_eq!(place.text("elsewhere.toml"), printed);
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
