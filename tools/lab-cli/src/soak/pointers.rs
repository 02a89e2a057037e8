//! Words through pointers into mapped memory.
//!
//! A pointer into memory that is lost ends the process. So a word is pinned first, which says so instead, and what has been done
//! counts if the node's lease holds afterwards: that is what every access of a `strict` process is asked, which cannot map.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rackmem::{Error, GlobalAddr, MapError, Mapping, Rack};

/// Between two looks at a lease that has run out.
const LEASE_LOOKS: Duration = Duration::from_millis(1);

/// The words that a process has mapped.
pub(super) struct Pointers {
    rack: Rack,
    mappings: Mutex<BTreeMap<u64, Arc<Mapping>>>,
}

impl Pointers {
    pub(super) fn new(rack: Rack) -> Self {
        Self { rack, mappings: Mutex::default() }
    }

    /// Does something with a word through its pointer.
    pub(super) fn with<R>(
        &self,
        addr: GlobalAddr,
        write: bool,
        access: impl FnOnce(&AtomicU64) -> R,
    ) -> Result<R, Error> {
        let mapping = self.mapping(addr)?;
        let pinned = mapping.pin(0..8, write)?;
        let done = access(&mapping.words()[0]);
        drop(pinned);
        Ok(done)
    }

    fn mapping(&self, addr: GlobalAddr) -> Result<Arc<Mapping>, Error> {
        let mut mappings = self.mappings.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mapping) = mappings.get(&addr.bits()) {
            return Ok(Arc::clone(mapping));
        }
        let mapping = Arc::new(self.rack.map(addr, 8).map_err(|why| match why {
            MapError::Memory(why) => why,
            other => panic!("a client met {other}"),
        })?);
        mappings.insert(addr.bits(), Arc::clone(&mapping));
        Ok(mapping)
    }

    /// What was done counts: this node had not been declared dead.
    pub(super) fn confirm(&self) -> Result<(), Error> {
        while !self.rack.holds_lease() {
            if self.rack.is_fenced() {
                return Err(Error::Fenced);
            }
            std::thread::sleep(LEASE_LOOKS);
        }
        Ok(())
    }
}
