//! Manually downloaded sets: small copies of each layout through `load`, and the messages about missing or wrong files.

use fedstein_datasets::partition::ByColumn;
use fedstein_datasets::{DataConfig, DataError, FeatureScale, PartitionScheme, Targets, TrainTest, load, partition};
use flate2::{Compression, write::GzEncoder};
use rand::{SeedableRng, rngs::ChaCha8Rng};
use std::io::Write;
use std::path::Path;
use tempfile::TempDir;

fn write(dir: &TempDir, name: &str, text: &str) {
    let path = dir.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    if name.ends_with(".gz") {
        let mut packed = GzEncoder::new(std::fs::File::create(path).unwrap(), Compression::default());
        packed.write_all(text.as_bytes()).unwrap();
        packed.finish().unwrap();
    } else {
        std::fs::write(path, text).unwrap();
    }
}

fn read(config: &str, dir: &Path) -> Result<TrainTest, DataError> {
    let config: DataConfig = serde_json::from_str(config).unwrap();
    load(&config, dir, &mut ChaCha8Rng::seed_from_u64(1))
}

/// With `/` in the paths of Windows.
fn message(config: &str, dir: &TempDir) -> String {
    read(config, dir.path()).unwrap_err().to_string().replace('\\', "/")
}

fn raetsch(set: &str, distinct: bool, split: &str) -> String {
    format!(
        r#"{{"kind":"raetsch","set":"{set}","distinct":{distinct},"split":"{split}","test_fraction":0.2,"normalise":"auto","train_limit":0,"test_limit":0}}"#
    )
}

/// `rows` lines of five features and a label, line after line the same two.
fn thyroid(rows: usize) -> String {
    ["1,2,3,4,5,-1\n", "2,3,4,5,6,+1\n"].iter().copied().cycle().take(rows).collect()
}

#[test]
fn a_set_of_raetschs_is_split_by_share_or_by_his_sizes() {
    let dir = TempDir::new().unwrap();
    write(&dir, "raetsch/thyroid.csv.gz", &thyroid(215));
    let data = read(&raetsch("thyroid", false, "random"), dir.path()).unwrap();
    assert_eq!((data.train.rows(), data.test.rows(), data.train.width()), (172, 43, 5));
    assert_eq!(data.train.name, "raetsch-thyroid");
    let Targets::Classes { names, .. } = &data.train.targets else { panic!() };
    assert_eq!(*names, ["-1", "+1"]);
    for (row, label) in data.train.features.rows().into_iter().zip(data.train.labels().unwrap()) {
        assert_eq!(row[0], [1.0, 2.0][*label]);
    }
    assert_eq!(data.normalisation.features, FeatureScale::Identity);

    let data = read(&raetsch("thyroid", false, "raetsch"), dir.path()).unwrap();
    assert_eq!((data.train.rows(), data.test.rows()), (140, 75));
    let data = read(&raetsch("thyroid", true, "random"), dir.path()).unwrap();
    assert_eq!((data.train.rows(), data.test.rows()), (1, 1));
    let refused = message(&raetsch("thyroid", true, "raetsch"), &dir);
    assert!(refused.starts_with("data.split = raetsch: "), "{refused}");
    assert!(refused.contains("215 rows of thyroid into 140 for training and 75 for testing, here are 2"), "{refused}");
}

#[test]
fn measured_values_are_standardised_under_auto() {
    let dir = TempDir::new().unwrap();
    let line = |row: usize| format!("{},1,2,3,4,5,6,{},{}\n", row * 100, row, ["-1", "1"][row % 2]);
    write(&dir, "raetsch/diabetis.csv", &(0..50).map(line).collect::<String>());
    let data = read(&raetsch("diabetis", false, "random"), dir.path()).unwrap();
    assert!(data.train.features.iter().all(|x| x.abs() < 2.0));
    let as_is = raetsch("diabetis", false, "random").replace("auto", "none");
    assert!(read(&as_is, dir.path()).unwrap().train.features.iter().any(|x| *x > 1000.0));
}

#[test]
fn a_file_of_raetschs_that_is_missing_or_wrong_is_named() {
    let dir = TempDir::new().unwrap();
    let missing = message(&raetsch("heart", false, "random"), &dir);
    assert!(
        missing.contains("data set `raetsch` is not there") && missing.contains("raetsch/heart.csv.gz"),
        "{missing}"
    );
    assert!(missing.contains("`fedstein data fetch raetsch` says how") && missing.contains("--data-dir"), "{missing}");
    write(&dir, "raetsch/banana.csv.gz", "1,2,1\n1,2,0\n");
    let wrong = message(&raetsch("banana", false, "random"), &dir);
    assert!(wrong.ends_with("banana.csv.gz: row 2: label 0 is out of range, the labels are -1 and +1"), "{wrong}");
    write(&dir, "raetsch/banana.csv.gz", "1,2,3,1\n");
    let wrong = message(&raetsch("banana", false, "random"), &dir);
    assert!(wrong.ends_with("line 1: 4 columns, expected 3"), "{wrong}");
    let unknown = raetsch("bananas", false, "random");
    assert!(serde_json::from_str::<DataConfig>(&unknown).unwrap_err().to_string().contains("`banana`"));
}

