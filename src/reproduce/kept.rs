//! The kept result of a run: one JSON file, identified by the run's resolved config.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::RunError;
use crate::experiment::evaluate::Predicted;
use crate::experiment::{Config, Outcome, RoundRecord};
use crate::metrics::equal_width;
use crate::protocol::Posterior;
use crate::report::ReportError;
use crate::report::files::write_atomic;

/// The version of the file's layout and of the meaning of its numbers. Files of another version are ignored.
const VERSION: u32 = 1;

/// Computes a traffic metric of a round from its bytes.
type OfTraffic = fn(&Kept, &RoundRecord) -> f64;

/// Metrics of the traffic, in MiB: cumulative from clients, cumulative to clients, and per client in one round, from it
/// and to it.
pub const TRAFFIC: &[(&str, OfTraffic)] = &[
    ("uplink_mib", |kept, round| kept.bytes_until(round.round).0 / MIB),
    ("downlink_mib", |kept, round| kept.bytes_until(round.round).1 / MIB),
    ("client_uplink_mib", |_, round| round.uplink_bytes as f64 / round.clients.len() as f64 / MIB),
    ("client_downlink_mib", |_, round| round.downlink_bytes as f64 / round.clients.len() as f64 / MIB),
];

/// Bytes per MiB.
pub const MIB: f64 = 1_048_576.0;

/// All data of a run that figures need.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    version: u32,
    /// The resolved config.
    pub config: String,
    /// Seconds of the run's rounds.
    pub seconds: f64,
    /// The notes that the run gave its observer.
    pub notes: Vec<String>,
    /// The round that validation rows have chosen, where `stop.patience` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<usize>,
    /// The records of all rounds; the file does not hold their seconds.
    #[serde(flatten, with = "rounds")]
    pub rounds: Vec<RoundRecord>,
    /// Confidence and accuracy of the last round's predictions; empty unless the task is classification.
    pub bins: Vec<KeptBin>,
    /// The density q after the last round, for toys.
    pub density: Option<KeptDensity>,
}

/// The records in the file: the names of the metrics once, and for each round its values in the same order.
mod rounds {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::RoundRecord;

    #[derive(Serialize, Deserialize)]
    struct Rounds {
        metrics: Vec<String>,
        rounds: Vec<Round>,
    }

    #[derive(Serialize, Deserialize)]
    struct Round {
        round: usize,
        clients: Vec<usize>,
        uplink: u64,
        downlink: u64,
        values: Vec<Option<f64>>,
    }

    pub(super) fn serialize<S: Serializer>(records: &[RoundRecord], serializer: S) -> Result<S::Ok, S::Error> {
        let first = records.first().map(|record| record.metrics.as_slice()).unwrap_or_default();
        let metrics: Vec<String> = first.iter().map(|(name, _)| name.to_string()).collect();
        let round = |record: &RoundRecord| Round {
            round: record.round,
            clients: record.clients.clone(),
            uplink: record.uplink_bytes,
            downlink: record.downlink_bytes,
            values: metrics.iter().map(|name| record.metric(name)).collect(),
        };
        let rounds = records.iter().map(round).collect();
        Rounds { metrics, rounds }.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<RoundRecord>, D::Error> {
        let Rounds { metrics, rounds } = Rounds::deserialize(deserializer)?;
        let names: Vec<Arc<str>> = metrics.into_iter().map(Arc::from).collect();
        let record = |Round { round, clients, uplink, downlink, values }| RoundRecord {
            clients,
            uplink_bytes: uplink,
            downlink_bytes: downlink,
            ..RoundRecord::new(round, names.iter().cloned().zip(values))
        };
        Ok(rounds.into_iter().map(record).collect())
    }
}

/// A bin of confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptBin {
    /// The number of rows in the bin.
    pub rows: usize,
    /// Mean confidence; `None` for an empty bin.
    pub confidence: Option<f64>,
    /// The share of correct predictions; `None` for an empty bin.
    pub accuracy: Option<f64>,
}

