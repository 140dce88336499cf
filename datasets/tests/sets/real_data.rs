//! The real files. Set `FEDSTEIN_DATA` to their directory; without it these tests report that they are skipped and
//! pass, or fail where `FEDSTEIN_REQUIRE_DATA=1`. With a directory a missing file fails.

use fedstein_datasets::format::cifar;
use fedstein_datasets::format::csv::Task;
use fedstein_datasets::format::header::Header;
use fedstein_datasets::partition::{ByColumn, CyclicLabels, LabelRatio, LabelsPerClient, SuperclassLabels};
use fedstein_datasets::registry::{self, FileStatus};
use fedstein_datasets::source::{
    Cifar10, Cifar100, Covertype, Csv, FashionMnist, Mnist, Raetsch, UciRegression, Vehicle,
};
use fedstein_datasets::{
    Cut, DataConfig, DataProperties, Dataset, FeatureScale, Normalise, PartitionScheme, RaetschSet, RaetschSplit,
    Reading, Targets, TrainTest, UciSet, load, partition,
};
use rand::{SeedableRng, rngs::ChaCha8Rng};
use std::io::Write;
use std::path::PathBuf;

/// The directory of the real files, or `None` with a message on the terminal that the test is skipped.
///
/// # Panics
/// Without a directory where `FEDSTEIN_REQUIRE_DATA=1`.
fn data_dir() -> Option<PathBuf> {
    let dir = std::env::var_os("FEDSTEIN_DATA").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    if dir.is_none() {
        let required = std::env::var("FEDSTEIN_REQUIRE_DATA").is_ok_and(|value| value == "1");
        assert!(!required, "FEDSTEIN_REQUIRE_DATA=1, but FEDSTEIN_DATA does not name the directory of the data sets");
        // The line bypasses the test harness, which captures the output of passing tests.
        let _ = writeln!(std::io::stderr(), "SKIPPED: FEDSTEIN_DATA does not name the directory of the data sets");
    }
    dir
}

fn read(config: &DataConfig, dir: &std::path::Path) -> TrainTest {
    load(config, dir, &mut ChaCha8Rng::seed_from_u64(1)).unwrap()
}

fn mean(data: &Dataset) -> f64 {
    data.features.iter().map(|&x| f64::from(x)).sum::<f64>() / data.features.len() as f64
}

// Row counts and mean pixels: shared/data/README.md.
#[test]
fn mnist_has_its_published_rows_and_mean_pixel() {
    let Some(dir) = data_dir() else { return };
    let data = read(
        &DataConfig::Mnist(Mnist { classes: vec![], normalise: Normalise::None, train_limit: 0, test_limit: 0 }),
        &dir,
    );
    assert_eq!((data.train.rows(), data.test.rows(), data.train.width()), (60_000, 10_000, 784));
    assert_eq!(data.train.feature_shape, [28, 28]);
    assert!((mean(&data.train) - 33.3184).abs() < 5e-5, "{}", mean(&data.train));
    assert!((mean(&data.test) - 33.7912).abs() < 5e-5, "{}", mean(&data.test));
    assert_eq!(data.train.labels().unwrap()[..10], [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]);
}

#[test]
fn mnist_is_scaled_and_limited() {
    let Some(dir) = data_dir() else { return };
    let data = read(
        &DataConfig::Mnist(Mnist { classes: vec![], normalise: Normalise::Auto, train_limit: 1000, test_limit: 100 }),
        &dir,
    );
    assert_eq!((data.train.rows(), data.test.rows()), (1000, 100));
    let (low, high) = data.train.features.iter().fold((f32::MAX, f32::MIN), |(l, h), &x| (l.min(x), h.max(x)));
    assert_eq!((low, high), (0.01, 1.0));
    // (x/255 - 0.1307) / 0.3081 standardises the training set: its mean is 0 and its sd 1 up to the four digits given
    let whole = read(
        &DataConfig::Mnist(Mnist { classes: vec![], normalise: Normalise::Published, train_limit: 0, test_limit: 100 }),
        &dir,
    );
    assert!(mean(&whole.train).abs() < 1e-3, "{}", mean(&whole.train));
}

