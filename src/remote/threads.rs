//! Sites in threads of this process.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use super::carrier::{Arrival, Carrier, Lost, Peer};
use super::parcel::{Limits, Parcel};

/// What a site does with a parcel.
pub type Answer = Box<dyn FnMut(Parcel) -> Parcel + Send>;

/// A carrier to sites that are threads of this process. Limits do not apply: a parcel is not decoded on the way.
#[derive(Debug)]
pub struct Threads {
    to: Vec<Sender<Parcel>>,
    from: Mutex<Receiver<Arrival>>,
}

impl Threads {
    /// Starts a thread for each site, which ends with the carrier. One that panics is lost.
    pub fn new(sites: Vec<Answer>) -> Self {
        let (arrived, from) = channel();
        let site = |(peer, mut answer): (Peer, Answer)| {
            let (to, parcels) = channel::<Parcel>();
            let arrived = arrived.clone();
            thread::spawn(move || {
                while let Ok(parcel) = parcels.recv() {
                    let Ok(answered) = catch_unwind(AssertUnwindSafe(|| answer(parcel))) else { break };
                    if arrived.send(Arrival { from: peer, what: Ok(answered) }).is_err() {
                        return;
                    }
                }
                // Whoever hears of the end and sends again must not reach this thread.
                drop(parcels);
                let lost = Lost { reason: "its thread has panicked".into(), was_killed: false };
                let _ = arrived.send(Arrival { from: peer, what: Err(lost) });
            });
            to
        };
        Self { to: sites.into_iter().enumerate().map(site).collect(), from: Mutex::new(from) }
    }
}

impl Carrier for Threads {
    fn peers(&self) -> usize {
        self.to.len()
    }

    fn name(&self, peer: Peer) -> String {
        format!("site {peer}")
    }

    fn send(&self, to: Peer, parcel: &Parcel, _: Limits) -> Result<(), String> {
        let sent = self.to.get(to).map(|thread| thread.send(parcel.clone()));
        sent.ok_or_else(|| "there is no such site".to_owned())?.map_err(|_| "its thread has ended".into())
    }

    fn receive(&self, wait: Duration) -> Vec<Arrival> {
        let Ok(from) = self.from.lock() else { return Vec::new() };
        match from.recv_timeout(wait) {
            Ok(first) => std::iter::once(first).chain(from.try_iter()).collect(),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::envelope::Content;
    use crate::remote::link::Link;
    use crate::remote::{Arrays, seal};

    #[test]
    fn a_site_that_panics_is_a_lost_answer_and_no_wait_without_end() {
        let mut asked = 0;
        let answer = move |_| {
            asked += 1;
            assert!(asked < 2, "the second question is too much");
            seal(7, 1, Content::Ready { visited: 0 }, &Arrays::default()).unwrap()
        };
        let carrier = Threads::new(vec![Box::new(answer)]);
        let link = Link::new(&carrier, 7);
        let ask = || link.send(0, Content::Describe {}, &Arrays::default());
        let first = ask().unwrap();
        assert!(link.collect(&[first], None, || true).unwrap()[0].what.is_ok());
        let second = ask().unwrap();
        let answers = link.collect(&[second], None, || true).unwrap();
        assert!(answers[0].what.as_ref().is_err_and(|reason| reason.contains("panicked")), "{answers:?}");
        assert!(ask().is_err());
    }
}
