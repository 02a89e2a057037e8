//! What becomes of requests and acknowledgements: the fields that are rewritten. Whoever sends the packet on computes its ICRC.
//!
//! What must always hold: nothing is rewritten but a compare-and-swap's address and operands, a read's address, an atomic
//! acknowledgement's word, and an answer that becomes a refusal.

use wire::chains::{EntryVersion, Location, Next, Reply, Word};
use wire::roce::{Aeth, AtomicEth, Extension, NakCode, Opcode, Packet, Syndrome};
use wire::{Rule, Rules};

use super::parser::Append;

/// Sends an append to this entry, of a memory that begins at `base`.
pub(super) fn steer<R: Rules>(
    rules: R,
    packet: &mut Packet,
    base: u64,
    (to, version): (Location, EntryVersion),
    append: &Append,
) {
    let Extension::Atomic(word) = packet.extension else { return };
    let address = base + to.offset();
    let compare = Word::tail(version);
    let swap = compare.followed_by(Next::Entry(append.at, append.version));
    packet.extension = Extension::Atomic(if rules.holds(Rule::CompareIsRewritten) {
        AtomicEth { address, compare: compare.to_bits(), swap_or_add: swap.to_bits(), ..word }
    } else {
        AtomicEth { address, ..word }
    });
}

/// Sends a read to this entry.
pub(super) fn read(packet: &mut Packet, base: u64, to: Location) {
    if let Extension::Reth(reth) = &mut packet.extension {
        reth.address = base + to.offset();
    }
}

/// Tells the client this.
pub(super) fn reply(packet: &mut Packet, reply: Reply) {
    if let Extension::AethAtomic(_, original) = &mut packet.extension {
        *original = reply.to_bits();
    }
}

/// An answer becomes the memory's refusal: its client's NIC ends the connection.
pub(super) fn refuse(packet: &mut Packet) {
    let Extension::Aeth(Aeth { messages, .. }) = packet.extension else { return };
    packet.opcode = Opcode::Acknowledge;
    packet.extension = Extension::Aeth(Aeth { syndrome: Syndrome::Nak(NakCode::RemoteOperation), messages });
}
