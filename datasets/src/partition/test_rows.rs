//! The test rows of each client, on which its own model is evaluated; see [`Partition::with_tests`]. The input is a
//! partition of the training rows with these rows and the test rows; the output are the rows of the test set for each
//! client, ascending, and notes.

use super::Partition;
use super::classes::{Classes, boundaries};
use crate::{DataError, Dataset};
use rand::Rng;
use rand::seq::SliceRandom;

/// The rule for the test rows of the clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TestRows {
    /// All test rows for every client.
    All,
    /// The test rows of the same natural client.
    OfNaturalClient,
    /// All test rows of the classes of which a client holds training rows.
    OfHeldClasses,
    /// The test rows of each class, in the shares of its training rows.
    InSharesOfClasses,
    /// A sample with the client's proportions of classes.
    OfMix,
}

/// The test rows of each client of a partition of this kind, and notes.
///
/// # Errors
/// The test rows have other classes than the training rows, or no clients although the training rows have them.
pub(super) fn of_clients(
    rule: TestRows,
    kind: &'static str,
    partition: &Partition,
    train: &Dataset,
    test: &Dataset,
    rng: &mut impl Rng,
) -> Result<(Vec<Vec<usize>>, Vec<String>), DataError> {
    let clients = partition.clients.len();
    let mut notes = Vec::new();
    let mut by_class = || -> Result<(Classes, Vec<Vec<usize>>), DataError> {
        if train.classes() != test.classes() {
            let problem = format!("training rows have {:?} classes, test rows {:?}", train.classes(), test.classes());
            return Err(DataError::Partition { kind, problem });
        }
        let classes = Classes::of(kind, &test.targets)?;
        let counts: Vec<Vec<usize>> = (0..clients).map(|k| train.targets.counts(partition.assigned(k))).collect();
        notes.extend(untested(&classes, &counts));
        Ok((classes, counts))
    };
    let mut tests = match rule {
        TestRows::All => vec![(0..test.rows()).collect(); clients],
        TestRows::OfNaturalClient => of_natural_clients(kind, partition, train, test)?,
        TestRows::OfHeldClasses => {
            let (classes, counts) = by_class()?;
            counts.iter().map(|counts| of_held(&classes, counts)).collect()
        }
        TestRows::InSharesOfClasses => {
            let (classes, counts) = by_class()?;
            in_shares(classes, &counts, rng)
        }
        TestRows::OfMix => {
            let (classes, counts) = by_class()?;
            counts.iter().map(|counts| of_mix(&classes, counts, rng)).collect()
        }
    };
    tests.iter_mut().for_each(|rows| rows.sort_unstable());
    let without: Vec<String> = (0..clients).filter(|&k| tests[k].is_empty()).map(|k| partition.name(k)).collect();
    if !without.is_empty() {
        let more = if without.len() > 20 { format!(" and {} more", without.len() - 20) } else { String::new() };
        let plural = if without.len() == 1 { "" } else { "s" };
        notes.push(format!("no test rows for client{plural} {}{more}", without[..without.len().min(20)].join(", ")));
    }
    Ok((tests, notes))
}

/// A note on the classes of which clients hold training rows, but of which there is no test row.
fn untested(classes: &Classes, counts: &[Vec<usize>]) -> Option<String> {
    let without = |&class: &usize| classes.rows[class].is_empty() && counts.iter().any(|counts| counts[class] > 0);
    let names: Vec<&str> = (0..classes.rows.len()).filter(without).map(|class| classes.names[class].as_str()).collect();
    (!names.is_empty())
        .then(|| format!("no test rows of the classes {}: no client is tested on them", names.join(", ")))
}

/// All test rows of the classes of which a client has training rows.
fn of_held(classes: &Classes, counts: &[usize]) -> Vec<usize> {
    let held = classes.rows.iter().zip(counts).filter(|&(_, &count)| count > 0);
    held.flat_map(|(rows, _)| rows.iter().copied()).collect()
}

/// The test rows of each class in the shares of its training rows, whose numbers are `counts` `[K, C]`.
fn in_shares(mut classes: Classes, counts: &[Vec<usize>], rng: &mut impl Rng) -> Vec<Vec<usize>> {
    let mut tests = vec![Vec::new(); counts.len()];
    for (class, rows) in classes.rows.iter_mut().enumerate() {
        let weights: Vec<f64> = counts.iter().map(|counts| counts[class] as f64).collect();
        if weights.iter().all(|&weight| weight == 0.0) {
            continue;
        }
        rows.shuffle(rng);
        for (client, cut) in boundaries(rows.len(), &weights).windows(2).enumerate() {
            tests[client].extend_from_slice(&rows[cut[0]..cut[1]]);
        }
    }
    tests
}

/// A sample of the test rows with the client's proportions of classes, as large as the scarcest class allows: of class
/// c ⌊m·n_c⌋ rows, where m = min t_c/n_c over the classes with training rows n_c and test rows t_c.
fn of_mix(classes: &Classes, counts: &[usize], rng: &mut impl Rng) -> Vec<usize> {
    let both = || classes.rows.iter().zip(counts).filter(|(rows, count)| !rows.is_empty() && **count > 0);
    let Some((scarce, per)) = both().map(|(rows, &count)| (rows.len(), count)).min_by(|a, b| {
        // Compares t_a / n_a with t_b / n_b exactly.
        (a.0 as u128 * b.1 as u128).cmp(&(b.0 as u128 * a.1 as u128))
    }) else {
        return Vec::new();
    };
    let mut sample = Vec::new();
    for (rows, &count) in both() {
        let take = (count as u128 * scarce as u128 / per as u128) as usize;
        let mut rows = rows.clone();
        let (chosen, _) = rows.partial_shuffle(rng, take);
        sample.extend_from_slice(chosen);
    }
    sample
}

/// The test rows of the natural clients.
fn of_natural_clients(
    kind: &'static str,
    partition: &Partition,
    train: &Dataset,
    test: &Dataset,
) -> Result<Vec<Vec<usize>>, DataError> {
    let (Some(trained), Some(tested)) = (&train.clients, &test.clients) else {
        let problem = "the test rows have no clients; they need the client column of the training rows".to_owned();
        return Err(DataError::Partition { kind, problem });
    };
    let mut of_client = std::collections::BTreeMap::<usize, Vec<usize>>::new();
    for (row, &client) in tested.iter().enumerate() {
        of_client.entry(client).or_default().push(row);
    }
    let natural = |rows: &Vec<usize>| rows.first().and_then(|&row| of_client.get(&trained[row]).cloned());
    Ok(partition.clients.iter().map(|rows| natural(rows).unwrap_or_default()).collect())
}
