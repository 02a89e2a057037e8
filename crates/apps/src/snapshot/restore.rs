//! Bringing back what was saved.

use std::io::{Read, Seek, SeekFrom};
use std::time::Duration;

use rackmem::named::{NameMode, Nameable, NamedInfo};
use rackmem::{ByteValue, LockError, LockedRegions, NameError, NodeHandle, Region, RegionsError};

use super::Restored;
use super::about::{About, Kind, Moment};
use super::error::Error;
use super::format::{End, Reader};
use super::save::{LOCK_HEADER, POISONED, pieces, size, still_there};
use crate::kv::KvStore;
use crate::kv_locked::LockedStore;
use crate::objects::{ObjectStore, Sabres};

/// What is to happen if something has the name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Existing {
    /// Nothing: [`Error::Exists`].
    Keep,
    /// Its contents become those of the snapshot, if it is of the same kind and shape.
    Replace,
}

/// The lengths of the longest of all entries.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Longest {
    pub(super) key: usize,
    pub(super) value: usize,
    /// Of key and value together.
    pub(super) both: usize,
}

/// A snapshot that was read to its end, and is whole.
pub struct Snapshot<R> {
    input: R,
    begin: u64,
    pub(super) about: About,
    end: End,
    pub(super) longest: Longest,
}

/// What is to be made or changed.
pub(super) struct Target<'a> {
    pub(super) handle: &'a mut NodeHandle,
    pub(super) name: &'a str,
    pub(super) wait: Duration,
    /// What has the name.
    pub(super) found: Option<NamedInfo>,
    /// How it is opened or made.
    mode: NameMode,
}

impl<R: Read + Seek> Snapshot<R> {
    /// Reads a snapshot, from where the reader is: all of it, so that what is brought back is known to be whole before anything is changed.
    /// It is read once more then, for it may be larger than this process.
    ///
    /// # Errors
    /// [`Error`], of the file.
    pub fn open(mut input: R) -> Result<Self, Error> {
        let begin = input.stream_position().map_err(Error::Read)?;
        let (mut reader, about) = Reader::begin(&mut input)?;
        let (mut longest, mut entries, mut bytes) = (Longest::default(), 0, 0);
        while about.kind.has_entries()
            && let Some([key, value]) = reader.skip_entry()?
        {
            entries += 1;
            // Of regions: each is in whole words, with an entry in the list.
            bytes += value.next_multiple_of(8) + LockedRegions::ENTRY;
            let Longest { key: of_key, value: of_value, both } = longest;
            longest =
                Longest { key: of_key.max(key), value: of_value.max(value), both: both.max(key + value) };
        }
        let end = reader.finish()?;
        let room = size(about.spec.value_len()).saturating_sub(LOCK_HEADER);
        let what = match about.kind {
            _ if end.entries != entries => Some("its end counts other entries than there are"),
            Kind::Regions if entries > LockedRegions::MOST as u64 || longest.key > 0 || bytes > room => {
                Some("it has more regions than fit")
            }
            kind if !kind.has_entries() && about.content() != Some(end.bytes) => {
                Some("it has another length than it says")
            }
            _ => None,
        };
        match what {
            Some(what) => Err(Error::Malformed { what }),
            None => Ok(Self { input, begin, about, end, longest }),
        }
    }

    /// What it is of.
    pub const fn about(&self) -> &About {
        &self.about
    }

    /// Of what it is one moment.
    pub const fn moment(&self) -> Moment {
        self.end.moment
    }

