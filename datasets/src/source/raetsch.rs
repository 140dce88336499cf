//! Rätsch's thirteen two-class benchmarks (G. Rätsch, T. Onoda, K.-R. Müller, *Soft margins for AdaBoost*, 2001).

use super::files::find_gzipped_file;
use super::kind::{Rows, Source};
use super::set::manual_file;
use super::signs::{SIGN_NAMES, SIGNS, sign};
use super::{DataFile, DataSet, Origin};
use crate::format::table;
use crate::prepare::{NORMALISE, TEST_FRACTION, TEST_LIMIT, TRAIN_LIMIT};
use crate::{DataError, DataProperties, Dataset, Normalise, Targets, split};
use fedstein_schema::Literal::{Bool, Text};
use fedstein_schema::{Accepts, Key, Kind, key};
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// One of Rätsch's thirteen benchmarks, two classes: class 0 is his −1, class 1 his +1. Manual download.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Raetsch {
    /// The benchmark.
    pub set: RaetschSet,
    /// Whether each distinct (features, label) row is kept once, before the split. This gives the sizes of the
    /// repackaged `benchmarks.mat`, which papers quote (breast cancer 263, image 2,086, splice 2,991, flare solar 144,
    /// titanic 24). The other sets have no duplicate rows.
    pub distinct: bool,
    /// The kind of the split. Rätsch's sizes need all rows.
    pub split: RaetschSplit,
    /// The share of the rows for testing; not used with Rätsch's sizes.
    pub test_fraction: f64,
    /// The scale of the features; `auto` is `standard` for the sets of measured values or codes (diabetis,
    /// flare-solar, heart, splice), whose columns are of very different sizes, and `none` for the others, which
    /// are of unit variance already. (The DSVGD paper scaled none of them.)
    pub normalise: Normalise,
    /// The number of training rows to keep; 0 keeps all.
    pub train_limit: usize,
    /// The number of test rows to keep; 0 keeps all.
    pub test_limit: usize,
}

const WHICH: Key = key(
    "set",
    Accepts::Choice(RaetschSet::WORDS),
    Text(RaetschSet::Image.word()),
    "Which benchmark: `banana`, `breast-cancer`, `diabetis`, `flare-solar`, `german`, `heart`, `image`, `ringnorm`, `splice`, `thyroid`, `titanic`, `twonorm` or `waveform`.",
);

const DISTINCT: Key = key(
    "distinct",
    Accepts::Bool,
    Bool(false),
    "Whether each distinct (features, label) row is kept once, before the split: the sizes of the repackaged `benchmarks.mat`, which [D] quotes (image 2,086, breast cancer 263).",
);

const SPLIT: Key = key(
    "split",
    Accepts::Choice(RaetschSplit::WORDS),
    Text(RaetschSplit::Random.word()),
    "`random`: `test_fraction` ([D]: 0.2); `raetsch`: as many training and test rows as in Rätsch's realisations, drawn with `seed`; it needs all rows, so mostly `distinct = false`.",
);

impl Source for Raetsch {
    const KIND: Kind = Kind {
        name: "raetsch",
        about: "One of Rätsch's 13 benchmarks: 215 to 7,400 rows of 2 to 60 features, 2 classes; manual download. Scale `auto`: `standard` for diabetis, flare-solar, heart and splice, else `none`.",
        keys: &[
            WHICH,
            DISTINCT,
            SPLIT,
            NORMALISE,
            TEST_FRACTION
                .doc("Share of the rows held out for the test, drawn with `seed`. Ignored with `split = \"raetsch\"`."),
            TRAIN_LIMIT,
            TEST_LIMIT,
        ],
    };
    const SET: DataSet = DataSet {
        name: Self::KIND.name,
        summary: "Raetsch's 13 benchmarks, 215 to 7,400 rows of 2 to 60 features, 2 classes",
        source: "G. Raetsch, T. Onoda, K.-R. Mueller, Soft margins for AdaBoost, 2001; from UCI, DELVE and STATLOG; breast-cancer: M. Zwitter, M. Soklic, University Medical Centre, Ljubljana",
        licence: "the UCI originals CC BY 4.0; twonorm, ringnorm, titanic (DELVE): none stated",
        origin: Origin::Download,
        files: FILES,
        manual_download: Some(HOW),
    };

