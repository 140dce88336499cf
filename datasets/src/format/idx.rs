//! IDX, the format of MNIST: a magic number, one big-endian `u32` for each dimension, then one byte for each item, in
//! row-major order. The input is a file, gzipped or not, the output are its dimensions and bytes.
//!
//! The header is checked against the file's length: memory grows with the bytes that are read, never with the number in
//! a header. Source of the format: <http://yann.lecun.com/exdb/mnist/>.

use super::{open, read_error};
use crate::DataError;
use std::io::Read;
use std::path::Path;

/// The magic number of images: unsigned bytes, three dimensions (rows, height, width).
pub const IMAGES: u32 = 0x0000_0803;
/// The magic number of labels: unsigned bytes, one dimension.
pub const LABELS: u32 = 0x0000_0801;
/// The largest accepted number of data bytes.
pub const LIMIT: u64 = 1 << 31;

/// The content of an idx file of unsigned bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idx {
    /// The size of each dimension; the first is the number of rows.
    pub dims: Vec<usize>,
    /// The items, one byte each, in row-major order.
    pub data: Vec<u8>,
}

impl Idx {
    /// The bytes of a file with this content.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0, 0, 8, self.dims.len() as u8];
        for &dim in &self.dims {
            bytes.extend_from_slice(&(dim as u32).to_be_bytes());
        }
        bytes.extend_from_slice(&self.data);
        bytes
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.dims.first().copied().unwrap_or(0)
    }
}

/// Reads an idx file of unsigned bytes.
///
/// # Arguments
/// - `magic`: the expected magic number, [`IMAGES`] or [`LABELS`].
///
/// # Errors
/// The magic number is another, the header claims more than [`LIMIT`], the file has fewer or more bytes than the header
/// announces, the gzip stream is damaged, or the file cannot be read.
pub fn read(path: &Path, magic: u32) -> Result<Idx, DataError> {
    let source = open(path)?;
    let (gzipped, at_most) = (source.gzipped, source.at_most);
    let mut reader = source.reader;
    let failed = |e| read_error(path, gzipped, e);

    let found = header_word(&mut *reader, path, gzipped)?;
    if found != magic {
        return Err(DataError::IdxMagic {
            path: path.to_path_buf(),
            found,
            expected: magic,
            hint: magic_hint(found, magic),
        });
    }
    let mut dims = Vec::new();
    for _ in 0..magic & 0xff {
        dims.push(header_word(&mut *reader, path, gzipped)?);
    }
    let shown = dims.iter().map(u32::to_string).collect::<Vec<_>>().join(" x ");
    let expected = dims
        .iter()
        .try_fold(1u64, |product, &dim| product.checked_mul(u64::from(dim)))
        .filter(|&bytes| bytes <= LIMIT)
        .ok_or_else(|| DataError::IdxTooLarge { path: path.to_path_buf(), dims: shown.clone(), limit: LIMIT })?;

    let truncated =
        |found: String| DataError::IdxTruncated { path: path.to_path_buf(), dims: shown.clone(), expected, found };
    let header = 4 + 4 * dims.len() as u64;
    let possible = at_most.saturating_sub(header);
    if possible < expected {
        return Err(truncated(if gzipped { format!("at most {possible}") } else { possible.to_string() }));
    }
    let mut data = Vec::new();
    (&mut reader).take(expected).read_to_end(&mut data).map_err(failed)?;
    if (data.len() as u64) < expected {
        return Err(truncated(data.len().to_string()));
    }
    // Also reads the gzip trailer, and so its checksum.
    if reader.read(&mut [0]).map_err(failed)? != 0 {
        return Err(DataError::IdxTrailing { path: path.to_path_buf(), dims: shown, expected });
    }
    Ok(Idx { dims: dims.iter().map(|&dim| dim as usize).collect(), data })
}

/// Reads images and their labels.
///
/// # Returns
/// The images as `[rows, height, width]` and one class index per row, all below `classes`.
///
/// # Errors
/// Those of [`read`], another number of labels than images, a label that is not below `classes`.
pub fn read_pair(images: &Path, labels: &Path, classes: usize) -> Result<(Idx, Vec<usize>), DataError> {
    let pixels = read(images, IMAGES)?;
    let marks = read(labels, LABELS)?;
    if pixels.rows() != marks.rows() {
        return Err(DataError::IdxCount {
            images_path: images.to_path_buf(),
            labels_path: labels.to_path_buf(),
            images: pixels.rows(),
            labels: marks.rows(),
        });
    }
    if let Some(row) = marks.data.iter().position(|&label| usize::from(label) >= classes) {
        return Err(DataError::Label {
            path: labels.to_path_buf(),
            row: row as u64 + 1,
            label: marks.data[row].to_string(),
            allowed: format!("0 to {}", classes.saturating_sub(1)),
        });
    }
    Ok((pixels, marks.data.into_iter().map(usize::from).collect()))
}

fn header_word(reader: &mut dyn Read, path: &Path, gzipped: bool) -> Result<u32, DataError> {
    let mut word = Vec::with_capacity(4);
    reader.take(4).read_to_end(&mut word).map_err(|e| read_error(path, gzipped, e))?;
    let word: [u8; 4] = word.try_into().map_err(|_| DataError::IdxHeader { path: path.to_path_buf() })?;
    Ok(u32::from_be_bytes(word))
}

