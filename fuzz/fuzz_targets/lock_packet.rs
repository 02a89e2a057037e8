//! A packet about a lock: header, queue, region. The body stands in `crates/transport/src/udp/fuzz.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    transport::udp::fuzz::lock_packet(bytes);
});
