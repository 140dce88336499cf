//! A table with texts, dates, missing cells, ids and a decimal comma: its features against pandas and scikit-learn, what
//! is learned from training rows alone, new rows, and each message.

use fedstein_datasets::columns::{Categorical, DateFormat, Decimal, Encoding, Missing, MissingTarget, MissingValues};
use fedstein_datasets::format::header::Header;
use fedstein_datasets::source::{Csv, TestSplit};
use fedstein_datasets::{
    DataConfig, DataError, FeatureScale, ModelCard, NewRows, NewRowsOptions, Normalise, Reading, Targets, TrainTest,
    load, read_new_rows,
};
use ndarray::Array2;
use rand::{SeedableRng, rngs::ChaCha8Rng};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use tempfile::TempDir;

/// `tests/golden/table.json`, whose `source` says where it is from.
#[derive(Deserialize)]
struct Golden {
    train_csv: String,
    test_csv: String,
    mean: Features,
    indicator: Features,
}

#[derive(Deserialize)]
struct Features {
    names: Vec<String>,
    train: Vec<Vec<f64>>,
    test: Vec<Vec<f64>>,
    mean: Vec<f64>,
    scale: Vec<f64>,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("../golden/table.json")).unwrap()
}

pub(super) fn texts(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

/// The keys for the golden table.
fn german(missing: Missing) -> Reading {
    Reading {
        ignore: texts(&["note"]),
        id: texts(&["patient"]),
        group_column: String::new(),
        categorical: Categorical::Columns(texts(&["ward", "room"])),
        boolean: texts(&["smoker"]),
        date: texts(&["admitted"]),
        date_format: DateFormat::new("DD.MM.YYYY"),
        decimal: Decimal::Comma,
        missing,
        missing_target: MissingTarget::Error,
        missing_values: MissingValues::default(),
    }
}

/// A table whose last column is the target.
pub(super) fn table(path: &Path, reading: Reading) -> Csv {
    Csv {
        path: path.to_path_buf(),
        test_path: String::new(),
        target: "-1".into(),
        header: fedstein_datasets::Header::Auto,
        task: fedstein_datasets::Task::Classification,
        positive: String::new(),
        delimiter: ",".into(),
        client_column: String::new(),
        reading,
        normalise: Normalise::None,
        test_fraction: 0.5,
        split: TestSplit::Random,
        leave_out: vec![],
        train_limit: 0,
        test_limit: 0,
    }
}

pub(super) fn loaded(csv: Csv) -> Result<TrainTest, DataError> {
    load(&DataConfig::from(csv), Path::new(""), &mut ChaCha8Rng::seed_from_u64(1))
}

/// Training and test rows of two files.
pub(super) fn two(train: &str, test: &str, change: impl FnOnce(&mut Csv)) -> Result<TrainTest, DataError> {
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("train.csv"), train).unwrap();
    std::fs::write(dir.path().join("test.csv"), test).unwrap();
    let mut csv = table(&dir.path().join("train.csv"), Reading::default());
    csv.test_path = dir.path().join("test.csv").display().to_string();
    change(&mut csv);
    loaded(csv)
}

pub(super) fn complaint(train: &str, reading: Reading) -> String {
    let message =
        two(train, "", |csv| (csv.test_path, csv.reading) = (String::new(), reading)).unwrap_err().to_string();
    assert!(message.contains("train.csv"), "{message}");
    message
}

fn golden_rows(missing: Missing, normalise: Normalise) -> TrainTest {
    let Golden { train_csv, test_csv, .. } = golden();
    two(&train_csv, &test_csv, |csv| {
        (csv.target, csv.delimiter, csv.normalise, csv.reading) =
            ("outcome".into(), ";".into(), normalise, german(missing));
    })
    .unwrap()
}

fn assert_near(found: &Array2<f32>, expected: &[Vec<f64>], names: &[String]) {
    assert_eq!(found.dim(), (expected.len(), names.len()));
    for ((row, column), x) in found.indexed_iter() {
        let want = expected[row][column];
        // Features have single precision.
        assert!((f64::from(*x) - want).abs() <= 1e-7 * want.abs(), "row {row}, {}: {x}, not {want}", names[column]);
    }
}