#[test]
fn fashion_mnist_has_its_published_rows_and_mean_pixel() {
    let Some(dir) = data_dir() else { return };
    let data = read(
        &DataConfig::FashionMnist(FashionMnist {
            classes: vec![],
            normalise: Normalise::None,
            train_limit: 0,
            test_limit: 0,
        }),
        &dir,
    );
    assert_eq!((data.train.rows(), data.test.rows()), (60_000, 10_000));
    assert!((mean(&data.train) - 72.9404).abs() < 5e-5, "{}", mean(&data.train));
    assert_eq!(data.train.classes(), Some(10));
}

#[test]
fn covertype_has_its_published_rows_and_classes() {
    let Some(dir) = data_dir() else { return };
    let config = DataConfig::Covertype(Covertype {
        normalise: Normalise::Auto,
        test_fraction: 0.2,
        train_limit: 0,
        test_limit: 0,
    });
    let start = std::time::Instant::now();
    let data = read(&config, &dir);
    println!("covertype loaded, split and scaled in {:.2} s", start.elapsed().as_secs_f64());
    assert_eq!(data.train.rows() + data.test.rows(), 581_012);
    assert_eq!((data.train.width(), data.train.classes()), (54, Some(2)));
    let ones = |labels: &[usize]| labels.iter().filter(|&&label| label == 1).count();
    assert_eq!(ones(data.train.labels().unwrap()) + ones(data.test.labels().unwrap()), 297_711);
    assert!(data.train.features.iter().all(|x| (0.0..=1.0).contains(x)));
}

fn csv(path: PathBuf, target: &str, task: Task, client: &str) -> DataConfig {
    DataConfig::Csv(Csv {
        path,
        test_path: String::new(),
        target: target.into(),
        header: Header::Auto,
        task,
        positive: String::new(),
        delimiter: ",".into(),
        client_column: client.into(),
        reading: Reading::default(),
        normalise: Normalise::Auto,
        test_fraction: 0.1,
        split: fedstein_datasets::source::TestSplit::Random,
        leave_out: vec![],
        train_limit: 0,
        test_limit: 0,
    })
}

#[test]
fn a_regression_table_is_read_with_its_targets_unscaled() {
    let Some(dir) = data_dir() else { return };
    let data = read(&csv(dir.join("uci-regression/naval.csv.gz"), "-1", Task::Regression, ""), &dir);
    assert_eq!((data.train.rows() + data.test.rows(), data.train.width()), (11_934, 16));
    // Columns 9 and 12 (from 1) are constant: they are centred and stay finite.
    assert!(data.train.features.column(8).iter().chain(data.train.features.column(11)).all(|&x| x == 0.0));
    let scale = data.normalisation.target.unwrap();
    // the compressor decay coefficient runs from 0.95 to 1
    assert!((scale.mean - 0.975).abs() < 0.001 && (scale.sd - 0.0147).abs() < 0.0005, "{scale:?}");
}

#[test]
fn the_vehicle_table_comes_with_its_23_clients() {
    let Some(dir) = data_dir() else { return };
    let config = csv(dir.join("vehicle/vehicle-23-ditto-train.csv.gz"), "-1", Task::Classification, "0");
    let data = read(&config, &dir);
    assert_eq!((data.train.rows() + data.test.rows(), data.train.width()), (1_860, 100));
    assert_eq!(natural_clients(&data.train).len(), 23);
}

/// Rows of each natural client.
fn natural_clients(train: &Dataset) -> Vec<usize> {
    let assigned =
        partition(&PartitionScheme::ByColumn(ByColumn {}).into(), train, &mut ChaCha8Rng::seed_from_u64(1)).unwrap();
    assigned.clients().iter().map(Vec::len).collect()
}

