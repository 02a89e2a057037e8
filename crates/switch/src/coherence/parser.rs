//! The parser: which packets the program handles, and what it sees of them.

use wire::{Packet, PacketKind, RequesterId, Rule, Rules, Seq, SlotId};

use super::counters::Drop;
use super::layout::{Fields, WAYS, lock_op, score};
use super::pass::Pass;
use super::switch::{Carried, SwitchConfig};
use super::wait_queue;
use crate::pipeline::{Phv, alu};

/// Refuses what is not for the switch, of another time, or from nowhere.
pub(super) fn admit<R: Rules>(rules: R, packet: &Packet, config: &SwitchConfig) -> Result<(), Drop> {
    let Packet { kind, event, requester, tag, .. } = packet;
    if !kind.is_request() && *kind != PacketKind::Unlock || *kind == PacketKind::Peek && !config.peeks {
        return Err(Drop::PacketKind);
    }
    if rules.holds(Rule::EpochsAreFenced) && packet.epoch != config.epoch {
        return Err(Drop::Epoch);
    }
    if requester.node.index() >= config.nodes || requester.slot.index() >= SlotId::PER_NODE {
        return Err(Drop::Requester);
    }
    if tag.home().index() >= config.nodes {
        return Err(Drop::Tag);
    }
    if *kind == PacketKind::Unlock && (!event.is_request() || *event == PacketKind::Peek) {
        return Err(Drop::Event);
    }
    if matches!(kind, PacketKind::AddToSwitch | PacketKind::RemoveFromSwitch) && requester.node != tag.home()
    {
        return Err(Drop::NotHome);
    }
    Ok(())
}

/// The kind of pass that an admitted packet makes.
pub(super) fn pass<R: Rules>(
    rules: R,
    packet: &Packet,
    carried: Option<Carried>,
    config: &SwitchConfig,
) -> Pass {
    match (packet.kind, carried) {
        (PacketKind::Unlock, Some(Carried::Score(score))) => {
            unlock_again(rules, packet, u64::from(score), config)
        }
        // The home's business alone, in that mutant.
        (PacketKind::Unlock, _) if !rules.holds(Rule::SwitchRecordsAllUnlocks) && !packet.in_switch => {
            Pass::Reset
        }
        (PacketKind::Unlock, _) if config.queue && packet.repeated => Pass::Handed,
        (PacketKind::Unlock, _) => Pass::Unlock,
        (PacketKind::AddToSwitch, Some(Carried::Way(way))) if usize::from(way) < WAYS => Pass::Claim(way),
        (PacketKind::AddToSwitch, _) => Pass::Add,
        (PacketKind::Peek, _) => Pass::Peek,
        (kind, _) => Pass::Request(kind),
    }
}

/// What there is to release, and whether the event was granted by the switch and so changes the entry.
fn unlock_again<R: Rules>(rules: R, packet: &Packet, score: u64, config: &SwitchConfig) -> Pass {
    if score & score::COUNT == 0 || config.queue && packet.repeated {
        return Pass::Reset;
    }
    let alone = !packet.event.takes_read_lock(rules) || joins_queue(packet) || score & score::REFUSED != 0;
    if config.queue && alone {
        return leave(packet);
    }
    // A mark says that this event was not granted by the switch, whatever the unlock claims.
    let granted = packet.status.is_granted() && packet.in_switch && score & score::MARKS == 0;
    match packet.event {
        // A duplicate got in after the first copy had been refused.
        PacketKind::AddToSwitch if !packet.status.is_granted() => Pass::Clear,
        PacketKind::AddToSwitch | PacketKind::LockRead | PacketKind::LockWrite => Pass::Release,
        // The COMMIT of a removal.
        PacketKind::RemoveFromSwitch if granted => Pass::Clear,
        PacketKind::ReadMiss if granted && rules.holds(Rule::ReadUnlockMerges) => Pass::ReleaseAndMerge,
        _ if granted => Pass::ReleaseAndSet,
        _ => Pass::Release,
    }
}

/// A READ-MISS that has met writers too often takes the lock as they do. Its requester says so in its request and in
/// its unlock.
fn joins_queue(packet: &Packet) -> bool {
    packet.event == PacketKind::ReadMiss && packet.provider
}

