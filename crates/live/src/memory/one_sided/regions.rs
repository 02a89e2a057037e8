//! What is allocated in a home's memory for one-sided operations, by address.
//!
//! Looked at when a region is opened, and when a driver is told of one; never on the way of an operation. What must always
//! hold: regions do not overlap.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wire::GlobalAddr;

use super::{Region, Shape};
use crate::memory::home::HomeMemory;

/// The regions of one home that have not ended.
#[derive(Default)]
pub struct Regions {
    by_addr: Mutex<BTreeMap<GlobalAddr, Arc<Region>>>,
}

impl Regions {
    /// Makes a fresh allocation a region, of zeroes.
    ///
    /// # Panics
    /// If it leaves the home's memory, or there is a region in that place: the allocator gave it twice.
    pub fn begin(&self, home: &HomeMemory, addr: GlobalAddr, shape: Shape, zeroed: bool) -> Arc<Region> {
        if !zeroed {
            home.zero(addr.offset(), shape.bytes().expect("it was allocated"));
        }
        let region = Arc::new(Region::new(home, addr, shape));
        let before = self.all().insert(addr, Arc::clone(&region));
        assert!(before.is_none(), "{addr} was allocated twice");
        region
    }

    /// The region that begins at an address.
    pub fn find(&self, addr: GlobalAddr) -> Option<Arc<Region>> {
        self.all().get(&addr).cloned()
    }

    /// True if the address lies in a region.
    pub fn reaches(&self, addr: GlobalAddr) -> bool {
        let all = self.all();
        let before = all.range(..=addr).next_back();
        before.is_some_and(|(first, region)| {
            addr.bits() - first.bits() < region.shape().bytes().expect("it was allocated")
        })
    }

    /// Ends the region that begins at an address, if there is one: before its memory is given back.
    pub fn end(&self, addr: GlobalAddr) -> bool {
        // Not under the lock: the end waits for writers.
        let region = self.all().remove(&addr);
        region.is_some_and(|region| {
            region.end();
            true
        })
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<GlobalAddr, Arc<Region>>> {
        self.by_addr.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::one_sided::Missing;
    use std::sync::atomic::Ordering::Relaxed;
    use wire::{BlockSize, NodeId};

    const MIB: u64 = 1 << 20;

    fn at(offset: u64) -> GlobalAddr {
        GlobalAddr::new(NodeId(0), offset)
    }

    #[test]
    fn words_are_found_in_every_chunk_and_nowhere_beside() {
        let home = HomeMemory::new(BlockSize::DEFAULT, 128 * MIB);
        let regions = Regions::default();
        let count = (80 * MIB / 8) as usize;
        let region = regions.begin(&home, at(20 * MIB), Shape::Words { count }, true);
        for index in (0..count).step_by(65_521).chain([count - 1]) {
            region.word(index).unwrap().store(index as u64 + 1, Relaxed);
        }
        for index in (0..count).step_by(65_521).chain([count - 1]) {
            let offset = 20 * MIB + index as u64 * 8;
            let block = home.words(home.block_number(offset)).unwrap();
            assert_eq!(block[(offset % 4096 / 8) as usize].load(Relaxed), index as u64 + 1);
        }
        assert_eq!(region.word(count).unwrap_err(), Missing::Beyond);
        assert_eq!(region.word(usize::MAX >> 8).unwrap_err(), Missing::Beyond);
    }

    #[test]
    fn an_object_that_two_chunks_share_is_read_and_written_like_others() {
        let home = HomeMemory::new(BlockSize::DEFAULT, 128 * MIB);
        let regions = Regions::default();
        let shape = Shape::Objects { count: 4, len: 3000 };
        let region = regions.begin(&home, at(32 * MIB - 4096), shape, true);
        for number in 0..4 {
            let bytes: Vec<u8> = (0..3000).map(|byte| (byte * 7 + number) as u8).collect();
            let object = region.object(number).unwrap();
            let writing = object.write().unwrap();
            writing.write(0, &bytes[..1001]);
            writing.write(1001, &bytes[1001..]);
            let mut back = [0; 999];
            writing.read(1000, &mut back);
            assert_eq!(back, bytes[1000..1999]);
            drop(writing);
            let mut back = vec![0; 3000];
            assert_eq!(object.read(&mut back), Ok(Ok(2)));
            assert_eq!(back, bytes);
        }
        assert_eq!(region.object(4).err(), Some(Missing::Beyond));
    }

    #[test]
    fn an_ended_region_stays_ended_when_its_memory_is_used_anew() {
        let home = HomeMemory::new(BlockSize::DEFAULT, MIB);
        let regions = Regions::default();
        let former = regions.begin(&home, at(4096), Shape::Words { count: 2 }, true);
        former.word(1).unwrap().store(9, Relaxed);
        assert!(regions.end(at(4096)) && !regions.end(at(4096)));
        let next = regions.begin(&home, at(4096), Shape::Words { count: 3 }, false);
        assert_eq!(former.word(1).unwrap_err(), Missing::Ended);
        assert_eq!(next.word(1).unwrap().load(Relaxed), 0, "memory begins with zeroes");
        assert!(Arc::ptr_eq(&next, &regions.find(at(4096)).unwrap()));
        assert!(regions.find(at(4104)).is_none());
    }
}
