//! The end of an epoch: the hottest blocks of a home move (Concordia, section 5.2.2), and the cache agents
//! report how hot the switch's blocks were.

use node::{Access, Directory};
use wire::{Discipline, Endpoint, GlobalStatus, Nanos, NodeId, Packet, PacketKind};

use crate::coherence::migration::{EPOCH_SPAN, heat};
use crate::coherence::packets::{
    BLOCK, at_home, call, granted, mine, requester, theirs, to_agent, to_provider, unlock_ack,
};
use crate::coherence::rig::{Effects, Rig};

/// Answers all moves that this one starts, and names their blocks in order.
fn moved(rig: &mut Rig, out: &Effects) -> Vec<u64> {
    let mut blocks = Vec::new();
    let mut next = out.sent();
    while let Some(asked) = next.pop() {
        assert_eq!(asked.packet.kind, PacketKind::AddToSwitch);
        blocks.push(asked.packet.tag.addr().offset() / BLOCK.bytes());
        let done = rig.packet(granted(&asked.packet, Endpoint::Switch, GlobalStatus::Shared, [0, 2]));
        next = rig.packet(unlock_ack(&done.only().packet)).sent();
    }
    blocks
}

#[test]
fn the_hottest_blocks_move_first_and_no_more_than_allowed() {
    let mut rig = Rig::home_with(|config| config.hottest = 2);
    for (block, times) in [(1, 1), (2, 3), (3, 2)] {
        (0..times).for_each(|_| heat(&mut rig, mine(block)));
    }
    let out = rig.wait(EPOCH_SPAN);
    assert_eq!(moved(&mut rig, &out), [2, 3]);
}

#[test]
fn nothing_moves_before_the_epoch_is_over() {
    let mut rig = Rig::home();
    heat(&mut rig, mine(1));
    assert!(rig.wait(EPOCH_SPAN - Nanos::from_micros(2)).is_empty());
    assert_eq!(rig.wait(Nanos::from_micros(1)).kinds(), [PacketKind::AddToSwitch]);
}

#[test]
fn heat_is_of_one_epoch() {
    let mut rig = Rig::home_with(|config| config.hottest = 1);
    (0..3).for_each(|_| heat(&mut rig, mine(1)));
    heat(&mut rig, mine(2));
    let out = rig.wait(EPOCH_SPAN);
    assert_eq!(moved(&mut rig, &out), [1]);
    assert!(rig.wait(EPOCH_SPAN).is_empty(), "block 2 was not hot in the second epoch");
}

#[test]
fn a_request_that_asks_no_cache_agent_does_not_make_a_block_hot() {
    let mut rig = Rig::home();
    let _ = rig.packet(at_home(PacketKind::ReadMiss, mine(1), requester(3, 0), 1));
    let _ = rig.packet(crate::coherence::packets::unlock(
        &at_home(PacketKind::ReadMiss, mine(1), requester(3, 0), 1),
        GlobalStatus::Shared,
        [3],
    ));
    assert!(rig.wait(EPOCH_SPAN).is_empty());
}

#[test]
fn a_rack_that_keeps_its_directory_at_the_homes_moves_nothing() {
    let mut rig = Rig::home_with(|config| config.directory = Directory::Home);
    heat(&mut rig, mine(1));
    assert!(rig.wait(EPOCH_SPAN).is_empty());
}

#[test]
fn a_rack_that_keeps_its_directory_in_the_switch_moves_blocks_when_they_come_to_incarnation() {
    let mut rig = Rig::with(|config| config.directory = Directory::Switch);
    let coherent = Some(Discipline::Coherent);
    let _ = rig.packet(call(PacketKind::ChunkRequest, mine(0), 1, BLOCK.bytes(), coherent));
    let out = rig.packet(call(PacketKind::Mark, mine(1), 2, 2 * BLOCK.bytes(), coherent));
    assert_eq!(out.kinds(), [PacketKind::AddToSwitch, PacketKind::HomeReply]);
    let add = out.one(PacketKind::AddToSwitch).packet;
    let done = rig.packet(granted(&add, Endpoint::Switch, GlobalStatus::Unshared, [])).only().packet;
    assert_eq!(rig.packet(unlock_ack(&done)).only().packet.tag, mine(2), "one after the other");
}

#[test]
fn copies_lost_to_the_switchs_blocks_are_reported_to_the_shadow_node_once() {
    let mut rig = Rig::new();
    for seq in 1..=3 {
        let _ = rig.cache(theirs(1), Access::Modified, 7);
        let write = to_provider(PacketKind::WriteMiss, theirs(1), seq, GlobalStatus::Modified, [1]);
        let _ = rig.packet(write);
        let _ = rig.packet(write);
    }
    let report = rig.wait(EPOCH_SPAN).only().packet;
    assert_eq!((report.kind, report.tag, report.arg), (PacketKind::HotReport, theirs(1), 3));
    assert_eq!(report.to, Endpoint::Shadow(NodeId(0)));
    assert!(rig.wait(EPOCH_SPAN).is_empty());
}

#[test]
fn copies_lost_to_a_homes_blocks_and_copies_for_readers_are_not_reported() {
    let mut rig = Rig::new();
    let _ = rig.cache(theirs(1), Access::Shared, 7);
    let _ = rig.cache(theirs(2), Access::Shared, 8);
    let at_its_home = to_agent(PacketKind::WriteMiss, theirs(1), 1, GlobalStatus::Shared, [1]);
    let _ = rig.packet(Packet { in_switch: false, ..at_its_home });
    let _ = rig.packet(to_provider(PacketKind::ReadMiss, theirs(2), 2, GlobalStatus::Shared, [1]));
    assert!(rig.wait(EPOCH_SPAN).is_empty());
}
