//! A value in coherent memory, under a name.

use std::fmt;
use std::marker::PhantomData;

use wire::GlobalAddr;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::making::VALUE_HEADER;
use super::spec::NamedInfo;
use crate::error::Error;
use crate::handle::NodeHandle;

/// A plain value that every node may cache, read and written whole. It lies in one block.
///
/// ```
/// use rackmem::{Config, NodeId, Rack, Value};
/// # let rack = Rack::embedded(Config { nodes: 2, memory: 1 << 20, cache: 1 << 20, ..Config::default() })?;
/// # let (mut here, mut there) = (rack.node(NodeId(0)), rack.node(NodeId(1)));
///
/// let limit = here.named::<Value<u64>>("limit").open_or(|| 100)?;
/// limit.update(&mut here, |limit| *limit *= 2)?;
/// assert_eq!(there.named::<Value<u64>>("limit").open()?.get(&mut there)?, 200);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Value<T> {
    bytes: ByteValue,
    of: PhantomData<fn(T) -> T>,
}

/// The same without a type, for bindings: so many bytes.
#[derive(Clone, Debug)]
pub struct ByteValue {
    addr: GlobalAddr,
    /// The number under which it was made: what is found under another one is another value.
    making: u64,
    len: usize,
}

impl ByteValue {
    /// What is named.
    pub fn found(info: &NamedInfo) -> Self {
        let len = usize::try_from(info.spec.value_len()).expect("it fits a block");
        Self { addr: info.addr, making: info.making, len }
    }

    /// How many bytes.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True if there are none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Reads it, as a whole.
    ///
    /// # Errors
    /// As for [`Value::get`]; [`Error::WrongLength`] if `into` has another length.
    pub fn get(&self, handle: &mut NodeHandle, into: &mut [u8]) -> Result<(), Error> {
        self.fits(into)?;
        let is_it = handle.inspect(self.addr, VALUE_HEADER + self.len, |window| {
            window.read(VALUE_HEADER, into);
            window.word(0) == self.making
        })?;
        if is_it { Ok(()) } else { Err(self.lost()) }
    }

    /// Replaces it.
    ///
    /// # Errors
    /// As for [`ByteValue::get`].
    pub fn set(&self, handle: &mut NodeHandle, from: &[u8]) -> Result<(), Error> {
        self.fits(from)?;
        self.changed(handle, |window| window.write(VALUE_HEADER, from))
    }

    /// Replaces it, if it is what is expected. False: it is something else by now.
    ///
    /// # Errors
    /// As for [`ByteValue::get`].
    pub fn set_if(&self, handle: &mut NodeHandle, expected: &[u8], from: &[u8]) -> Result<bool, Error> {
        self.fits(expected)?;
        self.fits(from)?;
        let mut is = vec![0; self.len];
        self.changed(handle, |window| {
            window.read(VALUE_HEADER, &mut is);
            let same = is == expected;
            if same {
                window.write(VALUE_HEADER, from);
            }
            same
        })
    }

    fn fits(&self, bytes: &[u8]) -> Result<(), Error> {
        let len = bytes.len();
        if len == self.len { Ok(()) } else { Err(Error::WrongLength { addr: self.addr, len: len as u64 }) }
    }

    fn changed<R>(
        &self,
        handle: &mut NodeHandle,
        change: impl FnOnce(&node::Window<'_>) -> R,
    ) -> Result<R, Error> {
        let changed = handle.update(self.addr, VALUE_HEADER + self.len, |window| {
            (window.word(0) == self.making).then(|| change(window))
        })?;
        changed.ok_or_else(|| self.lost())
    }

    const fn lost(&self) -> Error {
        Error::Lost { addr: self.addr }
    }
}

impl<T: FromBytes + IntoBytes + Immutable> Value<T> {
    /// Bytes of memory that one takes.
    pub const BYTES: u64 = (VALUE_HEADER + size_of::<T>()) as u64;

    pub(super) fn found_at(info: &NamedInfo) -> Self {
        Self { bytes: ByteValue::found(info), of: PhantomData }
    }

    /// Its value.
    ///
    /// # Errors
    /// [`Error::Lost`], [`Error::Unallocated`] if it was removed, [`Error::NodeDown`], [`Error::Fenced`].
    pub fn get(&self, handle: &mut NodeHandle) -> Result<T, Error> {
        let mut value = T::new_zeroed();
        self.bytes.get(handle, value.as_mut_bytes())?;
        Ok(value)
    }

    /// Replaces it.
    ///
    /// # Errors
    /// As for [`Value::get`].
    pub fn set(&self, handle: &mut NodeHandle, value: &T) -> Result<(), Error> {
        self.bytes.set(handle, value.as_bytes())
    }

    /// Changes it in one step. The closure must be short, and must not use the rack's memory.
    ///
    /// # Errors
    /// As for [`Value::get`].
    pub fn update<R>(&self, handle: &mut NodeHandle, change: impl FnOnce(&mut T) -> R) -> Result<R, Error> {
        self.bytes.changed(handle, |window| {
            let mut value = T::new_zeroed();
            window.read(VALUE_HEADER, value.as_mut_bytes());
            let result = change(&mut value);
            window.write(VALUE_HEADER, value.as_bytes());
            result
        })
    }

    /// Its address.
    pub const fn addr(&self) -> GlobalAddr {
        self.bytes.addr
    }
}

impl<T> Clone for Value<T> {
    fn clone(&self) -> Self {
        Self { bytes: self.bytes.clone(), of: PhantomData }
    }
}

impl<T> fmt::Debug for Value<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Value").field("addr", &self.bytes.addr).field("making", &self.bytes.making).finish()
    }
}
