//! Whole runs: at the extremes of the allowed configs, under faults, stopped and resumed, with clients selected, with
//! messages in other precisions, with server and clients that are built apart, with test rows at the clients, at sites.

mod apart;
mod class_weights;
#[path = "../common/mod.rs"]
mod common;
mod edges;
mod faults;
mod lr_schedule;
mod maps;
mod memory_budget;
mod own_algorithm;
mod own_data;
mod own_model;
mod own_selection;
mod program;
mod resume;
mod resume_process;
mod round_evaluator;
mod row_order;
mod selection_runs;
mod site_absent;
mod site_crashes;
mod site_faults;
mod sites;
mod wire;
