//! The rows of each known data set, and of a user's own table, as [`Dataset`]s: raw values, nothing split but what
//! the publisher split.

pub(crate) mod by_hand;
pub mod cifar;
pub mod raetsch;
pub mod uci_regression;
pub mod vehicle;
pub mod year_prediction;

use crate::format::csv::{self, CsvOptions, CsvTable, Names, Task};
use crate::format::{first_file, idx, libsvm, table};
use crate::{DataError, Dataset, Targets};
use ndarray::Array2;
use std::path::{Path, PathBuf};

/// Digits, as scikit-learn ships them; licence and source in `data/README.md`.
const DIGITS: &[u8] = include_bytes!("../../data/digits.csv.gz");

/// Covertype's classes; the index is the class.
const COVERTYPE_CLASSES: [&str; 2] = ["-1 (lodgepole pine)", "+1 (other cover types)"];
const COVERTYPE_WIDTH: usize = 54;
const FASHION_CLASSES: [&str; 10] =
    ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"];

/// MNIST, train and test, pixels 0 to 255.
pub fn mnist(data_dir: &Path) -> Result<(Dataset, Dataset), DataError> {
    idx_set("mnist", data_dir, (0..10).map(|digit| digit.to_string()).collect())
}

/// Fashion-MNIST, train and test, pixels 0 to 255.
pub fn fashion_mnist(data_dir: &Path) -> Result<(Dataset, Dataset), DataError> {
    idx_set("fashion-mnist", data_dir, FASHION_CLASSES.map(str::to_owned).to_vec())
}

/// MNIST and what has its shape: `train-*` and `t10k-*` in `<data_dir>/<name>/`, gzipped or not.
fn idx_set(name: &str, data_dir: &Path, classes: Vec<String>) -> Result<(Dataset, Dataset), DataError> {
    let directory = data_dir.join(name);
    let find = |stem: &str| {
        let packed = format!("{stem}.gz");
        // Some mirrors unpack to `train-images.idx3-ubyte`.
        let dotted = stem.replace("-idx", ".idx");
        first_file(&directory, &[&packed, stem, &dotted])
            .ok_or_else(|| DataError::Missing { set: name.to_owned(), path: directory.join(packed) })
    };
    let half = |part: &str| -> Result<Dataset, DataError> {
        let images = find(&format!("{part}-images-idx3-ubyte"))?;
        let labels = find(&format!("{part}-labels-idx1-ubyte"))?;
        let (pixels, labels) = idx::read_pair(&images, &labels, classes.len())?;
        if labels.is_empty() {
            return Err(DataError::Empty { path: images });
        }
        let shape = pixels.dims[1..].to_vec();
        let width = shape.iter().product();
        if width == 0 {
            return Err(DataError::Columns { path: images, problem: format!("images of {shape:?} have no pixels") });
        }
        let flat: Vec<f32> = pixels.data.iter().map(|&byte| f32::from(byte)).collect();
        Ok(Dataset {
            name: name.to_owned(),
            features: Array2::from_shape_vec((labels.len(), width), flat).expect("idx checks its dimensions"),
            feature_shape: shape,
            feature_names: None,
            targets: Targets::Classes { labels, names: classes.clone() },
            clients: None,
        })
    };
    let (train, test) = (half("train")?, half("t10k")?);
    if train.feature_shape != test.feature_shape {
        let problem = format!("test images are {:?}, training images {:?}", test.feature_shape, train.feature_shape);
        return Err(DataError::Columns { path: directory, problem });
    }
    Ok((train, test))
}