/// A density over one or two dimensions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum KeptDensity {
    /// The Gaussian mixture (1/N) Σ_n N(θ; θ_n, v_n I).
    Mixture {
        /// The centres θ_n, `[N, d]`, flattened row-major.
        centres: Vec<f64>,
        /// The variances v_n, `[N]`.
        variances: Vec<f64>,
    },
    /// The Gaussian N(mean, covariance).
    Gaussian {
        /// The mean, `[d]`.
        mean: Vec<f64>,
        /// The covariance, `[d, d]`, row-major.
        covariance: Vec<f64>,
    },
}

impl Kept {
    /// Extracts the kept data from a run's outcome.
    ///
    /// # Errors
    /// The device fails.
    pub fn of(config: &Config, resolved: &str, outcome: &Outcome, notes: Vec<String>) -> Result<Self, RunError> {
        let bins = match &outcome.predicted {
            Predicted::Classes { log_probs, labels, .. } => {
                let unusable = RunError::Predictions;
                let top = log_probs.predictions(labels).map_err(unusable)?.top_label();
                let bins = equal_width(&top.confidence, &top.correct, config.evaluation.bins).map_err(unusable)?;
                let kept = bins.bins().iter();
                kept.map(|bin| KeptBin { rows: bin.n, confidence: bin.confidence, accuracy: bin.accuracy }).collect()
            }
            Predicted::Real(_) | Predicted::Pooled { .. } | Predicted::Density { .. } => Vec::new(),
        };
        let density = match &outcome.predicted {
            Predicted::Density { .. } if outcome.particles.dim() <= 2 => Some(density(config, outcome)?),
            _ => None,
        };
        Ok(Self {
            version: VERSION,
            config: resolved.to_owned(),
            seconds: outcome.seconds,
            notes,
            best: outcome.best,
            rounds: outcome.rounds.clone(),
            bins,
            density,
        })
    }

    /// A result from the metrics by round of a CSV file, and its rounds without metrics.
    pub(super) fn of_curves(
        config: String,
        curves: &BTreeMap<String, BTreeMap<usize, f64>>,
        mut rounds: Vec<RoundRecord>,
    ) -> Self {
        let names: Vec<Arc<str>> = curves.keys().map(|name| name.as_str().into()).collect();
        for record in &mut rounds {
            let values = curves.values().map(|curve| curve.get(&record.round).copied());
            record.metrics = names.iter().cloned().zip(values).collect();
        }
        let (notes, bins) = (Vec::new(), Vec::new());
        Self { version: VERSION, config, seconds: 0.0, notes, best: None, rounds, bins, density: None }
    }

    /// Reads the kept result of a config; `None` unless it is complete.
    pub fn read(directory: &Path, resolved: &str) -> Option<Self> {
        let text = fs::read_to_string(file(directory, resolved)).ok()?;
        let kept: Self = serde_json::from_str(&text).ok()?;
        (kept.version == VERSION && kept.config == resolved).then_some(kept)
    }

    /// Writes the result atomically.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, directory: &Path) -> Result<(), ReportError> {
        Ok(write_atomic(&file(directory, &self.config), serde_json::to_string(self)?.as_bytes())?)
    }

    /// The rounds in which a metric has a value, and the values.
    pub fn values(&self, metric: &str) -> Vec<(usize, f64)> {
        if let Some((_, of)) = TRAFFIC.iter().find(|(name, _)| *name == metric) {
            let asked = self.rounds.iter().filter(|round| !round.clients.is_empty());
            return asked.map(|round| (round.round, of(self, round))).collect();
        }
        self.rounds.iter().filter_map(|record| Some((record.round, record.metric(metric)?))).collect()
    }

    /// The metric of the run's results: of the last round that has one, or of the best round where validation rows have
    /// chosen one. Traffic is that of all rounds.
    pub fn result(&self, metric: &str) -> Option<f64> {
        let values = self.values(metric);
        let chosen = self.best.filter(|_| TRAFFIC.iter().all(|(name, _)| *name != metric));
        let found = match chosen {
            Some(round) => values.iter().find(|(at, _)| *at == round),
            None => values.last(),
        };
        found.map(|(_, value)| *value)
    }

    /// The number of requests to clients in rounds 1 to `round`.
    pub fn visits_until(&self, round: usize) -> usize {
        self.rounds.iter().filter(|record| record.round <= round).map(|record| record.clients.len()).sum()
    }

    /// Cumulative uplink and downlink bytes of rounds 1 to `round`.
    pub fn bytes_until(&self, round: usize) -> (f64, f64) {
        let until = || self.rounds.iter().filter(|record| record.round <= round);
        (
            until().map(|record| record.uplink_bytes as f64).sum(),
            until().map(|record| record.downlink_bytes as f64).sum(),
        )
    }
}

