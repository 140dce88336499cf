//! Recorded bands of the workloads' times, in units of this machine's own matrix product, and which lines have left
//! theirs.
//!
//! A time depends on the machine as much as on the program. Its ratio to the time of a matrix product on the same
//! machine, in the same run, depends less on it, and hardly on its load: so a band that was recorded before a change
//! tells whether the change made a workload slower. Processors differ in these ratios too; a band holds for the kind of
//! processor on which it was recorded.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::roofline::Ceilings;
use super::timing::Line;

/// The operations of the reference product, of two square matrices of 2,048 rows.
const REFERENCE: f64 = 2.0 * 2048.0 * 2048.0 * 2048.0;
/// The factor by which a band exceeds the recorded ratios on both sides: times vary by 10 to 20 % between runs.
const MARGIN: f64 = 1.2;

/// The ratios that count as unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Band {
    /// The least ratio.
    pub low: f64,
    /// The largest ratio.
    pub high: f64,
}

/// Where a ratio lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Within the band.
    Inside,
    /// Below the band.
    Faster,
    /// Above the band.
    Slower,
    /// There is no band for the line.
    Unknown,
}

/// The bands of a backend with a number of threads: the content of a file of `fedstein bench --record`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bands {
    /// The processor on which the first band was recorded; for a person to read.
    pub processor: String,
    /// The backend.
    pub backend: String,
    /// The number of CPU threads.
    pub threads: usize,
    /// The band of each line, by its name.
    pub bands: BTreeMap<String, Band>,
}

impl Bands {
    /// No bands yet.
    pub fn new(processor: String, backend: &str, threads: usize) -> Self {
        Self { processor, backend: backend.into(), threads, bands: BTreeMap::new() }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, is not such a file, or has a band without a positive range.
    pub fn read(path: &Path) -> Result<Self, String> {
        let name = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {name}: {error}"))?;
        let bands: Self = serde_json::from_str(&text)
            .map_err(|error| format!("{name} is not a file of `fedstein bench --record`: {error}"))?;
        let wrong = bands.bands.iter().find(|(_, band)| !(0.0 < band.low && band.low <= band.high));
        match wrong {
            Some((line, Band { low, high })) => {
                Err(format!("{name}: the band of \"{line}\" is {low} to {high}; it must be positive, the least first"))
            }
            None => Ok(bands),
        }
    }

    /// Checks that the bands are those of this backend and number of threads.
    ///
    /// # Errors
    /// They are not; the text says which they are.
    pub fn fits(&self, backend: &str, threads: usize) -> Result<(), String> {
        if self.backend == backend && self.threads == threads {
            return Ok(());
        }
        let Self { backend: other, threads: count, .. } = self;
        Err(format!(
            "its bands are of backend {other} with {count} threads, this is {backend} with {threads}; \
             use --backend {other} --threads {count}, or another file"
        ))
    }

    /// Records a ratio: the band grows, if necessary, to hold it with a margin of a fifth.
    pub fn record(&mut self, name: &str, ratio: f64) {
        let band = Band { low: rounded(ratio / MARGIN), high: rounded(ratio * MARGIN) };
        let kept = self.bands.entry(name.into()).or_insert(band);
        *kept = Band { low: kept.low.min(band.low), high: kept.high.max(band.high) };
    }

    /// Where a line's ratio lies.
    pub fn place(&self, name: &str, ratio: f64) -> Place {
        match self.bands.get(name) {
            None => Place::Unknown,
            Some(band) if ratio < band.low => Place::Faster,
            Some(band) if ratio > band.high => Place::Slower,
            Some(_) => Place::Inside,
        }
    }

    /// The table of the lines' ratios beside their bands, and the names of those that have left theirs.
    pub fn compare(&self, lines: &[Line], ceilings: &Ceilings) -> (String, Vec<String>) {
        let mut text = format!("\n{:<26}{:>10}{:>20}\n", "workload", "ratio", "band");
        let mut left = Vec::new();
        for Line { record, .. } in lines {
            let ratio = ratio(record.median, ceilings);
            let place = self.place(&record.name, ratio);
            let band = self.bands.get(&record.name);
            let band = band.map_or_else(String::new, |Band { low, high }| format!("{low:.4} to {high:.4}"));
            let verdict = match place {
                Place::Inside => "",
                Place::Faster => "faster",
                Place::Slower => "slower",
                Place::Unknown => "no band",
            };
            let _ = writeln!(text, "{:<26}{ratio:>10.4}{band:>20}  {verdict}", record.name);
            if matches!(place, Place::Faster | Place::Slower) {
                left.push(format!("{} ({verdict})", record.name));
            }
        }
        text += "\nratio: the median over the time of a 2048 x 2048 matrix product at the speed above.\n";
        (text, left)
    }
}

/// The time of a line in units of the reference product.
pub fn ratio(milliseconds: f64, ceilings: &Ceilings) -> f64 {
    milliseconds / (1e-6 * REFERENCE / ceilings.gflops)
}

/// Four significant digits.
fn rounded(value: f64) -> f64 {
    let scale = 10f64.powi(3 - value.log10().floor() as i32);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At 17.179869184 GFLOP/s a product of two matrices of 2,048 rows takes a second.
    const SECOND: Ceilings = Ceilings { gflops: 17.179_869_184, gbs: 10.0 };

    #[test]
    fn a_ratio_is_in_units_of_the_product_on_the_same_machine() {
        assert!((ratio(250.0, &SECOND) - 0.25).abs() < 1e-12);
        // A machine that is twice as fast, and a workload with it.
        let twice = Ceilings { gflops: 2.0 * SECOND.gflops, ..SECOND };
        assert!((ratio(125.0, &twice) - 0.25).abs() < 1e-12);
    }

    #[test]
    fn a_band_holds_what_was_recorded_and_a_fifth_more() {
        let mut bands = Bands::new("a processor".into(), "flex", 2);
        bands.record("W1", 1.0);
        assert_eq!(bands.bands["W1"], Band { low: 0.8333, high: 1.2 });
        bands.record("W1", 2.0);
        assert_eq!(bands.bands["W1"], Band { low: 0.8333, high: 2.4 });
        bands.record("W1", 1.5);
        assert_eq!(bands.bands["W1"], Band { low: 0.8333, high: 2.4 });
        let places = [("W1", 0.83), ("W1", 0.84), ("W1", 2.4), ("W1", 2.41), ("W2", 1.0)];
        let expected = [Place::Faster, Place::Inside, Place::Inside, Place::Slower, Place::Unknown];
        assert_eq!(places.map(|(name, ratio)| bands.place(name, ratio)), expected);
        // Small ratios keep their digits.
        bands.record("W3", 0.000_123_456);
        assert_eq!(bands.bands["W3"], Band { low: 0.000_102_9, high: 0.000_148_1 });
    }
}
