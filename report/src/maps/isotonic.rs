//! Isotonic regression of outcomes on probabilities (Zadrozny and Elkan 2002), on a fixed grid of probabilities.
//!
//! Of two classes the probability of the second is mapped; of more, that of each class against the rest, and the results are
//! divided by their sum. A probability counts at the nearest of [`GRID`] points whose log odds are 0.03 apart, so that numbers
//! of rows and of outcomes at the points are all that a fit needs: whole numbers, whose sum over places is exact.

use crate::metrics::{ClassPredictions, MetricError, check_length};

/// The number of points of the grid: the log odds from −15 to 15 in steps of 0.03. In the middle two points are 0.0075 of
/// probability apart, elsewhere 3 % of the odds.
pub const GRID: usize = 1001;
/// The distance of two points in log odds.
const WIDTH: f64 = 0.03;
/// The point with the probability 1/2.
const MIDDLE: usize = GRID / 2;

/// The probability of a point of the grid.
pub fn grid_point(point: usize) -> f64 {
    let log_odds = (point as f64 - MIDDLE as f64) * WIDTH;
    1.0 / (1.0 + (-log_odds).exp())
}

/// The nearest point, in log odds; the first or the last one beyond them.
fn nearest(probability: f64) -> usize {
    let log_odds = probability.ln() - (-probability).ln_1p();
    let point = (log_odds / WIDTH).round() + MIDDLE as f64;
    point.clamp(0.0, (GRID - 1) as f64) as usize
}

/// The number of functions of an isotonic regression: one of two classes, for the second, else one for each class.
pub fn isotonic_functions(classes: usize) -> usize {
    if classes == 2 { 1 } else { classes }
}

/// The class whose probability a function maps.
fn class_of(function: usize, classes: usize) -> usize {
    if classes == 2 { 1 } else { function }
}

/// The numbers of rows at each point, and of those that are of the class: `[functions, GRID, 2]`.
pub fn isotonic_counts(predictions: &ClassPredictions<'_>) -> Vec<u64> {
    let classes = predictions.classes();
    let mut counts = vec![0; isotonic_functions(classes) * GRID * 2];
    for (row, &label) in predictions.rows().zip(predictions.labels()) {
        for function in 0..isotonic_functions(classes) {
            let class = class_of(function, classes);
            let at = 2 * (function * GRID + nearest(row[class]));
            counts[at] += 1;
            counts[at + 1] += u64::from(class == label);
        }
    }
    counts
}

/// A function that does not fall, for the probability of class 1 of two or of each class of more.
#[derive(Debug, Clone, PartialEq)]
pub struct IsotonicMap {
    /// The corners of each function: probabilities, ascending, and what becomes of them. It is linear between two corners and
    /// constant beyond the first and the last, as scikit-learn's.
    corners: Vec<Vec<(f64, f64)>>,
    classes: usize,
}

impl IsotonicMap {
    /// Fits the functions by pooling adjacent violators. Of n rows and C classes no value is below 1/(n C) or above
    /// 1 − 1/(n C): what was never seen in n rows is not impossible.
    ///
    /// # Arguments
    /// * `counts`: the sums of [`isotonic_counts`] over all places
    ///
    /// # Errors
    /// There are not as many counts as that, or a function has no rows.
    pub fn fit(counts: &[u64], classes: usize) -> Result<Self, MetricError> {
        check_length("counts of the grid", counts.len(), isotonic_functions(classes) * GRID * 2)?;
        let corners: Vec<Vec<(f64, f64)>> =
            counts.chunks_exact(GRID * 2).map(|counts| fitted(counts, classes)).collect();
        match corners.iter().any(Vec::is_empty) {
            true => Err(MetricError::NoRows),
            false => Ok(Self { corners, classes }),
        }
    }

