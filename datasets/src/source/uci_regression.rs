//! The nine usual UCI and DELVE regression sets with the standard test splits (J. M. Hernández-Lobato, R. P. Adams,
//! *Probabilistic backpropagation*, 2015; files as Y. Gal, Z. Ghahramani published them in 2016).

use super::put_there_packed;
use crate::format::splits;
use crate::format::table::{self, TargetColumn};
use crate::{DataError, Dataset, Targets, split};
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// One of the regression sets. Sizes: rows × features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UciSet {
    /// 506 × 13, median house value. Kept out of headline tables: its column B, made from the share of Black
    /// residents, is ethically doubtful. It is here for comparison with published numbers only.
    Boston,
    /// 1,030 × 8, compressive strength.
    Concrete,
    /// 768 × 8, heating load.
    Energy,
    /// 8,192 × 8, distance of a robot arm's end.
    Kin8nm,
    /// 11,934 × 16, decay of a ship's compressor; columns 9 and 12 are constant.
    Naval,
    /// 9,568 × 4, output of a power plant (CCPP).
    Power,
    /// 45,730 × 9, RMSD (CASP); five splits, the others have twenty.
    Protein,
    /// 1,599 × 11, quality of red wine.
    WineRed,
    /// 308 × 6, residuary resistance.
    Yacht,
}

impl UciSet {
    /// The word after `set =`, and the files' name before `.csv.gz` and `.test-splits.txt.gz`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Boston => "boston",
            Self::Concrete => "concrete",
            Self::Energy => "energy",
            Self::Kin8nm => "kin8nm",
            Self::Naval => "naval",
            Self::Power => "power",
            Self::Protein => "protein",
            Self::WineRed => "wine-red",
            Self::Yacht => "yacht",
        }
    }

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

/// Train and test of standard split `test_split`, or for -1 a seeded split of `test_fraction`.
pub(crate) fn read(
    set: UciSet,
    test_split: i64,
    test_fraction: f64,
    data_dir: &Path,
    rng: &mut impl Rng,
) -> Result<(Dataset, Dataset), DataError> {
    const KIND: &str = "uci-regression";
    const KEY: &str = "data.test_split";
    let (name, width) = (set.name(), set.features());
    let path = put_there_packed(data_dir, KIND, &format!("{name}.csv"))?;
    let (features, values) = table::read_regression(&path, width, TargetColumn::Last)?;
    let all = Dataset {
        name: format!("{KIND}-{name}"),
        features,
        feature_shape: vec![width],
        feature_names: None,
        targets: Targets::Real { values },
        clients: None,
    };
    if test_split == -1 {
        return split::train_test(&all, test_fraction, rng);
    }
    let number = usize::try_from(test_split).map_err(|_| {
        DataError::config(KEY, test_split, "must be a standard split, from 0, or -1 for one drawn with the seed")
    })?;
    let path = put_there_packed(data_dir, KIND, &format!("{name}.test-splits.txt"))?;
    Ok(split::by_rows(&all, &splits::read(&path, number, all.rows(), KEY)?))
}
