//! A fault injector: a fleet around a fleet that disturbs the requests and replies of some clients.
//!
//! Training requests are disturbed and, where that is wanted, questions and scores; the clients' states are not. Which
//! request is disturbed, and how, follows from the run's seed and (kind of request, round, client, attempt) only: the
//! faults are the same at any number of threads, and in a run that was resumed. Nothing waits: a straggler's delay is a
//! number on its reply.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::combine::scale_change;
use super::event::{Event, EventKind};
use super::fleet::Fleet;
use super::saved::{of_messages, to_messages};
use crate::array::{Array, Values};
use crate::checkpoint::State;
use crate::error::RunError;
use crate::protocol::{ClientId, Message, Reply, Request, RequestKind, Watch};
use crate::random::{Purpose, Streams};

/// What goes wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// The request does not reach the client.
    Dropout,
    /// The reply comes late.
    Straggler,
    /// The reply comes twice.
    Duplicate,
    /// The reply comes after those of the other clients.
    Reordered,
    /// The reply is of the round before.
    Stale,
    /// One element is NaN.
    Nan,
    /// One element is infinite.
    Inf,
    /// The arrays have one axis too many.
    WrongShape,
    /// The arrays have the other floating point type.
    WrongDtype,
    /// The arrays have one row too many.
    WrongN,
    /// The change is many times as long.
    HugeNorm,
    /// The change has the opposite sign.
    SignFlip,
    /// The reply repeats the first one that was to be disturbed, under the stamps of this round.
    Replay,
    /// The client does its part, and the reply does not arrive.
    LostReply,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Dropout,
        Self::Straggler,
        Self::Duplicate,
        Self::Reordered,
        Self::Stale,
        Self::Nan,
        Self::Inf,
        Self::WrongShape,
        Self::WrongDtype,
        Self::WrongN,
        Self::HugeNorm,
        Self::SignFlip,
        Self::Replay,
        Self::LostReply,
    ];

    /// The word for it in a config.
    pub fn word(self) -> &'static str {
        match self {
            Self::Dropout => "dropout",
            Self::Straggler => "straggler",
            Self::Duplicate => "duplicate",
            Self::Reordered => "reordered",
            Self::Stale => "stale",
            Self::Nan => "nan",
            Self::Inf => "inf",
            Self::WrongShape => "wrong-shape",
            Self::WrongDtype => "wrong-dtype",
            Self::WrongN => "wrong-n",
            Self::HugeNorm => "huge-norm",
            Self::SignFlip => "sign-flip",
            Self::Replay => "replay",
            Self::LostReply => "lost-reply",
        }
    }

    /// Whether it can happen to a request of this kind; faults of a change happen to training only.
    fn happens_to(self, request: RequestKind) -> bool {
        let anywhere = [
            Self::Dropout,
            Self::LostReply,
            Self::Straggler,
            Self::Duplicate,
            Self::Reordered,
            Self::Stale,
            Self::Nan,
            Self::Inf,
        ];
        request == RequestKind::Training || anywhere.contains(&self)
    }

    /// The fault that a word names.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.word() == word)
    }
}

/// Which faults, at how many clients, how often and how strongly.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultsConfig {
    /// One of these, equally likely; none: no faults.
    pub kinds: Vec<Fault>,
    /// Which requests are disturbed.
    pub requests: Vec<RequestKind>,
    /// Share of the clients that are ever disturbed, rounded up.
    pub share: f64,
    /// Probability that a request to one of them is.
    pub probability: f64,
    /// What a huge change is multiplied with.
    pub factor: f64,
    /// Seconds by which a straggler is late.
    pub delay: f64,
}

/// The faults of one run: which, and at which clients.
#[derive(Clone, Debug)]
pub struct FaultPlan {
    config: FaultsConfig,
    affected: BTreeSet<ClientId>,
    /// Arrays of a reply that are changes already.
    changes: &'static [&'static str],
    streams: Streams,
}

