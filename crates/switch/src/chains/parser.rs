//! What a packet says, as far as this program looks at it. Everything else passes as it is.
//!
//! What must always hold: nothing is taken for a step of an append that a client of the store would not send.

use wire::chains::{Class, EntryHead, EntryVersion, Location, Next, UNIT, UNITS, Word};
use wire::roce::{AtomicEth, Extension, NakCode, Opcode, Packet, Syndrome};

use super::connections::Connection;

/// The second step of an append.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Append {
    /// What is appended.
    pub(super) at: Location,
    pub(super) version: EntryVersion,
    /// The number of the entry that the client takes for the tail.
    pub(super) compared: EntryVersion,
}

/// A change of an entry's word, as far as a client may ask for one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Change {
    /// Whose word (of whatever class).
    pub(super) to: Location,
    /// What is put behind it; in the place of an entry, all ones: the chain's end.
    pub(super) append: Append,
}

/// What a packet is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Seen {
    /// An entry is written, or its first part.
    Write { unit: u32, version: EntryVersion, key: u64 },
    /// An atomic, and what it appends.
    Swap(Option<Append>),
    /// A slot is read, in a packet.
    Read(Location),
    /// Another request.
    Request,
    /// What an atomic is answered.
    Answer(u64),
    /// What a READ of no bytes is answered.
    Filled,
    /// What a READ of an entry has brought; none: no entry.
    Brought(Option<(Location, EntryVersion)>),
    /// A request was refused for good.
    Broken,
    /// Another answer.
    Other,
}

/// What this packet is, with these first bytes of its payload.
pub(super) fn see(packet: &Packet, head: &[u8], connection: &Connection, reads: u32) -> Seen {
    match (packet.opcode, packet.extension) {
        (Opcode::WriteFirst | Opcode::WriteOnly, Extension::Reth(reth)) if reth.key == connection.region => {
            entry(connection, reth.address, head).unwrap_or(Seen::Request)
        }
        (Opcode::ReadRequest, Extension::Reth(reth)) if reth.key == connection.region => {
            let class = Class::of_slot(reth.length).filter(|_| reth.length <= reads);
            let unit = unit(connection, reth.address);
            class.zip(unit).map_or(Seen::Request, |(class, unit)| Seen::Read(Location::new(class, unit)))
        }
        (_, Extension::Atomic(word)) => {
            let is_append = packet.opcode == Opcode::CompareSwap && word.key == connection.region;
            Seen::Swap(if is_append { append(&word) } else { None })
        }
        (Opcode::AtomicAcknowledge, Extension::AethAtomic(_, original)) => Seen::Answer(original),
        (Opcode::Acknowledge, Extension::Aeth(aeth)) => match aeth.syndrome {
            Syndrome::Nak(NakCode::SequenceError) | Syndrome::Ack(_) | Syndrome::RnrNak(_) => Seen::Other,
            Syndrome::Nak(_) => Seen::Broken,
        },
        (Opcode::ReadResponseOnly, _) if head.is_empty() => Seen::Filled,
        (Opcode::ReadResponseOnly, _) if reads > 0 => Seen::Brought(brought(head)),
        (opcode, _) if opcode.is_response() => Seen::Other,
        _ => Seen::Request,
    }
}

/// What this compare-and-swap of the store's region does.
pub(super) fn change(packet: &Packet, word: &AtomicEth, connection: &Connection) -> Option<Change> {
    if packet.opcode != Opcode::CompareSwap {
        return None;
    }
    let to = Location::new(Class::new(0)?, unit(connection, word.address)?);
    let append = append(word).or_else(|| closing(word))?;
    Some(Change { to, append })
}

fn closing(word: &AtomicEth) -> Option<Append> {
    let compared = Word::from_bits(word.compare)?;
    let is_closing = compared == Word::tail(compared.entry)
        && word.swap_or_add == compared.followed_by(Next::Closed).to_bits();
    let at = Location::from_bits(u32::MAX)?;
    is_closing.then_some(Append { at, version: EntryVersion(0), compared: compared.entry })
}

/// Which unit begins there, if one does.
fn unit(connection: &Connection, address: u64) -> Option<u32> {
    let offset = address.checked_sub(connection.base).filter(|offset| offset.is_multiple_of(UNIT))?;
    u32::try_from(offset / UNIT).ok().filter(|unit| (1..UNITS).contains(unit))
}

/// Which entry this is, as it says itself.
fn brought(head: &[u8]) -> Option<(Location, EntryVersion)> {
    let words = [word_at(head, 0)?, word_at(head, 8)?, word_at(head, 16)?];
    EntryHead::from_words(words).map(|head| (head.at, head.word.entry))
}

fn entry(connection: &Connection, address: u64, head: &[u8]) -> Option<Seen> {
    let unit = unit(connection, address)?;
    let word = Word::from_bits(word_at(head, 0)?)?;
    let key = word_at(head, 8)?;
    (word == Word::tail(word.entry)).then_some(Seen::Write { unit, version: word.entry, key })
}

/// An entry is bytes to the NIC: its words have the byte order of the machines.
fn word_at(head: &[u8], at: usize) -> Option<u64> {
    head.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

fn append(word: &AtomicEth) -> Option<Append> {
    let compared = Word::from_bits(word.compare)?;
    let new = Word::from_bits(word.swap_or_add)?;
    let Next::Entry(at, version) = new.next else { return None };
    let is_append = compared == Word::tail(compared.entry) && new == compared.followed_by(new.next);
    is_append.then_some(Append { at, version, compared: compared.entry })
}
