//! What application threads ask of their node when a hit will not do, and how they wait for it.

use node::locks::LockEffect;
use node::{Access, Effect, FrameId, Moment, Outcome, RackNode, Started};
use wire::{BlockTag, Discipline, GlobalAddr, Incarnation, Mode, Nanos, NodeId, SlotId};

use super::courier::Courier;
use super::inbox::Input;
use super::lock_operations::{self, Wait};
use super::node_place::NodePlace;
use super::outcome::{Allocated, Failure};
use crate::memory::StoreOf;
use crate::memory::locks::LockStoreOf;
use crate::waiting::Patience;

/// What became of a fetch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fetched {
    /// The block is in this frame, pinned for the calling thread.
    Pinned(FrameId),
    /// No frame has the block, but [`Courier::peeked`] has the words that were asked for.
    Words,
    /// The block came, but another thread was quicker: try the hit again.
    Retry,
}

/// A thread at a node's machines: what they are called with, and where their effects go.
pub(crate) struct Visit<'a, 'b, 'l> {
    pub(crate) place: &'a mut NodePlace,
    pub(crate) at: Moment,
    pub(crate) blocks: (&'a mut StoreOf<'b>, &'a mut Vec<Effect>),
    pub(crate) locks: (&'a mut LockStoreOf<'l>, &'a mut Vec<LockEffect>),
}

impl Visit<'_, '_, '_> {
    /// Does something with all machines of the node.
    pub(crate) fn all<R>(
        &mut self,
        action: impl FnOnce(
            RackNode<'_>,
            Moment,
            (&mut StoreOf<'_>, &mut Vec<Effect>),
            (&mut LockStoreOf<'_>, &mut Vec<LockEffect>),
        ) -> R,
    ) -> R {
        let Self { place, at, blocks: (store, out), locks: (lock_store, lock_out) } = self;
        action(place.machines(), *at, (store, out), (lock_store, lock_out))
    }
}

/// What carries messages to and from the places that this process has.
pub(crate) trait Carrier {
    /// Time since the rack's start, as this process counts it.
    fn now(&self) -> Nanos;

    /// Lets a thread do something with a node's machines, and then carries what follows from it.
    fn visit<R>(
        &self,
        node: NodeId,
        courier: &mut Courier,
        now: Nanos,
        action: impl FnOnce(&mut Visit<'_, '_, '_>) -> R,
    ) -> R;

    /// Leaves something for a node's machines, and runs them.
    fn leave(&self, node: NodeId, courier: &mut Courier, input: Input);

    /// Runs what is due.
    fn run_due(&self, node: NodeId, courier: &mut Courier, now: Nanos);

    /// Spends a moment of a wait: does what is to be done, or gives the core away.
    fn pause(&self, node: NodeId, courier: &mut Courier, patience: &mut Patience);

    /// A wait of this thread is about to begin.
    fn begin_wait(&self) -> Patience;

    /// It is over.
    fn end_wait(&self, courier: &mut Courier);

    /// True if the rack takes this node for dead.
    fn is_fenced(&self) -> bool;
}

/// What an application thread can ask of a node in this process.
pub trait Operations: Send + Sync {
    /// Time since the rack's start, as this process counts it.
    fn now(&self) -> Nanos;

    /// Gets a block into the node's cache, to be written.
    ///
    /// # Errors
    /// If the block may not be accessed at all.
    fn own(&self, node: NodeId, courier: &mut Courier, tag: BlockTag) -> Result<Fetched, Failure>;

    /// Gets a block into the node's cache to be read, or only the bytes of it that are asked for, by offset and length, both
    /// multiples of 8.
    ///
    /// # Errors
    /// If the block may not be accessed at all.
    fn read(
        &self,
        node: NodeId,
        courier: &mut Courier,
        tag: BlockTag,
        bytes: (usize, usize),
    ) -> Result<Fetched, Failure>;

    /// Takes the application lock of a block; with `once`, gives up at the first refusal. Returns the slot that
    /// the lock occupies.
    ///
    /// # Errors
    /// [`wire::Refusal::Locked`] with `once`; [`Failure::NoSlot`]; else if the block cannot be locked at all.
    fn lock(
        &self,
        node: NodeId,
        courier: &mut Courier,
        block: BlockTag,
        write: bool,
        once: bool,
    ) -> Result<SlotId, Failure>;

    /// Releases a lock taken by [`Operations::lock`].
    fn unlock(&self, node: NodeId, courier: &mut Courier, slot: SlotId);

    /// Allocates.
    ///
    /// # Errors
    /// If the home cannot provide the memory.
    fn alloc(
        &self,
        node: NodeId,
        courier: &mut Courier,
        len: u64,
        home: NodeId,
        discipline: Discipline,
    ) -> Result<Allocated, Failure>;

    /// Frees; if a life of the home is given, only what was allocated in that.
    ///
    /// # Errors
    /// If no allocation starts there, or its home is down, or in another life.
    fn free(
        &self,
        node: NodeId,
        courier: &mut Courier,
        allocation: (GlobalAddr, Option<Incarnation>),
    ) -> Result<(), Failure>;

    /// Tells a node's agents that a pin they wait for is gone.
    fn unpinned(&self, node: NodeId, courier: &mut Courier, frame: FrameId);

    /// Takes a lock that carries `len` bytes of data: then the calling thread is inside its copy. False if it is not to be
    /// had within the wait.
    ///
    /// # Errors
    /// If it cannot be had at all.
    fn take(
        &self,
        node: NodeId,
        courier: &mut Courier,
        lock: (GlobalAddr, u32),
        mode: Mode,
        wait: Wait,
    ) -> Result<bool, Failure>;

    /// Ends a lock that the calling thread is inside of to write: the rack forgets it, and whoever waits for it is refused. Or
    /// its data are lost, once more: the thread has reclaimed it, and could not do what it wanted.
    ///
    /// # Errors
    /// If this node counts no more.
    fn end(
        &self,
        node: NodeId,
        courier: &mut Courier,
        lock: GlobalAddr,
        is_lost: bool,
    ) -> Result<(), Failure>;

    /// Tells a node's machine that nobody is inside a lock any more.
    fn left(&self, node: NodeId, courier: &mut Courier, lock: GlobalAddr);
}

impl<C: Carrier + Send + Sync> Operations for C {
    fn now(&self) -> Nanos {
        Carrier::now(self)
    }

    fn own(&self, node: NodeId, courier: &mut Courier, tag: BlockTag) -> Result<Fetched, Failure> {
        bring(self, node, courier, |it| {
            it.place.node.on_access(it.at, tag, Access::Modified, it.blocks.0, it.blocks.1)
        })
    }

    fn read(
        &self,
        node: NodeId,
        courier: &mut Courier,
        tag: BlockTag,
        bytes: (usize, usize),
    ) -> Result<Fetched, Failure> {
        let fetched = bring(self, node, courier, |it| {
            it.place.node.on_read(it.at, tag, bytes, it.blocks.0, it.blocks.1)
        })?;
        if fetched == Fetched::Words {
            courier.take_peeked();
            // From a machine that takes itself for another one; the next try may find the block elsewhere.
            if courier.peeked().len() * 8 != bytes.1 {
                return Ok(Fetched::Retry);
            }
        }
        Ok(fetched)
    }

    fn lock(
        &self,
        node: NodeId,
        courier: &mut Courier,
        block: BlockTag,
        write: bool,
        once: bool,
    ) -> Result<SlotId, Failure> {
        let (started, outcome) = run(self, node, courier, |it| {
            match it.place.node.on_lock(it.at, block, write, once, it.blocks.0, it.blocks.1) {
                // No slot is not worth waiting for: they are taken by locks.
                Started::Full => Started::Retry,
                started => started,
            }
        })?;
        let Started::Slot(slot) = started else { return Err(Failure::NoSlot) };
        match outcome {
            Some(Outcome::Locked) => Ok(slot),
            Some(Outcome::Failed(why)) => Err(why.into()),
            other => panic!("a lock operation ended with {other:?}"),
        }
    }

    fn unlock(&self, node: NodeId, courier: &mut Courier, slot: SlotId) {
        let now = Carrier::now(self);
        self.visit(node, courier, now, |it| it.place.node.on_release(it.at, slot, it.blocks.0, it.blocks.1));
    }

    fn alloc(
        &self,
        node: NodeId,
        courier: &mut Courier,
        len: u64,
        home: NodeId,
        discipline: Discipline,
    ) -> Result<Allocated, Failure> {
        let outcome = call(self, node, courier, |it| {
            it.place.node.on_alloc(it.at, len, home, discipline, it.blocks.0, it.blocks.1)
        })?;
        match outcome {
            Outcome::Allocated { addr, zeroed, life } => Ok(Allocated { addr, life, zeroed }),
            Outcome::Failed(why) => Err(why.into()),
            other => panic!("an allocation ended with {other:?}"),
        }
    }

    fn free(
        &self,
        node: NodeId,
        courier: &mut Courier,
        (addr, life): (GlobalAddr, Option<Incarnation>),
    ) -> Result<(), Failure> {
        let outcome = call(self, node, courier, |it| match life {
            Some(life) => it.place.node.on_free_in(it.at, (addr, life), it.blocks.0, it.blocks.1),
            None => it.place.node.on_free(it.at, addr, it.blocks.0, it.blocks.1),
        })?;
        match outcome {
            Outcome::Freed => Ok(()),
            Outcome::Failed(why) => Err(why.into()),
            other => panic!("a free ended with {other:?}"),
        }
    }

    fn unpinned(&self, node: NodeId, courier: &mut Courier, frame: FrameId) {
        self.leave(node, courier, Input::Unpinned(frame));
        // Somebody wanted the block, and has it now. Two threads that hand a block to each other, each asking for
        // it back at once, would keep its entry locked for everybody else: whoever has had its turn steps back.
        crate::scheduling::give_way();
    }

    fn take(
        &self,
        node: NodeId,
        courier: &mut Courier,
        lock: (GlobalAddr, u32),
        mode: Mode,
        wait: Wait,
    ) -> Result<bool, Failure> {
        lock_operations::take(self, node, courier, lock, mode, wait)
    }

    fn end(
        &self,
        node: NodeId,
        courier: &mut Courier,
        lock: GlobalAddr,
        is_lost: bool,
    ) -> Result<(), Failure> {
        lock_operations::end(self, node, courier, lock, is_lost)
    }

    fn left(&self, node: NodeId, courier: &mut Courier, lock: GlobalAddr) {
        self.leave(node, courier, Input::Left(lock));
    }
}

/// Starts an operation, and waits for its outcome where there is one to wait for. Where every slot is taken, waits
/// a moment.
fn run<C: Carrier>(
    carrier: &C,
    node: NodeId,
    courier: &mut Courier,
    start: impl FnOnce(&mut Visit<'_, '_, '_>) -> Started,
) -> Result<(Started, Option<Outcome>), Failure> {
    if carrier.is_fenced() {
        return Err(Failure::Fenced);
    }
    let now = Carrier::now(carrier);
    carrier.run_due(node, courier, now);
    let bell = courier.bell_of_this_thread();
    // Before anything is sent: whoever is woken by it may get this core, and answer before this thread goes on.
    let mut patience = carrier.begin_wait();
    let started = carrier.visit(node, courier, now, |it| {
        let started = start(it);
        if let Started::Slot(slot) | Started::Join(slot) = started {
            it.place.wait_for(slot, bell);
        }
        started
    });
    let outcome = match started {
        Started::Slot(_) | Started::Join(_) => await_outcome(carrier, node, courier, &mut patience).map(Some),
        Started::Full => {
            carrier.pause(node, courier, &mut patience);
            Ok(None)
        }
        Started::Pinned(_) | Started::Retry => Ok(None),
    };
    carrier.end_wait(courier);
    match outcome? {
        // Everybody who waits is told to look again when the node is declared dead.
        Some(Outcome::Retry) if carrier.is_fenced() => Err(Failure::Fenced),
        outcome => Ok((started, outcome)),
    }
}

/// Starts to bring a block, and waits for it.
fn bring<C: Carrier>(
    carrier: &C,
    node: NodeId,
    courier: &mut Courier,
    mut start: impl FnMut(&mut Visit<'_, '_, '_>) -> Started,
) -> Result<Fetched, Failure> {
    loop {
        let (started, outcome) = run(carrier, node, courier, &mut start)?;
        match (started, outcome) {
            (Started::Pinned(frame), _) | (_, Some(Outcome::Pinned(frame))) => {
                return Ok(Fetched::Pinned(frame));
            }
            (Started::Full, _) => {}
            (_, Some(Outcome::Peeked(_))) => return Ok(Fetched::Words),
            (_, Some(Outcome::Failed(why))) => return Err(why.into()),
            _ => return Ok(Fetched::Retry),
        }
    }
}

/// As [`run`], for operations that always take a slot.
fn call<C: Carrier>(
    carrier: &C,
    node: NodeId,
    courier: &mut Courier,
    mut start: impl FnMut(&mut Visit<'_, '_, '_>) -> Started,
) -> Result<Outcome, Failure> {
    loop {
        if let (_, Some(outcome)) = run(carrier, node, courier, &mut start)? {
            return Ok(outcome);
        }
    }
}

/// Waits until the bell rings, doing what is to be done meanwhile.
pub(super) fn await_outcome<C: Carrier>(
    carrier: &C,
    node: NodeId,
    courier: &mut Courier,
    patience: &mut Patience,
) -> Result<Outcome, Failure> {
    loop {
        if let Some(outcome) = courier.bell.heard() {
            return Ok(outcome);
        }
        if carrier.is_fenced() {
            return Err(Failure::Fenced);
        }
        carrier.pause(node, courier, patience);
    }
}
