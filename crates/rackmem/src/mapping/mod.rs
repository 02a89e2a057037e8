//! Mapped memory: coherent memory that programs reach through pointers.
//!
//! A cached access costs what the processor charges; a miss is a page fault that the rack resolves. What a program may rely on
//! is in `docs/mapped.md`.

mod pinned;

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use live::actor::ThreadContext;
use live::memory::pages::{self, MappedRange};
use live::networked::{NetworkedNode, NotMapped};
use node::{Access, Window};
use wire::{BlockTag, GlobalAddr};

use crate::addresses::in_range;
use crate::error::Error;
use crate::handle::failed;
use crate::locked::LockError;
use crate::rack::Rack;

pub use pinned::{PinnedBytes, PinnedRange};

/// Blocks that are asked for at once.
const TOGETHER: usize = 16;

/// Why memory was not mapped.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum MapError {
    /// All nodes of an embedded rack are in this process, and a pointer does not say on which of them it is used.
    Embedded,
    /// Only a node can be told to give a page back, and this process uses that of a daemon.
    Attached,
    /// The process looks at its lease at every access, which a pointer cannot do.
    Strict,
    /// The address is no multiple of 8.
    Unaligned {
        /// The address.
        addr: GlobalAddr,
    },
    /// There is no such memory.
    Memory(Error),
    /// A region that a lock has taken in is no whole pages.
    NoPages {
        /// Where it was taken from.
        addr: GlobalAddr,
        /// Its bytes.
        len: usize,
    },
    /// The lock of the regions could not be taken.
    Lock(LockError),
    /// This process cannot map memory, or not this range.
    NotMapped(NotMapped),
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Embedded => f.write_str(
                "an embedded rack has all its nodes in this process, so a pointer does not say on which one it is used: join a rack of processes to map memory",
            ),
            Self::Attached => f.write_str(
                "this process is attached to a daemon, and only a node can be told to give a page back: join the rack (`Rack::join`) to map memory",
            ),
            Self::Strict => f.write_str(
                "with `strict` every access looks at the node's lease, which a pointer cannot do: map memory in a process without it",
            ),
            Self::Unaligned { addr } => {
                write!(f, "{addr} is no multiple of 8: map memory from where its allocation starts")
            }
            Self::NoPages { addr, len } => write!(
                f,
                "the {len} bytes at {addr} that the lock has taken in are no whole pages: allocate a multiple of the rack's block size"
            ),
            Self::Lock(why) => fmt::Display::fmt(why, f),
            Self::Memory(why) => fmt::Display::fmt(why, f),
            Self::NotMapped(why) => fmt::Display::fmt(why, f),
        }
    }
}

impl std::error::Error for MapError {}

impl From<Error> for MapError {
    fn from(why: Error) -> Self {
        Self::Memory(why)
    }
}

/// A range of the rack's coherent memory, mapped into this process: its bytes have the same address in every process of the
/// rack.
///
/// Accesses are those of the language: several threads and processes use atomics, or agree on who writes when. An access waits
/// while the rack moves a page; one that can never be made, because the memory is lost or freed, or this node was declared dead,
/// ends the process with a line that says why. [`Mapping::touch`] returns an error instead.
///
/// The range is closed when this is dropped.
pub struct Mapping {
    /// Its node goes on as long as this is there.
    rack: Rack,
    range: MappedRange,
    /// Bytes before what was asked for, in its first block.
    skip: usize,
    len: usize,
}

/// Whether the system lets this process map memory. What else may stand in the way, [`Rack::map`] says.
///
/// # Errors
/// [`MapError::NotMapped`] says what to change.
pub fn can_map() -> Result<(), MapError> {
    pages::can_map().map_err(|why| MapError::NotMapped(NotMapped::Refused(Arc::new(why))))
}