/// The density q of a toy, as used for its divergence.
fn density(config: &Config, outcome: &Outcome) -> Result<KeptDensity, RunError> {
    let particles = &outcome.particles;
    let centres = || -> Result<Vec<f64>, RunError> { Ok(particles.to_array()?.values.to_f64()) };
    Ok(match &outcome.posterior {
        Posterior::Particles => {
            let gram = particles.centred_gram()?;
            let lambda = config.evaluation_kde(&*config.algorithm).bandwidth.evaluate(&gram, particles.dim());
            KeptDensity::Mixture { centres: centres()?, variances: vec![lambda * lambda; particles.count()] }
        }
        Posterior::Mixture { variances } => KeptDensity::Mixture { centres: centres()?, variances: variances.clone() },
        Posterior::Gaussian { mean, covariance } => {
            KeptDensity::Gaussian { mean: mean.clone(), covariance: covariance.clone() }
        }
    })
}

/// The file of a config's kept result.
fn file(directory: &Path, resolved: &str) -> PathBuf {
    place(directory, resolved).with_extension("json")
}

/// The directory of a config's checkpoints, while its run is under way.
pub(super) fn place(directory: &Path, resolved: &str) -> PathBuf {
    directory.join(format!("{:032x}", fnv1a(resolved.as_bytes())))
}

/// The 128-bit hash of Fowler, Noll and Vo (FNV-1a), which is the same on every machine and with every compiler. The
/// file also holds the whole config, so two configs with equal hashes are told apart.
fn fnv1a(bytes: &[u8]) -> u128 {
    const PRIME: u128 = (1 << 88) + 0x13b;
    bytes
        .iter()
        .fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}

