//! Splits of rows into training and test rows, and subsets of rows.
//!
//! Where the rows have [groups](Dataset::groups), the splits that draw rows at random draw groups: all rows of a group are
//! on one side, and shares and numbers are those of groups.

use crate::share::rounded;
use crate::units::{Units, count, most_frequent, rarest, rows_of};
use crate::{DataError, Dataset, Targets};
use rand::Rng;
use rand::seq::SliceRandom;
use std::collections::{BTreeMap, HashSet};

/// Splits the rows at random: ⌊n·fraction + ½⌋ of n rows, or groups, for testing, at least one on either side.
///
/// # Returns
/// `(train, test)`, disjoint, together all rows, both in the order of `data`.
///
/// # Errors
/// A fraction that is not strictly between 0 and 1, fewer than two rows or groups.
pub fn train_test(data: &Dataset, test_fraction: f64, rng: &mut impl Rng) -> Result<(Dataset, Dataset), DataError> {
    check_fraction(test_fraction)?;
    let all = count(data);
    if all < 2 {
        let units = if data.groups.is_some() { "group(s)" } else { "row(s)" };
        let problem = format!("{all} {units} cannot be split into train and test");
        return Err(DataError::config("data.test_fraction", test_fraction, problem));
    }
    let tests = rounded(test_fraction, all).clamp(1, all - 1);
    Ok(of_size(data, tests, rng))
}

/// Splits the rows at random, `tests` rows, or groups, of them (at most all) for testing.
///
/// # Returns
/// `(train, test)`, disjoint, together all rows, both in the order of `data`.
pub fn of_size(data: &Dataset, tests: usize, rng: &mut impl Rng) -> (Dataset, Dataset) {
    let all = Units::of(data, 0..data.rows());
    let mut units = all.list();
    units.shuffle(rng);
    let (test, train) = units.split_at(tests.min(units.len()));
    (data.select(&rows_of(train)), data.select(&rows_of(test)))
}

/// Splits the rows of each natural client at random, client after client: ⌊n·fraction + ½⌋ of a client's n rows, or
/// groups, for testing, but never its last one. A group counts to the client of most of its rows.
///
/// # Returns
/// `(train, test)`, disjoint, together all rows, both in the order of `data`; without groups of several clients, every
/// client has rows in `train`.
///
/// # Errors
/// A fraction that is not strictly between 0 and 1, data without clients, clients so small that no row is left for
/// testing.
pub fn within_clients(data: &Dataset, test_fraction: f64, rng: &mut impl Rng) -> Result<(Dataset, Dataset), DataError> {
    let refuse = |problem: String| DataError::config("data.test_fraction", test_fraction, problem);
    let clients = data.clients.as_ref().ok_or_else(|| refuse(format!("`{}` does not come with clients", data.name)))?;
    within(data, "client", |unit| most_frequent(clients, unit), test_fraction, rng)
}

/// Splits the rows of each class at random, class after class: as [`within_clients`], so that training and test rows have
/// each class in the same share. A group counts to its rarest class.
///
/// # Returns
/// As [`within_clients`].
///
/// # Errors
/// As [`within_clients`]; targets that are numbers.
pub fn within_classes(data: &Dataset, test_fraction: f64, rng: &mut impl Rng) -> Result<(Dataset, Dataset), DataError> {
    match &data.targets {
        Targets::Classes { labels, .. } => {
            let counts = data.targets.counts(0..data.rows());
            within(data, "class", |unit| rarest(labels, &counts, unit), test_fraction, rng)
        }
        Targets::Real { .. } | Targets::None { .. } => {
            let problem = "needs classes, but the targets are numbers; it must be `random` or `by-client`".to_owned();
            Err(DataError::config("data.split", "by-class", problem))
        }
    }
}

/// Splits the rows of each class, or client, at random: of each `what`, as messages call it. `of_unit` is that of a row or
/// group.
fn within(
    data: &Dataset,
    what: &str,
    of_unit: impl Fn(&[usize]) -> usize,
    test_fraction: f64,
    rng: &mut impl Rng,
) -> Result<(Dataset, Dataset), DataError> {
    check_fraction(test_fraction)?;
    let all = Units::of(data, 0..data.rows());
    let mut strata = BTreeMap::<usize, Vec<&[usize]>>::new();
    for unit in all.list() {
        strata.entry(of_unit(unit)).or_default().push(unit);
    }
    let (mut train, mut test) = (Vec::new(), Vec::new());
    for units in strata.values_mut() {
        let tests = rounded(test_fraction, units.len()).min(units.len() - 1);
        units.shuffle(rng);
        test.extend_from_slice(&units[..tests]);
        train.extend_from_slice(&units[tests..]);
    }
    if test.is_empty() {
        let most = strata.values().map(Vec::len).max().unwrap_or(0);
        let units = if data.groups.is_some() { "group(s)" } else { "row(s)" };
        let problem = format!("leaves no test row: the largest {what} has {most} {units}; ask for a larger share");
        return Err(DataError::config("data.test_fraction", test_fraction, problem));
    }
    Ok((data.select(&rows_of(&train)), data.select(&rows_of(&test))))
}

