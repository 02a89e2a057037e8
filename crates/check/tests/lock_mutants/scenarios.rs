//! Runs of one handler that random runs cannot tell from right ones.

use check::locks::PlainLocks;
use node::locks::Config;
use node::{DataRef, LockEffect, LockMessage, LockNode, Moment, Ticket};
use wire::{GlobalAddr, LockEnd, LockKind, LockPacket, LockRules, Mode, Nanos, NodeId, Tenure};

/// A node reigns, and nobody waits; then it hears of somebody who was sent to its queue in an earlier reign of it. The directory
/// would deny the MOVE to him, so that nothing is wrong in the end; but a lock stays where nobody else asks for it.
pub(crate) fn a_forward_of_an_earlier_tenure_comes<R: LockRules>() -> Result<(), String> {
    const ME: NodeId = NodeId(1);
    let lock = GlobalAddr::new(NodeId(0), 4096);
    let mut node = LockNode::<R>::with_rules(Config::new(ME, 3));
    let mut store = PlainLocks::new(1);
    let (at, mut out) = (Moment { now: Nanos(1), random: 1 }, Vec::new());
    node.on_lock(at, (Ticket(1), Mode::Write, false), (lock, 8), &mut store, &mut out);
    let packet = |kind, node: u16, tenure| LockPacket {
        mode: Mode::Write,
        tenure: Tenure(tenure),
        from: LockEnd::Switch,
        to: LockEnd::Agent(ME),
        ..LockPacket::new(kind, lock, 8, NodeId(node))
    };
    let lent = LockPacket { payload: 8, from: LockEnd::Home(NodeId(0)), ..packet(LockKind::Lent, 1, 5) };
    node.on_packet(at, &LockMessage { packet: lent, data: Some(DataRef(1)) }, &mut store, &mut out);
    assert!(out.contains(&LockEffect::Entered(Ticket(1))), "{out:?}");
    if store.leave(lock, Mode::Write, Some(2)) {
        node.on_left(at, lock, &mut store, &mut out);
    }
    out.clear();
    let forward = LockMessage { packet: packet(LockKind::Forward, 2, 3), data: None };
    node.on_packet(at, &forward, &mut store, &mut out);
    match out.as_slice() {
        [] => Ok(()),
        other => Err(format!("it is sent on: {other:?}")),
    }
}

/// Memory is given back by somebody who was not inside of its lock, which nobody in these runs does; then the lock comes home.
pub(crate) fn a_lock_comes_back_to_memory_that_was_given_back<R: LockRules>() -> Result<(), String> {
    const ME: NodeId = NodeId(0);
    let lock = GlobalAddr::new(ME, 4096);
    let mut home = LockNode::<R>::with_rules(Config { in_switch: false, ..Config::new(ME, 3) });
    let mut store = PlainLocks::new(1);
    let (at, mut out) = (Moment { now: Nanos(1), random: 1 }, Vec::new());
    let packet = |kind, tenure| LockPacket {
        mode: Mode::Write,
        tenure: Tenure(tenure),
        from: LockEnd::Agent(NodeId(1)),
        to: LockEnd::Home(ME),
        ..LockPacket::new(kind, lock, 8, NodeId(1))
    };
    let acquire = LockMessage { packet: packet(LockKind::Acquire, 0), data: None };
    home.on_packet(at, &acquire, &mut store, &mut out);
    home.on_blocks_ended(lock, 64);
    let back = LockPacket { payload: 8, ..packet(LockKind::WriteBack, 2) };
    home.on_packet(at, &LockMessage { packet: back, data: Some(DataRef(7)) }, &mut store, &mut out);
    match store.home.get(&lock) {
        None => Ok(()),
        Some(wrote) => Err(format!("the lock's data are written to the memory: {wrote}")),
    }
}
