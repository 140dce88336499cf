//! idx: images and labels, plain and gzipped.

#![no_main]

#[path = "../input.rs"]
mod input;

use fedstein_datasets::format::idx;
use libfuzzer_sys::fuzz_target;

// Two bytes of a label become eight of an index; images stay bytes.
fuzz_target!(|data: &[u8]| {
    input::file(data, 4, |path| idx::read(path, idx::IMAGES));
    input::file(data, 4, |path| idx::read(path, idx::LABELS));
});
