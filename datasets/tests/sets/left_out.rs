//! Clients that take no part in the training, in a table of a user: `data.leave_out`.

use super::tables::{loaded, table, texts};
use fedstein_datasets::columns::Categorical;
use fedstein_datasets::source::Csv;
use fedstein_datasets::{Dataset, Normalise, Reading};
use tempfile::TempDir;

/// Rows of three sites: every row of `south` has the ward `attic`, and numbers 100 above those of the others.
fn of_three_sites(dir: &TempDir, more: &str) -> Csv {
    let rows: String = (0..30)
        .map(|row| {
            let (site, ward) = [("north", "hall"), ("east", "hall"), ("south", "attic")][row % 3];
            let x = row + if site == "south" { 100 } else { 0 };
            format!("{x},{ward},{site},{}\n", ["a", "b"][row / 3 % 2])
        })
        .collect();
    let path = dir.path().join("sites.csv");
    std::fs::write(&path, format!("x,ward,site,y\n{rows}{more}")).unwrap();
    let reading = Reading { categorical: Categorical::Columns(texts(&["ward"])), ..Reading::default() };
    Csv { client_column: "site".into(), normalise: Normalise::Standard, ..table(&path, reading) }
}

#[test]
fn a_client_that_is_left_out_gives_its_rows_to_the_test_and_nothing_to_scales_and_texts() {
    let dir = TempDir::new().unwrap();
    let data = loaded(Csv { leave_out: texts(&["south"]), ..of_three_sites(&dir, "") }).unwrap();
    assert_eq!((data.train.rows(), data.test.rows()), (20, 10));
    let names = data.train.client_names.clone().unwrap();
    let of = |rows: &Dataset| rows.clients.as_ref().unwrap().iter().map(|&at| names[at].clone()).collect::<Vec<_>>();
    assert!(of(&data.test).iter().all(|name| name == "south"));
    assert!(of(&data.train).iter().all(|name| name != "south"));
    // Of the wards the training rows know `hall` alone.
    assert_eq!(data.train.feature_names.as_deref(), Some(&texts(&["x", "ward=hall"])[..]));
    assert!(data.notes.iter().any(|note| note.contains("10 in column `ward`")), "{:?}", data.notes);
    let x = |rows: &Dataset| rows.features.column(0).iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
    let train = x(&data.train);
    assert!(train.iter().sum::<f64>().abs() < 1e-5);
    // The first row of `south` has 102, and the 20 training rows, 0 to 29 without every third, a mean of 14 and a standard
    // deviation of 8.631338 (Python's statistics.pstdev).
    assert!((x(&data.test)[0] - 10.195406).abs() < 1e-5, "{}", x(&data.test)[0]);
}

#[test]
fn clients_that_cannot_be_left_out_are_refused() {
    let dir = TempDir::new().unwrap();
    let csv = of_three_sites(&dir, "");
    let message = |csv: Csv| loaded(csv).unwrap_err().to_string();
    let unknown = message(Csv { leave_out: texts(&["south", "west"]), ..csv.clone() });
    assert!(unknown.contains("data.leave_out") && unknown.contains("there are `east`, `north`, `south`"), "{unknown}");
    let all = message(Csv { leave_out: texts(&["south", "north", "east"]), ..csv.clone() });
    assert!(all.contains("leaves no row to train on"), "{all}");
    let reading = Reading { ignore: texts(&["site"]), ..csv.reading.clone() };
    let nobody = message(Csv { leave_out: texts(&["south"]), client_column: String::new(), reading, ..csv.clone() });
    assert!(nobody.contains("`data.client_column` names its column"), "{nobody}");
    std::fs::write(dir.path().join("test.csv"), "x,ward,site,y\n1,hall,north,a\n").unwrap();
    let test_path = dir.path().join("test.csv").display().to_string();
    let two = message(Csv { leave_out: texts(&["south"]), test_path, ..csv });
    assert!(two.contains("data.leave_out") && two.contains("data.test_path"), "{two}");
}
