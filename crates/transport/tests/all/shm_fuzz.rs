//! The parsers of greetings in shared memory, fed with the fuzzer's corpus (`fuzz/corpus/greeting`) and with changed copies
//! of it: no input makes them panic or accept what they would not write. Runs on stable; `RACKMEM_SEED=N` repeats one seed.
#![cfg(target_os = "linux")]

use crate::feed::feed;

#[test]
fn greeting() {
    feed("greeting", transport::shm::fuzz::greeting);
}
