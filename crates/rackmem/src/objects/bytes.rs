//! Objects of plain bytes.

use std::fmt;
use std::hint::spin_loop;
use std::sync::Arc;
use std::thread;

use live::memory::one_sided::{Missing, Object, Region, Shape, Writing};
use wire::{Discipline, GlobalAddr, NodeId};

use super::{ReadError, Retry};
use crate::error::Error;
use crate::handle::NodeHandle;

/// Attempts between which a reader only waits a moment; after as many it lets others run.
const QUICK_ATTEMPTS: u64 = 16;

/// Objects of one length in the memory of one node, for all threads of the rack. Cheap to clone.
///
/// Every object has a version, which grows by two with every update. A read returns the version that it has read. Every
/// operation names the calling thread's handle: whose node asks.
///
/// ```
/// # use rackmem::{Config, NodeId, Rack, Retry};
/// # let rack = Rack::embedded(Config { nodes: 2, memory: 1 << 20, cache: 1 << 20, ..Config::default() })?;
/// # let (mut here, mut there) = (rack.node(NodeId(0)), rack.node(NodeId(1)));
/// let pages = here.byte_objects(10, 500, NodeId(1))?;
/// pages.write(&mut here, 3, 0, b"hello")?;
/// pages.update(&mut here, 3, |page| page.write(5, b", world"))?;
///
/// let mut page = [0; 500];
/// let version = pages.read(&mut there, 3, &mut page, Retry::Times(100))?;
/// assert_eq!(&page[..12], b"hello, world");
/// assert_eq!(version, 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ByteObjects {
    region: Arc<Region>,
    len: usize,
    count: usize,
}

/// An object in the hands of the one who writes it.
pub struct ObjectWriter<'a> {
    writing: Writing<'a>,
}

impl NodeHandle {
    /// Allocates `count` objects of `len` bytes of zero, in the memory of `home`.
    ///
    /// # Errors
    /// As for [`NodeHandle::alloc`]; [`Error::NotEmbedded`] on a rack of processes.
    pub fn byte_objects(&mut self, count: usize, len: usize, home: NodeId) -> Result<ByteObjects, Error> {
        if len == 0 || len > ByteObjects::LONGEST {
            return Err(Error::BadSize { len: len as u64, most: ByteObjects::LONGEST as u64 });
        }
        self.alloc_region(Shape::Objects { count, len }, home).map(ByteObjects::of)
    }

    /// The objects that begin at this address.
    ///
    /// # Errors
    /// [`Error::Unallocated`], [`Error::WrongDiscipline`], [`Error::NotAnAllocation`] for an address inside them,
    /// [`Error::NoSuchNode`], [`Error::NotEmbedded`].
    pub fn byte_objects_at(&self, addr: GlobalAddr) -> Result<ByteObjects, Error> {
        self.region_at(addr, Discipline::Object).map(ByteObjects::of)
    }
}

impl ByteObjects {
    /// Bytes of the longest object.
    pub const LONGEST: usize = 1 << 20;

    fn of(region: Arc<Region>) -> Self {
        let Shape::Objects { count, len } = region.shape() else { panic!("{region:?} has no objects") };
        Self { region, len, count }
    }

    /// Where the first one is.
    pub fn addr(&self) -> GlobalAddr {
        self.region.addr()
    }

    /// How many there are.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Bytes of each.
    pub const fn object_len(&self) -> usize {
        self.len
    }

    /// Reads an object whole, into the caller's buffer, and returns its version. Nothing is in between: what the buffer has
    /// after an error may be bytes of several versions.
    ///
    /// # Errors
    /// [`ReadError::Torn`] if a writer came between as often as `retry` allows; otherwise [`Error::OutOfBounds`],
    /// [`Error::WrongLength`] for a buffer of another length, [`Error::Unallocated`] if the objects were freed, [`Error::HalfWritten`] if
    /// a writer died in it.
    #[inline]
    pub fn read(
        &self,
        _node: &mut NodeHandle,
        index: usize,
        into: &mut [u8],
        retry: Retry,
    ) -> Result<u64, ReadError> {
        if into.len() == self.len
            && let Ok(Ok(version)) = self.region.read(index, into)
        {
            return Ok(version);
        }
        self.read_again(index, into, retry)
    }

