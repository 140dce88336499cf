//! Why a run did not end well, and with which exit code.

use fedstein_datasets::DataError;
use fedstein_models::ModelError;
use fedstein_schema::ConfigError;
use thiserror::Error;

use crate::array::ArrayError;
use crate::backend::BackendError;
use crate::checkpoint::CheckpointError;
use crate::metrics::MetricError;
use crate::ot::TransportError;
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
    /// Too few clients gave a reply that can be used, however often they were asked.
    #[error(
        "round {round}: {usable} usable {} after {attempts} {}, and it takes {needed} (federation.min_replies); the state of \
         the round before is the last good one. The first that failed: {first}",
        if *usable == 1 { "reply" } else { "replies" },
        if *attempts == 1 { "attempt" } else { "attempts" }
    )]
    Quorum {
        /// Round, from 1.
        round: usize,
        /// Attempts made.
        attempts: usize,
        /// Usable replies of all attempts.
        usable: usize,
        /// Fewest that close a round.
        needed: usize,
        /// Why the first reply could not be used.
        first: String,
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
    /// The clients' particles have no barycenter.
    #[error("the server cannot take the barycenter: {0}")]
    Transport(#[from] TransportError),
    /// Predictions that are no predictions, as those of particles that have run away.
    #[error("the predictions cannot be evaluated: {0}; a smaller optimizer.lr or algorithm.step_size usually helps")]
    Predictions(MetricError),
    /// A Langevin chain diverged.
    #[error("step {step}: chain {chain} is not finite; a smaller algorithm.step_size usually helps")]
    Langevin {
        /// Step of the chain, from 1: the last one of the visit in which it was noticed.
        step: usize,
        /// Index of the first bad chain.
        chain: usize,
    },
    /// The device did not answer.
    #[error("the device failed: {0}")]
    Device(String),
    /// An array of a message is not what is needed.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// A client that the fleet does not have.
    #[error("there is no client {0}")]
    NoClient(usize),
    /// A client that the server has nothing for: it is not among those of the round.
    #[error("client {0} is not asked in this round")]
    NotAsked(usize),
    /// A client whose computation panicked: it does not answer again.
    #[error("client {0} stopped in an earlier round")]
    Stopped(usize),
    /// A file of the run cannot be written.
    #[error("{0}")]
    Output(String),
    /// A checkpoint cannot be written or used.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The user wanted the run to end before its last round.
    #[error("interrupted after round {round} of {rounds}")]
    Interrupted {
        /// The last round.
        round: usize,
        /// How many there were to be.
        rounds: usize,
    },
}

impl RunError {
    /// 2 where the input was wrong, 1 where the run failed, 130 where the user ended it.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_) | Self::Data(_) | Self::Model(_) | Self::Backend(_) => 2,
            Self::Checkpoint(error) if error.is_usage() => 2,
            // 128 + SIGINT, as shells have it.
            Self::Interrupted { .. } => 130,
            Self::Client { .. }
            | Self::Quorum { .. }
            | Self::Svgd(_)
            | Self::Server { .. }
            | Self::Transport(_)
            | Self::Predictions(_)
            | Self::Langevin { .. }
            | Self::Device(_)
            | Self::Array(_)
            | Self::NoClient(_)
            | Self::NotAsked(_)
            | Self::Stopped(_)
            | Self::Checkpoint(_)
            | Self::Output(_) => 1,
        }
    }
}

impl From<burn::tensor::TensorReadError> for RunError {
    fn from(error: burn::tensor::TensorReadError) -> Self {
        Self::Device(error.to_string())
    }
}
