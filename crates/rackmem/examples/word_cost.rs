//! What a remote atomic costs where the memory is within reach: `Words::fetch_add` from one node on another's memory, beside a
//! bare `AtomicU64::fetch_add`, in the same run. Medians of rounds in which both take turns.
//!
//! ```text
//! cargo run --release -p rackmem --example word_cost
//! ```
//!
//! Instructions, counted by callgrind, which repeats exactly: the difference of two runs of one operation is a million of them,
//! and `loop` is what the loop around them takes.
//!
//! ```text
//! cargo build --release -p rackmem --example word_cost
//! for what in loop atomic fetch_add add fetch_add_32 fetch_min compare_exchange post; do
//!   for count in 1000000 2000000; do
//!     valgrind --tool=callgrind --callgrind-out-file=/dev/null \
//!       target/release/examples/word_cost $what $count 2>&1 | awk '/Collected/ { print $4 }'
//!   done | paste -sd' ' | awk -v what=$what '{ printf "%s: %.1f instructions\n", what, ($2 - $1) / 1e6 }'
//! done
//! ```

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Instant;

use rackmem::{Config, NodeHandle, NodeId, Rack, WordOperation, Words};

const ROUNDS: usize = 15;
const TIMES: usize = 1_000_000;
/// Words gone through, one after the other.
const WORDS: usize = 512;
const THERE: &str = "the words are there";

fn each(mut turn: impl FnMut(usize)) -> f64 {
    let began = Instant::now();
    for index in 0..TIMES {
        turn(index % WORDS);
    }
    began.elapsed().as_secs_f64() * 1e9 / TIMES as f64
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

fn compare(what: &str, mut ours: impl FnMut(usize), mut theirs: impl FnMut(usize)) {
    let pairs: Vec<(f64, f64)> = (0..ROUNDS).map(|_| (each(&mut ours), each(&mut theirs))).collect();
    let ratio = median(pairs.iter().map(|(ours, theirs)| ours / theirs).collect());
    let (ours, theirs) = (
        median(pairs.iter().map(|pair| pair.0).collect()),
        median(pairs.iter().map(|pair| pair.1).collect()),
    );
    println!("{what:>18}: {ours:5.2} ns, bare {theirs:5.2} ns: {ratio:.2}x");
}

/// One kind of operation, so many times: for callgrind.
fn count(node: &mut NodeHandle, words: &Words<u64>, bare: &[AtomicU64], what: &str, times: usize) {
    let halves = node.words_at::<u32>(words.addr()).expect("they are there");
    // A loop of its own for each, that nothing else is in.
    #[inline(never)]
    fn repeat(times: usize, mut turn: impl FnMut(usize)) {
        for index in 0..times {
            turn(black_box(index % WORDS));
        }
    }
    match what {
        "loop" => repeat(times, |index| _ = black_box(index)),
        "atomic" => repeat(times, |index| _ = black_box(bare[index].fetch_add(1, SeqCst))),
        "fetch_add" => repeat(times, |index| _ = black_box(words.fetch_add(node, index, 1).expect(THERE))),
        "add" => repeat(times, |index| words.add(node, index, 1).expect(THERE)),
        "fetch_add_32" => {
            repeat(times, |index| _ = black_box(halves.fetch_add(node, index, 1).expect(THERE)))
        }
        "fetch_min" => repeat(times, |index| _ = black_box(words.fetch_min(node, index, 1).expect(THERE))),
        "compare_exchange" => repeat(times, |index| {
            _ = black_box(words.compare_exchange(node, index, 0, 1).expect(THERE).is_ok())
        }),
        "post" => repeat(times, |index| {
            let pending = words.post(node, index, WordOperation::Add(1)).expect(THERE);
            _ = black_box(pending.wait(node));
        }),
        _ => panic!("no operation is called {what}"),
    }
}

fn main() {
    let config = Config { nodes: 2, cache: 1 << 20, memory: 8 << 20, ..Config::default() };
    let rack = Rack::embedded(config).expect("a possible rack");
    let mut node = rack.node(NodeId(0));
    let words = node.words::<u64>(WORDS, NodeId(1)).expect("there is room");
    let bare: Vec<AtomicU64> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
    let mut arguments = std::env::args().skip(1);
    if let Some(what) = arguments.next() {
        let times = arguments.next().and_then(|times| times.parse().ok()).expect("how often");
        return count(&mut node, &words, &bare, &what, times);
    }
    let halves = node.words_at::<u32>(words.addr()).expect("they are there");
    let mut other = node.clone();
    compare(
        "fetch_add",
        |index| _ = black_box(words.fetch_add(&mut node, index, 1).expect(THERE)),
        |index| _ = black_box(bare[index].fetch_add(1, SeqCst)),
    );
    compare(
        "add",
        |index| words.add(&mut other, index, 1).expect(THERE),
        |index| _ = black_box(bare[index].fetch_add(1, SeqCst)),
    );
    compare(
        "fetch_add, 32 bits",
        |index| _ = black_box(halves.fetch_add(&mut other, index, 1).expect(THERE)),
        |index| _ = black_box(bare[index].fetch_add(1, SeqCst)),
    );
    compare(
        "compare_exchange",
        |index| _ = black_box(words.compare_exchange(&mut other, index, 0, 1).expect(THERE).is_ok()),
        |index| _ = black_box(bare[index].compare_exchange(0, 1, SeqCst, SeqCst)),
    );
}
