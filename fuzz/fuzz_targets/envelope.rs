//! The head of a datagram, and greetings. The body stands in `crates/transport/src/udp/fuzz.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    transport::udp::fuzz::envelope(bytes);
});
