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

/// Values of a column that are far beyond all others, as they are written.
#[derive(Clone, Debug, PartialEq)]
pub struct Codes {
    /// The values, ascending.
    cells: Vec<String>,
    /// The number of rows with one of them.
    rows: usize,
    /// The smallest and the largest of the others.
    others: [String; 2],
}

/// The same as numbers, each with what is known of its cell.
#[derive(Clone, Debug)]
pub(crate) struct FarValues<C> {
    codes: Vec<(f64, C)>,
    rows: usize,
    others: [(f64, C); 2],
}

/// The largest and the smallest different values of a column.
#[derive(Clone, Debug)]
pub(crate) struct Extremes<C> {
    largest: Ends<C>,
    /// Of the values times −1.
    smallest: Ends<C>,
    rows: usize,
}

/// The [`MOST_CODES`] + 1 largest different values, descending, each with the number of its rows and its cell.
#[derive(Clone, Debug)]
struct Ends<C>(Vec<(f64, usize, C)>);

impl FarValues<usize> {
    /// The codes among the values of a column, each with the first row that has it; those that are not finite do not count.
    pub fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.collect();
        let mut extremes = Extremes::default();
        values.iter().enumerate().for_each(|(row, value)| extremes.add(*value, 1, || row));
        extremes.codes(|[low, high], least| {
            has_different(values.iter().copied().filter(|value| (low..=high).contains(value)), least)
        })
    }
}

impl<C> FarValues<C> {
    /// The values that a note names, and their cells.
    pub fn named(&self) -> impl Iterator<Item = &(f64, C)> {
        self.codes.iter().chain(&self.others)
    }

    /// The codes, each value as it is written.
    pub fn written(&self, write: impl Fn(f64, &C) -> String) -> Codes {
        let write = |(value, cell): &(f64, C)| write(*value, cell);
        let cells = self.codes.iter().map(write).collect();
        Codes { cells, rows: self.rows, others: self.others.each_ref().map(write) }
    }
}

impl<C> Default for Extremes<C> {
    fn default() -> Self {
        Self { largest: Ends(Vec::new()), smallest: Ends(Vec::new()), rows: 0 }
    }
}

impl<C: Clone> Extremes<C> {
    /// Adds a value that occurs in so many rows; one that is not finite does not count.
    pub fn add(&mut self, value: f64, rows: usize, cell: impl Fn() -> C) {
        if value.is_finite() {
            self.rows += rows;
            self.largest.add(value, rows, &cell);
            self.smallest.add(-value, rows, &cell);
        }
    }

    /// The codes; `are_different` tells whether there are as many different values from the one number to the other.
    pub fn codes(&self, are_different: impl Fn([f64; 2], usize) -> bool) -> Option<FarValues<C>> {
        let (largest, smallest) = (&self.largest, &self.smallest);
        largest.far(smallest, self.rows, &are_different).or_else(|| {
            let are_different = |[low, high]: [f64; 2], least: usize| are_different([-high, -low], least);
            let FarValues { codes, rows, others: [low, high] } = smallest.far(largest, self.rows, &are_different)?;
            let negative = |(value, cell): (f64, C)| (-value, cell);
            let codes = codes.into_iter().rev().map(negative).collect();
            Some(FarValues { codes, rows, others: [negative(high), negative(low)] })
        })
    }
}

impl<C: Clone> Ends<C> {
    fn add(&mut self, value: f64, rows: usize, cell: impl Fn() -> C) {
        let place = self.0.partition_point(|(other, ..)| *other > value);
        match self.0.get_mut(place) {
            Some((other, of_other, _)) if *other == value => *of_other += rows,
            _ if place <= MOST_CODES => {
                self.0.insert(place, (value, rows, cell()));
                self.0.truncate(MOST_CODES + 1);
            }
            _ => {}
        }
    }

    /// The codes that are larger than all others; `smallest` are the ends of the values times −1, in `all` rows.
    fn far(
        &self,
        smallest: &Self,
        all: usize,
        are_different: &impl Fn([f64; 2], usize) -> bool,
    ) -> Option<FarValues<C>> {
        let (low, _, cell_of_low) = smallest.0.first()?;
        let low = -low;
        (1..self.0.len()).find_map(|codes| {
            let ((high, _, cell_of_high), codes) = (&self.0[codes], &self.0[..codes]);
            let rows = codes.iter().map(|(_, rows, _)| rows).sum();
            let (gap, range) = (codes[codes.len() - 1].0 - high, high - low);
            let far = if rows == 1 && !is_nines(codes[0].0) { FAR_ALONE } else { FAR };
            let are_nines = codes.iter().all(|(code, ..)| is_nines(*code));
            let least = if are_nines { LEAST_BESIDE_NINES } else { LEAST_OTHERS };
            (range > 0.0 && gap >= far * range && 2 * rows <= all && are_different([low, *high], least)).then(|| {
                let codes = codes.iter().rev().map(|(value, _, cell)| (*value, cell.clone())).collect();
                FarValues { codes, rows, others: [(low, cell_of_low.clone()), (*high, cell_of_high.clone())] }
            })
        })
    }
}

impl Codes {
    /// The values as cells.
    pub fn cells(&self) -> &[String] {
        &self.cells
    }

    /// A name for a note, such as "`age` (999 in 4 rows, all others 18 to 92)".
    pub fn of_column(&self, name: &str) -> String {
        let Self { rows, others: [low, high], .. } = self;
        let values = self.cells.join(" or ");
        let rows = if *rows == 1 { "1 row".to_owned() } else { format!("{rows} rows") };
        format!("`{name}` ({values} in {rows}, all others {low} to {high})")
    }
}

/// The longest number that is written without an exponent.
const LONGEST: usize = 17;

/// A value as a cell: its shortest text.
pub(crate) fn exact(value: f64) -> String {
    let text = value.to_string();
    if text.len() > LONGEST { format!("{value:e}") } else { text }
}

/// The same of a value of which single precision is known.
pub(crate) fn shortest(value: f64) -> String {
    let single = value as f32;
    let text = single.to_string();
    if text.len() > LONGEST { format!("{single:e}") } else { text }
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

/// Whether there are as many different values.
pub(crate) fn has_different(mut values: impl Iterator<Item = f64>, least: usize) -> bool {
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
        FarValues::of(others.map(f64::from).chain(codes.iter().copied()))
            .map(|codes| codes.written(|value, _| shortest(value)))
    }

    #[test]
    fn codes_are_far_beyond_many_other_values() {
        // Ages of 20 to 80 years: 999 of some, and of one, because it is in nines.
        let ages = || 20..=80;
        let found = of(&[999.0, 999.0, f64::NAN], ages()).unwrap();
        assert_eq!(found, Codes { cells: vec!["999".into()], rows: 2, others: ["20".into(), "80".into()] });
        assert_eq!(found.of_column("age"), "`age` (999 in 2 rows, all others 20 to 80)");
        assert_eq!(of(&[999.0], ages()).unwrap().of_column("age"), "`age` (999 in 1 row, all others 20 to 80)");
        // Two kinds of missing, and codes below all others.
        assert_eq!(of(&[9998.0, 9999.0, 9999.0], ages()).unwrap().cells, ["9998", "9999"]);
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
        assert_eq!(of(&[99.0], 0..=3).unwrap().cells, ["99"]);
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
        assert!(FarValues::of((0..200).map(|i| f64::from(i).powi(4))).is_none());
    }
}
