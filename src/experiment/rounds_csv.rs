//! Writes `rounds.csv`, a row for each round.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::report::RoundRecord;
use crate::report::files::write_atomic;

/// The columns before the metrics.
pub(super) const FIRST: [&str; 2] = ["round", "clients"];
/// The columns after the metrics.
pub(super) const LAST: [&str; 4] = ["uplink_bytes", "downlink_bytes", "seconds", "evaluation_seconds"];

/// Writes `rounds.csv`: a header, then one row per round, each on disk before the next round begins.
///
/// Columns: `round,clients,<metrics>,uplink_bytes,downlink_bytes,seconds,evaluation_seconds`; several clients are separated
/// by a space, an undefined metric is blank.
#[derive(Debug)]
pub struct RoundsCsv<W: io::Write> {
    rows: csv::Writer<W>,
    /// The metrics of the header, once it is written.
    metrics: Option<Vec<Arc<str>>>,
}

impl RoundsCsv<File> {
    /// Creates the file, replacing an existing one.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self::new(File::create(path)?))
    }

    /// Replaces the file by one with exactly these rounds, and opens it for the next one.
    ///
    /// # Errors
    /// The file cannot be written; the old one then stays unchanged.
    pub fn continued(path: &Path, mut records: impl Iterator<Item = RoundRecord>) -> io::Result<Self> {
        let mut all = RoundsCsv::new(Vec::new());
        records.try_for_each(|record| all.append(&record))?;
        let metrics = all.metrics;
        let bytes = all.rows.into_inner().map_err(|error| io::Error::other(error.to_string()))?;
        write_atomic(path, &bytes).map_err(|error| io::Error::other(error.to_string()))?;
        let file = File::options().append(true).open(path)?;
        Ok(Self { rows: csv::Writer::from_writer(file), metrics })
    }
}

impl<W: io::Write> RoundsCsv<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self { rows: csv::Writer::from_writer(out), metrics: None }
    }

    /// Writes a row; the first call also writes the header.
    ///
    /// # Errors
    /// Writing fails, or the metrics are not those of the header.
    pub fn append(&mut self, record: &RoundRecord) -> io::Result<()> {
        let names = record.metrics.iter().map(|(name, _)| name);
        match &self.metrics {
            None => {
                let columns = names.clone().map(|name| &**name);
                self.rows.write_record(FIRST.into_iter().chain(columns).chain(LAST))?;
                self.metrics = Some(names.cloned().collect());
            }
            Some(header) if names.eq(header) => {}
            Some(header) => {
                let message = format!("round {} has metrics other than {header:?}", record.round);
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
        }
        let clients: Vec<String> = record.clients.iter().map(usize::to_string).collect();
        let mut row = vec![record.round.to_string(), clients.join(" ")];
        for (_, value) in &record.metrics {
            row.push(value.filter(|value| value.is_finite()).map_or_else(String::new, |value| value.to_string()));
        }
        row.extend([record.uplink_bytes.to_string(), record.downlink_bytes.to_string()]);
        row.extend([record.seconds, record.evaluation_seconds].map(|seconds| format!("{seconds:.3}")));
        self.rows.write_record(row)?;
        self.rows.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> RoundRecord {
        RoundRecord {
            round: 2,
            clients: vec![0, 3],
            metrics: vec![("accuracy".into(), Some(0.5)), ("nll".into(), None), ("ece".into(), Some(f64::NAN))],
            uplink_bytes: 10,
            downlink_bytes: 20,
            seconds: 1.5,
            round_seconds: 0.5,
            evaluation_seconds: 0.25,
        }
    }

    #[test]
    fn csv_has_one_header_and_blanks_for_what_is_undefined() {
        let mut out = Vec::new();
        let mut csv = RoundsCsv::new(&mut out);
        csv.append(&record()).unwrap();
        csv.append(&RoundRecord { round: 3, clients: vec![1], ..record() }).unwrap();
        drop(csv);
        let expected = "round,clients,accuracy,nll,ece,uplink_bytes,downlink_bytes,seconds,evaluation_seconds\n\
                        2,0 3,0.5,,,10,20,1.500,0.250\n\
                        3,1,0.5,,,10,20,1.500,0.250\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn a_file_that_is_continued_has_its_rounds_and_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rounds.csv");
        std::fs::write(&path, "round,of,another\n1,2,").unwrap();
        let mut csv = RoundsCsv::continued(&path, [record()].into_iter()).unwrap();
        csv.append(&RoundRecord { round: 3, ..record() }).unwrap();
        let expected = "round,clients,accuracy,nll,ece,uplink_bytes,downlink_bytes,seconds,evaluation_seconds\n\
                        2,0 3,0.5,,,10,20,1.500,0.250\n\
                        3,0 3,0.5,,,10,20,1.500,0.250\n";
        assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
    }

    #[test]
    fn csv_refuses_a_round_with_other_metrics() {
        let mut csv = RoundsCsv::new(Vec::new());
        csv.append(&record()).unwrap();
        let error = csv.append(&RoundRecord { metrics: vec![], ..record() }).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
