//! GAM under chance: several nodes, threads and blocks, caches far too small, messages in any order that the network
//! may bring them in; looked at after every step.

use crate::driver;

use driver::{Driver, Task};
use lab::gam::{AllRules, Gam, GamConfig, HandOver, Rules};
use sim::coherence::Contents;
use wire::{BlockSize, GlobalAddr};

const NODES: usize = 4;
const THREADS: usize = 2;
const HOMES: u16 = 3;
const BLOCKS_OF_HOME: u64 = 3;

fn config(contents: Contents, hand_over: HandOver) -> GamConfig {
    GamConfig {
        threads: THREADS,
        block: BlockSize::MIN,
        cache: 3 * BlockSize::MIN.bytes(),
        memory: 1 << 12,
        contents,
        hand_over,
        check: true,
        ..GamConfig::new(NODES)
    }
}

/// Lets chance do so many operations. Returns how many additions every block has seen, and all that happened as one
/// number.
fn run<R: Rules>(
    config: GamConfig,
    seed: u64,
    operations: usize,
) -> (Driver<Gam<R>>, Vec<(GlobalAddr, u32)>) {
    let mut driver = Driver::new(Gam::<R>::new(config), NODES * THREADS, seed);
    let mut blocks: Vec<_> = (0..HOMES * BLOCKS_OF_HOME as u16)
        .map(|number| (driver.alloc(number % HOMES, BlockSize::MIN.bytes()), 0))
        .collect();
    let mut begun = 0;
    loop {
        let thread = driver.random.below((NODES * THREADS) as u64) as u16;
        if begun < operations && driver.is_idle(thread) && driver.random.below(3) == 0 {
            begun += 1;
            let block = &mut blocks[driver.random.below(u64::from(HOMES) * BLOCKS_OF_HOME) as usize];
            let writes = driver.random.below(2) == 0;
            block.1 += u32::from(writes);
            driver.start(thread, if writes { Task::Add(block.0) } else { Task::Read(block.0) });
        } else if !driver.step() && begun == operations {
            break;
        }
        if let Some(violation) = driver.system.violation() {
            panic!("{violation} ({})", driver.replay());
        }
    }
    assert_eq!(driver.ended.len(), operations, "an operation is stuck ({})", driver.replay());
    assert!(driver.system.is_quiet(), "something is left over ({})", driver.replay());
    assert!(driver.ended.iter().all(|ended| ended.runs == 1 && ended.result.is_ok()), "once each");
    (driver, blocks)
}

#[test]
fn a_block_has_one_writer_or_current_readers_after_every_step_and_nothing_is_stuck() {
    for seed in 0..60 {
        let (driver, blocks) = run::<AllRules>(config(Contents::Stamps, HandOver::Direct), seed, 400);
        for (addr, writes) in blocks {
            let stamps: Vec<_> =
                (0..4).filter_map(|node| driver.system.stamp(wire::NodeId(node), addr)).collect();
            assert!(!stamps.is_empty() && stamps.iter().all(|stamp| *stamp == writes), "{addr}: {stamps:?}");
        }
    }
}

#[test]
fn the_same_holds_when_background_threads_send_the_requests() {
    for seed in 0..30 {
        run::<AllRules>(config(Contents::Stamps, HandOver::Queue), seed, 400);
    }
}

#[test]
fn no_addition_is_lost() {
    for seed in 0..30 {
        let (mut driver, blocks) = run::<AllRules>(config(Contents::Bytes, HandOver::Direct), seed, 400);
        for (addr, additions) in blocks {
            let (_, ended) = driver.run(0, Task::Read(addr));
            assert_eq!(ended.saw, u64::from(additions), "{addr} ({})", driver.replay());
        }
    }
}

#[test]
fn values_read_by_one_thread_never_run_back() {
    for seed in 0..30 {
        let (driver, blocks) = run::<AllRules>(config(Contents::Bytes, HandOver::Direct), seed, 400);
        for (addr, _) in blocks {
            for thread in 0..(NODES * THREADS) as u16 {
                let mine = driver.ended.iter().filter(|ended| ended.thread.0 == thread);
                let saw: Vec<_> = mine
                    .filter(|ended| matches!(ended.task, Task::Read(at) | Task::Add(at) if at == addr))
                    .map(|e| e.saw)
                    .collect();
                assert!(saw.is_sorted(), "thread {thread} read {saw:?} of {addr} ({})", driver.replay());
            }
        }
    }
}

#[test]
fn every_path_is_taken() {
    let mut sum = lab::gam::Counters::default();
    for seed in 0..10 {
        let (driver, _) = run::<AllRules>(config(Contents::Stamps, HandOver::Direct), seed, 400);
        let counters = driver.system.counters();
        sum.hits += counters.hits;
        sum.misses += counters.misses;
        sum.queued += counters.queued;
        sum.evicted_shared += counters.evicted_shared;
        sum.evicted_dirty += counters.evicted_dirty;
    }
    let all = [sum.hits, sum.misses, sum.queued, sum.evicted_shared, sum.evicted_dirty];
    assert!(all.iter().all(|count| *count > 100), "{sum:?}");
}

/// A home that grants a write at the first acknowledgement.
struct Hasty;

impl Rules for Hasty {
    const COLLECTS_EVERY_ACKNOWLEDGEMENT: bool = false;
}

/// A node that keeps a block which was invalidated before it arrived.
struct Keeping;

impl Rules for Keeping {
    const DROPS_OVERTAKEN_BLOCKS: bool = false;
}

/// What the first of some seeds that fails says.
fn caught<R: Rules>() -> String {
    let found = (0..200).find_map(|seed| {
        let run = std::panic::catch_unwind(|| {
            run::<R>(config(Contents::Stamps, HandOver::Direct), seed, 400).1.len()
        });
        run.err().map(|said| said.downcast::<String>().map_or_else(|_| "?".into(), |said| *said))
    });
    found.expect("some seed catches the mutant")
}

#[test]
fn a_home_that_grants_before_all_acknowledgements_is_caught() {
    let said = caught::<Hasty>();
    assert!(said.contains("of which") && said.contains("has a copy"), "{said}");
}

#[test]
fn a_node_that_keeps_an_invalidated_block_is_caught() {
    let said = caught::<Keeping>();
    assert!(said.contains("has a copy") || said.contains("as of write"), "{said}");
}