/// The number of rows of each kind, such as a class.
pub(super) fn counts(of: &[usize]) -> Vec<usize> {
    let mut counts = vec![0; of.iter().max().map_or(0, |most| most + 1)];
    of.iter().for_each(|kind| counts[*kind] += 1);
    counts
}

#[test]
fn test_rows_are_the_same_share_of_each_class_or_client_where_that_is_asked_for() {
    // 10 rows of a, 40 of b; 30 at the first site, 20 at the second.
    let rows: String = (0..50)
        .map(|row| {
            format!("{row},{row},{},{}\n", if row % 5 < 2 { "s2" } else { "s1" }, if row < 10 { "a" } else { "b" })
        })
        .collect();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.csv");
    std::fs::write(&path, format!("x,z,site,y\n{rows}")).unwrap();
    let load = |split, client: &str, seed| {
        let csv = Csv { client_column: client.into(), split, test_fraction: 0.3, ..table(&path, Reading::default()) };
        load(&DataConfig::from(csv), Path::new(""), &mut ChaCha8Rng::seed_from_u64(seed))
    };
    for seed in 0..20 {
        let by_class = load(TestSplit::ByClass, "site", seed).unwrap();
        let Targets::Classes { labels, .. } = &by_class.test.targets else { panic!() };
        assert_eq!(counts(labels), [3, 12]);
        let by_client = load(TestSplit::ByClient, "site", seed).unwrap();
        assert_eq!(counts(by_client.test.clients.as_ref().unwrap()), [9, 6]);
        assert_eq!(counts(by_client.train.clients.as_ref().unwrap()), [21, 14]);
    }
    // By chance alone the shares differ.
    let of = |seed| match load(TestSplit::Random, "site", seed).unwrap().test.targets {
        Targets::Classes { labels, .. } => counts(&labels),
        _ => panic!(),
    };
    assert!((0..20).any(|seed| of(seed) != [3, 12]));
    let without = Reading { ignore: texts(&["site"]), ..Reading::default() };
    let csv = Csv { split: TestSplit::ByClient, ..table(&path, without) };
    let message = loaded(csv).unwrap_err().to_string();
    assert!(message.contains("data.split") && message.contains("data.client_column"), "{message}");
    let csv = Csv {
        target: "x".into(),
        task: fedstein_datasets::Task::Regression,
        split: TestSplit::ByClass,
        client_column: "site".into(),
        reading: Reading { ignore: texts(&["y"]), ..Reading::default() },
        ..table(&path, Reading::default())
    };
    let message = loaded(csv).unwrap_err().to_string();
    assert!(message.contains("data.split") && message.contains("classes"), "{message}");
}

#[test]
fn features_are_those_of_scikit_learn() {
    let Golden { mean, indicator, .. } = golden();
    for (missing, expected) in [(Missing::Mean, mean), (Missing::Indicator, indicator)] {
        let data = golden_rows(missing, Normalise::None);
        assert_eq!(data.train.feature_names.as_ref(), Some(&expected.names));
        assert_eq!(data.test.feature_names.as_ref(), Some(&expected.names));
        assert_near(&data.train.features, &expected.train, &expected.names);
        assert_near(&data.test.features, &expected.test, &expected.names);
        let scaled = golden_rows(missing, Normalise::Standard);
        let FeatureScale::PerColumn { shift, scale, .. } = scaled.normalisation.features else { panic!() };
        // StandardScaler would divide the features that are 0 or 1, too.
        let are_numbers = scaled.encoding.unwrap().are_numbers();
        assert!(are_numbers.contains(&true) && are_numbers.contains(&false));
        let wanted = expected.scale.iter().zip(are_numbers).map(|(sd, is_number)| if is_number { *sd } else { 1.0 });
        for (found, want) in shift.into_iter().chain(scale).zip(expected.mean.iter().copied().chain(wanted)) {
            assert!((found - want).abs() <= 1e-7 * want.abs(), "{found}, not {want}");
        }
    }
}

#[test]
fn notes_count_filled_cells_and_unknown_texts() {
    let notes = golden_rows(Missing::Mean, Normalise::None).notes;
    let [train, test, unknown] = &notes[..] else { panic!("{notes:?}") };
    assert_eq!(
        train,
        "missing cells of the training rows have the means of the training rows: 1 in column `age`, 1 in column `dose`, 1 in \
         column `ward`, 1 in column `smoker`, 1 in column `admitted`"
    );
    assert!(test.starts_with("missing cells of the test rows have"), "{test}");
    // The wards `south`; the room 11.
    assert_eq!(
        unknown,
        "cells of the test rows with a text that no training row has, whose features are all 0: 1 in column `ward`, 1 in \
         column `room`"
    );
}

