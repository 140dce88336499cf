//! The gzip around every format: raw bytes after the magic number, and valid streams with bytes changed.

#![no_main]

#[path = "../input.rs"]
mod input;

use fedstein_datasets::format::table::{self, TargetColumn};
use flate2::{Compression, write::GzEncoder};
use libfuzzer_sys::fuzz_target;
use std::io::Write;

fuzz_target!(|data: &[u8]| {
    let Some((&changes, data)) = data.split_first() else { return };
    let bytes = if changes == 0 {
        [&[0x1f, 0x8b], data].concat()
    } else {
        // `changes` pairs of position and value, then the content to compress.
        let (edits, content) = data.split_at(data.len().min(2 * usize::from(changes % 8)));
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(content).expect("a vector takes everything");
        let mut bytes = encoder.finish().expect("a vector takes everything");
        for edit in edits.chunks_exact(2) {
            let at = usize::from(edit[0]) % bytes.len();
            bytes[at] ^= edit[1];
        }
        bytes
    };
    // The bound is on the decompressed content, which is at most 16 MiB for so small a file.
    input::file_as_is(&bytes, 0, 64 << 20, |path| table::read_regression(path, 1, TargetColumn::Last));
});