/// The distinct notes of runs, with the number of runs that gave each.
pub fn notes<'k>(kept: impl Iterator<Item = &'k Kept>) -> BTreeMap<String, usize> {
    let mut told: BTreeMap<String, usize> = BTreeMap::new();
    for note in kept.flat_map(|kept| &kept.notes) {
        // A warning names the round in which it was given, which differs from run to run.
        let same = match note.split_once(": ") {
            Some((round, rest)) if round.starts_with("round ") => rest,
            _ => note.as_str(),
        };
        *told.entry(same.to_owned()).or_default() += 1;
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(config: &str) -> Kept {
        let round = |round, value| RoundRecord {
            clients: vec![0],
            uplink_bytes: 10,
            downlink_bytes: 20,
            ..RoundRecord::new(round, [("accuracy", value)])
        };
        Kept {
            version: VERSION,
            config: config.into(),
            seconds: 1.5,
            notes: vec!["a note".into()],
            best: None,
            rounds: vec![round(1, Some(0.1 + 0.2)), round(2, None), round(3, Some(1.0 / 3.0))],
            bins: vec![KeptBin { rows: 0, confidence: None, accuracy: None }],
            density: None,
        }
    }

    #[test]
    fn the_hash_is_that_of_its_authors() {
        // The values of draft-eastlake-fnv for FNV-1a of 128 bits: "" and "a".
        assert_eq!(fnv1a(b""), 0x6c62272e07bb014262b821756295c58d);
        assert_eq!(fnv1a(b"a"), 0xd228cb696f1a8caf78912b704e4a8964);
    }

    #[test]
    fn a_result_comes_back_for_its_own_config_only() {
        let dir = tempfile::tempdir().unwrap();
        kept("seed = 1\n").write(dir.path()).unwrap();
        assert_eq!(Kept::read(dir.path(), "seed = 1\n"), Some(kept("seed = 1\n")));
        assert_eq!(Kept::read(dir.path(), "seed = 2\n"), None);
        // The same name with another config inside, as after a collision of hashes.
        let other = Kept { config: "seed = 3\n".into(), ..kept("") };
        fs::write(file(dir.path(), "seed = 2\n"), serde_json::to_string(&other).unwrap()).unwrap();
        assert_eq!(Kept::read(dir.path(), "seed = 2\n"), None);
    }

    #[test]
    fn the_file_names_the_metrics_once_and_has_a_row_for_each_round() {
        let text = concat!(
            r#"{"version":1,"config":"c","seconds":1.5,"notes":["a note"],"metrics":["nll","kl"],"rounds":["#,
            r#"{"round":1,"clients":[0,2],"uplink":10,"downlink":20,"values":[0.5,null]},"#,
            r#"{"round":2,"clients":[],"uplink":0,"downlink":0,"values":[null,0.25]}],"#,
            r#""bins":[{"rows":0,"confidence":null,"accuracy":null}],"density":null}"#
        );
        let rounds = vec![
            RoundRecord {
                clients: vec![0, 2],
                uplink_bytes: 10,
                downlink_bytes: 20,
                seconds: 2.0,
                round_seconds: 1.0,
                evaluation_seconds: 0.5,
                ..RoundRecord::new(1, [("nll", Some(0.5)), ("kl", Some(f64::INFINITY))])
            },
            RoundRecord::new(2, [("nll", None), ("kl", Some(0.25))]),
        ];
        assert_eq!(serde_json::to_string(&Kept { rounds, ..kept("c") }).unwrap(), text);

        let read: Kept = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
        assert_eq!((read.values("nll"), read.values("kl")), (vec![(1, 0.5)], vec![(2, 0.25)]));
        assert_eq!((read.rounds[0].clients.as_slice(), read.bytes_until(2)), (&[0, 2][..], (10.0, 20.0)));
    }

    #[test]
    fn half_a_file_and_another_layout_are_no_result() {
        let dir = tempfile::tempdir().unwrap();
        let text = serde_json::to_string(&kept("c")).unwrap();
        fs::write(file(dir.path(), "c"), &text[..text.len() / 2]).unwrap();
        assert_eq!(Kept::read(dir.path(), "c"), None);
        let newer = Kept { version: VERSION + 1, ..kept("c") };
        fs::write(file(dir.path(), "c"), serde_json::to_string(&newer).unwrap()).unwrap();
        assert_eq!(Kept::read(dir.path(), "c"), None);
    }

    #[test]
    fn values_skip_rounds_without_one_and_bytes_add_up() {
        let kept = kept("c");
        assert_eq!(kept.values("accuracy"), [(1, 0.1 + 0.2), (3, 1.0 / 3.0)]);
        assert_eq!(kept.values("nll"), []);
        assert_eq!(kept.bytes_until(2), (20.0, 40.0));
    }

    #[test]
    fn traffic_is_counted_so_far_and_by_client_and_round() {
        let mut kept = kept("c");
        kept.rounds[1].clients = vec![4, 2];
        kept.rounds[1].uplink_bytes = 3 * 1_048_576;
        let of = |metric: &str| kept.values(metric).into_iter().map(|(_, mib)| mib).collect::<Vec<_>>();
        let ten = 10.0 / 1_048_576.0;
        assert_eq!(of("uplink_mib"), [ten, 3.0 + ten, 3.0 + 2.0 * ten]);
        assert_eq!(of("client_uplink_mib"), [ten, 1.5, ten]);
        assert_eq!(of("client_downlink_mib")[1], ten);
        assert_eq!(of("downlink_mib")[2], 6.0 * ten);
    }
}
