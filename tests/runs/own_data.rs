//! A program's own rows: the fields of a data set are public, and a run checks them again.

use fedstein::backend::Flex;
use fedstein::datasets::{Dataset, Normalise, Targets, TrainTest};
use fedstein::experiment::{ConfigLoader, Experiment, Overrides, Quiet, Source, run};
use ndarray::{Array2, Axis};

/// Two clients with names, two classes, and a feature that tells them apart.
fn data() -> TrainTest {
    let half = |from: usize| {
        let features = Array2::from_shape_fn((20, 2), |(row, column)| (((from + row) * (column + 1)) % 5) as f32);
        let labels = (0..20).map(|row| (from + row) % 2).collect();
        let targets = Targets::Classes { labels, names: vec!["well".into(), "ill".into()] };
        let rows = Dataset::new("hospitals", features, targets).unwrap();
        let rows = rows.with_clients((0..20).map(|row| row % 2).collect()).unwrap();
        rows.with_client_names(vec!["north".into(), "south".into()]).unwrap()
    };
    TrainTest::from_rows(half(0), half(1), Normalise::Auto).unwrap()
}

/// The result of a short run of these rows.
fn trained(data: TrainTest, partition: &str) -> Result<(), String> {
    let text = format!(
        "rounds = 1\npartition = {{ {partition} }}\nalgorithm = {{ kind = \"fedavg\", local_steps = 2, batch = 5 }}"
    );
    let loader = ConfigLoader::default().with_data(&data);
    let (config, _) =
        loader.load(Source { name: "own", text: &text }, &Overrides::default()).map_err(|error| error.to_string())?;
    let outcome = run::<Flex>(&Experiment::new(config, "data").with_data(data), &Quiet, None);
    outcome.map(drop).map_err(|error| {
        assert_eq!(error.exit_code(), 2, "{error}");
        error.to_string()
    })
}

const IID: &str = "clients = 2";
const NATURAL: &str = "kind = \"by-column\"";

#[test]
fn rows_that_fit_together_train() {
    assert_eq!(trained(data(), NATURAL), Ok(()));
}

#[test]
fn rows_that_were_changed_until_they_do_not_fit_are_refused() {
    type Change = fn(&mut TrainTest);
    let changes: [(Change, &str); 6] = [
        (|data| data.train.features[[3, 1]] = f32::NAN, "row 3, feature 1 is NaN"),
        (|data| set_label(&mut data.train, 4, 2), "row 4 has class 2"),
        (|data| set_label(&mut data.test, 0, 7), "row 0 has class 7"),
        (|data| data.train.features.append(Axis(0), Array2::zeros((1, 2)).view()).unwrap(), "20 targets for 21 row"),
        (|data| data.test.features = Array2::zeros((20, 3)), "cannot have the shape [2]"),
        (|data| data.test.client_names.as_mut().unwrap().reverse(), "other names of clients"),
    ];
    for (change, words) in changes {
        let mut changed = data();
        change(&mut changed);
        let message = trained(changed, NATURAL).unwrap_err();
        assert!(message.contains("rows of `hospitals`") && message.contains(words), "no {words:?} in {message}");
    }
}

fn set_label(rows: &mut Dataset, row: usize, label: usize) {
    let Targets::Classes { labels, .. } = &mut rows.targets else { panic!("{:?}", rows.targets) };
    labels[row] = label;
}

#[test]
fn messages_about_own_rows_name_them_and_not_the_data_section() {
    let mut without = data();
    for rows in [&mut without.train, &mut without.test] {
        (rows.clients, rows.client_names) = (None, None);
    }
    assert_eq!(trained(without.clone(), IID), Ok(()));
    let message = trained(without, NATURAL).unwrap_err();
    assert!(message.contains("the program's own data `Dataset::with_clients`"), "{message}");
    assert!(!message.contains("digits") && !message.contains("client_column"), "{message}");
    let message = trained(data(), "kind = \"superclass-labels\"").unwrap_err();
    assert!(message.contains("the program's own data has no superclasses"), "{message}");
}
