//! Chains: a key-value store whose memory nodes have nothing but a NIC. The public API.
//!
//! Runs on every node. Entries lie in the memory of one node or several, where no thread looks at a request: clients READ, WRITE and
//! CmpSwap there, on queue pairs of their own, through the rack's switch. One node has the metadata server, which gives out slots and
//! takes back what nobody needs. What must always hold: all operations on a key together are linearizable.

use std::sync::Arc;

use live::actor::{Allocated, Failure};
use live::chains::{Home, LONGEST_VALUE, Ran, Session, Setup, Store, Wanted, What};
use live::networked::verbs::RegionName;
use sorted::Set;
use wire::roce::Key;
use wire::{Discipline, GlobalAddr, Nanos, NodeId, Refusal};

use crate::addresses::of_a_node;
use crate::attach::Closing;
use crate::error::Error;
use crate::handle::{NodeHandle, failed};
use crate::rack::Inner;

/// Bytes of a unit of a store's memory.
pub(crate) const UNIT: u64 = wire::chains::UNIT;

/// How a store of chains is created.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChainsConfig {
    /// The nodes whose memories it has at first: one at least.
    pub homes: Vec<NodeId>,
    /// Bytes at each of them for what is stored: a multiple of 64. With several copies, each home has as much for each copy.
    pub bytes: u64,
    /// In how many of these memories each entry is; the metadata server has as many backups less one, at nodes that have memory of the store. So
    /// it outlives the death of one less. What a dead node had is made anew at another one that has room, if there is one; then it outlives as
    /// many again. Each copy more takes a put one more round trip, and as much memory. Where the switch steers, it steers a store with a copy at
    /// each of its homes, and none of several homes that has fewer copies.
    pub copies: usize,
    /// The node that has the metadata server at first.
    pub server: NodeId,
    /// How long a client may use what it knows of a chain: a longer time spares calls.
    pub lease: Nanos,
    /// How long a slot stays in quarantine before it is used anew: no shorter than [`NodeHandle::least_quarantine`] says for this lease, and that if it is none.
    /// Memory must hold what is written in that time.
    pub quarantine: Option<Nanos>,
}

impl ChainsConfig {
    /// The most copies that there can be.
    pub const MOST_COPIES: usize = 3;

    /// A store of so many bytes at one node, which has the metadata server, too.
    pub fn at(home: NodeId, bytes: u64) -> Self {
        Self {
            homes: vec![home],
            bytes,
            copies: 1,
            server: home,
            lease: Nanos::from_millis(400),
            quarantine: None,
        }
    }
}

/// One client of a store. Each thread has its own; clone it for more.
///
/// ```
/// use rackmem::{ChainsConfig, Config, NodeId, Rack};
///
/// let rack = Rack::embedded(Config { nodes: 2, memory: 8 << 20, cache: 1 << 20, ..Config::default() })?;
/// let (mut here, mut there) = (rack.node(NodeId(0)), rack.node(NodeId(1)));
/// let mut store = here.chains(&ChainsConfig::at(NodeId(1), 1 << 20))?;
/// store.put(&mut here, 7, b"seven")?;
///
/// let (mut same, mut value) = (there.chains_at(store.addr())?, Vec::new());
/// assert!(same.get(&mut there, 7, &mut value)? && value == b"seven");
/// same.delete(&mut there, 7)?;
/// assert!(!store.get(&mut here, 7, &mut value)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Chains {
    inner: Arc<Inner>,
    store: Arc<Store>,
    /// The client, and whose it is.
    session: Option<Client>,
    trips: u32,
}

/// Who does what is asked of a store.
#[allow(clippy::large_enum_variant, reason = "most are clients of a node")]
enum Client {
    /// A client of this node.
    Here(NodeId, Session),
    /// The daemon of this connection.
    Asked(Closing),
}

impl NodeHandle {
    /// Creates a store of chains.
    ///
    /// # Errors
    /// [`Error::BadSize`], [`Error::QuarantineTooShort`], [`Error::TooManyCopies`], [`Error::OutOfMemory`], [`Error::NoSuchNode`], [`Error::NodeDown`].
    pub fn chains(&mut self, config: &ChainsConfig) -> Result<Chains, Error> {
        if self.is_attached() {
            let store = self.ask_to_create(config)?;
            return Ok(Chains { inner: Arc::clone(&self.inner), store, session: None, trips: 0 });
        }
        let ChainsConfig { homes, bytes, copies, server, .. } = config;
        let each = u32::try_from(bytes / UNIT).unwrap_or(u32::MAX);
        if Setup::units(each, homes.len()).is_none() {
            return Err(Error::BadSize { len: *bytes, most: (u64::from(wire::chains::UNITS) - 1) * UNIT });
        }
        let memories = homes.iter().copied().collect::<Set<_>>().len();
        // Where there is one copy, a home may be named twice.
        if *copies == 0
            || *copies > ChainsConfig::MOST_COPIES
            || *copies > 1 && (*copies > memories || memories < homes.len())
        {
            return Err(Error::TooManyCopies { copies: *copies, memories });
        }
        let least = self.least_quarantine(config.lease);
        let quarantine = config.quarantine.unwrap_or(least);
        if quarantine < least {
            return Err(Error::QuarantineTooShort { quarantine, least });
        }
        let mut allocated = Vec::new();
        let made = self.chains_in(&mut allocated, config, (each, quarantine));
        if made.is_err() {
            for Allocated { addr, incarnation, .. } in allocated {
                // Nobody has seen it. That fails only if this incarnation of its home is over, and its memory with it.
                let _ = self.free_of(addr, Some(incarnation));
            }
        }
        let (root, setup, zeroed) = made?;
        let (inner, node) = (Arc::clone(&self.inner), self.node);
        debug_assert_eq!(root.addr.home(), *server);
        let store = inner.chains().begin_chains(node, &mut self.context, root, (setup, &zeroed));
        let store = store.map_err(|why| chain_failed(why, root.addr))?;
        Ok(Chains { inner, store, session: None, trips: 0 })
    }