impl Rack {
    /// Maps `len` bytes of coherent memory into this process, which is a node of a rack of processes.
    ///
    /// # Errors
    /// [`MapError`] says what stands in the way, and what to do about it.
    pub fn map(&self, addr: GlobalAddr, len: usize) -> Result<Mapping, MapError> {
        if self.inner.attached().is_some() {
            return Err(MapError::Attached);
        }
        let node = self.inner.joined().ok_or(MapError::Embedded)?;
        if self.inner.strict_lease().is_some() {
            return Err(MapError::Strict);
        }
        if !addr.bits().is_multiple_of(8) {
            return Err(MapError::Unaligned { addr });
        }
        let most = self.inner.config.memory;
        self.inner.in_some_memory(addr)?;
        in_range(addr, len as u64, self.inner.memories_named(), most)?;
        if len == 0 {
            return Err(Error::BadSize { len: 0, most }.into());
        }
        let block = self.inner.config.block_size;
        let skip = block.offset_in_block(addr);
        let mut context = ThreadContext::new(addr.bits());
        let range =
            node.map(&mut context, block.tag(addr).addr(), skip + len).map_err(MapError::NotMapped)?;
        let mapping = Mapping { rack: self.clone(), range, skip, len };
        // Both ends are there, and coherent: the rest lies between them, or is found out by whoever touches it.
        mapping.touch(0..1, false)?;
        mapping.touch(len - 1..len, false)?;
        Ok(mapping)
    }

    /// The address of the rack that a pointer stands for, if it points into what this process can map. It need not be mapped.
    pub fn addr_of(&self, pointer: *const u8) -> Option<GlobalAddr> {
        self.inner.joined()?.addresses().ok()?.addr_of(pointer.addr())
    }

    /// Where an address of the rack is in every process that has it mapped. None: no memory of that node is so far away from its
    /// start, or this process cannot map memory.
    pub fn pointer_to(&self, addr: GlobalAddr) -> Option<*mut u8> {
        let at = self.inner.joined()?.addresses().ok()?.pointer_to(addr)?;
        Some(std::ptr::with_exposed_provenance_mut(at))
    }
}

impl Mapping {
    /// Where it begins in the rack.
    pub fn addr(&self) -> GlobalAddr {
        self.range.addr() + self.skip as u64
    }

    /// Where it begins in every process that maps it.
    pub fn as_ptr(&self) -> *mut u8 {
        self.all().as_ptr().cast::<u8>().wrapping_add(self.skip).cast_mut()
    }

    /// How many bytes.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Never: at least a byte is mapped.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Its words. The last one is left out if only a part of it is mapped.
    pub fn words(&self) -> &[AtomicU64] {
        &self.all()[self.skip / 8..(self.skip + self.len) / 8]
    }

    /// Copies bytes out, from byte `at` on; each word as it is at some moment.
    ///
    /// # Panics
    /// If they are not all in the mapping.
    pub fn read(&self, at: usize, into: &mut [u8]) {
        self.window(at, into.len()).read(0, into);
    }

    /// Copies bytes in, from byte `at` on, word by word. Bytes that share a word with the ends of the range are read and
    /// written back: nobody else may write those at the same time.
    ///
    /// # Panics
    /// If they are not all in the mapping.
    pub fn write(&self, at: usize, bytes: &[u8]) {
        self.window(at, bytes.len()).write(0, bytes);
    }

    /// Gets the blocks of a range of bytes, to be read or also written. Accesses that follow at once wait for nothing, unless
    /// another node has taken a block back meanwhile.
    ///
    /// # Errors
    /// [`Error::OutOfRange`]; else what would end the process if a pointer were followed: [`Error::NodeDown`],
    /// [`Error::Unallocated`], [`Error::Fenced`].
    pub fn touch(&self, bytes: Range<usize>, write: bool) -> Result<(), Error> {
        let (mut context, access) = (self.context(), access(write));
        for tag in self.blocks(bytes)? {
            self.node().bring(&mut context, (tag, access), None).map_err(|why| failed(why, tag.addr(), 0))?;
        }
        Ok(())
    }

