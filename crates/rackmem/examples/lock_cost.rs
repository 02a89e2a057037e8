//! What a cached lock costs: taking and releasing one that the node has, beside an uncontended `parking_lot::RwLock`, in the
//! same run. Medians of rounds in which both take turns.
//!
//! ```text
//! cargo run --release -p rackmem --example lock_cost
//! ```

use std::hint::black_box;
use std::time::Instant;

use parking_lot::RwLock;
use rackmem::{Config, Locked, NodeId, Rack};

const ROUNDS: usize = 15;
const TIMES: u32 = 500_000;

fn each(mut turn: impl FnMut()) -> f64 {
    let began = Instant::now();
    for _ in 0..TIMES {
        turn();
    }
    began.elapsed().as_secs_f64() * 1e9 / f64::from(TIMES)
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

fn compare(what: &str, mut ours: impl FnMut(), mut theirs: impl FnMut()) {
    let pairs: Vec<(f64, f64)> = (0..ROUNDS).map(|_| (each(&mut ours), each(&mut theirs))).collect();
    let ratio = median(pairs.iter().map(|(ours, theirs)| ours / theirs).collect());
    let (ours, theirs) = (
        median(pairs.iter().map(|pair| pair.0).collect()),
        median(pairs.iter().map(|pair| pair.1).collect()),
    );
    println!("{what:>22}: {ours:6.1} ns, parking_lot {theirs:6.1} ns: {ratio:.2}x");
}

fn main() {
    let config = Config { nodes: 2, cache: 1 << 20, memory: 8 << 20, ..Config::default() };
    let rack = Rack::embedded(config).expect("a possible rack");
    let mut node = rack.node(NodeId(0));
    let value = Locked::new(&mut node, NodeId(1), [0_u64; 4]).expect("there is room");
    let theirs = RwLock::new([0_u64; 4]);
    compare(
        "read, alone",
        || _ = black_box(value.read(&mut node).expect("it is there")[1]),
        || _ = black_box(theirs.read()[1]),
    );
    compare(
        "write, alone",
        || value.write(&mut node).expect("it is there")[1] += 1,
        || theirs.write()[1] += 1,
    );
    // A copy that another node has, too.
    black_box(value.read(&mut rack.node(NodeId(1))).expect("it is there")[1]);
    compare(
        "read, a shared copy",
        || _ = black_box(value.read(&mut node).expect("it is there")[1]),
        || _ = black_box(theirs.read()[1]),
    );
    // Two nodes that take turns, on this one thread: every turn moves the lock and the data.
    let mut other = rack.node(NodeId(1));
    let hand_over = median(
        (0..5)
            .map(|_| {
                let began = Instant::now();
                for _ in 0..20_000 {
                    value.write(&mut node).expect("it is there")[2] += 1;
                    value.write(&mut other).expect("it is there")[2] += 1;
                }
                began.elapsed().as_secs_f64() * 1e9 / 40_000.0
            })
            .collect(),
    );
    println!("{:>22}: {hand_over:6.1} ns", "hand-over, one thread");
}
