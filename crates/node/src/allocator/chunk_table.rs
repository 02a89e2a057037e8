//! The home's half of the allocator: who has which chunk of this home's memory, and which blocks are live.
//!
//! Runs at the home agent, which asks it before it answers a miss: a block that belongs to no live allocation
//! has no contents that anybody may see. What must always hold: a chunk has one owner and one discipline, only
//! its owner can change what is live in it, and it changes hands only when nothing in it is live.

use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use wire::{BlockSize, BlockTag, Discipline, GlobalAddr, NodeId, Refusal, SwitchEpoch};

use super::geometry::{ChunkSize, Geometry};
use super::live_blocks::LiveBlocks;
use super::range::BlockRange;

/// The home has no run of free chunks that is long enough.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfMemory {
    /// The longest allocation that a grant could hold now, in bytes.
    pub longest: u64,
}

/// Why blocks were not marked. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MarkRefused {
    /// Not all of the range is granted to the node that asks (or it is no range of this home's blocks).
    NotGranted,
    /// It is granted for another discipline.
    WrongDiscipline,
}

/// Why chunks were not taken back. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GiveBackRefused {
    /// Not whole chunks that are granted to the node that asks.
    NotGranted,
    /// Some of their blocks are live.
    Live,
}

/// A chunk of a table, or a live block of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// The block, or the first one of the chunk.
    pub first: BlockTag,
    /// Whose chunk it is.
    pub owner: NodeId,
    /// Its owner died.
    pub orphaned: bool,
    /// What the chunk is for.
    pub discipline: Discipline,
    /// It is the chunk.
    pub is_chunk: bool,
    /// When that chunk was last taken back from an allocator that died; 0: never.
    pub taken_back: SwitchEpoch,
}

/// What is free of a chunk whose owner died is granted before free chunks if it is so large a part of it.
const GOOD_PART: u64 = 8;

/// A chunk in use by a node's allocator.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Grant {
    owner: NodeId,
    /// The owner died: what is allocated here stays, and cannot be freed.
    orphaned: bool,
    discipline: Discipline,
    live: LiveBlocks,
    /// Blocks of a chunk whose owner died that another allocator has been given since: none of those is live otherwise.
    run: Option<Run>,
}

/// A part of a chunk in use by a node's allocator.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Run {
    owner: NodeId,
    blocks: Range<u64>,
    live: LiveBlocks,
}

impl Grant {
    fn new(owner: NodeId, discipline: Discipline) -> Self {
        Self { owner, orphaned: false, discipline, live: LiveBlocks::default(), run: None }
    }

    /// The run that has all of these blocks.
    fn run_with(&self, blocks: &Range<u64>) -> Option<&Run> {
        self.run.as_ref().filter(|run| run.blocks.start <= blocks.start && blocks.end <= run.blocks.end)
    }

    /// The node whose allocator has these blocks.
    fn owner_of(&self, blocks: &Range<u64>) -> NodeId {
        self.run_with(blocks).map_or(self.owner, |run| run.owner)
    }

    /// No allocator has these blocks any more.
    fn is_orphaned(&self, blocks: &Range<u64>) -> bool {
        self.orphaned && self.run_with(blocks).is_none()
    }

    /// Which of these blocks are live, if they are somebody's.
    fn live_mut(&mut self, blocks: &Range<u64>) -> &mut LiveBlocks {
        let is_of_run = self.run_with(blocks).is_some();
        match &mut self.run {
            Some(run) if is_of_run => &mut run.live,
            _ => &mut self.live,
        }
    }

    /// By its index in the chunk.
    fn is_live(&self, block: usize) -> bool {
        self.live.contains(block) || self.run.as_ref().is_some_and(|run| run.live.contains(block))
    }

    fn count(&self) -> u64 {
        self.live.count() + self.run.as_ref().map_or(0, |run| run.live.count())
    }

