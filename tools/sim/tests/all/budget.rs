//! Where the time of operations goes: every nanosecond once, and without changing what happens.

use node::Access;
use sim::coherence::{self, FlowCc};
use sim::rack::{Blocks, Rack, RackReport, Setup, Until};
use sim::system::{Random, ThreadId};
use wire::{Discipline, GlobalAddr, Nanos, NodeId};

/// Two nodes of two threads on so many blocks, for a thousand operations.
fn run(setup: Setup, blocks: u64) -> RackReport {
    let config = coherence::FlowCcConfig {
        threads: 2,
        cache: 64 * 4096,
        memory: 4 << 20,
        ..coherence::FlowCcConfig::new(2)
    };
    let mut rack = Rack::new(Setup { threads: 2, ..setup }, FlowCc::new(config));
    let base: GlobalAddr = rack.with_system_mut(|system| {
        system.preload(1).alloc(NodeId(0), blocks * 4096, NodeId(1), Discipline::Coherent).unwrap()
    });
    for thread in (0..4).map(ThreadId) {
        rack.spawn(thread, move |mut handle| async move {
            let mut random = Random::new(thread.0.into());
            loop {
                let since = handle.now();
                let access = if random.below(2) == 0 { Access::Modified } else { Access::Shared };
                handle.touch(base + random.below(blocks) * 4096, 8, access, &mut |_| {}).await.unwrap();
                handle.finished(since);
            }
        });
    }
    rack.run(Until::Operations(1000))
}

fn noted() -> Setup {
    Setup { budget: true, ..Setup::new(2) }
}

#[test]
fn the_parts_of_a_budget_are_its_total() {
    let budget = run(noted(), 50).budget.unwrap();
    let parts = [budget.access, budget.handling, budget.busy, budget.way, budget.transfer, budget.queues];
    let known: u64 = parts.iter().map(|part| part.0).sum();
    assert_eq!(Nanos(known) + budget.waiting(), budget.total, "{budget:?}");
    assert!(parts.iter().all(|part| *part > Nanos::ZERO), "{budget:?}");
    assert_eq!((budget.operations, budget.access), (1000, Nanos(240 * 1000)), "{budget:?}");
}

#[test]
fn noting_it_changes_nothing_that_happens() {
    let (with, without) = (run(noted(), 50), run(Setup::new(2), 50));
    assert_eq!(without.budget, None);
    assert_eq!(
        (with.time, with.counts.events, with.accesses),
        (without.time, without.counts.events, without.accesses)
    );
}

#[test]
fn conflict_is_waiting_and_hits_are_access_alone() {
    let one_block = run(noted(), 1).budget.unwrap();
    assert!(one_block.waiting().0 * 4 > one_block.total.0, "{one_block:?}");
    let mut alone = Setup { nodes: 2, ..noted() };
    alone.seed = 3;
    let many = run(alone, 50).budget.unwrap();
    assert!(many.waiting().0 * 4 < many.total.0, "{many:?}");
}

#[test]
fn estimates_take_the_bytes_of_blocks_off_the_way_and_nothing_else() {
    let [whole, first, none] = [Blocks::Whole, Blocks::PartFirst(128), Blocks::Part(128)]
        .map(|blocks| run(Setup { blocks, ..noted() }, 50).budget.unwrap());
    assert!(whole.transfer > Nanos::ZERO);
    assert_eq!((first.transfer, none.transfer), (Nanos::ZERO, Nanos::ZERO));
    assert!(first.queues > none.queues, "blocks that follow are in the way: {first:?} {none:?}");
}

#[test]
fn an_operation_that_is_not_over_counts_with_the_time_that_it_has_taken() {
    let mut rack = Rack::new(Setup::new(2), FlowCc::new(coherence::FlowCcConfig::new(2)));
    for thread in [0, 4].map(ThreadId) {
        rack.spawn(thread, move |mut handle| async move {
            if thread.0 == 4 {
                handle.sleep_until(Nanos::MAX).await;
            }
            loop {
                let since = handle.now();
                handle.compute(Nanos(100));
                handle.finished(since);
                handle.sleep_until(handle.now() + Nanos(1)).await;
            }
        });
    }
    let report = rack.run(Until::Time(Nanos::from_millis(1)));
    assert!(report.counts.latency.longest() < Nanos(1000));
    assert!(report.longest > Nanos(900_000), "{}", report.longest);
}
