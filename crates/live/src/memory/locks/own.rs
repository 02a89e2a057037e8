//! Copies of single threads, in a process that has no machine for locks: whoever holds the lock for them is elsewhere.
//!
//! In an application that is attached to a daemon. A copy is made when the lock was taken, for the thread that has it, and goes
//! when that thread has left. What must always hold: nobody else finds it (its slot has no address), and its gate is closed,
//! so that leaving it is told.

use wire::Mode;

use super::{Entered, LockCopies};

impl LockCopies {
    /// A copy of so many bytes, a multiple of 8, which the calling thread is inside of. What is in it is not defined.
    pub fn own(&self, len: u32, mode: Mode) -> Entered<'_> {
        let room = &mut *self.room();
        let number = room.slot_beyond(self.sets);
        self.give_room(room, number, len);
        let slot = self.slot(number);
        slot.gate().admit(mode);
        self.entered(slot)
    }

    /// The thread has left it, and whoever holds the lock knows: it is free again.
    pub fn disown(&self, copy: Entered<'_>) {
        let room = &mut *self.room();
        self.take_room(room, copy.slot);
        room.spare(copy.number());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::super::Left;
    use super::*;

    #[test]
    fn a_copy_is_its_threads_alone_until_it_is_given_back() {
        let copies = LockCopies::new(0);
        let (first, second) = (copies.own(16, Mode::Read), copies.own(16, Mode::Read));
        let (at, none) = (first.number(), copies.own(0, Mode::Write));
        assert_ne!(at, second.number());
        first.words()[1].store(1, Relaxed);
        second.words()[1].store(2, Relaxed);
        assert_eq!(copies.inside(at).words()[1].load(Relaxed), 1);
        assert_eq!((none.words().len(), none.leave(Mode::Write)), (0, Left::AndIsAwaited), "leaving is told");
        copies.disown(none);
        assert_eq!(first.leave(Mode::Read), Left::AndIsAwaited);
        copies.disown(first);
        assert_eq!(copies.own(1 << 20, Mode::Write).words().len(), 1 << 17);
        assert_eq!(second.words()[1].load(Relaxed), 2, "the others keep theirs");
    }
}
