//! The predictions of a classification and of a regression. Build with `--features root`.

#![no_main]

#[path = "../input.rs"]
mod input;

use fedstein::report::csv;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    input::file_as_is(data, 96, 1 << 14, csv::read_predictions);
    input::file_as_is(data, 96, 1 << 14, csv::read_regression);
});
