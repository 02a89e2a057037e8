//! Locks that outlive nodes, with their data: those in a memory with copies.
//!
//! Runs on every node. Such a lock is none of the lock machine's. It is the block lock of an allocation of coherent memory with copies,
//! which has a head and two places for the data:
//!
//! ```text
//!   word 0    MARK 32 | bytes of a place 32, or 0: the lock has ended
//!   word 1    the length that its users say, and SAID: somebody has
//!   word 2    releases; the data of the last one are in place (releases & 1)
//!   word 3    1 + the node of which a thread is inside to write, or 0
//!   word 4    1: a thread waits to write, so those who come to read give way for a moment
//!   words 8.. place 0, place 1
//! ```
//!
//! A thread that takes it gets the data into a copy of its own. Whoever leaves after writing puts them into the other place, and then
//! counts the release in the head. So each release is whole: of what a node writes to memory with copies a prefix survives. The block
//! lock of a node that dies is free in the next epoch, and whoever takes it finds the mark of the writer that did not leave.
//!
//! What must always hold:
//! 1. The place of the last release is not written to before the next one is counted.
//! 2. Only who holds the block lock to write changes anything but word 4, and nobody changes that of what is no such lock any more.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use live::actor::{ThreadContext, Wait};
use live::memory::locks::{Entered, LockCopies, counted};
use node::Window;
use wire::{Discipline, GlobalAddr, Mode, NodeId, SlotId, region_bytes};
use zerocopy::IntoBytes as _;

use crate::error::Error;
use crate::handle::NodeHandle;
use crate::lock::LockMode;
use crate::rack::{Inner, Rack};

const MARK: u64 = u32::from_le_bytes(*b"lock") as u64;
const ENDED: u64 = MARK << 32;
const SAID: u64 = 1 << 63;
/// Words of the head.
const HEAD: usize = 8;
/// Between two tries.
const SHORTEST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_micros(500);
/// Who wants to read gives way so often to a thread that waits to write, for 0.2 ms, then twice as long, 12.6 ms in all: on a busy
/// machine, too, all who read are out by then, and it has tried. It may have died.
const MOST_WAYS: u32 = 6;
const WAY: Duration = Duration::from_micros(200);
/// A node holds a bounded number of block locks at a time. One more waits so long for one of them to go.
const LONGEST_WAIT_FOR_A_SLOT: Duration = Duration::from_secs(10);

/// The locks with copies that threads of this process are inside of, by the numbers of their copies.
#[derive(Default)]
pub(crate) struct HeldLasting(Mutex<BTreeMap<u32, Held>>);

/// One of them.
#[derive(Clone, Copy)]
struct Held {
    addr: GlobalAddr,
    mode: Mode,
    /// In which the node holds the block lock.
    slot: SlotId,
    died: Option<NodeId>,
}

impl HeldLasting {
    fn all(&self) -> MutexGuard<'_, BTreeMap<u32, Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The node that has died, or was taken for dead, with a thread inside to write: nobody has written since.
    pub(super) fn writer_that_died(&self, copy: u32) -> Option<NodeId> {
        self.all().get(&copy).and_then(|held| held.died)
    }

    /// How many threads are inside of a lock to read, and whether one is to write.
    pub(crate) fn inside_of(&self, addr: GlobalAddr) -> (u32, bool) {
        let all = self.all();
        let of = |mode| all.values().filter(move |held| held.addr == addr && held.mode == mode).count();
        (of(Mode::Read) as u32, of(Mode::Write) > 0)
    }
}

impl Inner {
    /// True if a lock at this address is one of these.
    pub(crate) fn is_lasting(&self, addr: GlobalAddr) -> bool {
        self.has_copies(addr)
    }
}

/// Memory for a lock over so many bytes, which are zeroes.
pub(crate) fn make(handle: &mut NodeHandle, len: u64, memory: NodeId) -> Result<GlobalAddr, Error> {
    let most = handle.inner.largest_region();
    if len == 0 {
        return Err(Error::BadSize { len, most });
    }
    if len > most {
        return Err(Error::RegionTooLong { len, most });
    }
    let place = len.next_multiple_of(8);
    // Blocks of its own: it has their lock.
    let whole = (HEAD as u64 * 8 + 2 * place).next_multiple_of(handle.block_size().bytes());
    let addr = handle.alloc(whole, memory, Discipline::Coherent)?;
    handle.write_word(addr, MARK << 32 | place)?;
    Ok(addr)
}

