//! What a node does: it joins a SuperLink, asks for messages, answers them, and says that it is there.

use std::cell::Cell;
use std::collections::HashSet;
use std::convert::Infallible;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::fleet::{Fleet, HEARTBEAT, Refusal};
use super::messages::{Envelope, Error, Metadata, NodeId, ObjectTree, PushObjectRequest};
use super::objects::{Packed, Received, listed, most_bytes, too_many};
use super::wire::Signed;
use super::{foreign, is_tested, tested};
use crate::remote::records::Records;
use crate::remote::{Limits, Parcel, seal_failure};

/// The time for which a node tries to reach a SuperLink when it starts.
const FIRST: Duration = Duration::from_secs(60);
/// The time for which a node that starts tries again where the SuperLink may have its key from a process that is gone: it
/// takes such a process for gone after a minute of silence.
const FIRST_OF_KEY: Duration = Duration::from_secs(120);
/// The time for which a node that has joined takes answers that are no SuperLink's for its absence.
const STRANGE: Duration = Duration::from_secs(600);
/// The shortest and the longest wait before another attempt.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(20);
/// The shortest and the longest wait between two questions for messages.
const SOON: Duration = Duration::from_millis(200);
const LATE: Duration = Duration::from_secs(3);
/// The wait of a message for an object that the SuperLink does not have yet, and the number of such waits.
const OBJECT: Duration = Duration::from_millis(500);
const OBJECTS: usize = 1200;
/// The time between two looks at the signal to end.
const LOOK: Duration = Duration::from_millis(100);
/// Flower's code of an error of the program that answers at a node.
const APP_FAILED: Signed = Signed(2);
/// The bytes of an object that every proxy lets through; the usual limits begin at 1 MB.
const SMALL: usize = 1 << 19;
/// A session that does not exist, in which the SuperLink stores nothing. It is as long as those of the SuperLink, so that a
/// request with it is as long as the later one.
const NO_SESSION: &str = "00000000-0000-0000-0000-000000000000";

/// A node that has joined a SuperLink.
#[derive(Debug)]
pub(crate) struct Node {
    fleet: Fleet,
    /// The number that the SuperLink gave it, which changes when the SuperLink forgets the node.
    id: AtomicU64,
    /// Whether it registers its key itself, where otherwise the SuperLink's operator has done so.
    registers: bool,
    limits: Limits,
    /// The bytes of the largest object that has come through to the SuperLink.
    passed: AtomicUsize,
}

impl Node {
    /// Joins a SuperLink, which may take a minute to answer.
    ///
    /// # Errors
    /// The SuperLink cannot be reached, or refuses the node. The error is a sentence.
    pub fn join(fleet: Fleet, registers: bool, limits: Limits) -> Result<Self, String> {
        let node = Self::new(fleet, registers, limits);
        let tried = Cell::new(false);
        let passes = |refusal: &Refusal| matches!(refusal, Refusal::Precondition(_));
        let id = steadfast(|| node.enter(&tried), Some(FIRST), passes, FIRST_OF_KEY);
        node.id.store(id.map_err(|refusal| refusal.reason().to_owned())?, Relaxed);
        let id = node.id();
        match node.fleet.version() {
            Some(version) if is_tested(&version) => say(&format!("node {id} of a SuperLink of Flower {version}")),
            Some(version) => {
                say(&format!("node {id} of a SuperLink of Flower {}. {}", foreign(&version), tested()));
            }
            None => say(&format!("node {id} of a SuperLink that does not say its version. {}", tested())),
        }
        Ok(node)
    }

    fn new(fleet: Fleet, registers: bool, limits: Limits) -> Self {
        Self { fleet, id: AtomicU64::new(0), registers, limits, passed: AtomicUsize::new(SMALL) }
    }

    /// One attempt to join. `tried` says whether an earlier one may have registered the key.
    fn enter(&self, tried: &Cell<bool>) -> Result<u64, Refusal> {
        let registered = if self.registers { self.fleet.register() } else { Ok(()) };
        let may_be_there = !self.registers || tried.get();
        tried.set(tried.get() || matches!(registered, Ok(()) | Err(Refusal::Away(_))));
        if let Err(Refusal::Away(reason)) = registered {
            return Err(Refusal::Away(reason));
        }
        entered(may_be_there, registered, self.fleet.activate())
    }

