//! The parsers, fed with the fuzzers' corpus (`fuzz/corpus`) and with changed copies of it: no input makes them
//! panic or accept what they would not write. Runs on stable; `RACKMEM_SEED=N` repeats one seed.
#![cfg(target_os = "linux")]

use transport::udp::fuzz;

use crate::feed::feed;

#[test]
fn packet() {
    feed("packet", fuzz::packet);
}

#[test]
fn lock_packet() {
    feed("lock_packet", fuzz::lock_packet);
}

#[test]
fn one_sided() {
    feed("one_sided", fuzz::one_sided);
}

#[test]
fn envelope() {
    feed("envelope", fuzz::envelope);
}

#[test]
fn records() {
    feed("records", fuzz::records);
}

#[test]
fn segments() {
    feed("segments", fuzz::segments);
}
