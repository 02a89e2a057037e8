//! The memory of a node, as a driver has it: regions by their keys, kept a second time beside the device's, answers in slots,
//! batches folded. What must always hold: whatever a device asks for that may not be is written down.

use std::collections::{BTreeMap, BTreeSet};

use nic::verbs::*;
use nic::words::{Folder, Request, Width};
use wire::roce::batch::{ANSWER_BYTES, push_answer};
use wire::roce::{Key, Verdict};

/// The memory of a node, and what others may do with it.
#[derive(Default)]
pub(crate) struct NodeMemory {
    pub(super) regions: BTreeMap<Key, (Region, Vec<u8>)>,
    /// Which regions hold objects.
    pub(crate) objects: BTreeSet<Key>,
    /// Answers that are kept.
    pub(crate) slots: BTreeMap<Slot, Vec<u8>>,
    /// Of the packet that is being handled.
    pub(crate) payload: Vec<u8>,
    folder: Folder,
    /// Batches and snapshots that were executed.
    pub(crate) batches: u64,
    pub(crate) snapshots: u64,
    pub(crate) violations: Vec<String>,
}

impl NodeMemory {
    pub(crate) fn add(&mut self, key: Key, region: Region) {
        self.regions.insert(key, (region, vec![0; region.len as usize]));
    }

    pub(crate) fn bytes(&mut self, span: Span) -> Option<&mut [u8]> {
        let Some((region, bytes)) = self.regions.get_mut(&span.key) else {
            self.violations.push(format!("{span:?}: no region has this key"));
            return None;
        };
        let end = span.address.wrapping_sub(region.base).checked_add(u64::from(span.len));
        if span.address < region.base || end.is_none_or(|end| end > region.len) {
            self.violations.push(format!("{span:?} is not in {region:?}"));
            return None;
        }
        let offset = (span.address - region.base) as usize;
        Some(&mut bytes[offset..offset + span.len as usize])
    }

    pub(crate) fn word(&mut self, key: Key, address: u64) -> u64 {
        let bytes = self.bytes(Span { key, address, len: 8 });
        bytes.map_or(0, |bytes| u64::from_ne_bytes(bytes.try_into().unwrap()))
    }

    pub(crate) fn set_word(&mut self, key: Key, address: u64, value: u64) {
        if let Some(bytes) = self.bytes(Span { key, address, len: 8 }) {
            bytes.copy_from_slice(&value.to_ne_bytes());
        }
    }

    fn check_atomic(&mut self, key: Key, address: u64, width: u64) {
        let region = self.regions.get(&key).map(|(region, _)| *region);
        let may = region.is_some_and(|region| region.access.includes(Access::REMOTE_ATOMIC));
        if !may || !address.is_multiple_of(width) {
            self.violations.push(format!("an atomic at {address:#x} of {region:?}"));
        }
    }

    /// The operations of one region as a driver does them: folded, each fold one change.
    fn change(&mut self, key: Key, requests: &[Request], olds: &mut [u64]) {
        let mut folder = std::mem::take(&mut self.folder);
        for fold in folder.fold(requests) {
            let bytes = fold.width().bytes();
            self.check_atomic(key, fold.address(), bytes);
            let span = Span { key, address: fold.address(), len: bytes as u32 };
            let Some(word) = self.bytes(span) else { continue };
            let old = match fold.width() {
                Width::Double => u64::from_ne_bytes(word.try_into().expect("eight bytes")),
                Width::Word => u64::from(u32::from_ne_bytes(word.try_into().expect("four bytes"))),
            };
            let new = fold.apply(old);
            match fold.width() {
                Width::Double => word.copy_from_slice(&new.to_ne_bytes()),
                Width::Word => word.copy_from_slice(&(new as u32).to_ne_bytes()),
            }
            for done in fold.done(old) {
                olds[done.ticket as usize] = done.old;
            }
        }
        self.folder = folder;
    }

    /// Bytes of an answer that is kept.
    pub(super) fn kept(&mut self, slot: Slot, offset: u32, len: u32) -> Option<Vec<u8>> {
        let bytes = self.slots.get(&slot).and_then(|bytes| bytes.get(offset as usize..)?.get(..len as usize));
        if bytes.is_none() {
            self.violations.push(format!("{slot:?} has no bytes {offset}+{len}"));
        }
        bytes.map(<[u8]>::to_vec)
    }
}

impl Memory for NodeMemory {
    fn read_word(&mut self, key: Key, address: u64) -> u64 {
        self.word(key, address)
    }

    fn compare_swap(&mut self, key: Key, address: u64, compare: u64, swap: u64) -> u64 {
        self.check_atomic(key, address, 8);
        let original = self.word(key, address);
        if original == compare {
            self.set_word(key, address, swap);
        }
        original
    }

    fn fetch_add(&mut self, key: Key, address: u64, add: u64) -> u64 {
        self.check_atomic(key, address, 8);
        let original = self.word(key, address);
        self.set_word(key, address, original.wrapping_add(add));
        original
    }

    fn atomics(&mut self, regions: &Regions, slot: Slot) -> Result<u32, Refused> {
        let payload = std::mem::take(&mut self.payload);
        let batch = regions.check_batch(&payload)?;
        self.batches += 1;
        let entries: Vec<_> = batch.entries().collect();
        let mut olds = vec![0; entries.len()];
        let mut first = 0;
        for of_region in entries.chunk_by(|(one, _), (other, _)| one == other) {
            let requests: Vec<_> =
                (first..).zip(of_region).map(|(at, (_, it))| Request::of_wire(at, it)).collect();
            self.change(of_region[0].0, &requests, &mut olds);
            first += requests.len() as u64;
        }
        let mut answer = Vec::new();
        for (old, _) in olds.iter().zip(&entries).filter(|(_, (_, entry))| entry.fetches) {
            push_answer(&mut answer, *old);
        }
        assert_eq!(answer.len(), batch.answer_bytes());
        assert!(answer.len().is_multiple_of(ANSWER_BYTES));
        let len = answer.len() as u32;
        self.slots.insert(slot, answer);
        Ok(len)
    }

    fn snapshot(&mut self, key: Key, address: u64, len: u32, slot: Slot) -> Result<Verdict, Refused> {
        let region = self.regions.get(&key).map(|(region, _)| *region);
        let may = region.is_some_and(|region| region.access.includes(Access::REMOTE_READ));
        if !may || !address.is_multiple_of(8) {
            self.violations.push(format!("an object at {address:#x} of {region:?}"));
        }
        if !self.objects.contains(&key) {
            return Err(Refused::Invalid);
        }
        self.snapshots += 1;
        let version = self.word(key, address);
        let data = self.bytes(Span { key, address: address + 8, len });
        let data = data.map_or_else(Vec::new, |bytes| bytes.to_vec());
        self.slots.insert(slot, data);
        Ok(Verdict::of_version(version))
    }
}
