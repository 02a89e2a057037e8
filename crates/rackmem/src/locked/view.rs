//! The words of a locked region, seen as a value or as bytes.
//!
//! A region lies in an array of atomic words: nodes copy it while it is locked by nobody, so the array itself is shared memory.
//! Whoever is inside a lock's gate has the region as the gate says, and this file turns that into plain references. Plain
//! references are what takes unsafe code.
#![allow(unsafe_code)]

use std::sync::atomic::AtomicU64;

use wire::Mode;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::inside::Inside;

/// The value behind the first `skip` words.
#[inline]
pub(super) fn value<'a, T: FromBytes + Immutable>(inside: &'a Inside<'_>, skip: usize) -> &'a T {
    let place = place_of::<T>(&inside.words()[skip..]);
    // SAFETY: `place_of` has checked that the words hold a `T` at an address that suits it, any bytes are a `T`
    // (FromBytes), and none of it changes behind a shared reference (Immutable). Nobody writes these bytes while the reference
    // lives: it borrows `inside`, so this thread is inside the gate until then. The gate lets no writer in beside readers; if
    // this thread is the writer, it gives out no unique reference meanwhile, as that would borrow `inside` mutably. The
    // node's machine fills a copy only while nobody is inside (`LockStoreOf::fill` asserts that). What was written before
    // happens before this: see the memory orders at the head of `live::memory::locks`.
    unsafe { &*place.cast_const() }
}

/// The value behind the first `skip` words, to be written.
#[inline]
pub(super) fn value_mut<'a, T: FromBytes + IntoBytes>(inside: &'a mut Inside<'_>, skip: usize) -> &'a mut T {
    assert!(inside.mode() == Mode::Write, "only a writer writes");
    let place = place_of::<T>(&inside.words()[skip..]);
    // SAFETY: as above; and the gate lets nobody else in while a writer is inside, the machine reads a copy only while no
    // writer is inside (`LockStoreOf::contents` asserts that), and the borrow of `inside` is unique, so this is the only
    // reference. Writing is allowed through a pointer to atomics behind a shared reference, as they are
    // `UnsafeCell`s. All bytes of a `T` are written as such (IntoBytes: none is padding).
    unsafe { &mut *place }
}

/// The first `len` bytes.
#[inline]
pub(super) fn bytes<'a>(inside: &'a Inside<'_>, len: usize) -> &'a [u8] {
    let words = inside.words();
    assert!(len <= words.len() * 8, "{len} bytes of {} words", words.len());
    // SAFETY: as in `value`: the bytes lie in the words, and any bytes are bytes.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), len) }
}

/// The first `len` bytes, to be written.
#[inline]
pub(super) fn bytes_mut<'a>(inside: &'a mut Inside<'_>, len: usize) -> &'a mut [u8] {
    assert!(inside.mode() == Mode::Write, "only a writer writes");
    let words = inside.words();
    assert!(len <= words.len() * 8, "{len} bytes of {} words", words.len());
    // SAFETY: as in `value_mut`; the pointer is that of the whole slice of atomics, so it may be used for all of them.
    unsafe { std::slice::from_raw_parts_mut(words.as_ptr().cast_mut().cast(), len) }
}

/// Checked when it is compiled: what is locked lies in words.
pub(super) const fn is_aligned<T>() {
    assert!(align_of::<T>() <= 8, "a locked value is aligned to at most 8 bytes");
}

/// Where a `T` begins in these words.
#[inline]
fn place_of<T>(words: &[AtomicU64]) -> *mut T {
    const { is_aligned::<T>() };
    assert!(size_of::<T>() <= size_of_val(words), "the region holds the value");
    words.as_ptr().cast_mut().cast()
}
