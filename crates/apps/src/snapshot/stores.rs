//! Stores: their entries, in whatever order.
//!
//! What must always hold: a store that is made for a snapshot has a name only when all is in it; one that is there is changed key by key,
//! so those who use it go on.

use std::collections::BTreeSet;
use std::io::{Read, Seek, Write};
use std::time::Duration;

use rackmem::{ByteValue, GlobalAddr, NodeHandle, Value, block_on};

use super::Saved;
use super::about::{About, Moment};
use super::error::Error;
use super::format::Writer;
use super::restore::{Longest, Snapshot, Target};
use super::save::still_there;
use crate::kv::{self, KvConfig, KvStore, Placement};
use crate::kv_locked::{LockedStore, LockedStoreConfig};
use crate::named::{self, Rooted};
use crate::objects::{ObjectStore, ObjectStoreConfig, Sabres};

/// For how long all writers of a store may have to wait, and of how many bytes.
const WHOLE: (Duration, usize) = (Duration::from_secs(1), 2 << 20);

/// Takes each entry.
type Each<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> Result<(), Error>;

/// A store whose entries can be listed.
pub(super) trait Listed: Rooted<Error = kv::Error> {
    fn config(&self) -> [u64; 4];

    fn config_of(words: [u64; 4]) -> Option<Self::Config>;

    /// All entries, and of what that is one moment.
    fn each(
        &self,
        handle: &mut NodeHandle,
        about: &About,
        wait: Duration,
        each: Each<'_>,
    ) -> Result<Moment, Error>;

    fn put(&self, handle: &mut NodeHandle, key: &[u8], value: &[u8]) -> Result<(), kv::Error>;

    fn delete(&self, handle: &mut NodeHandle, key: &[u8]) -> Result<(), kv::Error>;

    /// Whether entries up to these lengths can be put.
    fn takes(&self, longest: Longest) -> Result<(), kv::Error>;
}

fn failed(name: &str) -> impl Fn(kv::Error) -> Error {
    move |why| Error::Store { name: name.to_owned(), why }
}

impl Listed for KvStore {
    fn config(&self) -> [u64; 4] {
        let KvConfig { expected_keys, placement, homes, salt } = self.config();
        [expected_keys, u64::from(placement == Placement::Local), homes.unwrap_or(0).into(), salt]
    }

    fn config_of([expected_keys, placement, homes, salt]: [u64; 4]) -> Option<KvConfig> {
        let placement = match placement {
            0 => Placement::Spread,
            1 => Placement::Local,
            _ => return None,
        };
        let homes = Some(u16::try_from(homes).ok()?).filter(|homes| *homes > 0);
        Some(KvConfig { expected_keys, placement, homes, salt })
    }

    fn each(
        &self,
        handle: &mut NodeHandle,
        about: &About,
        _: Duration,
        each: Each<'_>,
    ) -> Result<Moment, Error> {
        let failed = failed(&about.name);
        let (mut next, mut value) = (Some(0), Vec::new());
        while let Some(bucket) = next {
            let keys;
            (keys, next) = block_on(self.keys(handle, bucket)).map_err(&failed)?;
            for key in keys {
                // It may have gone meanwhile.
                if block_on(self.get(handle, &key, &mut value)).map_err(&failed)? {
                    each(&key, &value)?;
                }
            }
        }
        Ok(Moment::Key)
    }

    fn put(&self, handle: &mut NodeHandle, key: &[u8], value: &[u8]) -> Result<(), kv::Error> {
        block_on(self.put(handle, key, value)).map(drop)
    }

    fn delete(&self, handle: &mut NodeHandle, key: &[u8]) -> Result<(), kv::Error> {
        block_on(self.delete(handle, key)).map(drop)
    }

    fn takes(&self, longest: Longest) -> Result<(), kv::Error> {
        within(longest.key, self.longest_key())?;
        value_within(longest.value, Self::LONGEST_VALUE)
    }
}

impl Listed for LockedStore {
    fn config(&self) -> [u64; 4] {
        let LockedStoreConfig { expected_keys, record_bytes, salt } = self.config();
        [expected_keys, record_bytes as u64, salt, 0]
    }

    fn config_of([expected_keys, record_bytes, salt, _]: [u64; 4]) -> Option<LockedStoreConfig> {
        let record_bytes = usize::try_from(record_bytes).ok()?;
        let is_one = record_bytes <= LockedStoreConfig::LONGEST_RECORD && expected_keys <= 1 << 40;
        is_one.then_some(LockedStoreConfig { expected_keys, record_bytes, salt })
    }

