//! The frames of one node's cache, without their bytes: which blocks they hold, in which state, used when.
//!
//! Set-associative like the live rack's: buckets of eight, least recently used first out. A bucket is two cache lines of
//! the machine that simulates.
//!
//! What must always hold: a block is published in at most one frame, in the bucket that its tag hashes to.

use node::{Access, FrameId, Pinned, Reservation};
use wire::{BlockSize, BlockTag};

use crate::system::Random;

/// Frames in a bucket.
pub(super) const WAYS: usize = 8;

/// How blocks find their bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Placement {
    /// By a multiplicative hash, as on live racks: neighbouring blocks spread evenly over the buckets.
    #[default]
    Even,
    /// By a hash without such regularity: buckets fill by chance, and the fullest overflow while others have capacity
    /// (Concordia, section 6: "we hash its tag into a bucket"; section 7.2.1: this causes evictions that a fully
    /// associative cache does not have).
    ByChance,
}

/// What a frame is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum FrameState {
    Free,
    Reserved,
    Shared,
    Modified,
}

impl FrameState {
    const fn access(self) -> Option<Access> {
        match self {
            Self::Shared => Some(Access::Shared),
            Self::Modified => Some(Access::Modified),
            Self::Free | Self::Reserved => None,
        }
    }

    const fn of(access: Access) -> Self {
        match access {
            Access::Shared => Self::Shared,
            Access::Modified => Self::Modified,
        }
    }
}

/// Eight frames. The tag of a frame that is not published means nothing.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Bucket {
    tags: [u64; WAYS],
    /// The number of the last write to what the frame holds.
    stamps: [u32; WAYS],
    state: [FrameState; WAYS],
    /// When it was used last, by the bucket's own clock.
    used: [u16; WAYS],
    clock: u16,
    /// Bit `way`: a thread has the frame to itself.
    pinned: u8,
    /// Bit `way`: an agent was refused for that.
    pending: u8,
}

const EMPTY: Bucket = Bucket {
    tags: [0; WAYS],
    stamps: [0; WAYS],
    state: [FrameState::Free; WAYS],
    used: [0; WAYS],
    clock: 0,
    pinned: 0,
    pending: 0,
};

impl Bucket {
    fn touch(&mut self, way: usize) {
        if self.used[way] == self.clock && self.clock != 0 {
            return;
        }
        if self.clock == u16::MAX {
            self.renumber();
        }
        self.clock += 1;
        self.used[way] = self.clock;
    }

    /// The clock is at its end: the ways' times become their ranks.
    #[cold]
    fn renumber(&mut self) {
        let times = self.used;
        for (way, used) in self.used.iter_mut().enumerate() {
            let earlier = times.iter().filter(|time| **time < times[way]).count();
            *used = u16::try_from(earlier).expect("eight ways");
        }
        self.clock = WAYS as u16;
    }
}

/// The cache of one node.
#[derive(Clone)]
pub(super) struct Cache {
    shift: u32,
    placement: Placement,
    buckets: Box<[Bucket]>,
}

impl Cache {
    /// As many whole buckets of blocks as fit into `bytes`, but at least one.
    pub(super) fn new(block: BlockSize, bytes: u64, placement: Placement) -> Self {
        let buckets =
            usize::try_from(bytes / (WAYS as u64 * block.bytes())).expect("a cache fits in memory").max(1);
        Self { shift: block.shift(), placement, buckets: vec![EMPTY; buckets].into() }
    }

    pub(super) fn frames(&self) -> usize {
        self.buckets.len() * WAYS
    }

    /// The bucket of a block: a hash of its number.
    fn bucket_of(&self, tag: BlockTag) -> usize {
        let number = tag.bits() >> self.shift;
        let hash = match self.placement {
            Placement::Even => number.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            Placement::ByChance => Random::new(number).bits(),
        };
        ((u128::from(hash) * self.buckets.len() as u128) >> 64) as usize
    }

    fn at(&self, frame: FrameId) -> (&Bucket, usize) {
        (&self.buckets[frame.0 as usize / WAYS], frame.0 as usize % WAYS)
    }

    fn at_mut(&mut self, frame: FrameId) -> (&mut Bucket, usize) {
        (&mut self.buckets[frame.0 as usize / WAYS], frame.0 as usize % WAYS)
    }

    /// The frame that holds a block.
    pub(super) fn lookup(&self, tag: BlockTag) -> Option<(FrameId, Access)> {
        let index = self.bucket_of(tag);
        let bucket = &self.buckets[index];
        (0..WAYS).find_map(|way| {
            let access = bucket.state[way].access().filter(|_| bucket.tags[way] == tag.bits())?;
            Some((FrameId((index * WAYS + way) as u32), access))
        })
    }