/// The event has the lock for writing, or had it handed over: even a READ-MISS has it alone then, and knows all
/// of the metadata.
const fn leave(packet: &Packet) -> Pass {
    match (packet.event, packet.status.is_granted() && packet.in_switch) {
        (PacketKind::AddToSwitch, false) | (PacketKind::RemoveFromSwitch, true) => Pass::Clear,
        (PacketKind::AddToSwitch, _) | (_, false) => Pass::Leave,
        _ => Pass::LeaveAndSet,
    }
}

/// The lock word of an entry in whose queue this event is the last: the writer bit, and who it is. 0 behind the bit is
/// nobody: a migration, which nobody waits for. (Its own code would be a slot's that no thread has.)
pub(super) fn position_in_queue(requester: RequesterId, seq: Seq) -> u64 {
    let code = if requester.slot == SlotId::MIGRATION { 0 } else { wait_queue::code(requester, seq) };
    alu::WRITER | u64::from(code)
}

/// Fills the PHV for a pass, but for the [constants](Pass::constants) of its kind, which its plan knows.
pub(super) fn parse<R: Rules>(
    rules: R,
    f: &Fields,
    packet: &Packet,
    pass: Pass,
    carried: Option<Carried>,
    config: &SwitchConfig,
    phv: &mut Phv,
) {
    phv.clear();
    phv.set(f.slot, (packet.requester.index() * 2 + packet.seq.parity()) as u64);
    phv.set(f.seq, packet.seq.0);
    phv.set(f.key, !packet.tag.bits());
    match pass {
        Pass::Request(kind) => {
            phv.set(f.node_bit, 1 << packet.requester.node.0);
            // If no way has the tag.
            phv.set(f.verdict, score::HOME);
            if config.queue {
                let shares = kind.takes_read_lock(rules) && !joins_queue(packet);
                phv.set(f.lock_op, if shares { lock_op::TRY_READ } else { lock_op::TRY_WRITE });
                phv.set(f.release, position_in_queue(packet.requester, packet.seq));
            }
        }
        Pass::Peek => phv.set(f.node_bit, 1 << packet.requester.node.0),
        // Verdict 0: the score is only read, or reset. A clear sets the lock to release 0.
        Pass::Handed => phv.set(f.followed, score::FOLLOWED),
        Pass::Clear if config.queue => phv.set(f.release, alu::WRITER),
        Pass::Unlock | Pass::Reset | Pass::Clear | Pass::Add => {}
        Pass::Leave => phv.set(f.release, position_in_queue(packet.requester, packet.seq)),
        Pass::LeaveAndSet => {
            phv.set(f.release, position_in_queue(packet.requester, packet.seq));
            metadata(f, phv, packet, config);
        }
        Pass::Release => release(rules, f, phv, packet, carried),
        Pass::ReleaseAndMerge | Pass::ReleaseAndSet => {
            release(rules, f, phv, packet, carried);
            metadata(f, phv, packet, config);
        }
        Pass::Claim(_) => {
            // If the way is not empty any more.
            phv.set(f.verdict, score::REFUSED);
            if config.queue {
                phv.set(f.release, alu::WRITER);
            }
            metadata(f, phv, packet, config);
        }
    }
}

fn release<R: Rules>(rules: R, f: &Fields, phv: &mut Phv, packet: &Packet, carried: Option<Carried>) {
    let count = match carried {
        Some(Carried::Score(score)) => u64::from(score) & score::COUNT,
        _ => 0,
    };
    phv.set(f.release, if packet.event.takes_read_lock(rules) { count } else { alu::WRITER });
}

/// The packet's metadata, as the entry shall have them: without nodes that the rack does not have, or a request
/// would be sent to them.
fn metadata(f: &Fields, phv: &mut Phv, packet: &Packet, config: &SwitchConfig) {
    let everyone = u64::MAX >> (64 - config.nodes);
    phv.set(f.new_status, packet.global_status as u64);
    phv.set(f.new_copyset, packet.copyset.bits() & everyone);
}
