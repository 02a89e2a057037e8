//! The records of a datagram. The body stands in `crates/transport/src/udp/fuzz.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    transport::udp::fuzz::records(bytes);
});
