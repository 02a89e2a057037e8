//! The parser of control messages, fed with the fuzzer's corpus (`fuzz/corpus/control`) and with changed copies of it: no
//! input makes it panic or accept what it would not write. Runs on stable; `RACKMEM_SEED=N` repeats one seed.

use std::path::Path;

use membership::message::fuzz;

use crate::feed::feed;

#[test]
fn control() {
    feed("control", fuzz::control);
}

/// A corpus of an older version would feed the parser with what it refuses at its second byte.
#[test]
fn the_corpus_is_of_this_version() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/control");
    let names = [
        "beat",
        "beat_draining",
        "beat_statistics",
        "know",
        "pulse",
        "pulse_drain",
        "view",
        "view_directory",
    ];
    for name in names {
        assert!(fuzz::control(&std::fs::read(folder.join(name)).unwrap()), "{name} is refused");
    }
}
