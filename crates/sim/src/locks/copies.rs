//! A node's copies of locked regions, each with its gate, and the regions in its memory. Instead of bytes there is the number
//! of the last write; a [`DataRef`] is that number.
//!
//! What must always hold: writers are alone, in virtual time too. Threads run ahead of the event queue, so a thread may try
//! a gate at an earlier time than the one at which another, that went before it, had left. It enters when that one had.

use node::locks::{LockStore, NoRoom, Users};
use node::store::DataRef;
use wire::{GlobalAddr, Mode, Nanos, NodeId, Refusal};

/// Where regions are: one length for all, in a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    stride: u64,
    homes: usize,
}

impl Layout {
    pub(super) fn new(len: u32, homes: usize) -> Self {
        Self { stride: u64::from(len.max(64)).next_power_of_two(), homes }
    }

    /// The region of a home with this number, from 1.
    pub(super) const fn addr(self, home: NodeId, number: u64) -> GlobalAddr {
        GlobalAddr::new(home, number * self.stride)
    }

    fn place(self, lock: GlobalAddr) -> (usize, usize) {
        let number = usize::try_from(lock.offset() / self.stride).expect("a region of a small memory");
        (lock.home().index(), number)
    }
}

/// A copy, or the place where one may be.
#[derive(Clone, Copy, Default, Debug)]
struct Copy {
    /// There is room for it.
    kept: bool,
    /// Who may enter without asking.
    gate: Option<Mode>,
    users: Users,
    stamp: u64,
    /// When it was entered last, in calls.
    used: u64,
    /// When the last writer had left, and the last thread.
    written: Nanos,
    left: Nanos,
}

/// One node's copies, and its memory.
pub(super) struct Copies {
    layout: Layout,
    room: usize,
    kept: usize,
    calls: u64,
    /// By home and number.
    copies: Vec<Vec<Copy>>,
    /// By number.
    memory: Vec<u64>,
}

impl Copies {
    pub(super) fn new(layout: Layout, room: usize) -> Self {
        let copies = vec![Vec::new(); layout.homes];
        Self { layout, room, kept: 0, calls: 0, copies, memory: Vec::new() }
    }

    pub(super) const fn layout(&self) -> Layout {
        self.layout
    }

    /// A thread tries the gate at this time of its clock. Returns when it is in, if it gets in.
    pub(super) fn enter(&mut self, lock: GlobalAddr, mode: Mode, now: Nanos) -> Option<Nanos> {
        self.calls += 1;
        let calls = self.calls;
        let copy = self.copy(lock);
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

    pub(super) fn stamp(&mut self, lock: GlobalAddr) -> u64 {
        self.copy(lock).stamp
    }

    fn copy(&mut self, lock: GlobalAddr) -> &mut Copy {
        let (home, number) = self.layout.place(lock);
        grown(&mut self.copies[home], number)
    }

    fn home(&mut self, lock: GlobalAddr) -> &mut u64 {
        let (_, number) = self.layout.place(lock);
        grown(&mut self.memory, number)
    }

    fn seen(&self, lock: GlobalAddr) -> Copy {
        let (home, number) = self.layout.place(lock);
        self.copies[home].get(number).copied().unwrap_or_default()
    }

    /// The copy used longest ago, of those that nobody is in, if there are such.
    fn oldest(&self) -> Option<GlobalAddr> {
        let all = self.copies.iter().zip(0..).flat_map(|(of_home, home)| {
            of_home.iter().zip(0..).map(move |(copy, number)| (copy, NodeId(home), number))
        });
        let kept = all.filter(|(copy, ..)| copy.kept);
        kept.min_by_key(|(copy, ..)| (!copy.users.is_none(), copy.used))
            .map(|(_, home, number)| self.layout.addr(home, number))
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

fn grown<T: Clone + Default>(all: &mut Vec<T>, number: usize) -> &mut T {
    if number >= all.len() {
        all.resize(number + 1, T::default());
    }
    &mut all[number]
}

/// What the machines of a node see of its copies.
pub(super) struct StoreOf<'a> {
    pub(super) copies: &'a mut Copies,
    /// The length of all regions.
    pub(super) region: u32,
}

impl LockStore for StoreOf<'_> {
    fn reserve(&mut self, lock: GlobalAddr, _: u32, must: bool) -> Result<(), NoRoom> {
        if !must && self.copies.kept >= self.copies.room {
            return Err(self.copies.oldest().map_or(NoRoom::Busy, NoRoom::Evict));
        }
        self.copies.kept += 1;
        self.copies.calls += 1;
        let calls = self.copies.calls;
        let copy = self.copies.copy(lock);
        assert!(!copy.kept, "a copy has room once");
        *copy = Copy { kept: true, used: calls, written: copy.written, left: copy.left, ..Copy::default() };
        Ok(())
    }

    fn release(&mut self, lock: GlobalAddr) {
        self.copies.kept -= 1;
        let copy = self.copies.copy(lock);
        assert!(copy.kept && copy.users.is_none(), "a copy with room, and nobody inside");
        (copy.kept, copy.gate) = (false, None);
    }

    fn fill(&mut self, lock: GlobalAddr, data: DataRef) {
        let copy = self.copies.copy(lock);
        assert!(copy.users.is_none() && copy.gate.is_none(), "a copy is filled under its users");
        copy.stamp = data.0;
    }

    fn contents(&self, lock: GlobalAddr) -> DataRef {
        DataRef(self.copies.seen(lock).stamp)
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

    fn home_contents(&self, lock: GlobalAddr, _: u32) -> DataRef {
        let (_, number) = self.copies.layout.place(lock);
        DataRef(self.copies.memory.get(number).copied().unwrap_or(0))
    }

    fn write_home(&mut self, lock: GlobalAddr, _: u32, data: DataRef) {
        *self.copies.home(lock) = data.0;
    }
}
