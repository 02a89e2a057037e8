//! What handlers must survive although no honest sender would say it: whatever arrives in a packet is handled,
//! or dropped and counted (the call contract of `node::Node`, 4).

use node::Drop;
use wire::{BlockTag, Discipline, Endpoint, GlobalStatus, NodeId, Packet, PacketKind, Refusal, Status};

use crate::coherence::packets::{ME, at_home, call, demote, home_reply, mine, requester, theirs};
use crate::coherence::rig::Rig;

fn read() -> Packet {
    at_home(PacketKind::ReadMiss, mine(1), requester(3, 0), 1)
}

#[test]
fn a_demotion_of_a_block_that_this_home_does_not_have_is_nonsense() {
    for tag in [mine(1 << 20), theirs(1), theirs(1 << 20)] {
        let asked = Packet { to: Endpoint::HomeAgent(ME), ..demote(tag) };
        Rig::home().drops(Drop::Nonsense, asked);
    }
}

#[test]
fn a_homes_reply_to_a_free_is_nonsense() {
    let mut rig = Rig::new();
    let asked = rig.free(theirs(1).addr()).only().packet;
    rig.drops(Drop::Nonsense, home_reply(&asked, Status::Granted));
}

#[test]
fn a_free_reply_to_a_call_for_a_chunk_is_nonsense() {
    let mut rig = Rig::new();
    let asked = rig.alloc(64, NodeId(2)).only().packet;
    let reply = asked.reply(PacketKind::FreeReply, Endpoint::Allocator(NodeId(3)), asked.from);
    rig.drops(Drop::Nonsense, reply);
}

#[test]
fn an_unlock_that_names_another_block_than_its_request_is_dropped() {
    for tag in [mine(2), mine(1 << 20)] {
        let mut rig = Rig::home();
        let _ = rig.packet(read());
        let unlock = crate::coherence::packets::unlock(&read(), GlobalStatus::Shared, [3]);
        rig.drops(Drop::Nonsense, Packet { tag, ..unlock });
    }
}

#[test]
fn a_request_under_a_number_that_another_request_has_is_dropped() {
    for (kind, tag) in [
        (PacketKind::WriteShared, mine(1)),
        (PacketKind::ReadMiss, mine(2)),
        (PacketKind::Purge, mine(1 << 20)),
    ] {
        let mut rig = Rig::home();
        let _ = rig.packet(read());
        rig.drops(Drop::Nonsense, at_home(kind, tag, requester(3, 0), 1));
    }
}

#[test]
fn a_mark_of_more_bytes_than_there_are_addresses_is_refused() {
    for bytes in [u64::MAX, 0] {
        let mut rig = Rig::home();
        let mark = call(PacketKind::Mark, mine(1), 3, bytes, Some(Discipline::Coherent));
        let answer = rig.packet(mark).only().packet.status;
        assert_eq!(answer, Status::Refused(Refusal::Unallocated), "{bytes} bytes");
    }
}

#[test]
fn a_chunk_that_is_none_fails_the_allocation() {
    for (tag, arg) in [(theirs(4), u64::MAX), (BlockTag::from_bits(3), 64)] {
        let mut rig = Rig::new();
        let asked = rig.alloc(64, NodeId(2)).only().packet;
        let out = rig.packet(Packet { tag, arg, ..home_reply(&asked, Status::Granted) });
        assert_eq!(out.outcomes(), [node::Outcome::Failed(Refusal::OutOfMemory)], "{tag:?} {arg}");
    }
}

#[test]
fn a_miss_on_a_locks_entry_and_a_lock_on_a_blocks_entry_are_not_granted() {
    for (kind, tag) in [(PacketKind::ReadMiss, mine(1).lock_entry()), (PacketKind::LockWrite, mine(1))] {
        let out = Rig::home().packet(at_home(kind, tag, requester(3, 0), 1));
        assert!(out.sent().iter().all(|sent| !sent.packet.status.is_granted()), "{kind:?} {tag:?}");
    }
}

#[test]
fn a_miss_on_an_address_inside_a_block_is_not_granted() {
    let inside = BlockTag::from_bits(mine(1).bits() + 16);
    let out = Rig::home().packet(at_home(PacketKind::ReadMiss, inside, requester(3, 0), 1));
    assert!(out.sent().iter().all(|sent| !sent.packet.status.is_granted()));
}
