//! The program through its command line: the binary, in a directory of its own, with real files and exit codes.

mod backends;
mod bad_input;
mod bench;
mod data;
#[path = "../common/place.rs"]
mod place;
mod predict;
mod report;
mod reproduce;
mod train;
