//! A client of this process, whose visits count as a whole or not at all.
//!
//! From a visit on until it is known whether its reply was aggregated, the client keeps what it was before the visit and
//! what it replied. The same request then has the same reply, without a step; and a visit that did not count is taken
//! back. Whether it did is told by the end of the round ([`Client::settle`]) or by the next request
//! ([`Request::counted`]), whichever comes first. A visit that fails leaves the client as it was.

use super::fleet::{CLIENT_BYTES, Watch};
use super::message::{Reply, Request};
use crate::algorithm::ClientHalf;
use crate::backend::Backend;
use crate::checkpoint::State;
use crate::error::RunError;

/// A half and its last visit, while it is open.
pub(super) struct Client<B: Backend> {
    half: Box<dyn ClientHalf<B>>,
    visit: Option<Visit>,
}

/// A visit of which it is not known whether it counts.
struct Visit {
    /// The half's state before it.
    before: State,
    reply: Reply,
}

impl Visit {
    /// Whether this is the request that it answered: training for the same state in the same round of the same run.
    fn answers(&self, request: &Request) -> bool {
        let Reply { run, round, state, .. } = self.reply;
        (run, round, state) == (request.run, request.round, request.state)
    }
}

impl<B: Backend> Client<B> {
    /// A client that has not been visited since its half was built or restored.
    pub fn new(half: Box<dyn ClientHalf<B>>) -> Self {
        Self { half, visit: None }
    }

    /// The client's part of a round.
    pub fn train(&mut self, request: &Request, watch: Watch) -> Result<Reply, RunError> {
        if let Some(visit) = self.visit.as_ref().filter(|visit| visit.answers(request)) {
            return Ok(visit.reply.clone());
        }
        let before = self.half(request)?.save()?;
        match self.half.handle(request, watch) {
            Ok(message) => {
                let reply = request.reply(message.with_scalar(CLIENT_BYTES, self.half.state_bytes() as f64));
                self.visit = Some(Visit { before, reply: reply.clone() });
                Ok(reply)
            }
            Err(error) => {
                self.half.restore(&before)?;
                Err(error)
            }
        }
    }

    /// The half as this request finds it: without the last visit, unless the request says that it counted.
    pub fn half(&mut self, request: &Request) -> Result<&mut dyn ClientHalf<B>, RunError> {
        if let Some(Visit { reply, .. }) = &self.visit {
            self.close((request.run, request.counted) == (reply.run, reply.round))?;
        }
        Ok(&mut *self.half)
    }

    /// A round is over: its visit counted, or is taken back.
    pub fn settle(&mut self, round: usize, counts: bool) -> Result<(), RunError> {
        match &self.visit {
            Some(visit) if visit.reply.round == round => self.close(counts),
            _ => Ok(()),
        }
    }

    /// What the half keeps between rounds; of an open visit nothing.
    pub fn save(&self) -> Result<State, RunError> {
        match &self.visit {
            Some(visit) => Ok(visit.before.clone()),
            None => self.half.save(),
        }
    }

    /// Gives the half what it kept.
    pub fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.visit = None;
        self.half.restore(state)
    }

    fn close(&mut self, counts: bool) -> Result<(), RunError> {
        // Where it cannot be taken back it stays open: the next request tries again, and says why it fails.
        if let Some(visit) = self.visit.as_ref().filter(|_| !counts) {
            self.half.restore(&visit.before)?;
        }
        self.visit = None;
        Ok(())
    }
}