fn uci(set: &str, test_split: i64) -> String {
    format!(
        r#"{{"kind":"uci-regression","set":"{set}","test_split":{test_split},"test_fraction":0.1,"normalise":"auto","train_limit":0,"test_limit":0}}"#
    )
}

#[test]
fn a_regression_set_is_split_by_a_line_of_its_list_or_at_random() {
    let dir = TempDir::new().unwrap();
    // The third column is constant.
    let line = |row: usize| format!("{row},{},7,{}\n", row * row, 100 + row).replacen(',', ",0,", 1);
    write(&dir, "uci-regression/power.csv.gz", &(0..10).map(line).collect::<String>());
    let missing = message(&uci("power", 0), &dir);
    assert!(missing.contains("uci-regression/power.test-splits.txt.gz"), "{missing}");
    write(&dir, "uci-regression/power.test-splits.txt.gz", "3 1\n0 9\n");
    for (split, tests) in [(0, vec![101.0, 103.0]), (1, vec![100.0, 109.0])] {
        let data = read(&uci("power", split), dir.path()).unwrap();
        assert_eq!(data.test.targets, Targets::Real { values: tests.clone() });
        assert_eq!((data.train.rows(), data.train.width()), (8, 4));
        let Targets::Real { values } = &data.train.targets else { panic!() };
        assert!(values.iter().all(|value| !tests.contains(value)));
        let scale = data.normalisation.target.unwrap();
        assert!((scale.mean - values.iter().sum::<f64>() / 8.0).abs() < 1e-12);
        let FeatureScale::PerColumn { scale, .. } = &data.normalisation.features else { panic!() };
        assert_eq!(scale[3], 1.0, "a constant column keeps its scale");
    }
    let random = read(&uci("power", -1), dir.path()).unwrap();
    assert_eq!((random.train.rows(), random.test.rows()), (9, 1));
    assert!(message(&uci("power", 2), &dir).contains("data.test_split = 2: "));
    assert!(message(&uci("power", 2), &dir).contains("has the splits 0 to 1; -1 draws one with the seed"));
    assert!(message(&uci("power", -2), &dir).contains("data.test_split = -2: must be a standard split, from 0, or -1"));
    write(&dir, "uci-regression/power.test-splits.txt.gz", "3 10\n");
    assert!(message(&uci("power", 0), &dir).contains("`10` is not a row, a whole number from 0 to 9"));
    assert!(message(&uci("yacht", 0), &dir).contains("uci-regression/yacht.csv.gz"));
}

const VEHICLE: &str =
    r#"{"kind":"vehicle","test_fraction":0.2,"leave_out":[],"normalise":"auto","train_limit":0,"test_limit":0}"#;

#[test]
fn vehicles_are_split_within_each_client_and_partitioned_by_column() {
    let dir = TempDir::new().unwrap();
    assert!(message(VEHICLE, &dir).contains("vehicle/vehicle-23-ditto-train.csv.gz"));
    let line = |client: usize, row: usize| {
        let features: Vec<String> = (0..100).map(|column| format!("{}", client * 1000 + row + column)).collect();
        format!("{client},{},{}\n", features.join(","), ["-1", "1"][row % 2])
    };
    // client 22 has one row, client 3 five, client 0 ten
    let rows = [(0, 10), (22, 1), (3, 5)];
    let text: String = rows.iter().flat_map(|&(client, rows)| (0..rows).map(move |row| line(client, row))).collect();
    write(&dir, "vehicle/vehicle-23-ditto-train.csv", &text);
    let data = read(VEHICLE, dir.path()).unwrap();
    assert_eq!((data.train.rows(), data.test.rows(), data.train.width()), (13, 3, 100));
    assert_eq!(data.normalisation.features, FeatureScale::Identity);
    let clients = data.train.clients.clone().unwrap();
    for (row, client) in data.train.features.rows().into_iter().zip(clients) {
        assert_eq!((row[0] / 1000.0) as usize, client);
    }
    let assigned =
        partition(&PartitionScheme::ByColumn(ByColumn {}).into(), &data.train, &mut ChaCha8Rng::seed_from_u64(1))
            .unwrap();
    assert_eq!(assigned.clients().iter().map(Vec::len).collect::<Vec<_>>(), [8, 4, 1]);

    write(&dir, "vehicle/vehicle-23-ditto-train.csv", &line(23, 0));
    assert!(message(VEHICLE, &dir).contains("column 1: `23` is not a client, a whole number from 0 to 22"));
}

