//! Lost, repeated and reordered requests and unlocks (section 5.3): each takes effect once, and the same
//! question gets the same answer.

use crate::rig;

use rig::{
    Rig, assert_acknowledged, block, nodes, refused, request, requester, status_of, unlock, unlock_at_home,
    unlock_refused,
};
use switch::coherence::{Drop, EntryView};
use wire::GlobalStatus::{Modified, Shared, Unshared};
use wire::{Endpoint, NodeId, Packet, PacketKind, Refusal, Seq};

const WRITER: u16 = 1 << 15;

fn is_forwarded(sent: &[Packet]) -> bool {
    !sent.is_empty() && sent.iter().all(|packet| packet.kind != PacketKind::Ack && packet.in_switch)
}

fn goes_home(sent: &[Packet]) -> bool {
    matches!(sent, [one] if one.to == Endpoint::HomeAgent(NodeId(2)) && !one.in_switch)
}

#[test]
fn figure_8_a_repeated_read_miss_counts_and_one_unlock_releases_all_of_it() {
    let mut rig = Rig::new();
    rig.install(block(), Shared, nodes([3]));
    let other = request(PacketKind::ReadMiss, block(), requester(0, 0), 11);
    assert!(is_forwarded(&rig.send(&other)));
    let miss = request(PacketKind::ReadMiss, block(), requester(1, 0), 21);
    for copies in 1..=3 {
        let sent = rig.send(&miss);
        assert!(is_forwarded(&sent));
        assert_eq!(sent[0].repeated, copies > 1);
        assert_eq!(rig.lock(block()), 1 + copies);
        assert_eq!(rig.switch.requester(miss.requester, miss.seq).unwrap().acquisitions, copies);
    }
    rig.close(&unlock(&miss, Shared, nodes([1, 3])));
    assert_eq!(rig.lock(block()), 1, "the other reader's");
    let view = rig.switch.requester(miss.requester, miss.seq).unwrap();
    assert_eq!((view.acquisitions, view.last_unlock), (0, Seq(21)));
    rig.switch.invariants();
}

#[test]
fn a_repeated_write_request_goes_on_under_its_own_lock() {
    let mut rig = Rig::new();
    rig.install(block(), Shared, nodes([0, 3]));
    let miss = request(PacketKind::WriteMiss, block(), requester(1, 0), 21);
    let first = rig.send(&miss);
    assert!(is_forwarded(&first) && first.iter().all(|packet| !packet.repeated));
    let marked: Vec<_> = first.iter().map(|packet| Packet { repeated: true, ..*packet }).collect();
    assert_eq!(rig.send(&miss), marked, "the same packets again, marked as repeated");
    assert_eq!(rig.lock(block()), WRITER);
    rig.close(&unlock(&miss, Modified, nodes([1])));
    assert_eq!(rig.entry(block()), EntryView { lock: 0, status: Modified, copyset: nodes([1]) });
}

#[test]
fn readers_exclude_writers_and_writers_exclude_all() {
    let mut rig = Rig::new();
    rig.install(block(), Shared, nodes([3]));
    assert!(is_forwarded(&rig.send(&request(PacketKind::ReadMiss, block(), requester(0, 0), 1))));
    assert!(is_forwarded(&rig.send(&request(PacketKind::ReadMiss, block(), requester(1, 0), 1))));
    let write = rig.send(&request(PacketKind::WriteMiss, block(), requester(2, 0), 1));
    assert_eq!(status_of(&write), refused(Refusal::Locked));

    let mut rig = Rig::new();
    rig.install(block(), Shared, nodes([3]));
    assert!(is_forwarded(&rig.send(&request(PacketKind::WriteMiss, block(), requester(0, 0), 1))));
    for kind in [PacketKind::ReadMiss, PacketKind::WriteMiss, PacketKind::LockRead, PacketKind::Purge] {
        let sent = rig.send(&request(kind, block(), requester(1, kind as u16), 1));
        assert_eq!(status_of(&sent), refused(Refusal::Locked), "{kind:?}");
    }
}

