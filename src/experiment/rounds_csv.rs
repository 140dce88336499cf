//! The record of one round, as a row of `rounds.csv` and as a line of JSON.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::report::files::write_atomic;

/// The measurements of one round.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundRecord {
    /// The round, from 1.
    pub round: usize,
    /// The clients that took part.
    pub clients: Vec<usize>,
    /// Metrics by name, in the order of the columns; `None` where a metric is undefined or was not evaluated.
    pub metrics: Vec<(Arc<str>, Option<f64>)>,
    /// Bytes from clients to the server.
    pub uplink_bytes: u64,
    /// Bytes from the server to clients.
    pub downlink_bytes: u64,
    /// Seconds since the start of the run.
    pub seconds: f64,
    /// Seconds of this round.
    pub round_seconds: f64,
}

impl RoundRecord {
    /// A metric by name; `None` if it is absent, undefined or not finite.
    pub fn metric(&self, name: &str) -> Option<f64> {
        let value = self.metrics.iter().find(|(metric, _)| **metric == *name).and_then(|(_, value)| *value);
        value.filter(|value| value.is_finite())
    }

    /// The record as one line of JSON, without a line break; undefined metrics are `null`.
    ///
    /// # Errors
    /// Serialisation fails; no value of this type causes that.
    pub fn to_json(&self) -> io::Result<String> {
        Ok(serde_json::to_string(self)?)
    }
}

impl Serialize for RoundRecord {
    /// Serialises one flat object: the metrics stand between `clients` and the bytes.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("round", &self.round)?;
        map.serialize_entry("clients", &self.clients)?;
        for (name, value) in &self.metrics {
            map.serialize_entry(&**name, &value.filter(|value| value.is_finite()))?;
        }
        map.serialize_entry("uplink_bytes", &self.uplink_bytes)?;
        map.serialize_entry("downlink_bytes", &self.downlink_bytes)?;
        map.serialize_entry("seconds", &self.seconds)?;
        map.serialize_entry("round_seconds", &self.round_seconds)?;
        map.end()
    }
}

/// Writes `rounds.csv`: a header, then one row per round, each on disk before the next round begins.
///
/// Columns: `round,clients,<metrics>,uplink_bytes,downlink_bytes,seconds`; several clients are separated by a space,
/// an undefined metric is blank.
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
                let ends = (["round", "clients"], ["uplink_bytes", "downlink_bytes", "seconds"]);
                let columns = names.clone().map(|name| &**name);
                self.rows.write_record(ends.0.into_iter().chain(columns).chain(ends.1))?;
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
        row.push(format!("{:.3}", record.seconds));
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
        }
    }

    #[test]
    fn json_is_one_flat_object_in_which_nan_is_null() {
        let expected = r#"{"round":2,"clients":[0,3],"accuracy":0.5,"nll":null,"ece":null,"uplink_bytes":10,"downlink_bytes":20,"seconds":1.5,"round_seconds":0.5}"#;
        assert_eq!(record().to_json().unwrap(), expected);
    }

    #[test]
    fn csv_has_one_header_and_blanks_for_what_is_undefined() {
        let mut out = Vec::new();
        let mut csv = RoundsCsv::new(&mut out);
        csv.append(&record()).unwrap();
        csv.append(&RoundRecord { round: 3, clients: vec![1], ..record() }).unwrap();
        drop(csv);
        let expected = "round,clients,accuracy,nll,ece,uplink_bytes,downlink_bytes,seconds\n\
                        2,0 3,0.5,,,10,20,1.500\n\
                        3,1,0.5,,,10,20,1.500\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn a_file_that_is_continued_has_its_rounds_and_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rounds.csv");
        std::fs::write(&path, "round,of,another\n1,2,").unwrap();
        let mut csv = RoundsCsv::continued(&path, [record()].into_iter()).unwrap();
        csv.append(&RoundRecord { round: 3, ..record() }).unwrap();
        let expected = "round,clients,accuracy,nll,ece,uplink_bytes,downlink_bytes,seconds\n\
                        2,0 3,0.5,,,10,20,1.500\n\
                        3,0 3,0.5,,,10,20,1.500\n";
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
