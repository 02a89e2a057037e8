//! How fast histories are checked: `cargo run --release -p rackmem-check --example check_speed`.
//!
//! The histories come from a perfect memory in virtual time, so they all pass; then the first gets one lie.

#[path = "../tests/all/randomized/simulated.rs"]
mod simulated;

use std::time::Instant;

use check::history::{Op, Operation};
use check::linearizability::{Limits, Verdict, check_history};
use random::Dice;
use simulated::{Shape, simulate};

/// Half reads, half updates.
const BASE: Shape = Shape {
    operations: 100_000,
    clients: 64,
    keys: 1,
    updates: 40,
    deletes: 0,
    rmws: 0,
    inserts: 10,
    longest: 2_000,
    digests: None,
    unreturned: 0,
};

fn main() {
    let shapes = [
        ("10^6 operations on 10^5 keys", Shape { operations: 1_000_000, keys: 100_000, ..BASE }),
        ("one key, 64 clients, reads and updates", BASE),
        ("one key, 64 clients, 95% reads", Shape { updates: 4, inserts: 1, ..BASE }),
        ("one key, 64 clients, read-modify-writes", Shape { updates: 0, rmws: 50, ..BASE }),
        ("one key, 64 clients, only inserts", Shape { updates: 0, inserts: 100, ..BASE }),
        (
            "one key, 64 clients, 1 operation in 100 never returns",
            Shape { unreturned: 1, operations: 10_000, ..BASE },
        ),
        ("one key, 16 clients, deletes", Shape { updates: 0, inserts: 30, deletes: 20, clients: 16, ..BASE }),
        ("one key, 8 clients, deletes and updates", Shape { inserts: 20, deletes: 20, clients: 8, ..BASE }),
        (
            "one word, 16 clients, two values",
            Shape { updates: 0, rmws: 40, clients: 16, digests: Some(2), ..BASE },
        ),
    ];
    let mut rng = Dice::new(1);
    for (name, shape) in shapes {
        report(name, &simulate(&mut rng, &shape, None));
    }
    let mut history = simulate(&mut rng, &BASE, None);
    let late = history.len() * 9 / 10;
    let stale = history[late / 2..].iter().find_map(|operation| match operation.op {
        Op::Insert { value } => Some(value),
        _ => None,
    });
    let read = history[late..].iter_mut().find(|operation| matches!(operation.op, Op::Read { .. }));
    if let Some(read) = read {
        read.op = Op::Read { value: stale };
    }
    report("one key, 64 clients, a stale read: with its evidence", &history);
}

fn report(name: &str, history: &[Operation<u64>]) {
    let start = Instant::now();
    let verdict = check_history(history, Limits::default());
    let seconds = start.elapsed().as_secs_f64();
    println!("{name}: {:.0} operations/s ({seconds:.2} s)", history.len() as f64 / seconds);
    if !matches!(verdict, Verdict::Linearizable { .. }) {
        println!("{verdict}");
    }
}
