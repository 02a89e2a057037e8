//! A node's copies of locked regions, each with its gate. There is the number of the last write, and the bytes, if they are
//! kept. A [`DataRef`] is that number; the bytes that travel with it are in [`Sent`].
//!
//! What must always hold: writers are alone, in virtual time too. Threads run ahead of the event queue, so a thread may try
//! a gate at an earlier time than the one at which another, that went before it, had left. It enters when that one had.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::AtomicU64;

use node::locks::{Full, LockStore, Users};
use node::store::DataRef;
use wire::{GlobalAddr, Mode, Nanos, NodeId, Refusal};

use crate::home::{Contents, Home, Words, copy};

/// Bytes of a copy that guards no data: a cache line, for its gate.
const LEAST: u32 = 64;

/// A copy, or the place where one may be.
#[derive(Default, Debug)]
struct Copy {
    /// Bytes of the region.
    len: u32,
    /// There is capacity for it, whether that was planned or not.
    kept: bool,
    /// Who may enter without asking.
    gate: Option<Mode>,
    users: Users,
    stamp: u64,
    words: Words,
    /// When it was entered last, in calls.
    used: u64,
    /// When the last writer had left, and the last thread.
    written: Nanos,
    left: Nanos,
}

/// One node's copies.
pub(super) struct Copies {
    /// Bytes that they may take together, and do.
    room: u64,
    taken: u64,
    calls: u64,
    copies: BTreeMap<GlobalAddr, Copy>,
}

impl Copies {
    pub(super) const fn new(room: u64) -> Self {
        Self { room, taken: 0, calls: 0, copies: BTreeMap::new() }
    }

    /// A thread tries the gate at this time of its clock. Returns when it is in, if it gets in.
    pub(super) fn enter(&mut self, (lock, len): (GlobalAddr, u32), mode: Mode, now: Nanos) -> Option<Nanos> {
        self.calls += 1;
        let calls = self.calls;
        let copy = self.copies.get_mut(&lock).filter(|copy| copy.len == len)?;
        let open = match (copy.gate, mode) {
            (None, _) | (Some(Mode::Read), Mode::Write) => false,
            (Some(_), Mode::Read) => !copy.users.writer,
            (Some(Mode::Write), Mode::Write) => copy.users.is_none(),
        };
        if !open {
            return None;
        }
        copy.used = calls;
        copy.take(mode);
        Some(now.max(copy.free_for(mode)))
    }

    /// A thread leaves; a writer leaves its number. Returns when all who were before it have left, if nobody can enter
    /// now without the machine.
    pub(super) fn leave(
        &mut self,
        lock: GlobalAddr,
        mode: Mode,
        now: Nanos,
        wrote: Option<u64>,
    ) -> Option<Nanos> {
        let copy = self.copy(lock);
        match mode {
            Mode::Read => copy.users.readers = copy.users.readers.checked_sub(1).expect("a reader leaves"),
            Mode::Write => {
                assert!(core::mem::take(&mut copy.users.writer), "a writer leaves");
                copy.written = copy.written.max(now);
            }
        }
        copy.left = copy.left.max(now);
        copy.stamp = wrote.unwrap_or(copy.stamp);
        copy.gate.is_none().then_some(copy.left)
    }

    /// A writer will never leave, for the lock is to end.
    pub(super) fn end(&mut self, lock: GlobalAddr) {
        let copy = self.copy(lock);
        assert!(core::mem::take(&mut copy.users.writer), "a writer ends its lock");
        copy.gate = None;
    }

    /// The number of the last write to a region that somebody is inside of, and the region's length.
    pub(super) fn seen(&self, lock: GlobalAddr) -> (u64, u32) {
        let copy = &self.copies[&lock];
        (copy.stamp, copy.len)
    }

    /// The words of a copy, made if there are none.
    pub(super) fn words(&mut self, lock: GlobalAddr) -> &[AtomicU64] {
        let copy = self.copy(lock);
        let len = copy.len;
        copy.words.get_or_insert_with(|| (0..len.div_ceil(8)).map(|_| AtomicU64::new(0)).collect())
    }

    fn copy(&mut self, lock: GlobalAddr) -> &mut Copy {
        self.copies.get_mut(&lock).expect("there was room for this copy")
    }

    /// The copy used longest ago, of those that may go: anybody could enter, and nobody is inside.
    fn oldest(&self) -> Option<GlobalAddr> {
        let idle = self.copies.iter().filter(|(_, copy)| copy.gate.is_some() && copy.users.is_none());
        idle.min_by_key(|(_, copy)| copy.used).map(|(lock, _)| *lock)
    }
}

impl Copy {
    fn take(&mut self, mode: Mode) {
        assert!(!self.users.writer, "nobody is let in beside a writer");
        match mode {
            Mode::Read => self.users.readers += 1,
            Mode::Write => {
                assert!(self.users.is_none(), "a writer is let in beside nobody");
                self.users.writer = true;
            }
        }
    }

    fn free_for(&self, mode: Mode) -> Nanos {
        match mode {
            Mode::Read => self.written,
            Mode::Write => self.left,
        }
    }
}