    /// Answers messages until the SuperLink refuses the node.
    ///
    /// # Errors
    /// Why the SuperLink refuses it, in a sentence.
    pub fn work(&self, mut answer: impl FnMut(Parcel) -> Parcel) -> Result<Infallible, String> {
        let is_strange =
            |refusal: &Refusal| matches!(refusal, Refusal::Refused(_) | Refusal::Large(_) | Refusal::Precondition(_));
        let mut last = Instant::now();
        loop {
            match steadfast(|| self.fleet.pull(self.id()), None, is_strange, STRANGE) {
                Ok(Some((envelope, tree))) => {
                    if let Err(refusal) = self.attend(envelope, &tree, &mut answer) {
                        say(&format!("a message has no answer: {}", refusal.reason()));
                    }
                    last = Instant::now();
                }
                // A tenth of the time without a message, so that a wait adds little to it.
                Ok(None) | Err(Refusal::Ended) => sleep((last.elapsed() / 10).clamp(SOON, LATE)),
                Err(Refusal::Unknown(reason)) => {
                    say(&format!("{reason}; joining it anew"));
                    // A proxy, too, may answer that it does not know the node.
                    let passes = |refusal: &Refusal| is_strange(refusal) || matches!(refusal, Refusal::Unknown(_));
                    let tried = Cell::new(false);
                    let id = steadfast(|| self.enter(&tried), None, passes, STRANGE);
                    self.id.store(id.map_err(|refusal| refusal.reason().to_owned())?, Relaxed);
                    say(&format!("node {}", self.id()));
                }
                Err(
                    Refusal::Away(reason)
                    | Refusal::Precondition(reason)
                    | Refusal::Large(reason)
                    | Refusal::Refused(reason),
                ) => return Err(reason),
            }
        }
    }

    /// Says that the node is there until it is asked to end, and then that it leaves.
    pub fn keep_alive(&self, ends: &AtomicBool) {
        let beat = || Duration::from_secs_f64(HEARTBEAT * rand::random_range(0.6..0.7));
        let mut next = Instant::now() + beat();
        while !ends.load(Relaxed) {
            sleep(LOOK);
            if Instant::now() >= next {
                let is_known = self.fleet.heartbeat(self.id());
                // The other thread says what is wrong, and joins anew.
                next = Instant::now() + if is_known == Ok(true) { beat() } else { beat() / 5 };
            }
        }
        self.leave();
    }

    /// Takes part no more. A SuperLink that does not answer will find out by itself.
    pub fn leave(&self) {
        let id = self.id();
        let _ = self.fleet.deactivate(id);
        if self.registers {
            let _ = self.fleet.unregister(id);
        }
        say(&format!("node {id} has left"));
    }

    fn id(&self) -> u64 {
        self.id.load(Relaxed)
    }

    /// Receives a message, answers it and sends the answer.
    fn attend(
        &self,
        envelope: Envelope,
        tree: &ObjectTree,
        answer: &mut impl FnMut(Parcel) -> Parcel,
    ) -> Result<(), Refusal> {
        let asked = envelope.metadata.unwrap_or_default();
        let from = Instant::now();
        let records = self.receive(&asked, tree)?;
        let come = from.elapsed();
        let from = Instant::now();
        let parcel = records.and_then(Records::parcel);
        let sealed = parcel.as_ref().map(|parcel| parcel.envelope.clone()).unwrap_or_default();
        let records = parcel.and_then(|parcel| Ok(Records::of(&answer(parcel))?.0));
        let took = from.elapsed();
        let from = Instant::now();
        let (bytes, error) = self.reply(&asked, &sealed, records, took)?;
        let Metadata { run_id, message_type, group_id, .. } = asked;
        let round = if group_id.is_empty() { String::new() } else { format!(", round {}", foreign(&group_id)) };
        let what = error.map_or(String::new(), |reason| format!(" with an error: {reason}"));
        say(&format!(
            "run {run_id}{round}: {} answered{what} ({:.2} s to receive, {:.2} s to answer, {:.2} s to send {bytes} bytes)",
            foreign(&message_type),
            come.as_secs_f64(),
            took.as_secs_f64(),
            from.elapsed().as_secs_f64(),
        ));
        Ok(())
    }

    /// The records of a message; or why it has none that can be read, which is an answer too.
    fn receive(&self, asked: &Metadata, tree: &ObjectTree) -> Result<Result<Records, String>, Refusal> {
        let received = match listed(tree) {
            Ok(ids) => self.pull_objects(asked.run_id, &ids)?,
            Err(reason) => Err(reason),
        };
        patient(|| self.fleet.confirm(self.id(), asked.run_id, &asked.message_id), None)?;
        Ok(received.and_then(|received| received.records(&tree.object_id, self.limits)))
    }

