//! A user's own table through the public interface: the result of reading, and each error message.

use fedstein_datasets::columns::{Categorical, Missing, Rule};
use fedstein_datasets::format::csv::Task;
use fedstein_datasets::format::header::Header;
use fedstein_datasets::source::{Csv, TestSplit};
use fedstein_datasets::{
    AskedColumn, DataConfig, DataError, Dataset, FeatureScale, MissingAnswer, ModelCard, NewRows, NewRowsOptions,
    Normalisation, Normalise, Reading, Targets, TrainTest, load, read_features, read_new_rows,
};
use flate2::{Compression, write::GzEncoder};
use ndarray::{Array2, array};
use rand::{SeedableRng, rngs::ChaCha8Rng};
use std::io::Write;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A table with this text and the default config, which `change` modifies.
fn read(text: &str, change: impl FnOnce(&mut DataConfig, &Path)) -> Result<TrainTest, DataError> {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("t.csv");
    std::fs::write(&path, text).unwrap();
    let mut config = DataConfig::Csv(Csv {
        path,
        test_path: String::new(),
        target: "-1".into(),
        header: Header::Auto,
        task: Task::Classification,
        positive: String::new(),
        delimiter: ",".into(),
        client_column: String::new(),
        reading: Reading::default(),
        normalise: Normalise::None,
        test_fraction: 0.5,
        split: TestSplit::Random,
        leave_out: vec![],
        train_limit: 0,
        test_limit: 0,
    });
    change(&mut config, dir.path());
    load(&config, dir.path(), &mut ChaCha8Rng::seed_from_u64(1))
}

macro_rules! set {
    ($($key:ident = $value:expr),*) => {
        |config: &mut DataConfig, _: &Path| {
            if let DataConfig::Csv(config) = config { $(config.$key = $value;)* }
        }
    };
}

fn complaint(text: &str, change: impl FnOnce(&mut DataConfig, &Path)) -> String {
    let message = read(text, change).unwrap_err().to_string();
    assert!(message.contains("t.csv"), "{message}");
    message
}

/// All rows, train then test, as `(features, label)`, sorted.
fn all_rows(data: &TrainTest) -> Vec<(Vec<f32>, usize)> {
    let mut rows: Vec<_> = [&data.train, &data.test]
        .iter()
        .flat_map(|half| half.features.rows().into_iter().map(|r| r.to_vec()).zip(half.labels().unwrap().to_vec()))
        .collect();
    rows.sort_by(|a, b| a.0[0].total_cmp(&b.0[0]));
    rows
}

#[test]
fn the_positive_class_of_two_is_the_second_and_rows_keep_their_classes() {
    let text = "x,outcome\n1,readmitted\n2,not readmitted\n3,readmitted\n4,not readmitted\n";
    let classes = |data: &TrainTest| {
        let Targets::Classes { names, .. } = &data.train.targets else { panic!() };
        all_rows(data).into_iter().map(|(_, label)| names[label].clone()).collect::<Vec<_>>()
    };
    let plain = read(text, set!(target = "outcome".into())).unwrap();
    let chosen = read(text, set!(target = "outcome".into(), positive = "not readmitted".into())).unwrap();
    let [Targets::Classes { names, .. }, Targets::Classes { names: swapped, .. }] =
        [&plain.train.targets, &chosen.train.targets]
    else {
        panic!()
    };
    assert_eq!(
        (&names[..], &swapped[..]),
        (&["not readmitted".into(), "readmitted".into()][..], &["readmitted".into(), "not readmitted".into()][..])
    );
    assert_eq!(classes(&plain), classes(&chosen));
    let unknown = read(text, set!(target = "outcome".into(), positive = "yes".into())).unwrap_err().to_string();
    assert_eq!(
        unknown,
        "data.positive = \"yes\": is not a class of the target, which has `not readmitted` and `readmitted`"
    );
    let regression = set!(task = Task::Regression, positive = "1".into());
    let message = read("x,y\n1,1\n2,0\n", regression).unwrap_err().to_string();
    assert!(message.ends_with("is for `data.task = \"classification\"`"), "{message}");
}

