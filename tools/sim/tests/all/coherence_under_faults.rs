//! FlowCC on the simulated rack while things go wrong: packets are lost, duplicated and late; the switch, a node, the
//! shadow stop and come back. Every property holds after every event, and whatever does not fail completes.

use std::cell::RefCell;
use std::rc::Rc;

use node::{Access, Directory};
use sim::coherence::{self, Contents, FlowCc, SimMessage};
use sim::fault::{Rules, delay, drop_per_mille, duplicate_per_mille};
use sim::rack::{Ended, Handle, Rack, RackReport, Setup, Until};
use sim::system::{Fault, Random, ThreadId};
use wire::{Discipline, GlobalAddr, Nanos, NodeId, Refusal};

const NODES: u16 = 3;
const BLOCKS: u64 = 12;

fn rack(directory: Directory, seed: u64) -> Rack<FlowCc> {
    let config = coherence::FlowCcConfig {
        threads: 2,
        cache: 8 * 4096,
        memory: 1 << 20,
        contents: Contents::Bytes,
        switch_entries: 70,
        epoch: Nanos::from_micros(200),
        directory,
        check: true,
        ..coherence::FlowCcConfig::new(NODES.into())
    };
    let setup = Setup { threads: 2, seed, check: true, ..Setup::new(NODES.into()).exact() };
    Rack::new(setup, FlowCc::new(config))
}

/// Adds 1 to random words, and counts what was refused.
async fn work(mut handle: Handle<FlowCc>, base: GlobalAddr, count: u64, refused: Rc<RefCell<Vec<Refusal>>>) {
    let mut random = Random::new(u64::from(handle.thread().0));
    for _ in 0..count {
        let addr = base + random.below(BLOCKS) * 4096;
        let mut change = |window: &node::Window<'_>| window.set_word(0, window.word(0) + 1);
        match handle.touch(addr, 8, Access::Modified, &mut change).await {
            Ok(()) => handle.finished(Nanos::ZERO),
            Err(why) => refused.borrow_mut().push(why),
        }
    }
}

fn prepared(directory: Directory, seed: u64) -> (Rack<FlowCc>, GlobalAddr) {
    let mut rack = rack(directory, seed);
    let base = rack.run_one(ThreadId(2), |mut handle| async move {
        handle.alloc(BLOCKS * 4096, NodeId(1), Discipline::Coherent).await.unwrap().0
    });
    (rack, base)
}

fn spawn(rack: &mut Rack<FlowCc>, node: NodeId, base: GlobalAddr, refused: &Rc<RefCell<Vec<Refusal>>>) {
    for thread in rack.threads_of(node) {
        let refused = Rc::clone(refused);
        rack.spawn(thread, |handle| work(handle, base, 150, refused));
    }
}

/// The sum of all words, as one thread reads them.
fn sum(rack: &mut Rack<FlowCc>, base: GlobalAddr) -> u64 {
    rack.run_one(ThreadId(0), |mut handle| async move {
        let mut sum = 0;
        for block in 0..BLOCKS {
            let look = &mut |window: &node::Window<'_>| sum += window.word(0);
            handle.touch(base + block * 4096, 8, Access::Shared, look).await.unwrap();
        }
        sum
    })
}

/// All threads work under these rules; nothing may be refused, and nothing lost.
fn run_under(directory: Directory, seed: u64, rules: Rules<SimMessage>) -> RackReport {
    let (mut rack, base) = prepared(directory, seed);
    rack.set_rules(rules);
    let refused = Rc::default();
    (0..NODES).for_each(|node| spawn(&mut rack, NodeId(node), base, &refused));
    let report = rack.run(Until::Time(Nanos::from_millis(500)));
    assert_eq!(report.ended, Ended::WorkersDone, "{directory:?}, seed {seed}");
    assert_eq!(refused.take(), []);
    rack.set_rules(Rules::none());
    assert_eq!(sum(&mut rack, base), 900, "{directory:?}, seed {seed}");
    report
}

