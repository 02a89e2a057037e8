//! The gate of a copy: one word that says who is inside, and who may enter without asking.
//!
//! ```text
//! 63                     20    19          18         17       16 15        0
//! +-----------------------+----------+-----------+--------+----------+
//! | generation            | for      | for       | writer | readers  |
//! |                       | writing  | reading   |        |          |
//! +-----------------------+----------+-----------+--------+----------+
//! ```
//!
//! The generation counts the locks that have had the slot: a hint of an earlier one fails the comparison. Open for writing
//! means open for reading, too. A gate that is open for neither is *closed*.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use node::locks::Users;
use wire::Mode;

const READER: u64 = 1;
const READERS: u64 = 0xffff;
const WRITER: u64 = 1 << 16;
const FOR_READING: u64 = 1 << 17;
const FOR_WRITING: u64 = 1 << 18;
const GENERATION_SHIFT: u32 = 20;
const INSIDE: u64 = READERS | WRITER;

/// A gate, in its word.
#[derive(Clone, Copy)]
pub(super) struct Gate<'a>(pub(super) &'a AtomicU64);

/// What whoever leaves has to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "a closed gate's machine waits to be told"]
pub enum Left {
    /// Nothing.
    Quietly,
    /// The gate was closed, and nobody is inside any more: the node's machine has to be told.
    AndIsAwaited,
}

