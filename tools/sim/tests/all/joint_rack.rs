//! Blocks and locks in one simulated rack: what passes between the two, with every property checked after every event.

use node::{Access, Window};
use sim::coherence::{self, Contents, FlowCc};
use sim::joint::{AGENTS, Joint, JointConfig};
use sim::locks::Costs;
use sim::rack::{Handle, Rack, RackReport, Setup, Until};
use sim::system::{Fault, Random, System, ThreadId, Want};
use wire::{AllRules, Discipline, GlobalAddr, Mode, Nanos, NodeId, Refusal, Rule, Rules, Without};

const BLOCK: u64 = 4096;
const LEN: u32 = 256;

fn blocks() -> coherence::FlowCcConfig {
    coherence::FlowCcConfig {
        threads: 2,
        cache: 16 * BLOCK,
        memory: 64 * BLOCK,
        contents: Contents::Bytes,
        switch_entries: 70,
        epoch: Nanos::from_micros(200),
        check: true,
        ..coherence::FlowCcConfig::new(3)
    }
}

fn setup(seed: u64) -> Setup {
    Setup { threads: 2, agents: AGENTS, seed, check: true, ..Setup::new(3).exact() }
}

fn rack<R: Rules>(rules: R, lock_copies: u64) -> Rack<Joint<R>> {
    let config = JointConfig { blocks: blocks(), lock_copies, lock_entries: 16, costs: Costs::LIBRARY };
    Rack::new(setup(1), Joint::with_rules(rules, config))
}

async fn alloc<S: System>(handle: &mut Handle<S>, home: u16, discipline: Discipline) -> GlobalAddr {
    handle.alloc(BLOCK, NodeId(home), discipline).await.unwrap().0
}

/// Adds 1 to random words of blocks that come and go.
fn without_locks<S: System + 'static>(mut rack: Rack<S>) -> RackReport {
    for thread in (0..6).map(ThreadId) {
        rack.spawn(thread, move |mut handle| async move {
            let mut random = Random::new(thread.0.into());
            for _ in 0..40 {
                let addr = alloc(&mut handle, random.below(3) as u16, Discipline::Coherent).await;
                for _ in 0..5 {
                    let at = addr + random.below(BLOCK / 8) * 8;
                    let add = &mut |window: &Window<'_>| window.set_word(0, window.word(0) + 1);
                    handle.touch(at, 8, Access::Modified, add).await.unwrap();
                }
                handle.free(addr).await.unwrap();
                let since = handle.now();
                handle.finished(since);
            }
        });
    }
    rack.run(Until::WorkersDone)
}

#[test]
fn an_application_without_locks_takes_as_long_as_on_a_rack_of_blocks_alone() {
    for seed in 1..=3 {
        let config =
            JointConfig { blocks: blocks(), lock_copies: 1 << 16, lock_entries: 16, costs: Costs::LIBRARY };
        let both = without_locks(Rack::new(setup(seed), Joint::new(config)));
        let alone = without_locks(Rack::new(setup(seed), FlowCc::new(blocks())));
        assert_eq!(format!("{both:?}"), format!("{alone:?}"), "seed {seed}");
    }
}

#[test]
fn a_region_is_locked_while_the_allocator_says_that_it_is_one() {
    let mut rack = rack(AllRules, 1 << 16);
    rack.run_one(ThreadId(0), |mut handle| async move {
        let block = alloc(&mut handle, 1, Discipline::Coherent).await;
        let region = alloc(&mut handle, 1, Discipline::Locked).await;
        let try_it = async |handle: &mut Handle<Joint>, at: GlobalAddr, len: u32| {
            handle.enter((at, len), Mode::Write, Want::Waits).await.map(drop)
        };
        assert_eq!(try_it(&mut handle, block, LEN).await, Err(Refusal::WrongDiscipline));
        assert_eq!(try_it(&mut handle, region + 8 * BLOCK, LEN).await, Err(Refusal::Unallocated));
        assert_eq!(try_it(&mut handle, region, LEN).await, Ok(()));
        let touched = handle.touch(region, 8, Access::Shared, &mut |_| {}).await;
        assert_eq!(touched, Err(Refusal::WrongDiscipline));
        let inside = handle.enter((region, LEN), Mode::Write, Want::Waits).await.unwrap();
        handle.free(region).await.unwrap();
        handle.end(inside, false).await.unwrap();
        assert_eq!(try_it(&mut handle, region, LEN).await, Err(Refusal::Unallocated));
    });
}

