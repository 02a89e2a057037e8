//! What a node's device does to its memory in the middle of a call, and what the home does that others ask for.
//!
//! As live racks do it. What must always hold: a region that has ended is not touched, whatever key it had.

use std::collections::BTreeMap;

use nic::regions::{Call, Exported, Home, Shape, refused_words};
use nic::verbs::{Memory, Refused, Regions, Slot};
use nic::words::Request;
use node::Node;
use wire::roce::{Key, Verdict};
use wire::{Discipline, GlobalAddr, Incarnation, NodeId, Refusal, Rules};

use super::nic::{Nic, Payload};
use super::truth::{DATA, Truth, read};
use crate::coherence::PlainStore;

/// The regions of a node that have not ended, or that somebody is still inside of.
pub(super) type Own = BTreeMap<GlobalAddr, u64>;

/// What the device may do to the memory of a node.
pub(super) struct During<'a> {
    pub(super) truth: &'a mut Truth,
}

impl During<'_> {
    pub(super) fn with<'a>(
        &'a mut self,
        (kept, exported): (&'a mut BTreeMap<Slot, Payload>, &'a Exported<u64>),
        store: &'a mut PlainStore,
        payload: &'a Payload,
    ) -> Now<'a> {
        Now { truth: self.truth, kept, exported, store, payload }
    }
}

/// The same, while one packet is handled.
pub(super) struct Now<'a> {
    truth: &'a mut Truth,
    kept: &'a mut BTreeMap<Slot, Payload>,
    exported: &'a Exported<u64>,
    store: &'a mut PlainStore,
    payload: &'a Payload,
}

/// Regions whose bytes a packet reads or writes as they are: those of chains.
pub(super) struct Named<'a> {
    pub(super) truth: &'a mut Truth,
    pub(super) store: &'a mut PlainStore,
}

impl Named<'_> {
    /// What has ended reads as zeroes: nobody has a right to what is there now.
    pub(super) fn read(&self, number: u64, address: u64, len: u32) -> Payload {
        let region = self.truth.region(number);
        assert!(matches!(region.shape, Shape::Chain { .. }), "nobody reads bytes of {region:?}");
        let words = (0..u64::from(len).div_ceil(8)).map(|word| match region.incarnations {
            true => read(self.store, region.byte_at(address + word * 8)),
            false => 0,
        });
        Payload::of_bytes(&words.collect::<Vec<_>>(), len as usize)
    }

    pub(super) fn write(&mut self, number: u64, address: u64, payload: &Payload) {
        let region = self.truth.region(number);
        assert!(matches!(region.shape, Shape::Chain { .. }), "nobody writes bytes of {region:?}");
        if region.incarnations {
            for (word, value) in (0..).zip(payload.words()) {
                self.store.home.insert(region.byte_at(address + word * 8), *value);
            }
        }
    }
}

/// The bytes of a batch, of words that hold them.
pub(super) fn bytes_of(payload: &Payload) -> Vec<u8> {
    let mut bytes: Vec<u8> = payload.words().iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.truncate(payload.len());
    bytes
}

impl Memory for Now<'_> {
    fn read_word(&mut self, key: Key, address: u64) -> u64 {
        panic!("nobody asks for a single word: {key:?} {address}")
    }

    fn compare_swap(&mut self, key: Key, address: u64, compare: u64, swap: u64) -> u64 {
        let number = *self.exported.get(key).expect("the device knows its key");
        let region = self.truth.region(number);
        assert!(matches!(region.shape, Shape::Chain { .. }), "nobody swaps a single word of {region:?}");
        if !region.incarnations {
            // Of a region that has ended: nothing is changed.
            return !compare;
        }
        let at = region.byte_at(address);
        let found = read(self.store, at);
        if found == compare {
            self.store.home.insert(at, swap);
        }
        found
    }

    fn fetch_add(&mut self, key: Key, address: u64, _: u64) -> u64 {
        panic!("nobody asks for a single word: {key:?} {address}")
    }

    fn atomics(&mut self, regions: &Regions, slot: Slot) -> Result<u32, Refused> {
        let bytes = bytes_of(self.payload);
        let batch = regions.check_batch(&bytes)?;
        let fetched = refused_words(batch.len());
        let mut answer = vec![0; fetched];
        for (at, (key, entry)) in batch.entries().enumerate() {
            let number = *self.exported.get(key).expect("the device knows its key");
            let region = self.truth.region(number);
            let mut old = 0;
            if region.incarnations {
                let word = region.element_at(entry.address);
                old = self.truth.execute(self.store, (number, word), &Request::of_wire(0, &entry));
            } else {
                answer[at / 64] |= 1 << (at % 64);
            }
            if entry.fetches {
                answer.push(old);
            }
        }
        let answer = Payload::of(&answer);
        self.kept.insert(slot, answer);
        Ok(answer.len() as u32)
    }

    fn snapshot(&mut self, key: Key, address: u64, len: u32, slot: Slot) -> Result<Verdict, Refused> {
        let number = *self.exported.get(key).expect("the device knows its key");
        let region = self.truth.region(number);
        if !matches!(region.shape, Shape::Objects { .. }) || len as usize != DATA * 8 {
            return Err(Refused::Invalid);
        }
        if !region.incarnations {
            return Ok(Verdict::Gone);
        }
        let at = region.element_at(address);
        let version = read(self.store, region.addr_of(at, 0));
        let data: Vec<u64> = (1..=DATA).map(|word| read(self.store, region.addr_of(at, word))).collect();
        self.kept.insert(slot, Payload::of(&data));
        Ok(Verdict::of_version(version))
    }
}

