//! The home agent's `on_call`: allocators ask for chunks, mark blocks and free (Concordia, section 6). A call
//! is executed once, and its answer kept.

use node::Drop;
use wire::{Discipline, Endpoint, NodeId, Packet, PacketKind, Refusal, Status};

use crate::coherence::packets::{BLOCK, ME, at_home, call, mine, requester};
use crate::coherence::rig::Rig;

const COHERENT: Option<Discipline> = Some(Discipline::Coherent);

fn chunk(seq: u64) -> Packet {
    call(PacketKind::ChunkRequest, mine(0), seq, BLOCK.bytes(), COHERENT)
}

fn mark(seq: u64, discipline: Option<Discipline>) -> Packet {
    call(PacketKind::Mark, mine(1), seq, BLOCK.bytes(), discipline)
}

fn status(rig: &mut Rig, call: Packet) -> Status {
    let answer = rig.packet(call).only().packet;
    assert_eq!((answer.kind, answer.to), (PacketKind::HomeReply, Endpoint::Allocator(NodeId(0))));
    answer.status
}

#[test]
fn a_duplicate_call_for_a_chunk_gets_the_same_chunk() {
    let mut rig = Rig::new();
    let first = rig.packet(chunk(1));
    let granted = rig.node.memory_in_use();
    assert_eq!(rig.packet(chunk(1)), first);
    assert_eq!(rig.node.memory_in_use(), granted);
    assert_ne!(rig.packet(chunk(2)).only().packet.tag, first.only().packet.tag);
}

#[test]
fn a_call_older_than_the_last_one_answered_is_stale() {
    let mut rig = Rig::new();
    let _ = rig.packet(chunk(5));
    rig.drops(Drop::Stale, chunk(4));
    rig.drops(Drop::Stale, mark(3, COHERENT));
}

#[test]
fn a_chunk_that_does_not_fit_or_has_no_discipline_is_refused() {
    let mut rig = Rig::new();
    let too_big = call(PacketKind::ChunkRequest, mine(0), 1, 65 * BLOCK.bytes(), COHERENT);
    assert_eq!(status(&mut rig, too_big), Status::Refused(Refusal::OutOfMemory));
    let without = call(PacketKind::ChunkRequest, mine(0), 2, BLOCK.bytes(), None);
    assert_eq!(status(&mut rig, without), Status::Refused(Refusal::WrongDiscipline));
    assert_eq!(rig.node.memory_in_use(), (0, 0));
}

#[test]
fn blocks_are_zeroed_when_they_come_to_incarnation_and_not_again_by_a_duplicate() {
    let mut rig = Rig::new();
    let _ = rig.packet(chunk(1));
    let first = rig.packet(mark(2, COHERENT));
    assert_eq!(rig.store.zeroed, [mine(1)]);
    assert_eq!(rig.node.memory_in_use().0, BLOCK.bytes());
    assert_eq!(rig.packet(mark(2, COHERENT)), first);
    assert_eq!(rig.store.zeroed, [mine(1)], "what was written since stays");
}

#[test]
fn a_late_mark_does_not_revive_a_block_that_has_ended() {
    let mut rig = Rig::home();
    assert!(status(&mut rig, mark(3, None)).is_granted());
    rig.drops(Drop::Stale, mark(2, COHERENT));
    let miss = rig.packet(at_home(PacketKind::ReadMiss, mine(1), requester(3, 0), 1)).only().packet;
    assert_eq!(miss.status, Status::Refused(Refusal::Unallocated));
}

#[test]
fn only_the_allocator_that_has_the_chunk_marks_its_blocks_and_for_its_discipline() {
    let mut rig = Rig::new();
    let _ = rig.packet(chunk(1));
    let other =
        Packet { requester: requester(3, 9), from: Endpoint::Allocator(NodeId(3)), ..mark(1, COHERENT) };
    assert_eq!(rig.packet(other).only().packet.status, Status::Refused(Refusal::Unallocated));
    let wrong = Status::Refused(Refusal::WrongDiscipline);
    assert_eq!(status(&mut rig, mark(2, Some(Discipline::LockOnly))), wrong);
    let outside = call(PacketKind::Mark, mine(1), 3, 1 << 30, COHERENT);
    assert_eq!(status(&mut rig, outside), Status::Refused(Refusal::Unallocated));
    assert_eq!((rig.node.memory_in_use().0, rig.store.zeroed.len()), (0, 0));
}

#[test]
fn a_refused_call_is_refused_again_after_the_reason_is_gone() {
    let mut rig = Rig::new();
    let early = mark(1, COHERENT);
    let refused = Status::Refused(Refusal::Unallocated);
    assert_eq!(status(&mut rig, early), refused);
    // Another slot of the same allocator gets the chunk.
    let _ = rig.packet(Packet { requester: requester(0, 8), ..chunk(1) });
    assert_eq!(status(&mut rig, early), refused);
}

#[test]
fn a_free_goes_on_to_the_allocator_that_has_the_chunk_however_often_it_comes() {
    let mut rig = Rig::home();
    let free = Packet { requester: requester(3, 0), ..call(PacketKind::Free, mine(1), 1, 0, None) };
    let first = rig.packet(free);
    let passed = first.only().packet;
    assert_eq!((passed.kind, passed.to), (PacketKind::Free, Endpoint::Allocator(NodeId(0))));
    assert_eq!((passed.requester, passed.seq, passed.tag), (free.requester, free.seq, free.tag));
    assert_eq!(rig.packet(free), first);
}

#[test]
fn a_free_in_a_chunk_that_nobody_has_is_answered_here() {
    let mut rig = Rig::home();
    let free = call(PacketKind::Free, mine(40), 3, 0, None);
    let answer = rig.packet(free).only().packet;
    assert_eq!((answer.kind, answer.from), (PacketKind::FreeReply, Endpoint::HomeAgent(ME)));
    assert_eq!(answer.status, Status::Refused(Refusal::NotAnAllocation));
}
