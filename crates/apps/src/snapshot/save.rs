//! Saving what a name names.

use std::io::Write;
use std::time::{Duration, Instant};

use rackmem::named::{Nameable, NamedInfo};
use rackmem::{ByteValue, LockError, LockedRegions, NodeHandle, ReadError, Region, Retry};

use super::about::{About, Kind, Moment};
use super::error::Error;
use super::format::{PIECE, Writer};
use super::{Saved, stores};
use crate::kv::KvStore;
use crate::kv_locked::LockedStore;
use crate::objects::{ObjectStore, Sabres};

/// Bytes in front of a value behind a lock.
pub(super) const LOCK_HEADER: usize = 16;
/// In the first word of these.
pub(super) const POISONED: u64 = 1;

/// Saves what has a name: `out` gets a snapshot of it, in pieces of up to 256 KiB. Whoever writes what is named waits while its lock is
/// held to read, which is as long as a copy in memory takes (the module says more), and never for `out`. A lock that is not to be had is
/// waited for at most so long.
///
/// # Errors
/// [`Error`]: of the name, of the rack, or of `out`. What is in `out` then is no snapshot, and is refused as one.
pub fn save(handle: &mut NodeHandle, name: &str, wait: Duration, out: impl Write) -> Result<Saved, Error> {
    let info = handle.name_info(name)?;
    let about = About::of(name, &info.spec)?;
    match about.kind {
        Kind::Store => return stores::save::<KvStore>(handle, about, wait, out),
        Kind::LockedStore => return stores::save::<LockedStore>(handle, about, wait, out),
        Kind::ObjectStore => return stores::save::<ObjectStore<Sabres>>(handle, about, wait, out),
        _ => {}
    }
    let mut file = Writer::begin(out, &about)?;
    let mut source = Source { handle, info: &info, wait };
    let moment = match about.kind {
        Kind::Locked => {
            file.content(&source.locked()?)?;
            Moment::Whole
        }
        Kind::Regions => {
            for region in source.regions()? {
                file.entry(&[], &region)?;
            }
            Moment::Whole
        }
        Kind::Value => {
            let value = ByteValue::found(&info);
            let mut bytes = vec![0; value.len()];
            value.get(source.handle, &mut bytes).map_err(|why| source.failed(why))?;
            file.content(&bytes)?;
            Moment::Whole
        }
        Kind::Region => {
            source.region(&mut file)?;
            Moment::Block
        }
        Kind::Words => {
            source.words(&mut file)?;
            Moment::Word
        }
        _ => {
            source.objects(&mut file)?;
            Moment::Object
        }
    };
    // Of memory that was freed meanwhile, not everybody says so.
    still_there(handle, name, info.making)?;
    let end = file.end(moment)?;
    Ok(Saved { about, moment, bytes: end.bytes, entries: end.entries })
}

/// The name still names what it did.
pub(super) fn still_there(handle: &mut NodeHandle, name: &str, making: u64) -> Result<(), Error> {
    match handle.name_info(name) {
        Ok(info) if info.making == making => Ok(()),
        Ok(_) | Err(rackmem::NameError::NotFound { .. }) => Err(Error::Changed { name: name.to_owned() }),
        Err(why) => Err(why.into()),
    }
}

/// The lengths of the pieces in which so many bytes are copied, and where each begins.
pub(super) fn pieces(len: u64) -> impl Iterator<Item = (u64, usize)> {
    let piece = PIECE as u64;
    (0..len.div_ceil(piece)).map(move |number| (number * piece, (len - number * piece).min(piece) as usize))
}

struct Source<'a> {
    handle: &'a mut NodeHandle,
    info: &'a NamedInfo,
    wait: Duration,
}

impl Source<'_> {
    fn failed(&self, why: rackmem::Error) -> Error {
        Error::Memory { name: self.info.name.clone(), why }
    }

    fn busy(&self) -> Error {
        Error::Busy { name: self.info.name.clone(), waited: self.wait }
    }

    fn locked(&mut self) -> Result<Vec<u8>, Error> {
        let NamedInfo { name, spec, addr, making, .. } = self.info;
        let lock = self.handle.locked_bytes(*addr, size(spec.value_len()));
        let lock = lock.map_err(|why| self.failed(why))?;
        let guard = lock.read_timeout(self.handle, self.wait).map_err(|why| self.failed(why))?;
        let guard = guard.ok_or_else(|| self.busy())?;
        let header = u64::from_ne_bytes(*guard.first_chunk().expect("it has a header"));
        if header & !POISONED != making << 1 {
            return Err(Error::Changed { name: name.clone() });
        }
        match header & POISONED {
            0 => Ok(guard[LOCK_HEADER..].to_vec()),
            _ => Err(Error::Poisoned { name: name.clone() }),
        }
    }

    fn regions(&mut self) -> Result<Vec<Vec<u8>>, Error> {
        let lock = LockedRegions::found(self.handle, self.info).map_err(|why| self.failed(why))?;
        match lock.read_timeout(self.handle, self.wait) {
            Ok(Some(regions)) => Ok(regions.iter().map(<[u8]>::to_vec).collect()),
            Ok(None) => Err(self.busy()),
            Err(LockError::Failed(why)) => Err(self.failed(why)),
            Err(_) => Err(Error::Poisoned { name: self.info.name.clone() }),
        }
    }

    fn region(&mut self, file: &mut Writer<impl Write>) -> Result<(), Error> {
        let region = Region::found(self.handle, self.info).map_err(|why| self.failed(why))?;
        let mut buffer = vec![0; PIECE];
        for (at, len) in pieces(self.info.spec.value_len()) {
            let piece = &mut buffer[..len];
            self.handle.read(region.addr() + at, piece).map_err(|why| self.failed(why))?;
            file.content(piece)?;
        }
        Ok(())
    }

    fn words(&mut self, file: &mut Writer<impl Write>) -> Result<(), Error> {
        let words = self.handle.words_at::<u64>(self.info.addr).map_err(|why| self.failed(why))?;
        let mut buffer = vec![0; PIECE];
        for (at, len) in pieces(words.len() as u64 * 8) {
            let piece = &mut buffer[..len];
            words.read_bytes(self.handle, size(at / 8), piece).map_err(|why| self.failed(why))?;
            file.content(piece)?;
        }
        Ok(())
    }

    fn objects(&mut self, file: &mut Writer<impl Write>) -> Result<(), Error> {
        let objects = self.handle.byte_objects_at(self.info.addr).map_err(|why| self.failed(why))?;
        let mut object = vec![0; objects.object_len()];
        for index in 0..objects.count() {
            let until = Retry::Until(Instant::now() + self.wait);
            objects.read(self.handle, index, &mut object, until).map_err(|why| match why {
                ReadError::Failed(why) => self.failed(why),
                ReadError::Torn { .. } => self.busy(),
            })?;
            file.content(&object)?;
        }
        Ok(())
    }
}

/// A size in memory: what a node has fits the address space.
pub(super) fn size(bytes: u64) -> usize {
    usize::try_from(bytes).expect("addresses have 64 bits")
}
