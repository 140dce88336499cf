//! The calls of Flower's Fleet API over HTTP: each a POST of one message, signed with the node's key.

use std::io::ErrorKind;
use std::time::{Duration, SystemTime};

use serde::Deserialize;
use ureq::Agent;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use super::foreign;
use super::keys::NodeKey;
use super::messages::{
    ActivateRequest, Envelope, HeartbeatReply, HeartbeatRequest, NodeId, Nothing, ObjectRequest, ObjectTree,
    PullObjectReply, PullReply, PullRequest, PushObjectReply, PushObjectRequest, PushReply, PushRequest,
    RegisterRequest,
};
use super::objects::LARGEST_MIB;
use super::wire::Message;

/// The seconds between heartbeats that a node announces; the SuperLink takes it for gone after twice that time.
pub(super) const HEARTBEAT: f64 = 30.0;
/// The time in which a heartbeat or a farewell must be answered.
const BRIEF: Duration = Duration::from_secs(5);
/// The time for a connection, and between two parts of an answer.
const CONNECT: Duration = Duration::from_secs(10);
const SILENCE: Duration = Duration::from_secs(60);
/// A connection is not used again after this time: the SuperLink closes one after five seconds.
const IDLE: Duration = Duration::from_secs(4);
/// The bytes that are read of an answer without an object, and of one with an error.
const MOST: u64 = 64 << 20;
const MOST_OF_ERROR: u64 = 64 << 10;
/// The calls that a SuperLink forbids once their run has ended.
const OF_RUNS: [&str; 4] = ["confirm-message-received", "pull-object", "push-messages", "push-object"];
/// The form of requests and answers.
const FORM: &str = "application/protobuf";

/// How a connection is secured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Security {
    /// Not at all: plain HTTP.
    None,
    /// TLS, with the certificates that are generally trusted.
    Public,
    /// TLS, with the root certificates of a PEM text.
    Roots(Vec<u8>),
}

/// Why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The SuperLink is away, or has trouble of its own: the call may succeed later.
    Away(String),
    /// The SuperLink does not know this node, or not any more.
    Unknown(String),
    /// The run has ended.
    Ended,
    /// The SuperLink's state does not allow it: the key is not registered, or another process with this key is there.
    Precondition(String),
    /// Something before the SuperLink takes no request of this size.
    Large(String),
    /// Anything else, which another attempt would not change.
    Refused(String),
}

impl Refusal {
    /// The reason, in a sentence.
    pub fn reason(&self) -> &str {
        match self {
            Self::Away(reason)
            | Self::Unknown(reason)
            | Self::Precondition(reason)
            | Self::Large(reason)
            | Self::Refused(reason) => reason,
            Self::Ended => "the run has ended",
        }
    }
}

/// A SuperLink.
#[derive(Debug)]
pub(crate) struct Fleet {
    agent: Agent,
    /// The address with its scheme.
    base: String,
    key: NodeKey,
}

impl Fleet {
    /// The SuperLink at this address, `HOST:PORT`. Nothing is sent yet.
    ///
    /// # Errors
    /// The text of root certificates has none, or one that cannot be read. The error is a sentence.
    pub fn new(address: &str, security: Security, key: NodeKey) -> Result<Self, String> {
        let (scheme, roots) = match security {
            Security::None => ("http", RootCerts::WebPki),
            Security::Public => ("https", RootCerts::WebPki),
            Security::Roots(pem) => ("https", RootCerts::new_with_certs(&certificates(&pem)?)),
        };
        let agent = Agent::config_builder()
            .tls_config(TlsConfig::builder().root_certs(roots).build())
            .http_status_as_error(false)
            .max_redirects(0)
            .accept_encoding("identity")
            .user_agent(concat!("fedstein/", env!("CARGO_PKG_VERSION")))
            .max_idle_age(IDLE)
            .timeout_connect(Some(CONNECT))
            .timeout_per_read(Some(SILENCE))
            .timeout_per_write(Some(SILENCE))
            .timeout_recv_response(Some(SILENCE))
            .build()
            .new_agent();
        Ok(Self { agent, base: format!("{scheme}://{address}"), key })
    }

    /// The version of Flower at the SuperLink, if it says one.
    pub fn version(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Description {
            info: Info,
        }
        #[derive(Deserialize)]
        struct Info {
            version: String,
        }
        let call = self.agent.get(format!("{}/openapi.json", self.base)).call();
        let text = call.ok()?.body_mut().with_config().limit(MOST).read_to_vec().ok()?;
        serde_json::from_slice::<Description>(&text).ok().map(|Description { info }| info.version)
    }

    /// Makes the key known to the SuperLink.
    pub fn register(&self) -> Result<(), Refusal> {
        let request = RegisterRequest { public_key: self.key.public().into() };
        self.call::<Nothing>("register-node", &request, MOST, None).map(|_| ())
    }

