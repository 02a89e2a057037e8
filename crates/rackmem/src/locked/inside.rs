//! Entering and leaving the copy of a lock, whatever it guards.

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use live::actor::{Failure, ThreadContext, Wait};
use live::memory::locks::{Entered, Left, LockCopies, LockWatches};
use wire::{GlobalAddr, Mode, Nanos, NodeId, Refusal, SIZED, region_bytes};

use super::{header, lasting};
use crate::addresses::{aligned, of_a_node};
use crate::error::Error;
use crate::handle::{NodeHandle, failed};
use crate::rack::Inner;

/// A lock, as its guards know it.
#[derive(Clone)]
pub(super) struct Region {
    inner: Arc<Inner>,
    addr: GlobalAddr,
    /// Bytes, a multiple of 8.
    len: u32,
    /// It begins with a header: a write grant raises the fencing number there.
    is_headed: bool,
}

/// A thread inside a copy. Leaves when it is dropped.
pub(super) struct Inside<'a>(Came<'a>);

/// A thread that has come in. Nothing leaves for it: it becomes [`Inside`], or whoever has it calls [`Came::leave`].
///
/// Guards are made of this: a value that is dropped if something panics has to lie in memory while that may happen, and this stays in
/// registers. So does a guard in a [`Result`], if nothing that counts shares its word with the first bytes of an error: hence the order.
#[derive(Clone, Copy)]
#[must_use = "the lock is never released"]
#[repr(C)]
pub(super) struct Came<'a> {
    region: &'a Region,
    how: How,
    entered: Entered<'a>,
}

/// A thread that has come in, in two words, which a function that is not inlined gets in registers.
pub(super) type Rare<'a> = (&'a Region, Stayed);

/// On which node a thread has come in, and whether to write. A whole word, for the same reason.
#[derive(Clone, Copy)]
struct How(u64);

impl How {
    #[inline(always)]
    const fn new(node: NodeId, mode: Mode) -> Self {
        Self((node.0 as u64) << 1 | (mode as u64))
    }

    const fn node(self) -> NodeId {
        NodeId((self.0 >> 1) as u16)
    }

    #[inline(always)]
    const fn mode(self) -> Mode {
        if self.0 & 1 == Mode::Write as u64 { Mode::Write } else { Mode::Read }
    }
}

/// A thread that stays inside a copy: on which node, how, and of which copy.
#[derive(Clone, Copy)]
pub(super) struct Stayed {
    node: NodeId,
    pub(super) mode: Mode,
    copy: u32,
}

/// A version of a headed region, in a copy: whoever finds the same one finds the same bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Version {
    /// The copy, and for how many locks it was used before.
    copy: (u32, u64),
    /// The last write grant.
    fence: u64,
}

impl Version {
    /// What a thread has found that reads, or that writes: its own grant is counted.
    pub(super) const fn before(self, writes: bool) -> Self {
        Self { fence: self.fence.wrapping_sub(writes as u64), ..self }
    }
}

/// A time to wait, as machines count it.
pub(super) fn at_most(most: Duration) -> Wait {
    Wait::AtMost(Nanos(u64::try_from(most.as_nanos()).unwrap_or(u64::MAX / 2).min(u64::MAX / 2)))
}

/// The bytes of the region that a lock at `addr` guards: `len`, in whole words. For whoever implements [`crate::LockMemory`] on `nodes`
/// nodes, where a region has at most the first of the two numbers of bytes, and a node's memory the second.
///
/// # Errors
/// If there cannot be such a region.
pub fn region_of(addr: GlobalAddr, len: u64, nodes: usize, (most, memory): (u64, u64)) -> Result<u32, Error> {
    aligned(addr)?;
    of_a_node(addr, nodes)?;
    let words = len.checked_next_multiple_of(8).filter(|words| *words <= most);
    let words = words.ok_or(Error::RegionTooLong { len, most })?;
    if addr.offset().checked_add(words).is_none_or(|end| end > memory) {
        return Err(Error::OutOfRange { addr, len });
    }
    Ok(u32::try_from(words).expect("at most a mebibyte"))
}

