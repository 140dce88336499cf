//! Numbers that are not read as they are written: with marks between the thousands, a sign such as `%`, or a unit.

use super::Decimal;

/// The marks between thousands.
const MARKS: [char; 7] = [',', '.', ' ', '\'', '’', '\u{a0}', '\u{202f}'];

/// The signs before or after a number.
const SIGNS: [char; 7] = ['%', '‰', '€', '$', '£', '¥', '₹'];

/// Whether a cell is a number with the same mark between all its thousands: `4,512.33`, `-4.512,33`, `1 234 567`.
pub(crate) fn has_thousands(cell: &str) -> bool {
    MARKS.iter().any(|mark| has_thousands_by(cell, *mark))
}

/// Whether a cell is a number with this mark between all its thousands, and no other mark than that of its fraction.
fn has_thousands_by(cell: &str, mark: char) -> bool {
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = cell.strip_prefix(['-', '+']).unwrap_or(cell);
    let (whole, fraction) = number.split_once(|c| c != mark && (c == ',' || c == '.')).unwrap_or((number, "0"));
    let Some((first, others)) = whole.split_once(mark) else { return false };
    let is_first = are_digits(first) && first.len() <= 3 && !first.starts_with('0');
    is_first && others.split(mark).all(|group| are_digits(group) && group.len() == 3) && are_digits(fraction)
}

/// Whether a number with this decimal mark may as well be one with marks between its thousands: `1.234`, and not `1.23`.
pub(crate) fn may_be_thousands(cell: &str, decimal: Decimal) -> bool {
    has_thousands_by(cell, decimal.mark())
}

/// The sign before or after a number, as in `12.5 %` or `€ 3`; `None` for any other cell.
pub(crate) fn sign(cell: &str) -> Option<char> {
    let amount = cell.strip_prefix(['-', '+']).unwrap_or(cell);
    let (sign, number) = SIGNS
        .into_iter()
        .find_map(|sign| Some((sign, amount.strip_prefix(sign).or_else(|| amount.strip_suffix(sign))?)))?;
    let number = number.trim();
    let is_number = has_thousands(number) || number.replacen(',', ".", 1).parse::<f64>().is_ok_and(f64::is_finite);
    is_number.then_some(sign)
}

/// The longest unit, in characters.
const LONGEST_UNIT: usize = 12;

/// The unit after a number, as in `82 kg` or `5,1mmol/l`; `None` for any other cell.
pub(crate) fn unit(cell: &str) -> Option<&str> {
    let end = cell.find(|c: char| !c.is_ascii_digit() && !"+-.,".contains(c))?;
    let (number, unit) = (cell[..end].replacen(',', ".", 1), cell[end..].trim_start());
    let is_unit = unit.starts_with(|first: char| first.is_alphabetic() || first == '°')
        && unit.chars().count() <= LONGEST_UNIT
        && unit.chars().all(|c| c.is_alphanumeric() || "°/^·*-".contains(c));
    (is_unit && number.parse::<f64>().is_ok()).then_some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_have_the_same_mark_between_groups_of_three_digits() {
        for cell in ["4,512.33", "4.512,33", "1,234,567", "-12'345.5", "1 234", "1\u{202f}234,5", "+1.234.567,0"] {
            assert!(has_thousands(cell), "{cell}");
        }
        for cell in
            ["4512.33", "45,12.33", "4,5123", "0,123.4", "1,234.", ",234", "1,234 567", "1,234,56", "", "1.2.2024"]
        {
            assert!(!has_thousands(cell), "{cell}");
        }
    }

    #[test]
    fn three_digits_after_the_mark_may_be_thousands() {
        let point = |cell| may_be_thousands(cell, Decimal::Point);
        assert!(point("1.234") && point("-12.345") && point("1.234.567"));
        assert!(!point("0.123") && !point("1.23") && !point("1234.567") && !point("1,234") && !point("1234"));
        assert!(may_be_thousands("1,234", Decimal::Comma));
    }

    #[test]
    fn a_sign_stands_before_or_after_a_number() {
        let signs = ["12.5%", "12,5 %", "€ 3", "-4 €", "-€4", "$-4", "1,234.50 $", "0.5‰"].map(sign);
        assert_eq!(signs, ['%', '%', '€', '€', '€', '$', '$', '‰'].map(Some));
        assert_eq!(["%", "low%", "3", "", "3 mg", "%%3"].map(sign), [None; 6]);
    }

    #[test]
    fn a_unit_is_a_short_word_after_a_number() {
        for (cell, expected) in [
            ("82 kg", "kg"),
            ("-5,1mmol/l", "mmol/l"),
            ("24.5 kg/m²", "kg/m²"),
            ("37.2 °C", "°C"),
            ("120 mL/min", "mL/min"),
            ("3a", "a"),
        ] {
            assert_eq!(unit(cell), Some(expected), "{cell}");
        }
        for cell in
            ["82", "kg", "", "kg 82", "12 %", "1.2.2024", "2024-01-31", "5 of 10", "10 milligrams a day", "- kg"]
        {
            assert_eq!(unit(cell), None, "{cell}");
        }
    }
}
