//! One seed gives one run, however far threads run ahead; another seed gives another one.

use std::cell::RefCell;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use node::{Access, Directory};
use sim::coherence::{self, FlowCc};
use sim::fault::{Rules, delay, drop_per_mille, duplicate_per_mille};
use sim::rack::{Rack, Setup, Until};
use sim::system::{Random, ThreadId};
use wire::{Discipline, GlobalAddr, Nanos, NodeId};

/// Everything that can be told apart of a run: when each thread did what, and what was counted.
fn digest(seed: u64, run_ahead: Nanos, faults: bool) -> u64 {
    let config = coherence::FlowCcConfig {
        cache: 64 * 4096,
        memory: 4 << 20,
        epoch: Nanos::from_micros(300),
        directory: Directory::Auto,
        ..coherence::FlowCcConfig::new(4)
    };
    let mut rack = Rack::new(Setup { seed, run_ahead, ..Setup::new(4) }, FlowCc::new(config));
    let base: GlobalAddr = rack.with_system_mut(|system| {
        system.preload(seed).alloc(NodeId(0), 100 * 4096, NodeId(2), Discipline::Coherent).unwrap()
    });
    if faults {
        rack.set_rules(
            Rules::none()
                .with(drop_per_mille(10))
                .with(duplicate_per_mille(10, Nanos::from_micros(5)))
                .with(delay(Nanos(300))),
        );
    }
    let log = Rc::new(RefCell::new(DefaultHasher::new()));
    for thread in (0..16).map(ThreadId) {
        let log = Rc::clone(&log);
        rack.spawn(thread, move |mut handle| async move {
            let mut random = Random::new(seed ^ u64::from(thread.0));
            for _ in 0..200 {
                let addr = base + random.below(100) * 4096;
                let access = if random.below(3) == 0 { Access::Modified } else { Access::Shared };
                handle.touch(addr, 8, access, &mut |_| {}).await.unwrap();
                (thread, handle.now()).hash(&mut *log.borrow_mut());
            }
        });
    }
    let report = rack.run(Until::WorkersDone);
    let log = &mut *log.borrow_mut();
    (report.time, report.accesses, report.counts.events, report.counts.bytes, report.counts.lost).hash(log);
    log.finish()
}

#[test]
fn a_seed_gives_one_run() {
    for run_ahead in [Nanos::ZERO, Nanos(200), Nanos::MAX] {
        for faults in [false, true] {
            assert_eq!(digest(1, run_ahead, faults), digest(1, run_ahead, faults), "{run_ahead}, {faults}");
        }
    }
}

#[test]
fn another_seed_gives_another_run() {
    assert_ne!(digest(1, Nanos::MAX, false), digest(2, Nanos::MAX, false));
    assert_ne!(digest(1, Nanos::MAX, true), digest(2, Nanos::MAX, true));
}
