//! A packet between NICs: BTH, extension, payload. The body stands in `crates/transport/src/udp/fuzz.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    transport::udp::fuzz::one_sided(bytes);
});
