//! Chains on a rack of processes: verbs through the switch's process, calls from node to node, and a thread for each metadata
//! server of this node.
//!
//! | file | holds |
//! | --- | --- |
//! | `fabric.rs` | what clients and servers of this node ask of the rack |
//! | `serving.rs` | what other nodes ask of this one |
//! | `server_thread.rs` | a metadata server's thread |
//! | `recopying.rs` | memory in the place of what has died |
//!
//! What must always hold: calls are answered on the thread that received them and wait for nobody; what has to wait is done on the
//! server's thread. A client of a node that is dead is swept when every memory of the store has ended its connections.

mod fabric;
mod recopying;
mod server_thread;
mod serving;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use sorted::{Map, Set};
use wire::{GlobalAddr, Incarnation, Nanos, NodeId, Refusal, SwitchEpoch};

use super::node::NetworkedNode;
use crate::actor::{Allocated, Driver, Failure, ThreadContext};
use crate::chains::{
    Ask, Chains, Fabric as _, Home, Introduction, Pools, Ran, Server, ServerCounts, Session, Setup, Store,
    Wanted, What, decide_after, least_quarantine, store_of,
};
use crate::config::Steering;
use crate::memory::regions::Shape;
use nic::regions::{Call, Reply};

/// How long whoever opens a store waits until a backup has taken over.
const TAKEOVER: Nanos = Nanos(10_000_000_000);

/// Introductions that were heard more often than somebody waited.
const MOST_HEARD: usize = 4096;

/// A store: its address, and the incarnation of the node that named it.
type Called = (GlobalAddr, Incarnation);

/// What a node has for chains.
#[derive(Default)]
pub(super) struct ChainSide {
    pools: Pools,
    /// Metadata servers and backups of some, by the addresses of their stores, and the incarnations of the nodes that named them.
    servers: Mutex<Map<Called, Arc<Server>>>,
    /// Pieces of what backups are to know that are about to be some: how many have come.
    arriving: Mutex<Map<Called, (u32, Vec<u64>)>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// How the switch steers.
    steering: Option<Steering>,
    /// Then: longer than any request is in flight, also one of a process that was stopped for a while and is not taken for dead.
    decide_after: Nanos,
    /// Bytes a second that copies of each store are made anew with.
    refill: u64,
    epoch: AtomicU32,
    introductions: AtomicU32,
    /// Introductions that the switch has heard.
    heard: Mutex<Set<u64>>,
}

impl ChainSide {
    /// A node that is silent for so long is dead; and so many bytes a second are copied of what it had of a store.
    pub(super) fn new(steering: Option<Steering>, timeout: Nanos, refill: u64) -> Self {
        Self { steering, decide_after: decide_after(steering, timeout), refill, ..Self::default() }
    }

    /// A new epoch: the switch may be another one.
    pub(super) fn begin_epoch(&self, epoch: SwitchEpoch) {
        self.epoch.store(epoch.0, Ordering::Release);
    }

    /// What the switch says. False if that is something else.
    pub(super) fn on_control(&self, bytes: &[u8]) -> bool {
        let Some(Introduction::Heard { number }) = Introduction::parse(bytes) else { return false };
        let mut heard = self.heard();
        if heard.len() >= MOST_HEARD {
            heard.pop_first();
        }
        heard.insert(number);
        true
    }

    fn heard(&self) -> MutexGuard<'_, Set<u64>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn servers(&self) -> MutexGuard<'_, Map<Called, Arc<Server>>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn arriving(&self) -> MutexGuard<'_, Map<Called, (u32, Vec<u64>)>> {
        self.arriving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if a store's metadata server is here, or a backup.
    pub(super) fn has_servers(&self) -> bool {
        !self.servers().is_empty()
    }

    /// Waits for the servers' threads, which have been told to stop.
    pub(super) fn end(&self) {
        self.servers().values().for_each(|server| server.end());
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // It may be one of them that drops the node.
            if thread.thread().id() != std::thread::current().id() {
                // It cannot have panicked without having said so.
                drop(thread.join());
            }
        }
    }
}

impl NetworkedNode {
    /// What the metadata servers on this node have done.
    pub fn chain_counts(&self) -> ServerCounts {
        let servers: Vec<_> = self.chains.servers().values().cloned().collect();
        let mut sum = ServerCounts::default();
        for server in servers {
            // In this order: otherwise one that takes over in between has a store, and misses nothing.
            let counts = server.counts();
            let (missing, bytes_missing) = if server.leads() { self.missing(&server) } else { (0, 0) };
            sum.add(&ServerCounts { missing, bytes_missing, ..counts });
        }
        sum
    }

    /// The servers here of stores with this address: of several, all but the last are of those whose names died with a node.
    fn servers_at(&self, addr: GlobalAddr) -> Vec<Arc<Server>> {
        let servers = self.chains.servers();
        let all = (addr, Incarnation(0))..=(addr, Incarnation(u32::MAX));
        servers.range(all).map(|(_, server)| Arc::clone(server)).collect()
    }

