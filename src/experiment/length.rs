//! How long a run trains where nobody has said it: its rounds, and the validation rows that end them earlier.
//!
//! Too few rounds leave the particles near the prior, too many fit the noise of small tables; which is which depends on the
//! table (docs/results.md, "The length of a run"). `fedstein init` and the estimators of the Python package go by it.

/// The fewest rows, or groups of rows, of which some are held out for validation.
const FEWEST: usize = 100;
/// The fewest of them at a client, on average. A client with five training rows holds one out.
const FEWEST_OF_CLIENT: usize = 10;

/// The rounds of a run, in each of which one client trains.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Length {
    /// The number of rounds.
    pub rounds: usize,
    /// The validation rows that end them earlier; `None` where rows are too few.
    pub stop: Option<Stop>,
}

/// The validation rows of a run and what they decide.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stop {
    /// The share of each client's rows that is held out (`partition.validation`).
    pub share: f64,
    /// The number of rounds without a better value after which the run ends (`stop.patience`).
    pub patience: usize,
}

impl Length {
    /// Visits to each client with validation rows, and the fewest and the most rounds.
    pub const WITH: [usize; 3] = [20, 100, 300];
    /// Visits to each client without them, and the fewest and the most rounds.
    pub const WITHOUT: [usize; 3] = [2, 10, 200];
    /// Visits to each client without a better value, and the fewest and the most such rounds.
    pub const PATIENCE: [usize; 3] = [2, 10, 100];
    /// The share of rows that are held out.
    pub const SHARE: f64 = 0.1;

    /// The length of a run.
    ///
    /// # Arguments
    /// - `units`: the number of rows that are not for testing, or of groups that they are in.
    /// - `clients`: the number of clients K.
    pub fn of(units: usize, clients: usize) -> Self {
        let rounds = |[visits, least, most]: [usize; 3]| visits.saturating_mul(clients).clamp(least, most);
        match Self::holds_out(units, clients) {
            true => {
                let stop = Stop { share: Self::SHARE, patience: rounds(Self::PATIENCE) };
                Self { rounds: rounds(Self::WITH), stop: Some(stop) }
            }
            false => Self::without_stop(clients),
        }
    }

    /// The length of a run whose rounds cannot be compared by validation rows.
    pub fn without_stop(clients: usize) -> Self {
        let [visits, least, most] = Self::WITHOUT;
        Self { rounds: visits.saturating_mul(clients).clamp(least, most), stop: None }
    }

    /// Whether there are enough rows to hold some out.
    pub fn holds_out(units: usize, clients: usize) -> bool {
        units >= FEWEST.max(FEWEST_OF_CLIENT.saturating_mul(clients))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_with_the_clients_within_bounds() {
        let with = |rounds, patience| Length { rounds, stop: Some(Stop { share: 0.1, patience }) };
        assert_eq!(Length::of(100, 1), with(100, 10));
        assert_eq!(Length::of(100, 10), with(200, 20));
        assert_eq!(Length::of(250, 25), with(300, 50));
        assert_eq!(Length::of(10_000, 400), with(300, 100));
        let without = |rounds| Length { rounds, stop: None };
        assert_eq!(Length::of(99, 1), without(10));
        assert_eq!(Length::of(249, 25), without(50));
        assert_eq!(Length::of(3999, 400), without(200));
    }
}
