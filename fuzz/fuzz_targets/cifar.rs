//! CIFAR's binary records, both layouts, plain and gzipped.

#![no_main]

#[path = "../input.rs"]
mod input;

use fedstein_datasets::format::cifar::{self, Layout};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // The first byte repeats the rest, so that small inputs become whole records.
    let Some((&times, data)) = data.split_first() else { return };
    for layout in [Layout::Cifar10, Layout::Cifar100] {
        let mut bytes = data.to_vec();
        if times & 1 == 1 {
            bytes.resize(layout.record() * (1 + usize::from(times) / 64), times);
        }
        input::file(&bytes, 4, |path| cifar::read(path, layout));
    }
});
