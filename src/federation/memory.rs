//! What a guard remembers of its clients' conduct and an injector of their replies, in a [`State`] and back, bit for bit.

use serde_json::Error;

use super::faults::Remembered;
use super::guard::Conduct;
use crate::array::Array;
use crate::checkpoint::{CheckpointError, State};
use crate::protocol::Message;

impl State {
    /// A guard's memory; a good record is nothing to keep.
    ///
    /// # Errors
    /// None that this type can cause; serialising is fallible in general.
    pub fn of_conduct(conduct: &Conduct) -> Result<Self, CheckpointError> {
        if *conduct == Conduct::default() {
            return Ok(Self::default());
        }
        // Whole numbers alone: lengths are kept as their bits.
        Ok(Self::default().with_words("conduct", serde_json::to_string(conduct).map_err(wrong)?))
    }

    /// What [`Self::of_conduct`] was given.
    ///
    /// # Errors
    /// It is no guard's memory.
    pub fn to_conduct(&self) -> Result<Conduct, CheckpointError> {
        if self.is_empty() {
            return Ok(Conduct::default());
        }
        serde_json::from_str(self.words("conduct")?).map_err(wrong)
    }

    /// An injector's memory.
    pub fn of_remembered(remembered: &Remembered) -> Self {
        if remembered.is_empty() {
            return Self::default();
        }
        let clients = Self::default().with_counts("clients", remembered.keys().copied());
        let part = |state: Self, (client, message)| state.with_part(&format!("{client}"), of_message(message));
        remembered.iter().fold(clients, part)
    }

    /// What [`Self::of_remembered`] was given.
    ///
    /// # Errors
    /// It is no injector's memory.
    pub fn to_remembered(&self) -> Result<Remembered, CheckpointError> {
        if self.is_empty() {
            return Ok(Remembered::default());
        }
        let message = |client| Ok((client, to_message(&self.part(&format!("{client}")))?));
        self.counts("clients")?.into_iter().map(message).collect()
    }
}

fn of_message(message: &Message) -> State {
    let array = |state: State, (name, array): (&String, &Array)| state.with_array(name, array.clone());
    let arrays = message.arrays.iter().fold(State::default(), array);
    let number = |state: State, (name, value): (&String, &f64)| state.with_numbers(name, [*value]);
    let scalars = message.scalars.iter().fold(State::default(), number);
    State::default().with_part("arrays", arrays).with_part("scalars", scalars)
}

fn to_message(state: &State) -> Result<Message, CheckpointError> {
    let scalars = state.part("scalars");
    let number = |name: &String| Ok((name.clone(), scalars.number(name)?));
    let scalars = scalars.arrays().keys().map(number).collect::<Result<_, CheckpointError>>()?;
    Ok(Message { arrays: state.part("arrays").arrays().clone(), scalars })
}

fn wrong(error: Error) -> CheckpointError {
    CheckpointError::Content(format!("the clients' conduct: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Values;
    use crate::checkpoint::codec::{decode, encode};

    #[test]
    fn what_an_injector_repeats_comes_back_to_the_bit_out_of_a_file() {
        let awkward = [0.1 + 0.2, -0.0, 1.0 / 3.0, 5e-324, 31.245_270_191_439_438];
        let single = Array { shape: vec![1, 3], values: Values::F32(vec![0.1, -0.0, 1e-42]) };
        let double = Array { shape: vec![5, 1], values: Values::F64(awkward.to_vec()) };
        let message = Message::default().with_array("particles", single).with_array("a/b", double);
        let message = message.with_scalar("client_bytes", awkward[4]).with_scalar("seen", -0.0);
        let remembered = Remembered::from([(0, Message::default()), (12, message.clone())]);
        let bytes = encode(&State::of_remembered(&remembered)).unwrap();
        let back = decode(&bytes).unwrap().to_remembered().unwrap();
        assert_eq!(back, remembered);
        assert_eq!(back[&12].fingerprint(), message.fingerprint());
        assert!(State::of_remembered(&Remembered::default()).is_empty());
    }

    #[test]
    fn a_guard_that_has_seen_nothing_bad_keeps_nothing_and_another_form_of_conduct_is_refused() {
        let state = State::of_conduct(&Conduct::default()).unwrap();
        assert!(state.is_empty());
        assert_eq!(state.to_conduct().unwrap(), Conduct::default());
        let bad = State::default().with_words("conduct", "{\"quarantine\": 3}".into());
        assert!(bad.to_conduct().unwrap_err().to_string().contains("conduct"));
    }
}
