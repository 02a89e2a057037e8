//! A lock over several regions, each of one type: values, and rows that grow.
//!
//! What must always hold: whoever has a guard sees regions that are what their types say.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use wire::{GlobalAddr, NodeId};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::error::RegionsError;
use super::guards::{RegionsReadGuard, RegionsWriteGuard};
use super::{LockedRegions, list};
use crate::error::Error;
use crate::handle::NodeHandle;
use crate::locked::error::LockError;
use crate::locked::view;

/// A region of [`LockedParts`] with any number of elements: what it begins with. While the lock is held it is a slice.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Many<T>(pub Vec<T>);

/// What can be in one region of [`LockedParts`]: a value, or [`Many`].
pub trait Part {
    /// To who reads.
    type Read<'a>
    where
        Self: 'a;
    /// To who writes.
    type Write<'a>
    where
        Self: 'a;
    /// Bytes of each element, if there may be any number of them.
    const ELEMENT: Option<usize>;

    /// What the region begins with.
    fn begins(&self) -> &[u8];

    /// None: these bytes are none.
    fn read<'a>(bytes: &'a [u8]) -> Option<Self::Read<'a>>
    where
        Self: 'a;

    /// The same, to be written.
    fn write<'a>(bytes: &'a mut [u8]) -> Option<Self::Write<'a>>
    where
        Self: 'a;
}

impl<T: FromBytes + IntoBytes + Immutable + KnownLayout> Part for T {
    type Read<'a>
        = &'a T
    where
        T: 'a;
    type Write<'a>
        = &'a mut T
    where
        T: 'a;
    const ELEMENT: Option<usize> = None;

    fn begins(&self) -> &[u8] {
        self.as_bytes()
    }

    fn read<'a>(bytes: &'a [u8]) -> Option<&'a T>
    where
        T: 'a,
    {
        const { view::is_aligned::<T>() };
        T::ref_from_bytes(bytes).ok()
    }

    fn write<'a>(bytes: &'a mut [u8]) -> Option<&'a mut T>
    where
        T: 'a,
    {
        T::mut_from_bytes(bytes).ok()
    }
}

impl<T: FromBytes + IntoBytes + Immutable + KnownLayout> Part for Many<T> {
    type Read<'a>
        = &'a [T]
    where
        T: 'a;
    type Write<'a>
        = &'a mut [T]
    where
        T: 'a;
    const ELEMENT: Option<usize> = Some(size_of::<T>());

    fn begins(&self) -> &[u8] {
        self.0.as_bytes()
    }

    fn read<'a>(bytes: &'a [u8]) -> Option<&'a [T]>
    where
        T: 'a,
    {
        const { view::is_aligned::<T>() };
        <[T]>::ref_from_bytes(bytes).ok()
    }

    fn write<'a>(bytes: &'a mut [u8]) -> Option<&'a mut [T]>
    where
        T: 'a,
    {
        <[T]>::mut_from_bytes(bytes).ok()
    }
}

/// What is in the regions of [`LockedParts`], one behind the other: a tuple of up to six, each a value or [`Many`].
pub trait Parts: Sized {
    /// All of them, to who reads.
    type Read<'a>
    where
        Self: 'a;
    /// All of them, to who writes.
    type Write<'a>
    where
        Self: 'a;
    /// Of each, the bytes of an element, if there may be any number of them.
    const ELEMENTS: &'static [Option<usize>];

    /// What the regions begin with.
    fn begin(&self) -> Vec<&[u8]>;

    /// The regions as what they are. None: they are something else.
    fn read<'a>(regions: impl Iterator<Item = &'a [u8]>) -> Option<Self::Read<'a>>
    where
        Self: 'a;

    /// The same, to be written.
    fn write<'a>(regions: impl Iterator<Item = &'a mut [u8]>) -> Option<Self::Write<'a>>
    where
        Self: 'a;
}

