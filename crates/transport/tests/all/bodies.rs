//! Which messages may wait for coalescing, and which somebody is woken for: said here for every kind, so that a new one has to be
//! thought of.

use transport::{Body, Contents};
use wire::roce::{Extension, Opcode, Psn, QpNumber};
use wire::{
    BlockTag, Endpoint, GlobalAddr, LockEnd, LockKind, LockPacket, NodeId, Packet, PacketKind, RequesterId,
    Seq, SlotId,
};

const NODE: NodeId = NodeId(3);

/// What somebody waits for, and what may wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Haste {
    /// Somebody is woken for it.
    Urgent,
    /// Nobody is woken, but it goes at once.
    Prompt,
    /// It may wait until something else goes to the same peer.
    CanWait,
}

use Haste::{CanWait, Prompt, Urgent};

fn haste(body: &Body<'_>) -> Haste {
    match (body.is_urgent(), body.can_wait()) {
        (true, false) => Urgent,
        (false, false) => Prompt,
        (false, true) => CanWait,
        (true, true) => panic!("somebody waits for what may wait: {body:?}"),
    }
}

/// What a packet of the coherence protocol is to be, by its kind and by whom it is for.
fn expected(kind: PacketKind, to: Endpoint) -> Haste {
    match kind {
        // Its sender goes on without it; whoever would miss it asks the same switch.
        PacketKind::Unlock if to == Endpoint::Switch => CanWait,
        // At a home, the next request for the block comes by another way, and is refused as long as this one is missing.
        PacketKind::Unlock => Urgent,
        // The requester goes on with one event without it, and not with two.
        PacketKind::UnlockAck => Prompt,
        PacketKind::ReadMiss
        | PacketKind::WriteMiss
        | PacketKind::WriteShared
        | PacketKind::EvictShared
        | PacketKind::EvictModified
        | PacketKind::LockRead
        | PacketKind::LockWrite
        | PacketKind::Purge
        | PacketKind::AddToSwitch
        | PacketKind::RemoveFromSwitch
        | PacketKind::Peek
        | PacketKind::Ack
        | PacketKind::WriteBack
        | PacketKind::WriteBackAck
        | PacketKind::Close
        | PacketKind::CloseAck
        | PacketKind::Follow
        | PacketKind::Handover
        | PacketKind::HandoverAck
        | PacketKind::HotReport
        | PacketKind::AddNotice
        | PacketKind::Demote
        | PacketKind::Report
        | PacketKind::ReportAck
        | PacketKind::ChunkRequest
        | PacketKind::HomeReply
        | PacketKind::Mark
        | PacketKind::Free
        | PacketKind::FreeReply
        | PacketKind::Prepare
        | PacketKind::Prepared
        | PacketKind::Commit
        | PacketKind::Committed
        | PacketKind::Inquire
        | PacketKind::Inquired
        | PacketKind::Replicate
        | PacketKind::Replicated
        | PacketKind::Refill
        | PacketKind::Refilled => Urgent,
    }
}

/// What a packet about a lock is to be: all go at once.
fn expected_of_lock(kind: LockKind) -> Haste {
    match kind {
        // Whoever moved the lock keeps the data until it comes, and nobody is kept from anything by that.
        LockKind::Received => Prompt,
        LockKind::Acquire
        | LockKind::Forward
        | LockKind::Serve
        | LockKind::Lend
        | LockKind::Granted
        | LockKind::Lent
        | LockKind::Invalidate
        | LockKind::Invalidated
        | LockKind::Poll
        | LockKind::Move
        | LockKind::Approved
        | LockKind::Denied
        | LockKind::Hand
        | LockKind::WriteBack
        | LockKind::Data
        | LockKind::Busy
        | LockKind::Refused
        | LockKind::Install
        | LockKind::Installed
        | LockKind::Report
        | LockKind::Reported
        | LockKind::Free
        | LockKind::Reclaim
        | LockKind::Freed
        | LockKind::LastReport
        | LockKind::Remove
        | LockKind::Removed => Urgent,
    }
}

#[test]
fn of_the_coherence_protocol_unlocks_to_the_switch_may_wait_and_nothing_else() {
    let requester = RequesterId { node: NODE, slot: SlotId(0) };
    let peers = [
        Endpoint::Switch,
        Endpoint::Requester(NODE),
        Endpoint::CacheAgent(NODE),
        Endpoint::HomeAgent(NODE),
        Endpoint::Allocator(NODE),
        Endpoint::Shadow(NODE),
    ];
    for kind in PacketKind::ALL {
        // Whatever event it belongs to.
        for (event, to) in PacketKind::ALL.into_iter().flat_map(|event| peers.map(|to| (event, to))) {
            let packet = Packet::request(kind, BlockTag::from_bits(0), requester, Seq(1));
            let packet = Packet { event, to, ..packet };
            let found = haste(&Body::Packet(&packet, Contents::None));
            assert_eq!(found, expected(kind, to), "{kind:?} of {event:?} to {to:?}");
        }
    }
}

#[test]
fn what_is_about_locks_goes_at_once() {
    for kind in LockKind::ALL {
        for to in [LockEnd::Switch, LockEnd::Agent(NODE), LockEnd::Home(NODE)] {
            let packet = LockPacket { to, ..LockPacket::new(kind, GlobalAddr::new(NODE, 0), 8, NODE) };
            let found = haste(&Body::Lock(&packet, Contents::None));
            assert_eq!(found, expected_of_lock(kind), "{kind:?} to {to:?}");
        }
    }
}

#[test]
fn what_nics_and_the_control_plane_say_goes_at_once() {
    for &opcode in Opcode::ALL {
        let packet = wire::roce::Packet::new(opcode, QpNumber::new(1), Psn::new(0), Extension::Plain);
        assert_eq!(haste(&Body::Verbs(&packet, 0, Contents::None)), Urgent, "{opcode:?}");
    }
    assert_eq!(haste(&Body::Control(&[1])), Urgent);
}
