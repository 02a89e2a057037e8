//! A value in coherent memory, under a name.

use std::fmt;
use std::marker::PhantomData;

use wire::GlobalAddr;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::making::VALUE_HEADER;
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
    addr: GlobalAddr,
    /// The number under which it was made: what is found under another one is another value.
    making: u64,
    of: PhantomData<fn(T) -> T>,
}

impl<T: FromBytes + IntoBytes + Immutable> Value<T> {
    /// Bytes of memory that one takes.
    pub const BYTES: u64 = (VALUE_HEADER + size_of::<T>()) as u64;

    pub(super) const fn made(addr: GlobalAddr, making: u64) -> Self {
        Self { addr, making, of: PhantomData }
    }

    /// Its value.
    ///
    /// # Errors
    /// [`Error::Lost`], [`Error::Unallocated`] if it was removed, [`Error::NodeDown`], [`Error::Fenced`].
    pub fn get(&self, handle: &mut NodeHandle) -> Result<T, Error> {
        let mut value = T::new_zeroed();
        let is_it = handle.inspect(self.addr, Self::BYTES as usize, |window| {
            window.read(VALUE_HEADER, value.as_mut_bytes());
            window.word(0) == self.making
        })?;
        if is_it { Ok(value) } else { Err(self.lost()) }
    }

    /// Replaces it.
    ///
    /// # Errors
    /// As for [`Value::get`].
    pub fn set(&self, handle: &mut NodeHandle, value: &T) -> Result<(), Error> {
        self.changed(handle, |window| window.write(VALUE_HEADER, value.as_bytes()))
    }

    /// Changes it in one step. The closure must be short, and must not use the rack's memory.
    ///
    /// # Errors
    /// As for [`Value::get`].
    pub fn update<R>(&self, handle: &mut NodeHandle, change: impl FnOnce(&mut T) -> R) -> Result<R, Error> {
        self.changed(handle, |window| {
            let mut value = T::new_zeroed();
            window.read(VALUE_HEADER, value.as_mut_bytes());
            let result = change(&mut value);
            window.write(VALUE_HEADER, value.as_bytes());
            result
        })
    }

    fn changed<R>(
        &self,
        handle: &mut NodeHandle,
        change: impl FnOnce(&node::Window<'_>) -> R,
    ) -> Result<R, Error> {
        let changed = handle.update(self.addr, Self::BYTES as usize, |window| {
            (window.word(0) == self.making).then(|| change(window))
        })?;
        changed.ok_or_else(|| self.lost())
    }

    const fn lost(&self) -> Error {
        Error::Lost { addr: self.addr }
    }

    /// Its address.
    pub const fn addr(&self) -> GlobalAddr {
        self.addr
    }
}

impl<T> Clone for Value<T> {
    fn clone(&self) -> Self {
        Self { addr: self.addr, making: self.making, of: PhantomData }
    }
}

impl<T> fmt::Debug for Value<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Value").field("addr", &self.addr).field("making", &self.making).finish()
    }
}
