//! A worker's handle on the rack: what application code runs on.
//!
//! What must always hold: a worker awaits nothing but its own handle's futures, one at a time.

use core::any::Any;
use core::cell::RefCell;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::rc::Rc;

use node::{Access, Window};
use wire::{Discipline, GlobalAddr, Mode, Nanos, NodeId, Refusal};

use super::state::RackState;
use crate::system::{Operation, Outcome, RegionOperation, System, ThreadId, Want};

/// One thread's handle.
pub struct Handle<S: System> {
    state: Rc<RefCell<RackState<S>>>,
    thread: ThreadId,
}

impl<S: System> Handle<S> {
    pub(super) const fn new(state: Rc<RefCell<RackState<S>>>, thread: ThreadId) -> Self {
        Self { state, thread }
    }

    /// The thread.
    pub const fn thread(&self) -> ThreadId {
        self.thread
    }

    /// The node that it runs on.
    pub fn node(&self) -> NodeId {
        self.state.borrow().node_of(self.thread)
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.state.borrow().machines.len()
    }

    /// The thread's clock.
    pub fn now(&self) -> Nanos {
        self.state.borrow().clock(self.thread)
    }

    /// Looks at what runs on the rack.
    pub fn with_system<R>(&self, look: impl FnOnce(&S) -> R) -> R {
        look(&self.state.borrow().system)
    }

