//! Runs of one handler that random runs cannot tell from right ones.

use check::locks::PlainLocks;
use node::locks::Config;
use node::{DataRef, LockEffect, LockMessage, LockNode, Moment, Ticket, View};
use wire::{
    GlobalAddr, Incarnation, LockEnd, LockKind, LockPacket, LockRules, Mode, Nanos, NodeId, SwitchEpoch,
    Tenure,
};

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

/// A writer is inside when an epoch begins; he leaves; another epoch begins before the home has answered what was reported. The home
/// may still know that he has given the memory back, whatever he was told: nobody is let in behind him.
pub(crate) fn an_epoch_begins_before_the_home_has_said_that_the_lock_is_one<R: LockRules>()
-> Result<(), String> {
    const ME: NodeId = NodeId(1);
    const HOME: NodeId = NodeId(0);
    let lock = GlobalAddr::new(HOME, 4096);
    let mut node = LockNode::<R>::with_rules(Config::new(ME, 2));
    let mut store = PlainLocks::new(1);
    let (at, mut out) = (Moment { now: Nanos(1), random: 1 }, Vec::new());
    for ticket in [Ticket(1), Ticket(2)] {
        node.on_lock(at, (ticket, Mode::Write, false), (lock, 8), &mut store, &mut out);
    }
    let lent = LockPacket {
        mode: Mode::Write,
        tenure: Tenure(5),
        payload: 8,
        from: LockEnd::Home(HOME),
        to: LockEnd::Agent(ME),
        ..LockPacket::new(LockKind::Lent, lock, 8, ME)
    };
    node.on_packet(at, &LockMessage { packet: lent, data: Some(DataRef(1)) }, &mut store, &mut out);
    assert!(out.contains(&LockEffect::Entered(Ticket(1))), "{out:?}");
    let begin = |node: &mut LockNode<R>, store: &mut PlainLocks, epoch, out: &mut Vec<LockEffect>| {
        let view = View { epoch: SwitchEpoch(epoch), lives: vec![Some(Incarnation(0)); 2], shadow: HOME };
        node.on_new_epoch(at, &view, store, out);
    };
    begin(&mut node, &mut store, 1, &mut out);
    if store.leave(lock, Mode::Write, Some(2)) {
        node.on_left(at, lock, &mut store, &mut out);
    }
    begin(&mut node, &mut store, 2, &mut out);
    match out.contains(&LockEffect::Entered(Ticket(2))) {
        false => Ok(()),
        true => Err("the next thread is let in".into()),
    }
}
