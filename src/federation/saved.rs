//! Conversions between a [`State`] and the server's record of its clients, and between a [`State`] and messages. They
//! are exact to the bit.

use std::collections::BTreeMap;

use serde_json::Error;

use super::fault_policy::ClientReliability;
use crate::checkpoint::{CheckpointError, State};
use crate::protocol::{ClientId, Message};

impl ClientReliability {
    /// The record as a state, which is empty for the default record.
    ///
    /// # Errors
    /// The serialisation fails, which does not happen for this type.
    pub fn to_state(&self) -> Result<State, CheckpointError> {
        if *self == Self::default() {
            return Ok(State::default());
        }
        // JSON keeps the record exactly, because it consists of integers: lengths are stored as their bits.
        Ok(State::default().with_words("reliability", serde_json::to_string(self).map_err(wrong)?))
    }

    /// The record of a state of [`Self::to_state`].
    ///
    /// # Errors
    /// The state does not hold such a record.
    pub fn from_state(state: &State) -> Result<Self, CheckpointError> {
        if state.is_empty() {
            return Ok(Self::default());
        }
        serde_json::from_str(state.words("reliability")?).map_err(wrong)
    }
}

/// A state with one message for each of some clients.
pub(super) fn of_messages(messages: &BTreeMap<ClientId, Message>) -> State {
    if messages.is_empty() {
        return State::default();
    }
    let clients = State::default().with_counts(CLIENTS, messages.keys().copied());
    let part = |state: State, (client, message): (&ClientId, &Message)| {
        state.with_part(&format!("{client}"), message.to_state())
    };
    messages.iter().fold(clients, part)
}

/// The messages of a state of [`of_messages`].
///
/// # Errors
/// A message is incomplete.
pub(super) fn to_messages(state: &State) -> Result<BTreeMap<ClientId, Message>, CheckpointError> {
    if !state.has(CLIENTS) {
        return Ok(BTreeMap::new());
    }
    let message = |client| Ok((client, Message::from_state(&state.part(&format!("{client}")))?));
    state.counts(CLIENTS)?.into_iter().map(message).collect()
}

/// The entry with the ids of the clients.
const CLIENTS: &str = "clients";

fn wrong(error: Error) -> CheckpointError {
    CheckpointError::Content(format!("the server's record of its clients (`reliability`): {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::{Array, Values};
    use crate::checkpoint::codec::{decode, encode};

    #[test]
    fn messages_are_read_back_from_a_file_to_the_bit() {
        let awkward = [0.1 + 0.2, -0.0, 1.0 / 3.0, 5e-324, 31.245_270_191_439_438];
        let single = Array { shape: vec![1, 3], values: Values::F32(vec![0.1, -0.0, 1e-42]) };
        let double = Array { shape: vec![5, 1], values: Values::F64(awkward.to_vec()) };
        let message = Message::default().with_array("particles", single).with_array("a/b", double);
        let message = message.with_scalar("client_bytes", awkward[4]).with_scalar("seen", -0.0);
        let remembered = BTreeMap::from([(0, Message::default()), (12, message.clone())]);
        let bytes = encode(&of_messages(&remembered)).unwrap();
        let back = to_messages(&decode(&bytes).unwrap()).unwrap();
        assert_eq!(back, remembered);
        assert_eq!(back[&12].fingerprint(), message.fingerprint());
        assert!(of_messages(&BTreeMap::new()).is_empty() && to_messages(&State::default()).unwrap().is_empty());
    }

    #[test]
    fn the_default_record_is_an_empty_state_and_a_malformed_record_is_refused() {
        let state = ClientReliability::default().to_state().unwrap();
        assert!(state.is_empty());
        assert_eq!(ClientReliability::from_state(&state).unwrap(), ClientReliability::default());
        let bad = State::default().with_words("reliability", "{\"quarantine\": 3}".into());
        assert!(ClientReliability::from_state(&bad).unwrap_err().to_string().contains("reliability"));
    }
}
