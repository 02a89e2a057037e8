//! Stores under names: what has a root address can be found by every program of the rack.
//!
//! A name leads to a value, and that to the root of a store. What must always hold: a root stands there only if its store is whole; so a
//! maker that dies midway leaves nothing that others see (what it had allocated stays allocated), and one that dies later does not take the
//! root along. Of all who make one at once one wins,
//! and the others take their own apart again.
//!
//! ```
//! use apps::kv::{KvConfig, KvStore};
//! use rackmem::{Config, NodeId, Rack, block_on};
//! # let rack = Rack::embedded(Config { nodes: 2, memory: 16 << 20, cache: 1 << 20, ..Config::default() })?;
//! # let (mut here, mut there) = (rack.node(NodeId(0)), rack.node(NodeId(1)));
//!
//! let users: KvStore = apps::named::open_or(&mut here, "users", &KvConfig::default())?;
//! block_on(users.put(&mut here, b"ann", b"1"))?;
//! let same: KvStore = apps::named::open(&mut there, "users")?;
//! let mut found = Vec::new();
//! assert!(block_on(same.get(&mut there, b"ann", &mut found))? && found == b"1");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;

use rackmem::{GlobalAddr, NameError, NodeHandle, Value, block_on};

use crate::kv::{self, KvConfig, KvStore};
use crate::kv_locked::{LockedStore, LockedStoreConfig};

/// A store that others find by the address of its root.
pub trait Rooted: Sized {
    /// What it is made with.
    type Config;
    /// Why it fails.
    type Error: std::error::Error + 'static;
    /// What a name says that it is.
    const TAG: &str;

    /// Makes one.
    ///
    /// # Errors
    /// If there is no memory for it.
    fn create(handle: &mut NodeHandle, config: &Self::Config) -> Result<Self, Self::Error>;

    /// Opens the one at an address.
    ///
    /// # Errors
    /// If there is none.
    fn open(handle: &mut NodeHandle, root: GlobalAddr) -> Result<Self, Self::Error>;

    /// Its address.
    fn root(&self) -> GlobalAddr;

    /// Frees its memory. Nobody may use it any more.
    ///
    /// # Errors
    /// If some of its memory is lost.
    fn destroy(self, handle: &mut NodeHandle) -> Result<(), Self::Error>;
}

impl Rooted for KvStore {
    type Config = KvConfig;
    type Error = kv::Error;
    const TAG: &str = "store";

    fn create(handle: &mut NodeHandle, config: &KvConfig) -> Result<Self, kv::Error> {
        block_on(Self::create(handle, config))
    }

    fn open(handle: &mut NodeHandle, root: GlobalAddr) -> Result<Self, kv::Error> {
        block_on(Self::open(handle, root))
    }

    fn root(&self) -> GlobalAddr {
        self.root()
    }

    fn destroy(self, handle: &mut NodeHandle) -> Result<(), kv::Error> {
        block_on(self.destroy(handle))
    }
}

impl Rooted for LockedStore {
    type Config = LockedStoreConfig;
    type Error = kv::Error;
    const TAG: &str = "store in locks";

    fn create(handle: &mut NodeHandle, config: &LockedStoreConfig) -> Result<Self, kv::Error> {
        Self::create(handle, config)
    }

    fn open(handle: &mut NodeHandle, root: GlobalAddr) -> Result<Self, kv::Error> {
        Self::open(handle, root)
    }

    fn root(&self) -> GlobalAddr {
        self.root()
    }

    fn destroy(self, handle: &mut NodeHandle) -> Result<(), kv::Error> {
        self.destroy(handle)
    }
}

/// Why a store was not opened or made.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error<E> {
    /// The name was not.
    Name(NameError),
    /// The store was not.
    Store(E),
}

impl<E: fmt::Display> fmt::Display for Error<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(why) => why.fmt(f),
            Self::Store(why) => why.fmt(f),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for Error<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Name(why) => Some(why),
            Self::Store(why) => Some(why),
        }
    }
}

