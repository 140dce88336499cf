//! The envelope of a message between server and site: who speaks, of which run, and what the message is. Arrays travel
//! beside it ([`Parcel`]).
//!
//! A message of another protocol is refused before its content is read.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::npy::{self, Sent};
use super::parcel::Parcel;
use crate::datasets::{Encoding, ModelCard, Recalibration};
use crate::protocol::{Ask, ClientId, Message, Reply, Request, RequestKind, Wire};
use crate::report::{CalibrationResults, quoted_within};
use crate::site::{Description, Deviations, Means, Squares, Terms};

/// The number of the protocol. Any change to envelopes, contents or arrays requires a new number.
pub const PROTOCOL: u32 = 8;
/// The version of this program.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The longest text of the other side that is shown, in characters.
const SHOWN: usize = 200;

/// A message, without its arrays.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope {
    protocol: u32,
    version: String,
    run: Hex,
    number: u64,
    content: Content,
    arrays: Vec<Sent>,
}

/// The name of the array with the upper triangle of a site's sum of x xᵀ, row by row: `[p (p + 1) / 2]`.
pub const MOMENT: &str = "second_moment";

/// What is read of an envelope before anything else.
#[derive(Deserialize)]
struct Speaker {
    protocol: u32,
    #[serde(default)]
    version: String,
}

/// The number of a message that cannot be opened, so that it can be answered.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Numbered {
    number: u64,
}

/// A number of 64 bits as 16 hexadecimal digits: not every reader of JSON has whole numbers of that size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hex(pub u64);

impl fmt::Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        let digits = word.len() == 16 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u64::from_str_radix(&word, 16).ok().filter(|_| digits);
        number.map(Self).ok_or_else(|| D::Error::custom("it must have 16 hexadecimal digits"))
    }
}

/// What a message is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Content {
    /// Server: who are you? It is answered without reading rows, and in any run.
    Identify {},
    /// Site: that.
    Identity(Identity),
    /// Server: what do you hold?
    Describe {},
    /// Site: that.
    Description(Box<Description>),
    /// Server: the means over all training rows; what are your sums of squared deviations?
    Measure {
        /// The agreed names of the features, if the files have headers.
        features: Option<Vec<String>>,
        /// The means of these features, and of a real target.
        means: Means,
        /// How the columns become these features; absent where they are the features.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        encoding: Option<Box<Encoding>>,
    },
    /// Site: those.
    Deviations(Deviations),
    /// Server: the form in which the model takes the rows; what is the sum of x xᵀ over your training rows in it?
    Moment(Box<ModelCard>),
    /// Site: that, its upper triangle, as the array [`MOMENT`].
    Products {},
    /// Server: what all sites agree on, with the initial particles of a regression; what are the squared residuals?
    Residuals(Box<Terms>),
    /// Site: those.
    Squares(Squares),
    /// Server: what all sites agree on, with the initial particles.
    Begin(Box<Terms>),
    /// Server: what the calibration rows of all sites have given, for the site's own results.
    Calibration(Box<CalibrationTold>),
    /// Site: the terms or the calibration are kept, and the last round whose visit lies on the site's disk; 0 for none.
    Ready {
        /// That round.
        visited: usize,
    },
    /// Server: a request, with the algorithm's arrays.
    Request(RequestHead),
    /// Site: the reply to it, with the algorithm's arrays.
    Reply(ReplyHead),
    /// Site: the message cannot be answered.
    Failure {
        /// Why, in a sentence.
        reason: String,
    },
}

/// What the calibration rows of all sites have given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CalibrationTold {
    /// What predictions need.
    pub kept: Recalibration,
    /// What a report shows of it, without test rows.
    pub results: CalibrationResults,
}

/// Who a site is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// The index k of its client, from 0.
    pub index: usize,
    /// Its name.
    pub name: String,
}

/// A [`Request`] without its arrays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestHead {
    /// Round, from 1.
    pub round: usize,
    /// The attempt at the round, from 1.
    pub attempt: usize,
    /// The client.
    pub client: ClientId,
    /// The last round in which a training reply of this client was aggregated; 0 where none was.
    pub counted: usize,
    /// The oldest round to whose end the server may go back; a site may remove its states of earlier visits.
    pub keep: usize,
    /// Whether the client may have kept more at the end of the round `counted` than the place in the order of its rows. If not,
    /// a site that has lost everything begins anew.
    pub stateful: bool,
    /// The fingerprint of the server's state.
    pub state: Hex,
    /// The purpose.
    pub ask: Ask,
    /// The precision of the reply's arrays.
    pub wire: Wire,
    /// The message's numbers by name.
    #[serde(with = "numbers", default)]
    pub numbers: BTreeMap<String, f64>,
}

