//! The home agent's `on_request`: lock, check and forward what the home keeps, data for what the switch keeps
//! (Concordia, sections 5.1.1 and 5.2; Table 3 as PROTOCOLS.md restores it).

use node::{DataRef, Drop};
use wire::{BlockTag, Endpoint, GlobalStatus, Packet, PacketKind, Refusal, RequesterId, Status};

use crate::coherence::packets::{
    agent, at_home, home_of, mine, nodes, requester, theirs, unlock, write_back,
};
use crate::coherence::rig::{Effects, Rig, carrying};

const KINDS: [PacketKind; 8] = [
    PacketKind::ReadMiss,
    PacketKind::WriteMiss,
    PacketKind::WriteShared,
    PacketKind::EvictShared,
    PacketKind::EvictModified,
    PacketKind::LockRead,
    PacketKind::LockWrite,
    PacketKind::Purge,
];

fn requester_of(node: u16) -> Endpoint {
    Endpoint::Requester(wire::NodeId(node))
}

/// PacketKind, receiver, and whether it is to provide the data, of what was sent.
fn sent(out: &Effects) -> Vec<(PacketKind, Endpoint, bool)> {
    out.sent().iter().map(|sent| (sent.packet.kind, sent.packet.to, sent.packet.provider)).collect()
}

fn refusal(out: &Effects) -> Option<Refusal> {
    match out.only().packet.status {
        Status::Refused(why) => Some(why),
        Status::Granted => None,
    }
}

/// One whole event, with the metadata that it leaves.
fn event<const N: usize>(rig: &mut Rig, request: &Packet, after: GlobalStatus, copyset: [u16; N]) {
    let _ = rig.packet(*request);
    assert_eq!(rig.packet(unlock(request, after, copyset)).kinds(), [PacketKind::UnlockAck]);
}

#[test]
fn a_miss_on_a_block_that_nobody_caches_is_answered_with_the_memorys_data_under_the_lock() {
    for kind in [PacketKind::ReadMiss, PacketKind::WriteMiss] {
        let mut rig = Rig::home();
        let _ = rig.packet(carrying(write_back(mine(1), 1), 7));
        let answer = rig.packet(at_home(kind, mine(1), requester(3, 0), 1)).only();
        assert_eq!(
            (answer.packet.kind, answer.packet.to, answer.data),
            (PacketKind::Ack, requester_of(3), Some(DataRef(7)))
        );
        assert_eq!((answer.packet.from, answer.packet.in_switch), (home_of(mine(1)), false));
        assert!(rig.entry(mine(1)).is_locked());
    }
}

#[test]
fn for_a_block_of_the_switch_the_home_gives_data_and_takes_no_lock() {
    let mut rig = Rig::home();
    for node in [0, 3] {
        let request = at_home(PacketKind::WriteMiss, mine(1), requester(node, 0), 1);
        let out = rig.packet(Packet { in_switch: true, ..request });
        assert_eq!((refusal(&out), out.only().data), (None, Some(DataRef(0))));
    }
    assert!(!rig.entry(mine(1)).is_locked());
}

#[test]
fn for_a_block_of_the_switch_anything_but_a_miss_is_nonsense() {
    for kind in KINDS.into_iter().filter(|kind| !matches!(kind, PacketKind::ReadMiss | PacketKind::WriteMiss))
    {
        let mut rig = Rig::home();
        let request = at_home(kind, mine(1), requester(3, 0), 1);
        rig.drops(Drop::Nonsense, Packet { in_switch: true, ..request });
    }
}

#[test]
fn a_miss_on_a_modified_block_goes_to_its_owner() {
    for kind in [PacketKind::ReadMiss, PacketKind::WriteMiss] {
        let mut rig = Rig::home();
        rig.set_entry(mine(1), GlobalStatus::Modified, [2]);
        let out = rig.packet(at_home(kind, mine(1), requester(3, 0), 1));
        assert_eq!(sent(&out), [(kind, agent(2), true)]);
        let found = out.only().packet;
        assert_eq!((found.global_status, found.copyset), (GlobalStatus::Modified, nodes([2])));
    }
}

#[test]
fn a_read_of_a_shared_block_goes_to_one_sharer_which_the_request_picks() {
    for (arg, to) in [(0, agent(0)), (u64::from(u32::MAX), agent(2))] {
        let mut rig = Rig::home();
        rig.set_entry(mine(1), GlobalStatus::Shared, [0, 2]);
        let request = Packet { arg, ..at_home(PacketKind::ReadMiss, mine(1), requester(3, 0), 1) };
        assert_eq!(sent(&rig.packet(request)), [(PacketKind::ReadMiss, to, true)]);
        assert_eq!(
            sent(&rig.packet(request)),
            [(PacketKind::ReadMiss, to, true)],
            "its duplicate picks the same"
        );
    }
}

#[test]
fn a_write_of_a_shared_block_goes_to_all_sharers_and_one_provides() {
    let mut rig = Rig::home();
    rig.set_entry(mine(1), GlobalStatus::Shared, [0, 1, 2]);
    let out = sent(&rig.packet(at_home(PacketKind::WriteMiss, mine(1), requester(3, 0), 1)));
    assert_eq!(out.iter().map(|it| it.1).collect::<Vec<_>>(), [agent(0), agent(1), agent(2)]);
    assert_eq!(out.iter().filter(|it| it.2).count(), 1);
}

