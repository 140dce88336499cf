//! Flower's objects: the content of a message in pieces, each with the sha256 of its bytes as its identifier, so that
//! equal pieces are stored and sent once.
//!
//! An object is a head, a zero byte and a body. The head is three words with a blank between them: the kind, the
//! identifiers of the objects below it with commas between them, and the number of bytes of the body.
//!
//! | kind | below it | body |
//! |---|---|---|
//! | `Message` | its content, if it has one | its metadata, and an error if it has one |
//! | `RecordDict` | records | JSON: the identifiers of the records by name |
//! | `ConfigRecord`, `MetricRecord` | | the record |
//! | `ArrayRecord` | arrays | JSON: the identifiers of the arrays by name |
//! | `Array` | chunks | JSON: type, shape, serialisation, and the positions of the chunks among those below it |
//! | `ArrayChunk` | | bytes |

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::messages::{
    ConfigItem, ConfigRecord, ConfigValue, Envelope, Error, Metadata, MetricItem, MetricRecord, MetricValue, Nothing,
    ObjectTree,
};
use super::wire::{Message as _, Signed};
use crate::checkpoint::digest;
use crate::remote::records::{ARRAYS, ENVELOPE, Field, NUMBERS, NamedArray, Records, SERIALISED};
use crate::remote::{Limits, npy, shown};

/// The number of bytes of an array's chunks, but for the last one.
const CHUNK: usize = 5 << 20;
/// The size in MiB below which all requests are but those with the names of very many columns: a piece with its head.
pub(super) const LARGEST_MIB: usize = 6;
/// The largest number of objects of a message that is read.
const MOST_OBJECTS: usize = 1 << 16;
/// The bytes of a message's objects beside its arrays and its envelope: heads and names.
const HEADS: u64 = 16 << 20;

/// The number of bytes of a message's objects that are read.
pub(super) fn most_bytes(limits: Limits) -> u64 {
    limits.bytes.saturating_add(limits.envelope).saturating_add(HEADS)
}

/// The identifiers of a message's objects, each once.
///
/// # Errors
/// There are too many. The error is a sentence.
pub(super) fn listed(tree: &ObjectTree) -> Result<Vec<&str>, String> {
    let (mut open, mut found, mut known) = (vec![tree], Vec::new(), HashSet::new());
    while let Some(ObjectTree { object_id, children }) = open.pop() {
        if known.insert(object_id.as_str()) {
            found.push(object_id.as_str());
        }
        open.extend(children);
        if found.len() > MOST_OBJECTS {
            return Err(format!("the message has more than the {MOST_OBJECTS} objects that are read"));
        }
    }
    Ok(found)
}

/// The objects of a message that is sent.
#[derive(Debug, Default)]
pub(crate) struct Packed {
    /// The contents by identifier, those below an object before it.
    pub contents: Vec<(String, Vec<u8>)>,
}

impl Packed {
    /// The objects of a reply, with the reply as it is announced. `metadata` is without an identifier.
    pub fn reply(metadata: Metadata, content: Result<&Records, Error>) -> (Self, Envelope, ObjectTree) {
        let mut packed = Self::default();
        let below = content.as_ref().ok().map(|records| packed.record_dict(records));
        let error = content.err();
        let body = Envelope { metadata: Some(metadata.clone()), content: None, error: error.clone() };
        let tree = packed.add("Message", &Vec::from_iter(below), &body.encoded());
        let place = error.is_none().then_some(Nothing {});
        let metadata = Metadata { message_id: tree.object_id.clone(), ..metadata };
        let envelope = Envelope { metadata: Some(metadata), content: place, error };
        (packed, envelope, tree)
    }

    fn record_dict(&mut self, records: &Records) -> ObjectTree {
        let setting = |(key, field): (&String, &Field)| {
            let value = match field {
                Field::Whole(number) => ConfigValue { whole: Some(Signed(*number)), text: None },
                Field::Text(text) => ConfigValue { whole: None, text: Some(text.clone()) },
            };
            ConfigItem { key: key.clone(), value: Some(value) }
        };
        let metric = |(key, number): (&String, &f64)| {
            let value = MetricValue { double: Some(*number) };
            MetricItem { key: key.clone(), value: Some(value) }
        };
        let envelope = ConfigRecord { items: records.envelope.iter().map(setting).collect() };
        let envelope = self.add("ConfigRecord", &[], &envelope.encoded());
        let numbers = MetricRecord { items: records.numbers.iter().map(metric).collect() };
        let numbers = self.add("MetricRecord", &[], &numbers.encoded());
        let named = |array: &NamedArray| (array.name.clone(), self.array(array));
        let arrays: Vec<_> = records.arrays.iter().map(named).collect();
        let arrays = self.named("ArrayRecord", &arrays);
        let named = [(ENVELOPE, envelope), (NUMBERS, numbers), (ARRAYS, arrays)];
        self.named("RecordDict", &named.map(|(name, tree)| (name.to_owned(), tree)))
    }