/// Node 1 has written under locks in the memory of node 0, and gives it back, but not the locks. The node whose
/// allocator had that memory begins a new incarnation, so that it becomes memory of blocks. Then node 1 has capacity for other copies only.
fn memory_changes_its_discipline<R: Rules>(rules: R) {
    const COPIES: usize = 6;
    let mut rack = rack(rules, COPIES as u64 * u64::from(LEN));
    let regions = rack.run_one(ThreadId(4), |mut handle| async move {
        let mut all = Vec::new();
        for _ in 0..COPIES {
            all.push(alloc(&mut handle, 0, Discipline::Locked).await);
        }
        all
    });
    let freed = regions.clone();
    rack.run_one(ThreadId(2), |mut handle| async move {
        for region in freed {
            let inside = handle.enter((region, LEN), Mode::Write, Want::Waits).await.unwrap();
            handle.show(&inside, (0, 8), &mut |window| window.set_word(0, 0xdead)).await;
            handle.leave(inside).await;
            handle.free(region).await.unwrap();
        }
    });
    let now = rack.now();
    rack.schedule(now, Fault::NodeStops(NodeId(2)));
    rack.schedule(now + Nanos::from_micros(50), Fault::NodeRestarts(NodeId(2)));
    let blocks = rack.run_one(ThreadId(0), move |mut handle| async move {
        handle.sleep_until(now + Nanos::from_micros(500)).await;
        let mut all = Vec::new();
        while let Ok((addr, zeroed)) = handle.alloc(BLOCK, NodeId(0), Discipline::Coherent).await {
            assert!(zeroed);
            all.push(addr);
        }
        all
    });
    assert!(!rack.with_system(Joint::is_recovering));
    assert!(regions.iter().all(|region| blocks.contains(region)), "the memory is that of blocks now");
    rack.run_one(ThreadId(2), |mut handle| async move {
        for _ in 0..COPIES {
            let other = alloc(&mut handle, 1, Discipline::Locked).await;
            let inside = handle.enter((other, LEN), Mode::Write, Want::Waits).await.unwrap();
            handle.leave(inside).await;
        }
        let until = handle.now() + Nanos::from_micros(500);
        handle.sleep_until(until).await;
    });
    rack.run_one(ThreadId(5), |mut handle| async move {
        for addr in blocks {
            let look =
                &mut |window: &Window<'_>| assert_eq!(window.word(0), 0, "{addr} is a block of zeroes");
            handle.touch(addr, 8, Access::Shared, look).await.unwrap();
        }
    });
}

#[test]
fn what_a_lock_has_carried_does_not_come_back_to_memory_of_blocks() {
    memory_changes_its_discipline(AllRules);
}

/// Homes do not hear that memory of locks was given back: what is so if [`node::RackNode`] does not pass it on.
#[derive(Clone, Copy, PartialEq, Debug)]
struct NobodyIsTold;

impl Rules for NobodyIsTold {
    fn holds(self, rule: Rule) -> bool {
        !matches!(rule, Rule::FreedMemoryIsNotWritten | Rule::FreedLocksEnd)
    }
}

#[test]
#[should_panic(expected = "with an old write")]
fn a_rack_whose_locks_do_not_hear_what_was_given_back_is_noticed() {
    memory_changes_its_discipline(NobodyIsTold);
}

/// Threads of all nodes add to the same region.
fn additions<R: Rules>(rules: R) -> u64 {
    let mut rack = rack(rules, 1 << 16);
    let region = rack
        .run_one(ThreadId(0), |mut handle| async move { alloc(&mut handle, 1, Discipline::Locked).await });
    for thread in (0..6).map(ThreadId) {
        rack.spawn(thread, move |mut handle| async move {
            for _ in 0..50 {
                let inside = handle.enter((region, LEN), Mode::Write, Want::Waits).await.unwrap();
                let mut last = 0;
                let at = (usize::from(thread.0) * 8, 8);
                handle.show(&inside, at, &mut |window| last = window.word(0)).await;
                handle.show(&inside, at, &mut |window| window.set_word(0, last + 1)).await;
                if thread.0 % 2 == 0 {
                    handle.leave(inside).await;
                }
            }
        });
    }
    rack.run(Until::WorkersDone);
    rack.run_one(ThreadId(3), move |mut handle| async move {
        let inside = handle.enter((region, LEN), Mode::Read, Want::Waits).await.unwrap();
        let mut sum = 0;
        let add = &mut |window: &Window<'_>| sum = (0..6).map(|word| window.word(word * 8)).sum();
        handle.show(&inside, (0, 48), add).await;
        sum
    })
}

#[test]
fn the_bytes_of_a_region_go_with_its_lock_however_it_is_left() {
    assert_eq!(additions(AllRules), 300);
}

#[test]
#[should_panic(expected = "what is being written is sent")]
fn a_holder_that_does_not_wait_for_its_threads_is_noticed() {
    additions(Without(Rule::HolderLeavesFirst));
}