impl FaultPlan {
    /// The faults of K clients; `None` where no kind of fault, or no client, is to be disturbed. `changes` names the arrays
    /// of a reply that are changes already.
    pub fn new(
        config: FaultsConfig,
        clients: usize,
        changes: &'static [&'static str],
        streams: Streams,
    ) -> Option<Self> {
        let count = ((config.share * clients as f64).ceil() as usize).min(clients);
        if config.kinds.is_empty() || count == 0 {
            return None;
        }
        let mut rng = streams.rng(Purpose::Faults, 0, 0);
        let affected = rand::seq::index::sample(&mut rng, clients, count).into_iter().collect();
        Some(Self { config, affected, changes, streams })
    }

    /// The clients that are ever disturbed.
    pub fn affected(&self) -> impl Iterator<Item = ClientId> {
        self.affected.iter().copied()
    }

    /// The fault of this request, and a number that says where.
    fn fault(&self, request: &Request) -> Option<(Fault, usize)> {
        let kind = request.ask.kind();
        if !self.config.requests.contains(&kind) || !self.affected.contains(&request.client) {
            return None;
        }
        let faults: Vec<Fault> = self.config.kinds.iter().copied().filter(|fault| fault.happens_to(kind)).collect();
        if faults.is_empty() {
            return None;
        }
        let purpose = match kind {
            RequestKind::Training => Purpose::Faults,
            RequestKind::Question => Purpose::QuestionFaults,
            RequestKind::Scores => Purpose::ScoreFaults,
        };
        let mut rng = self.streams.rng(purpose, request.round, request.client);
        let mut draw = || (rng.random::<f64>(), rng.random::<u32>() as usize, rng.random::<u32>() as usize);
        let (hit, which, place) = (1..request.attempt).fold(draw(), |_, _| draw());
        (hit < self.config.probability).then(|| (faults[which % faults.len()], place))
    }
}

/// A fleet whose clients are disturbed.
#[derive(Debug)]
pub struct Faulty<F> {
    fleet: F,
    plan: FaultPlan,
    /// The first message of every affected client, for replays.
    first: Mutex<BTreeMap<ClientId, Message>>,
    events: Mutex<Vec<Event>>,
}

impl<F> Faulty<F> {
    /// Faults around a fleet.
    pub fn new(fleet: F, plan: FaultPlan) -> Self {
        Self { fleet, plan, first: Mutex::default(), events: Mutex::default() }
    }

    /// One reply with its fault.
    fn disturb(&self, request: &Request, reply: &mut Reply, (fault, place): (Fault, usize)) -> bool {
        let plan = &self.plan;
        let mut sent = |scale: f64| {
            for (name, array) in &mut reply.message.arrays {
                let origin = request.message.arrays.get(name).filter(|_| !plan.changes.contains(&name.as_str()));
                let origin = origin.map(|array| array.values.to_f64());
                scale_change(array, origin.as_deref(), scale);
            }
        };
        match fault {
            Fault::Dropout | Fault::LostReply | Fault::Duplicate | Fault::Reordered => {}
            Fault::Straggler => reply.seconds += plan.config.delay,
            Fault::Stale => reply.round -= 1,
            Fault::HugeNorm => sent(plan.config.factor),
            Fault::SignFlip => sent(-1.0),
            Fault::Nan => spoil(&mut reply.message, place, f64::NAN),
            Fault::Inf => spoil(&mut reply.message, place, f64::INFINITY),
            Fault::WrongShape => reply.message.arrays.values_mut().for_each(|array| array.shape.insert(0, 1)),
            Fault::WrongDtype => reply.message.arrays.values_mut().for_each(other_type),
            Fault::WrongN => reply.message.arrays.values_mut().for_each(one_row_more),
            Fault::Replay => {
                let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
                // A first reply has nothing to repeat.
                let Some(message) = first.get(&request.client) else {
                    first.insert(request.client, reply.message.clone());
                    return false;
                };
                reply.message = message.clone();
            }
        }
        true
    }
}

