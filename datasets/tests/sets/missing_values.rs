//! Values that a config declares missing: the table is read as the same one with blank cells.

use super::tables::{loaded, table};
use fedstein_datasets::columns::{Categorical, Missing, MissingTarget, MissingValues, Reading, Rule};
use fedstein_datasets::format::header::Header;
use fedstein_datasets::format::new_rows::{NewRowsOptions, read_new_rows};
use fedstein_datasets::source::Csv;
use fedstein_datasets::{DataError, ModelCard, Targets, Task, TrainTest};

/// Visits: 999 is an unknown age, `.` and -9 an unknown dose, `unknown` an unknown ward, and 999 a known weight.
const CODED: &str = "age,dose,ward,weight,y\n40,1.5,north,70,no\n999,-9,south,999,yes\n52,.,Unknown,82,yes\n\
                     61,2.5,north,90,unknown\n33,0.5,south,61,no\n999.0,-9.00,north,77,yes\n45,1,south,70,yes\n";
const BLANK: &str = "age,dose,ward,weight,y\n40,1.5,north,70,no\n,,south,999,yes\n52,,,82,yes\n61,2.5,north,90,\n\
                     33,0.5,south,61,no\n,,north,77,yes\n45,1,south,70,yes\n";

fn list(cells: &[&str]) -> Vec<String> {
    cells.iter().map(ToString::to_string).collect()
}

/// The codes of each column.
fn codes() -> MissingValues {
    let columns: [(&str, &[&str]); 4] =
        [("age", &["999"]), ("dose", &["-9", "."]), ("ward", &["unknown"]), ("y", &["unknown"])];
    MissingValues::InColumns(columns.into_iter().map(|(name, cells)| (name.to_owned(), list(cells))).collect())
}

/// Columns of texts are found by their content.
fn reading(missing: Missing, missing_values: MissingValues) -> Reading {
    let categorical = Categorical::Rule(Rule::Auto);
    Reading { missing, missing_target: MissingTarget::Drop, missing_values, categorical, ..Reading::default() }
}

fn read(text: &str, reading: Reading) -> Result<TrainTest, DataError> {
    let dir = tempfile::TempDir::new().unwrap();
    std::fs::write(dir.path().join("visits.csv"), text).unwrap();
    let mut csv = table(&dir.path().join("visits.csv"), reading);
    std::fs::write(dir.path().join("test.csv"), text).unwrap();
    csv.test_path = dir.path().join("test.csv").display().to_string();
    loaded(csv)
}

#[test]
fn declared_values_are_read_as_blank_cells() {
    for missing in [Missing::Mean, Missing::Indicator, Missing::Drop] {
        let coded = read(CODED, reading(missing, codes())).unwrap();
        let blank = read(BLANK, reading(missing, MissingValues::default())).unwrap();
        assert_eq!(coded.train.features, blank.train.features, "{missing:?}");
        assert_eq!(coded.test.features, blank.test.features, "{missing:?}");
        assert_eq!(coded.train.feature_names, blank.train.feature_names);
        assert_eq!(coded.train.targets, blank.train.targets);
        assert_eq!(coded.notes.len(), blank.notes.len(), "{:?}", coded.notes);
    }
}

#[test]
fn a_list_holds_for_every_column() {
    let everywhere = MissingValues::Everywhere(list(&["999", "-9", ".", "unknown"]));
    let coded = read(CODED, reading(Missing::Indicator, everywhere)).unwrap();
    let names = coded.train.feature_names.unwrap();
    assert!(names.contains(&"weight is missing".to_owned()), "{names:?}");
    // A file without a header has no names of columns, but may have codes.
    let without = |text: &str| text.split_once('\n').unwrap().1.to_owned();
    let [list_, named] = [MissingValues::Everywhere(list(&["999"])), codes()].map(|values| {
        let text = without(CODED).replace(['.', '-'], "1").replace("Unknown", "north");
        read(&text, Reading { categorical: Categorical::Columns(list(&["2"])), ..reading(Missing::Mean, values) })
    });
    assert!(list_.is_ok(), "{list_:?}");
    let message = named.unwrap_err().to_string();
    assert!(
        message.contains("data.missing_values names the column `age`, and the file has no header; a list"),
        "{message}"
    );
}

