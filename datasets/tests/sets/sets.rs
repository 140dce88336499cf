//! The known data sets through `load`: the values of the config, small copies of each published layout, and the
//! messages when a file is missing or damaged.

use fedstein_datasets::format::idx::Idx;
use fedstein_datasets::synthetic::mixture::GaussianMixture;
use fedstein_datasets::{DataConfig, DataError, FeatureScale, Targets, TrainTest, load};
use rand::{SeedableRng, rngs::ChaCha8Rng};
use std::path::Path;
use tempfile::TempDir;

fn config(text: &str) -> DataConfig {
    serde_json::from_str(text).unwrap()
}

fn read(text: &str, dir: &Path) -> Result<TrainTest, DataError> {
    load(&config(text), dir, &mut ChaCha8Rng::seed_from_u64(1))
}

fn write(dir: &TempDir, name: &str, bytes: &[u8]) {
    let path = dir.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

const MNIST: &str = r#"{"kind":"mnist","classes":[],"normalise":"auto","train_limit":0,"test_limit":0}"#;
const COVERTYPE: &str = r#"{"kind":"covertype","normalise":"none","test_fraction":0.5,"train_limit":0,"test_limit":0}"#;

fn digits(normalise: &str) -> String {
    format!(
        r#"{{"kind":"digits","classes":[],"normalise":"{normalise}","test_fraction":0.2,"train_limit":0,"test_limit":0}}"#
    )
}

#[test]
fn configs_have_the_words_of_the_documentation() {
    for kind in ["mnist", "fashion-mnist"] {
        let text =
            format!(r#"{{"kind":"{kind}","classes":[0,8],"normalise":"published","train_limit":1,"test_limit":2}}"#);
        assert_eq!(serde_json::to_string(&config(&text)).unwrap(), text);
        assert_eq!((config(&text).kind(), config(&text).limits()), (kind, (1, 2)));
    }
    for kind in ["year-prediction", "mixture-1d", "mixture-2d"] {
        let text = format!(r#"{{"kind":"{kind}","normalise":"published","train_limit":1,"test_limit":2}}"#);
        assert_eq!(serde_json::to_string(&config(&text)).unwrap(), text);
        assert_eq!(config(&text).kind(), kind);
    }
    for kind in ["twonorm", "ringnorm", "waveform"] {
        let text = format!(
            r#"{{"kind":"{kind}","rows":9,"normalise":"minmax","test_fraction":0.2,"train_limit":1,"test_limit":2}}"#
        );
        assert_eq!(serde_json::to_string(&config(&text)).unwrap(), text);
        assert_eq!((config(&text).kind(), config(&text).limits()), (kind, (1, 2)));
    }
    for text in [
        r#"{"kind":"raetsch","set":"breast-cancer","distinct":true,"split":"raetsch","test_fraction":0.2,"normalise":"none","train_limit":1,"test_limit":2}"#,
        r#"{"kind":"uci-regression","set":"wine-red","test_split":-1,"test_fraction":0.1,"normalise":"auto","train_limit":1,"test_limit":2}"#,
        r#"{"kind":"vehicle","test_fraction":0.2,"leave_out":[],"normalise":"auto","train_limit":1,"test_limit":2}"#,
    ] {
        assert_eq!(serde_json::to_string(&config(text)).unwrap(), text);
        assert!(text.contains(config(text).kind()) && config(text).limits() == (1, 2));
    }
    let csv = r#"{"kind":"csv","path":"a.csv","test_path":"","target":"-1","header":"auto","task":"regression","positive":"","delimiter":",","client_column":"","ignore":["note"],"id":[],"group_column":"","categorical":"auto","boolean":[],"date":["born"],"date_format":"DD.MM.YYYY","decimal":".","missing_values":[],"missing":"mean","missing_target":"drop","normalise":"standard","test_fraction":0.2,"split":"by-class","leave_out":["9"],"train_limit":0,"test_limit":0}"#;
    assert_eq!(serde_json::to_string(&config(csv)).unwrap(), csv);
    // No key has a default here.
    assert!(serde_json::from_str::<DataConfig>(r#"{"kind":"mnist"}"#).is_err());
}

#[test]
fn digits_are_embedded_and_scaled_to_1() {
    let data = read(&digits("auto"), Path::new("/nonexistent")).unwrap();
    assert_eq!((data.train.rows(), data.test.rows(), data.train.width()), (1438, 359, 64));
    assert_eq!((data.train.classes(), &data.train.feature_shape[..]), (Some(10), &[8, 8][..]));
    assert_eq!(data.normalisation.features, FeatureScale::AffineAll { scale: 1.0 / 16.0, offset: 0.0 });
    let most = data.train.features.iter().copied().fold(0.0, f32::max);
    assert_eq!(most, 1.0);
    // Rows a class: scikit-learn's load_digits, np.bincount(target).
    let mut counts = [0; 10];
    data.train.labels().unwrap().iter().chain(data.test.labels().unwrap()).for_each(|&label| counts[label] += 1);
    assert_eq!(counts, [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]);
}

#[test]
fn chosen_classes_are_not_renumbered_and_the_head_stays_as_wide() {
    let chosen = |classes: &str| read(&digits("auto").replace("[]", classes), Path::new(""));
    let data = chosen("[0,1,2,3,4,5,6,7,8]").unwrap();
    // 1,797 digits, 180 of them nines
    assert_eq!((data.train.rows() + data.test.rows(), data.test.rows()), (1617, 323));
    assert_eq!((data.train.classes(), data.test.classes()), (Some(10), Some(10)));
    let data = chosen("[8,3]").unwrap();
    assert!(data.train.labels().unwrap().iter().all(|label| [3, 8].contains(label)));
    let message = chosen("[10]").unwrap_err().to_string();
    assert_eq!(message, "data.classes = [10]: `digits` has the classes 0 to 9");
}

#[test]
fn the_same_seed_gives_the_same_rows() {
    let features = |seed| {
        let rng = &mut ChaCha8Rng::seed_from_u64(seed);
        load(&config(&digits("standard")), Path::new(""), rng).unwrap().test.features
    };
    assert_eq!(features(3), features(3));
    assert_ne!(features(3), features(4));
}

#[test]
fn limits_apply_before_the_scale_is_taken() {
    let text = digits("minmax").replace(r#""train_limit":0"#, r#""train_limit":5"#);
    let data = read(&text, Path::new("")).unwrap();
    assert_eq!((data.train.rows(), data.test.rows()), (5, 359));
    assert!(data.train.features.iter().all(|x| (0.0..=1.0).contains(x)));
    assert!(data.test.features.iter().any(|x| *x > 1.0), "five rows do not reach every pixel's maximum");
}

#[test]
fn idx_files_are_read_gzipped_or_not_and_missing_ones_named() {
    let dir = TempDir::new().unwrap();
    let message = read(MNIST, dir.path()).unwrap_err().to_string().replace('\\', "/");
    assert!(message.contains("mnist/train-images-idx3-ubyte.gz"), "{message}");
    assert!(message.contains("fedstein data fetch mnist") && message.contains("--data-dir"), "{message}");

    let images = |rows: usize| Idx { dims: vec![rows, 2, 3], data: (0..rows * 6).map(|i| i as u8 * 5).collect() };
    write(&dir, "mnist/train-images-idx3-ubyte", &images(3).to_bytes());
    write(&dir, "mnist/train-labels.idx1-ubyte", &Idx { dims: vec![3], data: vec![1, 2, 9] }.to_bytes());
    write(&dir, "mnist/t10k-images-idx3-ubyte", &images(1).to_bytes());
    let message = read(MNIST, dir.path()).unwrap_err().to_string();
    assert!(message.contains("t10k-labels-idx1-ubyte.gz"), "{message}");
    write(&dir, "mnist/t10k-labels-idx1-ubyte", &Idx { dims: vec![1], data: vec![0] }.to_bytes());
    let data = read(MNIST, dir.path()).unwrap();
    assert_eq!((data.train.features.dim(), &data.train.feature_shape[..]), ((3, 6), &[2, 3][..]));
    assert_eq!(data.train.features[[1, 0]], (30.0 * 0.99 / 255.0 + 0.01) as f32);
    assert_eq!(data.train.labels(), Some(&[1, 2, 9][..]));

    let chosen = |classes: &str| read(&MNIST.replace("[]", classes), dir.path());
    let data = chosen("[0,2,9]").unwrap();
    assert_eq!((data.train.labels(), data.test.labels()), (Some(&[2, 9][..]), Some(&[0][..])));
    assert_eq!(data.train.features[[0, 0]], (30.0 * 0.99 / 255.0 + 0.01) as f32);
    let message = chosen("[1,2]").unwrap_err().to_string();
    assert_eq!(message, "data.classes = [1, 2]: `mnist` has no row of these classes");

    write(&dir, "mnist/t10k-labels-idx1-ubyte", &Idx { dims: vec![1], data: vec![10] }.to_bytes());
    assert!(read(MNIST, dir.path()).unwrap_err().to_string().contains("label 10 is out of range"));
}

#[test]
fn covertype_is_the_same_in_all_its_layouts() {
    let row = |first: usize| (0..54).map(|j| (first + j).to_string()).collect::<Vec<_>>();
    let comma = |labels: [&str; 3]| -> Vec<u8> {
        labels.iter().enumerate().map(|(i, l)| format!("{},{l}\n", row(i).join(","))).collect::<String>().into()
    };
    let sparse = |labels: [&str; 3]| -> Vec<u8> {
        let line = |i: usize| row(i).iter().enumerate().map(|(j, x)| format!(" {}:{x}", j + 1)).collect::<String>();
        labels.iter().enumerate().map(|(i, l)| format!("{l}{}\n", line(i))).collect::<String>().into()
    };
    let mut seen = Vec::new();
    for (name, bytes) in [
        ("covtype.binary.csv", comma(["1", "2", "1"])),
        ("covtype.data", comma(["5", "2", "7"])),
        ("covtype.libsvm.binary", sparse(["1", "2", "1"])),
        ("mine.libsvm", sparse(["+1", "-1", "+1"])),
    ] {
        let dir = TempDir::new().unwrap();
        write(&dir, &format!("covertype/{name}"), &bytes);
        let data = read(COVERTYPE, dir.path()).unwrap();
        let mut rows: Vec<(f32, usize)> = Vec::new();
        for half in [&data.train, &data.test] {
            rows.extend(half.features.column(0).iter().copied().zip(half.labels().unwrap().iter().copied()));
        }
        rows.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert_eq!(rows, [(0.0, 1), (1.0, 0), (2.0, 1)], "{name}");
        seen.push((data.train.features, data.train.targets));
    }
    assert!(seen.windows(2).all(|pair| pair[0] == pair[1]));
    let Targets::Classes { names, .. } = &seen[0].1 else { panic!() };
    assert!(names[0].contains("lodgepole") && names[1].starts_with("+1"), "{names:?}");

    let dir = TempDir::new().unwrap();
    write(&dir, "covertype/covtype.data", &comma(["5", "8", "7"]));
    assert!(read(COVERTYPE, dir.path()).unwrap_err().to_string().contains("row 2: label 8 is out of range"));
    let message = read(COVERTYPE, TempDir::new().unwrap().path()).unwrap_err().to_string().replace('\\', "/");
    assert!(message.contains("covertype/covtype.data.gz") && message.contains("fetch covertype"), "{message}");
}

#[test]
fn generators_are_split_and_not_scaled_where_they_are_standard_already() {
    let text = |kind: &str, rows: usize| {
        format!(
            r#"{{"kind":"{kind}","rows":{rows},"normalise":"auto","test_fraction":0.2,"train_limit":0,"test_limit":0}}"#
        )
    };
    let twonorm = read(&text("twonorm", 7400), Path::new("")).unwrap();
    assert_eq!((twonorm.train.rows(), twonorm.test.rows(), twonorm.train.width()), (5920, 1480, 20));
    assert_eq!(twonorm.normalisation.features, FeatureScale::Identity);
    let waveform = read(&text("waveform", 1000), Path::new("")).unwrap();
    assert_eq!((waveform.train.width(), waveform.train.classes()), (21, Some(3)));
    let mean = waveform.train.features.column(5).sum() / 800.0;
    assert!(mean.abs() < 1e-5, "{mean}");
    for rows in [0, 1, usize::MAX] {
        let message = read(&text("ringnorm", rows), Path::new("")).unwrap_err().to_string();
        assert!(message.contains(&format!("data.rows = {rows}: must be from 2 to")), "{message}");
    }
}

#[test]
fn mixtures_are_one_row_per_client_in_train_and_test() {
    let text = |kind: &str, normalise: &str, limit: usize| {
        format!(r#"{{"kind":"{kind}","normalise":"{normalise}","train_limit":{limit},"test_limit":0}}"#)
    };
    for (kind, dimension) in [("mixture-1d", 1), ("mixture-2d", 2)] {
        let data = read(&text(kind, "auto", 0), Path::new("")).unwrap();
        assert_eq!(data.train.features, data.test.features);
        assert_eq!(data.train.clients, Some(vec![0, 1]));
        assert_eq!(data.train.targets, Targets::None { rows: 2 });
        for row in data.train.features.rows() {
            assert_eq!(GaussianMixture::from_row(row.as_slice().unwrap(), dimension).unwrap().dimension(), dimension);
        }
    }
    assert!(read(&text("mixture-1d", "standard", 0), Path::new("")).is_err());
    assert!(read(&text("mixture-1d", "none", 1), Path::new("")).is_err());
}

#[test]
fn scales_for_images_are_refused_elsewhere() {
    let message = read(&digits("published"), Path::new("")).unwrap_err().to_string();
    assert!(
        message.contains(
            "data.normalise = published: is for sets with a published mean and deviation of their pixels only"
        ),
        "{message}"
    );
}
