//! Size classes: which lengths share a slab.
//!
//! 16, 32, ... 128 bytes, then four classes per doubling, so that rounding up wastes less than 20 % of an
//! object. Where several classes fit a block equally often, only the largest is kept: the smaller ones would
//! save nothing, and keep slabs of their own. Lengths of which only one fits a block are no class; they get
//! whole blocks.

use alloc::vec::Vec;

use wire::BlockSize;

/// Classes of the largest blocks, 1 MiB: 8 up to 128 B, 4 for each of 12 doublings up to 512 KiB.
pub(super) const MAX_CLASSES: usize = 8 + 4 * 12;

/// Objects of one size in one block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Class {
    /// Bytes of an object: a multiple of 16.
    pub(super) size: usize,
    /// Objects that fit a block: at least two.
    pub(super) capacity: usize,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Classes {
    list: Vec<Class>,
    /// The class of each step; see [`step`].
    by_step: [u8; MAX_CLASSES],
    longest: u64,
}

impl Classes {
    pub(super) fn new(block: BlockSize) -> Self {
        let mut list: Vec<Class> = Vec::new();
        let mut by_step = [0; MAX_CLASSES];
        for (nth, of_step) in by_step.iter_mut().enumerate() {
            let size = size_of_step(nth);
            let capacity = block.len() / size;
            if capacity < 2 {
                break;
            }
            match list.last_mut() {
                Some(last) if last.capacity == capacity => last.size = size,
                _ => list.push(Class { size, capacity }),
            }
            *of_step = u8::try_from(list.len() - 1).expect("there are fewer than 256 classes");
        }
        Self { list, by_step, longest: block.bytes() / 2 }
    }

    /// The class of allocations of `len` bytes; `None` if they get whole blocks.
    pub(super) fn of(&self, len: u64) -> Option<usize> {
        (len <= self.longest).then(|| usize::from(self.by_step[step(len)]))
    }

    pub(super) fn get(&self, class: usize) -> Class {
        self.list[class]
    }
}

/// The number of the first step (16, 32, ... 128, 160, 192, 224, 256, 320, ...) that `len` bytes fit in.
fn step(len: u64) -> usize {
    let last = len.saturating_sub(1);
    match last.checked_ilog2() {
        Some(log) if log >= 7 => 8 + 4 * (log as usize - 7) + (last >> (log - 2) & 3) as usize,
        _ => (last / 16) as usize,
    }
}

/// Bytes of an object of this step.
fn size_of_step(step: usize) -> usize {
    match step.checked_sub(8) {
        None => (step + 1) * 16,
        Some(beyond) => (32 << (beyond / 4)) * (5 + beyond % 4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(bytes: u64) -> BlockSize {
        BlockSize::new(bytes).unwrap()
    }

    #[test]
    fn every_length_up_to_half_a_block_has_a_class_that_holds_it_and_wastes_no_slot_of_the_block() {
        for shift in 6..=20 {
            let block = block(1 << shift);
            let classes = Classes::new(block);
            for len in 0..=block.bytes() / 2 {
                let Class { size, capacity } = classes.get(classes.of(len).unwrap());
                assert!(len <= size as u64 && size.is_multiple_of(16), "{len} bytes in blocks of {block}");
                assert_eq!(capacity, block.len() / size, "{len} bytes in blocks of {block}");
                // The step that the class goes by wastes less than a fifth (below 128 bytes: than 16 bytes).
                let tight = size_of_step(step(len)) as u64;
                assert!(len <= tight && tight - len < (tight / 5).max(17), "{len} bytes in {tight}");
                assert_eq!(capacity as u64, block.bytes() / tight, "{len} bytes in blocks of {block}");
            }
            assert_eq!(classes.of(block.bytes() / 2 + 1), None, "{block}");
        }
    }

    #[test]
    fn the_classes_of_a_4_kib_block_are_the_ones_that_we_mean() {
        let classes = Classes::new(BlockSize::DEFAULT);
        let sizes: Vec<_> = classes.list.iter().map(|class| class.size).collect();
        assert_eq!(
            sizes,
            [
                16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 1024,
                1280, 2048
            ]
        );
        assert_eq!(Classes::new(block(64)).list.len(), 2, "16 and 32 bytes");
        assert_eq!(classes.get(classes.of(1281).unwrap()).capacity, 2, "1536 and 1792 fit twice, like 2048");
        assert!(Classes::new(BlockSize::MAX).list.len() <= MAX_CLASSES);
    }
}
