//! Objects of a plain type.

use std::fmt;
use std::marker::PhantomData;

use wire::{GlobalAddr, NodeId};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::{ByteObjects, ReadError, Retry};
use crate::error::Error;
use crate::handle::NodeHandle;

/// Objects of one type in the memory of one node, for all threads of the rack. Cheap to clone.
///
/// Values are plain: any bytes are one ([`FromBytes`]), and every byte counts ([`IntoBytes`]). They begin with zeroes.
///
/// ```
/// # use rackmem::{Config, NodeId, Rack, Retry};
/// # let rack = Rack::embedded(Config { nodes: 2, memory: 1 << 20, cache: 1 << 20, ..Config::default() })?;
/// # let (mut here, mut there) = (rack.node(NodeId(0)), rack.node(NodeId(1)));
/// let accounts = here.objects::<[u64; 4]>(1000, NodeId(1))?;
/// accounts.update(&mut here, 17, |account| account[2] += 5)?;
/// assert_eq!(accounts.read(&mut there, 17, Retry::Forever)?, [0, 0, 5, 0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Objects<T> {
    bytes: ByteObjects,
    of: PhantomData<fn(T) -> T>,
}

impl NodeHandle {
    /// Allocates `count` objects of zeroes in the memory of `home`.
    ///
    /// # Errors
    /// As for [`NodeHandle::byte_objects`].
    pub fn objects<T: FromBytes + IntoBytes>(
        &mut self,
        count: usize,
        home: NodeId,
    ) -> Result<Objects<T>, Error> {
        let bytes = self.byte_objects(count, size_of::<T>(), home)?;
        Ok(Objects { bytes, of: PhantomData })
    }

    /// The objects that begin at this address.
    ///
    /// # Errors
    /// As for [`NodeHandle::byte_objects_at`]; [`Error::WrongLength`] if they are of another length than this type's values.
    pub fn objects_at<T: FromBytes + IntoBytes>(&mut self, addr: GlobalAddr) -> Result<Objects<T>, Error> {
        let bytes = self.byte_objects_at(addr)?;
        if bytes.object_len() != size_of::<T>() {
            return Err(Error::WrongLength { addr, len: size_of::<T>() as u64 });
        }
        Ok(Objects { bytes, of: PhantomData })
    }
}

impl<T: FromBytes + IntoBytes> Objects<T> {
    /// Where the first one is.
    pub fn addr(&self) -> GlobalAddr {
        self.bytes.addr()
    }

    /// How many there are.
    pub const fn count(&self) -> usize {
        self.bytes.count()
    }

    /// Reads an object whole.
    ///
    /// # Errors
    /// As for [`ByteObjects::read`].
    #[inline]
    pub fn read(&self, node: &mut NodeHandle, index: usize, retry: Retry) -> Result<T, ReadError> {
        let mut value = T::new_zeroed();
        self.read_into(node, index, &mut value, retry)?;
        Ok(value)
    }

    /// Reads an object whole into a value that is there, and returns its version.
    ///
    /// # Errors
    /// As for [`ByteObjects::read`].
    #[inline]
    pub fn read_into(
        &self,
        node: &mut NodeHandle,
        index: usize,
        value: &mut T,
        retry: Retry,
    ) -> Result<u64, ReadError> {
        self.bytes.read(node, index, value.as_mut_bytes(), retry)
    }

    /// Changes an object, alone; returns the version that it has then. Waits for other writers. The closure must be short, and
    /// must not write the same object by other ways. If it panics, the object stays as it was.
    ///
    /// # Errors
    /// As for [`ByteObjects::update`].
    pub fn update(
        &self,
        node: &mut NodeHandle,
        index: usize,
        mut change: impl FnMut(&mut T),
    ) -> Result<u64, Error>
    where
        T: Immutable,
    {
        self.bytes.update(node, index, |object| {
            let mut value = T::new_zeroed();
            object.read(0, value.as_mut_bytes());
            change(&mut value);
            object.write(0, value.as_bytes());
        })
    }

    /// Writes an object; returns the version that it has then.
    ///
    /// # Errors
    /// As for [`ByteObjects::write`].
    pub fn write(&self, node: &mut NodeHandle, index: usize, value: &T) -> Result<u64, Error>
    where
        T: Immutable,
    {
        self.bytes.write(node, index, 0, value.as_bytes())
    }

    /// Gives the objects back; see [`ByteObjects::free`].
    ///
    /// # Errors
    /// If they were freed already.
    pub fn free(self, node: &mut NodeHandle) -> Result<(), Error> {
        self.bytes.free(node)
    }
}

impl<T> Clone for Objects<T> {
    fn clone(&self) -> Self {
        Self { bytes: self.bytes.clone(), of: PhantomData }
    }
}

impl<T> fmt::Debug for Objects<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.bytes, f)
    }
}
