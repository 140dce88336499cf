//! What travels between server and clients: named arrays and named numbers, nothing else.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::fingerprint::Fingerprint;
use crate::array::{Array, Values};
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

    /// A number that tells this message from every other one by accident, in less than 0.1 ms a megabyte.
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
    pub fn array(&self, name: &str) -> Result<&Array, String> {
        self.arrays.get(name).ok_or_else(|| format!("the message has no array \"{name}\""))
    }
}

/// What the server wants to know of a client before it chooses who goes next.
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
    /// Its kind.
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
    /// The how manieth time the round is tried, from 1.
    pub attempt: usize,
    /// Who is asked.
    pub client: ClientId,
    /// [`Message::fingerprint`] of what is sent: the state that an answer answers.
    pub state: u64,
    /// For what.
    pub ask: Ask,
    /// What the algorithm's server half says.
    pub message: Message,
}

impl Request {
    /// The first attempt at asking a client, with the fingerprint of the message.
    pub fn new(round: usize, client: ClientId, ask: Ask, message: Message) -> Self {
        Self { run: 0, counted: 0, round, attempt: 1, client, state: message.fingerprint(), ask, message }
    }

    /// An answer to this request that takes no time.
    pub fn reply(&self, message: Message) -> Reply {
        let Self { run, round, client, state, .. } = *self;
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
    /// Who answers.
    pub client: ClientId,
    /// The fingerprint of the state that it answers.
    pub state: u64,
    /// Seconds from the request to the reply, by the clock of the fleet: 0 where all clients are in this process.
    pub seconds: f64,
    /// What the algorithm's client half says.
    pub message: Message,
}
