//! The data sets fedstein knows by name: what they are, whose they are, which files they need and where those come
//! from. Checksums and sizes are the publishers' (of sets without a download, those of our copies); see
//! `data/README.md` of the crate for the embedded one.

use crate::DataError;
use crate::source::by_hand;
use std::path::{Path, PathBuf};

/// One data set.
#[derive(Clone, Copy, Debug)]
pub struct DataSet {
    /// Its name: the `kind` in `[data]`, the argument of `fedstein data fetch`.
    pub name: &'static str,
    /// One line: what, how many rows, how many features.
    pub summary: &'static str,
    /// Who made it, and the publication to cite.
    pub source: &'static str,
    /// Licence, as its publisher states it.
    pub licence: &'static str,
    /// Where its rows come from.
    pub origin: Origin,
    /// What has to be in the data directory; empty unless [`Origin::Download`]. Of `raetsch` and `uci-regression`,
    /// which are several tables, only the files of the one that is used.
    pub files: &'static [DataFile],
    /// Where the files are not downloaded: how a user comes by them and what they must hold. `None` otherwise.
    pub by_hand: Option<&'static str>,
}

/// Where rows come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// From files below the data directory: fetched from the publisher or, with [`DataSet::by_hand`], put there.
    Download,
    /// Part of the program.
    Embedded,
    /// Drawn from the run's seed.
    Generated,
    /// From a file the user names.
    Own,
}

/// One file of a data set.
#[derive(Clone, Copy, Debug)]
pub struct DataFile {
    /// Path below the data directory, with `/`.
    pub path: &'static str,
    /// Size; 0 where it is not known ([`DataFile::is_known`]).
    pub bytes: u64,
    /// SHA-256, lower-case hexadecimal; empty where it is not known.
    pub sha256: &'static str,
    /// Where to get it; tried in turn. Whatever answers, the checksum decides. Empty where it is put there by hand.
    pub mirrors: &'static [&'static str],
    /// Other files that `load` reads in its place, below the data directory.
    pub alternatives: &'static [&'static str],
    /// Files with a part of the set's rows, which `load` reads where the whole is not there, and says so.
    pub part: &'static [&'static str],
}

impl DataFile {
    /// Whether size and checksum are known. A file of which they are not is never fetched.
    pub fn is_known(&self) -> bool {
        !self.sha256.is_empty()
    }
}

/// What is in the data directory for one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileStatus {
    /// There, with the right size where that is known.
    Present,
    /// Not there, but this other form of it, which serves as well.
    Alternative(PathBuf),
    /// Not there, but this part of the set's rows, which serves for a start.
    Part(PathBuf),
    /// Not there.
    Missing,
    /// There, but of another size: damaged, or not the publisher's. Of a set without a download perhaps a copy of the
    /// user's own, which is read all the same.
    WrongSize {
        /// The size it has.
        bytes: u64,
    },
}

/// All data sets: the downloaded ones, those put there by hand, and the others.
pub fn sets() -> &'static [DataSet] {
    &SETS
}

/// The data set of that name.
///
/// # Errors
/// There is none.
pub fn find(name: &str) -> Result<&'static DataSet, DataError> {
    SETS.iter().find(|set| set.name == name).ok_or_else(|| DataError::UnknownSet {
        name: name.to_owned(),
        known: SETS.iter().map(|set| set.name).collect::<Vec<_>>().join(", "),
    })
}

/// What is below `data_dir` for each file of a set. Sizes only: `fetch` checks sums.
pub fn status(set: &DataSet, data_dir: &Path) -> Vec<(DataFile, FileStatus)> {
    let state = |file: &DataFile| match std::fs::metadata(data_dir.join(file.path)) {
        Ok(meta) if meta.is_file() && (meta.len() == file.bytes || !file.is_known()) => FileStatus::Present,
        Ok(meta) if meta.is_file() => FileStatus::WrongSize { bytes: meta.len() },
        _ => {
            let first = |paths: &[&str]| paths.iter().map(|path| data_dir.join(path)).find(|path| path.is_file());
            let other = first(file.alternatives).map(FileStatus::Alternative);
            other.or_else(|| first(file.part).map(FileStatus::Part)).unwrap_or(FileStatus::Missing)
        }
    };
    set.files.iter().map(|file| (*file, state(file))).collect()
}

