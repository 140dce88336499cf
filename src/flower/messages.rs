//! The messages of Flower's Fleet API: the fields that a node reads or writes, with the numbers that they have in Flower's
//! `fleet.proto`, `message.proto`, `recorddict.proto` and `heartbeat.proto`.

use super::wire::{Signed, messages};

messages! {
    /// A node in a request.
    NodeId {
        1 node_id: u64,
    }

    /// Registers a key.
    RegisterRequest {
        1 public_key: Vec<u8>,
    }

    /// Activates the node of a key. The SuperLink takes it for gone when heartbeats fail to come.
    ActivateRequest {
        1 public_key: Vec<u8>,
        /// Seconds.
        2 heartbeat_interval: f64,
    }

    /// A message without fields.
    Nothing {}

    /// A heartbeat.
    HeartbeatRequest {
        1 node: Option<NodeId>,
        /// Seconds.
        2 heartbeat_interval: f64,
    }

    /// The answer to a heartbeat.
    HeartbeatReply {
        1 success: bool,
    }

    /// Asks for a message to this node.
    PullRequest {
        1 node: Option<NodeId>,
    }

    /// At most one message, without its content, and the tree of its objects.
    PullReply {
        2 messages: Vec<Envelope>,
        3 trees: Vec<ObjectTree>,
    }

    /// Announces a reply and its objects.
    PushRequest {
        1 node: Option<NodeId>,
        2 messages: Vec<Envelope>,
        3 trees: Vec<ObjectTree>,
        /// The seconds that each answer took.
        4 seconds: Vec<f64>,
    }

    /// The objects that the SuperLink does not have yet.
    PushReply {
        3 wanted: Vec<String>,
        4 session: String,
    }

    /// Sends an object.
    PushObjectRequest {
        1 node: Option<NodeId>,
        2 run_id: u64,
        3 object_id: String,
        4 content: Vec<u8>,
        5 session: String,
    }

    /// The answer to a sent object.
    PushObjectReply {
        1 stored: bool,
    }

    /// Asks for an object, or says that a message has been received whole.
    ObjectRequest {
        1 node: Option<NodeId>,
        2 run_id: u64,
        3 object_id: String,
    }

    /// An object, if the SuperLink has it already.
    PullObjectReply {
        1 found: bool,
        2 available: bool,
        3 content: Vec<u8>,
    }

    /// An object and the objects below it, by their identifiers.
    ObjectTree {
        1 object_id: String,
        2 children: Vec<ObjectTree>,
    }

    /// A message between a ServerApp and a node. Its content travels as objects.
    Envelope {
        1 metadata: Option<Metadata>,
        /// The place of a content, which is empty.
        2 content: Option<Nothing>,
        3 error: Option<Error>,
    }

    /// Where a message comes from, where it goes, and how long it is of use.
    Metadata {
        1 run_id: u64,
        2 message_id: String,
        3 src_node_id: u64,
        4 dst_node_id: u64,
        5 reply_to_message_id: String,
        6 group_id: String,
        /// Seconds from `created_at`.
        7 ttl: f64,
        8 message_type: String,
        /// Seconds since 1970.
        9 created_at: f64,
        10 src_task_id: Option<u64>,
        11 dst_task_id: Option<u64>,
    }

    /// Why there is no content.
    Error {
        1 code: Signed,
        2 reason: String,
    }

    /// A record of metrics.
    MetricRecord {
        1 items: Vec<MetricItem>,
    }

    /// A metric by name.
    MetricItem {
        1 key: String,
        2 value: Option<MetricValue>,
    }

    /// The value of a metric; none where it is not a float of 64 bits.
    MetricValue {
        1 double: Option<f64>,
    }

    /// A record of settings.
    ConfigRecord {
        1 items: Vec<ConfigItem>,
    }

    /// A setting by name.
    ConfigItem {
        1 key: String,
        2 value: Option<ConfigValue>,
    }

    /// The value of a setting; none where it is neither a whole number nor a text.
    ConfigValue {
        2 whole: Option<Signed>,
        5 text: Option<String>,
    }
}