#[test]
fn headers_quotes_spaces_and_other_delimiters_are_read() {
    let data = read(
        "\u{feff}\"x;1\"; kind ;x2\r\n1;\"a, b\" ;2\r\n\r\n3;c;4\r\n",
        set!(target = "kind".into(), delimiter = ";".into()),
    )
    .unwrap();
    assert_eq!(all_rows(&data), [(vec![1., 2.], 0), (vec![3., 4.], 1)]);
    let Targets::Classes { names, .. } = &data.train.targets else { panic!() };
    assert_eq!(names, &["a, b", "c"]);
    assert_eq!((data.train.name.as_str(), &data.train.feature_shape[..]), ("t", &[2][..]));
}

#[test]
fn a_header_is_recognised_or_configured() {
    let rows = |text: &str, said| all_rows(&read(text, set!(header = said)).unwrap()).len();
    assert_eq!(rows("a,b,y\n1,2,0\n3,4,1\n", Header::Auto), 2);
    assert_eq!(rows(",b,y\n1,2,0\n3,4,1\n", Header::Auto), 2);
    assert_eq!(rows("1,2,0\n3,4,1\n5,6,1\n", Header::Auto), 3);
    assert_eq!(rows("1,2,x\n3,4,y\n5,6,y\n", Header::Auto), 3);
    // As pandas writes a table without names. The first line of the last one does not count from 0.
    assert_eq!(rows(",0,1,2\n0,5,6,1\n1,7,8,0\n", Header::Auto), 2);
    let fill = |text: &str| {
        let reading = Reading { missing: Missing::Mean, ..Reading::default() };
        all_rows(&read(text, set!(reading = reading)).unwrap()).len()
    };
    assert_eq!(fill(",0,1,2\n0,5,6,1\n1,7,8,0\n"), 2);
    assert_eq!(fill(",0,1,3\n,5,6,1\n1,7,8,0\n"), 3);
    assert_eq!(rows("1,2,3\n3,4,1\n5,6,0\n", Header::Yes), 2);
    assert!(
        complaint("a,2,0\n3,4,1\n", set!(header = Header::No)).contains("line 1, column 1: `a` is not a finite number")
    );
    let mixed = complaint("a,2,0\n3,4,1\n", |_, _| ());
    assert!(mixed.contains("line 1, column 1: `a`") && mixed.contains("if this line is a header, say so"), "{mixed}");
    assert!(complaint("NA,?,0\n3,4,1\n", |_, _| ()).contains("line 1, column 1: `NA` is not"));
}

#[test]
fn numeric_labels_are_sorted_as_numbers_and_spellings_are_one() {
    let data = read("1,10\n2,9\n3,9.0\n4,-1\n", |_, _| ()).unwrap();
    let Targets::Classes { names, .. } = &data.train.targets else { panic!() };
    assert_eq!(names, &["-1", "9", "10"]);
    assert_eq!(all_rows(&data).iter().map(|row| row.1).collect::<Vec<_>>(), [2, 1, 1, 0]);
}

#[test]
fn codes_and_long_ids_of_one_value_in_double_precision_are_not_one() {
    let ids = ["900000000000003019", "900000000000003029"];
    for (a, b) in [("10", "1E1"), ("007", "7"), (ids[0], ids[1])] {
        let rows: String = (0..8).map(|i| format!("{},{i},{}\n", [a, b][i % 2], [b, a][i / 4])).collect();
        let change = set!(target = "y".into(), client_column = "site".into());
        let data = read(&format!("site,x,y\n{rows}"), change).unwrap();
        let Targets::Classes { names, .. } = &data.train.targets else { panic!() };
        assert_eq!((&names[..], data.train.client_names.as_deref().unwrap()), (&[a.into(), b.into()][..], &names[..]));
        assert_eq!(all_rows(&data).iter().map(|row| row.1).collect::<Vec<_>>(), [1, 1, 1, 1, 0, 0, 0, 0]);
    }
}

#[test]
fn regression_targets_keep_their_scale_and_the_scale_is_that_of_the_training_rows() {
    let text: String = (0..10).map(|i| format!("{i},7,{}\n", 100 * i)).collect();
    let change = set!(task = Task::Regression, normalise = Normalise::Auto, test_fraction = 0.3);
    let data = read(&text, change).unwrap();
    let Targets::Real { values } = &data.train.targets else { panic!() };
    let mean = values.iter().sum::<f64>() / 7.0;
    let scale = data.normalisation.target.unwrap();
    assert!((scale.mean - mean).abs() < 1e-9 && values.iter().all(|v| v % 100.0 == 0.0));
    // x is y / 100, so its scale is y's; the constant column is centred.
    let FeatureScale::PerColumn { shift, scale: sds, .. } = &data.normalisation.features else { panic!() };
    assert!((shift[0] - mean / 100.0).abs() < 1e-6 && (sds[0] - scale.sd / 100.0).abs() < 1e-6);
    assert_eq!((shift[1], sds[1]), (7.0, 1.0));
    assert!(data.test.features.column(1).iter().all(|&x| x == 0.0));
}

