//! Evaluates and records every round: the observer of the loop over rounds.

use std::collections::BTreeSet;
use std::time::Instant;

use crate::algorithm::Capabilities;
use crate::backend::Session;
use crate::checkpoint::State;
use crate::error::RunError;
use crate::federation::event::{Event, EventKind};
use crate::federation::fault_policy::FaultPolicy;
use crate::federation::fleet::Fleet;
use crate::federation::server::{Round, RoundObserver};
use crate::metrics::Evaluation;
use crate::protocol::{ClientId, RequestKind, ServerHalf};
use crate::report::{ClientNames, RoundRecord};
use crate::schedule::Schedule;

use super::artifact::Artifacts;
use super::checkpoints::Snapshot;
use super::config::{Config, StopMetric};
use super::diagnosis::{self, Advice};
use super::evaluate::Predicted;
use super::history::History;
use super::lr_schedule::{self, LrSchedule};
use super::outcome::Outcome;
use super::participation::Participation;
use super::personal::{Columns, Personal, SCORED_CLIENTS};
use super::progress::Observer;
use super::questions::listed;
use super::round_evaluator::{Ended, EvaluatedRound, RoundEvaluator};
use super::rounds_csv;
use super::stop::Stop;

/// The part of a recorder's state with the best round.
const BEST: &str = "best";
/// The part with the step size.
const LR: &str = "lr_schedule";

/// The names of the columns of `rounds.csv` over all configs, but those of the algorithms.
pub(super) fn column_names() -> impl Iterator<Item = &'static str> {
    let metrics = Evaluation::default().columns().into_iter().chain(Personal::blank()).map(|(name, _)| name);
    let of_config = StopMetric::ALL.iter().map(|metric| metric.column()).chain([SCORED_CLIENTS, lr_schedule::COLUMN]);
    rounds_csv::FIRST.into_iter().chain(metrics).chain(of_config).chain(diagnosis::names()).chain(rounds_csv::LAST)
}

/// Evaluates and records every round.
pub(super) struct RunRecorder<'a> {
    pub config: &'a Config,
    pub evaluator: RoundEvaluator<'a>,
    pub fleet: &'a dyn Fleet,
    pub observer: &'a dyn Observer,
    pub artifacts: Option<&'a mut Artifacts>,
    /// What the clients are called.
    names: &'a ClientNames,
    /// The clients whose rows the last scores leave out, because they did not answer.
    without_scores: BTreeSet<ClientId>,
    /// The warning for one-hot density estimates.
    one_hot_advice: &'static str,
    /// The capabilities of the algorithm.
    can: Capabilities,
    start: Instant,
    stop: Stop,
    lr: LrSchedule,
    notes: Notes,
}

/// The evaluated columns of a round, and the events of the requests for scores.
type EvaluatedColumns = (Columns, Vec<Event>);

/// The warning about a client that did not answer a question or gave no scores.
fn absence(event: &Event, names: &ClientNames) -> Option<String> {
    let left_out_of = match event.request {
        RequestKind::Training => return None,
        RequestKind::Question => "the selection of clients",
        RequestKind::Scores => "the scores",
    };
    let reason = event.detail.as_deref().unwrap_or("no reply came");
    let (round, client) = (event.round, names.of(event.client));
    is_absent(event).then(|| format!("round {round}: client {client} was left out of {left_out_of}: {reason}"))
}

/// The clients that did not answer these requests.
fn absent(events: &[Event]) -> BTreeSet<ClientId> {
    events.iter().filter(|event| is_absent(event)).map(|event| event.client).collect()
}

/// Whether a client did not answer a request, or not so that it counts.
fn is_absent(event: &Event) -> bool {
    use EventKind::{Failed, Late, Refused, Stale, Unanswered};
    matches!(event.kind, Unanswered | Late | Stale | Refused | Failed)
}

/// The values collected over the rounds and saved in checkpoints.
struct Notes {
    personal: Option<Personal>,
    /// Seconds of the rounds that were run before this process.
    before: f64,
    /// Seconds of all rounds in which rows were scored.
    evaluating: f64,
    rounds: History,
    latest: Option<(Predicted, Evaluation)>,
    participation: Participation,
    advice: Advice,
}

/// The results of a run after its last round.
pub(super) struct RunResults<'a> {
    /// The files of the run.
    pub artifacts: Option<&'a mut Artifacts>,
    /// The results, without what calibration rows give.
    pub outcome: Outcome,
    /// Sentences on the end of the run.
    pub ended: Vec<String>,
    pub participation: Participation,
}