impl<F: Fleet> Fleet for Faulty<F> {
    fn dispatch(&self, requests: &[Request], watch: Watch) -> Vec<Result<Reply, RunError>> {
        let faults: BTreeMap<ClientId, (Fault, usize)> =
            requests.iter().filter_map(|request| Some((request.client, self.plan.fault(request)?))).collect();
        let fault_of = |client: ClientId| faults.get(&client).copied();
        let injected = |request: &Request, fault: Fault| {
            let event = Event::new(request.round, request.attempt, request.client, EventKind::Injected);
            let event = event.of_request(request.ask.kind());
            self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event.with_detail(fault.word()));
        };
        let (lost, reached): (Vec<_>, Vec<_>) =
            requests.iter().partition(|request| matches!(fault_of(request.client), Some((Fault::Dropout, _))));
        lost.iter().for_each(|request| injected(request, Fault::Dropout));
        let reached: Vec<Request> = reached.into_iter().cloned().collect();

        let (mut answers, mut behind) = (Vec::with_capacity(reached.len()), Vec::new());
        for answer in self.fleet.dispatch(&reached, watch) {
            let request = answer.as_ref().ok().and_then(|reply| reached.iter().find(|r| r.client == reply.client));
            let fault = request.and_then(|request| Some((request, fault_of(request.client)?)));
            let (mut reply, (request, fault)) = match (answer, fault) {
                (Ok(reply), Some(fault)) => (reply, fault),
                (answer, _) => {
                    answers.push(answer);
                    continue;
                }
            };
            if self.disturb(request, &mut reply, fault) {
                injected(request, fault.0);
            }
            match fault.0 {
                Fault::LostReply => {}
                Fault::Reordered => behind.push(Ok(reply)),
                Fault::Duplicate => answers.extend([Ok(reply.clone()), Ok(reply)]),
                _ => answers.push(Ok(reply)),
            }
        }
        answers.extend(behind);
        answers
    }

    fn at_once(&self) -> usize {
        self.fleet.at_once()
    }

    fn settle(&self, round: usize, counted: &[ClientId]) {
        self.fleet.settle(round, counted);
    }

    fn events(&self) -> Vec<Event> {
        let mut events = self.fleet.events();
        events.append(&mut self.events.lock().unwrap_or_else(PoisonError::into_inner));
        events
    }

    fn save(&self, client: ClientId) -> Result<State, RunError> {
        self.fleet.save(client)
    }

    fn restore(&self, client: ClientId, state: &State) -> Result<(), RunError> {
        self.fleet.restore(client, state)
    }

    fn save_own(&self) -> State {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        of_messages(&first).with_part(INNER, self.fleet.save_own())
    }

    fn restore_own(&self, state: &State) -> Result<(), RunError> {
        *self.first.lock().unwrap_or_else(PoisonError::into_inner) = to_messages(state)?;
        self.fleet.restore_own(&state.part(INNER))
    }
}

/// The part of the injector's state that is of the fleet around which it stands.
const INNER: &str = "inner";

/// Puts a value at some place of some array; without arrays, in the place of some number.
fn spoil(message: &mut Message, place: usize, value: f64) {
    if message.arrays.is_empty() {
        let count = message.scalars.len().max(1);
        message.scalars.values_mut().nth(place % count).into_iter().for_each(|number| *number = value);
    }
    let count = message.arrays.len().max(1);
    let Some(array) = message.arrays.values_mut().nth(place % count) else { return };
    let length = array.values.len().max(1);
    match &mut array.values {
        Values::F32(values) => values.get_mut(place / count % length).into_iter().for_each(|at| *at = value as f32),
        Values::F64(values) => values.get_mut(place / count % length).into_iter().for_each(|at| *at = value),
    }
}

fn other_type(array: &mut Array) {
    array.values = match &array.values {
        Values::F32(values) => Values::F64(values.iter().map(|value| f64::from(*value)).collect()),
        Values::F64(values) => Values::F32(values.iter().map(|value| *value as f32).collect()),
    };
}

fn one_row_more(array: &mut Array) {
    let rows = array.shape.first().copied().unwrap_or(0).max(1);
    let width = array.values.len() / rows;
    match &mut array.values {
        Values::F32(values) => values.extend_from_within(..width),
        Values::F64(values) => values.extend_from_within(..width),
    }
    array.shape.iter_mut().take(1).for_each(|rows| *rows += 1);
}