    fn each(
        &self,
        handle: &mut NodeHandle,
        about: &About,
        wait: Duration,
        each: Each<'_>,
    ) -> Result<Moment, Error> {
        let failed = failed(&about.name);
        if let Some(records) = self.records_at_once(handle, WHOLE.0.min(wait), WHOLE.1).map_err(&failed)? {
            for (key, value) in records {
                each(&key, &value)?;
            }
            return Ok(Moment::Whole);
        }
        for bucket in 0..self.buckets() {
            let records = self.records(handle, bucket, wait).map_err(&failed)?;
            let busy = || Error::Busy { name: about.name.clone(), waited: wait };
            for (key, value) in records.ok_or_else(busy)? {
                each(&key, &value)?;
            }
        }
        Ok(Moment::Bucket)
    }

    fn put(&self, handle: &mut NodeHandle, key: &[u8], value: &[u8]) -> Result<(), kv::Error> {
        self.put(handle, key, value).map(drop)
    }

    fn delete(&self, handle: &mut NodeHandle, key: &[u8]) -> Result<(), kv::Error> {
        self.delete(handle, key).map(drop)
    }

    fn takes(&self, longest: Longest) -> Result<(), kv::Error> {
        within(longest.key, self.longest_key())?;
        value_within(longest.both, self.most_record())
    }
}

impl Listed for ObjectStore<Sabres> {
    fn config(&self) -> [u64; 4] {
        let ObjectStoreConfig { expected_keys, key_bytes, value_bytes, slots, homes, salt } = self.config();
        let pair = |low: usize, high: usize| low as u64 | (high as u64) << 32;
        [expected_keys, pair(key_bytes, value_bytes), pair(slots, homes.unwrap_or(0).into()), salt]
    }

    fn config_of([expected_keys, lens, shape, salt]: [u64; 4]) -> Option<ObjectStoreConfig> {
        let pair = |both: u64| ((both & u64::from(u32::MAX)) as usize, (both >> 32) as usize);
        let ((key_bytes, value_bytes), (slots, homes)) = (pair(lens), pair(shape));
        let homes = Some(u16::try_from(homes).ok()?).filter(|homes| *homes > 0);
        let config = ObjectStoreConfig { expected_keys, key_bytes, value_bytes, slots, homes, salt };
        (expected_keys <= 1 << 40).then_some(config)
    }

    fn each(
        &self,
        handle: &mut NodeHandle,
        about: &About,
        _: Duration,
        each: Each<'_>,
    ) -> Result<Moment, Error> {
        let (failed, mut store) = (failed(&about.name), self.clone());
        let mut next = Some(0);
        while let Some(chain) = next {
            let entries;
            (entries, next) = store.entries(handle, chain).map_err(&failed)?;
            for (key, value) in entries {
                each(&key, &value)?;
            }
        }
        Ok(Moment::Bucket)
    }

    fn put(&self, handle: &mut NodeHandle, key: &[u8], value: &[u8]) -> Result<(), kv::Error> {
        // Not this one.
        Self::put(&mut self.clone(), handle, key, value).map(drop)
    }

    fn delete(&self, handle: &mut NodeHandle, key: &[u8]) -> Result<(), kv::Error> {
        Self::delete(&mut self.clone(), handle, key).map(drop)
    }

    fn takes(&self, longest: Longest) -> Result<(), kv::Error> {
        let ObjectStoreConfig { key_bytes, value_bytes, .. } = self.config();
        within(longest.key, key_bytes)?;
        value_within(longest.value, value_bytes)
    }
}

/// True if a part of a store cannot be had any more: it died with a node, which may have come back with other memory there.
const fn is_lost(why: &kv::Error) -> bool {
    use rackmem::Error::{Lost, NodeDown, NotAnAllocation, Unallocated, WrongDiscipline, WrongLength};
    match why {
        kv::Error::Memory(why) => matches!(
            why,
            Lost { .. }
                | NodeDown { .. }
                | NotAnAllocation { .. }
                | Unallocated { .. }
                | WrongDiscipline { .. }
                | WrongLength { .. }
        ),
        kv::Error::Damaged { .. } | kv::Error::NotAStore { .. } => true,
        _ => false,
    }
}

fn within(len: usize, most: usize) -> Result<(), kv::Error> {
    if len <= most { Ok(()) } else { Err(kv::Error::KeyTooLong { len, most }) }
}

fn value_within(len: usize, most: usize) -> Result<(), kv::Error> {
    if len <= most { Ok(()) } else { Err(kv::Error::ValueTooLong { len, most }) }
}

