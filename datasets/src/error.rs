//! One error type for the crate: what was wrong, where, and what would be right.

use std::path::PathBuf;

/// Everything that can go wrong between a file and a set of client shards.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// A file of a known data set is not below the data directory.
    #[error(
        "data set `{set}` is not there: looked for {}\n  run `fedstein data fetch {set}`, or name the directory that holds `{set}/` with --data-dir",
        .path.display()
    )]
    Missing {
        /// Name of the data set.
        set: String,
        /// The file that was looked for first.
        path: PathBuf,
    },
    /// A file of a known data set that cannot be fetched is not below the data directory.
    #[error(
        "data set `{set}` is not there: looked for {}\n  it has no download: `fedstein data fetch {set}` says how to come by it; or name the directory that holds `{set}/` with --data-dir",
        .path.display()
    )]
    NoDownload {
        /// Name of the data set.
        set: String,
        /// The file that was looked for first.
        path: PathBuf,
    },
    /// A file the user named does not exist.
    #[error("no such file: {} ({key})", .path.display())]
    NoFile {
        /// The config key or argument that named it.
        key: String,
        /// The path as given.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("{}: {source}", .path.display())]
    Io {
        /// File or directory.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The gzip stream is damaged or ends early.
    #[error("{}: damaged gzip ({detail}); fetch the file again", .path.display())]
    Gzip {
        /// The compressed file.
        path: PathBuf,
        /// The decoder's words.
        detail: String,
    },
    /// A gzipped file unpacks to more than its size warrants, or a pipe does not end.
    #[error("{}: more than {limit} bytes come out of it; {remedy}", .path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Bytes that are read of it.
        limit: u64,
        /// What to do about it.
        remedy: &'static str,
    },
    /// The first four bytes are not the idx magic number that belongs here.
    #[error("{}: wrong idx magic number {found:#010x}, expected {expected:#010x} ({hint})", .path.display())]
    IdxMagic {
        /// The idx file.
        path: PathBuf,
        /// What the file starts with (big-endian).
        found: u32,
        /// What it should start with.
        expected: u32,
        /// What the number that was found usually means.
        hint: String,
    },
    /// The file ends within its header.
    #[error("{}: truncated idx file: it ends within the header", .path.display())]
    IdxHeader {
        /// The idx file.
        path: PathBuf,
    },
    /// The header claims more than this reader will ever hold.
    #[error("{}: the idx header claims {dims} = more than {limit} bytes; no such data set exists, the header is damaged", .path.display())]
    IdxTooLarge {
        /// The idx file.
        path: PathBuf,
        /// The dimensions as `a x b x c`.
        dims: String,
        /// Largest accepted number of data bytes.
        limit: u64,
    },
    /// The file ends before the data its header announces.
    #[error("{}: truncated idx file: the header announces {expected} data bytes ({dims}), there are {found}", .path.display())]
    IdxTruncated {
        /// The idx file.
        path: PathBuf,
        /// The dimensions as `a x b x c`.
        dims: String,
        /// Data bytes the header announces.
        expected: u64,
        /// Data bytes there are, or the most there can be: `at most n`.
        found: String,
    },
    /// The file goes on after the data its header announces.
    #[error("{}: trailing bytes: the idx header announces {expected} data bytes ({dims}), the file has more", .path.display())]
    IdxTrailing {
        /// The idx file.
        path: PathBuf,
        /// The dimensions as `a x b x c`.
        dims: String,
        /// Data bytes the header announces.
        expected: u64,
    },
    /// Images and labels do not belong together.
    #[error("{}: {labels} labels for the {images} images of {}", .labels_path.display(), .images_path.display())]
    IdxCount {
        /// File of the images.
        images_path: PathBuf,
        /// File of the labels.
        labels_path: PathBuf,
        /// Number of images.
        images: usize,
        /// Number of labels.
        labels: usize,
    },
    /// A file of CIFAR ends within a record.
    #[error(
        "{}: record {record} (from byte {byte}) is truncated: {found} of {expected} bytes; a file of this set is a \
         whole number of {expected}-byte records{hint}",
        .path.display()
    )]
    CifarTruncated {
        /// The file.
        path: PathBuf,
        /// The record, from 1.
        record: usize,
        /// Where it begins in the unpacked file, from 0.
        byte: usize,
        /// Bytes of it that are there.
        found: usize,
        /// Bytes of a record.
        expected: usize,
        /// What the file may be instead, or nothing.
        hint: String,
    },
    /// A label of CIFAR that there is not.
    #[error("{}: record {record} (byte {byte}): {name} {label} is out of range, it must be 0 to {most}", .path.display())]
    CifarLabel {
        /// The file.
        path: PathBuf,
        /// The record, from 1.
        record: usize,
        /// Where the label is in the unpacked file, from 0.
        byte: usize,
        /// Which of the record's labels.
        name: &'static str,
        /// Its value.
        label: u8,
        /// The largest that is allowed.
        most: u8,
    },
    /// A label outside the data set's classes.
    #[error("{}: row {row}: label {label} is out of range, the labels are {allowed}", .path.display())]
    Label {
        /// The file of the labels.
        path: PathBuf,
        /// 1-based row (line of a text file).
        row: u64,
        /// The label as it stands in the file.
        label: String,
        /// What would be right.
        allowed: String,
    },
    /// A line with another number of fields than the ones before it.
    #[error("{}: line {line}: {found} columns, expected {expected}", .path.display())]
    Ragged {
        /// The text file.
        path: PathBuf,
        /// 1-based line.
        line: u64,
        /// Fields of this line.
        found: usize,
        /// Fields a line should have.
        expected: usize,
    },
    /// A field that is not what its column holds.
    #[error("{}: line {line}, column {column}: `{value}` is not {expected}", .path.display())]
    Field {
        /// The text file.
        path: PathBuf,
        /// 1-based line.
        line: u64,
        /// 1-based column, with its name where there is one.
        column: String,
        /// The field's text.
        value: String,
        /// What would be right.
        expected: String,
    },
    /// A text file without a data row.
    #[error("{}: no data rows", .path.display())]
    Empty {
        /// The text file.
        path: PathBuf,
    },
    /// The columns of a file do not fit what was asked of it.
    #[error("{}: {problem}", .path.display())]
    Columns {
        /// The text file.
        path: PathBuf,
        /// What does not fit, and what would.
        problem: String,
    },
    /// A key of the config has a value that cannot work.
    #[error("{key} = {value}: {problem}")]
    Config {
        /// The key with its section, e.g. `data.test_fraction`.
        key: String,
        /// The value it has.
        value: String,
        /// Why it cannot work, and what would.
        problem: String,
    },
    /// More clients than rows.
    #[error("partition.clients = {clients}: there are only {rows} training rows; every client needs at least one")]
    TooManyClients {
        /// Clients asked for.
        clients: usize,
        /// Training rows there are.
        rows: usize,
    },
    /// The partition does not fit the data.
    #[error("partition `{kind}`: {problem}")]
    Partition {
        /// The partition's kind.
        kind: &'static str,
        /// What does not fit, and what would.
        problem: String,
    },
    /// A user's own rows do not fit together.
    #[error("rows of `{name}`: {problem}")]
    Rows {
        /// The name of the data set.
        name: String,
        /// What does not fit, and what would.
        problem: String,
    },
    /// A normalisation was applied to features of another width.
    #[error("the normalisation belongs to {expected} columns, the features have {found}")]
    Width {
        /// Columns the normalisation was made for.
        expected: usize,
        /// Columns of the features.
        found: usize,
    },
    /// A normalisation by channels was applied to features whose number is not a multiple of the channels.
    #[error(
        "the normalisation belongs to {channels} channels, the features have {found} columns, which is not a multiple"
    )]
    Channels {
        /// Channels the normalisation was made for.
        channels: usize,
        /// Columns of the features.
        found: usize,
    },
    /// No such data set in the registry.
    #[error("no data set is called `{name}`; there are: {known}")]
    UnknownSet {
        /// The name asked for.
        name: String,
        /// All names, separated by commas.
        known: String,
    },
    /// A registry entry names a file outside the data directory.
    #[error("refusing the file name `{name}`: it must be relative and stay below the data directory")]
    UnsafeName {
        /// The name.
        name: String,
    },
    /// Files of a set that is not downloaded are not below the data directory.
    #[error(
        "data set `{set}` cannot be fetched, its files are put in their place by hand\n  missing: {}{}\n  {how}",
        .missing.first().map(|path| path.display().to_string()).unwrap_or_default(),
        if .missing.len() > 1 { format!(" and {} more (`fedstein data info {set}`)", .missing.len() - 1) } else { String::new() }
    )]
    ByHand {
        /// Name of the data set.
        set: String,
        /// The files that are not there.
        missing: Vec<PathBuf>,
        /// Where to get them, and what they must hold.
        how: String,
    },
    /// Every mirror failed.
    #[error("could not fetch {}:{}", .path.display(), .attempts.iter().map(|a| format!("\n  {a}")).collect::<String>())]
    Fetch {
        /// The file that should have been there.
        path: PathBuf,
        /// One line a mirror: its address and what went wrong.
        attempts: Vec<String>,
    },
    /// The last mirror that answered in full sent another file than the publisher's.
    #[error(
        "{}: wrong checksum, the download was removed\n  expected sha256 {expected}\n  got      sha256 {found}{}",
        .path.display(),
        .attempts.iter().map(|a| format!("\n  {a}")).collect::<String>()
    )]
    Checksum {
        /// The file that should have been there.
        path: PathBuf,
        /// The publisher's checksum.
        expected: String,
        /// The checksum of what came.
        found: String,
        /// One line a mirror: its address and what went wrong.
        attempts: Vec<String>,
    },
}

impl DataError {
    pub(crate) fn io(path: &std::path::Path, source: std::io::Error) -> Self {
        DataError::Io { path: path.to_path_buf(), source }
    }

    pub(crate) fn config(key: &str, value: impl ToString, problem: impl Into<String>) -> Self {
        DataError::Config { key: key.to_owned(), value: value.to_string(), problem: problem.into() }
    }
}
