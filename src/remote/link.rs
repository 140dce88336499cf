//! Numbered messages over a carrier: an answer has the number of the message that it answers.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::carrier::{Arrival, Carrier, Lost, Peer};
use super::envelope::{Arrays, Content, Opened, open, seal};
use super::parcel::{Limits, Parcel};
use crate::error::RunError;

/// The number of bytes of arrays that an answer may have in any case: the curvature of a wide layer does not depend on what
/// was sent.
const ANSWER: u64 = 64 << 20;
/// How often an answer may be as large as what it answers.
const TIMES: u64 = 4;
/// How often a message is sent again to a site that went away.
const TRIES: usize = 5;
/// The number of the first message of a second link of a run. A run has fewer messages.
const LATER: u64 = 1 << 40;
/// The longest time between two looks at the clock.
const LOOK: Duration = Duration::from_millis(200);

/// A message that is not answered yet.
#[derive(Debug)]
struct Open {
    to: Peer,
    /// The message, as long as it is the last one to this site: what the server asked before that, it does not wait for any
    /// more.
    parcel: Option<Parcel>,
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

    /// Another link of the same run, for messages after all those of this one.
    pub fn after(&self) -> Self {
        let link = Self::new(self.carrier, self.run);
        link.next.set(LATER);
        link
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
        let mut open = self.open.borrow_mut();
        open.values_mut().filter(|message| message.to == to).for_each(|message| message.parcel = None);
        open.insert(number, Open { to, parcel: Some(parcel), sent: Instant::now(), again: 0 });
        Ok(number)
    }

    /// How many of these messages are not answered yet.
    pub fn open(&self, numbers: &[u64]) -> usize {
        let open = self.open.borrow();
        numbers.iter().filter(|number| open.contains_key(number)).count()
    }

