//! Why the directory of a run cannot be used.

use std::io;
use std::path::PathBuf;

use super::contents::CONFIG;
use crate::checkpoint::lock;
use crate::report::files::FileError;

/// The reason why a run's directory cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunDirError {
    /// The directory exists already.
    #[error("the output directory `{}` exists and is not empty; choose another with --out or replace it with --force (in a program: `path` and `force` of `Artifacts::new`)", .0.display())]
    Exists(PathBuf),
    /// The directory has a run that was stopped.
    #[error(
        "the output directory `{}` has a run that was stopped after round {round}; go on with `{}`, choose another with \
         --out, or replace it with --force (in a program: `Artifacts::resume`, or `path` and `force` of `Artifacts::new`)", path.display(), crate::shell::resume(path, &[])
    )]
    Stopped {
        /// The directory.
        path: PathBuf,
        /// The round of its newest checkpoint.
        round: usize,
    },
    /// Another process works in the directory, or this one has it in other hands.
    #[error("the run directory `{}` is in use by {holder}; {}", path.display(), waiting(holder))]
    InUse {
        /// The directory.
        path: PathBuf,
        /// A description of the process.
        holder: String,
    },
    /// `--force` would remove a file that no run has written.
    #[error("--force replaces only the directory of a run (in a program: `force` of `Artifacts::new`); `{}` holds {found}", path.display())]
    NotARun {
        /// The directory.
        path: PathBuf,
        /// The content that is not a run's.
        found: String,
    },
    /// The directory holds no run that could be resumed.
    #[error("`{}` is not the directory of a run: it holds no `{CONFIG}`", .0.display())]
    NothingToResume(PathBuf),
    /// A file of this name exists.
    #[error("the output directory `{}` cannot be created: a file of this name exists", .0.display())]
    NotADirectory(PathBuf),
    /// The directory cannot be created, or no file in it.
    #[error("the output directory `{}` cannot be written: {source}; choose another with --out (in a program: the `path` of `Artifacts::new`)", path.display())]
    NotWritable {
        /// The directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The directory, or a part of it, cannot be read, or locked.
    #[error("cannot {action} `{}`: {source}; name another directory", path.display())]
    NotUsable {
        /// The operation, as a verb.
        action: &'static str,
        /// The directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The directory is not there any more.
    #[error("the directory `{}` was moved, removed or replaced", .0.display())]
    Moved(PathBuf),
    /// A file in the directory cannot be written.
    #[error("cannot write {0}")]
    Write(#[from] FileError),
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

/// What to do about the holder of a directory.
fn waiting(holder: &str) -> &'static str {
    match lock::is_us(holder) {
        true => "this program itself: the `Artifacts` of a run keeps its directory until it is dropped",
        false => {
            "wait for it to end, or choose another directory with --out (in a program: the `path` of `Artifacts::new`)"
        }
    }
}

impl RunDirError {
    /// Whether the user's choice of directory is wrong (exit code 2), rather than the machine (exit code 1).
    pub fn is_usage(&self) -> bool {
        !matches!(self, Self::Io { .. } | Self::Moved(_) | Self::Write(_))
    }
}
