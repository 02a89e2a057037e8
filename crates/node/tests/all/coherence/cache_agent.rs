//! The cache agent's `on_request` and `on_close`: once, twice, late, and about copies that are not there
//! (Concordia, section 5.1.1; PROTOCOLS.md, FlowCC 1, 3 and 5).

use node::{Access, DataRef, Drop};
use wire::{Endpoint, GlobalStatus, NodeId, Packet, PacketKind};

use crate::coherence::packets::{close, home_of, numbered, requester, theirs, to_agent, to_provider};
use crate::coherence::rig::{Effects, Rig};

/// A node with one block in its cache, with stamp 7.
fn with(access: Access) -> Rig {
    let mut rig = Rig::new();
    let _ = rig.cache(theirs(1), access, 7);
    rig
}

/// PacketKind, receiver and data of what was sent.
fn sent(out: &Effects) -> Vec<(PacketKind, Endpoint, Option<DataRef>)> {
    out.sent().iter().map(|sent| (sent.packet.kind, sent.packet.to, sent.data)).collect()
}

const REQUESTER: Endpoint = Endpoint::Requester(NodeId(0));
const DATA: Option<DataRef> = Some(DataRef(7));

fn read_of_modified(seq: u64) -> Packet {
    to_provider(PacketKind::ReadMiss, theirs(1), seq, GlobalStatus::Modified, [1])
}

fn write(seq: u64) -> Packet {
    to_provider(PacketKind::WriteMiss, theirs(1), seq, GlobalStatus::Modified, [1])
}

#[test]
fn a_reader_of_a_modified_block_and_its_home_get_a_copy_and_the_owner_keeps_a_shared_one() {
    let mut rig = with(Access::Modified);
    let out = rig.packet(read_of_modified(1));
    assert_eq!(
        sent(&out),
        [(PacketKind::Ack, REQUESTER, DATA), (PacketKind::WriteBack, home_of(theirs(1)), DATA)]
    );
    assert_eq!(rig.cached(theirs(1)), Some((Access::Shared, 7)));
}

#[test]
fn a_reader_of_a_shared_block_gets_a_copy_and_nothing_goes_home() {
    let mut rig = with(Access::Shared);
    let out = rig.packet(to_provider(PacketKind::ReadMiss, theirs(1), 1, GlobalStatus::Shared, [1, 2]));
    assert_eq!(sent(&out), [(PacketKind::Ack, REQUESTER, DATA)]);
    assert_eq!(rig.cached(theirs(1)), Some((Access::Shared, 7)));
}

#[test]
fn a_repeated_read_gets_the_same_answer_again_and_so_does_the_home() {
    let mut rig = with(Access::Modified);
    let first = rig.packet(read_of_modified(1));
    assert_eq!(rig.packet(read_of_modified(1)), first);
}

#[test]
fn a_second_reader_may_still_name_the_state_before_the_first_ones_downgrade() {
    let mut rig = with(Access::Modified);
    let _ = rig.packet(read_of_modified(1));
    let second = Packet { requester: requester(2, 0), ..read_of_modified(1) };
    assert_eq!(rig.packet(second).kinds(), [PacketKind::Ack, PacketKind::WriteBack]);
}

#[test]
fn a_writer_takes_the_only_copy_away() {
    let mut rig = with(Access::Modified);
    let out = rig.packet(write(1));
    assert_eq!(sent(&out), [(PacketKind::Ack, REQUESTER, DATA)]);
    assert_eq!(rig.cached(theirs(1)), None);
    assert!(rig.store.frames.iter().all(|frame| !frame.reserved), "the frame is free again");
}

#[test]
fn a_repeated_write_gets_the_same_data_again_after_the_frame_has_another_block() {
    let mut rig = with(Access::Modified);
    let first = rig.packet(write(1));
    for nth in 2..=3 {
        let _ = rig.cache(theirs(nth), Access::Modified, 10 + nth);
    }
    assert_eq!(rig.packet(write(1)), first);
}

#[test]
fn the_answer_is_kept_until_a_later_number_of_the_same_parity() {
    let mut rig = with(Access::Modified);
    let _ = rig.packet(write(1));
    rig.store.frames[0].stamp = 0;
    let other_parity = Packet { tag: theirs(9), ..write(2) };
    let _ = rig.packet(other_parity);
    assert_eq!(rig.store.retained, 1, "event 1 may still be open");
    let _ = rig.packet(Packet { tag: theirs(9), ..write(3) });
    assert_eq!(rig.store.retained, 0);
    rig.drops(Drop::Stale, write(1));
}

