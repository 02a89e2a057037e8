//! The testbed of the SABRes paper: what it must be like if nobody is in the way, and that nothing torn passes for whole.

use sim::objects::{Chip, Choice, Load, Method, ObjectsReport, Software, Testbed, Where, Work};

const ALONE: Load = Load {
    method: Method::Read,
    work: Work::Transfer,
    location: Where::Remote,
    bytes: 64,
    objects: Load::large(64),
    choice: Choice::InTurn,
    readers: 1,
    outstanding: 1,
    writers: 0,
};

/// Few objects, and all cores of both chips on them.
const CROWDED: Load =
    Load { bytes: 1024, objects: 32, choice: Choice::Any, readers: 16, writers: 16, ..ALONE };

fn run(load: Load, seed: u64, operations: u64) -> ObjectsReport {
    let mut testbed = Testbed::new(Chip::PAPER, Software::PAPER, load, seed);
    testbed.run(operations / 4);
    testbed.forget();
    testbed.run(operations)
}

fn cycles(count: f64) -> f64 {
    count * 1e3 / Chip::PAPER.cycles_per_microsecond as f64
}

/// Nanoseconds of a way between an edge and a tile, on average over tiles: 2.5 columns and 1.25 rows.
fn way() -> f64 {
    cycles(3.75 * Chip::PAPER.hop as f64)
}

/// Nanoseconds from an R2P2 that asks for a block in memory until it has it, on average.
fn access() -> f64 {
    let chip = Chip::PAPER;
    let (channel, r2p2) = (64.0 / 25.6, 64.0 / 20.0);
    let fetch = way() + chip.memory.0 as f64 + channel + way() + cycles(5.0);
    way() + cycles(chip.bank as f64) + fetch + way() + cycles(chip.port as f64) + r2p2
}

fn near(one: f64, other: f64, by: f64) {
    assert!((one - other).abs() <= by, "{one} and {other}");
}

#[test]
fn an_average_access_to_memory_is_the_papers_90_ns() {
    near(access(), 90.0, 1.0);
}

#[test]
fn a_read_of_a_block_takes_the_sum_of_its_parts() {
    let chip = Chip::PAPER;
    let rmc = 3.0 * chip.pipeline as f64;
    let links = 2.0 * chip.between.0 as f64 + (2 * chip.header + 64) as f64 / 100.0;
    // The reader's core is on the tile beside its edge: a hop there, and one back.
    let core = cycles((chip.post + chip.poll + 2 * chip.hop) as f64);
    // And so is the first block of its buffer.
    let buffer = cycles(5.0) + cycles(chip.hop as f64) + cycles(chip.bank as f64);
    near(run(ALONE, 1, 4_000).transfer, core + rmc + links + access() + buffer, 2.0);
}

#[test]
fn a_block_in_the_cache_spares_memory_and_the_way_to_it() {
    let cached = Load { objects: 1_000, choice: Choice::Any, ..ALONE };
    let [memory, cache] = [ALONE, cached].map(|load| {
        let mut testbed = Testbed::new(Chip::PAPER, Software::PAPER, load, 1);
        testbed.run(20_000);
        testbed.forget();
        testbed.run(4_000).transfer
    });
    near(memory - cache, 50.0 + 2.5 + 2.0 * way() + cycles(5.0), 1.0);
}

#[test]
fn version_and_data_one_after_the_other_cost_an_access_more() {
    let two =
        |method| run(Load { method, bytes: 128, objects: Load::large(128), ..ALONE }, 1, 2_000).transfer;
    let [read, sabre, without] = [Method::Read, Method::Sabre, Method::WithoutSpeculation].map(two);
    near(sabre, read, 3.0);
    assert!(without > sabre + access(), "{without} {sabre}");
}

#[test]
fn r2p2s_give_20_gigabytes_in_a_second_each_and_no_more() {
    for method in [Method::Read, Method::Sabre] {
        let load =
            Load { method, bytes: 2048, objects: Load::large(2048), readers: 16, outstanding: 8, ..ALONE };
        let rate = run(load, 1, 4_000).mops() * 2048.0 / 1e3;
        assert!((78.0..=80.1).contains(&rate), "{method:?}: {rate} GB/s");
    }
}

#[test]
fn nothing_torn_is_called_whole() {
    let methods = [
        Method::Sabre,
        Method::WithoutSpeculation,
        Method::LineVersions,
        Method::LockAndRead,
        Method::Checksum,
    ];
    for (method, seed) in methods.into_iter().flat_map(|method| [(method, 1), (method, 2), (method, 3)]) {
        let report = run(Load { method, ..CROWDED }, seed, 1_500);
        assert!(report.torn == 0 && report.refused > 0, "{method:?}: {} {}", report.torn, report.refused);
    }
}

#[test]
fn plain_reads_are_torn() {
    assert!(run(CROWDED, 1, 3_000).torn > 0);
}

#[test]
fn writers_are_found_in_the_window_of_vulnerability_and_after_it() {
    let report = run(Load { method: Method::Sabre, bytes: 4096, writers: 4, ..CROWDED }, 1, 1_000);
    let it = report.sabres;
    assert!(it.invalidated > 0 && it.written > 0 && it.changed > 0 && it.read_again >= it.changed, "{it:?}");
}

#[test]
fn one_seed_is_one_run() {
    let [one, again, other] = [1, 1, 2].map(|seed| {
        let report = run(Load { method: Method::Sabre, ..CROWDED }, seed, 2_000);
        (report.time.to_bits(), report.events, report.refused, report.sabres)
    });
    assert_eq!(one, again);
    assert_ne!(one, other);
}

#[test]
fn a_reader_of_its_own_memory_is_bounded_by_the_channels() {
    let load = Load { location: Where::Local, bytes: 8192, objects: Load::large(8192), readers: 15, ..ALONE };
    let rate = run(load, 1, 2_000).mops() * 8192.0 / 1e3;
    assert!(rate < 102.4, "{rate} GB/s");
}
