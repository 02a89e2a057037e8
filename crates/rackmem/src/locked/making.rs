//! Regions with a header, made and taken away without their type: what [`Locked`](crate::Locked) and names do.

use std::sync::atomic::AtomicU64;

use live::actor::Wait;
use wire::{Discipline, GlobalAddr, Mode, NodeId};

use super::header::{self, Making};
use super::inside::Region;
use super::view;
use crate::error::Error;
use crate::handle::NodeHandle;

impl NodeHandle {
    /// Makes what a [`Locked`](crate::Locked) over `len` bytes of zeroes is, for [`NodeHandle::locked_bytes`].
    ///
    /// # Errors
    /// As for [`Locked::new`](crate::Locked::new).
    pub fn make_locked(&mut self, home: NodeId, len: usize) -> Result<GlobalAddr, Error> {
        let begins = Making::header(0, self.inner.epoch());
        let len = (len as u64).saturating_add(header::BYTES as u64);
        make_region(self, home, (len, Counts::All), begins, &[])
    }
}

/// How much of a region counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Counts {
    /// All of it.
    All,
    /// As much as it says itself.
    AsItSays,
}

impl Counts {
    fn of(self, handle: &NodeHandle, addr: GlobalAddr, len: u64) -> Result<Region, Error> {
        match self {
            Self::All => Region::new(handle, addr, len),
            Self::AsItSays => Region::sized(handle, addr, len),
        }
    }
}

/// Makes a region of `len` bytes in the memory of `home`: this header, these contents, zeroes.
pub(crate) fn make_region(
    handle: &mut NodeHandle,
    home: NodeId,
    (len, counts): (u64, Counts),
    begins: [u64; header::WORDS],
    contents: &[u8],
) -> Result<GlobalAddr, Error> {
    // Looked at before memory is taken.
    counts.of(handle, GlobalAddr::new(home, 0), len)?;
    let addr = handle.alloc(len, home, Discipline::Locked)?;
    let region = counts.of(handle, addr, len)?;
    let (mut inside, _) = match region.enter_alone(handle) {
        Ok(alone) => alone,
        Err(why) => {
            // Nobody has seen it. That fails only if its home is over, and its memory with it.
            let _ = handle.free(addr);
            return Err(why);
        }
    };
    header::begin(&inside, begins);
    let end = header::BYTES + contents.len();
    view::bytes_mut(&mut inside, end)[header::BYTES..].copy_from_slice(contents);
    drop(inside);
    Ok(addr)
}

/// Frees a region, if nobody is inside or waits; what is there then is shown first. None: somebody is.
pub(crate) fn try_free_region<R>(
    handle: &mut NodeHandle,
    addr: GlobalAddr,
    (len, counts): (u64, Counts),
    look: impl FnOnce(&[AtomicU64]) -> R,
) -> Result<Option<R>, Error> {
    counts.of(handle, addr, len)?.try_free(handle, look)
}

/// Fails if a region cannot be locked; that somebody is inside is no failure.
pub(crate) fn probe_region(
    handle: &mut NodeHandle,
    addr: GlobalAddr,
    (len, counts): (u64, Counts),
) -> Result<(), Error> {
    counts.of(handle, addr, len)?.enter(handle, Mode::Read, Wait::Not).map(drop)
}
