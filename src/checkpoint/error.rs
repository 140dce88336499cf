use std::io;
use std::path::{Path, PathBuf};

/// Why a checkpoint cannot be written, or a run cannot go on from one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// There is nothing to go on from.
    #[error("`{}` has no checkpoint; the run ended before its first one, start it again with --force", .0.display())]
    Missing(PathBuf),
    /// Checkpoints of another layout.
    #[error(
        "{}: this is a checkpoint of format {found}, and this program reads format {expected}; go on with the program \
         that wrote it",
        path.display()
    )]
    Format {
        /// The manifest.
        path: PathBuf,
        /// Its format.
        found: u64,
        /// What is read here.
        expected: u64,
    },
    /// Keys that change the result.
    #[error("a run goes on with the configuration it began with, but these keys differ:{}", lines(.0))]
    Config(Vec<String>),
    /// Other data.
    #[error(
        "the {what} not those of the checkpoint (sha256 {found:.12} instead of {expected:.12}): a run goes on with the \
         data it began with"
    )]
    Data {
        /// "training and test rows are", "clients' rows are".
        what: &'static str,
        /// The digest of what is here.
        found: String,
        /// The checkpoint's.
        expected: String,
    },
    /// The checkpoint is further than the run is to go.
    #[error("the checkpoint is of round {done}, rounds = {asked} is less; name as many rounds as the run is to have")]
    Rounds {
        /// Its round.
        done: usize,
        /// `rounds`.
        asked: usize,
    },
    /// No generation can be used.
    #[error("no checkpoint can be used:{}", lines(.0))]
    Damaged(Vec<String>),
    /// A file that is whole but does not hold what it should.
    #[error("{0}")]
    Content(String),
    /// A file cannot be written whole.
    #[error("cannot write a checkpoint: {0}")]
    Write(String),
    /// The device does not give out what is to be kept.
    #[error("the device failed: {0}")]
    Device(String),
    /// The file system refuses.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

impl CheckpointError {
    /// Whether what was asked for is wrong (exit 2), rather than files or the machine (exit 1).
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Missing(_) | Self::Format { .. } | Self::Config(_) | Self::Data { .. } | Self::Rounds { .. }
        )
    }

    /// What was tried on a path, and why it failed.
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }
}

/// Each on a line of its own.
fn lines(items: &[String]) -> String {
    items.iter().map(|item| format!("\n  {item}")).collect()
}

impl From<burn::tensor::TensorReadError> for CheckpointError {
    fn from(error: burn::tensor::TensorReadError) -> Self {
        Self::Device(error.to_string())
    }
}
