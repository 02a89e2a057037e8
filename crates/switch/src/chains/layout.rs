//! The program's PHV fields, the codes that they hold, and the cells.
//!
//! ```text
//!   NEXT PSN     number 24 | 1                          1: the connection is known
//!   OUTSTANDING  1 1 | appended 1 | 0 10 | upper bits of the unit 20 | version 8 | index of the key 24
//!   TAIL         location 32 | version 8 | record 24    record 0: its append is acknowledged
//!   APPEND       location 32 | number 24 | version 8    what is appended by which packet
//!   OF KEY       index 32
//!   BEHIND       as TAIL                                 0: it was not steered
//!   STATE        version that the client compared with 8 | state 8
//!   KEY          the complement, so that an empty cell is 0
//! ```
//! With bound queue pairs:
//! ```text
//!   OUTSTANDING  0 0 | as above: appended, and something was sent to stand behind it
//!   STATE        .. | flags 4 | state 4
//!   NEXT PSN     behind the connections' cells, for each bound queue pair: its last number; as above, what the memory has
//!                acknowledged; and whose turn was last
//!   records      behind the connections' ones, for each number of a bound queue pair:
//!     OF KEY     kind 8 | number 24
//!     APPEND     location 32 | its packet's number 24 | version 8     what is put behind it
//!     BEHIND     location 32 | version 8 | record 24     where it was sent; whose it is
//!     STATE      number 16                               of its packet in the client's own queue pair
//!   records      behind those, for each atomic that the memory can replay:
//!     OF KEY     number 24                               that this turn had last
//! ```

use alloc::vec::Vec;

use wire::chains::{EntryVersion, Location};
use wire::roce::Psn;

use crate::pipeline::{Field, ProgramBuilder};

/// Ways in which a key may stand.
pub(super) const WAYS: usize = 3;

pub(super) const NUMBER_STAGE: usize = 1;
pub(super) const OPERATIONS_STAGE: usize = 2;
pub(super) const VERDICT_STAGE: usize = 3;
pub(super) const OUTSTANDING_STAGE: usize = 9;
pub(super) const TAIL_STAGE: usize = 10;
pub(super) const BEHIND_STAGE: usize = 11;
/// Where the ways of KEY are: in what the other arrays leave free.
pub(super) const KEY_STAGES: [usize; WAYS] = [TAIL_STAGE, BEHIND_STAGE, BEHIND_STAGE];

/// What kind of pass this is.
pub(super) mod class {
    /// A WRITE of an entry: is it new, is its key held?
    pub(in super::super) const WRITE: u64 = 1;
    /// It is new: its slot is outstanding, if its key is held.
    pub(in super::super) const LEARN: u64 = 2;
    /// An atomic.
    pub(in super::super) const SWAP: u64 = 3;
    /// Another request: its number counts.
    pub(in super::super) const REQUEST: u64 = 4;
    /// What an atomic is answered: is there a record?
    pub(in super::super) const ANSWER: u64 = 5;
    /// What is the state of the one in front?
    pub(in super::super) const FRONT: u64 = 6;
    /// What is the client told?
    pub(in super::super) const SETTLE: u64 = 7;
    /// A WRITE that is not new: its slot is outstanding for this key, or for none.
    pub(in super::super) const KEEP: u64 = 8;
    /// A READ of a whole entry: whose is it, and what is the tail of that chain?
    pub(in super::super) const READ: u64 = 9;
    /// Something is sent to stand behind an entry: has anything been, before? And what was the bound queue pair's last number?
    pub(in super::super) const OPEN: u64 = 10;
    /// It takes the next one, and is recorded under that.
    pub(in super::super) const BIND: u64 = 11;
    /// An acknowledgement on a bound queue pair: whose is it?
    pub(in super::super) const HEARD: u64 = 12;
    /// An atomic has got its number, which is noted, and its turn is taken.
    pub(in super::super) const TAKEN: u64 = 13;
    /// Is there room on the bound queue pair?
    pub(in super::super) const ROOM: u64 = 14;
    /// An atomic wants a number, and it is this one's turn: which number had that last?
    pub(in super::super) const TURN: u64 = 15;
    /// What stands for an atomic in its own queue pair has been executed.
    pub(in super::super) const FILLED: u64 = 16;
    pub(in super::super) const LAST: u64 = FILLED;
}