    /// Brings it back under a name. What has none, or was lost, is made, with copies if the handle [keeps
    /// some](NodeHandle::keep_copies). A lock that is not to be had is waited for at most so long. (The module says what others see
    /// meanwhile, and what is left after an error.)
    ///
    /// # Errors
    /// [`Error`]: nothing was changed, but for [`Error::Partly`].
    pub fn restore(
        &mut self,
        handle: &mut NodeHandle,
        name: &str,
        existing: Existing,
        wait: Duration,
    ) -> Result<Restored, Error> {
        let (found, mode) = match handle.name_info(name) {
            // It may be there, and what it names be lost all the same.
            Ok(info) => (Some(info), NameMode::Anew),
            Err(NameError::NotFound { .. }) => (None, NameMode::Create),
            Err(NameError::Lost { .. }) => (None, NameMode::Anew),
            Err(why) => return Err(why.into()),
        };
        match &found {
            Some(there) if there.spec != self.about.spec => {
                let (there, saved) = (Box::new(there.clone()), Box::new(self.about.spec.clone()));
                return Err(Error::Differs { there, saved });
            }
            Some(there) if existing == Existing::Keep => {
                return Err(Error::Exists { there: Box::new(there.clone()) });
            }
            _ => {}
        }
        let mut target = Target { handle, name, wait, found, mode };
        let made = match self.about.kind {
            Kind::Store => self.restore_store::<KvStore>(&mut target)?,
            Kind::LockedStore => self.restore_store::<LockedStore>(&mut target)?,
            Kind::ObjectStore => self.restore_store::<ObjectStore<Sabres>>(&mut target)?,
            _ => self.restore_memory(&mut target)?,
        };
        // From here on it is there, whoever dies.
        let Target { handle, .. } = target;
        handle.sync().map_err(|why| Error::Memory { name: name.to_owned(), why })?;
        let addr = handle.name_info(name)?.addr;
        let copies = handle.has_copies(addr);
        let End { bytes, entries, .. } = self.end;
        Ok(Restored { about: self.about.clone(), made, copies, bytes, entries })
    }

    /// Reads it from its beginning.
    fn again(&mut self) -> Result<Reader<&mut R>, Error> {
        self.input.seek(SeekFrom::Start(self.begin)).map_err(Error::Read)?;
        let (reader, about) = Reader::begin(&mut self.input)?;
        if about == self.about {
            Ok(reader)
        } else {
            Err(Error::Malformed { what: "it was replaced by another one while it was read" })
        }
    }

    /// Does something with each entry.
    pub(super) fn entries(
        &mut self,
        mut each: impl FnMut(&[u8], &[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (mut reader, mut key, mut value) = (self.again()?, Vec::new(), Vec::new());
        while reader.entry(&mut key, &mut value)? {
            each(&key, &value)?;
        }
        Ok(())
    }

    /// True if it was made.
    fn restore_memory(&mut self, target: &mut Target<'_>) -> Result<bool, Error> {
        let (kind, spec) = (self.about.kind, self.about.spec.clone());
        // What is made with its contents is there with them at once.
        let begins = match kind {
            Kind::Locked | Kind::Value => self.bytes()?,
            Kind::Regions => LockedRegions::contents(&0),
            _ => Vec::new(),
        };
        let made = target.found.is_none();
        let info = target.handle.name_as(target.name, target.mode, spec, begins)?;
        let filled = self.fill(target, &info);
        let Err(why) = filled else { return Ok(made) };
        let in_steps = matches!(kind, Kind::Region | Kind::Words | Kind::Objects);
        let stays = match made {
            true => target.handle.remove_name(target.name).is_err(),
            false => in_steps,
        };
        match stays {
            true => Err(Error::Partly { name: target.name.to_owned(), made, why: Box::new(why) }),
            false => Err(why),
        }
    }

    fn bytes(&mut self) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; size(self.end.bytes)];
        let mut reader = self.again()?;
        reader.read(&mut bytes, SHORT)?;
        reader.finish()?;
        Ok(bytes)
    }

    fn fill(&mut self, target: &mut Target<'_>, info: &NamedInfo) -> Result<(), Error> {
        match self.about.kind {
            Kind::Locked => {
                let bytes = self.bytes()?;
                target.fill_locked(info, &bytes)
            }
            Kind::Regions => {
                let mut regions = Vec::new();
                self.entries(|_, region| {
                    regions.push(region.to_vec());
                    Ok(())
                })?;
                target.fill_regions(info, &regions)
            }
            Kind::Value => {
                let bytes = self.bytes()?;
                let set = ByteValue::found(info).set(target.handle, &bytes);
                set.map_err(|why| target.failed(why))
            }
            Kind::Region => target.fill_region(info, self.again()?),
            Kind::Words => target.fill_words(info, self.again()?),
            _ => target.fill_objects(info, self.again()?),
        }
    }
}

