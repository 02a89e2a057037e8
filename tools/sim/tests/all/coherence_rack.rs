//! FlowCC on the simulated rack, end to end: words that nodes share, allocation and locks, in exact order, with
//! every property checked after every event.

use std::cell::RefCell;
use std::rc::Rc;

use node::{Access, Directory, Peeks};
use sim::coherence::{Contents, FlowCc, FlowCcConfig};
use sim::rack::{Ended, Handle, Rack, Setup, Until};
use sim::system::ThreadId;
use wire::{AllRules, Copyset, Discipline, GlobalAddr, GlobalStatus, NodeId, Refusal, Rule, Rules, Without};

fn rack(nodes: usize, directory: Directory, seed: u64) -> Rack<FlowCc> {
    rack_with(AllRules, nodes, directory, seed)
}

fn rack_with<R: Rules>(rules: R, nodes: usize, directory: Directory, seed: u64) -> Rack<FlowCc<R>> {
    rack_like(rules, config(nodes, directory), seed)
}

fn config(nodes: usize, directory: Directory) -> FlowCcConfig {
    FlowCcConfig {
        cache: 16 * 4096,
        memory: 1 << 20,
        contents: Contents::Bytes,
        switch_entries: 70,
        directory,
        check: true,
        ..FlowCcConfig::new(nodes)
    }
}

fn rack_like<R: Rules>(rules: R, config: FlowCcConfig, seed: u64) -> Rack<FlowCc<R>> {
    let setup = Setup { seed, check: true, ..Setup::new(config.nodes).exact() };
    Rack::new(setup, FlowCc::with_rules(rules, config))
}

async fn read<R: Rules>(handle: &mut Handle<FlowCc<R>>, addr: GlobalAddr) -> u64 {
    let mut value = 0;
    handle.touch(addr, 8, Access::Shared, &mut |window| value = window.word(0)).await.unwrap();
    value
}

async fn add<R: Rules>(handle: &mut Handle<FlowCc<R>>, addr: GlobalAddr, more: u64) -> u64 {
    let mut value = 0;
    let change = &mut |window: &node::Window<'_>| {
        value = window.word(0);
        window.set_word(0, value + more);
    };
    handle.touch(addr, 8, Access::Modified, change).await.unwrap();
    value
}

#[test]
fn a_word_that_all_threads_count_in_comes_out_right() {
    for directory in [Directory::Auto, Directory::Switch, Directory::Home] {
        let mut rack = rack(2, directory, 1);
        let addr = rack.run_one(ThreadId(0), |mut handle| async move {
            handle.alloc(8, NodeId(1), Discipline::Coherent).await.unwrap().0
        });
        for thread in (0..8).map(ThreadId) {
            rack.spawn(thread, |mut handle| async move {
                for _ in 0..50 {
                    add(&mut handle, addr, 1).await;
                }
            });
        }
        let report = rack.run(Until::WorkersDone);
        assert_eq!(report.ended, Ended::WorkersDone);
        assert_eq!(report.accesses(), 401);
        let sum = rack.run_one(ThreadId(3), |mut handle| async move { read(&mut handle, addr).await });
        assert_eq!(sum, 400, "{directory:?}");
    }
}

#[test]
fn words_are_read_where_their_block_is_and_it_stays_there() {
    for directory in [Directory::Switch, Directory::Home] {
        let config = FlowCcConfig { peeks: Peeks::ALWAYS, ..config(2, directory) };
        let mut rack = rack_like(AllRules, config, 1);
        let addr = rack.run_one(ThreadId(0), |mut handle| async move {
            let addr = handle.alloc(8, NodeId(1), Discipline::Coherent).await.unwrap().0;
            add(&mut handle, addr, 1).await;
            addr
        });
        rack.spawn(ThreadId(0), |mut handle| async move {
            for _ in 0..200 {
                add(&mut handle, addr, 1).await;
            }
        });
        for thread in [4, 5, 6].map(ThreadId) {
            rack.spawn(thread, move |mut handle| async move {
                let mut last = 0;
                for _ in 0..10 {
                    let now = read(&mut handle, addr).await;
                    assert!(now >= last, "{now} was read after {last}");
                    last = now;
                }
                assert!(last > 1, "others write meanwhile");
            });
        }
        assert_eq!(rack.run(Until::WorkersDone).ended, Ended::WorkersDone);
        let counters = rack.with_system(|system| system.counters());
        assert_eq!((counters.peeked, counters.provided, counters.invalidations), (30, 0, 0), "{directory:?}");
        let last = rack.run_one(ThreadId(7), |mut handle| async move { read(&mut handle, addr).await });
        assert_eq!(last, 201);
    }
}

