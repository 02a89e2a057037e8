//! Packets through the switch's programs for a kernel. The body stands in `tools/check/src/bytecode/fuzz.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    check::bytecode::fuzz::kernel_program(bytes);
});