    /// Looks at, or with [`Access::Modified`] changes, `len` bytes inside one block, atomically. The closure runs
    /// once. It must not touch the rack by other ways.
    ///
    /// # Errors
    /// What the system refuses.
    pub async fn touch(
        &mut self,
        addr: GlobalAddr,
        len: usize,
        access: Access,
        with: &mut dyn FnMut(&Window<'_>),
    ) -> Result<(), Refusal> {
        self.attempt(Operation::Touch { addr, len, access, with }).await.map(|_| ())
    }

    /// Allocates; says whether the bytes are zeroes already.
    ///
    /// # Errors
    /// What the system refuses.
    pub async fn alloc(
        &mut self,
        len: u64,
        home: NodeId,
        discipline: Discipline,
    ) -> Result<(GlobalAddr, bool), Refusal> {
        match self.attempt(Operation::Alloc { len, home, discipline }).await? {
            Outcome::Allocated(addr, zeroed) => Ok((addr, zeroed)),
            other => panic!("an allocation ended with {other:?}"),
        }
    }

    /// Frees an allocation.
    ///
    /// # Errors
    /// What the system refuses.
    pub async fn free(&mut self, addr: GlobalAddr) -> Result<(), Refusal> {
        self.attempt(Operation::Free { addr }).await.map(|_| ())
    }

    /// Takes the application lock of a block. The token releases it.
    ///
    /// # Errors
    /// [`Refusal::Locked`] with `once`, and what else the system refuses.
    pub async fn lock(&mut self, addr: GlobalAddr, write: bool, once: bool) -> Result<u64, Refusal> {
        match self.attempt(Operation::Lock { addr, write, once }).await? {
            Outcome::Locked(token) => Ok(token),
            other => panic!("a lock operation ended with {other:?}"),
        }
    }

    /// Releases a lock.
    ///
    /// # Errors
    /// What the system refuses.
    pub async fn unlock(&mut self, token: u64) -> Result<(), Refusal> {
        self.attempt(Operation::Unlock { token }).await.map(|_| ())
    }

    /// Gets into a lock that carries its data. Whoever is inside leaves when what is returned is dropped, if not before.
    ///
    /// # Errors
    /// [`Refusal::Locked`] with [`Want::Tries`], [`Refusal::Outdated`] with [`Want::Reclaims`], and what else the system refuses.
    pub async fn enter(
        &mut self,
        (addr, len): (GlobalAddr, u32),
        mode: Mode,
        want: Want,
    ) -> Result<Inside<S>, Refusal> {
        let entered = self.region(RegionOperation::Enter { addr, len, mode, want }).await?;
        let Outcome::Locked(token) = entered else { panic!("a lock operation ended with {entered:?}") };
        Ok(Inside { state: Rc::clone(&self.state), thread: self.thread, token: Some(token) })
    }

    /// Looks at the bytes of a lock that this thread is inside of, or changes them. The closure runs once.
    pub async fn show(
        &mut self,
        inside: &Inside<S>,
        (start, len): (usize, usize),
        with: &mut dyn FnMut(&Window<'_>),
    ) {
        let token = inside.token_of(self.thread);
        let shown = self.region(RegionOperation::Show { token, start, len, with }).await;
        shown.expect("whoever is inside sees the bytes");
    }

    /// Leaves a lock.
    pub async fn leave(&mut self, mut inside: Inside<S>) {
        let token = inside.token_of(self.thread);
        self.region(RegionOperation::Leave { token }).await.expect("whoever is inside may leave");
        inside.token = None;
    }

    /// Ends a lock, for good: this thread is inside to write. Or it has reclaimed it, and it is lost again.
    ///
    /// # Errors
    /// What the system refuses.
    pub async fn end(&mut self, mut inside: Inside<S>, lost: bool) -> Result<(), Refusal> {
        let token = inside.token_of(self.thread);
        inside.token = None;
        self.region(RegionOperation::End { token, lost }).await.map(|_| ())
    }

    async fn region<'a>(&'a mut self, operation: RegionOperation<'a>) -> Result<Outcome, Refusal> {
        self.attempt(Operation::Region(operation)).await
    }

    /// Asks the system for something that only it understands, which is also where it answers.
    ///
    /// # Errors
    /// What the system refuses.
    pub async fn own(&mut self, request: &mut dyn Any) -> Result<(), Refusal> {
        self.attempt(Operation::Own(request)).await.map(|_| ())
    }

    /// Takes processor time of the application's own.
    pub fn compute(&mut self, time: Nanos) {
        let mut state = self.state.borrow_mut();
        state.servers[usize::from(self.thread.0)].free += time;
    }

    /// Waits until the clock says `until`, and handles messages meanwhile.
    pub async fn sleep_until(&mut self, until: Nanos) {
        Sleep { handle: self, until }.await;
    }

    /// The application has finished an operation of its own that it began at `since`. Such operations are what
    /// [`Until::Operations`](super::Until::Operations) counts.
    pub fn finished(&mut self, since: Nanos) {
        let state = &mut *self.state.borrow_mut();
        let clock = state.clock(self.thread);
        let thread = state.thread(self.thread);
        (thread.operations, thread.finished) = (thread.operations + 1, clock);
        if let Some(budgets) = &mut state.budgets {
            budgets.finished(self.thread, clock.saturating_sub(since));
        }
        state.operations_left = state.operations_left.saturating_sub(1);
        state.counts.operations += 1;
        state.counts.latency.record(clock.saturating_sub(since));
    }

    fn attempt<'a>(&'a self, operation: Operation<'a>) -> Attempt<'a, S> {
        Attempt { handle: self, operation }
    }
}

/// A thread inside a lock.
#[must_use = "the lock is left when this is dropped"]
pub struct Inside<S: System> {
    state: Rc<RefCell<RackState<S>>>,
    thread: ThreadId,
    /// None: it has left.
    token: Option<u64>,
}

impl<S: System> Inside<S> {
    fn token_of(&self, thread: ThreadId) -> u64 {
        assert_eq!(self.thread, thread, "another thread is inside");
        self.token.expect("it has not left")
    }
}

impl<S: System> Drop for Inside<S> {
    /// At once, though others may not have come so far in time: what is left is free for them when this thread's clock says so. A
    /// worker that is dropped itself has died, and leaves nothing.
    fn drop(&mut self) {
        let Some(token) = self.token else { return };
        self.state.borrow_mut().leave_now(self.thread, token);
    }
}

/// An operation, tried until it is done.
struct Attempt<'a, S: System> {
    handle: &'a Handle<S>,
    operation: Operation<'a>,
}

impl<S: System> Future for Attempt<'_, S> {
    type Output = Result<Outcome, Refusal>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { handle, operation } = &mut *self;
        handle.state.borrow_mut().attempt(handle.thread, operation)
    }
}

struct Sleep<'a, S: System> {
    handle: &'a Handle<S>,
    until: Nanos,
}

impl<S: System> Future for Sleep<'_, S> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let state = &mut *self.handle.state.borrow_mut();
        let thread = self.handle.thread;
        if state.clock(thread) >= self.until {
            return Poll::Ready(());
        }
        state.sleep(thread, self.until);
        Poll::Pending
    }
}
