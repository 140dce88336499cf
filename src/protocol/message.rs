//! The messages between server and clients, which consist of named arrays and named numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::calibrating::Calibrating;
use super::fingerprint::Fingerprint;
use super::names::STEP_FACTOR;
use super::wire::Wire;
use crate::array::{Array, ArrayError, Values};
use crate::rows::Rows;
use crate::stein::Kernel;

/// Index of a client, from 0.
pub type ClientId = usize;

/// The body of a request or a reply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Arrays by name.
    pub arrays: BTreeMap<String, Array>,
    /// Numbers by name.
    pub scalars: BTreeMap<String, f64>,
}

impl Message {
    /// Adds an array.
    pub fn with_array(mut self, name: &str, array: Array) -> Self {
        self.arrays.insert(name.to_owned(), array);
        self
    }

    /// The number of bytes of the arrays, without headers.
    pub fn bytes(&self) -> u64 {
        self.arrays.values().map(Array::bytes).sum()
    }

    /// The number of bytes of the arrays as they are sent in this precision, without headers.
    pub fn sent_bytes(&self, wire: Wire) -> u64 {
        let each = match wire {
            Wire::Full => return self.bytes(),
            Wire::F32 => 4,
            Wire::F16 | Wire::Bf16 => 2,
        };
        each * self.arrays.values().map(|array| array.values.len() as u64).sum::<u64>()
    }

    /// The message as it arrives in this precision. The arrays keep their types.
    pub fn rounded(mut self, wire: Wire) -> Self {
        self.arrays.values_mut().for_each(|array| wire.round(array));
        self
    }

    /// Adds a number.
    pub fn with_scalar(mut self, name: &str, value: f64) -> Self {
        self.scalars.insert(name.to_owned(), value);
        self
    }

    /// A fingerprint of the names, shapes, types and bits of all values, which is the same on every machine. Two
    /// different messages share it only by accident. It takes less than 0.1 ms per megabyte.
    ///
    /// The fingerprint is not a cryptographic hash: another message with the same number is easily constructed.
    pub fn fingerprint(&self) -> u64 {
        let mut print = Fingerprint::default();
        self.arrays.iter().for_each(|(name, array)| add(&mut print, name, array));
        for (name, value) in &self.scalars {
            print.text(name);
            print.word(value.to_bits());
        }
        print.finish()
    }

    /// The fingerprint of one of the arrays alone.
    ///
    /// # Errors
    /// The message has no array of this name.
    pub fn fingerprint_of(&self, name: &str) -> Result<u64, ArrayError> {
        let mut print = Fingerprint::default();
        add(&mut print, name, self.array(name)?);
        Ok(print.finish())
    }

    /// The array of this name.
    ///
    /// # Errors
    /// The message has no array of this name.
    pub fn array(&self, name: &str) -> Result<&Array, ArrayError> {
        self.arrays.get(name).ok_or_else(|| ArrayError::Missing(name.to_owned()))
    }
}

fn add(print: &mut Fingerprint, name: &str, array: &Array) {
    print.text(name);
    array.shape.iter().for_each(|size| print.word(*size as u64));
    match &array.values {
        Values::F32(values) => print.singles(values),
        Values::F64(values) => print.doubles(values),
    }
}

/// A message for any number of clients, as they receive it. It is held in memory once, and its fingerprint is computed
/// once.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedMessage {
    message: Arc<Message>,
    fingerprint: u64,
    wire: Wire,
}

impl SharedMessage {
    /// The message as it arrives when it is sent in this precision; the fingerprint is that of what arrives.
    pub fn sent(message: Message, wire: Wire) -> Self {
        let message = message.rounded(wire);
        Self { fingerprint: message.fingerprint(), message: Arc::new(message), wire }
    }
}

impl From<Message> for SharedMessage {
    fn from(message: Message) -> Self {
        Self::sent(message, Wire::Full)
    }
}

/// A question of the server to a client before the selection of the clients of a round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Question {
    /// The squared Stein discrepancy between the particles and the client's tilted density p̃_k: one number.
    Discrepancy {
        /// The kernel of the discrepancy.
        kernel: Kernel,
        /// The rows behind the score.
        rows: Rows,
    },
    /// The score −(1/α) ∇L_k of the client's likelihood at the particles: `[N, d]`.
    LikelihoodScore {
        /// The kernel in which the server will multiply it.
        kernel: Kernel,
        /// The rows behind the score.
        rows: Rows,
    },
}