/// An idx file of MNIST or Fashion-MNIST: `$base` are the mirrors' directories.
macro_rules! idx_file {
    ($set:literal, $stem:literal, $dotted:literal, $bytes:literal, $sha256:literal, [$($base:literal),+]) => {
        DataFile {
            path: concat!($set, "/", $stem, ".gz"),
            bytes: $bytes,
            sha256: $sha256,
            mirrors: &[$(concat!($base, $stem, ".gz")),+],
            alternatives: &[concat!($set, "/", $stem), concat!($set, "/", $dotted)],
            part: &[],
        }
    };
}

macro_rules! mnist_file {
    ($stem:literal, $dotted:literal, $bytes:literal, $sha256:literal) => {
        idx_file!(
            "mnist",
            $stem,
            $dotted,
            $bytes,
            $sha256,
            ["https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/"]
        )
    };
}

// The publisher's S3 web site speaks http only; the checksum makes that safe.
macro_rules! fashion_file {
    ($stem:literal, $dotted:literal, $bytes:literal, $sha256:literal) => {
        idx_file!(
            "fashion-mnist",
            $stem,
            $dotted,
            $bytes,
            $sha256,
            [
                "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
                "https://fashion-mnist.s3.eu-central-1.amazonaws.com/",
                "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
            ]
        )
    };
}

const NO_FILES: &[DataFile] = &[];
const BREIMAN: &str =
    "L. Breiman, Bias, variance, and arcing classifiers, 1996; Classification and regression trees, 1984";
const DSVGD: &str = "R. Kassab, O. Simeone, Federated generalized Bayesian learning via distributed Stein variational gradient descent, 2022";

