//! The bytes that the device names: regions that others use, works, receives, answers that are kept.
//!
//! At both ends. What must always hold: what an effect names was checked by the device, so a name that means nothing here is a
//! bug, and panics; a region that has ended is never touched, whatever key it had.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use nic::regions::{Exported, KEPT, refused_words};
use nic::verbs::{Memory, Payload, Refused, Regions as Registry, Slot, Span};
use nic::words::{Folder, Request};
use sorted::Map;
use transport::Contents;
use wire::roce::{Key, Verdict};
use zerocopy::IntoBytes as _;

use super::bytes::{part, place};
use super::changes::Changes;
use super::works::{Keys, Works, place_of};
use crate::memory::regions::{Missing, Region, Torn, execute, execute_fold};

/// A region, not another one at the same address; and what others change in it, while somebody copies it.
pub(super) struct Served {
    pub(super) region: Arc<Region>,
    pub(super) changes: Option<Changes>,
}

impl Served {
    pub(super) const fn new(region: Arc<Region>) -> Self {
        Self { region, changes: None }
    }

    /// So many bytes at this place of it have changed.
    fn note(&mut self, offset: u64, len: usize) {
        if let Some(changes) = &mut self.changes {
            changes.note(offset, len);
        }
    }
}

impl PartialEq for Served {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.region, &other.region)
    }
}

impl std::ops::Deref for Served {
    type Target = Region;

    fn deref(&self) -> &Region {
        &self.region
    }
}

/// Everything that the device names but works.
pub(super) struct Bytes {
    pub(super) exported: Exported<Served>,
    pub(super) keys: Keys,
    /// Where messages are received.
    pub(super) receiving: Key,
    /// By receive: what has come of its message.
    pub(super) receives: Vec<Vec<u64>>,
    /// Answers, by slot.
    kept: Map<Slot, Vec<u64>>,
    folder: Folder,
    requests: Vec<Request>,
}

impl Bytes {
    pub(super) fn new(keys: Keys, receiving: Key) -> Self {
        Self {
            exported: Exported::new(KEPT),
            keys,
            receiving,
            receives: Vec::new(),
            kept: Map::new(),
            folder: Folder::default(),
            requests: Vec::new(),
        }
    }

    /// The bytes of a packet that is about to be sent; in `scratch`, if they are nowhere in one piece.
    pub(super) fn to_send<'a>(
        &'a self,
        works: &'a Works,
        payload: Payload,
        scratch: &'a mut Vec<u64>,
    ) -> Contents<'a> {
        match payload {
            Payload::Kept { slot, offset, len } => {
                let kept = self.kept.get(&slot).and_then(|kept| part(kept, offset as usize, len as usize));
                kept.unwrap_or_else(|| panic!("{payload:?} is not kept"))
            }
            Payload::Region(Span { key, address, len }) if key == self.keys.source => {
                let (at, offset) = place_of(address);
                let source = works.get(at).and_then(|work| part(&work.source, offset, len as usize));
                source.unwrap_or_else(|| panic!("{payload:?} of no work"))
            }
            Payload::Region(Span { key, address, len }) => {
                let region = self.exported.get(key).unwrap_or_else(|| panic!("{payload:?} of no region"));
                // What was in there is overwritten.
                scratch.resize((len as usize).div_ceil(8), 0);
                let into = &mut scratch.as_mut_bytes()[..len as usize];
                // What has ended reads as zeroes: nobody has a right to what is there now.
                region.read_bytes(address - region.base(), into);
                Contents::own(scratch)
            }
        }
    }

    /// Puts the payload that has come where it belongs.
    pub(super) fn place(&mut self, works: &mut Works, at: Span, from: Contents<'_>) {
        let Span { key, address, len } = at;
        let len = len as usize;
        let (number, offset) = place_of(address);
        let fits = if key == self.keys.landing {
            works.get_mut(number).is_some_and(|work| place(from, len, &mut work.landing, offset))
        } else if key == self.receiving {
            let words = &mut self.receives[number];
            words.resize((offset + len).div_ceil(8), 0);
            place(from, len, words, offset)
        } else {
            let region = self.exported.get_mut(key).unwrap_or_else(|| panic!("{at:?} of no region"));
            let mut bytes = vec![0; len];
            from.copy_to(0, &mut bytes);
            let offset = address - region.base();
            region.write_bytes(offset, &bytes);
            region.note(offset, len);
            true
        };
        assert!(fits, "{len} bytes do not fit {at:?}");
    }

    /// The queue pairs with these numbers begin anew: nothing is kept for them.
    pub(super) fn forget_kept(&mut self, queue_pair: wire::roce::QpNumber) {
        self.kept.retain(|slot, _| slot.queue_pair != queue_pair);
    }
}

/// What the device may do to memory while it handles one packet.
pub(super) struct During<'a> {
    pub(super) bytes: &'a mut Bytes,
    /// The payload of the packet.
    pub(super) payload: &'a [u8],
}