#[test]
fn test_rows_without_a_header_have_the_missing_values_of_each_column() {
    let dir = tempfile::TempDir::new().unwrap();
    let path = |name: &str| dir.path().join(name);
    std::fs::write(path("train.csv"), "a,ward,y\n1,3,1.5\n2,4,-9\n-9,3,2.5\n4,4,3.5\n").unwrap();
    std::fs::write(path("test.csv"), "1,3,-9.0\n-9,9,0.5\n5,3,-1\n").unwrap();
    let declared = [("y", "-9"), ("ward", "9")].map(|(name, cell)| (name.to_owned(), list(&[cell])));
    let reading = Reading {
        missing_values: MissingValues::InColumns(declared.into()),
        missing_target: MissingTarget::Drop,
        group_column: "1".into(),
        ..Reading::default()
    };
    let csv = |reading| {
        let csv = table(&path("train.csv"), reading);
        let test_path = path("test.csv").display().to_string();
        loaded(Csv { target: "-1".into(), task: Task::Regression, test_path, ..csv })
    };
    // -9 is missing as a target, a feature may be so; 9 is no group.
    let message = csv(reading.clone()).unwrap_err().to_string();
    assert!(message.contains("test.csv: line 2, column 2") && message.contains("not a group"), "{message}");
    std::fs::write(path("test.csv"), "1,3,-9.0\n-9,4,0.5\n5,3,-1\n").unwrap();
    let data = csv(reading).unwrap();
    assert_eq!(data.test.features.column(0).to_vec(), [-9.0, 5.0]);
    let Targets::Real { values } = &data.test.targets else { panic!("real targets") };
    assert_eq!((data.train.rows(), &values[..]), (3, &[0.5, -1.0][..]));
}

#[test]
fn new_rows_have_the_missing_values_of_the_training_rows() {
    let data = read(CODED, reading(Missing::Indicator, codes())).unwrap();
    let card = ModelCard::of(&data.train, data.normalisation.clone()).with_encoding(data.encoding.clone());
    let features = |text: &str, header: bool| {
        let dir = tempfile::TempDir::new().unwrap();
        let path = dir.path().join("new.csv");
        let text = if header { text.to_owned() } else { text.split_once('\n').unwrap().1.to_owned() };
        std::fs::write(&path, text).unwrap();
        let reading = reading(Missing::Indicator, codes());
        let options = NewRowsOptions {
            header: Header::Auto,
            delimiter: b',',
            reading: &reading,
            ignore: &["y"],
            beside: &[],
            asked: &[],
            client: None,
        };
        read_new_rows(&path, &card, &options).unwrap().features
    };
    // Without the target, the columns in another order, and without a header.
    let coded = "weight,ward,dose,age\n999,south,-9,999\n82,UNKNOWN,.,52\n";
    let blank = "weight,ward,dose,age\n999,south,,\n82,,,52\n";
    let ordered = "age,dose,ward,weight\n999,-9,south,999\n52,.,UNKNOWN,82\n";
    assert_eq!(features(coded, true), features(blank, true));
    assert_eq!(features(ordered, false), features(blank, true));
}

#[test]
fn declared_values_that_are_not_accepted_are_refused_as_missing() {
    let message = |text: &str, reading: Reading| read(text, reading).unwrap_err().to_string();
    let features = message(CODED, Reading { missing: Missing::Error, ..reading(Missing::Mean, codes()) });
    assert!(
        features.contains(
            "line 3, column 1 (age): `999` is not a finite number other than those of data.missing_values; data.missing = "
        ),
        "{features}"
    );
    let target = message(CODED, Reading { missing_target: MissingTarget::Error, ..reading(Missing::Mean, codes()) });
    assert!(
        target.contains(
            "line 5, column 5 (y): `unknown` is not a label other than those of data.missing_values; data.missing_t"
        ),
        "{target}"
    );
    // A group that nobody knows is none, as where its cell is blank.
    let text = CODED.replace("unknown", "no");
    let group =
        Reading { group_column: "weight".into(), ..reading(Missing::Mean, MissingValues::Everywhere(list(&["82"]))) };
    let group = message(&text.replace(",.,", ",1,"), group);
    assert!(group.contains("line 4, column 4 (weight): `82` is not a group"), "{group}");
    let absent = MissingValues::InColumns([("agee".to_owned(), list(&["999"]))].into());
    let absent = message(CODED, reading(Missing::Mean, absent));
    assert!(absent.contains("no column `agee` (data.missing_values): the header has `age`"), "{absent}");
}
