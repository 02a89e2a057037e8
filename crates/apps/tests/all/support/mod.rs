//! What the tests of applications share: a rack's memory in one process that is unforgiving, a scheduler that
//! interleaves workers at every access to memory, and an exact check of the histories that come out.
#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod clients;
pub(crate) mod history;
pub(crate) mod interleave;
pub(crate) mod memory;
pub(crate) mod serial;
pub(crate) mod values;

/// The seeds of a randomized test: those of `name` in the environment variable `SEED`, or the first `count`.
pub(crate) fn seeds(count: u64) -> std::ops::Range<u64> {
    match std::env::var("SEED").ok().map(|seed| seed.parse::<u64>().expect("SEED is a number")) {
        Some(seed) => seed..seed + 1,
        None => 0..count,
    }
}

/// Says how a failed seed is run again, when the test fails while this is alive.
pub(crate) struct Replay {
    pub(crate) file: &'static str,
    pub(crate) test: &'static str,
    pub(crate) seed: u64,
}

impl Drop for Replay {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { file, test, seed } = self;
            eprintln!("to replay: SEED={seed} cargo test -p rackmem-apps {file}::{test}");
        }
    }
}