/// What OUTSTANDING, TAIL, and the arrays of records do. 0: nothing.
pub(super) mod op {
    pub(in super::super) const READ: u64 = 1;
    pub(in super::super) const SET: u64 = 2;
    /// OUTSTANDING: takes what is outstanding. TAIL: an append, if the tail is known.
    pub(in super::super) const TAKE: u64 = 3;
    /// TAIL: it is learned, if it is not known.
    pub(in super::super) const TEACH: u64 = 4;
    /// TAIL: the append of this one is acknowledged.
    pub(in super::super) const CONFIRM: u64 = 5;
    /// OUTSTANDING: is left as it is, if it is the operand.
    pub(in super::super) const KEEP: u64 = 6;
    /// OUTSTANDING: whose entry was this?
    pub(in super::super) const LOOK: u64 = 7;
    /// STATE: this holds, too.
    pub(in super::super) const OR: u64 = 8;
}

/// What the client is told.
pub(super) mod verdict {
    /// What the memory says: there is no record of it.
    pub(in super::super) const NONE: u64 = 0;
    /// The same: it was not steered.
    pub(in super::super) const NATIVE: u64 = 1;
    /// The same, and its entry is outstanding again.
    pub(in super::super) const AGAIN: u64 = 2;
    pub(in super::super) const STEERED: u64 = 3;
    pub(in super::super) const REFUSED: u64 = 4;
    pub(in super::super) const INDETERMINATE: u64 = 5;
    /// Nothing yet.
    pub(in super::super) const WAIT: u64 = 6;
}

/// What became of an append.
pub(super) mod state {
    pub(in super::super) const PENDING: u64 = 1;
    pub(in super::super) const APPENDED: u64 = 2;
    pub(in super::super) const FAILED: u64 = 3;
    pub(in super::super) const LOST: u64 = 4;
    /// Those.
    pub(in super::super) const MASK: u64 = 0xf;
    /// Its own queue pair has come so far.
    pub(in super::super) const FILLED: u64 = 0x10;
    /// It has no number on a bound queue pair, for there was no capacity.
    pub(in super::super) const UNBOUND: u64 = 0x20;
    /// The word was as expected.
    pub(in super::super) const MATCHED: u64 = 0x40;
    /// It goes on its client's own queue pair, for there was no capacity.
    pub(in super::super) const OWN: u64 = 0x80;
}

/// What a number of a bound queue pair is for.
pub(super) mod kind {
    pub(in super::super) const SWAP: u64 = 1;
    pub(in super::super) const WRITE: u64 = 2;
    /// Nothing: it is passed over.
    pub(in super::super) const HOLE: u64 = 3;
}

/// A cell of OF KEY of a bound queue pair's number.
pub(super) fn bound(kind: u64, number: Psn) -> u64 {
    kind << 24 | u64::from(number.get())
}

/// A cell of TAIL or BEHIND.
pub(super) fn tail(at: Location, version: EntryVersion, record: u32) -> u64 {
    u64::from(at.to_bits()) << 32 | u64::from(version.0) << 24 | u64::from(record)
}

/// What such a cell says: an entry, and the record of its append.
pub(super) fn parse_tail(cell: u64) -> Option<(Location, EntryVersion, u32)> {
    let at = Location::from_bits((cell >> 32) as u32)?;
    Some((at, EntryVersion((cell >> 24) as u8), cell as u32 & 0xff_ffff))
}

/// A cell of APPEND.
pub(super) fn append(at: Location, version: EntryVersion, psn: Psn) -> u64 {
    u64::from(at.to_bits()) << 32 | u64::from(psn.get()) << 8 | u64::from(version.0)
}

