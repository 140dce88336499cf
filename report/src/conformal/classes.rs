//! Scores and sets of classes.

use std::ops::Range;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::score::Score;
use crate::metrics::{ClassPredictions, MetricError};

/// Numbers in [0, 1) for the random form of [`Score::Aps`] and [`Score::Raps`], one for each row `[rows]`: the same for the
/// same seed and stream, such as a client.
pub fn draws(seed: u64, stream: u64, rows: usize) -> Vec<f64> {
    draws_of(seed, stream, 0..rows)
}

/// Those of some of the rows.
pub fn draws_of(seed: u64, stream: u64, rows: Range<usize>) -> Vec<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(stream);
    // A number takes two words of 32 bits.
    rng.set_word_pos(2 * rows.start as u128);
    rows.map(|_| rng.random()).collect()
}

/// The score of the true class of every row, `[n]`.
///
/// Classes are ranked by their probability, of equal ones the lower index first. With draws u, APS and RAPS have their
/// random form: u·p_y less. LAC has none.
///
/// # Arguments
/// * `draws`: `[n]` of [`draws()`] for the random form; `None` for the form without chance
///
/// # Errors
/// Another number of draws than rows, or a score of regressions.
pub fn class_scores(
    score: Score,
    predictions: &ClassPredictions<'_>,
    draws: Option<&[f64]>,
) -> Result<Vec<f64>, MetricError> {
    if !score.is_of_classes() {
        return Err(MetricError::OtherTask { score: score.word(), is_for: "real targets" });
    }
    if let Some(draws) = draws
        && draws.len() != predictions.len()
    {
        return Err(MetricError::Length { what: "draws", got: draws.len(), expected: predictions.len() });
    }
    let rows = predictions.rows().zip(predictions.labels()).enumerate();
    Ok(rows.map(|(row, (of, &label))| scored(score, of, label, draws.map(|draws| draws[row]))).collect())
}

fn scored(score: Score, probabilities: &[f64], label: usize, draw: Option<f64>) -> f64 {
    if score == Score::Lac {
        return 1.0 - probabilities[label];
    }
    let ranked = ranked(probabilities);
    let mut sum = 0.0;
    for (rank, class) in ranked.into_iter().enumerate() {
        sum += probabilities[class];
        if class == label {
            return sum - draw.unwrap_or(0.0) * probabilities[class] + penalty(score, rank + 1);
        }
    }
    sum
}

/// What RAPS adds at a rank, from 1.
fn penalty(score: Score, rank: usize) -> f64 {
    match score {
        Score::Raps { penalty, free } => penalty * rank.saturating_sub(free) as f64,
        _ => 0.0,
    }
}

/// The classes from the most probable one to the least.
fn ranked(probabilities: &[f64]) -> Vec<usize> {
    let mut classes: Vec<usize> = (0..probabilities.len()).collect();
    classes.sort_by(|&a, &b| probabilities[b].total_cmp(&probabilities[a]));
    classes
}

/// Which classes are in the set of a row, `[C]`.
///
/// * LAC: those with a score up to the threshold; none, where even the most probable one exceeds it.
/// * APS and RAPS without a draw: from the most probable class on, until the sum reaches the threshold, and those with a
///   score up to it. The class at which it is reached is in the set, so no set is empty; coverage is therefore above the
///   level, by up to the probability of that class.
/// * APS and RAPS with a draw: those with a score up to the threshold, which gives the level without this excess; a set may be
///   empty.
///
/// # Arguments
/// * `probabilities`: `[C]`
/// * `threshold`: that of the calibration rows' scores, which were made in the same form; `None` for every class
pub fn class_set(score: Score, probabilities: &[f64], threshold: Option<f64>, draw: Option<f64>) -> Vec<bool> {
    let Some(threshold) = threshold else { return vec![true; probabilities.len()] };
    if score == Score::Lac {
        return probabilities.iter().map(|p| 1.0 - p <= threshold).collect();
    }
    let mut set = vec![false; probabilities.len()];
    // What the classes before add up to, with their penalty.
    let (mut sum, mut before) = (0.0, f64::NEG_INFINITY);
    for (rank, class) in ranked(probabilities).into_iter().enumerate() {
        sum += probabilities[class];
        let reached = sum + penalty(score, rank + 1);
        set[class] = match draw {
            // A class whose probability is too small to change the sum has the score of the class before it.
            None => before < threshold || reached <= threshold,
            Some(draw) => reached - draw * probabilities[class] <= threshold,
        };
        before = reached;
    }
    set
}
