//! What can have a name: how each is described, what it begins with, and how it is opened.

use wire::Discipline;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::spec::{NamedInfo, NamedSpec, tag_of, tag_within};
use super::value::Value;
use crate::chains::{Chains, ChainsConfig};
use crate::error::Error;
use crate::handle::NodeHandle;
use crate::locked::header::Making;
use crate::locked::{Locked, LockedParts, LockedRegions, Parts};
use crate::objects::{ByteObjects, Objects};
use crate::words::{Word, Words};

/// What can have a name ([`NodeHandle::named`]).
pub trait Nameable: Sized {
    /// What is said of something new: a value, or how many elements there are.
    type Init;

    /// What the name says. Without something new: of which discipline, length and type it must be to be opened.
    fn spec(init: Option<&Self::Init>) -> NamedSpec;

    /// What something new begins with; zeroes follow.
    fn contents(init: &Self::Init) -> Vec<u8>;

    /// Opens what has the name: it is as [`Nameable::spec`] says.
    ///
    /// # Errors
    /// If it is not there any more.
    fn found(handle: &mut NodeHandle, info: &NamedInfo) -> Result<Self, Error>;
}

fn one(discipline: Discipline, len: u64, tag: String) -> NamedSpec {
    NamedSpec { discipline, len, count: 1, tag, version: 0 }
}

fn many(discipline: Discipline, len: usize, count: Option<&usize>, tag: String) -> NamedSpec {
    NamedSpec { discipline, len: len as u64, count: count.map_or(0, |count| *count as u64), tag, version: 0 }
}

impl<T: FromBytes + IntoBytes + KnownLayout + Immutable> Nameable for Locked<T> {
    type Init = T;

    fn spec(_: Option<&T>) -> NamedSpec {
        one(Discipline::Locked, Self::BYTES, tag_of::<T>())
    }

    fn contents(init: &T) -> Vec<u8> {
        init.as_bytes().to_vec()
    }

    fn found(handle: &mut NodeHandle, info: &NamedInfo) -> Result<Self, Error> {
        Self::made(handle, info.addr, Making::of(info.making))
    }
}

/// Something new has room for so many bytes. Opened is one with any room.
impl Nameable for LockedRegions {
    type Init = usize;

    fn spec(init: Option<&usize>) -> NamedSpec {
        let len = init.map_or(0, |room| Self::bytes(*room).saturating_add(7) / 8 * 8);
        one(Discipline::Locked, len, Self::TAG.to_owned())
    }

    fn contents(_: &usize) -> Vec<u8> {
        Self::begins()
    }

    fn found(handle: &mut NodeHandle, info: &NamedInfo) -> Result<Self, Error> {
        Self::made(handle, info.addr, Self::room_of(info.spec.len), Making::of(info.making))
    }
}

/// Something new has room for so many bytes, and begins with these parts. Opened is one with any room.
impl<P: Parts> Nameable for LockedParts<P> {
    type Init = (usize, P);

    fn spec(init: Option<&(usize, P)>) -> NamedSpec {
        const ROOM: usize = NamedSpec::LONGEST_TAG - LockedRegions::TAG.len() - 1;
        let tag = format!("{} {}", LockedRegions::TAG, tag_within::<P>(ROOM));
        NamedSpec { tag, ..LockedRegions::spec(init.map(|(room, _)| room)) }
    }

    fn contents((_, parts): &(usize, P)) -> Vec<u8> {
        Self::begins(parts)
    }

    fn found(handle: &mut NodeHandle, info: &NamedInfo) -> Result<Self, Error> {
        Ok(Self::over(LockedRegions::found(handle, info)?))
    }
}

impl<T: FromBytes + IntoBytes + Immutable> Nameable for Value<T> {
    type Init = T;

    fn spec(_: Option<&T>) -> NamedSpec {
        one(Discipline::Coherent, Self::BYTES, tag_of::<T>())
    }

    fn contents(init: &T) -> Vec<u8> {
        init.as_bytes().to_vec()
    }

    fn found(_: &mut NodeHandle, info: &NamedInfo) -> Result<Self, Error> {
        Ok(Self::found_at(info))
    }
}

/// Something new has so many words of zero.
impl<W: Word> Nameable for Words<W> {
    type Init = usize;

    fn spec(init: Option<&usize>) -> NamedSpec {
        many(Discipline::Word, size_of::<W>(), init, tag_of::<W>())
    }

    fn contents(_: &usize) -> Vec<u8> {
        Vec::new()
    }

    fn found(handle: &mut NodeHandle, info: &NamedInfo) -> Result<Self, Error> {
        handle.words_at(info.addr)
    }
}

/// Something new has so many objects of zeroes.
impl<T: FromBytes + IntoBytes> Nameable for Objects<T> {
    type Init = usize;

    fn spec(init: Option<&usize>) -> NamedSpec {
        many(Discipline::Object, size_of::<T>(), init, tag_of::<T>())
    }

    fn contents(_: &usize) -> Vec<u8> {
        Vec::new()
    }

    fn found(handle: &mut NodeHandle, info: &NamedInfo) -> Result<Self, Error> {
        handle.objects_at(info.addr)
    }
}

/// Something new has so many objects (the first number) of so many bytes of zero (the second one). Opened are those of any length.
impl Nameable for ByteObjects {
    type Init = (usize, usize);

    fn spec(init: Option<&(usize, usize)>) -> NamedSpec {
        let (count, len) = init.map_or((None, 0), |(count, len)| (Some(count), *len));
        many(Discipline::Object, len, count, String::new())
    }

    fn contents(_: &(usize, usize)) -> Vec<u8> {
        Vec::new()
    }

    fn found(handle: &mut NodeHandle, info: &NamedInfo) -> Result<Self, Error> {
        handle.byte_objects_at(info.addr)
    }
}

/// Something new is a store of the size and times that the configuration says. The rack chooses homes, copies and server: it is on the
/// node that keeps the name; with copies, on those behind it, too, and so many bytes are stored there in all.
impl Nameable for Chains {
    type Init = ChainsConfig;

    fn spec(init: Option<&ChainsConfig>) -> NamedSpec {
        NamedSpec { len: init.map_or(0, |config| config.bytes), ..one(Discipline::Chain, 0, String::new()) }
    }

    fn contents(init: &ChainsConfig) -> Vec<u8> {
        let times = [init.lease.0, init.quarantine.map_or(0, |quarantine| quarantine.0)];
        times.iter().flat_map(|time| time.to_le_bytes()).collect()
    }

    fn found(handle: &mut NodeHandle, info: &NamedInfo) -> Result<Self, Error> {
        let is_lasting = info.is_lasting_store();
        match handle.chains_wanted(info.store(!is_lasting)) {
            Err(Error::NodeDown { addr } | Error::Unallocated { addr }) if is_lasting => {
                Err(Error::Lost { addr })
            }
            found => found,
        }
    }
}
