//! What is done for a thread that waits in a fault, once its node has the block.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use node::{Access, FrameId};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wire::{BlockTag, GlobalAddr};

use super::userfault::Fault;
use super::{Pages, Right, Slot, addr_at, in_place};
use crate::memory::PinnedFrame;

/// A thread of the application that waits until it may make its access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Faulted {
    /// Where, in this process.
    pub pointer: usize,
    /// The same in the rack.
    pub addr: GlobalAddr,
    /// What it needs.
    pub access: Access,
    /// The file has nothing there.
    is_missing: bool,
    /// The thread and the address, as one number.
    pub who: u64,
}

#[cfg(test)]
impl Faulted {
    pub(super) fn at(addr: GlobalAddr, access: Access, who: u64) -> Self {
        Self { pointer: 0, addr, access, is_missing: false, who }
    }
}

impl Pages {
    /// Waits until a thread of the application waits, or a hold is over that an agent waits for; at most so long.
    pub fn wait(&self, most: Duration) {
        let mut fds = [
            PollFd::from_borrowed_fd(self.views.fault_fd(), PollFlags::IN),
            PollFd::new(&self.alarm, PollFlags::IN),
        ];
        let most = Timespec::try_from(most).expect("some seconds");
        // Interrupted, or nothing has come: the caller looks.
        let _ = poll(&mut fds, Some(&most));
        if fds[1].revents().contains(PollFlags::IN) {
            // Another thread may have read it.
            let _ = rustix::io::read(&self.alarm, &mut [0; 8]);
        }
    }

    /// Threads that have begun to wait since the last call, some at a time.
    pub fn faulted(&self) -> Vec<Faulted> {
        let mut faults = Vec::new();
        self.views.faults(&mut faults);
        faults.into_iter().map(|fault| self.faulted_at(fault)).collect()
    }

    fn faulted_at(&self, fault: Fault) -> Faulted {
        let pointer = usize::try_from(fault.address).expect("an address of this process");
        let offset = self.views.offset(pointer).expect("only the view's faults come here");
        let access = if fault.writes { Access::Modified } else { Access::Shared };
        let who = u64::from(fault.thread) << 32 ^ fault.address;
        Faulted { pointer, addr: addr_at(offset), access, is_missing: fault.is_missing, who }
    }

    /// Whoever has a fault from now on resolves it by this, if these pages were made for that. It ends with
    /// [`Pages::close_all`].
    pub fn resolve_in_place(self: &Arc<Self>, resolve: impl Fn(&Faulted) + Send + Sync + 'static) {
        let pages = Arc::downgrade(self);
        let resolve = move |address: usize, writes: bool| {
            // The last one closes them: then the access is made again, and ends the process.
            let Some(pages) = pages.upgrade() else { return };
            let thread = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
            let fault = Fault { address: address as u64, writes, is_missing: false, thread };
            resolve(&pages.faulted_at(fault));
        };
        in_place::begin(self.views.reserved().range(), Arc::new(resolve));
    }

    /// True if it is mapped, still.
    pub fn is_mapped(&self, faulted: &Faulted) -> bool {
        self.covers(self.block.tag(faulted.addr))
    }

    /// True if the access is allowed by now: several threads may have waited for the same page. They try again.
    pub fn is_granted(&self, faulted: &Faulted) -> bool {
        let Some(slot) = self.slot_with_right(faulted) else { return false };
        // Who has been told so, and waits again, finds something else there: the program has taken the page out of its view itself.
        let granted = !faulted.is_missing && slot.told.swap(faulted.who, Relaxed) != faulted.who;
        if granted {
            self.wake(self.block.tag(faulted.addr));
        }
        slot.is_doubtful.store(!granted, Release);
        granted
    }

    fn slot_with_right(&self, faulted: &Faulted) -> Option<&Slot> {
        let needs = if faulted.access == Access::Modified { Right::Write } else { Right::Read };
        let tag = self.block.tag(faulted.addr).bits();
        let slot = &self.slots[self.table().slot_of(tag)? as usize];
        (slot.tag.load(Acquire) == tag && slot.right() >= needs).then_some(slot)
    }

    /// Has whoever waits for this block try again.
    pub fn wake(&self, tag: BlockTag) {
        self.views.wake(self.offset_of_block(tag), self.block.len());
    }

    /// Lets the application do with a pinned page what the node may do with its block, and holds it from now on. Threads that
    /// wait for it go on; `faulted` is who it was brought for, if somebody waits. False while nothing is granted.
    ///
    /// # Panics
    /// If it is not pinned, or no page.
    pub fn grant(&self, pinned: &PinnedFrame<'_>, faulted: Option<&Faulted>) -> bool {
        let (slot, suspended) = (self.index(pinned.frame()).expect("a page"), self.changing());
        if !*suspended {
            self.let_in(slot, faulted);
        }
        !*suspended
    }