#[test]
fn test_rows_do_not_change_what_is_learned_from_training_rows() {
    let scale_with = |test: &str| {
        read("1,0\n2,1\n3,1\n", |config, dir| {
            std::fs::write(dir.join("test.csv"), test).unwrap();
            let test = dir.join("test.csv").display().to_string();
            set!(test_path = test, normalise = Normalise::Minmax)(config, dir);
        })
        .unwrap()
    };
    let (one, other) = (scale_with("5,0\n"), scale_with("-100,1\n7,0\n"));
    assert_eq!(one.normalisation, other.normalisation);
    assert_eq!(one.train.features, other.train.features);
    assert_eq!(other.test.features, array![[-50.5], [3.0]]);
}

#[test]
fn the_training_file_cannot_be_the_test_file_under_whatever_name() {
    for name in ["t.csv", "./t.csv"] {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("t.csv"), "1,0\n2,1\n").unwrap();
        let mut config = serde_json::from_str::<DataConfig>(
            r#"{"kind":"csv","path":"","test_path":"","target":"-1","header":"auto","task":"classification","positive":"","delimiter":",","client_column":"","ignore":[],"id":[],"group_column":"","categorical":[],"boolean":[],"date":[],"date_format":"YYYY-MM-DD","decimal":".","missing_values":[],"missing":"error","missing_target":"error","normalise":"none","test_fraction":0.5,"split":"random","leave_out":[],"train_limit":0,"test_limit":0}"#,
        )
        .unwrap();
        let DataConfig::Csv(Csv { path, test_path, .. }) = &mut config else { panic!() };
        (*path, *test_path) = (dir.path().join("t.csv"), dir.path().join(name).display().to_string());
        let message = load(&config, dir.path(), &mut ChaCha8Rng::seed_from_u64(1)).unwrap_err().to_string();
        assert!(message.contains("data.test_path") && message.contains("the file of the training rows"), "{message}");
    }
}

#[test]
fn a_separate_test_file_shares_classes_and_must_have_the_same_columns() {
    let with = |train: &str, test: &str| {
        read(train, |config, dir| {
            std::fs::write(dir.join("test.csv"), test).unwrap();
            let test = dir.join("test.csv").display().to_string();
            set!(test_path = test)(config, dir);
        })
    };
    let data = with("a,y\n1,u\n2,w\n4,v\n", "a,y\n3,v\n").unwrap();
    assert_eq!((data.train.labels().unwrap(), data.test.labels().unwrap()), (&[0, 2, 1][..], &[1][..]));
    let message = with("a,y\n1,u\n2,w\n", "a,y\n3,v\n4,w\n").unwrap_err().to_string();
    assert!(message.contains("test.csv") && message.contains("the class `v` in 1 rows"), "{message}");
    let message = with("a,y\n1,u\n2,w\n", "b,y\n3,v\n").unwrap_err().to_string();
    assert!(message.contains("test.csv: it has no column `a` of the training file"), "{message}");
    // Columns in another order are found by name.
    let swapped = with("a,b,y\n1,10,u\n2,20,w\n3,30,u\n", "b,a,y\n40,4,w\n").unwrap();
    let same = with("a,b,y\n1,10,u\n2,20,w\n3,30,u\n", "a,b,y\n4,40,w\n").unwrap();
    assert_eq!((swapped.test.features, swapped.test.feature_names), (same.test.features, same.test.feature_names));
    let message = with("a,b,a,y\n1,2,3,u\n4,5,6,w\n", "a,y\n3,u\n").unwrap_err().to_string();
    assert!(message.contains("two columns are named `a`; give each feature a name of its own"), "{message}");
    let message = with("1,0\n2,1\n", "1,2,0\n").unwrap_err().to_string();
    assert!(message.contains("test.csv: 2 feature columns, the training file has 1"), "{message}");
}

