//! One allocation for one-sided operations: where its words are, and whether it is still there.
//!
//! What must always hold: whoever finds a word here finds it inside the allocation. Whoever finds the region alive *after* it
//! has read has read what belonged to the region.

mod bytes;

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nic::regions::Shape;
use wire::GlobalAddr;

use super::held::Held;
use super::shared::{Shared, Writer};
use super::{Object, Torn, objects};
use crate::memory::home::HomeMemory;
use crate::memory::words::Words;

/// Why a word or an object cannot be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Missing {
    /// The region was freed.
    Ended,
    /// The region's home is dead.
    HomeDied,
    /// The region has no such element.
    Beyond,
    /// Its writer died, or is believed to be dead: the object is half-written, until somebody writes all of it.
    Lost,
}

/// What a region's state is.
pub(super) const ENDED: u64 = 0;
pub(super) const INCARNATIONS: u64 = 1;
pub(super) const HOME_DIED: u64 = 2;

/// The state of a region that only this process has: on a line of its own, as every operation looks at it.
#[repr(align(128))]
struct RegionState(AtomicU64);

/// An allocation for one-sided operations.
pub struct Region {
    state: Held<AtomicU64>,
    /// The words, as far as they lie in one chunk.
    first: Held<[AtomicU64]>,
    /// The chunks behind it.
    rest: Box<[Arc<Words>]>,
    stride: usize,
    /// Elements that lie in the first chunk as a whole.
    whole_in_first: usize,
    /// Words of an element, and its bytes without the version.
    words: usize,
    len: usize,
    addr: GlobalAddr,
    shape: Shape,
    /// If other processes have it mapped, too.
    shared: Option<Shared>,
}

impl Region {
    /// The region at an address of this home. Its memory is there, and zeroes.
    pub(super) fn new(home: &HomeMemory, addr: GlobalAddr, shape: Shape) -> Self {
        let words = shape.words().expect("it was allocated");
        let (mut chunks, first) = home.chunks_of(addr.offset(), words);
        let rest = chunks.split_off(1).into();
        let head = chunks.pop().expect("there are words");
        let end = head.get().len().min(first + words);
        let state = Held::new(Arc::new(RegionState(AtomicU64::new(INCARNATIONS))), |state| &state.0);
        Self::of_parts(state, Held::new(head, move |head| &head.get()[first..end]), rest, addr, shape, None)
    }

    pub(super) fn of_parts(
        state: Held<AtomicU64>,
        first: Held<[AtomicU64]>,
        rest: Box<[Arc<Words>]>,
        addr: GlobalAddr,
        shape: Shape,
        shared: Option<Shared>,
    ) -> Self {
        let (words, len) = match shape {
            Shape::Words { .. } | Shape::Chain { .. } => (1, 8),
            Shape::Objects { len, .. } => (len.div_ceil(8) + 1, len),
        };
        Self {
            whole_in_first: first.len() / shape.stride(),
            state,
            first,
            rest,
            stride: shape.stride(),
            words,
            len,
            addr,
            shape,
            shared,
        }
    }

    /// What is left to be known of it when it has ended: that it has, and what it was made of.
    pub fn remains(&self) -> Self {
        let state = Held::new(Arc::new(RegionState(AtomicU64::new(ENDED))), |state| &state.0);
        let none = Held::new(Arc::new(()), |()| [].as_slice());
        Self::of_parts(state, none, Box::default(), self.addr, self.shape, None)
    }

    /// Where it begins.
    pub const fn addr(&self) -> GlobalAddr {
        self.addr
    }

    /// What it is made of.
    pub const fn shape(&self) -> Shape {
        self.shape
    }

    /// The first byte, as its home's NIC counts: by address, and in the memory of chains from their first unit on, so that a
    /// location says where it is.
    pub const fn base(&self) -> u64 {
        self.shape.base(self.addr)
    }

    /// It has not been freed. Behind an acquire fence: and what was read before that was the region's.
    #[inline]
    pub fn is_alive(&self) -> bool {
        self.state.load(Ordering::SeqCst) == INCARNATIONS
    }

    /// Why it does not live.
    #[cold]
    pub(super) fn why_not(&self) -> Missing {
        if self.state.load(Ordering::SeqCst) == HOME_DIED { Missing::HomeDied } else { Missing::Ended }
    }

