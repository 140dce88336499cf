//! The limits of what a site may tell. A server checks them before it uses a description, for it does not know who sent
//! it; and a site before it sends one.

use std::collections::HashSet;

use fedstein_schema::Accepts;

use super::config::MOST_INDEX;
use super::describe::{ColumnsTold, Description, Sums, TargetDescription};
use crate::datasets::columns::{CellKind, MOST_CATEGORIES, Tally};
use crate::datasets::moments::ColumnSum;

/// The largest number of rows of one kind that a site may have.
pub const MOST_ROWS: usize = 1 << 31;

/// The largest number of features, and of classes.
const MOST_NAMES: usize = 1_000_000;

/// The largest number of characters in the name of a feature or class.
const LONGEST_NAME: usize = 200;

impl Description {
    /// Checks that the numbers are within limits and consistent with each other.
    ///
    /// # Errors
    /// A message that names the first invalid field and what would be valid, without a text of the description.
    pub fn check(&self) -> Result<(), String> {
        let name = toml::Value::String(self.name.clone());
        Accepts::Name.check(&name).map_err(|valid| format!("`name` must be {valid}"))?;
        within("index", self.index, 0, MOST_INDEX)?;
        within("rows", self.rows, 1, MOST_ROWS)?;
        within("validation_rows", self.validation_rows, 0, MOST_ROWS)?;
        within("calibration_rows", self.calibration_rows, 0, MOST_ROWS)?;
        within("test_rows", self.test_rows, 0, MOST_ROWS)?;
        within("width", self.width, 1, MOST_NAMES)?;
        if let Some(names) = &self.features {
            length("features", names.len(), self.width, "features")?;
            short("features", names)?;
        }
        if let Some(columns) = &self.columns {
            self.check_columns(columns)?;
        }
        self.check_target()?;
        match &self.sums {
            Some(sums) => self.check_sums(sums)?,
            None if self.products => return Err("`products` must be false without `sums`".into()),
            None => {}
        }
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        match self.print.len() == 64 && self.print.bytes().all(is_digit) {
            true => Ok(()),
            false => Err("`print` must be 64 hexadecimal digits".into()),
        }
    }

    fn check_target(&self) -> Result<(), String> {
        let TargetDescription::Classes { names, counts, untrained } = &self.target else { return Ok(()) };
        within("number of classes", names.len(), 1, MOST_NAMES)?;
        short("target.names", names)?;
        if let Some(at) = names.iter().position(|name| is_formula(name)) {
            return Err(format!(
                "`target.names`: name {at}, from 0, is a formula for a spreadsheet, with which the other sites may open their \
                 tables of predictions; rename the class"
            ));
        }
        let known: HashSet<&String> = names.iter().collect();
        if untrained.len() >= names.len() || untrained.iter().any(|name| !known.contains(name)) {
            return Err("`target.untrained` are no classes of the site, or all of them".into());
        }
        let Some(counts) = counts else { return Ok(()) };
        length("target.counts", counts.len(), names.len(), "classes")?;
        let rows = counts.iter().try_fold(0usize, |rows, count| rows.checked_add(*count));
        match rows == Some(self.rows) {
            true => Ok(()),
            false => Err(format!("`target.counts` do not add up to {} rows", self.rows)),
        }
    }

    fn check_columns(&self, columns: &ColumnsTold) -> Result<(), String> {
        length("columns.kinds", columns.kinds.len(), self.width, "features")?;
        let Some(texts) = &columns.texts else { return Ok(()) };
        length("columns.texts", texts.len(), self.width, "features")?;
        for (kind, texts) in columns.kinds.iter().zip(texts) {
            let most = if *kind == CellKind::Category { MOST_CATEGORIES } else { 0 };
            within("number of texts of a column", texts.len(), 0, most)?;
            short("columns.texts", texts)?;
            if !texts.is_sorted_by(|a, b| a < b) {
                return Err("`columns.texts` are not in order, or twice in a column".into());
            }
        }
        Ok(())
    }

