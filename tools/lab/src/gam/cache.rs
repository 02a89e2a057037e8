//! One node's cache: fully associative, in the order of last use.
//!
//! Lines stand in an arena and are linked by number, 24 bytes each, because a node of the paper's rack caches two
//! million blocks. What must always hold: the list has exactly the lines that may be evicted, that is the shared and
//! dirty ones which no thread has pinned.

use node::Access;
use sim::coherence::Contents;
use wire::{BlockSize, BlockTag};

use crate::home::{Blocks, Paged};

/// The number of a line; zero is none.
pub(super) type LineId = u32;

const NONE: LineId = 0;

/// What a line is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LineState {
    /// Nothing.
    Free,
    /// A readable copy.
    Shared,
    /// The only copy.
    Dirty,
    /// It waits for its block, to read it (To-Shared) or to write it (To-Dirty).
    Fetching(Access),
    /// A readable copy that waits for the permission to write (To-Dirty). GAM lets nobody read it meanwhile.
    Upgrading,
    /// It is being written back (To-Invalid).
    Leaving,
    /// A copy that was invalidated before it arrived: only for those who waited for it before.
    Overtaken,
}

impl LineState {
    /// That of a copy with this right.
    pub(super) const fn of(access: Access) -> Self {
        match access {
            Access::Shared => Self::Shared,
            Access::Modified => Self::Dirty,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) tag: BlockTag,
    pub(super) state: LineState,
    /// Threads that waited for the block, and have not accessed it yet.
    pub(super) pins: u16,
    newer: LineId,
    older: LineId,
}

/// The cache.
pub(super) struct Cache {
    block: BlockSize,
    lines: Vec<Line>,
    /// What is in them.
    pub(super) blocks: Blocks,
    free: Vec<LineId>,
    /// The line of each block, by home and number.
    index: Vec<Paged<LineId>>,
    newest: LineId,
    oldest: LineId,
    capacity: usize,
    /// Lines that are written back now: they count as gone.
    leaving: usize,
}

impl Cache {
    pub(super) fn new(nodes: usize, block: BlockSize, contents: Contents, bytes: u64) -> Self {
        let nothing =
            Line { tag: BlockTag::from_bits(0), state: LineState::Free, pins: 0, newer: NONE, older: NONE };
        Self {
            block,
            lines: vec![nothing],
            blocks: Blocks::new(contents, block),
            free: Vec::new(),
            index: (0..nodes).map(|_| Paged::default()).collect(),
            newest: NONE,
            oldest: NONE,
            capacity: (bytes >> block.shift()) as usize,
            leaving: 0,
        }
    }

    /// Lines that it may have.
    pub(super) const fn capacity(&self) -> usize {
        self.capacity
    }

    /// Lines in use that are not being written back.
    pub(super) fn len(&self) -> usize {
        self.lines.len() - 1 - self.free.len() - self.leaving
    }

    fn place(&mut self, tag: BlockTag) -> &mut LineId {
        let number = tag.addr().offset() >> self.block.shift();
        self.index[tag.home().index()].entry(number as usize)
    }

    /// The line of a block.
    pub(super) fn find(&self, tag: BlockTag) -> Option<LineId> {
        let number = tag.addr().offset() >> self.block.shift();
        match self.index[tag.home().index()].get(number as usize) {
            NONE => None,
            line => Some(line),
        }
    }

    pub(super) fn line(&self, id: LineId) -> &Line {
        &self.lines[id as usize]
    }

    /// All lines in use.
    pub(super) fn all(&self) -> impl Iterator<Item = (LineId, &Line)> {
        (0..).zip(&self.lines).filter(|(_, line)| line.state != LineState::Free)
    }

    /// Takes a line for a block. The cache may grow beyond its capacity by what is in flight: see [`Cache::victim`].
    pub(super) fn insert(&mut self, tag: BlockTag, state: LineState) -> LineId {
        let line = Line { tag, state: LineState::Free, pins: 0, newer: NONE, older: NONE };
        let id = match self.free.pop() {
            Some(id) => {
                self.lines[id as usize] = line;
                id
            }
            None => {
                self.lines.push(line);
                LineId::try_from(self.lines.len() - 1).expect("fewer than 2^32 lines")
            }
        };
        *self.place(tag) = id;
        self.set(id, state);
        id
    }