    fn array(&mut self, array: &NamedArray) -> ObjectTree {
        let chunks: Vec<ObjectTree> =
            array.bytes.chunks(CHUNK).map(|bytes| self.add("ArrayChunk", &[], bytes)).collect();
        let mut different: Vec<&str> = Vec::new();
        let mut positions = Vec::new();
        for ObjectTree { object_id, .. } in &chunks {
            positions.push(different.iter().position(|known| known == object_id).unwrap_or(different.len()));
            if positions.last() == Some(&different.len()) {
                different.push(object_id);
            }
        }
        // The blanks are those of Python's JSON.
        let body = format!(
            "{{\"dtype\": \"{}\", \"shape\": {:?}, \"stype\": \"{SERIALISED}\", \"arraychunk_ids\": {positions:?}}}",
            array.kind, array.shape
        );
        self.add("Array", &chunks, body.as_bytes())
    }

    /// An object whose body names the objects below it.
    fn named(&mut self, kind: &str, below: &[(String, ObjectTree)]) -> ObjectTree {
        let entry =
            |(name, tree): &(String, ObjectTree)| format!("{}: \"{}\"", Value::from(name.as_str()), tree.object_id);
        let body = format!("{{{}}}", below.iter().map(entry).collect::<Vec<_>>().join(", "));
        let below: Vec<ObjectTree> = below.iter().map(|(_, tree)| tree.clone()).collect();
        self.add(kind, &below, body.as_bytes())
    }

    fn add(&mut self, kind: &str, below: &[ObjectTree], body: &[u8]) -> ObjectTree {
        let mut children: Vec<ObjectTree> = Vec::new();
        for tree in below {
            if children.iter().all(|known| known.object_id != tree.object_id) {
                children.push(tree.clone());
            }
        }
        let ids: Vec<&str> = children.iter().map(|tree| tree.object_id.as_str()).collect();
        let head = format!("{kind} {} {}\0", ids.join(","), body.len());
        let content = [head.as_bytes(), body].concat();
        let object_id = digest::of_bytes(&content);
        if self.contents.iter().all(|(known, _)| *known != object_id) {
            self.contents.push((object_id.clone(), content));
        }
        ObjectTree { object_id, children }
    }
}

/// The objects of a message that is received, of any origin.
#[derive(Debug, Default)]
pub(crate) struct Received {
    contents: HashMap<String, Vec<u8>>,
}

/// The body of an array.
#[derive(Deserialize)]
struct ArrayBody {
    stype: String,
    arraychunk_ids: Vec<usize>,
}

impl Received {
    /// Keeps an object.
    ///
    /// # Errors
    /// Its bytes are not those of its identifier.
    pub fn keep(&mut self, id: &str, content: Vec<u8>) -> Result<(), String> {
        if digest::of_bytes(&content) != id {
            return Err("an object of the message is damaged".into());
        }
        self.contents.insert(id.to_owned(), content);
        Ok(())
    }

    /// The records of a message's content.
    ///
    /// # Errors
    /// The objects are not those of a message of this program, or exceed a limit. The error is a sentence.
    pub fn records(&self, message_id: &str, limits: Limits) -> Result<Records, String> {
        let (below, _) = self.open(message_id, "Message")?;
        let [content] = below[..] else { return Err("the message has no content".into()) };
        let named = self.named(content, "RecordDict")?;
        // One more may stand for something that this node cannot know.
        if let Some(other) = named.keys().find(|name| ![ENVELOPE, NUMBERS, ARRAYS].contains(&name.as_str())) {
            return Err(format!("the message has the record `{}`, which this node does not know", shown(other)));
        }
        let envelope = named.get(ENVELOPE).ok_or("the message is not one of fedstein")?;
        Ok(Records {
            envelope: self.envelope(envelope, limits)?,
            numbers: named.get(NUMBERS).map_or(Ok(BTreeMap::new()), |id| self.numbers(id))?,
            arrays: named.get(ARRAYS).map_or(Ok(Vec::new()), |id| self.arrays(id, limits))?,
        })
    }

