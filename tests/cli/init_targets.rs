//! The target that `fedstein init` finds in a table, and what it says of one.

use super::init::{SHORT, config};
use super::place::{Place, prices};

#[test]
fn a_target_of_numbers_is_a_regression_and_of_few_whole_numbers_a_classification() {
    let place = Place::new();
    place.write("prices.csv", prices(100));
    place.works("init prices.csv");
    assert_eq!(config(&place, "prices.toml")["data"]["task"].as_str(), Some("regression"));
    assert_eq!(config(&place, "prices.toml")["data"]["target"].as_str(), Some("price"));
    place.works(&format!("train prices.toml {SHORT}"));
    assert!(place.json("runs/prices/summary.json")["evaluation"]["rmse"].is_f64());
    assert_eq!(config(&place, "prices.toml")["data"]["rotate"].as_str(), Some("principal"));
    assert!(place.works("predict runs/prices --input prices.csv").stdout.lines().count() > 100);

    // A cell that is not a number does not make classes of the others.
    place.write("odd.csv", prices(200).replacen("\n", "\n1,2,<0.5\n", 1));
    assert!(place.works("init odd.csv").stdout.contains("regression of `price`"));
    assert!(place.text("odd.toml").contains("the first of them `<0.5` in line 2"), "{}", place.text("odd.toml"));
    place
        .refuses("train odd.toml --out runs/odd", &["line 2, column 3 (price)", "not a finite number", "data.task = "]);

    let rows: String = (0..80).map(|row| format!("{},{},{}\n", row % 7, row % 3, (row / 3) % 2)).collect();
    place.write("scores.csv", format!("a,b,c\n{rows}"));
    place.works("init scores.csv");
    assert_eq!(config(&place, "scores.toml")["data"]["task"].as_str(), Some("classification"));
    assert!(config(&place, "scores.toml")["data"].get("rotate").is_none());
    place.works(&format!("train scores.toml {SHORT}"));
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
fn an_outcome_with_a_single_value_is_pointed_out() {
    let place = Place::new();
    let rows: String = (0..60).map(|i| format!("{},{},no\n", ["Ulm", "Bonn"][i % 2], i * 7 % 31)).collect();
    place.write("all.csv", format!("town,age,died\n{rows}")).write("none.csv", format!("town,died,note\n{rows}"));
    let words = "`died` is named like an outcome, but its only value is `no`; `town` is predicted instead";
    let printed = place.works("init all.csv").stdout;
    assert!(printed.contains(&format!("\nnote: {words}\n")), "{printed}");
    assert!(place.text("all.toml").replace("\n# ", " ").contains(&format!("{words}.")), "{}", place.text("all.toml"));
    // The user names the target, or a column of such a name has two values.
    assert!(!place.works("init all.csv --target town --force").stdout.contains("note:"));
    assert!(!place.works("init none.csv").stdout.contains("note:"));
}

#[test]
fn a_target_with_missing_cells_and_dates_that_could_be_two_things_are_pointed_out() {
    let place = Place::new();
    let row = |i: usize| {
        let price = if i % 10 == 9 { "?".to_owned() } else { format!("{},5", i * 7 % 31) };
        format!("{},{:02}/{:02}/2023,{},\"{price}\"\n", i + 1, 1 + i % 12, 1 + i % 11, 1 + i % 13)
    };
    place.write("sales.csv", format!(",sold,rooms,price\n{}", (0..90).map(row).collect::<String>()));
    let printed = place.works("init sales.csv --target price").stdout;
    assert!(printed.contains("sales.toml: regression of `price` from 2 columns, 90 rows\n"), "{printed}");
    let written = place.text("sales.toml");
    for words in [
        "date_format = \"DD/MM/YYYY\"\n",
        "The cells could as well be `MM/DD/YYYY`: please check.",
        "id = [\"0\"]\n",
        "# Missing are cells of `price` (9 of 90): rows without it are left out.\nmissing_target = \"drop\"\n",
    ] {
        assert!(written.contains(words), "no {words:?} in\n{written}");
    }
    place.works(&format!("train sales.toml {SHORT}"));
    let summary = place.json("runs/sales/summary.json");
    assert!(summary["notes"].to_string().contains("leaves out 9 of the 90 rows"), "{summary}");
    // Numbers of rows by their name.
    let rows: String = (0..30).map(|i| format!("{},{},{}\n", 500 - i, i % 7, i % 2)).collect();
    place.write("crew.csv", format!("CrewId,age,y\n{rows}"));
    assert!(place.works("init crew.csv --out -").stdout.contains("\nid = [\"CrewId\"]\n"));
    // A table of ids and notes alone.
    let rows: String = (0..30).map(|i| format!("K{i},note number {i},{}\n", i % 2)).collect();
    place.write("names.csv", format!("key,note,y\n{rows}"));
    place.refuses("init names.csv", &["names.csv: there is nothing to predict `y` from: `key`: each row has another"]);
}

#[test]
fn a_target_of_a_few_whole_numbers_may_be_a_count() {
    let place = Place::new();
    let rows = |most: usize| -> String { (0..400).map(|i| format!("{},{}\n", i * 7 % 31, i % most)).collect() };
    place.write("falls.csv", format!("age,falls\n{}", rows(7))).works("init falls.csv");
    let written = place.text("falls.toml").replace("\n# ", " ");
    assert!(written.contains("If it is a count or a score, \"regression\""), "{written}");
    assert_eq!(config(&place, "falls.toml")["data"]["task"].as_str(), Some("classification"));
    place.write("fell.csv", format!("age,fell\n{}", rows(2))).works("init fell.csv");
    let written = place.text("fell.toml");
    // 200 rows of each of two classes: any share of them has enough of both.
    assert!(!written.contains("count or a score") && !written.contains("split ="), "{written}");
}

#[test]
fn a_target_with_which_no_run_can_begin_is_told_at_once() {
    let place = Place::new();
    let row = |i: usize| format!("{},{},{}\n", i % 17, (i * 7) % 23, (i * 7) % 15);
    place.write("stays.csv", format!("age,dose,los\n{}", (0..120).map(row).collect::<String>()));
    let said = place.works("init stays.csv").stdout;
    assert!(said.contains("the whole numbers of `los` are taken for classes; if it is a count"), "{said}");
    assert!(said.ends_with("fedstein train stays.toml\n"), "{said}");

    place.write("all.csv", format!("age,died\n{}", (0..50).map(|i| format!("{i},no\n")).collect::<String>()));
    let said = place.works("init all.csv --target died").stdout;
    assert!(
        said.contains("note: no run can begin: `died` has a single value") && !said.contains("fedstein train"),
        "{said}"
    );

    let visits: String = (0..30).map(|i| format!("{},{}\n", i % 7, ["a", "b", "c"][i % 3].repeat(1 + i / 6))).collect();
    place.write("visits.csv", format!("dose,kind\n{visits}"));
    let said = place.works("init visits.csv --target kind").stdout;
    assert!(
        said.contains("note: no run can begin: each class of `kind` has so few rows")
            && !said.contains("fedstein train"),
        "{said}"
    );
    place.refuses("train visits.toml", &["leaves no test row: the largest class has 2 row(s)"]);

    let price = |i: usize| if i == 7 { "lost".to_owned() } else { format!("{}.5", i * 3) };
    let rows: String = (0..150).map(|i| format!("{},{}\n", i % 11, price(i))).collect();
    place.write("prices.csv", format!("age,price\n{rows}"));
    let said = place.works("init prices.csv --target price").stdout;
    assert!(said.contains("`price` (`lost` in 1 row, all others are numbers)"), "{said}");
    assert!(said.contains("the first other one is `lost` in line 9") && !said.contains("fedstein train"), "{said}");
}

#[test]
fn of_two_classes_the_report_is_about_the_event() {
    let place = Place::new();
    for [first, second, event] in [
        ["ja", "nein", "ja"],
        ["Survived", "Died", "Died"],
        ["alive", "dead", "dead"],
        ["well", "ill", "ill"],
        ["no", "yes", "yes"],
        // Nothing says which one it is: the second in sorted order.
        ["red", "blue", "red"],
        ["no", "none", "none"],
    ] {
        let rows: String = (0..60).map(|i| format!("{}.5,{}\n", i * 7 % 31, [first, second][i % 2])).collect();
        place.write("t.csv", format!("age,outcome\n{rows}"));
        place.works("init t.csv --force");
        assert_eq!(config(&place, "t.toml")["data"]["positive"].as_str(), Some(event), "{first}, {second}");
    }
    place.works(&format!("train t.toml {SHORT}"));
}