    /// The node has died, if it had anything of it. True if nothing is left.
    fn orphan(&mut self, node: NodeId) -> bool {
        if let Some(run) = self.run.take_if(|run| run.owner == node) {
            self.live.join(&run.live);
        }
        self.orphaned |= self.owner == node;
        self.orphaned && self.run.is_none() && self.live.count() == 0
    }

    /// It has given something of it to this node's allocator, which is there.
    fn is_used_by(&self, node: NodeId) -> bool {
        self.owner == node && !self.orphaned || self.run.as_ref().is_some_and(|run| run.owner == node)
    }
}

/// The chunks of one home's memory.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ChunkTable {
    home: NodeId,
    geometry: Geometry,
    /// Whole blocks in the memory.
    blocks: u64,
    chunks: Vec<Option<Grant>>,
    /// The epoch in which each chunk was last taken back from an allocator that died; 0: never.
    taken_back: Vec<SwitchEpoch>,
    /// The first block, which no allocator has, is live from the beginning.
    rooted: bool,
}

impl ChunkTable {
    /// The table of a home with `memory` bytes, all of them free. What does not fill a block is not used.
    ///
    /// # Panics
    /// If a chunk is smaller than a block, or the memory larger than an address can express (48 bits).
    pub fn new(home: NodeId, memory: u64, block: BlockSize, chunk: ChunkSize) -> Self {
        assert!(
            memory <= 1 << wire::addr::OFFSET_BITS,
            "a node's memory has at most 2^48 bytes, not {memory}"
        );
        let geometry = Geometry::new(block, chunk);
        let blocks = memory >> block.shift();
        let chunks = blocks.div_ceil(geometry.blocks_per_chunk());
        Self {
            home,
            geometry,
            blocks,
            chunks: (0..chunks).map(|_| None).collect(),
            taken_back: (0..chunks).map(|_| SwitchEpoch(0)).collect(),
            rooted: false,
        }
    }

    /// The same, with a *root*: its first block is live and coherent, and nobody allocates or frees it. What has to be found in a
    /// memory by whoever knows nothing of it begins there.
    #[must_use]
    pub fn rooted(self) -> Self {
        Self { rooted: true, ..self }
    }

    /// The blocks of a chunk that may be handed out: never the first of the memory, whose address would be
    /// null at node 0 (at the others it is left out too, so that all homes are alike), and none behind its end.
    fn usable(&self, chunk: u64) -> Range<u64> {
        let all = self.geometry.blocks_of(chunk);
        all.start.max(1)..all.end.min(self.blocks)
    }

    fn grant_of(&self, chunk: u64) -> Option<&Grant> {
        self.chunks.get(usize::try_from(chunk).ok()?)?.as_ref()
    }

    /// Grants `node` a run of blocks with capacity for an allocation of `bytes` bytes: what is free of a chunk whose owner died, if
    /// that is a good part of it; else the first free chunks, one, unless that is too small; else the most that is free of any such
    /// chunk. A request that is repeated is granted anew; telling repetitions is the caller's business.
    ///
    /// # Errors
    /// If there is no such run.
    pub fn grant(
        &mut self,
        node: NodeId,
        bytes: u64,
        discipline: Discipline,
    ) -> Result<BlockRange, OutOfMemory> {
        let want = bytes.div_ceil(self.geometry.block.bytes()).max(1);
        let good = want.max(self.geometry.blocks_per_chunk() / GOOD_PART);
        if let Some(range) = self.grant_again(node, good, discipline) {
            return Ok(range);
        }
        let longest = match self.grant_chunks(node, want, discipline) {
            Ok(range) => return Ok(range),
            Err(longest) => longest,
        };
        self.grant_again(node, want, discipline).ok_or_else(|| OutOfMemory {
            longest: longest.max(self.longest_left(discipline)) * self.geometry.block.bytes(),
        })
    }