    /// Gets the blocks of a range of bytes together, many at a time: as a hint that they will be used. Blocks that cannot be had
    /// are left out.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::Fenced`].
    pub fn prefetch(&self, bytes: Range<usize>, write: bool) -> Result<(), Error> {
        let mut context = self.context();
        let tags: Vec<BlockTag> = self.blocks(bytes)?.collect();
        for tags in tags.chunks(TOGETHER) {
            let brought = self.node().bring_ahead(&mut context, tags, access(write), &[]);
            brought.map_err(|why| failed(why, tags[0].addr(), 0))?;
        }
        Ok(())
    }

    /// Gets the blocks of a range of bytes, and keeps them until the guard is dropped: no other node gets them meanwhile to
    /// write, nor any thread of this process by calls. For system calls that must not be cut short, and for what must be seen as
    /// a whole. It is a lock on blocks: who pins several ranges can wait for somebody who waits for him.
    ///
    /// # Errors
    /// As for [`Mapping::touch`]; [`Error::TooManyPinned`].
    pub fn pin(&self, bytes: Range<usize>, write: bool) -> Result<PinnedRange<&Self>, Error> {
        Self::pin_blocks(self, bytes, access(write))
    }

    /// The same, for who shares the mapping: for bindings.
    ///
    /// # Errors
    /// As for [`Mapping::pin`].
    pub fn pin_shared(
        self: &Arc<Self>,
        bytes: Range<usize>,
        write: bool,
    ) -> Result<PinnedRange<Arc<Self>>, Error> {
        Self::pin_blocks(Arc::clone(self), bytes, access(write))
    }

    /// The same, to write, as plain bytes. This process has the range mapped once, and this is borrowed while they are lent; who
    /// has pointers into it must not use them meanwhile.
    ///
    /// # Errors
    /// As for [`Mapping::pin`].
    pub fn pin_bytes(&mut self, bytes: Range<usize>) -> Result<PinnedBytes<'_>, Error> {
        let (first, len) = (self.skip + bytes.start, bytes.len());
        Ok(PinnedBytes::new(Self::pin_blocks(&*self, bytes, Access::Modified)?, first, len))
    }

    fn pin_blocks<M: Deref<Target = Self>>(
        mapping: M,
        bytes: Range<usize>,
        access: Access,
    ) -> Result<PinnedRange<M>, Error> {
        let (blocks, mut context) = (mapping.blocks(bytes)?, mapping.context());
        let mut pinned = PinnedRange::none_of(mapping);
        for tag in blocks {
            let (node, most) = (pinned.mapping().node(), pinned.mapping().range.pages().most_pinned());
            let frame = node.pin(&mut context, tag, access).map_err(|why| failed(why, tag.addr(), 0))?;
            pinned.push(frame.ok_or(Error::TooManyPinned { most })?);
        }
        Ok(pinned)
    }

    /// The blocks of a range of bytes.
    fn blocks(&self, bytes: Range<usize>) -> Result<impl Iterator<Item = BlockTag> + use<>, Error> {
        if bytes.start > bytes.end || bytes.end > self.len {
            return Err(Error::OutOfRange { addr: self.addr(), len: bytes.end as u64 });
        }
        let (from, to) = (self.addr() + bytes.start as u64, self.addr() + bytes.end as u64);
        Ok(self.range.blocks_of(from, to))
    }

    fn node(&self) -> &NetworkedNode {
        self.rack.inner.joined().expect("only joined nodes map memory")
    }

    fn context(&self) -> ThreadContext {
        ThreadContext::new(self.range.pages().seed())
    }

    fn all(&self) -> &[AtomicU64] {
        self.range.words()
    }

    fn window(&self, at: usize, len: usize) -> Window<'_> {
        assert!(at + len <= self.len, "bytes {at}+{len} of a mapping of {} B", self.len);
        Window::new(self.all(), self.skip + at, len)
    }
}

impl AsRef<[AtomicU64]> for Mapping {
    fn as_ref(&self) -> &[AtomicU64] {
        self.words()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.node().unmap(&mut self.context(), &self.range);
    }
}

const fn access(write: bool) -> Access {
    if write { Access::Modified } else { Access::Shared }
}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mapping").field("addr", &self.addr()).field("len", &self.len).finish()
    }
}
