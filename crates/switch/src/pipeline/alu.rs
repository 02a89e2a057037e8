//! What a stateful ALU can do to the one cell that a packet reaches.
//!
//! The chip's ALU reads a cell, compares it with an operand from the PHV under at most two conditions, writes
//! a value picked by them back, and puts one word out. Each variant of [`Alu`] is one such program; there are
//! no others, and no way to write one in Rust outside this file.
//!
//! | program | conditions | new cell | output |
//! | --- | --- | --- | --- |
//! | `Read` | | | the cell |
//! | `Set(x)` | | x | the new cell |
//! | `Or(x)` | | cell \| x | the new cell |
//! | `Compare(x)` | x > cell | | [`NEWER`] or [`OLDER`] |
//! | `Raise(x)` | x > cell; x = cell | the larger | [`NEWER`], [`SAME`] or [`OLDER`] |
//! | `MatchTag(x)` | x = cell | | [`HIT`] or [`MISS`] |
//! | `ProbeTag(x)` | x = cell; cell = 0 | | [`PRESENT`], [`VACANT`] or [`TAKEN`] |
//! | `ClaimIfEmpty(x)` | cell = 0 | x if empty | [`HIT`] or [`MISS`] |
//! | `ClearIfEqual(x)` | x = cell | 0 if equal | [`HIT`] or [`MISS`] |
//! | `TryReadLock` | cell < [`MOST_READERS`] | cell + 1 if so | [`ACQUIRED`] or [`BUSY`] |
//! | `TryWriteLock` | cell = 0 | [`WRITER`] if so | [`ACQUIRED`] or [`BUSY`] |
//! | `Release(x)` | x ≤ cell; same writer bit | cell - x if both | none |
//! | `JoinWriters(x)` | cell = 0; cell > [`WRITER`] | x if either | [`ACQUIRED`] if 0, else the old cell, at least [`BUSY`] |
//! | `Leave(x)` | x = cell | 0 if equal | 0 if equal, else [`FOLLOWED`] |
//! | `TakeIfEqual(x)` | x = cell | 0 if equal | the old cell |
//! | `CountOrMark(x)` | x = [`ACQUIRED`]; cell = 0 | cell + 1, else x if empty | the new cell |
//! | `And(x)` | | cell & x | the new cell |
//! | `TakeIfFree(x)` | low byte of the cell = 0 | cell + 256 + x if so | the old cell |
//! | `MarkIfEqual(x)` | x = cell | cell - 128 if equal | the old cell |
//! | `SetIfZero(x)` | cell = 0 | x if empty | the old cell |
//! | `SetIfAny(x)` | cell = 0 | x unless empty | the old cell |
//! | `TakeIfMost(x)` | x and the cell are equal but for 24 bits | 2^62 is added if equal | the low 24 bits if equal, else 0 |
//! | `LookIfHigh(x)` | upper halves of x and cell are equal | | the low 24 bits if equal, else 0 |
//! | `KeepIfEqual(x)` | x = cell | 0 unless equal | the new cell |
//! | `LowerIfEqual(x)` | x = cell | the cell without its low 24 bits if equal | the old cell |
//! | `Passed(x)` | x + 255 - cell, of 32 bits with a sign, < 0 | | [`HIT`] or [`MISS`] |
//! | `Advance(x)` | cell = 0; x + 255 - cell, of 32 bits with a sign, < 0 | x + 257 if neither | [`HIT`] or [`MISS`] |

use core::cmp::Ordering;

use super::phv::Field;

/// `Compare`, `Raise`: the operand is not larger than the cell, or (`Raise`) smaller.
pub const OLDER: u64 = 0b00;
/// `Compare`, `Raise`: the operand is larger than the cell was.
pub const NEWER: u64 = 0b01;
/// `Raise`: the operand is what the cell held. Shares bit 0 with [`NEWER`]: not older.
pub const SAME: u64 = 0b11;