    /// The longest run of blocks of an orphaned chunk in which nothing is live, if nobody has one of it.
    fn left_of(&self, chunk: u64, discipline: Discipline) -> Option<Range<u64>> {
        let grant = self.grant_of(chunk)?;
        // A table that is copied says of each chunk who has it.
        if self.rooted || !grant.orphaned || grant.run.is_some() || grant.discipline != discipline {
            return None;
        }
        let (mut longest, mut run) = (0..0, 0..0);
        for number in self.usable(chunk) {
            run = if grant.live.contains(self.geometry.index_in_chunk(number)) {
                0..0
            } else {
                (if run.is_empty() { number } else { run.start })..number + 1
            };
            if run.end - run.start > longest.end - longest.start {
                longest = run.clone();
            }
        }
        Some(longest)
    }

    fn longest_left(&self, discipline: Discipline) -> u64 {
        let left = (0..self.chunks.len() as u64).filter_map(|chunk| self.left_of(chunk, discipline));
        left.map(|left| left.end - left.start).max().unwrap_or(0)
    }

    /// Grants what is free of a chunk whose owner died.
    fn grant_again(&mut self, node: NodeId, want: u64, discipline: Discipline) -> Option<BlockRange> {
        let (chunk, blocks) = (0..self.chunks.len() as u64).find_map(|chunk| {
            let left = self.left_of(chunk, discipline).filter(|left| left.end - left.start >= want);
            left.map(|left| (chunk, left))
        })?;
        let grant = self.chunks[usize::try_from(chunk).expect("the table has this chunk")].as_mut()?;
        grant.run = Some(Run { owner: node, blocks: blocks.clone(), live: LiveBlocks::default() });
        Some(BlockRange::from_numbers(self.home, blocks, self.geometry.block))
    }

    /// Grants free chunks; or how many blocks the longest run of such has.
    fn grant_chunks(&mut self, node: NodeId, want: u64, discipline: Discipline) -> Result<BlockRange, u64> {
        let mut run = 0..0;
        let mut longest = 0;
        for chunk in 0..self.chunks.len() as u64 {
            if self.grant_of(chunk).is_some() {
                run = 0..0;
                continue;
            }
            let usable = self.usable(chunk);
            // (Still empty behind a first chunk that is but one block: that one is left out of the run.)
            if run.is_empty() {
                run.start = usable.start;
            }
            run.end = usable.end;
            longest = longest.max(run.end - run.start);
            if longest >= want {
                for (chunk, _) in self.geometry.pieces(run.clone()) {
                    let slot = usize::try_from(chunk).expect("the table has this chunk");
                    self.chunks[slot] = Some(Grant::new(node, discipline));
                }
                return Ok(BlockRange::from_numbers(self.home, run, self.geometry.block));
            }
        }
        Err(longest)
    }

    /// Grants these very chunks, as another table of the same memory has done. False if they are no chunks of it.
    pub fn grant_this(&mut self, node: NodeId, range: BlockRange, discipline: Discipline) -> bool {
        let Some(numbers) = range.numbers(self.geometry.block) else { return false };
        if range.home() != self.home || numbers.start == 0 || numbers.end > self.blocks {
            return false;
        }
        for (chunk, _) in self.geometry.pieces(numbers) {
            let slot = usize::try_from(chunk).expect("the table has this chunk");
            self.chunks[slot] = Some(Grant::new(node, discipline));
        }
        true
    }

    /// A table that another one is copied to, from this epoch on. What is free in that one then, no allocator of before has.
    #[must_use]
    pub fn copied_from(self, epoch: SwitchEpoch) -> Self {
        Self { taken_back: self.taken_back.iter().map(|_| epoch).collect(), ..self }
    }