/// The card of the golden run.
fn card(missing: Missing) -> ModelCard {
    let data = golden_rows(missing, Normalise::Standard);
    let card = ModelCard::of(&data.train, data.normalisation.clone()).with_encoding(data.encoding.clone());
    serde_json::from_str(&serde_json::to_string(&card).unwrap()).unwrap()
}

fn new_rows(card: &ModelCard, text: &str, reading: &Reading, delimiter: u8) -> Result<NewRows, DataError> {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("new.csv");
    std::fs::write(&path, text).unwrap();
    let beside: Vec<(&str, &str)> = reading.id.iter().map(|column| ("data.id", column.as_str())).collect();
    let options = NewRowsOptions {
        delimiter,
        header: Header::Auto,
        reading,
        ignore: &["outcome"],
        beside: &beside,
        asked: &[],
        client: None,
    };
    read_new_rows(&path, card, &options)
}

#[test]
fn new_rows_have_the_features_of_the_test_rows_and_their_ids() {
    let Golden { test_csv, indicator, mean, .. } = golden();
    for (missing, expected) in [(Missing::Mean, mean), (Missing::Indicator, indicator)] {
        let card = card(missing);
        assert_eq!(card.check(), Ok(()));
        let rows = new_rows(&card, &test_csv, &german(missing), b';').unwrap();
        assert_near(&rows.features, &expected.test, &expected.names);
        let [ids] = &rows.beside[..] else { panic!() };
        assert_eq!((ids.name.as_deref(), &ids.cells[..]), (Some("patient"), &texts(&["q1", "q2", "q3"])[..]));
        assert_eq!(rows.notes.len(), 2, "{:?}", rows.notes);
    }
}

#[test]
fn a_column_with_a_default_text_may_be_left_out_of_a_file_with_a_header() {
    // Names that are numbers: the header is one because of its names.
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("t.csv");
    std::fs::write(&path, "2019,place,2020,y\n1,north,5,0\n2,south,6,1\n3,north,7,0\n4,south,8,1\n").unwrap();
    let reading = Reading { categorical: Categorical::Columns(texts(&["place"])), ..Reading::default() };
    let csv = Csv { target: "y".into(), ..table(&path, reading.clone()) };
    let data = loaded(csv).unwrap();
    let mut card = ModelCard::of(&data.train, data.normalisation);
    card.encoding = data.encoding;
    let read = |card: &ModelCard, text: &str| new_rows(card, text, &reading, b',');
    assert!(read(&card, "2019,2020\n9,10\n").is_err());
    card.encoding.as_mut().unwrap().columns[1].default = Some("south".into());
    assert_eq!(card.check(), Ok(()));
    let without = read(&card, "2020,other,2019\n10,1,9\n").unwrap();
    assert_eq!(without.features.as_slice().unwrap(), [9.0, 0.0, 1.0, 10.0]);
    assert!(without.notes[0].ends_with("has no column `place`: all of its rows are of `south`"), "{:?}", without.notes);
    // A file that has the column says it itself.
    let with = read(&card, "2019,place,2020\n9,north,10\n").unwrap();
    assert_eq!((with.features.as_slice().unwrap(), with.notes.len()), (&[9.0, 1.0, 0.0, 10.0][..], 0));
    card.encoding.as_mut().unwrap().columns[1].default = Some("west".into());
    assert!(card.check().unwrap_err().contains("default text that is none of its categories"));
}

