//! Sites that agree step by step have the same bits as one process that reads one table with all their rows.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::collection::vec;
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;
use serde::{Serialize, de::DeserializeOwned};

use super::config::SiteData;
use super::describe::tests::site as settings;
use super::*;
use crate::datasets::source::{Csv, TestSplit};
use crate::datasets::{Dataset, Header, Normalisation, Normalise, Reading, Task, TrainTest, load};

/// The features of every file, in an order of its own. `same` is 0.1 in all rows, `ward` the index of the site.
const FEATURES: [&str; 4] = ["ph", "same", "flow", "ward"];

/// A row: `ph`, `flow`, a real target, and a class out of three.
type Row = (f32, f32, f64, usize);

/// The rows of a site and the order of its columns.
#[derive(Debug, Clone)]
struct Rows {
    train: Vec<Row>,
    test: Vec<Row>,
    order: Vec<usize>,
}

/// What the columns of all sites hold.
#[derive(Debug, Clone, Copy)]
struct Kind {
    task: Task,
    /// Whether all training rows have the same real target.
    flat: bool,
    classes: [&'static str; 3],
}

fn row() -> impl Strategy<Value = Row> {
    let wide = |mantissa: f32, exponent: i32| mantissa * 2f32.powi(exponent);
    let number = (-1f32..1.0, -30i32..30).prop_map(move |(mantissa, exponent)| wide(mantissa, exponent));
    (number, -1f32..1.0, -1e9f64..1e9, 0usize..3)
}

fn rows() -> impl Strategy<Value = Rows> {
    let order = Just((0..FEATURES.len()).collect::<Vec<usize>>()).prop_shuffle();
    (vec(row(), 1..9), vec(row(), 1..4), order).prop_map(|(train, test, order)| Rows { train, test, order })
}

fn kind() -> impl Strategy<Value = Kind> {
    let classes = prop_oneof![Just(["oak", "alder", "birch"]), Just(["10", "2", "1"])];
    (any::<bool>(), any::<bool>(), classes).prop_map(|(real, flat, classes)| {
        let task = if real { Task::Regression } else { Task::Classification };
        Kind { task, flat, classes }
    })
}

/// One line for each row of site k, with its client.
fn lines(kind: Kind, k: usize, rows: &[Row], order: &[usize]) -> String {
    let line = |&(ph, flow, real, class): &Row| {
        let cells = [ph, 0.1, flow, k as f32];
        let features: Vec<String> = order.iter().map(|column| cells[*column].to_string()).collect();
        let target = match (kind.task, kind.flat) {
            (Task::Regression, true) => "0.1".to_owned(),
            (Task::Regression, false) => real.to_string(),
            (Task::Classification, _) => kind.classes[class].to_owned(),
        };
        format!("{k},{},{target}\n", features.join(","))
    };
    rows.iter().map(line).collect()
}

fn header(order: &[usize]) -> String {
    let names: Vec<&str> = order.iter().map(|column| FEATURES[*column]).collect();
    format!("client,{},y\n", names.join(","))
}

/// The path of a file with this content; a site's file has no column of clients.
pub(super) fn write(directory: &Path, name: &str, content: &str, with_client: bool) -> PathBuf {
    let path = directory.join(name);
    let without = |line: &str| line.split_once(',').map_or_else(String::new, |(_, rest)| format!("{rest}\n"));
    let own: String = content.lines().map(without).collect();
    fs::write(&path, if with_client { content } else { &own }).unwrap();
    path
}

/// One table with the rows of all sites in their order, with the columns of client 0, as one process reads it.
fn pooled(directory: &Path, kind: Kind, sites: &[Rows]) -> TrainTest {
    let order = &sites[0].order;
    let file = |name: &str, of: &dyn Fn(&Rows) -> Vec<Row>| {
        let lines: String = sites.iter().enumerate().map(|(k, site)| lines(kind, k, &of(site), order)).collect();
        write(directory, name, &(header(order) + &lines), true)
    };
    let table = Csv {
        path: file("train.csv", &|site| site.train.clone()),
        test_path: file("test.csv", &|site| site.test.clone()).display().to_string(),
        target: "y".into(),
        header: Header::Yes,
        task: kind.task,
        positive: String::new(),
        delimiter: ",".into(),
        client_column: "client".into(),
        reading: Reading::default(),
        normalise: Normalise::Standard,
        test_fraction: 0.5,
        split: TestSplit::Random,
        leave_out: Vec::new(),
        train_limit: 0,
        test_limit: 0,
    };
    load(&table.into(), directory, &mut ChaCha12Rng::seed_from_u64(1)).unwrap()
}

/// Site k with its files.
fn site(directory: &Path, kind: Kind, k: usize, rows: &Rows) -> (SiteConfig, SiteRows) {
    let file = |name: String, own: &[Row]| {
        write(directory, &name, &(header(&rows.order) + &lines(kind, k, own, &rows.order)), false)
    };
    let plain = settings(k);
    let data = SiteData {
        path: file(format!("train-{k}.csv"), &rows.train),
        test_path: file(format!("test-{k}.csv"), &rows.test).display().to_string(),
        task: kind.task,
        ..plain.data
    };
    let config = SiteConfig { data, ..plain };
    let rows = SiteRows::read(&config).unwrap();
    (config, rows)
}

/// What arrives of a message.
pub(super) fn sent<T: Serialize + DeserializeOwned>(message: &T) -> T {
    serde_json::from_str(&serde_json::to_string(message).unwrap()).unwrap()
}

/// All that is said before round 1: the scale, and the rows of every site as the model sees them.
pub(super) fn agreed(sites: &[(SiteConfig, SiteRows)]) -> (Normalisation, Vec<TrainTest>) {
    let mut told: Vec<Description> = sites.iter().map(|(site, rows)| sent(&describe(site, rows, 5))).collect();
    told.iter().for_each(|told| assert_eq!(told.check(), Ok(())));
    told.reverse();
    let agreed = sent(&agree(&told).unwrap());
    let means = sent(&means_for(&agreed, Normalise::Standard).unwrap().unwrap());
    let measured = |(site, rows)| {
        sent(&measure(site, rows, agreed.features.as_deref(), &means, agreed.encoding.as_ref()).unwrap())
    };
    let measured: Vec<Deviations> = sites.iter().rev().map(|(site, rows)| measured((site, rows))).collect();
    let card = sent(&agreed.card("trees", scale(&agreed, &measured, Normalise::Standard).unwrap()));
    let rows = sites.iter().map(|(site, rows)| rows.prepared(site.index, &card).unwrap()).collect();
    (card.normalisation, rows)
}

/// The rows of one client.
pub(super) fn of_client(data: &Dataset, k: usize) -> Dataset {
    let clients = data.clients.as_ref().unwrap();
    data.select(&(0..data.rows()).filter(|row| clients[*row] == k).collect::<Vec<usize>>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn the_rows_of_every_site_are_those_of_one_table_with_all_rows_to_the_bit(
        kind in kind(),
        mut rows in vec(rows(), 1..5),
    ) {
        // A table with a class of test rows alone is refused.
        for class in 0..3 {
            let (ph, flow, real, _) = rows[0].train[0];
            rows[0].train.push((ph, flow, real, class));
        }
        let directory = tempfile::tempdir().unwrap();
        let pooled = pooled(directory.path(), kind, &rows);
        let sites: Vec<_> = rows.iter().enumerate().map(|(k, rows)| site(directory.path(), kind, k, rows)).collect();
        let (normalisation, prepared) = agreed(&sites);
        // The text of a number has all its bits, also the sign of 0.
        let text = |scale: &Normalisation| serde_json::to_string(scale).unwrap();
        prop_assert_eq!(text(&normalisation), text(&pooled.normalisation));
        for (k, own) in prepared.iter().enumerate() {
            prop_assert_eq!(text(&own.normalisation), text(&pooled.normalisation));
            for (own, all) in [(&own.train, &pooled.train), (&own.test, &pooled.test)] {
                let all = of_client(all, k);
                let bits = |data: &Dataset| data.features.mapv(f32::to_bits);
                prop_assert_eq!(bits(own), bits(&all));
                prop_assert_eq!(&own.targets, &all.targets);
                prop_assert_eq!(&own.feature_names, &all.feature_names);
            }
        }
    }
}