    /// What comes at this place or behind it, of all that is granted and live: for whoever copies the table. Places begin at 0; the
    /// root comes last.
    pub fn step(&self, place: u64) -> Option<Step> {
        let (mut chunk, mut index) = (place >> 32, place & u64::from(u32::MAX));
        while let Some(grant) = self.chunks.get(usize::try_from(chunk).ok()?) {
            if let Some(grant) = grant {
                let usable = self.usable(chunk);
                let start = self.geometry.blocks_of(chunk).start;
                let live = |number: &u64| grant.live.contains(self.geometry.index_in_chunk(*number));
                // The chunk itself, and then its blocks, counted from 1.
                let found = match index {
                    0 => Some(usable.start),
                    _ => (start + index - 1..usable.end).find(live),
                };
                if let Some(number) = found {
                    let addr = GlobalAddr::new(self.home, number << self.geometry.block.shift());
                    return Some(Step {
                        first: self.geometry.block.tag(addr),
                        owner: grant.owner,
                        orphaned: grant.orphaned,
                        discipline: grant.discipline,
                        is_chunk: index == 0,
                        taken_back: self.taken_back[chunk as usize],
                    });
                }
            }
            (chunk, index) = (chunk + 1, 0);
        }
        let is_root = self.rooted && (chunk, index) == (self.chunks.len() as u64, 0);
        is_root.then(|| Step {
            first: self.root(),
            owner: NodeId(0),
            orphaned: true,
            discipline: Discipline::Coherent,
            is_chunk: false,
            taken_back: SwitchEpoch(0),
        })
    }

    /// The first block of the memory.
    pub fn root(&self) -> BlockTag {
        self.geometry.block.tag(GlobalAddr::new(self.home, 0))
    }

    /// The place behind a chunk with this block, or behind this block.
    pub fn place_behind(&self, tag: BlockTag, is_chunk: bool) -> u64 {
        let number = self.geometry.block_of(tag.addr());
        if number == 0 {
            return (self.chunks.len() as u64) << 32 | 1;
        }
        let index = if is_chunk { 1 } else { self.geometry.index_in_chunk(number) as u64 + 2 };
        self.geometry.chunk_of(number) << 32 | index
    }

    /// Takes what another table of the same memory has at some place. False if there is no such chunk, it is granted to another node,
    /// or not at all, if this is a block.
    pub fn take(&mut self, step: &Step) -> bool {
        let number = self.geometry.block_of(step.first.addr());
        if step.first.home() != self.home || number == 0 || number >= self.blocks {
            return self.rooted && step.first == self.root() && !step.is_chunk;
        }
        let slot = usize::try_from(self.geometry.chunk_of(number)).expect("the table has this chunk");
        let index = self.geometry.index_in_chunk(number);
        let Step { owner, orphaned, discipline, .. } = *step;
        if step.is_chunk {
            self.taken_back[slot] = step.taken_back;
            self.chunks[slot].get_or_insert_with(|| Grant { orphaned, ..Grant::new(owner, discipline) });
        }
        let Some(grant) = self.chunks[slot].as_mut().filter(|grant| grant.owner == owner) else {
            return false;
        };
        if !step.is_chunk {
            grant.live.set(index..index + 1, true);
        }
        true
    }

    /// Takes back whole chunks, as granted or any part of it.
    ///
    /// # Errors
    /// If they are not chunks that `node` has, or hold live blocks.
    pub fn give_back(&mut self, node: NodeId, range: BlockRange) -> Result<(), GiveBackRefused> {
        let numbers = self.owned(node, range).ok_or(GiveBackRefused::NotGranted)?;
        for (chunk, piece) in self.geometry.pieces(numbers.clone()) {
            let Some(grant) = self.grant_of(chunk) else { return Err(GiveBackRefused::NotGranted) };
            let (whole, live) = match grant.run_with(&piece) {
                Some(run) => (run.blocks.clone(), run.live.count()),
                None => (self.usable(chunk), grant.live.count()),
            };
            if piece != whole {
                return Err(GiveBackRefused::NotGranted);
            }
            if live > 0 {
                return Err(GiveBackRefused::Live);
            }
        }
        for (chunk, piece) in self.geometry.pieces(numbers) {
            let slot = &mut self.chunks[usize::try_from(chunk).expect("the table has this chunk")];
            match slot {
                Some(grant) if grant.run_with(&piece).is_some() => grant.run = None,
                _ => *slot = None,
            }
        }
        Ok(())
    }

