//! A node's NIC, and the bytes behind it. What must always hold: bytes are touched only where the device says so.

use nic::verbs::*;
use wire::chains::{EntryHead, Location};
use wire::roce::{Key, Verdict};

/// The address of every node's region.
pub(crate) const BASE: u64 = 1 << 20;

/// The bytes of a region.
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl Bytes {
    pub(crate) fn at(&mut self, address: u64, len: u32) -> &mut [u8] {
        let from = usize::try_from(address - BASE).unwrap();
        &mut self.0[from..from + len as usize]
    }

    pub(crate) fn word(&mut self, address: u64) -> &mut [u8; 8] {
        self.at(address, 8).try_into().unwrap()
    }

    /// Puts an entry there, with what stands for its value.
    pub(crate) fn put_entry(&mut self, address: u64, head: &EntryHead, value: u64) {
        let words = head.to_words().into_iter().chain(std::iter::repeat(value));
        for (part, word) in self.at(address, 24 + head.len).chunks_mut(8).zip(words) {
            part.copy_from_slice(&word.to_le_bytes()[..part.len()]);
        }
    }

    /// The head of what was read to this address.
    pub(crate) fn head(&mut self, address: u64) -> Option<EntryHead> {
        let word = |bytes: &mut Self, at: u64| u64::from_le_bytes(*bytes.word(address + 8 * at));
        EntryHead::from_words([word(self, 0), word(self, 1), word(self, 2)])
    }
}

impl Memory for Bytes {
    fn read_word(&mut self, _: Key, address: u64) -> u64 {
        u64::from_le_bytes(*self.word(address))
    }

    fn compare_swap(&mut self, _: Key, address: u64, compare: u64, swap: u64) -> u64 {
        let word = self.word(address);
        let found = u64::from_le_bytes(*word);
        if found == compare {
            *word = swap.to_le_bytes();
        }
        found
    }

    fn fetch_add(&mut self, _: Key, _: u64, _: u64) -> u64 {
        panic!("nobody adds")
    }

    fn atomics(&mut self, _: &Regions, _: Slot) -> Result<u32, Refused> {
        Err(Refused::Invalid)
    }

    fn snapshot(&mut self, _: Key, _: u64, _: u32, _: Slot) -> Result<Verdict, Refused> {
        Err(Refused::Invalid)
    }
}

pub(crate) struct Nic {
    pub(crate) device: Device,
    pub(crate) queue: CqNumber,
    pub(crate) bytes: Bytes,
    pub(crate) key: Key,
}

impl Nic {
    pub(crate) fn new(len: usize) -> Self {
        let mut device = Device::new(2);
        let queue = device.create_completion_queue(1024);
        let region = Region { base: BASE, len: len as u64, access: Access::ALL };
        let key = device.register(region).unwrap();
        Self { device, queue, bytes: Bytes(vec![0; len]), key }
    }
}

/// Where an entry is in the memory's region.
pub(crate) fn address(at: Location) -> u64 {
    BASE + at.offset()
}
