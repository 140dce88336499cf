//! Parquet files and Arrow's IPC files (Feather) as the text of a CSV file, so that they are tables like any other: a row
//! is a line, and the names of the columns are the first one.
//!
//! Numbers keep their bits, missing values are empty cells, dates are `2026-11-23`, true and false are these words.

use std::path::Path;

use crate::DataError;

/// The form of a file, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Parquet.
    Parquet,
    /// Arrow IPC with an index at its end, also called Feather.
    Arrow,
}

/// The character between the cells of the text.
pub(super) const DELIMITER: u8 = b',';

impl Form {
    /// The form of a file that begins with these bytes; `None` for any other file.
    pub fn of(start: &[u8]) -> Option<Self> {
        match start {
            [b'P', b'A', b'R', b'1', ..] => Some(Self::Parquet),
            [b'A', b'R', b'R', b'O', b'W', b'1', 0, 0, ..] => Some(Self::Arrow),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Parquet => "a Parquet file",
            Self::Arrow => "an Arrow file",
        }
    }

    fn error(self, path: &Path, problem: &str) -> DataError {
        DataError::Columns { path: path.to_path_buf(), problem: format!("{}: {problem}", self.name()) }
    }
}

/// The file as the text of a CSV file, at most `limit` bytes long.
///
/// # Errors
/// The program was built without the feature `parquet`, the file is damaged, too long, or has a column of lists, structs or
/// bytes.
#[cfg(not(feature = "parquet"))]
pub(super) fn text(path: &Path, form: Form, _limit: u64) -> Result<Vec<u8>, DataError> {
    Err(form.error(
        path,
        "this program was built without them; build it with `--features parquet`, or convert the file to CSV",
    ))
}

#[cfg(feature = "parquet")]
pub(super) use with_arrow::text;

#[cfg(feature = "parquet")]
mod with_arrow {
    use std::fs::File;
    use std::io::{Cursor, Read};
    use std::path::Path;

    use arrow_array::RecordBatch;
    use arrow_cast::display::{ArrayFormatter, FormatOptions};
    use arrow_ipc::reader::{FileReader, read_footer_length};
    use arrow_ipc::{root_as_footer, root_as_message};
    use arrow_schema::{ArrowError, DataType, Schema};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    use super::{DELIMITER, Form};
    use crate::{DataError, quietly};

    /// The rows of a file, some at a time.
    type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>>>;

    /// The file as the text of a CSV file with commas, at most `limit` bytes long.
    ///
    /// # Errors
    /// The file is damaged, too long, or has a column of lists, structs or bytes.
    pub fn text(path: &Path, form: Form, limit: u64) -> Result<Vec<u8>, DataError> {
        // The crates panic where the metadata of a damaged file contradict each other.
        let read = || read(path, form, limit);
        quietly(read).unwrap_or_else(|_| Err(form.error(path, "it cannot be read: it is damaged")))
    }

    fn read(path: &Path, form: Form, limit: u64) -> Result<Vec<u8>, DataError> {
        let io = |error| DataError::io(path, error);
        let damaged = |reason: String| form.error(path, &format!("it cannot be read: {reason}"));
        let (schema, batches): (_, Batches) = match form {
            Form::Parquet => {
                let file = File::open(path).map_err(io)?;
                let reader = ParquetRecordBatchReaderBuilder::try_new(file).and_then(|builder| builder.build());
                let reader = reader.map_err(|error| damaged(error.to_string()))?;
                (arrow_array::RecordBatchReader::schema(&reader), Box::new(reader))
            }
            Form::Arrow => {
                let mut bytes = Vec::new();
                File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes)).map_err(io)?;
                lengths(&bytes, limit).ok_or_else(|| damaged("it is damaged, or too long".into()))?;
                let reader = FileReader::try_new(Cursor::new(bytes), None);
                let reader = reader.map_err(|error| damaged(error.to_string()))?;
                (reader.schema(), Box::new(reader))
            }
        };
        if let Some((column, what)) = unreadable(&schema) {
            return Err(form.error(path, &format!("column \"{column}\" holds {what}; leave it out of the file")));
        }
        let mut out = csv::WriterBuilder::new().delimiter(DELIMITER).from_writer(Vec::new());
        let written = |error: csv::Error| damaged(error.to_string());
        out.write_record(schema.fields().iter().map(|field| field.name())).map_err(written)?;
        for batch in batches {
            let batch = batch.map_err(|error| damaged(error.to_string()))?;
            let options = FormatOptions::default();
            let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options));
            let columns = columns.collect::<Result<Vec<_>, _>>().map_err(|error| damaged(error.to_string()))?;
            for row in 0..batch.num_rows() {
                let cell = |column: &ArrayFormatter<'_>| column.value(row).try_to_string();
                let cells = columns.iter().map(cell).collect::<Result<Vec<_>, _>>();
                out.write_record(cells.map_err(|error| damaged(error.to_string()))?).map_err(written)?;
            }
            out.flush().map_err(io)?;
            if out.get_ref().len() as u64 > limit {
                return Err(
                    form.error(path, &format!("as text it has more than {limit} bytes, where this reader stops"))
                );
            }
        }
        out.into_inner().map_err(|error| damaged(error.to_string()))
    }

    /// The number of bytes that the compressed parts of an Arrow file claim to have unpacked; `None` where they are more than
    /// `limit`, or the file is damaged. The crate takes memory for whatever is claimed.
    fn lengths(bytes: &[u8], limit: u64) -> Option<u64> {
        let (rest, end) = bytes.split_last_chunk::<10>()?;
        let footer = rest.get(rest.len().checked_sub(read_footer_length(*end).ok()?)?..)?;
        let footer = root_as_footer(footer).ok()?;
        let mut sum: u64 = 0;
        for block in footer.recordBatches().into_iter().flatten().chain(footer.dictionaries().into_iter().flatten()) {
            let start = usize::try_from(block.offset()).ok()?;
            let (head, body) = bytes.get(start..)?.split_at_checked(usize::try_from(block.metaDataLength()).ok()?)?;
            // A mark that newer files have, and the length of the message.
            let message = root_as_message(head.get(if head.starts_with(&[0xff; 4]) { 8 } else { 4 }..)?).ok()?;
            let dictionary = || message.header_as_dictionary_batch()?.data();
            let batch = message.header_as_record_batch().or_else(dictionary)?;
            let buffers = batch.buffers().filter(|_| batch.compression().is_some());
            for buffer in buffers.into_iter().flatten().filter(|buffer| buffer.length() != 0) {
                let length = body.get(usize::try_from(buffer.offset()).ok()?..)?.first_chunk::<8>()?;
                // A buffer that is not compressed has −1.
                sum = sum.checked_add(u64::try_from(i64::from_le_bytes(*length)).unwrap_or(0))?;
            }
        }
        (sum <= limit).then_some(sum)
    }

    /// The first column whose cells are no numbers, texts, dates or truth values, and what it holds.
    fn unreadable(schema: &Schema) -> Option<(&str, &'static str)> {
        let what = |of: &DataType| match of {
            DataType::Binary | DataType::LargeBinary | DataType::FixedSizeBinary(_) | DataType::BinaryView => {
                Some("bytes")
            }
            DataType::Struct(_) | DataType::Map(..) | DataType::Union(..) => Some("structs"),
            other if other.is_nested() => Some("lists"),
            _ => None,
        };
        schema.fields().iter().find_map(|field| Some((field.name().as_str(), what(field.data_type())?)))
    }
}