/// The cell does not hold the tag.
pub const MISS: u64 = 0b000;
/// The cell holds the tag; it may do so only since this pass, or only until it.
pub const HIT: u64 = 0b001;
/// `ProbeTag`: the cell is empty. All answers to a probe have bit 2, and so are never taken for a [`HIT`].
pub const VACANT: u64 = 0b100;
/// `ProbeTag`: the cell holds another tag.
pub const TAKEN: u64 = 0b101;
/// `ProbeTag`: the cell holds the tag.
pub const PRESENT: u64 = 0b110;
/// The bit of all answers to a probe.
pub const PROBED: u64 = 0b100;

/// The lock is taken. As an operand of `CountOrMark`: count it.
pub const ACQUIRED: u64 = 1;
/// The lock is held by others. As an operand of `CountOrMark`: a mark like any other.
pub const BUSY: u64 = 1 << 15;
/// `Leave`: the lock is somebody else's by now. As a SCOREBOARD cell: it was unlocked, but somebody follows.
pub const FOLLOWED: u64 = 3 << 13;
/// The bit of a lock cell that says that a writer holds it (Concordia, section 5.1: 1 + 15 bits).
pub const WRITER: u64 = 1 << 15;
/// The low 24 bits of a cell.
const LOW: u64 = 0xff_ffff;
/// As many readers as a lock cell can count.
pub const MOST_READERS: u64 = WRITER - 1;

/// A program, ready to run.
pub(super) type Work = fn(u64, u64) -> (u64, u64);

/// A program of a stateful ALU. See the [module](self) for what each does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs, reason = "the module's table says what each does")]
pub enum Alu {
    Read,
    Set(Field),
    Or(Field),
    Compare(Field),
    Raise(Field),
    MatchTag(Field),
    ProbeTag(Field),
    ClaimIfEmpty(Field),
    ClearIfEqual(Field),
    TryReadLock,
    TryWriteLock,
    Release(Field),
    JoinWriters(Field),
    Leave(Field),
    TakeIfEqual(Field),
    CountOrMark(Field),
    SetIfZero(Field),
    And(Field),
    TakeIfFree(Field),
    MarkIfEqual(Field),
    SetIfAny(Field),
    TakeIfMost(Field),
    LookIfHigh(Field),
    KeepIfEqual(Field),
    LowerIfEqual(Field),
    Passed(Field),
    Advance(Field),
}

impl Alu {
    /// The PHV field that it takes as its operand.
    pub const fn operand(self) -> Option<Field> {
        match self {
            Self::Read | Self::TryReadLock | Self::TryWriteLock => None,
            Self::Set(x)
            | Self::Or(x)
            | Self::Compare(x)
            | Self::Raise(x)
            | Self::MatchTag(x)
            | Self::ProbeTag(x)
            | Self::ClaimIfEmpty(x)
            | Self::ClearIfEqual(x)
            | Self::Release(x)
            | Self::JoinWriters(x)
            | Self::Leave(x)
            | Self::TakeIfEqual(x)
            | Self::CountOrMark(x)
            | Self::SetIfZero(x)
            | Self::And(x)
            | Self::TakeIfFree(x)
            | Self::MarkIfEqual(x)
            | Self::SetIfAny(x)
            | Self::TakeIfMost(x)
            | Self::LookIfHigh(x)
            | Self::KeepIfEqual(x)
            | Self::LowerIfEqual(x)
            | Self::Passed(x)
            | Self::Advance(x) => Some(x),
        }
    }

    /// True unless it puts nothing out, so that the step's output field keeps its value.
    pub const fn has_output(self) -> bool {
        self.output_bits(1) != 0
    }

    /// True if the cell stays as it is, whatever the operand.
    pub const fn only_looks(self) -> bool {
        matches!(
            self,
            Self::Read
                | Self::Compare(_)
                | Self::MatchTag(_)
                | Self::ProbeTag(_)
                | Self::LookIfHigh(_)
                | Self::Passed(_)
        )
    }

