//! Random programs: threads work on the same words through pointers and by calls, and each word's history is linearizable.
//!
//! `RACKMEM_SEED=N` draws the same programs again (threads run as they run), `RACKMEM_RUNS=N` draws so many for each kind of rack.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Instant;

use check::history::{Op, Operation};
use rackmem::{Config, GlobalAddr, Mapping, Nanos, NodeHandle, Window};
use random::Random;

use super::super::histories::assert_linearizable;
use super::super::rig::Processes;
use super::litmus::watched;
use super::{PAGE, alloc, can_map, map_everywhere};

const PAGES: u64 = 12;
/// On each page: one at its start, and one that lies elsewhere on each.
const WORDS: u64 = 2 * PAGES;

/// Where a word is, in words.
const fn place(word: u64) -> u64 {
    (word / 2) * 512 + (word % 2) * (7 + 40 * (word / 2))
}

/// Counters that are added to have this many values between one that was stored and the next one: all values differ.
const APART: u64 = 1 << 20;

/// One thread: what it draws, what it saw last of each word, and what it has written so far.
struct Client {
    number: u64,
    dice: Random,
    seen: [u64; WORDS as usize],
    written: u64,
}

impl Client {
    fn new(seed: u64, number: u64) -> Self {
        let dice = Random::new(random::mix(seed ^ random::mix(number)));
        Self { number, dice, seen: [0; WORDS as usize], written: 0 }
    }

    /// A value that nobody else writes.
    const fn value(&mut self) -> u64 {
        self.written += 1;
        (self.number * 1_000_000 + self.written) * APART
    }

    /// Through a pointer.
    fn follow(&mut self, kind: u64, word: &AtomicU64, seen: u64) -> Op {
        let new = self.value();
        match kind {
            0 | 1 => Op::Read { value: Some(word.load(SeqCst)) },
            2 => {
                word.store(new, SeqCst);
                Op::Insert { value: new }
            }
            3 => Op::Rmw { value: Some(word.swap(new, SeqCst)), new },
            4 => {
                let old = word.fetch_add(1, SeqCst);
                Op::Rmw { value: Some(old), new: old + 1 }
            }
            _ => match word.compare_exchange(seen, new, SeqCst, SeqCst) {
                Ok(old) => Op::Rmw { value: Some(old), new },
                Err(old) => Op::Read { value: Some(old) },
            },
        }
    }

    /// By calls.
    fn call(&mut self, kind: u64, (here, addr): (&mut NodeHandle, GlobalAddr), seen: u64) -> Op {
        let new = self.value();
        let mut update = |change: &dyn Fn(u64) -> u64| {
            let change = |window: &Window<'_>| {
                let (old, new) = (window.word(0), change(window.word(0)));
                window.set_word(0, new);
                // What is not changed is only seen.
                if new == old { Op::Read { value: Some(old) } } else { Op::Rmw { value: Some(old), new } }
            };
            here.update(addr, 8, change).unwrap()
        };
        match kind {
            0 | 1 => Op::Read { value: Some(here.read_word(addr).unwrap()) },
            2 => {
                here.write_word(addr, new).unwrap();
                Op::Insert { value: new }
            }
            3 => update(&|_| new),
            4 => update(&|old| old + 1),
            _ => update(&|old| if old == seen { new } else { old }),
        }
    }

    fn run(&mut self, steps: u64, now: &dyn Fn() -> Nanos, reach: &mut Reach<'_>) -> Vec<Operation<u64>> {
        let mut mine = Vec::new();
        for _ in 0..steps {
            // Half of all on two words.
            let among = if self.dice.below(2) == 0 { 2 } else { WORDS };
            let (word, kind) = (self.dice.below(among), self.dice.below(6));
            let seen = self.seen[word as usize];
            let invoke = now();
            let op = match reach {
                Reach::Pointers(map) => self.follow(kind, &map.words()[place(word) as usize], seen),
                Reach::Calls(here, base) => self.call(kind, (here, *base + place(word) * 8), seen),
            };
            mine.push(Operation { client: self.number, key: word, op, invoke, ret: Some(now()) });
            self.seen[word as usize] = match op {
                Op::Insert { value } | Op::Rmw { new: value, .. } | Op::Read { value: Some(value) } => value,
                other => unreachable!("{other:?}"),
            };
        }
        mine
    }
}

enum Reach<'a> {
    Pointers(&'a Mapping),
    Calls(&'a mut NodeHandle, GlobalAddr),
}

/// On every node a thread with pointers, and on half of the nodes one with calls.
fn history(rack: &Processes, seed: u64, steps: u64) -> Vec<Operation<u64>> {
    let len = PAGES as usize * PAGE;
    let base = alloc(rack, (seed % rack.nodes.len() as u64) as u16, len);
    let maps = map_everywhere(rack, base, len);
    let pointers = maps.iter().map(Reach::Pointers);
    let mut handles: Vec<_> = rack.nodes.iter().step_by(2).map(rackmem::Rack::here).collect();
    let calls = handles.iter_mut().map(|here| Reach::Calls(here, base));
    let (all, began) = (Mutex::new(Vec::new()), Instant::now());
    let now = || Nanos(1 + u64::try_from(began.elapsed().as_nanos()).unwrap());
    std::thread::scope(|scope| {
        for (number, mut reach) in (1..).zip(pointers.chain(calls)) {
            let (all, now) = (&all, &now);
            scope.spawn(move || {
                let mine = Client::new(seed, number).run(steps, now, &mut reach);
                all.lock().unwrap().extend(mine);
            });
        }
    });
    // Memory is zeroed before anybody can touch it.
    let zeroes = (0..WORDS).map(|key| {
        let (op, invoke) = (Op::Insert { value: 0 }, Nanos(0));
        Operation { client: 0, key, op, invoke, ret: Some(invoke) }
    });
    zeroes.chain(all.into_inner().unwrap()).collect()
}

#[test]
fn words_that_random_programs_reach_by_pointers_and_by_calls_are_linearizable() {
    if !can_map() {
        return;
    }
    let number = |name| std::env::var(name).ok().map(|text| text.parse().expect("a number"));
    let seed: u64 = number("RACKMEM_SEED").unwrap_or_else(|| RandomState::new().hash_one(0) >> 32);
    let runs = number("RACKMEM_RUNS").unwrap_or(1);
    for seed in seed..seed + runs {
        let replay = format!("RACKMEM_SEED={seed} cargo test -p rackmem networked::mapped::programs");
        println!("{replay}");
        for (nodes, steps) in [(2, 800), (4, 400), (8, 160)] {
            for faulty in [false, true] {
                // All pages fit into the cache, or they come and go: no cache is smaller.
                let cache = [8, 256][random::mix(seed ^ nodes) as usize % 2] * PAGE as u64;
                let in_place = random::mix(seed ^ !nodes) & 1 == 1;
                // Half of them in memory with copies, but not where one process has no addresses for that of so many nodes.
                let copies = if nodes < 8 { 1 + random::mix(seed ^ nodes << 8) as usize % 2 } else { 1 };
                let shape = Config {
                    nodes: nodes as usize,
                    copies,
                    memory: 8 << 20,
                    cache,
                    peek: faulty,
                    ..Config::default()
                };
                let rack = Processes::start_mapped(faulty, shape, in_place);
                let began = Instant::now();
                let history = watched(&rack, &replay, || history(&rack, seed, steps));
                println!(
                    "{nodes} nodes, faulty {faulty}: {} operations, {:?}",
                    history.len(),
                    began.elapsed()
                );
                assert_linearizable(&history);
            }
        }
    }
}
