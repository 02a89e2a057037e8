//! With `--chains`: the words are keys of a store of chains with copies.
//!
//! Values have many lengths, and repeat the word that they stand for. What must always hold: what is found is one value, whole; a put
//! that has ended is there, whoever dies.

use rackmem::{Chains, ChainsConfig, Error, GlobalAddr, NodeHandle, NodeId};

/// Bytes at each node, for each copy: what is written while what was overwritten rests.
const BYTES: u64 = 4 << 20;
/// Words of the longest value.
const LONGEST: u64 = 60;

/// A store in the hands of one thread.
pub(super) struct Store {
    addr: u64,
    chains: Chains,
    found: Vec<u8>,
}

impl Store {
    /// A new one, in the memories of all these nodes; its metadata server is at the first one.
    pub(super) fn make(node: &mut NodeHandle, homes: Vec<NodeId>, copies: u8) -> Result<u64, Error> {
        let server = *homes.first().expect("somebody is there");
        let config = ChainsConfig { homes, copies: copies.into(), ..ChainsConfig::at(server, BYTES) };
        Ok(node.chains(&config)?.addr().bits())
    }

    /// The store at this address: the same as before, if that is it.
    pub(super) fn open<'a>(
        known: &'a mut Option<Self>,
        node: &mut NodeHandle,
        addr: u64,
    ) -> Result<&'a mut Self, Error> {
        if known.as_ref().is_none_or(|store| store.addr != addr) {
            let chains = node.chains_at(GlobalAddr::from_bits(addr))?;
            *known = Some(Self { addr, chains, found: Vec::new() });
        }
        Ok(known.as_mut().expect("it was opened"))
    }

    /// What a key stands for: 0 if there is none yet.
    pub(super) fn get(&mut self, node: &mut NodeHandle, key: u64) -> Result<u64, Error> {
        if !self.chains.get(node, key, &mut self.found)? {
            return Ok(0);
        }
        let (words, rest) = self.found.as_chunks::<8>();
        let value = words.first().map_or(0, |word| u64::from_le_bytes(*word));
        let is_whole =
            rest.is_empty() && words.len() == len(value) && words.iter().all(|word| *word == words[0]);
        assert!(is_whole, "key {key} has {words:x?}, which nobody has put");
        Ok(value)
    }

    pub(super) fn put(&mut self, node: &mut NodeHandle, key: u64, value: u64) -> Result<(), Error> {
        self.chains.put(node, key, &value.to_le_bytes().repeat(len(value)))
    }
}

fn len(value: u64) -> usize {
    (1 + value % LONGEST) as usize
}
