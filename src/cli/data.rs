//! `fedstein data`.

use std::ffi::OsString;
use std::path::Path;

use clap::Subcommand;

use super::options::DataDir;

/// What to do, with which data set.
#[derive(Debug, PartialEq, Eq, Subcommand)]
pub enum Data {
    /// List the data sets and show which are on this machine.
    List {
        /// Where the data sets are.
        #[command(flatten)]
        data_dir: DataDir,
    },
    /// Describe a data set: size, source, licence, files.
    Info {
        /// The data set, such as mnist
        name: String,
        /// Where the data sets are.
        #[command(flatten)]
        data_dir: DataDir,
    },
    /// Download a data set and verify its checksums.
    Fetch {
        /// The data set, such as mnist
        name: String,
        /// Where the data sets are.
        #[command(flatten)]
        data_dir: DataDir,
    },
}

impl Data {
    /// As [`DataDir::set_default`].
    pub(super) fn set_default(&mut self, variable: Option<OsString>) {
        let (Self::List { data_dir } | Self::Info { data_dir, .. } | Self::Fetch { data_dir, .. }) = self;
        data_dir.set_default(variable);
    }

    /// The directory of the data sets.
    pub fn data_dir(&self) -> &Path {
        let (Self::List { data_dir } | Self::Info { data_dir, .. } | Self::Fetch { data_dir, .. }) = self;
        data_dir.path()
    }
}
