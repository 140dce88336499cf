//! Diagnostics of a round besides its metrics: columns of `rounds.csv`, lines of `selection.jsonl`, and warnings where
//! a method silently degenerates.

use serde_json::json;

use super::personal::SCORED_CLIENTS;
use crate::algorithm;
use crate::checkpoint::{CheckpointError, State};
use crate::federation::event::EventKind;
use crate::federation::server::Round;
use crate::protocol::{CLIENT_BYTES, KDE_ESS, SCORE_NORM};
use crate::report::RoundRecord;
use crate::schedule::{Indicators, Measure, Reasons};
use crate::statistics::median_of_sorted;

/// What the diagnostic columns of a round are read from.
struct Seen<'a> {
    round: &'a Round,
    /// The root mean square over coordinates of the particles' standard deviation, where it was measured.
    spread: Option<f64>,
    /// The known indicators of the clients, ascending.
    sorted: Vec<f64>,
}

/// A diagnostic column: its name and its value, where it is defined.
type Column = (&'static str, fn(&Seen<'_>) -> Option<f64>);

/// The columns before those of the algorithms.
const BEFORE: &[Column] = &[
    ("spread", |seen| seen.spread),
    (KDE_ESS, |seen| seen.number(KDE_ESS)),
    (SCORE_NORM, |seen| seen.number(SCORE_NORM)),
    ("indicator_min", |seen| seen.sorted.first().copied()),
    ("indicator_median", |seen| median_of_sorted(&seen.sorted)),
    ("indicator_max", |seen| seen.sorted.last().copied()),
    ("constant_share", |seen| seen.indicators().map(|indicators| indicators.constant_share)),
    ("off_diagonal_mass", |seen| seen.indicators().map(|indicators| indicators.off_diagonal_mass)),
    ("delta_ksd", |seen| seen.gain(Measure::Ksd)),
    ("delta_hip", |seen| seen.gain(Measure::Hip)),
    ("selection_entropy", |seen| seen.reasons().map(|reasons| reasons.entropy)),
    ("negative_indicators", |seen| seen.reasons().map(|reasons| reasons.negative as f64)),
    ("selection_seconds", |seen| seen.indicators().map(|_| seen.round.selection_seconds)),
];

/// The columns after those of the algorithms.
const AFTER: &[Column] = &[
    (CLIENT_BYTES, |seen| seen.number(CLIENT_BYTES)),
    ("rejected", |seen| Some(seen.round.rejected.len() as f64)),
    ("ignored", |seen| seen.count(&[EventKind::Late, EventKind::Duplicate, EventKind::Stale])),
    ("skipped", |seen| seen.count(&[EventKind::Skipped])),
    ("clipped", |seen| seen.count(&[EventKind::Clipped])),
    ("attempts", |seen| Some(seen.round.attempts as f64)),
    ("outlier_score", |seen| seen.highest_score()),
    ("server_bytes", |seen| Some(seen.round.server_bytes as f64)),
];

/// The names of the diagnostic columns that are not an algorithm's.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    BEFORE.iter().chain(AFTER).map(|(name, _)| *name)
}

/// The diagnostic columns of a round, in order; undefined ones stay blank.
///
/// # Arguments
/// * `spread`: the root mean square over coordinates of the particles' standard deviation, where it was measured
/// * `own`: the columns of the run's algorithm, which need not be one of this crate
pub(super) fn columns(
    round: &Round,
    spread: Option<f64>,
    own: &'static [&'static str],
) -> Vec<(&'static str, Option<f64>)> {
    let mut sorted = round.indicators.as_ref().map(Indicators::known).unwrap_or_default();
    sorted.sort_by(f64::total_cmp);
    let seen = Seen { round, spread, sorted };
    let of_algorithms = algorithm::columns();
    let beyond = own.iter().copied().filter(|name| !of_algorithms.contains(name));
    let values = |columns: &[Column]| columns.iter().map(|(name, value)| (*name, value(&seen))).collect::<Vec<_>>();
    let mut columns = values(BEFORE);
    columns.extend(of_algorithms.iter().map(|name| (*name, seen.number(name))));
    columns.extend(values(AFTER));
    columns.extend(beyond.map(|name| (name, seen.number(name))));
    columns
}

