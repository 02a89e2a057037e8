//! Mapped memory of a node: mapping, and getting pages.
//!
//! Whoever has a page granted holds it pinned meanwhile; so all that [`memory::pages`](crate::memory::pages) asks for is kept by
//! the machines that are there.
//!
//! What must always hold: a thread never reads what the rack does not vouch for. While the lease has run out nothing is granted.

use std::fmt;
use std::io::Write as _;
use std::sync::atomic::Ordering::Acquire;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use node::{Access, FrameId};
use wire::{BlockTag, GlobalAddr, Nanos};

use super::node::{NetworkedNode, NodeSetup};
use crate::actor::{Driver, Failure, Fetched, Input, ThreadContext};
use crate::memory::pages::{Addresses, BadRange, Faulted, MappedCounts, MappedRange, Pages, Refused};
use crate::memory::{PinnedFrame, Unpinned};

/// Between two looks at a lease that has run out.
const LEASE_LOOKS: Duration = Duration::from_millis(1);
/// A call that has a block pinned is short: after so long, it never ends.
const LONGEST_CALL: Duration = Duration::from_secs(10);

/// What a node has for mapping memory.
pub(super) enum MappedMemory {
    /// Addresses, and no page yet.
    Reserved(Addresses),
    /// Not even those.
    Refused(Arc<Refused>),
    /// [`NodeMemory::pages`](crate::memory::NodeMemory::pages), and the thread that waits for faults and ends of holds.
    Ready(Addresses, JoinHandle<()>),
    /// The node has.
    Ended,
}

/// Why memory was not mapped.
#[derive(Clone, Debug)]
pub enum NotMapped {
    /// This process cannot map memory.
    Refused(Arc<Refused>),
    /// This range cannot be mapped.
    Range(BadRange),
    /// The node has ended.
    Ended,
}

impl fmt::Display for NotMapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) => fmt::Display::fmt(why, f),
            Self::Range(BadRange::Overlaps) => f.write_str(
                "a part of the range is mapped in this process already: share that mapping, or drop it first",
            ),
            Self::Ended => f.write_str("this process's node has left the rack: join again to map memory"),
            Self::Range(BadRange::TooFar) => f.write_str(
                "the range reaches beyond the first 512 GiB of its node's memory: no more of it has a pointer",
            ),
        }
    }
}

impl std::error::Error for NotMapped {}

impl MappedMemory {
    /// Reserves the addresses when the node joins: later something else may have them.
    pub(super) fn reserve(setup: &NodeSetup, memories: usize) -> Self {
        match Addresses::reserve(setup.map_base, memories, setup.id) {
            Ok(addresses) => Self::Reserved(addresses.with_faults_in_place(setup.faults_in_place)),
            Err(why) => Self::Refused(Arc::new(why)),
        }
    }

    fn addresses(&self) -> Result<Addresses, NotMapped> {
        match self {
            Self::Reserved(addresses) | Self::Ready(addresses, _) => Ok(addresses.clone()),
            Self::Refused(why) => Err(NotMapped::Refused(Arc::clone(why))),
            Self::Ended => Err(NotMapped::Ended),
        }
    }
}

impl NetworkedNode {
    /// Maps `len` bytes from the start of a block on, rounded up to whole blocks. Nobody has looked whether they are allocated.
    ///
    /// # Errors
    /// If this process cannot map memory, or not this range.
    ///
    /// # Panics
    /// If the system gives no thread.
    pub fn map(
        &self,
        context: &mut ThreadContext,
        addr: GlobalAddr,
        len: usize,
    ) -> Result<MappedRange, NotMapped> {
        let pages = self.pages_to_map()?;
        self.alone(context, || MappedRange::open(&pages, addr, len)).map_err(NotMapped::Range)
    }

    /// Ends what [`NetworkedNode::map`] began. What this node has of it goes back to the cache when it is used the next time.
    pub fn unmap(&self, context: &mut ThreadContext, range: &MappedRange) {
        self.alone(context, || range.close());
        for tag in range.blocks() {
            while self.pages_have(tag) {
                // Of a node that is gone, or one that this one is dead to: nothing of it counts.
                if self.at(context).evict(tag).is_err() {
                    break;
                }
            }
        }
    }