#[test]
fn every_operation_completes_once_whatever_is_lost() {
    for directory in [Directory::Auto, Directory::Switch, Directory::Home] {
        let report = run_under(directory, 1, Rules::none().with(drop_per_mille(50)));
        assert!(report.counts.lost > 50, "{report:?}");
    }
}

#[test]
fn every_operation_takes_effect_once_whatever_is_duplicated_or_late() {
    for directory in [Directory::Auto, Directory::Switch, Directory::Home] {
        let rules = Rules::none()
            .with(duplicate_per_mille(100, Nanos::from_micros(300)))
            .with(delay(Nanos::from_micros(20)));
        run_under(directory, 2, rules);
    }
}

#[test]
fn operations_go_on_after_a_switch_restarted_and_nothing_is_lost() {
    for directory in [Directory::Auto, Directory::Switch] {
        let (mut rack, base) = prepared(directory, 3);
        let refused = Rc::default();
        (0..NODES).for_each(|node| spawn(&mut rack, NodeId(node), base, &refused));
        let at = rack.now() + Nanos::from_micros(400);
        rack.schedule(at, Fault::SwitchStops);
        rack.schedule(at + Nanos::from_micros(100), Fault::SwitchRestarts);
        let report = rack.run(Until::Time(Nanos::from_millis(500)));
        assert_eq!(report.ended, Ended::WorkersDone, "{directory:?}");
        assert!(report.counts.lost > 0, "the switch stopped while there was traffic");
        assert_eq!(refused.take(), []);
        assert_eq!(sum(&mut rack, base), 900, "{directory:?}");
    }
}

#[test]
fn a_node_that_stops_takes_with_it_only_what_nobody_else_has() {
    for seed in 1..=5 {
        let (mut rack, base) = prepared(Directory::Auto, seed);
        let refused = Rc::default();
        (0..NODES).for_each(|node| spawn(&mut rack, NodeId(node), base, &refused));
        let at = rack.now() + Nanos::from_micros(300);
        rack.schedule(at, Fault::NodeStops(NodeId(2)));
        let report = rack.run(Until::Time(Nanos::from_millis(500)));
        assert_eq!(report.ended, Ended::WorkersDone, "seed {seed}: the threads of the others end");
        let refused = refused.take();
        assert!(refused.iter().all(|why| *why == Refusal::Lost), "{refused:?}");
        assert_eq!(report.operations[..4].iter().sum::<u64>() + refused.len() as u64, 600);
    }
}

#[test]
fn a_node_that_comes_back_works_again_with_empty_memory() {
    let (mut rack, base) = prepared(Directory::Auto, 1);
    let at = rack.now() + Nanos::from_micros(50);
    rack.schedule(at, Fault::NodeStops(NodeId(1)));
    rack.schedule(at + Nanos::from_micros(500), Fault::NodeRestarts(NodeId(1)));
    let refused = Rc::new(RefCell::new(Vec::new()));
    spawn(&mut rack, NodeId(0), base, &refused);
    assert_eq!(rack.run(Until::Time(Nanos::from_millis(500))).ended, Ended::WorkersDone);
    let refused = refused.take();
    assert!(refused.contains(&Refusal::NodeDown), "the home was down: {refused:?}");
    rack.run_one(ThreadId(2), |mut handle| async move {
        let (addr, zeroed) = handle.alloc(64, NodeId(1), Discipline::Coherent).await.unwrap();
        assert!(zeroed);
        handle.touch(addr, 8, Access::Modified, &mut |window| window.set_word(0, 5)).await.unwrap();
    });
}

#[test]
fn a_shadow_that_restarts_holds_nobody_up() {
    let (mut rack, base) = prepared(Directory::Auto, 4);
    let refused = Rc::default();
    (0..NODES).for_each(|node| spawn(&mut rack, NodeId(node), base, &refused));
    let at = rack.now() + Nanos::from_micros(200);
    rack.schedule(at, Fault::ShadowStops);
    rack.schedule(at + Nanos::from_micros(300), Fault::ShadowRestarts);
    assert_eq!(rack.run(Until::Time(Nanos::from_millis(500))).ended, Ended::WorkersDone);
    assert_eq!(refused.take(), []);
    assert_eq!(sum(&mut rack, base), 900);
}
