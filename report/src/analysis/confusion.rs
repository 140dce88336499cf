//! The classes that are taken for one another, of a report on three classes or more.

use serde::Serialize;

use crate::metrics::{ClassPredictions, ConfusedPair, Confusion};

/// The most classes whose whole matrix is shown.
const MOST_CLASSES: usize = 20;
/// The most pairs of classes that are shown beside the matrix, and without it.
const MOST_PAIRS: (usize, usize) = (10, 20);

/// The confusion matrix, and what stands out in it.
#[derive(Debug, Clone, Serialize)]
pub struct ConfusionAnalysis {
    /// Numbers of rows, `[C][C]`, the label first; `None` with more than 20 classes, where `confusion.csv` has them.
    pub counts: Option<Vec<Vec<usize>>>,
    /// The pairs of classes with the most confused rows, at most 10, and 20 of more than 20 classes.
    pub pairs: Vec<ConfusedPair>,
    /// The number of pairs of classes with confused rows.
    pub all_pairs: usize,
    /// The matrix.
    #[serde(skip)]
    pub(crate) matrix: Confusion,
}

impl ConfusionAnalysis {
    /// The matrix of three classes or more.
    pub(super) fn new(predictions: &ClassPredictions<'_>) -> Option<Self> {
        let classes = predictions.classes();
        if classes < 3 {
            return None;
        }
        let matrix = Confusion::of(predictions);
        let all_pairs = matrix.confused_pairs();
        let pairs = matrix.confused(predictions, if classes <= MOST_CLASSES { MOST_PAIRS.0 } else { MOST_PAIRS.1 });
        let counts = (classes <= MOST_CLASSES).then(|| matrix.rows().map(<[usize]>::to_vec).collect());
        Some(Self { counts, pairs, all_pairs, matrix })
    }
}
