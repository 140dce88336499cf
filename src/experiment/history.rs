//! The rounds of a run so far, in compact form: a few hundred bytes each, for runs of many thousand rounds.

use std::ops::Range;
use std::sync::Arc;

use crate::checkpoint::{CheckpointError, State};
use crate::error::RunError;
use crate::report::RoundRecord;

/// Records of the rounds of a run, from the first one on. All values of one kind lie in one vector, so that no small
/// allocations remain between the large blocks that a round allocates and frees.
#[derive(Debug, Default)]
pub(super) struct History {
    /// The names of the metrics, the same in every round.
    names: Vec<Arc<str>>,
    /// The defined metrics of all rounds, one round after the other: values, and indices into `names`.
    values: Vec<f64>,
    places: Vec<u16>,
    /// The clients of all rounds, one round after the other.
    clients: Vec<usize>,
    rounds: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    /// The round's record without clients and metrics, so that it has no allocation.
    record: RoundRecord,
    /// The end indices of its clients and of its metrics.
    ends: (usize, usize),
}

impl History {
    /// Appends the next round.
    ///
    /// # Errors
    /// The record's metrics are not those of the first round.
    pub fn push(&mut self, record: &RoundRecord) -> Result<(), RunError> {
        let names = record.metrics.iter().map(|(name, _)| name);
        if self.is_empty() {
            self.names = names.cloned().collect();
        } else if !names.eq(&self.names) {
            return Err(RunError::Output(format!("round {} has metrics other than {:?}", record.round, self.names)));
        }
        let ends = self.keep(record.clients.iter().copied(), record.metrics.iter().map(|(_, value)| *value));
        let record = RoundRecord { clients: Vec::new(), metrics: Vec::new(), ..*record };
        self.rounds.push(Row { record, ends });
        Ok(())
    }

    /// Appends the clients and the metrics of the next round; returns their end indices.
    fn keep(
        &mut self,
        clients: impl Iterator<Item = usize>,
        metrics: impl Iterator<Item = Option<f64>>,
    ) -> (usize, usize) {
        self.clients.extend(clients);
        for (place, value) in (0..).zip(metrics) {
            if let Some(value) = value.filter(|value| !value.is_nan()) {
                self.values.push(value);
                self.places.push(place);
            }
        }
        (self.clients.len(), self.values.len())
    }

    /// Whether no round has ended.
    pub fn is_empty(&self) -> bool {
        self.rounds.is_empty()
    }

    /// The last round, from 1; 0 before the first one.
    pub fn round(&self) -> usize {
        self.rounds.last().map_or(0, |last| last.record.round)
    }

    /// Bytes from the clients to the server, in all rounds.
    pub fn uplink_bytes(&self) -> u64 {
        self.rounds.iter().map(|row| row.record.uplink_bytes).sum()
    }

    /// Seconds from the start of the run to the end of the last round.
    pub fn seconds(&self) -> f64 {
        self.rounds.last().map_or(0.0, |last| last.record.seconds)
    }

    /// The seconds of them in which rows were scored.
    pub fn evaluation_seconds(&self) -> f64 {
        self.rounds.last().map_or(0.0, |last| last.record.evaluation_seconds)
    }

    /// The records in order; a metric that was NaN comes back as undefined.
    pub fn records(&self) -> impl Iterator<Item = RoundRecord> {
        self.spans().map(|(record, clients, values)| {
            let mut metrics: Vec<_> = self.names.iter().map(|name| (name.clone(), None)).collect();
            self.defined(values).for_each(|(place, value)| metrics[place].1 = Some(value));
            RoundRecord { clients: self.clients[clients].to_vec(), metrics, ..*record }
        })
    }

    /// The record of every round with the index ranges of its clients and of its metrics.
    fn spans(&self) -> impl Iterator<Item = (&RoundRecord, Range<usize>, Range<usize>)> {
        let starts = std::iter::once((0, 0)).chain(self.rounds.iter().map(|row| row.ends));
        self.rounds.iter().zip(starts).map(|(row, start)| (&row.record, start.0..row.ends.0, start.1..row.ends.1))
    }

    /// The defined metrics as pairs of index into `names` and value.
    fn defined(&self, values: Range<usize>) -> impl Iterator<Item = (usize, f64)> {
        let places = self.places[values.clone()].iter().map(|place| usize::from(*place));
        places.zip(self.values[values].iter().copied())
    }

    /// The records as a state.
    pub fn save(&self) -> State {
        let rounds = || self.rounds.iter().map(|row| &row.record);
        let bytes = |of: fn(&RoundRecord) -> u64| rounds().map(move |round| of(round) as usize);
        let mut metrics = vec![None; self.rounds.len() * self.names.len()];
        for ((_, _, values), metrics) in self.spans().zip(metrics.chunks_exact_mut(self.names.len().max(1))) {
            self.defined(values).for_each(|(place, value)| metrics[place] = Some(value));
        }
        State::default()
            .with_words("columns", self.names.join(","))
            .with_optional("metrics", &metrics)
            .with_counts("rounds", rounds().map(|round| round.round))
            .with_counts("selected", self.spans().map(|(_, clients, _)| clients.len()))
            .with_counts("clients", self.clients.iter().copied())
            .with_counts("uplink_bytes", bytes(|round| round.uplink_bytes))
            .with_counts("downlink_bytes", bytes(|round| round.downlink_bytes))
            .with_numbers("seconds", rounds().map(|round| round.seconds))
            .with_numbers("round_seconds", rounds().map(|round| round.round_seconds))
            .with_numbers("evaluation_seconds", rounds().map(|round| round.evaluation_seconds))
    }

