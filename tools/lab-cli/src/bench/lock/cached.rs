//! A lock that is here already, beside a plain one of the same process.

use std::hint::black_box;

use parking_lot::RwLock;
use rackmem::{Config, Locked, NodeId};
use serde::Serialize;

use crate::bench::rounds::{failed, median, rack, time_each};
use cli::fault::Fault;

/// The target: at most so many times the plain lock.
pub(super) const MOST_RATIO: f64 = 3.0;

const TIMES: u64 = 500_000;

/// What taking and releasing costs.
#[derive(Debug, Serialize)]
pub(super) struct Cached {
    what: &'static str,
    pub(super) rackmem_ns: f64,
    pub(super) parking_lot_ns: f64,
    /// The median of the ratios of rounds, in each of which both were measured.
    pub(super) ratio: f64,
}

impl Cached {
    pub(super) fn row(&self) -> Vec<String> {
        let nanos = |nanos: f64| format!("{nanos:.1} ns");
        vec![
            self.what.to_owned(),
            nanos(self.rackmem_ns),
            nanos(self.parking_lot_ns),
            format!("{:.2}x", self.ratio),
        ]
    }
}

fn compare(what: &'static str, rounds: u64, mut ours: impl FnMut(), mut theirs: impl FnMut()) -> Cached {
    let each = |turn: &mut dyn FnMut(u64)| time_each(TIMES, || turn(TIMES));
    let pairs: Vec<(f64, f64)> = (0..rounds)
        .map(|_| {
            let ours = each(&mut |times| (0..times).for_each(|_| ours()));
            (ours, each(&mut |times| (0..times).for_each(|_| theirs())))
        })
        .collect();
    let of = |pick: fn(&(f64, f64)) -> f64| median(pairs.iter().map(pick).collect());
    Cached {
        what,
        rackmem_ns: of(|pair| pair.0),
        parking_lot_ns: of(|pair| pair.1),
        ratio: of(|pair| pair.0 / pair.1),
    }
}

/// Reads and writes of a lock that this node has alone, and reads of one that others have, too.
pub(super) fn measure(rounds: u64) -> Result<Vec<Cached>, Fault> {
    let rack = rack(Config { nodes: 2, cache: 1 << 20, memory: 8 << 20, ..Config::default() })?;
    let (mut node, mut other) = (rack.node(NodeId(0)), rack.node(NodeId(1)));
    let value = Locked::new(&mut node, NodeId(1), [0_u64; 4]).map_err(failed)?;
    let theirs = RwLock::new([0_u64; 4]);
    let sound = "a lock of this rack can be taken";
    let mut cached = vec![
        compare(
            "read, alone",
            rounds,
            || _ = black_box(value.read(&mut node).expect(sound)[1]),
            || _ = black_box(theirs.read()[1]),
        ),
        compare(
            "write, alone",
            rounds,
            || value.write(&mut node).expect(sound)[1] += 1,
            || theirs.write()[1] += 1,
        ),
    ];
    black_box(value.read(&mut other).expect(sound)[1]);
    cached.push(compare(
        "read, shared copy",
        rounds,
        || _ = black_box(value.read(&mut node).expect(sound)[1]),
        || _ = black_box(theirs.read()[1]),
    ));
    Ok(cached)
}