static SETS: [DataSet; 16] = [
    DataSet {
        name: "mnist",
        summary: "handwritten digits: 60,000 + 10,000 images of 28x28, 10 classes",
        source: "Y. LeCun, C. Cortes, C. Burges, The MNIST database of handwritten digits, 1998",
        licence: "CC BY-SA 3.0 (as usually stated)",
        origin: Origin::Download,
        files: &[
            mnist_file!(
                "train-images-idx3-ubyte",
                "train-images.idx3-ubyte",
                9912422,
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"
            ),
            mnist_file!(
                "train-labels-idx1-ubyte",
                "train-labels.idx1-ubyte",
                28881,
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"
            ),
            mnist_file!(
                "t10k-images-idx3-ubyte",
                "t10k-images.idx3-ubyte",
                1648877,
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"
            ),
            mnist_file!(
                "t10k-labels-idx1-ubyte",
                "t10k-labels.idx1-ubyte",
                4542,
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"
            ),
        ],
        by_hand: None,
    },
    DataSet {
        name: "fashion-mnist",
        summary: "articles of clothing: 60,000 + 10,000 images of 28x28, 10 classes",
        source: "H. Xiao, K. Rasul, R. Vollgraf (Zalando Research), Fashion-MNIST, 2017",
        licence: "MIT",
        origin: Origin::Download,
        files: &[
            fashion_file!(
                "train-images-idx3-ubyte",
                "train-images.idx3-ubyte",
                26421880,
                "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"
            ),
            fashion_file!(
                "train-labels-idx1-ubyte",
                "train-labels.idx1-ubyte",
                29515,
                "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"
            ),
            fashion_file!(
                "t10k-images-idx3-ubyte",
                "t10k-images.idx3-ubyte",
                4422102,
                "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"
            ),
            fashion_file!(
                "t10k-labels-idx1-ubyte",
                "t10k-labels.idx1-ubyte",
                5148,
                "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"
            ),
        ],
        by_hand: None,
    },
    DataSet {
        name: "covertype",
        summary: "forest cover, lodgepole pine against the rest: 581,012 rows of 54 features, 2 classes",
        source: "J. A. Blackard, Colorado State University, Covertype, UCI Machine Learning Repository, 1998",
        licence: "CC BY 4.0; copyright Jock A. Blackard and Colorado State University",
        origin: Origin::Download,
        files: &[DataFile {
            path: "covertype/covtype.data.gz",
            bytes: 11240707,
            sha256: "614360d0257557dd1792834a85a1cdebfadc3c4f30b011d56afee7ffb5b15771",
            mirrors: &[
                "https://archive.ics.uci.edu/ml/machine-learning-databases/covtype/covtype.data.gz",
                // scikit-learn's copy (fetch_covtype), with the same checksum
                "https://ndownloader.figshare.com/files/5976039",
            ],
            alternatives: &[
                "covertype/covtype.data",
                "covertype/covtype.binary.csv.gz",
                "covertype/covtype.binary.csv",
                "covertype/covtype.libsvm.binary",
                "covertype/covtype.libsvm.binary.gz",
            ],
            part: &[],
        }],
        by_hand: None,
    },
    DataSet {
        name: "cifar10",
        summary: "small photographs: 50,000 + 10,000 images of 3x32x32, 10 classes",
        source: "A. Krizhevsky, Learning multiple layers of features from tiny images, 2009",
        licence: "none stated; its author asks for the citation",
        origin: Origin::Download,
        files: by_hand::CIFAR10,
        by_hand: Some(by_hand::HOW_CIFAR10),
    },
    DataSet {
        name: "cifar100",
        summary: "small photographs: 50,000 + 10,000 images of 3x32x32, 100 classes in 20 superclasses",
        source: "A. Krizhevsky, Learning multiple layers of features from tiny images, 2009",
        licence: "none stated; its author asks for the citation",
        origin: Origin::Download,
        files: by_hand::CIFAR100,
        by_hand: Some(by_hand::HOW_CIFAR100),
    },
    DataSet {
        name: "raetsch",
        summary: "Raetsch's 13 benchmarks, 215 to 7,400 rows of 2 to 60 features, 2 classes",
        source: "G. Raetsch, T. Onoda, K.-R. Mueller, Soft margins for AdaBoost, 2001; from UCI, DELVE and STATLOG; breast-cancer: M. Zwitter, M. Soklic, University Medical Centre, Ljubljana",
        licence: "the UCI originals CC BY 4.0; twonorm, ringnorm, titanic (DELVE): none stated",
        origin: Origin::Download,
        files: by_hand::RAETSCH,
        by_hand: Some(by_hand::HOW_RAETSCH),
    },
    DataSet {
        name: "uci-regression",
        summary: "9 regression tables with the standard splits; boston, whose column B is ethically doubtful, is kept out of headline tables",
        source: "UCI Machine Learning Repository, StatLib (boston), DELVE (kin8nm); splits: J. M. Hernandez-Lobato, R. P. Adams, Probabilistic backpropagation, 2015; files: Y. Gal, Z. Ghahramani, 2016",
        licence: "CC BY 4.0 (UCI); boston, kin8nm: none stated; the lists of splits CC BY-NC 4.0",
        origin: Origin::Download,
        files: by_hand::UCI_REGRESSION,
        by_hand: Some(by_hand::HOW_UCI),
    },
    DataSet {
        name: "vehicle",
        summary: "vehicles by 23 sensors, which are the clients: 1,860 rows (a part) of 100 features, 2 classes",
        source: "M. Duarte, Y. H. Hu, Vehicle classification in distributed sensor networks, 2004; the training part of litian96/ditto",
        licence: "none stated",
        origin: Origin::Download,
        files: by_hand::VEHICLE,
        by_hand: Some(by_hand::HOW_VEHICLE),
    },
    DataSet {
        name: "year-prediction",
        summary: "year of a song from its sound: 463,715 + 51,630 rows of 90 features, regression",
        source: "T. Bertin-Mahieux, YearPredictionMSD, UCI Machine Learning Repository, 2011",
        licence: "CC BY 4.0 at UCI (not checked)",
        origin: Origin::Download,
        files: by_hand::YEAR_PREDICTION,
        by_hand: Some(by_hand::HOW_YEAR_PREDICTION),
    },
    DataSet {
        name: "digits",
        summary: "handwritten digits, small: 1,797 images of 8x8, 10 classes",
        source: "E. Alpaydin, C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository, 1998; the copy of scikit-learn",
        licence: "CC BY 4.0 (data), BSD-3-Clause (scikit-learn's copy)",
        origin: Origin::Embedded,
        files: NO_FILES,
        by_hand: None,
    },
    generated("twonorm", "two 20-d unit Gaussians, 2 classes; Bayes error 2.275 %", BREIMAN),
    generated("ringnorm", "a narrow 20-d Gaussian in a wide one, 2 classes; Bayes error 1.25 %", BREIMAN),
    generated("waveform", "noisy mixtures of triangular waves, 21 features, 3 classes; Bayes error 13.2 %", BREIMAN),
    generated("mixture-1d", "toy of the DSVGD paper's Fig. 2: two clients with a 1-d likelihood each", DSVGD),
    generated("mixture-2d", "toy of the DSVGD paper's Fig. 10: two clients with a 2-d likelihood each", DSVGD),
    DataSet {
        name: "csv",
        summary: "your own table of numbers: classification or regression, with or without natural clients",
        source: "yours",
        licence: "yours",
        origin: Origin::Own,
        files: NO_FILES,
        by_hand: None,
    },
];

