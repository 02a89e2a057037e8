//! One object in memory: a version, and behind it the data.
//!
//! This is the driver of [`nic::objects`]'s semantics for the memory of an ordinary processor, which tells nobody of writes:
//! [`nic::objects::Mode::VersionFirst`]. The engine's steps are the reader's, one to one:
//!
//! | engine | here |
//! | --- | --- |
//! | the version is asked for first | a load of the version, acquiring |
//! | it is odd: torn, the object is being written | [`Torn::Written`], nothing is copied |
//! | blocks are read, in any order | the copy, through relaxed atomics |
//! | the version is read once more, after all blocks | an acquire fence, and a load |
//! | it is another one: torn | [`Torn::Changed`] |
//! | the verdict: whole | the version |
//! | no retry | no retry: the policy is the caller's |
//!
//! # Why no torn read is called whole
//! A writer makes the version odd by compare-and-swap, passes a release fence, stores data, and stores the next even version
//! with release ordering. If a reader's copy has one word that a writer stored after the reader's first load of the version
//! was answered, then that store came behind the writer's fence, and the reader's acquire fence makes the odd version, or
//! a later one, visible to its last load: it differs. If the copy missed a store of an earlier writer, whose end the first
//! load did see, acquire and release would be broken. So all words are those of the version that was read. A version of 53 bits
//! does not come round.
//!
//! The ends of a write and the first load of a read are sequentially consistent, so that operations are linearizable: a write that has
//! returned is seen by every read that begins afterwards, on whichever object.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use node::Window;

use super::shared::{Writer, is_lost, lost};
use super::{Missing, Region, Shape};
use crate::scheduling::give_way;

/// Why a read was not whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Torn {
    /// A writer had the object when the read began.
    Written,
    /// A writer came while it was read.
    Changed,
}

/// An object of a region.
#[derive(Clone, Copy)]
pub struct Object<'a> {
    region: &'a Region,
    version: &'a AtomicU64,
    /// The data, as far as they lie in the chunk of the version.
    first: &'a [AtomicU64],
    rest: &'a [AtomicU64],
    len: usize,
}

/// An object that this thread writes. Ends with the next even version, also when the thread panics. What becomes of it when the
/// process dies is in `shared.rs`.
#[must_use = "the object is given back when this is dropped"]
pub struct Writing<'a> {
    object: Object<'a>,
    taken: u64,
}

/// What an attempt to take an object came to.
pub enum Taking<'a> {
    /// It is this thread's.
    Taken(Writing<'a>),
    /// Somebody is writing.
    Busy,
    /// It has another version than was expected.
    Changed,
}

impl<'a> Object<'a> {
    #[inline(always)]
    pub(super) fn new(region: &'a Region, words: &'a [AtomicU64], rest: &'a [AtomicU64], len: usize) -> Self {
        let (version, first) = words.split_first().expect("an object begins with its version");
        Self { region, version, first, rest, len }
    }

    /// Bytes of data.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// There are none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Tries to read all of it, once; returns the version. What is in `into` counts only then.
    ///
    /// # Errors
    /// If it is gone, or lost; inside that, if a writer was there.
    ///
    /// # Panics
    /// If `into` has another length than the object.
    pub fn read(&self, into: &mut [u8]) -> Result<Result<u64, Torn>, Missing> {
        assert!(into.len() == self.len, "{} bytes for an object of {}", into.len(), self.len);
        read(self.region, self.version, || self.copy_out(0, into))
    }