/// The purpose of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Ask {
    /// The client's part of a round.
    #[default]
    Train,
    /// An answer to a question. It does not change the client's state.
    Answer(Question),
    /// Scores on the client's own held-out rows. They do not change the client's state.
    Score(Scoring),
    /// Counts and sums over the rows that the client holds out for calibration, and over its test rows. They do not change
    /// the client's state.
    Calibrate(Calibrating),
}

/// What a client scores on its own held-out rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scoring {
    /// The client's personal predictor, on its test and its validation rows.
    pub own: bool,
    /// The global particles, on its test rows.
    pub published: bool,
    /// The global particles, on its validation rows.
    pub validation: bool,
    /// Whether the results of the run are those of this round: a client at its own site then writes the files of its own.
    pub is_last: bool,
}

fedstein_schema::words! {
    /// The kinds of requests, by the names that events and configs use.
    #[derive(Default)]
    pub enum RequestKind {
        /// [`Ask::Train`].
        #[default]
        Training = "training",
        /// [`Ask::Answer`].
        Question = "question",
        /// [`Ask::Score`] and [`Ask::Calibrate`].
        Scores = "scores",
    }
}

impl Ask {
    /// The kind of the request.
    pub fn kind(&self) -> RequestKind {
        match self {
            Self::Train => RequestKind::Training,
            Self::Answer(_) => RequestKind::Question,
            Self::Score(_) | Self::Calibrate(_) => RequestKind::Scores,
        }
    }
}

/// A request of the server to a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The number of the run; 0 where there is only one run.
    pub run: u64,
    /// The last round in which a training reply of this client was aggregated; 0 where none was. A client that has
    /// trained since then discards the later visit.
    pub counted: usize,
    /// Round, from 1.
    pub round: usize,
    /// The attempt at the round, from 1.
    pub attempt: usize,
    /// The client to which the request is sent.
    pub client: ClientId,
    /// The [`Message::fingerprint`] of the message, which identifies the server's state.
    pub state: u64,
    /// The purpose of the request.
    pub ask: Ask,
    /// The precision in which arrays are sent: those of the message, and those of the reply.
    pub wire: Wire,
    /// The message of the algorithm's server half, rounded to that precision; clones of the request share it.
    #[serde(with = "shared")]
    pub message: Arc<Message>,
}

impl Request {
    /// The request of a first attempt, with the fingerprint of the message.
    pub fn new(round: usize, client: ClientId, ask: Ask, message: impl Into<SharedMessage>) -> Self {
        let SharedMessage { message, fingerprint: state, wire } = message.into();
        Self { run: 0, counted: 0, round, attempt: 1, client, state, ask, wire, message }
    }

    /// The factor of `optimizer.lr` in this visit: 1, unless `[lr_schedule]` has another for the round.
    pub fn step_factor(&self) -> f64 {
        self.message.scalars.get(STEP_FACTOR).copied().unwrap_or(1.0)
    }

    /// A reply to this request that takes no time, with the message as the server receives it.
    pub fn reply(&self, message: Message) -> Reply {
        let &Self { run, round, client, state, .. } = self;
        Reply { run, round, client, state, seconds: 0.0, message: message.rounded(self.reply_wire()) }
    }

    /// The precision in which the arrays of the reply are sent. Sums of scores are not rounded: among them are counts.
    pub fn reply_wire(&self) -> Wire {
        match self.ask {
            Ask::Train | Ask::Answer(_) => self.wire,
            Ask::Score(_) | Ask::Calibrate(_) => Wire::Full,
        }
    }
}

/// A reply of a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The run of the request.
    pub run: u64,
    /// The round of the request.
    pub round: usize,
    /// The client that replies.
    pub client: ClientId,
    /// The fingerprint of the server's state in the request.
    pub state: u64,
    /// Seconds from the request to the reply, by the clock of the fleet: 0 where all clients are in this process.
    pub seconds: f64,
    /// The message of the algorithm's client half.
    pub message: Message,
}

