//! The parsers of what attached applications and daemons say, fed with the fuzzer's corpus (`fuzz/corpus/attach`) and with
//! changed copies of it: no input makes them panic or accept what they would not write. Runs on stable; `RACKMEM_SEED=N`
//! repeats one seed.

use crate::feed::feed;

#[test]
fn attach() {
    feed("attach", rackmem::attach::fuzz::attach);
}