#[test]
fn a_refusal_stands_though_a_duplicate_got_the_lock() {
    let mut rig = Rig::new();
    rig.install(block(), Shared, nodes([3]));
    let holder = request(PacketKind::WriteMiss, block(), requester(0, 0), 1);
    rig.send(&holder);
    let miss = request(PacketKind::WriteMiss, block(), requester(1, 0), 1);
    assert_eq!(status_of(&rig.send(&miss)), refused(Refusal::Locked));
    rig.close(&unlock(&holder, Modified, nodes([0])));

    assert_eq!(status_of(&rig.send(&miss)), refused(Refusal::Locked), "the first answer again");
    assert_eq!(rig.lock(block()), WRITER, "though this copy took the lock");
    rig.close(&unlock_refused(&miss, Refusal::Locked));
    assert_eq!(rig.entry(block()), EntryView { lock: 0, status: Modified, copyset: nodes([0]) });
    rig.switch.invariants();
}

#[test]
fn a_refused_event_changes_no_metadata_even_if_its_unlock_claims_so() {
    let mut rig = Rig::new();
    rig.install(block(), Shared, nodes([3]));
    let holder = request(PacketKind::ReadMiss, block(), requester(0, 0), 1);
    rig.send(&holder);
    let miss = request(PacketKind::WriteMiss, block(), requester(1, 0), 1);
    assert_eq!(status_of(&rig.send(&miss)), refused(Refusal::Locked));
    rig.close(&unlock(&holder, Shared, nodes([0, 3])));
    rig.send(&miss);
    rig.close(&unlock(&miss, Modified, nodes([1])));
    assert_eq!(rig.entry(block()), EntryView { lock: 0, status: Shared, copyset: nodes([0, 3]) });
}

#[test]
fn an_unlock_that_takes_the_home_for_the_owner_releases_and_changes_no_metadata() {
    let mut rig = Rig::new();
    rig.install(block(), Shared, nodes([3]));
    let miss = request(PacketKind::WriteMiss, block(), requester(1, 0), 1);
    rig.send(&miss);
    let sent = rig.send(&unlock_at_home(&miss, Modified, nodes([1])));
    assert_eq!(sent[0].to, Endpoint::HomeAgent(NodeId(2)));
    assert_eq!(rig.entry(block()), EntryView { lock: 0, status: Shared, copyset: nodes([3]) });
}

#[test]
fn an_outdated_request_keeps_its_lock_until_the_unlock() {
    let mut rig = Rig::new();
    rig.install(block(), Shared, nodes([1]));
    let miss = request(PacketKind::ReadMiss, block(), requester(1, 0), 1);
    for _ in 0..2 {
        assert_eq!(status_of(&rig.send(&miss)), refused(Refusal::Outdated));
    }
    assert_eq!(rig.lock(block()), 2);
    rig.close(&unlock_refused(&miss, Refusal::Outdated));
    assert_eq!(rig.entry(block()), EntryView { lock: 0, status: Shared, copyset: nodes([1]) });
}

#[test]
fn what_went_home_goes_home_again_though_the_switch_has_the_entry_now() {
    let mut rig = Rig::new();
    let miss = request(PacketKind::ReadMiss, block(), requester(1, 0), 1);
    assert!(goes_home(&rig.send(&miss)));
    rig.install(block(), Shared, nodes([3]));
    assert!(goes_home(&rig.send(&miss)));
    assert_eq!(rig.lock(block()), 1, "the duplicate's lock");

    let ended = unlock_at_home(&miss, Shared, nodes([1, 3]));
    let sent = rig.send(&ended);
    let want = ended.reply(PacketKind::Unlock, Endpoint::Switch, Endpoint::HomeAgent(NodeId(2)));
    assert_eq!(sent, [want], "the home acknowledges what it granted");
    assert_eq!(rig.entry(block()), EntryView { lock: 0, status: Shared, copyset: nodes([3]) });
    rig.switch.invariants();
}

#[test]
fn a_busy_lock_does_not_refuse_what_went_home() {
    let mut rig = Rig::new();
    let miss = request(PacketKind::WriteMiss, block(), requester(1, 0), 1);
    assert!(goes_home(&rig.send(&miss)));
    rig.install(block(), Shared, nodes([3]));
    rig.send(&request(PacketKind::WriteMiss, block(), requester(0, 0), 1));
    assert!(goes_home(&rig.send(&miss)), "the home may have granted it already");
}

