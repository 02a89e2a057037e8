//! The regions while their lock is held.

use std::mem::ManuallyDrop;
use std::ops::{Deref, Range};

use wire::{GlobalAddr, NodeId};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::error::RegionsError;
use super::list::{ENTRY, LIST, List, MOST};
use crate::error::Error;
use crate::handle::NodeHandle;
use crate::locked::bytes::{BytesReadGuard, BytesWriteGuard};
use crate::locked::header;
use crate::locked::inside::{Inside, InsideTo, Version};
use crate::locked::view;

/// The regions, to be read. The lock is released when this is dropped.
#[must_use = "the lock is released when this is dropped"]
pub struct RegionsReadGuard<'a> {
    inside: Inside<'a>,
}

/// The regions, to be written and changed. The lock is released when this is dropped; if that happens in a panic, it is poisoned.
#[must_use = "the lock is released when this is dropped"]
pub struct RegionsWriteGuard<'a> {
    regions: RegionsReadGuard<'a>,
    was_panicking: bool,
}

fn checked<'a>(inside: &'a Inside<'_>) -> Result<List<'a>, Error> {
    List::of(inside.words()).ok_or(Error::Broken { addr: inside.addr() })
}

fn list<'a>(inside: &'a Inside<'_>) -> List<'a> {
    List::of(inside.words()).expect("it was one when the thread came in, and only this file has changed it")
}

/// The guard of bytes is one of regions.
fn is_list(inside: &Inside<'_>) -> Result<(), Error> {
    if inside.is_sized() { checked(inside).map(drop) } else { Err(Error::Broken { addr: inside.addr() }) }
}

impl<'a> RegionsReadGuard<'a> {
    pub(super) fn of(inside: Inside<'a>) -> Result<Self, Error> {
        checked(&inside)?;
        Ok(Self { inside })
    }

    /// Of a thread that stays inside when this is gone.
    pub(super) fn held(inside: ManuallyDrop<Inside<'a>>) -> Result<ManuallyDrop<Self>, Error> {
        checked(&inside)?;
        Ok(ManuallyDrop::new(Self { inside: ManuallyDrop::into_inner(inside) }))
    }

    /// Of [`LockedRegions::as_bytes`](crate::LockedRegions::as_bytes).
    ///
    /// # Errors
    /// [`Error::Broken`], and the guard as it was, if that is no lock over regions.
    pub fn of_bytes(guard: BytesReadGuard<'a>) -> Result<Self, (Error, BytesReadGuard<'a>)> {
        match is_list(&guard.inside) {
            Ok(()) => Ok(Self { inside: guard.inside.into_inside() }),
            Err(why) => Err((why, guard)),
        }
    }

    /// The guard that this was made of.
    pub fn into_bytes(self) -> BytesReadGuard<'a> {
        let len = size_of_val(self.inside.words());
        BytesReadGuard { inside: InsideTo::new(self.inside), len }
    }
}

impl RegionsReadGuard<'_> {
    /// How many regions there are.
    pub fn len(&self) -> usize {
        list(&self.inside).count()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of a region, by its number, from 0.
    pub fn get(&self, number: usize) -> Option<&[u8]> {
        let list = list(&self.inside);
        (number < list.count()).then(|| &view::bytes(&self.inside, list.used())[list.place(number)])
    }

    /// A region as values. None: there is no such region, or its bytes are no whole number of them.
    pub fn values<T: FromBytes + Immutable + KnownLayout>(&self, number: usize) -> Option<&[T]> {
        <[T]>::ref_from_bytes(self.get(number)?).ok()
    }

    /// All of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).filter_map(|number| self.get(number))
    }

    /// Where a region's bytes are among those of its lock ([`BytesReadGuard::words`]): for bindings, whose programs use pointers.
    pub fn place(&self, number: usize) -> Option<Range<usize>> {
        let list = list(&self.inside);
        (number < list.count()).then(|| list.place(number))
    }

    /// Of a lock with copies: the node that has died, or was taken for dead, while one of its threads was inside to write, if nobody has
    /// written since. What it had begun is not here: the regions are those of the last release.
    pub fn writer_that_died(&self) -> Option<NodeId> {
        self.inside.came().writer_that_died()
    }

    /// Which version of the regions this is.
    pub(super) fn version(&self) -> Option<Version> {
        self.inside.version()
    }

    /// Where the memory of a region was taken from. None: there is no such region, or it was made here.
    pub fn taken_from(&self, number: usize) -> Option<GlobalAddr> {
        let list = list(&self.inside);
        let from = (number < list.count()).then(|| list.taken_from(number))?;
        (from != 0).then(|| GlobalAddr::from_bits(from))
    }
}