    /// Whoever calls may change a right, and the page is pinned.
    fn let_in(&self, slot: usize, faulted: Option<&Faulted>) {
        let it = &self.slots[slot];
        let access = it.meta.access().expect("a pinned page is published");
        let (offset, len) = (self.offset(slot), self.block.len());
        let may = if access == Access::Modified { Right::Write } else { Right::Read };
        // Before the thread can run: it has the whole of it.
        let faulted = faulted.map(|faulted| {
            let word = self.block.offset_in_block(faulted.addr) / 8;
            it.word.store(word as u64, Relaxed);
            (faulted, self.words(slot)[word].load(Relaxed))
        });
        it.hold.begin(self.now(), faulted);
        let right = it.right();
        let is_open = match right {
            _ if it.is_doubtful.swap(false, Acquire) && right != Right::None => {
                self.views.withdraw(offset, len);
                self.views.allow(offset, len, may == Right::Write)
            }
            Right::None => self.views.allow(offset, len, may == Right::Write),
            Right::Read if may == Right::Write => self.views.protect(offset, len, false),
            // Whoever waits for it tries again.
            _ => {
                self.views.wake(offset, len);
                true
            }
        };
        if is_open {
            it.set_right(may);
        }
    }

    /// If the application has pinned the block that a thread waits for: lets it have it again. False while nothing is granted.
    pub fn grant_kept(&self, faulted: &Faulted) -> Option<bool> {
        let slot = self.table().slot_of(self.block.tag(faulted.addr).bits())? as usize;
        let suspended = self.changing();
        if !self.slots[slot].is_kept.load(Acquire) {
            return None;
        }
        if !*suspended {
            self.let_in(slot, None);
        }
        Some(!*suspended)
    }

    /// For the random choices of the thread that resolves faults: nodes must not all choose the same.
    pub fn seed(&self) -> u64 {
        self.now().0 ^ u64::from(std::process::id()) << 32
    }

    /// True if the frame is a page.
    pub fn has(&self, frame: FrameId) -> bool {
        self.index(frame).is_some()
    }

    /// True if this page has what was waited for.
    pub fn is_for(&self, frame: FrameId, faulted: &Faulted) -> bool {
        self.index(frame).is_some_and(|slot| self.tag(slot) == self.block.tag(faulted.addr))
    }

    /// A block and those behind it that are mapped, so many in all.
    pub fn from(&self, first: BlockTag, count: usize) -> Vec<BlockTag> {
        let behind = |index: u64| BlockTag::from_bits(first.bits() + (index << self.block.shift()));
        (0..count as u64).map(behind).take_while(|tag| self.covers(*tag)).collect()
    }

    /// True if the block has a page that is published.
    pub fn has_block(&self, tag: BlockTag) -> bool {
        self.lookup(tag).is_some()
    }

    /// Takes every right of the application away, and grants nothing any more: what is cached does not count at the moment. To be
    /// called under the lock of the node's actor.
    pub fn suspend(&self) {
        *self.changing() = true;
        for slot in 0..self.slots.len() {
            if self.slots[slot].meta.access().is_some() {
                self.take_away(slot);
            }
        }
    }

    /// What is cached counts again.
    pub fn resume(&self) {
        *self.changing() = false;
    }

    /// One more page is pinned by the application; false if that are a quarter of all.
    pub fn may_pin(&self) -> bool {
        let most = self.most_pinned();
        self.pinned.fetch_update(Relaxed, Relaxed, |pinned| (pinned < most).then_some(pinned + 1)).is_ok()
    }

    /// How many pages the application may pin.
    pub fn most_pinned(&self) -> usize {
        self.slots.len() / 4
    }

    /// This one.
    pub fn keep(&self, frame: FrameId, keep: bool) {
        let _changing = self.changing();
        self.slots[self.index(frame).expect("a page")].is_kept.store(keep, Release);
    }

    /// The first block, of those that are asked for, which the application keeps from being protected.
    pub fn kept_writable(&self, asked_for: impl Fn(BlockTag) -> bool) -> Option<BlockTag> {
        if self.pinned.load(Relaxed) == 0 {
            return None;
        }
        let keeps = |slot: &usize| {
            let it = &self.slots[*slot];
            it.is_kept.load(Acquire) && it.meta.access() == Some(Access::Modified)
        };
        (0..self.slots.len()).filter(keeps).map(|slot| self.tag(slot)).find(|tag| asked_for(*tag))
    }

    /// One is not any more.
    pub fn unpinned(&self) {
        self.pinned.fetch_sub(1, Relaxed);
    }

    /// Closes what the application has mapped for good: an access ends the process.
    pub fn close_all(&self) {
        let ranges = self.table().ranges.clone();
        for (first, blocks) in ranges {
            self.views.close(self.offset_of_block(first), (blocks << self.block.shift()) as usize);
        }
        in_place::end(self.views.reserved().start());
    }

    /// No page is held any more.
    pub fn end_holds(&self) {
        for slot in &self.slots {
            slot.hold.stop();
        }
    }
}