#[test]
fn natural_clients_are_numbered_and_are_not_a_feature() {
    let text = "site,x,y\nb,1,0\na,2,1\nb,3,0\na,4,1\n";
    let data = read(text, set!(client_column = "site".into(), test_fraction = 0.25)).unwrap();
    assert_eq!(data.train.width(), 1);
    for (x, client) in data.train.features.iter().zip(data.train.clients.as_ref().unwrap()) {
        assert_eq!(*client, usize::from(*x as usize % 2 == 1), "b is client 1");
    }
}

#[test]
fn natural_clients_are_a_feature_where_they_are_named_as_one() {
    let text = "site,x,y\nb,1,0\na,2,1\nb,3,0\na,4,1\n";
    let reading = |categorical| Reading { categorical, ..Reading::default() };
    let named = || Categorical::Columns(vec!["site".into()]);
    let with = |reading| set!(client_column = "site".into(), test_fraction = 0.25, reading = reading);
    let data = read(text, with(reading(named()))).unwrap();
    assert_eq!(data.train.feature_names.as_deref().unwrap(), ["site=a", "site=b", "x"]);
    let clients = data.train.clients.as_ref().unwrap();
    for (row, client) in data.train.features.outer_iter().zip(clients) {
        assert_eq!((row[0], row[1]), if *client == 0 { (1.0, 0.0) } else { (0.0, 1.0) });
    }
    // Columns of texts are found, that of the client is not taken for one.
    let data = read(text, with(reading(Categorical::Rule(Rule::Auto)))).unwrap();
    assert_eq!(data.train.feature_names.unwrap(), ["x"]);
    let not_known = complaint(&text.replace("b,", "NA,"), with(reading(named())));
    assert!(not_known.contains("`NA` is not a client; as a feature (data.categorical) it needs a name"), "{not_known}");
    for again in [&["site", "site"][..], &["site", "0"], &["0"]] {
        let again = Categorical::Columns(again.iter().map(ToString::to_string).collect());
        assert!(complaint(text, with(reading(again))).contains("column `site` is named"));
    }
    let twice = complaint(text, with(Reading { ignore: vec!["site".into()], ..reading(named()) }));
    assert!(twice.contains("column `site` is named by data.client_column and by data.ignore"), "{twice}");
}

#[test]
fn damaged_tables_are_refused_by_line_and_column() {
    assert!(complaint("1,2,0\n3,1\n", |_, _| ()).contains("line 2: 2 columns, expected 3"));
    assert!(complaint("1,2,0\r\n\r\n3,4,5,1\r\n", |_, _| ()).contains("line 3: 4 columns, expected 3"));
    let named = complaint("a,b,y\n1,2,0\n\"3\",\"x\n2\",1\n4,5,0\n", |_, _| ());
    assert!(named.contains("line 3, column 2 (b): `x\\n2` is not a finite number"), "{named}");
    assert!(
        complaint("1,2,0\n3,4,0\n\n\n5,nan,1", |_, _| ()).contains("line 5, column 2: `nan` is not a finite number")
    );
    assert!(complaint("1,2,0\n-inf,4,1\n", |_, _| ()).contains("line 2, column 1: `-inf`"));
    assert!(
        complaint("1,2,0\n1e39,4,1\n", |_, _| ()).contains("`1e39` is not a number below 3.4e38; data.missing_values")
    );
    assert!(complaint("1,2,0\n3,,1\n", |_, _| ()).contains("line 2, column 2: an empty cell"));
    assert!(complaint("1,2,0\n3,4,\n", |_, _| ()).contains("line 2, column 3: an empty cell is not a label"));
    assert!(complaint("", |_, _| ()).contains("no data rows"));
    assert!(complaint("a,b,y\n", |_, _| ()).contains("no data rows"));
    let change = set!(task = Task::Regression);
    let large = complaint("1,2,0.5\n3,4,-1e200\n", set!(task = Task::Regression));
    assert!(large.contains("line 2, column 3: `-1e200` is not a number below 3.4e38"), "{large}");
    assert!(
        complaint("1,2,0.5\n3,4,\n", set!(task = Task::Regression)).contains("an empty cell is not a finite number")
    );
    assert!(complaint("1,2,0\n3,4,high\n", change).contains("line 2, column 3: `high` is not a finite number"));
}

