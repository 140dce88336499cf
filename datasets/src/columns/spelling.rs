//! Which spellings of a number are one name.

use std::borrow::Cow;

/// From here on, double precision does not tell every whole number from the next one: such numbers are ids.
const FIRST_ID: u64 = 1 << 53;

/// One text for all spellings of a name: a plain decimal number is without a plus, and without zeros at its end; every
/// other name is itself. Codes stay what they are: those with a leading zero (`007`), with an exponent (`1E1`), and whole
/// numbers from 2^53 on.
pub(crate) fn spelt(name: &str) -> Cow<'_, str> {
    plain(name).map_or(Cow::Borrowed(name), Cow::Owned)
}

fn plain(name: &str) -> Option<String> {
    let (sign, digits) = match name.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", name.strip_prefix('+').unwrap_or(name)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = are_digits(whole) && are_digits(fraction) && !(whole.is_empty() && fraction.is_empty());
    let is_code = whole.len() > 1 && whole.starts_with('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    if !is_number || is_code || !whole.parse().is_ok_and(|number: u64| number < FIRST_ID) {
        return None;
    }
    Some(match (whole, fraction.trim_end_matches('0')) {
        ("0", "") => "0".to_owned(),
        (whole, "") => format!("{sign}{whole}"),
        (whole, fraction) => format!("{sign}{whole}.{fraction}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_decimal_numbers_of_one_value_have_one_spelling() {
        for (one, others) in [
            ("1", &["1.0", "1.", "+1", "+1.00"][..]),
            ("0", &["-0", "0.0", "-0.00", ".0", "+0"]),
            ("-12.5", &["-12.50"]),
            ("0.5", &[".5", "0.500", "+.5"]),
            ("9007199254740991", &["9007199254740991.0"]),
        ] {
            others.iter().chain([&one]).for_each(|other| assert_eq!(spelt(other), one, "{other}"));
        }
    }

    #[test]
    fn codes_and_other_texts_are_what_they_are() {
        let ids = ["9007199254740992", "9007199254740992.0", "900000000000003019", "123456789012345678901"];
        let codes =
            ["007", "007.0", "00", "-01", "1E1", "1e1", "1.0e1", "inf", "nan", "", "-", ".", "+", "1.2.0", "oak"];
        ids.iter().chain(&codes).for_each(|name| assert_eq!(spelt(name), *name));
    }
}
