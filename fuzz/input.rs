//! Writes bytes to a file, reads the file, and checks the two properties of every target: an error names the file, and
//! the reader's memory stays within a multiple of the decompressed file's size.

#![allow(dead_code)] // a target uses one of the functions

#[path = "../datasets/tests/peak/mod.rs"]
mod peak;

use flate2::{Compression, write::GzEncoder};
use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// What a reader needs besides the file: its buffers, a message.
const ROOM: usize = 1 << 18;

/// The path of the file, in memory if there is a file system in memory.
static PATH: LazyLock<PathBuf> = LazyLock::new(|| {
    let directory = Some(PathBuf::from("/dev/shm")).filter(|shm| shm.is_dir()).unwrap_or_else(std::env::temp_dir);
    directory.join(format!("fedstein-fuzz-{}", std::process::id()))
});

/// Reads the bytes as they are and, where the last one is odd, once more gzipped.
pub fn file<T, E: Display>(bytes: &[u8], times: usize, read: impl Fn(&Path) -> Result<T, E>) {
    file_and_room(bytes, times, 0, read);
}

/// [`file`] for a reader that may take `room` more.
pub fn file_and_room<T, E: Display>(bytes: &[u8], times: usize, room: usize, read: impl Fn(&Path) -> Result<T, E>) {
    file_as_is(bytes, times, room + ROOM, &read);
    if bytes.last().is_some_and(|last| last % 2 == 1) {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).expect("a vector takes everything");
        let packed = encoder.finish().expect("a vector takes everything");
        let times = times * (bytes.len() / packed.len() + 1);
        file_as_is(&packed, times, room + ROOM, &read);
    }
}

/// Reads the bytes as they are, and checks that the memory is at most `times` their number plus `room`.
pub fn file_as_is<T, E: Display>(bytes: &[u8], times: usize, room: usize, read: impl Fn(&Path) -> Result<T, E>) {
    std::fs::write(&*PATH, bytes).expect("the temporary directory can be written");
    let (result, most) = peak::peak(|| read(&PATH));
    let bound = times * bytes.len() + room;
    assert!(most <= bound, "{most} bytes were held at once for {} in the file, the bound is {bound}", bytes.len());
    if let Err(error) = result {
        let message = error.to_string();
        assert!(message.contains("fedstein-fuzz") || message.starts_with("data."), "{message}");
        assert!(!message.chars().any(|c| c.is_control() && c != '\n'), "{message:?}");
        assert!(message.len() < 4096, "{message}");
    }
}
