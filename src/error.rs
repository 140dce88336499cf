//! The errors of a run, and the exit code of each.

use std::any::Any;
use std::path::PathBuf;

use fedstein_datasets::DataError;
use fedstein_models::ModelError;
use fedstein_schema::ConfigError;
use thiserror::Error;

use crate::array::ArrayError;
use crate::backend::BackendError;
use crate::checkpoint::CheckpointError;
use crate::metrics::MetricError;
use crate::ot::TransportError;
use crate::report::ClientNames;
use crate::stein::SvgdError;

impl From<ConfigError> for RunError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error.to_string())
    }
}

/// Any failure of a run.
#[derive(Debug, Error)]
pub enum RunError {
    /// The configuration does not fit the data or itself.
    #[error("{0}")]
    Config(String),
    /// The data cannot be read or partitioned.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A feature of a row to predict is not finite. Messages count rows and features from 1.
    #[error(
        "{input}: data row {}, feature {} is not finite on the scale of the training rows (`normalisation` in model.json)",
        row + 1, column + 1
    )]
    Feature {
        /// What the rows are.
        input: String,
        /// The row, from 0.
        row: usize,
        /// The feature, from 0.
        column: usize,
    },
    /// The model cannot be built.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The backend cannot be used.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// A client's computation failed.
    #[error("round {round}, client {client}: {reason}")]
    Client {
        /// Round, from 1.
        round: usize,
        /// Client, from 0.
        client: usize,
        /// What went wrong.
        reason: String,
    },
    /// Too few clients gave a usable reply in all attempts of a round.
    #[error(
        "round {round}: {usable} usable {} after {attempts} {}, and it takes {needed} (federation.min_replies); the state of \
         the round before is the last good one. The first that failed: {first}",
        if *usable == 1 { "reply" } else { "replies" },
        if *attempts == 1 { "attempt" } else { "attempts" }
    )]
    Quorum {
        /// Round, from 1.
        round: usize,
        /// Number of attempts made.
        attempts: usize,
        /// Number of usable replies in all attempts.
        usable: usize,
        /// Minimum number of usable replies.
        needed: usize,
        /// Why the first reply could not be used.
        first: Box<RunError>,
    },
    /// Particles diverged or the device failed inside an SVGD loop.
    #[error(transparent)]
    Svgd(#[from] SvgdError),
    /// Particles diverged in the server's own steps.
    #[error("round {round}, server: {error}")]
    Server {
        /// Round, from 1.
        round: usize,
        /// What went wrong.
        error: SvgdError,
    },
    /// The barycenter of the clients' particles is undefined.
    #[error("the server cannot take the barycenter: {0}")]
    Transport(#[from] TransportError),
    /// The predictions are invalid, as those of diverged particles.
    #[error("the predictions cannot be evaluated: {0}{advice}", advice = if diverged(.0) { SMALLER_STEPS } else { "" })]
    Predictions(MetricError),
    /// A Langevin chain diverged.
    #[error("step {step}: chain {chain} is not finite; a smaller algorithm.step_size usually helps")]
    Langevin {
        /// Step of the chain, from 1: the last one of the visit in which the divergence was detected.
        step: usize,
        /// Index of the first bad chain.
        chain: usize,
    },
    /// An algorithm from outside this crate failed, or a model panicked, for a reason of its own.
    #[error("{0}")]
    Algorithm(Box<dyn std::error::Error + Send + Sync>),
    /// The device failed.
    #[error("the device failed: {0}")]
    Device(String),
    /// An array of a message has another shape or type than is required.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// The fleet has no client of this index.
    #[error("there is no client {0}")]
    NoClient(usize),
    /// The client is not selected in this round, so the server has no request for it.
    #[error("client {0} is not selected in this round")]
    NotSelected(usize),
    /// The client's computation panicked; it gives no further replies.
    #[error("client {client}: {reason}")]
    Stopped {
        /// Client, from 0.
        client: usize,
        /// The round, and what the panic said.
        reason: String,
    },
    /// Sites have not answered before the first round, in which all must.
    #[error(
        "no answer of {sites} within {seconds} s; a site has federation.deadline to answer, and before round 1 at least 60 s"
    )]
    Silent {
        /// The sites.
        sites: String,
        /// The time that they had, in seconds.
        seconds: f64,
    },
    /// Messages to the sites are not delivered any more.
    #[error("the connection to the sites has ended: {0}")]
    Disconnected(String),
    /// A file of the run cannot be written.
    #[error("{0}")]
    Output(String),
    /// The run's directory is not there any more.
    #[error(
        "the run's directory `{}` was moved, removed or replaced while the run worked in it; the run has ended, and its files \
         are not complete", .0.display()
    )]
    Moved(PathBuf),
    /// A checkpoint cannot be written or used.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The user ended the run before its last round.
    #[error("interrupted after round {round} of {rounds}")]
    Interrupted {
        /// The last completed round.
        round: usize,
        /// The number of rounds of the whole run.
        rounds: usize,
    },
}