#[test]
fn an_upgrade_goes_to_the_other_sharers_or_straight_back() {
    let mut rig = Rig::home();
    rig.set_entry(mine(1), GlobalStatus::Shared, [0, 2, 3]);
    let out = rig.packet(at_home(PacketKind::WriteShared, mine(1), requester(3, 0), 1));
    let kind = PacketKind::WriteShared;
    assert_eq!(sent(&out), [(kind, agent(0), false), (kind, agent(2), false)]);
    rig.set_entry(mine(2), GlobalStatus::Shared, [3]);
    let out = rig.packet(at_home(kind, mine(2), requester(3, 1), 1));
    assert_eq!(sent(&out), [(PacketKind::Ack, requester_of(3), false)]);
}

#[test]
fn evictions_locks_and_purges_of_what_nobody_has_go_straight_back() {
    let cases: [(PacketKind, BlockTag, GlobalStatus, &[u16]); 5] = [
        (PacketKind::EvictShared, mine(1), GlobalStatus::Shared, &[3]),
        (PacketKind::EvictModified, mine(1), GlobalStatus::Modified, &[3]),
        (PacketKind::LockRead, mine(1).lock_entry(), GlobalStatus::Unshared, &[]),
        (PacketKind::LockWrite, mine(1).lock_entry(), GlobalStatus::Unshared, &[]),
        (PacketKind::Purge, mine(1), GlobalStatus::Unshared, &[]),
    ];
    for (kind, tag, status, copies) in cases {
        let mut rig = Rig::home();
        match copies {
            [node] => rig.set_entry(mine(1), status, [*node]),
            _ => rig.set_entry(mine(1), status, []),
        }
        let out = rig.packet(at_home(kind, tag, requester(3, 0), 1));
        assert_eq!(
            (sent(&out), refusal(&out)),
            (vec![(PacketKind::Ack, requester_of(3), false)], None),
            "{kind:?}"
        );
    }
}

#[test]
fn a_purge_goes_to_everybody_with_a_copy() {
    let mut rig = Rig::home();
    rig.set_entry(mine(1), GlobalStatus::Shared, [0, 3]);
    let out = rig.packet(at_home(PacketKind::Purge, mine(1), requester(3, 0), 1));
    assert_eq!(sent(&out), [(PacketKind::Purge, agent(0), false), (PacketKind::Purge, agent(3), false)]);
}

#[test]
fn a_duplicate_of_a_granted_request_goes_the_same_way_marked_as_repeated() {
    let mut rig = Rig::home();
    rig.set_entry(mine(1), GlobalStatus::Modified, [2]);
    let request = at_home(PacketKind::ReadMiss, mine(1), requester(3, 0), 1);
    let first = rig.packet(request).only().packet;
    let second = rig.packet(request).only().packet;
    assert!(!first.repeated);
    assert_eq!(second, Packet { repeated: true, ..first });
}

#[test]
fn a_duplicate_takes_no_second_lock() {
    for kind in [PacketKind::ReadMiss, PacketKind::WriteMiss] {
        let mut rig = Rig::home();
        let request = at_home(kind, mine(1), requester(3, 0), 1);
        let _ = rig.packet(request);
        let _ = rig.packet(request);
        event(&mut rig, &request, GlobalStatus::Shared, [3]);
        assert!(!rig.entry(mine(1)).is_locked(), "{kind:?}");
    }
}

#[test]
fn readers_share_the_lock_and_writers_do_not() {
    use PacketKind::{ReadMiss, WriteMiss};
    let locked = Some(Refusal::Locked);
    for (first, second, expected) in [
        (ReadMiss, ReadMiss, None),
        (ReadMiss, WriteMiss, locked),
        (WriteMiss, ReadMiss, locked),
        (WriteMiss, WriteMiss, locked),
    ] {
        let mut rig = Rig::home();
        let _ = rig.packet(at_home(first, mine(1), requester(0, 0), 1));
        let out = rig.packet(at_home(second, mine(1), requester(3, 0), 1));
        assert_eq!(refusal(&out), expected, "{second:?} during {first:?}");
    }
}

#[test]
fn a_block_and_its_application_lock_do_not_lock_each_other() {
    let mut rig = Rig::home();
    let _ = rig.packet(at_home(PacketKind::LockWrite, mine(1).lock_entry(), requester(3, 0), 1));
    let out = rig.packet(at_home(PacketKind::WriteMiss, mine(1), requester(3, 1), 1));
    assert_eq!(refusal(&out), None);
}

#[test]
fn a_request_older_than_the_last_of_its_parity_is_stale() {
    let mut rig = Rig::home();
    let from: RequesterId = requester(3, 0);
    event(&mut rig, &at_home(PacketKind::ReadMiss, mine(1), from, 4), GlobalStatus::Shared, [3]);
    rig.drops(Drop::Stale, at_home(PacketKind::ReadMiss, mine(2), from, 2));
    assert_eq!(
        rig.packet(at_home(PacketKind::ReadMiss, mine(2), from, 3)).kinds(),
        [PacketKind::Ack],
        "the other parity"
    );
}

#[test]
fn a_request_after_its_unlock_is_stale() {
    let mut rig = Rig::home();
    let request = at_home(PacketKind::ReadMiss, mine(1), requester(3, 0), 1);
    event(&mut rig, &request, GlobalStatus::Shared, [3]);
    rig.drops(Drop::Stale, request);
}

#[test]
fn a_request_from_the_future_is_decided_like_any_other() {
    let mut rig = Rig::home();
    let out = rig.packet(at_home(PacketKind::ReadMiss, mine(1), requester(3, 0), 99));
    assert_eq!(refusal(&out), None);
}

#[test]
fn a_request_about_another_homes_block_is_nonsense() {
    for in_switch in [false, true] {
        let mut rig = Rig::home();
        let request = at_home(PacketKind::ReadMiss, theirs(1), requester(3, 0), 1);
        rig.drops(Drop::Nonsense, Packet { to: home_of(mine(1)), in_switch, ..request });
    }
}