impl During<'_> {
    fn word<R>(&self, key: Key, address: u64, action: impl FnOnce(&AtomicU64) -> R) -> Option<R> {
        let region = self.bytes.exported.get(key)?;
        let at = (address - region.base()) / 8;
        region.word(usize::try_from(at).ok()?).ok().map(action)
    }
}

impl Memory for During<'_> {
    fn read_word(&mut self, key: Key, address: u64) -> u64 {
        self.word(key, address, |word| word.load(SeqCst)).unwrap_or(0)
    }

    fn compare_swap(&mut self, key: Key, address: u64, compare: u64, swap: u64) -> u64 {
        // Of a region that has ended: nothing is changed.
        let Some(region) = self.bytes.exported.get_mut(key) else { return !compare };
        let offset = address - region.base();
        let Ok(word) = region.word((offset / 8) as usize) else { return !compare };
        match word.compare_exchange(compare, swap, SeqCst, SeqCst) {
            Ok(was) => {
                region.note(offset, 8);
                was
            }
            Err(found) => found,
        }
    }

    fn fetch_add(&mut self, key: Key, address: u64, add: u64) -> u64 {
        self.word(key, address, |word| word.fetch_add(add, SeqCst)).unwrap_or(0)
    }

    fn atomics(&mut self, registry: &Registry, slot: Slot) -> Result<u32, Refused> {
        let batch = registry.check_batch(self.payload)?;
        let Bytes { exported, kept, folder, requests, .. } = &mut *self.bytes;
        let answer = kept.entry(slot).or_default();
        answer.clear();
        let fetched = refused_words(batch.len());
        answer.resize(fetched + batch.answer_bytes() / 8, 0);
        // Operations on one region at a time: most batches have only one.
        let mut at = 0;
        let mut next = fetched;
        let mut entries = batch.entries().peekable();
        while let Some((key, _)) = entries.peek().copied() {
            let region = exported.get(key).expect("the device knows its key");
            requests.clear();
            let first = at;
            while let Some((_, entry)) = entries.next_if(|(of, _)| *of == key) {
                // The ticket says where in the answer it goes.
                let ticket = if entry.fetches { next } else { usize::MAX };
                next += usize::from(entry.fetches);
                requests.push(Request::of_wire(ticket as u64, &entry));
                at += 1;
            }
            let base = region.base();
            let word = |request: &Request| {
                let at = usize::try_from((request.address - base) / 8).expect("inside the region");
                region.word(at).ok()
            };
            // Atomic operations wait for each other's words to come from memory; loads do not. So all words are on their way at once.
            let touched = requests.iter().filter_map(word).fold(0, |all, word| all ^ word.load(Relaxed));
            std::hint::black_box(touched);
            let same = |one: &Request, next: &Request| (one.address, one.width) == (next.address, next.width);
            for of_word in requests.chunk_by(same) {
                let Some(word) = word(&of_word[0]) else { continue };
                let mut keep = |ticket: u64, old| {
                    if let Some(place) = answer.get_mut(ticket as usize) {
                        *place = old;
                    }
                };
                // One is not worth being folded. Nor is it worth to look for others on the same word further behind.
                if let [Request { ticket, address, width, operation, operands }] = *of_word {
                    let is_upper = !address.is_multiple_of(8);
                    keep(ticket, execute(word, width, is_upper, operation, operands));
                    continue;
                }
                for fold in folder.fold(of_word) {
                    let old = execute_fold(word, &fold);
                    fold.done(old).for_each(|done| keep(done.ticket, done.old));
                }
            }
            if !region.is_alive() {
                // What was still done to a word is of no consequence: nobody reads it any more.
                for refused in first..at {
                    answer[refused / 64] |= 1 << (refused % 64);
                }
            }
        }
        Ok(answer.len() as u32 * 8)
    }

    fn snapshot(&mut self, key: Key, address: u64, len: u32, slot: Slot) -> Result<Verdict, Refused> {
        let Bytes { exported, kept, .. } = &mut *self.bytes;
        let region = exported.get(key).expect("the device knows its key");
        let object = match region.object_at(address - region.base()) {
            Ok(object) => object,
            Err(Missing::Beyond) => return Err(Refused::Invalid),
            Err(_) => return Ok(Verdict::Gone),
        };
        if object.len() != len as usize {
            return Err(Refused::Invalid);
        }
        let copy = kept.entry(slot).or_default();
        // What was in there is overwritten, or not sent.
        copy.resize((len as usize).div_ceil(8), 0);
        match object.read(&mut copy.as_mut_bytes()[..len as usize]) {
            Ok(Ok(version)) => Ok(Verdict::Whole(version)),
            Ok(Err(Torn::Written | Torn::Changed)) => Ok(Verdict::Torn),
            Err(_) => Ok(Verdict::Gone),
        }
    }
}