#[test]
fn new_rows_that_do_not_fit_are_refused_by_line_and_column() {
    let good = "patient;age;dose;ward;room;smoker;admitted\n";
    let message = |missing: Missing, row: &str| {
        new_rows(&card(missing), &format!("{good}{row}\n"), &german(missing), b';').unwrap_err().to_string()
    };
    let words = message(Missing::Mean, "q;old;1;west;9;yes;1.1.2024");
    let expected = "new.csv: line 2, column 2 (age): `old` is not a finite number; --missing-values declares cells that \
                    stand for missing values";
    assert!(words.ends_with(expected), "{words}");
    let words = message(Missing::Mean, "q;1.5;1;west;9;yes;1.1.2024");
    assert!(words.ends_with("`1.5` is not a finite number; the run has another data.decimal"), "{words}");
    let words = message(Missing::Mean, "q;1;1;west;9;yes;2024-01-01");
    assert!(words.ends_with("`2024-01-01` is not a date DD.MM.YYYY (data.date_format)"), "{words}");
    let without =
        new_rows(&card(Missing::Mean), "age;dose\n1;2\n", &german(Missing::Mean), b';').unwrap_err().to_string();
    assert!(without.contains("no column `ward`: the header has `age`, `dose`"), "{without}");
    let no_id = "age;dose;ward;room;smoker;admitted\n1;1;west;9;yes;1.1.2024\n";
    let no_id = new_rows(&card(Missing::Mean), no_id, &german(Missing::Mean), b';').unwrap_err().to_string();
    assert!(
        no_id
            .contains("no column `patient` (data.id), which is written beside the predictions; its cells may be blank"),
        "{no_id}"
    );
}

#[test]
fn a_run_that_was_trained_without_missing_cells_refuses_them_in_new_rows() {
    for missing in [Missing::Error, Missing::Drop] {
        let reading = Reading { categorical: Categorical::Columns(texts(&["ward"])), missing, ..Reading::default() };
        let train = "age,ward,y\n1,west,a\n2,east,b\n3,west,a\n4,east,b\n";
        let data = two(train, "age,ward,y\n1,west,a\n", |csv| csv.reading = reading.clone()).unwrap();
        let card = ModelCard::of(&data.train, data.normalisation).with_encoding(data.encoding);
        for (row, column) in [
            ("NA,west", "column 1 (age): `NA` is not a finite number"),
            ("1,", "(ward): an empty cell is not a category"),
        ] {
            let message = new_rows(&card, &format!("age,ward\n{row}\n"), &reading, b',').unwrap_err().to_string();
            assert!(message.contains(column), "{message}");
            assert!(
                message.ends_with(
                    "; a run with data.missing = \"mean\" or \"indicator\" predicts rows with missing cells"
                )
            );
        }
    }
}

#[test]
fn a_header_of_columns_of_texts_alone_is_known_by_its_names() {
    let reading = Reading { categorical: Categorical::Columns(texts(&["ward", "sex"])), ..Reading::default() };
    let data = two("ward,sex,y\nwest,m,a\neast,f,b\n", "ward,sex,y\nwest,f,a\n", |csv| csv.reading = reading.clone());
    let data = data.unwrap();
    let card = ModelCard::of(&data.train, data.normalisation).with_encoding(data.encoding);
    let rows = new_rows(&card, "sex,ward\nf,west\n", &reading, b',').unwrap();
    assert_eq!(rows.features, data.test.features);
    assert_eq!(rows.features, ndarray::array![[0., 1., 1., 0.]]);
}

#[test]
fn without_a_header_ids_are_found_where_all_columns_are_there() {
    let reading = Reading { id: texts(&["0"]), categorical: Categorical::Columns(texts(&["2"])), ..Reading::default() };
    let data = two("7,1,a,0\n8,2,b,1\n", "9,1,b,0\n", |csv| csv.reading = reading.clone()).unwrap();
    assert_eq!(data.test.features, ndarray::array![[1., 0., 1.]]);
    assert_eq!(data.train.feature_names, None);
    let card = ModelCard::of(&data.train, data.normalisation).with_encoding(data.encoding);
    let read = |text: &str| {
        let dir = TempDir::new().unwrap();
        std::fs::write(dir.path().join("new.csv"), text).unwrap();
        let options = NewRowsOptions {
            header: Header::Auto,
            delimiter: b',',
            reading: &reading,
            ignore: &["-1"],
            beside: &[("data.id", "0")],
            asked: &[],
            client: None,
        };
        read_new_rows(&dir.path().join("new.csv"), &card, &options).unwrap()
    };
    let all = read("9,1,b,0\n");
    assert_eq!((all.features, &all.beside[0].cells[..]), (data.test.features.clone(), &texts(&["9"])[..]));
    let features = read("1,b\n");
    assert_eq!((features.features, features.beside.len()), (data.test.features, 0));
    assert!(features.notes[0].contains("column `0` (data.id) cannot be found"), "{:?}", features.notes);
}

