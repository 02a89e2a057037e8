//! One allocation for one-sided operations: where its words are, and whether it is still there.
//!
//! What must always hold: whoever finds a word here finds it inside the allocation. Whoever finds the region alive *after* it
//! has read has read what belonged to the region.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use wire::{Discipline, GlobalAddr};

use super::{Object, Torn, object};
use crate::memory::home::HomeMemory;
use crate::memory::words::Words;

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
    },
}

impl Shape {
    /// The discipline that it goes with.
    pub const fn discipline(self) -> Discipline {
        match self {
            Self::Words { .. } => Discipline::Word,
            Self::Objects { .. } => Discipline::Object,
        }
    }

    /// Words from one element to the next. Objects begin with their version, and none lies on more cache lines than it has to.
    const fn stride(self) -> usize {
        match self {
            Self::Words { .. } => 1,
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
        }
    }

    /// Bytes of the whole allocation; none if there are more than can be counted.
    pub fn bytes(self) -> Option<u64> {
        let words = self.count().checked_mul(self.stride())?;
        u64::try_from(words).ok()?.checked_mul(8)
    }
}

/// Why a word or an object was not found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Missing {
    /// The region was freed.
    Ended,
    /// The region has no such element.
    Beyond,
}

/// An allocation for one-sided operations.
pub struct Region {
    lives: AtomicBool,
    /// Words in the first chunk.
    in_head: usize,
    /// Where in the first chunk, with its margins, the first word is.
    skew: usize,
    head: Arc<Words>,
    /// The chunks behind it.
    rest: Box<[Arc<Words>]>,
    stride: usize,
    /// Elements that lie in the first chunk as a whole.
    whole_in_head: usize,
    /// Words of an element, and its bytes without the version.
    words: usize,
    len: usize,
    addr: GlobalAddr,
    shape: Shape,
}

impl Region {
    /// The region at an address of this home. Its memory is there, and zeroes.
    pub(super) fn new(home: &HomeMemory, addr: GlobalAddr, shape: Shape) -> Self {
        let words = shape.count() * shape.stride();
        let (mut chunks, first) = home.chunks_of(addr.offset(), words);
        let rest = chunks.split_off(1).into();
        let head = chunks.pop().expect("there are words");
        let in_head = words.min(head.get().len() - first);
        let (words, len) = match shape {
            Shape::Words { .. } => (1, 8),
            Shape::Objects { len, .. } => (len.div_ceil(8) + 1, len),
        };
        Self {
            lives: AtomicBool::new(true),
            in_head,
            whole_in_head: in_head / shape.stride(),
            words,
            len,
            skew: head.first() + first,
            head,
            rest,
            stride: shape.stride(),
            addr,
            shape,
        }
    }

    /// Where it begins.
    pub const fn addr(&self) -> GlobalAddr {
        self.addr
    }

    /// What it is made of.
    pub const fn shape(&self) -> Shape {
        self.shape
    }

    /// It has not been freed. Behind an acquire fence: and what was read before that was the region's.
    #[inline]
    pub fn lives(&self) -> bool {
        self.lives.load(Ordering::SeqCst)
    }

    /// A word.
    ///
    /// # Errors
    /// If it is not, or not any more.
    #[inline(always)]
    pub fn word(&self, at: usize) -> Result<&AtomicU64, Missing> {
        // One comparison where everything is in one chunk: nothing of a fetch-add is to be spared more.
        if !self.lives() {
            return Err(Missing::Ended);
        }
        if at < self.in_head
            && let Some(word) = self.head.with_margins().get(self.skew + at)
        {
            return Ok(word);
        }
        self.words(at, 1).map(|(first, _)| &first[0]).ok_or(Missing::Beyond)
    }

    /// Tries to read an object whole, once: [`Object::read`], with nothing on the way of the common case.
    ///
    /// # Errors
    /// As for [`Region::object`]; inside that, if a writer was there.
    ///
    /// # Panics
    /// If `into` has another length than the objects.
    #[inline(always)]
    pub fn read(&self, number: usize, into: &mut [u8]) -> Result<Result<u64, Torn>, Missing> {
        let at = number.wrapping_mul(self.stride).wrapping_add(self.skew);
        if self.lives()
            && number < self.whole_in_head
            && into.len() == self.len
            && let Some([version, data @ ..]) = self.head.with_margins().get(at..at + self.words)
        {
            return object::read(self, version, || object::copy_whole(data, into));
        }
        self.read_far(number, into)
    }

    #[cold]
    #[inline(never)]
    fn read_far(&self, number: usize, into: &mut [u8]) -> Result<Result<u64, Torn>, Missing> {
        self.object(number)?.read(into)
    }

    /// An object.
    ///
    /// # Errors
    /// If it is not, or not any more.
    pub fn object(&self, number: usize) -> Result<Object<'_>, Missing> {
        if !self.lives() {
            return Err(Missing::Ended);
        }
        let at = Some(number).filter(|number| *number < self.shape.count()).ok_or(Missing::Beyond)?;
        let (first, rest) = self.words(at * self.stride, self.words).expect("it is one of them");
        Ok(Object::new(self, first, rest, self.len))
    }

    /// Words that lie in one chunk or two. A chunk is longer than any object.
    #[cold]
    #[inline(never)]
    fn words(&self, at: usize, len: usize) -> Option<(&[AtomicU64], &[AtomicU64])> {
        at.checked_add(len).filter(|end| *end <= self.shape.count() * self.stride)?;
        let mut chunks = std::iter::once(&self.head.with_margins()[self.skew..self.skew + self.in_head])
            .chain(self.rest.iter().map(|chunk| chunk.get()));
        let mut at = at;
        let first = chunks.by_ref().find_map(|chunk| match chunk.get(at..) {
            Some(words) if !words.is_empty() => Some(words),
            _ => {
                at -= chunk.len();
                None
            }
        })?;
        match first.get(..len) {
            Some(whole) => Some((whole, &[])),
            None => Some((first, chunks.next()?.get(..len - first.len())?)),
        }
    }

    /// Ends it: it is not found alive any more. When this returns no writer is inside an object.
    ///
    /// A thread that found the region alive a moment ago, and was preempted then, may still change a word, or touch an object's
    /// version, when the memory is another's. To exclude that would cost every operation more than it takes; programs free
    /// what nobody uses any more.
    pub(super) fn end(&self) {
        // A writer takes its object and then looks whether the region lives; this is the other way round. So either it
        // sees that, or it is seen here. And a fence: whoever reads what comes into this memory next sees the end, too.
        self.lives.store(false, Ordering::SeqCst);
        std::sync::atomic::fence(Ordering::SeqCst);
        let Shape::Objects { count, .. } = self.shape else { return };
        for number in 0..count {
            let (head, _) = self.words(number * self.stride, 1).expect("it is one of them");
            let mut looks = 0_u32;
            while !head[0].load(Ordering::SeqCst).is_multiple_of(2) {
                looks += 1;
                if looks.is_multiple_of(64) { std::thread::yield_now() } else { spin_loop() }
            }
        }
    }
}

impl std::fmt::Debug for Region {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Region")
            .field("addr", &self.addr)
            .field("shape", &self.shape)
            .field("lives", &self.lives())
            .finish_non_exhaustive()
    }
}
