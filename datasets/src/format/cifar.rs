//! The *binary version* of CIFAR-10 and CIFAR-100: records of one label byte (CIFAR-10) or a coarse and a fine one
//! (CIFAR-100), then 3,072 pixels: 1,024 red, 1,024 green, 1,024 blue, each row by row. The input is a file, gzipped or
//! not, the output are its records, with all labels in range. Source of the format:
//! <https://www.cs.toronto.edu/~kriz/cifar.html>.
//!
//! There is no header, so only the length and the labels can be wrong. That a fine label belongs to its coarse one is
//! not checked.

use super::{open, read_error};
use crate::DataError;
use std::io::Read;
use std::path::Path;

/// The number of pixels of an image, 3 × 32 × 32.
pub const PIXELS: usize = 3072;
/// The largest number of records in a file; the publisher's largest file has 50,000.
pub const MOST: usize = 100_000;

/// The labels before the pixels of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One label, 0 to 9.
    Cifar10,
    /// A coarse label, 0 to 19, and a fine one, 0 to 99.
    Cifar100,
}

impl Layout {
    /// The number of bytes of a record.
    pub const fn record(self) -> usize {
        self.labels().len() + PIXELS
    }

    /// The name and the number of values of each label before the pixels, in their order; the last is the target.
    const fn labels(self) -> &'static [(&'static str, u8)] {
        match self {
            Layout::Cifar10 => &[("label", 10)],
            Layout::Cifar100 => &[("coarse label", 20), ("fine label", 100)],
        }
    }

    const fn other(self) -> Self {
        match self {
            Layout::Cifar10 => Layout::Cifar100,
            Layout::Cifar100 => Layout::Cifar10,
        }
    }
}

/// The records of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Records {
    layout: Layout,
    bytes: Vec<u8>,
}

impl Records {
    /// The number of records.
    pub fn rows(&self) -> usize {
        self.bytes.len() / self.layout.record()
    }

    /// The class of every record, which is the fine label of CIFAR-100.
    pub fn labels(&self) -> impl Iterator<Item = usize> {
        let last = self.layout.labels().len() - 1;
        self.records().map(move |record| usize::from(record[last]))
    }

    /// The superclass of every record of CIFAR-100; for CIFAR-10, which has none, the class.
    pub fn coarse(&self) -> impl Iterator<Item = usize> {
        self.records().map(|record| usize::from(record[0]))
    }

    /// The pixels of every record, `PIXELS` bytes each.
    pub fn pixels(&self) -> impl Iterator<Item = &[u8]> {
        let labels = self.layout.labels().len();
        self.records().map(move |record| &record[labels..])
    }

    fn records(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks_exact(self.layout.record())
    }
}

