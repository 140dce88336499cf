//! Rows to predict: files with features only, matched by position and by name.

#![no_main]

#[path = "../input.rs"]
mod input;

use fedstein_datasets::read_features;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&choice, data)) = data.split_first() else { return };
    let names = ["a".to_owned(), "b".to_owned()];
    let names = (choice & 1 == 1).then_some(&names[..]);
    let ignore: &[&str] = if choice & 2 == 2 { &["y", "-1"] } else { &[] };
    input::file(data, 64, |path| {
        let features = read_features(path, 2, names, b',', ignore)?;
        assert!(features.ncols() == 2 && features.iter().all(|x| x.is_finite()));
        Ok::<_, fedstein_datasets::DataError>(())
    });
});
