//! The config: any text as a file, and as the value of `--set`. Build with `--features root`.

#![no_main]

use fedstein::experiment::Config;
use fedstein::experiment::schema::{Overrides, Source};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let source = Source { name: "fuzz.toml", text };
    if let Ok((config, resolved)) = Config::load(source, &Overrides::default()) {
        // A resolved config that is written and read again is the same.
        let written = resolved.to_toml();
        let again = Config::load(Source { name: "again.toml", text: &written }, &Overrides::default());
        assert_eq!(again.expect("a resolved config is a config").0, config);
    }
    let overrides = Overrides { set: vec![text.to_owned()], ..Overrides::default() };
    let _ = Config::load(Source { name: "fuzz.toml", text: "" }, &overrides);
});
