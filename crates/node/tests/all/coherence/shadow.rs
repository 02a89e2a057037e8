//! The shadow node: it asks homes to take cold blocks back from the switch (Concordia, section 5.2.2).

use node::Drop;
use switch::coherence::set_of;
use wire::{BlockTag, Endpoint, PacketKind, Refusal, Status};

use crate::coherence::migration::EPOCH_SPAN;
use crate::coherence::packets::{ME, theirs, to_shadow};
use crate::coherence::rig::{Effects, Rig};

/// A switch with two sets.
const ENTRIES: usize = 8;
const COLLISION: Status = Status::Refused(Refusal::Collision);

fn rig() -> Rig {
    Rig::with(|config| (config.shadow, config.switch_entries) = (ME, ENTRIES))
}

/// So many blocks of this set.
fn of_set(set: usize, count: usize) -> Vec<BlockTag> {
    let all = (0..200).map(theirs).filter(|tag| set_of(ENTRIES, *tag) == set);
    all.take(count).collect()
}

fn notice(rig: &mut Rig, tag: BlockTag) {
    assert!(rig.packet(to_shadow(PacketKind::AddNotice, tag, Status::Granted, 0)).is_empty());
}

fn report(rig: &mut Rig, tag: BlockTag, count: u64) {
    assert!(rig.packet(to_shadow(PacketKind::HotReport, tag, Status::Granted, count)).is_empty());
}

fn demoted(out: &Effects) -> Vec<BlockTag> {
    for sent in out.sent() {
        assert_eq!(
            (sent.packet.kind, sent.packet.to),
            (PacketKind::Demote, Endpoint::HomeAgent(sent.packet.tag.home()))
        );
    }
    out.sent().iter().map(|sent| sent.packet.tag).collect()
}

#[test]
fn a_collision_demotes_the_coldest_block_of_its_set() {
    let mut rig = rig();
    let (set, other) = (of_set(0, 4), of_set(1, 1));
    for tag in [set[0], set[1], set[2], other[0]] {
        notice(&mut rig, tag);
    }
    report(&mut rig, set[0], 5);
    report(&mut rig, set[2], 3);
    let out = rig.packet(to_shadow(PacketKind::AddNotice, set[3], COLLISION, 0));
    assert_eq!(demoted(&out), [set[1]]);
    let out = rig.packet(to_shadow(PacketKind::AddNotice, set[3], COLLISION, 0));
    assert_eq!(demoted(&out), [set[2]], "a block is asked for once");
}

#[test]
fn a_collision_in_a_set_that_the_shadow_knows_nothing_of_demotes_nothing() {
    let mut rig = rig();
    notice(&mut rig, of_set(1, 1)[0]);
    let out = rig.packet(to_shadow(PacketKind::AddNotice, of_set(0, 1)[0], COLLISION, 0));
    assert!(demoted(&out).is_empty());
}

#[test]
fn a_nearly_full_switch_loses_its_coldest_blocks_at_the_end_of_an_epoch() {
    let mut rig = rig();
    let blocks: Vec<_> = of_set(0, 4).into_iter().chain(of_set(1, 4)).collect();
    for (nth, tag) in (0..).zip(&blocks) {
        notice(&mut rig, *tag);
        report(&mut rig, *tag, if nth == 5 { 0 } else { 10 + nth });
    }
    assert_eq!(demoted(&rig.wait(EPOCH_SPAN)), [blocks[5]], "one in eight places is kept free");
    assert!(rig.wait(EPOCH_SPAN).is_empty());
}

#[test]
fn heat_halves_in_sixteen_epochs() {
    let mut rig = rig();
    let set = of_set(0, 3);
    notice(&mut rig, set[0]);
    report(&mut rig, set[0], 8);
    for _ in 0..32 {
        let _ = rig.wait(EPOCH_SPAN);
    }
    notice(&mut rig, set[1]);
    report(&mut rig, set[1], 4);
    let out = rig.packet(to_shadow(PacketKind::AddNotice, set[2], COLLISION, 0));
    assert_eq!(demoted(&out), [set[0]], "what was hot long ago is colder than what is warm now");
}

#[test]
fn a_duplicate_notice_does_not_forget_the_heat() {
    let mut rig = rig();
    let set = of_set(0, 3);
    for tag in [set[0], set[1]] {
        notice(&mut rig, tag);
    }
    report(&mut rig, set[0], 9);
    report(&mut rig, set[1], 5);
    notice(&mut rig, set[0]);
    let out = rig.packet(to_shadow(PacketKind::AddNotice, set[2], COLLISION, 0));
    assert_eq!(demoted(&out), [set[1]]);
}

#[test]
fn a_report_about_a_block_that_is_not_in_the_switch_is_forgotten() {
    let mut rig = rig();
    let set = of_set(0, 2);
    report(&mut rig, set[0], 9);
    let out = rig.packet(to_shadow(PacketKind::AddNotice, set[1], COLLISION, 0));
    assert!(demoted(&out).is_empty());
}

#[test]
fn a_node_that_keeps_no_shadow_is_not_told() {
    let mut rig = Rig::new();
    rig.drops(Drop::Nonsense, to_shadow(PacketKind::AddNotice, theirs(1), Status::Granted, 0));
    rig.drops(Drop::Nonsense, to_shadow(PacketKind::HotReport, theirs(1), Status::Granted, 1));
}
