//! A bucket with the further ones behind it, as somebody who changes it has read them.
//!
//! What must always hold: a further bucket that is in a chain is never written. A change makes fresh ones of all further buckets in front
//! of what it changes, and takes effect with one conditional write of the first bucket; then the former ones are given back, and
//! if that fails, the fresh ones.

use rackmem::{NodeHandle, NodeId};

use super::bucket::{self, Next};
use super::layout::Versioned;
use super::spare::RESERVE;
use super::{Error, ObjectStore};

/// What was read.
pub(super) struct Chain {
    part: usize,
    index: usize,
    version: u64,
    first: Vec<u8>,
    further: Vec<(Next, Vec<u8>)>,
}

/// Where a key is: in the first bucket or a further one, in which slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum At {
    First(usize),
    Further(usize, usize),
}

impl Chain {
    /// Reads all of it: what the chain was when its first bucket was read.
    pub(super) fn read<L: Versioned>(
        store: &mut ObjectStore<L>,
        node: &mut NodeHandle,
        (part, index): (usize, usize),
    ) -> Result<Self, Error> {
        'again: loop {
            let version = store.read_bucket(node, part, index)?;
            let mut chain = Self { part, index, version, first: store.bucket.clone(), further: Vec::new() };
            let mut next = bucket::next(&chain.first);
            while let Some(at) = next {
                if !store.read_further(node, part, at)? {
                    continue 'again;
                }
                next = bucket::next(&store.bucket);
                chain.further.push((at, store.bucket.clone()));
            }
            return Ok(chain);
        }
    }

    /// Its keys with their values.
    pub(super) fn entries<L>(&self, store: &ObjectStore<L>) -> Vec<(Vec<u8>, Vec<u8>)> {
        let buckets = std::iter::once(&self.first).chain(self.further.iter().map(|(_, bytes)| bytes));
        let entries = buckets.flat_map(|bytes| store.form.entries(bytes));
        entries.map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
    }

    pub(super) fn find<L>(&self, store: &ObjectStore<L>, key: &[u8]) -> Option<At> {
        let form = &store.form;
        form.find(&self.first, key).map(At::First).or_else(|| {
            let mut further = (0..).zip(&self.further);
            further.find_map(|(at, (_, bytes))| form.find(bytes, key).map(|slot| At::Further(at, slot)))
        })
    }

    pub(super) fn value<'a, L>(&'a self, store: &ObjectStore<L>, at: At) -> &'a [u8] {
        match at {
            At::First(slot) => store.form.value(&self.first, slot),
            At::Further(bucket, slot) => store.form.value(&self.further[bucket].1, slot),
        }
    }

    /// Sets the value of a key, which is there or is not. False if somebody else was faster, and nothing was changed.
    pub(super) fn set<L: Versioned>(
        mut self,
        store: &mut ObjectStore<L>,
        node: &mut NodeHandle,
        at: Option<At>,
        (key, value): (&[u8], &[u8]),
    ) -> Result<bool, Error> {
        let form = store.form;
        // The further bucket that it goes to, and the slot where it is; or the first bucket.
        let (further, former) = match at {
            Some(At::First(slot)) => (None, Some(slot)),
            Some(At::Further(bucket, slot)) => (Some(bucket), Some(slot)),
            None => (self.further.iter().position(|(_, bytes)| form.has_room(bytes)), None),
        };
        let in_first = matches!(at, Some(At::First(_))) || at.is_none() && form.has_room(&self.first);
        match further {
            _ if in_first => {
                form.set(&mut self.first, former, key, value);
                self.commit(store, node, &[])
            }
            Some(bucket) => {
                form.set(&mut self.further[bucket].1, former, key, value);
                self.renew(store, node, bucket + 1)
            }
            None => {
                // In front, so that nothing else has to be made anew. A longer chain could not be changed in a full store.
                if self.further.len() as u64 >= RESERVE {
                    return Err(Error::NoBuckets { home: store.home(self.part) });
                }
                let fresh = store.parts[self.part].spare.take_one_more(node)?;
                let mut bytes = vec![0; form.bytes()];
                form.set(&mut bytes, None, key, value);
                bucket::set_next(&mut bytes, bucket::next(&self.first));
                let result = self.link(store, node, fresh, &mut bytes);
                self.settle(store, node, result, &[fresh], &[])
            }
        }
    }

    /// Removes a key. False as for [`Chain::set`].
    pub(super) fn remove<L: Versioned>(
        mut self,
        store: &mut ObjectStore<L>,
        node: &mut NodeHandle,
        at: At,
    ) -> Result<bool, Error> {
        match at {
            At::First(slot) => {
                store.form.clear(&mut self.first, slot);
                self.commit(store, node, &[])
            }
            At::Further(bucket, slot) => {
                store.form.clear(&mut self.further[bucket].1, slot);
                self.renew(store, node, bucket + 1)
            }
        }
    }

    /// Makes fresh ones of the first so many further buckets, without those that are empty.
    fn renew<L: Versioned>(
        mut self,
        store: &mut ObjectStore<L>,
        node: &mut NodeHandle,
        count: usize,
    ) -> Result<bool, Error> {
        let former: Vec<Next> = self.further[..count].iter().map(|(at, _)| *at).collect();
        let mut behind = self.further.get(count).map(|(at, _)| *at);
        let mut fresh = Vec::new();
        let mut result = Ok(());
        for (_, mut bytes) in self.further.drain(..count).rev() {
            if store.form.is_empty(&bytes) {
                continue;
            }
            result = store.parts[self.part].spare.take(node).and_then(|at| {
                fresh.push(at);
                bucket::set_next(&mut bytes, behind.replace(at));
                write_further(store, node, self.part, at, &mut bytes)
            });
            if result.is_err() {
                break;
            }
        }
        bucket::set_next(&mut self.first, behind);
        let result = result.and_then(|()| self.commit_first(store, node));
        self.settle(store, node, result, &fresh, &former)
    }

    /// Writes a fresh further bucket, and makes it the first of them.
    fn link<L: Versioned>(
        &mut self,
        store: &mut ObjectStore<L>,
        node: &mut NodeHandle,
        at: Next,
        bytes: &mut [u8],
    ) -> Result<bool, Error> {
        write_further(store, node, self.part, at, bytes)?;
        bucket::set_next(&mut self.first, Some(at));
        self.commit_first(store, node)
    }

    fn commit<L: Versioned>(
        self,
        store: &mut ObjectStore<L>,
        node: &mut NodeHandle,
        former: &[Next],
    ) -> Result<bool, Error> {
        let result = self.commit_first(store, node);
        self.settle(store, node, result, &[], former)
    }

    /// The step with which a change takes effect.
    fn commit_first<L: Versioned>(
        &self,
        store: &mut ObjectStore<L>,
        node: &mut NodeHandle,
    ) -> Result<bool, Error> {
        let buckets = &store.parts[self.part].buckets;
        Ok(buckets.write_if(node, self.index, self.version, &self.first, &mut store.raw)?)
    }

    /// Gives back what is not needed now.
    fn settle<L: Versioned>(
        &self,
        store: &ObjectStore<L>,
        node: &mut NodeHandle,
        result: Result<bool, Error>,
        fresh: &[Next],
        former: &[Next],
    ) -> Result<bool, Error> {
        let unused = match result {
            Ok(true) => former,
            // Nothing was changed.
            Ok(false) | Err(Error::NoBuckets { .. }) => fresh,
            // It may have been; then nobody knows which are in use.
            Err(_) => &[],
        };
        for next in unused {
            store.parts[self.part].spare.give_back(node, next.number)?;
        }
        result
    }
}

