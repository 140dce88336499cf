//! The protocol between server and clients: the two halves of an algorithm, and the messages between them.
//!
//! An algorithm implements [`ServerHalf`] and [`ClientHalf`] and builds them from a [`Setup`]. A
//! [`Request`] carries the server's [`Message`] to one client, a [`Reply`] carries the client's back: named arrays and
//! named numbers, never rows. [`crate::federation`] sends them; this module does not depend on how.

pub mod calibrating;
mod fingerprint;
mod halves;
mod map;
mod message;
mod names;
mod packing;
mod prediction;
mod saved;
mod setup;
mod wire;

pub use calibrating::{Calibrating, ScoreForm, SetForm, TestForm};
pub use halves::{ClientHalf, ClientHalves, Halves, ServerHalf, Watch};
pub use map::{map_array, map_of};
pub use message::{Ask, ClientId, Message, Question, Reply, Request, RequestKind, Scoring, SharedMessage};
pub use names::{BATCHES, CLIENT_BYTES, DISCREPANCY, KDE_ESS, OPTIMIZER, PARTICLES, ROWS, SCORE_NORM, STEP_FACTOR};
pub use packing::{as_sent, diagnosed, message_of, particles_of};
pub use prediction::{Posterior, Predictor};
pub use setup::{LocalData, Setup, all_here};
pub use wire::Wire;
pub(crate) use wire::{from_half, half_exponent, to_half};