fn check_fraction(test_fraction: f64) -> Result<(), DataError> {
    if test_fraction > 0.0 && test_fraction < 1.0 {
        return Ok(());
    }
    let problem = "must lie between 0 and 1, e.g. 0.2 (both excluded: the report needs test rows)";
    Err(DataError::config("data.test_fraction", test_fraction, problem))
}

/// Splits the rows by a list of test rows.
///
/// # Arguments
/// - `tests`: ascending, each below the number of rows.
///
/// # Returns
/// `(train, test)`, disjoint, together all rows, both in the order of `data`.
///
/// # Panics
/// When a row of `tests` is out of range.
pub fn by_rows(data: &Dataset, tests: &[usize]) -> (Dataset, Dataset) {
    let train: Vec<usize> = (0..data.rows()).filter(|row| tests.binary_search(row).is_err()).collect();
    (data.select(&train), data.select(tests))
}

/// The rows of some classes, in the order of `data`; an empty list keeps all. Classes keep their indices and names.
///
/// # Errors
/// Targets that are not classes, a class that does not exist or is listed twice, classes without a row.
pub fn only_classes(data: Dataset, classes: &[usize]) -> Result<Dataset, DataError> {
    if classes.is_empty() {
        return Ok(data);
    }
    let refuse = |problem: String| Err(DataError::config("data.classes", format!("{classes:?}"), problem));
    let Targets::Classes { labels, names } = &data.targets else {
        return refuse(format!("the targets of `{}` are not classes", data.name));
    };
    let mut keep = vec![false; names.len()];
    for &class in classes {
        match keep.get_mut(class) {
            Some(kept) if !*kept => *kept = true,
            Some(_) => return refuse(format!("lists {class} twice")),
            None => return refuse(format!("`{}` has the classes 0 to {}", data.name, names.len() - 1)),
        }
    }
    let rows: Vec<usize> = (0..labels.len()).filter(|&row| keep[labels[row]]).collect();
    if rows.is_empty() {
        return refuse(format!("`{}` has no row of these classes", data.name));
    }
    Ok(data.select(&rows))
}

