//! The words of a locked region, seen as a value or as bytes.
//!
//! A region lies in an array of atomic words: nodes copy it while it is locked by nobody, so the array itself is shared memory.
//! Whoever is inside a lock's gate has the region as the gate says, and this file turns that into plain references. Plain
//! references are what takes unsafe code.
#![allow(unsafe_code)]

use std::marker::PhantomData;

use wire::Mode;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::header;
use super::inside::{Came, Inside};

/// A thread inside a copy that holds a `T` behind its header, to read it or to write it. Whoever has this calls [`Within::leave`] at last.
///
/// What must always hold: the copy has words for it, and the thread has come in that way. Both are looked at when this is made, and not at
/// each use.
#[repr(C)]
pub(super) struct Within<'a, T, const WRITES: bool> {
    came: Came<'a>,
    value: PhantomData<&'a T>,
    /// It may be changed: no subtype will do.
    exact: PhantomData<fn(T) -> T>,
}

impl<'a, T, const WRITES: bool> Within<'a, T, WRITES> {
    const MODE: Mode = if WRITES { Mode::Write } else { Mode::Read };

    #[inline(always)]
    pub(super) fn new(came: Came<'a>) -> Self {
        const { is_aligned::<T>() };
        assert!(came.words().len() * 8 >= header::BYTES + size_of::<T>(), "the region holds the value");
        assert!(came.mode() == Self::MODE, "only a writer writes");
        Self { came, value: PhantomData, exact: PhantomData }
    }

    /// The thread.
    #[inline(always)]
    pub(super) const fn came(&self) -> Came<'a> {
        self.came
    }

    /// The thread leaves. To be called once, when there are no references to the value any more: in a guard's `drop`.
    #[inline(always)]
    pub(super) fn leave(&mut self) {
        self.came.leave(Self::MODE);
    }

    #[inline(always)]
    fn place(&self) -> *mut T {
        // SAFETY: there are so many words, and a value behind them ([`Within::new`]).
        unsafe { self.came.words().as_ptr().add(header::WORDS).cast_mut().cast() }
    }

    #[inline(always)]
    pub(super) fn value(&self) -> &T
    where
        T: FromBytes + Immutable,
    {
        // SAFETY: the words hold a `T` at an address that suits it ([`Within::new`]), any bytes are a `T` (FromBytes), and none of it
        // changes behind a shared reference (Immutable). Nobody writes these bytes while the reference lives: it borrows `self`, so this
        // thread is inside the gate until then. The gate lets no writer in beside readers; if this thread is the writer, it gives out no
        // unique reference meanwhile, as that would borrow `self` mutably. The node's machine fills a copy only while nobody is inside
        // (`LockStoreOf::fill` asserts that). What was written before happens before this: see the memory orders at the head of
        // `live::memory::locks`.
        unsafe { &*self.place().cast_const() }
    }
}

impl<T: FromBytes + IntoBytes> Within<'_, T, true> {
    /// The value, to be written.
    #[inline(always)]
    pub(super) fn value_mut(&mut self) -> &mut T {
        // SAFETY: as above; and this thread is inside to write ([`Within::new`]). The gate lets nobody else in meanwhile, the machine reads a
        // copy only while no writer is inside (`LockStoreOf::contents` asserts that), and the borrow of `self` is unique, so this is the
        // only reference. Writing is allowed through a pointer to atomics behind a shared reference, as they are `UnsafeCell`s. All bytes
        // of a `T` are written as such (IntoBytes: none is padding).
        unsafe { &mut *self.place() }
    }
}

/// The first `len` bytes.
#[inline]
pub(super) fn bytes<'a>(inside: &'a Inside<'_>, len: usize) -> &'a [u8] {
    let words = inside.words();
    assert!(len <= words.len() * 8, "{len} bytes of {} words", words.len());
    // SAFETY: as in [`Within::value`]: the bytes lie in the words, and any bytes are bytes.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), len) }
}

/// The first `len` bytes, to be written.
#[inline]
pub(super) fn bytes_mut<'a>(inside: &'a mut Inside<'_>, len: usize) -> &'a mut [u8] {
    assert!(inside.mode() == Mode::Write, "only a writer writes");
    let words = inside.words();
    assert!(len <= words.len() * 8, "{len} bytes of {} words", words.len());
    // SAFETY: as in [`Within::value_mut`]; the pointer is that of the whole slice of atomics, so it may be used for all of them.
    unsafe { std::slice::from_raw_parts_mut(words.as_ptr().cast_mut().cast(), len) }
}

/// Checked when it is compiled: what is locked lies in words.
pub(super) const fn is_aligned<T>() {
    assert!(align_of::<T>() <= 8, "a locked value is aligned to at most 8 bytes");
}