#[test]
fn numbers_with_ignored_and_id_columns_have_the_bits_of_the_table_without_them() {
    let rows = |extra: bool| -> String {
        let line = |i: u32| {
            let beside = if extra { format!("note {i},") } else { String::new() };
            let id = if extra { format!(",{}", 1000 + i) } else { String::new() };
            format!("{beside}{},{}{id},{}\n", f64::from(i) / 7.0, i * i, i % 3)
        };
        let header = if extra { "note,a,b,id,y\n" } else { "a,b,y\n" };
        header.to_owned() + &(0..30).map(line).collect::<String>()
    };
    let read = |text: &str, reading: Reading| {
        two(text, "", |csv| {
            (csv.test_path, csv.reading, csv.normalise) = (String::new(), reading, Normalise::Standard);
            (csv.train_limit, csv.test_limit) = (10, 5);
        })
        .unwrap()
    };
    let plain = read(&rows(false), Reading::default());
    let keyed = Reading { ignore: texts(&["note"]), id: texts(&["id"]), ..Reading::default() };
    let beside = read(&rows(true), keyed.clone());
    let filled = read(&rows(true), Reading { missing: Missing::Mean, ..keyed });
    for other in [&beside, &filled] {
        assert_eq!(plain.train.features.mapv(f32::to_bits), other.train.features.mapv(f32::to_bits));
        assert_eq!(plain.test.features.mapv(f32::to_bits), other.test.features.mapv(f32::to_bits));
        assert_eq!((&plain.train.targets, &plain.normalisation), (&other.train.targets, &other.normalisation));
    }
    // The files of a run without columns to encode stay as they are.
    assert!(plain.encoding.is_none() && beside.encoding.is_none() && filled.encoding.is_some());
    let card = ModelCard::of(&beside.train, beside.normalisation).with_encoding(None);
    assert!(!serde_json::to_string(&card).unwrap().contains("encoding"));
}

#[test]
fn what_is_learned_comes_from_training_rows_alone() {
    let train = "x,k,y\n1,b,0\n,a,1\n5,b,1\n";
    let of = |test: &str| {
        two(train, test, |csv| {
            csv.reading = Reading {
                categorical: Categorical::Columns(texts(&["k"])),
                missing: Missing::Mean,
                ..Reading::default()
            };
        })
        .unwrap()
    };
    let (one, other) = (of("x,k,y\n100,zz,0\n"), of("x,k,y\n,a,0\n"));
    assert_eq!(one.encoding, other.encoding);
    assert_eq!(one.train.features, other.train.features);
    assert_eq!(one.test.features, ndarray::array![[100., 0., 0.]]);
    assert_eq!(other.test.features, ndarray::array![[3., 1., 0.]]);
    let Encoding { columns } = one.encoding.unwrap();
    assert_eq!((&columns[1].categories, columns[0].fill.as_deref()), (&texts(&["a", "b"]), Some(&[3.0][..])));
}

#[test]
fn columns_of_texts_are_found_by_their_content() {
    let reading = Reading { categorical: Categorical::Rule(auto()), missing: Missing::Indicator, ..Reading::default() };
    // `mixed` has its first text in the last row, and `empty` has none.
    let train = "mixed,x,empty,y\n1,1.5,NA,0\n2,NA,NA,1\nwest,3,NA,0\n";
    let data =
        two(train, "x,y,empty,mixed\n2,1,,9\n", |csv| (csv.target, csv.reading) = ("y".into(), reading)).unwrap();
    let names = ["mixed=1", "mixed=2", "mixed=west", "x", "x is missing", "empty", "empty is missing"];
    assert_eq!(data.train.feature_names, Some(texts(&names)));
    assert_eq!(data.test.features, ndarray::array![[0., 0., 0., 2., 0., 0., 1.]]);
}

fn auto() -> fedstein_datasets::columns::Rule {
    fedstein_datasets::columns::Rule::Auto
}