/// A home, while it serves a call.
pub(super) struct Here<'a, R: Rules> {
    pub(super) node: &'a Node<R>,
    pub(super) store: &'a mut PlainStore,
    pub(super) nic: &'a mut Nic<R>,
    pub(super) own: &'a mut Own,
    pub(super) truth: &'a mut Truth,
    pub(super) incarnation: Incarnation,
}

impl<R: Rules> Home for Here<'_, R> {
    type Region = u64;

    fn memory(&self) -> (NodeId, u64) {
        (self.node.config().id, self.node.config().memory)
    }

    fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    fn discipline_of(&self, addr: GlobalAddr) -> Option<Discipline> {
        self.node.discipline_of(self.node.config().block.tag(addr))
    }

    fn region_at(&self, addr: GlobalAddr) -> Option<(GlobalAddr, bool)> {
        let (first, number) = self.own.range(..=addr).next_back()?;
        let region = self.truth.region(*number);
        let bytes = region.shape.bytes().expect("a few");
        (addr.bits() - first.bits() < bytes).then_some((*first, region.incarnations))
    }

    fn first_in(&self, addr: GlobalAddr, bytes: u64) -> Option<GlobalAddr> {
        let end = GlobalAddr::from_bits(addr.bits() + bytes);
        self.own.range(addr..end).next().map(|(first, _)| *first)
    }

    fn find(&self, addr: GlobalAddr) -> Option<(u64, Shape)> {
        let number = *self.own.get(&addr)?;
        let region = self.truth.region(number);
        region.incarnations.then_some((number, region.shape))
    }

    fn begin(&mut self, addr: GlobalAddr, shape: Shape, zeroed: bool) -> u64 {
        if !zeroed {
            let all = shape.bytes().expect("a few") / 8;
            for word in 0..all {
                self.store.home.insert(GlobalAddr::from_bits(addr.bits() + word * 8), 0);
            }
        }
        let number = self.truth.begins(self.store, (addr, shape, self.incarnation));
        let before = self.own.insert(addr, number);
        assert!(before.is_none(), "{addr} is a region already");
        number
    }

    fn key_of(&mut self, region: &u64) -> Option<Key> {
        let Nic { device, exported, me, .. } = &mut *self.nic;
        let it = self.truth.region(*region);
        let key = exported.key_of(device, (it.addr, it.shape), *region)?;
        self.truth.is_named(*me, key, *region);
        Some(key)
    }

    fn end(&mut self, addr: GlobalAddr) -> Option<bool> {
        let number = *self.own.get(&addr)?;
        let region = &mut self.truth.regions[number as usize];
        region.incarnations = false;
        if region.objects.iter().any(|object| !object.version.is_multiple_of(2)) {
            return Some(false);
        }
        self.own.remove(&addr);
        let Nic { device, exported, .. } = &mut *self.nic;
        exported.end(device, addr);
        Some(true)
    }

    fn write(&mut self, call: &Call, bytes: &[u64]) -> Result<u64, Refusal> {
        let Call::Write { addr, key, object, at, expected, len } = *call else {
            return Err(Refusal::NotAnAllocation);
        };
        let number = *self.nic.exported.get(key).ok_or(Refusal::Unallocated)?;
        let region = self.truth.region(number);
        let it = region.objects.get(object as usize).ok_or(Refusal::WrongLength)?;
        if !region.incarnations || region.addr != addr {
            return Err(Refusal::Unallocated);
        }
        if at != 0 || len != DATA * 8 {
            return Err(Refusal::WrongLength);
        }
        if !it.version.is_multiple_of(2) {
            return Err(Refusal::Locked);
        }
        if expected.is_some_and(|expected| expected != it.version) {
            return Err(Refusal::Outdated);
        }
        let whom = (number, object as usize);
        self.truth.turns(self.store, whom, None);
        for (word, value) in (1..).zip(bytes) {
            let addr = self.truth.region(number).addr_of(whom.1, word);
            self.store.home.insert(addr, *value);
        }
        self.truth.turns(self.store, whom, Some(bytes[0]));
        Ok(self.truth.region(number).objects[whom.1].version)
    }
}