    /// The numbers of the blocks, if all of them are granted to `node`.
    fn owned(&self, node: NodeId, range: BlockRange) -> Option<Range<u64>> {
        let numbers = range.numbers(self.geometry.block)?;
        // Whatever the sender claims, the loop is bounded by the memory: a range that leaves it ends here.
        if range.home() != self.home || numbers.start == 0 || numbers.end > self.blocks {
            return None;
        }
        self.geometry
            .pieces(numbers.clone())
            .all(|(chunk, piece)| {
                let grant = self.grant_of(chunk);
                grant.is_some_and(|grant| grant.owner_of(&piece) == node && !grant.is_orphaned(&piece))
            })
            .then_some(numbers)
    }

    /// The node whose allocator has the chunk that `addr` falls into: the one to ask for its `free`.
    pub fn owner_of(&self, addr: GlobalAddr) -> Option<NodeId> {
        let (grant, block) = self.grant_at(addr)?;
        Some(grant.owner_of(&block))
    }

    /// True if the allocator died that gave out what was at `addr` in this epoch. Its chunk may have another
    /// owner by now, which may have allocated the same address: that is not the allocation that was meant.
    pub fn is_orphaned(&self, addr: GlobalAddr, epoch: SwitchEpoch) -> bool {
        let chunk = self.geometry.chunk_of(self.geometry.block_of(addr));
        let taken_back = usize::try_from(chunk).ok().and_then(|chunk| self.taken_back.get(chunk));
        self.grant_at(addr).is_some_and(|(grant, block)| grant.is_orphaned(&block))
            || addr.home() == self.home && taken_back.is_some_and(|taken_back| epoch < *taken_back)
    }

    /// The grant of a block, and that block.
    fn grant_at(&self, addr: GlobalAddr) -> Option<(&Grant, Range<u64>)> {
        let number = self.geometry.block_of(addr);
        if addr.home() != self.home || number == 0 || number >= self.blocks {
            return None;
        }
        Some((self.grant_of(self.geometry.chunk_of(number))?, number..number + 1))
    }

    /// A node has died, and its allocator with it. Chunks of it without live blocks are free again; of the others what is not live
    /// can be granted again, and the rest stays as it is, for whoever uses what was allocated there.
    pub fn orphan(&mut self, node: NodeId, epoch: SwitchEpoch) {
        for (chunk, taken_back) in self.chunks.iter_mut().zip(&mut self.taken_back) {
            let Some(grant) = chunk.as_mut().filter(|grant| grant.is_used_by(node)) else { continue };
            let is_free = grant.orphan(node);
            // Where nothing of it is granted again, it is as it was.
            if is_free || !self.rooted {
                *taken_back = epoch;
            }
            if is_free {
                *chunk = None;
            }
        }
    }

    /// The live blocks, in ascending order.
    pub fn live_blocks(&self) -> impl Iterator<Item = BlockTag> {
        let root = self.rooted.then(|| self.root());
        root.into_iter().chain(self.allocated_blocks())
    }

    fn allocated_blocks(&self) -> impl Iterator<Item = BlockTag> {
        (0..).zip(&self.chunks).filter_map(|(chunk, grant)| Some((chunk, grant.as_ref()?))).flat_map(
            |(chunk, grant)| {
                let live = |number: &u64| grant.is_live(self.geometry.index_in_chunk(*number));
                self.usable(chunk).filter(live).map(|number| {
                    let addr = GlobalAddr::new(self.home, number << self.geometry.block.shift());
                    self.geometry.block.tag(addr)
                })
            },
        )
    }