/// A [`Reply`] without its arrays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplyHead {
    /// Round of the request.
    pub round: usize,
    /// The client that replies.
    pub client: ClientId,
    /// The fingerprint of the server's state in the request.
    pub state: Hex,
    /// The message's numbers by name.
    #[serde(with = "numbers", default)]
    pub numbers: BTreeMap<String, f64>,
}

/// A message that has been opened.
#[derive(Clone, Debug)]
pub struct Opened {
    /// The run.
    pub run: u64,
    /// The number of the message; an answer has the number of what it answers.
    pub number: u64,
    /// The version of the program that wrote it.
    pub version: String,
    /// What it is.
    pub content: Content,
    /// Its arrays by name, not decoded yet.
    pub arrays: Vec<(Sent, Arc<Vec<u8>>)>,
}

/// The `.npy` files of a message's arrays, to be shared by the parcels of several clients.
#[derive(Clone, Debug, Default)]
pub struct Arrays {
    sent: Vec<Sent>,
    bytes: Vec<Arc<Vec<u8>>>,
}

impl Arrays {
    /// The arrays of a message in this precision.
    pub fn of(message: &Message, wire: Wire) -> Self {
        let (sent, bytes): (Vec<_>, Vec<_>) =
            message.arrays.iter().map(|(name, array)| npy::encode(name, array, wire)).unzip();
        Self { sent, bytes: bytes.into_iter().map(Arc::new).collect() }
    }
}

/// Seals a message.
///
/// # Errors
/// The content cannot be serialised, which does not happen for these types.
pub fn seal(run: u64, number: u64, content: Content, arrays: &Arrays) -> Result<Parcel, String> {
    let version = VERSION.to_owned();
    let envelope =
        Envelope { protocol: PROTOCOL, version, run: Hex(run), number, content, arrays: arrays.sent.clone() };
    let envelope = serde_json::to_vec(&envelope).map_err(|error| error.to_string())?;
    Ok(Parcel { envelope, arrays: arrays.bytes.clone() })
}

/// Opens a message of any origin.
///
/// # Errors
/// It is of another protocol, or not a message of this one. The error is a sentence for a log.
pub fn open(parcel: Parcel) -> Result<Opened, String> {
    let malformed = |error: serde_json::Error| format!("the message cannot be read: {}", shown(&error.to_string()));
    let Speaker { protocol, version } = serde_json::from_slice(&parcel.envelope).map_err(malformed)?;
    if protocol != PROTOCOL {
        return Err(format!(
            "the other side speaks protocol {protocol} (fedstein {}), this side protocol {PROTOCOL} (fedstein {VERSION}); \
             install the same version at both",
            shown(&version)
        ));
    }
    let Envelope { run: Hex(run), number, version, content, arrays, .. } =
        serde_json::from_slice(&parcel.envelope).map_err(malformed)?;
    if arrays.len() != parcel.arrays.len() {
        let (listed, came) = (arrays.len(), parcel.arrays.len());
        return Err(format!("the message lists {listed} arrays and carries {came}"));
    }
    Ok(Opened { run, number, version, content, arrays: arrays.into_iter().zip(parcel.arrays).collect() })
}

/// The kind of a request and its round.
pub type Purpose = (RequestKind, usize);

impl Opened {
    /// The kind and the round of the request that this is, if it is one.
    pub fn purpose(&self) -> Option<Purpose> {
        match &self.content {
            Content::Request(RequestHead { round, ask, .. }) => Some((ask.kind(), *round)),
            _ => None,
        }
    }
}

/// The question who a site is.
///
/// # Errors
/// As [`seal`].
pub fn ask_who() -> Result<Parcel, String> {
    seal(0, 0, Content::Identify {}, &Arrays::default())
}

/// The answer to [`ask_who`].
///
/// # Errors
/// It is of another protocol, the site gives a reason why it cannot answer, or it is another answer. The error is a
/// sentence.
pub fn who_answers(parcel: Parcel) -> Result<Identity, String> {
    match open(parcel)?.content {
        Content::Identity(identity) => Ok(Identity { name: shown(&identity.name), ..identity }),
        Content::Failure { reason } => Err(shown(&reason)),
        _ => Err("the site gives another answer than it was asked for".into()),
    }
}

/// Seals the answer to a parcel that cannot be answered otherwise, in whatever state the parcel is.
pub fn seal_failure(run: u64, parcel: &[u8], reason: String) -> Parcel {
    let Numbered { number } = serde_json::from_slice(parcel).unwrap_or_default();
    seal(run, number, Content::Failure { reason }, &Arrays::default()).unwrap_or_default()
}