    /// Names every published frame.
    pub(super) fn each_published(&self, mut each: impl FnMut(FrameId, BlockTag, Access)) {
        for (index, bucket) in self.buckets.iter().enumerate() {
            for way in 0..WAYS {
                if let Some(access) = bucket.state[way].access() {
                    each(FrameId((index * WAYS + way) as u32), BlockTag::from_bits(bucket.tags[way]), access);
                }
            }
        }
    }

    pub(super) fn tag_of(&self, frame: FrameId) -> Option<BlockTag> {
        let (bucket, way) = self.at(frame);
        bucket.state[way].access().map(|_| BlockTag::from_bits(bucket.tags[way]))
    }

    /// Notes a use.
    pub(super) fn touch(&mut self, frame: FrameId) {
        let (bucket, way) = self.at_mut(frame);
        bucket.touch(way);
    }

    pub(super) fn stamp(&self, frame: FrameId) -> u32 {
        let (bucket, way) = self.at(frame);
        bucket.stamps[way]
    }

    pub(super) fn set_stamp(&mut self, frame: FrameId, stamp: u32) {
        let (bucket, way) = self.at_mut(frame);
        bucket.stamps[way] = stamp;
    }

    pub(super) fn reserve(&mut self, tag: BlockTag, is_victim: impl Fn(FrameId) -> bool) -> Reservation {
        debug_assert_eq!(self.lookup(tag), None, "{tag:?} has a frame");
        let index = self.bucket_of(tag);
        let bucket = &mut self.buckets[index];
        let frame = |way: usize| FrameId((index * WAYS + way) as u32);
        if let Some(way) = bucket.state.iter().position(|state| *state == FrameState::Free) {
            bucket.state[way] = FrameState::Reserved;
            return Reservation::Reserved(frame(way));
        }
        let oldest = (0..WAYS)
            .filter(|way| bucket.pinned >> way & 1 == 0 && !is_victim(frame(*way)))
            .filter_map(|way| Some((way, bucket.state[way].access()?)))
            .min_by_key(|(way, _)| bucket.used[*way]);
        oldest.map_or(Reservation::Busy, |(way, access)| Reservation::Evict {
            frame: frame(way),
            tag: BlockTag::from_bits(bucket.tags[way]),
            access,
        })
    }

    pub(super) fn publish(&mut self, frame: FrameId, tag: BlockTag, access: Access, pin: bool) {
        debug_assert_eq!(self.lookup(tag), None, "{tag:?} has a frame already");
        assert_eq!(self.bucket_of(tag), frame.0 as usize / WAYS, "{tag:?}'s bucket");
        self.assert_reserved(frame);
        let (bucket, way) = self.at_mut(frame);
        bucket.tags[way] = tag.bits();
        bucket.state[way] = FrameState::of(access);
        bucket.pinned |= u8::from(pin) << way;
        bucket.touch(way);
    }

    /// Before a run: a block has just been used here. If its bucket is full, the block that was used least recently is gone.
    pub(super) fn install(&mut self, tag: BlockTag, access: Access) -> FrameId {
        let index = self.bucket_of(tag);
        let bucket = &mut self.buckets[index];
        let free = bucket.state.iter().position(|state| *state == FrameState::Free);
        let oldest = || (0..WAYS).filter(|way| bucket.state[*way].access().is_some());
        let way = free.or_else(|| oldest().min_by_key(|way| bucket.used[*way]));
        let way = way.expect("nothing is in flight before a run");
        debug_assert_eq!(bucket.pinned, 0, "nothing is in flight before a run");
        bucket.tags[way] = tag.bits();
        bucket.state[way] = FrameState::of(access);
        bucket.touch(way);
        FrameId((index * WAYS + way) as u32)
    }

    pub(super) fn pin(&mut self, frame: FrameId) -> Result<(), Pinned> {
        self.change(frame, |bucket, way| bucket.pinned |= 1 << way)?;
        self.touch(frame);
        Ok(())
    }

    pub(super) fn upgrade(&mut self, frame: FrameId) -> Result<(), Pinned> {
        assert_eq!(self.access(frame), Some(Access::Shared), "{frame:?} can be upgraded");
        self.change(frame, |bucket, way| {
            bucket.state[way] = FrameState::Modified;
            bucket.pinned |= 1 << way;
        })?;
        self.touch(frame);
        Ok(())
    }

    pub(super) fn downgrade(&mut self, frame: FrameId) -> Result<(), Pinned> {
        // Whoever has a shared frame pinned only reads: nothing to wait for.
        if self.access(frame) == Some(Access::Shared) {
            return Ok(());
        }
        self.change(frame, |bucket, way| bucket.state[way] = FrameState::Shared)
    }

