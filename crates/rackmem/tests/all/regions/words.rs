//! What must hold of words, whoever changes them from wherever.

use std::sync::Mutex;
use std::thread;

use check::history::{Op, Operation};
use check::linearizability::{Limits, Verdict, check_history};
use rackmem::{Config, Discipline, Error, Memory, Nanos, Rack, WordOperation};
use random::Random;

use crate::regions::{node, rack};

const THREADS: u16 = 8;
const ROUNDS: u64 = 20_000;

#[test]
fn no_addition_is_lost_however_it_is_made() {
    let rack = rack(4);
    let words = rack.node(node(0)).words::<u64>(3, node(1)).unwrap();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (mut node, words) = (rack.node(node(thread % 4)), words.clone());
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    words.fetch_add(&mut node, 0, 3).unwrap();
                    words.add(&mut node, 1, 5).unwrap();
                    let pending = words.post(&mut node, 2, WordOperation::Add(7)).unwrap();
                    pending.wait(&mut node).unwrap();
                }
                node.flush().unwrap();
            });
        }
    });
    let mut node = rack.node(node(3));
    let all = u64::from(THREADS) * ROUNDS;
    let found = [0, 1, 2].map(|index| words.load(&mut node, index).unwrap());
    assert_eq!(found, [3 * all, 5 * all, 7 * all]);
}

#[test]
fn every_value_of_a_counter_is_handed_out_once() {
    let rack = rack(4);
    let words = rack.node(node(0)).words::<u64>(1, node(2)).unwrap();
    let drawn = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (mut node, words, drawn) = (rack.node(node(thread % 4)), &words, &drawn);
            scope.spawn(move || {
                let mine: Vec<u64> = (0..ROUNDS).map(|_| words.fetch_add(&mut node, 0, 1).unwrap()).collect();
                drawn.lock().unwrap().extend(mine);
            });
        }
    });
    let mut drawn = drawn.into_inner().unwrap();
    drawn.sort_unstable();
    assert!(drawn.into_iter().eq(0..u64::from(THREADS) * ROUNDS));
}

#[test]
fn loops_of_compare_exchange_lose_nothing() {
    let rack = rack(4);
    let words = rack.node(node(0)).words::<u64>(1, node(1)).unwrap();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (mut node, words) = (rack.node(node(thread % 4)), &words);
            scope.spawn(move || {
                let mut expected = 0;
                for _ in 0..ROUNDS {
                    while let Err(found) =
                        words.compare_exchange(&mut node, 0, expected, expected + 1).unwrap()
                    {
                        expected = found;
                    }
                    expected += 1;
                }
            });
        }
    });
    let all = u64::from(THREADS) * ROUNDS;
    assert_eq!(words.load(&mut rack.node(node(0)), 0).unwrap(), all);
}

#[test]
fn both_halves_of_a_double_word_are_changed_at_once_and_apart() {
    let rack = rack(2);
    let halves = rack.node(node(0)).words::<u32>(2, node(1)).unwrap();
    let whole = rack.node(node(0)).words_at::<u64>(halves.addr()).unwrap();
    // Sums that overflow: a carry out of the lower half would be seen in the upper.
    let (low, high) = (0x0123_4567_u32, 0x89ab_cdef_u32);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (mut node, halves, whole) = (rack.node(node(thread % 2)), &halves, &whole);
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    match thread % 4 {
                        0 => _ = halves.fetch_add(&mut node, 0, low).unwrap(),
                        1 => _ = halves.fetch_add(&mut node, 1, high).unwrap(),
                        2 => _ = halves.fetch_xor(&mut node, 0, 0).unwrap(),
                        // Both at once, through the whole of it.
                        _ => _ = whole.fetch_add(&mut node, 0, 1 << 32).unwrap(),
                    }
                }
            });
        }
    });
    let turns = u32::try_from(ROUNDS).unwrap() * u32::from(THREADS) / 4;
    let mut node = rack.node(node(1));
    assert_eq!(halves.load(&mut node, 0).unwrap(), low.wrapping_mul(turns));
    assert_eq!(halves.load(&mut node, 1).unwrap(), high.wrapping_add(1).wrapping_mul(turns));
}

#[test]
fn each_operation_does_what_its_name_says() {
    let rack = rack(2);
    let mut here = rack.node(node(0));
    let words = here.words::<i64>(4, node(1)).unwrap();
    assert_eq!(words.swap(&mut here, 1, 0b1100).unwrap(), 0);
    assert_eq!(words.fetch_and(&mut here, 1, 0b0110).unwrap(), 0b1100);
    assert_eq!(words.fetch_or(&mut here, 1, 0b0011).unwrap(), 0b0100);
    assert_eq!(words.fetch_xor(&mut here, 1, 0b0101).unwrap(), 0b0111);
    assert_eq!(words.fetch_min(&mut here, 1, -5).unwrap(), 0b0010);
    assert_eq!(words.fetch_max(&mut here, 1, 9).unwrap(), -5);
    assert_eq!(words.compare_exchange(&mut here, 1, 8, 1).unwrap(), Err(9));
    assert_eq!(words.compare_exchange(&mut here, 1, 9, 1).unwrap(), Ok(9));
    words.compare_store(&mut here, 1, 1, i64::MAX).unwrap();
    words.add(&mut here, 1, 1).unwrap();
    assert_eq!(words.load(&mut here, 1).unwrap(), i64::MIN, "sums wrap around");
    words.max(&mut here, 1, 0b1111).unwrap();
    words.and(&mut here, 1, 0b1010).unwrap();
    words.or(&mut here, 1, 0b0001).unwrap();
    words.xor(&mut here, 1, 0b1000).unwrap();
    words.min(&mut here, 1, 100).unwrap();
    assert_eq!(words.load(&mut here, 1).unwrap(), 0b0011);
    words.store(&mut here, 1, 0).unwrap();
    here.flush().unwrap();
    // Unsigned types, and still signed numbers: as RISC-V's amomin and amomax.
    let (doubles, halves) =
        (here.words_at::<u64>(words.addr()).unwrap(), here.words_at::<u32>(words.addr()).unwrap());
    assert_eq!(doubles.fetch_min(&mut here, 0, u64::MAX).unwrap(), 0);
    assert_eq!(doubles.load(&mut here, 0).unwrap(), u64::MAX, "-1 is less than 0");
    assert_eq!(halves.fetch_max(&mut here, 1, 7).unwrap(), u32::MAX);
    assert_eq!(doubles.load(&mut here, 0).unwrap(), 0x7_ffff_ffff);
    assert_eq!(
        [1, 2, 3].map(|at| words.load(&mut here, at).unwrap()),
        [0; 3],
        "their neighbours are as they were"
    );
}

