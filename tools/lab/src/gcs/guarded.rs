//! Regions that locks guard, as a thread of each system has them.
//!
//! What must always hold: the same steps for all systems; they differ in how a lock is taken and where its data come from.

use core::future::Future;

use node::Access;
use sim::coherence::FlowCc;
use sim::locks::Locks;
use sim::rack::Handle;
use sim::system::System;
use simulated::SimulatedHandle;
use wire::{GlobalAddr, Nanos};

use super::apart::Apart;
use crate::layered::Locker;

/// One thread with locks, by number, and the data that each guards.
pub(crate) trait Guarded {
    /// What it runs on.
    type On: System;

    /// Its handle on the rack.
    fn thread(&mut self) -> &mut Handle<Self::On>;

    /// Takes a lock.
    fn acquire(&mut self, lock: u64, write: bool) -> impl Future<Output = ()>;

    /// Looks at what it guards, or changes it.
    fn access(&mut self, lock: u64, write: bool) -> impl Future<Output = ()>;

    /// Releases it.
    fn release(&mut self, lock: u64, write: bool) -> impl Future<Output = ()>;

    /// Before a run: gets what it guards, to read.
    fn warm(&mut self, lock: u64) -> impl Future<Output = ()>;
}

/// Locks that carry their data.
pub(crate) struct Carried {
    pub(crate) handle: Handle<Locks>,
    /// The first lock, and from one to the next.
    pub(crate) locks: (GlobalAddr, u64),
    pub(crate) token: u64,
    /// What an access to a region takes that is here.
    pub(crate) access: Nanos,
}

impl Guarded for Carried {
    type On = Locks;

    fn thread(&mut self) -> &mut Handle<Locks> {
        &mut self.handle
    }

    async fn acquire(&mut self, lock: u64, write: bool) {
        let at = self.locks.0 + lock * self.locks.1;
        self.token = self.handle.lock(at, write, false).await.expect("the region can be locked");
    }

    async fn access(&mut self, _: u64, _: bool) {
        self.handle.compute(self.access);
    }

    async fn release(&mut self, _: u64, _: bool) {
        self.handle.unlock(self.token).await.expect("it is held");
    }

    async fn warm(&mut self, lock: u64) {
        self.acquire(lock, false).await;
        self.release(lock, false).await;
    }
}

/// Locks without data, and the data in coherent memory.
pub(crate) struct OneByOne {
    pub(crate) handle: Handle<Apart>,
    pub(crate) locks: (GlobalAddr, u64),
    /// The first region, and from one to the next.
    pub(crate) data: (GlobalAddr, u64),
    pub(crate) token: u64,
    /// What is left of an access where the coherence protocol's own is paid already.
    pub(crate) rest: Nanos,
}

impl Guarded for OneByOne {
    type On = Apart;

    fn thread(&mut self) -> &mut Handle<Apart> {
        &mut self.handle
    }

    async fn acquire(&mut self, lock: u64, write: bool) {
        let at = self.locks.0 + lock * self.locks.1;
        self.token = self.handle.lock(at, write, false).await.expect("the region can be locked");
    }

    async fn access(&mut self, lock: u64, write: bool) {
        touch(&mut self.handle, self.rest, self.data.0 + lock * self.data.1, write).await;
    }

    async fn release(&mut self, _: u64, _: bool) {
        self.handle.unlock(self.token).await.expect("it is held");
    }

    async fn warm(&mut self, lock: u64) {
        self.acquire(lock, false).await;
        self.access(lock, false).await;
        self.release(lock, false).await;
    }
}

/// A layered lock, and the data in the same coherent memory.
pub(crate) struct Layered {
    pub(crate) mem: SimulatedHandle<FlowCc>,
    pub(crate) locker: Locker,
    pub(crate) data: (GlobalAddr, u64),
    /// As of [`OneByOne`].
    pub(crate) rest: Nanos,
}

impl Guarded for Layered {
    type On = FlowCc;

    fn thread(&mut self) -> &mut Handle<FlowCc> {
        self.mem.thread()
    }

    async fn acquire(&mut self, lock: u64, write: bool) {
        self.locker.acquire(&mut self.mem, lock, write).await.expect("the lock is allocated");
    }

    async fn access(&mut self, lock: u64, write: bool) {
        touch(self.mem.thread(), self.rest, self.data.0 + lock * self.data.1, write).await;
    }

    async fn release(&mut self, lock: u64, write: bool) {
        self.locker.release(&mut self.mem, lock, write).await.expect("the lock is allocated");
    }

    async fn warm(&mut self, lock: u64) {
        self.access(lock, false).await;
    }
}

async fn touch<S: System>(handle: &mut Handle<S>, rest: Nanos, at: GlobalAddr, write: bool) {
    let access = if write { Access::Modified } else { Access::Shared };
    handle.touch(at, 8, access, &mut |_| {}).await.expect("the region is allocated");
    handle.compute(rest);
}