    fn envelope(&self, id: &str, limits: Limits) -> Result<BTreeMap<String, Field>, String> {
        let (_, body) = self.open(id, "ConfigRecord")?;
        if body.len() as u64 > limits.envelope {
            let (found, most) = (body.len(), limits.envelope);
            return Err(format!("the message's envelope has {found} bytes; at most {most} are read"));
        }
        let items = ConfigRecord::decoded(body).ok_or_else(|| malformed("ConfigRecord"))?.items;
        let field = |ConfigItem { key, value }: ConfigItem| match value.unwrap_or_default() {
            ConfigValue { whole: Some(Signed(number)), text: None } => Ok((key, Field::Whole(number))),
            ConfigValue { whole: None, text: Some(text) } => Ok((key, Field::Text(text))),
            _ => Err(format!("`{}` of the message is neither a whole number nor a text", shown(&key))),
        };
        items.into_iter().map(field).collect()
    }

    fn numbers(&self, id: &str) -> Result<BTreeMap<String, f64>, String> {
        let (_, body) = self.open(id, "MetricRecord")?;
        let items = MetricRecord::decoded(body).ok_or_else(|| malformed("MetricRecord"))?.items;
        let number = |MetricItem { key, value }: MetricItem| match value.and_then(|value| value.double) {
            Some(number) => Ok((key, number)),
            None => Err(format!("the number `{}` of the message is not a float of 64 bits", shown(&key))),
        };
        items.into_iter().map(number).collect()
    }

    fn arrays(&self, id: &str, limits: Limits) -> Result<Vec<NamedArray>, String> {
        let named = self.named(id, "ArrayRecord")?;
        if named.len() > limits.arrays {
            return Err(format!("the message has {} arrays; at most {} are read", named.len(), limits.arrays));
        }
        // An object may stand at several places, so the sum over the places has its own limit.
        let mut rest = limits.bytes;
        named.into_iter().map(|(name, id)| self.array(name, &id, limits, &mut rest)).collect()
    }

    fn array(&self, name: String, id: &str, limits: Limits, rest: &mut u64) -> Result<NamedArray, String> {
        let (below, body) = self.open(id, "Array")?;
        let ArrayBody { stype, arraychunk_ids } = serde_json::from_slice(body).map_err(|_| malformed("Array"))?;
        if stype != SERIALISED {
            return Err(format!(
                "array `{}` is serialised as `{}`, not as `{SERIALISED}`",
                shown(&name),
                shown(&stype)
            ));
        }
        let mut bytes = Vec::new();
        for at in arraychunk_ids {
            let id = below.get(at).ok_or_else(|| malformed("Array"))?;
            let (_, chunk) = self.open(id, "ArrayChunk")?;
            *rest = rest.checked_sub(chunk.len() as u64).ok_or_else(|| too_many(limits))?;
            bytes.extend_from_slice(chunk);
        }
        let Some((kind, shape)) = npy::described(&bytes) else {
            return Err(format!("array `{}` is not a .npy file of floats", shown(&name)));
        };
        Ok(NamedArray { name, kind, shape, bytes: Arc::new(bytes) })
    }

    fn named(&self, id: &str, kind: &str) -> Result<BTreeMap<String, String>, String> {
        serde_json::from_slice(self.open(id, kind)?.1).map_err(|_| malformed(kind))
    }

    /// The identifiers below an object of this kind, and its body.
    fn open(&self, id: &str, kind: &str) -> Result<(Vec<&str>, &[u8]), String> {
        let content = self.contents.get(id).ok_or_else(|| format!("an object of the kind {kind} did not come"))?;
        let parts = || {
            let (head, body) = content.split_at_checked(content.iter().position(|byte| *byte == 0)?)?;
            let mut words = std::str::from_utf8(head).ok()?.split(' ');
            let (found, below, length) = (words.next()?, words.next()?, words.next()?);
            let body = &body[1..];
            let is_whole = found == kind && words.next().is_none() && length.parse() == Ok(body.len());
            is_whole.then(|| (below.split(',').filter(|id| !id.is_empty()).collect(), body))
        };
        parts().ok_or_else(|| malformed(kind))
    }
}

/// What a message says whose arrays exceed a limit.
pub(super) fn too_many(limits: Limits) -> String {
    format!("the message's arrays have more than the {} bytes that are read", limits.bytes)
}

