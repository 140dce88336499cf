//! Groups of rows, such as hospitals or years, each with numbers of its own in a report.

use crate::metrics::MetricError;

/// The group of every row of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Groups {
    names: Vec<String>,
    of: Vec<usize>,
    worst_first: bool,
}

impl Groups {
    /// Checks and keeps the groups of `of.len()` rows.
    ///
    /// # Arguments
    /// * `names`: the names of the groups, `[G]`, in the order in which they are shown; one that no row has is left out
    /// * `of`: the position in `names` of each row's group, `[n]`
    ///
    /// # Errors
    /// A row has a group that has no name, or two groups have the same name.
    pub fn new(names: Vec<String>, of: Vec<usize>) -> Result<Self, MetricError> {
        let mut sorted: Vec<&String> = names.iter().collect();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(MetricError::GroupTwice { name: pair[0].clone() });
        }
        match of.iter().position(|&group| group >= names.len()) {
            Some(row) => Err(MetricError::Group { row, group: of[row], groups: names.len() }),
            None => Ok(Self { names, of, worst_first: false }),
        }
    }

    /// The same, of which a report shows the worst calibrated first: by the distance of the calibration error from 0 beyond
    /// its interval (of a regression: of the coverage of 90 % intervals from 0.9), then by the NLL.
    pub fn worst_first(self) -> Self {
        Self { worst_first: true, ..self }
    }

    /// Whether a report shows the worst calibrated first, rather than in the order of the names.
    pub(crate) fn are_worst_first(&self) -> bool {
        self.worst_first
    }

    /// Number of rows `n`.
    pub(crate) fn rows(&self) -> usize {
        self.of.len()
    }

    /// The name of every group that has rows, in the order of the names, with these rows in ascending order.
    pub(crate) fn rows_of_each(&self) -> impl Iterator<Item = (&str, Vec<usize>)> {
        let mut rows: Vec<Vec<usize>> = vec![Vec::new(); self.names.len()];
        self.of.iter().enumerate().for_each(|(row, &group)| rows[group].push(row));
        self.names.iter().map(String::as_str).zip(rows).filter(|(_, rows)| !rows.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_has_its_rows_and_a_name_without_rows_is_left_out() {
        let groups = Groups::new(["b", "none", "a"].map(String::from).to_vec(), vec![2, 0, 2]).unwrap();
        let found: Vec<_> = groups.rows_of_each().collect();
        assert_eq!(found, [("b", vec![1]), ("a", vec![0, 2])]);
    }

    #[test]
    fn a_wrong_group_is_named() {
        let error = |names: &[&str], of| {
            Groups::new(names.iter().map(ToString::to_string).collect(), of).unwrap_err().to_string()
        };
        assert_eq!(error(&["a"], vec![0, 1]), "row 1: group 1 is out of range; 1 group(s) have the numbers 0 to 0");
        assert_eq!(error(&["a", "b", "a"], vec![0]), "two groups have the name `a`; names differ");
    }
}
