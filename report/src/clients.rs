//! What clients are called.

use serde::{Deserialize, Serialize};

/// The most letters of a name that are shown.
const LONGEST: usize = 40;

/// The names of the clients of a run, by number: those of its sites, or of the natural clients of the data. Clients
/// without names are called by their numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClientNames(Vec<String>);

impl ClientNames {
    /// These names, `[K]`, or none.
    pub fn new(names: Vec<String>) -> Self {
        Self(names)
    }

    /// Whether clients have numbers only.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names as they are, `[K]` or none.
    pub fn as_slice(&self) -> &[String] {
        &self.0
    }

    /// What client `k` is called in a line of text: its name, without control characters and cut after 40 letters, or its
    /// number.
    pub fn of(&self, client: usize) -> String {
        let Some(name) = self.0.get(client) else { return client.to_string() };
        let mut shown: String =
            name.chars().take(LONGEST).map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect();
        if name.chars().count() > LONGEST {
            shown.push('\u{2026}');
        }
        shown
    }

    /// The name of client `k` as it is, for a row of a table; `client 3` where it has a number only.
    pub fn titled(&self, client: usize) -> String {
        self.0.get(client).cloned().unwrap_or_else(|| format!("client {client}"))
    }

    /// The first `most` of these clients: `2, 5, …`, or their names.
    pub fn first(&self, clients: &[usize], most: usize) -> String {
        let mut names: Vec<String> = clients.iter().take(most).map(|client| self.of(*client)).collect();
        if clients.len() > most {
            names.push("\u{2026}".to_owned());
        }
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_called_by_their_names_and_without_names_by_their_numbers() {
        assert_eq!(ClientNames::default().of(3), "3");
        let names = ClientNames::new(vec!["St. Mary's".into(), "a\u{1b}[2J\nb".into(), "x".repeat(41)]);
        assert_eq!(names.of(0), "St. Mary's");
        assert_eq!(names.of(1), "a\u{fffd}[2J\u{fffd}b");
        assert_eq!(names.of(2), format!("{}\u{2026}", "x".repeat(40)));
        assert_eq!(names.first(&[0, 5, 1], 2), "St. Mary's, 5, \u{2026}");
    }
}
