//! The fleet of clients that are elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::carrier::Peer;
use super::envelope::{Arrays, Content, RequestHead};
use super::link::{Answer, Link};
use crate::checkpoint::State;
use crate::error::RunError;
use crate::federation::fleet::Fleet;
use crate::protocol::{Ask, CLIENT_BYTES, ClientId, Reply, Request, Watch};

/// The shortest time that sites get before the first round, in which they read their files, and after the last one, in which
/// they predict their calibration rows and write their reports.
pub const LEAST: Duration = Duration::from_secs(60);
/// The shortest silence that is told.
const SILENCE: Duration = Duration::from_secs(30);

/// What is to be told while replies are waited for.
#[derive(Debug)]
pub enum Wait<'a> {
    /// Nothing: the wait goes on.
    GoesOn,
    /// These clients are silent for unusually long; once in a wait.
    Silent(&'a [ClientId]),
    /// The site of this client had ended and was started again.
    Restarted(ClientId),
}

/// A fleet of clients at sites. A client keeps its state at its site; the server's checkpoints have none of it.
pub struct Remote<'a> {
    link: Link<'a>,
    /// The site of each client, `[K]`.
    sites: Vec<Peer>,
    /// The time after which replies are not waited for.
    deadline: Option<Duration>,
    /// Called again and again while replies are waited for.
    waiting: &'a (dyn Fn(Wait<'_>) + Sync),
    /// The shortest silence that is told.
    silence: Duration,
    /// The shortest time for answers about calibration rows.
    least: Duration,
    /// The longest wait for all replies so far.
    longest: Mutex<Duration>,
    kept: Mutex<Kept>,
}

/// To which states of the clients the server may go back.
#[derive(Debug, Default)]
struct Kept {
    /// The last round in which a reply of each client was aggregated.
    counted: BTreeMap<ClientId, usize>,
    /// The same at the last two checkpoints.
    checkpoints: BTreeMap<ClientId, [usize; 2]>,
    /// Whether there is a checkpoint.
    saved: bool,
    /// The clients that said after their last visit that they keep no more than the place in the order of their rows.
    stateless: BTreeSet<ClientId>,
}

impl Kept {
    /// The oldest round to whose end a client may have to go back.
    fn oldest(&self, client: ClientId, counted: usize) -> usize {
        // A client without a round at a checkpoint has not trained before it.
        let before = self.checkpoints.get(&client).map_or(0, |[before, _]| *before);
        if self.saved { before } else { counted }
    }
}

impl<'a> Remote<'a> {
    /// A fleet over a link to sites, by client. Replies are waited for as long as `deadline` says, in seconds; `waiting` is called
    /// again and again meanwhile. Answers about calibration rows have at least [`LEAST`] and three times the longest wait before.
    /// Unusually long is a silence of 30 s and of three times the longest wait before.
    pub fn new(
        link: Link<'a>,
        sites: Vec<Peer>,
        deadline: Option<f64>,
        waiting: &'a (dyn Fn(Wait<'_>) + Sync),
    ) -> Self {
        let deadline = deadline.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        Self {
            link,
            sites,
            deadline,
            waiting,
            silence: SILENCE,
            least: LEAST,
            longest: Mutex::default(),
            kept: Mutex::default(),
        }
    }

    fn send(&self, request: &Request, arrays: &Arrays) -> Result<u64, RunError> {
        let &Request { round, client, counted, .. } = request;
        let peer = *self.sites.get(client).ok_or(RunError::NoClient(client))?;
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (keep, stateful) = (kept.oldest(client, counted), !kept.stateless.contains(&client));
        drop(kept);
        let sent = self.link.send(peer, Content::Request(RequestHead::of(request, keep, stateful)), arrays);
        sent.map_err(|reason| RunError::Client { round, client, reason })
    }

    /// The client whose site this is.
    fn client_at(&self, peer: Peer) -> Option<ClientId> {
        self.sites.iter().position(|site| *site == peer)
    }

    /// Tells of the sites that were started again since the last call.
    fn tell_restarted(&self) {
        for client in self.link.carrier().restarted().into_iter().filter_map(|peer| self.client_at(peer)) {
            (self.waiting)(Wait::Restarted(client));
        }
    }

    /// The reply in an answer; `round` is that of the requests that are waited for.
    fn reply(&self, answer: Answer, round: usize) -> Option<Result<Reply, RunError>> {
        let client = self.client_at(answer.from)?;
        let failed = |reason| RunError::Client { round, client, reason };
        let opened = match answer.what {
            Ok(opened) => opened,
            Err(reason) => return Some(Err(failed(reason))),
        };
        let Content::Reply(head) = &opened.content else {
            return Some(Err(failed("the answer to a request is not a reply".into())));
        };
        if head.client != client {
            return Some(Err(failed(format!("it replies as client {}", head.client))));
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // The reply of a visit says how much the client keeps besides the place in the order of its rows.
        match head.numbers.get(CLIENT_BYTES) {
            Some(0.0) => _ = kept.stateless.insert(client),
            Some(_) => _ = kept.stateless.remove(&client),
            None => {}
        }
        drop(kept);
        Some(match opened.message(head.numbers.clone()) {
            Ok(message) => Ok(Reply {
                run: opened.run,
                round: head.round,
                client,
                state: head.state.0,
                seconds: answer.seconds,
                message,
            }),
            Err(reason) => Err(failed(reason)),
        })
    }
}