impl<E> From<NameError> for Error<E> {
    fn from(why: NameError) -> Self {
        Self::Name(why)
    }
}

/// The bits of the root's address; 0: there is no store yet.
type Root = Value<u64>;

/// Opens the store with this name.
///
/// # Errors
/// [`NameError::NotFound`] also while nobody has finished one; [`NameError::Lost`]; what the store says if its root is lost.
pub fn open<S: Rooted>(handle: &mut NodeHandle, name: &str) -> Result<S, Error<S::Error>> {
    let root: Root = handle.named(name).tag(S::TAG, 1).open()?;
    match root.get(handle).map_err(NameError::from)? {
        0 => Err(NameError::NotFound { name: name.to_owned() }.into()),
        bits => S::open(handle, GlobalAddr::from_bits(bits)).map_err(Error::Store),
    }
}

/// Opens it, or makes it. While nobody has finished one, each of those who come makes one, so there must be memory for as many.
///
/// # Errors
/// As for [`open`]; if there is no memory for one.
pub fn open_or<S: Rooted>(
    handle: &mut NodeHandle,
    name: &str,
    config: &S::Config,
) -> Result<S, Error<S::Error>> {
    let root: Root = handle.named(name).tag(S::TAG, 1).open_or(|| 0)?;
    let there = root.get(handle).map_err(NameError::from)?;
    if there != 0 {
        return S::open(handle, GlobalAddr::from_bits(there)).map_err(Error::Store);
    }
    make(handle, &root, 0, config)
}

/// Makes what was lost anew; opens what is there. What is left of a store that has lost its root is not freed.
///
/// # Errors
/// As for [`open_or`]; [`NameError::Lost`] while the node is down that keeps the name.
pub fn anew<S: Rooted>(
    handle: &mut NodeHandle,
    name: &str,
    config: &S::Config,
) -> Result<S, Error<S::Error>> {
    let root: Root = handle.named(name).tag(S::TAG, 1).anew(|| 0)?;
    let there = root.get(handle).map_err(NameError::from)?;
    if there != 0
        && let Ok(store) = S::open(handle, GlobalAddr::from_bits(there))
    {
        return Ok(store);
    }
    make(handle, &root, there, config)
}

/// Makes a store, in the place of what was seen there.
fn make<S: Rooted>(
    handle: &mut NodeHandle,
    root: &Root,
    seen: u64,
    config: &S::Config,
) -> Result<S, Error<S::Error>> {
    let made = S::create(handle, config);
    // Whoever has no memory for his own may still find that of another one.
    let own = made.as_ref().map_or(seen, |store| store.root().bits());
    let there = root.update(handle, |there| {
        if *there == seen {
            *there = own;
        }
        *there
    });
    let there = there.map_err(NameError::from)?;
    match made {
        Ok(store) if there == own => {
            // Others have found it by now, or will: not only as long as its maker lives.
            handle.send_home(root.addr(), Root::BYTES).map_err(NameError::from)?;
            Ok(store)
        }
        Err(why) if there == seen => Err(Error::Store(why)),
        lost => {
            if let Ok(store) = lost {
                store.destroy(handle).map_err(Error::Store)?;
            }
            S::open(handle, GlobalAddr::from_bits(there)).map_err(Error::Store)
        }
    }
}

/// Takes the name away, and then frees the store: nobody finds it any more, and nobody may be using it. (Of a [`LockedStore`] whoever still
/// does is refused.)
///
/// # Errors
/// As for [`open`].
pub fn remove<S: Rooted>(handle: &mut NodeHandle, name: &str) -> Result<(), Error<S::Error>> {
    let root: Root = handle.named(name).tag(S::TAG, 1).open()?;
    let bits = root.get(handle).map_err(NameError::from)?;
    // Of two who remove it one goes on.
    handle.remove_name(name)?;
    match bits {
        0 => Ok(()),
        bits => S::open(handle, GlobalAddr::from_bits(bits))
            .and_then(|store| store.destroy(handle))
            .map_err(Error::Store),
    }
}