#[test]
fn digits_0_to_8_of_mnist_are_assigned_cyclically_three_per_client() {
    let Some(dir) = data_dir() else { return };
    let config = DataConfig::Mnist(Mnist {
        classes: (0..9).collect(),
        normalise: Normalise::Auto,
        train_limit: 0,
        test_limit: 0,
    });
    let data = read(&config, &dir);
    // 5,949 training and 1,009 test images are nines: the known counts of MNIST
    assert_eq!((data.train.rows(), data.test.rows(), data.train.classes()), (54_051, 8_991, Some(10)));
    for clients in [27, 120] {
        let cyclic = PartitionScheme::CyclicLabels(CyclicLabels { clients, labels: 3 }).into();
        let assigned = partition(&cyclic, &data.train, &mut ChaCha8Rng::seed_from_u64(1)).unwrap();
        assert_eq!(assigned.clients().iter().map(Vec::len).sum::<usize>(), 54_051);
        for counts in assigned.counts(&data.train.targets) {
            assert_eq!(counts.iter().filter(|&&count| count > 0).count(), 3);
        }
    }
}

#[test]
fn covertype_is_partitioned_one_to_nine_without_leaving_a_row_out() {
    let Some(dir) = data_dir() else { return };
    let config = DataConfig::Covertype(Covertype {
        normalise: Normalise::None,
        test_fraction: 0.2,
        train_limit: 0,
        test_limit: 0,
    });
    let train = read(&config, &dir).train;
    for clients in [30, 120] {
        let ratio = PartitionScheme::LabelRatio(LabelRatio { clients, ratio: vec![1.0, 9.0] }).into();
        let assigned = partition(&ratio, &train, &mut ChaCha8Rng::seed_from_u64(1)).unwrap();
        assert!(assigned.notes.is_empty(), "{:?}", assigned.notes);
        assert_eq!(assigned.clients().iter().map(Vec::len).sum::<usize>(), train.rows());
        for (client, counts) in assigned.counts(&train.targets).iter().enumerate() {
            let minority = counts[1 - client % 2] as f64 / (counts[0] + counts[1]) as f64;
            assert!((minority - 0.1).abs() < 1e-3, "client {client} of {clients}: {counts:?}");
        }
    }
}

/// Every set with its rows -1 and +1, its distinct rows and Rätsch's training and test rows: shared/data/README.md.
const RAETSCH: [(RaetschSet, [usize; 5]); 13] = [
    (RaetschSet::Banana, [2924, 2376, 5300, 400, 4900]),
    (RaetschSet::BreastCancer, [196, 81, 263, 200, 77]),
    (RaetschSet::Diabetis, [500, 268, 768, 468, 300]),
    (RaetschSet::FlareSolar, [477, 589, 144, 666, 400]),
    (RaetschSet::German, [700, 300, 1000, 700, 300]),
    (RaetschSet::Heart, [150, 120, 270, 170, 100]),
    (RaetschSet::Image, [990, 1320, 2086, 1300, 1010]),
    (RaetschSet::Ringnorm, [3736, 3664, 7400, 400, 7000]),
    (RaetschSet::Splice, [1648, 1527, 2991, 1000, 2175]),
    (RaetschSet::Thyroid, [150, 65, 215, 140, 75]),
    (RaetschSet::Titanic, [1490, 711, 24, 150, 2051]),
    (RaetschSet::Twonorm, [3697, 3703, 7400, 400, 7000]),
    (RaetschSet::Waveform, [3353, 1647, 5000, 400, 4600]),
];

fn raetsch(set: RaetschSet, distinct: bool, split: RaetschSplit) -> DataConfig {
    DataConfig::Raetsch(Raetsch {
        set,
        distinct,
        split,
        test_fraction: 0.2,
        normalise: Normalise::Auto,
        train_limit: 0,
        test_limit: 0,
    })
}

