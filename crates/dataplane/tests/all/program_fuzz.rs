//! The switch's programs, fed with the fuzzer's corpus (`fuzz/corpus/kernel_program`) and with changed copies of it: no packet makes
//! one touch what is not its own, go round for ever, or keep the lock.

#[test]
fn program_fuzz() {
    crate::feed::feed("kernel_program", check::bytecode::fuzz::kernel_program);
}
