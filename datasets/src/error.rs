//! The error type of the crate. A message states the problem, its place and a remedy.

use std::path::PathBuf;

/// An error in reading, downloading, preparing or partitioning data.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// A file of a known data set is not in the data directory.
    #[error(
        "data set `{set}` is not there: looked for {}\n  run `fedstein data fetch {set}`, or name the directory that holds `{set}/` with --data-dir",
        .path.display()
    )]
    Missing {
        /// The name of the data set.
        set: String,
        /// The first file that was searched.
        path: PathBuf,
    },
    /// A file of a known data set that is downloaded manually is not in the data directory.
    #[error(
        "data set `{set}` is not there: looked for {}\n  it is not downloaded automatically: `fedstein data fetch {set}` says how to get it; or name the directory that holds `{set}/` with --data-dir",
        .path.display()
    )]
    NoDownload {
        /// The name of the data set.
        set: String,
        /// The first file that was searched.
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
    /// An operation of the operating system fails.
    #[error("{}: {source}", .path.display())]
    Io {
        /// File or directory.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The gzip stream is damaged or ends early.
    #[error("{}: damaged gzip ({detail}); fetch the file again", .path.display())]
    Gzip {
        /// The compressed file.
        path: PathBuf,
        /// The decoder's message.
        detail: String,
    },
    /// A gzipped file unpacks to far more than its own size, or a pipe does not end.
    #[error("{}: more than {limit} bytes come out of it; {remedy}", .path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// The number of bytes after which reading stops.
        limit: u64,
        /// The remedy.
        remedy: &'static str,
    },
    /// The first four bytes are not the expected idx magic number.
    #[error("{}: wrong idx magic number {found:#010x}, expected {expected:#010x} ({hint})", .path.display())]
    IdxMagic {
        /// The idx file.
        path: PathBuf,
        /// The first four bytes of the file (big-endian).
        found: u32,
        /// The expected number.
        expected: u32,
        /// The usual cause of the number that was found.
        hint: String,
    },
    /// The file ends within its header.
    #[error("{}: truncated idx file: it ends within the header", .path.display())]
    IdxHeader {
        /// The idx file.
        path: PathBuf,
    },
    /// The header claims more than this reader accepts.
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
        /// The number of data bytes in the file, or its upper bound: `at most n`.
        found: String,
    },
    /// The file continues after the data that its header announces.
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
        /// The number of images.
        images: usize,
        /// The number of labels.
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
        /// The number of bytes of it in the file.
        found: usize,
        /// Bytes of a record.
        expected: usize,
        /// A guess at the format of the file, or an empty text.
        hint: String,
    },
    /// A label of CIFAR that is out of range.
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
        /// The label in the file.
        label: String,
        /// The expected content.
        allowed: String,
    },
    /// A line with another number of fields than the ones before it.
    #[error("{}: line {line}: {found} columns, expected {expected}{hint}", .path.display())]
    Ragged {
        /// The text file.
        path: PathBuf,
        /// 1-based line.
        line: u64,
        /// Fields of this line.
        found: usize,
        /// The expected number of fields.
        expected: usize,
        /// The usual cause, or an empty text.
        hint: &'static str,
    },
    /// A quote that the file does not close: the rest of the file would be one field.
    #[error(
        "{}: line {line}, column {column}: the quote that opens here is not closed; close it, or leave it out",
        .path.display()
    )]
    Quote {
        /// The text file.
        path: PathBuf,
        /// 1-based line.
        line: u64,
        /// 1-based column, with its name if it has one.
        column: String,
    },
    /// A cell in quotes that goes on after its closing quote.
    #[error(
        "{}: line {line}, column {column}: the cell that a quote opens here goes on after its closing quote; is that quote \
         missing? (A quote within a cell in quotes is written twice.)",
        .path.display()
    )]
    AfterQuote {
        /// The text file.
        path: PathBuf,
        /// 1-based line of the opening quote.
        line: u64,
        /// 1-based column, with its name if it has one.
        column: String,
    },
    /// A field whose content does not fit its column.
    #[error("{}: line {line}, column {column}: {} is not {expected}", .path.display(), cell(value))]
    Field {
        /// The text file.
        path: PathBuf,
        /// 1-based line.
        line: u64,
        /// 1-based column, with its name if it has one.
        column: String,
        /// The field's text.
        value: String,
        /// The expected content.
        expected: String,
    },
    /// A text file without a data row.
    #[error("{}: no data rows", .path.display())]
    Empty {
        /// The text file.
        path: PathBuf,
    },
    /// The columns of a file do not fit the configuration.
    #[error("{}: {problem}", .path.display())]
    Columns {
        /// The text file.
        path: PathBuf,
        /// The problem, and a remedy.
        problem: String,
    },
    /// A key of the config has an invalid value.
    #[error("{key} = {value}: {problem}")]
    Config {
        /// The key with its section, e.g. `data.test_fraction`.
        key: String,
        /// Its value.
        value: String,
        /// The reason, and a remedy.
        problem: String,
    },
    /// More clients than rows.
    #[error("partition.clients = {clients}: there are only {rows} training rows; every client needs at least one")]
    TooManyClients {
        /// The number of clients in the configuration.
        clients: usize,
        /// The number of training rows.
        rows: usize,
    },
    /// The partition does not fit the data.
    #[error("partition kind `{kind}`: {problem}")]
    Partition {
        /// The partition's kind.
        kind: &'static str,
        /// The problem, and a remedy.
        problem: String,
    },
    /// A user's own rows do not fit together.
    #[error("rows of `{name}`: {problem}")]
    Rows {
        /// The name of the data set.
        name: String,
        /// The problem, and a remedy.
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
    /// The registry has no data set of this name.
    #[error("no data set is called `{name}`; there are: {known}")]
    UnknownSet {
        /// The requested name.
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
    /// Files of a set that is downloaded manually are not in the data directory.
    #[error(
        "data set `{set}` is not downloaded automatically; please download its files\n  missing: {}{}\n  {how}",
        .missing.first().map(|path| path.display().to_string()).unwrap_or_default(),
        if .missing.len() > 1 { format!(" and {} more (`fedstein data info {set}`)", .missing.len() - 1) } else { String::new() }
    )]
    ManualDownload {
        /// The name of the data set.
        set: String,
        /// The missing files.
        missing: Vec<PathBuf>,
        /// The address of the files, and their format.
        how: String,
    },
    /// Every mirror failed.
    #[error("could not fetch {}:{}", .path.display(), .attempts.iter().map(|a| format!("\n  {a}")).collect::<String>())]
    Fetch {
        /// The file that was to be fetched.
        path: PathBuf,
        /// One line per mirror: its address and the reason.
        attempts: Vec<String>,
    },
    /// The last mirror that answered in full sent another file than the publisher's.
    #[error(
        "{}: wrong checksum, the download was removed\n  expected sha256 {expected}\n  got      sha256 {found}{}",
        .path.display(),
        .attempts.iter().map(|a| format!("\n  {a}")).collect::<String>()
    )]
    Checksum {
        /// The file that was to be fetched.
        path: PathBuf,
        /// The publisher's checksum.
        expected: String,
        /// The checksum of the downloaded file.
        found: String,
        /// One line per mirror: its address and the reason.
        attempts: Vec<String>,
    },
}

/// A cell, for a message.
fn cell(text: &str) -> String {
    match text {
        "" => "an empty cell".to_owned(),
        text => format!("`{text}`"),
    }
}

impl DataError {
    pub(crate) fn io(path: &std::path::Path, source: std::io::Error) -> Self {
        DataError::Io { path: path.to_path_buf(), source }
    }

    /// Checks that there is a file where a key says so.
    ///
    /// # Errors
    /// There is none, or it is a directory; the message names the key.
    pub fn must_be_file(key: &str, path: &std::path::Path) -> Result<(), Self> {
        if path.is_dir() {
            return Err(Self::config(key, path.display(), "is a directory; name a file in it"));
        }
        match path.try_exists() {
            Ok(true) => Ok(()),
            Err(source) if source.kind() == std::io::ErrorKind::PermissionDenied => Err(Self::io(path, source)),
            Ok(false) | Err(_) => Err(Self::NoFile { key: key.to_owned(), path: path.to_path_buf() }),
        }
    }

    pub(crate) fn config(key: &str, value: impl ToString, problem: impl Into<String>) -> Self {
        DataError::Config { key: key.to_owned(), value: value.to_string(), problem: problem.into() }
    }
}
