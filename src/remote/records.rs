//! A message as the three records of an engine such as Flower, and back: the envelope, the numbers, and the arrays.
//!
//! | record | holds |
//! |---|---|
//! | `fedstein`, a configuration | the fields of the [`envelope`](super::envelope), each under its name; `content` and `arrays` are JSON |
//! | `numbers`, metrics | the numbers of a request or a reply by name, 64 bits |
//! | `arrays` | the `.npy` files of the arrays by name |

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::envelope::{self, Purpose, open, shown};
use super::npy::{self, Sent};
use super::parcel::Parcel;

/// The name of the record of the envelope.
pub const ENVELOPE: &str = "fedstein";
/// The name of the record of numbers.
pub const NUMBERS: &str = "numbers";
/// The name of the record of arrays.
pub const ARRAYS: &str = "arrays";
/// How the bytes of an array are to be read, in Flower's words.
pub const SERIALISED: &str = "numpy.ndarray";

/// The fields of an envelope that are JSON in its record.
const JSON: [&str; 2] = ["content", "arrays"];

/// A message as records.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Records {
    /// The fields of the envelope.
    pub envelope: BTreeMap<String, Field>,
    /// The numbers by name.
    pub numbers: BTreeMap<String, f64>,
    /// The arrays, in the order of the envelope.
    pub arrays: Vec<NamedArray>,
}

/// A field of an envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// A whole number.
    Whole(i64),
    /// A text.
    Text(String),
}

/// An array in its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedArray {
    /// Its name.
    pub name: String,
    /// The type of its elements, in numpy's words: `float32`.
    pub kind: &'static str,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its `.npy` file.
    pub bytes: Arc<Vec<u8>>,
}

impl Records {
    /// The records of a message of this program; with the kind and the round of the request that it is, if it is one.
    ///
    /// # Errors
    /// The parcel is not a message of this program. The error is a sentence.
    pub fn of(parcel: &Parcel) -> Result<(Self, Option<Purpose>), String> {
        let opened = open(parcel.clone())?;
        let purpose = opened.purpose();
        let malformed = |error: serde_json::Error| error.to_string();
        let mut fields: Map<String, Value> = serde_json::from_slice(&parcel.envelope).map_err(malformed)?;
        let numbers = fields.get_mut("content").and_then(|content| content.as_object_mut()?.remove("numbers"));
        let numbers = numbers.map_or(Ok(BTreeMap::new()), envelope::numbers::deserialize).map_err(malformed)?;
        let field = |(name, value): (String, Value)| match (JSON.contains(&name.as_str()), value) {
            (false, Value::Number(number)) => {
                let whole = number.as_i64().ok_or_else(|| format!("`{name}` does not fit 64 bits with a sign"))?;
                Ok((name, Field::Whole(whole)))
            }
            (false, Value::String(text)) => Ok((name, Field::Text(text))),
            (_, value) => Ok((name, Field::Text(value.to_string()))),
        };
        let array = |(Sent { name, .. }, bytes): (Sent, Arc<Vec<u8>>)| {
            let (kind, shape) = npy::described(&bytes).ok_or_else(|| format!("array `{name}` is not a .npy file"))?;
            Ok(NamedArray { name, kind, shape, bytes })
        };
        let records = Self {
            envelope: fields.into_iter().map(field).collect::<Result<_, String>>()?,
            numbers,
            arrays: opened.arrays.into_iter().map(array).collect::<Result<_, String>>()?,
        };
        Ok((records, purpose))
    }

