//! What application threads ask of their node when a hit will not do, and how they wait for it.
//!
//! An operation is one path, in one function ([`Operations::run`], and for locks [`Operations::run_on_lock`]): the thread enters
//! the node's actor, calls a machine there, has the driver deliver what follows, and waits for its waker.
//! What is asked is a value, so that this is compiled for each kind of rack, and not for each kind of caller.

use std::sync::{Arc, MutexGuard};

use node::{Access, FrameId, Outcome, Started};
use wire::{BlockTag, Discipline, GlobalAddr, Incarnation, Mode, Nanos, NodeId, Refusal, SlotId};

use super::context::ThreadContext;
use super::inbox::{Actor, Input};
use super::node_machines::NodeMachines;
use super::outcome::Failure;
use crate::memory::StoreOf;
use crate::waiting::SpinThenPark;

/// What delivers messages to and from the actors of this process.
pub(crate) trait Driver {
    /// Time since the rack's start, as this process counts it.
    fn now(&self) -> Nanos;

    /// The actor of a node of this process. A thread that has entered it and called a machine there goes on with
    /// [`Driver::deliver`].
    fn actor(&self, node: NodeId) -> &Actor<NodeMachines>;

    /// The store of its machine for blocks.
    fn store(&self, node: NodeId) -> StoreOf<'_>;

    /// Puts the effects of a call where they belong, still under the actor's lock: that keeps messages from one actor to
    /// another in order, and what they name may change later.
    fn dispatch(&self, machines: &mut NodeMachines, store: &StoreOf<'_>, context: &mut ThreadContext);

    /// Drains a node's inbox, lets go of its machines, and delivers everything that follows.
    fn deliver(&self, node: NodeId, machines: MutexGuard<'_, NodeMachines>, context: &mut ThreadContext);

    /// Leaves something for a node's machines, and runs them.
    fn leave(&self, node: NodeId, context: &mut ThreadContext, input: Input);

    /// Runs what is due.
    fn run_due(&self, node: NodeId, context: &mut ThreadContext, now: Nanos);

    /// Spends a moment of a wait: does what is to be done, or gives the core away.
    fn pause(&self, node: NodeId, context: &mut ThreadContext, spin_then_park: &mut SpinThenPark);

    /// A wait of this thread is about to begin.
    fn begin_wait(&self) -> SpinThenPark;

    /// It is over.
    fn end_wait(&self, context: &mut ThreadContext);

    /// True if the rack takes this node for dead.
    fn is_fenced(&self) -> bool;
}

/// How long a thread waits for a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// As long as it takes.
    Forever,
    /// Not for anybody who has it; only for messages to travel.
    Not,
    /// At most so long.
    AtMost(Nanos),
    /// As long as it takes, for a lock that is lost: whoever gets in knows that the data are gone. Refused as outdated if it is
    /// not lost any more.
    Reclaim,
}

/// What a thread asks of its node's machine for blocks, and waits for.
#[derive(Clone, Copy)]
pub(crate) enum Ask {
    /// The block itself, to do this with it.
    Block(BlockTag, Access),
    /// It is to leave the cache.
    Evict(BlockTag),
    /// To read these bytes, by offset and length.
    Read(BlockTag, (usize, usize)),
    Lock {
        block: BlockTag,
        write: bool,
        once: bool,
    },
    Alloc {
        len: u64,
        home: NodeId,
        discipline: Discipline,
    },
    /// What was allocated in this incarnation of its home, or in any.
    Free(GlobalAddr, Option<Incarnation>),
    /// That what the node has written is in all copies.
    Sync,
}

/// The same of its machine for locks.
#[derive(Clone, Copy)]
pub(crate) enum AskLocks {
    Take { lock: (GlobalAddr, u32), mode: Mode, wait: Wait },
    End { lock: GlobalAddr, is_lost: bool },
}

/// How a thread gets what it asks for, whatever driver delivers the messages.
pub(crate) trait Operations: Send + Sync {
    /// Starts an operation, and waits for its outcome.
    fn run(&self, node: NodeId, context: &mut ThreadContext, ask: Ask)
    -> Result<(Started, Outcome), Failure>;

