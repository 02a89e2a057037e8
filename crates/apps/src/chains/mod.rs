//! A key-value store on chains, with keys of bytes: memory nodes have nothing but a NIC.
//!
//! Runs wherever its caller runs. A key is hashed to 64 bits, which are the key of a chain ([`rackmem::Chains`]); the key itself stands
//! in front of its value, so that two keys of one hash are found out, and the second one is refused. There is nothing here that
//! depends on what was there before: a value is replaced as a whole, and whoever is last wins. That is what a switch that steers needs, which
//! appends an entry behind whatever is the tail by then.
//!
//! What must always hold: what is returned for a key was put for that key.
//!
//! ```
//! use apps::chains::{ChainStore, ChainStoreConfig};
//! use rackmem::{NodeId, Rack};
//!
//! let rack = Rack::embedded(rackmem::Config { nodes: 2, memory: 16 << 20, ..rackmem::Config::default() })?;
//! let (mut here, mut there) = (rack.node(NodeId(0)), rack.node(NodeId(1)));
//! let mut store = ChainStore::create(&mut here, &ChainStoreConfig { expected_keys: 100, ..ChainStoreConfig::default() })?;
//! store.put(&mut here, b"visits", &[41])?;
//!
//! let (mut same, mut value) = (ChainStore::open(&mut there, store.root())?, Vec::new());
//! assert!(same.get(&mut there, b"visits", &mut value)? && value == [41]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;

use rackmem::{Chains, ChainsConfig, GlobalAddr, Nanos, NodeHandle, NodeId};

use crate::kv::hash::KeyHash;

pub use self::error::Error;

/// What a store is created with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChainStoreConfig {
    /// How many keys the store must have capacity for.
    pub expected_keys: u64,
    /// Bytes of a key and its value together, at most.
    pub record_bytes: usize,
    /// How long a client may use what it knows of a key without asking. What was replaced comes back a little later, or, where the rack's
    /// switch steers reads, some seconds.
    pub lease: Nanos,
    /// Bytes that are written in a second, at most, as the slots count that they are written to ([`ChainStoreConfig::slot_bytes`]). If it is more, writers
    /// wait for what comes back.
    pub written_in_a_second: u64,
    /// The nodes whose memories the store has.
    pub homes: Vec<NodeId>,
    /// In how many of them each record is ([`ChainsConfig::copies`]).
    pub copies: usize,
    /// The node that has the metadata server.
    pub server: NodeId,
}

impl Default for ChainStoreConfig {
    fn default() -> Self {
        Self {
            expected_keys: 1 << 12,
            record_bytes: 128,
            lease: Nanos::from_millis(400),
            written_in_a_second: 4 << 20,
            homes: vec![NodeId(0)],
            copies: 1,
            server: NodeId(0),
        }
    }
}

/// Bytes in front of a key, and in front of that in the entry.
const KEY_LENGTH: usize = 4;
const ENTRY_HEAD: usize = 24;

impl ChainStoreConfig {
    /// Bytes of a slot for the largest record.
    pub fn slot_bytes(&self) -> u64 {
        ((ENTRY_HEAD + KEY_LENGTH + self.record_bytes).max(64) as u64).next_power_of_two()
    }

    /// Bytes of memory at each home for one copy, if slots stay in quarantine for so long.
    pub fn bytes_on_each(&self, quarantine: Nanos) -> u64 {
        /// What clients have in hand; and what little each client tells late.
        const IN_HANDS: u64 = 8 << 20;
        // Of each key there is an entry, and for as long as slots stay in quarantine those that it has replaced.
        let milliseconds = quarantine.0.div_ceil(1_000_000);
        let written = self.written_in_a_second.saturating_mul(milliseconds) / 1000;
        let all = self.expected_keys.saturating_mul(self.slot_bytes()).saturating_add(written);
        let each = all.div_ceil(self.homes.len().max(1) as u64).saturating_add(IN_HANDS);
        each.next_multiple_of(64)
    }
}

/// One client of a store. Each thread has its own; clone it for more.
#[derive(Clone, Debug)]
pub struct ChainStore {
    chains: Chains,
    entry: Vec<u8>,
}

