//! The names of a memory with copies, as they are kept in it: so they outlive the nodes that keep them.
//!
//! ```text
//!   root   the memory's first block: mark | first page | number of the last thing made | epoch behind which fencing numbers begin |
//!          not ours: marks of block locks (`lock/marks.rs`)
//!   page   32 slots of 512 bytes, allocated; in place of its first slot: the next page
//!   slot   state | call that has made it | bytes of what follows | as in an answer (`request.rs`)
//! ```
//!
//! The node that serves the memory serves its names, and reads them first. What must always hold: who reads or changes what is here
//! has the lock of the root's block, and serves the memory; a slot is in use only when all that it says is there, as what survives a
//! node is a prefix of what it wrote.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use wire::{Discipline, GlobalAddr, NodeId};
use zerocopy::IntoBytes as _;

use super::MOST_NAMES;
use super::directory::{Directory, Named};
use super::request::{info_of, put_info};
use crate::error::Error;
use crate::handle::NodeHandle;
use crate::lock::BlockLock;

/// `names` and the version of this layout.
const MARK: u64 = u64::from_le_bytes(*b"names\0\0\x02");
const SLOT: usize = 512;
const PAGE: usize = 32 * SLOT;
/// Pages that hold as many names as there can be.
const MOST_PAGES: usize = MOST_NAMES.div_ceil(PAGE / SLOT - 1);
/// Words in front of what a slot says.
const HEAD: usize = 3;

/// What a slot is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing.
    Free = 0,
    /// It says what a name names.
    Used = 1,
    /// The same, until what it names is taken away. If whoever does so dies, the name is gone.
    Going = 2,
}

/// The names of one memory, for whichever node serves it.
pub(super) struct Kept {
    memory: NodeId,
    /// In which epoch, and one more, they were read. 0: not at all, or they may have changed since.
    read_in: AtomicU64,
    /// Whoever has this may wait for messages: it is not for threads that receive some.
    read: Mutex<Read>,
}

/// What was read of them.
#[derive(Default)]
struct Read {
    root: [u64; 4],
    last_page: u64,
    slots: BTreeMap<String, GlobalAddr>,
    free: Vec<GlobalAddr>,
}

impl Kept {
    pub(super) const fn of(memory: NodeId) -> Self {
        let read = Read { root: [0; 4], last_page: 0, slots: BTreeMap::new(), free: Vec::new() };
        Self { memory, read_in: AtomicU64::new(0), read: Mutex::new(read) }
    }

