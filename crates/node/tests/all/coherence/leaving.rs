//! A node that leaves in order: what only it has goes home, and what it has given to others must have arrived.

use node::Access;
use wire::{GlobalStatus, PacketKind, Refusal};

use crate::coherence::packets::{granted, home_of, refused, theirs, to_provider, unlock_ack};
use crate::coherence::rig::{Rig, carrying};

/// A node whose modified block somebody writes or reads.
fn asked(kind: PacketKind) -> Rig {
    let mut rig = Rig::new();
    let _ = rig.cache(theirs(1), Access::Modified, 7);
    let _ = rig.packet(to_provider(kind, theirs(1), 1, GlobalStatus::Modified, [1]));
    rig
}

#[test]
fn a_node_that_has_nothing_leaves() {
    let (left, out) = Rig::new().leave();
    assert!(left == 0 && out.is_empty());
}

#[test]
fn a_block_that_was_given_to_a_writer_is_read_before_the_node_leaves() {
    let mut rig = asked(PacketKind::WriteMiss);
    let (left, out) = rig.leave();
    let read = out.only().packet;
    assert_eq!((left, read.kind, read.tag), (1, PacketKind::ReadMiss, theirs(1)));
    let (left, out) = rig.leave();
    assert!(left > 0 && out.is_empty(), "it is asked for once");
    // The writer has it, or the read would not be granted.
    let out = rig.packet(carrying(granted(&read, home_of(theirs(1)), GlobalStatus::Unshared, []), 8));
    assert!(rig.store.frames.iter().all(|frame| !frame.pinned), "no thread has asked for it");
    let unlock = out.one(PacketKind::Unlock).packet;
    let (left, out) = rig.leave();
    assert!(left > 0 && out.is_empty(), "others would find the block locked by one that is gone");
    let _ = rig.packet(unlock_ack(&unlock));
    assert_eq!(rig.leave().0, 0);
}

#[test]
fn a_block_that_was_given_away_and_is_lost_or_freed_keeps_nobody() {
    let mut rig = asked(PacketKind::WriteMiss);
    let read = rig.leave().1.only().packet;
    let out = rig.packet(refused(&read, Refusal::Unallocated));
    rig.unlocked(&out);
    assert_eq!(rig.leave().0, 0);
}

#[test]
fn a_block_that_was_given_to_a_reader_leaves_when_the_home_has_it() {
    let mut rig = asked(PacketKind::ReadMiss);
    let (left, out) = rig.leave();
    assert_eq!((left, out.only().packet.kind), (1, PacketKind::EvictShared));
}