#[test]
fn a_quote_that_is_not_closed_is_refused_with_the_line_where_it_opens() {
    let rows = "1,u,a\n2,w,b\n".repeat(300);
    for (text, place) in [
        (format!("x,y,note\n{rows}3,u,\"3 drops\n{rows}"), "line 602, column 3 (note)"),
        (format!("x,y,note\n{rows}3,\"u,a\n{rows}"), "line 602, column 2 (y)"),
        (format!("x,y,note\r\n{rows}3,\"u\nv\",\"a\n{rows}"), "line 603, column 3 (note)"),
        (format!("x,\"y,note\n{rows}"), "line 1, column 2"),
        // Nothing follows it.
        (format!("x,y,note\n{rows}3,u,\""), "line 602, column 3 (note)"),
    ] {
        let reading = Reading { ignore: vec!["note".into()], ..Reading::default() };
        let message = complaint(&text, set!(target = "y".into(), reading = reading));
        let expected = format!("t.csv: {place}: the quote that opens here is not closed; close it, or leave it out");
        assert!(message.ends_with(&expected), "{message}");
        // In new rows as well.
        let dir = TempDir::new().unwrap();
        let message = read_features(&file(&dir, &text), 1, None, b',', &["y", "note"]).unwrap_err().to_string();
        assert!(message.contains("the quote that opens here is not closed"), "{message}");
    }
    let note = |text: &str| {
        let data = read(&format!("x,y\n1,{text}\n2,u\n"), set!(target = "y".into())).unwrap();
        let Targets::Classes { names, .. } = data.train.targets else { panic!() };
        names
    };
    // A cell that goes on after its closing quote: the quote of a line above was closed by that of another cell.
    let message = complaint("a,b\n1,\"2\n3,4\n\"5, 6\",7\n", |_, _| ());
    assert!(message.contains("t.csv: line 2, column 2"), "{message}");
    // A quote that closes, and quotes within a cell.
    assert_eq!(note("\"3\ndrops\""), ["3\ndrops", "u"]);
    assert_eq!(note("\"\"\"3\"\" drops\""), ["\"3\" drops", "u"]);
    assert_eq!(note("3\" tube"), ["3\" tube", "u"]);
}

#[test]
fn columns_that_do_not_fit_are_refused() {
    assert!(
        complaint("a,b\n1,0\n", set!(target = "c".into()))
            .contains("no column `c` (data.target): the header has `a`, `b`")
    );
    let near = complaint("Age,dose,y\n1,2,0\n", set!(target = "age".into()));
    assert!(
        near.ends_with("no column `age` (data.target): the header has `Age`, `dose`, `y`; did you mean `Age`?"),
        "{near}"
    );
    let separator = complaint("age;dose;y\n1;2;0\n", set!(target = "y".into()));
    assert!(separator.ends_with("are its cells separated by `;`? (data.delimiter, or --delimiter)"), "{separator}");
    assert!(complaint("1,0\n2,1\n", set!(target = "5".into())).contains("no column `5`"));
    assert!(complaint("a,a,y\n1,2,0\n", set!(target = "a".into())).contains("2 columns are called `a`"));
    assert!(complaint("1\n2\n", |_, _| ()).contains("no column is left for the features"));
    assert!(complaint("1,0\n2,1\n", set!(client_column = "1".into())).contains("both target and client"));
    assert!(complaint("1,0\n2,0\n", |_, _| ()).contains("holds one class only, `0`"));
    let real: String = (0..200).map(|i| format!("1,{}.5\n", i)).collect();
    assert!(complaint(&real, |_, _| ()).contains("task = \"regression\"?"));
}

#[test]
fn invalid_config_values_are_refused_by_their_key() {
    let message = |change: fn(&mut DataConfig, &Path)| read("1,0\n2,1\n", change).unwrap_err().to_string();
    assert!(message(set!(delimiter = ", ".into())).contains("data.delimiter"));
    assert!(message(set!(delimiter = "1".into())).contains("data.delimiter"));
    assert!(message(set!(test_fraction = 1.5)).contains("data.test_fraction = 1.5"));
    assert!(message(set!(path = "nowhere.csv".into())).contains("no such file: nowhere.csv (data.path)"));
    assert!(message(set!(test_path = "nowhere.csv".into())).contains("(data.test_path)"));
    assert!(message(set!(normalise = Normalise::Unit)).contains("data.normalise = unit"));
    assert!(message(set!(path = ".".into())).contains("directory"));
}

