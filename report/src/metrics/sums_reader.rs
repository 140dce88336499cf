//! Reads sums of scores from a message, which comes from elsewhere.

use super::error::MetricError;

/// The largest number of rows in a message: larger counts are not exact in `f64`.
const MOST_ROWS: f64 = 9_007_199_254_740_992.0;

/// Reads the values of a message one after the other, and refuses those that no rows can give.
pub(super) struct Reader<'a> {
    values: &'a [f64],
    /// The place of the next value.
    at: usize,
    /// Number of rows.
    pub rows: f64,
}

impl<'a> Reader<'a> {
    /// A reader of a message whose first value is the number of rows.
    ///
    /// # Errors
    /// The message is empty, or no rows can be so many.
    pub fn new(values: &'a [f64]) -> Result<Self, MetricError> {
        let mut reader = Self { values, at: 0, rows: 0.0 };
        reader.rows = reader.between(0.0, MOST_ROWS)?;
        reader.whole(reader.rows)?;
        Ok(reader)
    }

    /// `Ok` if all values were read.
    pub fn end(&self) -> Result<(), MetricError> {
        match self.is_at_end() {
            true => Ok(()),
            false => Err(MetricError::Length { what: "sums of scores", got: self.values.len(), expected: self.at }),
        }
    }

    /// The next value.
    fn next(&mut self) -> Result<f64, MetricError> {
        let missing = MetricError::Length { what: "sums of scores", got: self.values.len(), expected: self.at + 1 };
        let value = *self.values.get(self.at).ok_or(missing)?;
        self.at += 1;
        Ok(value)
    }

    /// Whether all values were read.
    pub fn is_at_end(&self) -> bool {
        self.at == self.values.len()
    }

    /// The error about the value read last.
    pub fn refused(&self) -> MetricError {
        MetricError::Sum { index: self.at - 1, value: self.values[self.at - 1], rows: self.rows }
    }

    /// `Ok` of the value read last if it is a whole number.
    fn whole(&self, value: f64) -> Result<f64, MetricError> {
        if value.fract() == 0.0 { Ok(value) } else { Err(self.refused()) }
    }

    /// The next value, from `lo` to `hi`.
    pub fn between(&mut self, lo: f64, hi: f64) -> Result<f64, MetricError> {
        let value = self.next()?;
        if (lo..=hi).contains(&value) { Ok(value) } else { Err(self.refused()) }
    }

    /// The next value: the sum over rows of a score from `lo` to `hi`.
    pub fn sum(&mut self, lo: f64, hi: f64) -> Result<f64, MetricError> {
        self.between(lo * self.rows, hi * self.rows)
    }

    /// The next value: a number of rows, at most `most`.
    pub fn count(&mut self, most: f64) -> Result<f64, MetricError> {
        let value = self.between(0.0, most)?;
        self.whole(value)
    }

    /// The next values: counts of rows, each at most the number of all rows.
    pub fn counts(&mut self, into: &mut [f64]) -> Result<(), MetricError> {
        for count in into {
            *count = self.count(self.rows)?;
        }
        Ok(())
    }

    /// `Ok` if the counts read last are together as many as the value says.
    pub fn together(&self, counts: f64, expected: f64) -> Result<(), MetricError> {
        if counts == expected { Ok(()) } else { Err(MetricError::Counts { got: counts, expected }) }
    }
}
