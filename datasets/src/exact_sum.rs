//! Sums that do not depend on the order of the numbers.

use serde::Serialize;

/// The exact sum of numbers, kept as a few numbers of which each is below the last bit of the next one (Shewchuk 1997,
/// *Adaptive precision floating-point arithmetic*), as in Python's `math.fsum`.
///
/// [`Self::value`] rounds once. It has the same bits for any order of the numbers, and for partial sums over parts of them
/// that are merged in any order. A sum with a number that is not finite, or one that overflows, is NaN. It is serialised as
/// the list of its parts, whose sum it is.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct ExactSum {
    /// From the smallest to the largest, without zeros. Their sum is the sum of all numbers.
    parts: Vec<f64>,
}

impl ExactSum {
    /// Adds a number.
    pub fn add(&mut self, value: f64) {
        let (mut sum, mut kept) = (value, 0);
        for at in 0..self.parts.len() {
            let (rounded, error) = two_sum(sum, self.parts[at]);
            if error != 0.0 {
                self.parts[kept] = error;
                kept += 1;
            }
            sum = rounded;
        }
        self.parts.truncate(kept);
        if !sum.is_finite() {
            self.parts = vec![f64::NAN];
        } else if sum != 0.0 {
            self.parts.push(sum);
        }
    }

    /// Adds the numbers of another sum.
    pub fn merge(&mut self, other: &Self) {
        other.parts.iter().for_each(|part| self.add(*part));
    }

    /// The sum, rounded to the nearest number; of two equally near ones to the even one. 0 without numbers.
    pub fn value(&self) -> f64 {
        let mut smaller = self.parts.iter().rev().copied();
        let mut value = smaller.next().unwrap_or(0.0);
        while let Some(part) = smaller.next() {
            let (rounded, error) = two_sum(value, part);
            value = rounded;
            if error != 0.0 {
                // An error of half a unit was rounded to the even neighbour, and the parts below may say that it is more.
                let next = smaller.next().unwrap_or(0.0);
                let other = value + 2.0 * error;
                if error * next > 0.0 && other - value == 2.0 * error {
                    value = other;
                }
                break;
            }
        }
        value
    }
}

impl FromIterator<f64> for ExactSum {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut sum = Self::default();
        values.into_iter().for_each(|value| sum.add(value));
        sum
    }
}

/// a + b as the rounded sum and its error, exactly (Knuth).
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let of_b = sum - a;
    (sum, (a - (sum - of_b)) + (b - of_b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn sum(values: &[f64]) -> f64 {
        values.iter().copied().collect::<ExactSum>().value()
    }

    #[test]
    fn sums_are_rounded_once_and_ties_to_even() {
        let power = |exponent: i32| 2f64.powi(exponent);
        let top = power(53);
        // The cases of CPython's own test of math.fsum.
        for (values, want) in [
            (vec![], 0.0),
            (vec![1e100, 1.0, -1e100, 1e-100, 1e50, -1.0, -1e50], 1e-100),
            (vec![top, -0.5, -power(-54)], top - 1.0),
            (vec![top, 1.0, power(-100)], top + 2.0),
            (vec![top + 10.0, 1.0, power(-100)], top + 12.0),
            (vec![top - 4.0, 0.5, power(-54)], top - 3.0),
            (vec![top, 1.0], top),
            (vec![top, 1.0, -power(-100)], top),
        ] {
            assert_eq!(sum(&values), want, "{values:?}");
        }
        let harmonic: Vec<f64> = (1..=1000).map(|n| 1.0 / f64::from(n)).collect();
        assert_eq!(sum(&harmonic), 7.485470860550345);
    }

    #[test]
    fn a_sum_that_is_not_finite_is_nan_and_stays_so() {
        for bad in [vec![f64::INFINITY], vec![f64::NAN], vec![f64::MAX, f64::MAX]] {
            let mut sum: ExactSum = bad.into_iter().collect();
            (0..100).for_each(|n| sum.add(f64::from(n)));
            assert!(sum.value().is_nan() && sum.parts.len() == 1);
        }
    }

    proptest! {
        /// Whole numbers of up to 53 bits, shifted by up to 60, whose sum i128 has exactly. A number and its opposite make
        /// small sums of large numbers.
        #[test]
        fn the_value_is_the_exact_sum_rounded(
            numbers in vec((any::<i64>(), 11u32..64, 0u32..60, any::<bool>()), 0..100),
            scale in -200i32..200,
        ) {
            let shifted = numbers.iter().map(|(bits, cut, shift, _)| i128::from(bits >> cut) << shift);
            let opposite = shifted.clone().zip(&numbers).filter(|(_, (.., twice))| *twice).map(|(number, _)| -number);
            let exact: Vec<i128> = shifted.chain(opposite).collect();
            let scale = 2f64.powi(scale);
            let values: Vec<f64> = exact.iter().map(|number| *number as f64 * scale).collect();
            prop_assert_eq!(sum(&values), exact.iter().sum::<i128>() as f64 * scale);
        }

        #[test]
        fn parts_in_any_order_have_the_bits_of_the_whole(
            numbers in vec((-1f64..1.0, -60i32..60, 0usize..5, any::<u32>()), 0..200),
        ) {
            let value = |(mantissa, exponent, ..): &(f64, i32, usize, u32)| mantissa * 2f64.powi(*exponent);
            let whole: ExactSum = numbers.iter().map(value).collect();
            let mut shuffled = numbers.clone();
            shuffled.sort_by_key(|(.., key)| *key);
            let mut sites = vec![ExactSum::default(); 5];
            shuffled.iter().for_each(|number| sites[number.2].add(value(number)));
            for order in [[0, 1, 2, 3, 4], [3, 0, 4, 2, 1]] {
                let mut merged = ExactSum::default();
                order.iter().for_each(|site| merged.merge(&sites[*site]));
                prop_assert_eq!(merged.value().to_bits(), whole.value().to_bits());
            }
        }
    }
}
