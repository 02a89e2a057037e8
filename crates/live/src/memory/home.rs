//! The memory whose home a node is: a flat space of zeroes, backed in chunks as it is written.
//!
//! What must always hold: a block that was never written reads as zeroes and costs no memory.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use node::Window;
use transport::Contents;
use wire::BlockSize;

use super::words::{Words, clear, copy_contents};

/// Log of the bytes of the largest chunk: 32 MiB, as large as any block and few in number.
const MAX_CHUNK_SHIFT: u32 = 25;

/// Home memory of fixed size. Reads may come from any node's threads; writes come from the node's own
/// machines, but in regions for one-sided operations ([`super::regions`]): there they come from anybody.
pub struct HomeMemory {
    block: BlockSize,
    bytes: u64,
    chunk_shift: u32,
    chunks: Box<[OnceLock<Arc<Words>>]>,
}

impl HomeMemory {
    /// `bytes` of zeroes, rounded down to whole blocks.
    pub fn new(block: BlockSize, bytes: u64) -> Self {
        let bytes = bytes & !(block.bytes() - 1);
        let chunk_shift = MAX_CHUNK_SHIFT.min(bytes.next_power_of_two().trailing_zeros()).max(block.shift());
        let chunks = bytes.div_ceil(1 << chunk_shift);
        Self { block, bytes, chunk_shift, chunks: (0..chunks).map(|_| OnceLock::new()).collect() }
    }

    /// How many bytes there are.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of address space backed so far.
    pub fn backed_bytes(&self) -> u64 {
        self.chunks.iter().filter_map(OnceLock::get).map(|chunk| size_of_val(chunk.get()) as u64).sum()
    }

    /// The number of the block at an offset.
    ///
    /// # Panics
    /// If the offset is outside the memory: machines check what comes from elsewhere.
    pub(super) fn block_number(&self, offset: u64) -> u64 {
        assert!(offset < self.bytes, "offset {offset:#x} of a {}-byte home memory", self.bytes);
        offset >> self.block.shift()
    }

    /// The words of a block, or `None` if it is still in a chunk of zeroes.
    pub(super) fn words(&self, number: u64) -> Option<&[AtomicU64]> {
        let (chunk, range) = self.locate(number);
        Some(&self.chunks[chunk].get()?.get()[range])
    }

    /// Copies a block in; `None` is a block of zeroes.
    pub(super) fn write(&self, number: u64, from: Contents<'_>) {
        let (chunk, range) = self.locate(number);
        match from {
            Contents::Shared(_) | Contents::Own(_) => copy_contents(from, &self.backed(chunk).get()[range]),
            Contents::None | Contents::Zeroes(_) => {
                if let Some(chunk) = self.chunks[chunk].get() {
                    clear(&chunk.get()[range]);
                }
            }
        }
    }

    /// Sets `len` bytes from `offset` on to zero.
    pub(super) fn zero(&self, offset: u64, len: u64) {
        let end = offset.checked_add(len).filter(|end| *end <= self.bytes);
        let end = end.unwrap_or_else(|| panic!("{len} bytes at {offset:#x} of {}", self.bytes));
        let mut at = offset;
        while at < end {
            let chunk = (at >> self.chunk_shift) as usize;
            let chunk_start = (chunk as u64) << self.chunk_shift;
            let stop = end.min(chunk_start + (1 << self.chunk_shift));
            if let Some(words) = self.chunks[chunk].get() {
                // Both ends may lie inside a word.
                let (from, to) = ((at - chunk_start) as usize, (stop - chunk_start) as usize);
                let (first, last) = (from.div_ceil(8), to / 8);
                if first <= last {
                    clear(&words.get()[first..last]);
                    let window = Window::new(words.get(), from, to - from);
                    window.write(0, &[0; 8][..first * 8 - from]);
                    window.write(last * 8 - from, &[0; 8][..to - last * 8]);
                } else {
                    Window::new(words.get(), from, to - from).write(0, &[0; 8][..to - from]);
                }
            }
            at = stop;
        }
    }

    /// Copies `to.len()` words from a multiple of 8 on. They need not lie in one block or chunk.
    pub(super) fn copy_region(&self, offset: u64, to: &[AtomicU64]) {
        for (chunk, words, part) in self.pieces(offset, to.len()) {
            match self.chunks[chunk].get() {
                Some(from) => copy_contents(Contents::Shared(&from.get()[words]), &to[part]),
                None => clear(&to[part]),
            }
        }
    }

