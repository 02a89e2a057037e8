//! A node that keeps copies: batches of other nodes, and what the home that serves the memory has done.

use node::{DataRef, Drop, Message};
use wire::{BlockTag, Discipline, Endpoint, GlobalAddr, NodeId, Packet, PacketKind, Seq, SlotId};

use crate::coherence::packets::{BLOCK, EPOCH, INCARNATION, ME, NODES, agent, call, mine, nodes, requester};
use crate::coherence::rig::Rig;

/// The memory that node 0 serves, and this one keeps, too.
const KEPT: NodeId = NodeId(NODES as u16);
/// One that is on other nodes.
const ELSEWHERE: NodeId = NodeId(NODES as u16 + 2);

fn rig() -> Rig {
    Rig::with(|config| config.copies = 2)
}

fn block(memory: NodeId, n: u64) -> BlockTag {
    BLOCK.tag(GlobalAddr::new(memory, n * BLOCK.bytes()))
}

/// From node 3, about its batch.
fn about(kind: PacketKind, tag: BlockTag, seq: u64) -> Packet {
    Packet {
        from: agent(3),
        to: Endpoint::HomeAgent(ME),
        epoch: EPOCH,
        incarnation: INCARNATION,
        copyset: nodes([0, 1]),
        ..Packet::request(kind, tag, requester(3, SlotId::MIGRATION.0), Seq(seq))
    }
}

/// The `at`th block of so many.
fn prepare(tag: BlockTag, seq: u64, (at, of): (u64, u64), stamp: u64) -> Message {
    let packet = Packet { arg: at << 32 | of, ..about(PacketKind::Prepare, tag, seq) };
    Message { packet, data: Some(DataRef(stamp)) }
}

#[test]
fn a_batch_goes_into_memory_when_it_is_committed_and_not_before() {
    let mut rig = rig();
    let [first, second] = [block(KEPT, 1), block(KEPT, 2)];
    let answer = rig.packet(prepare(first, 1, (0, 2), 7)).only().packet;
    assert_eq!((answer.kind, answer.to, answer.arg), (PacketKind::Prepared, agent(3), 1));
    rig.drops(Drop::Nonsense, about(PacketKind::Commit, first, 1));
    // What comes twice, and what comes too early: the answer says what is here.
    assert_eq!(rig.packet(prepare(first, 1, (0, 2), 8)).only().packet.arg, 1);
    assert_eq!(rig.packet(prepare(second, 1, (1, 2), 9)).only().packet.arg, 2);
    assert_eq!((rig.store.home_stamp(first), rig.store.home_stamp(second)), (0, 0));
    let done = rig.packet(about(PacketKind::Commit, first, 1)).only().packet;
    assert_eq!((done.kind, done.to), (PacketKind::Committed, agent(3)));
    assert_eq!((rig.store.home_stamp(first), rig.store.home_stamp(second)), (7, 9));
    // Late copies: the commit is answered again, and the blocks are of a batch that is over.
    assert_eq!(rig.packet(about(PacketKind::Commit, first, 1)).only().packet.kind, PacketKind::Committed);
    rig.drops(Drop::Stale, prepare(first, 1, (0, 2), 7));
    assert_eq!(rig.store.retained, 0);
}

#[test]
fn what_no_honest_node_prepares_is_dropped() {
    for (tag, place) in [
        (block(ELSEWHERE, 1), (0, 1)),
        (mine(1), (0, 1)),
        (block(KEPT, 64), (0, 1)),
        (block(KEPT, 1).lock_entry(), (0, 1)),
        (BlockTag::from_bits(block(KEPT, 1).bits() + 8), (0, 1)),
        (block(KEPT, 1), (1, 1)),
    ] {
        rig().drops(Drop::Nonsense, prepare(tag, 1, place, 7));
    }
    rig().drops(Drop::Nonsense, about(PacketKind::Prepare, block(KEPT, 1), 1));
    // Two batches of one node at a time, or one of two lengths.
    let mut rig = rig();
    let _ = rig.packet(prepare(block(KEPT, 1), 1, (0, 2), 7));
    rig.drops(Drop::Nonsense, prepare(block(KEPT, 2), 2, (0, 2), 7));
    rig.drops(Drop::Nonsense, prepare(block(KEPT, 2), 1, (1, 3), 7));
}

#[test]
fn racks_without_copies_expect_nothing_about_them() {
    for kind in [PacketKind::Prepare, PacketKind::Commit, PacketKind::Inquire, PacketKind::Replicate] {
        Rig::new().drops(Drop::Nonsense, about(kind, mine(1), 1));
    }
}

#[test]
fn what_the_home_has_done_is_done_here_once() {
    let mut rig = rig();
    let replicate = |kind, first, seq, bytes, discipline| {
        let of_home = call(kind, block(KEPT, first), seq, bytes, discipline);
        let to = Endpoint::HomeAgent(ME);
        Packet { event: kind, ..of_home.reply(PacketKind::Replicate, Endpoint::HomeAgent(KEPT), to) }
    };
    let coherent = Some(Discipline::Coherent);
    let bytes = 2 * BLOCK.bytes();
    rig.store.home.insert(block(KEPT, 1).addr(), 5);
    // No chunk is granted yet.
    let mark = replicate(PacketKind::Mark, 1, 2, bytes, coherent);
    let _ = rig.packet(mark);
    assert_eq!(rig.node.counters().dropped[Drop::Nonsense as usize], 1);
    assert_eq!(rig.store.home_stamp(block(KEPT, 1)), 5, "it is nobody's to be zeroed");
    let grant = replicate(PacketKind::ChunkRequest, 1, 1, 3 * BLOCK.bytes(), coherent);
    let answer = rig.packet(grant).only().packet;
    assert_eq!((answer.kind, answer.to), (PacketKind::Replicated, Endpoint::HomeAgent(NodeId(0))));
    for _ in 0..2 {
        assert_eq!(rig.packet(mark).only().packet.kind, PacketKind::Replicated);
        assert_eq!(rig.node.discipline_of(block(KEPT, 2)), coherent);
        assert_eq!(rig.store.home_stamp(block(KEPT, 1)), 0);
    }
    let outside = replicate(PacketKind::ChunkRequest, 60, 3, 64 * BLOCK.bytes(), coherent);
    let _ = rig.packet(outside);
    assert_eq!(rig.node.counters().dropped[Drop::Nonsense as usize], 2);
}