    /// Bits that its output needs, from a cell of so many bits.
    pub const fn output_bits(self, cell_bits: u32) -> u32 {
        match self {
            Self::Read
            | Self::Set(_)
            | Self::Or(_)
            | Self::CountOrMark(_)
            | Self::SetIfZero(_)
            | Self::And(_)
            | Self::TakeIfFree(_)
            | Self::MarkIfEqual(_)
            | Self::SetIfAny(_)
            | Self::KeepIfEqual(_)
            | Self::LowerIfEqual(_)
            | Self::TakeIfEqual(_) => cell_bits,
            Self::TakeIfMost(_) | Self::LookIfHigh(_) => 24,
            Self::Compare(_) | Self::Raise(_) => 2,
            Self::MatchTag(_)
            | Self::ClaimIfEmpty(_)
            | Self::ClearIfEqual(_)
            | Self::Passed(_)
            | Self::Advance(_) => 1,
            Self::ProbeTag(_) => 3,
            Self::TryReadLock | Self::TryWriteLock | Self::JoinWriters(_) | Self::Leave(_) => 16,
            Self::Release(_) => 0,
        }
    }

    /// The program's name, as the stage map shows it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "Read",
            Self::Set(_) => "Set",
            Self::Or(_) => "Or",
            Self::Compare(_) => "Compare",
            Self::Raise(_) => "Raise",
            Self::MatchTag(_) => "MatchTag",
            Self::ProbeTag(_) => "ProbeTag",
            Self::ClaimIfEmpty(_) => "ClaimIfEmpty",
            Self::ClearIfEqual(_) => "ClearIfEqual",
            Self::TryReadLock => "TryReadLock",
            Self::TryWriteLock => "TryWriteLock",
            Self::Release(_) => "Release",
            Self::JoinWriters(_) => "JoinWriters",
            Self::Leave(_) => "Leave",
            Self::TakeIfEqual(_) => "TakeIfEqual",
            Self::CountOrMark(_) => "CountOrMark",
            Self::SetIfZero(_) => "SetIfZero",
            Self::And(_) => "And",
            Self::TakeIfFree(_) => "TakeIfFree",
            Self::MarkIfEqual(_) => "MarkIfEqual",
            Self::SetIfAny(_) => "SetIfAny",
            Self::TakeIfMost(_) => "TakeIfMost",
            Self::LookIfHigh(_) => "LookIfHigh",
            Self::KeepIfEqual(_) => "KeepIfEqual",
            Self::LowerIfEqual(_) => "LowerIfEqual",
            Self::Passed(_) => "Passed",
            Self::Advance(_) => "Advance",
        }
    }

    /// What it does: the cell and the operand go in, the new cell and the output come out. Programs without an
    /// operand ignore theirs, and those without an output put out 0.
    pub(super) const fn code(self) -> Work {
        match self {
            Self::Read => |cell, _| (cell, cell),
            Self::Set(_) => |_, x| (x, x),
            Self::Or(_) => |cell, x| (cell | x, cell | x),
            Self::Compare(_) => |cell, x| (cell, if x > cell { NEWER } else { OLDER }),
            Self::Raise(_) => |cell, x| match x.cmp(&cell) {
                Ordering::Greater => (x, NEWER),
                Ordering::Equal => (cell, SAME),
                Ordering::Less => (cell, OLDER),
            },
            Self::MatchTag(_) => |cell, x| (cell, if x == cell { HIT } else { MISS }),
            Self::ProbeTag(_) => |cell, x| match cell {
                _ if cell == x => (cell, PRESENT),
                0 => (cell, VACANT),
                _ => (cell, TAKEN),
            },
            Self::ClaimIfEmpty(_) => |cell, x| if cell == 0 { (x, HIT) } else { (cell, MISS) },
            Self::ClearIfEqual(_) => |cell, x| if x == cell { (0, HIT) } else { (cell, MISS) },
            Self::TryReadLock => {
                |cell, _| if cell < MOST_READERS { (cell + 1, ACQUIRED) } else { (cell, BUSY) }
            }
            Self::TryWriteLock => |cell, _| if cell == 0 { (WRITER, ACQUIRED) } else { (cell, BUSY) },
            Self::Release(_) => |cell, x| {
                let fits = x <= cell && (x ^ cell) & WRITER == 0;
                (if fits { cell - x } else { cell }, 0)
            },
            Self::JoinWriters(_) => |cell, x| match cell {
                0 => (x, ACQUIRED),
                _ if cell > WRITER => (x, cell),
                _ => (cell, BUSY),
            },
            Self::Leave(_) => |cell, x| if cell == x { (0, 0) } else { (cell, FOLLOWED) },
            Self::TakeIfEqual(_) => |cell, x| (if cell == x { 0 } else { cell }, cell),
            Self::CountOrMark(_) => |cell, x| {
                let new = match cell {
                    _ if x == ACQUIRED => cell.wrapping_add(1),
                    0 => x,
                    _ => cell,
                };
                (new, new)
            },
            Self::SetIfZero(_) => |cell, x| (if cell == 0 { x } else { cell }, cell),
            Self::And(_) => |cell, x| (cell & x, cell & x),
            Self::TakeIfFree(_) => {
                |cell, x| (if cell & 0xff == 0 { cell.wrapping_add(0x100 + x) } else { cell }, cell)
            }
            Self::MarkIfEqual(_) => |cell, x| (if cell == x { cell.wrapping_sub(128) } else { cell }, cell),
            Self::SetIfAny(_) => |cell, x| (if cell == 0 { 0 } else { x }, cell),
            Self::TakeIfMost(_) => |cell, x| match (cell ^ x) >> 24 {
                0 => (cell.wrapping_add(1 << 62), cell & LOW),
                _ => (cell, 0),
            },
            Self::LookIfHigh(_) => |cell, x| (cell, if cell >> 32 == x >> 32 { cell & LOW } else { 0 }),
            Self::KeepIfEqual(_) => |cell, x| if cell == x { (cell, cell) } else { (0, 0) },
            Self::LowerIfEqual(_) => |cell, x| (if cell == x { cell & !0xff_ffff } else { cell }, cell),
            Self::Passed(_) => |cell, x| (cell, if ahead(cell, x) < 0 { HIT } else { MISS }),
            Self::Advance(_) => |cell, x| {
                let ahead = ahead(cell, x);
                if cell != 0 && ahead >= 0 { (x.wrapping_add(257), HIT) } else { (cell, MISS) }
            },
        }
    }
}