    /// `len` bytes from a multiple of 8 on: as they lie here, or put together in `scratch`.
    pub(super) fn region<'a>(&'a self, offset: u64, len: usize, scratch: &'a mut Vec<u64>) -> Contents<'a> {
        let mut pieces = self.pieces(offset, len / 8);
        match (pieces.next(), pieces.next()) {
            (None, _) => Contents::None,
            (Some((chunk, words, _)), None) => match self.chunks[chunk].get() {
                Some(chunk) => Contents::Shared(&chunk.get()[words]),
                None => Contents::Zeroes(len),
            },
            _ => {
                scratch.clear();
                for (chunk, words, _) in self.pieces(offset, len / 8) {
                    match self.chunks[chunk].get() {
                        Some(chunk) => {
                            scratch
                                .extend(chunk.get()[words].iter().map(|word| word.load(Ordering::Relaxed)));
                        }
                        None => scratch.resize(scratch.len() + words.len(), 0),
                    }
                }
                Contents::Own(scratch)
            }
        }
    }

    /// Copies words in, from a multiple of 8 on.
    pub(super) fn write_region(&self, offset: u64, from: Contents<'_>) {
        for (chunk, words, part) in self.pieces(offset, from.bytes() / 8) {
            let to = &self.backed(chunk).get()[words];
            match from {
                Contents::Shared(from) => copy_contents(Contents::Shared(&from[part]), to),
                Contents::Own(from) => copy_contents(Contents::Own(&from[part]), to),
                Contents::None | Contents::Zeroes(_) => clear(to),
            }
        }
    }

    /// The pieces of a range of words: which chunk, which words of it, and which of the range.
    fn pieces(
        &self,
        offset: u64,
        words: usize,
    ) -> impl Iterator<Item = (usize, std::ops::Range<usize>, std::ops::Range<usize>)> + use<> {
        assert!(
            offset.is_multiple_of(8) && offset + words as u64 * 8 <= self.bytes,
            "{words} words at {offset:#x} of a {}-byte home memory",
            self.bytes
        );
        let shift = self.chunk_shift - 3;
        let (first, mut done) = ((offset / 8) as usize, 0);
        std::iter::from_fn(move || {
            let at = first + done;
            let left = words - done;
            let in_chunk = at & ((1 << shift) - 1);
            let len = left.min((1 << shift) - in_chunk);
            let piece = (at >> shift, in_chunk..in_chunk + len, done..done + len);
            done += len;
            (len > 0).then_some(piece)
        })
    }

    /// Which chunk a block is in, and which of its words are the block's. Chunks are powers of two no smaller
    /// than a block, so no block crosses one.
    fn locate(&self, number: u64) -> (usize, std::ops::Range<usize>) {
        let offset = number << self.block.shift();
        let first = ((offset & ((1 << self.chunk_shift) - 1)) / 8) as usize;
        ((offset >> self.chunk_shift) as usize, first..first + self.block.words())
    }

    /// The chunks that some words lie in, backed, and where in the first of them they begin.
    pub(super) fn chunks_of(&self, offset: u64, words: usize) -> (Vec<Arc<Words>>, usize) {
        let mut first = None;
        let chunks = self.pieces(offset, words).map(|(chunk, piece, _)| {
            first.get_or_insert(piece.start);
            Arc::clone(self.backed(chunk))
        });
        let chunks = chunks.collect();
        (chunks, first.expect("there are words"))
    }

