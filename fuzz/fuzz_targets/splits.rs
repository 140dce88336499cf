//! Lists of test rows.

#![no_main]

#[path = "../input.rs"]
mod input;

use fedstein_datasets::format::splits;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&split, data)) = data.split_first() else { return };
    input::file(data, 64, |path| {
        let rows = splits::read(path, usize::from(split % 8), 20, "data.test_split")?;
        assert!(rows.is_sorted() && rows.len() < 20 && rows.iter().all(|&row| row < 20));
        Ok::<_, fedstein_datasets::DataError>(())
    });
});
