//! How a refused operation waits: a random while, longer after more refusals, and bounded (PROTOCOLS.md,
//! FlowCC 7; `node::Backoff`).

use node::{Access, Retransmission};
use wire::{Nanos, Packet, PacketKind, Refusal};

use crate::coherence::packets::{refused, theirs, unlock_ack};
use crate::coherence::rig::{BACKOFF, Rig};

/// A node of which nothing but a backoff wants to be called in the next 10 ms.
fn rig() -> Rig {
    Rig::with(|config| config.retransmission = Retransmission::Never)
}

/// The event is refused, and that is acknowledged; the wait that follows.
fn refuse(rig: &mut Rig, request: &Packet, random: u32) -> Nanos {
    rig.random = random;
    let unlock = rig.packet(refused(request, Refusal::Locked)).only().packet;
    assert!(rig.packet(unlock_ack(&unlock)).is_empty());
    rig.due()
}

/// The waits after the `nth` refusal, for many random numbers.
fn waits_after(refusals: u32) -> Vec<Nanos> {
    let wait = |random: u32| {
        let mut rig = rig();
        let mut request = rig.miss(theirs(1), Access::Shared);
        for _ in 1..refusals {
            let _ = refuse(&mut rig, &request, 1);
            request = rig.wait(BACKOFF.most).only().packet;
        }
        refuse(&mut rig, &request, random)
    };
    (0..200).map(wait).collect()
}

#[test]
fn the_first_wait_is_not_longer_than_the_configured_first_one() {
    let longest = waits_after(1).into_iter().max().unwrap();
    assert!(
        longest <= BACKOFF.first,
        "waited {longest} after one refusal, at most {} allowed",
        BACKOFF.first
    );
}

#[test]
fn waits_are_jittered_over_the_whole_range() {
    let mut waits = waits_after(3);
    waits.sort_unstable();
    waits.dedup();
    assert!(waits.len() > 150, "{} different waits of 200", waits.len());
    let longest = waits[waits.len() - 1];
    assert!(waits[0].0 * 10 < longest.0, "from {} to {longest}", waits[0]);
}

#[test]
fn waits_grow_with_every_refusal_and_never_pass_the_bound() {
    let longest = |refusals| waits_after(refusals).into_iter().max().unwrap();
    let (first, third, twelfth, fortieth) = (longest(1), longest(3), longest(12), longest(40));
    assert!(first.0 * 2 < third.0 && third < twelfth, "{first} {third} {twelfth}");
    for wait in [twelfth, fortieth] {
        assert!(wait <= BACKOFF.most && wait.0 * 10 > BACKOFF.most.0 * 9, "{wait}");
    }
}

#[test]
fn nothing_is_asked_before_the_wait_is_over() {
    let mut rig = rig();
    let request = rig.miss(theirs(1), Access::Shared);
    let wait = refuse(&mut rig, &request, 77);
    assert!(rig.wait(wait - Nanos(1)).is_empty());
    assert_eq!(rig.wait(Nanos(1)).kinds(), [PacketKind::ReadMiss]);
}

#[test]
fn a_lock_waits_like_an_access() {
    let mut rig = rig();
    let request = rig.lock(theirs(1), true, false);
    let wait = refuse(&mut rig, &request, 77);
    assert!(wait <= BACKOFF.most);
    assert_eq!(rig.wait(wait).kinds(), [PacketKind::LockWrite]);
}

#[test]
fn an_access_that_finds_every_frame_pinned_looks_again_later() {
    let mut rig = rig();
    let frame = rig.cache_pinned(theirs(1), Access::Shared, 7);
    let _ = rig.cache_pinned(theirs(2), Access::Shared, 8);
    let (_, out) = rig.access(theirs(3), Access::Shared);
    assert!(out.is_empty() && rig.due() <= BACKOFF.first);
    let _ = rig.unpin(frame);
    assert_eq!(rig.wait(BACKOFF.first).kinds(), [PacketKind::EvictShared]);
}