/// What such a cell says.
pub(super) fn parse_append(cell: u64) -> Option<(Location, EntryVersion, Psn)> {
    let at = Location::from_bits((cell >> 32) as u32)?;
    Some((at, EntryVersion(cell as u8), Psn::new(cell as u32 >> 8)))
}

/// An entry as it is compared.
pub(super) fn entry(at: Location, version: EntryVersion) -> u64 {
    u64::from(at.to_bits()) << 8 | u64::from(version.0)
}

/// A unit's number, shuffled so that slots of any size take all cells of OUTSTANDING, or half of them: neighbours of 2 KiB have the same lower
/// bits. It can be undone, so cell and tag together still say which unit it is. On the chip it is a hash, which is as linear.
const fn shuffled(unit: u32) -> u32 {
    let unit = unit ^ unit >> 3;
    let unit = unit ^ (unit << 12 & (wire::chains::UNITS - 1));
    unit ^ unit >> 17
}

/// The cell of a slot in OUTSTANDING, of `1 << bits` cells.
pub(super) const fn slot(unit: u32, bits: u32) -> u64 {
    (shuffled(unit) & ((1 << bits) - 1)) as u64
}

/// A cell of OUTSTANDING without the index.
pub(super) const fn outstanding(unit: u32, version: EntryVersion, bits: u32) -> u64 {
    1 << 63 | ((shuffled(unit) >> bits) as u64) << 32 | (version.0 as u64) << 24
}

/// The upper half of such a cell, when something has been sent to stand behind the entry.
pub(super) const fn followed(unit: u32, bits: u32) -> u64 {
    outstanding(unit, EntryVersion(0), bits) & !(1 << 63)
}

