//! The parser: which packets the program handles, and what it sees of them.
//!
//! What an array is to do in a pass follows from the kind of packet, the pass, and, in a second pass, from what
//! the first found; so the parser supplies it, as the operation fields.

use wire::{Kind, Packet, SlotId};

use super::counters::Drop;
use super::layout::{Fields, class, last_op, lock_op, meta_op, score, score_op, tag_op};
use super::switch::{Carried, Config};
use crate::pipeline::{Phv, alu};

/// Refuses what is not for the switch, of another time, or from nowhere.
pub(super) fn admit(packet: &Packet, config: &Config) -> Result<(), Drop> {
    let Packet { kind, event, requester, tag, .. } = packet;
    if !kind.is_request() && *kind != Kind::Unlock {
        return Err(Drop::Kind);
    }
    if packet.epoch != config.epoch {
        return Err(Drop::Epoch);
    }
    if requester.node.index() >= config.nodes || requester.slot.index() >= SlotId::PER_NODE {
        return Err(Drop::Requester);
    }
    if tag.home().index() >= config.nodes {
        return Err(Drop::Tag);
    }
    if *kind == Kind::Unlock && !event.is_request() {
        return Err(Drop::Event);
    }
    if matches!(kind, Kind::AddToSwitch | Kind::RemoveFromSwitch) && requester.node != tag.home() {
        return Err(Drop::NotHome);
    }
    Ok(())
}

/// Fills the PHV of an admitted packet.
pub(super) fn parse(f: &Fields, packet: &Packet, carried: Option<Carried>, config: &Config, phv: &mut Phv) {
    phv.clear();
    let slot = packet.requester.index() * 2 + packet.seq.parity();
    phv.set(f.slot, slot as u64);
    phv.set(f.seq, packet.seq.0);
    phv.set(f.key, !packet.tag.bits());
    match (packet.kind, carried) {
        (Kind::Unlock, Some(Carried::Score(score))) => unlock_again(f, phv, packet, u64::from(score), config),
        (Kind::Unlock, _) => unlock(f, phv),
        (Kind::AddToSwitch, Some(Carried::Way(way))) => {
            add_again(f, phv, u64::from(way));
            metadata(f, phv, packet, config);
        }
        (Kind::AddToSwitch, _) => add(f, phv),
        _ => request(f, phv, packet),
    }
}

fn request(f: &Fields, phv: &mut Phv, packet: &Packet) {
    phv.set(f.class, class::REQUEST);
    phv.set(f.event, packet.kind as u64);
    phv.set(f.node_bit, 1 << packet.requester.node.0);
    phv.set(f.last_op, last_op::COMPARE);
    phv.set(f.tag_op, tag_op::MATCH);
    phv.set(f.lock_op, if packet.kind.takes_read_lock() { lock_op::TRY_READ } else { lock_op::TRY_WRITE });
    phv.set(f.meta_op, meta_op::READ);
    phv.set(f.score_op, score_op::COUNT_OR_MARK);
    // If no way has the tag.
    phv.set(f.verdict, score::HOME);
}

fn unlock(f: &Fields, phv: &mut Phv) {
    phv.set(f.class, class::UNLOCK);
    phv.set(f.last_op, last_op::RAISE);
    // With verdict 0 that only reads.
    phv.set(f.score_op, score_op::READ_OR_MARK);
}

/// Releases what the score says, installs the new metadata if the event was granted by the switch, and resets
/// the score to verdict 0.
fn unlock_again(f: &Fields, phv: &mut Phv, packet: &Packet, score: u64, config: &Config) {
    phv.set(f.class, class::UNLOCK_AGAIN);
    phv.set(f.order, alu::NEWER);
    phv.set(f.score_op, score_op::SET);
    let count = score & score::COUNT;
    if count == 0 {
        return;
    }
    // A mark says that this event was not granted by the switch, whatever the unlock claims.
    let granted = packet.status.is_granted() && packet.in_switch && score & score::MARKS == 0;
    let clears = match packet.event {
        // The COMMIT of a removal.
        Kind::RemoveFromSwitch => granted,
        // A duplicate got in after the first copy had been refused.
        Kind::AddToSwitch => !packet.status.is_granted(),
        _ => false,
    };
    if clears {
        phv.set(f.tag_op, tag_op::CLEAR);
        phv.set(f.lock_op, lock_op::SET);
        phv.set(f.meta_op, meta_op::SET);
        return;
    }
    phv.set(f.tag_op, tag_op::MATCH);
    phv.set(f.lock_op, lock_op::RELEASE);
    phv.set(f.release, if packet.event.takes_read_lock() { count } else { alu::WRITER });
    let meta_op = match packet.event {
        Kind::ReadMiss => meta_op::UNION,
        Kind::LockRead | Kind::LockWrite | Kind::AddToSwitch | Kind::RemoveFromSwitch => 0,
        _ => meta_op::SET,
    };
    if granted && meta_op != 0 {
        phv.set(f.meta_op, meta_op);
        metadata(f, phv, packet, config);
    }
}

fn add(f: &Fields, phv: &mut Phv) {
    phv.set(f.class, class::ADD);
    phv.set(f.last_op, last_op::COMPARE);
    phv.set(f.tag_op, tag_op::PROBE);
    phv.set(f.score_op, score_op::READ_OR_MARK);
}

/// Claims the way, inserts the entry locked, and puts the outcome in the score in place of the CLAIMING mark:
/// one acquisition if the way was still empty, else a refusal.
fn add_again(f: &Fields, phv: &mut Phv, way: u64) {
    phv.set(f.class, class::ADD_AGAIN);
    phv.set(f.last_op, last_op::COMPARE);
    phv.set(f.tag_op, tag_op::CLAIM + way);
    phv.set(f.lock_op, lock_op::TRY_WRITE);
    phv.set(f.meta_op, meta_op::SET);
    phv.set(f.score_op, score_op::SET);
    phv.set(f.verdict, score::REFUSED);
}

/// The packet's metadata, as the entry shall have them: without nodes that the rack does not have, or a request
/// would be sent to them.
fn metadata(f: &Fields, phv: &mut Phv, packet: &Packet, config: &Config) {
    let everyone = u64::MAX >> (64 - config.nodes);
    phv.set(f.new_status, packet.global_status as u64);
    phv.set(f.new_copyset, packet.copyset.bits() & everyone);
}
