//! Words, objects and stores of chains by messages: what an attached handle asks its daemon for.
//!
//! What must always hold: whatever is asked names a region, or a store, by what everybody in the rack calls it, so that another one
//! at the same address is never taken for it, whichever connection the question goes through.

use std::sync::Arc;

use chain::client::Done;
use live::chains::{Home, Ran, Setup, Store, Wanted, What};
use live::memory::regions::Shape;
use live::networked::verbs::{Far, Opened, Read, RegionName, Written};
use nic::words::{Operands, Operation as OnWord, Width};
use wire::{Discipline, GlobalAddr, Nanos, NodeId};

use super::answer::Answer;
use super::conversation::Conversation;
use super::operation::{Creation, Operation, WordOf};
use super::posted::AskedIndex;
use crate::chains::ChainsConfig;
use crate::error::Error;
use crate::handle::NodeHandle;

impl NodeHandle {
    pub(crate) fn ask_to_begin(&self, shape: Shape, home: NodeId) -> Result<Opened, Error> {
        self.ask_for_region(&Operation::Begin { shape, home }, shape.discipline())
    }

    pub(crate) fn ask_to_open(&self, addr: GlobalAddr, needs: Discipline) -> Result<Opened, Error> {
        self.ask_for_region(&Operation::Open { addr, needs }, needs)
    }

    fn ask_for_region(&self, operation: &Operation<'_>, needs: Discipline) -> Result<Opened, Error> {
        self.ask(operation, |answer| match answer {
            Answer::Region(RegionName { addr, incarnation, key }, shape, is_shared) => {
                let far = Far { addr, incarnation, key, shape };
                (shape.discipline() == needs).then_some((far, is_shared))
            }
            _ => None,
        })
        .map(|(far, is_shared)| {
            let mapped = if is_shared { self.asking().attached().map(&far) } else { None };
            mapped.map_or(Opened::Far(far), Opened::Near)
        })
    }

    /// Begins an operation on a word.
    pub(crate) fn ask_on_word(
        &mut self,
        (far, index): (&Far, usize),
        width: Width,
        (operation, operands): (OnWord, Operands),
        silent: bool,
    ) -> Result<AskedIndex, Error> {
        let word = WordOf { region: far.name(), index: index as u64, width, operation, operands };
        self.ask_word(word, silent)
    }

    pub(crate) fn ask_to_read_words(&mut self, far: &Far, at: usize, into: &mut [u8]) -> Result<(), Error> {
        self.send_asked();
        let operation = Operation::ReadWords { region: far.name(), at: at as u64, len: into.len() };
        self.ask(&operation, |answer| match answer {
            Answer::Bytes(bytes) if bytes.len() == into.len() => {
                into.copy_from_slice(&bytes);
                Some(())
            }
            _ => None,
        })
    }

    pub(crate) fn ask_to_write_words(&mut self, far: &Far, at: usize, bytes: &[u8]) -> Result<(), Error> {
        self.send_asked();
        self.conversation()?.done(&Operation::WriteWords { region: far.name(), at: at as u64, bytes })
    }

    pub(crate) fn ask_to_read_object(&self, far: &Far, index: usize, into: &mut [u8]) -> Result<Read, Error> {
        let operation = Operation::ReadObject { region: far.name(), index: index as u64, len: into.len() };
        self.ask(&operation, |answer| match answer {
            Answer::Object(version, bytes) if bytes.len() == into.len() => {
                into.copy_from_slice(&bytes);
                Some(Read::Whole(version))
            }
            Answer::Busy => Some(Read::Torn),
            _ => None,
        })
    }

    pub(crate) fn ask_to_write_object(
        &self,
        far: &Far,
        (index, at): (usize, usize),
        bytes: &[u8],
        expected: Option<u64>,
    ) -> Result<Written, Error> {
        let region = far.name();
        let operation = Operation::WriteObject { region, index: index as u64, at, expected, bytes };
        self.ask(&operation, |answer| match answer {
            Answer::Word(version) => Some(Written::Done(version)),
            Answer::Busy if expected.is_some() => Some(Written::Changed),
            _ => None,
        })
    }

    pub(crate) fn ask_to_create(&self, config: &ChainsConfig) -> Result<Arc<Store>, Error> {
        let ChainsConfig { homes, bytes, copies, server, lease, quarantine } = config;
        let homes: Vec<u8> = homes.iter().flat_map(|home| home.0.to_le_bytes()).collect();
        let (bytes, copies, server) = (*bytes, *copies as u64, *server);
        let create =
            Creation { homes: &homes, bytes, copies, server, lease: *lease, quarantine: *quarantine };
        self.ask_for_store(&Operation::Create(create))
    }

    pub(crate) fn ask_to_open_store(&self, wanted: Wanted) -> Result<Arc<Store>, Error> {
        self.ask_for_store(&Operation::OpenStore { wanted })
    }

    fn ask_for_store(&self, operation: &Operation<'_>) -> Result<Arc<Store>, Error> {
        self.ask(operation, |answer| match answer {
            Answer::Region(name, ..) => Some(Arc::new(store_of(name))),
            _ => None,
        })
    }

    /// Does it, and says how many round trips that took the daemon.
    pub(crate) fn ask_on_key(&self, store: RegionName, key: u64, what: What<'_>) -> Result<Ran, Error> {
        let operation = match &what {
            What::Get(_) => Operation::Get { store, key },
            What::Put(value) => Operation::Put { store, key, value },
            What::Delete => Operation::Delete { store, key },
        };
        let (trips, value) = self.ask(&operation, |answer| match answer {
            Answer::Chained(trips, value) => Some((trips, value)),
            _ => None,
        })?;
        let done = match (what, value) {
            (What::Get(into), Some(value)) => {
                *into = value;
                Done::Value(into.len() as u32)
            }
            (What::Get(_), None) => Done::Nothing,
            _ => Done::Appended,
        };
        Ok(Ran { done, trips })
    }

    pub(crate) fn ask_to_free_store(&self, store: RegionName) -> Result<(), Error> {
        self.conversation()?.done(&Operation::FreeStore { store })
    }

    /// What says to the daemon that this store is not used any more.
    pub(crate) fn closing(&self, store: RegionName) -> Result<Closing, Error> {
        Ok(Closing { conversation: Arc::clone(self.conversation()?), store })
    }
}

/// A store that is in use through a connection, until this is dropped.
pub(crate) struct Closing {
    conversation: Arc<Conversation>,
    store: RegionName,
}

impl Closing {
    pub(crate) const fn store(&self) -> RegionName {
        self.store
    }

    /// True if it is in use through this handle.
    pub(crate) fn is_of(&self, handle: &NodeHandle) -> bool {
        handle.conversation().is_ok_and(|conversation| Arc::ptr_eq(conversation, &self.conversation))
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        self.conversation.tell(&Operation::Close { store: self.store });
    }
}

/// A store of which no more is known than what it is called.
fn store_of(RegionName { addr, incarnation, key }: RegionName) -> Store {
    let homes = vec![Home { addr, key, incarnation }];
    let (lease, quarantine) = (Nanos::ZERO, Nanos::ZERO);
    Store::new(addr, incarnation, Setup { lease, quarantine, each: 0, copies: 1, generation: 0, homes })
}