#[test]
fn rows_with_a_missing_cell_or_target_are_left_out_and_counted() {
    let reading = Reading { missing: Missing::Drop, ..Reading::default() };
    let train = "a,b,y\n1,2,u\n3,?,w\n4,5,\n6,7,w\n";
    let data = two(train, "a,b,y\n1,2,u\nnull,4,w\n", |csv| csv.reading = reading.clone()).unwrap();
    assert_eq!(data.train.features, ndarray::array![[1., 2.], [6., 7.]]);
    assert_eq!(data.test.features, ndarray::array![[1., 2.]]);
    assert!(data.encoding.is_none());
    assert!(data.notes[0].starts_with("data.missing = \"drop\" leaves out 2 of the 4 rows of"), "{:?}", data.notes);
    assert!(data.notes[1].contains("1 of the 2 rows"), "{:?}", data.notes);
    let message = complaint("a,y\n,0\nNA,1\n", reading);
    assert!(
        message.ends_with("no row is left: 2 rows have a missing cell, and data.missing = \"drop\" leaves them out"),
        "{message}"
    );
}

#[test]
fn a_test_file_may_have_the_client_as_a_feature_by_its_place() {
    let (train, test) = ("1,2,b,0\n2,4,a,1\n3,3,b,0\n4,5,a,1\n", "5,1,a,1\n");
    for (header, column) in [("x,z,site,y\n", "2"), ("x,z,site,y\n", "-2"), ("", "2"), ("", "-2")] {
        let data = two(&format!("{header}{train}"), &format!("{header}{test}"), |csv| {
            csv.client_column = column.into();
            csv.reading.categorical = Categorical::Columns(texts(&[column]));
        });
        let data = data.unwrap_or_else(|error| panic!("{column} under `{header}`: {error}"));
        assert_eq!(data.test.features, ndarray::array![[5.0, 1.0, 1.0, 0.0]], "{column} under `{header}`");
    }
}

#[test]
fn rows_without_a_target_are_left_out_whatever_becomes_of_missing_features() {
    let train = "a,b,y\n1,2,u\n3,?,w\n4,5,\n?,?,NA\n6,7,w\n";
    let with = |missing| Reading { missing, missing_target: MissingTarget::Drop, ..Reading::default() };
    let read = |missing| two(train, "a,b,y\n1,2,u\n4,4,?\n", |csv| csv.reading = with(missing)).unwrap();
    let data = read(Missing::Mean);
    // The mean of 2 and 7: rows without a target count nowhere.
    assert_eq!(data.train.features, ndarray::array![[1., 2.], [3., 4.5], [6., 7.]]);
    assert_eq!(data.test.features, ndarray::array![[1., 2.]]);
    assert!(
        data.notes[0].starts_with("data.missing_target = \"drop\" leaves out 2 of the 5 rows of"),
        "{:?}",
        data.notes
    );
    assert!(data.notes[1].contains("1 of the 2 rows"), "{:?}", data.notes);
    let data = read(Missing::Drop);
    assert_eq!(data.train.features, ndarray::array![[1., 2.], [6., 7.]]);
    assert!(data.notes[1].starts_with("data.missing = \"drop\" leaves out 1 of the 5 rows of"), "{:?}", data.notes);
    // A missing feature of a row that is kept is refused as ever; a row that is left out is not looked at.
    let message = complaint("a,y\nold,\n,1\n2,0\n", with(Missing::Error));
    assert!(message.contains("line 3, column 1 (a): an empty cell is not a finite number"), "{message}");
    let message = complaint("a,y\n1,\n2,?\n", with(Missing::Error));
    assert!(
        message.ends_with("no row is left: 2 rows have no target, and data.missing_target = \"drop\" leaves them out")
    );
    let message = two("a,y\n1,2\n3,NA\n", "a,y\n1,2\n", |csv| csv.task = fedstein_datasets::Task::Regression);
    let message = message.unwrap_err().to_string();
    assert!(message.contains("line 3, column 2 (y): `NA` is not a finite number; data.missing_target"), "{message}");
}

#[test]
fn too_many_texts_are_no_categories() {
    let rows: String = (0..1002).map(|i| format!("name {i},{}\n", i % 2)).collect();
    let reading = Reading { categorical: Categorical::Columns(texts(&["x"])), ..Reading::default() };
    let message = complaint(&format!("x,y\n{rows}"), reading);
    assert!(message.contains("column `x` holds more than 1000 different texts"), "{message}");
    let rows: String = (0..60).map(|i| format!("name {i},{}\n", i % 2)).collect();
    let reading = Reading { categorical: Categorical::Rule(auto()), ..Reading::default() };
    let message = complaint(&format!("x,y\n{rows}"), reading);
    assert!(message.contains("column `x` holds 30 different texts in 30 rows; name it in data.id"), "{message}");
}