    /// That of the store whose first memory this is.
    fn server_of(&self, addr: GlobalAddr, store: &Home) -> Option<Arc<Server>> {
        self.servers_at(addr).into_iter().find(|server| server.store().name == *store)
    }

    /// Asks a node once; what has to wait is refused as locked.
    fn ask_chain(
        &self,
        context: &mut ThreadContext,
        (to, addr): (NodeId, GlobalAddr),
        ask: &Ask,
    ) -> Result<Reply, Failure> {
        self.ask_any(context, (to, None, addr), ask)
    }

    /// Asks that life of a node, and no other one.
    fn ask_life(
        &self,
        context: &mut ThreadContext,
        (to, life, addr): (NodeId, Incarnation, GlobalAddr),
        ask: &Ask,
    ) -> Result<Reply, Failure> {
        self.ask_any(context, (to, Some(life), addr), ask)
    }

    /// Asks that life of a node until it answers, or refuses. None: it is over. As long as one of both has not heard that the other one is
    /// in the rack, it is asked again.
    fn ask_until_over(
        &self,
        context: &mut ThreadContext,
        (to, life, addr): (NodeId, Incarnation, GlobalAddr),
        ask: &Ask,
    ) -> Result<Option<Result<Reply, Refusal>>, Failure> {
        while !self.is_over(to, life) {
            match self.ask_life(context, (to, life, addr), ask) {
                Ok(reply) => return Ok(Some(Ok(reply))),
                Err(Failure::Broken | Failure::Refused(Refusal::Locked | Refusal::NodeDown)) => {
                    self.pass_time(context);
                }
                Err(Failure::Refused(why)) => return Ok(Some(Err(why))),
                Err(why) => return Err(why),
            }
        }
        Ok(None)
    }

    fn ask_any(
        &self,
        context: &mut ThreadContext,
        (to, life, addr): (NodeId, Option<Incarnation>, GlobalAddr),
        ask: &Ask,
    ) -> Result<Reply, Failure> {
        if Driver::is_fenced(self) {
            return Err(Failure::Fenced);
        }
        let words = ask.words();
        let reply = if to == self.id() {
            self.serve_chains(self.id(), addr, &words).expect("only what nobody answers is not answered")
        } else {
            let call = Call::Chain { addr, words: words.len() };
            self.ask_once(context, (to, life), call, &words)?
        };
        match reply {
            Reply::Refused(why) => Err(why.into()),
            reply => Ok(reply),
        }
    }
}

impl NetworkedNode {
    /// What a node that looks after a store says of it; also of one that cannot go on, or not.
    fn ask_what_it_is(
        &self,
        context: &mut ThreadContext,
        node: NodeId,
        Wanted { addr, life, failed_too }: Wanted,
    ) -> Result<Arc<Store>, Failure> {
        let reply = self.ask_chain(context, (node, addr), &Ask::Describe { life, failed_too })?;
        let Reply::Words(words) = reply else { return Err(Failure::Broken) };
        store_of(addr, &words).map(Arc::new).ok_or(Failure::Broken)
    }

    /// A store as it is by now.
    fn as_it_is(
        &self,
        context: &mut ThreadContext,
        store: &Store,
        failed_too: bool,
    ) -> Result<Arc<Store>, Failure> {
        let wanted = Wanted { addr: store.addr, life: Some(store.incarnation), failed_too };
        if let Some(leader) = store.server(|node| self.incarnation_of(node)) {
            match self.ask_what_it_is(context, leader, wanted) {
                Ok(now) if now.is(store) => return Ok(now),
                Ok(_) => return Err(Refusal::Unallocated.into()),
                Err(Failure::Refused(Refusal::Lost)) => return Err(Refusal::NodeDown.into()),
                Err(Failure::Refused(Refusal::NodeDown)) => {}
                Err(why) => return Err(why),
            }
        }
        // None of those that were servers: others may have become some.
        let found = self.look_for(context, wanted, |now| now.is(store));
        let has_not_heard = |(node, its): &(NodeId, Incarnation)| {
            !self.is_over(*node, *its) && self.incarnation_of(*node) != Some(*its)
        };
        match found {
            Err(Failure::Refused(Refusal::NodeDown)) if store.servers.iter().any(has_not_heard) => {
                Err(Refusal::Locked.into())
            }
            found => found,
        }
    }

    /// Whoever is taken for dead itself knows nobody else.
    fn unless_fenced<T>(&self, done: Result<T, Failure>) -> Result<T, Failure> {
        match done {
            Err(Failure::Refused(Refusal::NodeDown)) if Driver::is_fenced(self) => Err(Failure::Fenced),
            done => done,
        }
    }

