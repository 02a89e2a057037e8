//! What can be done with all of a store.

use rackmem::{GlobalAddr, NodeHandle};

use super::chain::Chain;
use super::layout::Versioned;
use super::{Error, ObjectStore, ObjectStoreConfig, Sabres};
use crate::named::Rooted;

/// Keys with their values, and which chain is next.
pub type Entries = (Vec<(Vec<u8>, Vec<u8>)>, Option<u64>);

impl<L: Versioned> ObjectStore<L> {
    /// How many chains there are: where keys are listed from.
    fn chains(&self) -> u64 {
        self.each * self.parts.len() as u64
    }

    /// The keys of this chain of buckets (the first one is 0) with their values, as they were at one moment, and which chain is next; none
    /// after the last. So a key that is there while all of them are listed is among them, once. One that comes or goes meanwhile may be.
    ///
    /// # Errors
    /// If the rack's memory fails.
    ///
    /// # Panics
    /// If there is no such chain.
    pub fn entries(&mut self, node: &mut NodeHandle, chain: u64) -> Result<Entries, Error> {
        assert!(chain < self.chains(), "chain {chain} of {}", self.chains());
        let (at, parts) = (chain as usize, self.parts.len());
        let entries = Chain::read(self, node, (at % parts, at / parts))?.entries(self);
        Ok((entries, Some(chain + 1).filter(|next| *next < self.chains())))
    }

    /// Gives back all its memory. Whoever still uses it is refused.
    ///
    /// # Errors
    /// If some of its memory is lost: the rest is free all the same.
    pub fn destroy(self, node: &mut NodeHandle) -> Result<(), Error> {
        let mut done = node.free(self.root).map_err(Error::from);
        for part in self.parts.iter() {
            done = done.and(part.buckets.clone().free(node).map_err(Error::from));
            done = done.and(part.spare.clone().free(node));
        }
        done
    }
}

impl Rooted for ObjectStore<Sabres> {
    type Config = ObjectStoreConfig;
    type Error = Error;
    const TAG: &str = "store of objects";

    fn create(handle: &mut NodeHandle, config: &ObjectStoreConfig) -> Result<Self, Error> {
        Self::create(handle, config)
    }

    fn open(handle: &mut NodeHandle, root: GlobalAddr) -> Result<Self, Error> {
        Self::open(handle, root)
    }

    fn root(&self) -> GlobalAddr {
        self.root()
    }

    fn destroy(self, handle: &mut NodeHandle) -> Result<(), Error> {
        self.destroy(handle)
    }
}