#[test]
fn raetschs_sets_have_their_classes_distinct_rows_and_sizes() {
    let Some(dir) = data_dir() else { return };
    for (set, [minus, plus, distinct, train, test]) in RAETSCH {
        let data = read(&raetsch(set, false, RaetschSplit::Raetsch), &dir);
        assert_eq!((data.train.rows(), data.test.rows()), (train, test), "{set:?}");
        let labels = || data.train.labels().unwrap().iter().chain(data.test.labels().unwrap());
        let count = |class: usize| labels().filter(|&&label| label == class).count();
        assert_eq!((count(0), count(1)), (minus, plus), "{set:?}");
        let data = read(&raetsch(set, true, RaetschSplit::Random), &dir);
        let tests = (distinct as f64 * 0.2).round() as usize;
        assert_eq!((data.train.rows(), data.test.rows()), (distinct - tests, tests), "{set:?}");
    }
}

#[test]
fn raetschs_features_are_of_unit_size_under_auto() {
    let Some(dir) = data_dir() else { return };
    for (set, _) in RAETSCH {
        let data = read(&raetsch(set, false, RaetschSplit::Random), &dir);
        let raw = data.normalisation.features != FeatureScale::Identity;
        assert_eq!(raw, set.is_raw(), "{set:?}");
        for (column, values) in data.train.features.columns().into_iter().enumerate() {
            let rows = values.len() as f64;
            let mean = values.iter().map(|&x| f64::from(x)).sum::<f64>() / rows;
            let sd = (values.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / rows).sqrt();
            // A training half of the standardised sets is not exactly standardised; twonorm's classes are shifted.
            let constant = sd == 0.0;
            assert!(mean.abs() < 0.5 && (constant || (0.5..1.7).contains(&sd)), "{set:?} {column}: {mean} {sd}");
        }
    }
}

fn uci(set: UciSet, test_split: i64) -> DataConfig {
    DataConfig::UciRegression(UciRegression {
        set,
        test_split,
        test_fraction: 0.1,
        normalise: Normalise::Auto,
        train_limit: 0,
        test_limit: 0,
    })
}

/// Rows, features and standard splits: shared/data/README.md.
const UCI: [(UciSet, [usize; 3]); 9] = [
    (UciSet::Boston, [506, 13, 20]),
    (UciSet::Concrete, [1030, 8, 20]),
    (UciSet::Energy, [768, 8, 20]),
    (UciSet::Kin8nm, [8192, 8, 20]),
    (UciSet::Naval, [11934, 16, 20]),
    (UciSet::Power, [9568, 4, 20]),
    (UciSet::Protein, [45730, 9, 5]),
    (UciSet::WineRed, [1599, 11, 20]),
    (UciSet::Yacht, [308, 6, 20]),
];

#[test]
fn the_regression_sets_have_their_rows_and_standard_splits() {
    let Some(dir) = data_dir() else { return };
    for (set, [rows, features, splits]) in UCI {
        for split in [-1, 0, splits as i64 - 1] {
            let data = read(&uci(set, split), &dir);
            assert_eq!((data.train.rows() + data.test.rows(), data.train.width()), (rows, features), "{set:?}");
            let tenth = rows as f64 / 10.0;
            assert!((data.test.rows() as f64 - tenth).abs() <= 1.0, "{set:?} {split}: {}", data.test.rows());
            let finite = |half: &Dataset| half.features.iter().all(|x| x.is_finite());
            assert!(finite(&data.train) && finite(&data.test), "{set:?}");
        }
        let error = load(&uci(set, splits as i64), &dir, &mut ChaCha8Rng::seed_from_u64(1)).unwrap_err().to_string();
        assert!(error.contains(&format!("has the splits 0 to {}", splits - 1)), "{error}");
    }
}