impl<'a> AsRef<Self> for RegionsReadGuard<'a> {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl<'a> AsRef<RegionsReadGuard<'a>> for RegionsWriteGuard<'a> {
    fn as_ref(&self) -> &RegionsReadGuard<'a> {
        &self.regions
    }
}

/// What may be done by who reads.
impl<'a> Deref for RegionsWriteGuard<'a> {
    type Target = RegionsReadGuard<'a>;

    fn deref(&self) -> &RegionsReadGuard<'a> {
        &self.regions
    }
}

impl<'a> RegionsWriteGuard<'a> {
    pub(super) fn of(inside: Inside<'a>) -> Result<Self, Error> {
        let regions = RegionsReadGuard::of(inside)?;
        regions.inside.granted();
        Ok(Self { regions, was_panicking: std::thread::panicking() })
    }

    /// Of a thread that stays inside when this is gone.
    pub(super) fn held(inside: ManuallyDrop<Inside<'a>>) -> Result<ManuallyDrop<Self>, Error> {
        let regions = ManuallyDrop::into_inner(RegionsReadGuard::held(inside)?);
        Ok(ManuallyDrop::new(Self { regions, was_panicking: false }))
    }

    /// Of [`LockedRegions::as_bytes`](crate::LockedRegions::as_bytes). The fencing number is as it was.
    ///
    /// # Errors
    /// As for [`RegionsReadGuard::of_bytes`].
    pub fn of_bytes(guard: BytesWriteGuard<'a>) -> Result<Self, (Error, BytesWriteGuard<'a>)> {
        match is_list(&guard.inside) {
            Ok(()) => {
                let regions = RegionsReadGuard { inside: guard.inside.into_inside() };
                Ok(Self { regions, was_panicking: std::thread::panicking() })
            }
            Err(why) => Err((why, guard)),
        }
    }