macro_rules! parts {
    ($($part:ident)+) => {
        impl<$($part: Part),+> Parts for ($($part,)+) {
            type Read<'a> = ($($part::Read<'a>,)+) where Self: 'a;
            type Write<'a> = ($($part::Write<'a>,)+) where Self: 'a;
            const ELEMENTS: &'static [Option<usize>] = &[$($part::ELEMENT),+];

            fn begin(&self) -> Vec<&[u8]> {
                #[allow(non_snake_case, reason = "one name for a part and its type")]
                let ($($part,)+) = self;
                vec![$($part.begins()),+]
            }

            fn read<'a>(mut regions: impl Iterator<Item = &'a [u8]>) -> Option<Self::Read<'a>>
            where
                Self: 'a,
            {
                let parts = ($($part::read(regions.next()?)?,)+);
                regions.next().is_none().then_some(parts)
            }

            fn write<'a>(mut regions: impl Iterator<Item = &'a mut [u8]>) -> Option<Self::Write<'a>>
            where
                Self: 'a,
            {
                let parts = ($($part::write(regions.next()?)?,)+);
                regions.next().is_none().then_some(parts)
            }
        }
    };
}
parts!(A);
parts!(A B);
parts!(A B C);
parts!(A B C D);
parts!(A B C D E);
parts!(A B C D E F);

/// A reader-writer lock over several regions at once, each a value or a row of them that grows: [`LockedRegions`] with types.
///
/// ```
/// # use rackmem::{Config, LockedParts, Many, NodeId, Rack};
/// # let rack = Rack::embedded(Config { nodes: 2, memory: 1 << 20, cache: 1 << 20, ..Config::default() })?;
/// # let (mut here, mut there) = (rack.node(NodeId(0)), rack.node(NodeId(1)));
/// let room = 4096; // bytes, of which each part takes 16 more
/// let queue = here.named::<LockedParts<(u64, Many<[u32; 2]>)>>("queue").open_or(|| (room, (0, Many(vec![]))))?;
/// {
///     let mut parts = queue.write(&mut here).unwrap();
///     parts.resize(1, 3).unwrap();
///     let (taken, jobs) = parts.get_mut();
///     *taken += 1;
///     jobs[2] = [7, 8];
/// }
/// let parts = queue.read(&mut there).unwrap();
/// let (taken, jobs) = parts.get();
/// assert_eq!((*taken, jobs), (1, &[[0, 0], [0, 0], [7, 8]][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct LockedParts<P> {
    regions: LockedRegions,
    parts: PhantomData<fn(P) -> P>,
}

/// The parts while the lock is held; it is released when this is dropped.
#[must_use = "the lock is released when this is dropped"]
pub struct PartsGuard<G, P> {
    regions: G,
    parts: PhantomData<fn(P) -> P>,
}

/// The parts, to be read.
pub type PartsReadGuard<'a, P> = PartsGuard<RegionsReadGuard<'a>, P>;

/// The parts, to be written. If this is dropped in a panic, they are poisoned.
pub type PartsWriteGuard<'a, P> = PartsGuard<RegionsWriteGuard<'a>, P>;

const CHECKED: &str = "it was looked at when the thread came in, and nothing else has been made of it";

impl<P: Parts> LockedParts<P> {
    /// A new one in the memory of `home`, with these parts. There is room for so many bytes: of all parts, and
    /// [`LockedRegions::ENTRY`] for each.
    ///
    /// # Errors
    /// As for [`Locked::new`](crate::Locked::new); [`Error::BadSize`] if what it begins with takes more.
    pub fn new(handle: &mut NodeHandle, home: NodeId, room: usize, parts: &P) -> Result<Self, Error> {
        Ok(Self::over(LockedRegions::beginning(handle, home, room, &Self::begins(parts))?))
    }

    /// The one at this address, with the room that it was made with. That it has these parts is found out when it is taken.
    ///
    /// # Errors
    /// As for [`Locked::at`](crate::Locked::at).
    pub fn at(handle: &NodeHandle, addr: GlobalAddr, room: usize) -> Result<Self, Error> {
        Ok(Self::over(LockedRegions::at(handle, addr, room)?))
    }

    pub(crate) const fn over(regions: LockedRegions) -> Self {
        Self { regions, parts: PhantomData }
    }

    /// What follows the header.
    pub(crate) fn begins(parts: &P) -> Vec<u8> {
        list::filled(&parts.begin())
    }

    /// The same lock, without types.
    pub const fn regions(&self) -> &LockedRegions {
        &self.regions
    }

    /// Its address, for other processes.
    pub const fn addr(&self) -> GlobalAddr {
        self.regions.addr()
    }

    /// Waits for the lock, and gives its memory back.
    ///
    /// # Errors
    /// As for [`Locked::free`](crate::Locked::free).
    pub fn free(self, handle: &mut NodeHandle) -> Result<(), Error> {
        self.regions.free(handle)
    }