#[test]
fn a_standard_split_takes_exactly_the_rows_of_its_line() {
    let Some(dir) = data_dir() else { return };
    let file = std::fs::File::open(dir.join("uci-regression/yacht.test-splits.txt.gz")).unwrap();
    let text = std::io::read_to_string(flate2::read::GzDecoder::new(file)).unwrap();
    let mut rows: Vec<usize> = text.lines().nth(3).unwrap().split(' ').map(|row| row.parse().unwrap()).collect();
    rows.sort_unstable();
    let file = std::fs::File::open(dir.join("uci-regression/yacht.csv.gz")).unwrap();
    let text = std::io::read_to_string(flate2::read::GzDecoder::new(file)).unwrap();
    let all: Vec<f64> = text.lines().map(|line| line.rsplit(',').next().unwrap().parse().unwrap()).collect();
    let expected = Targets::Real { values: rows.iter().map(|&row| all[row]).collect() };
    assert_eq!(read(&uci(UciSet::Yacht, 3), &dir).test.targets, expected);
}

#[test]
fn navals_constant_columns_are_centred_and_stay_finite() {
    let Some(dir) = data_dir() else { return };
    let data = read(&uci(UciSet::Naval, 0), &dir);
    // Columns 9 and 12, from 1.
    for half in [&data.train, &data.test] {
        assert!(half.features.column(8).iter().chain(half.features.column(11)).all(|&x| x == 0.0));
    }
    let FeatureScale::PerColumn { scale, .. } = &data.normalisation.features else { panic!() };
    assert_eq!((scale[8], scale[11]), (1.0, 1.0));
    assert!(data.normalisation.target.is_some());
}

/// Rows of each vehicle client: shared/data/README.md.
const VEHICLE_ROWS: [u32; 23] =
    [59, 8, 20, 156, 17, 13, 43, 25, 71, 388, 21, 13, 534, 84, 147, 36, 7, 13, 15, 130, 20, 30, 10];

/// A fifth of each client's rows for testing, or all rows of some.
fn vehicle(leave_out: &[&str]) -> Vehicle {
    let leave_out = leave_out.iter().map(|&name| name.to_owned()).collect();
    Vehicle { test_fraction: 0.2, leave_out, normalise: Normalise::Auto, train_limit: 0, test_limit: 0 }
}

#[test]
fn every_vehicle_client_keeps_rows_and_gives_a_fifth_to_the_test() {
    let Some(dir) = data_dir() else { return };
    let data = read(&vehicle(&[]).into(), &dir);
    let tests = VEHICLE_ROWS.map(|rows| (f64::from(rows) * 0.2).round() as usize);
    let train: Vec<usize> = VEHICLE_ROWS.iter().zip(tests).map(|(&rows, tests)| rows as usize - tests).collect();
    assert_eq!(natural_clients(&data.train), train);
    assert_eq!(natural_clients(&data.test), tests);
    assert_eq!((data.train.width(), data.train.classes()), (100, Some(2)));
    assert_eq!(data.normalisation.features, FeatureScale::Identity);
}

#[test]
fn the_registry_knows_the_size_of_every_manually_downloaded_file() {
    let Some(dir) = data_dir() else { return };
    for name in ["raetsch", "uci-regression", "vehicle", "cifar10", "cifar100"] {
        for (file, state) in registry::status(registry::find(name).unwrap(), &dir) {
            match file.part.iter().map(|path| dir.join(path)).find(|path| path.is_file()) {
                Some(part) => assert_eq!(state, FileStatus::Part(part), "{}", file.path),
                None => assert_eq!(state, FileStatus::Present, "{}", file.path),
            }
        }
    }
}

fn photographs(hundred: bool, normalise: Normalise) -> DataConfig {
    let (classes, train_limit, test_limit) = (vec![], 0, 0);
    match hundred {
        true => DataConfig::Cifar100(Cifar100 { classes, normalise, train_limit, test_limit }),
        false => DataConfig::Cifar10(Cifar10 { classes, normalise, train_limit, test_limit }),
    }
}

/// Mean of each channel, in [0, 1] for bytes.
fn channel_means(data: &Dataset) -> [f64; 3] {
    [0, 1, 2].map(|channel| {
        let block = data.features.slice(ndarray::s![.., 1024 * channel..1024 * (channel + 1)]);
        block.iter().map(|&x| f64::from(x)).sum::<f64>() / block.len() as f64
    })
}

