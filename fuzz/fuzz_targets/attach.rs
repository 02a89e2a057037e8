//! What attached applications and daemons say. The body stands in `crates/rackmem/src/attach/fuzz.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    rackmem::attach::fuzz::attach(bytes);
});
