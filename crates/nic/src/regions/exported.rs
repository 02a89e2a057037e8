//! Regions of a home's memory, by the keys that its device knows.
//!
//! What must always hold: a region has one key; the key of one that has ended is kept for a while, so that whoever uses it is
//! told, and means nothing behind that: whoever uses it then fails with its queue pair.

use alloc::collections::VecDeque;

use sorted::Map;
use wire::roce::Key;
use wire::{Discipline, GlobalAddr, Rules};

use super::Shape;
use crate::verbs::{Access, Device, Region as Registered};

/// Regions that have ended and still have their keys, on a live rack.
pub const KEPT: usize = 4096;

/// Regions by key and by address. `T` is what the driver has of a region; one that is equal is the same one.
#[derive(Debug)]
pub struct Exported<T> {
    by_key: Map<Key, T>,
    by_addr: Map<GlobalAddr, Key>,
    ended: VecDeque<Key>,
    kept: usize,
}

impl<T: PartialEq> Exported<T> {
    /// None; so many keys will be kept of regions that have ended.
    pub const fn new(kept: usize) -> Self {
        Self { by_key: Map::new(), by_addr: Map::new(), ended: VecDeque::new(), kept }
    }

    /// The key of a region at this address, which gets one if it has none. None: the device has no more.
    pub fn key_of<R: Rules>(
        &mut self,
        device: &mut Device<R>,
        (addr, shape): (GlobalAddr, Shape),
        region: T,
    ) -> Option<Key> {
        if let Some(key) = self.by_addr.get(&addr)
            && self.by_key[key] == region
        {
            return Some(*key);
        }
        let registered = Registered {
            base: shape.base(addr),
            len: shape.bytes().expect("it was allocated"),
            access: match shape.discipline() {
                Discipline::Word | Discipline::Chain => Access::ALL,
                _ => Access::LOCAL_WRITE | Access::REMOTE_READ,
            },
        };
        let key = device.register(registered).ok()?;
        self.by_key.insert(key, region);
        self.by_addr.insert(addr, key);
        Some(key)
    }

    /// The region at this address has ended. Its key stays for a while: what stays of the region is returned, for the driver to make
    /// it small.
    pub fn end<R: Rules>(&mut self, device: &mut Device<R>, addr: GlobalAddr) -> Option<&mut T> {
        let key = self.by_addr.remove(&addr)?;
        self.ended.push_back(key);
        if self.ended.len() > self.kept
            && let Some(oldest) = self.ended.pop_front()
        {
            device.deregister(oldest).expect("it was registered");
            self.by_key.remove(&oldest);
        }
        self.by_key.get_mut(&key)
    }

    /// The region with this key, ended or not.
    pub fn get(&self, key: Key) -> Option<&T> {
        self.by_key.get(&key)
    }

    /// The same, to change what the driver has of it.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.by_key.get_mut(&key)
    }
}