fn file(dir: &TempDir, text: &str) -> PathBuf {
    let path = dir.path().join("x.csv");
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn gzipped_tables_are_read_and_damaged_ones_reported() {
    let dir = TempDir::new().unwrap();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(b"1,2\n3,4\n").unwrap();
    let packed = encoder.finish().unwrap();
    let path = dir.path().join("x.csv");
    std::fs::write(&path, &packed).unwrap();
    assert_eq!(read_features(&path, 2, None, b',', &[]).unwrap(), array![[1., 2.], [3., 4.]]);
    std::fs::write(&path, &packed[..packed.len() - 4]).unwrap();
    assert!(read_features(&path, 2, None, b',', &[]).unwrap_err().to_string().contains("damaged gzip"));
}

#[test]
fn a_header_of_numbers_is_known_by_the_names_of_the_features() {
    let dir = TempDir::new().unwrap();
    let read = |text: &str, names: [&str; 2]| {
        read_features(&file(&dir, text), 2, Some(&names.map(String::from)), b',', &[]).unwrap()
    };
    for names in [["0", "1"], ["2018", "2019"], ["a", "2019"]] {
        let [one, other] = names;
        assert_eq!(read(&format!("{one},{other}\n1,2\n3,4\n"), names), array![[1., 2.], [3., 4.]]);
        assert_eq!(read(&format!("{other},{one}\n1,2\n3,4\n"), names), array![[2., 1.], [4., 3.]]);
        assert_eq!(read("1,2\n3,4\n", names), array![[1., 2.], [3., 4.]]);
    }
}

#[test]
fn features_to_predict_may_come_with_a_header_and_a_target() {
    let dir = TempDir::new().unwrap();
    let expected = array![[1., 2.], [3., 4.]];
    for (text, ignore) in [
        ("1,2\n3,4\n", &[][..]),
        ("a,b\n1,2\n3,4\n", &[]),
        ("a,b\n1,2\n3,4\n", &["y"]),
        ("a,b,y\n1,2,u\n3,4,\n", &["y"]),
        ("k,a,b,y\nx,1,2,u\nx,3,4,w\n", &["y", "k"]),
        ("1,2,9\n3,4,9\n", &["-1"]),
        ("1,2\n3,4\n", &["-1"]),
    ] {
        assert_eq!(read_features(&file(&dir, text), 2, None, b',', ignore).unwrap(), expected, "{text:?}");
    }
    let message =
        |text: &str, ignore: &[&str]| read_features(&file(&dir, text), 2, None, b',', ignore).unwrap_err().to_string();
    assert!(message("1,2,3\n", &[]).contains("x.csv: 3 feature columns, the model takes 2"));
    assert!(message("1,2\n3,x\n", &[]).contains("line 2, column 2: `x` is not a finite number"));
    assert!(message("a,b\n1,\n", &[]).contains("line 2, column 2 (b): an empty cell"));
    assert!(message("a,b\n", &[]).contains("no data rows"));
    assert!(message("", &[]).contains("no data rows"));
}

#[test]
fn features_to_predict_are_found_by_their_names_in_any_order() {
    let dir = TempDir::new().unwrap();
    let names = ["a".to_owned(), "b".to_owned()];
    let read = |text: &str, names: &[String]| read_features(&file(&dir, text), 2, Some(names), b',', &["y"]);
    for text in ["a,b\n1,2\n3,4\n", "b,a\n2,1\n4,3\n", "b,id,a,y\n2,x,1,u\n4,x,3,v\n", "1,2\n3,4\n"] {
        assert_eq!(read(text, &names).unwrap(), array![[1., 2.], [3., 4.]], "{text:?}");
    }
    let message = read("a,c\n1,2\n", &names).unwrap_err().to_string();
    assert!(message.contains("no column `b`: the header has `a`, `c`"), "{message}");
    let message = read("a,b,a\n1,2,3\n", &names).unwrap_err().to_string();
    assert!(message.contains("2 columns are called `a`"), "{message}");
    // Names do not identify the columns here, so positions do.
    let twins = ["a".to_owned(), "a".to_owned()];
    assert_eq!(read("a,a\n1,2\n", &twins).unwrap(), array![[1., 2.]]);
}

/// The rows of a file for a model of so many features, with columns that are asked for.
fn with_asked(
    path: &Path,
    width: usize,
    names: Option<&[String]>,
    ignore: &[&str],
    asked: &[AskedColumn],
) -> Result<NewRows, DataError> {
    let data = Dataset {
        feature_names: names.map(<[String]>::to_vec),
        ..Dataset::new("x", Array2::zeros((1, width)), Targets::None { rows: 1 }).unwrap()
    };
    let card = ModelCard::of(&data, Normalisation { features: FeatureScale::Identity, target: None });
    let reading = Reading::default();
    let options = NewRowsOptions {
        delimiter: b',',
        header: Header::Auto,
        reading: &reading,
        ignore,
        beside: &[],
        asked,
        client: None,
    };
    read_new_rows(path, &card, &options)
}

/// A column that is asked for.
fn asked(column: &str, may_be_feature: bool) -> AskedColumn<'_> {
    AskedColumn {
        key: "--option",
        column,
        name: None,
        what: "a text",
        missing: MissingAnswer::Refused("; fill it"),
        may_be_feature,
        required: true,
    }
}