    /// The guard that this was made of.
    pub fn into_bytes(self) -> BytesWriteGuard<'a> {
        let stays = ManuallyDrop::new(self);
        let inside = stays.regions.inside.came().stays();
        let len = size_of_val(inside.words());
        BytesWriteGuard { inside: InsideTo::new(inside), len }
    }

    /// Takes all regions away, and makes these.
    ///
    /// # Errors
    /// As for [`RegionsWriteGuard::push`]; [`RegionsError::HasMemory`] if one was taken in, and has to go back. Then nothing has changed.
    pub fn replace(&mut self, regions: &[impl AsRef<[u8]>]) -> Result<(), RegionsError> {
        if let Some(number) = (0..self.len()).find(|number| self.taken_from(*number).is_some()) {
            return Err(RegionsError::HasMemory { number });
        }
        if regions.len() > MOST {
            return Err(RegionsError::TooMany);
        }
        let size = |region: &[u8]| region.len().next_multiple_of(8) + ENTRY * 8;
        self.fits(LIST * 8 + regions.iter().map(|region| size(region.as_ref())).sum::<usize>())?;
        let list = List::of_changing(self.regions.inside.words());
        list.set_count(0);
        list.set_used(LIST * 8);
        for region in regions {
            self.push_values(region.as_ref())?;
        }
        Ok(())
    }

    /// The fencing number of this grant, as of [`LockedWriteGuard::fence`](crate::LockedWriteGuard::fence).
    pub fn fence(&self) -> u64 {
        header::fence(self.regions.inside.words())
    }

    /// The bytes of a region, to be written.
    pub fn get_mut(&mut self, number: usize) -> Option<&mut [u8]> {
        let list = list(&self.regions.inside);
        let (used, place) = (number < list.count()).then(|| (list.used(), list.place(number)))?;
        Some(&mut view::bytes_mut(&mut self.regions.inside, used)[place])
    }

    /// All of them, in their order, to be written.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        let list = list(&self.regions.inside);
        let (used, lens) =
            (list.used(), (0..list.count()).map(|number| list.len(number)).collect::<Vec<_>>());
        let first = (LIST + ENTRY * lens.len()) * 8;
        let mut rest = &mut view::bytes_mut(&mut self.regions.inside, used)[first..];
        lens.into_iter().map(move |len| {
            let (whole, behind) = std::mem::take(&mut rest).split_at_mut(len.next_multiple_of(8));
            rest = behind;
            &mut whole[..len]
        })
    }

    /// A region as values, to be written. None as of [`RegionsReadGuard::values`].
    pub fn values_mut<T: FromBytes + IntoBytes + KnownLayout>(&mut self, number: usize) -> Option<&mut [T]> {
        <[T]>::mut_from_bytes(self.get_mut(number)?).ok()
    }

    /// One more region, of so many bytes of zeroes. Returns its number: the last.
    ///
    /// # Errors
    /// [`RegionsError::TooMany`], [`RegionsError::NoRoom`].
    pub fn push(&mut self, len: usize) -> Result<usize, RegionsError> {
        self.add(0, len)
    }

    /// One more region, with these values.
    ///
    /// # Errors
    /// As for [`RegionsWriteGuard::push`].
    pub fn push_values<T: IntoBytes + Immutable>(&mut self, values: &[T]) -> Result<usize, RegionsError> {
        let number = self.push(size_of_val(values))?;
        self.get_mut(number).expect("it was just made").copy_from_slice(values.as_bytes());
        Ok(number)
    }

    /// Makes a region longer, with zeroes, or shorter.
    ///
    /// # Errors
    /// [`RegionsError::NoSuchRegion`], [`RegionsError::NoRoom`]; [`RegionsError::HasMemory`] if it was taken in, and has to go back.
    pub fn resize(&mut self, number: usize, len: usize) -> Result<(), RegionsError> {
        let place = self.place(number)?;
        if self.taken_from(number).is_some() {
            // It would go back over what is behind that memory.
            return Err(RegionsError::HasMemory { number });
        }
        let list = list(&self.regions.inside);
        let (used, end) = (list.used(), place.end.next_multiple_of(8));
        let new_end = len.checked_next_multiple_of(8).and_then(|len| place.start.checked_add(len));
        let needed = new_end.and_then(|new_end| (used - end).checked_add(new_end)).unwrap_or(usize::MAX);
        self.fits(needed)?;
        let new_end = new_end.expect("it fits");
        let bytes = view::bytes_mut(&mut self.regions.inside, used.max(needed));
        bytes.copy_within(end..used, new_end);
        let same = place.end.min(place.start + len);
        bytes[same..new_end].fill(0);
        let list = List::of_changing(self.regions.inside.words());
        list.set_entry(number, 0, len);
        list.set_used(needed);
        Ok(())
    }

    /// Takes a region away. The numbers of those behind it become smaller by one.
    ///
    /// # Errors
    /// [`RegionsError::NoSuchRegion`].
    pub fn remove(&mut self, number: usize) -> Result<(), RegionsError> {
        let place = self.place(number)?;
        let list = list(&self.regions.inside);
        let (used, count, end) = (list.used(), list.count(), place.end.next_multiple_of(8));
        let entries = |number: usize| (LIST + number * ENTRY) * 8;
        let bytes = view::bytes_mut(&mut self.regions.inside, used);
        bytes.copy_within(end..used, place.start);
        // Its entry goes, and all that is behind it moves up.
        bytes.copy_within(entries(number + 1)..used - (end - place.start), entries(number));
        let list = List::of_changing(self.regions.inside.words());
        list.set_count(count - 1);
        list.set_used(used - (end - place.start) - ENTRY * 8);
        Ok(())
    }

    /// Takes the bytes that a lock over `len` bytes at `addr` guards ([`NodeHandle::rwlock`]) into this one: they travel with it from now
    /// on. Waits for that lock, and ends it; what is in that memory means nothing until [`RegionsWriteGuard::give_back`]. Returns the
    /// region's number: the last.
    ///
    /// # Errors
    /// [`RegionsError::Overlaps`], [`RegionsError::TooMany`], [`RegionsError::NoRoom`]; [`RegionsError::Failed`] if that is no memory of
    /// [`Discipline::Locked`](crate::Discipline::Locked), or none any more.
    pub fn take_in(
        &mut self,
        handle: &mut NodeHandle,
        addr: GlobalAddr,
        len: usize,
    ) -> Result<usize, RegionsError> {
        let lock = handle.rwlock(addr, len)?;
        let inside = &self.regions.inside;
        let (list, own) = (list(inside), (inside.addr().bits(), size_of_val(inside.words())));
        let whole = |addr: u64, len: usize| addr..addr + len.max(1) as u64;
        let taken = (0..list.count()).map(|number| (list.taken_from(number), list.len(number)));
        let new = whole(addr.bits(), len);
        for (from, len) in taken.filter(|(from, _)| *from != 0).chain([own]) {
            let there = whole(from, len);
            if there.start < new.end && new.start < there.end {
                return Err(RegionsError::Overlaps { addr: GlobalAddr::from_bits(there.start) });
            }
        }
        self.may_add(len)?;
        let bytes = lock.write(handle)?.to_vec();
        lock.end(handle)?;
        let number = self.add(addr.bits(), len)?;
        self.get_mut(number).expect("it was just made").copy_from_slice(&bytes);
        Ok(number)
    }

    /// Gives a region's bytes back to the memory that they were taken from, as they are now, and takes the region away.
    ///
    /// # Errors
    /// [`RegionsError::NoSuchRegion`], [`RegionsError::HasNoMemory`]; [`RegionsError::Failed`] if that memory was freed, or is lost: the
    /// region stays.
    pub fn give_back(&mut self, handle: &mut NodeHandle, number: usize) -> Result<(), RegionsError> {
        self.place(number)?;
        let to = self.taken_from(number).ok_or(RegionsError::HasNoMemory { number })?;
        let bytes = self.get(number).expect("it is there");
        let lock = handle.rwlock(to, bytes.len())?;
        lock.write(handle)?.copy_from_slice(bytes);
        self.remove(number)
    }

    fn place(&self, number: usize) -> Result<Range<usize>, RegionsError> {
        let list = list(&self.regions.inside);
        let count = list.count();
        if number < count {
            Ok(list.place(number))
        } else {
            Err(RegionsError::NoSuchRegion { number, count })
        }
    }

    fn fits(&self, needed: usize) -> Result<(), RegionsError> {
        let bytes = size_of_val(self.regions.inside.words());
        if needed <= bytes {
            return Ok(());
        }
        Err(RegionsError::NoRoom { needed: needed - LIST * 8, room: bytes - LIST * 8 })
    }

    /// How many bytes count with one more region.
    fn may_add(&self, len: usize) -> Result<usize, RegionsError> {
        let list = list(&self.regions.inside);
        if list.count() == MOST {
            return Err(RegionsError::TooMany);
        }
        let more = len.checked_next_multiple_of(8).and_then(|len| len.checked_add(ENTRY * 8));
        let needed = more.and_then(|more| more.checked_add(list.used())).unwrap_or(usize::MAX);
        self.fits(needed).map(|()| needed)
    }

    fn add(&mut self, from: u64, len: usize) -> Result<usize, RegionsError> {
        let needed = self.may_add(len)?;
        let list = list(&self.regions.inside);
        let (used, count) = (list.used(), list.count());
        let entry = (LIST + count * ENTRY) * 8;
        let bytes = view::bytes_mut(&mut self.regions.inside, needed);
        bytes.copy_within(entry..used, entry + ENTRY * 8);
        bytes[used + ENTRY * 8..].fill(0);
        let list = List::of_changing(self.regions.inside.words());
        list.set_entry(count, from, len);
        list.set_count(count + 1);
        list.set_used(needed);
        Ok(count)
    }
}

impl Drop for RegionsWriteGuard<'_> {
    fn drop(&mut self) {
        if !self.was_panicking && std::thread::panicking() {
            header::poison(self.regions.inside.words());
        }
    }
}
