//! Why a run did not end well, and with which exit code.

use fedstein_datasets::DataError;
use fedstein_models::ModelError;
use thiserror::Error;

use crate::backend::BackendError;
use crate::federation::message::ClientId;
use crate::stein::SvgdError;

/// Any failure of a run.
#[derive(Debug, Error)]
pub enum RunError {
    /// The configuration does not fit the data or itself.
    #[error("{0}")]
    Config(String),
    /// The data cannot be read or dealt.
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
        client: ClientId,
        /// What went wrong.
        reason: String,
    },
    /// Particles diverged or the device failed inside an SVGD loop.
    #[error(transparent)]
    Svgd(#[from] SvgdError),
    /// The device did not answer.
    #[error("the device failed: {0}")]
    Device(String),
    /// A file of the run cannot be written.
    #[error("{0}")]
    Output(String),
}

impl RunError {
    /// 2 where the input was wrong, 1 where the run failed.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_) | Self::Data(_) | Self::Model(_) | Self::Backend(_) => 2,
            Self::Client { .. } | Self::Svgd(_) | Self::Device(_) | Self::Output(_) => 1,
        }
    }
}

impl From<burn::tensor::TensorReadError> for RunError {
    fn from(error: burn::tensor::TensorReadError) -> Self {
        Self::Device(error.to_string())
    }
}
