//! The interval of a share of rows.

use super::interval::Interval;
use super::normal::two_sided_quantile;

/// 95 % interval of a share among `rows` rows, at least 1 (Wilson 1927). Unlike a bootstrap it has a width where all rows
/// are alike.
pub fn share_interval(share: f64, rows: usize) -> Interval {
    share_interval_of(0.95, share, rows)
}

/// The same of another level in (0, 1).
pub(super) fn share_interval_of(level: f64, share: f64, rows: usize) -> Interval {
    let (n, z2) = (rows as f64, two_sided_quantile(level).powi(2));
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
}