#[test]
fn columns_that_are_asked_for_are_given_back_as_they_are_with_their_lines() {
    let dir = TempDir::new().unwrap();
    let names = ["a".to_owned(), "b".to_owned()];
    let text = "b,y,a,site\n2,u,1,\"x\ny\"\n\n4,1.0,3,z\n";
    let all = [asked("y", false), asked("-1", true), asked("a", true)];
    let rows = with_asked(&file(&dir, text), 2, Some(&names), &["y"], &all).unwrap();
    assert_eq!(rows.features, array![[1., 2.], [3., 4.]]);
    assert_eq!(rows.lines, [2, 5]);
    let cells: Vec<&[String]> = rows.asked.iter().flatten().map(|column| &*column.cells).collect();
    assert_eq!(cells, [["u", "1.0"], ["x\ny", "z"], ["1", "3"]]);
    let site = rows.asked[1].as_ref().unwrap();
    assert_eq!((site.name.as_deref(), &*site.place), (Some("site"), "4 (site)"));
    let refused = |text: &str, one: AskedColumn| {
        with_asked(&file(&dir, text), 2, Some(&names), &["y"], &[one]).unwrap_err().to_string()
    };
    let lacking = AskedColumn { required: false, ..asked("c", true) };
    let rows = with_asked(&file(&dir, text), 2, Some(&names), &["y"], &[lacking, asked("y", false)]).unwrap();
    assert!(rows.asked[0].is_none() && rows.asked[1].as_ref().is_some_and(|y| y.cells == ["u", "1.0"]));
    assert!(refused(text, asked("c", true)).contains("no column `c` (--option): the header has `b`, `y`"));
    assert!(refused(text, asked("a", false)).contains("column `a` (--option) is a feature of the model"));
    assert!(
        refused("a,b,y\n1,2,\n", asked("y", false))
            .contains("line 2, column 3 (y): an empty cell is not a text; fill it")
    );
    // A row whose cell is missing is left out before its other cells are read, or has a text instead.
    let unknown = "a,b,y\n1,2,u\nx,3,\n4,5,NA\n";
    let dropped = AskedColumn { missing: MissingAnswer::LeftOut, ..asked("y", false) };
    let rows = with_asked(&file(&dir, unknown), 2, Some(&names), &["y"], &[dropped]).unwrap();
    assert_eq!((rows.features, rows.lines), (array![[1., 2.]], vec![2]));
    assert!(
        rows.notes[0].starts_with("2 of the 3 rows of") && rows.notes[0].contains("column 3 (y)"),
        "{:?}",
        rows.notes
    );
    let named = AskedColumn { missing: MissingAnswer::Text("none"), ..asked("y", false) };
    let rows = with_asked(&file(&dir, &unknown.replace('x', "7")), 2, Some(&names), &["y"], &[named]).unwrap();
    assert_eq!(rows.asked[0].as_ref().unwrap().cells, ["u", "none", "none"]);
}

