//! The rounds of the config's run, and the validation rows that end them earlier, each with the reason.

use toml::Value;

use super::cells;
use super::choice::Choice;
use crate::experiment::length::{Length, Stop};

/// The keys of a run's length, each with the reason.
pub struct Lines {
    /// The number of rounds.
    pub rounds: (Value, String),
    /// The share of validation rows and the rounds of patience; `None` where rows are too few.
    pub stop: Option<[(Value, String); 2]>,
}

impl Lines {
    /// Of a run with so many clients.
    pub fn of(choice: &Choice<'_>, clients: usize) -> Self {
        let Length { rounds, stop } = Length::of(units(choice), clients);
        let of = if stop.is_some() { Length::WITH } else { Length::WITHOUT };
        let patience = |Stop { share, patience }| {
            [held_out_of(share), (whole(patience), in_words(Length::PATIENCE, "visits to each client"))]
        };
        let found = in_words(of, &format!("visits to each of {clients} clients"));
        Self { rounds: (whole(rounds), found), stop: stop.map(patience) }
    }
}

/// The share of validation rows of a run with so many clients, and why; `None` where rows are too few.
pub fn held_out(choice: &Choice<'_>, clients: usize) -> Option<(Value, String)> {
    Length::holds_out(units(choice), clients).then(|| held_out_of(Length::SHARE))
}

fn held_out_of(share: f64) -> (Value, String) {
    let found =
        "A tenth of the training rows tells when to stop. Without it, and without `stop.patience`, all rows train.";
    (Value::Float(share), found.to_owned())
}

/// The number of rows, or of groups of rows.
fn units(choice: &Choice<'_>) -> usize {
    cells::groups(choice).unwrap_or_else(|| choice.target.present())
}

/// So many visits, with the fewest and the most rounds.
fn in_words([visits, least, most]: [usize; 3], what: &str) -> String {
    format!("{visits} {what}, but {least} rounds at least and {most} at most.")
}

fn whole(number: usize) -> Value {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}