/// How far a number, shifted, is behind the cell that has the next one: negative if it has been passed.
const fn ahead(cell: u64, x: u64) -> i32 {
    (x as u32).wrapping_add(255).wrapping_sub(cell as u32).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    const X: Field = Field(0);

    fn run(alu: Alu, cell: u64, x: u64) -> (u64, u64) {
        alu.code()(cell, x)
    }

    #[test]
    fn raise_keeps_the_largest_and_tells_newer_same_and_older_apart() {
        assert_eq!(run(Alu::Raise(X), 5, 6), (6, NEWER));
        assert_eq!(run(Alu::Raise(X), 5, 5), (5, SAME));
        assert_eq!(run(Alu::Raise(X), 5, 4), (5, OLDER));
        assert_eq!(run(Alu::Compare(X), 5, 6), (5, NEWER));
        assert_eq!(run(Alu::Compare(X), 5, 5), (5, OLDER));
    }

    #[test]
    fn a_lock_has_one_writer_or_readers() {
        assert_eq!(run(Alu::TryReadLock, 0, 0), (1, ACQUIRED));
        assert_eq!(run(Alu::TryReadLock, WRITER, 0), (WRITER, BUSY));
        assert_eq!(
            run(Alu::TryReadLock, MOST_READERS, 0),
            (MOST_READERS, BUSY),
            "no overflow into the writer"
        );
        assert_eq!(run(Alu::TryWriteLock, 0, 0), (WRITER, ACQUIRED));
        assert_eq!(run(Alu::TryWriteLock, 1, 0), (1, BUSY));
        assert_eq!(run(Alu::TryWriteLock, WRITER, 0), (WRITER, BUSY));
    }

    #[test]
    fn a_writer_that_meets_a_writer_follows_the_last_in_the_queue() {
        let (first, second, third) = (WRITER | 1, WRITER | 2, WRITER | 3);
        assert_eq!(run(Alu::JoinWriters(X), 0, first), (first, ACQUIRED));
        assert_eq!(run(Alu::JoinWriters(X), first, second), (second, first));
        assert_eq!(run(Alu::JoinWriters(X), second, third), (third, second));
        assert_eq!(run(Alu::Leave(X), third, first), (third, FOLLOWED));
        assert_eq!(run(Alu::Leave(X), third, third), (0, 0));
        assert_eq!(run(Alu::TryReadLock, third, 0), (third, BUSY), "readers do not follow");
        assert_eq!(run(Alu::JoinWriters(X), 1, third), (1, BUSY), "nobody follows readers");
        assert_eq!(run(Alu::JoinWriters(X), WRITER, third), (WRITER, BUSY), "nor whoever takes no line");
        assert_eq!(run(Alu::TakeIfEqual(X), FOLLOWED, FOLLOWED), (0, FOLLOWED));
        assert_eq!(run(Alu::TakeIfEqual(X), 1, FOLLOWED), (1, 1));
    }

    #[test]
    fn nobody_releases_what_is_not_held() {
        assert_eq!(run(Alu::Release(X), 3, 2).0, 1);
        assert_eq!(run(Alu::Release(X), 3, 4).0, 3);
        assert_eq!(run(Alu::Release(X), WRITER, WRITER).0, 0);
        assert_eq!(run(Alu::Release(X), WRITER, 1).0, WRITER, "a reader's release leaves the writer alone");
        assert_eq!(run(Alu::Release(X), 3, WRITER).0, 3, "a writer's release leaves readers alone");
    }

    #[test]
    fn a_score_counts_acquisitions_and_keeps_its_first_mark() {
        assert_eq!(run(Alu::CountOrMark(X), 0, ACQUIRED).0, 1);
        assert_eq!(run(Alu::CountOrMark(X), 1, ACQUIRED).0, 2);
        assert_eq!(run(Alu::CountOrMark(X), 0, BUSY).0, BUSY);
        assert_eq!(run(Alu::CountOrMark(X), 1, BUSY).0, 1);
        assert_eq!(run(Alu::CountOrMark(X), BUSY, ACQUIRED).0, BUSY + 1);
        assert_eq!(run(Alu::CountOrMark(X), 1 << 14, BUSY).0, 1 << 14);
    }

    #[test]
    fn tags_are_matched_probed_claimed_and_cleared() {
        assert_eq!(run(Alu::MatchTag(X), 7, 7), (7, HIT));
        assert_eq!(run(Alu::MatchTag(X), 0, 7), (0, MISS));
        assert_eq!(run(Alu::ProbeTag(X), 7, 7), (7, PRESENT));
        assert_eq!(run(Alu::ProbeTag(X), 0, 7), (0, VACANT));
        assert_eq!(run(Alu::ProbeTag(X), 8, 7), (8, TAKEN));
        assert_eq!(run(Alu::ClaimIfEmpty(X), 0, 7), (7, HIT));
        assert_eq!(run(Alu::ClaimIfEmpty(X), 8, 7), (8, MISS));
        assert_eq!(run(Alu::ClearIfEqual(X), 7, 7), (0, HIT));
        assert_eq!(run(Alu::ClearIfEqual(X), 8, 7), (8, MISS));
    }

    #[test]
    fn who_takes_what_is_free_begins_the_next_term() {
        assert_eq!(run(Alu::TakeIfFree(X), 0x500, 3), (0x603, 0x500));
        assert_eq!(run(Alu::TakeIfFree(X), 0x502, 3), (0x502, 0x502));
        assert_eq!(run(Alu::MarkIfEqual(X), 0x582, 0x582), (0x502, 0x582));
        assert_eq!(run(Alu::MarkIfEqual(X), 0x502, 0x582), (0x502, 0x502));
    }

    #[test]
    fn a_number_is_new_once_and_comes_round() {
        let (next, number) = (|psn: u64| psn << 8 | 1, |psn: u64| psn << 8);
        assert_eq!(run(Alu::Advance(X), 0, number(5)), (0, MISS), "nobody has said where to begin");
        assert_eq!(run(Alu::Advance(X), next(5), number(5)), (next(6), HIT));
        assert_eq!(run(Alu::Advance(X), next(6), number(5)), (next(6), MISS));
        assert_eq!(run(Alu::Advance(X), next(6), number(9)), (next(10), HIT), "some were lost");
        let last = 0xff_ffff;
        let (cell, output) = run(Alu::Advance(X), next(last), number(last));
        assert_eq!((cell & 0xffff_ffff, output), (next(0), HIT));
        assert_eq!(run(Alu::Advance(X), next(0), number(last)), (next(0), MISS), "the last comes before 0");
        assert_eq!([4, 5, 6].map(|psn| run(Alu::Passed(X), next(5), number(psn)).1), [HIT, MISS, MISS]);
        assert_eq!(run(Alu::Passed(X), next(0), number(last)), (next(0), HIT));
    }

    #[test]
    fn what_is_outstanding_is_taken_once_by_whoever_names_it() {
        let (cell, taken) = (7 << 32 | 5 << 24 | 9, 1 << 62 | 7 << 32 | 5 << 24 | 9);
        assert_eq!(run(Alu::TakeIfMost(X), cell, 7 << 32 | 5 << 24), (taken, 9));
        assert_eq!(run(Alu::TakeIfMost(X), cell, 7 << 32 | 4 << 24), (cell, 0), "another use of it");
        assert_eq!(run(Alu::TakeIfMost(X), taken, 7 << 32 | 5 << 24), (taken, 0), "once more");
        assert_eq!(run(Alu::LookIfHigh(X), taken, 1 << 62 | 7 << 32), (taken, 9));
        assert_eq!(run(Alu::LookIfHigh(X), cell, 1 << 62 | 7 << 32), (cell, 0), "it is not taken");
        assert_eq!(run(Alu::KeepIfEqual(X), 9, 9), (9, 9));
        assert_eq!(run(Alu::KeepIfEqual(X), 8, 9), (0, 0));
        assert_eq!(run(Alu::SetIfAny(X), 0, 9), (0, 0), "nobody knows the tail");
        assert_eq!(run(Alu::SetIfAny(X), 6, 9), (9, 6));
        assert_eq!(run(Alu::LowerIfEqual(X), 0x500_0007, 0x500_0007), (0x500_0000, 0x500_0007));
        assert_eq!(run(Alu::LowerIfEqual(X), 0x500_0007, 0x500_0008).0, 0x500_0007, "it is another tail");
    }

    #[test]
    fn plain_programs_read_set_and_merge() {
        assert_eq!(run(Alu::Read, 6, 1), (6, 6));
        assert_eq!(run(Alu::Set(X), 6, 1), (1, 1));
        assert_eq!(run(Alu::Or(X), 6, 1), (7, 7));
        assert_eq!(run(Alu::And(X), 6, 3), (2, 2));
        assert_eq!(run(Alu::SetIfZero(X), 0, 9), (9, 0));
        assert_eq!(run(Alu::SetIfZero(X), 6, 9), (6, 6));
    }
}
