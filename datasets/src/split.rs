//! Rows into train and test, or into a seeded subset.

use crate::{DataError, Dataset};
use rand::Rng;
use rand::seq::SliceRandom;

/// Splits the rows at random: ⌊n·fraction + ½⌋ rows for testing, at least one on either side.
///
/// # Returns
/// `(train, test)`, disjoint, together all rows, both in the order of `data`.
///
/// # Errors
/// A fraction that is not strictly between 0 and 1, fewer than two rows.
pub fn train_test(data: &Dataset, test_fraction: f64, rng: &mut impl Rng) -> Result<(Dataset, Dataset), DataError> {
    if !(test_fraction > 0.0 && test_fraction < 1.0) {
        let problem = "must lie between 0 and 1, e.g. 0.2 (both excluded: the report needs test rows)";
        return Err(DataError::config("data.test_fraction", test_fraction, problem));
    }
    let rows = data.rows();
    if rows < 2 {
        let problem = format!("{rows} row(s) cannot be split into train and test");
        return Err(DataError::config("data.test_fraction", test_fraction, problem));
    }
    let tests = ((rows as f64 * test_fraction).round() as usize).clamp(1, rows - 1);
    let mut order: Vec<usize> = (0..rows).collect();
    order.shuffle(rng);
    let (test, train) = order.split_at_mut(tests);
    test.sort_unstable();
    train.sort_unstable();
    Ok((data.select(train), data.select(test)))
}

/// At most `limit` rows drawn without replacement, in the order of `data`; 0 keeps all.
pub fn limit(data: Dataset, limit: usize, rng: &mut impl Rng) -> Dataset {
    if limit == 0 || limit >= data.rows() {
        return data;
    }
    let mut order: Vec<usize> = (0..data.rows()).collect();
    let (chosen, _) = order.partial_shuffle(rng, limit);
    chosen.sort_unstable();
    data.select(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Targets;
    use ndarray::Array2;
    use rand::{SeedableRng, rngs::ChaCha8Rng};

    fn numbered(rows: usize) -> Dataset {
        Dataset {
            name: "numbered".into(),
            features: Array2::from_shape_fn((rows, 1), |(row, _)| row as f32),
            feature_shape: vec![1],
            feature_names: None,
            targets: Targets::Real { values: (0..rows).map(|r| r as f64).collect() },
            clients: None,
        }
    }

    fn rows_of(data: &Dataset) -> Vec<usize> {
        data.features.iter().map(|&x| x as usize).collect()
    }

    #[test]
    fn a_split_is_a_disjoint_cover_of_the_asked_sizes() {
        let (train, test) = train_test(&numbered(1797), 0.2, &mut ChaCha8Rng::seed_from_u64(1)).unwrap();
        assert_eq!((train.rows(), test.rows()), (1438, 359));
        let mut all = [rows_of(&train), rows_of(&test)].concat();
        all.sort_unstable();
        assert_eq!(all, (0..1797).collect::<Vec<_>>());
        assert_eq!(train.targets.len(), 1438);
    }

    #[test]
    fn the_same_seed_gives_the_same_split_and_another_seed_another() {
        let split = |seed| rows_of(&train_test(&numbered(100), 0.3, &mut ChaCha8Rng::seed_from_u64(seed)).unwrap().1);
        assert_eq!(split(7), split(7));
        assert_ne!(split(7), split(8));
    }

    #[test]
    fn tiny_sets_keep_a_row_on_either_side() {
        for fraction in [0.001, 0.999] {
            let (train, test) = train_test(&numbered(2), fraction, &mut ChaCha8Rng::seed_from_u64(1)).unwrap();
            assert_eq!((train.rows(), test.rows()), (1, 1));
        }
        assert!(train_test(&numbered(1), 0.5, &mut ChaCha8Rng::seed_from_u64(1)).is_err());
    }

    #[test]
    fn fractions_outside_0_to_1_are_refused() {
        for fraction in [0.0, 1.0, -0.5, f64::NAN] {
            let error = train_test(&numbered(10), fraction, &mut ChaCha8Rng::seed_from_u64(1)).unwrap_err();
            assert!(error.to_string().contains("data.test_fraction"), "{error}");
        }
    }

    #[test]
    fn a_limit_draws_distinct_rows_and_zero_keeps_all() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let few = rows_of(&limit(numbered(100), 10, &mut rng));
        assert!(few.windows(2).all(|w| w[0] < w[1]) && few.len() == 10, "{few:?}");
        assert_eq!(limit(numbered(100), 0, &mut rng).rows(), 100);
        assert_eq!(limit(numbered(100), 1000, &mut rng).rows(), 100);
    }
}
