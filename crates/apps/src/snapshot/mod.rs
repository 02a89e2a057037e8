//! Snapshots: what a name names, saved into a file, and brought back.
//!
//! [`save`] writes to any [`Write`](std::io::Write). [`Snapshot::open`] reads all of a file before anything in the rack is changed: a file
//! that is cut short, damaged or of another version is refused. Then [`Snapshot::restore`] brings it back, under its name or another one.
//!
//! ```
//! use std::io::Cursor;
//! use std::time::Duration;
//!
//! use apps::snapshot::{self, Existing, Snapshot};
//! use rackmem::{Config, Locked, NodeId, Rack};
//! # let config = Config { nodes: 2, memory: 1 << 20, cache: 1 << 20, ..Config::default() };
//! # let rack = Rack::embedded(config.clone())?;
//! # let mut here = rack.node(NodeId(0));
//!
//! let (mut file, wait) = (Vec::new(), Duration::from_secs(10));
//! here.named::<Locked<[u64; 3]>>("quotas").create([10, 20, 30])?;
//! snapshot::save(&mut here, "quotas", wait, &mut file)?;
//!
//! let another = Rack::embedded(config)?;
//! let mut there = another.node(NodeId(1));
//! Snapshot::open(Cursor::new(file))?.restore(&mut there, "quotas", Existing::Keep, wait)?;
//! let quotas = there.named::<Locked<[u64; 3]>>("quotas").open()?;
//! assert_eq!(*quotas.read(&mut there)?, [10, 20, 30]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What a snapshot is
//! | of | as it was at one moment | writers wait |
//! | --- | --- | --- |
//! | [`Locked`](rackmem::Locked), [`LockedRegions`](rackmem::LockedRegions) | all of it | while it is copied in memory, under its lock |
//! | [`Value`](rackmem::Value) | all of it | no |
//! | [`LockedStore`](crate::kv_locked::LockedStore) | all of it, if its buckets take up to 2 MiB and all their locks can be had in a second; or else each bucket | up to a second, while it is copied in memory; or while their bucket is |
//! | [`ObjectStore`](crate::objects::ObjectStore) | each of its chains of buckets | no |
//! | [`KvStore`](crate::kv::KvStore) | each key: nothing excludes writers of several keys | no |
//! | [`Region`](rackmem::Region) | each block: whoever has it mapped, or writes it, has no lock to wait for | no |
//! | [`Words`](rackmem::Words), [`Objects`](rackmem::Objects), [`ByteObjects`](rackmem::ByteObjects) | each word, each object | no |
//! | [`Chains`](rackmem::Chains) | nothing: [`Error::Unlistable`] | |
//!
//! It is of what the name itself names: addresses in that are saved as they are, not what they lead to. So of a [`Rooted`](crate::named::Rooted)
//! store that is none of these, only the root is.
//!
//! Each of these moments is between the beginning and the end of the saving, and [`Saved::moment`] says which it was. What is lost is not
//! in a file without an error.
//!
//! # What bringing back does
//! What has no name yet, or was lost, is made. A value (behind a lock or not) is there with its contents at once, and a store gets its
//! name when all is in it. Regions behind a lock are empty before they are filled, and a region, words or objects are zeroes: who opens
//! them by their name meanwhile sees that. After an error they are taken away again.
//!
//! What is there is replaced only if it is of the same kind and shape ([`Existing::Replace`]): what a lock guards, or a value, in one step; a
//! region block by block, words and objects one by one, a store key by key, so that those who use it go on. Of what has changed so far when
//! that fails, [`Error::Partly`] says so. A store that has lost a part of its memory is made anew; whoever has opened it before has to open
//! it again, and what is left of it is not freed.
//!
//! | file | holds |
//! | --- | --- |
//! | `about.rs` | what a snapshot is of, and what it promises |
//! | `format.rs` | a snapshot as bytes |
//! | `save.rs` | saving what a name names |
//! | `restore.rs` | bringing it back |
//! | `stores.rs` | both for stores |
//! | `error.rs` | what can go wrong |

mod about;
mod error;
mod format;
mod restore;
mod save;
mod stores;

pub use about::{About, Kind, Moment};
pub use error::Error;
pub use format::MAGIC;
pub use restore::{Existing, Snapshot};
pub use save::save;

/// What was saved.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Saved {
    /// What it is.
    pub about: About,
    /// Of what it is one moment.
    pub moment: Moment,
    /// Bytes of its content.
    pub bytes: u64,
    /// Keys of a store, regions behind a lock; otherwise 0.
    pub entries: u64,
}

/// What was brought back.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Restored {
    /// What it is, and the name that it had when it was saved.
    pub about: About,
    /// It was made; otherwise what was there has other contents now.
    pub made: bool,
    /// It has copies.
    pub copies: bool,
    /// Bytes of its content.
    pub bytes: u64,
    /// Keys of a store, regions behind a lock; otherwise 0.
    pub entries: u64,
}