    /// Begins to take part: the number of the node that has this key.
    pub fn activate(&self) -> Result<u64, Refusal> {
        let request = ActivateRequest { public_key: self.key.public().into(), heartbeat_interval: HEARTBEAT };
        self.call::<NodeId>("activate-node", &request, MOST, None).map(|node| node.node_id)
    }

    /// Takes part no more.
    pub fn deactivate(&self, node_id: u64) -> Result<(), Refusal> {
        self.call::<Nothing>("deactivate-node", &NodeId { node_id }, MOST, Some(BRIEF)).map(|_| ())
    }

    /// Makes the SuperLink forget a node that was registered with [`Self::register`].
    pub fn unregister(&self, node_id: u64) -> Result<(), Refusal> {
        self.call::<Nothing>("unregister-node", &NodeId { node_id }, MOST, Some(BRIEF)).map(|_| ())
    }

    /// Says that the node is there; whether the SuperLink knows it.
    pub fn heartbeat(&self, node_id: u64) -> Result<bool, Refusal> {
        let request = HeartbeatRequest { node: Some(NodeId { node_id }), heartbeat_interval: HEARTBEAT };
        self.call::<HeartbeatReply>("send-node-heartbeat", &request, MOST, Some(BRIEF)).map(|reply| reply.success)
    }

    /// The next message to the node, if there is one.
    pub fn pull(&self, node_id: u64) -> Result<Option<(Envelope, ObjectTree)>, Refusal> {
        let request = PullRequest { node: Some(NodeId { node_id }) };
        let PullReply { messages, trees } = self.call("pull-messages", &request, MOST, None)?;
        Ok(messages.into_iter().zip(trees).next())
    }

    /// An object of at most this many bytes; `None` where the SuperLink does not have it yet.
    pub fn pull_object(&self, node_id: u64, run_id: u64, id: &str, most: u64) -> Result<Option<Vec<u8>>, Refusal> {
        let request = ObjectRequest { node: Some(NodeId { node_id }), run_id, object_id: id.to_owned() };
        // Beside its bytes an answer has a few words.
        let PullObjectReply { found, available, content } =
            self.call("pull-object", &request, most.saturating_add(64), None)?;
        match (found, available) {
            (false, _) => Err(Refusal::Refused("the SuperLink has lost an object of the message".into())),
            (true, false) => Ok(None),
            (true, true) => Ok(Some(content)),
        }
    }

    /// Says that all objects of a message have been received.
    pub fn confirm(&self, node_id: u64, run_id: u64, message_id: &str) -> Result<(), Refusal> {
        let request = ObjectRequest { node: Some(NodeId { node_id }), run_id, object_id: message_id.to_owned() };
        self.call::<Nothing>("confirm-message-received", &request, MOST, None).map(|_| ())
    }

    /// Announces a reply that took this many seconds; which of its objects the SuperLink wants, and in which session.
    pub fn push(&self, node_id: u64, message: Envelope, tree: ObjectTree, seconds: f64) -> Result<PushReply, Refusal> {
        let node = Some(NodeId { node_id });
        let request = PushRequest { node, messages: vec![message], trees: vec![tree], seconds: vec![seconds] };
        self.call("push-messages", &request, MOST, None)
    }

    /// Sends an object; whether it was stored.
    pub fn push_object(&self, request: &PushObjectRequest) -> Result<bool, Refusal> {
        self.call::<PushObjectReply>("push-object", request, MOST, None).map(|reply| reply.stored)
    }

    /// One call, of whose answer at most this many bytes are read.
    fn call<A: Message>(
        &self,
        name: &str,
        request: &impl Message,
        most: u64,
        within: Option<Duration>,
    ) -> Result<A, Refusal> {
        let mut post = self.agent.post(format!("{}/v1/fleet/{name}", self.base));
        for (name, value) in self.key.headers(SystemTime::now()).map_err(Refusal::Refused)? {
            post = post.header(name, value);
        }
        let post = post.header("content-type", FORM).header("accept", FORM);
        let post = post.config().timeout_global(within).build();
        let request = request.encoded();
        let bytes = request.len();
        let mut answer = post.send(request).map_err(|error| self.failed(error))?;
        let status = answer.status().as_u16();
        let most = if status == 200 { most } else { MOST_OF_ERROR };
        let body = answer.body_mut().with_config().limit(most).read_to_vec();
        match (status, body) {
            (200, Ok(body)) => A::decoded(&body).ok_or_else(|| self.not_flower("its answer cannot be read")),
            (200, Err(ureq::Error::BodyExceedsLimit(_))) => Err(Refusal::Refused(format!(
                "an answer of the SuperLink has more than the {most} bytes that are read"
            ))),
            (200, Err(error)) => Err(self.failed(error)),
            (status, body) => Err(self.refused((name, bytes), status, &body.unwrap_or_default())),
        }
    }

