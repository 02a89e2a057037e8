//! What an allocation for one-sided operations is made of.
//!
//! The same at its home and at whoever uses it. What must always hold: an element lies in the allocation, at its stride.

use wire::{Discipline, GlobalAddr};

/// What an allocation is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// So many words of 64 bits.
    Words {
        /// How many.
        count: usize,
    },
    /// Objects of one length, beside each other.
    Objects {
        /// How many.
        count: usize,
        /// Bytes of one.
        len: usize,
        /// Who writes one writes its first [`Shape::FRONT`] bytes last, word by word from behind. So if a writer dies in one, what is there
        /// is what its front says: the object is not lost.
        front_last: bool,
    },
    /// A part of the memory of chains: so many units of it.
    Chain {
        /// The number of the first unit.
        first: u32,
        /// How many.
        units: u32,
    },
}

impl Shape {
    /// Bytes that are written last, where that is so.
    pub const FRONT: usize = 24;

    /// Objects that are lost if their writer dies.
    pub const fn objects(count: usize, len: usize) -> Self {
        Self::Objects { count, len, front_last: false }
    }

    /// The discipline that it goes with.
    pub const fn discipline(self) -> Discipline {
        match self {
            Self::Words { .. } => Discipline::Word,
            Self::Objects { .. } => Discipline::Object,
            Self::Chain { .. } => Discipline::Chain,
        }
    }

    /// Words from one element to the next. Objects begin with their version, and none lies on more cache lines than it has to.
    pub const fn stride(self) -> usize {
        match self {
            Self::Words { .. } => 1,
            Self::Chain { .. } => wire::chains::UNIT as usize / 8,
            Self::Objects { len, .. } => match len.div_ceil(8) + 1 {
                words @ ..=8 => words.next_power_of_two(),
                words => words.next_multiple_of(8),
            },
        }
    }

    /// Elements.
    pub const fn count(self) -> usize {
        match self {
            Self::Words { count } | Self::Objects { count, .. } => count,
            Self::Chain { units, .. } => units as usize,
        }
    }

    /// Words of the whole allocation; none if there are more than can be counted.
    pub fn words(self) -> Option<usize> {
        self.count().checked_mul(self.stride())
    }

    /// Bytes of the whole allocation; none if there are more than can be counted.
    pub fn bytes(self) -> Option<u64> {
        u64::try_from(self.words()?).ok()?.checked_mul(8)
    }

    /// The first byte of such an allocation, as its home's NIC counts: by address, and in the memory of chains from their first
    /// unit on, so that a location says where it is.
    pub const fn base(self, addr: GlobalAddr) -> u64 {
        match self {
            Self::Chain { first, .. } => first as u64 * wire::chains::UNIT,
            Self::Words { .. } | Self::Objects { .. } => addr.offset(),
        }
    }
}