    fn pull_objects(&self, run_id: u64, ids: &[&str]) -> Result<Result<Received, String>, Refusal> {
        let (mut received, mut rest) = (Received::default(), most_bytes(self.limits));
        for id in ids {
            let mut waits = 0;
            let content = loop {
                match patient(|| self.fleet.pull_object(self.id(), run_id, id, rest), None) {
                    Ok(Some(content)) => break content,
                    Ok(None) if waits == OBJECTS => return Ok(Err("an object of the message did not come".into())),
                    Ok(None) => sleep(OBJECT),
                    Err(Refusal::Large(reason) | Refusal::Refused(reason)) => return Ok(Err(reason)),
                    Err(refusal) => return Err(refusal),
                }
                waits += 1;
            };
            let Some(left) = rest.checked_sub(content.len() as u64) else { return Ok(Err(too_many(self.limits))) };
            rest = left;
            if let Err(reason) = received.keep(id, content) {
                return Ok(Err(reason));
            }
        }
        Ok(Ok(received))
    }

    /// Sends these records as the reply to a message, or why there are none. Records that are too large for something before
    /// the SuperLink are replaced by a failure, which has the number in the message's envelope.
    ///
    /// Returns the number of bytes of the objects that were sent, and the error, where the reply is one.
    fn reply(
        &self,
        asked: &Metadata,
        sealed: &[u8],
        records: Result<Records, String>,
        took: Duration,
    ) -> Result<(usize, Option<String>), Refusal> {
        let send = |content: Result<&Records, Error>| self.send(reply_to(asked.clone()), content, took);
        let records = match records {
            Ok(records) => records,
            Err(reason) => return Ok((send(Err(Error { code: APP_FAILED, reason: reason.clone() }))?, Some(reason))),
        };
        match send(Ok(&records)) {
            Err(Refusal::Large(reason)) => {
                say(&format!("an answer does not come through: {reason}"));
                // The limit may be lower than it was.
                self.passed.store(SMALL, Relaxed);
                let failure = Records::of(&seal_failure(0, sealed, reason.clone())).map_err(Refusal::Refused)?.0;
                Ok((send(Ok(&failure))?, Some(reason)))
            }
            sent => Ok((sent?, None)),
        }
    }

    /// Sends a reply: the number of bytes of the objects that were sent.
    fn send(&self, reply: Metadata, content: Result<&Records, Error>, took: Duration) -> Result<usize, Refusal> {
        let run_id = reply.run_id;
        let (packed, envelope, tree) = Packed::reply(reply, content);
        self.must_pass(run_id, &packed)?;
        let push = || self.fleet.push(self.id(), envelope.clone(), tree.clone(), took.as_secs_f64());
        let (pushed, tries) = counted(push)?;
        let wanted: HashSet<String> = pushed.wanted.into_iter().collect();
        // The object of the reply itself has the time in it and is always new.
        let is_taken = wanted.contains(&tree.object_id);
        if !is_taken && tries == 1 {
            return Err(Refusal::Refused("the SuperLink takes no answer to this message any more".into()));
        }
        // An earlier attempt, whose answer was lost, may have been taken. Its session is not known; without one the SuperLink
        // looks for a session that waits for the object.
        let session = if is_taken { pushed.session } else { String::new() };
        let mut bytes = 0;
        for (object_id, content) in packed.contents {
            if is_taken && !wanted.contains(&object_id) {
                continue;
            }
            bytes += content.len();
            let is_awaited = is_taken || object_id == tree.object_id;
            let stored = self.push_object(run_id, object_id, content, session.clone())?;
            if is_awaited && !stored {
                return Err(Refusal::Refused("the SuperLink does not keep an object of the answer".into()));
            }
        }
        Ok(bytes)
    }

    /// Offers the largest object of a reply, if none of its size has come through yet. Once a reply is announced no failure
    /// can take its place, and the ServerApp waits for its objects; so this comes first.
    fn must_pass(&self, run_id: u64, packed: &Packed) -> Result<(), Refusal> {
        let largest = packed.contents.iter().max_by_key(|(_, content)| content.len());
        let passed = self.passed.load(Relaxed);
        let Some((object_id, content)) = largest.filter(|(_, content)| content.len() > passed) else { return Ok(()) };
        self.push_object(run_id, object_id.clone(), content.clone(), NO_SESSION.into())?;
        self.passed.store(content.len(), Relaxed);
        Ok(())
    }

    /// Sends an object; whether it is stored. An object is stored once, so that the SuperLink may say no to an attempt because
    /// an earlier one, whose answer was lost, has stored it.
    fn push_object(&self, run_id: u64, object_id: String, content: Vec<u8>, session: String) -> Result<bool, Refusal> {
        let node = Some(NodeId { node_id: self.id() });
        let request = PushObjectRequest { node, run_id, object_id, content, session };
        let (stored, tries) = counted(|| self.fleet.push_object(&request))?;
        Ok(stored || tries > 1)
    }
}