/// A lab value such as `<0.5`, a forgotten `data.decimal` or `data.date` must not become hundreds of categories.
#[test]
fn a_column_of_measured_values_with_another_cell_is_no_category() {
    let auto = || Reading { categorical: Categorical::Rule(auto()), ..Reading::default() };
    let table = |cell: &dyn Fn(usize) -> String| {
        (0..60).fold("x,y\n".to_owned(), |table, i| format!("{table}{},{}\n", cell(i), i % 2))
    };
    let limit = table(&|i| if i == 16 { "<0.5".into() } else { format!("{i}.5") });
    let message = complaint(&limit, auto());
    assert!(message.contains("line 18, column 1 (x): `<0.5`") && message.contains("data.ignore"), "{message}");
    let quoted = table(&|i| format!("\"{i},5\""));
    let message = complaint(&quoted, auto());
    assert!(message.contains("line 2") && message.contains("data.decimal = \",\" reads it"), "{message}");
    let comma = Reading { decimal: Decimal::Comma, ..auto() };
    let message = complaint(&table(&|i| format!("{i}.5")), comma);
    assert!(message.contains("data.decimal = \".\" reads it"), "{message}");
    let message = complaint(&table(&|i| format!("2024-{:02}-{:02}", 1 + i / 28, 1 + i % 28)), auto());
    assert!(message.contains("data.date = [\"x\"] reads it"), "{message}");
    // A few codes are categories, and so are numbers among more texts.
    let codes = table(&|i| if i % 7 == 0 { "west".into() } else { format!("{}", i % 12) });
    let read = |table: &str| two(table, table, |csv| (csv.target, csv.reading) = ("y".into(), auto()));
    assert_eq!(read(&codes).unwrap().train.feature_names.unwrap().len(), 13);
    let mostly = table(&|i| if i % 5 < 3 { "west".into() } else { format!("{i}") });
    assert!(read(&mostly).is_ok());
}

#[test]
fn labels_with_a_decimal_comma_have_a_point_and_a_real_target_is_read_with_it() {
    let data = two("x;y\n1,5;1,0\n2;9\n", "x;y\n0,25;9\n", |csv| {
        (csv.delimiter, csv.reading.decimal) = (";".into(), Decimal::Comma);
    });
    let Targets::Classes { names, .. } = data.unwrap().train.targets else { panic!() };
    assert_eq!(names, texts(&["1.0", "9"]));
    let data = two("x;y\n1,5;1,25\n2;9\n", "x;y\n0,25;9\n", |csv| {
        (csv.delimiter, csv.reading.decimal) = (";".into(), Decimal::Comma);
        csv.task = fedstein_datasets::Task::Regression;
    });
    let data = data.unwrap();
    assert_eq!(data.train.features, ndarray::array![[1.5], [2.0]]);
    assert_eq!(data.train.targets, Targets::Real { values: vec![1.25, 9.0] });
}

#[test]
fn an_encoding_from_elsewhere_is_checked() {
    let good = card(Missing::Indicator);
    let wrong = |change: &dyn Fn(&mut Encoding)| {
        let mut card = good.clone();
        change(card.encoding.as_mut().unwrap());
        card.check().unwrap_err()
    };
    assert!(wrong(&|encoding| drop(encoding.columns.pop())).starts_with("`encoding` gives 13 features, not 15"));
    assert!(wrong(&|encoding| encoding.columns[0].categories = texts(&["a"])).contains("has categories and is none"));
    assert!(wrong(&|encoding| encoding.columns[2].categories[1] = "east".into()).contains("has a category twice"));
    assert!(wrong(&|encoding| encoding.columns[2].fill = Some(vec![0.0])).contains("for another number of features"));
    assert!(wrong(&|encoding| encoding.columns[0].fill = Some(vec![1e39])).contains("not finite"));
    assert!(wrong(&|encoding| encoding.columns[0].fill = None).contains("has an indicator and no `fill`"));
    assert!(good.encoding.unwrap().apply(Array2::zeros((1, 2)).view(), &BTreeMap::new()).is_err());
}