    /// Does something while no machine of this node does. What was left for them meanwhile, they get then.
    fn alone<R>(&self, context: &mut ThreadContext, work: impl FnOnce() -> R) -> R {
        let machines = self.actor.enter();
        let done = work();
        drop(machines);
        self.run(context);
        done
    }

    fn pages_have(&self, tag: BlockTag) -> bool {
        self.memory.pages().is_some_and(|pages| pages.has_block(tag))
    }

    /// The pages, made when the first range is mapped.
    fn pages_to_map(&self) -> Result<Arc<Pages>, NotMapped> {
        let mut mapping = self.mapping();
        let addresses = mapping.addresses()?;
        if let MappedMemory::Reserved(_) = &*mapping {
            // The machines find them from their next call on.
            let machines = self.actor.enter();
            let made = self.memory.map(&addresses, self.started);
            drop(machines);
            made.map_err(|why| NotMapped::Refused(Arc::new(why)))?;
            *mapping = MappedMemory::Ready(addresses, self.begin_mapping());
        }
        self.memory.pages().map(Arc::clone).ok_or(NotMapped::Ended)
    }

    /// The addresses at which this process maps memory, whether it has done so or not.
    ///
    /// # Errors
    /// If it cannot.
    pub fn addresses(&self) -> Result<Addresses, NotMapped> {
        self.mapping().addresses()
    }

    fn mapping(&self) -> MutexGuard<'_, MappedMemory> {
        self.mapping.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the thread that waits for faults, and waits for it: it has a share of the pages, and with them of the addresses.
    pub(super) fn end_mapping(&self) {
        let ended = std::mem::replace(&mut *self.mapping(), MappedMemory::Ended);
        if let MappedMemory::Ready(_, thread) = ended
            && let Some(pages) = self.memory.pages()
        {
            pages.ring();
            // It may be that thread itself that drops the node.
            if thread.thread().id() != std::thread::current().id() {
                // It cannot have panicked without having ended the process.
                drop(thread.join());
            }
            // Nobody resolves faults any more.
            pages.close_all();
        }
    }

    /// Gets a block and lets this process do with it what was asked for; for who waits, if somebody does.
    ///
    /// # Errors
    /// If it cannot be had.
    pub fn bring(
        &self,
        context: &mut ThreadContext,
        (tag, access): (BlockTag, Access),
        faulted: Option<&Faulted>,
    ) -> Result<(), Failure> {
        let pinned = self.bring_pinned(context, (tag, access), faulted)?;
        self.let_go(context, pinned, false);
        Ok(())
    }

    /// The same, and nobody takes it back until [`NetworkedNode::end_pin`]. None: as many are pinned as may be.
    ///
    /// # Errors
    /// If it cannot be had.
    pub fn pin(
        &self,
        context: &mut ThreadContext,
        tag: BlockTag,
        access: Access,
    ) -> Result<Option<FrameId>, Failure> {
        if !self.pages().may_pin() {
            return Ok(None);
        }
        let frame = self.bring_pinned(context, (tag, access), None).map(|pinned| pinned.frame());
        let frame = frame.inspect_err(|_| self.pages().unpinned())?;
        self.pages().keep(frame, true);
        Ok(Some(frame))
    }

    /// Ends it.
    pub fn end_pin(&self, context: &mut ThreadContext, frame: FrameId) {
        self.pages().keep(frame, false);
        self.let_go(context, self.memory.adopt(frame), true);
        self.pages().unpinned();
    }