    /// The counts of a column belong to its rows and texts.
    fn check_tally(&self, tally: &Tally, kind: CellKind, texts: Option<&Vec<String>>) -> Result<(), String> {
        let wrong = |problem: &str| Err(format!("`sums.tallies`: {problem}"));
        if tally.missing.checked_add(tally.present) != Some(self.rows) {
            return wrong("the cells of a column are not the rows");
        }
        if kind != CellKind::Category {
            return if tally.texts.is_empty() { Ok(()) } else { wrong("texts of a column of numbers") };
        }
        if tally.sum.constant.is_some() || tally.sum.sum.value() != 0.0 {
            return wrong("a sum of texts");
        }
        // Without the permission to tell texts there are none.
        let Some(texts) = texts else {
            return if tally.texts.is_empty() { Ok(()) } else { wrong("texts that are not told") };
        };
        let rows = tally.texts.values().try_fold(0usize, |rows, count| rows.checked_add(*count));
        match tally.texts.keys().eq(texts) && rows == Some(tally.present) && !tally.texts.values().any(|n| *n == 0) {
            true => Ok(()),
            false => wrong("the texts of a column are others, or their counts do not add up"),
        }
    }

    fn check_sums(&self, sums: &Sums) -> Result<(), String> {
        if sums.tallies.is_some() != self.columns.is_some() {
            return Err("`sums.tallies` must be there with `columns` alone".into());
        }
        if let (Some(tallies), Some(columns)) = (&sums.tallies, &self.columns) {
            length("sums.features", sums.features.len(), 0, "features with tallies")?;
            length("sums.tallies", tallies.len(), self.width, "features")?;
            for (at, (tally, kind)) in tallies.iter().zip(&columns.kinds).enumerate() {
                self.check_tally(tally, *kind, columns.texts.as_ref().map(|texts| &texts[at]))?;
            }
        } else {
            length("sums.features", sums.features.len(), self.width, "features")?;
        }
        if sums.target.is_some() && self.target != TargetDescription::Real {
            return Err("`sums.target` is for a regression alone".into());
        }
        // Features are f32, so that more than this is no sum of them.
        let is_sum = |column: &ColumnSum| column.sum.value().abs() <= f64::from(f32::MAX) * self.rows as f64;
        let tallied = sums.tallies.iter().flatten().map(|tally| &tally.sum);
        if !sums.features.iter().chain(tallied).all(is_sum) {
            return Err("`sums` of a feature are larger than those of so many numbers of 32 bits".into());
        }
        // The sum of equal numbers is their exact product, and its value that product, rounded.
        let is_constant = |(column, rows): (&ColumnSum, usize)| match column.constant {
            Some(value) => value.is_finite() && column.sum.value() == value * rows as f64,
            None => true,
        };
        let of_all = sums.features.iter().chain(&sums.target).map(|column| (column, self.rows));
        let of_some = sums.tallies.iter().flatten().map(|tally| (&tally.sum, tally.present));
        match of_all.chain(of_some).all(is_constant) {
            true => Ok(()),
            false => Err("`constant` of a column is not finite, or does not give its sum".into()),
        }
    }
}

fn within(field: &str, found: usize, least: usize, most: usize) -> Result<(), String> {
    match (least..=most).contains(&found) {
        true => Ok(()),
        false => Err(format!("`{field}` is {found}; it must be from {least} to {most}")),
    }
}

fn length(field: &str, found: usize, expected: usize, of: &str) -> Result<(), String> {
    match found == expected {
        true => Ok(()),
        false => Err(format!("`{field}` has {found} entries for {expected} {of}")),
    }
}

fn short(field: &str, names: &[String]) -> Result<(), String> {
    match names.iter().position(|name| name.chars().nth(LONGEST_NAME).is_some()) {
        Some(at) => Err(format!("`{field}`: name {at}, from 0, has more than {LONGEST_NAME} characters")),
        None => Ok(()),
    }
}