/// The upper half of such a cell, when the slot's entry has been sent to a chain.
pub(super) const fn appended(unit: u32, bits: u32) -> u64 {
    outstanding(unit, EntryVersion(0), bits) | 1 << 62
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Fields {
    // From the parser.
    pub(super) class: Field,
    pub(super) connection: Field,
    pub(super) sequence: Field,
    pub(super) key: Field,
    /// The cells of the key's ways. On the chip these are hashes of the key, one polynomial a way.
    pub(super) sets: [Field; WAYS],
    /// What each way found in the pass before.
    pub(super) held: [Field; WAYS],
    /// What OUTSTANDING becomes if this way holds the key.
    pub(super) candidates: [Field; WAYS],
    pub(super) slot: Field,
    pub(super) outstanding: Field,
    pub(super) record: Field,
    /// Operands of APPEND, TAIL, STATE.
    pub(super) append: Field,
    pub(super) tail: Field,
    pub(super) mark: Field,
    pub(super) nothing: Field,
    pub(super) one: Field,
    /// Of a bound queue pair: masks for a number and its lower bits, its first record, and what the number is for.
    pub(super) number_mask: Field,
    pub(super) low_mask: Field,
    pub(super) first_record: Field,
    pub(super) kind: Field,
    // Carried from pass to pass of an acknowledgement.
    pub(super) number: Field,
    pub(super) recorded_number: Field,
    pub(super) original: Field,
    pub(super) expected: Field,
    pub(super) front: Field,
    pub(super) found_front: Field,
    pub(super) native: Field,
    pub(super) state: Field,
    pub(super) front_state: Field,
    /// The marks of an append that is in a chain, of one that failed, and of one that is indeterminate.
    pub(super) marks: [Field; 3],
    // Found on the way.
    pub(super) low: Field,
    pub(super) taken: Field,
    /// It is new. Or a number.
    pub(super) new: Field,
    pub(super) hit: [Field; WAYS],
    /// The key's index, from 1: of an append as OUTSTANDING says, of an acknowledgement as its record says.
    pub(super) index: Field,
    pub(super) before: Field,
    pub(super) appended: Field,
    pub(super) of_key: Field,
    pub(super) behind: Field,
    pub(super) found_state: Field,
    pub(super) same: Field,
    pub(super) is_recorded: Field,
    pub(super) is_expected: Field,
    pub(super) is_front: Field,
    pub(super) outstanding_op: Field,
    pub(super) tail_op: Field,
    pub(super) record_op: Field,
    pub(super) state_op: Field,
    pub(super) verdict: Field,
}

impl Fields {
    /// What is looked at when a pass is over.
    pub(super) fn results(&self) -> Vec<Field> {
        let found = [self.index, self.before, self.appended, self.of_key, self.behind, self.found_state];
        let said = [self.new, self.same, self.verdict, self.tail_op];
        found.into_iter().chain(said).chain(self.hit).collect()
    }

    pub(super) fn declare(p: &mut ProgramBuilder) -> Self {
        Self {
            class: p.parsed("class", 5),
            connection: p.parsed("connection", 16),
            sequence: p.parsed("number, shifted", 32),
            key: p.parsed("key", 64),
            sets: ["cell of way 0", "cell of way 1", "cell of way 2"].map(|name| p.parsed(name, 32)),
            held: ["held in way 0", "held in way 1", "held in way 2"].map(|name| p.parsed(name, 1)),
            candidates: ["key in way 0", "key in way 1", "key in way 2"].map(|name| p.parsed(name, 64)),
            slot: p.parsed("cell of the slot", 32),
            outstanding: p.parsed("outstanding", 64),
            record: p.parsed("record", 24),
            append: p.parsed("append", 64),
            tail: p.parsed("tail", 64),
            mark: p.parsed("mark", 16),
            nothing: p.parsed("nothing", 64),
            one: p.parsed("one", 1),
            number_mask: p.parsed("bits of a number", 24),
            low_mask: p.parsed("its lower bits", 24),
            first_record: p.parsed("first record", 24),
            kind: p.parsed("what a number is for", 32),
            low: p.metadata("lower bits of a number", 24),
            taken: p.metadata("number that was taken", 24),
            number: p.parsed("number", 24),
            recorded_number: p.parsed("recorded number", 24),
            original: p.parsed("original", 64),
            expected: p.parsed("expected", 64),
            front: p.parsed("entry in front", 40),
            found_front: p.parsed("entry of the record in front", 40),
            native: p.parsed("not steered", 1),
            state: p.parsed("state", 8),
            front_state: p.parsed("state of the one in front", 8),
            marks: ["mark: appended", "mark: failed", "mark: indeterminate"].map(|name| p.parsed(name, 16)),
            new: p.metadata("new", 32),
            hit: ["hit in way 0", "hit in way 1", "hit in way 2"].map(|name| p.metadata(name, 1)),
            index: p.parsed("place of the key", 64),
            before: p.parsed("tail before", 64),
            appended: p.metadata("recorded append", 64),
            of_key: p.metadata("recorded place", 32),
            behind: p.metadata("recorded tail", 64),
            found_state: p.metadata("recorded state", 16),
            same: p.metadata("the same append", 1),
            is_recorded: p.metadata("recorded", 1),
            is_expected: p.metadata("as expected", 1),
            is_front: p.metadata("record in front is that", 1),
            outstanding_op: p.metadata("OUTSTANDING's operation", 3),
            tail_op: p.metadata("TAIL's operation", 3),
            record_op: p.metadata("records' operation", 3),
            state_op: p.metadata("STATE's operation", 4),
            verdict: p.metadata("verdict", 3),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn slots_of_any_size_take_at_least_half_of_the_cells_and_no_two_are_taken_for_each_other() {
        for (class, bits) in [(0, 8), (5, 8), (0, 14), (4, 14), (5, 16), (8, 16)] {
            let units = (0..1 << bits).map(|number: u32| 1 + (number << class));
            let mut cells: Vec<u64> = units.clone().map(|unit| slot(unit, bits)).collect();
            let mut both: Vec<(u64, u64)> =
                units.map(|unit| (slot(unit, bits), outstanding(unit, EntryVersion(0), bits))).collect();
            cells.sort_unstable();
            cells.dedup();
            both.sort_unstable();
            both.dedup();
            assert!(cells.len() >= 1 << (bits - 1), "class {class}: {} of {}", cells.len(), 1 << bits);
            assert_eq!(both.len(), 1 << bits, "class {class}");
        }
    }
}
