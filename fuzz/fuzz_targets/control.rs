//! Control messages. The body stands in `crates/membership/src/message/fuzz.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    membership::message::fuzz::control(bytes);
});
