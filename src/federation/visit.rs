//! A client of this process whose training visits count entirely or not at all.
//!
//! After a visit, the client keeps its state before the visit and its reply until it learns whether the reply was
//! aggregated. Until then, the same request gets the same reply without further training. If the reply was not
//! aggregated, the visit is rolled back. The client learns this at the end of the round ([`Client::settle`]) or from
//! the next request ([`Request::counted`]), whichever comes first. A visit that fails leaves the client unchanged.

use crate::checkpoint::State;
use crate::error::RunError;
use crate::protocol::{CLIENT_BYTES, ClientHalf, Reply, Request, Watch};

/// A client half, and its last visit while it is open.
pub(super) struct Client {
    half: Box<dyn ClientHalf>,
    visit: Option<OpenVisit>,
    /// Whether a visit has begun since the half was built or restored.
    has_changed: bool,
}

/// A visit whose reply may or may not be aggregated.
struct OpenVisit {
    /// The half's state before the visit.
    before: State,
    reply: Reply,
}

impl OpenVisit {
    /// Whether this is the request of the visit: training for the same state in the same round of the same run.
    fn answers(&self, request: &Request) -> bool {
        let Reply { run, round, state, .. } = self.reply;
        (run, round, state) == (request.run, request.round, request.state)
    }
}

impl Client {
    /// A client without an open visit.
    pub fn new(half: Box<dyn ClientHalf>) -> Self {
        Self { half, visit: None, has_changed: false }
    }

    /// Handles a training request.
    ///
    /// # Errors
    /// The half fails. Its state is then the one before the request.
    pub fn train(&mut self, request: &Request, watch: Watch) -> Result<Reply, RunError> {
        if let Some(visit) = self.visit.as_ref().filter(|visit| visit.answers(request)) {
            return Ok(visit.reply.clone());
        }
        let before = self.half(request)?.save()?;
        self.has_changed = true;
        match self.half.handle(request, watch) {
            Ok(message) => {
                let reply = request.reply(message.with_scalar(CLIENT_BYTES, self.half.state_bytes() as f64));
                self.visit = Some(OpenVisit { before, reply: reply.clone() });
                Ok(reply)
            }
            Err(error) => {
                self.half.restore(&before)?;
                Err(error)
            }
        }
    }

    /// The half for this request. The last visit is rolled back, unless the request says that its reply was aggregated.
    ///
    /// # Errors
    /// The last visit cannot be rolled back.
    pub fn half(&mut self, request: &Request) -> Result<&mut dyn ClientHalf, RunError> {
        if let Some(OpenVisit { reply, .. }) = &self.visit {
            self.close((request.run, request.counted) == (reply.run, reply.round))?;
        }
        Ok(&mut *self.half)
    }

    /// Whether a visit is open.
    pub fn is_visited(&self) -> bool {
        self.visit.is_some()
    }

    /// Whether a visit has begun since the half was built or restored.
    pub fn has_changed(&self) -> bool {
        self.has_changed
    }

    /// The bytes that the half keeps between rounds.
    pub fn state_bytes(&self) -> u64 {
        self.half.state_bytes()
    }

    /// Closes the visit of a round: its reply was aggregated, or the visit is rolled back.
    ///
    /// # Errors
    /// The visit cannot be rolled back; it stays open.
    pub fn settle(&mut self, round: usize, counts: bool) -> Result<(), RunError> {
        match &self.visit {
            Some(visit) if visit.reply.round == round => self.close(counts),
            _ => Ok(()),
        }
    }

    /// The state of the half between rounds, without an open visit.
    ///
    /// # Errors
    /// The device does not answer.
    pub fn save(&self) -> Result<State, RunError> {
        match &self.visit {
            Some(visit) => Ok(visit.before.clone()),
            None => self.half.save(),
        }
    }

    /// Restores the half's state.
    ///
    /// # Errors
    /// The state does not belong to this half.
    pub fn restore(&mut self, state: &State) -> Result<(), RunError> {
        (self.visit, self.has_changed) = (None, false);
        self.half.restore(state)
    }