/// What `named` says, without the store's type.
fn of_named(name: &str) -> impl Fn(named::Error<kv::Error>) -> Error {
    move |why| match why {
        named::Error::Name(why) => Error::Name(why),
        named::Error::Store(why) => failed(name)(why),
    }
}

pub(super) fn save<S: Listed>(
    handle: &mut NodeHandle,
    mut about: About,
    wait: Duration,
    out: impl Write,
) -> Result<Saved, Error> {
    let name = about.name.clone();
    let making = handle.name_info(&name)?.making;
    let store: S = named::open(handle, &name).map_err(of_named(&name))?;
    about.config = store.config();
    let mut file = Writer::begin(out, &about)?;
    let moment = store.each(handle, &about, wait, &mut |key, value| file.entry(key, value))?;
    // Another store may have its name by now, under the same number.
    still_there(handle, &name, making)?;
    let same: S = named::open(handle, &name).map_err(of_named(&name))?;
    if same.root() != store.root() {
        return Err(Error::Changed { name });
    }
    let end = file.end(moment)?;
    Ok(Saved { about, moment, bytes: end.bytes, entries: end.entries })
}

impl<R: Read + Seek> Snapshot<R> {
    /// True if it was made.
    pub(super) fn restore_store<S: Listed>(&mut self, target: &mut Target<'_>) -> Result<bool, Error> {
        // Of a maker that died midway there is a name, and no store yet; of a store that was lost, its root may be left.
        let mut seen = [0; 8];
        let is_there = target
            .found
            .as_ref()
            .is_some_and(|info| ByteValue::found(info).get(target.handle, &mut seen).is_ok());
        let seen = if is_there { u64::from_ne_bytes(seen) } else { 0 };
        if seen != 0
            && let Ok(store) = S::open(target.handle, GlobalAddr::from_bits(seen))
        {
            let mut keys = Vec::new();
            let about = About { name: target.name.to_owned(), ..self.about.clone() };
            let listed = store.each(target.handle, &about, target.wait, &mut |key, _| {
                keys.push(key.to_vec());
                Ok(())
            });
            match listed {
                Ok(_) => return self.fill_again(target, &store, &keys).map(|()| false),
                // A part of it is gone with a node, so it will never be whole again.
                Err(Error::Store { why, .. }) if is_lost(&why) => {}
                Err(why) => return Err(why),
            }
        }
        self.make::<S>(target, seen).map(|()| true)
    }

    /// Makes a store, and gives it its name when all is in it.
    fn make<S: Listed>(&mut self, target: &mut Target<'_>, seen: u64) -> Result<(), Error> {
        let Target { handle, name, .. } = target;
        let failed = failed(name);
        let what = "no store was ever made so";
        let config = S::config_of(self.about.config).ok_or(Error::Malformed { what })?;
        let store = S::create(handle, &config).map_err(&failed)?;
        let own = store.root().bits();
        let filled = self.entries(|key, value| store.put(handle, key, value).map_err(&failed));
        let named = filled.and_then(|()| {
            let root: Value<u64> = handle.named(name).tag(S::TAG, 1).anew(|| own)?;
            let is_ours = root.update(handle, |there| {
                if *there == seen {
                    *there = own;
                }
                *there == own
            });
            match is_ours {
                Ok(true) => Ok(()),
                Ok(false) => Err(Error::Exists { there: Box::new(handle.name_info(name)?) }),
                Err(why) => Err(Error::Memory { name: (*name).to_owned(), why }),
            }
        });
        named.inspect_err(|_| {
            // Nobody else has seen it. If its memory cannot be freed, its nodes are gone.
            let _ = store.destroy(handle);
        })
    }

    /// Puts all entries into a store that is there, and takes away what else was in it.
    fn fill_again<S: Listed>(
        &mut self,
        target: &mut Target<'_>,
        store: &S,
        before: &[Vec<u8>],
    ) -> Result<(), Error> {
        let Target { handle, name, .. } = target;
        let failed = failed(name);
        store.takes(self.longest).map_err(&failed)?;
        let mut keys = BTreeSet::new();
        let filled = self.entries(|key, value| {
            keys.insert(key.to_vec());
            store.put(handle, key, value).map_err(&failed)
        });
        let done = filled.and_then(|()| {
            let mut others = before.iter().filter(|key| !keys.contains(*key));
            others.try_for_each(|key| store.delete(handle, key).map_err(&failed))
        });
        done.map_err(|why| Error::Partly { name: (*name).to_owned(), made: false, why: Box::new(why) })
    }
}
