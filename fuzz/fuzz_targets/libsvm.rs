//! LIBSVM's text at Covertype's width.

#![no_main]

#[path = "../input.rs"]
mod input;

use fedstein_datasets::format::libsvm;
use libfuzzer_sys::fuzz_target;

// The dense table is bounded by 1 MiB + 16 times the text; a growing vector holds three times that for a moment.
fuzz_target!(|data: &[u8]| {
    input::file_and_room(data, 64, 4 << 20, |path| {
        let class_of = |label| [-1, 1, 2].contains(&label).then_some(usize::from(label == 1));
        let (features, labels) = libsvm::read(path, 54, "1 and 2", class_of)?;
        assert!(features.dim() == (labels.len(), 54) && features.iter().all(|x| x.is_finite()));
        Ok::<_, fedstein_datasets::DataError>(())
    });
});
