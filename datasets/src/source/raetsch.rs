//! Rätsch's thirteen two-class benchmarks (G. Rätsch, T. Onoda, K.-R. Müller, *Soft margins for AdaBoost*, 2001).

use super::put_there_packed;
use crate::format::table;
use crate::{DataError, Dataset, Targets, split};
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// One of Rätsch's benchmarks. Sizes: all rows × features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RaetschSet {
    /// 5,300 × 2.
    Banana,
    /// 277 × 9, Ljubljana; 263 distinct rows.
    BreastCancer,
    /// 768 × 8, raw values.
    Diabetis,
    /// 1,066 × 9, integer codes; 144 distinct rows.
    FlareSolar,
    /// 1,000 × 20.
    German,
    /// 270 × 13, raw values.
    Heart,
    /// 2,310 × 18; 2,086 distinct rows.
    Image,
    /// 7,400 × 20.
    Ringnorm,
    /// 3,175 × 60, integer codes; 2,991 distinct rows.
    Splice,
    /// 215 × 5.
    Thyroid,
    /// 2,201 × 3; 24 distinct rows.
    Titanic,
    /// 7,400 × 20, raw values, which are of unit variance.
    Twonorm,
    /// 5,000 × 21, class 1 against 0 and 2.
    Waveform,
}

/// How the rows of a benchmark of Rätsch's are split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RaetschSplit {
    /// At random, a share of the rows for testing: the DSVGD paper's 80 : 20.
    Random,
    /// At random, as many rows for training and testing as in Rätsch's realisations. (His own lists of rows are not
    /// used.)
    Raetsch,
}

/// What is known of a set: features, rows of Rätsch's training and test halves, whether the values are as measured.
struct Facts(usize, usize, usize, bool);

impl RaetschSet {
    /// The word after `set =`, and the file's name before `.csv.gz`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Banana => "banana",
            Self::BreastCancer => "breast-cancer",
            Self::Diabetis => "diabetis",
            Self::FlareSolar => "flare-solar",
            Self::German => "german",
            Self::Heart => "heart",
            Self::Image => "image",
            Self::Ringnorm => "ringnorm",
            Self::Splice => "splice",
            Self::Thyroid => "thyroid",
            Self::Titanic => "titanic",
            Self::Twonorm => "twonorm",
            Self::Waveform => "waveform",
        }
    }

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

    /// Whether the file has measured values or codes, of very different sizes, where the others are standardised.
    pub fn is_raw(self) -> bool {
        self.facts().3
    }

    /// The split of all rows.
    ///
    /// # Errors
    /// Another number of rows than Rätsch's sizes add up to; what [`split::train_test`] refuses.
    pub(crate) fn split(
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
                self.name()
            );
            return Err(DataError::config("data.split", "raetsch", problem));
        }
        Ok(split::of_size(all, test, rng))
    }
}

/// All rows of a set, or each distinct (features, label) row once: the sizes of the repackaged `benchmarks.mat`.
pub(crate) fn read(set: RaetschSet, distinct: bool, data_dir: &Path) -> Result<Dataset, DataError> {
    let path = put_there_packed(data_dir, "raetsch", &format!("{}.csv", set.name()))?;
    let width = set.facts().0;
    let (features, labels) = table::read(&path, width, super::SIGNS, super::sign)?;
    let all = Dataset {
        name: format!("raetsch-{}", set.name()),
        features,
        feature_shape: vec![width],
        feature_names: None,
        targets: Targets::Classes { labels, names: super::SIGN_NAMES.map(str::to_owned).to_vec() },
        clients: None,
    };
    Ok(if distinct { split::distinct(&all) } else { all })
}
