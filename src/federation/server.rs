//! The one loop over rounds: select → configure → (fleet) → validate → aggregate → tell.

use super::fleet::{Fleet, Watch};
use super::message::{ClientId, Request};
use super::validate::validate;
use crate::algorithm::ServerHalf;
use crate::backend::Backend;
use crate::error::RunError;
use crate::particles::Particles;
use crate::schedule::Schedule;

/// What happened in a round.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// Round, from 1.
    pub round: usize,
    /// Who was asked.
    pub clients: Vec<ClientId>,
    /// Bytes of arrays from the server to the clients, one copy for each.
    pub downlink_bytes: u64,
    /// Bytes of arrays from the clients to the server.
    pub uplink_bytes: u64,
}

/// What an observer of the loop is told.
pub trait Told<B: Backend> {
    /// A round begins with these clients.
    fn begins(&mut self, round: usize, clients: &[ClientId]);
    /// A round ended with these global particles.
    fn ended(&mut self, round: Round, particles: &Particles<B>) -> Result<(), RunError>;
}

/// Rounds 1..=`rounds` of an algorithm's server half over a fleet; `watch` counts the steps of the visits.
pub fn serve<B: Backend>(
    server: &mut dyn ServerHalf<B>,
    schedule: &mut dyn Schedule,
    fleet: &dyn Fleet,
    rounds: usize,
    watch: Watch,
    told: &mut dyn Told<B>,
) -> Result<(), RunError> {
    for round in 1..=rounds {
        let clients = schedule.select(round);
        told.begins(round, &clients);
        let requests: Vec<Request> = clients
            .iter()
            .map(|&client| Ok(Request { round, client, message: server.configure(round, client)? }))
            .collect::<Result<_, RunError>>()?;
        let downlink_bytes = requests.iter().map(|request| request.message.bytes()).sum();
        let answers = fleet.dispatch(requests.clone(), watch);
        let replies = requests
            .iter()
            .zip(answers)
            .map(|(request, answer)| validate(request, answer?))
            .collect::<Result<Vec<_>, RunError>>()?;
        let uplink_bytes = replies.iter().map(|reply| reply.message.bytes()).sum();
        server.aggregate(replies)?;
        told.ended(Round { round, clients, downlink_bytes, uplink_bytes }, server.particles())?;
    }
    Ok(())
}