fn write_further<L: Versioned>(
    store: &mut ObjectStore<L>,
    node: &mut NodeHandle,
    part: usize,
    at: Next,
    bytes: &mut [u8],
) -> Result<(), Error> {
    bucket::set_tag(bytes, at.tag);
    let index = (store.each + at.number) as usize;
    // A writer that dies in the next write leaves the head of before, with other slots behind it.
    store.parts[part].buckets.void(node, index)?;
    Ok(store.parts[part].buckets.write(node, index, bytes, &mut store.raw)?)
}

impl<L: Versioned> ObjectStore<L> {
    /// Reads a further bucket; false if it is another one by now, so that the chain is, too.
    pub(super) fn read_further(
        &mut self,
        node: &mut NodeHandle,
        part: usize,
        next: Next,
    ) -> Result<bool, Error> {
        self.read_bucket(node, part, (self.each + next.number) as usize)?;
        Ok(bucket::tag(&self.bucket) == next.tag)
    }

    /// Who a bucket belongs to, for messages.
    pub(super) fn home(&self, part: usize) -> NodeId {
        self.parts[part].buckets.addr().home()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use rackmem::{Config, Error as Failure, GlobalAddr, Rack};

    use super::*;
    use crate::objects::{Layout, ObjectStoreConfig, Sabres};

    thread_local! {
        static DIES: Cell<bool> = const { Cell::new(false) };
    }

    /// Objects whose writer may be gone before it has written anything but what it has made void.
    #[derive(Clone)]
    struct Mortal(Sabres);

    impl Layout for Mortal {
        const NAME: &'static str = "mortal";

        fn create(node: &mut NodeHandle, count: usize, len: usize, home: NodeId) -> Result<Self, Failure> {
            Sabres::create(node, count, len, home).map(Self)
        }

        fn open(node: &mut NodeHandle, addr: GlobalAddr, len: usize) -> Result<Self, Failure> {
            Sabres::open(node, addr, len).map(Self)
        }

        fn addr(&self) -> GlobalAddr {
            self.0.addr()
        }

        fn try_read(
            &self,
            node: &mut NodeHandle,
            index: usize,
            into: &mut [u8],
            raw: &mut Vec<u8>,
        ) -> Result<Option<u64>, Failure> {
            self.0.try_read(node, index, into, raw)
        }

        fn write(
            &self,
            node: &mut NodeHandle,
            index: usize,
            bytes: &[u8],
            raw: &mut Vec<u8>,
        ) -> Result<(), Failure> {
            if DIES.get() { Err(Failure::Fenced) } else { self.0.write(node, index, bytes, raw) }
        }

        fn free(self, node: &mut NodeHandle) -> Result<(), Failure> {
            self.0.free(node)
        }
    }

    impl Versioned for Mortal {
        const ID: u64 = 77;

        fn void(&self, node: &mut NodeHandle, index: usize) -> Result<(), Failure> {
            self.0.void(node, index)
        }

        fn write_if(
            &self,
            node: &mut NodeHandle,
            index: usize,
            version: u64,
            bytes: &[u8],
            raw: &mut Vec<u8>,
        ) -> Result<bool, Failure> {
            self.0.write_if(node, index, version, bytes, raw)
        }
    }

    #[test]
    fn a_bucket_in_which_the_next_writer_has_died_is_not_taken_for_what_it_was() {
        let config = Config { nodes: 1, memory: 1 << 20, cache: 1 << 20, ..Config::default() };
        let mut node = Rack::embedded(config).unwrap().node(NodeId(0));
        let config = ObjectStoreConfig { expected_keys: 1, slots: 1, ..ObjectStoreConfig::default() };
        let mut store = ObjectStore::<Mortal>::create(&mut node, &config).unwrap();
        // Each bucket takes one key, so the chains have further ones.
        (0..6_u8).for_each(|key| assert!(!store.put(&mut node, &[key], &[key]).unwrap()));
        let place = (0..store.each as usize).map(|index| (0, index));
        let mut chains = place.map(|place| Chain::read(&mut store, &mut node, place).unwrap());
        let (stale, key) = chains
            .find_map(|chain| Some((chain.further.first()?.0, chain.further.first()?.1.clone())))
            .expect("there are more keys than buckets");
        drop(chains);
        let key = store.form.entries(&key).next().expect("it has a key").0.to_vec();
        assert!(store.read_further(&mut node, 0, stale).unwrap(), "that is what it is");
        // A change makes it free, and the next one takes it.
        assert!(store.delete(&mut node, &key).unwrap());
        DIES.set(true);
        let died = (6..60).find_map(|key: u8| store.put(&mut node, &[key], &[key]).err());
        DIES.set(false);
        assert_eq!(died, Some(Error::Memory(Failure::Fenced)));
        assert!(!store.read_further(&mut node, 0, stale).unwrap(), "whoever was sent there begins again");
    }
}
