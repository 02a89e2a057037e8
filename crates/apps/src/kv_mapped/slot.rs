//! One slot: a key that never changes once it is in the index, and its value behind a version.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, fence};
use std::time::{Duration, Instant};

use rackmem::{NodeId, Window};

use super::Error;
use crate::kv::hash::last_word;

const VERSION: usize = 0;
const LENGTHS: usize = 1;
const KEY: usize = 2;

/// In a version: the value is being written, by the node in the bits from here on.
const WRITING: u64 = 1;
const NODE: u32 = 48;
/// In the lengths: the key is present; the key's length is from here on, in front of it the value's.
const PRESENT: u64 = 1 << 63;
const KEY_LEN: u32 = 40;
/// The longest key that lengths can say.
pub(super) const LONGEST_KEY: usize = (1 << 22) - 1;

/// A slot.
#[derive(Clone, Copy)]
pub(super) struct Slot<'a> {
    pub(super) words: &'a [AtomicU64],
    /// The first word of the value.
    pub(super) value: usize,
}

impl<'a> Slot<'a> {
    /// The key's words are those of the key, the last one padded with zeroes.
    #[inline]
    pub(super) fn has(&self, key: &[u8]) -> bool {
        let (whole, rest) = key.as_chunks::<8>();
        let word = |at: usize| self.words[KEY + at].load(Relaxed);
        let len = self.words[LENGTHS].load(Relaxed) & !PRESENT;
        len >> KEY_LEN == key.len() as u64
            && whole.iter().enumerate().all(|(at, chunk)| word(at) == u64::from_le_bytes(*chunk))
            && (rest.is_empty() || word(whole.len()) == last_word(key))
    }

    /// Fills a slot that is not in the index, so that nobody else looks at it.
    pub(super) fn fill(&self, key: &[u8], value: &[u8]) {
        let (whole, rest) = key.as_chunks::<8>();
        for (word, chunk) in self.words[KEY..].iter().zip(whole) {
            word.store(u64::from_le_bytes(*chunk), Relaxed);
        }
        if !rest.is_empty() {
            self.words[KEY + whole.len()].store(last_word(key), Relaxed);
        }
        self.set_lengths(key.len() as u64, value.len(), true);
        self.value(value.len()).write(0, value);
    }

    fn set_lengths(&self, key: u64, value: usize, present: bool) {
        let present = if present { PRESENT } else { 0 };
        self.words[LENGTHS].store(present | key << KEY_LEN | value as u64, Relaxed);
    }

    #[inline]
    fn value(&self, len: usize) -> Window<'a> {
        Window::new(&self.words[self.value..], 0, len)
    }

    /// Copies the value, as it is. False: the key is absent; nothing is left in `into` then.
    #[inline]
    fn copy(&self, into: &mut Vec<u8>) -> bool {
        let lengths = self.words[LENGTHS].load(Relaxed);
        let present = lengths & PRESENT != 0;
        let len = if present { (lengths & ((1 << KEY_LEN) - 1)) as usize } else { 0 };
        // Not cleared before: what is as long as the last one needs no zeroes.
        into.resize(len, 0);
        self.value(len).read(0, into);
        present
    }

    /// The same, as it was at one moment.
    #[inline]
    pub(super) fn read(&self, into: &mut Vec<u8>, patience: Duration) -> Result<bool, Error> {
        let mut wait = Wait::new(patience);
        loop {
            let version = self.words[VERSION].load(Acquire);
            if version & WRITING == 0 {
                let present = self.copy(into);
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
    pub(super) fn lock(self, node: NodeId, patience: Duration) -> Result<Writing<'a>, Error> {
        let (mut wait, version) = (Wait::new(patience), &self.words[VERSION]);
        // A guess: a compare-exchange brings the page to be written whatever it finds, a load before it would bring it twice.
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

    /// The length of the value, if the key is present.
    pub(super) fn len(&self) -> Option<usize> {
        let lengths = self.slot.words[LENGTHS].load(Relaxed);
        (lengths & PRESENT != 0).then_some((lengths & ((1 << KEY_LEN) - 1)) as usize)
    }

    pub(super) fn copy(&self, into: &mut Vec<u8>) -> bool {
        self.slot.copy(into)
    }

    /// Sets the value, which fits; none: the key is absent.
    pub(super) fn set(&self, value: Option<&[u8]>) {
        let key = (self.slot.words[LENGTHS].load(Relaxed) & !PRESENT) >> KEY_LEN;
        let bytes = value.unwrap_or_default();
        self.slot.set_lengths(key, bytes.len(), value.is_some());
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
    patience: Duration,
    /// The version that it waits for the end of, and since when.
    since: Option<(u64, Instant)>,
}

impl Wait {
    const fn new(patience: Duration) -> Self {
        Self { patience, since: None }
    }

    /// A moment, unless this version has been there for too long.
    #[cold]
    fn on(&mut self, version: u64) -> Result<(), Error> {
        match self.since {
            Some((seen, since)) if seen == version => {
                if since.elapsed() > self.patience {
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
