//! Bytes of a region as they are: what a plain READ and WRITE do to it.
//!
//! On a thread that has the region within reach, or at the home for whoever asks its NIC. What must always hold: words are read, and
//! written, one after the other, each whole.

use std::sync::atomic::{AtomicU64, Ordering};

use super::super::objects;
use super::{Missing, Region};

impl Region {
    /// Copies bytes out, from so many bytes from the beginning on, as they are, whoever is changing them: one word after the
    /// other, each whole, none before the one in front of it.
    ///
    /// # Errors
    /// If they are not, or not any more. Then what is in `into` does not count.
    #[inline(always)]
    pub fn try_read_bytes(&self, offset: u64, into: &mut [u8]) -> Result<(), Missing> {
        let at = (offset / 8) as usize;
        if offset.is_multiple_of(8)
            && let Some(words) = self.first.get(at..at + into.len().div_ceil(8))
        {
            objects::copy_in_order(words, into);
        } else {
            self.read_pieces(offset, into)?;
        }
        if self.is_alive() { Ok(()) } else { Err(self.why_not()) }
    }

    /// The same; of a region that has ended, zeroes.
    ///
    /// # Panics
    /// If they are not all in the region.
    pub fn read_bytes(&self, offset: u64, into: &mut [u8]) {
        match self.try_read_bytes(offset, into) {
            Ok(()) => {}
            Err(Missing::Beyond) => panic!("bytes {offset}+{} of {self:?}", into.len()),
            Err(_) => into.fill(0),
        }
    }

    #[cold]
    #[inline(never)]
    fn read_pieces(&self, offset: u64, into: &mut [u8]) -> Result<(), Missing> {
        let words = self.words_of(offset, into.len())?;
        for ((within, part), word) in pieces(offset, into.len()).zip(words) {
            let bytes = word.load(Ordering::Acquire).to_le_bytes();
            let len = part.len();
            into[part].copy_from_slice(&bytes[within..within + len]);
        }
        Ok(())
    }

    /// Copies bytes in, one word after the other, each whole, none before the one in front of it. A part of a word leaves the rest of
    /// it alone; two parts of one word that are written at a time may undo each other, as everywhere.
    ///
    /// # Errors
    /// If they are not, or not any more.
    #[inline]
    pub fn try_write_bytes(&self, offset: u64, bytes: &[u8]) -> Result<(), Missing> {
        if !self.is_alive() {
            return Err(self.why_not());
        }
        let at = (offset / 8) as usize;
        let (whole, rest) = bytes.as_chunks::<8>();
        if offset.is_multiple_of(8)
            && rest.is_empty()
            && let Some(words) = self.first.get(at..at + whole.len())
        {
            for (word, bytes) in words.iter().zip(whole) {
                word.store(u64::from_le_bytes(*bytes), Ordering::Release);
            }
            return Ok(());
        }
        for ((within, part), word) in pieces(offset, bytes.len()).zip(self.words_of(offset, bytes.len())?) {
            let piece = &bytes[part];
            let mut whole =
                if piece.len() == 8 { [0; 8] } else { word.load(Ordering::Relaxed).to_le_bytes() };
            whole[within..within + piece.len()].copy_from_slice(piece);
            word.store(u64::from_le_bytes(whole), Ordering::Release);
        }
        Ok(())
    }

    /// The same; nothing, if the region has ended.
    ///
    /// # Panics
    /// If they do not all lie in the region.
    pub fn write_bytes(&self, offset: u64, bytes: &[u8]) {
        if let Err(Missing::Beyond) = self.try_write_bytes(offset, bytes) {
            panic!("bytes {offset}+{} of {self:?}", bytes.len());
        }
    }

    /// The words that these bytes lie in: no more than a chunk has.
    fn words_of(&self, offset: u64, len: usize) -> Result<impl Iterator<Item = &AtomicU64>, Missing> {
        let word = |at: u64| usize::try_from(at).map_err(|_| Missing::Beyond);
        let first = word(offset / 8)?;
        let end = word(offset.checked_add(len as u64).ok_or(Missing::Beyond)?.div_ceil(8))?;
        let (front, back) = if len == 0 {
            Default::default()
        } else {
            let beyond = || if self.is_alive() { Missing::Beyond } else { self.why_not() };
            self.words(first, end - first).ok_or_else(beyond)?
        };
        Ok(front.iter().chain(back))
    }
}

/// How a range of bytes lies in words: of each, from which of its bytes on, and which of the range those are.
fn pieces(offset: u64, len: usize) -> impl Iterator<Item = (usize, std::ops::Range<usize>)> {
    let mut within = (offset % 8) as usize;
    let mut done = 0;
    std::iter::from_fn(move || {
        let part = (len - done).min(8 - within);
        let piece = (within, done..done + part);
        (within, done) = (0, done + part);
        (part > 0).then_some(piece)
    })
}
