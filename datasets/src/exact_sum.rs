//! Sums that do not depend on the order of the numbers.

use serde::{Deserialize, Serialize};

/// The largest number of parts that a written sum has: each is at most half a unit of the last bit of the one before,
/// and the 2,098 bits of all doubles hold 40 times 53 bits.
const MOST_PARTS: usize = 40;

/// The exact sum of numbers, kept as a few numbers of which each is below the last bit of the next one (Shewchuk 1997,
/// *Adaptive precision floating-point arithmetic*), as in Python's `math.fsum`.
///
/// [`Self::value`] rounds once. It has the same bits for any order of the numbers, and for partial sums over parts of them
/// that are merged in any order. A sum with a number that is not finite, or one that overflows, is NaN. It is serialised as
/// the list of [`Self::parts()`], which says nothing about the order of the numbers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(into = "Vec<f64>", try_from = "Vec<f64>")]
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
                if next != 0.0 && (error > 0.0) == (next > 0.0) && other - value == 2.0 * error {
                    value = other;
                }
                break;
            }
        }
        value
    }

    /// The sum as few numbers, the same for any order of the numbers added: first [`Self::value`], then that of what is
    /// left, and so on to the end. Empty for 0, NaN alone for a sum that is NaN.
    pub fn parts(&self) -> Vec<f64> {
        let (mut parts, mut left) = (Vec::new(), self.clone());
        loop {
            let value = left.value();
            if value == 0.0 {
                return parts;
            }
            parts.push(value);
            if value.is_nan() {
                return parts;
            }
            left.add(-value);
        }
    }
}

impl PartialEq for ExactSum {
    /// Whether the sums of all numbers are equal, exactly. A sum that is NaN differs from every other.
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl From<ExactSum> for Vec<f64> {
    fn from(sum: ExactSum) -> Self {
        sum.parts()
    }
}

impl TryFrom<Vec<f64>> for ExactSum {
    type Error = String;

    /// The sum of parts from a source that is not trusted.
    fn try_from(parts: Vec<f64>) -> Result<Self, String> {
        if parts.len() > MOST_PARTS {
            return Err(format!("a sum of {} parts; it has at most {MOST_PARTS}", parts.len()));
        }
        let sum: Self = parts.into_iter().collect();
        if sum.value().is_finite() { Ok(sum) } else { Err("a sum that is not finite".into()) }
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
            // So small that the product of two parts is 0.
            let tiny = |value: f64| value * power(-700);
            let values: Vec<f64> = values.into_iter().map(tiny).collect();
            assert_eq!(sum(&values), tiny(want), "{values:?}");
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

    #[test]
    fn a_sum_is_written_by_parts_of_which_the_first_is_its_value() {
        let json = |values: &[f64]| serde_json::to_string(&values.iter().copied().collect::<ExactSum>()).unwrap();
        assert_eq!(json(&[]), "[]");
        assert_eq!(json(&[-0.0, 0.5, -0.5]), "[]");
        assert_eq!(json(&[1.5, 3.0]), "[4.5]");
        assert_eq!(json(&[1.0, 1e100, 0.5]), "[1e+100,1.5]");
        // The smallest and the largest of all exponents.
        let every: ExactSum = (-1074..1023).map(|exponent| 2f64.powi(exponent)).collect();
        assert!(every.parts().len() <= MOST_PARTS, "{}", every.parts().len());
    }

    #[test]
    fn what_is_no_sum_is_not_read() {
        let read = |text: &str| serde_json::from_str::<ExactSum>(text).map(|sum| sum.value());
        assert_eq!(read("[]").unwrap(), 0.0);
        // Parts that no sum would write have their sum all the same.
        assert_eq!(read("[1.0, 0.0, 1.0, 1e300]").unwrap(), 1e300);
        for text in ["[null]", "[1e999]", "[1.7e308, 1.7e308]", "[\"1\"]", "{}", "[1.0"] {
            assert!(read(text).is_err(), "{text}");
        }
        let many = format!("[{}0.0]", "1.0,".repeat(MOST_PARTS));
        assert!(read(&many).unwrap_err().to_string().contains("41 parts; it has at most 40"));
    }

    proptest! {
        #[test]
        fn a_sum_is_read_as_it_was_written_and_its_text_does_not_depend_on_the_order(
            numbers in vec((-1f64..1.0, -900i32..900, any::<u32>()), 0..100),
        ) {
            let sum = |numbers: &[(f64, i32, u32)]| -> ExactSum {
                numbers.iter().map(|(mantissa, exponent, _)| mantissa * 2f64.powi(*exponent)).collect()
            };
            let text = serde_json::to_string(&sum(&numbers)).unwrap();
            let read: ExactSum = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(&read, &sum(&numbers));
            prop_assert_eq!(read.value().to_bits(), sum(&numbers).value().to_bits());
            let mut shuffled = numbers.clone();
            shuffled.sort_by_key(|(.., key)| *key);
            prop_assert_eq!(serde_json::to_string(&sum(&shuffled)).unwrap(), text);
        }

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