#[test]
fn a_writer_that_is_not_to_get_the_data_here_is_told_that_the_copy_is_gone() {
    for kind in [PacketKind::WriteMiss, PacketKind::WriteShared, PacketKind::Purge] {
        let mut rig = with(Access::Shared);
        let request = to_agent(kind, theirs(1), 1, GlobalStatus::Shared, [1, 2]);
        let first = rig.packet(request);
        assert_eq!(sent(&first), [(PacketKind::Ack, REQUESTER, None)], "{kind:?}");
        assert_eq!(rig.cached(theirs(1)), None);
        assert_eq!(rig.packet(request), first, "{kind:?} again");
        assert_eq!((rig.store.retained, rig.node.counters().invalidations), (0, 1));
    }
}

#[test]
fn a_purge_ends_a_modified_copy_too() {
    let mut rig = with(Access::Modified);
    let out = rig.packet(to_agent(PacketKind::Purge, theirs(1), 1, GlobalStatus::Modified, [1]));
    assert_eq!(sent(&out), [(PacketKind::Ack, REQUESTER, None)]);
    assert_eq!(rig.cached(theirs(1)), None);
}

#[test]
fn a_duplicate_of_a_write_does_not_take_away_a_copy_that_came_later() {
    let mut rig = with(Access::Modified);
    let first = rig.packet(write(1));
    let _ = rig.cache(theirs(1), Access::Modified, 9);
    assert_eq!(rig.packet(write(1)), first);
    assert_eq!(rig.cached(theirs(1)), Some((Access::Modified, 9)));
}

#[test]
fn a_request_older_than_the_last_of_its_parity_is_stale() {
    let mut rig = with(Access::Shared);
    let read = to_provider(PacketKind::ReadMiss, theirs(1), 4, GlobalStatus::Shared, [1, 2]);
    let _ = rig.packet(read);
    rig.drops(Drop::Stale, to_agent(PacketKind::WriteMiss, theirs(1), 2, GlobalStatus::Shared, [1]));
    assert_eq!(rig.packet(numbered(read, 3)).kinds(), [PacketKind::Ack], "the other parity counts by itself");
}

#[test]
fn a_request_for_a_block_that_is_not_cached_is_a_late_one() {
    let mut rig = Rig::new();
    rig.drops(Drop::NoSuchCopy, write(1));
    rig.drops(Drop::Stale, write(1));
}

#[test]
fn a_request_that_names_a_state_which_the_copy_is_not_in_is_a_late_one() {
    for (kind, named, access) in [
        (PacketKind::ReadMiss, GlobalStatus::Shared, Access::Modified),
        (PacketKind::WriteMiss, GlobalStatus::Shared, Access::Modified),
        (PacketKind::WriteMiss, GlobalStatus::Modified, Access::Shared),
        (PacketKind::WriteShared, GlobalStatus::Shared, Access::Modified),
        (PacketKind::Purge, GlobalStatus::Shared, Access::Modified),
        (PacketKind::Purge, GlobalStatus::Modified, Access::Shared),
    ] {
        let mut rig = with(access);
        rig.drops(Drop::NoSuchCopy, to_provider(kind, theirs(1), 1, named, [1]));
    }
}

#[test]
fn a_repeated_read_of_a_block_that_has_left_the_cache_is_stale() {
    let mut rig = with(Access::Modified);
    let _ = rig.packet(read_of_modified(1));
    let _ = rig.packet(to_agent(PacketKind::WriteMiss, theirs(1), 2, GlobalStatus::Shared, [1]));
    rig.drops(Drop::Stale, read_of_modified(1));
}

#[test]
fn evictions_and_locks_are_nobody_elses_business() {
    for kind in
        [PacketKind::EvictShared, PacketKind::EvictModified, PacketKind::LockRead, PacketKind::LockWrite]
    {
        let mut rig = with(Access::Shared);
        rig.drops(Drop::Nonsense, to_agent(kind, theirs(1), 1, GlobalStatus::Shared, [1]));
    }
}

#[test]
fn a_close_is_acknowledged_however_often_it_comes_and_late_requests_do_nothing() {
    let mut rig = with(Access::Modified);
    let first = rig.packet(close(&read_of_modified(1)));
    assert_eq!(sent(&first), [(PacketKind::CloseAck, REQUESTER, None)]);
    assert_eq!(rig.packet(close(&read_of_modified(1))), first);
    rig.drops(Drop::Stale, read_of_modified(1));
}

#[test]
fn a_close_lets_the_answer_to_an_older_event_go() {
    let mut rig = with(Access::Modified);
    let _ = rig.packet(write(1));
    assert_eq!(rig.packet(close(&read_of_modified(3))).kinds(), [PacketKind::CloseAck]);
    assert_eq!(rig.store.retained, 0);
}

#[test]
fn a_late_close_does_not_reopen_what_came_after_it() {
    let mut rig = with(Access::Modified);
    let first = rig.packet(write(3));
    assert_eq!(rig.packet(close(&read_of_modified(1))).kinds(), [PacketKind::CloseAck]);
    assert_eq!(rig.packet(write(3)), first, "its answer is still kept");
    rig.drops(Drop::Stale, write(1));
}
