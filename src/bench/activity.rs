//! What the machine does besides: load, the cores that other processes use, memory. It is read from Linux's `/proc` and
//! is absent on other systems.

use std::fs;
use std::time::Instant;

/// Ticks per second of `/proc/stat`: Linux reports 100 to every program, independently of the kernel's own clock.
const TICKS: f64 = 100.0;

/// The average number of running or runnable processes over the last minute.
pub fn load() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

/// The largest memory that this process has held at once, in bytes.
pub fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| 1024 * kib)
}

/// Counters of the busy seconds of all cores and of this process, since a moment.
#[derive(Debug)]
pub struct Activity {
    start: Instant,
    busy: Option<[f64; 2]>,
}

impl Activity {
    /// Starts counting.
    pub fn begin() -> Self {
        Self { start: Instant::now(), busy: busy() }
    }

    /// The average number of cores that other processes used since then, time stolen by a hypervisor included: 0.1
    /// means that a tenth of a core was not available.
    pub fn foreign(&self) -> Option<f64> {
        let ([all, own], [all_before, own_before]) = (busy()?, self.busy?);
        // Ticks are hundredths of a second, so a shorter interval would divide by zero.
        let wall = self.start.elapsed().as_secs_f64().max(1.0 / TICKS);
        Some((((all - all_before) - (own - own_before)) / wall).max(0.0))
    }
}

/// The seconds in which the cores were busy, and those in which they were busy for this process.
fn busy() -> Option<[f64; 2]> {
    Some([
        busy_cores(&fs::read_to_string("/proc/stat").ok()?)?,
        own_seconds(&fs::read_to_string("/proc/self/stat").ok()?)?,
    ])
}

/// Parses `cpu user nice system idle iowait irq softirq steal`; guest time is contained in user time.
fn busy_cores(stat: &str) -> Option<f64> {
    let first = stat.lines().next()?.split_whitespace().skip(1).take(8);
    let ticks: Vec<f64> = first.map_while(|word| word.parse().ok()).collect();
    Some((ticks.iter().sum::<f64>() - ticks.get(3)? - ticks.get(4)?) / TICKS)
}

/// Parses the user and system time of a process, the fields 14 and 15.
fn own_seconds(stat: &str) -> Option<f64> {
    // The program's name, in parentheses, may contain spaces, so the fields are counted from behind it.
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(|word| word.parse::<f64>().ok());
    ticks.sum::<Option<f64>>().map(|ticks| ticks / TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_excludes_idle_and_waiting_and_own_time_is_read_after_the_name() {
        let stat = "cpu  700 20 200 5000 300 10 30 40 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        assert_eq!(busy_cores(stat), Some(10.0));
        let own = "17 (a (b) c) R 1 2 3 4 5 6 7 8 9 10 250 50 8 9 20 0 2 0";
        assert_eq!(own_seconds(own), Some(3.0));
        assert_eq!((busy_cores(""), own_seconds("17")), (None, None));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn linux_provides_all_values() {
        assert!(Activity::begin().foreign().is_some_and(|share| share >= 0.0));
        assert!(load().is_some() && peak_memory().is_some_and(|bytes| bytes > 1 << 20));
    }
}
