//! What places say to each other when they meet in shared memory. The body stands in `crates/transport/src/shm/fuzz.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    transport::shm::fuzz::greeting(bytes);
});
