//! The command line: the program's binary in an own directory, with real files and exit codes.

mod backends;
mod bad_input;
mod bench;
mod calibration;
mod client;
mod clusters;
mod codes;
mod data;
mod evaluate;
mod evaluate_trained;
#[cfg(unix)]
mod example;
mod federation;
mod federation_held_out;
mod init;
mod init_groups;
mod init_spreadsheets;
mod init_study;
mod init_targets;
mod model_card;
mod own_model;
mod pages;
#[path = "../common/place.rs"]
mod place;
mod predict;
mod report;
mod reproduce;
mod runs;
mod site;
mod site_init;
mod site_split;
mod stop;
mod stop_sites;
mod study;
mod study_refusals;
mod tables;
mod train;
