//! Words on a simulated rack: whatever threads read and write, in exact order, is linearizable; and the errors are
//! those of an embedded rack.

use std::cell::RefCell;
use std::rc::Rc;

use check::history::{Op, Operation};
use check::linearizability::{Limits, Verdict, check_history};
use rackmem::{BlockSize, ConfigError, Directory, Discipline, Error, GlobalAddr, Memory, Nanos, NodeId};
use random::Random;
use simulated::{Ended, Fault, SimulatedConfig, SimulatedRack, Until};

type History = Rc<RefCell<Vec<Operation<u64>>>>;

async fn client<M: Memory>(mut mem: M, client: u64, seed: u64, base: GlobalAddr, history: History) {
    let mut dice = Random::new(seed * 100 + client);
    // Two words on each of 12 blocks: more than a cache holds.
    for round in 0..150 {
        let word = if dice.below(2) == 0 { dice.below(2) } else { dice.below(24) };
        let addr = base + (word / 2) * 4096 + (word % 2) * 512;
        let value = 1 + client * 1_000_000 + round;
        let invoke = mem.now();
        let op = match dice.below(3) {
            0 => {
                mem.write_word(addr, value).await.unwrap();
                Op::Insert { value }
            }
            1 => {
                let swap = |window: &rackmem::Window<'_>| {
                    let old = window.word(0);
                    window.set_word(0, value);
                    old
                };
                Op::Rmw { value: Some(mem.update(addr, 8, swap).await.unwrap()), new: value }
            }
            _ => Op::Read { value: Some(mem.read_word(addr).await.unwrap()) },
        };
        let ret = Some(mem.now());
        history.borrow_mut().push(Operation { client, key: addr.bits(), op, invoke, ret });
    }
}

fn history(directory: Directory, seed: u64) -> Vec<Operation<u64>> {
    let config = SimulatedConfig {
        nodes: 4,
        threads: 2,
        cache: 8 * 4096,
        memory: 1 << 20,
        switch_entries: 70,
        epoch: Nanos::from_micros(200),
        directory,
        seed,
        check: true,
        ..SimulatedConfig::default()
    };
    let mut rack = SimulatedRack::new(config).unwrap();
    let base = rack.run_one(NodeId(0), 0, |mut mem| async move {
        mem.alloc(12 * 4096, NodeId(1), Discipline::Coherent).await.unwrap()
    });
    let history = History::default();
    for (thread, number) in [0, 1].into_iter().flat_map(|thread| (0..4).map(move |node| (thread, node))) {
        let mine = Rc::clone(&history);
        let id = u64::from(number) * 2 + thread as u64;
        rack.spawn(NodeId(number), thread, move |mem| client(mem, id, seed, base, mine));
    }
    assert_eq!(rack.run(Until::WorkersDone).ended, Ended::WorkersDone);
    let mut history = history.take();
    // Words begin as zeroes.
    for word in 0..24 {
        let key = (base + (word / 2) * 4096 + (word % 2) * 512).bits();
        let (invoke, ret) = (Nanos(0), Some(Nanos(0)));
        history.push(Operation { client: 99, key, op: Op::Insert { value: 0 }, invoke, ret });
    }
    history
}

#[test]
fn words_are_linearizable_wherever_entries_are_kept() {
    for directory in [Directory::Auto, Directory::Switch, Directory::Home] {
        for seed in 1..=3 {
            let history = history(directory, seed);
            match check_history(&history, Limits::default()) {
                Verdict::Linearizable { operations, .. } => assert_eq!(operations, history.len()),
                verdict => panic!("{directory:?}, seed {seed}: {verdict:?}"),
            }
        }
    }
}