    /// Waits until no other writer has it, and takes it.
    ///
    /// # Errors
    /// If it is gone, or lost.
    pub fn write(&self) -> Result<Writing<'a>, Missing> {
        self.take(false)
    }

    /// Writes all of it, also if it was lost; returns the version that it has then.
    ///
    /// # Errors
    /// If it is gone; or it is in the hands of a writer that is believed to be dead, and has not been stopped for good.
    ///
    /// # Panics
    /// If there are more or fewer bytes than it has.
    pub fn overwrite(&self, bytes: &[u8]) -> Result<u64, Missing> {
        assert!(bytes.len() == self.len, "{} bytes for an object of {}", bytes.len(), self.len);
        let writing = self.take(true)?;
        writing.write(0, bytes);
        Ok(writing.version())
    }

    /// Waits until it is taken; a lost one only if all of it will be written.
    fn take(&self, lost_ones: bool) -> Result<Writing<'a>, Missing> {
        let mut looks = 0_u32;
        loop {
            if let Taking::Taken(writing) = self.try_take(lost_ones, None)? {
                return Ok(writing);
            }
            // Who has it is about done, or was preempted: then it needs a core.
            looks += 1;
            if looks.is_multiple_of(64) { give_way() } else { std::hint::spin_loop() }
        }
    }

    /// Takes it, if nobody has it; and, if a version is expected, only in that one. A lost one only if all of it will be written.
    ///
    /// # Errors
    /// If it is gone, or lost.
    pub fn try_take(&self, lost_ones: bool, expected: Option<u64>) -> Result<Taking<'a>, Missing> {
        let found = self.version.load(Ordering::Relaxed);
        let taken = self.region.writer().takes(found);
        let is_free = found.is_multiple_of(2) || lost_ones && is_lost(found);
        if is_free && expected.is_some_and(|expected| expected != found) {
            return if self.region.is_alive() { Ok(Taking::Changed) } else { Err(self.region.why_not()) };
        }
        if is_free && self.version.compare_exchange(found, taken, Ordering::SeqCst, Ordering::Relaxed).is_ok()
        {
            if !self.region.is_alive() {
                // Whoever ended the region waits for this. The memory is not the object's any more: as if nothing had been.
                self.version.store(found, Ordering::SeqCst);
                return Err(self.region.why_not());
            }
            fence(Ordering::Release);
            return Ok(Taking::Taken(Writing { object: *self, taken }));
        }
        if !self.region.is_alive() {
            return Err(self.region.why_not());
        }
        if !is_free && let Some(why) = lost(self.region, found) {
            return Err(why);
        }
        Ok(Taking::Busy)
    }

    fn copy_out(&self, at: usize, into: &mut [u8]) {
        let in_first = self.first.len() * 8;
        if at + into.len() <= in_first {
            Window::new(self.first, 0, in_first).read(at, into);
        } else {
            let (front, back) = into.split_at_mut(in_first.saturating_sub(at));
            if !front.is_empty() {
                Window::new(self.first, 0, in_first).read(at, front);
            }
            let at = at.saturating_sub(in_first);
            Window::new(self.rest, 0, self.rest.len() * 8).read(at, back);
        }
    }

    /// What is behind the front first, and then that, each word when all that was stored before can be seen.
    fn copy_in_front_last(&self, at: usize, bytes: &[u8]) {
        let mut end = at + bytes.len();
        let behind = at.max(Shape::FRONT);
        if behind < end {
            self.copy_in(behind, &bytes[behind - at..]);
            end = behind;
        }
        while at < end {
            let word = at.max((end - 1) & !7);
            fence(Ordering::Release);
            self.copy_in(word, &bytes[word - at..end - at]);
            end = word;
        }
    }

    fn copy_in(&self, at: usize, bytes: &[u8]) {
        let in_first = self.first.len() * 8;
        if at + bytes.len() <= in_first {
            Window::new(self.first, 0, in_first).write(at, bytes);
        } else {
            let (front, back) = bytes.split_at(in_first.saturating_sub(at));
            if !front.is_empty() {
                Window::new(self.first, 0, in_first).write(at, front);
            }
            let at = at.saturating_sub(in_first);
            Window::new(self.rest, 0, self.rest.len() * 8).write(at, back);
        }
    }
}