#[test]
fn a_late_duplicate_of_an_unlocked_request_is_dropped_whoever_kept_the_entry() {
    let mut rig = Rig::new();
    rig.install(block(), Shared, nodes([3]));
    let miss = request(PacketKind::ReadMiss, block(), requester(1, 0), 21);
    rig.send(&miss);
    rig.close(&unlock(&miss, Shared, nodes([1, 3])));
    rig.assert_dropped(&miss, Drop::StaleRequest);
    assert_eq!(rig.lock(block()), 0);

    // The same for an event that the home kept: the switch has seen its unlock too.
    let mut rig = Rig::new();
    let miss = request(PacketKind::ReadMiss, block(), requester(1, 0), 21);
    rig.send(&miss);
    rig.send(&unlock_at_home(&miss, Shared, nodes([1])));
    rig.install(block(), Shared, nodes([1]));
    rig.assert_dropped(&miss, Drop::StaleRequest);
    assert_eq!(rig.lock(block()), 0);
}

#[test]
fn a_duplicate_between_an_unlocks_passes_takes_no_lock() {
    let mut rig = Rig::new();
    rig.install(block(), Shared, nodes([3]));
    let miss = request(PacketKind::ReadMiss, block(), requester(1, 0), 21);
    rig.send(&miss);
    let again = rig.begin(&unlock(&miss, Shared, nodes([1, 3])));
    rig.assert_dropped(&miss, Drop::StaleRequest);
    assert_eq!(rig.lock(block()), 1);
    rig.second(again);
    assert_eq!(rig.lock(block()), 0);
    rig.switch.invariants();
}

#[test]
fn an_unlock_repeated_between_its_passes_is_dropped_and_later_acknowledged_again() {
    let mut rig = Rig::new();
    rig.install(block(), Shared, nodes([3]));
    let miss = request(PacketKind::WriteMiss, block(), requester(1, 0), 21);
    rig.send(&miss);
    let done = unlock(&miss, Modified, nodes([1]));
    let again = rig.begin(&done);
    rig.assert_dropped(&done, Drop::InFlight);
    assert_acknowledged(&rig.second(again), &done);

    // Somebody else goes on with the block before the duplicate arrives.
    let next = request(PacketKind::ReadMiss, block(), requester(0, 0), 1);
    assert!(is_forwarded(&rig.send(&next)));
    let before = rig.entry(block());
    rig.close(&done);
    assert_eq!(rig.entry(block()), before, "an unlock takes effect once");
}

#[test]
fn an_older_unlock_is_dropped() {
    let mut rig = Rig::new();
    rig.install(block(), Shared, nodes([3]));
    let old = request(PacketKind::ReadMiss, block(), requester(1, 0), 21);
    rig.send(&old);
    let old_unlock = unlock(&old, Shared, nodes([1, 3]));
    rig.close(&old_unlock);
    let new = request(PacketKind::LockRead, block(), requester(1, 0), 23);
    rig.send(&new);
    rig.assert_dropped(&Packet { seq: Seq(19), ..old_unlock }, Drop::StaleUnlock);
    assert_eq!(rig.lock(block()), 1);

    // The last unlock, late, with the event after next in flight: nobody waits for it any more.
    rig.assert_dropped(&old_unlock, Drop::InFlight);
    rig.close(&unlock(&new, Shared, nodes([])));
    rig.assert_dropped(&old_unlock, Drop::StaleUnlock);
    assert_eq!(rig.lock(block()), 0);
}

#[test]
fn the_next_event_runs_while_the_last_unlock_is_between_its_passes() {
    let mut rig = Rig::new();
    rig.install(block(), Shared, nodes([3]));
    let first = request(PacketKind::LockRead, block(), requester(1, 0), 21);
    let second = request(PacketKind::LockRead, block(), requester(1, 0), 22);
    rig.send(&first);
    let again = rig.begin(&unlock(&first, Shared, nodes([])));
    assert!(status_of(&rig.send(&second)).is_granted(), "the other parity has a score of its own");
    rig.second(again);
    assert_eq!(rig.lock(block()), 1);
    rig.close(&unlock(&second, Shared, nodes([])));
    assert_eq!(rig.lock(block()), 0);
}