#[test]
fn a_freed_block_is_refused_everywhere() {
    let mut rack = rack(3, Directory::Auto, 1);
    let addr = rack.run_one(ThreadId(0), |mut handle| async move {
        let (addr, zeroed) = handle.alloc(4096, NodeId(1), Discipline::Coherent).await.unwrap();
        assert!(zeroed);
        add(&mut handle, addr, 7).await;
        addr
    });
    rack.run_one(ThreadId(9), |mut handle| async move {
        assert_eq!(read(&mut handle, addr).await, 7);
        handle.free(addr).await.unwrap();
        let refused = handle.touch(addr, 8, Access::Shared, &mut |_| {}).await;
        assert_eq!(refused, Err(Refusal::Unallocated));
    });
}

#[test]
fn a_block_lock_excludes_other_nodes_until_it_is_released() {
    let mut rack = rack(2, Directory::Auto, 1);
    let addr = rack.run_one(ThreadId(0), |mut handle| async move {
        handle.alloc(8, NodeId(0), Discipline::Coherent).await.unwrap().0
    });
    let held = Rc::new(RefCell::new(Vec::new()));
    for thread in [0, 1, 4, 5].map(ThreadId) {
        let held = Rc::clone(&held);
        rack.spawn(thread, move |mut handle| async move {
            for _ in 0..10 {
                let token = handle.lock(addr, true, false).await.unwrap();
                let since = handle.now();
                handle.compute(wire::Nanos(500));
                handle.unlock(token).await.unwrap();
                held.borrow_mut().push((since, handle.now()));
            }
        });
    }
    assert_eq!(rack.run(Until::WorkersDone).ended, Ended::WorkersDone);
    let mut held = held.take();
    held.sort_unstable();
    assert_eq!(held.len(), 40);
    assert!(held.windows(2).all(|pair| pair[0].0 + wire::Nanos(500) <= pair[1].0), "{held:?}");
}

#[test]
fn a_node_with_slots_for_locks_holds_as_many_and_others_get_none_of_them() {
    const LOCKS: u64 = 128;
    for directory in [Directory::Auto, Directory::Switch, Directory::Home] {
        let config = FlowCcConfig { lock_slots: LOCKS as usize, ..config(2, directory) };
        let mut rack = rack_like(AllRules, config, 1);
        let first = rack.run_one(ThreadId(0), |mut handle| async move {
            let (first, _) = handle.alloc(LOCKS * 4096, NodeId(1), Discipline::Coherent).await.unwrap();
            for block in 0..LOCKS {
                handle.lock(first + block * 4096, block % 2 == 0, true).await.unwrap();
            }
            // What holds locks still has slots for misses.
            add(&mut handle, first, 1).await;
            first
        });
        let tokens = rack.run_one(ThreadId(4), |mut handle| async move {
            let mut tokens = Vec::new();
            for block in 0..LOCKS {
                let addr = first + block * 4096;
                assert_eq!(
                    handle.lock(addr, true, true).await,
                    Err(Refusal::Locked),
                    "{directory:?}: {block}"
                );
                if block % 2 == 1 {
                    tokens.push(handle.lock(addr, false, true).await.unwrap());
                }
            }
            tokens
        });
        assert_eq!(tokens.len() as u64, LOCKS / 2, "readers share");
        rack.run_one(ThreadId(5), |mut handle| async move {
            for token in tokens {
                handle.unlock(token).await.unwrap();
            }
            add(&mut handle, first, 1).await;
        });
    }
}