impl Seen<'_> {
    /// A number of the replies or of the server.
    fn number(&self, name: &str) -> Option<f64> {
        self.round.numbers.get(name).copied()
    }

    fn indicators(&self) -> Option<&Indicators> {
        self.round.indicators.as_ref()
    }

    fn reasons(&self) -> Option<&Reasons> {
        self.round.selection.reasons.as_ref()
    }

    /// The expected gain of the selection, where the clients were asked for this measure.
    fn gain(&self, measure: Measure) -> Option<f64> {
        self.indicators().filter(|indicators| indicators.measure == measure)?;
        self.reasons().map(|reasons| reasons.gain)
    }

    /// The number of visit events of these kinds.
    fn count(&self, kinds: &[EventKind]) -> Option<f64> {
        let visits = self.round.events.iter().filter(|event| event.is_of_training());
        Some(visits.filter(|event| kinds.contains(&event.kind)).count() as f64)
    }

    /// The largest outlier score of the replies, where replies were scored.
    fn highest_score(&self) -> Option<f64> {
        let scores = self.round.events.iter().filter(|event| event.kind == EventKind::Scored);
        scores.filter_map(|event| event.value).max_by(f64::total_cmp)
    }
}

/// A line of `selection.jsonl` without its line break; `None` where no client was asked. `visits` `[K]` counts how often
/// each client has been selected so far.
pub(super) fn selection_line(round: &Round, visits: &[usize]) -> Option<String> {
    let indicators = round.indicators.as_ref()?;
    let finite = |values: &[f64]| values.iter().map(|value| value.is_finite().then_some(*value)).collect::<Vec<_>>();
    let reasons = round.selection.reasons.as_ref();
    let line = json!({
        "round": round.round,
        "measure": indicators.measure,
        "bandwidth": indicators.bandwidth,
        "indicators": finite(&indicators.values),
        "absent": indicators.absent,
        "constant_share": indicators.constant_share,
        "off_diagonal_mass": indicators.off_diagonal_mass,
        "action": reasons.map(|reasons| reasons.action),
        "probabilities": reasons.map(|reasons| finite(&reasons.probabilities)),
        "gain": reasons.map(|reasons| reasons.gain),
        "entropy": reasons.map(|reasons| reasons.entropy),
        "selected": round.selection.clients,
        "visits": visits,
    });
    Some(line.to_string())
}

/// By how much the NLL must have risen since its best round to be told, in nats.
const RISEN: f64 = 0.1;

/// That predictions have become worse since an earlier round, by the NLL of the scored rows; of the clients' personal predictors,
/// where these were scored, of which no state of an earlier round is kept.
pub(super) fn risen(records: impl Iterator<Item = RoundRecord>) -> Option<String> {
    let column = |record: &RoundRecord, name: &str| {
        let metric = record.metrics.iter().find(|(metric, _)| **metric == *name);
        metric.and_then(|(_, value)| *value).filter(|value| value.is_finite())
    };
    // Rounds without the rows of a client tell nothing of the others.
    let records: Vec<RoundRecord> = records.collect();
    let scored = |record: &RoundRecord| column(record, SCORED_CLIENTS);
    let of_last = records.last().and_then(scored);
    let mut own = false;
    let nll = |record: RoundRecord| {
        if scored(&record) != of_last {
            return None;
        }
        let personal = column(&record, "personal_nll");
        own |= personal.is_some();
        Some((record.round, personal.or_else(|| column(&record, "nll"))?))
    };
    let values: Vec<(usize, f64)> = records.into_iter().filter_map(nll).collect();
    let (whose, remedy) = match own {
        true => ("clients' personal predictors", "fewer `rounds` or smaller steps help"),
        false => (
            "scored rows",
            "`stop.patience` with rows held out for validation keeps the best round (docs/configuration.md)",
        ),
    };
    let (round, best) = *values.iter().min_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let (_, last) = *values.last()?;
    (last - best > RISEN).then(|| {
        format!(
            "the NLL of the {whose} was lowest after round {round}, {best:.3}, and is {last:.3} now: the method diverges or \
             fits noise; {remedy}"
        )
    })
}

