//! The sha256 of files and of a run's data, in hexadecimal digits.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::datasets::{Dataset, Partition, Targets, TrainTest};

/// The number of values that are hashed at once.
const CHUNK: usize = 16 * 1024;

/// The digest of some bytes.
pub fn of_bytes(bytes: &[u8]) -> String {
    hex(Sha256::new_with_prefix(bytes))
}

/// The digest of a file's bytes.
///
/// # Errors
/// The file cannot be read.
pub fn of_file(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let (mut sha, mut buffer) = (Sha256::new(), vec![0; 4 * CHUNK]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(sha)),
            count => sha.update(&buffer[..count]),
        }
    }
}

/// The digest of all training and test rows: shapes, features and targets.
pub fn of_data(data: &TrainTest) -> String {
    let mut sha = Sha256::new();
    for set in [&data.train, &data.test] {
        add_set(&mut sha, set);
    }
    hex(sha)
}

/// The digest of the assignment of rows to clients: training, validation and test rows.
pub fn of_partition(partition: &Partition) -> String {
    let mut sha = Sha256::new();
    for client in 0..partition.clients().len() {
        for rows in [&partition.clients()[client][..], partition.validation(client), partition.test(client)] {
            add_counts(&mut sha, rows);
        }
    }
    // A run without them keeps its digest.
    if (0..partition.clients().len()).any(|client| !partition.calibration(client).is_empty()) {
        (0..partition.clients().len()).for_each(|client| add_counts(&mut sha, partition.calibration(client)));
    }
    hex(sha)
}

fn add_set(sha: &mut Sha256, set: &Dataset) {
    add_counts(sha, &[set.rows(), set.width()]);
    add_counts(sha, &set.feature_shape);
    let mut bytes = Vec::with_capacity(4 * CHUNK);
    for row in set.features.rows() {
        for part in row.as_slice().unwrap_or(&row.to_vec()).chunks(CHUNK) {
            bytes.clear();
            part.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
            sha.update(&bytes);
        }
    }
    match &set.targets {
        Targets::Classes { labels, names } => {
            add_counts(sha, labels);
            names.iter().for_each(|name| sha.update(format!("{name}\0")));
        }
        Targets::Real { values } => values.iter().for_each(|value| sha.update(value.to_le_bytes())),
        Targets::None { rows } => add_counts(sha, &[*rows]),
    }
}

/// Hashes a list together with its length, so that two consecutive lists differ from one joined list.
fn add_counts(sha: &mut Sha256, counts: &[usize]) {
    sha.update((counts.len() as u64).to_le_bytes());
    counts.iter().for_each(|count| sha.update((*count as u64).to_le_bytes()));
}

fn hex(sha: Sha256) -> String {
    sha.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_sha256() {
        // FIPS 180-2, appendix B.1.
        assert_eq!(of_bytes(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "abc").unwrap();
        assert_eq!(of_file(file.path()).unwrap(), of_bytes(b"abc"));
    }
}
