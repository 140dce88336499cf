//! The real files. Set `FEDSTEIN_DATA` to their directory; without it these tests say so and pass, with it a missing
//! file fails.

use fedstein_datasets::format::csv::{Header, Task};
use fedstein_datasets::{DataConfig, Normalise, TrainTest, load};
use rand::{SeedableRng, rngs::ChaCha8Rng};
use std::path::PathBuf;

fn data_dir() -> Option<PathBuf> {
    let dir = std::env::var_os("FEDSTEIN_DATA").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    if dir.is_none() {
        println!("skipped: FEDSTEIN_DATA is not set");
    }
    dir
}

fn read(config: &DataConfig, dir: &std::path::Path) -> TrainTest {
    load(config, dir, &mut ChaCha8Rng::seed_from_u64(1)).unwrap()
}

fn mean(data: &fedstein_datasets::Dataset) -> f64 {
    data.features.iter().map(|&x| f64::from(x)).sum::<f64>() / data.features.len() as f64
}

// Row counts and mean pixels: shared/data/README.md.
#[test]
fn mnist_has_its_published_rows_and_mean_pixel() {
    let Some(dir) = data_dir() else { return };
    let data = read(&DataConfig::Mnist { normalise: Normalise::None, train_limit: 0, test_limit: 0 }, &dir);
    assert_eq!((data.train.rows(), data.test.rows(), data.train.width()), (60_000, 10_000, 784));
    assert_eq!(data.train.feature_shape, [28, 28]);
    assert!((mean(&data.train) - 33.3184).abs() < 5e-5, "{}", mean(&data.train));
    assert!((mean(&data.test) - 33.7912).abs() < 5e-5, "{}", mean(&data.test));
    assert_eq!(data.train.labels().unwrap()[..10], [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]);
}

#[test]
fn mnist_is_scaled_and_limited() {
    let Some(dir) = data_dir() else { return };
    let data = read(&DataConfig::Mnist { normalise: Normalise::Auto, train_limit: 1000, test_limit: 100 }, &dir);
    assert_eq!((data.train.rows(), data.test.rows()), (1000, 100));
    let (low, high) = data.train.features.iter().fold((f32::MAX, f32::MIN), |(l, h), &x| (l.min(x), h.max(x)));
    assert_eq!((low, high), (0.01, 1.0));
    // (x/255 - 0.1307) / 0.3081 standardises the training set: its mean is 0 and its sd 1 up to the four digits given
    let whole = read(&DataConfig::Mnist { normalise: Normalise::Published, train_limit: 0, test_limit: 100 }, &dir);
    assert!(mean(&whole.train).abs() < 1e-3, "{}", mean(&whole.train));
}

#[test]
fn fashion_mnist_has_its_published_rows_and_mean_pixel() {
    let Some(dir) = data_dir() else { return };
    let data = read(&DataConfig::FashionMnist { normalise: Normalise::None, train_limit: 0, test_limit: 0 }, &dir);
    assert_eq!((data.train.rows(), data.test.rows()), (60_000, 10_000));
    assert!((mean(&data.train) - 72.9404).abs() < 5e-5, "{}", mean(&data.train));
    assert_eq!(data.train.classes(), Some(10));
}

#[test]
fn covertype_has_its_published_rows_and_classes() {
    let Some(dir) = data_dir() else { return };
    let config =
        DataConfig::Covertype { normalise: Normalise::Auto, test_fraction: 0.2, train_limit: 0, test_limit: 0 };
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
    DataConfig::Csv {
        path,
        test_path: String::new(),
        target: target.into(),
        header: Header::Auto,
        task,
        delimiter: ",".into(),
        client_column: client.into(),
        normalise: Normalise::Auto,
        test_fraction: 0.1,
        train_limit: 0,
        test_limit: 0,
    }
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
    let dealt = fedstein_datasets::partition(
        &fedstein_datasets::PartitionConfig::ByColumn {},
        &data.train,
        &mut ChaCha8Rng::seed_from_u64(1),
    );
    assert_eq!(dealt.unwrap().clients().len(), 23);
}
