//! The parser of control messages, fed with the fuzzer's corpus (`fuzz/corpus/control`) and with changed copies of it: no
//! input makes it panic or accept what it would not write. Runs on stable; `RACKMEM_SEED=N` repeats one seed.

use crate::feed::feed;

#[test]
fn control() {
    feed("control", membership::message::fuzz::control);
}
