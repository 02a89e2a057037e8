//! With `queue`, a request that meets a writer waits behind it (see `coherence::wait_queue`).

use switch::coherence::{Switch, SwitchConfig, wait_queue};
use wire::{Endpoint, GlobalStatus, NodeId, Packet, PacketKind, Refusal, Seq, SlotId, Status};

/// A switch with a queue, and the entry of one block in it.
fn with_entry() -> (Switch, wire::BlockTag) {
    let config = SwitchConfig { entries: 7, queue: true, ..SwitchConfig::for_nodes(4) };
    let mut switch = Switch::new(&config).unwrap();
    let tag = wire::BlockTag::from_bits(1 << 12);
    let home = wire::RequesterId { node: NodeId(0), slot: SlotId::MIGRATION };
    let add = Packet {
        global_status: GlobalStatus::Unshared,
        ..Packet::request(PacketKind::AddToSwitch, tag, home, Seq(1))
    };
    assert_eq!(send(&mut switch, &add)[0].kind, PacketKind::Ack);
    send(&mut switch, &unlock(&add));
    (switch, tag)
}

fn send(switch: &mut Switch, packet: &Packet) -> Vec<Packet> {
    let (mut sent, mut effects) = (Vec::new(), Vec::new());
    switch.on_packet(packet, &mut effects);
    while let Some(effect) = effects.pop() {
        match effect {
            switch::coherence::Effect::Send(packet) => sent.insert(0, packet),
            switch::coherence::Effect::Resubmit(again) => switch.on_resubmit(again, &mut effects),
        }
    }
    switch.invariants();
    sent
}

fn miss(tag: wire::BlockTag, node: u16) -> Packet {
    let requester = wire::RequesterId { node: NodeId(node), slot: SlotId(0) };
    Packet::request(PacketKind::WriteMiss, tag, requester, Seq(1))
}

fn unlock(request: &Packet) -> Packet {
    Packet { in_switch: true, ..request.reply(PacketKind::Unlock, request.from, Endpoint::Switch) }
}

#[test]
fn each_is_told_who_stands_behind_it_however_often_it_asks() {
    let (mut switch, tag) = with_entry();
    let [first, second, third] = [1, 2, 3].map(|node| miss(tag, node));
    assert_eq!(send(&mut switch, &first)[0].to, Endpoint::HomeAgent(NodeId(0)));
    for _ in 0..2 {
        let told = send(&mut switch, &second);
        assert_eq!((told[0].kind, told[0].to), (PacketKind::Follow, Endpoint::Requester(NodeId(1))));
        assert_eq!(wait_queue::code_in(told[0].arg).map(wait_queue::decode), Some((first.requester, 1)));
    }
    let told = send(&mut switch, &third);
    assert_eq!((told[0].kind, told[0].to), (PacketKind::Follow, Endpoint::Requester(NodeId(2))));
    // A repeated request does not go to the end of the queue once more.
    assert_eq!(send(&mut switch, &second)[0].to, Endpoint::Requester(NodeId(1)));
}

#[test]
fn an_unlock_releases_the_lock_only_at_the_end_of_the_line() {
    let (mut switch, tag) = with_entry();
    let [first, second] = [1, 2].map(|node| miss(tag, node));
    send(&mut switch, &first);
    send(&mut switch, &second);
    for _ in 0..2 {
        let done = send(&mut switch, &unlock(&first));
        assert!(done[0].kind == PacketKind::UnlockAck && done[0].provider, "somebody follows: {done:?}");
    }
    assert_ne!(switch.entry(tag).unwrap().lock, 0);
    let handed = Packet { repeated: true, ..unlock(&first) };
    assert!(!send(&mut switch, &handed)[0].provider, "the note that somebody follows is gone");
    assert!(!send(&mut switch, &unlock(&second))[0].provider);
    assert_eq!(switch.entry(tag).unwrap().lock, 0);
}

#[test]
fn a_reader_that_meets_a_writer_is_refused_unless_it_says_that_it_will_wait() {
    let (mut switch, tag) = with_entry();
    let [first, second, third] = [1, 2, 3].map(|node| miss(tag, node));
    send(&mut switch, &first);
    let read = Packet { kind: PacketKind::ReadMiss, event: PacketKind::ReadMiss, ..second };
    assert_eq!(send(&mut switch, &read)[0].status, Status::Refused(Refusal::Locked));
    let patient = Packet { kind: PacketKind::ReadMiss, event: PacketKind::ReadMiss, provider: true, ..third };
    assert_eq!(send(&mut switch, &patient)[0].kind, PacketKind::Follow);
}

#[test]
fn a_patient_reader_has_the_lock_alone_and_gives_it_back() {
    let (mut switch, tag) = with_entry();
    let [first, second] = [1, 2].map(|node| miss(tag, node));
    let patient = Packet { kind: PacketKind::ReadMiss, event: PacketKind::ReadMiss, provider: true, ..first };
    assert_eq!(send(&mut switch, &patient)[0].to, Endpoint::HomeAgent(NodeId(0)));
    assert_eq!(send(&mut switch, &second)[0].to, Endpoint::Requester(NodeId(1)), "it is followed");
    let (mut switch, tag) = with_entry();
    send(&mut switch, &patient);
    let done = send(&mut switch, &unlock(&patient));
    assert!(done[0].kind == PacketKind::UnlockAck && !done[0].provider, "{done:?}");
    assert_eq!(switch.entry(tag).unwrap().lock, 0);
}