    /// The shortest time for which slots of a store of chains stay in quarantine on this rack, whose clients use what they know for so long: longer than
    /// that, and where the switch steers reads by what it knows and by what may be in flight (seconds).
    pub fn least_quarantine(&self, lease: Nanos) -> Nanos {
        live::chains::least_quarantine(lease, self.inner.config.steers())
    }

    fn chains_in(
        &mut self,
        allocated: &mut Vec<Allocated>,
        config: &ChainsConfig,
        (each, quarantine): (u32, Nanos),
    ) -> Result<(Allocated, Setup, Vec<bool>), Error> {
        let ChainsConfig { homes, copies, server, lease, .. } = config;
        let root = self.alloc_memory(UNIT, *server, Discipline::Chain)?;
        allocated.push(root);
        let (mut parts, mut zeroed) = (Vec::new(), Vec::new());
        let nodes = homes.len();
        let in_parts = Setup::parts_of(nodes, *copies, self.inner.config.steers().is_some());
        // As many bytes in all.
        let each = each * (nodes / in_parts) as u32;
        for (number, node) in Setup::home_nodes(in_parts, nodes, *copies).enumerate() {
            let shape = Setup::shape(each, number % in_parts, in_parts);
            let len = shape.bytes().expect("it was looked at");
            let part = self.alloc_memory(len, homes[node], Discipline::Chain)?;
            zeroed.push(part.zeroed);
            allocated.push(part);
            // What its NIC calls it is found out when it begins.
            parts.push(Home { addr: part.addr, key: Key(0), incarnation: part.incarnation });
        }
        let copies = u8::try_from(*copies).expect("it was looked at");
        Ok((root, Setup { lease: *lease, quarantine, each, copies, generation: 0, homes: parts }, zeroed))
    }

    /// The store with this address.
    ///
    /// # Errors
    /// [`Error::Unallocated`], [`Error::WrongDiscipline`], [`Error::NoSuchNode`], [`Error::NodeDown`].
    pub fn chains_at(&mut self, addr: GlobalAddr) -> Result<Chains, Error> {
        self.chains_wanted(Wanted { addr, life: None, failed_too: true })
    }

    /// The store that is looked for.
    pub(crate) fn chains_wanted(&mut self, wanted: Wanted) -> Result<Chains, Error> {
        of_a_node(wanted.addr, self.inner.nodes_known())?;
        let inner = Arc::clone(&self.inner);
        let store = if self.is_attached() {
            self.ask_to_open_store(wanted)?
        } else {
            let store = inner.chains().open_chains(self.node, &mut self.context, wanted);
            store.map_err(|why| chain_failed(why, wanted.addr))?
        };
        Ok(Chains { inner, store, session: None, trips: 0 })
    }
}

impl Chains {
    /// The longest value.
    pub const LONGEST_VALUE: usize = LONGEST_VALUE;

    /// Clients that a node can have at a time.
    pub const MOST_CLIENTS: usize = wire::chain_pair::THREADS as usize;

    /// The store's address, for [`NodeHandle::chains_at`].
    pub fn addr(&self) -> GlobalAddr {
        self.store.addr
    }

    /// What everybody calls it: by the key of its first memory, which no other store there has.
    pub(crate) fn name(&self) -> RegionName {
        let Store { addr, incarnation, name, .. } = &*self.store;
        RegionName { addr: *addr, incarnation: *incarnation, key: name.key }
    }

    /// Replaces `into` by the key's value; false if it has none.
    ///
    /// # Errors
    /// [`Error::NodeDown`] if the metadata server's node and those of its backups are down, or as many of those whose memories the store
    /// has as there are copies: then the store is lost, and every later operation fails, too. [`Error::Unallocated`] if the store has ended, [`Error::Broken`], [`Error::Fenced`],
    /// [`Error::TooManyClients`].
    pub fn get(&mut self, node: &mut NodeHandle, key: u64, into: &mut Vec<u8>) -> Result<bool, Error> {
        let ran = self.run(node, key, What::Get(into))?;
        Ok(matches!(ran.done, chain::client::Done::Value(_)))
    }