    /// Starts to get several blocks at once, and waits for them; each that comes is pinned, and handed over. A block that cannot be
    /// had, or that somebody else is getting, is left out.
    fn run_together(
        &self,
        node: NodeId,
        context: &mut ThreadContext,
        blocks: (&[BlockTag], Access),
        each: &mut dyn FnMut(&mut ThreadContext, FrameId),
    ) -> Result<(), Failure>;

    /// The same, of one on a lock.
    fn run_on_lock(
        &self,
        node: NodeId,
        context: &mut ThreadContext,
        ask: AskLocks,
    ) -> Result<Outcome, Failure>;

    /// Releases the block lock in this slot.
    fn release(&self, node: NodeId, context: &mut ThreadContext, slot: SlotId);

    /// As [`Driver::leave`].
    fn leave(&self, node: NodeId, context: &mut ThreadContext, input: Input);
}

impl<C: Driver + Send + Sync> Operations for C {
    fn run(
        &self,
        node: NodeId,
        context: &mut ThreadContext,
        ask: Ask,
    ) -> Result<(Started, Outcome), Failure> {
        loop {
            let (now, mut spin_then_park) = begin(self, node, context)?;
            let mut machines = self.actor(node).enter();
            let (at, store, out) = (machines.at(now, context), &mut self.store(node), &mut context.effects);
            let machine = &mut machines.node;
            let started = match ask {
                Ask::Block(tag, access) => machine.on_access(at, tag, access, store, out),
                Ask::Evict(tag) => machine.on_evict(at, tag, store, out),
                Ask::Read(tag, bytes) => machine.on_read(at, tag, bytes, store, out),
                Ask::Lock { block, write, once } => machine.on_lock(at, block, write, once, store, out),
                Ask::Alloc { len, home, discipline } => {
                    machine.on_alloc(at, len, home, discipline, store, out)
                }
                Ask::Free(addr, incarnation) => machine.on_free(at, (addr, incarnation), store, out),
                Ask::Sync => machine.on_sync(at, store, out),
            };
            if let Started::Slot(slot) | Started::Join(slot) = started {
                machines.wait_for(slot, Arc::clone(&context.waker));
            }
            self.deliver(node, machines, context);
            let outcome = match started {
                Started::Slot(_) | Started::Join(_) => {
                    await_outcome(self, node, context, &mut spin_then_park, Nanos::MAX)
                }
                Started::Pinned(frame) => Ok(Some(Outcome::Pinned(frame))),
                Started::Retry => Ok(Some(Outcome::Retry)),
                // Slots that locks have are not worth waiting for.
                Started::Full if matches!(ask, Ask::Lock { .. }) => Err(Failure::NoSlot),
                Started::Full => {
                    self.pause(node, context, &mut spin_then_park);
                    Ok(None)
                }
            };
            self.end_wait(context);
            match outcome? {
                // Everybody who waits is told to look again when the node is declared dead. A sync ends then, too, and has saved nothing: what
                // the node had changed was thrown away.
                Some(Outcome::Retry | Outcome::Synced) if self.is_fenced() => return Err(Failure::Fenced),
                Some(outcome) => return Ok((started, outcome)),
                None => {}
            }
        }
    }

    fn run_together(
        &self,
        node: NodeId,
        context: &mut ThreadContext,
        (tags, access): (&[BlockTag], Access),
        each: &mut dyn FnMut(&mut ThreadContext, FrameId),
    ) -> Result<(), Failure> {
        let (now, mut spin_then_park) = begin(self, node, context)?;
        let (mut machines, mut left, mut there) = (self.actor(node).enter(), 0, Vec::new());
        for tag in tags {
            let (at, store) = (machines.at(now, context), &mut self.store(node));
            let started = machines.node.on_access(at, *tag, access, store, &mut context.effects);
            match started {
                Started::Slot(slot) => {
                    left += 1;
                    machines.wait_for(slot, Arc::clone(&context.waker));
                }
                Started::Pinned(frame) => there.push(frame),
                Started::Join(_) | Started::Retry => {}
                Started::Full => break,
            }
            // What follows from one call, before the next.
            self.dispatch(&mut machines, &self.store(node), context);
        }
        self.deliver(node, machines, context);
        there.into_iter().for_each(|frame| each(context, frame));
        let mut ended = Ok(());
        while left > 0 && ended.is_ok() {
            match await_outcome(self, node, context, &mut spin_then_park, Nanos::MAX) {
                Ok(outcome) => {
                    left -= 1;
                    if let Some(Outcome::Pinned(frame)) = outcome {
                        each(context, frame);
                    }
                }
                Err(why) => ended = Err(why),
            }
        }
        self.end_wait(context);
        ended
    }

