//! A node's cache and memory, with a stamp for every block instead of its bytes.

use std::collections::BTreeMap;

use node::{Access, DataRef, FrameId, Pinned, Reservation, Store};
use wire::{BlockSize, BlockTag, GlobalAddr};

/// Frames in a bucket: few, so that evictions are frequent.
const WAYS: usize = 2;

/// One frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Frame {
    /// What it is published as; a frame that is not may be reserved.
    pub published: Option<(BlockTag, Access)>,
    /// Reserved by the requester.
    pub reserved: bool,
    /// The number of the last write to the block that it holds.
    pub stamp: u64,
    /// A thread has it to itself.
    pub pinned: bool,
    /// An agent was refused for that.
    pub pending: bool,
    used: u64,
}

/// The store of one node of the little rack. Contents travel by value: a [`DataRef`] is the stamp itself, as it
/// was when the packet was sent.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PlainStore {
    /// The cache.
    pub frames: Vec<Frame>,
    /// The memory that this node is home of, by the address of each block; of words and objects, by their own.
    pub home: BTreeMap<GlobalAddr, u64>,
    block: BlockSize,
    clock: u64,
    /// Blocks zeroed since somebody looked.
    pub zeroed: Vec<BlockTag>,
    /// Copies retained and not discarded.
    pub retained: usize,
}

impl PlainStore {
    /// A store with so many buckets of two frames.
    pub fn new(block: BlockSize, buckets: usize) -> Self {
        Self {
            frames: vec![Frame::default(); buckets * WAYS],
            home: BTreeMap::new(),
            block,
            clock: 0,
            zeroed: Vec::new(),
            retained: 0,
        }
    }

    fn bucket(&self, tag: BlockTag) -> std::ops::Range<usize> {
        let buckets = self.frames.len() / WAYS;
        let bucket = (tag.addr().offset() >> self.block.shift()) as usize % buckets;
        bucket * WAYS..(bucket + 1) * WAYS
    }

    fn frame(&mut self, frame: FrameId) -> &mut Frame {
        &mut self.frames[frame.0 as usize]
    }

    /// The frame, if no thread has it pinned; an agent that is refused is remembered.
    fn unpinned(&mut self, frame: FrameId) -> Result<&mut Frame, Pinned> {
        let it = self.frame(frame);
        if it.pinned {
            it.pending = true;
            return Err(Pinned);
        }
        it.pending = false;
        Ok(it)
    }

    /// The memory's stamp of a block whose home this is.
    pub fn home_stamp(&self, tag: BlockTag) -> u64 {
        self.home.get(&tag.addr()).copied().unwrap_or(0)
    }

    /// Replaces every stamp; and the times of use by their order, which is all that they are there for.
    pub fn canonical(&mut self, stamp: impl Fn(u64) -> u64) {
        self.home
            .values_mut()
            .chain(self.frames.iter_mut().map(|frame| &mut frame.stamp))
            .for_each(|it| *it = stamp(*it));
        let mut order: Vec<u64> = self.frames.iter().map(|frame| frame.used).collect();
        order.sort_unstable();
        order.dedup();
        for frame in &mut self.frames {
            frame.used = order.partition_point(|used| *used < frame.used) as u64;
            if frame.published.is_none() && !frame.reserved {
                (frame.stamp, frame.pending) = (0, false);
            }
        }
        self.clock = order.len() as u64;
        self.retained = 0;
    }

    /// Ends a thread's access; true if an agent waits for that.
    pub fn unpin(&mut self, frame: FrameId) -> bool {
        let it = self.frame(frame);
        assert!(it.pinned, "{frame:?} was pinned");
        it.pinned = false;
        it.pending
    }
}

impl Store for PlainStore {
    fn lookup(&self, tag: BlockTag) -> Option<(FrameId, Access)> {
        self.bucket(tag).find_map(|index| match self.frames[index].published {
            Some((holds, access)) if holds == tag => Some((FrameId(index as u32), access)),
            _ => None,
        })
    }

    fn tag_of(&self, frame: FrameId) -> Option<BlockTag> {
        self.frames[frame.0 as usize].published.map(|(tag, _)| tag)
    }

    fn published(&self, mut each: impl FnMut(FrameId, BlockTag, Access)) {
        for (index, frame) in self.frames.iter().enumerate() {
            if let Some((tag, access)) = frame.published {
                each(FrameId(index as u32), tag, access);
            }
        }
    }