impl Gate<'_> {
    /// The generation, as hints keep it.
    pub(super) fn generation(self) -> u64 {
        self.0.load(Acquire) >> GENERATION_SHIFT
    }

    /// Enters, if the gate is open for that and still of this generation.
    #[inline]
    pub(super) fn enter(self, generation: u64, mode: Mode) -> bool {
        let mut word = self.0.load(Relaxed);
        loop {
            let next = match mode {
                // Beside readers; and 65,535 of them are enough.
                Mode::Read if word & (FOR_READING | WRITER) == FOR_READING && word & READERS != READERS => {
                    word + READER
                }
                Mode::Write if word & (FOR_WRITING | INSIDE) == FOR_WRITING => word | WRITER,
                _ => return false,
            };
            if word >> GENERATION_SHIFT != generation {
                return false;
            }
            match self.0.compare_exchange_weak(word, next, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
    }

    /// Leaves.
    #[inline]
    pub(super) fn leave(self, mode: Mode) -> Left {
        let mine = if mode == Mode::Write { WRITER } else { READER };
        let before = self.0.fetch_sub(mine, Release);
        debug_assert!(before & if mode == Mode::Write { WRITER } else { READERS } != 0, "{before:#x}");
        let is_open = before & (FOR_READING | FOR_WRITING) != 0;
        if is_open || before & INSIDE != mine { Left::Quietly } else { Left::AndIsAwaited }
    }

    /// A new generation begins, closed and empty.
    pub(super) fn renew(self) {
        let word = self.0.load(Relaxed);
        assert!(word & INSIDE == 0, "a slot with somebody inside is not given away: {word:#x}");
        self.0.store(((word >> GENERATION_SHIFT) + 1) << GENERATION_SHIFT, Release);
    }

    pub(super) fn open(self, mode: Mode) {
        let flags = if mode == Mode::Write { FOR_READING | FOR_WRITING } else { FOR_READING };
        if flags & FOR_WRITING == 0 {
            self.0.fetch_and(!FOR_WRITING, AcqRel);
        }
        self.0.fetch_or(flags, AcqRel);
    }

    pub(super) fn close(self) -> Users {
        users(self.0.fetch_and(!(FOR_READING | FOR_WRITING), AcqRel))
    }

    pub(super) fn admit(self, mode: Mode) {
        let before = match mode {
            Mode::Read => self.0.fetch_add(READER, AcqRel),
            Mode::Write => self.0.fetch_or(WRITER, AcqRel),
        };
        let fits = match mode {
            Mode::Read => before & WRITER == 0 && before & READERS != READERS,
            Mode::Write => before & INSIDE == 0,
        };
        assert!(fits, "a machine lets in whom it must not: {mode:?} at {before:#x}");
    }

    /// Who is inside.
    pub(super) fn users(self) -> Users {
        users(self.0.load(Acquire))
    }

    /// Who may enter without asking.
    pub(super) fn is_open_for(self) -> Option<Mode> {
        match self.0.load(Relaxed) & (FOR_READING | FOR_WRITING) {
            0 => None,
            FOR_READING => Some(Mode::Read),
            _ => Some(Mode::Write),
        }
    }

    pub(super) fn is_closed(self) -> bool {
        self.0.load(Relaxed) & (FOR_READING | FOR_WRITING) == 0
    }
}

fn users(word: u64) -> Users {
    Users { readers: u32::try_from(word & READERS).expect("16 bits"), writer: word & WRITER != 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_lets_in_readers_together_and_a_writer_alone_as_far_as_it_is_open() {
        let word = AtomicU64::new(0);
        let gate = Gate(&word);
        gate.renew();
        assert!(!gate.enter(1, Mode::Read), "it begins closed");
        gate.open(Mode::Read);
        assert!(gate.enter(1, Mode::Read) && gate.enter(1, Mode::Read) && !gate.enter(1, Mode::Write));
        assert_eq!([gate.leave(Mode::Read), gate.leave(Mode::Read)], [Left::Quietly; 2]);
        gate.open(Mode::Write);
        assert!(gate.enter(1, Mode::Write) && !gate.enter(1, Mode::Read) && !gate.enter(1, Mode::Write));
        assert_eq!(gate.leave(Mode::Write), Left::Quietly);
        gate.open(Mode::Read);
        assert!(!gate.enter(1, Mode::Write), "it was open for writing, and is not any more");
    }

    #[test]
    fn the_last_to_leave_a_closed_gate_and_nobody_else_tells_the_machine() {
        let word = AtomicU64::new(0);
        let gate = Gate(&word);
        gate.open(Mode::Write);
        assert!(gate.enter(0, Mode::Read) && gate.enter(0, Mode::Read));
        assert_eq!(gate.close(), Users { readers: 2, writer: false });
        assert!(!gate.enter(0, Mode::Read));
        assert_eq!(gate.leave(Mode::Read), Left::Quietly);
        assert_eq!(gate.leave(Mode::Read), Left::AndIsAwaited);
        gate.admit(Mode::Write);
        assert_eq!(gate.users(), Users { readers: 0, writer: true });
        assert_eq!(gate.leave(Mode::Write), Left::AndIsAwaited);
    }

    #[test]
    fn a_hint_of_an_earlier_lock_does_not_enter() {
        let word = AtomicU64::new(0);
        let gate = Gate(&word);
        gate.renew();
        let generation = gate.generation();
        gate.renew();
        gate.open(Mode::Write);
        assert!(!gate.enter(generation, Mode::Read) && !gate.enter(generation, Mode::Write));
        assert!(gate.enter(gate.generation(), Mode::Read));
    }

    #[test]
    #[should_panic(expected = "somebody inside")]
    fn a_slot_with_somebody_inside_is_not_given_away() {
        let word = AtomicU64::new(0);
        let gate = Gate(&word);
        gate.admit(Mode::Read);
        gate.renew();
    }

    #[test]
    fn what_a_writer_wrote_is_seen_by_whoever_enters_after_him() {
        // Two counters that are equal whenever nobody is inside to write.
        let word = AtomicU64::new(0);
        let gate = Gate(&word);
        gate.open(Mode::Write);
        let cells = [AtomicU64::new(0), AtomicU64::new(0)];
        let rounds = 20_000;
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let cells = &cells;
                scope.spawn(move || {
                    for round in 0..rounds {
                        let mode = if (round + thread) % 3 == 0 { Mode::Write } else { Mode::Read };
                        while !gate.enter(0, mode) {
                            std::thread::yield_now();
                        }
                        let seen = cells[0].load(Relaxed);
                        assert_eq!(seen, cells[1].load(Relaxed), "half of a write was seen");
                        if mode == Mode::Write {
                            cells.iter().for_each(|cell| cell.store(seen + 1, Relaxed));
                        }
                        assert_eq!(gate.leave(mode), Left::Quietly);
                    }
                });
            }
        });
        let writes: u64 =
            (0..4).map(|thread| (0..rounds).filter(|round| (round + thread) % 3 == 0).count() as u64).sum();
        assert_eq!(cells[0].load(Relaxed), writes, "no write was lost");
    }
}
