//! The interval of a share of rows.

use super::clusters::{Clusters, design_effect};
use super::interval::Interval;
use super::normal::two_sided_quantile;

/// A share of rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Share {
    /// The share.
    pub value: f64,
    /// The number of independent rows that tell as much: the rows over the design effect (Korn and Graubard 1998), and at
    /// least 1.
    pub independent: f64,
}

impl Share {
    /// The share of some rows that have a property; `None` without a row.
    ///
    /// # Arguments
    /// * `rows`: the rows, and whether each has it
    pub fn of(clusters: Option<&Clusters>, rows: impl Iterator<Item = (usize, bool)> + Clone) -> Option<Self> {
        let (n, count) =
            rows.clone().fold((0_usize, 0_usize), |(n, count), (_, has)| (n + 1, count + usize::from(has)));
        if n == 0 {
            return None;
        }
        let design_effect = design_effect(clusters, rows.map(|(row, has)| (row, f64::from(u8::from(has)))));
        Some(Self { value: count as f64 / n as f64, independent: (n as f64 / design_effect).max(1.0) })
    }

    /// Its interval (Wilson 1927). Unlike a bootstrap it has a width where all rows are alike.
    pub fn interval(&self, level: f64) -> Interval {
        wilson(level, self.value, self.independent)
    }
}

/// 95 % interval of a share among `rows` independent rows, at least 1 (Wilson 1927). Unlike a bootstrap it has a width where
/// all rows are alike.
pub fn share_interval(share: f64, rows: usize) -> Interval {
    wilson(0.95, share, rows as f64)
}

/// The interval of a level in (0, 1) of a share among n independent rows.
pub(super) fn wilson(level: f64, share: f64, n: f64) -> Interval {
    let z2 = two_sided_quantile(level).powi(2);
    let center = (share + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = (share * (1.0 - share) * z2 / n + (z2 / (2.0 * n)).powi(2)).sqrt() / (1.0 + z2 / n);
    // Of no row and of all rows an end is the share itself, but for rounding.
    Interval {
        lo: if share > 0.0 { (center - half).max(0.0) } else { 0.0 },
        hi: if share < 1.0 { (center + half).min(1.0) } else { 1.0 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_that_of_other_programs() {
        // Exactly where the share is an end.
        assert_eq!((share_interval(1.0, 400).hi, share_interval(0.0, 400).lo), (1.0, 0.0));
        // SciPy: binomtest(count, rows).proportion_ci(0.95, "wilson").
        for (count, rows, lo, hi) in
            [(3, 3, 0.438_502_968, 1.0), (0, 10, 0.0, 0.277_532_800), (81, 263, 0.255_288_520, 0.366_209_577)]
        {
            let got = share_interval(f64::from(count) / f64::from(rows), rows as usize);
            assert!((got.lo - lo).abs() < 1e-8 && (got.hi - hi).abs() < 1e-8, "{got:?}");
        }
    }

    #[test]
    fn clusters_of_alike_rows_count_as_rows() {
        // Ten clusters of four equal rows, or of four and eight rows that are all right.
        let clusters = Clusters::new((0..40).map(|row| row / 4));
        let of = |has: fn(usize) -> bool| Share::of(Some(&clusters), (0..40).map(|row| (row, has(row)))).unwrap();
        let all = of(|_| true);
        assert_eq!((all.value, all.independent, all.interval(0.95)), (1.0, 10.0, share_interval(1.0, 10)));
        // Three of ten: p (1 - p) over the variance of ten numbers, which has the divisor 9.
        let some = of(|row| row < 12);
        assert!((some.value - 0.3).abs() < 1e-15 && (some.independent - 9.0).abs() < 1e-12, "{some:?}");
        assert_eq!(
            Share::of(None, (0..40).map(|row| (row, row < 12))).unwrap().interval(0.95),
            share_interval(0.3, 40)
        );
        assert_eq!(Share::of(Some(&clusters), std::iter::empty()), None);
    }
}