#[test]
fn without_names_the_number_of_columns_says_which_are_features() {
    let dir = TempDir::new().unwrap();
    // `t` is a target and `g` a group; the model takes two features.
    let read = |text: &str, ignore: &[&str], group: &str| {
        let both = [asked("2", false), asked(group, true)];
        with_asked(&file(&dir, text), 2, None, ignore, &both).map(|rows| rows.features)
    };
    // The group is a feature, or one column more.
    assert_eq!(read("1,2,7\n", &[], "0").unwrap(), array![[1., 2.]]);
    assert_eq!(read("1,2,7,g\n", &[], "3").unwrap(), array![[1., 2.]]);
    // The client's column of the training file is there too, or not.
    assert_eq!(read("1,2,7,g,c\n", &["2", "4"], "3").unwrap(), array![[1., 2.]]);
    assert_eq!(read("1,2,7,c\n", &["2", "3"], "3").unwrap(), array![[1., 2.]]);
    let message = read("1,2,7,3\n", &["2", "0"], "3").unwrap_err().to_string();
    assert!(message.contains("cannot be told from their number; give the file a header"), "{message}");
    let message = read("1,2,7,3,4,5\n", &[], "0").unwrap_err().to_string();
    assert!(message.contains("5 feature columns besides 1 left out, the model takes 2"), "{message}");
}

#[test]
fn rows_know_their_lines_with_any_line_ends() {
    for end in ["\n", "\r\n", "\r"] {
        let text = ["x,y", "1,a", "", "2,b", "3,\"b\"", "4,a"].join(end) + end;
        let csv = set!(test_fraction = 0.5);
        let data = read(&text, csv).unwrap();
        let lines = |rows: &fedstein_datasets::Dataset| rows.lines.clone().unwrap();
        let mut all = [lines(&data.train), lines(&data.test)].concat();
        all.sort_unstable();
        assert_eq!(all, [2, 4, 5, 6], "{end:?}");
    }
}

#[test]
fn rows_without_any_cell_are_no_rows_and_later_lines_keep_their_numbers() {
    let data = read("a,b,y\n1,2,u\n,,\n3,4,v\n , ,\n5,6,u\n\"\",,\n", |_, _| ()).unwrap();
    let lines = |rows: &fedstein_datasets::Dataset| rows.lines.clone().unwrap();
    let mut all = [lines(&data.train), lines(&data.test)].concat();
    all.sort_unstable();
    assert_eq!(all, [2, 4, 6]);
    // A row with a cell is one.
    assert!(
        complaint("a,b,y\n1,2,u\n,,v\n", |_, _| ())
            .contains("line 3, column 1 (a): an empty cell is not a finite number")
    );
}

#[test]
fn a_spreadsheets_first_line_about_its_separator_is_named() {
    let tables = [("sep=;\na;y\n1;u\n", ";"), ("SEP=;\na;y\n1;u\n", ","), ("sep=,\na,y\n1,u\n", ",")];
    for (text, delimiter) in tables {
        let message = complaint(text, set!(delimiter = delimiter.into()));
        assert!(message.contains("line 1 is `sep=…`") && message.contains("delete this line"), "{message}");
    }
    // A column may be called so.
    assert_eq!(read("sep=1,y\n1,u\n2,v\n", |_, _| ()).unwrap().train.feature_names, Some(vec!["sep=1".to_owned()]));
    assert!(complaint(",,\na,b,y\n1,2,u\n", |_, _| ()).contains("line 1 has no cell; delete it"));
}

#[test]
fn a_line_with_too_many_cells_has_the_usual_cause() {
    let hint = complaint("a,y\n1,u\n1,5,v\n", |_, _| ());
    assert!(hint.ends_with("line 3: 3 columns, expected 2; a cell with the separator in it stands in double quotes"));
    assert!(complaint("a,y\n1,u\n1\n", |_, _| ()).ends_with("expected 2; every line has as many as the first one"));
}

#[test]
fn columns_that_are_not_there_are_refused_with_their_key() {
    let message = complaint("a,outcome\n1,u\n2,v\n", set!(target = "outcme".into()));
    assert!(
        message.contains("no column `outcme` (data.target)") && message.contains("did you mean `outcome`?"),
        "{message}"
    );
}

#[test]
fn rows_of_which_nobody_knows_the_client_are_not_one_client() {
    for (cell, name) in [("", "an empty cell"), ("NA", "`NA`"), ("?", "`?`"), ("null", "`null`")] {
        let text = format!("a,ward,y\n1,n,u\n2,{cell},v\n");
        let message = complaint(&text, set!(client_column = "ward".into()));
        let wanted = format!("line 3, column 2 (ward): {name} is not a client (data.client_column): write it there");
        assert!(message.contains(&wanted), "{message}");
    }
}