    fn read(&self) -> MutexGuard<'_, Read> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    const fn root(&self) -> GlobalAddr {
        GlobalAddr::new(self.memory, 0)
    }

    /// True if what was read counts in this epoch: only the node that serves the memory changes it.
    pub(super) fn is_read(&self, epoch: u32) -> bool {
        self.read_in.load(Ordering::Acquire) == u64::from(epoch) + 1
    }

    /// What was read does not count any more.
    pub(super) fn forget(&self) {
        self.read_in.store(0, Ordering::Release);
    }

    /// Gets the lock, and reads the names unless they are known. None: another node serves them, or will in a moment.
    pub(super) fn enter(
        &self,
        handle: &mut NodeHandle,
        directory: &Mutex<Directory>,
    ) -> Result<Option<BlockLock>, Error> {
        let Some(view) = handle.inner.joined().map(|node| node.view()) else { return Ok(None) };
        let lock = match handle.lock_block_unmarked(self.root()) {
            Err(Error::TooManyLocks { .. }) => return Ok(None),
            lock => lock?,
        };
        if handle.inner.server_of(self.memory) != Some(handle.node) {
            return Ok(None);
        }
        let Some(life) = view.life_of(self.memory) else { return Ok(None) };
        let epoch = view.epoch.0;
        if !self.is_read(epoch) {
            let found = self.load(handle, (life.0, view.is_again(self.memory)))?;
            *directory.lock().unwrap_or_else(PoisonError::into_inner) = found;
            self.read_in.store(u64::from(epoch) + 1, Ordering::Release);
        }
        Ok(Some(lock))
    }

    fn load(&self, handle: &mut NodeHandle, (life, again): (u32, bool)) -> Result<Directory, Error> {
        let mut found = Read::default();
        handle.read(self.root(), found.root.as_mut_bytes())?;
        let [mark, mut next, last, fenced] = found.root;
        if ![0, MARK].contains(&mark) {
            return Err(Error::Broken { addr: self.root() });
        }
        // A memory of which all copies were lost begins anew, and what had names in it is lost.
        let mut directory = Directory::new(life, again);
        directory.begin_behind(last, fenced as u32);
        let (mut page, mut pages) = (vec![0; PAGE / 8], 0);
        while next != 0 {
            let addr = GlobalAddr::from_bits(next);
            pages += 1;
            if pages > MOST_PAGES {
                return Err(Error::Broken { addr });
            }
            handle.read(addr, page.as_mut_bytes())?;
            for (slot, words) in (0_u64..).zip(page.chunks_exact(SLOT / 8)).skip(1) {
                let at = addr + slot * SLOT as u64;
                let broken = Error::Broken { addr: at };
                match parse(words).ok_or(broken)? {
                    Some(named) if found.slots.contains_key(&named.info.name) => return Err(broken),
                    Some(named) => {
                        found.slots.insert(named.info.name.clone(), at);
                        directory.insert(named);
                    }
                    None => found.free.push(at),
                }
            }
            found.last_page = next;
            next = page[0];
        }
        *self.read() = found;
        Ok(directory)
    }

    /// Makes room for one more name.
    pub(super) fn make_room(&self, handle: &mut NodeHandle) -> Result<(), Error> {
        let mut read = self.read();
        if !read.free.is_empty() {
            return Ok(());
        }
        let page = handle.alloc(PAGE as u64, self.memory, Discipline::Coherent)?;
        match read.last_page {
            0 => read.root[1] = page.bits(),
            last => handle.write_word(GlobalAddr::from_bits(last), page.bits())?,
        }
        read.last_page = page.bits();
        read.free.extend((1..(PAGE / SLOT) as u64).rev().map(|slot| page + slot * SLOT as u64));
        Ok(())
    }

    /// Keeps a name, for which there is room. After an error it is not known whether it will be found.
    pub(super) fn put(&self, handle: &mut NodeHandle, named: &Named, begun: (u64, u32)) -> Result<(), Error> {
        let mut read = self.read();
        let slot = read.free.pop().expect("room was made");
        let mut words = vec![0, named.call, 0];
        put_info(&named.info, &mut words);
        words[2] = (words.len() - HEAD) as u64 * 8;
        handle.write(slot, words.as_bytes())?;
        self.write_root(handle, &mut read, begun)?;
        handle.write_word(slot, State::Used as u64)?;
        read.slots.insert(named.info.name.clone(), slot);
        Ok(())
    }

    /// What becomes of a name's slot.
    pub(super) fn set(
        &self,
        handle: &mut NodeHandle,
        name: &str,
        state: State,
        begun: (u64, u32),
    ) -> Result<(), Error> {
        let mut read = self.read();
        let Some(slot) = read.slots.get(name).copied() else { return Ok(()) };
        self.write_root(handle, &mut read, begun)?;
        handle.write_word(slot, state as u64)?;
        if state == State::Free {
            read.slots.remove(name);
            read.free.push(slot);
        }
        Ok(())
    }

    /// Numbers that were given are not given again by whoever serves the names next.
    fn write_root(
        &self,
        handle: &mut NodeHandle,
        read: &mut Read,
        (last, fenced): (u64, u32),
    ) -> Result<(), Error> {
        let root = [MARK, read.root[1], last, fenced.into()];
        if root != read.root {
            handle.write(self.root(), root.as_bytes())?;
            read.root = root;
        }
        Ok(())
    }
}

/// What a slot says. None: nonsense.
fn parse(words: &[u64]) -> Option<Option<Named>> {
    let ([state, call, bytes], rest) = words.split_first_chunk::<HEAD>()?;
    if *state != State::Used as u64 {
        return (*state <= State::Going as u64).then_some(None);
    }
    let said = rest.get(..usize::try_from(*bytes).ok()? / 8)?;
    let (info, rest) = info_of(said)?;
    rest.is_empty().then_some(Some(Named { info, call: *call }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::named::{LONGEST_NAME, NamedInfo, NamedSpec};

    #[test]
    fn the_longest_name_of_the_longest_type_fits_a_slot_and_nonsense_is_none() {
        let tag = "t".repeat(NamedSpec::LONGEST_TAG);
        let spec = NamedSpec { discipline: Discipline::Coherent, len: 9, count: 1, tag, version: 3 };
        let (addr, maker) = (GlobalAddr::new(NodeId(5), 4096), NodeId(1));
        let name = "n".repeat(LONGEST_NAME);
        let info = NamedInfo { name, spec, addr, making: 7, maker, copies: 2, life: 9, opened: 0 };
        let mut words = vec![1, 8, 0];
        put_info(&info, &mut words);
        words[2] = (words.len() - HEAD) as u64 * 8;
        assert!(words.len() * 8 <= SLOT, "{} bytes", words.len() * 8);
        words.resize(SLOT / 8, 0);
        let found = parse(&words).unwrap().unwrap();
        assert_eq!((found.info, found.call), (info, 8));
        for (at, word) in [(0, 3), (2, 0), (2, u64::MAX), (2, 64), (3, 255)] {
            let mut nonsense = words.clone();
            nonsense[at] = word;
            assert!(parse(&nonsense).is_none(), "{word} at {at}");
        }
        for state in [State::Free, State::Going] {
            words[0] = state as u64;
            assert!(parse(&words).unwrap().is_none(), "nothing has that name");
        }
    }
}
