use fedstein_schema::Kind;
use rand::seq::index;
use serde::{Deserialize, Serialize};

use super::kind::{CLIENTS, ScheduleKind, ScheduleSetup};
use super::{Indicators, Schedule, Selection};
use crate::random::{Purpose, Streams};

/// `[schedule] kind = "random"`
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RandomConfig {
    /// Clients a round.
    pub clients: usize,
}

impl RandomConfig {
    /// What it is, with its keys.
    pub const KIND: Kind =
        Kind { name: "random", about: "Drawn uniformly without replacement in every round.", keys: &[CLIENTS] };
}

impl ScheduleKind for RandomConfig {
    fn clients(&self) -> usize {
        self.clients
    }

    fn build(&self, setup: ScheduleSetup) -> Box<dyn Schedule> {
        Box::new(Random::new(setup.clients, self.clients, setup.streams))
    }
}

/// Clients drawn uniformly without replacement, anew each round.
#[derive(Clone, Copy, Debug)]
pub struct Random {
    clients: usize,
    per_round: usize,
    streams: Streams,
}

impl Random {
    /// A schedule over K clients; `per_round` is cut to K.
    pub fn new(clients: usize, per_round: usize, streams: Streams) -> Self {
        Self { clients, per_round: per_round.min(clients), streams }
    }
}

impl Schedule for Random {
    fn select(&mut self, round: usize, _indicators: Option<&Indicators>) -> Selection {
        let mut rng = self.streams.rng(Purpose::Schedule, round, 0);
        index::sample(&mut rng, self.clients, self.per_round).into_vec().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_repeats_no_client_and_every_client_gets_its_turn() {
        let mut schedule = Random::new(5, 2, Streams::new(9));
        let mut visits = [0; 5];
        for round in 1..=400 {
            let selected = schedule.select(round, None).clients;
            assert_ne!(selected[0], selected[1]);
            selected.iter().for_each(|client| visits[*client] += 1);
        }
        // 160 visits each on average, standard deviation below 10: six of them leave no false alarm.
        assert!(visits.iter().all(|count| (100..220).contains(count)), "{visits:?}");
        assert_eq!(schedule.select(7, None), Random::new(5, 2, Streams::new(9)).select(7, None));
    }
}