    pub(super) fn withdraw(&mut self, frame: FrameId) -> Result<(), Pinned> {
        self.change(frame, |bucket, way| bucket.state[way] = FrameState::Reserved)
    }

    pub(super) fn release(&mut self, frame: FrameId) {
        self.assert_reserved(frame);
        let (bucket, way) = self.at_mut(frame);
        bucket.state[way] = FrameState::Free;
    }

    /// A thread's access is over. True if an agent waits for that.
    pub(super) fn unpin(&mut self, frame: FrameId) -> bool {
        let (bucket, way) = self.at_mut(frame);
        assert!(bucket.pinned >> way & 1 == 1, "{frame:?} was pinned");
        bucket.pinned &= !(1 << way);
        bucket.pending >> way & 1 == 1
    }

    /// Changes a published frame, unless a thread has it pinned.
    fn change(&mut self, frame: FrameId, to: impl FnOnce(&mut Bucket, usize)) -> Result<(), Pinned> {
        assert!(self.access(frame).is_some(), "{frame:?} is published");
        let (bucket, way) = self.at_mut(frame);
        if bucket.pinned >> way & 1 == 1 {
            bucket.pending |= 1 << way;
            return Err(Pinned);
        }
        bucket.pending &= !(1 << way);
        to(bucket, way);
        Ok(())
    }

    fn access(&self, frame: FrameId) -> Option<Access> {
        let (bucket, way) = self.at(frame);
        bucket.state[way].access()
    }

    pub(super) fn assert_reserved(&self, frame: FrameId) {
        let (bucket, way) = self.at(frame);
        assert_eq!(bucket.state[way], FrameState::Reserved, "{frame:?} is reserved");
    }

    pub(super) fn assert_holds_contents(&self, frame: FrameId) {
        let (bucket, way) = self.at(frame);
        assert_ne!(bucket.state[way], FrameState::Free, "{frame:?} holds something");
    }

    /// The blocks that hits are possible in: tag, access, the number of the last write.
    pub(super) fn published(&self) -> impl Iterator<Item = (BlockTag, Access, u32)> {
        self.buckets.iter().flat_map(|bucket| {
            (0..WAYS).filter_map(|way| {
                let access = bucket.state[way].access()?;
                Some((BlockTag::from_bits(bucket.tags[way]), access, bucket.stamps[way]))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{GlobalAddr, NodeId};

    fn tag(block: u64) -> BlockTag {
        BlockSize::DEFAULT.tag(GlobalAddr::new(NodeId(1), block << 12))
    }

    fn publish(cache: &mut Cache, block: u64, pin: bool) -> FrameId {
        let Reservation::Reserved(frame) = cache.reserve(tag(block), |_| false) else {
            panic!("there is room")
        };
        cache.publish(frame, tag(block), Access::Modified, pin);
        frame
    }

    #[test]
    fn a_bucket_is_two_cache_lines() {
        assert_eq!(size_of::<Bucket>(), 128);
    }

    #[test]
    fn the_least_recently_used_frame_that_may_go_is_named() {
        let mut cache = Cache::new(BlockSize::DEFAULT, 0, Placement::Even);
        let frames: Vec<FrameId> = (0..8).map(|block| publish(&mut cache, block, block == 1)).collect();
        cache.touch(frames[0]);
        // 0 was used again, 1 is pinned, 2 is going already.
        let found = cache.reserve(tag(8), |frame| frame == frames[2]);
        assert_eq!(found, Reservation::Evict { frame: frames[3], tag: tag(3), access: Access::Modified });
    }

    #[test]
    fn the_order_of_use_survives_the_clocks_end() {
        let mut cache = Cache::new(BlockSize::DEFAULT, 0, Placement::Even);
        let frames: Vec<FrameId> = (0..8).map(|block| publish(&mut cache, block, false)).collect();
        for round in 0..40_000_u32 {
            for frame in [0, 2, 3, 4, 5, 6, 7] {
                cache.touch(frames[frame]);
            }
            if round % 1000 == 0 {
                let found = cache.reserve(tag(8), |_| false);
                assert!(
                    matches!(found, Reservation::Evict { frame, .. } if frame == frames[1]),
                    "round {round}"
                );
            }
        }
    }

    #[test]
    fn an_agent_that_meets_a_pin_is_remembered_until_it_gets_the_frame() {
        let mut cache = Cache::new(BlockSize::DEFAULT, 0, Placement::Even);
        let frame = publish(&mut cache, 0, true);
        assert_eq!(cache.withdraw(frame), Err(Pinned));
        assert!(cache.unpin(frame), "an agent waits");
        assert_eq!(cache.withdraw(frame), Ok(()));
        assert_eq!(cache.lookup(tag(0)), None);
    }
}