    /// Before a run: lines for these blocks, each used later than those before it. The first line's number; the others
    /// follow. No block is found before [`Cache::enter`].
    pub(super) fn fill(&mut self, blocks: impl ExactSizeIterator<Item = (BlockTag, LineState)>) -> LineId {
        assert!(self.lines.len() == 1 && blocks.len() <= self.capacity, "an empty cache, with room");
        let last = LineId::try_from(blocks.len()).expect("fewer than 2^32 lines");
        let line = |(id, (tag, state)): (LineId, _)| {
            let newer = if id == last { NONE } else { id + 1 };
            // The line before the first is none.
            Line { tag, state, pins: 0, newer, older: id - 1 }
        };
        self.lines.extend((1..).zip(blocks).map(line));
        (self.oldest, self.newest) = (last.min(1), last);
        1
    }

    /// Before a run: this line holds this block.
    pub(super) fn enter(&mut self, tag: BlockTag, line: LineId) {
        let place = self.place(tag);
        assert_eq!(core::mem::replace(place, line), NONE, "{tag:?} has one line");
    }

    /// Gives a line back.
    pub(super) fn remove(&mut self, id: LineId) {
        assert_eq!(self.line(id).pins, 0, "a thread has yet to access {:?}", self.line(id));
        self.set(id, LineState::Free);
        let tag = self.line(id).tag;
        *self.place(tag) = NONE;
        self.blocks.take(id as usize);
        self.free.push(id);
    }

    /// Changes what a line is. One that may be evicted becomes the most recently used one.
    pub(super) fn set(&mut self, id: LineId, state: LineState) {
        self.unlink(id);
        let line = &mut self.lines[id as usize];
        self.leaving -= usize::from(line.state == LineState::Leaving);
        self.leaving += usize::from(state == LineState::Leaving);
        line.state = state;
        self.link(id);
    }

    /// Marks a line as just used.
    pub(super) fn used(&mut self, id: LineId) {
        if self.newest != id {
            self.unlink(id);
            self.link(id);
        }
    }

    /// Some threads will access the line when they are awake.
    pub(super) fn pin(&mut self, id: LineId, threads: usize) {
        self.unlink(id);
        self.lines[id as usize].pins += u16::try_from(threads).expect("fewer than 2^16 threads");
        self.link(id);
    }

    /// One of them has. Returns whether it was the last.
    pub(super) fn unpin(&mut self, id: LineId) -> bool {
        self.unlink(id);
        self.lines[id as usize].pins -= 1;
        self.link(id);
        self.line(id).pins == 0
    }

    /// If the cache is too large: the line that was used least recently.
    pub(super) fn victim(&self) -> Option<LineId> {
        (self.len() > self.capacity && self.oldest != NONE).then_some(self.oldest)
    }

    /// Whether a line may be evicted, so that it stands in the list.
    fn evictable(line: &Line) -> bool {
        matches!(line.state, LineState::Shared | LineState::Dirty) && line.pins == 0
    }

    fn link(&mut self, id: LineId) {
        if !Self::evictable(self.line(id)) {
            return;
        }
        let newest = core::mem::replace(&mut self.newest, id);
        self.lines[id as usize].older = newest;
        match newest {
            NONE => self.oldest = id,
            newest => self.lines[newest as usize].newer = id,
        }
    }

    fn unlink(&mut self, id: LineId) {
        let line = &mut self.lines[id as usize];
        if !Self::evictable(line) {
            return;
        }
        let newer = core::mem::replace(&mut line.newer, NONE);
        let older = core::mem::replace(&mut line.older, NONE);
        match newer {
            NONE => self.newest = older,
            newer => self.lines[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.lines[older as usize].newer = newer,
        }
    }
}
