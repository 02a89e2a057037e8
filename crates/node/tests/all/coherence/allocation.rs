//! The allocator's handlers: answers of homes, and frees that come to the allocator that has the chunk
//! (Concordia, section 6).

use node::{Drop, Outcome};
use wire::{
    BlockTag, Endpoint, GlobalAddr, GlobalStatus, Incarnation, Nanos, NodeId, Packet, PacketKind, Refusal,
    Status,
};

use crate::coherence::packets::{
    BLOCK, ME, agent, call, granted, home_reply, numbered, refused, requester, theirs, unlock_ack,
};
use crate::coherence::rig::{Effects, Rig};

const HOME: NodeId = NodeId(2);

/// The answer that grants the second chunk of node 2's memory.
fn chunk(call: &Packet) -> Packet {
    Packet { tag: theirs(4), arg: 4 * BLOCK.bytes(), ..home_reply(call, Status::Granted) }
}

/// Allocates one whole block; the block is `theirs(4)`.
fn allocated(rig: &mut Rig) -> GlobalAddr {
    let asked = rig.alloc(64, HOME).only().packet;
    let mark = rig.packet(chunk(&asked)).only().packet;
    let out = rig.packet(home_reply(&mark, Status::Granted));
    let [Outcome::Allocated { addr, zeroed: true, .. }] = out.outcomes()[..] else { panic!("{out:?}") };
    addr
}

/// A FREE of node 0 that the home passes on.
fn free(addr: GlobalAddr, seq: u64) -> Packet {
    let to_home = call(PacketKind::Free, BlockTag::from_bits(addr.bits()), seq, 0, None);
    Packet { from: Endpoint::HomeAgent(HOME), to: Endpoint::Allocator(ME), ..to_home }
}

fn reply(out: &Effects) -> Status {
    let answer = out.one(PacketKind::FreeReply).packet;
    assert_eq!(answer.to, Endpoint::Allocator(NodeId(0)));
    answer.status
}

#[test]
fn an_allocation_is_handed_out_when_its_home_knows_that_the_block_is_live() {
    let mut rig = Rig::new();
    let asked = rig.alloc(64, HOME).only().packet;
    assert_eq!((asked.kind, asked.to), (PacketKind::ChunkRequest, Endpoint::HomeAgent(HOME)));
    let out = rig.packet(chunk(&asked));
    let mark = out.only().packet;
    assert_eq!((mark.kind, mark.tag, mark.arg), (PacketKind::Mark, theirs(4), BLOCK.bytes()));
    let out = rig.packet(home_reply(&mark, Status::Granted));
    assert_eq!(
        out.outcomes(),
        [Outcome::Allocated { addr: theirs(4).addr(), zeroed: true, incarnation: Incarnation(0) }]
    );
}

#[test]
fn answers_that_come_twice_or_belong_to_another_call_are_stale() {
    let mut rig = Rig::new();
    let asked = rig.alloc(64, HOME).only().packet;
    rig.drops(Drop::Stale, numbered(chunk(&asked), asked.seq.0 + 1));
    let mark = rig.packet(chunk(&asked)).only().packet;
    rig.drops(Drop::Stale, chunk(&asked));
    let _ = rig.packet(home_reply(&mark, Status::Granted));
    rig.drops(Drop::Stale, home_reply(&mark, Status::Granted));
    assert_eq!(rig.node.live_allocations(), 1);
}

#[test]
fn a_home_without_memory_fails_the_allocation() {
    let mut rig = Rig::new();
    let asked = rig.alloc(64, HOME).only().packet;
    let out = rig.packet(home_reply(&asked, Status::Refused(Refusal::OutOfMemory)));
    assert_eq!(out.outcomes(), [Outcome::Failed(Refusal::OutOfMemory)]);
}

#[test]
fn a_block_whose_mark_was_refused_was_never_allocated() {
    let mut rig = Rig::new();
    let asked = rig.alloc(64, HOME).only().packet;
    let mark = rig.packet(chunk(&asked)).only().packet;
    let out = rig.packet(home_reply(&mark, Status::Refused(Refusal::Unallocated)));
    assert_eq!(out.outcomes(), [Outcome::Failed(Refusal::Unallocated)]);
    assert_eq!(rig.node.live_allocations(), 0);
    assert_eq!(rig.alloc(64, HOME).only().packet.tag, theirs(4), "the block is free again");
}

#[test]
fn two_threads_ask_for_one_chunk_and_both_get_a_block_of_it() {
    let mut rig = Rig::new();
    let asked = rig.alloc(64, HOME).only().packet;
    assert!(rig.alloc(64, HOME).is_empty());
    let first = rig.packet(chunk(&asked)).only().packet;
    let second = rig.wait(Nanos::from_micros(1)).only().packet;
    assert_eq!((second.kind, second.tag), (PacketKind::Mark, theirs(5)));
    assert_ne!(first.requester, second.requester);
}