/// What the first words say.
struct Head([u64; HEAD]);

/// What was found inside.
struct Found {
    bytes: Vec<u8>,
    died: Option<NodeId>,
    writer_waits: bool,
}

impl Head {
    fn read(handle: &mut NodeHandle, addr: GlobalAddr) -> Result<Self, Error> {
        let mut words = [0; HEAD];
        handle.read(addr, words.as_mut_bytes())?;
        match words[0] {
            ENDED => Err(Error::Unallocated { addr }),
            first if first >> 32 == MARK => Ok(Self(words)),
            _ => Err(Error::WrongDiscipline { addr, needs: Discipline::Locked }),
        }
    }

    const fn releases(&self) -> u64 {
        self.0[2]
    }

    fn place(&self, addr: GlobalAddr, release: u64) -> GlobalAddr {
        let bytes = self.0[0] & u64::from(u32::MAX);
        GlobalAddr::from_bits(addr.bits() + HEAD as u64 * 8 + (release & 1) * bytes)
    }

    /// True if a lock of this length, as it is said between places, is this one.
    fn is_of(&self, len: u32) -> bool {
        let fits = u64::from(region_bytes(len)) <= self.0[0] & u64::from(u32::MAX);
        fits && (self.0[1] == 0 || self.0[1] == SAID | u64::from(len))
    }

    fn writer(&self) -> Option<NodeId> {
        self.0[3].checked_sub(1).and_then(|node| u16::try_from(node).ok()).map(NodeId)
    }
}

/// Takes the lock. None: not within the wait.
pub(super) fn take<'a>(
    handle: &mut NodeHandle,
    (inner, copies): (&Inner, &'a LockCopies),
    (addr, len): (GlobalAddr, u32),
    (mode, wait): (Mode, Wait),
) -> Result<Option<Entered<'a>>, Error> {
    let (since, mut ways) = (Instant::now(), 0);
    let (slot, Found { bytes, died, .. }) = loop {
        let Some(slot) = lock_block(handle, addr, mode, (wait, since))? else { return Ok(None) };
        let found = look(handle, (addr, len), mode).inspect_err(|_| unlock(inner, handle.id(), slot))?;
        if mode == Mode::Write || !found.writer_waits {
            break (slot, found);
        }
        if ways == MOST_WAYS || wait == Wait::Not {
            note_waiting(handle, addr, false)?;
            break (slot, found);
        }
        unlock(inner, handle.id(), slot);
        std::thread::sleep(WAY * (1 << ways));
        ways += 1;
    };
    let copy = copies.own(len, mode);
    Window::new(copy.words(), 0, bytes.len()).write(0, &bytes);
    inner.lasting.all().insert(copy.number(), Held { addr, mode, slot, died });
    Ok(Some(copy))
}

/// Looks at the data of the last release. A writer says that it is inside.
fn look(handle: &mut NodeHandle, (addr, len): (GlobalAddr, u32), mode: Mode) -> Result<Found, Error> {
    let head = Head::read(handle, addr)?;
    if !head.is_of(len) {
        return Err(Error::WrongLength { addr, len: region_bytes(len).into() });
    }
    let mut bytes = vec![0; region_bytes(len) as usize];
    handle.read(head.place(addr, head.releases()), &mut bytes)?;
    if mode == Mode::Write {
        let writer = u64::from(handle.id().0) + 1;
        handle.update(addr, HEAD * 8, |window| {
            window.set_word(8, SAID | u64::from(len));
            window.set_word(24, writer);
            window.set_word(32, 0);
        })?;
    }
    Ok(Found { bytes, died: head.writer(), writer_waits: head.0[4] != 0 })
}

