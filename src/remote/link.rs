//! Numbered messages over a carrier: an answer has the number of the message that it answers.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::carrier::{Arrival, Carrier, Lost, Peer};
use super::envelope::{Arrays, Content, Opened, open, seal};
use super::parcel::{Limits, Parcel};

/// The number of bytes of arrays that an answer may have in any case: the curvature of a wide layer does not depend on what
/// was sent.
const ANSWER: u64 = 64 << 20;
/// How often an answer may be as large as what it answers.
const TIMES: u64 = 4;
/// How often a message is sent again to a site that went away.
const TRIES: usize = 5;
/// The longest time between two looks at the clock.
const LOOK: Duration = Duration::from_millis(200);

/// A message that is not answered yet.
#[derive(Debug)]
struct Open {
    to: Peer,
    parcel: Parcel,
    sent: Instant,
    /// How often it has been sent again, because the site went away.
    again: usize,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// The site.
    pub from: Peer,
    /// The number of the message that is answered.
    pub number: u64,
    /// The seconds from the message to the answer.
    pub seconds: f64,
    /// The answer; or why there is none, in a sentence.
    pub what: Result<Opened, String>,
}

/// The server's side of a carrier during one run.
pub struct Link<'a> {
    carrier: &'a dyn Carrier,
    /// The number of the run.
    pub run: u64,
    next: Cell<u64>,
    open: RefCell<BTreeMap<u64, Open>>,
    /// The sites that have answered.
    answered: RefCell<BTreeSet<Peer>>,
}

impl<'a> Link<'a> {
    /// A link for the run of this number.
    pub fn new(carrier: &'a dyn Carrier, run: u64) -> Self {
        Self { carrier, run, next: Cell::new(1), open: RefCell::default(), answered: RefCell::default() }
    }

    /// The carrier.
    pub fn carrier(&self) -> &dyn Carrier {
        self.carrier
    }

    /// Sends a message, and returns its number.
    ///
    /// # Errors
    /// The site cannot be reached. The error is a sentence.
    pub fn send(&self, to: Peer, content: Content, arrays: &Arrays) -> Result<u64, String> {
        let number = self.next.replace(self.next.get() + 1);
        let parcel = seal(self.run, number, content, arrays)?;
        self.carrier.send(to, &parcel, limits(&parcel))?;
        self.open.borrow_mut().insert(number, Open { to, parcel, sent: Instant::now(), again: 0 });
        Ok(number)
    }

    /// The answers that arrive before the deadline, until none of these messages is open. Answers to other messages are
    /// among them; an answer to none is dropped. Messages without an answer stay open.
    pub fn collect(&self, awaited: &[u64], deadline: Option<Instant>) -> Vec<Answer> {
        let mut answers = Vec::new();
        let waits = || awaited.iter().any(|number| self.open.borrow().contains_key(number));
        while waits() {
            let left = deadline.map_or(LOOK, |deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                break;
            }
            for arrival in self.carrier.receive(left.min(LOOK)) {
                answers.extend(self.arrived(arrival));
            }
        }
        answers
    }

    /// The answers of an arrival: one, or one without content for each message that is lost.
    fn arrived(&self, Arrival { from, what }: Arrival) -> Vec<Answer> {
        let lost = |reason| Lost { reason, was_killed: false };
        let opened = match what.and_then(|parcel| open(parcel).map_err(lost)) {
            Ok(opened) => opened,
            Err(lost) => return self.lost(from, &lost),
        };
        let number = opened.number;
        let is_of = |message: &Open| message.to == from;
        if !self.open.borrow().get(&number).is_some_and(is_of) {
            return Vec::new();
        }
        let Some(Open { sent, .. }) = self.open.borrow_mut().remove(&number) else { return Vec::new() };
        self.answered.borrow_mut().insert(from);
        let what = match opened.content {
            Content::Failure { reason } => Err(super::shown(&reason)),
            _ if opened.run != self.run => {
                Err(format!("it speaks of run {:016x}, not of {:016x}", opened.run, self.run))
            }
            _ => Ok(opened),
        };
        vec![Answer { from, number, seconds: sent.elapsed().as_secs_f64(), what }]
    }

    /// Sends the open messages of a site that went away again, if it has ever answered or was ended from outside: else its own
    /// file is wrong. Those that it cannot be sent have no answer.
    fn lost(&self, from: Peer, Lost { reason, was_killed }: &Lost) -> Vec<Answer> {
        let mut open = self.open.borrow_mut();
        let mut answers = Vec::new();
        open.retain(|number, message| {
            if message.to != from {
                return true;
            }
            message.again += 1;
            let sent_again = message.again <= TRIES
                && (*was_killed || self.answered.borrow().contains(&from))
                && self.carrier.send(from, &message.parcel, limits(&message.parcel)).is_ok();
            if !sent_again {
                let seconds = message.sent.elapsed().as_secs_f64();
                answers.push(Answer { from, number: *number, seconds, what: Err(reason.clone()) });
            }
            sent_again
        });
        answers
    }
}

fn limits(parcel: &Parcel) -> Limits {
    Limits::of(TIMES.saturating_mul(parcel.bytes()).saturating_add(ANSWER))
}