#[test]
fn a_free_is_answered_when_the_home_has_ended_the_block_and_every_copy_is_purged() {
    let mut rig = Rig::new();
    let addr = allocated(&mut rig);
    let ended = rig.packet(free(addr, 1)).only().packet;
    assert_eq!((ended.kind, ended.tag, ended.discipline), (PacketKind::Mark, theirs(4), None));
    let purge = rig.packet(home_reply(&ended, Status::Granted)).only().packet;
    assert_eq!((purge.kind, purge.tag), (PacketKind::Purge, theirs(4)));
    let ack = |node| granted(&purge, agent(node), GlobalStatus::Shared, [0, 1, 3]);
    assert!(rig.packet(ack(0)).is_empty());
    assert!(rig.packet(ack(0)).is_empty(), "a duplicate does not stand for another");
    assert!(rig.packet(ack(1)).is_empty(), "this node's own copy counts too");
    let out = rig.packet(ack(3));
    assert_eq!(reply(&out), Status::Granted);
    assert_eq!(out.one(PacketKind::Unlock).packet.global_status, GlobalStatus::Unshared);
    assert_eq!(rig.node.live_allocations(), 0);
}

#[test]
fn a_refused_purge_is_tried_again_and_the_free_waits() {
    let mut rig = Rig::new();
    let addr = allocated(&mut rig);
    let ended = rig.packet(free(addr, 1)).only().packet;
    let purge = rig.packet(home_reply(&ended, Status::Granted)).only().packet;
    let unlock = rig.packet(refused(&purge, Refusal::Locked)).only().packet;
    let _ = rig.packet(unlock_ack(&unlock));
    let again = rig.wait(Nanos::from_micros(40)).only().packet;
    assert_eq!((again.kind, again.seq), (PacketKind::Purge, purge.seq.next()));
    let out = rig.packet(granted(&again, Endpoint::Switch, GlobalStatus::Unshared, []));
    assert_eq!(reply(&out), Status::Granted);
}

#[test]
fn a_free_that_comes_twice_is_executed_once_and_answered_alike() {
    let mut rig = Rig::new();
    let addr = allocated(&mut rig);
    let ended = rig.packet(free(addr, 1)).only().packet;
    rig.drops(Drop::Duplicate, free(addr, 1));
    let purge = rig.packet(home_reply(&ended, Status::Granted)).only().packet;
    let out = rig.packet(granted(&purge, Endpoint::Switch, GlobalStatus::Unshared, []));
    assert_eq!(reply(&out), Status::Granted);
    assert_eq!(rig.packet(free(addr, 1)).only(), out.one(PacketKind::FreeReply));
}

#[test]
fn a_free_older_than_the_requesters_last_one_is_stale() {
    let mut rig = Rig::new();
    let addr = allocated(&mut rig);
    let _ = rig.packet(free(theirs(9).addr(), 5));
    rig.drops(Drop::Stale, free(addr, 4));
    assert_eq!(rig.node.live_allocations(), 1);
}

#[test]
fn what_is_no_allocation_cannot_be_freed_and_nothing_twice() {
    let mut rig = Rig::new();
    let addr = allocated(&mut rig);
    let refused = Status::Refused(Refusal::NotAnAllocation);
    assert_eq!(reply(&rig.packet(free(addr.checked_add(16).unwrap(), 1))), refused);
    let mut odd = free(addr, 2);
    odd.tag = odd.tag.lock_entry();
    assert_eq!(reply(&rig.packet(odd)), refused);
    let _ = rig.packet(free(addr, 3));
    assert_eq!(reply(&rig.packet(free(addr, 4))), refused);
    assert_eq!(rig.node.live_allocations(), 0);
}

#[test]
fn a_free_of_this_node_ends_with_its_answer_once() {
    for (status, outcome) in [
        (Status::Granted, Outcome::Freed),
        (Status::Refused(Refusal::NotAnAllocation), Outcome::Failed(Refusal::NotAnAllocation)),
    ] {
        let mut rig = Rig::new();
        let asked = rig.free(theirs(1).addr()).only().packet;
        assert_eq!((asked.kind, asked.to), (PacketKind::Free, Endpoint::HomeAgent(HOME)));
        let answer = asked.reply(PacketKind::FreeReply, Endpoint::Allocator(NodeId(3)), asked.from);
        let answer = Packet { status, ..answer };
        rig.drops(Drop::Stale, numbered(answer, asked.seq.0 + 1));
        assert_eq!(rig.packet(answer).outcomes(), [outcome]);
        rig.drops(Drop::Stale, answer);
    }
}

#[test]
fn an_answer_to_another_nodes_call_is_nonsense() {
    let mut rig = Rig::new();
    let asked = rig.alloc(64, HOME).only().packet;
    rig.drops(Drop::Nonsense, Packet { requester: requester(3, asked.requester.slot.0), ..chunk(&asked) });
}
