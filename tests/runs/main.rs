//! Whole runs: at the ends of what may be asked for, under faults, stopped and resumed, with clients selected.

#[path = "../common/mod.rs"]
mod common;
mod edges;
mod faults;
mod resume;
mod selection_runs;