impl<'a> RunRecorder<'a> {
    /// A recorder of a run with K clients, each of which is scored if `personal`.
    pub fn new(
        (config, one_hot_advice, can): (&'a Config, &'static str, Capabilities),
        evaluator: RoundEvaluator<'a>,
        fleet: &'a dyn Fleet,
        (count, personal, names): (usize, bool, &'a ClientNames),
        observer: &'a dyn Observer,
        artifacts: Option<&'a mut Artifacts>,
    ) -> Self {
        let notes = Notes {
            personal: personal.then(|| Personal::new(count)),
            before: 0.0,
            evaluating: 0.0,
            rounds: History::default(),
            latest: None,
            participation: Participation::new(count),
            advice: Advice::default(),
        };
        let (start, lr) = (Instant::now(), LrSchedule::new(config.lr_schedule, config.stop.metric));
        let stop = Stop::new(config.stop, config.validation_key().is_some(), evaluator.validates_classes());
        let without_scores = BTreeSet::new();
        Self {
            config,
            evaluator,
            fleet,
            observer,
            artifacts,
            names,
            without_scores,
            one_hot_advice,
            can,
            start,
            stop,
            lr,
            notes,
        }
    }

    /// Lets validation rows choose a round from this one on.
    pub fn judges_from(&mut self, first: usize) {
        self.stop.judges_from(first);
        if self.config.stop.patience > 0 && self.config.rounds < first {
            self.observer.note(&format!(
                "stop.patience has no effect in {} rounds: the best round is looked for from round {first} on, when as many \
                 clients were selected as there are",
                self.config.rounds
            ));
        }
    }

    /// Restores the state of a checkpoint and continues after its last round.
    ///
    /// # Errors
    /// The state does not belong to this run, or its files cannot be truncated.
    pub fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.notes.restore(state)?;
        self.stop.restore(&state.part(BEST), self.evaluator.no_sums())?;
        self.lr.restore(&state.part(LR))?;
        let (rounds, round) = (&self.notes.rounds, self.notes.rounds.round());
        self.stop.decide(round, self.is_regular(round), rounds.uplink_bytes(), rounds.seconds());
        if let Some(artifacts) = self.artifacts.as_deref_mut() {
            artifacts.cut(self.notes.rounds.records())?;
        }
        Ok(())
    }

    /// Whether a round is evaluated wherever the run ends.
    fn is_regular(&self, round: usize) -> bool {
        round.is_multiple_of(self.config.evaluation.every) || round == self.config.rounds
    }

    /// Evaluates the test rows and, where `personal` is set, every client's personal predictor. Returns the columns of both,
    /// and the events of the requests for scores.
    fn evaluate(
        &mut self,
        (round, is_last): (usize, bool),
        server: &dyn ServerHalf,
        policy: &FaultPolicy,
    ) -> Result<EvaluatedColumns, RunError> {
        let (clients, own) = (self.notes.participation.clients(), self.notes.personal.is_some());
        let is_last = is_last && !self.closes_apart();
        let ended = Ended { round, fleet: self.fleet, policy, server, is_last };
        let start = Instant::now();
        let evaluated = self.evaluator.evaluate(ended, clients, own)?;
        self.notes.evaluating += start.elapsed().as_secs_f64();
        let seen = self.stop.look(round, server, &evaluated)?;
        let EvaluatedRound { predicted, evaluation, own, scored, events, .. } = evaluated;
        let mut columns = evaluation.columns();
        if let (Some(personal), Some(own), Some(scored)) = (&mut self.notes.personal, own, scored) {
            columns.extend(personal.record(round, own, scored));
        }
        columns.extend(scored.map(|scored| (SCORED_CLIENTS, Some(scored as f64))));
        columns.extend(seen.columns);
        // A run may go on to more rounds, and its last round is then none that is evaluated regularly.
        if round.is_multiple_of(self.config.evaluation.every) {
            self.lr.look(seen.value, seen.has_more_clients);
        }
        self.notes.latest = Some((predicted, evaluation));
        Ok((columns, events))
    }

    /// Whether sites are told apart from the scores of the last round that theirs are the results of the run.
    fn closes_apart(&self) -> bool {
        self.evaluator.closes_apart(self.config.stop.patience > 0, self.notes.personal.is_some())
    }

    /// The blank columns of a round that is not evaluated.
    fn blank(&self) -> Columns {
        let mut columns = Evaluation::default().columns();
        let is_personal = self.notes.personal.is_some();
        if is_personal {
            columns.extend(Personal::blank());
        }
        columns.extend(self.evaluator.asks(is_personal).then_some((SCORED_CLIENTS, None)));
        columns.extend(self.stop.blank());
        columns
    }

    fn seconds(&self) -> f64 {
        self.notes.before + self.start.elapsed().as_secs_f64()
    }