    /// Waits for the parts, to read them together with others.
    ///
    /// # Errors
    /// As for [`Locked::read`](crate::Locked::read); [`Error::Broken`] if the lock has other parts.
    pub fn read(&self, handle: &mut NodeHandle) -> Result<PartsReadGuard<'_, P>, LockError> {
        Ok(PartsReadGuard::of(self.regions.read(handle)?, self.addr())?)
    }

    /// Waits for the parts, to write them alone.
    ///
    /// # Errors
    /// As for [`LockedParts::read`].
    pub fn write(&self, handle: &mut NodeHandle) -> Result<PartsWriteGuard<'_, P>, LockError> {
        Ok(PartsWriteGuard::of(self.regions.write(handle)?, self.addr())?)
    }

    /// Waits for the parts at most so long, to read them; not at all, if that is zero.
    ///
    /// # Errors
    /// As for [`LockedParts::read`].
    pub fn read_timeout(
        &self,
        handle: &mut NodeHandle,
        most: Duration,
    ) -> Result<Option<PartsReadGuard<'_, P>>, LockError> {
        let guard = self.regions.read_timeout(handle, most)?;
        Ok(guard.map(|guard| PartsReadGuard::of(guard, self.addr())).transpose()?)
    }

    /// Waits for the parts at most so long, to write them; not at all, if that is zero.
    ///
    /// # Errors
    /// As for [`LockedParts::read`].
    pub fn write_timeout(
        &self,
        handle: &mut NodeHandle,
        most: Duration,
    ) -> Result<Option<PartsWriteGuard<'_, P>>, LockError> {
        let guard = self.regions.write_timeout(handle, most)?;
        Ok(guard.map(|guard| PartsWriteGuard::of(guard, self.addr())).transpose()?)
    }

    /// Waits for the parts, to write them, also if they are poisoned. They are not any more.
    ///
    /// # Errors
    /// As for [`LockedRegions::write_poisoned`]; [`Error::Broken`] if the lock has other parts.
    pub fn write_poisoned(&self, handle: &mut NodeHandle) -> Result<PartsWriteGuard<'_, P>, Error> {
        PartsWriteGuard::of(self.regions.write_poisoned(handle)?, self.addr())
    }
}

impl<'a, G: AsRef<RegionsReadGuard<'a>>, P: Parts> PartsGuard<G, P> {
    fn of(regions: G, addr: GlobalAddr) -> Result<Self, Error> {
        P::read(regions.as_ref().iter()).ok_or(Error::Broken { addr })?;
        Ok(Self { regions, parts: PhantomData })
    }

    /// References to all parts: to a value, or to a slice of many.
    pub fn get<'b>(&'b self) -> P::Read<'b>
    where
        'a: 'b,
    {
        P::read(self.regions.as_ref().iter()).expect(CHECKED)
    }

    /// As [`RegionsReadGuard::writer_that_died`].
    pub fn writer_that_died(&self) -> Option<NodeId> {
        self.regions.as_ref().writer_that_died()
    }
}

impl<P: Parts> PartsWriteGuard<'_, P> {
    /// References to all parts, to be written.
    pub fn get_mut(&mut self) -> P::Write<'_> {
        P::write(self.regions.iter_mut()).expect(CHECKED)
    }

    /// Makes a part of [`Many`] longer, with zeroes, or shorter: to so many elements. Parts are numbered from 0.
    ///
    /// # Errors
    /// As for [`RegionsWriteGuard::resize`]; [`RegionsError::IsOne`] of a part that is one value.
    pub fn resize(&mut self, part: usize, elements: usize) -> Result<(), RegionsError> {
        let count = P::ELEMENTS.len();
        let element = P::ELEMENTS.get(part).ok_or(RegionsError::NoSuchRegion { number: part, count })?;
        let element = element.ok_or(RegionsError::IsOne { number: part })?;
        self.regions.resize(part, elements.saturating_mul(element))
    }

    /// The fencing number of this grant, as of [`LockedWriteGuard::fence`](crate::LockedWriteGuard::fence).
    pub fn fence(&self) -> u64 {
        self.regions.fence()
    }
}

impl<P> Clone for LockedParts<P> {
    fn clone(&self) -> Self {
        Self { regions: self.regions.clone(), parts: PhantomData }
    }
}

impl<P> fmt::Debug for LockedParts<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockedParts").field("addr", &self.regions.addr()).finish_non_exhaustive()
    }
}
