//! Every region that there was: what its words and objects are, and what was done to them.
//!
//! Looked at from outside: what is here was written by whoever changed the memory, and by threads that were told how their
//! operations ended. What must always hold:
//! - An operation on a word that has completed was executed once; one that is indeterminate, once at most. Nobody else changes words.
//! - An object that was read whole is what one writer left, and not older than what was there when it was asked for.
//! - A region begins in memory that was allocated in the same incarnation of its home.
//! - What a region is said to be at its beginning, it is: zeroes.
//! - A call is served once, in the incarnations of both nodes in which it was made.

use std::collections::{BTreeMap, BTreeSet};

use nic::regions::{Call, Reply, Shape};
use nic::words::{Request, Width};
use wire::roce::Key;
use wire::{GlobalAddr, Incarnation, NodeId};

use crate::coherence::PlainStore;

/// A word: it only grows.
#[derive(Clone, Debug, Default)]
pub(super) struct Word {
    pub(super) value: u64,
    /// What was executed, and nobody has been told of yet: what the word was, and became.
    unclaimed: Vec<(u64, u64)>,
    /// Operations that may be executed, and have not ended.
    in_flight: usize,
    /// Those of which nobody will ever know.
    indeterminate: usize,
}

/// An object.
#[derive(Clone, Debug, Default)]
pub(super) struct Object {
    /// Odd: somebody is inside.
    pub(super) version: u64,
    /// What was written, by half the version.
    pub(super) stamps: Vec<u64>,
}

/// A region, in one incarnation of its home.
#[derive(Clone, Debug)]
pub(super) struct Region {
    pub(super) addr: GlobalAddr,
    pub(super) shape: Shape,
    pub(super) incarnation: Incarnation,
    pub(super) incarnations: bool,
    pub(super) words: Vec<Word>,
    pub(super) objects: Vec<Object>,
}

/// Words of an object behind its version.
pub(super) const DATA: usize = 2;

impl Region {
    /// Where a word of an element is: of an object, its version is the first one.
    pub(super) fn addr_of(&self, element: usize, word: usize) -> GlobalAddr {
        GlobalAddr::from_bits(self.addr.bits() + ((element * self.shape.stride() + word) * 8) as u64)
    }

    /// The byte at an address as the device counts.
    pub(super) fn byte_at(&self, address: u64) -> GlobalAddr {
        GlobalAddr::from_bits(self.addr.bits() + (address - self.shape.base(self.addr)))
    }

    /// Which element begins at an address as the device counts, or has this word.
    pub(super) fn element_at(&self, address: u64) -> usize {
        ((address - self.shape.base(self.addr)) / 8) as usize / self.shape.stride()
    }
}

pub(super) fn read(store: &PlainStore, at: GlobalAddr) -> u64 {
    store.home.get(&at).copied().unwrap_or(0)
}

/// A call that was made: by whom, of whom, in which incarnations.
#[derive(Clone, Copy, Debug)]
struct Made {
    from: (NodeId, Incarnation),
    to: (NodeId, Incarnation),
    is_served: bool,
}

/// All regions, by number; and whatever did not hold.
#[derive(Debug, Default)]
pub(super) struct Truth {
    pub(super) regions: Vec<Region>,
    by_key: BTreeMap<(NodeId, Incarnation, Key), u64>,
    /// Where a region has begun in a block since that became live.
    used: BTreeSet<GlobalAddr>,
    calls: BTreeMap<u64, Made>,
    stamps: u64,
    /// What did not hold first.
    pub(super) wrong: Option<String>,
}

impl Truth {
    pub(super) fn fails(&mut self, why: impl FnOnce() -> String) {
        self.wrong.get_or_insert_with(why);
    }

    pub(super) fn region(&self, number: u64) -> &Region {
        &self.regions[number as usize]
    }

    /// A call was served by this incarnation of a home: if a region has begun, its memory was allocated in that incarnation.
    pub(super) fn is_of_its_incarnation(&mut self, call: &Call, home: (NodeId, Incarnation), reply: &Reply) {
        if let (&Call::Begin { addr, incarnation, .. }, Reply::Done(..)) = (call, reply)
            && incarnation != home.1
        {
            self.fails(|| {
                format!("what {incarnation:?} of {} had at {addr} is a region in {:?}", home.0, home.1)
            });
        }
    }