impl ChainStore {
    /// A new store.
    ///
    /// # Errors
    /// If the rack's memory is full, or a node is down.
    pub fn create(handle: &mut NodeHandle, config: &ChainStoreConfig) -> Result<Self, Error> {
        let ChainStoreConfig { homes, copies, server, lease, .. } = config;
        let chains = ChainsConfig {
            homes: homes.clone(),
            bytes: config.bytes_on_each(handle.least_quarantine(*lease)),
            copies: *copies,
            server: *server,
            lease: *lease,
            quarantine: None,
        };
        Ok(Self { chains: handle.chains(&chains)?, entry: Vec::new() })
    }

    /// The store whose root is there, which [`ChainStore::root`] has named.
    ///
    /// # Errors
    /// If there is none, or its metadata server is down.
    pub fn open(handle: &mut NodeHandle, root: GlobalAddr) -> Result<Self, Error> {
        Ok(Self { chains: handle.chains_at(root)?, entry: Vec::new() })
    }

    /// The store's address, for [`ChainStore::open`].
    pub fn root(&self) -> GlobalAddr {
        self.chains.addr()
    }

    /// Replaces `into` by the key's value; false if it has none.
    ///
    /// # Errors
    /// If something that the store needs is down, or another key has the same hash.
    pub fn get(&mut self, handle: &mut NodeHandle, key: &[u8], into: &mut Vec<u8>) -> Result<bool, Error> {
        if !self.chains.get(handle, hash(key), into)? {
            return Ok(false);
        }
        let front = front_of(into, key)?;
        into.copy_within(front.., 0);
        into.truncate(into.len() - front);
        Ok(true)
    }

    /// Stores a value, instead of what was there.
    ///
    /// # Errors
    /// If the memory is full, and as for [`ChainStore::get`]. That another key has the same hash is found out by whoever reads.
    pub fn put(&mut self, handle: &mut NodeHandle, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let Self { chains, entry } = self;
        entry.clear();
        entry.extend_from_slice(&(key.len() as u32).to_le_bytes());
        entry.extend_from_slice(key);
        entry.extend_from_slice(value);
        chains.put(handle, hash(key), entry)?;
        Ok(())
    }

    /// Removes the key's value, if it has one.
    ///
    /// # Errors
    /// As for [`ChainStore::put`].
    pub fn delete(&mut self, handle: &mut NodeHandle, key: &[u8]) -> Result<(), Error> {
        self.chains.delete(handle, hash(key)).map_err(Error::from)
    }

    /// Round trips that this client's last operation took.
    pub fn trips(&self) -> u32 {
        self.chains.trips()
    }

    /// Ends the store.
    ///
    /// # Errors
    /// As for [`ChainStore::open`].
    pub fn destroy(self, handle: &mut NodeHandle) -> Result<(), Error> {
        self.chains.free(handle).map_err(Error::from)
    }
}

fn hash(key: &[u8]) -> u64 {
    KeyHash::of(key, 0).bits()
}

/// How many bytes stand in front of the value: of this key, or it is another one's.
fn front_of(entry: &[u8], key: &[u8]) -> Result<usize, Error> {
    let (length, rest) = entry.split_first_chunk::<KEY_LENGTH>().ok_or(Error::NotAnEntry)?;
    let length = u32::from_le_bytes(*length) as usize;
    match rest.get(..length) {
        Some(of) if of == key => Ok(KEY_LENGTH + length),
        Some(_) => Err(Error::SameHash),
        None => Err(Error::NotAnEntry),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_of_another_key_is_found_out() {
        let entry = b"\x03\0\0\0abcvalue";
        assert_eq!(front_of(entry, b"abc"), Ok(7));
        assert_eq!(front_of(entry, b"abd"), Err(Error::SameHash));
        assert_eq!(front_of(entry, b"ab"), Err(Error::SameHash));
        assert_eq!(front_of(b"\x09\0\0\0abc", b"abc"), Err(Error::NotAnEntry));
        assert_eq!(front_of(b"abc", b"abc"), Err(Error::NotAnEntry));
    }

    #[test]
    fn memory_is_for_all_keys_and_for_what_rests() {
        let config =
            ChainStoreConfig { expected_keys: 1000, record_bytes: 1000, ..ChainStoreConfig::default() };
        let rest = Nanos::from_millis(1500);
        assert!(config.bytes_on_each(rest) >= 1000 * 2048 + (6 << 20));
        let spread = ChainStoreConfig { homes: vec![NodeId(0), NodeId(1)], ..config.clone() };
        assert!(spread.bytes_on_each(rest) < config.bytes_on_each(rest));
    }
}
