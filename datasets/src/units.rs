//! What rows are drawn in: the groups of a data set, such as the visits of a patient, or single rows where it has none.

use crate::Dataset;
use std::collections::{BTreeMap, BTreeSet};

/// Some rows of a data set, those of a group beside each other.
pub(crate) struct Units<'a> {
    rows: Vec<usize>,
    groups: Option<&'a [usize]>,
}

impl<'a> Units<'a> {
    /// Some rows of a data set.
    pub fn of(data: &'a Dataset, rows: impl IntoIterator<Item = usize>) -> Self {
        let mut rows: Vec<usize> = rows.into_iter().collect();
        let groups = data.groups.as_deref();
        if let Some(groups) = groups {
            rows.sort_by_key(|&row| groups[row]);
        }
        Self { rows, groups }
    }

    /// The rows of each unit: those of a group, in the order of the groups; else each row alone. Rows are in the order in
    /// which they came.
    pub fn list(&self) -> Vec<&[usize]> {
        match self.groups {
            Some(groups) => self.rows.chunk_by(|&a, &b| groups[a] == groups[b]).collect(),
            None => self.rows.chunks(1).collect(),
        }
    }
}

/// The number of units of a data set: of its groups, or of its rows where it has none.
pub fn count(data: &Dataset) -> usize {
    data.groups.as_ref().map_or_else(|| data.rows(), |groups| groups.iter().collect::<BTreeSet<_>>().len())
}

/// A note on the groups of training and test rows, where the training rows have groups. Two files can share some.
///
/// # Arguments
/// - `held_out`: the names and rows of other sets beside these, of which the groups are counted too.
pub fn note(train: &Dataset, held_out: &[(&str, &Dataset)], test: &Dataset) -> Option<String> {
    let groups = |data: &Dataset| Some(data.groups.as_ref()?.iter().copied().collect::<BTreeSet<_>>());
    let train = groups(train)?;
    let others = held_out.iter().filter_map(|(name, rows)| Some((name, groups(rows)?.len())));
    let others: String =
        others.filter(|(_, count)| *count > 0).map(|(name, count)| format!(", {count} in {name}")).collect();
    let counts = format!("groups of rows: {} in training{others}", train.len());
    let Some(test) = groups(test) else {
        return Some(format!("{counts}; the test rows name none, and may share some"));
    };
    let both = if others.is_empty() { "both" } else { "training and test" };
    let both = match train.intersection(&test).count() {
        0 => format!("none in {both}"),
        shared => format!("{shared} in {both}: test scores are too good where rows of a group are alike"),
    };
    Some(format!("{counts}, {} in test, {both}", test.len()))
}

/// A note on groups that training rows share with other rows of a file of their own, such as validation rows; `name` is
/// theirs.
pub fn note_on_shared(train: &Dataset, (name, rows): (&str, &Dataset)) -> Option<String> {
    let groups = |data: &Dataset| Some(data.groups.as_ref()?.iter().copied().collect::<BTreeSet<_>>());
    let shared = groups(train)?.intersection(&groups(rows)?).count();
    (shared > 0).then(|| {
        format!(
            "groups of rows: {shared} have training rows and {name} rows; these are not independent of the training"
        )
    })
}

/// The rows of some units, ascending.
pub(crate) fn rows_of(units: &[&[usize]]) -> Vec<usize> {
    let mut rows = units.concat();
    rows.sort_unstable();
    rows
}

/// The class of a unit: that of its rows which is the rarest of all, the smallest one of equally rare ones.
///
/// # Arguments
/// - `labels`: the class of each row.
/// - `counts`: how often each class occurs.
pub(crate) fn rarest(labels: &[usize], counts: &[usize], unit: &[usize]) -> usize {
    unit.iter().map(|&row| labels[row]).min_by_key(|&class| (counts[class], class)).unwrap_or(0)
}

/// The client of most rows of a unit, the smallest one of equally many. `of_row` has that of each row.
pub(crate) fn most_frequent(of_row: &[usize], unit: &[usize]) -> usize {
    let mut counts = BTreeMap::<usize, usize>::new();
    unit.iter().for_each(|&row| *counts.entry(of_row[row]).or_default() += 1);
    counts.into_iter().rev().max_by_key(|&(_, count)| count).map_or(0, |(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_counts_to_its_rarest_class_and_to_the_client_of_most_of_its_rows() {
        let of_row = [2, 1, 1, 2, 0];
        let of = |unit: &[usize]| most_frequent(&of_row, unit);
        assert_eq!((of(&[4]), of(&[0, 1, 2]), of(&[0, 1]), of(&[0, 1, 2, 3, 4])), (0, 1, 1, 1));
        let of = |unit: &[usize]| rarest(&of_row, &[1, 2, 2], unit);
        assert_eq!((of(&[0]), of(&[0, 1, 2]), of(&[3, 4])), (2, 1, 0));
    }
}
