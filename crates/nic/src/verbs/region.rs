//! Memory regions: which bytes may be touched, how, and by which key.
//!
//! At the NIC of the node whose memory it is. One key serves as L_Key and R_Key, as on most NICs: 24 bits of index, 8
//! of generation.
//!
//! What must always hold: a key is never accepted again after its region was deregistered. So an index whose
//! generations are used up is not used again.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;
use core::ops::BitOr;

use wire::roce::Key;
use wire::{Rule, Rules};

use super::effect::Span;

/// What may be done with a region. Reading it locally always may.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Access(u8);

impl Access {
    /// Read locally, and nothing else.
    pub const LOCAL_READ: Self = Self(0);
    /// READ responses, atomics' results and received messages may be put there.
    pub const LOCAL_WRITE: Self = Self(1);
    /// Others may READ.
    pub const REMOTE_READ: Self = Self(2);
    /// Others may WRITE.
    pub const REMOTE_WRITE: Self = Self(4);
    /// Others may CmpSwap and FetchAdd.
    pub const REMOTE_ATOMIC: Self = Self(8);
    /// Everything.
    pub const ALL: Self = Self(15);

    /// True if all of `other` is part of this.
    pub const fn includes(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Access {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A registered region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Region {
    /// Its first byte.
    pub base: u64,
    /// Its bytes.
    pub len: u64,
    /// What may be done with it.
    pub access: Access,
}

/// Why a region was not registered, or not deregistered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RegionError {
    /// It has no bytes, or reaches beyond the last address.
    Extent,
    /// What others may change must be writable locally, too.
    RemoteWithoutLocal,
    /// As many regions are registered as there can be, or all keys are used up.
    Full,
    /// No region has this key.
    NoSuchKey,
}

impl fmt::Display for RegionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Extent => "a region has at least one byte and ends before the last address",
            Self::RemoteWithoutLocal => "a region that others may write must be writable locally, too",
            Self::Full => "no more regions can be registered: deregister some, or make the table larger",
            Self::NoSuchKey => "no region has this key: it was deregistered, or never registered",
        })
    }
}

impl core::error::Error for RegionError {}

#[derive(Clone, Debug)]
struct Slot {
    generation: u8,
    region: Option<Region>,
}

/// The regions of a NIC.
#[derive(Clone, Debug)]
pub struct Regions {
    slots: Vec<Slot>,
    /// Indices to use again, those first that have waited longest.
    free: VecDeque<u32>,
    most: u32,
}

impl Regions {
    /// Capacity for so many regions at a time; 2^24 at most.
    pub fn new(most: u32) -> Self {
        Self { slots: Vec::new(), free: VecDeque::new(), most: most.min(1 << 24) }
    }

    /// Registers a region and returns its key.
    ///
    /// # Errors
    /// If it cannot be, or there is no capacity.
    pub fn register(&mut self, region: Region) -> Result<Key, RegionError> {
        if region.len == 0 || region.base.checked_add(region.len).is_none() {
            return Err(RegionError::Extent);
        }
        let changes = |what| region.access.includes(what);
        if (changes(Access::REMOTE_WRITE) || changes(Access::REMOTE_ATOMIC)) && !changes(Access::LOCAL_WRITE)
        {
            return Err(RegionError::RemoteWithoutLocal);
        }
        let index = match self.free.pop_front() {
            Some(index) => index,
            None => {
                let index = u32::try_from(self.slots.len()).expect("at most 2^24 slots");
                if index == self.most {
                    return Err(RegionError::Full);
                }
                // Generations begin at 1: no key is 0.
                self.slots.push(Slot { generation: 1, region: None });
                index
            }
        };
        let slot = &mut self.slots[index as usize];
        slot.region = Some(region);
        Ok(Key(index << 8 | u32::from(slot.generation)))
    }