    /// A region begins: it is zeroes, at least if nothing was in this memory since it was allocated.
    pub(super) fn begins(
        &mut self,
        store: &PlainStore,
        (addr, shape, incarnation): (GlobalAddr, Shape, Incarnation),
    ) -> u64 {
        let is_fresh = self.used.insert(addr);
        let (words, objects) = match shape {
            Shape::Objects { count, .. } => (0, count),
            // What is in there, `chains` looks at.
            Shape::Chain { .. } => (0, 0),
            Shape::Words { .. } => (shape.count(), 0),
        };
        let object = Object { version: 0, stamps: vec![0] };
        let mut region = Region {
            addr,
            shape,
            incarnation,
            incarnations: true,
            words: vec![Word::default(); words],
            objects: vec![object; objects],
        };
        let number = self.regions.len();
        let all = shape.words().expect("a few");
        let dirty = (0..all).map(|word| read(store, region.addr_of(0, word))).find(|word| *word != 0);
        if let (Some(found), true) = (dirty, is_fresh) {
            self.fails(|| format!("region {number} begins in fresh memory that reads {found}: {region:?}"));
        }
        for at in 0..words {
            region.words[at].value = read(store, region.addr_of(at, 0));
        }
        for at in 0..objects {
            region.objects[at].stamps[0] = read(store, region.addr_of(at, 1));
        }
        self.regions.push(region);
        number as u64
    }

    /// Blocks have ended: what was in them is nobody's.
    pub(super) fn blocks_end(&mut self, first: GlobalAddr, bytes: u64) {
        let end = GlobalAddr::from_bits(first.bits() + bytes);
        self.used.extract_if(first..end, |_| true).for_each(drop);
    }

    /// All of a node's memory is gone.
    pub(super) fn node_dies(&mut self, node: NodeId) {
        self.used.retain(|addr| addr.home() != node);
        self.regions.iter_mut().filter(|it| it.addr.home() == node).for_each(|it| it.incarnations = false);
    }

    /// A home tells of a region by this key.
    pub(super) fn is_named(&mut self, home: NodeId, key: Key, number: u64) {
        let incarnation = self.region(number).incarnation;
        let of = *self.by_key.entry((home, incarnation, key)).or_insert(number);
        if of != number {
            self.fails(|| {
                format!("{key:?} of {home} in {incarnation:?} means region {of}, and now {number}")
            });
        }
    }

    /// The region that a home told of by this key, in this incarnation.
    pub(super) fn named(&self, home: NodeId, incarnation: Incarnation, key: Key) -> Option<u64> {
        self.by_key.get(&(home, incarnation, key)).copied()
    }

    // Words.

    fn word(&mut self, number: u64, word: usize) -> &mut Word {
        &mut self.regions[number as usize].words[word]
    }

    /// Somebody has asked for an operation that may change the word.
    pub(super) fn asked(&mut self, number: u64, word: usize) {
        self.word(number, word).in_flight += 1;
    }

    /// An operation is executed where the word is: what the word was.
    pub(super) fn execute(
        &mut self,
        store: &mut PlainStore,
        (number, at): (u64, usize),
        request: &Request,
    ) -> u64 {
        let region = &mut self.regions[number as usize];
        let addr = region.addr_of(at, 0);
        let (old, word) = (read(store, addr), &mut region.words[at]);
        let expected = std::mem::replace(&mut word.value, old);
        let new = request.operation.apply(Width::Double, old, request.operands);
        if new != old {
            word.value = new;
            word.unclaimed.push((old, new));
            store.home.insert(addr, new);
        }
        let is_more = word.unclaimed.len() > word.in_flight + word.indeterminate;
        let what = is_more.then(|| format!("{word:?}"));
        if old != expected {
            self.fails(|| format!("word {at} of region {number} was {expected}, and is {old}"));
        }
        if let Some(what) = what {
            self.fails(|| {
                format!("word {at} of region {number} was changed more often than anybody asked: {what}")
            });
        }
        old
    }

