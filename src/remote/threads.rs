//! Sites in threads of this process.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use super::carrier::{Arrival, Carrier, Peer};
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
    /// Starts a thread for each site, which ends with the carrier.
    pub fn new(sites: Vec<Answer>) -> Self {
        let (arrived, from) = channel();
        let site = |(peer, mut answer): (Peer, Answer)| {
            let (to, parcels) = channel::<Parcel>();
            let arrived = arrived.clone();
            thread::spawn(move || {
                for parcel in parcels {
                    if arrived.send(Arrival { from: peer, what: Ok(answer(parcel)) }).is_err() {
                        return;
                    }
                }
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
