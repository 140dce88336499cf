//! Sites with texts and missing cells have the same features and scales, to the bit, as one process that reads one table
//! with all their rows.

use std::fs;
use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;

use super::describe::tests::site as settings;
use super::pooled::{agreed, of_client, sent, write};
use super::*;
use crate::datasets::columns::{Categorical, Missing};
use crate::datasets::source::Csv;
use crate::datasets::{Dataset, Normalisation, Normalise, Reading, TrainTest, load};

/// The columns of every file, in an order of its own.
const COLUMNS: [&str; 4] = ["dose", "ward", "sick", "same"];

/// A row: `dose`, `ward` and `sick`, each of which may be missing, `same`, which is 0.1 or missing, and a class.
type Row = (Option<f32>, Option<usize>, Option<bool>, bool, usize);

#[derive(Debug, Clone)]
struct Rows {
    train: Vec<Row>,
    test: Vec<Row>,
    order: Vec<usize>,
}

fn row() -> impl Strategy<Value = Row> {
    let dose = (-1f32..1.0, -20i32..20).prop_map(|(mantissa, exponent)| mantissa * 2f32.powi(exponent));
    (proptest::option::of(dose), proptest::option::of(0usize..4), any::<Option<bool>>(), any::<bool>(), 0usize..2)
}

fn rows() -> impl Strategy<Value = Rows> {
    let order = Just((0..COLUMNS.len()).collect::<Vec<usize>>()).prop_shuffle();
    let rows = (vec(row(), 1..9), vec(row(), 1..4), order);
    // A site refuses a file of test rows with the content of that of the training rows.
    let rows = rows.prop_filter("the test rows are the training rows", |(train, test, _)| train != test);
    rows.prop_map(|(train, test, order)| Rows { train, test, order })
}

/// The texts of the wards. The last two are spellings of one number.
fn wards() -> impl Strategy<Value = [&'static str; 4]> {
    prop_oneof![Just(["west", "east", "10", "9"]), Just(["10", "9", "2.0", "2"])]
}

fn text(k: usize, wards: [&str; 4], rows: &[Row], order: &[usize]) -> String {
    let line = |&(dose, ward, sick, has, class): &Row| {
        let cells = [
            dose.map_or("NA".to_owned(), |dose| dose.to_string()),
            ward.map_or("", |ward| wards[ward]).to_owned(),
            sick.map_or("?", |sick| if sick { "yes" } else { "no" }).to_owned(),
            if has { "0.1".to_owned() } else { "null".to_owned() },
        ];
        let cells: Vec<&str> = order.iter().map(|column| cells[*column].as_str()).collect();
        format!("{k},{},{}\n", cells.join(","), ["ill", "well"][class])
    };
    rows.iter().map(line).collect()
}

fn header(order: &[usize]) -> String {
    let names: Vec<&str> = order.iter().map(|column| COLUMNS[*column]).collect();
    format!("client,{},y\n", names.join(","))
}

fn reading(missing: Missing) -> Reading {
    Reading {
        categorical: Categorical::Columns(vec!["ward".into()]),
        boolean: vec!["sick".into()],
        missing,
        ..Reading::default()
    }
}

/// One table with the rows of all sites in their order.
fn pooled(directory: &Path, wards: [&str; 4], sites: &[Rows], missing: Missing) -> TrainTest {
    let order = &sites[0].order;
    let file = |name: &str, of: &dyn Fn(&Rows) -> &[Row]| {
        let lines: String = sites.iter().enumerate().map(|(k, site)| text(k, wards, of(site), order)).collect();
        write(directory, name, &(header(order) + &lines), true)
    };
    let table = Csv {
        path: file("train.csv", &|site| &site.train),
        test_path: file("test.csv", &|site| &site.test).display().to_string(),
        client_column: "client".into(),
        reading: reading(missing),
        normalise: Normalise::Standard,
        ..settings(0).data.table()
    };
    load(&table.into(), directory, &mut ChaCha12Rng::seed_from_u64(1)).unwrap()
}

/// Site k with its files.
fn site(directory: &Path, wards: [&str; 4], k: usize, rows: &Rows, missing: Missing) -> (SiteConfig, SiteRows) {
    let file = |name: String, own: &[Row]| {
        write(directory, &name, &(header(&rows.order) + &text(k, wards, own, &rows.order)), false)
    };
    let plain = settings(k);
    let data = SiteData {
        path: file(format!("train-{k}.csv"), &rows.train),
        test_path: file(format!("test-{k}.csv"), &rows.test).display().to_string(),
        reading: reading(missing),
        ..plain.data
    };
    let config = SiteConfig { data, state: directory.join(format!("state-{k}")), ..plain };
    let mut rows = SiteRows::read(&config).unwrap();
    // What a site keeps on its disk has the missing cells and texts too.
    rows.keep(&config).unwrap();
    let kept = SiteRows::open(&config).unwrap();
    let bits = |rows: &SiteRows| rows.train.features.mapv(f32::to_bits);
    assert_eq!((bits(&kept), &kept.columns), (bits(&rows), &rows.columns));
    fs::remove_file(&config.data.path).unwrap();
    (config, kept)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn sites_with_texts_and_missing_cells_have_the_rows_of_one_table_to_the_bit(
        wards in wards(),
        indicator: bool,
        mut rows in vec(rows(), 1..5),
    ) {
        let missing = if indicator { Missing::Indicator } else { Missing::Mean };
        for class in 0..2 {
            let first = rows[0].train[0];
            rows[0].train.push((first.0, first.1, first.2, first.3, class));
        }
        // Two sites with the same file are refused.
        let mut files = rows.iter().enumerate().map(|(k, site)| (k, &site.train, &site.order));
        prop_assume!(files.all(|(k, train, order)| rows[..k].iter().all(|of| (&of.train, &of.order) != (train, order))));
        let directory = tempfile::tempdir().unwrap();
        let all = pooled(directory.path(), wards, &rows, missing);
        let sites: Vec<_> =
            rows.iter().enumerate().map(|(k, rows)| site(directory.path(), wards, k, rows, missing)).collect();
        let (normalisation, prepared) = agreed(&sites);
        let text = |scale: &Normalisation| serde_json::to_string(scale).unwrap();
        prop_assert_eq!(text(&normalisation), text(&all.normalisation));
        for (k, own) in prepared.iter().enumerate() {
            prop_assert_eq!(sent(&own.encoding), sent(&all.encoding));
            for (own, all) in [(&own.train, &all.train), (&own.test, &all.test)] {
                let all = of_client(all, k);
                let bits = |data: &Dataset| data.features.mapv(f32::to_bits);
                prop_assert_eq!(bits(own), bits(&all));
                prop_assert_eq!(&own.targets, &all.targets);
                prop_assert_eq!(&own.feature_names, &all.feature_names);
            }
        }
    }
}