    fn close(&mut self, counts: bool) -> Result<(), RunError> {
        // A visit that cannot be rolled back stays open: the next request tries again and reports the reason.
        if let Some(visit) = self.visit.as_ref().filter(|_| !counts) {
            self.half.restore(&visit.before)?;
        }
        self.visit = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Ask, Message, Predictor};

    /// Counts its visits. A visit in a round whose number ends in 3 fails after its state has changed.
    struct Counter(usize);

    impl ClientHalf for Counter {
        fn handle(&mut self, request: &Request, _: Watch) -> Result<Message, RunError> {
            self.0 += 1;
            match request.round % 10 {
                3 => Err(RunError::Config("it diverged".into())),
                _ => Ok(Message::default().with_scalar("visits", self.0 as f64)),
            }
        }

        fn save(&self) -> Result<State, RunError> {
            Ok(State::default().with_count("visits", self.0))
        }

        fn restore(&mut self, state: &State) -> Result<(), RunError> {
            self.0 = state.count("visits")?;
            Ok(())
        }
    }

    fn request(round: usize, counted: usize) -> Request {
        Request { counted, ..Request::new(round, 0, Ask::Train, Message::default().with_scalar("round", round as f64)) }
    }

    /// The number of visits in the reply to a request; `None` if the visit fails.
    fn visits(client: &mut Client, request: &Request) -> Option<f64> {
        client.train(request, &|_, _| {}).ok().map(|reply| reply.message.scalars["visits"])
    }

    fn client() -> Client {
        Client::new(Box::new(Counter(0)))
    }

    fn kept(client: &Client) -> usize {
        client.save().unwrap().count("visits").unwrap()
    }

    #[test]
    fn a_visit_that_fails_leaves_the_client_as_it_was() {
        let mut client = client();
        assert_eq!(visits(&mut client, &request(3, 0)), None);
        assert_eq!((kept(&client), visits(&mut client, &request(4, 0))), (0, Some(1.0)));
        // The visit fails after one whose reply was aggregated, and after one whose reply was not.
        assert_eq!(visits(&mut client, &request(13, 4)), None);
        assert_eq!((kept(&client), visits(&mut client, &request(14, 4))), (1, Some(2.0)));
        assert_eq!(visits(&mut client, &request(23, 4)), None);
        assert_eq!(kept(&client), 1);
    }

    #[test]
    fn the_same_request_has_the_same_reply_and_any_other_request_is_a_visit() {
        let mut client = client();
        let first = request(1, 0);
        assert_eq!([visits(&mut client, &first), visits(&mut client, &first)], [Some(1.0); 2]);
        let again = Request { attempt: 2, ..first.clone() };
        assert_eq!(visits(&mut client, &again), Some(1.0));
        // With another state, run or round, the visit before is rolled back.
        for other in [Request { state: 5, ..first.clone() }, Request { run: 5, ..first.clone() }, request(2, 0)] {
            assert_eq!((visits(&mut client, &other), kept(&client)), (Some(1.0), 0));
        }
        assert_eq!(visits(&mut client, &request(3 + 1, 2)), Some(2.0));
    }

    #[test]
    fn the_end_of_a_round_or_the_next_request_says_whether_a_visit_counts() {
        for (settled, counted, want) in [(Some(true), 1, 1), (Some(false), 0, 0), (None, 1, 1), (None, 0, 0)] {
            let mut client = client();
            visits(&mut client, &request(1, 0));
            if let Some(counts) = settled {
                client.settle(1, counts).unwrap();
                assert_eq!(kept(&client), want);
                assert!(client.visit.is_none(), "nothing is kept twice");
            }
            let question = request(2, counted);
            assert!(matches!(client.half(&question).unwrap().predictor(&question), Ok(Predictor::Published)));
            assert_eq!((kept(&client), client.visit.is_none()), (want, true));
        }
        let mut client = client();
        visits(&mut client, &request(1, 0));
        client.settle(9, true).unwrap();
        assert_eq!(visits(&mut client, &request(2, 0)), Some(1.0), "that was another round");
    }

    #[test]
    fn a_restored_client_has_no_open_visit() {
        let mut client = client();
        visits(&mut client, &request(1, 0));
        client.restore(&State::default().with_count("visits", 7)).unwrap();
        assert_eq!(visits(&mut client, &request(2, 0)), Some(8.0));
    }
}