/// What the answers to a registration and an activation mean together. A key that is registered already, by an attempt whose
/// answer was lost, is none the worse. [`Refusal::Precondition`] is what may pass with time: where the key `may_be_there`, the
/// SuperLink may have it from a process, or an attempt of this one, that it does not know to be gone.
fn entered(
    may_be_there: bool,
    registered: Result<(), Refusal>,
    activated: Result<u64, Refusal>,
) -> Result<u64, Refusal> {
    activated.map_err(|refusal| match (registered, refusal) {
        (_, Refusal::Away(reason)) => Refusal::Away(reason),
        (Err(Refusal::Precondition(first)), Refusal::Precondition(reason)) if may_be_there => {
            Refusal::Precondition(format!(
                "{first}; {reason}. An earlier attempt of this node, whose answer was lost, may have joined, which the \
                 SuperLink forgets after a minute"
            ))
        }
        // The SuperLink's operator registers the keys there.
        (Err(Refusal::Precondition(reason)), _) => Refusal::Refused(reason),
        (Err(refusal), _) => refusal,
        (Ok(()), Refusal::Precondition(reason)) if may_be_there => Refusal::Precondition(format!(
            "{reason}. The key is not registered there, or an earlier process with this key has ended without taking \
             leave, which the SuperLink notices after a minute"
        )),
        (Ok(()), Refusal::Precondition(reason)) => Refusal::Refused(reason),
        (Ok(()), refusal) => refusal,
    })
}

/// The metadata of a reply that is sent now. It is of use as long as its message.
fn reply_to(asked: Metadata) -> Metadata {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    Metadata {
        run_id: asked.run_id,
        message_id: String::new(),
        src_node_id: asked.dst_node_id,
        dst_node_id: asked.src_node_id,
        reply_to_message_id: asked.message_id,
        group_id: asked.group_id,
        ttl: asked.created_at + asked.ttl - now,
        message_type: asked.message_type,
        created_at: now,
        src_task_id: asked.dst_task_id,
        dst_task_id: asked.src_task_id,
    }
}

/// Repeats a call while the SuperLink is away, with growing waits; not longer than `within`.
fn patient<A>(call: impl Fn() -> Result<A, Refusal>, within: Option<Duration>) -> Result<A, Refusal> {
    let from = Instant::now();
    let (mut wait, mut attempts) = (SHORTEST, 1);
    loop {
        let reason = match call() {
            Err(Refusal::Away(reason)) => reason,
            other => {
                if attempts > 1 {
                    say(&format!("the SuperLink answers again, after {attempts} attempts"));
                }
                return other;
            }
        };
        if within.is_some_and(|within| from.elapsed() + wait > within) {
            return Err(Refusal::Away(format!(
                "{reason} ({attempts} attempts in {:.0} s)",
                from.elapsed().as_secs_f64()
            )));
        }
        if attempts == 1 {
            say(&format!("{reason}; trying again"));
        }
        sleep(wait.mul_f64(rand::random_range(0.5..1.0)));
        (wait, attempts) = ((wait * 2).min(LONGEST), attempts + 1);
    }
}

/// As [`patient`], for as long as it takes; with the number of attempts. Those before the last may have had an effect, because
/// an answer can be lost.
fn counted<A>(call: impl Fn() -> Result<A, Refusal>) -> Result<(A, usize), Refusal> {
    let tries = Cell::new(0);
    let once_more = || {
        tries.set(tries.get() + 1);
        call()
    };
    let answer = patient(once_more, None)?;
    Ok((answer, tries.get()))
}

/// As [`patient`], where some refusals `pass` with time, such as the answers of a proxy in the SuperLink's place while it
/// starts: the call is repeated for as long as `within` after the first of them, or the first since the SuperLink was away.
fn steadfast<A>(
    call: impl Fn() -> Result<A, Refusal>,
    away: Option<Duration>,
    passes: impl Fn(&Refusal) -> bool,
    within: Duration,
) -> Result<A, Refusal> {
    let was_away = Cell::new(false);
    let watched = || call().inspect_err(|refusal| was_away.set(was_away.get() || matches!(refusal, Refusal::Away(_))));
    let mut since = None;
    loop {
        let refusal = match patient(watched, away) {
            Err(refusal) if passes(&refusal) => refusal,
            other => return other,
        };
        if was_away.take() {
            since = None;
        }
        let Some(left) = within.checked_sub(since.get_or_insert_with(Instant::now).elapsed()) else {
            return Err(refusal);
        };
        say(&format!("{}; trying again for {:.0} s", refusal.reason(), left.as_secs_f64()));
        sleep(LONGEST.min(left.max(SOON)));
    }
}

/// A line for the person who watches the node.
fn say(line: &str) {
    // A failed write is ignored, because standard error may be closed.
    let _ = writeln!(io::stderr(), "{line}");
}

#[cfg(test)]
mod tests;
