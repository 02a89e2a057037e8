//! The home agent's `on_write_back` and `on_close`: a copy is taken once for every event, and none after the
//! event is closed (PROTOCOLS.md, FlowCC 1).

use node::Drop;
use wire::{Endpoint, NodeId, Packet, PacketKind};

use crate::coherence::packets::{home_of, mine, requester, theirs, write_back};
use crate::coherence::rig::{Rig, carrying};

fn close(seq: u64) -> Packet {
    let copy = write_back(mine(1), seq);
    copy.reply(PacketKind::Close, Endpoint::Requester(NodeId(0)), home_of(mine(1)))
}

#[test]
fn a_copy_is_written_and_the_events_requester_is_told() {
    let mut rig = Rig::home();
    let ack = rig.packet(carrying(write_back(mine(1), 1), 7)).only().packet;
    assert_eq!((ack.kind, ack.to), (PacketKind::WriteBackAck, Endpoint::Requester(NodeId(0))));
    assert_eq!(rig.store.home_stamp(mine(1)), 7);
}

#[test]
fn a_duplicate_is_acknowledged_again_and_not_written() {
    let mut rig = Rig::home();
    let first = rig.packet(carrying(write_back(mine(1), 1), 7));
    let _ = rig.packet(carrying(Packet { requester: requester(2, 0), ..write_back(mine(1), 1) }, 8));
    assert_eq!(rig.packet(carrying(write_back(mine(1), 1), 7)), first);
    assert_eq!(rig.store.home_stamp(mine(1)), 8, "old bytes do not come back");
}

#[test]
fn a_copy_older_than_the_last_of_its_parity_is_stale() {
    let mut rig = Rig::home();
    let _ = rig.packet(carrying(write_back(mine(1), 3), 8));
    rig.drops(Drop::Stale, carrying(write_back(mine(1), 1), 7));
    let _ = rig.packet(carrying(write_back(mine(2), 2), 9));
    assert_eq!(rig.store.home_stamp(mine(2)), 9, "the other parity counts by itself");
}

#[test]
fn a_copy_after_the_close_of_its_event_is_not_written() {
    let mut rig = Rig::home();
    let ack = rig.packet(close(1)).only().packet;
    assert_eq!((ack.kind, ack.to), (PacketKind::CloseAck, Endpoint::Requester(NodeId(0))));
    let _ = rig.packet(carrying(write_back(mine(1), 1), 7));
    assert_eq!(rig.store.home_stamp(mine(1)), 0);
}

#[test]
fn a_close_is_acknowledged_again() {
    let mut rig = Rig::home();
    let first = rig.packet(close(1));
    assert_eq!(rig.packet(close(1)), first);
}

#[test]
fn a_late_close_does_not_let_old_copies_in_again() {
    let mut rig = Rig::home();
    let _ = rig.packet(carrying(write_back(mine(1), 5), 8));
    assert_eq!(rig.packet(close(1)).kinds(), [PacketKind::CloseAck]);
    rig.drops(Drop::Stale, carrying(write_back(mine(1), 3), 7));
    let _ = rig.packet(carrying(write_back(mine(1), 5), 6));
    assert_eq!(rig.store.home_stamp(mine(1)), 8);
}

#[test]
fn a_write_back_without_a_block_or_of_memory_that_is_not_here_is_nonsense() {
    let mut rig = Rig::home();
    rig.drops(Drop::Nonsense, write_back(mine(1), 1));
    rig.drops(Drop::Nonsense, carrying(write_back(mine(1 << 20), 1), 7));
    let elsewhere = Packet { to: home_of(mine(1)), ..write_back(theirs(1), 1) };
    rig.drops(Drop::Nonsense, carrying(elsewhere, 7));
}