impl Region {
    /// The lock of `len` bytes at `addr`, rounded up to whole words.
    pub(super) fn new(handle: &NodeHandle, addr: GlobalAddr, len: u64) -> Result<Self, Error> {
        let inner = Arc::clone(&handle.inner);
        inner.in_some_memory(addr)?;
        let len = region_of(addr, len, handle.memories(), (inner.largest_region(), inner.config.memory))?;
        Ok(Self { inner, addr, len, is_headed: false })
    }

    /// The same, of a region that begins with a header.
    pub(super) fn headed(handle: &NodeHandle, addr: GlobalAddr, len: u64) -> Result<Self, Error> {
        Ok(Self { is_headed: true, ..Self::new(handle, addr, len)? })
    }

    /// The same, of a region of which only a part counts.
    pub(super) fn sized(handle: &NodeHandle, addr: GlobalAddr, len: u64) -> Result<Self, Error> {
        let region = Self::headed(handle, addr, len)?;
        Ok(Self { len: region.len | SIZED, ..region })
    }

    /// The region of a length as it is said between places.
    pub(super) fn of_said(handle: &NodeHandle, addr: GlobalAddr, len: u64) -> Result<Self, Error> {
        match len & u64::from(SIZED) {
            0 => Self::new(handle, addr, len),
            _ => Self::sized(handle, addr, len & !u64::from(SIZED)),
        }
    }

    /// Bytes of it, whether they count or not.
    pub(super) const fn bytes(&self) -> usize {
        region_bytes(self.len) as usize
    }

    /// A part of it counts.
    pub(super) const fn is_sized(&self) -> bool {
        self.len & SIZED != 0
    }

    pub(super) const fn rack(&self) -> &Arc<Inner> {
        &self.inner
    }

    pub(super) const fn is_headed(&self) -> bool {
        self.is_headed
    }

    pub(super) const fn addr(&self) -> GlobalAddr {
        self.addr
    }