    /// Restores the records from the state of [`Self::save`].
    ///
    /// # Errors
    /// The state is incomplete.
    pub fn restore(state: &State) -> Result<Self, CheckpointError> {
        let names = state.words("columns")?.split(',').filter(|name| !name.is_empty());
        let names: Vec<Arc<str>> = names.map(Arc::from).collect();
        let metrics = state.optional("metrics")?;
        let (rounds, selected, clients) =
            (state.counts("rounds")?, state.counts("selected")?, state.counts("clients")?);
        let (uplink, downlink) = (state.counts("uplink_bytes")?, state.counts("downlink_bytes")?);
        let seconds = ["seconds", "round_seconds", "evaluation_seconds"];
        let [seconds, round_seconds, evaluating] = seconds.map(|name| state.numbers(name));
        let (seconds, round_seconds, evaluating) = (seconds?, round_seconds?, evaluating?);
        let counts = [selected.len(), uplink.len(), downlink.len()];
        let lengths = counts.into_iter().chain([seconds.len(), round_seconds.len(), evaluating.len()]);
        let is_whole = lengths.into_iter().all(|length| length == rounds.len())
            && rounds.len().checked_mul(names.len()) == Some(metrics.len())
            && selected.iter().try_fold(0usize, |sum, count| sum.checked_add(*count)) == Some(clients.len());
        if !is_whole || names.len() > usize::from(u16::MAX) {
            return Err(CheckpointError::Content("the records of the rounds are not whole".into()));
        }
        let (mut clients, mut metrics, columns) = (clients.into_iter(), metrics.into_iter(), names.len());
        let mut history = Self { names, ..Self::default() };
        for i in 0..rounds.len() {
            let ends = history.keep(clients.by_ref().take(selected[i]), metrics.by_ref().take(columns));
            let record = RoundRecord {
                round: rounds[i],
                uplink_bytes: uplink[i] as u64,
                downlink_bytes: downlink[i] as u64,
                seconds: seconds[i],
                round_seconds: round_seconds[i],
                evaluation_seconds: evaluating[i],
                ..RoundRecord::default()
            };
            history.rounds.push(Row { record, ends });
        }
        Ok(history)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(round: usize, clients: &[usize], nll: Option<f64>) -> RoundRecord {
        RoundRecord {
            round,
            clients: clients.to_vec(),
            metrics: vec![("accuracy".into(), Some(0.5)), ("nll".into(), nll), ("kl".into(), Some(f64::INFINITY))],
            uplink_bytes: 10 * round as u64,
            downlink_bytes: 20,
            seconds: 1.5 * round as f64,
            round_seconds: 1.5,
            evaluation_seconds: 0.25 * round as f64,
        }
    }

    fn history(records: &[RoundRecord]) -> History {
        let mut history = History::default();
        records.iter().for_each(|record| history.push(record).unwrap());
        history
    }

    #[test]
    fn records_come_back_as_they_went_in() {
        let records = [record(1, &[], None), record(2, &[0, 3], Some(0.1)), record(3, &[1], None)];
        let kept = history(&records);
        assert_eq!(kept.records().collect::<Vec<_>>(), records);
        assert_eq!((kept.round(), kept.seconds(), kept.evaluation_seconds(), kept.is_empty()), (3, 4.5, 0.75, false));
        let restored = History::restore(&kept.save()).unwrap();
        assert_eq!(restored.records().collect::<Vec<_>>(), records);
    }

    #[test]
    fn a_metric_that_is_not_a_number_is_undefined() {
        let kept = history(&[record(1, &[2], Some(f64::NAN))]);
        assert_eq!(kept.records().next(), Some(record(1, &[2], None)));
    }

    #[test]
    fn a_restored_history_goes_on() {
        let mut going = History::restore(&history(&[record(1, &[0, 1], None)]).save()).unwrap();
        going.push(&record(2, &[2], Some(0.3))).unwrap();
        let records: Vec<_> = going.records().collect();
        assert_eq!(records, [record(1, &[0, 1], None), record(2, &[2], Some(0.3))]);
    }

    #[test]
    fn nothing_comes_back_as_nothing() {
        let nothing = History::restore(&History::default().save()).unwrap();
        assert!(nothing.is_empty() && nothing.records().next().is_none());
        assert_eq!((nothing.round(), nothing.seconds()), (0, 0.0));
    }

    #[test]
    fn a_round_with_other_metrics_is_refused() {
        let mut kept = history(&[record(1, &[0], None)]);
        let error =
            kept.push(&RoundRecord { metrics: vec![("accuracy".into(), None)], ..record(2, &[0], None) }).unwrap_err();
        assert!(error.to_string().starts_with("round 2 has metrics other than"), "{error}");
        assert_eq!(kept.round(), 1);
    }

    #[test]
    fn a_state_that_is_not_whole_is_refused() {
        let state = history(&[record(1, &[0], None), record(2, &[1], None)]).save();
        let broken = [
            state.clone().with_counts("clients", [0]),
            state.clone().with_numbers("seconds", [1.0]),
            state.clone().with_words("columns", "accuracy,nll".into()),
            state.with_counts("selected", [usize::MAX, 2]),
        ];
        for state in broken {
            assert!(matches!(History::restore(&state), Err(CheckpointError::Content(_))));
        }
    }
}
