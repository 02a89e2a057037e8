//! What the parts of a view are parts of: a roster, and the switch's directory as far as one home needs it.

use alloc::vec::Vec;

use node::Kept;
use switch::coherence::{Dump, EntryView};
use wire::{BlockTag, Copyset, GlobalStatus, Incarnation, NodeId};

use super::Malformed;
use super::bytes::Reader;
use crate::roster::{Roster, RosterEntry, Session};

/// Bytes of a directory entry: tag, lock, state and line, copyset.
const ENTRY: usize = 8 + 2 + 1 + 8;
/// Beside the state: requesters waited in a queue.
const QUEUED: u8 = 0x80;

/// A view, and what the switch knew.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Contents {
    pub(crate) roster: Roster,
    pub(crate) dump: Option<Dump>,
}

impl Contents {
    /// What these bytes say, all of them: a roster, and a dump if there is more.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let roster = read_roster(&mut reader).ok_or(Malformed)?;
        if reader.is_empty() {
            return Ok(Self { roster, dump: None });
        }
        let dump = read_dump(&mut reader).ok_or(Malformed)?;
        if reader.is_empty() { Ok(Self { roster, dump: Some(dump) }) } else { Err(Malformed) }
    }
}

pub(crate) fn encode_roster(roster: &Roster, out: &mut Vec<u8>) {
    out.extend(roster.epoch.0.to_le_bytes());
    out.push(u8::try_from(roster.entries.len()).expect("at most 64 nodes"));
    out.push(u8::try_from(roster.founders).expect("at most 64 nodes"));
    for entry in &roster.entries {
        out.extend(entry.incarnation.0.to_le_bytes());
        out.extend(entry.session.0.to_le_bytes());
        out.extend([u8::from(entry.alive), u8::from(entry.returned)]);
    }
    out.push(u8::from(!roster.memories.is_empty()));
    for kept in &roster.memories {
        out.extend(kept.life.0.to_le_bytes());
        out.push(u8::from(kept.again));
        out.extend(kept.by.bits().to_le_bytes());
        out.extend(kept.to.bits().to_le_bytes());
    }
}

pub(crate) fn read_roster(reader: &mut Reader<'_>) -> Option<Roster> {
    let epoch = reader.epoch()?;
    let (nodes, founders) = (usize::from(reader.u8()?), usize::from(reader.u8()?));
    if !(1..=Copyset::NODES).contains(&nodes) || founders > nodes {
        return None;
    }
    let mut entries = Vec::with_capacity(nodes);
    for _ in 0..nodes {
        let (incarnation, session) = (Incarnation(reader.u32()?), Session(reader.u64()?));
        // An incarnation that begins after the epoch in which it is known would break the order of incarnations.
        if incarnation.0 > epoch.0 {
            return None;
        }
        let (alive, returned) = (reader.bool()?, reader.bool()?);
        entries.push(RosterEntry { incarnation, session, alive, returned });
    }
    let mut memories = Vec::new();
    let copies = reader.bool()?;
    if copies && founders == 0 {
        return None;
    }
    for _ in 0..if copies { founders } else { 0 } {
        let (life, again) = (Incarnation(reader.u32()?), reader.bool()?);
        let (by, to) = (Copyset::from_bits(reader.u64()?), Copyset::from_bits(reader.u64()?));
        if life.0 > epoch.0 || by.intersects(to) || by.union(to).iter().any(|node| node.index() >= nodes) {
            return None;
        }
        memories.push(Kept { life, again, by, to });
    }
    Some(Roster { epoch, entries, founders, memories })
}

/// The part of a dump that the home needs.
pub(crate) fn encode_dump(dump: &Dump, home: NodeId) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(dump.epoch.0.to_le_bytes());
    out.extend(dump.holders.bits().to_le_bytes());
    for (tag, entry) in dump.entries.iter().filter(|(tag, _)| tag.home() == home) {
        out.extend(tag.bits().to_le_bytes());
        out.extend(entry.lock.to_le_bytes());
        out.push(entry.status as u8 | if dump.has_queue(*tag) { QUEUED } else { 0 });
        out.extend(entry.copyset.bits().to_le_bytes());
    }
    out
}