    /// The map of these corners.
    ///
    /// # Errors
    /// There are not as many functions as the classes need, one has no corner, its probabilities do not ascend or leave
    /// \[0, 1\], or its values fall or leave (0, 1).
    pub fn of(corners: Vec<Vec<(f64, f64)>>, classes: usize) -> Result<Self, MetricError> {
        check_length("functions of the isotonic regression", corners.len(), isotonic_functions(classes))?;
        for (function, corners) in corners.iter().enumerate() {
            let inside = |(x, y): &(f64, f64)| (0.0..=1.0).contains(x) && *y > 0.0 && *y < 1.0;
            let ascends = corners.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
            if corners.is_empty() {
                return Err(MetricError::NoRows);
            }
            if let Some((corner, &(x, y))) = corners.iter().enumerate().find(|(_, corner)| !inside(corner)) {
                let (value, range) = if (0.0..=1.0).contains(&x) { (y, "(0, 1)") } else { (x, "[0, 1]") };
                return Err(MetricError::Corner { corner, class: class_of(function, classes), value, range });
            }
            if !ascends {
                return Err(MetricError::Falling { function });
            }
        }
        Ok(Self { corners, classes })
    }

    /// The corners of each function.
    pub fn corners(&self) -> &[Vec<(f64, f64)>] {
        &self.corners
    }

    /// The predictions with the map applied. The most probable class may become another one, and rows may become equal.
    ///
    /// # Errors
    /// The map is of another number of classes.
    pub fn apply(&self, predictions: &ClassPredictions<'_>) -> Result<ClassPredictions<'static>, MetricError> {
        let classes = predictions.classes();
        check_length("classes of the isotonic regression", self.classes, classes)?;
        let mut probabilities = Vec::with_capacity(predictions.probabilities().len());
        for row in predictions.rows() {
            if let [corners] = &self.corners[..] {
                let second = value_at(corners, row[1]);
                probabilities.extend([1.0 - second, second]);
                continue;
            }
            let start = probabilities.len();
            probabilities.extend(self.corners.iter().zip(row).map(|(corners, p)| value_at(corners, *p)));
            // No value is 0.
            let sum: f64 = probabilities[start..].iter().sum();
            probabilities[start..].iter_mut().for_each(|p| *p /= sum);
        }
        predictions.with_probabilities(probabilities)
    }
}

/// A run of points with one value.
struct Block {
    rows: u64,
    outcomes: u64,
    first: usize,
    last: usize,
}

/// The corners of one function.
fn fitted(counts: &[u64], classes: usize) -> Vec<(f64, f64)> {
    let mut blocks: Vec<Block> = Vec::new();
    for (point, pair) in counts.chunks_exact(2).enumerate().filter(|(_, pair)| pair[0] > 0) {
        let mut block = Block { rows: pair[0], outcomes: pair[1], first: point, last: point };
        // The share of outcomes before is not smaller: both have one value.
        while let Some(before) = blocks.pop_if(|before| falls(before, &block)) {
            block.rows += before.rows;
            block.outcomes += before.outcomes;
            block.first = before.first;
        }
        blocks.push(block);
    }
    let rows: u64 = blocks.iter().map(|block| block.rows).sum();
    let least = 1.0 / (rows as f64 * classes as f64);
    let mut corners = Vec::new();
    for Block { rows, outcomes, first, last } in blocks {
        let value = (outcomes as f64 / rows as f64).clamp(least, 1.0 - least);
        corners.push((grid_point(first), value));
        if last > first {
            corners.push((grid_point(last), value));
        }
    }
    corners
}

fn falls(before: &Block, block: &Block) -> bool {
    u128::from(before.outcomes) * u128::from(block.rows) >= u128::from(block.outcomes) * u128::from(before.rows)
}

/// The value of a function at a probability.
fn value_at(corners: &[(f64, f64)], probability: f64) -> f64 {
    let after = corners.partition_point(|(x, _)| *x <= probability);
    match (after.checked_sub(1).and_then(|before| corners.get(before)), corners.get(after)) {
        (Some((x0, y0)), Some((x1, y1))) => (y0 + (y1 - y0) * ((probability - x0) / (x1 - x0))).clamp(*y0, *y1),
        (Some((_, y)), None) | (None, Some((_, y))) => *y,
        (None, None) => probability,
    }
}
