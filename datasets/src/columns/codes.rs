//! Values that may stand for missing ones, such as 999 among ages: far beyond all others of their column.

use std::collections::BTreeSet;

/// Most different values that may be codes, on one side of the others: "refused" and "unknown" are two.
const MOST_CODES: usize = 3;

/// The least distance of a code from the others, in units of their range.
const FAR: f64 = 3.0;

/// The same where one row alone has a value that is not written in nines.
const FAR_ALONE: f64 = 10.0;

/// The least number of different other values: fewer may be classes of their own.
const LEAST_OTHERS: usize = 10;

/// The same where all codes are written in nines: sexes are 1 and 2, and 9 where nobody knows.
const LEAST_BESIDE_NINES: usize = 2;

/// Values of a column that are far beyond all others.
#[derive(Clone, Debug, PartialEq)]
pub struct Codes {
    /// The values, ascending.
    values: Vec<f64>,
    /// The number of rows with one of them.
    rows: usize,
    /// The smallest and the largest of the others.
    others: [f64; 2],
}

impl Codes {
    /// The codes among the values of a column; those that are not finite do not count.
    pub(crate) fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut finite: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        Self::above(&finite).or_else(|| {
            finite.iter_mut().for_each(|value| *value = -*value);
            let Self { values, rows, others: [low, high] } = Self::above(&finite)?;
            Some(Self { values: values.into_iter().rev().map(|value| -value).collect(), rows, others: [-high, -low] })
        })
    }

    /// The codes that are larger than all others.
    fn above(values: &[f64]) -> Option<Self> {
        let top = largest(values);
        let low = values.iter().copied().reduce(f64::min)?;
        (1..top.len()).find_map(|codes| {
            let (high, rows) = (top[codes].0, top[..codes].iter().map(|(_, rows)| rows).sum());
            let (gap, range) = (top[codes - 1].0 - high, high - low);
            let far = if rows == 1 && !is_nines(top[0].0) { FAR_ALONE } else { FAR };
            let others = values.iter().filter(|value| **value <= high);
            let are_nines = top[..codes].iter().all(|(code, _)| is_nines(*code));
            let least = if are_nines { LEAST_BESIDE_NINES } else { LEAST_OTHERS };
            (range > 0.0 && gap >= far * range && 2 * rows <= values.len() && has_different(others, least)).then(|| {
                Self { values: top[..codes].iter().rev().map(|(value, _)| *value).collect(), rows, others: [low, high] }
            })
        })
    }

    /// The values as cells. Those of features are kept in f32, whose shortest text is that of the cell.
    pub fn cells(&self) -> Vec<String> {
        self.values.iter().copied().map(cell).collect()
    }

    /// A name for a note, such as "`age` (999 in 4 rows, all others 18 to 92)".
    pub fn of_column(&self, name: &str) -> String {
        let Self { rows, others: [low, high], .. } = self;
        let values = self.cells().join(" or ");
        let rows = if *rows == 1 { "1 row".to_owned() } else { format!("{rows} rows") };
        format!("`{name}` ({values} in {rows}, all others {} to {})", cell(*low), cell(*high))
    }
}

/// A value as a cell. One beyond the range of f32 is in a table that nothing was read from yet.
fn cell(value: f64) -> String {
    let single = value as f32;
    if single.is_finite() { single.to_string() } else { format!("{value:e}") }
}

/// A note on the columns of a table that hold codes.
///
/// # Arguments
/// * `columns`: the names of columns with their codes
/// * `table`: the name of the table
/// * `remedy`: what to do about them
pub(crate) fn note(columns: &[(String, Codes)], table: &str, remedy: &str) -> Option<String> {
    const NAMED: usize = 3;
    columns.first()?;
    let mut named: Vec<String> = columns.iter().take(NAMED).map(|(name, codes)| codes.of_column(name)).collect();
    if columns.len() > NAMED {
        named.push(format!("{} more columns", columns.len() - NAMED));
    }
    Some(format!(
        "values of {table} far beyond all others of their column: {}; where they stand for missing values, {remedy}",
        named.join(", ")
    ))
}