/// The bytes of regions on their way, of the whole rack: by lock, with the numbers that name them.
#[derive(Default)]
pub(super) struct Sent(BTreeMap<GlobalAddr, VecDeque<(u64, Words)>>);

impl Sent {
    /// Of those sent before these, no packet can count any more: the lock has come to whoever has changed it so often since.
    const MOST: usize = 4;

    fn note(&mut self, lock: GlobalAddr, stamp: u64, words: Words) {
        let of_lock = self.0.entry(lock).or_default();
        of_lock.retain(|(it, _)| *it != stamp);
        of_lock.push_back((stamp, words));
        if of_lock.len() > Self::MOST {
            of_lock.pop_front();
        }
    }

    fn find(&self, lock: GlobalAddr, stamp: u64) -> Option<&[AtomicU64]> {
        let found = self.0.get(&lock).and_then(|sent| sent.iter().find(|(it, _)| *it == stamp));
        let (_, words) = found.unwrap_or_else(|| panic!("write {stamp} of {lock} was not sent lately"));
        words.as_deref()
    }
}

/// What the machines of a node see of its copies, and of its memory.
pub(crate) struct StoreOf<'a> {
    pub(super) me: NodeId,
    pub(super) copies: &'a mut Copies,
    /// All nodes' memory.
    pub(super) homes: &'a mut [Home],
    /// What of it is on its way; a cell, for naming what is sent changes nothing.
    pub(super) sent: &'a RefCell<Sent>,
    pub(super) contents: Contents,
    /// The length of all regions, unless somebody knows what is allocated.
    pub(super) region: u32,
}

impl StoreOf<'_> {
    /// Names what is sent.
    fn send(&self, lock: GlobalAddr, stamp: u64, words: impl FnOnce() -> Words) -> DataRef {
        if self.contents == Contents::Bytes {
            self.sent.borrow_mut().note(lock, stamp, words());
        }
        DataRef(stamp)
    }
}

impl LockStore for StoreOf<'_> {
    fn reserve(&mut self, lock: GlobalAddr, len: u32, must: bool) -> Result<(), Full> {
        let more = u64::from(len.max(LEAST));
        // As on a live node: a thread may hold any number of locks, and if no copy can go, there is one more than planned.
        let is_full = self.copies.taken + more > self.copies.room;
        if !must
            && is_full
            && let Some(victim) = self.copies.oldest()
        {
            return Err(Full::Evict(victim));
        }
        let Copies { taken, calls, copies, .. } = &mut *self.copies;
        *taken += more;
        *calls += 1;
        let copy = copies.entry(lock).or_default();
        assert!(!copy.kept, "a copy has room once");
        let (written, left) = (copy.written, copy.left);
        *copy = Copy { len, kept: true, used: *calls, written, left, ..Copy::default() };
        Ok(())
    }

    fn release(&mut self, lock: GlobalAddr) {
        let copy = self.copies.copy(lock);
        assert!(copy.kept && copy.users.is_none(), "a copy with room, and nobody inside");
        (copy.kept, copy.gate, copy.words) = (false, None, None);
        self.copies.taken -= u64::from(self.copies.copies[&lock].len.max(LEAST));
    }

    fn fill(&mut self, lock: GlobalAddr, data: DataRef) {
        let it = self.copies.copy(lock);
        assert!(it.users.is_none() && it.gate.is_none(), "a copy is filled under its users");
        it.stamp = data.0;
        if self.contents == Contents::Bytes {
            copy(self.sent.borrow().find(lock, data.0), &mut it.words);
        }
    }

    fn contents(&self, lock: GlobalAddr) -> DataRef {
        let it = &self.copies.copies[&lock];
        assert!(!it.users.writer, "what is being written is sent: {lock}");
        self.send(lock, it.stamp, || {
            let mut words = None;
            copy(it.words.as_deref(), &mut words);
            words
        })
    }

    fn open(&mut self, lock: GlobalAddr, mode: Mode) {
        self.copies.copy(lock).gate = Some(mode);
    }

    fn close(&mut self, lock: GlobalAddr) -> Users {
        let copy = self.copies.copy(lock);
        copy.gate = None;
        copy.users
    }

    fn admit(&mut self, lock: GlobalAddr, mode: Mode) {
        self.copies.calls += 1;
        let calls = self.copies.calls;
        let copy = self.copies.copy(lock);
        copy.used = calls;
        copy.take(mode);
    }

    fn may_lock(&self, _: GlobalAddr, len: u32) -> Result<(), Refusal> {
        if len == self.region { Ok(()) } else { Err(Refusal::WrongLength) }
    }

    fn home_contents(&self, lock: GlobalAddr, len: u32) -> DataRef {
        let home = &self.homes[self.me.index()];
        self.send(lock, home.region_stamp(lock.offset()), || home.region(lock.offset(), len))
    }

    fn write_home(&mut self, lock: GlobalAddr, len: u32, data: DataRef) {
        let sent = self.sent.borrow();
        let words = if self.contents == Contents::Bytes { sent.find(lock, data.0) } else { None };
        self.homes[self.me.index()].write_region(lock.offset(), len, data.0, words);
    }
}
