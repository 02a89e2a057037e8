//! Objects of plain bytes.

use std::cell::RefCell;
use std::fmt;
use std::hint::spin_loop;

use live::actor::Failure;
use live::memory::regions::{Missing, Shape, Taking, Writing};
use live::networked::verbs::{Opened, Read, Written};
use live::scheduling::give_way;
use wire::{Discipline, GlobalAddr, NodeId, Refusal};

use super::{ReadError, Retry};
use crate::error::Error;
use crate::handle::{NodeHandle, failed};

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
    region: Opened,
    len: usize,
    count: usize,
}

/// An object in the hands of the one who writes it.
pub struct ObjectWriter<'a> {
    writing: Hands<'a>,
}

enum Hands<'a> {
    /// Where it is.
    Near(Writing<'a>),
    /// A copy of it, which counts if nobody else has written it meanwhile.
    Far(RefCell<&'a mut [u8]>),
}

impl NodeHandle {
    /// Allocates `count` objects of `len` bytes of zero, in the memory of `home`.
    ///
    /// # Errors
    /// As for [`NodeHandle::alloc`].
    pub fn byte_objects(&mut self, count: usize, len: usize, home: NodeId) -> Result<ByteObjects, Error> {
        self.objects_of(Shape::objects(count, len), home)
    }

    /// The same, which no writer's death loses. Whoever writes one writes its first [`ByteObjects::FRONT`] bytes last, word by word from
    /// behind. So of a write whose writer died there is in the object what it had written: any part of what is behind the front, and the
    /// front of before; or all of that, and of the front some of its last words.
    ///
    /// # Errors
    /// As for [`NodeHandle::byte_objects`].
    pub fn byte_objects_front_last(
        &mut self,
        count: usize,
        len: usize,
        home: NodeId,
    ) -> Result<ByteObjects, Error> {
        self.objects_of(Shape::Objects { count, len, front_last: true }, home)
    }

    fn objects_of(&mut self, shape: Shape, home: NodeId) -> Result<ByteObjects, Error> {
        let Shape::Objects { len, .. } = shape else { unreachable!("of objects") };
        if len == 0 || len > ByteObjects::LONGEST {
            return Err(Error::BadSize { len: len as u64, most: ByteObjects::LONGEST as u64 });
        }
        self.alloc_region(shape, home).map(ByteObjects::of)
    }

    /// The objects that begin at this address.
    ///
    /// # Errors
    /// [`Error::Unallocated`], [`Error::WrongDiscipline`], [`Error::NotAnAllocation`] for an address inside them,
    /// [`Error::NoSuchNode`], [`Error::NodeDown`].
    pub fn byte_objects_at(&mut self, addr: GlobalAddr) -> Result<ByteObjects, Error> {
        self.region_at(addr, Discipline::Object).map(ByteObjects::of)
    }
}

impl ByteObjects {
    /// Bytes of the longest object.
    pub const LONGEST: usize = 1 << 20;
    /// Bytes that are written last of an object that is written so ([`NodeHandle::byte_objects_front_last`]).
    pub const FRONT: usize = Shape::FRONT;

    pub(crate) fn of(region: Opened) -> Self {
        let Shape::Objects { count, len, .. } = region.shape() else {
            panic!("{} has no objects", region.addr())
        };
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
        node: &mut NodeHandle,
        index: usize,
        into: &mut [u8],
        retry: Retry,
    ) -> Result<u64, ReadError> {
        if into.len() == self.len
            && let Opened::Near(region) = &self.region
            && !node.watches()
            && let Ok(Ok(version)) = region.read(index, into)
        {
            return Ok(version);
        }
        self.read_again(node, index, into, retry)
    }

    /// The first attempt came to nothing, or takes more than loads.
    #[cold]
    #[inline(never)]
    fn read_again(
        &self,
        node: &mut NodeHandle,
        index: usize,
        into: &mut [u8],
        retry: Retry,
    ) -> Result<u64, ReadError> {
        if into.len() != self.len {
            return Err(Error::WrongLength { addr: self.addr(), len: into.len() as u64 }.into());
        }
        let mut attempts = 0;
        loop {
            node.permitted()?;
            attempts += 1;
            if let Some(version) = self.read_once(node, index, into)? {
                return Ok(node.confirmed(version)?);
            }
            if !retry.again(attempts) {
                return Err(ReadError::Torn { attempts });
            }
            // The writer is about done, or was preempted: then it needs a core.
            if attempts.is_multiple_of(QUICK_ATTEMPTS) { give_way() } else { spin_loop() }
        }
    }

    /// None: it was torn.
    fn read_once(&self, node: &mut NodeHandle, index: usize, into: &mut [u8]) -> Result<Option<u64>, Error> {
        match &self.region {
            Opened::Near(region) => {
                let read = region.object(index).and_then(|object| object.read(into));
                read.map(Result::ok).map_err(|why| self.missing(why, index))
            }
            Opened::Far(far) => {
                self.check(index)?;
                if node.is_attached() {
                    return Ok(match node.ask_to_read_object(far, index, into)? {
                        Read::Whole(version) => Some(version),
                        Read::Torn => None,
                    });
                }
                let read = node.sent(|joined, context, _| joined.read_object(context, far, index, into));
                match read {
                    Ok(Read::Whole(version)) => Ok(Some(version)),
                    Ok(Read::Torn) => Ok(None),
                    Err(why) => Err(self.gone(node, why, index)),
                }
            }
        }
    }

    /// Changes an object, alone; returns the version that it has then. Waits for other writers. The closure must be short, and
    /// must not write the same object by other ways. If it panics, the object is given back as it is then.
    ///
    /// Where the object is beyond the reach of loads and stores the closure is given a copy, which is sent back; if somebody else
    /// has written the object meanwhile it runs again, on a copy of what it is then.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`]; [`Error::Unallocated`] if the objects were freed; [`Error::HalfWritten`] if a writer died in it.
    pub fn update(
        &self,
        node: &mut NodeHandle,
        index: usize,
        mut change: impl FnMut(&ObjectWriter<'_>),
    ) -> Result<u64, Error> {
        node.permitted()?;
        let Opened::Near(region) = &self.region else { return self.update_far(node, index, change) };
        let object = region.object(index).map_err(|why| self.missing(why, index))?;
        let writing = object.write().map_err(|why| self.missing(why, index))?;
        let version = writing.version();
        let writer = ObjectWriter { writing: Hands::Near(writing) };
        change(&writer);
        drop(writer);
        node.confirmed(version)
    }

    fn update_far(
        &self,
        node: &mut NodeHandle,
        index: usize,
        mut change: impl FnMut(&ObjectWriter<'_>),
    ) -> Result<u64, Error> {
        let mut copy = vec![0; self.len];
        loop {
            let version = match self.read(node, index, &mut copy, Retry::Forever) {
                Ok(version) => version,
                Err(ReadError::Failed(why)) => return Err(why),
                Err(ReadError::Torn { .. }) => continue,
            };
            change(&ObjectWriter { writing: Hands::Far(RefCell::new(&mut copy)) });
            if let Written::Done(version) = self.write_far(node, index, 0, &copy, Some(version))? {
                return Ok(version);
            }
        }
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
        match &self.region {
            Opened::Far(_) => match self.write_far(node, index, at, bytes, None)? {
                Written::Done(version) => Ok(version),
                Written::Changed => unreachable!("no version was expected"),
            },
            Opened::Near(region) if bytes.len() == self.len && !node.is_fenced() => {
                let object = region.object(index).map_err(|why| self.missing(why, index))?;
                let version = object.overwrite(bytes).map_err(|why| self.missing(why, index))?;
                node.confirmed(version)
            }
            Opened::Near(_) => self.update(node, index, |object| object.write(at, bytes)),
        }
    }

    /// Writes all of an object if it still has the version that a read has returned; returns the version that it has then, or
    /// nothing if it has another one, or somebody is writing it.
    ///
    /// # Errors
    /// [`Error::WrongLength`] unless these are all of its bytes; [`Error::OutOfBounds`], [`Error::Unallocated`], [`Error::HalfWritten`].
    pub fn write_if(
        &self,
        node: &mut NodeHandle,
        index: usize,
        version: u64,
        bytes: &[u8],
    ) -> Result<Option<u64>, Error> {
        if bytes.len() != self.len {
            return Err(Error::WrongLength { addr: self.addr(), len: bytes.len() as u64 });
        }
        let Opened::Near(region) = &self.region else {
            return Ok(match self.write_far(node, index, 0, bytes, Some(version))? {
                Written::Done(version) => Some(version),
                Written::Changed => None,
            });
        };
        node.permitted()?;
        let object = region.object(index).map_err(|why| self.missing(why, index))?;
        match object.try_take(false, Some(version)).map_err(|why| self.missing(why, index))? {
            Taking::Taken(writing) => {
                writing.write(0, bytes);
                let version = writing.version();
                drop(writing);
                node.confirmed(Some(version))
            }
            Taking::Busy | Taking::Changed => Ok(None),
        }
    }

    fn write_far(
        &self,
        node: &mut NodeHandle,
        index: usize,
        at: usize,
        bytes: &[u8],
        expected: Option<u64>,
    ) -> Result<Written, Error> {
        let Opened::Far(far) = &self.region else { unreachable!("it is not near") };
        self.check(index)?;
        if node.is_attached() {
            return node.ask_to_write_object(far, (index, at), bytes, expected);
        }
        let written =
            node.sent(|joined, context, _| joined.write_object(context, far, index, at, bytes, expected));
        written.map_err(|why| self.gone(node, why, index))
    }

    /// Gives the objects back, once those who write them are done. All operations on them are refused from now on, through
    /// whichever `ByteObjects`, also when the memory is used anew.
    ///
    /// # Errors
    /// If they were freed already.
    pub fn free(self, node: &mut NodeHandle) -> Result<(), Error> {
        node.free_of(self.addr(), self.region.incarnation())
    }

    fn check(&self, index: usize) -> Result<(), Error> {
        if index < self.count { Ok(()) } else { Err(self.missing(Missing::Beyond, index)) }
    }

    /// What a failure at the home means.
    fn gone(&self, node: &mut NodeHandle, why: Failure, index: usize) -> Error {
        match why {
            Failure::Refused(Refusal::Lost) => self.missing(Missing::Lost, index),
            // The home's NIC has one word for both.
            Failure::Refused(Refusal::Unallocated) => match node.region_at(self.addr(), Discipline::Object) {
                Ok(_) => self.missing(Missing::Lost, index),
                Err(why) => why,
            },
            why => failed(why, self.addr(), self.len as u64),
        }
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
    pub fn len(&self) -> usize {
        match &self.writing {
            Hands::Near(writing) => writing.len(),
            Hands::Far(copy) => copy.borrow().len(),
        }
    }

    /// Never: an object has bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies bytes out, from byte `at` on.
    ///
    /// # Panics
    /// If they are not all in the object.
    pub fn read(&self, at: usize, into: &mut [u8]) {
        match &self.writing {
            Hands::Near(writing) => writing.read(at, into),
            Hands::Far(copy) => into.copy_from_slice(&copy.borrow()[at..at + into.len()]),
        }
    }

    /// Copies bytes in, from byte `at` on.
    ///
    /// # Panics
    /// If they are not all in the object.
    pub fn write(&self, at: usize, bytes: &[u8]) {
        match &self.writing {
            Hands::Near(writing) => writing.write(at, bytes),
            Hands::Far(copy) => copy.borrow_mut()[at..at + bytes.len()].copy_from_slice(bytes),
        }
    }
}

impl Clone for ByteObjects {
    fn clone(&self) -> Self {
        Self { region: self.region.clone(), len: self.len, count: self.count }
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
