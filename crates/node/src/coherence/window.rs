//! The bytes of a part of one block, as drivers hold them and applications see them.
//!
//! Blocks are arrays of 64-bit words that are read and written through relaxed atomics: threads that hit in a
//! block while it is revoked or refilled race with the agents by design, and find out afterwards from the
//! frame's state word. A relaxed load or store is an ordinary move on every machine that we run on, so this
//! costs nothing and leaves no undefined behaviour to argue about.
//!
//! Byte `i` of a block is byte `i % 8` of word `i / 8` in little-endian order.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A byte range inside one block.
///
/// A window handed to a *reading* closure may show bytes that are being changed; such an attempt is thrown
/// away and repeated by whoever called the closure. A window handed to an *updating* closure is exclusive.
#[derive(Clone, Copy)]
pub struct Window<'a> {
    words: &'a [AtomicU64],
    start: usize,
    len: usize,
}

impl<'a> Window<'a> {
    /// The `len` bytes from byte `start` of a block.
    ///
    /// # Panics
    /// If the range leaves the block.
    #[inline]
    pub fn new(words: &'a [AtomicU64], start: usize, len: usize) -> Self {
        assert!(start + len <= words.len() * 8, "bytes {start}+{len} of a {}-byte block", words.len() * 8);
        Self { words, start, len }
    }

    /// Bytes in the window.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    fn word_index(&self, at: usize) -> usize {
        let byte = self.start + at;
        assert!(
            byte.is_multiple_of(8) && at + 8 <= self.len,
            "word at byte {at} of a {}-byte window",
            self.len
        );
        byte / 8
    }

    /// The word at byte `at` of the window, which must be aligned in the block.
    ///
    /// # Panics
    /// If it is not aligned or not inside the window.
    #[inline]
    pub fn word(&self, at: usize) -> u64 {
        self.words[self.word_index(at)].load(Relaxed)
    }

    /// Sets the word at byte `at` of the window, which must be aligned in the block.
    ///
    /// # Panics
    /// If it is not aligned or not inside the window.
    #[inline]
    pub fn set_word(&self, at: usize, value: u64) {
        self.words[self.word_index(at)].store(value, Relaxed);
    }

    /// Copies bytes out, from byte `at` of the window on.
    ///
    /// # Panics
    /// If they are not all inside the window.
    #[inline]
    pub fn read(&self, at: usize, into: &mut [u8]) {
        assert!(at + into.len() <= self.len, "read {at}+{} of {} bytes", into.len(), self.len);
        let byte = self.start + at;
        let (mut index, lead) = (byte / 8, byte % 8);
        let mut into = into;
        if lead != 0 {
            let n = into.len().min(8 - lead);
            let (head, rest) = into.split_at_mut(n);
            head.copy_from_slice(&self.words[index].load(Relaxed).to_le_bytes()[lead..lead + n]);
            into = rest;
            index += 1;
        }
        // Four words a turn: a relaxed load is one move, so the loop's own instructions are what counts.
        let (quads, rest) = into.as_chunks_mut::<32>();
        let (words, _) = self.words[index..].as_chunks::<4>();
        for (quad, words) in quads.iter_mut().zip(words) {
            let (bytes, _) = quad.as_chunks_mut::<8>();
            bytes[0] = words[0].load(Relaxed).to_le_bytes();
            bytes[1] = words[1].load(Relaxed).to_le_bytes();
            bytes[2] = words[2].load(Relaxed).to_le_bytes();
            bytes[3] = words[3].load(Relaxed).to_le_bytes();
        }
        let (whole, tail) = rest.as_chunks_mut::<8>();
        let words = &self.words[index + quads.len() * 4..];
        for (chunk, word) in whole.iter_mut().zip(words) {
            *chunk = word.load(Relaxed).to_le_bytes();
        }
        if !tail.is_empty() {
            tail.copy_from_slice(&words[whole.len()].load(Relaxed).to_le_bytes()[..tail.len()]);
        }
    }

    /// Sets every byte of the window to zero. Only for windows that are exclusive.
    pub fn zero(&self) {
        const ZEROES: [u8; 256] = [0; 256];
        let mut at = 0;
        while at < self.len {
            let n = (self.len - at).min(ZEROES.len());
            self.write(at, &ZEROES[..n]);
            at += n;
        }
    }

    /// Copies bytes in, from byte `at` of the window on. Only for windows that are exclusive: bytes that share
    /// a word with the ends of the range are read and written back.
    ///
    /// # Panics
    /// If they are not all inside the window.
    #[inline]
    pub fn write(&self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.len, "write {at}+{} of {} bytes", bytes.len(), self.len);
        let byte = self.start + at;
        let (mut index, lead) = (byte / 8, byte % 8);
        let mut bytes = bytes;
        if lead != 0 {
            let n = bytes.len().min(8 - lead);
            let (head, rest) = bytes.split_at(n);
            merge(&self.words[index], lead, head);
            bytes = rest;
            index += 1;
        }
        let (quads, rest) = bytes.as_chunks::<32>();
        let (words, _) = self.words[index..].as_chunks::<4>();
        for (quad, words) in quads.iter().zip(words) {
            let (bytes, _) = quad.as_chunks::<8>();
            words[0].store(u64::from_le_bytes(bytes[0]), Relaxed);
            words[1].store(u64::from_le_bytes(bytes[1]), Relaxed);
            words[2].store(u64::from_le_bytes(bytes[2]), Relaxed);
            words[3].store(u64::from_le_bytes(bytes[3]), Relaxed);
        }
        let (whole, tail) = rest.as_chunks::<8>();
        let words = &self.words[index + quads.len() * 4..];
        for (chunk, word) in whole.iter().zip(words) {
            word.store(u64::from_le_bytes(*chunk), Relaxed);
        }
        if !tail.is_empty() {
            merge(&words[whole.len()], 0, tail);
        }
    }
}

/// Replaces `bytes.len()` bytes of a word, from byte `lead` on.
fn merge(word: &AtomicU64, lead: usize, bytes: &[u8]) {
    let mut whole = word.load(Relaxed).to_le_bytes();
    whole[lead..lead + bytes.len()].copy_from_slice(bytes);
    word.store(u64::from_le_bytes(whole), Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn any_range_reads_back_what_was_written_and_leaves_its_neighbours_alone() {
        for start in 0..17 {
            for len in 0..110 {
                let words: Vec<AtomicU64> = (0..16).map(|_| AtomicU64::new(0xeeee_eeee_eeee_eeee)).collect();
                let window = Window::new(&words, start, len);
                let bytes: Vec<u8> = (1..=u8::try_from(len).unwrap()).collect();
                window.write(0, &bytes);
                let mut back = alloc::vec![0; len];
                window.read(0, &mut back);
                assert_eq!(back, bytes, "start {start}, len {len}");
                let mut all = [0; 128];
                Window::new(&words, 0, 128).read(0, &mut all);
                assert!(all[..start].iter().chain(&all[start + len..]).all(|b| *b == 0xee));
            }
        }
    }
}
