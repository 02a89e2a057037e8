//! Snapshots while others write: each is of the moments that it promises.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;

use apps::kv::{KvConfig, KvStore};
use apps::kv_locked::{LockedStore, LockedStoreConfig};
use apps::named;
use apps::snapshot::{Existing, Moment};
use check::AtEnd;
use rackmem::{Locked, NodeHandle, NodeId, Objects, Region, Retry, block_on};

use crate::snapshots::{rack, restored, saved};

/// Saves so often while others write, and each time looks at what came back.
const TIMES: usize = 60;

fn while_others_write(
    moment: Moment,
    write: impl Fn(&mut NodeHandle, u64) + Sync,
    mut check: impl FnMut(&mut NodeHandle, u64, u64),
    make: impl FnOnce(&mut NodeHandle),
) {
    let (rack, other) = (rack(), rack());
    let (mut here, mut there) = (rack.node(NodeId(0)), other.node(NodeId(0)));
    make(&mut here);
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let (mut writer, stop, done, write) = (rack.node(NodeId(1)), &stop, &done, &write);
        scope.spawn(move || {
            for round in 1.. {
                write(&mut writer, round);
                done.store(round, SeqCst);
                if stop.load(SeqCst) {
                    return;
                }
            }
        });
        let _stop = AtEnd(stop);
        for time in 0..TIMES {
            let before = done.load(SeqCst);
            while done.load(SeqCst) == before {
                thread::yield_now();
            }
            let first = done.load(SeqCst);
            let (file, promised) = saved(&mut here, "it");
            let last = done.load(SeqCst) + 1;
            assert_eq!(promised, moment);
            let existing = if time == 0 { Existing::Keep } else { Existing::Replace };
            restored(&mut there, "it", &file, existing).unwrap();
            check(&mut there, first, last);
        }
    });
}

type Many = [u64; 512];

#[test]
fn what_a_lock_guards_is_of_one_moment() {
    let open = |here: &mut NodeHandle| here.named::<Locked<Many>>("it").open().unwrap();
    while_others_write(
        Moment::Whole,
        |writer, round| {
            let it = open(writer);
            let mut it = it.write(writer).unwrap();
            // In two steps, with time between.
            it[..256].fill(round);
            thread::yield_now();
            it[256..].fill(round);
        },
        |there, first, last| {
            let it = open(there);
            let it = it.read(there).unwrap();
            assert!(it.iter().all(|word| *word == it[0]) && (first..=last).contains(&it[0]), "{it:?}");
        },
        |here| drop(here.named::<Locked<Many>>("it").create([0; 512]).unwrap()),
    );
}

/// Keys that are put one after the other, again and again, in many buckets.
const KEYS: u64 = 40;

fn key(number: u64) -> [u8; 8] {
    number.to_le_bytes()
}

#[test]
fn a_store_in_locks_is_of_one_moment() {
    let open = |here: &mut NodeHandle| named::open::<LockedStore>(here, "it").unwrap();
    while_others_write(
        Moment::Whole,
        |writer, round| {
            let it = open(writer);
            (0..KEYS).for_each(|at| assert!(it.put(writer, &key(at), &round.to_le_bytes()).unwrap()));
        },
        |there, first, last| {
            let (it, mut value) = (open(there), Vec::new());
            let rounds: Vec<u64> = (0..KEYS)
                .map(|at| {
                    assert!(it.get(there, &key(at), &mut value).unwrap());
                    u64::from_le_bytes(value[..].try_into().unwrap())
                })
                .collect();
            // At any moment the first keys are of a round, and the others of the one before.
            assert!(rounds.is_sorted_by(|one, next| one >= next), "{rounds:?}");
            assert!(rounds[0] - rounds[KEYS as usize - 1] <= 1, "{rounds:?}");
            assert!(rounds.iter().all(|round| (first..=last).contains(round)), "{first} {last} {rounds:?}");
        },
        |here| {
            let config = LockedStoreConfig { expected_keys: KEYS, ..LockedStoreConfig::default() };
            let it: LockedStore = named::open_or(here, "it", &config).unwrap();
            (0..KEYS).for_each(|at| assert!(!it.put(here, &key(at), &key(0)).unwrap()));
        },
    );
}

#[test]
fn each_key_of_a_store_is_of_one_moment_and_those_that_stay_are_all_there() {
    let open = |here: &mut NodeHandle| named::open::<KvStore>(here, "it").unwrap();
    while_others_write(
        Moment::Key,
        |writer, round| {
            let it = open(writer);
            for at in 0..KEYS {
                // Larger than a block at times, so that records are replaced.
                let len = if (at + round).is_multiple_of(5) { 5000 } else { 64 };
                let value: Vec<u8> = round.to_le_bytes().into_iter().cycle().take(len).collect();
                block_on(it.put(writer, &key(at), &value)).unwrap();
            }
            block_on(it.put(writer, b"comes and goes", b"here")).unwrap();
            block_on(it.delete(writer, b"comes and goes")).unwrap();
        },
        |there, first, last| {
            let (it, mut value) = (open(there), Vec::new());
            for at in 0..KEYS {
                assert!(block_on(it.get(there, &key(at), &mut value)).unwrap(), "{at}");
                let (words, rest) = value.as_chunks::<8>();
                assert!(rest.is_empty() && words.iter().all(|word| *word == words[0]), "{value:?}");
                assert!((first..=last).contains(&u64::from_le_bytes(words[0])));
            }
        },
        |here| {
            let config = KvConfig { expected_keys: 20, ..KvConfig::default() };
            let it: KvStore = named::open_or(here, "it", &config).unwrap();
            (0..KEYS).for_each(|at| assert!(!block_on(it.put(here, &key(at), &key(0))).unwrap()));
        },
    );
}

#[test]
fn each_object_is_of_one_moment() {
    let open = |here: &mut NodeHandle| here.named::<Objects<Many>>("it").open().unwrap();
    while_others_write(
        Moment::Object,
        |writer, round| {
            let it = open(writer);
            (0..4).for_each(|at| assert!(it.write(writer, at, &[round; 512]).is_ok()));
            thread::yield_now();
        },
        |there, first, last| {
            let it = open(there);
            for at in 0..4 {
                let it = it.read(there, at, Retry::Forever).unwrap();
                assert!(it.iter().all(|word| *word == it[0]) && (first..=last).contains(&it[0]), "{it:?}");
            }
        },
        |here| drop(here.named::<Objects<Many>>("it").create(4).unwrap()),
    );
}

#[test]
fn each_block_of_a_region_is_of_one_moment() {
    const BLOCKS: u64 = 4;
    let open = |here: &mut NodeHandle| here.named::<Region>("it").open().unwrap().addr();
    while_others_write(
        Moment::Block,
        |writer, round| {
            let (it, block) = (open(writer), writer.block_size().bytes());
            for at in 0..BLOCKS {
                let words: Vec<u8> = round.to_le_bytes().into_iter().cycle().take(block as usize).collect();
                writer.write(it + at * block, &words).unwrap();
            }
        },
        |there, first, last| {
            let (it, block) = (open(there), there.block_size().bytes());
            for at in 0..BLOCKS {
                let mut bytes = vec![0; block as usize];
                there.read(it + at * block, &mut bytes).unwrap();
                let words = bytes.as_chunks::<8>().0;
                assert!(words.iter().all(|word| *word == words[0]));
                assert!((first..=last).contains(&u64::from_le_bytes(words[0])));
            }
        },
        |here| {
            let bytes = BLOCKS * here.block_size().bytes();
            here.named::<Region>("it").create(bytes as usize).unwrap();
        },
    );
}
