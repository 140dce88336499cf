//! A user's table with a target: every combination of header, task, delimiter and columns.

#![no_main]

#[path = "../input.rs"]
mod input;

use fedstein_datasets::format::csv::{self, CsvOptions, Numbered};
use fedstein_datasets::{Header, Reading, Task};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&choice, data)) = data.split_first() else { return };
    let pick = |shift: u32, of: usize| usize::from(choice >> shift) % of;
    let options = CsvOptions {
        delimiter: [b',', b';', b'\t', b' '][pick(0, 4)],
        header: [Header::Auto, Header::Yes, Header::No][pick(2, 4).min(2)],
        task: [Task::Classification, Task::Regression][pick(4, 2)],
        target: ["-1", "0", "y", "1"][pick(5, 4)],
        client: ["", "0"][pick(7, 2)],
        reading: &Reading { group_column: ["", "x"][pick(6, 2)].into(), ..Reading::default() },
        first: None,
        has_groups: true,
    };
    input::file(data, 64, |path| {
        let mut numbered = Numbered::default();
        let table = csv::read(path, &options, &mut numbered)?;
        let (names, places) = numbered.classes.sorted();
        assert!(places.iter().all(|&place| place < names.len()));
        assert!(table.features.iter().all(|x| x.is_finite()));
        Ok::<_, fedstein_datasets::DataError>(())
    });
});