    /// Asks all nodes for a store that a backup looks after. Locked: one is about to. Broken: somebody has not said. Node down: nobody
    /// does, or one does that cannot go on.
    fn look_for(
        &self,
        context: &mut ThreadContext,
        wanted: Wanted,
        is_it: impl Fn(&Store) -> bool,
    ) -> Result<Arc<Store>, Failure> {
        let mut found = Err(Refusal::NodeDown.into());
        let all = (0..self.nodes_known() as u16).map(NodeId);
        for node in all.filter(|node| self.incarnation_of(*node).is_some()) {
            match self.ask_what_it_is(context, node, wanted) {
                Ok(store) if is_it(&store) => return Ok(store),
                Err(Failure::Refused(Refusal::Lost)) => return Err(Refusal::NodeDown.into()),
                Err(why @ (Failure::Broken | Failure::Refused(Refusal::Locked))) => found = Err(why),
                _ => {}
            }
        }
        found
    }

    /// Ends the servers of a store, its backups first: none of them takes over what has ended.
    fn end_servers(&self, context: &mut ThreadContext, store: &Store) -> Result<(), Failure> {
        let ask = Ask::End { store: store.name };
        let mut ended = Err(Refusal::NodeDown.into());
        for (node, its) in store.servers.iter().rev() {
            if self.is_over(*node, *its) {
                continue;
            }
            match self.ask_life(context, (*node, *its, store.addr), &ask) {
                Ok(_) => ended = Ok(()),
                Err(Failure::Refused(why)) => ended = ended.or(Err(why.into())),
                Err(why) => return Err(why),
            }
        }
        ended
    }
}

impl Chains for NetworkedNode {
    fn least_quarantine(&self, lease: Nanos) -> Nanos {
        least_quarantine(lease, self.chains.steering)
    }

    fn begin_chains(
        &self,
        _: NodeId,
        context: &mut ThreadContext,
        Allocated { addr, incarnation, .. }: Allocated,
        (mut setup, zeroed): (Setup, &[bool]),
    ) -> Result<Arc<Store>, Failure> {
        let parts = setup.parts();
        for (number, home) in setup.homes.iter_mut().enumerate() {
            let shape = Setup::shape(setup.each, number % parts, parts);
            // Nothing that was written before is to be taken for an entry of this store.
            let call =
                Call::Begin { addr: home.addr, incarnation: home.incarnation, shape, zeroed: zeroed[number] };
            let reply = self.ask(context, home.addr.home(), call, &[])?;
            let (key, Shape::Chain { .. }) = reply.region().ok_or(Failure::Broken)? else {
                return Err(Failure::Broken);
            };
            home.key = key;
        }
        let store = Store::new(addr, incarnation, setup);
        let ask = Ask::Serve { incarnation, setup: store.setup.clone() };
        // The primary last: it is not asked for anything before its backups are there.
        for (node, _) in store.servers.iter().rev() {
            let served = loop {
                match self.ask_chain(context, (*node, addr), &ask) {
                    // It has not heard of this node yet.
                    Err(Failure::Refused(Refusal::Locked)) => self.pass_time(context),
                    served => break served,
                }
            };
            if let Err(why) = served {
                // Nobody has heard of it.
                let _ = self.end_servers(context, &store);
                return Err(why);
            }
        }
        Ok(Arc::new(store))
    }

    fn open_chains(
        &self,
        _: NodeId,
        context: &mut ThreadContext,
        wanted: Wanted,
    ) -> Result<Arc<Store>, Failure> {
        let began = self.now();
        loop {
            let at_its_home = self.ask_what_it_is(context, wanted.addr.home(), wanted);
            let Err(why @ Failure::Refused(_)) = at_its_home else { return at_its_home };
            if why == Refusal::Lost.into() {
                return Err(Refusal::NodeDown.into());
            }
            // It may be one whose name died with a node, and that a backup looks after, or is about to.
            match self.look_for(context, wanted, |_| true) {
                Err(Failure::Broken | Failure::Refused(Refusal::Locked)) => {
                    // It is not known to be lost, whoever is late.
                    if self.now().saturating_sub(began) >= TAKEOVER {
                        return Err(Failure::Broken);
                    }
                    self.pass_time(context);
                }
                found => return self.unless_fenced(found.map_err(|_| why)),
            }
        }
    }

    fn end_chains(
        &self,
        _: NodeId,
        context: &mut ThreadContext,
        store: &Arc<Store>,
    ) -> Result<Arc<Store>, Failure> {
        // Its memory may be elsewhere by now.
        let now = self.as_it_is(context, store, true).unwrap_or_else(|_| Arc::clone(store));
        self.end_servers(context, &now)?;
        Ok(now)
    }

    fn is_of(&self, _: NodeId, home: NodeId, incarnation: Incarnation) -> bool {
        self.incarnation_of(home) == Some(incarnation)
    }

    fn chain_session(&self, _: NodeId, store: &Arc<Store>) -> Result<Session, Failure> {
        self.chains.pools.take(store, self.chains.steering)
    }

    fn end_session(&self, _: NodeId, session: Session) {
        self.chains.pools.put_back(session);
    }

    fn run_chain(
        &self,
        _: NodeId,
        context: &mut ThreadContext,
        session: &mut Session,
        key: u64,
        what: What<'_>,
    ) -> Result<Ran, Failure> {
        self.unless_fenced(session.run(self, context, key, what))
    }
}