/// Takes the block lock, which is there for so many threads of a node at a time. Nobody waits in a line for that.
fn lock_block(
    handle: &mut NodeHandle,
    addr: GlobalAddr,
    mode: Mode,
    (wait, since): (Wait, Instant),
) -> Result<Option<SlotId>, Error> {
    let as_block = if mode == Mode::Write { LockMode::Write } else { LockMode::Read };
    let mut pause = SHORTEST_PAUSE;
    loop {
        let waited = since.elapsed();
        let goes_on = match wait {
            Wait::Not => false,
            Wait::AtMost(most) => waited.as_nanos() < u128::from(most.0),
            Wait::Forever | Wait::Reclaim => true,
        };
        match handle.lock_at_node(addr, as_block, true) {
            Err(Error::TooManyLocks { .. }) if goes_on && waited < LONGEST_WAIT_FOR_A_SLOT => {}
            Ok(None) if goes_on => {
                if mode == Mode::Write {
                    note_waiting(handle, addr, true)?;
                }
            }
            other => return other,
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Says that a thread waits to write, or that none does.
fn note_waiting(handle: &mut NodeHandle, addr: GlobalAddr, waits: bool) -> Result<(), Error> {
    if Head::read(handle, addr)?.0[4] != u64::from(waits) {
        handle.update(addr, HEAD * 8, |window| {
            let first = window.word(0);
            if first >> 32 == MARK && first != ENDED {
                window.set_word(32, waits.into());
            }
        })?;
    }
    Ok(())
}

fn unlock(inner: &Inner, node: NodeId, slot: SlotId) {
    inner.at(node, &mut ThreadContext::new(u64::from(slot.0))).unlock(slot);
}

/// A thread has left its copy.
pub(super) fn left(
    inner: &Arc<Inner>,
    (addr, len): (GlobalAddr, u32),
    (node, mode): (NodeId, Mode),
    copy: Entered<'_>,
) {
    // What it fails by is said to whoever does anything next.
    let _ = leave(inner, node, copy, |handle| match mode {
        Mode::Write => release(handle, (addr, len), copy.words()),
        Mode::Read => Ok(()),
    });
}

/// A thread that is inside to write is about to give the memory back: whoever comes in finds that it is no lock any more.
pub(super) fn say_it_has_ended(handle: &mut NodeHandle, addr: GlobalAddr) -> Result<(), Error> {
    handle.write_word(addr, ENDED)
}

/// A thread that is inside to write ends the lock. Its memory is for another lock, if it is not given back.
pub(super) fn end(
    inner: &Arc<Inner>,
    addr: GlobalAddr,
    node: NodeId,
    copy: Entered<'_>,
) -> Result<(), Error> {
    let _ = copy.leave(Mode::Write);
    leave(inner, node, copy, |handle| {
        handle.update(addr, HEAD * 8, |window| {
            window.set_word(8, 0);
            window.set_word(24, 0);
        })
    })
}

/// Does the last thing inside, and gives copy and block lock back.
fn leave<R>(
    inner: &Arc<Inner>,
    node: NodeId,
    copy: Entered<'_>,
    last: impl FnOnce(&mut NodeHandle) -> R,
) -> R {
    let held = inner.lasting.all().remove(&copy.number()).expect("who is inside holds the block lock");
    let done = last(&mut Rack { inner: Arc::clone(inner) }.node(node));
    inner.memory(node).locks.disown(copy);
    unlock(inner, node, held.slot);
    done
}

/// Makes what is in the copy the data of the lock. That fails only if this node counts no more, or if all who had the memory have died:
/// either is said to whoever does anything with it next.
fn release(
    handle: &mut NodeHandle,
    (addr, len): (GlobalAddr, u32),
    words: &[AtomicU64],
) -> Result<(), Error> {
    let head = Head::read(handle, addr)?;
    let mut bytes = vec![0; counted(words, len)];
    Window::new(words, 0, bytes.len()).read(0, &mut bytes);
    let release = head.releases() + 1;
    handle.write(head.place(addr, release), &bytes)?;
    handle.update(addr, HEAD * 8, |window| {
        window.set_word(16, release);
        window.set_word(24, 0);
    })
}
