//! What a hit in the cache costs, against a plain array of the same footprint.
//!
//! ```text
//! cargo run --release -p rackmem-live --example hit_cost
//! cargo run --release -p rackmem-live --example hit_cost -- --count 1000000 cached
//! ```
//!
//! The first form prints nanoseconds per access: for chains of dependent reads, where each word read is the
//! address of the next; for independent reads at random places; and for the other kinds of hits. The second
//! form does nothing but so many independent reads (or those of a plain array, with `plain`), so that the
//! difference between two counts under an instruction counter is the cost of the reads alone.

use std::hint::black_box;
use std::time::Instant;

use live::memory::{Hints, NodeMemory, StoreOf, Unpinned};
use node::{Access, Reservation, Store};
use random::Random;
use wire::{BlockSize, GlobalAddr, NodeId};

const BLOCK: BlockSize = BlockSize::DEFAULT;
const FOOTPRINTS: [u64; 4] = [16 << 10, 256 << 10, 1 << 20, 16 << 20];
/// Each measurement is the best of so many.
const ROUNDS: usize = 7;

/// A reproducible stream of places: the multiplier is Knuth's, the upper bits are good enough to mix caches.
struct Places {
    state: u64,
    mask: u64,
}

impl Places {
    fn new(words: usize) -> Self {
        Self { state: 1, mask: words as u64 - 1 }
    }

    #[inline(always)]
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.state >> 33) & self.mask
    }
}

/// One cycle through all words, in random order: `next[i]` follows `i`.
fn cycle(words: usize) -> Vec<u64> {
    let mut next: Vec<u64> = (0..words as u64).collect();
    let mut random = Random::new(7);
    for i in (1..words).rev() {
        next.swap(i, random.below(i as u64) as usize);
    }
    next
}

/// Caches all blocks of the footprint, writable, with these words in them.
fn cached(words: &[u64]) -> Vec<NodeMemory> {
    let all = vec![NodeMemory::new(BLOCK, 64 << 20, 0)];
    let mut store = StoreOf::new(&all, NodeId(0));
    for (at, contents) in words.chunks(BLOCK.words()).enumerate() {
        let tag = BLOCK.tag(addr((at * BLOCK.words()) as u64));
        let Reservation::Reserved(frame) = store.reserve(tag, |_| false) else {
            panic!("the cache has four times the room")
        };
        store.publish(frame, tag, Access::Modified, true);
        let pinned = all[0].adopt(frame);
        let window = pinned.window(0, BLOCK.len());
        for (at, word) in contents.iter().enumerate() {
            window.set_word(at * 8, *word);
        }
        assert_eq!(pinned.unpin(true), Unpinned::Quiet);
    }
    all
}

fn addr(word: u64) -> GlobalAddr {
    GlobalAddr::from_bits((1 << 30) + word * 8)
}

/// Nanoseconds per access, the best of several rounds.
fn time(accesses: u64, mut run: impl FnMut(u64)) -> f64 {
    run(accesses);
    let best = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        run(accesses);
        start.elapsed().as_secs_f64()
    });
    best.fold(f64::INFINITY, f64::min) * 1e9 / accesses as f64
}

/// Keeps a result from being optimized away.
fn keep(result: u64) {
    black_box(result);
}

#[inline(never)]
fn plain_chain(next: &[u64], reads: u64) -> u64 {
    let mut at = 0;
    for _ in 0..reads {
        at = next[at as usize];
    }
    at
}

#[inline(never)]
fn cached_chain(node: &NodeMemory, hints: &mut Hints, reads: u64) -> u64 {
    let mut at = addr(0);
    for _ in 0..reads {
        at = GlobalAddr::from_bits(node.cache.load_word(hints, at).expect("all is cached"));
    }
    at.bits()
}

#[inline(never)]
fn plain_independent(words: &[u64], reads: u64) -> u64 {
    let mut places = Places::new(words.len());
    (0..reads).fold(0, |sum, _| sum ^ words[places.next() as usize])
}

#[inline(never)]
fn cached_independent(node: &NodeMemory, hints: &mut Hints, words: usize, reads: u64) -> u64 {
    let mut places = Places::new(words);
    (0..reads)
        .fold(0, |sum, _| sum ^ node.cache.load_word(hints, addr(places.next())).expect("all is cached"))
}

