//! A partition as a table for a terminal.

use super::Partition;
use crate::Targets;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The largest number of classes that have a column each.
const WIDE: usize = 12;

impl Partition {
    /// The numbers of training rows per client and class as a table for a terminal, with one line per client, one
    /// column per class, their sum, and the numbers of validation, calibration and test rows if there are any. The last line counts
    /// distinct rows, so that rows of several clients count once. Of more than 30 clients the first 15 and the last 10
    /// are shown; for more than 12 classes, only the number of classes of each client.
    ///
    /// # Panics
    /// When `targets` are not those of the rows that were assigned.
    pub fn table(&self, targets: &Targets) -> String {
        let names: &[String] = match targets {
            Targets::Classes { names, .. } => names,
            _ => &[],
        };
        let others = [("validation", &self.validation), ("calibration", &self.calibration), ("test", &self.tests)];
        let others: Vec<_> = others.into_iter().filter(|(_, rows)| rows.iter().any(|rows| !rows.is_empty())).collect();
        let line = |head: &str, name: &str, counts: &[usize], others: Vec<usize>| -> Vec<String> {
            let sums = [counts.iter().sum::<usize>()].into_iter().chain(others).map(|count| count.to_string());
            let head = [head.to_owned()].into_iter().chain((!self.names.is_empty()).then(|| short(name)));
            head.chain(by_class(counts, names.len())).chain(sums).collect()
        };

        let mut header = vec!["client".to_owned()];
        header.extend((!self.names.is_empty()).then(|| "name".to_owned()));
        match names.len() {
            0 => {}
            1..=WIDE => header.extend(names.iter().map(|name| short(name))),
            _ => header.push("classes".to_owned()),
        }
        header.push("rows".to_owned());
        header.extend(others.iter().map(|(name, _)| (*name).to_owned()));

        let counts = self.counts(targets);
        let many = counts.len() > 30;
        let shown = |client: usize| !many || client < 15 || client + 10 >= counts.len();
        let mut lines = vec![header];
        for (client, counts) in counts.iter().enumerate().filter(|(client, _)| shown(*client)) {
            let others = others.iter().map(|(_, rows)| rows[client].len()).collect();
            lines.push(line(&client.to_string(), &self.name(client), counts, others));
        }
        let totals = targets.counts(distinct(&self.clients).into_iter());
        lines.push(line("all", "", &totals, others.iter().map(|(_, rows)| distinct(rows).len()).collect()));

        let mut text = aligned(&lines, many.then(|| format!("... {} more clients", counts.len() - 25)));
        for note in &self.notes {
            let _ = writeln!(text, "note: {note}");
        }
        text
    }
}

/// The cells of the classes: one for each class, or one for all.
fn by_class(counts: &[usize], classes: usize) -> Vec<String> {
    match classes {
        0 => Vec::new(),
        1..=WIDE => counts.iter().map(|&count| if count == 0 { ".".into() } else { count.to_string() }).collect(),
        _ => vec![format!("{} of {classes}", counts.iter().filter(|&&count| count > 0).count())],
    }
}

fn distinct(clients: &[Vec<usize>]) -> BTreeSet<usize> {
    clients.iter().flatten().copied().collect()
}

/// Aligns the columns to the right with two spaces between them; `gap` is inserted after the first 15 clients.
fn aligned(lines: &[Vec<String>], gap: Option<String>) -> String {
    let length = |text: &String| text.chars().count();
    let width = |column: usize| lines.iter().map(|line| length(&line[column])).max().unwrap_or(0);
    let widths: Vec<usize> = (0..lines[0].len()).map(width).collect();
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        if let (16, Some(gap)) = (number, &gap) {
            let _ = writeln!(text, "{gap}");
        }
        let padded = line.iter().zip(&widths).map(|(cell, &width)| format!("{cell:>width$}"));
        let _ = writeln!(text, "{}", padded.collect::<Vec<_>>().join("  "));
    }
    text
}

/// A name of at most twelve characters, on one line.
fn short(name: &str) -> String {
    let name: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if name.chars().count() <= 12 { name.to_owned() } else { name.chars().take(11).chain(['…']).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_tables_are_abbreviated_in_the_middle_and_end_with_sums() {
        let targets =
            Targets::Classes { labels: (0..80).map(|r| r % 2).collect(), names: vec!["a".into(), "b".into()] };
        let clients = (0..40).map(|k| vec![2 * k, 2 * k + 1]).collect();
        let table = Partition::new(clients, vec!["client 3 was short".into()]).table(&targets);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines[0].split_whitespace().collect::<Vec<_>>(), ["client", "a", "b", "rows"]);
        assert_eq!(lines[16], "... 15 more clients");
        assert_eq!(lines[17].trim_start(), "30   1   1     2");
        assert_eq!(lines[27].split_whitespace().collect::<Vec<_>>(), ["all", "40", "40", "80"]);
        assert_eq!(lines[28], "note: client 3 was short");
        assert_eq!(lines.len(), 29);
    }

    #[test]
    fn a_name_of_two_lines_is_on_one() {
        let mut partition = Partition::new(vec![vec![0], vec![1]], Vec::new());
        partition.names = vec!["Ea\nst".into(), "West".into()];
        let table = partition.table(&Targets::Classes { labels: vec![0, 1], names: vec!["a\tb".into(), "c".into()] });
        assert_eq!(table.lines().count(), 4, "{table}");
        assert!(table.contains("Ea st") && table.contains("a b"), "{table}");
    }

    #[test]
    fn targets_without_classes_have_one_column() {
        let partition = Partition::new(vec![vec![1, 0], vec![2]], Vec::new());
        let targets = Targets::Real { values: vec![0.5; 3] };
        assert_eq!(partition.counts(&targets), vec![vec![2], vec![1]]);
        assert_eq!(partition.table(&targets), "client  rows\n     0     2\n     1     1\n   all     3\n");
    }

    #[test]
    fn many_classes_are_counted_and_not_listed() {
        let targets = Targets::Classes { labels: vec![0, 1, 19], names: (0..20).map(|c| c.to_string()).collect() };
        let table = Partition::new(vec![vec![0, 1], vec![2]], Vec::new()).table(&targets);
        assert!(table.contains("2 of 20"), "{table}");
    }

    #[test]
    fn validation_and_test_rows_have_columns_and_shared_rows_count_once() {
        let targets = Targets::Classes { labels: vec![0, 1, 0, 1], names: vec!["a".into(), "b".into()] };
        let mut partition = Partition::new(vec![vec![0, 1], vec![0, 1]], Vec::new());
        partition.validation = vec![vec![2], vec![2]];
        partition.tests = vec![vec![0, 1, 2], Vec::new()];
        let expected = "client  a  b  rows  validation  test\n     0  1  1     2           1     3\n     1  1  1     2           1     0\n   all  1  1     2           1     3\n";
        assert_eq!(partition.table(&targets), expected);
    }
}
