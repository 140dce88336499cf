//! A frame between a server and a site, its envelope and its arrays. Build with `--features root`.

#![no_main]

use fedstein::remote::{Content, Limits, Parcel, open};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut stream = data;
    while let Ok(Some(parcel)) = Parcel::read(&mut stream, Limits::of(1 << 20)) {
        let Ok(opened) = open(parcel) else { continue };
        match opened.content.clone() {
            Content::Request(head) => {
                if let Ok(message) = opened.message(head.numbers.clone()) {
                    let _ = head.request(opened.run, message);
                }
            }
            Content::Reply(head) => drop(opened.message(head.numbers)),
            _ => {}
        }
    }
});