fn magic_hint(found: u32, expected: u32) -> String {
    match (found, expected) {
        (IMAGES, LABELS) => "this is a file of images; images and labels may be swapped".to_owned(),
        (LABELS, IMAGES) => "this is a file of labels; images and labels may be swapped".to_owned(),
        _ if found.swap_bytes() == expected => "the bytes are in little-endian order".to_owned(),
        _ => "not an idx file of unsigned bytes".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use proptest::prelude::*;
    use std::io::Write;
    use std::path::PathBuf;
    use tempfile::TempDir;

    fn file(dir: &TempDir, name: &str, bytes: &[u8]) -> PathBuf {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn images() -> Idx {
        Idx { dims: vec![3, 2, 2], data: (0..12).collect() }
    }

    /// The message for a file with these bytes.
    fn complaint(bytes: &[u8], magic: u32) -> String {
        let dir = TempDir::new().unwrap();
        let message = read(&file(&dir, "bad.idx", bytes), magic).unwrap_err().to_string();
        assert!(message.contains("bad.idx"), "{message}");
        message
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(rows in 0usize..5, height in 0usize..5, width in 1usize..5, seed: u8, gz: bool) {
            let data = (0..rows * height * width).map(|i| (i as u8).wrapping_mul(31) ^ seed).collect();
            let idx = Idx { dims: vec![rows, height, width], data };
            let dir = TempDir::new().unwrap();
            let bytes = if gz { gzip(&idx.to_bytes()) } else { idx.to_bytes() };
            prop_assert_eq!(read(&file(&dir, "x", &bytes), IMAGES).unwrap(), idx);
        }
    }

    #[test]
    fn a_header_that_claims_two_to_the_31_items_is_refused() {
        let mut labels = vec![0, 0, 8, 1, 0x80, 0, 0, 0];
        labels.extend([1; 10]);
        assert!(complaint(&labels, LABELS).contains("announces 2147483648 data bytes (2147483648), there are 10"));
        assert!(complaint(&gzip(&labels), LABELS).contains("there are at most"));
        let mut images = vec![0, 0, 8, 3, 0x80, 0, 0, 0, 0, 0, 0, 28, 0, 0, 0, 28];
        images.extend([1; 10]);
        assert!(complaint(&images, IMAGES).contains("claims 2147483648 x 28 x 28 = more than"));
        let huge = [&[0, 0, 8, 3][..], &[0xff; 12]].concat();
        assert!(complaint(&huge, IMAGES).contains("header is damaged"));
    }

    #[test]
    fn the_error_for_a_truncated_file_states_its_length() {
        let whole = images().to_bytes();
        assert!(
            complaint(&whole[..whole.len() - 1], IMAGES).contains("announces 12 data bytes (3 x 2 x 2), there are 11")
        );
        assert!(complaint(&whole[..9], IMAGES).contains("ends within the header"));
        assert!(complaint(&[], IMAGES).contains("ends within the header"));
        let short = gzip(&whole[..whole.len() - 1]);
        assert!(complaint(&short, IMAGES).contains("there are 11"));
    }

    #[test]
    fn trailing_bytes_are_refused() {
        let mut bytes = images().to_bytes();
        bytes.push(0);
        assert!(complaint(&bytes, IMAGES).contains("trailing bytes"));
        assert!(complaint(&gzip(&bytes), IMAGES).contains("trailing bytes"));
    }

    #[test]
    fn the_error_for_a_wrong_magic_number_explains_it() {
        assert!(complaint(&images().to_bytes(), LABELS).contains("images and labels may be swapped"));
        assert!(complaint(&[3, 8, 0, 0, 0, 0], IMAGES).contains("little-endian"));
        assert!(complaint(b"label,pixel", IMAGES).contains("wrong idx magic number 0x6c616265, expected 0x00000803"));
    }

    #[test]
    fn damaged_gzip_is_reported() {
        let mut flipped = gzip(&images().to_bytes());
        let last = flipped.len() - 6;
        flipped[last] ^= 0xff; // in the checksum
        assert!(complaint(&flipped, IMAGES).contains("damaged gzip"));
        let whole = gzip(&images().to_bytes());
        assert!(complaint(&whole[..whole.len() - 9], IMAGES).contains("damaged gzip"));
        assert!(complaint(&whole[..5], IMAGES).contains("damaged gzip"));
    }

    #[test]
    fn images_and_labels_must_belong_together() {
        let dir = TempDir::new().unwrap();
        let pixels = file(&dir, "images", &images().to_bytes());
        let two = file(&dir, "two", &Idx { dims: vec![2], data: vec![0, 1] }.to_bytes());
        assert!(read_pair(&pixels, &two, 10).unwrap_err().to_string().contains("2 labels for the 3 images"));
        let high = file(&dir, "high", &Idx { dims: vec![3], data: vec![0, 10, 1] }.to_bytes());
        let message = read_pair(&pixels, &high, 10).unwrap_err().to_string();
        assert!(message.contains("row 2: label 10 is out of range, the labels are 0 to 9"), "{message}");
        let good = file(&dir, "good", &Idx { dims: vec![3], data: vec![0, 9, 1] }.to_bytes());
        assert_eq!(read_pair(&pixels, &good, 10).unwrap().1, vec![0, 9, 1]);
    }
}