impl Opened {
    /// The message of its arrays and these numbers.
    ///
    /// # Errors
    /// An array cannot be decoded, or two have one name. The error names the array.
    pub fn message(&self, scalars: BTreeMap<String, f64>) -> Result<Message, String> {
        let mut message = Message { scalars, ..Message::default() };
        for (sent, bytes) in &self.arrays {
            let name = shown(&sent.name);
            let array = npy::decode(sent, bytes).map_err(|reason| format!("array \"{name}\": {reason}"))?;
            if message.arrays.insert(sent.name.clone(), array).is_some() {
                return Err(format!("array \"{name}\" comes twice"));
            }
        }
        Ok(message)
    }
}

impl RequestHead {
    /// The head of a request.
    pub fn of(request: &Request, keep: usize, stateful: bool) -> Self {
        let Request { counted, round, attempt, client, state, ask, wire, ref message, .. } = *request;
        let (state, numbers) = (Hex(state), message.scalars.clone());
        Self { round, attempt, client, counted, keep, stateful, state, ask, wire, numbers }
    }

    /// The request with this head.
    ///
    /// # Errors
    /// The message is not the one that was sent: its fingerprint differs.
    pub fn request(self, run: u64, message: Message) -> Result<Request, String> {
        let Self { round, attempt, client, counted, state: Hex(state), ask, wire, .. } = self;
        let found = message.fingerprint();
        if found != state {
            return Err(format!("the message is damaged: its fingerprint is {}, not {}", Hex(found), Hex(state)));
        }
        Ok(Request { run, counted, round, attempt, client, state, ask, wire, message: Arc::new(message) })
    }
}

impl ReplyHead {
    /// The head of a reply.
    pub fn of(reply: &Reply) -> Self {
        let Reply { round, client, state, ref message, .. } = *reply;
        Self { round, client, state: Hex(state), numbers: message.scalars.clone() }
    }
}

/// A text of the other side, short enough for a log and without control characters.
pub fn shown(text: &str) -> String {
    quoted_within(text, SHOWN)
}

/// Numbers by name: JSON has no infinity and no NaN, which are sent as words.
pub(super) mod numbers {
    use std::collections::BTreeMap;

    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Number {
        Finite(f64),
        Word(String),
    }