    /// Writes a checkpoint where one is due, and ends the run where the user asked for it.
    fn keep(
        &mut self,
        (round, policy): (usize, &FaultPolicy),
        server: &dyn ServerHalf,
        schedule: &dyn Schedule,
    ) -> Result<(), RunError> {
        let (rounds, is_wanted) = (self.config.rounds, self.observer.wants_to_stop());
        let is_last = round == rounds || self.stop.over().is_some();
        if let Some(artifacts) = self.artifacts.as_deref_mut() {
            let (notes, stop, lr) = (&self.notes, &self.stop, &self.lr);
            let history = || notes.save().with_part(BEST, stop.save()).with_part(LR, lr.save());
            let snapshot = Snapshot { round, server, schedule, policy, fleet: self.fleet, history: &history };
            let in_any_case = is_wanted || (is_last && artifacts.outlives_the_run());
            if artifacts.checkpoint(&self.config.checkpoint, in_any_case, &snapshot)? {
                self.observer.saved(round);
            }
            if is_wanted && !is_last {
                artifacts.end(round)?;
            }
        }
        match is_wanted && !is_last {
            true => Err(RunError::Interrupted { round, rounds }),
            false => Ok(()),
        }
    }

    /// The results of the run: those of its last round, or of the one that validation rows have chosen. Where the checkpoint
    /// already holds all rounds, or where the best round is not the last one, the results are evaluated again.
    ///
    /// # Errors
    /// No round has ended, or the results cannot be evaluated.
    pub fn finish(
        mut self,
        server: &dyn ServerHalf,
        policy: &FaultPolicy,
        session: &Session,
    ) -> Result<RunResults<'a>, RunError> {
        let round = self.notes.rounds.round();
        let (mut particles, mut posterior) = (server.particles().clone(), server.posterior());
        let best = self.stop.best().filter(|best| best.round != round);
        if let Some(best) = best {
            (particles, posterior) = (best.particles(&particles, session)?, best.posterior.clone());
        }
        let has_rounds = !self.notes.rounds.is_empty();
        if best.is_some() || (has_rounds && self.closes_apart()) {
            let of = best.map_or(round, |best| best.round);
            let ended = Ended { round: of, fleet: self.fleet, policy, server, is_last: true };
            let published = best.map(|_| (&particles, &posterior));
            let start = Instant::now();
            let evaluated = self.evaluator.close(ended, published, self.notes.participation.clients())?;
            self.notes.evaluating += start.elapsed().as_secs_f64();
            let events = &evaluated.events;
            self.without_scores = absent(events);
            events.iter().filter_map(|event| absence(event, self.names)).for_each(|note| self.observer.note(&note));
            if let Some(artifacts) = self.artifacts.as_deref_mut() {
                artifacts.events(&evaluated.events)?;
            }
            self.notes.latest = Some((evaluated.predicted, evaluated.evaluation));
        } else if has_rounds && self.notes.latest.is_none() {
            // The events of these requests were already recorded in their round, so they are discarded.
            self.without_scores = absent(&self.evaluate((round, true), server, policy)?.1);
        }
        let early = self.stop.over().filter(|_| round < self.config.rounds);
        let early = early.map(|why| format!("the run ended after round {round} of {}: {why}", self.config.rounds));
        let mut ended: Vec<String> = early.into_iter().chain(self.stop.choice(round)).collect();
        let best = self.stop.best().map(|best| best.round);
        // Scores of parameters of which a part is untrained say nothing of the method.
        let is_judged = self.config.evaluation.personal || !self.can.untrained_part;
        let risen = diagnosis::risen(self.notes.rounds.records()).filter(|_| best.is_none() && is_judged);
        risen.iter().for_each(|note| self.observer.note(note));
        let seconds = self.seconds();
        let Notes { personal, rounds, latest, participation, evaluating: evaluation_seconds, .. } = self.notes;
        let (predicted, evaluation) = latest.ok_or_else(|| RunError::Config("rounds must be at least 1".into()))?;
        let outcome = Outcome {
            particles,
            posterior,
            predicted,
            evaluation,
            personal: personal.and_then(Personal::finish),
            best,
            calibrated: None,
            visits: participation.used.clone(),
            rounds: rounds.records().collect(),
            seconds,
            evaluation_seconds,
        };
        // Of a stale reply there is an event too, where the right one came as well.
        let sites = outcome.sites().into_iter().enumerate();
        let silent = sites.filter(|(client, site)| self.without_scores.contains(client) && site.evaluation.rows == 0);
        let names: Vec<String> = silent.map(|(client, _)| self.names.of(client)).collect();
        if !names.is_empty() {
            ended.push(format!(
                "the results leave out the rows of {}: no scores came after the last round",
                listed(names)
            ));
        }
        Ok(RunResults { artifacts: self.artifacts, outcome, ended, participation })
    }
}

