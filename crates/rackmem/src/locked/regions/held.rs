//! Regions that are held without a borrow: for bindings whose languages have no scopes that end.

use wire::NodeId;

use super::error::RegionsError;
use super::guards::{RegionsReadGuard, RegionsWriteGuard};
use crate::error::Error;
use crate::locked::header;
use crate::locked::held::HeldLock;

/// A lock over regions that is held ([`LockedRegions::hold`](crate::LockedRegions::hold)). It is released when this is dropped.
#[must_use = "the lock is released when this is dropped"]
pub struct HeldRegions(HeldLock);

impl HeldRegions {
    pub(super) const fn of(held: HeldLock) -> Self {
        Self(held)
    }

    /// Copies of all regions, in their order.
    ///
    /// # Errors
    /// [`Error::Broken`] if the memory was used for something else.
    pub fn regions(&self) -> Result<Vec<Vec<u8>>, Error> {
        let guard = RegionsReadGuard::held(self.0.look())?;
        Ok(guard.iter().map(<[u8]>::to_vec).collect())
    }

    /// Replaces all regions by these.
    ///
    /// # Errors
    /// As for [`RegionsWriteGuard::push`]: then nothing has changed. [`RegionsError::IsRead`] if it is held to read.
    pub fn replace(&mut self, regions: &[impl AsRef<[u8]>]) -> Result<(), RegionsError> {
        if !self.0.is_to_write() {
            return Err(RegionsError::IsRead);
        }
        RegionsWriteGuard::held(self.0.look())?.replace(regions)
    }

    /// Of a lock with copies: the node that has died, or was taken for dead, while one of its threads was inside to write, if nobody has
    /// written since.
    pub fn writer_that_died(&self) -> Option<NodeId> {
        self.0.writer_that_died()
    }

    /// The fencing number of the last write grant.
    pub fn fence(&self) -> u64 {
        header::fence(self.0.look().words())
    }
}