/// Serialises a shared message as a plain message.
mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Message;

    /// Serialises the message.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(message: &Arc<Message>, serializer: S) -> Result<S::Ok, S::Error> {
        Message::serialize(message, serializer)
    }

    /// Deserialises a message.
    ///
    /// # Errors
    /// The data are not a message.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<Message>, D::Error> {
        Message::deserialize(deserializer).map(Arc::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_those_of_the_format() {
        let single = Array { shape: vec![5], values: Values::F32(vec![0.0; 5]) };
        let double = Array { shape: vec![3, 1], values: Values::F64(vec![0.0; 3]) };
        let message = Message::default().with_array("a", single).with_array("b", double).with_scalar("rows", 7.0);
        let bytes: Vec<u64> = Wire::ALL.iter().map(|wire| message.sent_bytes(*wire)).collect();
        assert_eq!(bytes, [5 * 4 + 3 * 8, 8 * 4, 8 * 2, 8 * 2]);
    }

    #[test]
    fn the_arrays_of_a_message_have_scales_of_their_own() {
        let array = |value: f64| Array { shape: vec![1], values: Values::F64(vec![value]) };
        let message = Message::default().with_array("large", array(1e9)).with_array("small", array(1e-9));
        let got = message.rounded(Wire::F16);
        assert!((got.arrays["large"].values.to_f64()[0] / 1e9 - 1.0).abs() <= 2f64.powi(-11));
        assert!((got.arrays["small"].values.to_f64()[0] / 1e-9 - 1.0).abs() <= 2f64.powi(-11));
    }

    #[test]
    fn a_request_and_a_reply_are_serialised_to_the_bit() {
        let array = Array { shape: vec![1, 3], values: Values::F32(vec![0.1, -0.0, 1e-42]) };
        let message = Message::default().with_array("particles", array).with_scalar("seen", 1.0 / 3.0);
        let request = Request { attempt: 2, ..Request::new(7, 3, Ask::Train, message.clone()) };
        let there: Request = serde_json::from_str(&serde_json::to_string(&request).unwrap()).unwrap();
        assert_eq!(there, request);
        assert_eq!(there.message.fingerprint(), request.state);
        let reply = request.reply(message);
        let back: Reply = serde_json::from_str(&serde_json::to_string(&reply).unwrap()).unwrap();
        assert_eq!((back.message.fingerprint(), &back), (request.state, &reply));
    }

    #[test]
    fn what_is_sent_in_half_precision_is_rounded_in_both_directions_but_for_numbers_and_sums_of_scores() {
        // 1 + 2⁻⁹ has ten significant bits: f16 has eleven, bf16 eight.
        let (fine, third) = (1.0 + 1.0 / 512.0, 1.0 / 3.0);
        let message = || {
            let array = Array { shape: vec![1, 2], values: Values::F32(vec![fine, 2.0]) };
            Message::default().with_array("particles", array).with_scalar("seen", third)
        };
        let values = |message: &Message| message.arrays["particles"].values.to_f64();
        let request = |wire, ask| Request::new(7, 3, ask, SharedMessage::sent(message(), wire));
        for (wire, first) in [(Wire::Full, fine), (Wire::F16, fine), (Wire::Bf16, 1.0)] {
            let train = request(wire, Ask::Train);
            assert_eq!((values(&train.message), train.wire), (vec![f64::from(first), 2.0], wire));
            assert_eq!(train.state, train.message.fingerprint(), "the state is that of what arrives");
            let reply = train.reply(message());
            assert_eq!((values(&reply.message), reply.message.scalars["seen"]), (vec![f64::from(first), 2.0], third));
            let scores = request(wire, Ask::Score(Scoring::default()));
            assert_eq!(values(&scores.message)[0], f64::from(first), "clients predict with what they are sent");
            assert_eq!(scores.reply(message()).message, message());
        }
        assert_ne!(request(Wire::Full, Ask::Train).state, request(Wire::Bf16, Ask::Train).state);
    }

    #[test]
    fn requests_to_several_clients_share_one_message() {
        let message = SharedMessage::from(Message::default().with_scalar("seen", 1.0));
        let [first, second] = [0, 1].map(|client| Request::new(1, client, Ask::Train, message.clone()));
        assert!(Arc::ptr_eq(&first.message, &second.message) && first.state == second.state);
    }
}
