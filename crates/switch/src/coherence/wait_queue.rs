//! Who waits for an entry, in 13 bits: what fits a lock word and a score.
//!
//! With [`SwitchConfig::queue`](super::SwitchConfig), a writer that meets a writer is not refused. It becomes the last in the queue:
//! its code replaces that of the one before in the lock word, and that one is told who follows it
//! ([`PacketKind::Follow`](wire::PacketKind)). Each hands the lock over to its follower. So the queue is a linked list through the
//! requesters, as in an MCS lock, and the switch keeps nothing but its end. Readers share the lock while there is no
//! writer, and are refused while there is one, but for a READ-MISS that says that it will wait: it does as writers do.

use wire::{NodeId, RequesterId, Seq, SlotId};

/// Flips the bits of slot and parity, so that 0 is the code of a slot that never follows anybody.
pub(super) const FLIP: u16 = 0x7f;

/// The code of an event of this requester.
pub fn code(requester: RequesterId, seq: Seq) -> u16 {
    let index =
        u16::try_from(requester.index() * 2 + seq.parity()).expect("64 nodes of 64 slots are 13 bits");
    index ^ FLIP
}

/// Whose code it is, and the parity of the event's number.
pub fn decode(code: u16) -> (RequesterId, usize) {
    let index = code ^ FLIP;
    let slots = SlotId::PER_NODE as u16;
    let requester = RequesterId { node: NodeId(index / 2 / slots), slot: SlotId(index / 2 % slots) };
    (requester, usize::from(index & 1))
}

/// An `arg` that names the event of the one before, beside the requester's random number.
pub const fn with_code(arg: u64, code: u16) -> u64 {
    arg & 0xffff_ffff | (code as u64) << 32
}

/// The code in an `arg`, if it has one.
pub const fn code_in(arg: u64) -> Option<u16> {
    let code = (arg >> 32) as u16;
    if code == 0 { None } else { Some(code) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_names_a_requester_and_a_parity() {
        for node in [0, 1, 63] {
            for slot in 0..64 {
                for seq in [Seq(4), Seq(5)] {
                    let requester = RequesterId { node: NodeId(node), slot: SlotId(slot) };
                    let code = code(requester, seq);
                    assert!(code < 1 << 13);
                    assert_eq!(decode(code), (requester, seq.parity()));
                    assert!(code != 0 || requester.slot == SlotId::MIGRATION);
                }
            }
        }
    }
}