    /// The answers that arrive before the deadline, until none of these messages is open, and as long as the wait `goes_on`,
    /// which is asked several times a second. Answers to other messages are among them; an answer to none is dropped.
    /// Messages without an answer stay open.
    ///
    /// # Errors
    /// The carrier delivers nothing any more.
    pub fn collect(
        &self,
        awaited: &[u64],
        deadline: Option<Instant>,
        mut goes_on: impl FnMut() -> bool,
    ) -> Result<Vec<Answer>, RunError> {
        let mut answers = Vec::new();
        while self.open(awaited) > 0 && self.carrier.closed().is_none() {
            let left = deadline.map_or(LOOK, |deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_zero() || !goes_on() {
                break;
            }
            for arrival in self.carrier.receive(left.min(LOOK)) {
                answers.extend(self.arrived(arrival));
            }
        }
        match self.carrier.closed() {
            Some(reason) => Err(RunError::Disconnected(reason)),
            None => Ok(answers),
        }
    }

    /// The answers of an arrival: at most one.
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

    /// Sends the last message to a site that went away again, if it has ever answered or was ended from outside: else its own
    /// file is wrong. If it cannot be sent, its answer is the reason. Earlier messages to the site are closed.
    fn lost(&self, from: Peer, Lost { reason, was_killed }: &Lost) -> Vec<Answer> {
        let mut open = self.open.borrow_mut();
        let mut answers = Vec::new();
        open.retain(|number, message| {
            if message.to != from {
                return true;
            }
            let Some(parcel) = &message.parcel else { return false };
            message.again += 1;
            let sent_again = message.again <= TRIES
                && (*was_killed || self.answered.borrow().contains(&from))
                && self.carrier.send(from, parcel, limits(parcel)).is_ok();
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

#[cfg(test)]
mod tests {
    use std::mem::take;

    use super::*;
    use crate::remote::seal_failure;

    const RUN: u64 = 7;

    /// A carrier that keeps what it is sent, and hands over what a test puts into it.
    #[derive(Default)]
    struct Desk {
        sent: RefCell<Vec<Parcel>>,
        arriving: RefCell<Vec<Arrival>>,
        /// The error of every further message.
        refuses: Cell<Option<&'static str>>,
        /// Why nothing is delivered any more.
        closed: Cell<Option<&'static str>>,
    }

    impl Carrier for Desk {
        fn peers(&self) -> usize {
            2
        }

        fn name(&self, peer: Peer) -> String {
            peer.to_string()
        }

        fn send(&self, _: Peer, parcel: &Parcel, _: Limits) -> Result<(), String> {
            if let Some(reason) = self.refuses.get() {
                return Err(reason.into());
            }
            self.sent.borrow_mut().push(parcel.clone());
            Ok(())
        }

        fn receive(&self, _: Duration) -> Vec<Arrival> {
            take(&mut self.arriving.borrow_mut())
        }

        fn closed(&self) -> Option<String> {
            self.closed.get().map(ToOwned::to_owned)
        }
    }

    impl Desk {
        fn arrives(&self, from: Peer, what: Result<Parcel, Lost>) {
            self.arriving.borrow_mut().push(Arrival { from, what });
        }

        /// The process of site 0 ends, which was killed or ended itself.
        fn ends(&self, was_killed: bool) {
            self.arrives(0, Err(Lost { reason: "it ended".into(), was_killed }));
        }

        /// The numbers of the messages that were sent since this was last asked.
        fn numbers(&self) -> Vec<u64> {
            take(&mut *self.sent.borrow_mut()).into_iter().map(|parcel| open(parcel).unwrap().number).collect()
        }
    }

    /// The answer of a site to the message of this number.
    fn answer(number: u64) -> Parcel {
        seal(RUN, number, Content::Ready { visited: 0 }, &Arrays::default()).unwrap()
    }

    fn ask(link: &Link<'_>) -> u64 {
        link.send(0, Content::Describe {}, &Arrays::default()).unwrap()
    }

    fn collect(link: &Link<'_>, awaited: &[u64], deadline: Option<Instant>) -> Result<Vec<Answer>, RunError> {
        link.collect(awaited, deadline, || true)
    }

    /// A moment that comes soon: what has arrived is read, nothing is waited for.
    fn soon() -> Option<Instant> {
        Some(Instant::now() + Duration::from_millis(5))
    }

    #[test]
    fn a_late_answer_is_handed_over_once_and_that_to_no_message_never() {
        let desk = Desk::default();
        let link = Link::new(&desk, RUN);
        let late = ask(&link);
        assert!(collect(&link, &[late], soon()).unwrap().is_empty());
        let next = ask(&link);
        desk.arrives(0, Ok(answer(99)));
        desk.arrives(1, Ok(answer(next)));
        desk.arrives(0, Ok(answer(late)));
        desk.arrives(0, Ok(answer(late)));
        desk.arrives(0, Ok(seal_failure(RUN, br#"{"number":99}"#, "no".into())));
        desk.arrives(0, Ok(answer(next)));
        let numbers: Vec<u64> =
            collect(&link, &[next], None).unwrap().into_iter().map(|answer| answer.number).collect();
        assert_eq!(numbers, [late, next]);
    }

    #[test]
    fn only_the_last_message_is_sent_again_and_only_so_often() {
        let desk = Desk::default();
        let link = Link::new(&desk, RUN);
        let (early, last) = (ask(&link), ask(&link));
        assert_eq!(desk.numbers(), [early, last]);
        for _ in 0..TRIES {
            desk.ends(true);
            assert!(collect(&link, &[last], soon()).unwrap().is_empty());
            assert_eq!(desk.numbers(), [last]);
        }
        // The earlier message is closed: its answer is of no use any more.
        desk.arrives(0, Ok(answer(early)));
        desk.ends(true);
        let answers = collect(&link, &[last], None).unwrap();
        assert!(
            matches!(&answers[..], [Answer { number, what: Err(reason), .. }] if *number == last && reason == "it ended")
        );
        assert!(desk.numbers().is_empty());
    }

    #[test]
    fn a_site_that_ends_itself_before_it_has_answered_is_not_started_again() {
        let desk = Desk::default();
        let link = Link::new(&desk, RUN);
        let first = ask(&link);
        desk.ends(false);
        assert!(matches!(&collect(&link, &[first], None).unwrap()[..], [Answer { what: Err(_), .. }]));
        let second = ask(&link);
        desk.arrives(0, Ok(answer(second)));
        assert!(matches!(&collect(&link, &[second], None).unwrap()[..], [Answer { what: Ok(_), .. }]));
        let third = ask(&link);
        desk.numbers();
        desk.ends(false);
        assert!(collect(&link, &[third], soon()).unwrap().is_empty());
        assert_eq!(desk.numbers(), [third]);
        desk.refuses.set(Some("its machine is off"));
        desk.ends(false);
        assert!(matches!(&collect(&link, &[third], None).unwrap()[..], [Answer { what: Err(_), .. }]));
    }

    #[test]
    fn when_nothing_is_delivered_any_more_waiting_ends_and_no_answer_counts() {
        let desk = Desk::default();
        let link = Link::new(&desk, RUN);
        let (answered, unanswered) = (ask(&link), ask(&link));
        desk.arrives(0, Ok(answer(answered)));
        desk.closed.set(Some("the run was stopped"));
        for awaited in [vec![answered], vec![answered, unanswered]] {
            let error = collect(&link, &awaited, None).unwrap_err();
            assert!(matches!(error, RunError::Disconnected(reason) if reason == "the run was stopped"));
        }
    }
}
