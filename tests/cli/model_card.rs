//! `MODEL_CARD.md` beside a report: its numbers are the report's, and it says what is not known.

use super::place::{Place, TINY, pets, prices};

#[test]
fn a_card_has_the_reports_numbers_with_intervals_and_the_verdict() {
    let place = Place::new();
    place.works(&format!("{TINY} --out run --quiet"));
    let (card, report) = (place.text("run/report/MODEL_CARD.md"), place.json("run/report/report.json"));
    assert!(card.starts_with("---\nlibrary_name: fedstein\npipeline_tag: image-classification\n"), "{card}");
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    let interval = &report["confidence_intervals"]["accuracy"];
    let row = format!(
        "| Accuracy | {:.4} | {:.4} to {:.4} |",
        number(&report["overall"]["accuracy"]),
        number(&interval["lo"]),
        number(&interval["hi"])
    );
    let value =
        format!("    - type: accuracy\n      name: \"Accuracy\"\n      value: {}\n", report["overall"]["accuracy"]);
    let hash = place.json("run/provenance.json")["data_sha256"].as_str().unwrap().to_owned();
    for words in [
        row.as_str(),
        &value,
        &hash,
        report["verdict"]["headline"].as_str().unwrap(),
        "On 359 test rows",
        "Classes, in the order of the probabilities: `0`, `1`, `2`",
        "| client | training rows | validation rows | own test rows |\n|---|---|---|---|\n| 0 | 143 | 0 | 359 |",
        "8 of 10 clients never trained",
        "The run was a simulation",
        "There is no differential privacy",
        "fedstein predict RUN_DIR --input rows.csv",
    ] {
        assert!(card.contains(words), "no {words:?} in\n{card}");
    }
    assert!(!card.contains("rows are few"), "{card}");
    // A report elsewhere has a card of its own.
    place.works("report run --out elsewhere");
    assert_eq!(place.text("elsewhere/MODEL_CARD.md"), card);
}

#[test]
fn a_card_on_few_rows_says_that_they_are_few() {
    let place = Place::new();
    place.write("pets.csv", pets(60)).write("prices.csv", prices(100));
    let own = "--set data.kind=csv --set partition.clients=2";
    place.works(&format!("{TINY} {own} --set data.path=pets.csv --set data.target=kind --out pets --quiet"));
    let card = place.text("pets/report/MODEL_CARD.md");
    assert!(card.contains("pipeline_tag: tabular-classification\n") && card.contains("12 rows are few"), "{card}");
    assert!(card.contains("The columns are `width`, `height`."), "{card}");
    let prices = "--set data.path=prices.csv --set data.target=price --set data.task=regression";
    place.works(&format!("{TINY} {own} {prices} --out prices --quiet"));
    let card = place.text("prices/report/MODEL_CARD.md");
    assert!(card.contains("pipeline_tag: tabular-regression\n") && card.contains("| RMSE |"), "{card}");
    assert!(card.contains("| 90 % |"), "{card}");
}

#[test]
fn names_of_a_table_cannot_break_out_of_the_card() {
    let place = Place::new();
    let rows: String = (0..60).map(|row| format!("{},{}\n", row % 13, ["a|<b>", "c]`d"][row % 2])).collect();
    place.write("odd.csv", format!("x,\"kind\"\n{rows}"));
    place.works(&format!("{TINY} --set data.kind=csv --set data.path=odd.csv --set data.target=kind --set partition.clients=2 --out run --quiet"));
    let card = place.text("run/report/MODEL_CARD.md");
    assert!(card.contains("`a|<b>`, `c]'d`"), "{card}");
}

#[test]
fn equal_networks_are_counted_as_one() {
    let place = Place::new();
    let keys = "--set algorithm.kind=fedwba --set algorithm.particles=4 --set algorithm.local_steps=2 --quiet";
    let predictor = |run: &str| {
        let card = place.text(&format!("{run}/report/MODEL_CARD.md"));
        let summary = place.json(&format!("{run}/summary.json"));
        let facts = summary["facts"].as_array().unwrap();
        (card.contains("One parameter vector predicts"), facts.contains(&serde_json::json!(["particles", "1"])))
    };
    place.works(&format!(
        "train --set rounds=1 --set model.hidden=[5] {keys} --set algorithm.shared_layers=[1,2] --out one"
    ));
    place.works(&format!("train --set rounds=1 --set model.hidden=[5] {keys} --out four"));
    assert_eq!((predictor("one"), predictor("four")), ((true, true), (false, false)));
}