    /// The message of records of any origin. It is checked when it is opened.
    ///
    /// # Errors
    /// A record does not have the form of one. The error is a sentence for a log.
    pub fn parcel(self) -> Result<Parcel, String> {
        let Self { envelope, numbers, arrays } = self;
        let mut fields = Map::new();
        for (name, field) in envelope {
            let value = match field {
                Field::Whole(number) => Value::from(number),
                Field::Text(text) if JSON.contains(&name.as_str()) => serde_json::from_str(&text)
                    .map_err(|error| format!("`{name}` cannot be read: {}", shown(&error.to_string())))?,
                Field::Text(text) => Value::from(text),
            };
            fields.insert(name, value);
        }
        // A content without numbers need not have the field.
        if !numbers.is_empty() {
            let Some(content) = fields.get_mut("content").and_then(Value::as_object_mut) else {
                return Err("the message has numbers and no content".into());
            };
            let numbers = envelope::numbers::serialize(&numbers, serde_json::value::Serializer);
            content.insert(NUMBERS.to_owned(), numbers.map_err(|error| error.to_string())?);
        }
        // An engine keeps arrays by name; the envelope has their order.
        let listed = fields.get("arrays").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let (listed, came) = (listed.iter(), arrays.len());
        if listed.len() != came {
            return Err(format!("the message lists {} arrays and carries {came}", listed.len()));
        }
        let by_name: BTreeMap<&str, &NamedArray> = arrays.iter().map(|array| (array.name.as_str(), array)).collect();
        if by_name.len() != came {
            return Err(format!("the message carries {came} arrays of {} names", by_name.len()));
        }
        let bytes = |sent: &Value| {
            let name = sent.get("name").and_then(Value::as_str).unwrap_or_default();
            let array = by_name.get(name).ok_or_else(|| format!("the array `{}` did not come", shown(name)))?;
            Ok(array.bytes.clone())
        };
        let ordered = listed.map(bytes).collect::<Result<_, String>>()?;
        let envelope = serde_json::to_vec(&fields).map_err(|error| error.to_string())?;
        Ok(Parcel { envelope, arrays: ordered })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::{Array, Values};
    use crate::protocol::{Ask, Message, Request, RequestKind, SharedMessage, Wire};
    use crate::remote::envelope::Content;
    use crate::remote::{Arrays, RequestHead, ask_who, seal};

    /// A request with arrays, and numbers of which JSON does not know all.
    fn request() -> Request {
        let single = Array { shape: vec![2, 2], values: Values::F32(vec![0.1, -0.0, 1e-42, 3.5]) };
        let double = Array { shape: vec![1], values: Values::F64(vec![1.0 / 3.0]) };
        let message = Message::default().with_array("particles", single).with_array("a", double);
        let message = message.with_scalar("third", 1.0 / 3.0).with_scalar("least", f64::NEG_INFINITY);
        let message = message.with_scalar("tiny", 5e-324).with_scalar("zero", -0.0);
        let sent = SharedMessage::sent(message, Wire::Full);
        Request { run: u64::MAX, counted: 3, ..Request::new(4, 5, Ask::Train, sent) }
    }

    fn parcel(request: &Request) -> Parcel {
        let content = Content::Request(RequestHead::of(request, 2, true));
        seal(request.run, 7, content, &Arrays::of(&request.message, request.wire)).unwrap()
    }

    fn opened(parcel: Parcel) -> Request {
        let opened = open(parcel).unwrap();
        let Content::Request(head) = opened.content.clone() else { panic!("{:?}", opened.content) };
        let message = opened.message(head.numbers.clone()).unwrap();
        head.request(opened.run, message).unwrap()
    }

    #[test]
    fn a_message_returns_from_its_records_to_the_bit_in_whatever_order_arrays_come() {
        let request = request();
        let (mut records, about) = Records::of(&parcel(&request)).unwrap();
        assert_eq!(about, Some((RequestKind::Training, 4)));
        assert_eq!(records.numbers, request.message.scalars);
        let described = |array: &NamedArray| (array.name.clone(), array.kind, array.shape.clone());
        let described: Vec<_> = records.arrays.iter().map(described).collect();
        assert_eq!(described, [("a".into(), "float64", vec![1]), ("particles".into(), "float32", vec![2, 2])]);
        records.arrays.reverse();
        assert_eq!(opened(records.parcel().unwrap()), request);
    }

    #[test]
    fn the_envelope_is_a_record_that_a_person_can_read() {
        let (records, about) = Records::of(&ask_who().unwrap()).unwrap();
        assert_eq!(about, None);
        let text = |text: &str| Some(Field::Text(text.to_owned()));
        let field = |name: &str| records.envelope.get(name).cloned();
        assert_eq!(field("protocol"), Some(Field::Whole(i64::from(crate::remote::PROTOCOL))));
        assert_eq!((field("run"), field("content")), (text("0000000000000000"), text(r#"{"kind":"identify"}"#)));
        assert!(records.numbers.is_empty() && records.arrays.is_empty());
        assert_eq!(open(records.parcel().unwrap()).unwrap().number, 0);
    }

    #[test]
    fn records_that_are_no_message_are_refused_with_the_reason() {
        let good = Records::of(&parcel(&request())).unwrap().0;
        let changed = |change: &dyn Fn(&mut Records)| {
            let mut records = good.clone();
            change(&mut records);
            let opened = records.parcel().and_then(open).map(|_| ());
            opened.unwrap_err()
        };
        let set = |name: &'static str, text: &'static str| {
            move |records: &mut Records| {
                records.envelope.insert(name.to_owned(), Field::Text(text.to_owned()));
            }
        };
        for (error, word) in [
            (changed(&|records| _ = records.arrays.pop()), "lists 2 arrays and carries 1"),
            (changed(&|records| records.arrays.push(records.arrays[0].clone())), "lists 2 arrays and carries 3"),
            (changed(&|records| records.arrays[0].name = "other".into()), "`a` did not come"),
            (changed(&|records| records.arrays[0].name = "particles".into()), "2 arrays of 1 names"),
            (changed(&set("content", "{")), "`content` cannot be read"),
            (changed(&set("content", "7")), "no content"),
            (changed(&set("content", r#"{"kind":"identify"}"#)), "cannot be read"),
            (changed(&set("arrays", "{}")), "lists 0 arrays"),
            (changed(&set("more", "x")), "more"),
            (changed(&|records| _ = records.envelope.remove("protocol")), "protocol"),
            (changed(&|records| _ = records.envelope.insert("protocol".into(), Field::Whole(1))), "protocol 1"),
        ] {
            assert!(error.contains(word), "{error}, not {word}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_fields_are_a_message_or_refused(
            fields in proptest::collection::btree_map("protocol|run|number|content|arrays|[a-z]", "[\\[\\]{}\",:a-z0-9]{0,12}", 0..6),
            numbers in proptest::collection::btree_map("[a-z]", proptest::num::f64::ANY, 0..3),
        ) {
            let envelope = fields.into_iter().map(|(name, text)| (name, Field::Text(text))).collect();
            let _ = Records { envelope, numbers, arrays: Vec::new() }.parcel().and_then(open);
        }
    }
}