    /// Takes a region back. Its key is never accepted again.
    ///
    /// # Errors
    /// If no region has this key.
    pub fn deregister(&mut self, key: Key) -> Result<Region, RegionError> {
        let index = key.0 >> 8;
        let slot = self.slots.get_mut(index as usize).ok_or(RegionError::NoSuchKey)?;
        if u32::from(slot.generation) != key.0 & 0xff {
            return Err(RegionError::NoSuchKey);
        }
        let region = slot.region.take().ok_or(RegionError::NoSuchKey)?;
        if let Some(next) = slot.generation.checked_add(1) {
            slot.generation = next;
            self.free.push_back(index);
        }
        Ok(region)
    }

    /// The region with this key.
    pub fn get(&self, key: Key) -> Option<&Region> {
        self.slot(key, true)
    }

    fn slot(&self, key: Key, with_generation: bool) -> Option<&Region> {
        let slot = self.slots.get((key.0 >> 8) as usize)?;
        if with_generation && u32::from(slot.generation) != key.0 & 0xff {
            return None;
        }
        slot.region.as_ref()
    }

    /// True if all these bytes lie in the region, and may be used so.
    pub fn allow(&self, span: Span, access: Access) -> bool {
        self.allow_by(wire::AllRules, span, access)
    }

    pub(crate) fn allow_by<R: Rules>(&self, rules: R, span: Span, access: Access) -> bool {
        let Some(region) = self.slot(span.key, rules.holds(Rule::KeysHaveGenerations)) else {
            return false;
        };
        let Some(offset) = span.address.checked_sub(region.base) else { return false };
        region.access.includes(access)
            && offset.checked_add(u64::from(span.len)).is_some_and(|end| end <= region.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGION: Region = Region { base: 4096, len: 100, access: Access::ALL };

    #[test]
    fn a_key_is_never_accepted_again() {
        let mut regions = Regions::new(2);
        let mut seen = Vec::new();
        while let Ok(key) = regions.register(REGION) {
            assert!(!seen.contains(&key), "{key:?} twice");
            assert!(regions.get(key).is_some());
            assert_eq!(regions.deregister(key), Ok(REGION));
            assert_eq!(regions.deregister(key), Err(RegionError::NoSuchKey));
            seen.push(key);
        }
        assert_eq!(seen.len(), 2 * 255, "every generation of every index, and then no more");
        assert!(
            seen.iter().all(|&key| !regions.allow(Span { key, address: 4096, len: 1 }, Access::default()))
        );
    }

    #[test]
    fn only_what_lies_in_the_region_is_allowed() {
        let mut regions = Regions::new(1);
        let key = regions.register(REGION).unwrap();
        let allow = |address, len| regions.allow(Span { key, address, len }, Access::REMOTE_READ);
        assert!(allow(4096, 100) && allow(4195, 1) && allow(4196, 0));
        assert!(!allow(4095, 1) && !allow(4096, 101) && !allow(4196, 1) && !allow(u64::MAX, 8));
        assert!(!allow(4097, u32::MAX) && !allow(0, 0));
        assert!(!regions.allow(Span { key: Key(0), address: 4096, len: 1 }, Access::REMOTE_READ));
    }

    #[test]
    fn a_missing_permission_refuses() {
        let mut regions = Regions::new(1);
        let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
        let key = regions.register(Region { access, ..REGION }).unwrap();
        let span = Span { key, address: 4096, len: 8 };
        assert!(regions.allow(span, Access::REMOTE_WRITE) && regions.allow(span, Access::LOCAL_READ));
        assert!(!regions.allow(span, Access::REMOTE_READ) && !regions.allow(span, Access::REMOTE_ATOMIC));
    }

    #[test]
    fn regions_that_cannot_be_are_refused() {
        let mut regions = Regions::new(1);
        let refused = |regions: &mut Regions, region| regions.register(region).unwrap_err();
        assert_eq!(refused(&mut regions, Region { len: 0, ..REGION }), RegionError::Extent);
        assert_eq!(refused(&mut regions, Region { base: u64::MAX, ..REGION }), RegionError::Extent);
        let access = Access::REMOTE_WRITE;
        assert_eq!(refused(&mut regions, Region { access, ..REGION }), RegionError::RemoteWithoutLocal);
        regions.register(REGION).unwrap();
        assert_eq!(refused(&mut regions, REGION), RegionError::Full);
    }
}
