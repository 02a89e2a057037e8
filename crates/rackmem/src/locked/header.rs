//! The two words in front of a locked value: who made it and whether it is poisoned, and its fencing number.
//!
//! ```text
//!   word 0    making 63 | poisoned 1
//!   word 1    epoch in which it was made 32 | write grants since then 32, which carry into the epoch
//! ```
//!
//! Only whoever is inside the lock looks at them. What must always hold: a fencing number grows with every write grant. It does also
//! where the data are lost and made anew: somebody has died then, so the epoch is a later one. (Not if there were more than four
//! billion grants since the last time, and fewer deaths than that has carried over.)

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::inside::Inside;

/// Words before the value.
pub(crate) const WORDS: usize = 2;
/// Bytes before the value.
pub(crate) const BYTES: usize = WORDS * 8;
const POISONED: u64 = 1;

/// Which value a handle means: of all that are ever made under a name, one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Making {
    /// Which bits of the first word are compared, and what they must be.
    mask: u64,
    state: u64,
}

/// What is wrong with a value that was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flaw {
    /// A thread has panicked while it wrote.
    Poisoned,
    /// It is another one: that which was meant is lost.
    Another,
}

impl Making {
    /// Whatever is there.
    pub(crate) const ANY: Self = Self { mask: POISONED, state: 0 };

    /// The one that was made under this number.
    pub(crate) const fn of(number: u64) -> Self {
        Self { mask: !0, state: number << 1 }
    }

    /// What begins a value that is made under this number, in this epoch.
    pub(crate) const fn header(number: u64, epoch: u32) -> [u64; WORDS] {
        [number << 1, (epoch as u64) << 32]
    }

    /// Looks at a value.
    #[inline(always)]
    pub(super) fn check(self, words: &[AtomicU64]) -> Result<(), Flaw> {
        let word = words[0].load(Relaxed);
        if word & self.mask == self.state { Ok(()) } else { Err(self.flaw(word)) }
    }

    #[cold]
    const fn flaw(self, word: u64) -> Flaw {
        if (word ^ self.state) & self.mask == POISONED { Flaw::Poisoned } else { Flaw::Another }
    }
}

/// A writer has come in: its fencing number.
#[inline(always)]
pub(super) fn granted(words: &[AtomicU64]) -> u64 {
    let fence = words[1].load(Relaxed).wrapping_add(1);
    words[1].store(fence, Relaxed);
    fence
}

/// The fencing number of the next write grant is of this epoch, or of a later one.
pub(super) fn raise(words: &[AtomicU64], epoch: u32) {
    words[1].fetch_max(u64::from(epoch) << 32, Relaxed);
}

/// The fencing number of the last write grant.
#[inline]
pub(crate) fn fence(words: &[AtomicU64]) -> u64 {
    words[1].load(Relaxed)
}

/// Marks the value.
pub(super) fn poison(words: &[AtomicU64]) {
    words[0].fetch_or(POISONED, Relaxed);
}

/// Takes the mark away.
pub(super) fn clear_poison(words: &[AtomicU64]) {
    words[0].fetch_and(!POISONED, Relaxed);
}

/// Begins a value, which is zeroes so far: the calling thread is alone with it.
pub(super) fn begin(inside: &Inside<'_>, header: [u64; WORDS]) {
    let words = inside.words();
    words.iter().for_each(|word| word.store(0, Relaxed));
    words.iter().zip(header).for_each(|(word, value)| word.store(value, Relaxed));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_known_by_its_making_poisoned_or_not() {
        let words = Making::header(7, 3).map(AtomicU64::new);
        for meant in [Making::of(7), Making::ANY] {
            assert_eq!(meant.check(&words), Ok(()));
            poison(&words);
            assert_eq!(meant.check(&words), Err(Flaw::Poisoned));
            clear_poison(&words);
        }
        assert_eq!(Making::of(6).check(&words), Err(Flaw::Another));
        poison(&words);
        assert_eq!(Making::of(6).check(&words), Err(Flaw::Another));
    }

    #[test]
    fn fences_grow_with_grants_and_with_epochs() {
        let [old, new] = [3, 4].map(|epoch| Making::header(1, epoch).map(AtomicU64::new));
        let mut last = fence(&old);
        for _ in 0..5 {
            assert_eq!(granted(&old), fence(&old));
            assert!(fence(&old) > last);
            last = fence(&old);
        }
        assert!(fence(&new) > last, "made anew in a later epoch");
        raise(&old, 4);
        assert!(granted(&old) > last, "found in a later epoch");
        last = fence(&old);
        raise(&old, 3);
        assert_eq!(fence(&old), last);
    }
}