/// Warnings that are given at most once per run.
#[derive(Debug, Default)]
pub(super) struct Advice {
    one_hot: bool,
    constant: bool,
    uniform: bool,
}

/// Below this effective number of centres a density estimate is dominated by its nearest centre.
const ONE_HOT: f64 = 1.05;

/// Below this mass off the kernel's diagonal particles do not interact; under the median rule it is about 1/N.
const ALONE: f64 = 1e-3;

impl Advice {
    /// The state that records which warnings were given.
    pub fn save(&self) -> State {
        let said = [self.one_hot, self.constant, self.uniform];
        State::default().with_counts("said", said.map(usize::from))
    }

    /// Restores the record of warnings from [`Self::save`], so that none is repeated.
    ///
    /// # Errors
    /// The state is incomplete.
    pub fn restore(state: &State) -> Result<Self, CheckpointError> {
        let said = state.counts("said")?;
        let was_given = |advice: usize| said.get(advice).is_some_and(|said| *said != 0);
        Ok(Self { one_hot: was_given(0), constant: was_given(1), uniform: was_given(2) })
    }

    /// The warnings due after this round that were not given before.
    pub fn on(&mut self, round: &Round, one_hot_advice: &str, particles: usize) -> Vec<String> {
        let mut advice = Vec::new();
        let ess = round.numbers.get(KDE_ESS).copied();
        if let Some(ess) = ess.filter(|ess| particles > 2 && *ess < ONE_HOT && !self.one_hot) {
            self.one_hot = true;
            advice.push(format!(
                "round {}: densities are one-hot (effective sample size {ess:.2} of {particles}), as they are beyond some 20 \
                 dimensions: {} (docs/algorithms.md, \"The one-hot regime\")",
                round.round,
                one_hot_advice
            ));
        }
        let Some(indicators) = &round.indicators else { return advice };
        if indicators.constant_share > 0.9 && !self.constant {
            self.constant = true;
            let alone = indicators.off_diagonal_mass < ALONE;
            let remedy = match alone {
                true => "; with schedule.bandwidth = \"median\" the kernel between different particles does not vanish",
                false => "",
            };
            advice.push(format!(
                "round {}: {:.0} % of the mean selection indicator is a constant of the kernel and does not distinguish \
                 the clients{remedy}",
                round.round,
                100.0 * indicators.constant_share
            ));
        }
        let reasons = round.selection.reasons.as_ref();
        let all_but_equal = |reasons: &Reasons| reasons.entropy > 0.999 && reasons.probabilities.len() > 1;
        if reasons.is_some_and(all_but_equal) && indicators.absent.is_empty() && !self.uniform {
            self.uniform = true;
            advice.push(format!(
                "round {}: the clients' probabilities are almost equal: this selection costs traffic and chooses at random",
                round.round
            ));
        }
        advice
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(values: &[Option<f64>], metric: &str) -> impl Iterator<Item = RoundRecord> {
        let record = |(round, value): (usize, &Option<f64>)| RoundRecord {
            round,
            metrics: vec![(metric.into(), *value)],
            ..RoundRecord::default()
        };
        values.iter().enumerate().map(|(at, value)| record((at + 1, value))).collect::<Vec<_>>().into_iter()
    }

    #[test]
    fn an_nll_that_has_risen_is_told_with_its_best_round() {
        let note = risen(records(&[Some(0.9), Some(0.5), None, Some(1.25), None], "nll")).unwrap();
        assert!(note.contains("lowest after round 2, 0.500, and is 1.250 now"), "{note}");
        assert!(risen(records(&[Some(0.9), Some(0.5), Some(0.59)], "nll")).is_none());
        assert!(risen(records(&[Some(0.5), Some(f64::NAN)], "nll")).is_none());
        assert!(risen(records(&[Some(0.5), Some(5.0)], "accuracy")).is_none() && risen(records(&[], "nll")).is_none());
        let note = risen(records(&[Some(0.5), Some(5.0)], "personal_nll")).unwrap();
        // `stop.patience` would be refused.
        assert!(note.contains("of the clients' personal predictors") && !note.contains("stop.patience"), "{note}");
    }
}