    fn reserve(&mut self, tag: BlockTag, is_victim: impl Fn(FrameId) -> bool) -> Reservation {
        assert!(self.lookup(tag).is_none(), "{tag:?} has a frame already");
        let bucket = self.bucket(tag);
        if let Some(index) = bucket.clone().find(|index| {
            let frame = &self.frames[*index];
            frame.published.is_none() && !frame.reserved
        }) {
            self.frames[index].reserved = true;
            return Reservation::Reserved(FrameId(index as u32));
        }
        bucket
            .filter(|index| !self.frames[*index].pinned && !is_victim(FrameId(*index as u32)))
            .filter_map(|index| self.frames[index].published.map(|held| (index, held)))
            .min_by_key(|(index, _)| self.frames[*index].used)
            .map_or(Reservation::Busy, |(index, (tag, access))| Reservation::Evict {
                frame: FrameId(index as u32),
                tag,
                access,
            })
    }

    fn fill(&mut self, frame: FrameId, data: DataRef) {
        let it = self.frame(frame);
        assert!(it.reserved, "only a reserved frame is filled");
        it.stamp = data.0;
    }

    fn publish(&mut self, frame: FrameId, tag: BlockTag, access: Access, pin: bool) {
        assert!(self.lookup(tag).is_none(), "{tag:?} is published once");
        self.clock += 1;
        let used = self.clock;
        let it = self.frame(frame);
        assert!(it.reserved && !it.pinned, "only a reserved frame is published");
        (it.reserved, it.published, it.pinned, it.used) = (false, Some((tag, access)), pin, used);
    }

    fn pin(&mut self, frame: FrameId) -> Result<(), Pinned> {
        self.clock += 1;
        let used = self.clock;
        let it = self.unpinned(frame)?;
        assert!(it.published.is_some(), "only a published frame is pinned");
        (it.pinned, it.used) = (true, used);
        Ok(())
    }

    fn upgrade(&mut self, frame: FrameId) -> Result<(), Pinned> {
        let it = self.unpinned(frame)?;
        let Some((tag, Access::Shared)) = it.published else { panic!("only a shared frame is upgraded") };
        (it.published, it.pinned) = (Some((tag, Access::Modified)), true);
        Ok(())
    }

    fn downgrade(&mut self, frame: FrameId) -> Result<(), Pinned> {
        match self.frame(frame).published {
            Some((tag, Access::Modified)) => self.unpinned(frame)?.published = Some((tag, Access::Shared)),
            Some((_, Access::Shared)) => {}
            None => panic!("only a published frame is downgraded"),
        }
        Ok(())
    }

    fn withdraw(&mut self, frame: FrameId) -> Result<(), Pinned> {
        let it = self.unpinned(frame)?;
        assert!(it.published.is_some(), "only a published frame is withdrawn");
        (it.published, it.reserved) = (None, true);
        Ok(())
    }

    fn release(&mut self, frame: FrameId) {
        let it = self.frame(frame);
        assert!(it.reserved, "only a reserved frame is released");
        it.reserved = false;
    }

    fn writes(&self, frame: FrameId) -> u64 {
        self.frames[frame.0 as usize].stamp
    }

    fn contents(&self, frame: FrameId) -> DataRef {
        let it = &self.frames[frame.0 as usize];
        assert!(it.published.is_some() || it.reserved, "a free frame has no contents");
        DataRef(it.stamp)
    }

    fn retain(&mut self, frame: FrameId) -> DataRef {
        self.retained += 1;
        self.contents(frame)
    }

    fn read(&mut self, frame: FrameId) -> Result<DataRef, Pinned> {
        if self.frames[frame.0 as usize].pinned {
            return Err(Pinned);
        }
        Ok(self.retain(frame))
    }

    fn keep(&mut self, data: DataRef) -> DataRef {
        self.retained += 1;
        data
    }

    fn discard(&mut self, _: DataRef) {
        self.retained = self.retained.checked_sub(1).expect("what is discarded was retained");
    }

    fn home_contents(&self, tag: BlockTag) -> DataRef {
        DataRef(self.home_stamp(tag))
    }

    fn write_home(&mut self, tag: BlockTag, data: DataRef) {
        self.home.insert(tag.addr(), data.0);
    }

    fn zero_home(&mut self, first: BlockTag, bytes: u64) {
        for block in 0..bytes.div_ceil(self.block.bytes()) {
            let tag = BlockTag::from_bits(first.bits() + (block << self.block.shift()));
            let end = GlobalAddr::from_bits(tag.addr().bits() + self.block.bytes());
            self.home.extract_if(tag.addr()..end, |_, _| true).for_each(drop);
            self.home.insert(tag.addr(), 0);
            self.zeroed.push(tag);
        }
    }
}
