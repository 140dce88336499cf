//! What travels between server and clients: named arrays and named numbers, nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::fingerprint::Fingerprint;
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
    /// The message with one more array.
    pub fn with_array(mut self, name: &str, array: Array) -> Self {
        self.arrays.insert(name.to_owned(), array);
        self
    }

    /// Size of the arrays on the wire, without headers.
    pub fn bytes(&self) -> u64 {
        self.arrays.values().map(Array::bytes).sum()
    }

    /// The message with one more number.
    pub fn with_scalar(mut self, name: &str, value: f64) -> Self {
        self.scalars.insert(name.to_owned(), value);
        self
    }

    /// A fingerprint of the message, which two different messages share only by accident; less than 0.1 ms a megabyte.
    ///
    /// Names, shapes, types and the bits of all values go in; it is the same on every machine. It is no cryptographic
    /// hash: whoever wants another message with the same number finds one.
    pub fn fingerprint(&self) -> u64 {
        let mut print = Fingerprint::default();
        for (name, array) in &self.arrays {
            print.text(name);
            array.shape.iter().for_each(|size| print.word(*size as u64));
            match &array.values {
                Values::F32(values) => print.singles(values),
                Values::F64(values) => print.doubles(values),
            }
        }
        for (name, value) in &self.scalars {
            print.text(name);
            print.word(value.to_bits());
        }
        print.finish()
    }

    /// The array of that name.
    ///
    /// # Errors
    /// There is none.
    pub fn array(&self, name: &str) -> Result<&Array, ArrayError> {
        self.arrays.get(name).ok_or_else(|| ArrayError::Missing(name.to_owned()))
    }
}

/// A message on its way to any number of clients: held in memory once, and its fingerprint taken once.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedMessage {
    message: Arc<Message>,
    fingerprint: u64,
}

impl From<Message> for SharedMessage {
    fn from(message: Message) -> Self {
        Self { fingerprint: message.fingerprint(), message: Arc::new(message) }
    }
}

/// What the server asks a client before it selects the clients of a round.
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

/// What a request asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Ask {
    /// The client's part of a round.
    #[default]
    Train,
    /// An answer to a question; the client's state stays as it is.
    Answer(Question),
    /// How well the client's own predictor does on its own rows held out; the client's state stays as it is.
    Score,
}

/// The kinds of request, as events and configs name them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestKind {
    /// [`Ask::Train`].
    #[default]
    Training,
    /// [`Ask::Answer`].
    Question,
    /// [`Ask::Score`].
    Scores,
}

impl RequestKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Training, Self::Question, Self::Scores];

    /// The word for it in a config.
    pub fn word(self) -> &'static str {
        match self {
            Self::Training => "training",
            Self::Question => "question",
            Self::Scores => "scores",
        }
    }

    /// The kind that a word names.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

impl Ask {
    /// The kind of the request.
    pub fn kind(&self) -> RequestKind {
        match self {
            Self::Train => RequestKind::Training,
            Self::Answer(_) => RequestKind::Question,
            Self::Score => RequestKind::Scores,
        }
    }
}

/// The server asks a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The run that it belongs to; 0 where there is but one.
    pub run: u64,
    /// The last round in which a training reply of this client was aggregated; 0 where none was. A client that has
    /// trained since takes that visit back: it did not count.
    pub counted: usize,
    /// Round, from 1.
    pub round: usize,
    /// The attempt at the round, from 1.
    pub attempt: usize,
    /// The client that is asked.
    pub client: ClientId,
    /// [`Message::fingerprint`] of what is sent: the state that an answer answers.
    pub state: u64,
    /// What the client is asked for.
    pub ask: Ask,
    /// The message of the algorithm's server half; clones of the request share it.
    #[serde(with = "shared")]
    pub message: Arc<Message>,
}

impl Request {
    /// The first attempt at asking a client, with the fingerprint of the message.
    pub fn new(round: usize, client: ClientId, ask: Ask, message: impl Into<SharedMessage>) -> Self {
        let SharedMessage { message, fingerprint: state } = message.into();
        Self { run: 0, counted: 0, round, attempt: 1, client, state, ask, message }
    }

    /// An answer to this request that takes no time.
    pub fn reply(&self, message: Message) -> Reply {
        let &Self { run, round, client, state, .. } = self;
        Reply { run, round, client, state, seconds: 0.0, message }
    }
}

/// A client answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The run of the request.
    pub run: u64,
    /// The round of the request.
    pub round: usize,
    /// The client that replies.
    pub client: ClientId,
    /// The fingerprint of the state that it answers.
    pub state: u64,
    /// Seconds from the request to the reply, by the clock of the fleet: 0 where all clients are in this process.
    pub seconds: f64,
    /// The message of the algorithm's client half.
    pub message: Message,
}

/// A shared message is written down as a message.
mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Message;

    pub fn serialize<S: Serializer>(message: &Arc<Message>, serializer: S) -> Result<S::Ok, S::Error> {
        Message::serialize(message, serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<Message>, D::Error> {
        Message::deserialize(deserializer).map(Arc::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_and_a_reply_survive_the_wire_to_the_bit() {
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
    fn requests_to_several_clients_share_one_message() {
        let message = SharedMessage::from(Message::default().with_scalar("seen", 1.0));
        let [first, second] = [0, 1].map(|client| Request::new(1, client, Ask::Train, message.clone()));
        assert!(Arc::ptr_eq(&first.message, &second.message) && first.state == second.state);
    }
}
