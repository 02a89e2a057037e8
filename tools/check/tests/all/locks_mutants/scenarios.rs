//! Runs of one handler that random runs cannot tell from right ones.

use check::locks::PlainLocks;
use node::locks::LockNodeConfig;
use node::{DataRef, LockEffect, LockMessage, LockNode, Moment, Ticket, View};
use wire::{
    GlobalAddr, Incarnation, LockEnd, LockKind, LockPacket, Mode, Nanos, NodeId, Rules, Status, SwitchEpoch,
    Term,
};

/// A node holds the lock, and nobody waits; then it hears of somebody who was sent to its queue in an earlier term of it. The directory
/// would deny the MOVE to him, so that nothing is wrong in the end; but a lock stays where nobody else asks for it.
pub(crate) fn a_forward_of_an_earlier_term_comes<R: Rules>(rules: R) -> Result<(), String> {
    const ME: NodeId = NodeId(1);
    let lock = GlobalAddr::new(NodeId(0), 4096);
    let mut node = LockNode::with_rules(rules, LockNodeConfig::new(ME, 3));
    let mut store = PlainLocks::new(1);
    let (at, mut out) = (Moment { now: Nanos(1), random: 1 }, Vec::new());
    node.on_lock(at, (Ticket(1), Mode::Write, false), (lock, 8), &mut store, &mut out);
    let packet = |kind, node: u16, term| LockPacket {
        mode: Mode::Write,
        term: Term(term),
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

/// A lock was freed, and its memory is allocated anew for a longer one; then a request of the former lock's comes late.
pub(crate) fn a_request_comes_after_the_lock_has_ended<R: Rules>(rules: R) -> Result<(), String> {
    const HOME: NodeId = NodeId(0);
    let lock = GlobalAddr::new(HOME, 4096);
    let config = LockNodeConfig { in_switch: false, ..LockNodeConfig::new(HOME, 3) };
    let mut home = LockNode::with_rules(rules, config);
    let mut store = PlainLocks::new(1);
    let at = Moment { now: Nanos(1), random: 1 };
    let mut gets = |packet: LockPacket| {
        let mut out = Vec::new();
        home.on_packet(at, &LockMessage { packet, data: None }, &mut store, &mut out);
        let sent = out.into_iter().filter_map(|effect| match effect {
            LockEffect::Send(message) => Some(message.packet),
            _ => None,
        });
        sent.collect::<Vec<LockPacket>>()
    };
    let packet = |kind, len, node, number, term| LockPacket {
        mode: Mode::Write,
        number,
        term: Term(term),
        from: LockEnd::Agent(NodeId(node)),
        to: LockEnd::Home(HOME),
        ..LockPacket::new(kind, lock, len, NodeId(node))
    };
    let [lend] = gets(packet(LockKind::Acquire, 8, 1, 1, 0))[..] else { panic!("the first lock is lent") };
    gets(packet(LockKind::Lend, 8, 1, 1, lend.term.0));
    gets(packet(LockKind::Free, 8, 1, 2, lend.term.0));
    // The late one, and then one that knows of the end.
    let told = gets(packet(LockKind::Acquire, 8, 2, 7, 0));
    let ended = told.first().map_or(0, |packet| packet.term.0);
    let answers = gets(packet(LockKind::Acquire, 32, 1, 3, ended));
    match answers.iter().find(|answer| matches!(answer.status, Status::Refused(_))) {
        None => Ok(()),
        Some(refused) => Err(format!("the region's own length is refused: {refused:?}")),
    }
}

/// A node holds the lock, and nobody is inside, when an epoch begins. A thread that was let in before the home has answered what was reported
/// may give the memory back, and be told that he could not: the next one would be in a lock that is no more, and another node in that
/// which is there by now. So nobody is let in: not before the home has answered, nor if another epoch begins before it has.
pub(crate) fn threads_come_before_the_home_has_said_that_the_lock_is_one<R: Rules>(
    rules: R,
) -> Result<(), String> {
    const ME: NodeId = NodeId(1);
    const HOME: NodeId = NodeId(0);
    let lock = GlobalAddr::new(HOME, 4096);
    let mut node = LockNode::with_rules(rules, LockNodeConfig::new(ME, 2));
    let mut store = PlainLocks::new(1);
    let (at, mut out) = (Moment { now: Nanos(1), random: 1 }, Vec::new());
    node.on_lock(at, (Ticket(1), Mode::Write, false), (lock, 8), &mut store, &mut out);
    let packet = |kind| LockPacket {
        mode: Mode::Write,
        term: Term(5),
        from: LockEnd::Home(HOME),
        to: LockEnd::Agent(ME),
        ..LockPacket::new(kind, lock, 8, ME)
    };
    let lent = LockPacket { payload: 8, ..packet(LockKind::Lent) };
    node.on_packet(at, &LockMessage { packet: lent, data: Some(DataRef(1)) }, &mut store, &mut out);
    assert!(out.contains(&LockEffect::Entered(Ticket(1))), "{out:?}");
    if store.leave(lock, Mode::Write, Some(2)) {
        node.on_left(at, lock, &mut store, &mut out);
    }
    for epoch in [1, 2] {
        let view = View {
            epoch: SwitchEpoch(epoch),
            incarnations: vec![Some(Incarnation(0)); 2],
            shadow: HOME,
            memories: Vec::new(),
        };
        node.on_new_epoch(at, &view, &mut store, &mut out);
        if store.enter(lock, Mode::Write) {
            return Err(format!("the gate is open in epoch {epoch}"));
        }
        let ticket = Ticket(10 + epoch);
        node.on_lock(at, (ticket, Mode::Write, false), (lock, 8), &mut store, &mut out);
        if out.contains(&LockEffect::Entered(ticket)) {
            return Err(format!("a thread is let in in epoch {epoch}"));
        }
    }
    let status = Status::Granted;
    let stays = LockPacket { status, epoch: SwitchEpoch(2), ..packet(LockKind::Reported) };
    node.on_packet(at, &LockMessage { packet: stays, data: None }, &mut store, &mut out);
    assert!(out.contains(&LockEffect::Entered(Ticket(11))), "the lock is still one: {out:?}");
    Ok(())
}