const fn generated(name: &'static str, summary: &'static str, source: &'static str) -> DataSet {
    DataSet {
        name,
        summary,
        source,
        licence: "drawn from the run's seed: none",
        origin: Origin::Generated,
        files: NO_FILES,
        by_hand: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_mirrors_a_checksum_and_a_place_below_its_set() {
        for set in sets() {
            assert_eq!(set.files.is_empty(), set.origin != Origin::Download, "{}", set.name);
            for file in set.files {
                assert!(file.path.starts_with(&format!("{}/", set.name)), "{}", file.path);
                match set.by_hand {
                    Some(how) => assert!(file.mirrors.is_empty() && how.contains(set.name), "{}", file.path),
                    None => {
                        assert!(file.mirrors.len() >= 2 && file.mirrors.iter().all(|m| m.starts_with("http")));
                        assert!(file.is_known(), "{}", file.path);
                    }
                }
                let hexadecimal = file.sha256.bytes().all(|b| b"0123456789abcdef".contains(&b));
                assert!(
                    !file.is_known() || (file.sha256.len() == 64 && hexadecimal && file.bytes > 0),
                    "{}",
                    file.path
                );
            }
        }
    }

    #[test]
    fn sets_put_there_by_hand_are_reported_file_by_file() {
        let dir = tempfile::tempdir().unwrap();
        let states = |name| -> Vec<(DataFile, FileStatus)> { status(find(name).unwrap(), dir.path()) };
        assert_eq!((states("raetsch").len(), states("uci-regression").len(), states("vehicle").len()), (13, 18, 1));
        for set in ["raetsch", "year-prediction"] {
            std::fs::create_dir(dir.path().join(set)).unwrap();
        }
        std::fs::write(dir.path().join("raetsch/heart.csv"), "mine").unwrap();
        std::fs::write(dir.path().join("raetsch/image.csv.gz"), "mine").unwrap();
        for (file, state) in states("raetsch") {
            let expected = match file.path {
                "raetsch/heart.csv.gz" => FileStatus::Alternative(dir.path().join("raetsch/heart.csv")),
                "raetsch/image.csv.gz" => FileStatus::WrongSize { bytes: 4 },
                _ => FileStatus::Missing,
            };
            assert_eq!(state, expected, "{}", file.path);
        }
        // Nothing is known about the size of this one.
        std::fs::write(dir.path().join("year-prediction/YearPredictionMSD.txt"), "2001").unwrap();
        assert_eq!(states("year-prediction")[0].1, FileStatus::Present);
        assert!(!states("year-prediction")[0].0.is_known());
    }

    #[test]
    fn names_are_found_and_unknown_ones_answered_with_the_known() {
        assert_eq!(find("digits").unwrap().origin, Origin::Embedded);
        let message = find("minst").unwrap_err().to_string();
        assert!(message.contains("`minst`") && message.contains("mnist, fashion-mnist, covertype"), "{message}");
    }

    #[test]
    fn status_tells_present_alternative_missing_and_wrong_size() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: usize| std::fs::write(dir.path().join(name), vec![0; bytes]).unwrap();
        std::fs::create_dir(dir.path().join("mnist")).unwrap();
        write("mnist/train-labels-idx1-ubyte.gz", 28881);
        write("mnist/t10k-labels-idx1-ubyte.gz", 5);
        write("mnist/t10k-images-idx3-ubyte", 7);
        let states: Vec<FileStatus> =
            status(find("mnist").unwrap(), dir.path()).into_iter().map(|(_, state)| state).collect();
        assert_eq!(
            states,
            [
                FileStatus::Missing,
                FileStatus::Present,
                FileStatus::Alternative(dir.path().join("mnist/t10k-images-idx3-ubyte")),
                FileStatus::WrongSize { bytes: 5 },
            ]
        );
    }
}