    /// Makes blocks live with this discipline, or (with `None`) ends. Marking what is marked
    /// already changes nothing.
    ///
    /// # Errors
    /// If not all of the range is granted to `node`, for this discipline.
    pub fn mark(
        &mut self,
        node: NodeId,
        range: BlockRange,
        discipline: Option<Discipline>,
    ) -> Result<(), MarkRefused> {
        let numbers = self.owned(node, range).ok_or(MarkRefused::NotGranted)?;
        let obeys = |grant: &Grant| discipline.is_none_or(|stated| stated == grant.discipline);
        let mut pieces = self.geometry.pieces(numbers.clone());
        if !pieces.all(|(chunk, _)| self.grant_of(chunk).is_some_and(obeys)) {
            return Err(MarkRefused::WrongDiscipline);
        }
        for (chunk, piece) in self.geometry.pieces(numbers) {
            let first = self.geometry.index_in_chunk(piece.start);
            let last = self.geometry.index_in_chunk(piece.end - 1);
            let slot = usize::try_from(chunk).expect("the table has this chunk");
            let grant = self.chunks[slot].as_mut().expect("it was found to be granted");
            grant.live_mut(&piece).set(first..last + 1, discipline.is_some());
        }
        Ok(())
    }

    /// The discipline that a block obeys while it belongs to a live allocation. The block's application lock
    /// has an entry of its own, but lives with the block.
    pub fn discipline_of(&self, tag: BlockTag) -> Option<Discipline> {
        if tag.home() != self.home {
            return None;
        }
        let number = self.geometry.block_of(tag.addr());
        if self.rooted && number == 0 {
            return Some(Discipline::Coherent);
        }
        let grant = self.grant_of(self.geometry.chunk_of(number))?;
        grant.is_live(self.geometry.index_in_chunk(number)).then_some(grant.discipline)
    }

    /// Bytes in live blocks.
    pub fn live_bytes(&self) -> u64 {
        let live: u64 = self.chunks.iter().flatten().map(Grant::count).sum();
        live * self.geometry.block.bytes()
    }

    /// Bytes that some node's allocator has.
    pub fn granted_bytes(&self) -> u64 {
        let granted = (0..).zip(&self.chunks).filter_map(|(chunk, grant)| match grant.as_ref()? {
            Grant { run: Some(run), .. } => Some(run.blocks.clone()),
            Grant { orphaned, .. } => (!orphaned).then(|| self.usable(chunk)),
        });
        granted.map(|all| all.end - all.start).sum::<u64>() * self.geometry.block.bytes()
    }

    /// Checks the table against itself.
    ///
    /// # Panics
    /// If something is wrong: a bug in rackmem.
    pub fn assert_invariants(&self) {
        for (chunk, grant) in (0..).zip(&self.chunks) {
            let Some(grant) = grant else { continue };
            let usable = self.usable(chunk);
            assert!(!usable.is_empty(), "chunk {chunk} was granted and has no block to use");
            assert_eq!(grant.live.recount(), grant.live.count(), "live blocks of chunk {chunk}");
            let inside = usable.filter(|number| grant.live.contains(self.geometry.index_in_chunk(*number)));
            assert_eq!(inside.count() as u64, grant.live.count(), "live blocks outside chunk {chunk}");
            let Some(run) = &grant.run else { continue };
            assert!(grant.orphaned && !self.rooted, "chunk {chunk} has an owner, who is there: {grant:?}");
            assert_eq!(run.live.recount(), run.live.count(), "live blocks of a run in chunk {chunk}");
            let live = |number: &u64| run.live.contains(self.geometry.index_in_chunk(*number));
            let of_dead = |number: &u64| grant.live.contains(self.geometry.index_in_chunk(*number));
            let inside = run.blocks.clone().filter(live).count() as u64;
            assert_eq!(inside, run.live.count(), "live blocks outside the run of chunk {chunk}");
            assert!(!run.blocks.clone().any(|number| of_dead(&number)), "two have a block of chunk {chunk}");
        }
    }
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the home has no free run of chunks for more than {} bytes", self.longest)
    }
}

impl core::error::Error for OutOfMemory {}

impl From<OutOfMemory> for Refusal {
    fn from(_: OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}

impl From<MarkRefused> for Refusal {
    fn from(why: MarkRefused) -> Self {
        match why {
            MarkRefused::NotGranted => Self::Unallocated,
            MarkRefused::WrongDiscipline => Self::WrongDiscipline,
        }
    }
}
