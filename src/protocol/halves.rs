//! The two halves of an algorithm.

use super::message::{ClientId, Message, Question, Reply, Request};
use super::names::message_of;
use super::prediction::{Posterior, Predictor};
use crate::backend::Backend;
use crate::checkpoint::State;
use crate::error::RunError;
use crate::particles::Particles;

/// Called by a client with the number of local steps done and their total.
pub type Watch<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// The server's side of an algorithm.
pub trait ServerHalf<B: Backend>: Send {
    /// Begins a round with these clients.
    ///
    /// # Errors
    /// The algorithm cannot work with these clients.
    fn begin(&mut self, _round: usize, _clients: &[ClientId]) -> Result<(), RunError> {
        Ok(())
    }

    /// What every client is sent in a round, Θ with what belongs to it: encoded once, whoever is asked.
    ///
    /// # Errors
    /// The device does not answer.
    fn configure(&self, round: usize) -> Result<Message, RunError>;

    /// What one client is sent instead; `None` where it is sent what all are.
    ///
    /// # Errors
    /// The device does not answer, or there is nothing for this client.
    fn configure_for(&self, _round: usize, _client: ClientId) -> Result<Option<Message>, RunError> {
        Ok(None)
    }

    /// A client is asked in the place of another one that gave no usable reply.
    fn substitute(&mut self, _absent: ClientId, _by: ClientId) {}

    /// The algorithm's own check of a reply, beside those that hold for all algorithms.
    ///
    /// # Errors
    /// A sentence that says why the reply cannot be used.
    fn check(&self, _reply: &Reply) -> Result<(), String> {
        Ok(())
    }

    /// Takes the validated replies of a round, in the order of selection.
    ///
    /// # Errors
    /// A reply cannot be read, a computation diverges, or the device does not answer.
    fn aggregate(&mut self, replies: Vec<Reply>) -> Result<(), RunError>;

    /// The global particles Θ: what predictions are made with.
    fn particles(&self) -> &Particles<B>;

    /// What every client is sent to predict with: Θ.
    ///
    /// # Errors
    /// The device does not answer.
    fn publish(&self) -> Result<Message, RunError> {
        message_of(self.particles())
    }

    /// q as a density over θ, where it is more than its particles.
    fn posterior(&self) -> Posterior {
        Posterior::Particles
    }

    /// What the server noticed in the last round, by name; columns of `rounds.csv` where `experiment::diagnosis` has them.
    fn numbers(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    /// Bytes of what the server keeps between rounds.
    fn state_bytes(&self) -> u64 {
        self.particles().bytes()
    }

    /// What it needs to go on after a break: all that rounds change and that does not follow from the rest.
    ///
    /// # Errors
    /// The device does not answer.
    fn save(&self) -> Result<State, RunError>;

    /// Takes over what [`Self::save`] of a half that was built alike has returned.
    ///
    /// # Errors
    /// The state is not one of such a half.
    fn restore(&mut self, state: &State) -> Result<(), RunError>;
}

/// A client's side of an algorithm.
pub trait ClientHalf<B: Backend>: Send {
    /// Does the client's part of a round.
    ///
    /// # Errors
    /// The request cannot be read, a computation diverges, or the device does not answer.
    fn handle(&mut self, request: &Request, watch: Watch) -> Result<Message, RunError>;

    /// With what this client predicts on its own rows, given what the server published; leaves the client as it was.
    ///
    /// # Errors
    /// What was published cannot be read, or the device does not answer.
    fn predictor(&mut self, _published: &Request) -> Result<Predictor<B>, RunError> {
        Ok(Predictor::Published)
    }

    /// Answers a question about the particles in the request; leaves the client as it was.
    ///
    /// # Errors
    /// The algorithm has no answer to this question, or the device does not answer.
    fn answer(&mut self, _request: &Request, _question: &Question) -> Result<Message, RunError> {
        Err(RunError::Config("this algorithm's clients have no tilted density to be asked about".into()))
    }

    /// Bytes of what the client keeps between rounds, its rows apart.
    fn state_bytes(&self) -> u64 {
        0
    }

    /// What it needs to go on after a break, or as if its last visit had not been: all that rounds change and that does
    /// not follow from the rest.
    ///
    /// # Errors
    /// The device does not answer.
    fn save(&self) -> Result<State, RunError>;

    /// Takes over what [`Self::save`] of a half that was built alike has returned.
    ///
    /// # Errors
    /// The state is not one of such a half.
    fn restore(&mut self, state: &State) -> Result<(), RunError>;
}

/// Both sides, ready to run.
pub struct Halves<B: Backend> {
    /// The server.
    pub server: Box<dyn ServerHalf<B>>,
    /// The clients, by id.
    pub clients: Vec<Box<dyn ClientHalf<B>>>,
}