    /// Serialises the numbers.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(numbers: &BTreeMap<String, f64>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(numbers.iter().map(|(name, value)| {
            let number = if value.is_finite() { Number::Finite(*value) } else { Number::Word(value.to_string()) };
            (name, number)
        }))
    }

    /// Deserialises the numbers.
    ///
    /// # Errors
    /// The data are not numbers by name.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, f64>, D::Error> {
        let words = BTreeMap::<String, Number>::deserialize(deserializer)?;
        let number = |(name, number)| match number {
            Number::Finite(value) => Ok((name, value)),
            Number::Word(word) if ["NaN", "inf", "-inf"].contains(&word.as_str()) => {
                Ok((name, word.parse().map_err(D::Error::custom)?))
            }
            Number::Word(_) => Err(D::Error::custom("it must be a number, NaN, inf or -inf")),
        };
        words.into_iter().map(number).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::{Array, Values};
    use crate::protocol::{Question, Scoring};
    use crate::rows::Rows;
    use crate::stein::{Bandwidth, Kernel, Rule};

    fn message() -> Message {
        let single = Array { shape: vec![2, 2], values: Values::F32(vec![0.1, -0.0, 1e-42, 3.5]) };
        let double = Array { shape: vec![1], values: Values::F64(vec![1.0 / 3.0]) };
        let message = Message::default().with_array("particles", single).with_array("gradient", double);
        message.with_scalar("rows", 412.0).with_scalar("third", 1.0 / 3.0).with_scalar("tiny", 5e-324)
    }

    fn round_trip(request: &Request, keep: usize) -> Request {
        let arrays = Arrays::of(&request.message, request.wire);
        let content = Content::Request(RequestHead::of(request, keep, true));
        let opened = open(seal(request.run, 7, content, &arrays).unwrap()).unwrap();
        assert_eq!((opened.run, opened.number), (request.run, 7));
        let Content::Request(head) = opened.content.clone() else { panic!("{:?}", opened.content) };
        assert_eq!(head.keep, keep);
        let message = opened.message(head.numbers.clone()).unwrap();
        head.request(opened.run, message).unwrap()
    }

    #[test]
    fn requests_arrive_to_the_bit_in_every_precision() {
        let kernel = Kernel::Rbf(Bandwidth { rule: Rule::Fixed(0.1 + 0.2), ..Bandwidth::default() });
        let asks = [
            Ask::Train,
            Ask::Score(Scoring { own: false, published: true, validation: true, is_last: true }),
            Ask::Answer(Question::Discrepancy { kernel, rows: Rows::Full }),
            Ask::Answer(Question::LikelihoodScore { kernel, rows: Rows::Full }),
        ];
        for wire in [Wire::Full, Wire::F32, Wire::F16, Wire::Bf16] {
            for ask in asks {
                let sent = crate::protocol::SharedMessage::sent(message(), wire);
                let request = Request { run: u64::MAX, counted: 3, attempt: 2, ..Request::new(4, 5, ask, sent) };
                assert_eq!(round_trip(&request, 2), request, "{wire:?}");
            }
        }
    }

    #[test]
    fn numbers_that_are_not_finite_arrive_as_they_are() {
        let message = message().with_scalar("nan", f64::NAN).with_scalar("most", f64::NEG_INFINITY);
        let reply = Request::new(1, 0, Ask::Train, message.clone()).reply(message);
        let content = Content::Reply(ReplyHead::of(&reply));
        let opened = open(seal(1, 1, content, &Arrays::default()).unwrap()).unwrap();
        let Content::Reply(head) = opened.content else { panic!("{:?}", opened.content) };
        assert!(head.numbers["nan"].is_nan() && head.numbers["most"] == f64::NEG_INFINITY);
        assert_eq!(head.numbers["third"].to_bits(), (1.0f64 / 3.0).to_bits());
    }

    #[test]
    fn another_protocol_is_refused_whatever_else_the_message_says() {
        let parcel = |text: &str| Parcel { envelope: text.into(), arrays: Vec::new() };
        let error = open(parcel("{\"protocol\":99,\"version\":\"0.9\\u001b[31m\",\"other\":[]}")).unwrap_err();
        assert!(error.contains("protocol 99 (fedstein 0.9") && error.contains("install the same version"), "{error}");
        assert!(!error.contains('\u{1b}'), "{error:?}");
        let no_content = format!("{{\"protocol\":{PROTOCOL}}}");
        for text in ["", "[]", &no_content, "{\"protocol\":-1}", "\u{0}"] {
            assert!(open(parcel(text)).unwrap_err().contains("cannot be read"), "{text}");
        }
    }

    #[test]
    fn a_text_of_the_other_side_is_shown_on_one_line_of_bounded_length() {
        let text = format!("{}\u{1b}[31m\n{}", "a".repeat(150), "b".repeat(1000));
        let shown = shown(&text);
        assert!(shown.starts_with(&format!("{}\\u{{1b}}[31m\\nbbb", "a".repeat(150))), "{shown}");
        assert!(shown.ends_with("b…") && shown.chars().count() < 220, "{shown}");
    }

    #[test]
    fn a_damaged_message_is_refused_with_the_reason() {
        let request = Request::new(1, 0, Ask::Train, message());
        let arrays = Arrays::of(&request.message, Wire::Full);
        let content = || Content::Request(RequestHead::of(&request, 0, true));
        let good = seal(1, 1, content(), &arrays).unwrap();
        let opened = |parcel: Parcel| {
            let opened = open(parcel)?;
            let Content::Request(head) = opened.content.clone() else { return Err("another content".into()) };
            let message = opened.message(head.numbers.clone())?;
            head.request(opened.run, message)
        };
        assert_eq!(opened(good.clone()).unwrap(), Request { run: 1, ..request.clone() });
        let without = Parcel { arrays: good.arrays[..1].to_vec(), ..good.clone() };
        assert!(opened(without).unwrap_err().contains("lists 2 arrays and carries 1"));
        let mut bytes = good.arrays[1].to_vec();
        *bytes.last_mut().unwrap() ^= 1;
        let damaged = Parcel { arrays: vec![good.arrays[0].clone(), Arc::new(bytes)], ..good.clone() };
        assert!(opened(damaged).unwrap_err().contains("fingerprint"));
        let twice = Arrays { sent: vec![arrays.sent[0].clone(); 2], bytes: vec![arrays.bytes[0].clone(); 2] };
        assert!(opened(seal(1, 1, content(), &twice).unwrap()).unwrap_err().contains("comes twice"));
        let text = String::from_utf8(good.envelope.clone()).unwrap().replace("\"attempt\"", "\"path\"");
        assert!(opened(Parcel { envelope: text.into(), ..good }).unwrap_err().contains("cannot be read"));
    }
}