#[test]
fn a_history_of_a_run_out_of_exact_order_is_still_one_of_a_coherent_memory() {
    // Threads of one node may see each other's hits out of order by their clocks, nodes may not: with one thread a
    // node nothing is out of order.
    let config = SimulatedConfig {
        nodes: 4,
        threads: 1,
        cache: 8 * 4096,
        memory: 1 << 20,
        switch_entries: 70,
        run_ahead: Nanos::MAX,
        ..SimulatedConfig::default()
    };
    let mut rack = SimulatedRack::new(config).unwrap();
    let base = rack.run_one(NodeId(0), 0, |mut mem| async move {
        mem.alloc(12 * 4096, NodeId(1), Discipline::Coherent).await.unwrap()
    });
    let history = History::default();
    for number in 0..4 {
        let mine = Rc::clone(&history);
        rack.spawn(NodeId(number), 0, move |mem| client(mem, number.into(), 1, base, mine));
    }
    rack.run(Until::WorkersDone);
    let mut history = history.take();
    for word in 0..24 {
        let key = (base + (word / 2) * 4096 + (word % 2) * 512).bits();
        let (invoke, ret) = (Nanos(0), Some(Nanos(0)));
        history.push(Operation { client: 99, key, op: Op::Insert { value: 0 }, invoke, ret });
    }
    let verdict = check_history(&history, Limits::default());
    assert!(matches!(verdict, Verdict::Linearizable { .. }), "{verdict:?}");
}

#[test]
fn what_cannot_be_is_refused_as_on_an_embedded_rack() {
    let mut rack =
        SimulatedRack::new(SimulatedConfig { nodes: 2, memory: 1 << 20, ..SimulatedConfig::default() })
            .unwrap();
    rack.run_one(NodeId(0), 0, |mut mem| async move {
        let addr = mem.alloc(64, NodeId(1), Discipline::Coherent).await.unwrap();
        let block = BlockSize::DEFAULT;
        let nowhere = GlobalAddr::new(NodeId(7), 0);
        assert_eq!(mem.read_word(addr + 4).await, Err(Error::Unaligned { addr: addr + 4 }));
        assert_eq!(mem.read_word(nowhere).await, Err(Error::NoSuchNode { addr: nowhere, nodes: 2 }));
        let crosses = mem.inspect(addr, 4097, |_| ()).await;
        assert_eq!(crosses, Err(Error::CrossesBlocks { addr, len: 4097, block }));
        assert!(matches!(mem.alloc(0, NodeId(0), Discipline::Coherent).await, Err(Error::BadSize { .. })));
        assert!(matches!(
            mem.alloc(2 << 20, NodeId(0), Discipline::Coherent).await,
            Err(Error::BadSize { .. })
        ));
        mem.free(addr).await.unwrap();
        assert_eq!(mem.read_word(addr).await, Err(Error::Unallocated { addr }));
        assert_eq!(mem.free(addr).await, Err(Error::NotAnAllocation { addr }));
    });
    let impossible = SimulatedConfig { nodes: 65, ..SimulatedConfig::default() };
    assert!(matches!(SimulatedRack::new(impossible), Err(ConfigError::Nodes { asked: 65 })));
}

#[test]
fn what_died_with_a_node_is_reported_lost_and_never_served_stale() {
    let config = SimulatedConfig { nodes: 3, memory: 1 << 20, ..SimulatedConfig::default() };
    let mut rack = SimulatedRack::new(config).unwrap();
    let (theirs, dead) = rack.run_one(NodeId(0), 0, |mut mem| async move {
        let theirs = mem.alloc(8, NodeId(0), Discipline::Coherent).await.unwrap();
        mem.write_word(theirs, 1).await.unwrap();
        (theirs, mem.alloc(8, NodeId(2), Discipline::Coherent).await.unwrap())
    });
    rack.run_one(NodeId(2), 0, |mut mem| async move { mem.write_word(theirs, 2).await.unwrap() });
    rack.rack().schedule(Nanos::ZERO, Fault::NodeStops(NodeId(2)));
    rack.run_one(NodeId(1), 0, |mut mem| async move {
        assert_eq!(mem.read_word(theirs).await, Err(Error::Lost { addr: theirs }));
        assert_eq!(mem.read_word(dead).await, Err(Error::NodeDown { addr: dead }));
    });
}
