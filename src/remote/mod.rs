//! Clients that are elsewhere: what is said between a server and its sites, and how it travels.
//!
//! A message is an [`envelope`] in JSON with the `.npy` files ([`npy`]) of its arrays: a [`Parcel`]. A [`Carrier`] delivers
//! parcels: to threads of this process, to child processes, or over an engine such as Flower. [`Remote`] is the
//! [`Fleet`](crate::federation::fleet::Fleet) over a carrier. Nothing here computes with tensors, and nothing here knows how
//! a site answers.

mod carrier;
pub mod envelope;
mod fleet;
mod link;
pub mod npy;
mod parcel;
mod pipes;
pub mod records;
mod threads;

pub use carrier::{Arrival, Carrier, Lost, Peer};
pub use envelope::{
    Arrays, CalibrationTold, Content, Identity, MOMENT, Opened, PROTOCOL, Purpose, ReplyHead, RequestHead, ask_who,
    open, seal, seal_failure, shown, who_answers,
};
pub use fleet::{LEAST, Remote, Wait};
pub use link::{Answer, Link};
pub use parcel::{Limits, Parcel, TooLarge};
pub use pipes::Pipes;
pub use threads::Threads;