impl Notes {
    fn save(&self) -> State {
        let personal = self.personal.as_ref().map(Personal::save).unwrap_or_default();
        State::default()
            .with_part("rounds", self.rounds.save())
            .with_part("participation", self.participation.save())
            .with_part("advice", self.advice.save())
            .with_part("personal", personal)
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.rounds = History::restore(&state.part("rounds"))?;
        self.participation.restore(&state.part("participation"))?;
        self.advice = Advice::restore(&state.part("advice"))?;
        if let Some(personal) = &mut self.personal {
            personal.restore(&state.part("personal"))?;
        }
        (self.before, self.evaluating) = (self.rounds.seconds(), self.rounds.evaluation_seconds());
        Ok(())
    }
}

impl RoundObserver for RunRecorder<'_> {
    fn step_factor(&self, round: usize) -> f64 {
        self.lr.factor(round)
    }

    fn round_started(&mut self, round: usize, clients: &[ClientId]) {
        self.observer.round(round, clients);
    }

    fn round_ended(&mut self, round: Round, server: &dyn ServerHalf, schedule: &dyn Schedule) -> Result<(), RunError> {
        if self.observer.gives_up() {
            return Err(RunError::Interrupted { round: self.notes.rounds.round(), rounds: self.config.rounds });
        }
        let uplink = self.notes.rounds.uplink_bytes() + round.uplink_bytes;
        let is_last = round.round == self.config.rounds || self.stop.is_used_up(uplink, self.seconds());
        let due = is_last || self.is_regular(round.round);
        // The factor of the round; what is seen after it changes that of the next one.
        let lr_factor = self.lr.column(round.round);
        let (mut metrics, mut spread, mut scoring) = (self.blank(), None, Vec::new());
        if due {
            (metrics, scoring) = self.evaluate((round.round, is_last), server, &round.policy)?;
            spread = Some(server.particles().spread()?);
        }
        metrics.extend(lr_factor);
        metrics.extend(diagnosis::columns(&round, spread, self.can.columns));
        let number = round.round;
        let advice = self.notes.advice.on(&round, self.one_hot_advice, server.particles().count());
        advice.iter().for_each(|note| self.observer.note(note));
        for (client, reason) in &round.rejected {
            let client = self.names.of(*client);
            self.observer.note(&format!("round {number}: client {client} was left out: {reason}"));
        }
        self.without_scores = absent(&scoring);
        for note in round.events.iter().chain(&scoring).filter_map(|event| absence(event, self.names)) {
            self.observer.note(&note);
        }
        self.notes.participation.add(&round);
        let selection = diagnosis::selection_line(&round, &self.notes.participation.selected);
        let seconds = self.seconds();
        let record = RoundRecord {
            round: number,
            clients: trained(&round),
            metrics: metrics.into_iter().map(|(name, value)| (name.into(), value)).collect(),
            uplink_bytes: round.uplink_bytes,
            downlink_bytes: round.downlink_bytes,
            seconds,
            round_seconds: seconds - self.notes.rounds.seconds(),
            evaluation_seconds: self.notes.evaluating,
        };
        if let Some(artifacts) = self.artifacts.as_deref_mut() {
            if let Some(line) = selection {
                artifacts.selection(&line)?;
            }
            artifacts.events(&round.events)?;
            artifacts.events(&scoring)?;
            artifacts.trained(&round.used);
            artifacts.round(&record)?;
        }
        self.observer.finished_round(&record);
        self.notes.rounds.push(&record)?;
        // A budget that was not used up before the evaluation ends the run after the next round.
        let (sent, seconds) = if is_last { (uplink, seconds) } else { (0, 0.0) };
        self.stop.decide(number, due, sent, seconds);
        self.keep((number, &round.policy), server, schedule)
    }

    fn is_over(&self) -> bool {
        self.stop.over().is_some()
    }

    fn run_failed(&mut self, events: &[Event]) -> Result<(), RunError> {
        match self.artifacts.as_deref_mut() {
            // A run leaves no files before its first round has ended.
            Some(artifacts) if !self.notes.rounds.is_empty() => artifacts.events(events),
            _ => Ok(()),
        }
    }
}

/// The clients whose replies changed the server, in the order of the selection; those that took the place of others behind.
fn trained(round: &Round) -> Vec<ClientId> {
    let selected = &round.selection.clients;
    let chosen = selected.iter().filter(|client| round.used.contains(client));
    chosen.chain(round.used.iter().filter(|client| !selected.contains(client))).copied().collect()
}
