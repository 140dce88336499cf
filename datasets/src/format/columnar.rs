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

/// The file as the text of a CSV file with commas, at most `limit` bytes long.
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
    use std::path::Path;

    use arrow_array::RecordBatch;
    use arrow_cast::display::{ArrayFormatter, FormatOptions};
    use arrow_ipc::reader::FileReader;
    use arrow_schema::{ArrowError, DataType, Schema};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    use super::Form;
    use crate::DataError;

    /// The rows of a file, some at a time.
    type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>>>;

    /// The file as the text of a CSV file with commas, at most `limit` bytes long.
    ///
    /// # Errors
    /// The file is damaged, too long, or has a column of lists, structs or bytes.
    pub fn text(path: &Path, form: Form, limit: u64) -> Result<Vec<u8>, DataError> {
        let file = File::open(path).map_err(|error| DataError::io(path, error))?;
        let damaged = |reason: String| form.error(path, &format!("it cannot be read: {reason}"));
        let (schema, batches): (_, Batches) = match form {
            Form::Parquet => {
                let reader = ParquetRecordBatchReaderBuilder::try_new(file).and_then(|builder| builder.build());
                let reader = reader.map_err(|error| damaged(error.to_string()))?;
                (arrow_array::RecordBatchReader::schema(&reader), Box::new(reader))
            }
            Form::Arrow => {
                let reader = FileReader::try_new_buffered(file, None).map_err(|error| damaged(error.to_string()))?;
                (reader.schema(), Box::new(reader))
            }
        };
        if let Some((column, what)) = unreadable(&schema) {
            return Err(form.error(path, &format!("column \"{column}\" holds {what}; leave it out of the file")));
        }
        let mut out = csv::Writer::from_writer(Vec::new());
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
            out.flush().map_err(|error| DataError::io(path, error))?;
            if out.get_ref().len() as u64 > limit {
                return Err(
                    form.error(path, &format!("as text it has more than {limit} bytes, where this reader stops"))
                );
            }
        }
        out.into_inner().map_err(|error| damaged(error.to_string()))
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