/// Whether a text of the table of predictions is a formula for a spreadsheet that calls something. `+++`, `-1` and `+ve` are
/// none.
pub(crate) fn is_formula(text: &str) -> bool {
    match text.chars().next() {
        Some('=' | '\t' | '\r') => true,
        Some('+' | '-' | '@') => text.contains(['(', '|', '!']),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::describe::describe;
    use super::super::describe::tests::{classes, rows, site};
    use super::*;
    use crate::datasets::Targets;
    use ndarray::array;
    use serde_json::{Value, json};

    fn told(targets: Targets) -> Value {
        let rows = rows("print", array![[1.5, 7.], [2.25, 7.], [-4., 7.]], &["ph", "flow"], targets);
        serde_json::to_value(describe(&site(1), &rows, 3)).unwrap()
    }

    fn trees() -> Value {
        told(classes(&[1, 0, 1], &["alder", "oak"]))
    }

    /// What becomes of a description in which the value at a place is another.
    fn changed(mut told: Value, place: &str, value: Value) -> Result<(), String> {
        *told.pointer_mut(place).unwrap() = value;
        let read: Description = serde_json::from_value(told).map_err(|error| format!("not read: {error}"))?;
        read.check()
    }

    #[test]
    fn a_description_survives_json_and_is_valid() {
        for told in [trees(), told(Targets::Real { values: vec![0.1, 0.2, 0.7] })] {
            let read: Description = serde_json::from_str(&told.to_string()).unwrap();
            assert_eq!(read.check(), Ok(()));
            assert_eq!(serde_json::to_value(read).unwrap(), told);
        }
    }

    #[test]
    fn names_that_a_spreadsheet_would_compute_are_refused() {
        let named = |name: &str| changed(trees(), "/target/names/0", json!(name));
        for name in ["=HYPERLINK(\"http://example.org\")", "@SUM(A1)", "+cmd|' /C calc'!A0", "-1+cmd()", "\t=1"] {
            let reason = named(name).unwrap_err();
            assert!(reason.contains("`target.names`: name 0") && reason.contains("spreadsheet"), "{name}: {reason}");
        }
        for name in ["-", "+++", "-1", "+ve", "a=b", "f(x)", "-2+3"] {
            assert_eq!(named(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn numbers_out_of_range_and_lists_of_other_lengths_are_refused_by_field() {
        let long = "a".repeat(201);
        for (place, value, words) in [
            ("/name", json!("../etc"), "`name` must be a name of letters"),
            ("/name", json!(""), "`name` must be"),
            ("/index", json!(1_000_000), "`index` is 1000000; it must be from 0 to 999999"),
            ("/index", json!(-1), "not read"),
            ("/rows", json!(0), "`rows` is 0; it must be from 1 to 2147483648"),
            ("/rows", json!(1e12), "not read"),
            ("/rows", json!(2_147_483_649u64), "`rows` is 2147483649"),
            ("/test_rows", json!(u64::MAX), "`test_rows` is 18446744073709551615"),
            ("/width", json!(3), "`features` has 2 entries for 3 features"),
            ("/width", json!(0), "`width` is 0"),
            ("/features", json!(["ph"]), "`features` has 1 entries for 2 features"),
            ("/features", json!(["ph", long]), "`features`: name 1, from 0, has more than 200 characters"),
            ("/target/names", json!([]), "`number of classes` is 0"),
            ("/target/names", json!([long, "oak"]), "`target.names`: name 0"),
            ("/target/names", json!(["oak"]), "`target.counts` has 2 entries for 1 classes"),
            ("/target/counts", json!([2, 2]), "`target.counts` do not add up to 3 rows"),
            ("/target/counts", json!([u64::MAX, 4]), "`target.counts` do not add up"),
            ("/target/kind", json!("ranks"), "not read"),
            ("/sums/features", json!([]), "`sums.features` has 0 entries for 2 features"),
            ("/sums/features/0/sum", json!([1.0, null]), "not read"),
            ("/sums/features/0/sum", json!(vec![1.0; 41]), "not read: a sum of 41 parts; it has at most 40"),
            ("/sums/features/0/sum", json!([f64::MAX, f64::MAX]), "not read: a sum that is not finite"),
            ("/sums/features/0/sum", json!([1.1e39]), "`sums` of a feature are larger than those of so many numbers"),
            ("/sums/features/1/constant", json!(6.0), "`constant` of a column is not finite, or does not give its sum"),
            ("/sums/target", json!({ "sum": [1.0], "constant": null }), "`sums.target` is for a regression"),
            ("/print", json!("0".repeat(63)), "`print` must be 64 hexadecimal digits"),
            ("/print", json!("é".repeat(32)), "`print` must be 64 hexadecimal digits"),
        ] {
            let message = changed(trees(), place, value).unwrap_err();
            assert!(message.starts_with(words), "{place}: {message}");
            assert!(message.len() < 200, "{place}: {message}");
        }
    }

    #[test]
    fn what_the_json_reader_takes_for_infinite_is_refused() {
        let text = trees().to_string().replace("\"constant\":7.0", "\"constant\":7e999");
        assert!(serde_json::from_str::<Description>(&text).is_err(), "{text}");
    }
}
