//! The two halves of an algorithm.

use super::message::{ClientId, Message, Question, Reply, Request};
use super::packing::message_of;
use super::prediction::{Posterior, Predictor};
use crate::checkpoint::State;
use crate::error::RunError;
use crate::particles::Particles;

/// Called by a client with the number of local steps done and their total.
pub type Watch<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// The server half of an algorithm.
pub trait ServerHalf: Send {
    /// Sets the factor of the server's own step size from now on, as `[lr_schedule]` has it. It is called before
    /// [`Self::begin`]; a server without steps of its own has no use for it.
    fn set_step_factor(&mut self, _factor: f64) {}

    /// Begins a round with the selected clients.
    ///
    /// # Errors
    /// The algorithm cannot work with these clients.
    fn begin(&mut self, _round: usize, _clients: &[ClientId]) -> Result<(), RunError> {
        Ok(())
    }

    /// The message that every client receives in a round. It is built once per round.
    ///
    /// # Errors
    /// The device does not answer.
    fn configure(&self, round: usize) -> Result<Message, RunError>;

    /// The message for a single client in place of [`Self::configure`]'s; `None` for a client without a message of its
    /// own.
    ///
    /// # Errors
    /// The device does not answer, or this client has no part in the round.
    fn configure_for(&self, _round: usize, _client: ClientId) -> Result<Option<Message>, RunError> {
        Ok(None)
    }

    /// The message of a question to a single client; `None` for that of [`Self::configure`]. By default it is that of a visit.
    ///
    /// # Errors
    /// As [`Self::configure_for`].
    fn question_for(&self, round: usize, client: ClientId, _question: &Question) -> Result<Option<Message>, RunError> {
        self.configure_for(round, client)
    }

    /// Replaces a client of the round that gave no usable reply by another one.
    fn substitute(&mut self, _absent: ClientId, _by: ClientId) {}

    /// Checks a reply by the algorithm's own rules, in addition to the checks for all algorithms.
    ///
    /// # Errors
    /// A sentence that says why the reply cannot be used.
    fn check(&self, _reply: &Reply) -> Result<(), String> {
        Ok(())
    }

    /// Aggregates the validated replies of a round, in the order in which their clients were asked: those that were selected,
    /// then those that were asked where these gave no usable reply. Each reply names its client.
    ///
    /// # Errors
    /// A reply cannot be read, a computation diverges, or the device does not answer.
    fn aggregate(&mut self, replies: Vec<Reply>) -> Result<(), RunError>;

    /// The global particles Θ `[N, d]`, with which predictions are made.
    fn particles(&self) -> &Particles;

    /// The message with which clients predict. By default it holds Θ.
    ///
    /// # Errors
    /// The device does not answer.
    fn publish(&self) -> Result<Message, RunError> {
        message_of(self.particles())
    }

    /// The posterior q as a density over θ, where it is more than the particles.
    fn posterior(&self) -> Posterior {
        Posterior::Particles
    }

    /// Whether the method takes the features of a row for uncorrelated, so that it should see them in their principal axes
    /// (`data.rotate`).
    fn assumes_uncorrelated_features(&self) -> bool {
        false
    }

    /// Diagnostics of the last round by name. Those that [`Capabilities::columns`](crate::algorithm::Capabilities::columns)
    /// names are columns of `rounds.csv`, under a name that no column of a run has.
    fn numbers(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    /// The number of bytes that the server keeps between rounds.
    fn state_bytes(&self) -> u64 {
        self.particles().bytes()
    }

    /// The state for a checkpoint: everything that rounds change and that cannot be computed from the rest.
    ///
    /// # Errors
    /// The device does not answer.
    fn save(&self) -> Result<State, RunError>;

    /// Restores the state of [`Self::save`]. The half that was saved was built from the same configuration.
    ///
    /// # Errors
    /// The state does not belong to such a half.
    fn restore(&mut self, state: &State) -> Result<(), RunError>;
}

/// The client half of an algorithm.
pub trait ClientHalf: Send {
    /// Handles a training request and returns the reply.
    ///
    /// # Errors
    /// The request cannot be read, a computation diverges, or the device does not answer.
    fn handle(&mut self, request: &Request, watch: Watch) -> Result<Message, RunError>;

