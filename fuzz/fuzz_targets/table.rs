//! Tables of known width: classes (Covertype, Raetsch), real targets (UCI, Year), natural clients (Vehicle).

#![no_main]

#[path = "../input.rs"]
mod input;

use fedstein_datasets::format::table::{self, TargetColumn};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let sign = |label| [-1, 1].contains(&label).then_some(usize::from(label == 1));
    input::file(data, 32, |path| table::read(path, 2, "-1 and +1", sign));
    input::file(data, 32, |path| table::read_regression(path, 2, TargetColumn::First));
    input::file(data, 32, |path| table::read_regression(path, 2, TargetColumn::Last));
    input::file(data, 32, |path| table::read_of_clients(path, 23, 1, "-1 and +1", sign));
});