    fn properties(&self) -> DataProperties {
        DataProperties::classes(2)
    }

    fn auto_scale(&self) -> Normalise {
        if self.set.is_raw() { Normalise::Standard } else { Normalise::None }
    }

    fn read(&self, data_dir: &Path, rng: &mut impl Rng) -> Result<Rows, DataError> {
        let all = read(self.set, self.distinct, data_dir)?;
        self.set.split(&all, self.split, self.test_fraction, rng).map(Rows::from)
    }
}

fedstein_schema::words! {
    /// One of Rätsch's benchmarks, by the file's name before `.csv.gz`. The sizes are all rows × features.
    pub enum RaetschSet {
        /// 5,300 × 2.
        Banana = "banana",
        /// 277 × 9, Ljubljana; 263 distinct rows.
        BreastCancer = "breast-cancer",
        /// 768 × 8, raw values.
        Diabetis = "diabetis",
        /// 1,066 × 9, integer codes; 144 distinct rows.
        FlareSolar = "flare-solar",
        /// 1,000 × 20.
        German = "german",
        /// 270 × 13, raw values.
        Heart = "heart",
        /// 2,310 × 18; 2,086 distinct rows.
        Image = "image",
        /// 7,400 × 20.
        Ringnorm = "ringnorm",
        /// 3,175 × 60, integer codes; 2,991 distinct rows.
        Splice = "splice",
        /// 215 × 5.
        Thyroid = "thyroid",
        /// 2,201 × 3; 24 distinct rows.
        Titanic = "titanic",
        /// 7,400 × 20, raw values, which are of unit variance.
        Twonorm = "twonorm",
        /// 5,000 × 21, class 1 against 0 and 2.
        Waveform = "waveform",
    }
}

fedstein_schema::words! {
    /// The split of a benchmark of Rätsch's.
    pub enum RaetschSplit {
        /// A random split with a share of the rows for testing: the DSVGD paper's 80 : 20.
        Random = "random",
        /// A random split with the numbers of training and test rows of Rätsch's realisations. (His own lists of rows
        /// are not used.)
        Raetsch = "raetsch",
    }
}

/// The number of features of a set, the numbers of Rätsch's training and test rows, and whether the values are raw.
struct Facts(usize, usize, usize, bool);

impl RaetschSet {
    fn facts(self) -> Facts {
        match self {
            Self::Banana => Facts(2, 400, 4_900, false),
            Self::BreastCancer => Facts(9, 200, 77, false),
            Self::Diabetis => Facts(8, 468, 300, true),
            Self::FlareSolar => Facts(9, 666, 400, true),
            Self::German => Facts(20, 700, 300, false),
            Self::Heart => Facts(13, 170, 100, true),
            Self::Image => Facts(18, 1_300, 1_010, false),
            Self::Ringnorm => Facts(20, 400, 7_000, false),
            Self::Splice => Facts(60, 1_000, 2_175, true),
            Self::Thyroid => Facts(5, 140, 75, false),
            Self::Titanic => Facts(3, 150, 2_051, false),
            Self::Twonorm => Facts(20, 400, 7_000, false),
            Self::Waveform => Facts(21, 400, 4_600, false),
        }
    }

    /// Whether the file has raw values or codes, of very different sizes; the other files are standardised.
    pub fn is_raw(self) -> bool {
        self.facts().3
    }