    /// A thread is told that its operation was executed, and what the word was; `changes`, if it then became another one.
    pub(super) fn done(&mut self, (number, at): (u64, usize), since: u64, old: u64, changes: bool) {
        let word = self.word(number, at);
        word.in_flight -= 1;
        let (mut is_wrong, now) = (!(since..=word.value).contains(&old), word.value);
        if changes {
            match word.unclaimed.iter().position(|(was, _)| *was == old) {
                Some(it) => drop(word.unclaimed.swap_remove(it)),
                None => is_wrong = true,
            }
        }
        if is_wrong {
            self.fails(|| {
                format!("word {at} of region {number} is said to have been {old}, was {since}, is {now}")
            });
        }
        self.check_word(number, at);
    }

    /// One is told that it was not executed, as the region has ended.
    pub(super) fn refused(&mut self, (number, at): (u64, usize)) {
        self.word(number, at).in_flight -= 1;
        let region = self.region(number);
        if region.incarnations {
            let what = format!("word {at} of region {number} is said to have ended, and lives: {region:?}");
            self.fails(|| what);
        }
        self.check_word(number, at);
    }

    /// Nobody will ever know whether it was.
    pub(super) fn indeterminate(&mut self, (number, at): (u64, usize)) {
        let word = self.word(number, at);
        word.in_flight -= 1;
        word.indeterminate += 1;
    }

    fn check_word(&mut self, number: u64, at: usize) {
        let word = self.word(number, at);
        if word.unclaimed.len() > word.in_flight + word.indeterminate {
            let what = format!("word {at} of region {number} was changed by more than was asked: {word:?}");
            self.fails(|| what);
        }
    }

    // Objects.

    /// What the next writer leaves.
    pub(super) fn next_stamp(&mut self) -> u64 {
        self.stamps += 1;
        self.stamps
    }

    /// Somebody goes into an object, or comes out of it having left this.
    pub(super) fn turns(&mut self, store: &mut PlainStore, (number, at): (u64, usize), left: Option<u64>) {
        let region = &mut self.regions[number as usize];
        let addr = region.addr_of(at, 0);
        let object = &mut region.objects[at];
        let (expected, found) = (object.version, read(store, addr));
        object.version += 1;
        object.stamps.extend(left);
        store.home.insert(addr, object.version);
        if found != expected {
            self.fails(|| format!("object {at} of region {number} has version {found}, not {expected}"));
        }
    }

    /// A thread is told that an object is this.
    pub(super) fn is_whole(&mut self, (number, at): (u64, usize), since: u64, version: u64, data: &[u64]) {
        let object = &self.regions[number as usize].objects[at];
        let stamp = object.stamps.get((version / 2) as usize);
        let is_one = version.is_multiple_of(2) && stamp.is_some_and(|stamp| data == [*stamp; DATA]);
        if !is_one || version < since {
            let what = format!(
                "object {at} of region {number} is read as {data:?}, version {version}, was {since}: {object:?}"
            );
            self.fails(|| what);
        }
    }

    // Calls.

    /// A call is made, in these incarnations of both nodes.
    pub(super) fn is_made(&mut self, call: u64, from: (NodeId, Incarnation), to: (NodeId, Incarnation)) {
        self.calls.insert(call, Made { from, to, is_served: false });
    }

    /// A call is served.
    pub(super) fn is_served(&mut self, call: u64, from: (NodeId, Incarnation), to: (NodeId, Incarnation)) {
        let Some(made) = self.calls.get_mut(&call) else {
            return self.fails(|| format!("{to:?} serves call {call}, which nobody has made"));
        };
        let was = *made;
        made.is_served = true;
        if was.is_served || (was.from, was.to) != (from, to) {
            self.fails(|| format!("{to:?} serves call {call} of {from:?}, which was {was:?}"));
        }
    }
}

impl Truth {
    /// Nothing is in flight.
    pub(super) fn check_at_rest(&self) -> Result<(), String> {
        for (number, region) in self.regions.iter().enumerate() {
            for (at, word) in region.words.iter().enumerate() {
                if word.in_flight > 0 || word.unclaimed.len() > word.indeterminate {
                    return Err(format!(
                        "word {at} of region {number} was changed by more than was asked: {word:?}"
                    ));
                }
            }
        }
        Ok(())
    }
}
