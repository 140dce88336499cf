//! The command line: the program's binary in an own directory, with real files and exit codes.

mod backends;
mod bad_input;
mod bench;
mod data;
mod federation;
#[path = "../common/place.rs"]
mod place;
mod predict;
mod report;
mod reproduce;
mod site;
mod tables;
mod train;
