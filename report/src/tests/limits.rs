//! What a picture and a page leave out of very many clients and groups.

use super::*;
use crate::conformal::SetCounts;

/// The picture of clients of which client k has k + 1 rows of each class.
fn picture(clients: usize, classes: usize) -> String {
    let table = PartitionTable {
        class_names: (0..classes).map(|class| format!("class {class}")).collect(),
        counts: (0..clients).map(|client| vec![client + 1; classes]).collect(),
        validation: Vec::new(),
        calibration: Vec::new(),
        test: Vec::new(),
        clients: ClientNames::new((0..clients).map(|client| format!("c{client}")).collect()),
    };
    partition_svg(&table).unwrap()
}

/// The coloured rectangles of a picture: its cells, and as many of a scale in every picture.
fn coloured(picture: &str) -> usize {
    picture.matches("<rect x=").count()
}

#[test]
fn of_very_many_clients_those_with_the_most_rows_are_drawn() {
    let [fewer, all, more] = [299, 300, 301].map(|clients| picture(clients, 1));
    assert_eq!([coloured(&all) - coloured(&fewer), coloured(&more) - coloured(&all)], [1, 0]);
    // 1 + 2 + … + 301 rows; that of client 0 is left out.
    let facts = "301 clients \u{b7} 1 class \u{b7} 45,451 rows \u{b7} drawn: the 300 clients with the most rows<";
    assert!(more.contains(facts) && !all.contains("drawn: the"));
    assert!(all.contains(">c0</text>") && more.contains(">c1</text>") && !more.contains(">c0</text>"));
}

#[test]
fn of_clients_with_very_many_classes_fewer_are_drawn() {
    let [all, more] = [30, 31].map(|clients| picture(clients, 1000));
    assert_eq!(coloured(&more), coloured(&all));
    assert!(more.contains("drawn: the 30 clients with the most rows") && !all.contains("drawn: the"));
}

/// The sets of a hundred rows of two classes, of which so many hold the truth.
fn line(name: String, covered: usize) -> SetLine {
    let mut counts = SetCounts::default();
    (0..100).for_each(|row| counts.add_set(&[row < covered, true], 0));
    SetLine::new(name, counts)
}

#[test]
fn of_very_many_lines_on_sets_the_page_has_the_worst_and_the_json_has_all() {
    let lines = |name: &str, count: usize| -> Vec<SetLine> {
        (0..count).map(|at| line(format!("{name} {at}"), 99 - at)).collect()
    };
    let sets = SetResults {
        score: "lac".into(),
        random: false,
        level: 0.9,
        threshold: Some(0.8),
        all: None,
        classes: lines("kind", 3),
        clients: lines("ward", 60),
        groups: lines("visit", 50),
    };
    let calibration =
        Some(CalibrationResults { rows: 100, clients: 60, temperature: None, map: None, sets: Some(sets) });
    let predictions = predictions();
    let rendered = render(&report(&predictions, Some(RunSummary { calibration, ..run() }))).unwrap();
    let place = |line: &str| rendered.html.find(&format!("<tr><th scope=\"row\">{line}</th>"));
    let count = |name: &str| rendered.html.matches(&format!("<tr><th scope=\"row\">{name} ")).count();
    assert_eq!([count("kind"), count("ward"), count("visit")], [3, 50, 50]);
    // The last ward has the smallest coverage, 40 of 100.
    assert!(place("ward 59").unwrap() < place("ward 10").unwrap() && place("ward 9").is_none());
    assert!(rendered.html.contains("The table has the first 50 of 60; report.json has all."));
    assert_eq!(rendered.html.matches("The table has the first").count(), 1);
    let json: Value = serde_json::from_str(&rendered.json).unwrap();
    assert_eq!(json["run"]["calibration"]["sets"]["clients"].as_array().unwrap().len(), 60);
}
