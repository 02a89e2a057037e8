//! What nodes count of locks that have names: who asks, and the answer as words.
//!
//! A node watches the locks whose names were opened or made through it ([`live::memory::locks::LockWatches`]); so one that is only
//! used by its address is not among them. What must always hold: what is read is what was written, and nothing else is read.
//!
//! ```text
//!   lock      flags 32, readers 32 at 32 | address | number | threads that wait | fencing number | waits | holds
//!             | bytes of name | these
//! ```

use live::memory::locks::{Times, WatchedLock};
use wire::{Discipline, GlobalAddr, NodeId};
use zerocopy::IntoBytes as _;

use super::NameError;
use super::request::{Answer, Request, What, words_of};
use super::spec::NamedInfo;
use crate::error::Error;
use crate::handle::NodeHandle;
use crate::locked::Counts;
use crate::rack::{Inner, Rack};

/// Locks that one answer tells of: some 24 KiB.
pub(super) const TOLD: usize = 32;

const MAY_READ: u64 = 1;
const MAY_WRITE: u64 = 2;
const WRITER: u64 = 4;
const FLAGS: u64 = MAY_READ | MAY_WRITE | WRITER;
const HEAD: usize = 5;

impl NodeHandle {
    /// What a node knows of the locks that it watches: those whose names were opened or made through it, at most
    /// [`MOST_WATCHED`](live::memory::locks::MOST_WATCHED). By address.
    ///
    /// # Errors
    /// If the node is down.
    pub fn watched_locks(&mut self, node: NodeId) -> Result<Vec<WatchedLock>, NameError> {
        let mut all: Vec<WatchedLock> = Vec::new();
        let mut request = Request::about(What::Locks, "", node);
        loop {
            let Answer::Locks(some) = self.ask_names(&request)? else {
                return Err(Error::Broken { addr: GlobalAddr::new(node, 0) }.into());
            };
            let is_last = some.len() < TOLD;
            // Whoever answers with what was told before would be asked for ever.
            if let Some(last) = some.last().filter(|last| last.addr.bits() > request.spec.len) {
                request.spec.len = last.addr.bits();
                all.extend(some);
            } else {
                return Ok(all);
            }
            if is_last {
                return Ok(all);
            }
        }
    }

    /// The node of this handle watches the lock that somebody has opened or made.
    pub(super) fn watch(&self, info: &NamedInfo) {
        if info.spec.discipline == Discipline::Locked
            && let Ok(len) = u32::try_from(info.spec.len.next_multiple_of(8))
        {
            let len = if info.spec.counts() == Counts::AsItSays { len | wire::SIZED } else { len };
            let copies = &self.inner.memory(self.node).locks;
            copies.watches().watch((info.addr, len), &info.name, info.making);
        }
    }

    /// There is nothing under this name any more.
    pub(super) fn unwatch(&self, name: &str) {
        self.inner.memory(self.node).locks.watches().unwatch_named(name);
    }
}

impl Rack {
    /// What this process knows of the locks that its nodes watch ([`NodeHandle::watched_locks`]).
    pub fn watched_locks(&self) -> Vec<(NodeId, WatchedLock)> {
        let of = |node: NodeId| {
            self.inner
                .watched(node, GlobalAddr::default(), usize::MAX)
                .into_iter()
                .map(move |lock| (node, lock))
        };
        self.inner.here().flat_map(of).collect()
    }
}

impl Inner {
    fn watched(&self, node: NodeId, behind: GlobalAddr, most: usize) -> Vec<WatchedLock> {
        let mut all = self.memory(node).locks.watched(behind, most);
        for lock in all.iter_mut().filter(|lock| self.is_lasting(lock.addr)) {
            (lock.readers, lock.writer) = self.lasting.inside_of(lock.addr);
        }
        all
    }
}

/// What a node answers about the locks behind an address.
pub(super) fn told(handle: &Inner, node: NodeId, behind: u64) -> Vec<WatchedLock> {
    handle.watched(node, GlobalAddr::from_bits(behind), TOLD)
}

pub(super) fn put(lock: &WatchedLock, words: &mut Vec<u64>) {
    let WatchedLock { name, addr, making, waiting, fence, waits, holds, .. } = lock;
    let flags = [(lock.may_read, MAY_READ), (lock.may_write, MAY_WRITE), (lock.writer, WRITER)];
    let flags = flags.into_iter().filter(|(is_so, _)| *is_so).fold(0, |all, (_, flag)| all | flag);
    words.extend([flags | u64::from(lock.readers) << 32, addr.bits(), *making, *waiting, *fence]);
    words.extend(waits.words().chain(holds.words()));
    words.push(name.len() as u64);
    words.extend(words_of(name.as_bytes()));
}

pub(super) fn parse(words: &[u64]) -> Option<(WatchedLock, &[u64])> {
    let ([flags, addr, making, waiting, fence], rest) = words.split_first_chunk::<HEAD>()?;
    let (waits, rest) = rest.split_first_chunk::<{ Times::WORDS }>()?;
    let (holds, rest) = rest.split_first_chunk::<{ Times::WORDS }>()?;
    let (len, rest) = rest.split_first()?;
    let len = usize::try_from(*len).ok()?;
    let (name, rest) = rest.split_at_checked(len.div_ceil(8))?;
    let name = std::str::from_utf8(&name.as_bytes()[..len]).ok()?;
    if u64::from(*flags as u32) & !FLAGS != 0 {
        return None;
    }
    let lock = WatchedLock {
        name: name.into(),
        addr: GlobalAddr::from_bits(*addr),
        making: *making,
        may_read: flags & MAY_READ != 0,
        may_write: flags & MAY_WRITE != 0,
        readers: (*flags >> 32) as u32,
        writer: flags & WRITER != 0,
        waiting: *waiting,
        fence: *fence,
        waits: Times::of_words(waits),
        holds: Times::of_words(holds),
    };
    Some((lock, rest))
}

#[cfg(test)]
pub(super) fn example(name: &str) -> WatchedLock {
    let mut waits = Times::default();
    waits.buckets[3] = 5;
    WatchedLock {
        name: name.into(),
        addr: GlobalAddr::new(NodeId(3), 4096),
        making: u64::MAX,
        may_read: true,
        may_write: false,
        readers: u32::MAX,
        writer: true,
        waiting: 7,
        fence: 8,
        waits,
        holds: Times { sum: wire::Nanos(9), ..Times::default() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_of_locks_is_read_as_it_was_written_and_nothing_else() {
        let other = WatchedLock { may_read: false, may_write: true, writer: false, ..example("") };
        for lock in [example("ñame"), other, example("12345678")] {
            let mut words = Vec::new();
            put(&lock, &mut words);
            words.push(77);
            let len = lock.name.len() as u64;
            assert_eq!(parse(&words), Some((lock, &[77][..])));
            assert_eq!(parse(&words[..HEAD + 2 * Times::WORDS]), None);
            words[HEAD + 2 * Times::WORDS] = u64::MAX;
            assert_eq!(parse(&words), None, "no such name");
            words[HEAD + 2 * Times::WORDS] = len;
            words[0] |= 8;
            assert_eq!(parse(&words), None, "no such flag");
        }
    }
}
