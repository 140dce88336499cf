//! One experiment: its configuration, its run, and its output files.

pub mod artifact;
mod assemble;
mod assigned;
pub mod at_site;
mod calibrate;
mod checkpoints;
pub mod config;
mod diagnosis;
mod drive;
pub mod evaluate;
pub mod finished;
pub mod forecast;
mod history;
pub mod inventory;
#[doc(hidden)]
pub mod judge;
mod model_card;
mod outcome;
mod participation;
pub mod personal;
pub mod progress;
pub mod provenance;
pub mod recalibrated;
mod recorder;
mod rotation;
mod rounds_csv;
pub mod run;
pub mod run_dir;
pub mod run_report;
pub mod serve;
mod site_results;
mod sites;
pub mod split;
mod stop;
mod terms;

pub use artifact::Artifacts;
pub use calibrate::Calibrated;
pub use config::{Config, ConfigLoader};
pub use fedstein_report::RoundRecord;
pub use fedstein_schema as schema;
pub use outcome::Outcome;
pub use progress::Quiet;
pub use run::{Experiment, run};
pub use run_report::{ReportOptions, write_report};
pub use schema::{Overrides, Source};
pub use serve::serve;
