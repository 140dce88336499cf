//! What `fedstein data` tells of a data set: whose it is, which files it needs and where those come from. Checksums and
//! sizes are the publishers'; of files without a download, those of the copies that fedstein was tested with, and
//! another copy of the right format is read as well.

/// One data set.
#[derive(Clone, Copy, Debug)]
pub struct DataSet {
    /// Its name: the `kind` in `[data]`, the argument of `fedstein data fetch`.
    pub name: &'static str,
    /// One line: what, how many rows, how many features.
    pub summary: &'static str,
    /// Who made it, and the publication to cite.
    pub source: &'static str,
    /// Licence, as its publisher states it.
    pub licence: &'static str,
    /// Where its rows come from.
    pub origin: Origin,
    /// What has to be in the data directory; empty unless [`Origin::Download`]. Of `raetsch` and `uci-regression`,
    /// which are several tables, only the files of the one that is used.
    pub files: &'static [DataFile],
    /// Where the files are not downloaded: how a user comes by them and what they must hold. `None` otherwise.
    pub by_hand: Option<&'static str>,
}

impl DataSet {
    /// A set that is drawn from the run's seed.
    pub(super) const fn generated(name: &'static str, summary: &'static str, source: &'static str) -> Self {
        Self {
            name,
            summary,
            source,
            licence: "drawn from the run's seed: none",
            origin: Origin::Generated,
            files: &[],
            by_hand: None,
        }
    }
}

/// Where rows come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// From files below the data directory: fetched from the publisher or, with [`DataSet::by_hand`], put there.
    Download,
    /// Part of the program.
    Embedded,
    /// Drawn from the run's seed.
    Generated,
    /// From a file the user names.
    Own,
}

/// One file of a data set.
#[derive(Clone, Copy, Debug)]
pub struct DataFile {
    /// Path below the data directory, with `/`.
    pub path: &'static str,
    /// Size; 0 where it is not known ([`DataFile::is_known`]).
    pub bytes: u64,
    /// SHA-256, lower-case hexadecimal; empty where it is not known.
    pub sha256: &'static str,
    /// Where to get it; tried in turn. Whatever answers, the checksum decides. Empty where it is put there by hand.
    pub mirrors: &'static [&'static str],
    /// Other files that are read in its place, below the data directory.
    pub alternatives: &'static [&'static str],
    /// Files with a part of the set's rows, which are read where the whole is not there; a note then says so.
    pub part: &'static [&'static str],
}

impl DataFile {
    /// Whether size and checksum are known. A file of which they are not is never fetched.
    pub fn is_known(&self) -> bool {
        !self.sha256.is_empty()
    }
}

/// A file that is put there by hand, gzipped; it is read unpacked as well.
macro_rules! by_hand {
    ($path:literal, $bytes:literal, $sha256:literal) => {
        $crate::source::DataFile {
            path: concat!($path, ".gz"),
            bytes: $bytes,
            sha256: $sha256,
            mirrors: &[],
            alternatives: &[$path],
            part: &[],
        }
    };
}

pub(super) use by_hand;