    /// Enters, if the lock is on this handle's node and open: what happens most of the time. None: it takes more than that.
    ///
    /// Inlined to the last, and nothing in it goes through memory: the two atomic operations are all that it may cost.
    #[inline(always)]
    pub(super) fn enter_here(&self, handle: &NodeHandle, mode: Mode) -> Option<Came<'_>> {
        assert!(Arc::ptr_eq(&self.inner, &handle.inner), "the lock belongs to another rack than the handle");
        if handle.is_strict() {
            return None;
        }
        let node = handle.node;
        let copies = &self.inner.memory(node).locks;
        let entered = copies.enter_hinted(&handle.lock_hints, (self.addr, self.len), mode)?;
        Some(Came { region: self, entered, how: How::new(node, mode) })
    }

    /// The same, if the data are as they should be. If not, the thread leaves.
    #[inline(always)]
    pub(super) fn enter_here_if(
        &self,
        handle: &NodeHandle,
        mode: Mode,
        is_right: impl FnOnce(&[AtomicU64]) -> bool,
    ) -> Option<Came<'_>> {
        let came = self.enter_here(handle, mode)?;
        if is_right(came.words()) {
            return Some(came);
        }
        came.leave(mode);
        None
    }

    /// Enters from this handle's node. None: not within the wait, or the lock is not lost any more.
    #[cold]
    #[inline(never)]
    pub(super) fn enter(
        &self,
        handle: &mut NodeHandle,
        mode: Mode,
        wait: Wait,
    ) -> Result<Option<Inside<'_>>, Error> {
        self.enter_since(handle, mode, wait, None)
    }

    /// The same, of a thread that has asked before, and waits since then.
    pub(super) fn enter_since(
        &self,
        handle: &mut NodeHandle,
        mode: Mode,
        wait: Wait,
        since: Option<Nanos>,
    ) -> Result<Option<Inside<'_>>, Error> {
        assert!(Arc::ptr_eq(&self.inner, &handle.inner), "the lock belongs to another rack than the handle");
        let node = handle.node;
        let copies = &self.inner.memory(node).locks;
        let lock = (self.addr, self.len);
        if handle.is_attached() {
            let entered = handle.ask_to_enter(copies, lock, (mode, wait), self.is_headed)?;
            return Ok(
                entered.map(|entered| Came { region: self, entered, how: How::new(node, mode) }.stays())
            );
        }
        let entered = match copies.enter(&mut handle.lock_hints, lock, mode) {
            Some(entered) => entered,
            None => {
                let taken = if copies.watches().are_some() {
                    self.take_watched(handle, copies, (mode, wait), since)
                } else {
                    self.take(handle, copies, mode, wait)
                };
                match taken? {
                    Some(entered) => entered,
                    None => return Ok(None),
                }
            }
        };
        let inside = Came { region: self, entered, how: How::new(node, mode) }.stays();
        // As every access: what was found counts, if this node was not declared dead before. If it was, the thread leaves.
        handle.confirmed(())?;
        Ok(Some(inside))
    }

    /// Enters to write, also if the lock is lost: then what is found means nothing, which is the second answer. So does whoever
    /// has just allocated the memory, where a lock may be lost of whose end nobody has heard; and whoever gives it back.
    pub(super) fn enter_alone(&self, handle: &mut NodeHandle) -> Result<(Inside<'_>, bool), Error> {
        let mut wait = Wait::Forever;
        loop {
            match self.enter(handle, Mode::Write, wait) {
                Err(Error::Lost { .. }) => wait = Wait::Reclaim,
                Err(why) => return Err(why),
                Ok(Some(inside)) => return Ok((inside, wait == Wait::Reclaim)),
                // Somebody else has taken what was lost, and it is a lock like any other by now.
                Ok(None) => wait = Wait::Forever,
            }
        }
    }

    /// Ends the lock, when everybody else has left it, or if it is lost.
    pub(super) fn end(&self, handle: &mut NodeHandle) -> Result<(), Error> {
        self.enter_alone(handle)?.0.end(handle, false)
    }

    /// The same, and gives back the allocation: before the lock ends, so that nobody gets a new one of what is about to go.
    pub(super) fn free(&self, handle: &mut NodeHandle) -> Result<(), Error> {
        let alone = self.enter_alone(handle)?;
        self.free_inside(handle, alone)
    }

    fn free_inside(
        &self,
        handle: &mut NodeHandle,
        (inside, was_lost): (Inside<'_>, bool),
    ) -> Result<(), Error> {
        if self.inner.is_lasting(self.addr) {
            // It has ended when others get in.
            lasting::say_it_has_ended(handle, self.addr)?;
            inside.end(handle, false)?;
            return handle.free(self.addr);
        }
        match handle.free(self.addr) {
            Ok(()) => inside.end(handle, false),
            Err(why) if was_lost => inside.end(handle, true).and(Err(why)),
            Err(why) => Err(why),
        }
    }

    /// The same, if nobody is inside or waits: what is there then is shown first. None: somebody is.
    pub(crate) fn try_free<R>(
        &self,
        handle: &mut NodeHandle,
        look: impl FnOnce(&[AtomicU64]) -> R,
    ) -> Result<Option<R>, Error> {
        let (inside, was_lost) = match self.enter(handle, Mode::Write, Wait::Not) {
            Ok(None) => return Ok(None),
            Ok(Some(inside)) => (inside, false),
            Err(Error::Lost { .. }) => self.enter_alone(handle)?,
            Err(why) => return Err(why),
        };
        let seen = look(inside.words());
        self.free_inside(handle, (inside, was_lost))?;
        Ok(Some(seen))
    }

    /// The same, where what that takes may be counted.
    #[cold]
    fn take_watched<'a>(
        &self,
        handle: &mut NodeHandle,
        copies: &'a LockCopies,
        (mode, wait): (Mode, Wait),
        since: Option<Nanos>,
    ) -> Result<Option<Entered<'a>>, Error> {
        let waiting = copies.watches().of(self.addr).map(|watch| watch.wait(copies.watches().now()));
        let taken = self.take(handle, copies, mode, wait);
        match (&taken, waiting) {
            (Ok(Some(_)), Some(waiting)) => waiting.is_in(since, copies.watches().now()),
            (Err(Error::Unallocated { .. }), _) => copies.watches().unwatch(self.addr),
            _ => {}
        }
        taken
    }

    fn take<'a>(
        &self,
        handle: &mut NodeHandle,
        copies: &'a LockCopies,
        mode: Mode,
        wait: Wait,
    ) -> Result<Option<Entered<'a>>, Error> {
        let lock = (self.addr, self.len);
        if self.inner.is_lasting(self.addr) {
            return lasting::take(handle, (&self.inner, copies), lock, (mode, wait));
        }
        let taken = handle.at_node().take(lock, mode, wait);
        let entered = match taken {
            Err(Failure::Refused(Refusal::Outdated)) if wait == Wait::Reclaim => false,
            Err(Failure::Refused(why)) => {
                return Err(Error::refused_lock(why, self.addr, region_bytes(self.len)));
            }
            taken => taken.map_err(|why| failed(why, self.addr, u64::from(region_bytes(self.len))))?,
        };
        Ok(entered.then(|| copies.admitted(&mut handle.lock_hints, lock)))
    }
}