/// The [`MOST_CODES`] + 1 largest different values, descending, each with the number of its rows.
fn largest(values: &[f64]) -> Vec<(f64, usize)> {
    let mut top = Vec::<(f64, usize)>::with_capacity(MOST_CODES + 2);
    for &value in values {
        let place = top.partition_point(|(other, _)| *other > value);
        match top.get_mut(place) {
            Some((other, rows)) if *other == value => *rows += 1,
            _ if place <= MOST_CODES => {
                top.insert(place, (value, 1));
                top.truncate(MOST_CODES + 1);
            }
            _ => {}
        }
    }
    top
}

/// Whether there are as many different values.
fn has_different<'a>(mut values: impl Iterator<Item = &'a f64>, least: usize) -> bool {
    let mut seen = BTreeSet::new();
    values.any(|value| {
        seen.insert(value.to_bits());
        seen.len() >= least
    })
}

/// Whether a number is written in nines: 9, 999, -99, 99.9.
fn is_nines(value: f64) -> bool {
    value != 0.0 && value.abs().to_string().chars().all(|c| c == '9' || c == '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(codes: &[f64], others: impl Iterator<Item = u32>) -> Option<Codes> {
        let values: Vec<f64> = others.map(f64::from).chain(codes.iter().copied()).collect();
        Codes::of(values.iter().copied())
    }

    #[test]
    fn codes_are_far_beyond_many_other_values() {
        // Ages of 20 to 80 years: 999 of some, and of one, because it is in nines.
        let ages = || 20..=80;
        let found = of(&[999.0, 999.0, f64::NAN], ages()).unwrap();
        assert_eq!(found, Codes { values: vec![999.0], rows: 2, others: [20.0, 80.0] });
        assert_eq!(found.of_column("age"), "`age` (999 in 2 rows, all others 20 to 80)");
        assert_eq!(of(&[999.0], ages()).unwrap().of_column("age"), "`age` (999 in 1 row, all others 20 to 80)");
        // Two kinds of missing, and codes below all others.
        assert_eq!(of(&[9998.0, 9999.0, 9999.0], ages()).unwrap().values, [9998.0, 9999.0]);
        assert_eq!(
            of(&[-999.0, -999.0, -998.0], ages()).unwrap().of_column("age"),
            "`age` (-999 or -998 in 3 rows, all others 20 to 80)"
        );
        // A single value that is no code, but a slip of the pen by a factor of ten: 640 for 64 is not that far away.
        assert_eq!(of(&[640.0], ages()), None);
        assert_eq!(of(&[6400.0], ages()).unwrap().rows, 1);
        // Nines beside few other values: a sex of 1 or 2, a class of 0 to 3.
        assert_eq!(
            of(&[9.0, 9.0], (1..=2).cycle().take(20)).unwrap().of_column("sex"),
            "`sex` (9 in 2 rows, all others 1 to 2)"
        );
        assert_eq!(of(&[99.0], 0..=3).unwrap().values, [99.0]);
        assert_eq!(of(&[9.0, 9.0], 0..=3), None);
    }

    #[test]
    fn what_data_look_like_is_no_code() {
        // 99 is an age. Few values, all values, equal values, none.
        assert_eq!(of(&[99.0, 99.0], 20..=80), None);
        assert_eq!(of(&[700.0, 700.0], 0..=5), None);
        assert_eq!(of(&[999.0; 100], 20..=80), None);
        assert_eq!(of(&[7.0; 5], 7..=7), None);
        assert_eq!(of(&[], 0..0), None);
        // A long tail: squares of squares.
        assert_eq!(Codes::of((0..200).map(|i| f64::from(i).powi(4))), None);
    }
}