impl Fleet for Remote<'_> {
    fn dispatch(&self, requests: &[Request], watch: Watch) -> Vec<Result<Reply, RunError>> {
        let mut longest = self.longest.lock().unwrap_or_else(PoisonError::into_inner);
        // All rounds are over when the calibration rows are asked about: nobody waits for a silent site for ever.
        let is_last = requests.first().is_some_and(|request| matches!(request.ask, Ask::Calibrate(_)));
        let time = match is_last {
            true => Some(self.deadline.unwrap_or_default().max(self.least).max(longest.saturating_mul(3))),
            false => self.deadline,
        };
        let deadline = time.and_then(|time| Instant::now().checked_add(time));
        let round = requests.first().map_or(0, |request| request.round);
        // Requests of one state share their arrays.
        let mut encoded: BTreeMap<u64, Arrays> = BTreeMap::new();
        let (mut awaited, mut asked, mut replies) = (Vec::new(), Vec::new(), Vec::new());
        for request in requests {
            let arrays = encoded.entry(request.state);
            match self.send(request, arrays.or_insert_with(|| Arrays::of(&request.message, request.wire))) {
                Ok(number) => {
                    awaited.push(number);
                    asked.push(request.client);
                }
                Err(error) => replies.push(Err(error)),
            }
        }
        // The user can end the wait as the steps of clients in this process; only requests for training are watched.
        let (begin, mut said) = (Instant::now(), false);
        let patience = self.silence.max(longest.saturating_mul(3));
        let watched = || {
            watch(awaited.len() - self.link.open(&awaited), awaited.len());
            let is_long = !said && begin.elapsed() >= patience;
            said |= is_long;
            let is_silent = |(number, _): &(&u64, &ClientId)| is_long && self.link.open(&[**number]) > 0;
            let silent: Vec<ClientId> =
                awaited.iter().zip(&asked).filter(is_silent).map(|(_, client)| *client).collect();
            (self.waiting)(if silent.is_empty() { Wait::GoesOn } else { Wait::Silent(&silent) });
            self.tell_restarted();
            true
        };
        let mut answers = match self.link.collect(&awaited, deadline, watched) {
            Ok(answers) => answers,
            Err(error) => return vec![Err(error)],
        };
        // The wait for a site that is silent about its calibration rows says nothing about the next one.
        if !is_last {
            *longest = begin.elapsed().max(*longest);
        }
        drop(longest);
        self.tell_restarted();
        // The order of arrival depends on the machines. Events and sums must not.
        answers.sort_by_key(|answer| answer.number);
        // A reply to an earlier request may still be of use. A failure of an earlier request is not one of these.
        let waited = |number| awaited.contains(&number);
        replies.extend(answers.into_iter().filter_map(|answer| {
            let number = answer.number;
            self.reply(answer, round).filter(|reply| waited(number) || reply.is_ok())
        }));
        replies
    }

    fn settle(&self, round: usize, counted: &[ClientId]) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.counted.extend(counted.iter().map(|client| (*client, round)));
    }

    fn save_own(&self) -> State {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.saved = true;
        let Kept { counted, checkpoints, stateless, .. } = &mut *kept;
        for (client, round) in counted {
            let [_, last] = checkpoints.get(client).copied().unwrap_or_default();
            checkpoints.insert(*client, [last, *round]);
        }
        let rounds = |at: usize| checkpoints.values().map(move |rounds| rounds[at]);
        State::default()
            .with_counts("clients", checkpoints.keys().copied())
            .with_counts("before", rounds(0))
            .with_counts("last", rounds(1))
            .with_counts("stateless", stateless.iter().copied())
    }

    fn restore_own(&self, state: &State) -> Result<(), RunError> {
        if state.is_empty() {
            return Ok(());
        }
        let (clients, before, last) = (state.counts("clients")?, state.counts("before")?, state.counts("last")?);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.saved = true;
        kept.stateless = state.counts("stateless")?.into_iter().collect();
        kept.counted = clients.iter().copied().zip(last.iter().copied()).collect();
        kept.checkpoints = clients.into_iter().zip(before.into_iter().zip(last).map(|(a, b)| [a, b])).collect();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;
    use crate::protocol::{Calibrating, Message, Scoring};
    use crate::remote::{Arrival, Carrier, Limits, Parcel};

    /// A site that takes every message and never answers.
    struct Silent;

    impl Carrier for Silent {
        fn peers(&self) -> usize {
            1
        }

        fn name(&self, peer: Peer) -> String {
            peer.to_string()
        }

        fn send(&self, _: Peer, _: &Parcel, _: Limits) -> Result<(), String> {
            Ok(())
        }

        fn receive(&self, wait: Duration) -> Vec<Arrival> {
            std::thread::sleep(wait);
            Vec::new()
        }
    }

    #[test]
    fn the_wait_for_a_silent_site_is_watched_and_ends_at_the_deadline() {
        let (looks, waits) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let told = AtomicUsize::new(0);
        let waiting = |wait: Wait<'_>| {
            waits.fetch_add(1, Relaxed);
            told.fetch_add(if let Wait::Silent(clients) = wait { clients.len() } else { 0 }, Relaxed);
        };
        let mut remote = Remote::new(Link::new(&Silent, 3), vec![0], Some(0.5), &waiting);
        remote.silence = Duration::from_millis(100);
        let watch = |answered, asked| {
            assert_eq!((answered, asked), (0, 1));
            looks.fetch_add(1, Relaxed);
        };
        let replies = remote.dispatch(&[Request::new(1, 0, Ask::Train, Message::default())], &watch);
        // At .2 s and .4 s.
        assert!(replies.is_empty() && looks.load(Relaxed) >= 1);
        assert_eq!(told.load(Relaxed), 1, "once");
        // Nothing watches a request for scores, and the user can end this wait too.
        let before = waits.load(Relaxed);
        let scores = Request::new(1, 0, Ask::Score(Scoring::default()), Message::default());
        assert!(remote.dispatch(&[scores], &|_, _| {}).is_empty() && waits.load(Relaxed) > before);
        assert_eq!(told.load(Relaxed), 1, "not before three times the longest wait");
    }

    #[test]
    fn answers_about_calibration_rows_have_more_time_than_a_round_and_not_for_ever() {
        let asked = || Request::new(1, 0, Ask::Calibrate(Calibrating::Rows), Message::default());
        let waited = |remote: &Remote<'_>, request| {
            let begin = Instant::now();
            assert!(remote.dispatch(&[request], &|_, _| {}).is_empty());
            begin.elapsed()
        };
        let millis = Duration::from_millis;
        for deadline in [None, Some(0.01)] {
            let mut remote = Remote::new(Link::new(&Silent, 3), vec![0], deadline, &|_| ());
            remote.least = millis(150);
            assert!((millis(150)..millis(2000)).contains(&waited(&remote, asked())), "{deadline:?}");
        }
        // Three times as long as for the scores of a round.
        let mut remote = Remote::new(Link::new(&Silent, 3), vec![0], Some(0.1), &|_| ());
        remote.least = millis(1);
        let scores = Request::new(1, 0, Ask::Score(Scoring::default()), Message::default());
        assert!(waited(&remote, scores) >= millis(100));
        assert!(waited(&remote, asked()) >= millis(300));
    }
}