const SHORT: &str = "it ends before its content does";

impl Target<'_> {
    pub(super) fn failed(&self, why: rackmem::Error) -> Error {
        Error::Memory { name: self.name.to_owned(), why }
    }

    fn busy(&self) -> Error {
        Error::Busy { name: self.name.to_owned(), waited: self.wait }
    }

    fn changed(&self) -> Error {
        Error::Changed { name: self.name.to_owned() }
    }

    fn fill_locked(&mut self, info: &NamedInfo, bytes: &[u8]) -> Result<(), Error> {
        let lock = self.handle.locked_bytes(info.addr, bytes.len()).map_err(|why| self.failed(why))?;
        let guard = lock.write_timeout(self.handle, self.wait).map_err(|why| self.failed(why))?;
        let mut guard = guard.ok_or_else(|| self.busy())?;
        let header = u64::from_ne_bytes(*guard.first_chunk().expect("it has a header"));
        if header & !POISONED != info.making << 1 {
            return Err(self.changed());
        }
        // All of it is new: nothing of what a panic may have left.
        guard[..8].copy_from_slice(&(info.making << 1).to_ne_bytes());
        guard[LOCK_HEADER..].copy_from_slice(bytes);
        Ok(())
    }

    fn fill_regions(&mut self, info: &NamedInfo, regions: &[Vec<u8>]) -> Result<(), Error> {
        let lock = LockedRegions::found(self.handle, info).map_err(|why| self.failed(why))?;
        let mut guard = match lock.write_timeout(self.handle, self.wait) {
            Ok(guard) => guard.ok_or_else(|| self.busy())?,
            Err(LockError::Failed(why)) => return Err(self.failed(why)),
            Err(_) => lock.write_poisoned(self.handle).map_err(|why| self.failed(why))?,
        };
        guard.replace(regions).map_err(|why| match why {
            RegionsError::Failed(why) => self.failed(why),
            RegionsError::HasMemory { .. } => Error::HasMemory { name: self.name.to_owned() },
            _ => Error::Malformed { what: "it has more regions than fit" },
        })
    }

    fn fill_region(&mut self, info: &NamedInfo, mut from: Reader<impl Read>) -> Result<(), Error> {
        let region = Region::found(self.handle, info).map_err(|why| self.failed(why))?;
        let len = info.spec.value_len();
        let mut buffer = vec![0; pieces(len).next().map_or(0, |(_, len)| len)];
        for (at, len) in pieces(len) {
            let piece = &mut buffer[..len];
            from.read(piece, SHORT)?;
            // Its memory may be somebody else's by now.
            if self.handle.read_word(info.addr).map_err(|why| self.failed(why))? != info.making {
                return Err(self.changed());
            }
            self.handle.write(region.addr() + at, piece).map_err(|why| self.failed(why))?;
        }
        from.finish()?;
        still_there(self.handle, self.name, info.making)
    }

    fn fill_words(&mut self, info: &NamedInfo, mut from: Reader<impl Read>) -> Result<(), Error> {
        let words = self.handle.words_at::<u64>(info.addr).map_err(|why| self.failed(why))?;
        let len = words.len() as u64 * 8;
        let mut buffer = vec![0; pieces(len).next().map_or(0, |(_, len)| len)];
        for (at, len) in pieces(len) {
            let piece = &mut buffer[..len];
            from.read(piece, SHORT)?;
            words.write_bytes(self.handle, size(at / 8), piece).map_err(|why| self.failed(why))?;
        }
        from.finish()?;
        // Of words that were freed meanwhile, nobody may have said so.
        still_there(self.handle, self.name, info.making)
    }

    fn fill_objects(&mut self, info: &NamedInfo, mut from: Reader<impl Read>) -> Result<(), Error> {
        let objects = self.handle.byte_objects_at(info.addr).map_err(|why| self.failed(why))?;
        let mut object = vec![0; objects.object_len()];
        for index in 0..objects.count() {
            from.read(&mut object, SHORT)?;
            objects.write(self.handle, index, 0, &object).map_err(|why| self.failed(why))?;
        }
        from.finish().map(drop)
    }
}
