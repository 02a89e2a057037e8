//! What handlers must survive although no honest sender would say it: it is handled, or dropped and counted.

use check::rack::Random;
use node::locks::LockDrop;
use node::{DataRef, LockMessage};
use wire::{
    Copyset, GlobalAddr, LockEnd, LockKind, LockPacket, Mode, NodeId, Refusal, Status, SwitchEpoch, Term,
    WaitList,
};

use crate::locks::rig::{EPOCH, LEN, ME, NODES, Rig, bare, mine, theirs, to_agent, to_home, with};

#[test]
fn nodes_that_the_rack_does_not_have_are_nonsense() {
    let beyond = NodeId(NODES as u16);
    let lent = to_agent(LockKind::Lent, theirs(), ME.0, 1);
    let mut list = WaitList::EMPTY;
    list.push(beyond, Mode::Read);
    for packet in [
        LockPacket { node: beyond, ..lent },
        LockPacket { next: Some(beyond), ..lent },
        LockPacket { nodes: Copyset::only(beyond), ..lent },
        LockPacket { waiting: Copyset::only(beyond), ..lent },
        LockPacket { writers: Copyset::only(beyond), ..lent },
        LockPacket { queue: list, ..lent },
        LockPacket { from: LockEnd::Agent(beyond), ..lent },
        LockPacket { lock: GlobalAddr::new(beyond, 0), ..lent },
    ] {
        Rig::new().drops(LockDrop::Nonsense, with(1, packet));
    }
}

#[test]
fn packets_for_others_are_nonsense() {
    let lent = to_agent(LockKind::Lent, theirs(), ME.0, 1);
    for to in [LockEnd::Switch, LockEnd::Agent(NodeId(2)), LockEnd::Home(NodeId(2))] {
        Rig::new().drops(LockDrop::Nonsense, with(1, LockPacket { to, ..lent }));
    }
    let elsewhere = LockPacket { lock: theirs(), ..to_home(LockKind::Acquire, 0, 0) };
    Rig::new().drops(LockDrop::Nonsense, bare(elsewhere));
}

#[test]
fn a_payload_that_is_not_the_region_is_nonsense() {
    let lent = to_agent(LockKind::Lent, theirs(), ME.0, 1);
    let part = LockMessage { packet: LockPacket { payload: LEN / 2, ..lent }, data: Some(DataRef(1)) };
    let none = LockMessage { packet: LockPacket { payload: LEN, ..lent }, data: None };
    let unannounced = LockMessage { packet: lent, data: Some(DataRef(1)) };
    for message in [part, none, unannounced] {
        Rig::new().drops(LockDrop::Nonsense, message);
    }
}

#[test]
fn what_is_for_the_other_machine_of_the_node_is_nonsense() {
    for kind in [LockKind::Acquire, LockKind::Move, LockKind::Serve, LockKind::Lend, LockKind::Install] {
        Rig::new().drops(LockDrop::Nonsense, bare(to_agent(kind, theirs(), 0, 1)));
    }
    for kind in [LockKind::Granted, LockKind::Hand, LockKind::Freed, LockKind::Forward] {
        Rig::new().drops(LockDrop::Nonsense, bare(to_home(kind, 0, 1)));
    }
}

#[test]
fn data_for_a_lock_that_the_home_does_not_know_are_nonsense() {
    Rig::new().drops(LockDrop::Nonsense, with(1, to_home(LockKind::WriteBack, 0, 1)));
    Rig::new().drops(LockDrop::Nonsense, bare(to_home(LockKind::Serve, 0, 1)));
    Rig::new().drops(LockDrop::Nonsense, bare(to_home(LockKind::Lend, 0, 1)));
    Rig::lending().drops(LockDrop::Nonsense, bare(to_home(LockKind::WriteBack, 0, 2)));
}

#[test]
fn a_lock_that_this_node_has_is_not_taken_from_elsewhere() {
    for kind in [LockKind::Lent, LockKind::Hand] {
        let mut rig = Rig::holding(theirs(), 5);
        assert!(rig.store.enter(theirs(), Mode::Write));
        let _ = rig.gets(with(1, to_agent(kind, theirs(), 3, 9)));
        assert_eq!(rig.node.counters().dropped(LockDrop::Nonsense), 1);
        assert_eq!(rig.store.frames[&theirs()].value, 11);
    }
}

#[test]
fn a_copy_that_is_reported_without_its_data_is_a_loss() {
    let mut rig = Rig::lending();
    let own = rig.epoch(4, &[], &[]);
    let report = LockPacket { has_copy: true, ..to_home(LockKind::Report, 0, 2) };
    let _ = rig.gets(bare(LockPacket { epoch: SwitchEpoch(4), ..report }));
    let _ = rig.gets(bare(LockPacket { epoch: SwitchEpoch(4), ..to_home(LockKind::LastReport, 0, 1) }));
    let _ = rig.hears_reports(&own, 4, &[2, 3]);
    assert!(rig.node.has_lost(mine()));
    assert_eq!(rig.node.counters().lost, 1);
}

/// Any packet at all, about one of two locks.
fn anything(random: &mut Random) -> LockMessage {
    let mut pick = |below: usize| random.below(below) as u64;
    let kind = LockKind::ALL[pick(LockKind::ALL.len()) as usize];
    let lock = if pick(2) == 0 { mine() } else { theirs() };
    let len = if pick(8) == 0 { 0 } else { LEN };
    let end = |which: u64, node: u64| match which {
        0 => LockEnd::Switch,
        1 => LockEnd::Agent(NodeId(node as u16)),
        _ => LockEnd::Home(NodeId(node as u16)),
    };
    let mut queue = WaitList::EMPTY;
    for node in 0..NODES as u16 {
        if pick(4) == 0 {
            queue.push(NodeId(node), if pick(2) == 0 { Mode::Read } else { Mode::Write });
        }
    }
    let status = match pick(3) {
        0 => Status::Granted,
        1 => Status::Refused(Refusal::Lost),
        _ => Status::Refused(Refusal::Unallocated),
    };
    let payload = if pick(2) == 0 { len } else { 0 };
    let packet = LockPacket {
        mode: if pick(2) == 0 { Mode::Read } else { Mode::Write },
        once: pick(2) == 0,
        has_copy: pick(2) == 0,
        status,
        term: Term(pick(8)),
        nodes: Copyset::from_bits(pick(16)),
        waiting: Copyset::from_bits(pick(16)),
        writers: Copyset::from_bits(pick(16)),
        next: [None, Some(NodeId(pick(NODES) as u16))][pick(2) as usize],
        queue,
        from: end(pick(3), pick(NODES)),
        to: end(1 + pick(2), u64::from(ME.0)),
        epoch: EPOCH,
        payload,
        number: pick(3) as u32,
        ..LockPacket::new(kind, lock, len, NodeId(pick(NODES) as u16))
    };
    LockMessage { packet, data: (payload > 0).then_some(DataRef(1)) }
}

#[test]
fn a_home_survives_anything_that_others_say_to_it() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let mut rig = if seed % 2 == 0 { Rig::lending() } else { Rig::new() };
        for _ in 0..300 {
            let message = anything(&mut random);
            if matches!(message.packet.to, LockEnd::Home(_)) {
                let _ = rig.gets(message);
            }
        }
    }
}

#[test]
fn an_agent_that_has_nothing_survives_anything_that_others_say_to_it() {
    for seed in 0..2000 {
        let mut random = Random::new(seed);
        let mut rig = Rig::new();
        let message = anything(&mut random);
        if matches!(message.packet.to, LockEnd::Agent(_)) {
            let _ = rig.gets(message);
        }
    }
}