/// Two nodes take turns at a block, in a protocol without one of its rules.
fn take_turns<R: Rules>(rules: R) {
    let mut rack = rack_with(rules, 2, Directory::Home, 1);
    let addr = rack.run_one(ThreadId(0), |mut handle| async move {
        handle.alloc(8, NodeId(1), Discipline::Coherent).await.unwrap().0
    });
    for thread in [0, 4].map(ThreadId) {
        rack.spawn(thread, move |mut handle| async move {
            for _ in 0..10 {
                read(&mut handle, addr).await;
                add(&mut handle, addr, 1).await;
                // Long enough for the other node to get its turn.
                handle.compute(wire::Nanos::from_micros(20));
            }
        });
    }
    rack.run(Until::WorkersDone);
}

#[test]
fn the_faithful_protocol_passes_the_checks_that_mutants_fail() {
    take_turns(AllRules);
}

#[test]
#[should_panic(expected = "may be written, and has 2 copies")]
fn two_writers_are_found() {
    take_turns(Without(Rule::AgentInvalidates));
}

#[test]
#[should_panic(expected = "may be written, and has 2 copies")]
fn a_writer_beside_a_reader_is_found() {
    take_turns(Without(Rule::AgentDowngrades));
}

#[test]
fn what_was_installed_and_reported_is_a_state_of_the_protocol() {
    for directory in [Directory::Auto, Directory::Switch, Directory::Home] {
        let mut rack = rack(3, directory, 1);
        let parts: Vec<GlobalAddr> = rack.with_system_mut(|system| {
            let mut preload = system.preload(1);
            let alloc = |home| {
                let home = NodeId(home);
                preload.alloc(home, 32 * 4096, home, Discipline::Coherent).expect("there is room")
            };
            let parts: Vec<_> = (0..3).map(alloc).collect();
            // 32 copies on each node, for which there are 16 frames.
            for block in 0..32 {
                preload.install(NodeId(0), parts[1] + block * 4096, Access::Modified);
                preload.install(NodeId(1), parts[2] + block * 4096, Access::Shared);
                preload.install(NodeId(2), parts[2] + block * 4096, Access::Shared);
            }
            // Panics if a property does not hold.
            preload.report();
            (0..32).for_each(|block| preload.to_switch(parts[2] + block * 4096));
            parts
        });
        for thread in (0..12).map(ThreadId) {
            let parts = parts.clone();
            rack.spawn(thread, move |mut handle| async move {
                for block in 0..32 {
                    add(&mut handle, parts[1] + block * 4096, 1).await;
                    read(&mut handle, parts[2] + block * 4096).await;
                }
            });
        }
        assert_eq!(rack.run(Until::WorkersDone).ended, Ended::WorkersDone);
        let sum = rack.run_one(ThreadId(0), move |mut handle| async move {
            let mut sum = 0;
            for block in 0..32 {
                sum += read(&mut handle, parts[1] + block * 4096).await;
            }
            sum
        });
        assert_eq!(sum, 12 * 32, "{directory:?}");
    }
}

#[test]
fn an_installed_block_is_hit_and_its_entry_names_its_holder() {
    let mut rack = rack(2, Directory::Home, 1);
    let addr = rack.with_system_mut(|system| {
        let mut preload = system.preload(1);
        let addr = preload.alloc(NodeId(1), 4096, NodeId(1), Discipline::Coherent).expect("there is room");
        preload.install(NodeId(0), addr, Access::Modified);
        preload.report();
        addr
    });
    let entry = rack.with_system(|system| {
        let node = system.node(NodeId(1));
        node.directory().get(node.config().block.tag(addr))
    });
    assert_eq!((entry.status, entry.copyset), (GlobalStatus::Modified, Copyset::only(NodeId(0))));
    let hits = |rack: &Rack<FlowCc>| rack.with_system(FlowCc::hits);
    let before = hits(&rack);
    rack.run_one(ThreadId(0), move |mut handle| async move { add(&mut handle, addr, 1).await });
    assert_eq!(hits(&rack), before + 1);
}