fn rows_a_class(data: &Dataset) -> Vec<usize> {
    let mut counts = vec![0; data.classes().unwrap()];
    data.labels().unwrap().iter().for_each(|&label| counts[label] += 1);
    counts
}

// Counts, first labels and means: shared/data/README.md (stratified 20 %, means of the whole sets), and a reading of
// the same bytes in Python (means and labels of the subset).
#[test]
fn the_fifth_of_cifar_10_has_a_thousand_images_a_class_and_says_that_it_is_a_part() {
    let Some(dir) = data_dir() else { return };
    let data = read(&photographs(false, Normalise::None), &dir);
    assert_eq!((data.train.rows(), data.test.rows(), &data.train.feature_shape), (10_000, 10_000, &vec![3, 32, 32]));
    assert_eq!((rows_a_class(&data.train), rows_a_class(&data.test)), (vec![1000; 10], vec![1000; 10]));
    assert_eq!(data.train.labels().unwrap()[..10], [6, 9, 9, 4, 1, 1, 2, 7, 8, 3]);
    assert_eq!(data.test.labels().unwrap()[..10], [3, 8, 8, 0, 6, 6, 1, 6, 3, 1]);
    // The first pixels of the first row, red: a frog.
    assert_eq!(data.train.features.row(0).as_slice().unwrap()[..4], [59., 43., 50., 68.]);
    assert_eq!(data.test.features.row(0).as_slice().unwrap()[..4], [158., 159., 165., 166.]);
    for (mean, expected) in channel_means(&data.train).iter().zip([0.493557067, 0.483186459, 0.447049503]) {
        assert!((mean / 255.0 - expected).abs() < 1e-9, "{mean}");
    }
    let Targets::Classes { names, .. } = &data.train.targets else { panic!() };
    assert_eq!((names[0].as_str(), names[9].as_str()), ("airplane", "truck"));
    assert_eq!(data.train.name, "cifar10 (part: 10000 of 50000 training images)");
    assert!(data.notes[0].contains("10000 of 50000 training and 10000 of 10000 test images"), "{:?}", data.notes);
    assert!(data.train.superclasses().is_none());
}

#[test]
fn the_fifth_of_cifar_100_has_a_hundred_images_a_class_and_the_published_superclasses() {
    let Some(dir) = data_dir() else { return };
    let data = read(&photographs(true, Normalise::None), &dir);
    assert_eq!((rows_a_class(&data.train), rows_a_class(&data.test)), (vec![100; 100], vec![100; 100]));
    assert_eq!((data.train.labels().unwrap()[0], data.test.labels().unwrap()[0]), (19, 49));
    // The whole test set is there: its published means.
    for (mean, expected) in channel_means(&data.test).iter().zip([0.50879641, 0.48739301, 0.44194221]) {
        assert!((mean / 255.0 - expected).abs() < 5e-9, "{mean}");
    }
    let table = data.train.superclasses().unwrap();
    for file in ["train_20pct.bin.gz", "test.bin.gz"] {
        let records = cifar::read(&dir.join("cifar100").join(file), cifar::Layout::Cifar100).unwrap();
        assert!(records.labels().zip(records.coarse()).all(|(fine, coarse)| table[fine] == coarse), "{file}");
    }
    let counts = (0..20).map(|superclass| table.iter().filter(|&&of| of == superclass).count());
    assert!(counts.eq([5; 20]));
}

#[test]
fn cifar_is_standardised_by_channel_with_the_numbers_of_the_whole_set() {
    let Some(dir) = data_dir() else { return };
    for hundred in [false, true] {
        let data = read(&photographs(hundred, Normalise::Auto), &dir);
        assert!(matches!(data.normalisation.features, FeatureScale::PerChannel { .. }));
        // A fifth of the set: 10,000 images with means that vary by about 0.5 of a pixel's deviation.
        for mean in channel_means(&data.train) {
            assert!(mean.abs() < 0.02, "{mean}");
        }
        let squares = data.train.features.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>();
        assert!((squares / data.train.features.len() as f64 - 1.0).abs() < 0.02);
    }
}