    /// The first attempt came to nothing.
    #[cold]
    #[inline(never)]
    fn read_again(&self, index: usize, into: &mut [u8], retry: Retry) -> Result<u64, ReadError> {
        if into.len() != self.len {
            return Err(Error::WrongLength { addr: self.addr(), len: into.len() as u64 }.into());
        }
        let object = self.find(index)?;
        let mut attempts = 1;
        while retry.again(attempts) {
            // The writer is about done, or was preempted: then it needs a core.
            if attempts.is_multiple_of(QUICK_ATTEMPTS) {
                thread::yield_now()
            } else {
                spin_loop()
            }
            attempts += 1;
            match object.read(into) {
                Ok(Ok(version)) => return Ok(version),
                Ok(Err(_)) => {}
                Err(why) => return Err(self.missing(why, index).into()),
            }
        }
        Err(ReadError::Torn { attempts })
    }

    /// Changes an object, alone; returns the version that it has then. Waits for other writers. The closure must be short, and
    /// must not write the same object by other ways. If it panics, the object is given back as it is then.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`]; [`Error::Unallocated`] if the objects were freed; [`Error::HalfWritten`] if a writer died in it.
    pub fn update(
        &self,
        _node: &mut NodeHandle,
        index: usize,
        change: impl FnOnce(&ObjectWriter<'_>),
    ) -> Result<u64, Error> {
        let writing = self.find(index)?.write().map_err(|why| self.missing(why, index))?;
        let writer = ObjectWriter { writing };
        change(&writer);
        Ok(writer.writing.version())
    }

    /// Writes bytes from byte `at` of an object on; returns the version that it has then. In the form that can be sent to the
    /// home.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if they are not all in the object; [`Error::OutOfBounds`], [`Error::Unallocated`]; [`Error::HalfWritten`] unless
    /// they are all of it.
    pub fn write(&self, node: &mut NodeHandle, index: usize, at: usize, bytes: &[u8]) -> Result<u64, Error> {
        if at.checked_add(bytes.len()).is_none_or(|end| end > self.len) {
            return Err(Error::OutOfRange { addr: self.addr(), len: bytes.len() as u64 });
        }
        if bytes.len() == self.len {
            return self.find(index)?.overwrite(bytes).map_err(|why| self.missing(why, index));
        }
        self.update(node, index, |object| object.write(at, bytes))
    }

    /// Gives the objects back, once those who write them are done. All operations on them are refused from now on, through
    /// whichever `ByteObjects`, also when the memory is used anew.
    ///
    /// # Errors
    /// If they were freed already.
    pub fn free(self, node: &mut NodeHandle) -> Result<(), Error> {
        node.free(self.addr())
    }

    fn find(&self, index: usize) -> Result<Object<'_>, Error> {
        self.region.object(index).map_err(|why| self.missing(why, index))
    }

    #[cold]
    #[inline(never)]
    fn missing(&self, why: Missing, index: usize) -> Error {
        match why {
            Missing::Ended => Error::Unallocated { addr: self.addr() },
            Missing::HomeDied => Error::NodeDown { addr: self.addr() },
            Missing::Lost => Error::HalfWritten { addr: self.addr(), index },
            Missing::Beyond => Error::OutOfBounds { index, count: self.count },
        }
    }
}

impl ObjectWriter<'_> {
    /// Bytes of the object.
    pub const fn len(&self) -> usize {
        self.writing.len()
    }

    /// Never: an object has bytes.
    pub const fn is_empty(&self) -> bool {
        self.writing.is_empty()
    }

    /// Copies bytes out, from byte `at` on.
    ///
    /// # Panics
    /// If they are not all in the object.
    pub fn read(&self, at: usize, into: &mut [u8]) {
        self.writing.read(at, into);
    }

    /// Copies bytes in, from byte `at` on.
    ///
    /// # Panics
    /// If they are not all in the object.
    pub fn write(&self, at: usize, bytes: &[u8]) {
        self.writing.write(at, bytes);
    }
}

impl Clone for ByteObjects {
    fn clone(&self) -> Self {
        Self { region: Arc::clone(&self.region), len: self.len, count: self.count }
    }
}

impl fmt::Debug for ByteObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByteObjects")
            .field("addr", &self.addr())
            .field("count", &self.count)
            .field("len", &self.len)
            .finish()
    }
}