/// Covertype from whichever of its published forms is in `<data_dir>/covertype/`.
pub fn covertype(data_dir: &Path) -> Result<Dataset, DataError> {
    const TWO_CLASSES: [&str; 2] = ["covtype.binary.csv.gz", "covtype.binary.csv"];
    const SEVEN_CLASSES: [&str; 2] = ["covtype.data.gz", "covtype.data"];
    let directory = data_dir.join("covertype");
    let binary = |label: i64| match label {
        1 => Some(1),
        2 | -1 => Some(0),
        _ => None,
    };
    let seven = |label: i64| (1..=7).contains(&label).then_some(usize::from(label != 2));
    let (features, labels) = if let Some(path) = first_file(&directory, &TWO_CLASSES) {
        table::read(&path, COVERTYPE_WIDTH, "1 and 2", binary)?
    } else if let Some(path) = first_file(&directory, &SEVEN_CLASSES) {
        table::read(&path, COVERTYPE_WIDTH, "1 to 7", seven)?
    } else if let Some(path) = libsvm_file(&directory) {
        libsvm::read(&path, COVERTYPE_WIDTH, "1 and 2, or +1 and -1", binary)?
    } else {
        return Err(DataError::Missing { set: "covertype".to_owned(), path: directory.join(SEVEN_CLASSES[0]) });
    };
    Ok(Dataset {
        name: "covertype".to_owned(),
        features,
        feature_shape: vec![COVERTYPE_WIDTH],
        feature_names: None,
        targets: Targets::Classes { labels, names: COVERTYPE_CLASSES.map(str::to_owned).to_vec() },
        clients: None,
    })
}

/// What `-1` and `+1` are called; the index is the class.
const SIGN_NAMES: [&str; 2] = ["-1", "+1"];
/// The labels of a two-class table, in words.
const SIGNS: &str = "-1 and +1";

/// The class of a label −1 or +1.
fn sign(label: i64) -> Option<usize> {
    match label {
        -1 => Some(0),
        1 => Some(1),
        _ => None,
    }
}

/// The file that a user has put into `<data_dir>/<set>/`, under this name or one of the others.
fn put_there(data_dir: &Path, set: &str, name: &str, others: &[&str]) -> Result<PathBuf, DataError> {
    let directory = data_dir.join(set);
    first_file(&directory, &[&[name], others].concat())
        .ok_or_else(|| DataError::NoDownload { set: set.to_owned(), path: directory.join(name) })
}

/// [`put_there`] for a file that may be gzipped or not.
fn put_there_packed(data_dir: &Path, set: &str, name: &str) -> Result<PathBuf, DataError> {
    put_there(data_dir, set, &format!("{name}.gz"), &[name])
}

/// The first file, by name, with `libsvm` among the dots of its name (`covtype.libsvm.binary`, `x.libsvm.gz`).
fn libsvm_file(directory: &Path) -> Option<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(directory)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let unfinished = name.ends_with(".part") || name.ends_with(".bz2") || name.ends_with(".xz");
            name.split('.').any(|part| part == "libsvm") && !unfinished && path.is_file()
        })
        .collect();
    found.sort();
    found.into_iter().next()
}

/// The embedded digits, pixels 0 to 16.
pub fn digits() -> Result<Dataset, DataError> {
    use std::io::Read;
    let path = Path::new("digits.csv.gz (embedded)");
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(DIGITS).read_to_end(&mut text).map_err(|e| DataError::io(path, e))?;
    let class_of = |label| usize::try_from(label).ok().filter(|&class| class < 10);
    let (features, labels) = table::parse(path, &text, 64, "0 to 9", class_of)?;
    Ok(Dataset {
        name: "digits".to_owned(),
        features,
        feature_shape: vec![8, 8],
        feature_names: None,
        targets: Targets::Classes { labels, names: (0..10).map(|d| d.to_string()).collect() },
        clients: None,
    })
}

/// The byte of a delimiter.
pub fn delimiter(text: &str) -> Result<u8, DataError> {
    match text {
        "tab" | "\\t" => Ok(b'\t'),
        _ => match text.as_bytes() {
            &[byte] if byte.is_ascii() && !byte.is_ascii_alphanumeric() && !b"\"\r\n.+-".contains(&byte) => Ok(byte),
            _ => {
                let problem =
                    "must be one character that is no letter, digit, quote or sign, e.g. \",\" or \";\" or \"tab\"";
                Err(DataError::config("data.delimiter", format!("{text:?}"), problem))
            }
        },
    }
}