fn read_dump(reader: &mut Reader<'_>) -> Option<Dump> {
    let (epoch, holders) = (reader.epoch()?, Copyset::from_bits(reader.u64()?));
    let mut entries: Vec<(BlockTag, EntryView)> = Vec::with_capacity(reader.left() / ENTRY);
    let mut queued = Vec::new();
    while !reader.is_empty() {
        let (tag, lock) = (BlockTag::from_bits(reader.u64()?), reader.u16()?);
        let state = reader.u8()?;
        let (status, copyset) =
            (GlobalStatus::from_wire(state & !QUEUED)?, Copyset::from_bits(reader.u64()?));
        if entries.last().is_some_and(|(last, _)| *last >= tag) {
            return None;
        }
        if state & QUEUED != 0 {
            queued.push(tag);
        }
        entries.push((tag, EntryView { lock, status, copyset }));
    }
    Some(Dump { epoch, entries, holders, queued })
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use wire::SwitchEpoch;

    fn dump() -> Dump {
        let entry = |lock, status, copyset| EntryView { lock, status, copyset: Copyset::from_bits(copyset) };
        let tag = |home: u64, block: u64| BlockTag::from_bits(home << 48 | block << 12);
        let entries = vec![
            (tag(0, 1), entry(1, GlobalStatus::Shared, 3)),
            (tag(1, 1), entry(0, GlobalStatus::Unshared, 0)),
            (tag(1, 2), entry(0x8000, GlobalStatus::Modified, 4)),
            (tag(2, 1), entry(0, GlobalStatus::Shared, 6)),
        ];
        Dump { epoch: SwitchEpoch(9), entries, holders: Copyset::from_bits(5), queued: vec![tag(1, 2)] }
    }

    fn contents(home: NodeId) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_roster(&Roster::empty(3), &mut bytes);
        bytes.extend(encode_dump(&dump(), home));
        bytes
    }

    #[test]
    fn a_home_gets_its_own_entries_of_the_directory_and_every_lock_holder() {
        let got = Contents::parse(&contents(NodeId(1))).unwrap().dump.unwrap();
        let whole = dump();
        assert_eq!(got.entries, whole.entries[1..3]);
        assert_eq!((got.epoch, got.holders, got.queued), (whole.epoch, whole.holders, whole.queued));
        let other = Contents::parse(&contents(NodeId(2))).unwrap().dump.unwrap();
        assert_eq!((other.entries.len(), other.queued.len()), (1, 0));
    }

    #[test]
    fn contents_cut_anywhere_but_between_entries_are_refused() {
        let bytes = contents(NodeId(1));
        let head = bytes.len() - 2 * ENTRY;
        let roster = head - 12;
        for length in 0..bytes.len() {
            let whole = [roster, head, head + ENTRY].contains(&length);
            assert_eq!(Contents::parse(&bytes[..length]).is_ok(), whole, "{length}");
        }
    }

    #[test]
    fn a_directory_out_of_order_is_refused() {
        let mut bytes = contents(NodeId(1));
        let at = bytes.len() - 2 * ENTRY;
        let first = bytes[at..at + ENTRY].to_vec();
        bytes.extend(first);
        assert_eq!(Contents::parse(&bytes), Err(Malformed));
    }

    #[test]
    fn a_incarnation_from_the_future_is_refused() {
        let mut roster = Roster::empty(2);
        roster.entries[1].incarnation = Incarnation(1);
        let mut bytes = Vec::new();
        encode_roster(&roster, &mut bytes);
        assert_eq!(Contents::parse(&bytes), Err(Malformed));
    }
}
