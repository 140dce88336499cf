use std::io;
use std::path::{Path, PathBuf};

/// An error in writing a checkpoint, or in resuming a run from one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The run has no checkpoint.
    #[error("`{}` has no checkpoint: the run ended before its first one (checkpoint.every_seconds), keeps none (checkpoint.enabled, and checkpoint.keep after its end), or they were removed; a run goes on from a checkpoint alone. Start it again with another --out, or in its place with --force (in a program: `path` and `force` of `Artifacts::new`)", .0.display())]
    Missing(PathBuf),
    /// The checkpoints have another layout.
    #[error(
        "{}: this is a checkpoint of format {found}, and this program reads format {expected}; resume with the program \
         that wrote it",
        path.display()
    )]
    Format {
        /// The manifest.
        path: PathBuf,
        /// The format version found.
        found: u64,
        /// The format version that this program reads.
        expected: u64,
    },
    /// Keys that change the result differ; each item names one.
    #[error("a run resumes with its own configuration, but these keys differ:{}", lines(.0))]
    Config(Vec<String>),
    /// The data differ from those of the checkpoint.
    #[error(
        "the {what} not those of the checkpoint (sha256 {found:.12} instead of {expected:.12}): a run resumes with its \
         own data"
    )]
    Data {
        /// What differs: "training and test rows are" or "clients' rows are".
        what: &'static str,
        /// The digest of the present data.
        found: String,
        /// The digest in the checkpoint.
        expected: String,
    },
    /// The model is not that of the checkpoint.
    #[error("{0}")]
    Model(String),
    /// The checkpoint lies beyond the last round of the configuration.
    #[error("the checkpoint is of round {done}, rounds = {asked} is less; `rounds` is the total number of rounds")]
    Rounds {
        /// The checkpoint's round.
        done: usize,
        /// The key `rounds` of the configuration.
        asked: usize,
    },
    /// No generation of checkpoints is usable; each item gives the reason for one.
    #[error("no checkpoint can be used:{}", lines(.0))]
    Damaged(Vec<String>),
    /// A file is intact but its content is invalid.
    #[error("{0}")]
    Content(String),
    /// A file cannot be written atomically.
    #[error("cannot write a checkpoint: {0}")]
    Write(String),
    /// The state cannot be read from the device.
    #[error("the device failed: {0}")]
    Device(String),
    /// A file-system operation failed.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// The operation, as a verb.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

impl CheckpointError {
    /// Whether the user's request is wrong (exit code 2), rather than files or the machine (exit code 1).
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Missing(_)
                | Self::Format { .. }
                | Self::Config(_)
                | Self::Data { .. }
                | Self::Model(_)
                | Self::Rounds { .. }
        )
    }

    /// Makes an I/O error into one with the operation and the path.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }
}

/// Each item on a separate line.
fn lines(items: &[String]) -> String {
    items.iter().map(|item| format!("\n  {item}")).collect()
}

impl From<burn::tensor::TensorReadError> for CheckpointError {
    fn from(error: burn::tensor::TensorReadError) -> Self {
        Self::Device(error.to_string())
    }
}