    /// The predictor of this client on its own rows, given the published message. The client's state does not change.
    ///
    /// # Errors
    /// The message cannot be read, or the device does not answer.
    fn predictor(&mut self, _published: &Request) -> Result<Predictor, RunError> {
        Ok(Predictor::Published)
    }

    /// Answers a question about the particles in the request. It does not change the client's state.
    ///
    /// # Errors
    /// The algorithm's clients cannot answer this question, or the device does not answer.
    fn answer(&mut self, _request: &Request, _question: &Question) -> Result<Message, RunError> {
        Err(RunError::Config("this algorithm's clients have no tilted density to be asked about".into()))
    }

    /// The number of bytes that the client keeps between rounds, without its rows, the place in their order, and the state of an
    /// optimiser. A site with none that has lost its directory goes on; with any it is left out, because what it has sent
    /// belongs to what it has lost.
    fn state_bytes(&self) -> u64 {
        0
    }

    /// The state for a checkpoint, and for discarding a visit: everything that visits change and that cannot be
    /// computed from the rest.
    ///
    /// # Errors
    /// The device does not answer.
    fn save(&self) -> Result<State, RunError>;

    /// Restores the state of [`Self::save`]. The half that was saved was built from the same configuration.
    ///
    /// # Errors
    /// The state does not belong to such a half.
    fn restore(&mut self, state: &State) -> Result<(), RunError>;
}

/// The client halves of the clients that live in this process.
pub type ClientHalves = Vec<(ClientId, Box<dyn ClientHalf>)>;

/// Both halves of an algorithm, as far as they live in this process.
pub struct Halves {
    /// The server half. A process that is not the server's has no use for it.
    pub server: Box<dyn ServerHalf>,
    /// The client halves.
    pub clients: ClientHalves,
}

/// The server half, and that of one client.
pub type Pair = (Box<dyn ServerHalf>, Box<dyn ClientHalf>);

impl Halves {
    /// The same where the client halves are those of these clients, each once.
    ///
    /// # Errors
    /// A client is missing, there twice, or none of them: a mistake of a program's own [`Algorithm`](crate::algorithm::Algorithm).
    pub fn of_each(self, clients: usize) -> Result<Self, RunError> {
        let mut built: Vec<ClientId> = self.clients.iter().map(|(id, _)| *id).collect();
        built.sort_unstable();
        let differs = built.iter().enumerate().find(|(place, id)| place != *id);
        let problem = match differs {
            Some((place, id)) if *id < place => format!("two halves of client {id}"),
            Some((place, _)) if place < clients => format!("no half of client {place}"),
            None if built.len() < clients => format!("no half of client {}", built.len()),
            None if built.len() == clients => return Ok(self),
            _ => format!("more halves than the {clients} clients"),
        };
        Err(RunError::Config(format!(
            "`Algorithm::build` returned {problem}; it must return one half of each client in `Setup::here`"
        )))
    }

    /// The server half and that of the one client for which these halves were built.
    ///
    /// # Errors
    /// There is no such client.
    pub fn into_pair(self, client: ClientId) -> Result<Pair, RunError> {
        let half = self.clients.into_iter().find(|(id, _)| *id == client);
        half.map(|(_, half)| (self.server, half)).ok_or(RunError::NoClient(client))
    }

    /// The half of that client alone.
    ///
    /// # Errors
    /// As [`Self::into_pair`].
    pub fn into_client(self, client: ClientId) -> Result<Box<dyn ClientHalf>, RunError> {
        self.into_pair(client).map(|(_, half)| half)
    }
}
