//! What delivers parcels between a server and its sites.

use std::time::Duration;

use super::parcel::{Limits, Parcel};

/// The address of a site, from 0 to the number of sites − 1. It need not be the client that the site is.
pub type Peer = usize;

/// What a carrier hands to the server.
#[derive(Debug)]
pub struct Arrival {
    /// The site that it comes from.
    pub from: Peer,
    /// The parcel; or why the site cannot be reached any more. Parcels to it are then lost.
    pub what: Result<Parcel, Lost>,
}

/// Why a site cannot be reached any more.
#[derive(Debug)]
pub struct Lost {
    /// The reason, in a sentence.
    pub reason: String,
    /// Whether it was ended from outside, so that it may answer if it is started again.
    pub was_killed: bool,
}

/// Delivers parcels. It knows nothing of what they hold.
pub trait Carrier {
    /// The number of sites.
    fn peers(&self) -> usize;

    /// The name of a site for messages to a person, such as that of its file.
    fn name(&self, peer: Peer) -> String;

    /// Hands a parcel over for delivery; its answer is refused beyond `limits`. A site that went away may be back.
    ///
    /// # Errors
    /// The site cannot be reached. The error is a sentence.
    fn send(&self, to: Peer, parcel: &Parcel, limits: Limits) -> Result<(), String>;

    /// What has arrived; waits for the first arrival, but no longer than this.
    fn receive(&self, wait: Duration) -> Vec<Arrival>;

    /// The sites that had ended and were started again since the last call.
    fn restarted(&self) -> Vec<Peer> {
        Vec::new()
    }

    /// Why no message will be delivered any more, if that is so. A round in progress then ends without effect.
    fn closed(&self) -> Option<String> {
        None
    }
}