/// Reads a file of records.
///
/// # Errors
/// The file ends within a record, a label is out of range, there is no record or more than [`MOST`], the gzip stream is
/// damaged, or the file cannot be read. The first two errors name the record, from 1, and the byte of the unpacked
/// file, from 0.
pub fn read(path: &Path, layout: Layout) -> Result<Records, DataError> {
    let source = open(path)?;
    let (length, limit) = (layout.record(), MOST * layout.record());
    let mut bytes = Vec::new();
    let mut limited = source.reader.take(limit as u64 + 1);
    limited.read_to_end(&mut bytes).map_err(|error| read_error(path, source.gzipped, error))?;
    if bytes.is_empty() {
        return Err(DataError::Empty { path: path.to_path_buf() });
    }
    if bytes.len() > limit {
        let problem = format!("more than {MOST} records of {length} bytes; the publisher's files have at most 50000");
        return Err(DataError::Columns { path: path.to_path_buf(), problem });
    }
    let over = bytes.len() % length;
    if over > 0 {
        let other = layout.other().record();
        let hint = match bytes.len() % other {
            0 => format!("; a whole number of {other}-byte records: is this a file of the other CIFAR?"),
            _ => String::new(),
        };
        return Err(DataError::CifarTruncated {
            path: path.to_path_buf(),
            record: bytes.len() / length + 1,
            byte: bytes.len() - over,
            found: over,
            expected: length,
            hint,
        });
    }
    for (record, labels) in bytes.chunks_exact(length).enumerate() {
        for (place, (&(name, count), &label)) in layout.labels().iter().zip(labels).enumerate() {
            if label >= count {
                return Err(DataError::CifarLabel {
                    path: path.to_path_buf(),
                    record: record + 1,
                    byte: record * length + place,
                    name,
                    label,
                    most: count - 1,
                });
            }
        }
    }
    Ok(Records { layout, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use proptest::prelude::*;
    use std::io::Write;
    use tempfile::TempDir;

    /// Records whose pixels are all equal to the number of the record.
    fn records(layout: Layout, rows: usize) -> Vec<u8> {
        (0..rows as u8)
            .flat_map(|row| {
                let labels = layout.labels().iter().map(move |(_, count)| row % count);
                labels.chain(std::iter::repeat_n(row, PIXELS))
            })
            .collect()
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn read_bytes(bytes: &[u8], layout: Layout) -> Result<Records, DataError> {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("batch.bin");
        std::fs::write(&path, bytes).unwrap();
        read(&path, layout)
    }

    fn complaint(bytes: &[u8], layout: Layout) -> String {
        let message = read_bytes(bytes, layout).unwrap_err().to_string();
        assert!(message.contains("batch.bin"), "{message}");
        message
    }

    #[test]
    fn labels_and_pixels_are_where_the_format_has_them() {
        for packed in [false, true] {
            let file = |layout| match packed {
                true => gzip(&records(layout, 25)),
                false => records(layout, 25),
            };
            let fine = read_bytes(&file(Layout::Cifar100), Layout::Cifar100).unwrap();
            assert_eq!((fine.rows(), fine.labels().nth(23), fine.coarse().nth(23)), (25, Some(23), Some(3)));
            assert!(fine.pixels().zip(0..).all(|(pixels, row)| *pixels == [row; PIXELS]));
            let ten = read_bytes(&file(Layout::Cifar10), Layout::Cifar10).unwrap();
            assert_eq!((ten.rows(), ten.labels().nth(23)), (25, Some(3)));
        }
    }

    #[test]
    fn a_file_that_ends_within_a_record_says_which_and_where() {
        let whole = records(Layout::Cifar10, 3);
        let message = complaint(&whole[..2 * 3073 + 100], Layout::Cifar10);
        assert!(message.contains("record 3 (from byte 6146) is truncated: 100 of 3073 bytes"), "{message}");
        assert!(complaint(&[], Layout::Cifar10).contains("no data rows"));
        let message = complaint(&whole, Layout::Cifar100);
        assert!(
            message.contains("a whole number of 3073-byte records: is this a file of the other CIFAR?"),
            "{message}"
        );
        let packed = gzip(&whole);
        assert!(complaint(&packed[..packed.len() - 3], Layout::Cifar10).contains("damaged gzip"));
    }

    #[test]
    fn a_label_out_of_range_says_which_where_and_what_is_allowed() {
        let mut bytes = records(Layout::Cifar100, 3);
        bytes[3074 + 1] = 100;
        let message = complaint(&bytes, Layout::Cifar100);
        assert!(
            message.contains("record 2 (byte 3075): fine label 100 is out of range, it must be 0 to 99"),
            "{message}"
        );
        bytes[0] = 20;
        assert!(complaint(&bytes, Layout::Cifar100).contains("record 1 (byte 0): coarse label 20 is out of range"));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn a_changed_or_shortened_file_is_read_or_refused_and_never_panics(
            hundred: bool, packed: bool, keep in 0usize..10_000, at: prop::sample::Index, byte: u8,
        ) {
            let layout = if hundred { Layout::Cifar100 } else { Layout::Cifar10 };
            let mut bytes = records(layout, 3);
            if packed {
                bytes = gzip(&bytes);
            }
            bytes.truncate(keep);
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            match read_bytes(&bytes, layout) {
                Ok(read) => prop_assert!(read.rows() >= 1 && read.labels().all(|label| label < 100)),
                Err(error) => prop_assert!(error.to_string().contains("batch.bin"), "{}", error),
            }
        }
    }
}
