//! idx: images and labels, plain and gzipped.

#![no_main]

#[path = "../input.rs"]
mod input;

use fedstein_datasets::format::idx;
use libfuzzer_sys::fuzz_target;

// Images and labels stay bytes; a vector that grows holds up to three times its content for a moment.
fuzz_target!(|data: &[u8]| {
    input::file(data, 4, |path| idx::read(path, idx::IMAGES));
    input::file(data, 4, |path| idx::read(path, idx::LABELS));
});