/// One attempt: version, copy, version.
#[inline(always)]
pub(super) fn read(
    region: &Region,
    version: &AtomicU64,
    copy: impl FnOnce(),
) -> Result<Result<u64, Torn>, Missing> {
    let before = version.load(Ordering::SeqCst);
    if !before.is_multiple_of(2) {
        return is_written(region, before);
    }
    copy();
    fence(Ordering::Acquire);
    // Before the region ends nobody else writes here; so what was read before it ended was the object.
    let (after, incarnations) = (version.load(Ordering::Relaxed), region.is_alive());
    if !incarnations {
        return Err(region.why_not());
    }
    Ok(if after == before { Ok(before) } else { Err(Torn::Changed) })
}

/// It was odd. Of a region that has ended it says nothing.
#[cold]
fn is_written(region: &Region, version: u64) -> Result<Result<u64, Torn>, Missing> {
    if !region.is_alive() {
        return Err(region.why_not());
    }
    lost(region, version).map_or(Ok(Err(Torn::Written)), Err)
}

/// Copies words out, as many as fit. Eight a turn, as [`crate::memory::words::copy`]: the loop's own instructions
/// are what counts.
#[inline(always)]
pub(super) fn copy_whole(words: &[AtomicU64], into: &mut [u8]) {
    let (lines, rest) = into.as_chunks_mut::<64>();
    let of_rest = &words[lines.len() * 8..];
    for (line, words) in lines.iter_mut().zip(words.as_chunks::<8>().0) {
        for (bytes, word) in line.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *bytes = word.load(Ordering::Relaxed).to_le_bytes();
        }
    }
    if !rest.is_empty() {
        copy_tail(of_rest, rest);
    }
}

/// The same, one word after the other: none is read before the one in front of it.
#[inline(always)]
pub(super) fn copy_in_order(words: &[AtomicU64], into: &mut [u8]) {
    let (lines, rest) = into.as_chunks_mut::<64>();
    let of_rest = &words[lines.len() * 8..];
    for (line, words) in lines.iter_mut().zip(words.as_chunks::<8>().0) {
        for (bytes, word) in line.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *bytes = word.load(Ordering::Acquire).to_le_bytes();
        }
    }
    for (bytes, word) in rest.chunks_mut(8).zip(of_rest) {
        bytes.copy_from_slice(&word.load(Ordering::Acquire).to_le_bytes()[..bytes.len()]);
    }
}

/// What is behind the last whole line. Not inline: it is larger than all the rest of a read.
#[inline(never)]
fn copy_tail(words: &[AtomicU64], into: &mut [u8]) {
    Window::new(words, 0, words.len() * 8).read(0, into);
}

impl Writing<'_> {
    /// The version that the object has when this is dropped.
    pub const fn version(&self) -> u64 {
        Writer::ends(self.taken)
    }

    /// Bytes of the object.
    pub const fn len(&self) -> usize {
        self.object.len
    }

    /// There are none.
    pub const fn is_empty(&self) -> bool {
        self.object.len == 0
    }

    /// Copies bytes out, from byte `at` of the object on.
    ///
    /// # Panics
    /// If they are not all in the object.
    pub fn read(&self, at: usize, into: &mut [u8]) {
        self.assert_holds(at, into.len());
        self.object.copy_out(at, into);
    }

    /// Copies bytes in, from byte `at` of the object on.
    ///
    /// # Panics
    /// If they are not all in the object.
    pub fn write(&self, at: usize, bytes: &[u8]) {
        self.assert_holds(at, bytes.len());
        if let Shape::Objects { front_last: true, .. } = self.object.region.shape() {
            self.object.copy_in_front_last(at, bytes);
        } else {
            self.object.copy_in(at, bytes);
        }
    }

    fn assert_holds(&self, at: usize, len: usize) {
        let all = self.object.len;
        assert!(at.checked_add(len).is_some_and(|end| end <= all), "bytes {at}+{len} of an object of {all}");
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.object.version.store(self.version(), Ordering::SeqCst);
    }
}
