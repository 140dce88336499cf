//! The record of a round, and its two forms in JSON: the whole record as one line, and the headline metrics of records
//! in an array ([`points`]).

use std::io;
use std::sync::Arc;

use serde::ser::{Serialize, SerializeMap, Serializer};

/// The measurements of one round.
#[derive(Debug, Clone, Default, PartialEq)]
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
    /// The seconds since the start of the run in which rows were scored.
    pub evaluation_seconds: f64,
}

impl RoundRecord {
    /// The record of a round of which only metrics are known: no clients, no bytes, no seconds.
    pub fn new(round: usize, metrics: impl IntoIterator<Item = (impl Into<Arc<str>>, Option<f64>)>) -> Self {
        let metrics = metrics.into_iter().map(|(name, value)| (name.into(), value)).collect();
        Self { round, metrics, ..Self::default() }
    }

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
        map.serialize_entry("evaluation_seconds", &self.evaluation_seconds)?;
        map.end()
    }
}

/// The metrics of a round that `summary.json`, the curves of a report (from the top down) and the table of runs have, by their
/// keys.
pub const HEADLINE: [&str; 4] = ["accuracy", "nll", "ece", "rmse"];

/// Records as `summary.json` and `report.json` hold them, for `#[serde(with)]`: an array of objects
/// of `round` and the metrics of [`HEADLINE`], in which an undefined one is `null`.
///
/// Clients, bytes, seconds and all other metrics are left out; a record that is read again does not have them.
pub mod points {
    use std::collections::BTreeMap;

    use serde::ser::SerializeMap;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{HEADLINE, RoundRecord};

    /// A record with its headline metrics.
    struct Point<'a>(&'a RoundRecord);

    impl Serialize for Point<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(Some(1 + HEADLINE.len()))?;
            map.serialize_entry("round", &self.0.round)?;
            for name in HEADLINE {
                map.serialize_entry(name, &self.0.metric(name))?;
            }
            map.end()
        }
    }

    /// What is read again of a record.
    #[derive(Deserialize)]
    struct Read {
        round: usize,
        #[serde(flatten)]
        metrics: BTreeMap<String, Option<f64>>,
    }

    /// Serialises the headline metrics of every record.
    ///
    /// # Errors
    /// The serialiser fails.
    pub fn serialize<S: Serializer>(records: &[RoundRecord], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(records.iter().map(Point))
    }

    /// Reads records that have these metrics.
    ///
    /// # Errors
    /// The input is not an array of such objects.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<RoundRecord>, D::Error> {
        let record = |Read { round, metrics }| {
            RoundRecord::new(round, HEADLINE.map(|name| (name, metrics.get(name).copied().flatten())))
        };
        Ok(Vec::<Read>::deserialize(deserializer)?.into_iter().map(record).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::{RoundRecord, points};

    #[derive(Serialize, Deserialize)]
    struct Summary {
        #[serde(with = "points")]
        rounds: Vec<RoundRecord>,
    }

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
    fn json_is_one_flat_object_in_which_nan_is_null() {
        let expected = r#"{"round":2,"clients":[0,3],"accuracy":0.5,"nll":null,"ece":null,"uplink_bytes":10,"downlink_bytes":20,"seconds":1.5,"round_seconds":0.5,"evaluation_seconds":0.25}"#;
        assert_eq!(record().to_json().unwrap(), expected);
    }

    #[test]
    fn a_summary_holds_the_four_headline_metrics_of_a_round_and_reads_them_again() {
        let regression = RoundRecord::new(3, [("kl", Some(2.0)), ("rmse", Some(0.25)), ("nll", Some(f64::INFINITY))]);
        let text = r#"{"rounds":[{"round":2,"accuracy":0.5,"nll":null,"ece":null,"rmse":null},{"round":3,"accuracy":null,"nll":null,"ece":null,"rmse":0.25}]}"#;
        assert_eq!(serde_json::to_string(&Summary { rounds: vec![record(), regression] }).unwrap(), text);

        let read: Summary = serde_json::from_str(text).unwrap();
        let point = |round, accuracy, rmse| {
            RoundRecord::new(round, [("accuracy", accuracy), ("nll", None), ("ece", None), ("rmse", rmse)])
        };
        assert_eq!(read.rounds, [point(2, Some(0.5), None), point(3, None, Some(0.25))]);
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }

    #[test]
    fn a_point_without_a_metric_is_read_and_one_without_a_round_is_not() {
        let read: Summary = serde_json::from_str(r#"{"rounds":[{"round":1,"nll":0.5}]}"#).unwrap();
        assert_eq!((read.rounds[0].metric("nll"), read.rounds[0].metric("accuracy")), (Some(0.5), None));
        assert!(serde_json::from_str::<Summary>(r#"{"rounds":[{"nll":0.5}]}"#).is_err());
    }
}