    fn backed(&self, chunk: usize) -> &Arc<Words> {
        self.chunks[chunk].get_or_init(|| {
            let left = self.bytes - ((chunk as u64) << self.chunk_shift);
            Arc::new(Words::zeroed((left.min(1 << self.chunk_shift) / 8) as usize))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    fn block_of(value: u64) -> Vec<AtomicU64> {
        (0..512).map(|_| AtomicU64::new(value)).collect()
    }

    #[test]
    fn memory_is_backed_chunk_by_chunk_as_it_is_written() {
        let home = HomeMemory::new(BlockSize::DEFAULT, 1 << 30);
        assert_eq!(home.backed_bytes(), 0);
        assert!(home.words(home.block_number(5 << 25)).is_none());
        home.write(home.block_number(5 << 25), Contents::Shared(&block_of(7)));
        assert_eq!(home.backed_bytes(), 32 << 20);
        home.write(3, Contents::None);
        home.zero(0, 1 << 30);
        assert_eq!(home.backed_bytes(), 32 << 20, "zeroes over zeroes cost nothing");
    }

    #[test]
    fn a_small_memory_takes_no_more_than_its_size() {
        for bytes in [4096, 12288, 1 << 20, (1 << 20) + 4096, (33 << 20) + 4096] {
            let home = HomeMemory::new(BlockSize::DEFAULT, bytes);
            for block in 0..bytes / 4096 {
                home.write(block, Contents::Shared(&block_of(1)));
            }
            assert_eq!(home.backed_bytes(), bytes);
        }
    }

    #[test]
    fn blocks_keep_apart_across_chunk_boundaries() {
        let home = HomeMemory::new(BlockSize::DEFAULT, 64 << 20);
        let boundary = home.block_number(32 << 20);
        for block in [boundary - 1, boundary, boundary + 1] {
            home.write(block, Contents::Shared(&block_of(block)));
        }
        for block in [boundary - 1, boundary, boundary + 1] {
            assert!(home.words(block).unwrap().iter().all(|word| word.load(Relaxed) == block));
        }
    }

    #[test]
    fn zeroing_a_range_leaves_its_neighbours_alone_to_the_byte() {
        let home = HomeMemory::new(BlockSize::MIN, 256);
        let ones: Vec<AtomicU64> = (0..8).map(|_| AtomicU64::new(u64::MAX)).collect();
        for start in 60..76 {
            for len in 0..24 {
                (0..4).for_each(|block| home.write(block, Contents::Shared(&ones)));
                home.zero(start, len);
                let bytes: Vec<u8> = (0..4)
                    .flat_map(|block| home.words(block).unwrap())
                    .flat_map(|word| word.load(Relaxed).to_le_bytes())
                    .collect();
                for (at, byte) in (0_u64..).zip(bytes) {
                    assert_eq!(byte == 0, (start..start + len).contains(&at), "{start}+{len} at {at}");
                }
            }
        }
    }

    #[test]
    fn a_block_overwritten_with_untouched_memory_is_zeroes_again() {
        let home = HomeMemory::new(BlockSize::DEFAULT, 1 << 20);
        (4..7).for_each(|block| home.write(block, Contents::Shared(&block_of(1))));
        home.write(5, Contents::None);
        for (block, value) in [(4, 1), (5, 0), (6, 1)] {
            assert!(home.words(block).unwrap().iter().all(|word| word.load(Relaxed) == value));
        }
    }

    #[test]
    fn a_region_reaches_across_chunks_whether_they_are_backed_or_not() {
        let home = HomeMemory::new(BlockSize::DEFAULT, 64 << 20);
        let at = (32 << 20) - 16;
        let words: Vec<u64> = (1..=5).collect();
        let read = || {
            let to: Vec<AtomicU64> = (0..5).map(|_| AtomicU64::new(99)).collect();
            home.copy_region(at, &to);
            let copied: Vec<u64> = to.iter().map(|word| word.load(Relaxed)).collect();
            let (mut scratch, mut bytes) = (Vec::new(), [9; 40]);
            home.region(at, 40, &mut scratch).copy_to(0, &mut bytes);
            let sent = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word));
            assert!(sent.eq(copied.iter().copied()));
            copied
        };
        home.write(home.block_number(at), Contents::Shared(&block_of(7)));
        assert_eq!(read(), [7, 7, 0, 0, 0], "the second chunk was never written");
        home.write_region(at, Contents::Own(&words));
        assert_eq!(read(), words);
        home.write_region(at, Contents::Zeroes(16));
        assert_eq!(read(), [0, 0, 3, 4, 5]);
        assert!(matches!(home.region(at, 16, &mut Vec::new()), Contents::Shared(two) if two.len() == 2));
    }

    #[test]
    fn zeroing_reaches_across_chunks() {
        let home = HomeMemory::new(BlockSize::DEFAULT, 64 << 20);
        let boundary = home.block_number(32 << 20);
        home.write(boundary - 1, Contents::Shared(&block_of(1)));
        home.write(boundary, Contents::Shared(&block_of(1)));
        home.zero((32 << 20) - 4096, 8192);
        for block in [boundary - 1, boundary] {
            assert!(home.words(block).unwrap().iter().all(|word| word.load(Relaxed) == 0));
        }
    }
}