#[test]
fn fedwbas_clients_hold_five_labels_and_are_tested_on_all_images_of_them() {
    let Some(dir) = data_dir() else { return };
    let data = read(&photographs(false, Normalise::None), &dir);
    let config = PartitionScheme::LabelsPerClient(LabelsPerClient { clients: 50, labels: 5, cut: Cut::Equal }).into();
    let assigned = partition(&config, &data.train, &mut ChaCha8Rng::seed_from_u64(1)).unwrap();
    let assigned = assigned.with_tests(&config, &data.train, &data.test, &mut ChaCha8Rng::seed_from_u64(2)).unwrap();
    for client in 0..50 {
        // 25 of 50 clients hold a class, 40 of its 1,000 images each.
        assert_eq!((assigned.clients()[client].len(), assigned.test(client).len()), (200, 5000));
    }

    let data = read(&photographs(true, Normalise::None), &dir);
    let config = PartitionScheme::SuperclassLabels(SuperclassLabels { clients: 50, labels: 10 }).into();
    let assigned = partition(&config, &data.train, &mut ChaCha8Rng::seed_from_u64(1)).unwrap();
    let assigned = assigned.with_tests(&config, &data.train, &data.test, &mut ChaCha8Rng::seed_from_u64(2)).unwrap();
    let superclasses = data.train.superclasses().unwrap();
    for (client, counts) in assigned.counts(&data.train.targets).iter().enumerate() {
        let held = counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(class, _)| superclasses[class]);
        assert_eq!((held.clone().count(), held.collect::<std::collections::BTreeSet<_>>().len()), (10, 10));
        assert_eq!(assigned.test(client).len(), 1000);
    }
}

#[test]
fn a_vehicle_client_is_tested_on_its_own_rows() {
    let Some(dir) = data_dir() else { return };
    let data = read(&vehicle(&[]).into(), &dir);
    let config = PartitionScheme::ByColumn(ByColumn {}).into();
    let assigned = partition(&config, &data.train, &mut ChaCha8Rng::seed_from_u64(1)).unwrap();
    let assigned = assigned.with_tests(&config, &data.train, &data.test, &mut ChaCha8Rng::seed_from_u64(2)).unwrap();
    let tests: Vec<usize> = (0..23).map(|client| assigned.test(client).len()).collect();
    assert_eq!(tests, natural_clients(&data.test));
    let whose = data.test.clients.as_ref().unwrap();
    assert!((0..23).all(|client| assigned.test(client).iter().all(|&row| whose[row] == client)));
}

#[test]
fn a_vehicle_client_that_is_left_out_gives_all_of_its_rows_to_the_test_and_is_no_client() {
    let Some(dir) = data_dir() else { return };
    let data = read(&vehicle(&["12", "0"]).into(), &dir);
    let rows = VEHICLE_ROWS.iter().enumerate().filter(|(client, _)| ![12, 0].contains(client));
    assert_eq!(natural_clients(&data.train), rows.map(|(_, &rows)| rows as usize).collect::<Vec<_>>());
    assert_eq!(natural_clients(&data.test), [59, 534]);
}

#[test]
fn properties_known_before_the_rows_are_read_are_correct() {
    let Some(dir) = data_dir() else { return };
    let mnist = Mnist { classes: vec![], normalise: Normalise::Auto, train_limit: 9, test_limit: 9 };
    let configs = [
        mnist.into(),
        photographs(false, Normalise::Auto),
        photographs(true, Normalise::Auto),
        raetsch(RaetschSet::Heart, false, RaetschSplit::Random),
        uci(UciSet::Yacht, 0),
        vehicle(&[]).into(),
        csv(dir.join("uci-regression/naval.csv.gz"), "-1", Task::Regression, ""),
    ];
    for config in configs {
        let data = read(&config, &dir);
        assert_eq!(config.properties(), DataProperties::of(&data.train), "{}", config.kind());
    }
}
