//! How many of a number a share is.
//!
//! `f64` cannot represent a share such as 0.29 exactly: its product with 100 is 28.999999999999996. Products that are within 1e-9 of a
//! whole number, or of one and a half, count as that.

/// The number that is closest to the share of `count`; of two that are equally close, the larger one.
pub fn rounded(share: f64, count: usize) -> usize {
    (product(share, count) + 0.5) as usize
}

/// The largest number that is at most the share of `count`.
pub fn rounded_down(share: f64, count: usize) -> usize {
    product(share, count) as usize
}

/// The smallest number that is at least the share of `count`.
pub fn rounded_up(share: f64, count: usize) -> usize {
    product(share, count).ceil() as usize
}

fn product(share: f64, count: usize) -> f64 {
    let halves = 2.0 * share * count as f64;
    let whole = halves.round();
    if (halves - whole).abs() < 2e-9 { whole / 2.0 } else { halves / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shares of two decimals, against integers.
    #[test]
    fn shares_of_hundredths_are_exact() {
        for hundredths in 0..=100_usize {
            let share = hundredths as f64 / 100.0;
            for count in 0..=1000_usize {
                let exact = hundredths * count;
                assert_eq!(rounded_down(share, count), exact / 100, "{share} of {count}");
                assert_eq!(rounded_up(share, count), exact.div_ceil(100), "{share} of {count}");
                assert_eq!(rounded(share, count), (2 * exact + 100) / 200, "{share} of {count}");
            }
        }
    }

    #[test]
    fn a_share_that_is_not_close_to_a_whole_number_is_rounded_as_it_is() {
        let third = 1.0 / 3.0;
        assert_eq!([rounded_down(third, 100), rounded(third, 100), rounded_up(third, 100)], [33, 33, 34]);
        assert_eq!([rounded_down(0.2901, 100), rounded_up(0.2901, 100)], [29, 30]);
        assert_eq!(rounded_up(1e-6, 100), 1);
    }
}
