//! What cannot be is refused alike on an embedded rack and on the simulated one, and what is dropped is released.

use rackmem::{Discipline, Error, GlobalAddr, LockMemory, LockMode, NodeId, Rack, block_on};
use simulated::SimulatedRack;

use super::config;

/// One worker's way through everything that a lock may be refused for.
async fn refusals<M: LockMemory>(mut mem: M, memory: u64) {
    let region = mem.alloc(64, NodeId(1), Discipline::Locked).await.unwrap();
    let block = mem.alloc(64, NodeId(1), Discipline::Coherent).await.unwrap();
    let refused = async |mem: &mut M, at: GlobalAddr, len: usize| {
        mem.lock(at, len, LockMode::Write).await.err().expect("that cannot be locked")
    };
    let needs = Discipline::Locked;
    assert_eq!(refused(&mut mem, block, 64).await, Error::WrongDiscipline { addr: block, needs });
    let odd = region + 4;
    assert_eq!(refused(&mut mem, odd, 8).await, Error::Unaligned { addr: odd });
    let nowhere = GlobalAddr::new(NodeId(9), 0);
    assert_eq!(refused(&mut mem, nowhere, 8).await, Error::NoSuchNode { addr: nowhere, nodes: 3 });
    let last = GlobalAddr::new(NodeId(0), memory - 8);
    assert_eq!(refused(&mut mem, last, 16).await, Error::OutOfRange { addr: last, len: 16 });
    let long = refused(&mut mem, region, 1 << 24).await;
    assert!(matches!(long, Error::RegionTooLong { len: 16_777_216, .. }), "{long:?}");

    let mut held = mem.lock_anew(region, 64).await.unwrap();
    assert_eq!(refused(&mut mem, region, 32).await, Error::WrongLength { addr: region, len: 32 });
    mem.write_locked(&mut held, 60, b"last").await;
    assert!(mem.try_lock(region, 64, LockMode::Read).await.unwrap().is_none(), "it is held");
    drop(held);
    let (one, other) = (
        mem.try_lock(region, 64, LockMode::Read).await.unwrap().expect("what was dropped is released"),
        mem.lock(region, 64, LockMode::Read).await.unwrap(),
    );
    let mut bytes = [0; 4];
    mem.read_locked(&one, 60, &mut bytes).await;
    assert_eq!(&bytes, b"last");
    mem.unlock(other).await;
    mem.unlock(one).await;
    mem.free_locked(region, 64).await.unwrap();
    assert_eq!(refused(&mut mem, region, 64).await, Error::Unallocated { addr: region });
    assert_eq!(mem.free(region).await, Err(Error::NotAnAllocation { addr: region }));
}

#[test]
fn locks_are_refused_alike_on_both_racks() {
    let config = config(1);
    let memory = config.memory;
    let live = rackmem::Config {
        nodes: config.nodes,
        memory,
        cache: config.cache,
        block_size: config.block_size,
        ..rackmem::Config::default()
    };
    block_on(refusals(Rack::embedded(live).unwrap().node(NodeId(0)), memory));
    SimulatedRack::new(config).unwrap().run_one(NodeId(0), 0, move |mem| refusals(mem, memory));
}

/// What must panic, on both racks.
async fn writes_as_a_reader<M: LockMemory>(mut mem: M) {
    let region = mem.alloc(64, NodeId(1), Discipline::Locked).await.unwrap();
    let mut held = mem.lock(region, 64, LockMode::Read).await.unwrap();
    mem.write_locked(&mut held, 0, b"no").await;
}

#[test]
#[should_panic(expected = "only a writer writes")]
fn a_reader_does_not_write_on_an_embedded_rack() {
    let rack = Rack::embedded(rackmem::Config { nodes: 2, ..rackmem::Config::default() }).unwrap();
    block_on(writes_as_a_reader(rack.node(NodeId(0))));
}

#[test]
#[should_panic(expected = "only a writer writes")]
fn a_reader_does_not_write_on_a_simulated_rack() {
    SimulatedRack::new(config(1)).unwrap().run_one(NodeId(0), 0, writes_as_a_reader);
}