    /// Splits all rows.
    ///
    /// # Errors
    /// The number of rows is not the sum of Rätsch's sizes; or the error is one of [`split::train_test`].
    fn split(
        self,
        all: &Dataset,
        how: RaetschSplit,
        test_fraction: f64,
        rng: &mut impl Rng,
    ) -> Result<(Dataset, Dataset), DataError> {
        if how == RaetschSplit::Random {
            return split::train_test(all, test_fraction, rng);
        }
        let Facts(_, train, test, _) = self.facts();
        let (rows, expected) = (all.rows(), train + test);
        if rows != expected {
            let problem = format!(
                "Rätsch split the {expected} rows of {} into {train} for training and {test} for testing, here are \
                 {rows}; use \"random\", or all rows (data.distinct = false)",
                self.word()
            );
            return Err(DataError::config("data.split", "raetsch", problem));
        }
        Ok(split::of_size(all, test, rng))
    }
}

/// All rows of a set, or each distinct (features, label) row once.
fn read(set: RaetschSet, distinct: bool, data_dir: &Path) -> Result<Dataset, DataError> {
    let path = find_gzipped_file(data_dir, "raetsch", &format!("{}.csv", set.word()))?;
    let width = set.facts().0;
    let (features, labels) = table::read(&path, width, SIGNS, sign)?;
    let all = Dataset {
        name: format!("raetsch-{}", set.word()),
        features,
        feature_shape: vec![width],
        feature_names: None,
        targets: Targets::Classes { labels, names: SIGN_NAMES.map(str::to_owned).to_vec() },
        clients: None,
        client_names: None,
        groups: None,
        lines: None,
    };
    Ok(if distinct { split::distinct(&all) } else { all })
}

const HOW: &str = "\
     raetsch/NAME.csv.gz, gzipped or not: no header, one row per line, comma-separated numbers, the features and then the \
     label -1 or +1; only the set that is used must be there\n  \
     from benchmarks.mat of https://github.com/tdiethe/gunnar_raetsch_benchmark_datasets, or from UCI and DELVE: \
     docs/data.md, \"Manual downloads\"";

const FILES: &[DataFile] = &[
    manual_file!("raetsch/banana.csv", 55546, "5204e4563cc9c1248c84e5faaf86fe016509350371e0652f7c161d6a10873662"),
    manual_file!("raetsch/breast-cancer.csv", 1809, "914f7bcdb0cc33ac686bf523aaa56d0771dc512ce021a9081ac879077256bbb1"),
    manual_file!("raetsch/diabetis.csv", 8622, "41d3fe45fcc175dce6e404a3e431ed7ea02e3d36c4ef355608f1dfa9d380f943"),
    manual_file!("raetsch/flare-solar.csv", 1695, "bf7a1689e7b306a183667e1d7e42d7edbe9ff2f2db8895603dac0ad346bcbdb3"),
    manual_file!("raetsch/german.csv", 21277, "bf4a7e954bcb86b4b9cee1ec039eddaa3320e69d15337133c744d7ceef57f15d"),
    manual_file!("raetsch/heart.csv", 2854, "b3e6943e83c2244ef771986d48a3fded38317d310021856e02dd539c07d935a0"),
    manual_file!("raetsch/image.csv", 160101, "a3ac1f73dd11698ca5fbe03de6bc268c5d2d7633b57fc105a7661b92b46190ee"),
    manual_file!("raetsch/ringnorm.csv", 720458, "fa08f952edf1d8d016c05c1d68efc7c638421ddebd4fc7df55f867a52635dd2b"),
    manual_file!("raetsch/splice.csv", 65909, "970f680010a1c20ea104d5222c8ca07f9b7daf6373dc19f19265a93b0cfe0144"),
    manual_file!("raetsch/thyroid.csv", 3459, "a682119165b0ae660844f3985cec55f1812dfd582a475495a5ddc391de1e6427"),
    manual_file!("raetsch/titanic.csv", 2409, "f93577641ec9dc71b260962d283fe32592d51b00f47ff85ffddf5637490cfd0c"),
    manual_file!("raetsch/twonorm.csv", 405386, "01706f9320dfdf095a0cfa35ffb3ffaf27fa55d2a3222c2590f0d9c1307f132a"),
    manual_file!("raetsch/waveform.csv", 470067, "204eace686363d978d7576a6d9a48cfcf059355ea731782ca7c6c8b797654174"),
];
