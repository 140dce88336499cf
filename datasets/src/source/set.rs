//! The description of a data set, which `fedstein data` prints: its authors, its files and their addresses. Checksums
//! and sizes are the publishers'. Those of manually downloaded files are of the copies with which fedstein was tested;
//! another copy in the same format is read as well.

/// The description of a data set.
#[derive(Clone, Copy, Debug)]
pub struct DataSet {
    /// The name: the `kind` in `[data]` and the argument of `fedstein data fetch`.
    pub name: &'static str,
    /// One line with the subject and the numbers of rows and features.
    pub summary: &'static str,
    /// The authors, and the publication to cite.
    pub source: &'static str,
    /// The licence, as its publisher states it.
    pub licence: &'static str,
    /// The origin of the rows.
    pub origin: Origin,
    /// The files in the data directory; empty unless [`Origin::Download`]. Of `raetsch` and `uci-regression`, which
    /// have several tables, only the files of the table in use are needed.
    pub files: &'static [DataFile],
    /// Instructions for a manual download and the format of the files; `None` for sets that [`fetch`](crate::fetch())
    /// downloads.
    pub manual_download: Option<&'static str>,
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
            manual_download: None,
        }
    }
}

/// The origin of the rows of a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Files in the data directory, which are fetched from the publisher or, with [`DataSet::manual_download`], by the
    /// user.
    Download,
    /// Part of the program.
    Embedded,
    /// Drawn from the run's seed.
    Generated,
    /// A file that the user names.
    Own,
}

/// One file of a data set.
#[derive(Clone, Copy, Debug)]
pub struct DataFile {
    /// The path below the data directory, with `/`.
    pub path: &'static str,
    /// The size; 0 if it is not known ([`DataFile::is_known`]).
    pub bytes: u64,
    /// The SHA-256 in lower-case hexadecimal digits; empty if it is not known.
    pub sha256: &'static str,
    /// The addresses, which are tried in turn until the checksum is correct. Empty for a manual download.
    pub mirrors: &'static [&'static str],
    /// Other files in the data directory that are read in its place.
    pub alternatives: &'static [&'static str],
    /// Files with a part of the set's rows, which are read if the whole file is missing. The run then has a note.
    pub part: &'static [&'static str],
}

impl DataFile {
    /// Whether size and checksum are known. Other files are never fetched.
    pub fn is_known(&self) -> bool {
        !self.sha256.is_empty()
    }
}

/// A manually downloaded file, gzipped; it is read unpacked as well.
macro_rules! manual_file {
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

pub(super) use manual_file;