/// The first of each set of rows that have the same features and the same target, in the order of `data`.
pub fn distinct(data: &Dataset) -> Dataset {
    let mut seen = HashSet::with_capacity(data.rows());
    let rows: Vec<usize> = (0..data.rows())
        .filter(|&row| {
            // -0 is replaced by 0, and no value that was read is NaN: numbers are equal if and only if their bits are.
            let features: Vec<u32> = data.features.row(row).iter().map(|x| (x + 0.0).to_bits()).collect();
            let target = match &data.targets {
                Targets::Classes { labels, .. } => labels[row] as u64,
                Targets::Real { values } => (values[row] + 0.0).to_bits(),
                Targets::None { .. } => 0,
            };
            seen.insert((features, target))
        })
        .collect();
    data.select(&rows)
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
    use ndarray::{Array2, array};
    use rand::{SeedableRng, rngs::ChaCha8Rng};
    use std::collections::BTreeSet;

    fn numbered(rows: usize) -> Dataset {
        Dataset {
            name: "numbered".into(),
            features: Array2::from_shape_fn((rows, 1), |(row, _)| row as f32),
            feature_shape: vec![1],
            feature_names: None,
            targets: Targets::Real { values: (0..rows).map(|r| r as f64).collect() },
            clients: None,
            client_names: None,
            groups: None,
            lines: None,
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

    #[test]
    fn the_rows_of_a_list_are_the_test_rows_and_the_others_the_training_rows() {
        let (train, test) = by_rows(&numbered(6), &[1, 4]);
        assert_eq!((rows_of(&train), rows_of(&test)), (vec![0, 2, 3, 5], vec![1, 4]));
    }

    #[test]
    fn each_client_is_split_on_its_own_and_keeps_a_training_row() {
        let mut data = numbered(111);
        // client 5: 100 rows, client 2: 10, client 9: 1
        data.clients = Some((0..111).map(|row| [5, 2, 9][usize::from(row >= 100) + usize::from(row == 110)]).collect());
        let split = |fraction, seed| within_clients(&data, fraction, &mut ChaCha8Rng::seed_from_u64(seed));
        let counts = |half: &Dataset| {
            let of_row = half.clients.as_ref().unwrap();
            [5, 2, 9].map(|client| of_row.iter().filter(|&&k| k == client).count())
        };
        let (train, test) = split(0.2, 1).unwrap();
        assert_eq!((counts(&train), counts(&test)), ([80, 8, 1], [20, 2, 0]));
        let mut all = [rows_of(&train), rows_of(&test)].concat();
        all.sort_unstable();
        assert_eq!(all, (0..111).collect::<Vec<_>>());
        assert_eq!(counts(&split(0.999, 1).unwrap().0), [1, 1, 1]);
        assert_eq!(rows_of(&test), rows_of(&split(0.2, 1).unwrap().1));
        assert_ne!(rows_of(&test), rows_of(&split(0.2, 2).unwrap().1));
        let message = split(0.001, 1).unwrap_err().to_string();
        assert!(message.contains("leaves no test row: the largest client has 100"), "{message}");
        assert!(split(0.0, 1).unwrap_err().to_string().contains("between 0 and 1"));
        let message = within_clients(&numbered(4), 0.5, &mut ChaCha8Rng::seed_from_u64(1)).unwrap_err().to_string();
        assert!(message.contains("`numbered` does not come with clients"), "{message}");
    }

    fn labelled(labels: &[usize]) -> Dataset {
        let names = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
        Dataset { targets: Targets::Classes { labels: labels.to_vec(), names }, ..numbered(labels.len()) }
    }

    #[test]
    fn the_rows_of_a_group_are_on_one_side_and_shares_are_those_of_groups() {
        // 25 groups of one to five rows; group g has the label g % 3 in its first row and 3 in the others, and client g % 2.
        let of_row: Vec<usize> = (0..25).flat_map(|group| vec![group; 1 + group % 5]).collect();
        let first = |row: usize| row == 0 || of_row[row - 1] != of_row[row];
        let labels: Vec<usize> = (0..of_row.len()).map(|row| if first(row) { of_row[row] % 3 } else { 3 }).collect();
        let clients = of_row.iter().map(|group| group % 2).collect();
        let data = labelled(&labels).with_clients(clients).unwrap().with_groups(of_row).unwrap();
        let groups = |half: &Dataset| half.groups.iter().flatten().copied().collect::<BTreeSet<_>>();
        for seed in 0..20 {
            let rng = || ChaCha8Rng::seed_from_u64(seed);
            let halves = [
                train_test(&data, 0.2, &mut rng()).unwrap(),
                within_clients(&data, 0.2, &mut rng()).unwrap(),
                within_classes(&data, 0.2, &mut rng()).unwrap(),
                of_size(&data, 5, &mut rng()),
            ];
            for (train, test) in &halves {
                assert_eq!(train.rows() + test.rows(), data.rows());
                assert!(groups(train).is_disjoint(&groups(test)));
                assert_eq!(groups(train).len() + groups(test).len(), 25);
            }
            let [random, by_client, by_class, of_size] = &halves;
            assert_eq!((groups(&random.1).len(), groups(&of_size.1).len()), (5, 5));
            // 13 groups of client 0, 12 of client 1: 3 and 2 of them.
            assert_eq!(groups(&by_client.1).iter().filter(|&group| group % 2 == 0).count(), 3);
            assert_eq!(groups(&by_client.1).len(), 5);
            // Label 3 is the most frequent: nine groups count to the label 0, and eight to each of 1 and 2.
            let of_label = |label| groups(&by_class.1).iter().filter(|&group| group % 3 == label).count();
            assert_eq!([0, 1, 2].map(of_label), [2, 2, 2]);
        }
        assert_eq!(crate::units::count(&data), 25);
        let one = labelled(&[0, 1, 0]).with_groups(vec![6, 6, 6]).unwrap();
        let message = train_test(&one, 0.5, &mut ChaCha8Rng::seed_from_u64(1)).unwrap_err().to_string();
        assert!(message.contains("1 group(s) cannot be split"), "{message}");
    }

    #[test]
    fn chosen_classes_keep_their_indices_and_names() {
        let kept = only_classes(labelled(&[0, 2, 1, 2, 0]), &[2, 0]).unwrap();
        assert_eq!(rows_of(&kept), [0, 1, 3, 4]);
        assert_eq!((kept.labels(), kept.classes()), (Some(&[0, 2, 2, 0][..]), Some(4)));
        assert_eq!(only_classes(labelled(&[0, 2]), &[]).unwrap().rows(), 2);
    }

    #[test]
    fn classes_that_do_not_exist_are_refused() {
        let message = |classes: &[usize]| only_classes(labelled(&[0, 2]), classes).unwrap_err().to_string();
        assert_eq!(message(&[4]), "data.classes = [4]: `numbered` has the classes 0 to 3");
        assert_eq!(message(&[2, 2]), "data.classes = [2, 2]: lists 2 twice");
        assert_eq!(message(&[1, 3]), "data.classes = [1, 3]: `numbered` has no row of these classes");
        assert!(only_classes(numbered(2), &[0]).unwrap_err().to_string().contains("are not classes"));
    }

    #[test]
    fn equal_rows_of_one_class_are_one_and_of_two_classes_two() {
        let mut data = labelled(&[0, 0, 1, 0, 1]);
        data.features = array![[1., 0.], [1., -0.], [1., 0.], [2., 0.], [1., 0.]];
        data.feature_shape = vec![2];
        let kept = distinct(&data);
        assert_eq!(kept.features, array![[1., 0.], [1., 0.], [2., 0.]]);
        assert_eq!(kept.labels(), Some(&[0, 1, 0][..]));
    }
}
