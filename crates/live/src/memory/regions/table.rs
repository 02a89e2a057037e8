//! What is allocated in a home's memory for one-sided operations, by address.
//!
//! Looked at when a region is opened, and when a driver is told of one; never on the way of an operation. What must always
//! hold: regions do not overlap.

use std::io;
use std::ops::RangeBounds;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use sorted::Map;
use transport::{NotObtained, PeerId, SharedMemory, Sharing};
use wire::{Copyset, GlobalAddr, Incarnation, NodeId};

use super::{NotMapped, Region, Shape};
use crate::memory::home::HomeMemory;

/// The regions of one home that have not ended, and those of others that it has mapped.
pub struct Regions {
    by_addr: Mutex<Map<GlobalAddr, Own>>,
    mapped: Mutex<Map<GlobalAddr, Arc<Mapped>>>,
    /// How often each node has died.
    deaths: [AtomicU64; Copyset::NODES],
}

/// A region of another home.
#[derive(Default)]
struct Mapped {
    /// Held by the thread that obtains it, which takes time.
    turn: Mutex<()>,
    region: Mutex<Weak<Region>>,
}

impl Default for Regions {
    fn default() -> Self {
        let deaths = std::array::from_fn(|_| AtomicU64::new(0));
        Self { by_addr: Mutex::default(), mapped: Mutex::default(), deaths }
    }
}

