//! A node's copies of locks, and the regions in its memory, with a number for each region instead of its bytes: that of
//! the last write.
//!
//! What must always hold: what the seam promises to threads. A misuse of the seam panics here, and a panic is a finding.

use std::collections::{BTreeMap, BTreeSet};

use node::locks::store::{Full, LockStore, Users};
use node::store::DataRef;
use wire::{GlobalAddr, Mode, Refusal};

/// A copy of a lock's region, with its gate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Frame {
    /// Who may enter without asking: nobody, readers, or everybody.
    pub gate: Option<Mode>,
    /// Who is inside.
    pub users: Users,
    /// The number of the last write that it has.
    pub value: u64,
    used: u64,
}

/// The store of one node. Contents travel by value: a [`DataRef`] is the number itself.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PlainLocks {
    /// Copies, at most `room` of them but for those that came unasked.
    pub frames: BTreeMap<GlobalAddr, Frame>,
    /// Regions of this node's memory that were written.
    pub home: BTreeMap<GlobalAddr, u64>,
    /// Regions of this node's memory that belong to no allocation.
    pub unallocated: BTreeSet<GlobalAddr>,
    room: usize,
    clock: u64,
}

impl PlainLocks {
    /// A store with capacity for so many copies.
    pub fn new(room: usize) -> Self {
        Self { frames: BTreeMap::new(), home: BTreeMap::new(), unallocated: BTreeSet::new(), room, clock: 0 }
    }

    /// A thread tries the gate; true if it is in.
    pub fn enter(&mut self, lock: GlobalAddr, mode: Mode) -> bool {
        self.clock += 1;
        let Some(frame) = self.frames.get_mut(&lock) else { return false };
        let open = match (frame.gate, mode) {
            (None, _) | (Some(Mode::Read), Mode::Write) => false,
            (Some(_), Mode::Read) => !frame.users.writer,
            (Some(Mode::Write), Mode::Write) => frame.users.is_none(),
        };
        if open {
            frame.used = self.clock;
            frame.take(mode);
        }
        open
    }

    /// A thread leaves; a writer leaves its number. True if that must be reported.
    ///
    /// # Panics
    /// If it was not inside.
    pub fn leave(&mut self, lock: GlobalAddr, mode: Mode, wrote: Option<u64>) -> bool {
        let frame = self.frames.get_mut(&lock).expect("a copy that somebody is inside of stays");
        match mode {
            Mode::Read => frame.users.readers = frame.users.readers.checked_sub(1).expect("a reader leaves"),
            Mode::Write => assert!(std::mem::take(&mut frame.users.writer), "a writer leaves"),
        }
        if let Some(value) = wrote {
            frame.value = value;
        }
        frame.gate.is_none()
    }

    /// A writer will never leave, for the lock is to end.
    ///
    /// # Panics
    /// If it was not inside.
    pub fn end(&mut self, lock: GlobalAddr) {
        let frame = self.frame(lock);
        assert!(std::mem::take(&mut frame.users.writer), "a writer ends its lock");
        frame.gate = None;
    }

    /// Makes stores that behave alike equal: what was used when only counts for its order. Values are replaced.
    pub fn canonical(&mut self, value: impl Fn(GlobalAddr, u64) -> u64) {
        self.home.iter_mut().for_each(|(lock, it)| *it = value(*lock, *it));
        let mut order: Vec<u64> = self.frames.values().map(|frame| frame.used).collect();
        order.sort_unstable();
        for (lock, frame) in &mut self.frames {
            frame.used = order.partition_point(|used| *used < frame.used) as u64;
            frame.value = value(*lock, frame.value);
        }
        self.clock = order.len() as u64;
    }

    fn frame(&mut self, lock: GlobalAddr) -> &mut Frame {
        self.frames.get_mut(&lock).expect("the machine has reserved room for this copy")
    }
}

impl Frame {
    fn take(&mut self, mode: Mode) {
        match mode {
            Mode::Read => {
                assert!(!self.users.writer, "a reader is let in beside a writer");
                self.users.readers += 1;
            }
            Mode::Write => {
                assert!(self.users.is_none(), "a writer is let in beside others");
                self.users.writer = true;
            }
        }
    }
}

impl LockStore for PlainLocks {
    fn reserve(&mut self, lock: GlobalAddr, _: u32, must: bool) -> Result<(), Full> {
        assert!(!self.frames.contains_key(&lock), "a copy has room once");
        self.clock += 1;
        if !must && self.frames.len() >= self.room {
            let idle = self.frames.iter().filter(|(_, frame)| frame.users.is_none());
            let oldest = idle.min_by_key(|(_, frame)| frame.used);
            return Err(oldest.map_or(Full::Busy, |(victim, _)| Full::Evict(*victim)));
        }
        self.frames.insert(lock, Frame { used: self.clock, ..Frame::default() });
        Ok(())
    }

    fn release(&mut self, lock: GlobalAddr) {
        let frame = self.frames.remove(&lock).expect("what is released had room");
        assert!(frame.users.is_none(), "a copy is released under its users");
    }

    fn fill(&mut self, lock: GlobalAddr, data: DataRef) {
        let frame = self.frame(lock);
        assert!(frame.users.is_none() && frame.gate.is_none(), "a copy is filled under its users");
        frame.value = data.0;
    }

    fn contents(&self, lock: GlobalAddr) -> DataRef {
        DataRef(self.frames[&lock].value)
    }

    fn open(&mut self, lock: GlobalAddr, mode: Mode) {
        self.frame(lock).gate = Some(mode);
    }

    fn close(&mut self, lock: GlobalAddr) -> Users {
        let frame = self.frame(lock);
        frame.gate = None;
        frame.users
    }

    fn admit(&mut self, lock: GlobalAddr, mode: Mode) {
        self.clock += 1;
        let clock = self.clock;
        let frame = self.frame(lock);
        frame.used = clock;
        frame.take(mode);
    }

    fn may_lock(&self, lock: GlobalAddr, _: u32) -> Result<(), Refusal> {
        if self.unallocated.contains(&lock) { Err(Refusal::Unallocated) } else { Ok(()) }
    }

    fn home_contents(&self, lock: GlobalAddr, _: u32) -> DataRef {
        DataRef(self.home.get(&lock).copied().unwrap_or(0))
    }

    fn write_home(&mut self, lock: GlobalAddr, _: u32, data: DataRef) {
        self.home.insert(lock, data.0);
    }
}
