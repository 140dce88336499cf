//! Questions to the clients, and answers that can be read.

use crate::array::{Array, Values};
use crate::error::RunError;
use crate::experiment::config::Config;
use crate::experiment::evaluate::Predicted;
use crate::federation::event::Event;
use crate::federation::fault_policy::FaultPolicy;
use crate::federation::fleet::Fleet;
use crate::federation::inquiry::{Scores, ask_to_calibrate};
use crate::protocol::{Calibrating, ClientId, Message, SharedMessage, Wire};
use crate::report::ClientNames;

use super::plan::Plan;

/// The clients that are asked.
pub(in crate::experiment) struct Asked<'a> {
    /// The clients, here or elsewhere.
    pub fleet: &'a dyn Fleet,
    pub policy: &'a FaultPolicy,
    /// What the clients are called.
    pub names: &'a ClientNames,
    /// The number of clients K.
    pub clients: usize,
}

/// Why the questions end before their time.
pub(super) enum Stop {
    /// Clients without a usable answer, with the reasons.
    Lost(Vec<(ClientId, String)>),
    Failed(RunError),
}

impl From<RunError> for Stop {
    fn from(error: RunError) -> Self {
        Self::Failed(error)
    }
}

/// The questions about the particles after the last round.
pub(super) struct Inquiry<'a> {
    pub plan: &'a Plan,
    pub config: &'a Config,
    pub asked: &'a Asked<'a>,
    pub round: usize,
    pub predicted: &'a Predicted,
    /// The message with the particles.
    pub published: Message,
}

impl Inquiry<'_> {
    /// Asks clients, each of which must have an answer that can be read.
    pub fn ask<T>(
        &self,
        clients: &[ClientId],
        what: Calibrating,
        arrays: &[(&str, Array)],
        read: impl Fn(&Message) -> Result<T, String>,
    ) -> Result<Vec<T>, Stop> {
        let with = |message: Message, (name, array): &(&str, Array)| message.with_array(name, array.clone());
        // Thresholds are exact, so nothing is rounded.
        let message = SharedMessage::sent(arrays.iter().fold(self.published.clone(), with), Wire::Full);
        let Scores { replies, events } =
            ask_to_calibrate(self.asked.fleet, self.asked.policy, (self.round, clients), what, &message)?;
        let reason = |client: ClientId| {
            let of_client = |event: &&Event| event.client == client && event.detail.is_some();
            let detail = events.iter().rev().find(of_client).and_then(|event| event.detail.clone());
            detail.unwrap_or_else(|| "no reply came".into())
        };
        let (mut answers, mut lost) = (Vec::with_capacity(clients.len()), Vec::new());
        for (client, reply) in clients.iter().zip(replies) {
            match reply.map(|reply| read(&reply.message)) {
                Some(Ok(answer)) => answers.push(answer),
                Some(Err(reason)) => lost.push((*client, reason)),
                None => lost.push((*client, reason(*client))),
            }
        }
        if lost.is_empty() { Ok(answers) } else { Err(Stop::Lost(lost)) }
    }
}

pub(super) fn vector(values: &[f64]) -> Array {
    Array { shape: vec![values.len()], values: Values::F64(values.to_vec()) }
}

/// The numbers of this name in a reply, of which there must be so many. They are finite.
pub(super) fn values(message: &Message, name: &str, count: usize) -> Result<Vec<f64>, String> {
    let values = message.array(name).map_err(|error| error.to_string())?.values.to_f64();
    match values.len() == count {
        true => Ok(values),
        false => Err(format!("the reply's \"{name}\" are {} numbers, not {count}", values.len())),
    }
}
