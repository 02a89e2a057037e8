//! Locks that carry their data on the simulated rack, end to end, in exact order, with the properties checked: writers are
//! alone, and whoever enters has the data of the last release.

use sim::locks::{AGENTS, Locks, SimLocksConfig};
use sim::rack::{Ended, Handle, Rack, RackReport, Setup, Until};
use sim::system::{Random, ThreadId};
use wire::{AllRules, Discipline, GlobalAddr, Nanos, NodeId, Refusal, Rule, Rules, Without};

const LEN: u32 = 1024;

fn small(nodes: usize) -> SimLocksConfig {
    SimLocksConfig { threads: 3, check: true, switch_entries: 64, ..SimLocksConfig::new(nodes) }
}

fn rack_of<R: Rules>(rules: R, config: SimLocksConfig, seed: u64) -> Rack<Locks<R>> {
    let setup = Setup {
        seed,
        check: true,
        threads: config.threads,
        agents: AGENTS,
        ..Setup::new(config.nodes).exact()
    };
    Rack::new(setup, Locks::with_rules(rules, config))
}

/// The locks' regions, in the memory of the last node.
fn locks<R: Rules>(rack: &mut Rack<Locks<R>>, count: u64, len: u32) -> Vec<GlobalAddr> {
    let home = NodeId(u16::try_from(rack.setup().nodes - 1).unwrap());
    rack.run_one(ThreadId(0), move |mut handle| async move {
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(handle.alloc(len.into(), home, Discipline::Coherent).await.unwrap().0);
        }
        all
    })
}

/// Threads of all nodes but the home take locks at random, for so many operations each.
fn busy<R: Rules>(
    rack: &mut Rack<Locks<R>>,
    locks: &[GlobalAddr],
    each: u32,
    writes: u64,
    seed: u64,
) -> RackReport {
    let setup = rack.setup();
    let threads = (setup.nodes - 1) * setup.threads;
    for thread in (0..u16::try_from(threads).unwrap()).map(ThreadId) {
        let (locks, mut random) = (locks.to_vec(), Random::new(seed ^ u64::from(thread.0)));
        rack.spawn(thread, move |mut handle: Handle<Locks<R>>| async move {
            for _ in 0..each {
                let lock = locks[usize::try_from(random.below(locks.len() as u64)).unwrap()];
                let token = handle.lock(lock, random.below(100) < writes, false).await.unwrap();
                handle.compute(Nanos(random.below(3_000)));
                handle.unlock(token).await.unwrap();
                let since = handle.now();
                handle.finished(since);
            }
        });
    }
    rack.run(Until::WorkersDone)
}

#[test]
fn writers_are_alone_and_see_the_last_release() {
    for (seed, writes) in [(1, 100), (2, 50), (3, 10), (4, 0)] {
        for in_switch in [true, false] {
            let mut rack = rack_of(AllRules, SimLocksConfig { in_switch, ..small(4) }, seed);
            let all = locks(&mut rack, 3, LEN);
            let report = busy(&mut rack, &all, 200, writes, seed);
            assert_eq!((report.ended, report.counts.operations), (Ended::WorkersDone, 9 * 200));
        }
    }
}

#[test]
fn nobody_is_forgotten_when_locks_are_given_up_at_each_release() {
    for (seed, writes) in [(1, 100), (2, 50), (3, 0)] {
        let mut rack = rack_of(AllRules, SimLocksConfig { keeps: false, ..small(4) }, seed);
        let all = locks(&mut rack, 3, LEN);
        let report = busy(&mut rack, &all, 200, writes, seed);
        assert_eq!(report.ended, Ended::WorkersDone);
        let hits = rack.with_system(Locks::hits);
        assert_eq!(hits, 0, "nothing stays to be entered without asking");
    }
}

#[test]
fn a_lock_that_stays_is_asked_for_once() {
    let mut rack = rack_of(AllRules, small(2), 1);
    let all = locks(&mut rack, 1, LEN);
    let lock = all[0];
    rack.run_one(ThreadId(0), move |mut handle| async move {
        for _ in 0..10 {
            let token = handle.lock(lock, true, false).await.unwrap();
            handle.unlock(token).await.unwrap();
        }
    });
    let (asked, hits) = rack.with_system(|locks| (locks.count(|counters| counters.asked), locks.hits()));
    assert_eq!((asked, hits), (1, 9));
}

#[test]
fn copies_make_room_for_each_other() {
    for writes in [0, 50, 100] {
        let config = SimLocksConfig { cache: 2 * u64::from(LEN), ..small(4) };
        let mut rack = rack_of(AllRules, config, 5);
        let all = locks(&mut rack, 8, LEN);
        let report = busy(&mut rack, &all, 200, writes, 5);
        assert_eq!(report.ended, Ended::WorkersDone);
        assert!(rack.with_system(|locks| locks.count(|counters| counters.evicted)) > 0);
    }
}

#[test]
fn locks_without_data_exclude_too() {
    let mut rack = rack_of(AllRules, SimLocksConfig { len: 0, ..small(4) }, 7);
    let all = locks(&mut rack, 2, 0);
    assert_eq!(busy(&mut rack, &all, 200, 50, 7).ended, Ended::WorkersDone);
}

#[test]
fn one_who_does_not_want_to_wait_is_told_that_the_lock_is_taken() {
    let mut rack = rack_of(AllRules, small(3), 1);
    let lock = locks(&mut rack, 1, LEN)[0];
    rack.spawn(ThreadId(0), move |mut handle| async move {
        let token = handle.lock(lock, true, false).await.unwrap();
        let until = handle.now() + Nanos::from_micros(500);
        handle.sleep_until(until).await;
        handle.unlock(token).await.unwrap();
    });
    let refused = rack.run_one(ThreadId(3), move |mut handle| async move {
        handle.sleep_until(Nanos::from_micros(100)).await;
        handle.lock(lock, true, true).await
    });
    assert_eq!(refused, Err(Refusal::Locked));
}

#[test]
#[should_panic(expected = "writer")]
fn a_writer_that_does_not_wait_for_readers_is_noticed() {
    let mut rack = rack_of(Without(Rule::WriterAwaitsReaders), small(4), 2);
    let all = locks(&mut rack, 1, LEN);
    busy(&mut rack, &all, 200, 50, 2);
}

/// A digest of what a run did.
fn run(seed: u64, run_ahead: bool) -> (Nanos, u64, u64, Nanos) {
    let config = SimLocksConfig { check: false, ..small(4) };
    let setup = Setup { seed, threads: config.threads, agents: AGENTS, ..Setup::new(4) };
    let setup = if run_ahead { setup } else { setup.exact() };
    let mut rack = Rack::new(setup, Locks::new(config));
    let all = locks(&mut rack, 3, LEN);
    let report = busy(&mut rack, &all, 200, 30, seed);
    (report.time, report.counts.events, report.counts.bytes, report.longest)
}

#[test]
fn one_seed_gives_one_run() {
    for run_ahead in [false, true] {
        assert_eq!(run(9, run_ahead), run(9, run_ahead));
        assert_ne!(run(9, run_ahead), run(10, run_ahead), "another seed gives another run");
    }
}

#[test]
fn threads_that_run_ahead_take_as_long_as_in_exact_order() {
    let all = |run_ahead| (0..20).map(|seed| run(seed, run_ahead).0.0 as f64).sum::<f64>();
    let (exact, ahead) = (all(false), all(true));
    assert!((ahead / exact - 1.0).abs() < 0.05, "{ahead} {exact}");
}
