use fedstein_schema::Literal::Int as I;
use fedstein_schema::{COUNT_OR_ZERO, Kind, key};
use serde::{Deserialize, Serialize};

use super::kind::{CLIENTS, ScheduleKind, ScheduleSetup};
use super::{Indicators, Schedule, Selection};

/// `[schedule] kind = "round-robin"`
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RoundRobinConfig {
    /// The client whose turn is first, modulo K.
    pub first: usize,
    /// Clients a round.
    pub clients: usize,
}

impl RoundRobinConfig {
    /// What it is, with its keys.
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

/// Clients in turn: `first`, `first` + 1, ..., modulo K; `per_round` of them a round.
#[derive(Clone, Copy, Debug)]
pub struct RoundRobin {
    clients: usize,
    per_round: usize,
    first: usize,
}

impl RoundRobin {
    /// A schedule over K clients; `per_round` is cut to K.
    pub fn new(clients: usize, per_round: usize, first: usize) -> Self {
        Self { clients, per_round: per_round.min(clients), first }
    }
}

impl Schedule for RoundRobin {
    fn select(&mut self, round: usize, _indicators: Option<&Indicators>) -> Selection {
        let start = self.first + (round - 1) * self.per_round;
        (start..start + self.per_round).map(|turn| turn % self.clients).collect::<Vec<_>>().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_visited_in_turn_from_the_first() {
        let mut schedule = RoundRobin::new(3, 1, 1);
        let visits: Vec<_> = (1..=5).flat_map(|round| schedule.select(round, None).clients).collect();
        assert_eq!(visits, [1, 2, 0, 1, 2]);
    }

    #[test]
    fn several_clients_a_round_never_repeat_within_it() {
        let mut schedule = RoundRobin::new(3, 5, 0);
        assert_eq!(schedule.select(1, None).clients, [0, 1, 2]);
    }
}