    /// Why there is no answer.
    fn failed(&self, error: ureq::Error) -> Refusal {
        let base = &self.base;
        match error {
            ureq::Error::Rustls(error) => Refusal::Refused(format!("no secure connection to {base}: {error}")),
            // A handshake that fails is one of these.
            ureq::Error::Io(error) if error.kind() == ErrorKind::InvalidData => {
                Refusal::Refused(format!("no secure connection to {base}: {error}"))
            }
            error @ (ureq::Error::BadUri(_)
            | ureq::Error::Http(_)
            | ureq::Error::Tls(_)
            | ureq::Error::InvalidProxyUrl) => Refusal::Refused(format!("{base} cannot be called: {error}")),
            error => Refusal::Away(format!("{base} does not answer: {}", foreign(&error.to_string()))),
        }
    }

    /// What an answer other than 200 to a call, whose request has so many bytes, says.
    fn refused(&self, (call, bytes): (&str, usize), status: u16, body: &[u8]) -> Refusal {
        #[derive(Default, Deserialize)]
        struct Said {
            #[serde(default)]
            detail: String,
        }
        let Said { detail } = serde_json::from_slice(body).unwrap_or_default();
        let said = match detail.is_empty() {
            true => format!("the SuperLink at {} answers with status {status}", self.base),
            false => format!("the SuperLink at {} says: {} (status {status})", self.base, foreign(&detail)),
        };
        match status {
            401 => Refusal::Unknown(said),
            403 if OF_RUNS.contains(&call) => Refusal::Ended,
            // The server is told this, and shows its first 200 characters.
            413 => Refusal::Large(format!(
                "something before the SuperLink takes no request of {bytes} bytes; its limit must be at least {} MiB \
                 (status 413)",
                bytes.div_ceil(1 << 20).max(LARGEST_MIB)
            )),
            404 | 405 | 415 | 501 => self.not_flower(&format!("it answers with status {status}")),
            412 => Refusal::Precondition(said),
            429 | 500.. => Refusal::Away(said),
            _ => Refusal::Refused(said),
        }
    }

    fn not_flower(&self, sign: &str) -> Refusal {
        Refusal::Refused(format!(
            "{} is not a SuperLink whose Fleet API this node speaks: {sign}. {}",
            self.base,
            super::tested()
        ))
    }
}

/// The certificates of a PEM text.
fn certificates(pem: &[u8]) -> Result<Vec<Certificate<'static>>, String> {
    let mut found = Vec::new();
    for item in parse_pem(pem) {
        match item {
            Ok(PemItem::Certificate(certificate)) => found.push(certificate),
            Ok(_) => {}
            Err(error) => return Err(format!("its certificates cannot be read: {error}")),
        }
    }
    if found.is_empty() { Err("it has no certificate in PEM form".into()) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an answer with this status to a call with so many bytes says. Nothing is sent.
    fn refusal_of(call: &str, bytes: usize, status: u16) -> Refusal {
        let fleet = Fleet::new("127.0.0.1:9", Security::None, NodeKey::random().unwrap()).unwrap();
        fleet.refused((call, bytes), status, br#"{"detail":"not here"}"#)
    }

    fn refusal(call: &str, status: u16) -> Refusal {
        refusal_of(call, 100, status)
    }

    #[test]
    fn a_call_of_a_run_that_is_forbidden_says_that_the_run_has_ended_and_another_call_does_not() {
        for call in ["pull-object", "push-object", "push-messages", "confirm-message-received"] {
            assert_eq!(refusal(call, 403), Refusal::Ended, "{call}");
        }
        for call in ["register-node", "activate-node", "send-node-heartbeat", "pull-messages", "deactivate-node"] {
            let refused = refusal(call, 403);
            assert!(matches!(refused, Refusal::Refused(_)), "{call}: {refused:?}");
            assert!(refused.reason().contains("not here") && refused.reason().contains("403"), "{call}: {refused:?}");
        }
    }

    #[test]
    fn a_request_that_is_too_large_for_something_on_the_way_says_which_size_must_pass() {
        for (bytes, least) in [(2_000_000, 6), (6 << 20, 6), ((6 << 20) + 1, 7)] {
            let refused = refusal_of("push-object", bytes, 413);
            let size = format!("no request of {bytes} bytes; its limit must be at least {least} MiB");
            assert!(matches!(&refused, Refusal::Large(reason) if reason.contains(&size)), "{refused:?}");
        }
        assert!(!refusal("push-object", 400).reason().contains("MiB"));
    }
}
