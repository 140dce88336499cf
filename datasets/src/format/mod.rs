//! File formats, one module for each. A file is recognised as gzipped, as Parquet or as Arrow by its content, not by its name.

pub mod cifar;
mod columnar;
pub mod csv;
mod csv_table;
pub mod header;
pub mod idx;
pub mod libsvm;
mod lines;
pub mod new_rows;
mod quotes;
mod roles;
pub mod splits;
pub mod survey;
mod survey_column;
pub mod table;

pub(crate) use lines::cells_at;

use crate::DataError;
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

/// The largest number of bytes that are read from a text file, a pipe or a device. The decompressed text files of the
/// known data sets are far smaller (Covertype: 75 MB).
const TEXT_LIMIT: u64 = 1 << 31;

/// The number of bytes that any gzipped file may unpack to.
const UNPACKED_ALWAYS: u64 = 16 << 20;

/// The number of times its own size that a gzipped file may unpack to beyond that. The largest of the known sets is 33,
/// of titanic with 24 distinct rows in 2,201; MNIST's labels have 2, Covertype 7.
const UNPACKED_TIMES: u64 = 128;

/// The largest expansion of deflate (zlib's documentation: 1032:1).
const DEFLATE_MOST: u64 = 1032;

/// The bytes of a file, decompressed where they start with gzip's magic number.
pub(crate) struct Source {
    /// The decompressed bytes.
    pub reader: Box<dyn Read>,
    /// Whether the file is gzipped.
    pub gzipped: bool,
    /// The largest number of bytes that `reader` can yield.
    pub at_most: u64,
    /// Whether the first line has the names of the columns in any case.
    pub has_header: bool,
}

/// The beginnings of compressed files that are not read, with the program that unpacks each: bzip2, xz and Zstandard.
const COMPRESSED: [(&[u8], &str); 3] =
    [(b"BZh", "bunzip2"), (b"\xfd7zXZ\x00", "unxz"), (b"\x28\xb5\x2f\xfd", "unzstd")];

/// Opens a file, which is decompressed if its content is gzipped. A Parquet or an Arrow file is opened as CSV.
///
/// # Errors
/// The file cannot be read, or is a directory.
pub(crate) fn open(path: &Path) -> Result<Source, DataError> {
    // Windows would say that access is denied.
    if path.is_dir() {
        return Err(DataError::io(path, io::ErrorKind::IsADirectory.into()));
    }
    let file = File::open(path).map_err(|e| DataError::io(path, e))?;
    let meta = file.metadata().map_err(|e| DataError::io(path, e))?;
    let length = if meta.is_file() { meta.len() } else { u64::MAX };
    let mut file = BufReader::with_capacity(1 << 16, file);
    let start = file.fill_buf().map_err(|e| DataError::io(path, e))?;
    // The beginnings of `.xlsx` and other ZIP files, and of `.xls`.
    if [&b"PK\x03\x04"[..], b"\xd0\xcf\x11\xe0"].iter().any(|mark| start.starts_with(mark)) {
        let problem =
            "a workbook of a spreadsheet, or another archive, and not a table in text; save the sheet as \"CSV UTF-8\"";
        return Err(DataError::Columns { path: path.to_path_buf(), problem: problem.into() });
    }
    if let Some((_, with)) = COMPRESSED.iter().find(|(mark, _)| start.starts_with(mark)) {
        let problem = format!("it is compressed, and of compressed files only gzip is read; unpack it with `{with}`");
        return Err(DataError::Columns { path: path.to_path_buf(), problem });
    }
    if let Some(form) = columnar::Form::of(start) {
        let text = columnar::text(path, form, TEXT_LIMIT)?;
        let at_most = text.len() as u64;
        return Ok(Source { reader: Box::new(Cursor::new(text)), gzipped: false, at_most, has_header: true });
    }
    let gzipped = start.starts_with(&[0x1f, 0x8b]);
    Ok(if gzipped {
        let at_most = length.saturating_mul(DEFLATE_MOST);
        let limit = match meta.is_file() {
            true => UNPACKED_ALWAYS.max(length.saturating_mul(UNPACKED_TIMES)),
            false => TEXT_LIMIT,
        };
        Source {
            reader: Box::new(Bounded { inner: MultiGzDecoder::new(file), left: limit, limit }),
            gzipped,
            at_most,
            has_header: false,
        }
    } else {
        // Files in /proc have no length either.
        let limit = if meta.is_file() { length.max(TEXT_LIMIT) } else { TEXT_LIMIT };
        Source {
            reader: Box::new(Bounded { inner: file, left: limit, limit }),
            gzipped,
            at_most: length,
            has_header: false,
        }
    })
}

/// A reader that fails after a limit of bytes.
struct Bounded<R> {
    inner: R,
    left: u64,
    limit: u64,
}

/// The error of [`Bounded`] at its limit.
#[derive(Debug, thiserror::Error)]
#[error("more than {limit} bytes")]
struct TooLong {
    limit: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.left =
            self.left.checked_sub(count as u64).ok_or_else(|| io::Error::other(TooLong { limit: self.limit }))?;
        Ok(count)
    }
}

/// Converts a read error into an error of this crate.
pub(crate) fn read_error(path: &Path, gzipped: bool, error: io::Error) -> DataError {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    if let Some(TooLong { limit }) = error.get_ref().and_then(|inner| inner.downcast_ref()) {
        let remedy = match gzipped {
            true => "that is too much for its size. If it is right, unpack it with gunzip first",
            false => "this reader stops there",
        };
        return DataError::TooLong { path: path.to_path_buf(), limit: *limit, remedy };
    }
    if gzipped && matches!(error.kind(), InvalidData | InvalidInput | UnexpectedEof) {
        let detail = match error.kind() {
            UnexpectedEof => "it ends early, or has bytes behind its end".to_owned(),
            _ => error.to_string(),
        };
        return DataError::Gzip { path: path.to_path_buf(), detail };
    }
    DataError::io(path, error)
}

/// The whole content of a text file, decompressed.
///
/// # Errors
/// The file cannot be read or is too long, or the gzip stream is damaged.
pub(crate) fn read_text(path: &Path) -> Result<Vec<u8>, DataError> {
    let source = open(path)?;
    let mut bytes = Vec::new();
    let mut limited = source.reader.take(TEXT_LIMIT + 1);
    limited.read_to_end(&mut bytes).map_err(|e| read_error(path, source.gzipped, e))?;
    if bytes.len() as u64 > TEXT_LIMIT {
        let problem = format!("more than {TEXT_LIMIT} bytes of text; this reader stops there");
        return Err(DataError::Columns { path: path.to_path_buf(), problem });
    }
    Ok(bytes)
}

/// The first of `names` that is a file in `directory`.
pub(crate) fn first_file(directory: &Path, names: &[&str]) -> Option<PathBuf> {
    names.iter().map(|name| directory.join(name)).find(|path| path.is_file())
}
