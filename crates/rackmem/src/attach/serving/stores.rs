//! Stores of chains, as the daemon uses them for an application: one client for each store.
//!
//! What must always hold: an application has no more clients than [`MOST`] at a time; what is asked of a store is done on that
//! store, or not at all.

use live::chains::Wanted;
use live::memory::regions::Shape;
use live::networked::verbs::RegionName;
use sorted::Map;
use wire::GlobalAddr;

use super::super::answer::Answer;
use crate::chains::{Chains, ChainsConfig};
use crate::error::Error;
use crate::handle::NodeHandle;

/// Stores that an application's thread uses at a time: of more, one is opened again when it is its turn.
const MOST: usize = 64;

/// The clients of one application's thread, by the addresses of the stores.
#[derive(Default)]
pub(super) struct Stores(Map<GlobalAddr, (RegionName, Chains)>);

type Answered = Result<Answer, Error>;

impl Stores {
    pub(super) fn create(&mut self, handle: &mut NodeHandle, config: &ChainsConfig) -> Answered {
        handle.chains(config).map(|store| self.note(store))
    }

    pub(super) fn open(&mut self, handle: &mut NodeHandle, wanted: Wanted) -> Answered {
        handle.chains_wanted(wanted).map(|store| self.note(store))
    }

    fn note(&mut self, store: Chains) -> Answer {
        let name = store.name();
        if self.0.len() >= MOST {
            self.0.pop_first();
        }
        self.0.insert(name.addr, (name, store));
        // What it is made of is not asked for.
        Answer::Region(name, Shape::Words { count: 0 }, false)
    }

    fn find(&mut self, handle: &mut NodeHandle, name: RegionName) -> Result<&mut Chains, Error> {
        let RegionName { addr, incarnation, .. } = name;
        if self.0.get(&addr).is_none_or(|(known, _)| *known != name) {
            let store = handle.chains_wanted(Wanted { addr, life: Some(incarnation), failed_too: true })?;
            if store.name() != name {
                return Err(Error::Unallocated { addr });
            }
            self.note(store);
        }
        let (_, store) = self.0.get_mut(&addr).expect("it was noted");
        Ok(store)
    }

    pub(super) fn get(&mut self, handle: &mut NodeHandle, store: RegionName, key: u64) -> Answered {
        let (store, mut value) = (self.find(handle, store)?, Vec::new());
        let is_there = store.get(handle, key, &mut value)?;
        Ok(Answer::Chained(store.trips(), is_there.then_some(value)))
    }

    pub(super) fn put(
        &mut self,
        handle: &mut NodeHandle,
        store: RegionName,
        key: u64,
        value: &[u8],
    ) -> Answered {
        let store = self.find(handle, store)?;
        store.put(handle, key, value)?;
        Ok(Answer::Chained(store.trips(), None))
    }

    pub(super) fn delete(&mut self, handle: &mut NodeHandle, store: RegionName, key: u64) -> Answered {
        let store = self.find(handle, store)?;
        store.delete(handle, key)?;
        Ok(Answer::Chained(store.trips(), None))
    }

    pub(super) fn close(&mut self, store: RegionName) {
        if self.0.get(&store.addr).is_some_and(|(known, _)| *known == store) {
            self.0.remove(&store.addr);
        }
    }

    pub(super) fn free(&mut self, handle: &mut NodeHandle, store: RegionName) -> Answered {
        self.find(handle, store)?;
        let (_, store) = self.0.remove(&store.addr).expect("it was found");
        store.free(handle).map(|()| Answer::Done)
    }
}