#[test]
fn the_score_that_is_released_is_the_score_of_the_first_pass() {
    let mut rig = Rig::new();
    rig.install(block(), Shared, nodes([3]));
    let mine = request(PacketKind::ReadMiss, block(), requester(1, 0), 21);
    let theirs = request(PacketKind::ReadMiss, block(), requester(0, 0), 1);
    rig.send(&mine);
    rig.send(&mine);
    let again = rig.begin(&unlock(&mine, Shared, nodes([1, 3])));
    rig.send(&theirs);
    rig.send(&theirs);
    rig.second(again);
    assert_eq!(rig.lock(block()), 2);
    rig.switch.invariants();
}

#[test]
fn concurrent_read_misses_leave_the_union_of_their_copysets() {
    let mut rig = Rig::new();
    rig.install(block(), Modified, nodes([3]));
    let a = request(PacketKind::ReadMiss, block(), requester(0, 0), 1);
    let b = request(PacketKind::ReadMiss, block(), requester(1, 0), 1);
    rig.send(&a);
    rig.send(&b);
    rig.close(&unlock(&a, Shared, nodes([0, 3])));
    rig.close(&unlock(&b, Shared, nodes([1, 3])));
    assert_eq!(rig.entry(block()), EntryView { lock: 0, status: Shared, copyset: nodes([0, 1, 3]) });
}

#[test]
fn unlocks_install_metadata_only_for_the_events_that_change_them() {
    for (kind, before, after) in [
        (PacketKind::WriteMiss, (Shared, nodes([3])), (Modified, nodes([1]))),
        (PacketKind::WriteShared, (Shared, nodes([1, 3])), (Modified, nodes([1]))),
        (PacketKind::EvictShared, (Shared, nodes([1, 3])), (Shared, nodes([3]))),
        (PacketKind::EvictModified, (Modified, nodes([1])), (Unshared, nodes([]))),
        (PacketKind::Purge, (Shared, nodes([0, 3])), (Unshared, nodes([]))),
    ] {
        let mut rig = Rig::new();
        rig.install(block(), before.0, before.1);
        let asked = request(kind, block(), requester(1, 0), 1);
        rig.send(&asked);
        rig.close(&unlock(&asked, after.0, after.1));
        assert_eq!(rig.entry(block()), EntryView { lock: 0, status: after.0, copyset: after.1 }, "{kind:?}");
    }
    for kind in [PacketKind::LockRead, PacketKind::LockWrite] {
        let mut rig = Rig::new();
        let tag = block().lock_entry();
        rig.install(tag, Unshared, nodes([]));
        let asked = request(kind, tag, requester(1, 0), 1);
        rig.send(&asked);
        rig.close(&unlock(&asked, Modified, nodes([1])));
        assert_eq!(rig.entry(tag), EntryView { lock: 0, status: Unshared, copyset: nodes([]) }, "{kind:?}");
    }
}

#[test]
fn an_unlock_of_an_event_that_never_arrived_is_acknowledged_and_harmless() {
    let mut rig = Rig::new();
    rig.install(block(), Shared, nodes([3]));
    rig.send(&request(PacketKind::WriteMiss, block(), requester(0, 0), 1));
    let before = rig.entry(block());
    for (seq, kind) in [
        (21, PacketKind::ReadMiss),
        (23, PacketKind::WriteMiss),
        (25, PacketKind::LockWrite),
        (27, PacketKind::Purge),
    ] {
        let stray = unlock(&request(kind, block(), requester(1, 0), seq), Modified, nodes([1]));
        rig.close(&stray);
        rig.close(&stray);
        assert_eq!(rig.entry(block()), before, "{kind:?}");
    }
    rig.switch.invariants();
}

#[test]
fn a_block_and_its_application_lock_are_entries_of_their_own() {
    let mut rig = Rig::new();
    rig.install(block(), Shared, nodes([3]));
    rig.install(block().lock_entry(), Unshared, nodes([]));
    let lock = request(PacketKind::LockWrite, block().lock_entry(), requester(1, 0), 1);
    assert!(status_of(&rig.send(&lock)).is_granted());
    let miss = request(PacketKind::WriteMiss, block(), requester(1, 1), 1);
    assert!(is_forwarded(&rig.send(&miss)), "the holder's own miss is not refused");
}