#[test]
fn histories_of_words_are_linearizable() {
    const WORDS: u64 = 4;
    for seed in 1..=4 {
        let rack = rack(4);
        let words = rack.node(node(0)).words::<u64>(WORDS as usize, node(1)).unwrap();
        let all = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for client in 0..u64::from(THREADS) {
                let (mut node, all, words) = (rack.node(node((client % 4) as u16)), &all, &words);
                scope.spawn(move || {
                    let mut dice = Random::new(seed * 100 + client);
                    let (mut mine, mut known) = (Vec::new(), [0; WORDS as usize]);
                    for round in 0..1500 {
                        let index = dice.below(WORDS) as usize;
                        let new = 1 + client * 1_000_000 + round;
                        let invoke = node.now();
                        let op = match dice.below(4) {
                            0 => {
                                words.store(&mut node, index, new).unwrap();
                                Op::Insert { value: new }
                            }
                            1 => {
                                let value = Some(words.swap(&mut node, index, new).unwrap());
                                Op::Rmw { value, new }
                            }
                            2 => match words.compare_exchange(&mut node, index, known[index], new).unwrap() {
                                Ok(old) => Op::Rmw { value: Some(old), new },
                                Err(found) => Op::Read { value: Some(found) },
                            },
                            _ => {
                                known[index] = words.load(&mut node, index).unwrap();
                                Op::Read { value: Some(known[index]) }
                            }
                        };
                        mine.push(Operation { client, key: index as u64, op, invoke, ret: Some(node.now()) });
                    }
                    all.lock().unwrap().extend(mine);
                });
            }
        });
        let mut history = all.into_inner().unwrap();
        for key in 0..WORDS {
            let (invoke, ret) = (Nanos(0), Some(Nanos(0)));
            history.push(Operation { client: 99, key, op: Op::Insert { value: 0 }, invoke, ret });
        }
        match check_history(&history, Limits::default()) {
            Verdict::Linearizable { operations, .. } => assert_eq!(operations, history.len()),
            verdict => panic!("seed {seed}: {verdict:?}"),
        }
    }
}

#[test]
fn words_are_the_same_wherever_they_are_opened() {
    let rack = rack(3);
    let (mut here, mut there) = (rack.node(node(0)), rack.node(node(2)));
    // Beyond a block, and beyond a page.
    let count = 10_000;
    let words = here.words::<u64>(count, node(1)).unwrap();
    let same = there.words_at::<u64>(words.addr()).unwrap();
    assert_eq!((same.len(), same.addr()), (count, words.addr()));
    for index in 0..count {
        words.add(&mut here, index, index as u64 + 1).unwrap();
    }
    here.flush().unwrap();
    assert!((0..count).all(|index| same.load(&mut there, index).unwrap() == index as u64 + 1));
    let plain = here.alloc(64, node(2), Discipline::Word).unwrap();
    assert_eq!(there.words_at::<u32>(plain).unwrap().len(), 16);
}

#[test]
fn bytes_are_read_and_written_as_they_are_wherever_they_lie_and_freed_ones_are_not() {
    // More than home memory has in one piece.
    const WORDS: usize = 4_300_000;
    let config = Config { nodes: 2, cache: 1 << 20, memory: 40 << 20, ..Config::default() };
    let rack = Rack::embedded(config).unwrap();
    let (mut here, mut there) = (rack.node(node(0)), rack.node(node(1)));
    let words = here.words::<u64>(WORDS, node(1)).unwrap();
    let bytes: Vec<u8> = (0..9001_u32).map(|at| (at * 13) as u8).collect();
    let mut found = vec![0; 9001];
    for at in (4_100_000..WORDS - 1126).step_by(1000).chain([WORDS - 1126]) {
        words.write_bytes(&mut here, at, &bytes).unwrap();
        words.read_bytes(&mut there, at, &mut found).unwrap();
        assert!(found == bytes, "at word {at}");
        found.fill(0);
    }
    let (addr, former) = (words.addr(), words.clone());
    words.free(&mut there).unwrap();
    assert_eq!(former.read_bytes(&mut here, 0, &mut found), Err(Error::Unallocated { addr }));
    assert_eq!(former.write_bytes(&mut here, 0, &found), Err(Error::Unallocated { addr }));
}
