//! A message as a [`State`], and back, to the bit.

use super::message::Message;
use crate::array::Array;
use crate::checkpoint::{CheckpointError, State};

impl Message {
    /// The message as a state.
    pub fn to_state(&self) -> State {
        let array = |state: State, (name, array): (&String, &Array)| state.with_array(name, array.clone());
        let arrays = self.arrays.iter().fold(State::default(), array);
        let number = |state: State, (name, value): (&String, &f64)| state.with_numbers(name, [*value]);
        let scalars = self.scalars.iter().fold(State::default(), number);
        State::default().with_part("arrays", arrays).with_part("scalars", scalars)
    }

    /// The message of a state of [`Self::to_state`].
    ///
    /// # Errors
    /// The state does not hold a message.
    pub fn from_state(state: &State) -> Result<Self, CheckpointError> {
        let scalars = state.part("scalars");
        let number = |name: &String| Ok((name.clone(), scalars.number(name)?));
        let scalars = scalars.arrays().keys().map(number).collect::<Result<_, CheckpointError>>()?;
        Ok(Self { arrays: state.part("arrays").arrays().clone(), scalars })
    }
}
