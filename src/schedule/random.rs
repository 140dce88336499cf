use fedstein_schema::Kind;
use rand::seq::index;
use serde::{Deserialize, Serialize};

use super::kind::{CLIENTS, ScheduleKind, ScheduleSetup};
use super::{Indicators, Schedule, Selection};
use crate::error::RunError;
use crate::random::{Purpose, Streams};

/// `[schedule] kind = "random"`
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RandomConfig {
    /// The number of clients per round.
    pub clients: usize,
}

impl RandomConfig {
    /// The name of the kind, its description and its keys.
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

/// A uniform draw of clients without replacement in each round.
#[derive(Clone, Copy, Debug)]
pub struct Random {
    clients: usize,
    per_round: usize,
    streams: Streams,
}

impl Random {
    /// A schedule over K clients, of which min(`per_round`, K) are selected in each round.
    pub fn new(clients: usize, per_round: usize, streams: Streams) -> Self {
        Self { clients, per_round: per_round.min(clients), streams }
    }
}

impl Schedule for Random {
    fn select(&mut self, round: usize, _indicators: Option<&Indicators>) -> Result<Selection, RunError> {
        let mut rng = self.streams.rng(Purpose::Schedule, round, 0);
        Ok(index::sample(&mut rng, self.clients, self.per_round).into_vec().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_repeats_no_client_and_all_clients_are_equally_likely() {
        let mut schedule = Random::new(5, 2, Streams::new(9));
        let mut visits = [0; 5];
        for round in 1..=400 {
            let selected = schedule.select(round, None).unwrap().clients;
            assert_ne!(selected[0], selected[1]);
            selected.iter().for_each(|client| visits[*client] += 1);
        }
        // The mean is 160 visits each, the standard deviation below 10: the bounds are six standard deviations away.
        assert!(visits.iter().all(|count| (100..220).contains(count)), "{visits:?}");
        let mut same = Random::new(5, 2, Streams::new(9));
        assert_eq!(schedule.select(7, None).unwrap(), same.select(7, None).unwrap());
    }
}
