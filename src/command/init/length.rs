//! How long the config's run trains: its rounds, and the validation rows that end them earlier.

use toml::Value;

use super::cells;
use super::choice::Choice;

/// The share of each client's rows that is held out for validation.
const SHARE: f64 = 0.1;
/// The fewest rows of a table, or groups of rows, of which some are held out.
const FEWEST: usize = 100;
/// The fewest of them at a client, on average. A client with five training rows holds one out.
const FEWEST_OF_CLIENT: usize = 10;

/// The rounds of a run.
pub struct Length {
    /// The number of rounds, and why.
    pub rounds: (Value, String),
    /// The share of validation rows and the rounds of patience, each with the reason; `None` where rows are too few.
    pub stop: Option<[(Value, String); 2]>,
}

impl Length {
    /// Of a run with so many clients.
    pub fn of(choice: &Choice<'_>, clients: usize) -> Self {
        let rounds = |visits: &str, each: usize, least: usize, most: usize| {
            let found = format!(
                "{visits} visits to each of {clients} clients, but {least} rounds at least and {most} at most."
            );
            (whole((each * clients).clamp(least, most)), found)
        };
        let Some(share) = held_out(choice, clients) else {
            return Self { rounds: rounds("Two", 2, 10, 200), stop: None };
        };
        let patience = "Two visits to each client, but 6 rounds at least and 100 at most.";
        Self {
            rounds: rounds("Six", 6, 30, 300),
            stop: Some([share, (whole((2 * clients).clamp(6, 100)), patience.to_owned())]),
        }
    }
}

/// The share of validation rows of a run with so many clients, and why; `None` where rows are too few.
pub fn held_out(choice: &Choice<'_>, clients: usize) -> Option<(Value, String)> {
    let units = cells::groups(choice).unwrap_or_else(|| choice.target.present());
    (units >= FEWEST.max(FEWEST_OF_CLIENT * clients)).then(|| {
        let found =
            "A tenth of the training rows tells when to stop. Without it, and without `stop.patience`, all rows train.";
        (Value::Float(SHARE), found.to_owned())
    })
}

fn whole(number: usize) -> Value {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}
