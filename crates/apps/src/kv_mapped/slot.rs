//! One slot: a key that never changes once it is there, and its value, behind a version.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, fence};
use std::time::{Duration, Instant};

use rackmem::{NodeId, Window};

use crate::kv::Error;
use crate::kv::hash::last_word;

const VERSION: usize = 0;
const LENGTHS: usize = 1;
const KEY: usize = 2;

/// In a version: the slot is being written, by the node in the bits from here on.
const WRITING: u64 = 1;
const NODE: u32 = 48;
/// In the lengths: the key is present; the slot has a key, whose length is from here on; in front of it the value's.
const PRESENT: u64 = 1 << 63;
const KEYED: u64 = 1 << 62;
const KEY_LEN: u32 = 40;
const VALUE_LEN: u64 = (1 << KEY_LEN) - 1;
/// The longest key that lengths can say.
pub(super) const LONGEST_KEY: usize = (1 << 22) - 1;

/// About as many lines as a core waits for at once.
const LINES_AT_ONCE: usize = 16;

/// A slot.
#[derive(Clone, Copy)]
pub(super) struct Slot<'a> {
    pub(super) words: &'a [AtomicU64],
    /// The first word of the value.
    pub(super) value: usize,
}

impl<'a> Slot<'a> {
    /// Asks for the first lines of a long slot at once. Who waits for the first one before it asks for the next waits
    /// for memory many times. (Unrolled: what a core can have begun is counted in instructions.)
    #[inline]
    pub(super) fn ask(&self) {
        if let Some(words) = self.words.first_chunk::<{ LINES_AT_ONCE * 8 }>() {
            for line in 0..LINES_AT_ONCE {
                words[line * 8].load(Relaxed);
            }
        }
    }

    #[inline]
    fn lengths(&self) -> u64 {
        self.words[LENGTHS].load(Relaxed)
    }

    /// It is the slot of this key.
    #[inline]
    fn has(&self, key: &[u8]) -> bool {
        let (whole, rest) = key.as_chunks::<8>();
        let word = |at: usize| self.words[KEY + at].load(Relaxed);
        self.lengths() & !PRESENT & !VALUE_LEN == keyed(key)
            && whole.iter().enumerate().all(|(at, chunk)| word(at) == u64::from_le_bytes(*chunk))
            && (rest.is_empty() || word(whole.len()) == last_word(key))
    }

    #[inline]
    fn value(&self, len: usize) -> Window<'a> {
        Window::new(&self.words[self.value..], 0, len)
    }

    /// Copies the value. False: the key is absent; nothing is left in `into` then.
    #[inline]
    fn copy(&self, into: &mut Vec<u8>) -> bool {
        let lengths = self.lengths();
        let present = lengths & PRESENT != 0;
        let len = if present { (lengths & VALUE_LEN) as usize } else { 0 };
        // Not cleared before: what is as long as the last one needs no zeroes.
        into.resize(len, 0);
        self.value(len).read(0, into);
        present
    }

    /// Copies the value of this key, as it was at one moment, and says whether it was present. None: the slot is not
    /// this key's.
    #[inline]
    pub(super) fn read(
        &self,
        key: &[u8],
        into: &mut Vec<u8>,
        longest_write: Duration,
    ) -> Result<Option<bool>, Error> {
        let mut wait = Wait::new(longest_write);
        loop {
            let version = self.words[VERSION].load(Acquire);
            if version & WRITING == 0 {
                let present = if self.has(key) { Some(self.copy(into)) } else { None };
                fence(Acquire);
                if self.words[VERSION].load(Relaxed) == version {
                    return Ok(present);
                }
            } else {
                wait.on(version)?;
            }
        }
    }

    /// Waits until nobody writes it, and does so.
    pub(super) fn lock(self, node: NodeId, longest_write: Duration) -> Result<Writing<'a>, Error> {
        let (mut wait, version) = (Wait::new(longest_write), &self.words[VERSION]);
        // A guess: a compare-exchange brings the page to be written whatever it finds, a load before it would bring
        // it twice.
        let mut seen = 0;
        loop {
            let writing = seen | WRITING | u64::from(node.0) << NODE;
            match version.compare_exchange(seen, writing, Acquire, Relaxed) {
                Ok(_) => break,
                Err(found) => seen = found,
            }
            while seen & WRITING != 0 {
                wait.on(seen)?;
                seen = version.load(Relaxed);
            }
        }
        // Who sees something of what is written now sees that it is being written.
        fence(Release);
        Ok(Writing { slot: self, next: seen.wrapping_add(2) & ((1 << NODE) - 1) })
    }
}

/// What lengths say of a key that is there.
#[inline]
const fn keyed(key: &[u8]) -> u64 {
    KEYED | (key.len() as u64) << KEY_LEN
}

/// A slot that its thread writes, until this is dropped.
pub(super) struct Writing<'a> {
    slot: Slot<'a>,
    /// The version that it has then.
    next: u64,
}

impl Writing<'_> {
    pub(super) fn has(&self, key: &[u8]) -> bool {
        self.slot.has(key)
    }

    /// Makes it the slot of this key, absent so far, if it is no other key's.
    pub(super) fn take(&self, key: &[u8]) {
        if self.slot.lengths() == 0 {
            // The slot has never been written: what pads the last word is zero.
            Window::new(&self.slot.words[KEY..], 0, key.len()).write(0, key);
            self.slot.words[LENGTHS].store(keyed(key), Relaxed);
        }
    }

    /// The length of the value, if the key is present.
    pub(super) fn len(&self) -> Option<usize> {
        let lengths = self.slot.lengths();
        (lengths & PRESENT != 0).then_some((lengths & VALUE_LEN) as usize)
    }

    pub(super) fn copy(&self, into: &mut Vec<u8>) -> bool {
        self.slot.copy(into)
    }

    /// Sets the value, which fits; none: the key is absent.
    pub(super) fn set(&self, value: Option<&[u8]>) {
        let key = self.slot.lengths() & !PRESENT & !VALUE_LEN;
        let (bytes, present) = (value.unwrap_or_default(), if value.is_some() { PRESENT } else { 0 });
        self.slot.words[LENGTHS].store(present | key | bytes.len() as u64, Relaxed);
        self.slot.value(bytes.len()).write(0, bytes);
    }

    /// Overwrites a part of a value that is so long.
    pub(super) fn overwrite(&self, len: usize, offset: usize, bytes: &[u8]) {
        self.slot.value(len).write(offset, bytes);
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.slot.words[VERSION].store(self.next, Release);
    }
}

/// Waits for who writes a slot.
struct Wait {
    longest_write: Duration,
    /// The version that it waits for the end of, and since when.
    since: Option<(u64, Instant)>,
}

impl Wait {
    const fn new(longest_write: Duration) -> Self {
        Self { longest_write, since: None }
    }

    /// A moment, unless this version has been there for too long.
    #[cold]
    fn on(&mut self, version: u64) -> Result<(), Error> {
        match self.since {
            Some((seen, since)) if seen == version => {
                if since.elapsed() > self.longest_write {
                    let node = u16::try_from(version >> NODE).expect("16 bits");
                    return Err(Error::Abandoned { node: NodeId(node) });
                }
            }
            _ => self.since = Some((version, Instant::now())),
        }
        std::thread::yield_now();
        Ok(())
    }
}
