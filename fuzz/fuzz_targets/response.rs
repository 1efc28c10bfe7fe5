//! See `bodies::response`.

#![no_main]

#[expect(dead_code, reason = "a target has one of the bodies")]
#[path = "../bodies.rs"]
mod bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::response(bytes));