    /// Gets blocks at once, as far as that is possible: for those who wait for them, or because this process may need them soon.
    ///
    /// # Errors
    /// If this node counts no more.
    pub fn bring_ahead(
        &self,
        context: &mut ThreadContext,
        tags: &[BlockTag],
        access: Access,
        faulted: &[Faulted],
    ) -> Result<(), Failure> {
        self.await_lease()?;
        self.at(context).bring_together(tags, access, &mut |context, frame| {
            let pinned = self.memory.adopt(frame);
            if self.pages().has(frame) {
                let waits = faulted.iter().find(|faulted| self.pages().is_for(frame, faulted));
                // Or not: whoever needs it comes again.
                self.pages().grant(&pinned, waits);
            }
            self.let_go(context, pinned, false);
        })
    }

    /// What it has mapped, and what was done for those who access it.
    pub fn mapped_counts(&self) -> MappedCounts {
        self.memory.pages().map(|pages| pages.counts()).unwrap_or_default()
    }

    pub(super) fn pages(&self) -> &Pages {
        self.memory.pages().expect("somebody has mapped memory")
    }

    fn bring_pinned(
        &self,
        context: &mut ThreadContext,
        (tag, access): (BlockTag, Access),
        faulted: Option<&Faulted>,
    ) -> Result<PinnedFrame<'_>, Failure> {
        let mut refused_since = None;
        loop {
            self.await_lease()?;
            match self.at(context).bring(tag, access)? {
                Fetched::Pinned(frame) => {
                    let pinned = self.memory.adopt(frame);
                    let is_page = self.pages().has(frame);
                    if is_page && self.pages().grant(&pinned, faulted) {
                        return Ok(pinned);
                    }
                    self.let_go(context, pinned, false);
                    if !is_page {
                        // It was in the cache before it was mapped.
                        self.at(context).evict(tag)?;
                    }
                }
                // A call of this process has it pinned, or another thread was quicker.
                Fetched::Retry | Fetched::Words => {
                    let since = *refused_since.get_or_insert_with(Instant::now);
                    if since.elapsed() > LONGEST_CALL {
                        stuck(tag.addr());
                    }
                    crate::scheduling::give_way();
                }
            }
        }
    }

    fn let_go(&self, context: &mut ThreadContext, pinned: PinnedFrame<'_>, wrote: bool) {
        if let Unpinned::AgentWaits(frame) = pinned.unpin(wrote) {
            self.at(context).unpinned(frame);
        }
    }

    /// Nothing is granted that may not count any more.
    pub(super) fn await_lease(&self) -> Result<(), Failure> {
        while !self.lease.holds(self.now()) {
            // Without its service thread a node gets no lease any more.
            if Driver::is_fenced(self) || self.stop.load(Acquire) {
                return Err(Failure::Fenced);
            }
            std::thread::sleep(LEASE_LOOKS);
        }
        Ok(())
    }

    /// What is cached counts again.
    pub(super) fn resume_pages(&self) {
        if let Some(pages) = self.memory.pages() {
            pages.resume();
        }
    }

    /// Takes from the application what it has mapped, until the lease holds again.
    pub(super) fn suspend_pages(&self, context: &mut ThreadContext) {
        if let Some(pages) = self.memory.pages() {
            self.alone(context, || pages.suspend());
        }
    }

    /// Tells agents that wait for the end of a hold that it is over.
    pub(super) fn end_holds(&self, context: &mut ThreadContext, now: Nanos) {
        let Some(pages) = self.memory.pages().filter(|pages| pages.deadline() <= now) else { return };
        for frame in pages.due(now) {
            Driver::leave(self, self.id, context, Input::Unpinned(frame));
        }
    }
}

/// To whoever looks at the process, past whatever may keep what its threads print.
pub(super) fn say(line: fmt::Arguments<'_>) {
    // Nobody may listen.
    let _ = writeln!(std::io::stderr(), "rackmem: {line}");
}

/// A call that has a block pinned does not end, because its closure waits for this.
fn stuck(addr: GlobalAddr) -> ! {
    say(format_args!(
        "{addr}, mapped, has been pinned by a call of this process for {} s: what is passed to `inspect` or `update` must not use mapped memory, and who has a range pinned must not pin it again.",
        LONGEST_CALL.as_secs()
    ));
    std::process::abort();
}