    fn run_on_lock(
        &self,
        node: NodeId,
        context: &mut ThreadContext,
        ask: AskLocks,
    ) -> Result<Outcome, Failure> {
        let (now, mut spin_then_park) = begin(self, node, context)?;
        let mut machines = self.actor(node).enter();
        let at = machines.at(now, context);
        let ticket = machines.locks.ticket_for(Arc::clone(&context.waker));
        let (all, kept) = machines.all();
        let (store, out) = (&mut self.store(node).of_locks(kept), &mut context.lock_effects);
        let mut until = Nanos::MAX;
        let lock = match ask {
            AskLocks::Take { lock, wait: Wait::Reclaim, .. } => {
                all.locks.on_reclaim(at, ticket, lock, store, out);
                lock.0
            }
            AskLocks::Take { lock, mode, wait } => {
                if let Wait::AtMost(most) = wait {
                    until = at.now + most;
                }
                all.locks.on_lock(at, (ticket, mode, wait == Wait::Not), lock, store, out);
                lock.0
            }
            AskLocks::End { lock, is_lost } => {
                all.locks.on_free(at, (ticket, is_lost), lock, store, out);
                lock
            }
        };
        self.deliver(node, machines, context);
        let mut outcome = await_outcome(self, node, context, &mut spin_then_park, until);
        if let Ok(None) = outcome {
            let mut machines = self.actor(node).enter();
            let at = machines.at(self.now(), context);
            let (all, kept) = machines.all();
            let (store, out) = (&mut self.store(node).of_locks(kept), &mut context.lock_effects);
            let waited = all.locks.on_cancel(at, ticket, lock, store, out);
            if waited {
                machines.locks.forget(ticket);
            }
            self.deliver(node, machines, context);
            outcome = if waited {
                Ok(Some(Outcome::Failed(Refusal::Locked)))
            } else {
                // It was told so a moment ago.
                await_outcome(self, node, context, &mut spin_then_park, Nanos::MAX)
            };
        }
        self.end_wait(context);
        match outcome?.expect("a wait without an end has an outcome") {
            // As above: the node was declared dead.
            Outcome::Retry => Err(Failure::Fenced),
            outcome => Ok(outcome),
        }
    }

    fn release(&self, node: NodeId, context: &mut ThreadContext, slot: SlotId) {
        let mut machines = self.actor(node).enter();
        let at = machines.at(self.now(), context);
        machines.node.on_release(at, slot, &mut self.store(node), &mut context.effects);
        self.deliver(node, machines, context);
    }

    fn leave(&self, node: NodeId, context: &mut ThreadContext, input: Input) {
        Driver::leave(self, node, context, input);
    }
}

/// Before a thread enters its node's machines, to start what it is going to wait for.
fn begin<C: Driver>(
    driver: &C,
    node: NodeId,
    context: &mut ThreadContext,
) -> Result<(Nanos, SpinThenPark), Failure> {
    if driver.is_fenced() {
        return Err(Failure::Fenced);
    }
    let now = driver.now();
    driver.run_due(node, context, now);
    context.waker_of_this_thread();
    // Before anything is sent: whoever is woken by it may get this core, and answer before this thread goes on.
    Ok((now, driver.begin_wait()))
}

/// Waits until the waker rings, doing what is to be done meanwhile. None if it has not by then.
fn await_outcome<C: Driver>(
    driver: &C,
    node: NodeId,
    context: &mut ThreadContext,
    spin_then_park: &mut SpinThenPark,
    until: Nanos,
) -> Result<Option<Outcome>, Failure> {
    loop {
        if let Some(outcome) = context.waker.heard() {
            return Ok(Some(outcome));
        }
        if driver.is_fenced() {
            return Err(Failure::Fenced);
        }
        // Most have no end, and need not look at the clock.
        if until < Nanos::MAX && driver.now() >= until {
            return Ok(None);
        }
        driver.pause(node, context, spin_then_park);
    }
}
