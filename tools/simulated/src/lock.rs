//! [`LockMemory`] and [`BlockMemory`] on a thread of a simulated rack.

use node::Window;
use rackmem::{BlockMemory, Error, LockMemory, LockMode, region_of};
use sim::joint::Joint;
use sim::rack::Inside;
use sim::system::{System, Want};
use wire::{GlobalAddr, Refusal};

use crate::handle::SimulatedHandle;

/// A lock that is held on a simulated rack, with its bytes. It is released when this is dropped.
#[must_use = "the lock is released when this is dropped"]
pub struct SimulatedLock {
    inside: Inside<Joint>,
    mode: LockMode,
    len: usize,
}

impl SimulatedLock {
    fn assert_has(&self, at: usize, len: usize) {
        let end = at.checked_add(len);
        assert!(end.is_some_and(|end| end <= self.len), "{len} bytes from {at} on, of {}", self.len);
    }
}

impl SimulatedHandle<Joint> {
    async fn enter(
        &mut self,
        (addr, len): (GlobalAddr, usize),
        mode: LockMode,
        want: Want,
    ) -> Result<Option<SimulatedLock>, Error> {
        let most = u64::from(wire::packet::MAX_PAYLOAD);
        let bytes = region_of(addr, len as u64, self.shape.nodes, (most, self.shape.memory))?;
        match (self.handle.enter((addr, bytes), mode.into(), want).await, want) {
            (Ok(inside), _) => Ok(Some(SimulatedLock { inside, mode, len })),
            (Err(Refusal::Locked), Want::Tries) | (Err(Refusal::Outdated), Want::Reclaims) => Ok(None),
            (Err(why), _) => Err(Error::refused_lock(why, addr, bytes)),
        }
    }

    /// Enters to write, also if the lock is lost; which is the second answer.
    async fn enter_alone(&mut self, lock: (GlobalAddr, usize)) -> Result<(SimulatedLock, bool), Error> {
        let mut want = Want::Waits;
        loop {
            match self.enter(lock, LockMode::Write, want).await {
                Err(Error::Lost { .. }) => want = Want::Reclaims,
                Err(why) => return Err(why),
                Ok(Some(held)) => return Ok((held, want == Want::Reclaims)),
                // Somebody else has taken what was lost, and it is a lock like any other by now.
                Ok(None) => want = Want::Waits,
            }
        }
    }
}

impl LockMemory for SimulatedHandle<Joint> {
    type Held = SimulatedLock;

    async fn lock(&mut self, addr: GlobalAddr, len: usize, mode: LockMode) -> Result<SimulatedLock, Error> {
        let held = self.enter((addr, len), mode, Want::Waits).await?;
        Ok(held.expect("this wait has no end"))
    }

    async fn try_lock(
        &mut self,
        addr: GlobalAddr,
        len: usize,
        mode: LockMode,
    ) -> Result<Option<SimulatedLock>, Error> {
        self.enter((addr, len), mode, Want::Tries).await
    }

    async fn lock_anew(&mut self, addr: GlobalAddr, len: usize) -> Result<SimulatedLock, Error> {
        Ok(self.enter_alone((addr, len)).await?.0)
    }

    async fn unlock(&mut self, held: SimulatedLock) {
        self.handle.leave(held.inside).await;
    }

    async fn read_locked(&mut self, held: &SimulatedLock, at: usize, into: &mut [u8]) {
        held.assert_has(at, into.len());
        let range = (at, into.len());
        self.handle.show(&held.inside, range, &mut |window: &Window<'_>| window.read(0, into)).await;
    }

    async fn write_locked(&mut self, held: &mut SimulatedLock, at: usize, bytes: &[u8]) {
        assert!(held.mode == LockMode::Write, "only a writer writes");
        held.assert_has(at, bytes.len());
        self.handle.show(&held.inside, (at, bytes.len()), &mut |window| window.write(0, bytes)).await;
    }

    async fn free_locked(&mut self, addr: GlobalAddr, len: usize) -> Result<(), Error> {
        let (held, was_lost) = self.enter_alone((addr, len)).await?;
        match self.handle.free(addr).await {
            Err(why) if !was_lost => Err(Error::refused(why, addr, 0)),
            freed => {
                let ended = self.handle.end(held.inside, freed.is_err()).await;
                freed.and(ended).map_err(|why| Error::refused(why, addr, len as u64))
            }
        }
    }
}

/// A block's lock that is held on a simulated rack, until it is given to [`BlockMemory::unlock_block`].
#[must_use = "the lock is held until it is given back"]
#[derive(Debug)]
pub struct SimulatedBlockLock(u64);

impl<S: System> BlockMemory for SimulatedHandle<S> {
    type HeldBlock = SimulatedBlockLock;

    async fn try_lock_block(
        &mut self,
        addr: GlobalAddr,
        mode: LockMode,
    ) -> Result<Option<SimulatedBlockLock>, Error> {
        match self.handle.lock(addr, mode == LockMode::Write, true).await {
            Ok(token) => Ok(Some(SimulatedBlockLock(token))),
            Err(Refusal::Locked) => Ok(None),
            Err(why) => Err(Error::refused(why, addr, 0)),
        }
    }

    async fn unlock_block(&mut self, held: SimulatedBlockLock) {
        self.handle.unlock(held.0).await.expect("what is held can be released");
    }
}
