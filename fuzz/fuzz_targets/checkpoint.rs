//! The states and manifests of a checkpoint. Build with `--features root`.

#![no_main]

use std::path::Path;

use fedstein::checkpoint::{Manifest, codec};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(state) = codec::decode(data) {
        // Compares bytes, because a NaN is not equal to itself.
        let bytes = codec::encode(&state).expect("what was decoded can be encoded");
        let again = codec::decode(&bytes).expect("what was encoded can be decoded");
        assert_eq!(codec::encode(&again).expect("as before"), bytes);
    }
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = Manifest::from_text(Path::new("round-1.json"), text);
    }
});