fn malformed(kind: &str) -> String {
    format!("an object of the message is not a {kind} of Flower's")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: Limits = Limits { envelope: 200, arrays: 3, bytes: 1000 };

    fn array(name: &str, kind: &'static str, shape: &[usize], text: &str, elements: &[u8]) -> NamedArray {
        let head = format!("{text}{}\n", " ".repeat(117 - text.len()));
        let bytes = [b"\x93NUMPY\x01\x00v\x00".as_slice(), head.as_bytes(), elements].concat();
        NamedArray { name: name.into(), kind, shape: shape.into(), bytes: Arc::new(bytes) }
    }

    fn records() -> Records {
        let single = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), }";
        let single = array("particles", "float32", &[1, 3], single, b"\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40");
        let double = "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }";
        let double = array("gradient", "float64", &[1], double, b"\0\0\0\0\0\0\xe0\x3f");
        let again = NamedArray { name: "again".into(), ..single.clone() };
        let text = |text: &str| Field::Text(text.into());
        let envelope =
            [("content", text("{\"kind\":\"identify\"}")), ("protocol", Field::Whole(1)), ("version", text("0.1.0"))];
        Records {
            envelope: envelope.map(|(name, field)| (name.to_owned(), field)).into(),
            numbers: [("rows", 412.0), ("third", 1.0 / 3.0)].map(|(name, number)| (name.to_owned(), number)).into(),
            arrays: vec![single, again, double],
        }
    }

    fn metadata() -> Metadata {
        Metadata {
            run_id: 11,
            src_node_id: 5,
            dst_node_id: 1,
            reply_to_message_id: "ab".into(),
            group_id: "3".into(),
            ttl: 60.25,
            message_type: "train".into(),
            created_at: 1_750_000_000.5,
            dst_task_id: Some(9),
            ..Metadata::default()
        }
    }

    fn received(packed: &Packed) -> Received {
        let mut received = Received::default();
        packed.contents.iter().for_each(|(id, content)| received.keep(id, content.clone()).unwrap());
        received
    }

    /// The identifiers of a tree, each with its depth.
    fn outline(tree: &ObjectTree, depth: usize) -> Vec<(usize, &str)> {
        let below = tree.children.iter().flat_map(|child| outline(child, depth + 1));
        [(depth, &tree.object_id[..16])].into_iter().chain(below).collect()
    }

    // The identifiers are those of flwr 1.41.0: `object_id` and `children` of
    // make_message(metadata=Metadata(run_id=11, message_id="x", src_node_id=5, dst_node_id=1, reply_to_message_id="ab",
    //   group_id="3", created_at=1750000000.5, ttl=60.25, message_type="train", src_task_id=None, dst_task_id=9),
    //   content=RecordDict({
    //     "fedstein": ConfigRecord({"content": '{"kind":"identify"}', "protocol": 1, "version": "0.1.0"}),
    //     "numbers": MetricRecord({"rows": 412.0, "third": 1 / 3}),
    //     "arrays": ArrayRecord({"particles": a, "again": a, "gradient": b})}))
    // with a = Array(np.array([[1, 2, 3]], "<f4")) and b = Array(np.array([0.5], "<f8")).
    #[test]
    fn the_objects_of_a_message_are_those_of_flower() {
        let (packed, envelope, tree) = Packed::reply(metadata(), Ok(&records()));
        let expected = [
            (0, "9a97e79b4ec59e87"), // Message
            (1, "be182d6d0333c629"), // RecordDict
            (2, "bc3d9590b7f8f2cd"), // ConfigRecord
            (2, "c91b2e812a9c5a71"), // MetricRecord
            (2, "b3b9945c207d0159"), // ArrayRecord
            (3, "18160d2d8c77e7ba"), // Array a
            (4, "efa9bd8848e7d3c3"), // its ArrayChunk
            (3, "fdffe76e69f795f7"), // Array b
            (4, "69fbc0f91771720c"), // its ArrayChunk
        ];
        assert_eq!(outline(&tree, 0), expected);
        assert_eq!(envelope.metadata.unwrap().message_id, tree.object_id);
        assert!(envelope.content.is_some() && envelope.error.is_none());
        // Those below an object come before it, and each comes once.
        assert_eq!(packed.contents.len(), 9);
        assert_eq!(packed.contents.last().unwrap().0, tree.object_id);
        assert_eq!(listed(&tree).unwrap().len(), 9);
    }

    // The same with error=Error(2, "no") in the place of the content.
    #[test]
    fn an_error_is_one_object() {
        let error = Error { code: Signed(2), reason: "no".into() };
        let (packed, envelope, tree) = Packed::reply(metadata(), Err(error));
        assert_eq!(tree.object_id, "8cffad090b4077fdfb19f80d6ac9da2c3a47491439df9c2d848d9cb54a03a753");
        assert_eq!((packed.contents.len(), tree.children.len()), (1, 0));
        assert!(envelope.content.is_none() && envelope.error.is_some());
    }

    // Array(dtype="uint8", shape=(11_000_000,), stype="numpy.ndarray", data=bytes(11_000_000)): three chunks, of which
    // two are equal.
    #[test]
    fn a_long_array_is_cut_into_chunks_and_equal_chunks_are_one() {
        let bytes = Arc::new(vec![0; 11_000_000]);
        let long = NamedArray { name: "a".into(), kind: "uint8", shape: vec![11_000_000], bytes };
        let mut packed = Packed::default();
        let tree = packed.array(&long);
        assert_eq!(outline(&tree, 0), [(0, "85bb506dc3c1a708"), (1, "312ec6f2d04b82a7"), (1, "12e60ca867bba414")]);
        assert_eq!(packed.contents.len(), 3);
    }

    #[test]
    fn what_was_sent_is_received() {
        let records = records();
        let (packed, _, tree) = Packed::reply(metadata(), Ok(&records));
        let mut came = received(&packed).records(&tree.object_id, LIMITS).unwrap();
        came.arrays.sort_by_key(|array| records.arrays.iter().position(|sent| sent.name == array.name));
        assert_eq!(came, records);
    }

    #[test]
    fn what_exceeds_a_limit_or_is_no_message_is_refused_with_the_reason() {
        let (packed, _, tree) = Packed::reply(metadata(), Ok(&records()));
        let whole = received(&packed);
        let refused = |received: &Received, limits| received.records(&tree.object_id, limits).unwrap_err();
        assert!(refused(&whole, Limits { envelope: 50, ..LIMITS }).contains("at most 50"));
        assert!(refused(&whole, Limits { arrays: 2, ..LIMITS }).contains("3 arrays; at most 2"));
        // Two arrays of 140 bytes, which are one object, and one of 136.
        assert!(refused(&whole, Limits { bytes: 415, ..LIMITS }).contains("more than the 415 bytes"));
        assert!(whole.records(&tree.object_id, Limits { bytes: 416, ..LIMITS }).is_ok());
        for lacking in &packed.contents {
            let mut part = received(&packed);
            part.contents.remove(&lacking.0);
            assert!(refused(&part, LIMITS).contains("did not come"));
        }
        assert!(Received::default().keep(&tree.object_id, b"Message  0\0".to_vec()).unwrap_err().contains("damaged"));
        assert!(whole.records(&packed.contents[0].0, LIMITS).unwrap_err().contains("not a Message"));
        for (name, word) in [(None, "not one of fedstein"), (Some("config"), "the record `config`")] {
            let mut packed = Packed::default();
            let record = packed.add("ConfigRecord", &[], &[]);
            let named = name.map(|name| (name.to_owned(), record));
            let content = packed.named("RecordDict", &Vec::from_iter(named));
            let message = packed.add("Message", &[content], &[]);
            let error = received(&packed).records(&message.object_id, LIMITS).unwrap_err();
            assert!(error.contains(word), "{error}, not {word}");
        }
        let wide = ObjectTree {
            object_id: String::new(),
            children: (0..=MOST_OBJECTS).map(|at| ObjectTree { object_id: at.to_string(), children: vec![] }).collect(),
        };
        assert!(listed(&wide).unwrap_err().contains("65536 objects"));
    }

    proptest! {
        #[test]
        fn any_object_is_opened_or_refused(kind in 0usize..9, head in "[A-Za-z ,0-9]{0,40}", body in proptest::collection::vec(any::<u8>(), 0..60)) {
            let (mut packed, _, tree) = Packed::reply(metadata(), Ok(&records()));
            // The object at this place has another content under its old identifier.
            let kinds = ["Message", "RecordDict", "ConfigRecord", "MetricRecord", "ArrayRecord", "Array", "ArrayChunk"];
            let content = match kinds.get(kind) {
                Some(kind) => [format!("{kind}  {}\0", body.len()).as_bytes(), &body].concat(),
                None => [head.as_bytes(), &body].concat(),
            };
            for at in 0..packed.contents.len() {
                let old = std::mem::replace(&mut packed.contents[at].1, content.clone());
                let received = Received { contents: packed.contents.iter().cloned().collect() };
                let _ = received.records(&tree.object_id, LIMITS);
                packed.contents[at].1 = old;
            }
        }
    }
}
