//! Further buckets of one home: who gets which.
//!
//! Words at that home, changed by remote atomics from anywhere: a stack of what was given back, a counter of what was never given out,
//! a counter of tags. What must always hold: a bucket is given to one at a time, and no two tags are the same of those that anybody can
//! still have seen: they have 40 bits.

use rackmem::{GlobalAddr, NodeHandle, NodeId, Words};

use super::Error;
use super::bucket::Next;

/// The top of the stack: its number + 1, and above that how often it has changed, so that who pops finds that out.
const TOP: usize = 0;
const UNUSED: usize = 1;
const TAGS: usize = 2;
/// How many are given out.
const OUT: usize = 3;
/// By bucket: the number + 1 of the one below it on the stack.
const BELOW: usize = 4;

/// So many are kept for those who change chains and do not make them longer, and no chain has more: so a key can be removed from
/// a full store.
pub(super) const RESERVE: u64 = 8;

const NUMBER: u64 = (1 << 32) - 1;

#[derive(Clone, Debug)]
pub(super) struct Spare {
    words: Words<u64>,
    count: u64,
}

impl Spare {
    pub(super) fn create(node: &mut NodeHandle, count: u64, home: NodeId) -> Result<Self, Error> {
        Ok(Self { words: node.words(count as usize + BELOW, home)?, count })
    }

    pub(super) fn open(node: &mut NodeHandle, addr: GlobalAddr) -> Result<Self, Error> {
        let words = node.words_at(addr)?;
        let count = (words.len() - BELOW) as u64;
        Ok(Self { words, count })
    }

    pub(super) fn free(self, node: &mut NodeHandle) -> Result<(), Error> {
        Ok(self.words.free(node)?)
    }

    pub(super) fn addr(&self) -> GlobalAddr {
        self.words.addr()
    }

    /// A bucket that nobody has, with a tag that none ever had, to make a chain longer.
    pub(super) fn take_one_more(&self, node: &mut NodeHandle) -> Result<Next, Error> {
        if self.words.load(node, OUT)? + RESERVE >= self.count {
            return Err(Error::NoBuckets { home: self.addr().home() });
        }
        self.take(node)
    }

    /// The same, in the place of another one.
    pub(super) fn take(&self, node: &mut NodeHandle) -> Result<Next, Error> {
        let number = self.pop(node)?;
        self.words.fetch_add(node, OUT, 1)?;
        Ok(Next { number, tag: Next::tag_of(self.words.fetch_add(node, TAGS, 1)?) })
    }

    fn pop(&self, node: &mut NodeHandle) -> Result<u64, Error> {
        let mut top = self.words.load(node, TOP)?;
        while let Some(number) = (top & NUMBER).checked_sub(1) {
            let below = self.words.load(node, BELOW + number as usize)?;
            match self.words.compare_exchange(node, TOP, top, after(top, below))? {
                Ok(_) => return Ok(number),
                Err(found) => top = found,
            }
        }
        // A counter that has passed the end stays there: it would take 2^64 failures to come round.
        let number = self.words.fetch_add(node, UNUSED, 1)?;
        if number < self.count { Ok(number) } else { Err(Error::NoBuckets { home: self.addr().home() }) }
    }

    /// Gives one back: nobody will be sent there any more.
    pub(super) fn give_back(&self, node: &mut NodeHandle, number: u64) -> Result<(), Error> {
        self.words.fetch_add(node, OUT, 1_u64.wrapping_neg())?;
        let mut top = self.words.load(node, TOP)?;
        loop {
            self.words.swap(node, BELOW + number as usize, top & NUMBER)?;
            match self.words.compare_exchange(node, TOP, top, after(top, number + 1))? {
                Ok(_) => return Ok(()),
                Err(found) => top = found,
            }
        }
    }
}

/// The top that follows another one.
const fn after(top: u64, number: u64) -> u64 {
    (top >> 32).wrapping_add(1) << 32 | number
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rackmem::{Config, Rack};

    use super::*;

    #[test]
    fn no_two_have_the_same_bucket_or_ever_the_same_tag() {
        let config = Config { nodes: 2, memory: 1 << 20, cache: 1 << 20, ..Config::default() };
        let rack = Rack::embedded(config).unwrap();
        let mut node = rack.node(NodeId(0));
        let spare = Spare::create(&mut node, 3, NodeId(1)).unwrap();
        let taken: Vec<Next> = (0..3).map(|_| spare.take(&mut node).unwrap()).collect();
        assert_eq!(spare.take(&mut node), Err(Error::NoBuckets { home: NodeId(1) }));
        spare.give_back(&mut node, taken[2].number).unwrap();
        spare.give_back(&mut node, taken[0].number).unwrap();
        let again = [spare.take(&mut node).unwrap(), spare.take(&mut node).unwrap()];
        assert_eq!(again.map(|next| next.number), [taken[0].number, taken[2].number]);
        let tags: BTreeSet<u64> = taken.iter().chain(&again).map(|next| next.tag).collect();
        assert_eq!(tags.len(), 5);
        assert!(!tags.contains(&0), "the tag of a bucket that was never given out");
    }

    #[test]
    fn threads_that_take_and_give_back_never_have_the_same_one() {
        let config = Config { nodes: 2, memory: 1 << 20, cache: 1 << 20, ..Config::default() };
        let rack = Rack::embedded(config).unwrap();
        let spare = Spare::create(&mut rack.node(NodeId(0)), 4, NodeId(1)).unwrap();
        let held: Vec<_> = (0..4).map(|_| std::sync::atomic::AtomicBool::new(false)).collect();
        std::thread::scope(|scope| {
            for thread in 0..4_u16 {
                let (mut node, spare, held) = (rack.node(NodeId(thread % 2)), spare.clone(), &held);
                scope.spawn(move || {
                    for _ in 0..5000 {
                        let number = spare.take(&mut node).unwrap().number;
                        let held = &held[number as usize];
                        assert!(!held.swap(true, std::sync::atomic::Ordering::SeqCst), "two have it");
                        held.store(false, std::sync::atomic::Ordering::SeqCst);
                        spare.give_back(&mut node, number).unwrap();
                    }
                });
            }
        });
    }
}