/// A region of this home.
struct Own {
    region: Arc<Region>,
    /// Where it is published.
    sharing: Option<Arc<dyn Sharing>>,
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
        self.add(Region::new(home, addr, shape), None)
    }

    /// The same in memory of its own, of zeroes, which other processes of this machine may map from now on
    /// ([`Regions::map_shared`]). `incarnation` is a number that no other incarnation of this home has.
    ///
    /// # Errors
    /// If the system has no memory, or no descriptor, for it. Then there is [`Regions::begin`].
    ///
    /// # Panics
    /// If there is a region in that place.
    pub fn begin_shared(
        &self,
        sharing: &Arc<dyn Sharing>,
        addr: GlobalAddr,
        shape: Shape,
        incarnation: Incarnation,
    ) -> io::Result<Arc<Region>> {
        let region = Region::create(addr, shape, incarnation)?;
        let shared = region.shared().expect("it was created so");
        sharing.publish(addr.bits(), Arc::clone(&shared.memory));
        Ok(self.add(region, Some(Arc::clone(sharing))))
    }

    fn add(&self, region: Region, sharing: Option<Arc<dyn Sharing>>) -> Arc<Region> {
        let region = Arc::new(region);
        let addr = region.addr();
        let before = self.all().insert(addr, Own { region: Arc::clone(&region), sharing });
        assert!(before.is_none(), "{addr} was allocated twice");
        region
    }

    /// The region at an address of another home, of that incarnation, which has memory of its own on this machine: obtained and
    /// mapped now ([`Sharing::obtain`]), or before. All of this process have the same one.
    ///
    /// # Errors
    /// If it was not obtained, or what was obtained is not that region.
    pub fn map_shared(
        &self,
        addr: GlobalAddr,
        incarnation: Incarnation,
        obtain: impl FnOnce(PeerId, u64) -> Result<Arc<SharedMemory>, NotObtained>,
    ) -> Result<Arc<Region>, NotMapped> {
        let mapped = {
            let mut all = lock(&self.mapped);
            // Those that nobody has any more, and nobody is about to have.
            all.retain(|_, one| Arc::strong_count(one) > 1 || lock(&one.region).strong_count() > 0);
            Arc::clone(all.entry(addr).or_default())
        };
        let deaths = self.deaths_of(addr.home());
        let _turn = lock(&mapped.turn);
        let before = lock(&mapped.region).upgrade();
        match before {
            Some(region) if region.is_alive() && region.incarnation() == Some(incarnation) => {
                return Ok(region);
            }
            // Its home is back, and nobody will ask for the former incarnation any more.
            Some(region) if region.incarnation() < Some(incarnation) => region.home_died(),
            _ => {}
        }
        let memory = obtain(PeerId::node(addr.home()), addr.bits()).map_err(NotMapped::NotObtained)?;
        let region = Arc::new(Region::map(memory, addr, incarnation)?);
        *lock(&mapped.region) = Arc::downgrade(&region);
        // Whoever counts a death does so before it looks at what is mapped: so either it finds this region, or it is seen here.
        if self.deaths_of(addr.home()) != deaths {
            return Err(NotMapped::NotObtained(NotObtained::Unreachable));
        }
        Ok(region)
    }

    /// In which incarnations homes are whose regions are mapped here, and live as far as is known.
    pub fn mapped_homes(&self) -> Vec<(NodeId, Incarnation)> {
        let regions = self.mapped_regions(..);
        let living = regions.iter().filter(|region| region.is_alive());
        let mut homes: Vec<_> =
            living.filter_map(|region| Some((region.addr().home(), region.incarnation()?))).collect();
        homes.dedup();
        homes
    }

    /// That incarnation of a home is over, as somebody says who knows: what was mapped of its memory has come to its end.
    pub fn home_died(&self, node: NodeId, incarnation: Incarnation) {
        for region in self.mapped_regions(GlobalAddr::new(node, 0)..) {
            if region.addr().home() == node && region.incarnation() == Some(incarnation) {
                region.home_died();
            }
        }
    }

    fn mapped_regions(&self, range: impl RangeBounds<GlobalAddr>) -> Vec<Arc<Region>> {
        let mapped: Vec<_> = lock(&self.mapped).range(range).map(|(_, one)| Arc::clone(one)).collect();
        mapped.iter().filter_map(|one| lock(&one.region).upgrade()).collect()
    }

    /// Objects here that applications have left half-written which have died since are lost from now on. To be called every now and
    /// then: until it is, whoever wants such an object waits.
    pub fn look_at_applications(&self) {
        let own: Vec<_> = self.all().values().map(|own| Arc::clone(&own.region)).collect();
        own.iter().for_each(|region| region.look_at_applications());
    }

    fn deaths_of(&self, node: NodeId) -> u64 {
        self.deaths[node.index()].load(Ordering::SeqCst)
    }

    /// An incarnation of a node is over. What it wrote here is lost, if half-written ([`Region::writer_died`]), and what was mapped of its
    /// memory has come to its end. Returns false if a process of that node may still write here: then this has to be called
    /// again, after a while. To be called before [`Regions::map_shared`] is with the node's next incarnation.
    pub fn node_died(&self, node: NodeId) -> bool {
        self.deaths[node.index()].fetch_add(1, Ordering::SeqCst);
        let mapped = self.mapped_regions(GlobalAddr::new(node, 0)..);
        mapped.iter().filter(|region| region.addr().home() == node).for_each(|region| region.home_died());
        self.lose_objects_of(node)
    }

    /// What is to be called again if [`Regions::node_died`] returned false, until it returns true; before another incarnation of the
    /// node is told of regions here.
    pub fn lose_objects_of(&self, node: NodeId) -> bool {
        let own: Vec<_> = self.all().values().map(|own| Arc::clone(&own.region)).collect();
        // Each of them is told, also behind one that says no.
        own.iter().filter(|region| !region.writer_died(node)).count() == 0
    }

    /// The region that begins at an address.
    pub fn find(&self, addr: GlobalAddr) -> Option<Arc<Region>> {
        self.all().get(&addr).map(|own| Arc::clone(&own.region))
    }

    /// The region that an address lies in.
    pub fn at(&self, addr: GlobalAddr) -> Option<Arc<Region>> {
        let all = self.all();
        let (first, own) = all.range(..=addr).next_back()?;
        let bytes = own.region.shape().bytes().expect("it was allocated");
        (addr.bits() - first.bits() < bytes).then(|| Arc::clone(&own.region))
    }

    /// True if the address lies in a region.
    pub fn reaches(&self, addr: GlobalAddr) -> bool {
        self.at(addr).is_some()
    }

    /// Where the first region begins that does so in these bytes.
    pub fn first_in(&self, addr: GlobalAddr, bytes: u64) -> Option<GlobalAddr> {
        let end = GlobalAddr::from_bits(addr.bits() + bytes);
        self.all().range(addr..end).next().map(|(first, _)| *first)
    }

    /// Ends the region that begins at an address, if there is one: before its memory is given back.
    pub fn end(&self, addr: GlobalAddr) -> bool {
        // Not under the lock: the end waits for writers.
        let own = self.all().remove(&addr);
        own.is_some_and(|own| {
            if let Some(sharing) = own.sharing {
                sharing.withdraw(addr.bits());
            }
            own.region.end();
            true
        })
    }

    /// As [`Regions::end`], without waiting: false if writers are still inside its objects, and it has to be called again. None:
    /// there is no such region.
    pub fn try_end(&self, addr: GlobalAddr) -> Option<bool> {
        let region = self.find(addr)?;
        Some(region.try_end() && self.end(addr))
    }

    fn all(&self) -> MutexGuard<'_, Map<GlobalAddr, Own>> {
        lock(&self.by_addr)
    }
}

/// A thread that panicked under it has left it whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::regions::Missing;
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
        let shape = Shape::objects(4, 3000);
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
    fn what_remains_of_a_region_keeps_no_memory_and_refuses_everything() {
        let home = HomeMemory::new(BlockSize::DEFAULT, MIB);
        let regions = Regions::default();
        for shape in [Shape::Words { count: 50 }, Shape::objects(2, 100)] {
            let region = regions.begin(&home, at(4096), shape, false);
            let remains = region.remains();
            regions.end(at(4096));
            let gone = Arc::downgrade(&region);
            drop(region);
            assert!(gone.upgrade().is_none());
            assert_eq!((remains.addr(), remains.shape(), remains.is_alive()), (at(4096), shape, false));
            assert_eq!(remains.word(3).unwrap_err(), Missing::Ended);
            assert_eq!(remains.object(1).err(), Some(Missing::Ended));
            let mut bytes = [1; 21];
            remains.read_bytes(16, &mut bytes);
            assert_eq!(bytes, [0; 21], "zeroes, also where words are cut");
            remains.write_bytes(16, &bytes);
        }
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
