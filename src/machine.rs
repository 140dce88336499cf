//! Facts about the machine: its name, its processor, the time of day. Names are read from Linux's `/proc`; on other systems
//! the processor is not known.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// The processor's name.
pub fn processor() -> Option<String> {
    let info = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    line.split_once(':').map(|(_, name)| name.trim().to_owned())
}

/// The machine's name in its network.
pub fn name() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok().or_else(|| std::env::var("COMPUTERNAME").ok());
    name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// The present time in UTC, such as `2026-11-21 14:05:09`.
pub fn timestamp() -> String {
    timestamp_of(SystemTime::now())
}

/// A time in UTC, such as `2026-11-21 14:05:09`; times before 1970 are its beginning.
pub fn timestamp_of(time: SystemTime) -> String {
    date_of(time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

/// Seconds since 1970 as a date of the Gregorian calendar: its years are counted from March, so that leap days come
/// last, in cycles of 400 years with 146,097 days.
fn date_of(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = 400 * era + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_that_the_date_command_prints() {
        // The expected dates are those of `date -u -d @N "+%F %T"`.
        assert_eq!(date_of(0), "1970-01-01 00:00:00");
        assert_eq!(date_of(951_782_399), "2000-02-28 23:59:59");
        assert_eq!(date_of(951_782_400), "2000-02-29 00:00:00");
        assert_eq!(date_of(1_798_761_599), "2026-12-31 23:59:59");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn linux_has_a_name_and_a_processor() {
        assert!(name().is_some() && processor().is_some());
    }
}