impl<'a> Came<'a> {
    /// The copy's words.
    #[inline(always)]
    pub(super) const fn words(self) -> &'a [AtomicU64] {
        self.entered.words()
    }

    /// The thread, which leaves when this is dropped.
    #[inline(always)]
    pub(super) const fn stays(self) -> Inside<'a> {
        Inside(self)
    }

    /// For what happens rarely, while the thread is inside: [`Came::of`] finds its copy again.
    #[inline(always)]
    pub(super) fn rare(self) -> Rare<'a> {
        (self.region, Stayed { node: self.how.node(), mode: self.how.mode(), copy: self.entered.number() })
    }

    pub(super) fn of((region, Stayed { node, mode, copy }): Rare<'a>) -> Self {
        let entered = region.inner.memory(node).locks.inside(copy);
        Self { region, entered, how: How::new(node, mode) }
    }

    /// The time, if somebody wants to know how long this lock is held. At an attached application nobody does: the daemon has it.
    pub(super) fn watched_since(self) -> Option<Nanos> {
        let watches = self.watches();
        watches.of(self.region.addr).map(|_| watches.now())
    }

    /// The thread, which is inside to write, is about to leave: it came in then.
    pub(super) fn held_since(self, since: Nanos) {
        let watches = self.watches();
        if let Some(watch) = watches.of(self.region.addr) {
            watch.held(Nanos(watches.now().0.saturating_sub(since.0)));
        }
    }

    /// The node that has died, or was taken for dead, while a thread of it was inside to write a lock with copies, if nobody has written
    /// since.
    pub(super) fn writer_that_died(self) -> Option<NodeId> {
        let (rack, copy) = (&self.region.inner, self.entered.number());
        match rack.attached() {
            Some(attached) => attached.writer_that_died(copy),
            None => rack.lasting.writer_that_died(copy),
        }
    }

    pub(super) const fn mode(self) -> Mode {
        self.how.mode()
    }

    /// The thread leaves. It has come in this way: said once more, as most know it when they are compiled.
    #[inline(always)]
    pub(super) fn leave(&self, mode: Mode) {
        if self.entered.leave(mode) == Left::AndIsAwaited {
            Self::tell(self.rare());
        }
    }

    fn watches(self) -> &'a LockWatches {
        self.region.inner.memory(self.how.node()).locks.watches()
    }

    /// The last to leave a gate that was closed has to say so. It has left: the copy may be another lock's by now, so nothing of it is
    /// looked at; unless it is a copy of this thread's own, which stays until it is given back here.
    #[cold]
    #[inline(never)]
    fn tell((region, Stayed { node, mode, copy }): Rare<'_>) {
        let Region { inner, addr, len, .. } = region;
        let copies = &inner.memory(node).locks;
        if let Some(attached) = inner.attached() {
            // Every copy's gate is closed there.
            return attached.left(copies, copies.inside(copy), mode);
        }
        let watch = if mode == Mode::Write { copies.watches().of(*addr) } else { None };
        if let Some(watch) = &watch {
            watch.left(copies.watches().now());
        }
        if inner.is_lasting(*addr) {
            let own = copies.inside(copy);
            if let (Some(watch), Some(fence)) = (&watch, own.words().get(1)) {
                watch.saw(fence.load(Relaxed));
            }
            return lasting::left(inner, (*addr, *len), (node, mode), own);
        }
        inner.at(node, &mut ThreadContext::new(addr.bits())).left(*addr);
    }
}

