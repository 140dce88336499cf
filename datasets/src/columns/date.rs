//! Dates as numbers of days since 1970-01-01 in the Gregorian calendar.

use serde::{Deserialize, Serialize};

/// How dates are written: a text in which `YYYY`, `MM` and `DD` stand for year, month and day.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct DateFormat(String);

impl Default for DateFormat {
    fn default() -> Self {
        Self("YYYY-MM-DD".to_owned())
    }
}

/// The parts of a date.
const PARTS: [&str; 3] = ["YYYY", "MM", "DD"];

impl DateFormat {
    /// A format, which [`Self::check`] checks.
    pub fn new(format: impl Into<String>) -> Self {
        Self(format.into())
    }

    /// The format as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Checks that year, month and day occur once each.
    ///
    /// # Errors
    /// What a format must have.
    pub fn check(&self) -> Result<(), String> {
        let rest = PARTS.iter().fold(self.0.clone(), |rest, part| rest.replacen(part, "", 1));
        let each_once = PARTS.iter().all(|part| self.0.matches(part).count() == 1);
        match each_once && !rest.contains(|c: char| c.is_ascii_alphanumeric()) {
            true => Ok(()),
            false => Err("must have each of YYYY, MM and DD once, and between them no letters or digits, such as \
                          \"YYYY-MM-DD\" or \"DD.MM.YYYY\""
                .into()),
        }
    }

    /// The days since 1970-01-01 of a date in this format, with an optional time of day as a fraction; `None` where the
    /// text is none.
    pub fn days(&self, text: &str) -> Option<f64> {
        let mut rest = text;
        let mut format = self.0.as_str();
        let (mut found, mut has_gone) = ([0; 3], false);
        while let Some(sign) = format.chars().next() {
            match PARTS.iter().position(|part| format.starts_with(part)) {
                Some(part) => {
                    let digits = rest.bytes().take(PARTS[part].len()).take_while(u8::is_ascii_digit).count();
                    let after = &format[PARTS[part].len()..];
                    // A year has four digits. A day and a month may have one, unless other digits follow or have gone before:
                    // 2024111 may be of January or of November.
                    let is_between = has_gone || PARTS.iter().any(|part| after.starts_with(part));
                    if digits == 0 || (digits < PARTS[part].len() && (part == 0 || is_between)) {
                        return None;
                    }
                    found[part] = rest[..digits].parse().ok()?;
                    (rest, format, has_gone) = (&rest[digits..], after, true);
                }
                None => (rest, format, has_gone) = (rest.strip_prefix(sign)?, &format[sign.len_utf8()..], false),
            }
        }
        let [year, month, day] = found;
        if !(1..=12).contains(&month) || !(1..=length(year, month)).contains(&day) {
            return None;
        }
        let days = days_from_civil(year, month, day) as f64;
        match rest.strip_prefix(['T', ' ']) {
            Some(time) => Some(days + of_day(time)?),
            None => rest.is_empty().then_some(days),
        }
    }
}

/// The fraction of a day that has passed at `hh:mm`, `hh:mm:ss` or `hh:mm:ss.fff`, with or without a `Z` for UTC.
fn of_day(time: &str) -> Option<f64> {
    let parts: Vec<&str> = time.strip_suffix('Z').unwrap_or(time).split(':').collect();
    let (hours, minutes, seconds) = match parts[..] {
        [hours, minutes] => (hours, minutes, "00"),
        [hours, minutes, seconds] => (hours, minutes, seconds),
        _ => return None,
    };
    let whole = |text: &str, below: u32| {
        let two = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|number: &u32| two && *number < below)
    };
    let (second, fraction) = seconds.split_at_checked(2)?;
    let fraction = match fraction.strip_prefix('.') {
        Some(digits) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("0.{digits}").parse::<f64>().ok()?
        }
        None if fraction.is_empty() => 0.0,
        _ => return None,
    };
    let seconds = whole(hours, 24)? * 3600 + whole(minutes, 60)? * 60 + whole(second, 60)?;
    Some((f64::from(seconds) + fraction) / 86_400.0)
}

/// The number of days of a month.
fn length(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 (Hinnant, *chrono-compatible low-level date algorithms*, `days_from_civil`), of a year from 0.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    // The year begins in March, so that the leap day is its last.
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    fn days(format: &str, text: &str) -> Option<f64> {
        let format = DateFormat::new(format);
        format.check().unwrap();
        format.days(text)
    }

    #[test]
    fn dates_are_the_days_that_python_counts() {
        // python3: (datetime.date(y, m, d) - datetime.date(1970, 1, 1)).days
        for (text, expected) in [
            ("1970-01-01", 0.0),
            ("1969-12-31", -1.0),
            ("2000-02-29", 11_016.0),
            ("1900-03-01", -25_508.0),
            ("2024-12-31", 20_088.0),
            ("0001-01-01", -719_162.0),
            ("9999-12-31", 2_932_896.0),
            ("2023-06-15T12:00", 19_523.5),
            ("2023-06-15 18:00:00.000Z", 19_523.75),
        ] {
            assert_eq!(days("YYYY-MM-DD", text), Some(expected), "{text}");
        }
    }

    #[test]
    fn other_formats_and_days_of_one_digit_are_read() {
        for (format, text) in [
            ("DD.MM.YYYY", "31.12.2024"),
            ("MM/DD/YYYY", "12/31/2024"),
            ("YYYYMMDD", "20241231"),
            ("YYYY年MM月DD日", "2024年12月31日"),
        ] {
            assert_eq!(days(format, text), Some(20_088.0), "{format}");
        }
        assert_eq!(days("DD.MM.YYYY", "1.5.2024"), days("YYYY-MM-DD", "2024-05-01"));
        // Without a sign between them it would not be known which of the two has one digit.
        for (format, text) in [("YYYYMMDD", "2024111"), ("DDMM.YYYY", "111.2024"), ("YYYYMM/DD", "20241/11")] {
            assert_eq!(days(format, text), None, "{format}");
        }
        assert_eq!(days("YYYYMM/DD", "202401/1"), days("YYYY-MM-DD", "2024-01-01"));
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "2023-02-29",
            "2023-13-01",
            "2023-00-10",
            "2023-01-00",
            "2023-1",
            "23-01-01",
            "2023-01-01x",
            "2023-01-01 24:00",
            "2023-01-01 12:60",
            "2023-01-01 12",
            "2023-01-01T12:00:00+02:00",
            "2023-01-01T",
            "2023-01-01T12:00:00.",
            "2023-01-01T+1:00",
            "é023-01-01",
            "2023-01-01T12:00:0é",
        ] {
            assert_eq!(days("YYYY-MM-DD", text), None, "{text}");
        }
    }

    #[test]
    fn a_format_has_each_part_once() {
        for format in ["", "YYYY-MM", "YYYY-MM-DD-DD", "YY-MM-DD", "%Y-%m-%d", "YYYY-MM-DD hh"] {
            assert!(DateFormat::new(format).check().unwrap_err().contains("YYYY, MM and DD once"), "{format}");
        }
    }
}