#[test]
fn year_prediction_takes_the_publishers_whole_file_only() {
    const YEAR: &str = r#"{"kind":"year-prediction","normalise":"auto","train_limit":0,"test_limit":0}"#;
    let dir = TempDir::new().unwrap();
    assert!(message(YEAR, &dir).contains("year-prediction/YearPredictionMSD.txt\n"));
    let line = format!("2001{}\n", ",0.5".repeat(90));
    for name in
        ["YearPredictionMSD.csv.gz", "YearPredictionMSD.csv", "YearPredictionMSD.txt.gz", "YearPredictionMSD.txt"]
    {
        write(&dir, &format!("year-prediction/{name}"), &line.repeat(3));
        let refused = message(YEAR, &dir);
        assert!(refused.contains(&format!("{name}: 3 rows, expected 515345: ")), "{refused}");
        assert!(refused.contains("the first 463715 rows for training and the last 51630 for testing"), "{refused}");
    }
    write(&dir, "year-prediction/YearPredictionMSD.txt", "2001,1,2\n");
    assert!(message(YEAR, &dir).contains("line 1: 3 columns, expected 91"));
}

/// A file of CIFAR: these labels, pixels that are the row's number.
fn records(labels: &[&[u8]]) -> Vec<u8> {
    labels.iter().zip(0..).flat_map(|(labels, row)| [labels, &[row; 3072][..]].concat()).collect()
}

fn put(dir: &TempDir, name: &str, bytes: &[u8]) {
    let path = dir.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

fn cifar(kind: &str) -> String {
    format!(r#"{{"kind":"{kind}","classes":[],"normalise":"unit","train_limit":0,"test_limit":0}}"#)
}

#[test]
fn the_whole_of_cifar_10_is_preferred_and_its_batches_stand_in_their_order() {
    let dir = TempDir::new().unwrap();
    let missing = message(&cifar("cifar10"), &dir);
    assert!(
        missing.contains("cifar10/test_batch.bin.gz") && missing.contains("fedstein data fetch cifar10"),
        "{missing}"
    );
    put(&dir, "cifar10/test_batch.bin", &records(&[&[9]]));
    let error = || message(&cifar("cifar10"), &dir);
    assert!(error().contains("cifar10/data_batch_1.bin.gz"), "{}", error());
    put(&dir, "cifar10/train_20pct.bin", &records(&[&[7], &[8]]));
    for batch in 1..=5 {
        // Until the fifth is there, the part is read.
        let labels = || read(&cifar("cifar10"), dir.path()).unwrap().train.labels().unwrap().to_vec();
        assert_eq!(labels(), [7, 8]);
        put(&dir, &format!("cifar10/data_batch_{batch}.bin"), &records(&[&[batch]]));
    }
    let data = read(&cifar("cifar10"), dir.path()).unwrap();
    assert_eq!(data.train.labels().unwrap(), [1, 2, 3, 4, 5]);
    assert_eq!((data.train.feature_shape, data.test.rows()), (vec![3, 32, 32], 1));
    assert_eq!(data.train.name, "cifar10 (part: 5 of 50000 training images)");
    assert!(data.notes[0].contains("1 of 10000 test images"), "{:?}", data.notes);

    put(&dir, "cifar10/batches.meta.txt", b"a\nb\n");
    assert!(error().contains("batches.meta.txt: 2 names, one a line; `cifar10` has 10 classes"), "{}", error());
    put(&dir, "cifar10/batches.meta.txt", b"a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n");
    let Targets::Classes { names, .. } = read(&cifar("cifar10"), dir.path()).unwrap().train.targets else { panic!() };
    assert_eq!(names[9], "j");
}

#[test]
fn cifar_100_is_read_by_its_fine_labels_and_has_superclasses_under_its_own_names_only() {
    let dir = TempDir::new().unwrap();
    put(&dir, "cifar100/train.bin", &records(&[&[11, 19], &[4, 0]]));
    put(&dir, "cifar100/test.bin", &records(&[&[13, 99]]));
    let data = read(&cifar("cifar100"), dir.path()).unwrap();
    assert_eq!((data.train.labels().unwrap(), data.test.labels().unwrap()), (&[19, 0][..], &[99][..]));
    assert_eq!(data.train.features[[1, 3071]], 1.0 / 255.0);
    let superclasses = data.train.superclasses().unwrap();
    assert_eq!((superclasses[19], superclasses[0], superclasses[99]), (11, 4, 13));
    let names: String = (0..100).map(|class| format!("kind {class}\n")).collect();
    put(&dir, "cifar100/fine_label_names.txt", names.as_bytes());
    assert!(read(&cifar("cifar100"), dir.path()).unwrap().train.superclasses().is_none());
    put(&dir, "cifar100/test.bin", &records(&[&[13]]));
    let message = message(&cifar("cifar100"), &dir);
    assert!(message.contains("test.bin: record 1 (from byte 0) is truncated: 3073 of 3074 bytes"), "{message}");
}