impl Inside<'_> {
    /// The copy's words.
    #[inline(always)]
    pub(super) fn words(&self) -> &[AtomicU64] {
        self.0.words()
    }

    pub(super) const fn mode(&self) -> Mode {
        self.0.mode()
    }

    /// A writer has come in, by the long way, to a region that has a header: its fencing number grows. If a daemon has the lock for
    /// this process, it has grown there, where it stays if this process dies.
    #[cold]
    #[inline(never)]
    pub(super) fn granted(&self) {
        let Region { inner, addr, .. } = self.0.region;
        if inner.attached().is_none() {
            if inner.is_lasting(*addr) {
                // Whoever has died may have shown its number outside of the rack, and nothing of that may be left here. Deaths begin
                // epochs.
                header::raise(self.words(), inner.epoch());
            }
            header::granted(self.words());
        }
    }

    /// Where the region is.
    pub(super) const fn addr(&self) -> GlobalAddr {
        self.0.region.addr
    }

    /// The thread stays inside, and does not need this to leave: [`Inside::again`] does.
    pub(super) fn stay(self) -> Stayed {
        self.into_came().rare().1
    }

    /// Which version this is, of a region with a header. None: that cannot be told, as a lock with copies is brought anew each time.
    pub(super) fn version(&self) -> Option<Version> {
        let Region { inner, addr, .. } = self.0.region;
        if inner.is_lasting(*addr) {
            return None;
        }
        let copy = (self.0.entered.number(), self.0.entered.generation());
        Some(Version { copy, fence: header::fence(self.words()) })
    }

    /// A part of a region counts.
    pub(super) const fn is_sized(&self) -> bool {
        self.0.region.is_sized()
    }
}

impl<'a> Inside<'a> {
    /// The same thread, which leaves when this is dropped.
    #[inline(always)]
    pub(super) const fn came(&self) -> Came<'a> {
        self.0
    }

    /// The same thread, which does not leave any more.
    #[inline(always)]
    pub(super) fn into_came(self) -> Came<'a> {
        ManuallyDrop::new(self).0
    }

    /// A thread that has stayed inside of this lock. Made to leave, or not to be dropped.
    pub(super) fn again(region: &'a Region, stayed: Stayed) -> Self {
        Self(Came::of((region, stayed)))
    }
}

impl Inside<'_> {
    /// Ends the lock: this thread is inside to write, and never leaves. Or the lock is lost, once more.
    pub(super) fn end(self, handle: &mut NodeHandle, is_lost: bool) -> Result<(), Error> {
        let Came { region, entered, how } = ManuallyDrop::new(self).0;
        let node = how.node();
        assert!(how.mode() == Mode::Write, "only a writer is alone");
        let Region { inner: ref rack, addr, len, .. } = *region;
        if let Some(attached) = rack.attached() {
            return attached.end_lock(&rack.memory(node).locks, entered, is_lost);
        }
        if rack.is_lasting(addr) {
            return lasting::end(rack, addr, node, entered);
        }
        entered.end();
        handle.at_node().end(addr, is_lost).map_err(|why| failed(why, addr, u64::from(region_bytes(len))))
    }
}

impl Drop for Inside<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.leave(self.0.mode());
    }
}

/// A thread inside a copy, to read it or to write it: which of them is known when this is compiled, so that leaving costs less. Leaves when
/// it is dropped.
pub(super) struct InsideTo<'a, const WRITES: bool>(ManuallyDrop<Inside<'a>>);

impl<'a, const WRITES: bool> InsideTo<'a, WRITES> {
    /// The thread, which has come in that way.
    #[inline(always)]
    pub(super) const fn new(inside: Inside<'a>) -> Self {
        Self(ManuallyDrop::new(inside))
    }

    /// The thread, which leaves when that is dropped.
    pub(super) fn into_inside(self) -> Inside<'a> {
        ManuallyDrop::new(self).came().stays()
    }
}

impl<'a, const WRITES: bool> Deref for InsideTo<'a, WRITES> {
    type Target = Inside<'a>;

    #[inline(always)]
    fn deref(&self) -> &Inside<'a> {
        &self.0
    }
}

impl<const WRITES: bool> DerefMut for InsideTo<'_, WRITES> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl<const WRITES: bool> Drop for InsideTo<'_, WRITES> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.0.leave(if WRITES { Mode::Write } else { Mode::Read });
    }
}
