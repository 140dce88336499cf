//! The directories that a run or a report creates, until it has results.

use std::fs;
use std::path::{Path, PathBuf};

/// Directories that did not exist, the innermost first. They are removed when this is dropped, if they are empty.
#[derive(Debug, Default)]
pub(crate) struct Created(Vec<PathBuf>);

impl Created {
    /// Those of a directory that is about to be created with its parents.
    pub fn with(path: &Path) -> Self {
        let missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
        Self(path.ancestors().take_while(missing).map(Path::to_path_buf).collect())
    }

    /// Lets them stay.
    pub fn keep(&mut self) {
        self.0.clear();
    }
}

impl Drop for Created {
    fn drop(&mut self) {
        for directory in &self.0 {
            // This cleans up after what is reported already.
            let _ = fs::remove_dir(directory);
        }
    }
}
