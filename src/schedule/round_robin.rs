use fedstein_schema::Literal::Int as I;
use fedstein_schema::{COUNT_OR_ZERO, Kind, key};
use serde::{Deserialize, Serialize};

use super::kind::{CLIENTS, ScheduleKind, ScheduleSetup};
use super::{Indicators, Schedule, Selection};
use crate::error::RunError;

/// `[schedule] kind = "round-robin"`
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RoundRobinConfig {
    /// The first client, modulo K.
    pub first: usize,
    /// The number of clients per round.
    pub clients: usize,
}

impl RoundRobinConfig {
    /// The name of the kind, its description and its keys.
    pub const KIND: Kind = Kind {
        name: "round-robin",
        about: "All clients in turn.",
        keys: &[
            key("first", COUNT_OR_ZERO, I(0), "The first client, modulo K (the public code: 1).").reference(I(1)),
            CLIENTS,
        ],
    };
}

impl ScheduleKind for RoundRobinConfig {
    fn clients(&self) -> usize {
        self.clients
    }

    fn build(&self, setup: ScheduleSetup) -> Box<dyn Schedule> {
        Box::new(RoundRobin::new(setup.clients, self.clients, self.first))
    }
}

/// All clients in turn: `first`, `first` + 1, ..., modulo K; `per_round` of them in each round.
#[derive(Clone, Copy, Debug)]
pub struct RoundRobin {
    clients: usize,
    per_round: usize,
    first: usize,
}

impl RoundRobin {
    /// A schedule over K clients, of which min(`per_round`, K) are selected in each round.
    pub fn new(clients: usize, per_round: usize, first: usize) -> Self {
        Self { clients, per_round: per_round.min(clients), first }
    }
}

impl Schedule for RoundRobin {
    fn select(&mut self, round: usize, _indicators: Option<&Indicators>) -> Result<Selection, RunError> {
        let start = self.first + (round - 1) * self.per_round;
        Ok((start..start + self.per_round).map(|turn| turn % self.clients).collect::<Vec<_>>().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_selected_in_turn_from_the_first() {
        let mut schedule = RoundRobin::new(3, 1, 1);
        let visits: Vec<_> = (1..=5).flat_map(|round| schedule.select(round, None).unwrap().clients).collect();
        assert_eq!(visits, [1, 2, 0, 1, 2]);
    }

    #[test]
    fn a_round_repeats_no_client() {
        let mut schedule = RoundRobin::new(3, 5, 0);
        assert_eq!(schedule.select(1, None).unwrap().clients, [0, 1, 2]);
    }
}