    /// Stores a value, instead of what was there.
    ///
    /// # Errors
    /// [`Error::BadSize`], [`Error::OutOfMemory`] if there is none for it also after what is in quarantine has come back, and as for
    /// [`Chains::get`].
    pub fn put(&mut self, node: &mut NodeHandle, key: u64, value: &[u8]) -> Result<(), Error> {
        let (len, most) = (value.len() as u64, Self::LONGEST_VALUE as u64);
        if len > most {
            return Err(Error::BadSize { len, most });
        }
        match self.run(node, key, What::Put(value))?.done {
            chain::client::Done::NoMemory => Err(self.full(len)),
            _ => Ok(()),
        }
    }

    /// Removes the key's value, if it has one.
    ///
    /// # Errors
    /// As for [`Chains::put`]: that something was removed is an entry, too.
    pub fn delete(&mut self, node: &mut NodeHandle, key: u64) -> Result<(), Error> {
        match self.run(node, key, What::Delete)?.done {
            chain::client::Done::NoMemory => Err(self.full(0)),
            _ => Ok(()),
        }
    }

    /// Round trips that this client's last operation took: to memory, and to the metadata server.
    pub fn trips(&self) -> u32 {
        self.trips
    }

    /// Ends the store and frees its memory. Clients that still use it are told that it is not there.
    ///
    /// # Errors
    /// As for [`NodeHandle::chains_at`].
    pub fn free(mut self, node: &mut NodeHandle) -> Result<(), Error> {
        self.give_back();
        if node.is_attached() {
            return node.ask_to_free_store(self.name());
        }
        let (addr, store) = (self.store.addr, Arc::clone(&self.store));
        let ended = self.inner.chains().end_chains(node.node, &mut node.context, &store);
        let store = ended.map_err(|why| chain_failed(why, addr))?;
        let me = node.node;
        let homes = store.setup.homes.iter().map(|home| (home.addr, home.incarnation));
        for (addr, incarnation) in homes.chain([(addr, store.incarnation)]) {
            // Of several copies, one whose node has died went with its memory, and somebody else's may be in its place.
            let is_gone =
                || store.setup.copies > 1 && !self.inner.chains().is_of(me, addr.home(), incarnation);
            if is_gone() {
                continue;
            }
            match node.free_of(addr, Some(incarnation)) {
                // Or the node has died that had allocated it: then nobody can give it back (copies.md).
                Err(Error::NodeDown { .. }) if store.setup.copies > 1 => {}
                freed => freed?,
            }
        }
        Ok(())
    }

    fn run(&mut self, node: &mut NodeHandle, key: u64, what: What<'_>) -> Result<Ran, Error> {
        debug_assert!(Arc::ptr_eq(&self.inner, &node.inner), "a client and a handle of one rack");
        let addr = self.store.addr;
        let is_ours = |client: &Client| match client {
            Client::Here(of, _) => *of == node.node,
            Client::Asked(closing) => closing.is_of(node),
        };
        if !self.session.as_ref().is_some_and(is_ours) {
            self.give_back();
        }
        let client = match &mut self.session {
            Some(client) => client,
            None if node.is_attached() => self.session.insert(Client::Asked(node.closing(self.name())?)),
            None => {
                let session = self.inner.chains().chain_session(node.node, &self.store);
                let session = session.map_err(|why| chain_failed(why, addr))?;
                self.session.insert(Client::Here(node.node, session))
            }
        };
        let session = match client {
            Client::Here(_, session) => session,
            Client::Asked(closing) => {
                let ran = node.ask_on_key(closing.store(), key, what)?;
                self.trips = ran.trips;
                return Ok(ran);
            }
        };
        let ran = self.inner.chains().run_chain(node.node, &mut node.context, session, key, what);
        let ran = ran.map_err(|why| chain_failed(why, addr))?;
        self.trips = ran.trips;
        node.confirmed(ran)
    }

    fn full(&self, len: u64) -> Error {
        Error::OutOfMemory { len, home: self.store.setup.homes[0].addr.home().0 }
    }

    fn give_back(&mut self) {
        // Of an attached handle, it says so itself.
        if let Some(Client::Here(node, session)) = self.session.take() {
            self.inner.chains().end_session(node, session);
        }
    }
}

impl Clone for Chains {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), store: Arc::clone(&self.store), session: None, trips: 0 }
    }
}

impl Drop for Chains {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl std::fmt::Debug for Chains {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chains")
            .field("store", &self.store)
            .field("trips", &self.trips)
            .finish_non_exhaustive()
    }
}

fn chain_failed(why: Failure, addr: GlobalAddr) -> Error {
    match why {
        Failure::NoSlot => Error::TooManyClients { most: Chains::MOST_CLIENTS },
        Failure::Refused(Refusal::WrongDiscipline) => {
            Error::WrongDiscipline { addr, needs: Discipline::Chain }
        }
        why => failed(why, addr, 0),
    }
}