/// A user's table, and the separate table of test rows where there is one. Classes and natural clients are
/// numbered over both.
pub fn csv(path: &Path, test_path: &str, columns: &CsvOptions) -> Result<(Dataset, Option<Dataset>), DataError> {
    let (mut classes, mut clients) = (Names::default(), Names::default());
    let mut read = |key: &str, path: &Path| -> Result<CsvTable, DataError> {
        if !path.exists() {
            return Err(DataError::NoFile { key: key.to_owned(), path: path.to_path_buf() });
        }
        csv::read(path, columns, &mut classes, &mut clients)
    };
    let train = read("data.path", path)?;
    let test = if test_path.is_empty() { None } else { Some(read("data.test_path", Path::new(test_path))?) };
    let one_file = |(a, b): (PathBuf, PathBuf)| a == b;
    if path.canonicalize().ok().zip(Path::new(test_path).canonicalize().ok()).is_some_and(one_file) {
        let problem = "is the file of the training rows: nothing would be tested on rows that were not trained on; name \
                       another, or leave it empty and data.test_fraction splits";
        return Err(DataError::config("data.test_path", test_path, problem));
    }
    if let Some(test) = &test {
        same_columns(&train, test, Path::new(test_path))?;
    }

    let (names, class_of) = classes.sorted();
    if columns.task == Task::Classification {
        check_classes(path, columns.target, &names)?;
    }
    let client_of = clients.sorted().1;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.split('.').next().unwrap_or("csv").to_owned();
    let assemble = |table: CsvTable| Dataset {
        name: name.clone(),
        feature_shape: vec![table.features.ncols()],
        feature_names: table.names,
        features: table.features,
        targets: match columns.task {
            Task::Classification => Targets::Classes {
                labels: table.labels.into_iter().map(|label| class_of[label]).collect(),
                names: names.clone(),
            },
            Task::Regression => Targets::Real { values: table.values },
        },
        clients: (!columns.client.is_empty())
            .then(|| table.clients.into_iter().map(|client| client_of[client]).collect()),
    };
    Ok((assemble(train), test.map(assemble)))
}

fn same_columns(train: &CsvTable, test: &CsvTable, test_path: &Path) -> Result<(), DataError> {
    let (expected, found) = (train.features.ncols(), test.features.ncols());
    let problem = if expected != found {
        format!("{found} feature columns, the training file has {expected}")
    } else {
        match (&train.names, &test.names) {
            (Some(train), Some(test)) => match train.iter().zip(test).find(|(train, test)| train != test) {
                Some((train, test)) => {
                    let (test, train) = (table::text(test.as_bytes()), table::text(train.as_bytes()));
                    format!("column `{test}` stands where the training file has `{train}`")
                }
                None => return Ok(()),
            },
            _ => return Ok(()),
        }
    };
    Err(DataError::Columns { path: test_path.to_path_buf(), problem })
}

/// A classification needs two classes, and hundreds of fractions are no classes.
fn check_classes(path: &Path, target: &str, names: &[String]) -> Result<(), DataError> {
    let refuse = |problem: String| Err(DataError::Columns { path: path.to_path_buf(), problem });
    if let [only] = names {
        let only = table::text(only.as_bytes());
        return refuse(format!("the target column `{target}` holds one class only, `{only}`"));
    }
    let fraction = |name: &String| name.parse::<f64>().is_ok_and(|value| value.fract() != 0.0);
    if names.len() > 100 && names.iter().any(fraction) {
        let count = names.len();
        return refuse(format!("the target column `{target}` holds {count} different numbers; task = \"regression\"?"));
    }
    Ok(())
}
