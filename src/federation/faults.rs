//! A fault injector: a fleet that wraps another fleet and disturbs the requests and replies of some clients.
//!
//! Training requests are disturbed and, if so configured, questions and requests for scores; the clients' states are
//! not. The fault of a request depends only on the run's seed and on (kind of request, round, client, attempt): the
//! faults are the same at any number of threads, and in a run that was resumed. The injector does not wait: a
//! straggler's delay is added to the seconds in its reply.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use rand::RngExt;

use super::combine::scale_change;
use super::event::{Event, EventKind};
use super::fleet::Fleet;
use super::saved::{of_messages, to_messages};
use crate::array::{Array, Values};
use crate::checkpoint::State;
use crate::datasets::share::rounded_up;
use crate::error::RunError;
use crate::protocol::{Ask, ClientId, Message, Reply, Request, RequestKind, Watch};
use crate::random::{Purpose, Streams};

fedstein_schema::words! {
    /// A fault of a request or its reply.
    pub enum Fault {
        /// The request does not reach the client.
        Dropout = "dropout",
        /// The reply arrives late.
        Straggler = "straggler",
        /// The reply arrives twice.
        Duplicate = "duplicate",
        /// The reply arrives after those of the other clients.
        Reordered = "reordered",
        /// The reply belongs to the round before.
        Stale = "stale",
        /// One element is NaN.
        Nan = "nan",
        /// One element is infinite.
        Inf = "inf",
        /// The arrays have one axis too many.
        WrongShape = "wrong-shape",
        /// The arrays have the other floating point type.
        WrongDtype = "wrong-dtype",
        /// The arrays have one row too many.
        WrongN = "wrong-n",
        /// The change is multiplied by a large factor.
        HugeNorm = "huge-norm",
        /// The change has the opposite sign.
        SignFlip = "sign-flip",
        /// The reply has the content of the client's first disturbed reply, with the numbers of this round.
        Replay = "replay",
        /// The client handles the request, but its reply does not arrive.
        LostReply = "lost-reply",
    }
}

impl Fault {
    /// Whether the fault applies to a request of this kind; faults of a change apply to training only.
    fn applies_to(self, request: RequestKind) -> bool {
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
}

/// The settings of the fault injector.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultSettings {
    /// The faults, of which each disturbed request gets one with equal probability. Without any, there are no faults.
    pub kinds: Vec<Fault>,
    /// The kinds of requests that are disturbed.
    pub requests: Vec<RequestKind>,
    /// The share of the clients whose requests are disturbed; their number is rounded up.
    pub share: f64,
    /// The probability that a request to one of these clients is disturbed.
    pub probability: f64,
    /// The factor of [`Fault::HugeNorm`].
    pub factor: f64,
    /// The delay of [`Fault::Straggler`] in seconds.
    pub delay: f64,
}

/// The faults of one run and the clients that they affect.
#[derive(Clone, Debug)]
pub struct FaultPlan {
    settings: FaultSettings,
    affected: BTreeSet<ClientId>,
    /// The arrays of a reply that are changes, rather than new values of the arrays that were sent.
    changes: &'static [&'static str],
    streams: Streams,
}

impl FaultPlan {
    /// The faults of K clients; `None` for settings without faults or without affected clients. `changes` names the
    /// arrays of a reply that are changes, rather than new values of the arrays that were sent.
    pub fn new(
        settings: FaultSettings,
        clients: usize,
        changes: &'static [&'static str],
        streams: Streams,
    ) -> Option<Self> {
        let count = rounded_up(settings.share, clients).min(clients);
        if settings.kinds.is_empty() || count == 0 {
            return None;
        }
        let mut rng = streams.rng(Purpose::Faults, 0, 0);
        let affected = rand::seq::index::sample(&mut rng, clients, count).into_iter().collect();
        Some(Self { settings, affected, changes, streams })
    }

    /// The clients whose requests may be disturbed.
    pub fn affected(&self) -> impl Iterator<Item = ClientId> {
        self.affected.iter().copied()
    }

    /// The fault of this request and the position of the element that it changes.
    fn fault(&self, request: &Request) -> Option<(Fault, usize)> {
        let kind = request.ask.kind();
        // The questions about calibration rows, after the last round, are no request for scores of a round.
        if matches!(request.ask, Ask::Calibrate(_)) {
            return None;
        }
        if !self.settings.requests.contains(&kind) || !self.affected.contains(&request.client) {
            return None;
        }
        let faults: Vec<Fault> = self.settings.kinds.iter().copied().filter(|fault| fault.applies_to(kind)).collect();
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
        (hit < self.settings.probability).then(|| (faults[which % faults.len()], place))
    }
}

/// A fleet whose requests and replies are disturbed.
#[derive(Debug)]
pub struct Faulty<F> {
    fleet: F,
    plan: FaultPlan,
    /// The first disturbed reply of every affected client, for replays.
    first: Mutex<BTreeMap<ClientId, Message>>,
    events: Mutex<Vec<Event>>,
}

impl<F> Faulty<F> {
    /// Wraps a fleet.
    pub fn new(fleet: F, plan: FaultPlan) -> Self {
        Self { fleet, plan, first: Mutex::default(), events: Mutex::default() }
    }

    /// Applies a fault to a reply. Returns whether the reply was disturbed.
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
            Fault::Straggler => reply.seconds += plan.settings.delay,
            Fault::Stale => reply.round -= 1,
            Fault::HugeNorm => sent(plan.settings.factor),
            Fault::SignFlip => sent(-1.0),
            Fault::Nan => spoil(&mut reply.message, place, f64::NAN),
            Fault::Inf => spoil(&mut reply.message, place, f64::INFINITY),
            Fault::WrongShape => reply.message.arrays.values_mut().for_each(|array| array.shape.insert(0, 1)),
            Fault::WrongDtype => reply.message.arrays.values_mut().for_each(other_type),
            Fault::WrongN => reply.message.arrays.values_mut().for_each(one_row_more),
            Fault::Replay => {
                let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
                // The first reply is kept and not disturbed.
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

/// The part of the injector's state that belongs to the wrapped fleet.
const INNER: &str = "inner";

/// Replaces one element of one array by a value; in a message without arrays, one of its numbers.
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