/// What helps where predictions are not finite.
const SMALLER_STEPS: &str = "; a smaller optimizer.lr or algorithm.step_size usually helps";

/// Whether predictions are those of particles that have diverged, rather than of arguments that do not fit together.
fn diverged(error: &MetricError) -> bool {
    matches!(
        error,
        MetricError::Probability { .. }
            | MetricError::LogProbability { .. }
            | MetricError::RowSum { .. }
            | MetricError::NotFinite { .. }
            | MetricError::NotPositive { .. }
    )
}

impl RunError {
    /// The same error, with the name of the client that it is about where clients have names.
    pub(crate) fn naming(self, names: &ClientNames) -> Self {
        match self {
            Self::Client { round, client, reason } if !names.is_empty() => {
                Self::Client { round, client, reason: format!("{}: {reason}", names.of(client)) }
            }
            Self::Quorum { round, attempts, usable, needed, first } => {
                Self::Quorum { round, attempts, usable, needed, first: Box::new(first.naming(names)) }
            }
            other => other,
        }
    }

    /// Whether the device failed.
    pub fn is_of_device(&self) -> bool {
        matches!(
            self,
            Self::Device(_)
                | Self::Svgd(SvgdError::Device { .. })
                | Self::Server { error: SvgdError::Device { .. }, .. }
                | Self::Checkpoint(CheckpointError::Device(_))
        )
    }

    /// Whether the same run may succeed at another time: files or the machine failed, or somebody ended it.
    pub fn may_pass(&self) -> bool {
        let is_of_files = matches!(
            self,
            Self::Data(_) | Self::Output(_) | Self::Checkpoint(CheckpointError::Io { .. } | CheckpointError::Write(_))
        );
        let is_of_machine =
            matches!(self, Self::Backend(_) | Self::Silent { .. } | Self::Disconnected(_) | Self::Interrupted { .. });
        is_of_files || is_of_machine || self.is_of_device()
    }

    /// The exit code: 2 where the input was wrong, 1 where the run failed, 130 where the user ended it.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_) | Self::Data(_) | Self::Feature { .. } | Self::Model(_) | Self::Backend(_) => 2,
            Self::Checkpoint(error) if error.is_usage() => 2,
            // The code is 128 + SIGINT, by the convention of shells.
            Self::Interrupted { .. } => 130,
            Self::Client { .. }
            | Self::Quorum { .. }
            | Self::Svgd(_)
            | Self::Server { .. }
            | Self::Transport(_)
            | Self::Predictions(_)
            | Self::Langevin { .. }
            | Self::Algorithm(_)
            | Self::Device(_)
            | Self::Array(_)
            | Self::NoClient(_)
            | Self::NotSelected(_)
            | Self::Stopped { .. }
            | Self::Silent { .. }
            | Self::Disconnected(_)
            | Self::Checkpoint(_)
            | Self::Output(_)
            | Self::Moved(_) => 1,
        }
    }
}

impl From<burn::tensor::TensorReadError> for RunError {
    fn from(error: burn::tensor::TensorReadError) -> Self {
        Self::Device(error.to_string())
    }
}

/// A message without what it says of the library's functions in brackets, such as "(in a program: `Finished::forecast`)": for
/// users of the command, and of the Python package.
pub fn without_functions(text: &str) -> String {
    let (mut kept, mut rest) = (String::new(), text);
    while let Some((before, from)) = rest.split_once(" (") {
        kept += before;
        rest = match from.split_once(')') {
            Some((inside, after)) if inside.contains('`') && inside.contains("::") => after,
            _ => {
                kept += " (";
                from
            }
        };
    }
    kept + rest
}

/// The text of a panic; `None` where it has none.
pub(crate) fn words_of_panic(panic: &(dyn Any + Send)) -> Option<&str> {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    owned.or(panic.downcast_ref::<&str>().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_for_programs_is_left_out_for_others() {
        let text = "leave --client out (in a program: `Finished::forecast`), or train (again) with `a::b`";
        assert_eq!(without_functions(text), "leave --client out, or train (again) with `a::b`");
        assert_eq!(without_functions("no bracket (is closed"), "no bracket (is closed");
    }

    #[test]
    fn smaller_steps_are_advised_where_particles_diverge_and_not_where_arguments_do_not_fit() {
        let value = f64::NAN;
        let says = |error| RunError::Predictions(error).to_string().contains("a smaller optimizer.lr");
        assert!(says(MetricError::LogProbability { particle: 0, row: 0, class: 0, value }));
        assert!(says(MetricError::NotPositive { what: "precision", index: 0, value }));
        assert!(!says(MetricError::Length { what: "labels", got: 3, expected: 4 }));
        assert!(!says(MetricError::Bins { got: 0, max: 9 }) && !says(MetricError::NoRows));
        assert!(!says(MetricError::Label { row: 0, label: 7, classes: 2 }));
    }
}