#[inline(never)]
fn cached_writes(node: &NodeMemory, hints: &mut Hints, words: usize, writes: u64) {
    let mut places = Places::new(words);
    for value in 0..writes {
        let unpinned = node.cache.store_word(hints, addr(places.next()), value).expect("all is cached");
        assert_eq!(unpinned, Unpinned::Quiet);
    }
}

#[inline(never)]
fn cached_inspections(node: &NodeMemory, hints: &mut Hints, words: usize, looks: u64) -> u64 {
    let mut places = Places::new(words);
    (0..looks).fold(0, |sum, _| {
        let at = addr(places.next() & !7);
        let eight = node.cache.inspect(hints, at, 64, |w| (0..8).fold(0, |x, i| x ^ w.word(i * 8)), |_| ());
        sum ^ eight.expect("all is cached")
    })
}

fn compare() {
    println!("ns per access, best of {ROUNDS}; blocks of {BLOCK}, hints for 512 of them");
    println!("{:>10} {:^26} {:^26}", "", "dependent reads", "independent reads");
    println!(
        "{:>10} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>10}",
        "footprint", "plain", "cached", "ratio", "plain", "cached", "ratio", "write", "look 64 B"
    );
    for bytes in FOOTPRINTS {
        let words = (bytes / 8) as usize;
        let accesses = (words as u64).max(1 << 20);
        let next = cycle(words);
        let addresses: Vec<u64> = next.iter().map(|word| addr(*word).bits()).collect();
        let all = cached(&addresses);
        let (node, mut hints) = (&all[0], Hints::new());

        let plain_dependent = time(accesses, |n| keep(plain_chain(&next, n)));
        let cached_dependent = time(accesses, |n| keep(cached_chain(node, &mut hints, n)));
        let plain = time(accesses, |n| keep(plain_independent(&next, n)));
        let cached = time(accesses, |n| keep(cached_independent(node, &mut hints, words, n)));
        let look = time(accesses, |n| keep(cached_inspections(node, &mut hints, words, n)));
        let write = time(accesses, |n| cached_writes(node, &mut hints, words, n));
        println!(
            "{:>6} KiB {:>8.2} {:>8.2} {:>8.2} {:>8.2} {:>8.2} {:>8.2} {:>8.2} {:>10.2}",
            bytes >> 10,
            plain_dependent,
            cached_dependent,
            cached_dependent / plain_dependent,
            plain,
            cached,
            cached / plain,
            write,
            look
        );
    }
}

/// Copies a block from home memory into a frame, as a miss does, against `memcpy`.
fn compare_fills() {
    const FILLS: u64 = 100_000;
    let all = vec![NodeMemory::new(BLOCK, 64 << 20, 1 << 20)];
    let mut store = StoreOf::new(&all, NodeId(0));
    let tag = BLOCK.tag(GlobalAddr::new(NodeId(0), 1 << 12));
    let Reservation::Reserved(frame) = store.reserve(tag, |_| false) else { panic!("the cache is empty") };
    store.write_home(tag, store.contents(frame));
    let fill = time(FILLS, |n| (0..n).for_each(|_| store.fill(frame, black_box(store.home_contents(tag)))));
    let (from, mut to) = (vec![1_u8; BLOCK.len()], vec![0_u8; BLOCK.len()]);
    let memcpy = time(FILLS, |n| (0..n).for_each(|_| black_box(&mut to).copy_from_slice(black_box(&from))));
    println!("\nfilling a frame with a hot block of {BLOCK}: {fill:.0} ns; memcpy: {memcpy:.0} ns");
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let words = (FOOTPRINTS[1] / 8) as usize;
    match args[..] {
        [] => {
            compare();
            compare_fills();
        }
        ["--count", count, what @ ("plain" | "cached")] => {
            let count = count.parse().expect("a number of reads");
            let next = cycle(words);
            let all = cached(&next);
            let sum = match what {
                "plain" => plain_independent(&next, count),
                _ => cached_independent(&all[0], &mut Hints::new(), words, count),
            };
            println!("{count} {what} reads: {sum:#x}");
        }
        _ => {
            eprintln!("usage: hit_cost [--count READS plain|cached]");
            std::process::exit(2);
        }
    }
}
