//! One experiment: its configuration, its run, and what the run leaves behind.

pub mod artifact;
mod assemble;
mod checkpoints;
pub mod config;
mod diagnosis;
mod diary;
pub mod evaluate;
pub mod finished;
mod history;
pub mod lock;
mod outcome;
pub mod personal;
pub mod progress;
pub mod record;
pub mod run;
pub mod run_dir;

pub use config::Config;
pub use fedstein_schema as schema;
pub use outcome::Outcome;
pub use progress::Quiet;
pub use run::{Experiment, run};
pub use schema::{Overrides, Source};