    pub(super) const fn shared(&self) -> Option<&Shared> {
        self.shared.as_ref()
    }

    /// Who writes objects in this process.
    pub(super) fn writer(&self) -> Writer {
        self.shared.as_ref().map_or(Writer::HOME, |shared| shared.writer)
    }

    /// It does not live from now on. And a fence: whoever reads what comes into this memory next sees it, too.
    pub(super) fn set_state(&self, state: u64) {
        self.state.store(state, Ordering::SeqCst);
        std::sync::atomic::fence(Ordering::SeqCst);
    }

    pub(super) fn version_of(&self, number: usize) -> &AtomicU64 {
        &self.words(number * self.stride, 1).expect("it is one of them").0[0]
    }

    /// A word.
    ///
    /// # Errors
    /// If it is not, or not any more.
    #[inline(always)]
    pub fn word(&self, at: usize) -> Result<&AtomicU64, Missing> {
        // One comparison where everything is in one chunk: nothing of a fetch-add is to be spared more.
        if !self.is_alive() {
            return Err(self.why_not());
        }
        if let Some(word) = self.first.get(at) {
            return Ok(word);
        }
        self.words(at, 1).map(|(first, _)| &first[0]).ok_or(Missing::Beyond)
    }

    /// The same, if it is in the first chunk, or nothing: with nothing else on the way.
    #[inline(always)]
    pub fn word_in_first(&self, at: usize) -> Option<&AtomicU64> {
        if self.is_alive() { self.first.get(at) } else { None }
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
        let at = number.wrapping_mul(self.stride);
        if self.is_alive()
            && number < self.whole_in_first
            && into.len() == self.len
            && let Some([version, data @ ..]) = self.first.get(at..at + self.words)
        {
            return objects::read(self, version, || objects::copy_whole(data, into));
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
        if !self.is_alive() {
            return Err(self.why_not());
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
        let mut chunks = std::iter::once(&*self.first).chain(self.rest.iter().map(|chunk| chunk.get()));
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

    /// The object whose version is at so many bytes from the beginning.
    ///
    /// # Errors
    /// If none is, or not any more.
    pub fn object_at(&self, offset: u64) -> Result<Object<'_>, Missing> {
        let stride = self.stride as u64 * 8;
        let number = usize::try_from(offset / stride).unwrap_or(usize::MAX);
        if !matches!(self.shape, Shape::Objects { .. }) || !offset.is_multiple_of(stride) {
            return Err(Missing::Beyond);
        }
        self.object(number)
    }

    /// Ends it: it is not found alive any more. When this returns no writer is inside an object, unless the region has memory of
    /// its own, which nobody else is given.
    ///
    /// In the home's memory, a thread that found the region alive a moment ago, and was preempted then, may still change a word, or touch an object's
    /// version, when the memory is another's. To exclude that would cost every operation more than it takes; programs free
    /// what nobody uses any more.
    pub(super) fn end(&self) {
        if self.shared.is_some() {
            return self.end_shared();
        }
        // A writer takes its object and then looks whether the region lives; this is the other way round. So either it
        // sees that, or it is seen here.
        self.set_state(ENDED);
        let mut looks = 0_u32;
        while self.is_written() {
            looks += 1;
            if looks.is_multiple_of(64) { crate::scheduling::give_way() } else { spin_loop() }
        }
    }

    /// Ends it; false if writers are still inside objects. Once there are none, none will be.
    pub(super) fn try_end(&self) -> bool {
        if self.shared.is_some() {
            self.end_shared();
            return true;
        }
        self.set_state(ENDED);
        !self.is_written()
    }

    fn is_written(&self) -> bool {
        let Shape::Objects { count, .. } = self.shape else { return false };
        (0..count).any(|number| !self.version_of(number).load(Ordering::SeqCst).is_multiple_of(2))
    }
}

impl std::fmt::Debug for Region {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Region")
            .field("addr", &self.addr)
            .field("shape", &self.shape)
            .field("is_alive", &self.is_alive())
            .field("is_shared", &self.shared.is_some())
            .finish_non_exhaustive()
    }
}
