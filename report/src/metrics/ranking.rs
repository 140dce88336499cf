//! How well a score ranks rows of one kind above the others: AUROC and average precision.
//!
//! Sources: Hanley and McNeil 1982 (AUROC as a rank statistic); average precision without interpolation, as
//! scikit-learn's `average_precision_score` computes it.

use std::ops::Range;

use super::error::{MetricError, check_finite, check_length, finite};

/// Rows in ascending order of a score, with the ties found once, so that resampled rows need no sorting.
#[derive(Debug)]
pub struct Ranking {
    /// The rank of every row, from 0.
    ranks: Vec<usize>,
    /// The ranks with equal scores, ascending.
    ties: Vec<Range<usize>>,
    /// Whether the row of a rank is positive.
    positive: Vec<bool>,
}

/// How often the rows of a [`Ranking`] count, by rank.
#[derive(Debug, Clone)]
pub struct Times(Vec<u32>);

impl Ranking {
    /// Sorts the rows.
    ///
    /// # Arguments
    /// * `score`: `[n]`, large for rows that are thought to be positive
    /// * `positive`: `[n]`
    ///
    /// # Errors
    /// Lengths that differ or a score that is not finite.
    pub fn new(score: &[f64], positive: &[bool]) -> Result<Self, MetricError> {
        check_length("labels of the scores", positive.len(), score.len())?;
        check_finite("score", score)?;
        let mut order: Vec<usize> = (0..score.len()).collect();
        // -0.0 and 0.0 compare as a tie, which total_cmp would break; both are finite here.
        order.sort_by(|&a, &b| (score[a] + 0.0).total_cmp(&(score[b] + 0.0)));
        let mut ties: Vec<Range<usize>> = Vec::new();
        for tied in order.chunk_by(|&a, &b| score[a] == score[b]) {
            let start = ties.last().map_or(0, |last| last.end);
            ties.push(start..start + tied.len());
        }
        let mut ranks = vec![0; order.len()];
        order.iter().enumerate().for_each(|(rank, &row)| ranks[row] = rank);
        Ok(Self { ranks, ties, positive: order.into_iter().map(|row| positive[row]).collect() })
    }

    /// Every row counts once.
    pub fn once(&self) -> Times {
        Times(vec![1; self.ranks.len()])
    }

    /// Lets every row count so many times; `by_row` is in the order of the rows, `[n]`.
    pub fn count(&self, by_row: &[u32], times: &mut Times) {
        self.ranks.iter().zip(by_row).for_each(|(&rank, &count)| times.0[rank] = count);
    }

    /// Probability that a positive row scores higher than a negative one, ties one half; `None` when there are no
    /// positive or no negative rows.
    pub fn auroc(&self, times: &Times) -> Option<f64> {
        // Pairs are counted in halves, so that the sum is exact: 2 a won pair, 1 a tie.
        let (mut positives, mut below, mut halves) = (0_u64, 0_u64, 0_u128);
        for tied in &self.ties {
            let (of_ties, others) = self.rows_of(tied, times);
            halves += u128::from(of_ties) * u128::from(2 * below + others);
            below += others;
            positives += of_ties;
        }
        finite(halves as f64 / 2.0 / positives as f64 / below as f64)
    }

    /// Average precision: the sum over thresholds, from the highest score down, of the gain in recall times the
    /// precision; `None` without positive rows.
    pub fn average_precision(&self, times: &Times) -> Option<f64> {
        let (mut positives, mut passed, mut sum) = (0_u64, 0_u64, 0.0);
        for tied in self.ties.iter().rev() {
            let (of_ties, others) = self.rows_of(tied, times);
            positives += of_ties;
            passed += of_ties + others;
            if of_ties > 0 {
                sum += of_ties as f64 * (positives as f64 / passed as f64);
            }
        }
        finite(sum / positives as f64)
    }

    /// Positive and negative rows of a run of ties.
    fn rows_of(&self, tied: &Range<usize>, times: &Times) -> (u64, u64) {
        let rows = self.positive[tied.clone()].iter().zip(&times.0[tied.clone()]);
        let (positives, all) = rows.fold((0, 0), |(positives, all), (&positive, &count)| {
            (positives + u64::from(count) * u64::from(positive), all + u64::from(count))
        });
        (positives, all - positives)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scores and labels with ties.
    const SCORE: [f64; 12] = [0.1, 0.4, 0.35, 0.8, 0.4, 0.7, 0.2, 0.9, 0.55, 0.4, 0.65, 0.0];
    const POSITIVE: [bool; 12] = [false, false, true, true, true, false, false, true, false, false, true, false];

    fn ranking() -> Ranking {
        Ranking::new(&SCORE, &POSITIVE).unwrap()
    }

    #[test]
    fn a_row_that_counts_twice_is_a_row_that_is_there_twice() {
        let drawn = [0, 2, 2, 3, 4, 4, 4, 6, 7, 8, 8, 9, 11];
        let of = |rows: &[usize]| {
            let (score, positive): (Vec<f64>, Vec<bool>) = rows.iter().map(|&row| (SCORE[row], POSITIVE[row])).unzip();
            Ranking::new(&score, &positive).unwrap()
        };
        let (ranking, repeated) = (ranking(), of(&drawn));
        let mut times = ranking.once();
        let by_row: Vec<u32> =
            (0..SCORE.len()).map(|row| drawn.iter().filter(|at| **at == row).count() as u32).collect();
        ranking.count(&by_row, &mut times);
        assert_eq!(ranking.auroc(&times), repeated.auroc(&repeated.once()));
        let (a, b) = (ranking.average_precision(&times), repeated.average_precision(&repeated.once()));
        assert!((a.unwrap() - b.unwrap()).abs() < 1e-15);
    }

    #[test]
    fn without_both_kinds_of_rows_there_is_no_number() {
        let of = |positive: bool| {
            let ranking = Ranking::new(&[0.2, 0.4], &[positive; 2]).unwrap();
            (ranking.auroc(&ranking.once()), ranking.average_precision(&ranking.once()))
        };
        assert_eq!((of(true), of(false)), ((None, Some(1.0)), (None, None)));
        let ranking = ranking();
        let mut negatives = ranking.once();
        ranking.count(&POSITIVE.map(|positive| u32::from(!positive)), &mut negatives);
        assert_eq!(ranking.auroc(&negatives), None);
    }
}
