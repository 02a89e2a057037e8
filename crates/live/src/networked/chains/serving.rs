//! What other nodes ask of this one about chains, and what it is answered: on the thread that received it.
//!
//! What must always hold: an answer waits for nobody; what has to wait is refused as locked, and asked again.

use std::ops::Range;
use std::sync::{Arc, PoisonError};

use wire::chain_pair::{ChainPair, End};
use wire::{Discipline, GlobalAddr, Incarnation, Nanos, NodeId, Refusal};

use super::server_thread::serve_store;
use crate::actor::Failure;
use crate::chains::{Ask, Connect, Fabric as _, MOST_CHANGED, Server, Store, client_id, store_words};
use crate::networked::node::NetworkedNode;
use crate::networked::verbs::chain_work::Beginning;
use chain::words::answer_words;
use nic::regions::Reply;

impl NetworkedNode {
    /// Does what a node has asked for, this one or another. None: nobody waits for an answer.
    pub(in crate::networked) fn serve_chains(
        &self,
        from: NodeId,
        addr: GlobalAddr,
        words: &[u64],
    ) -> Option<Reply> {
        let Some(ask) = Ask::parse(words) else { return Some(Reply::Refused(Refusal::NotAnAllocation)) };
        // This node has not heard of it yet, or it is dead, and nobody waits for an answer.
        let Some(incarnation) = self.incarnation_of(from) else {
            return Some(Reply::Refused(Refusal::Locked));
        };
        if let Ask::Told { store, thread, appends } = &ask {
            if let Some(server) = self.server_of(addr, store) {
                server.told(self.now(), client_id(from, incarnation, *thread), appends);
            }
            return None;
        }
        Some(self.answer_chains(from, incarnation, addr, ask).unwrap_or_else(Reply::Refused))
    }

    fn answer_chains(
        &self,
        from: NodeId,
        incarnation: Incarnation,
        addr: GlobalAddr,
        ask: Ask,
    ) -> Result<Reply, Refusal> {
        match ask {
            Ask::Serve { incarnation, setup } => {
                if !setup.homes.iter().all(|home| self.lives(home)) {
                    return Err(Refusal::NodeDown);
                }
                let store = Store::new(addr, incarnation, setup);
                let place = store.place(self.id(), self.incarnation).ok_or(Refusal::NodeDown)?;
                let tag = self.memory().cache.block_size().tag(addr);
                if place == 0 && self.with_node(|node| node.discipline_of(tag)) != Some(Discipline::Chain) {
                    return Err(Refusal::NotAnAllocation);
                }
                let thread = self.chains.pools.thread().map_err(|_| Refusal::OutOfMemory)?;
                let (store, decide_after) = (Arc::new(store), self.chains.decide_after);
                self.begin_server(Server::new(store, place == 0, thread, decide_after))
            }
            Ask::Describe { life, failed_too } => {
                let server = self.server_or_why(addr, life)?;
                // Not that a node is down: who asks could take it for this one, and wait for a backup.
                match server.failed().filter(|_| !failed_too) {
                    None => Ok(Reply::Words(store_words(&server.store()).into())),
                    Some(_) => Err(Refusal::Lost),
                }
            }
            Ask::Stop { store, generation } => {
                let least = self.verbs.enter().end_chains_before(store, generation);
                Ok(Reply::Words([u64::from(least)].into()))
            }
            Ask::Changed { home, copy, pass, first } => {
                let pass = ((from, copy), pass);
                let units = self.verbs.enter().changed(&home, pass, (first, MOST_CHANGED))?;
                let word = |units: &Range<u32>| u64::from(units.start) << 32 | u64::from(units.end);
                Ok(Reply::Words(units.iter().map(word).collect()))
            }
            Ask::Reform { store } => {
                self.server_of(addr, &store.name).ok_or(Refusal::Unallocated)?.adopt(store);
                Ok(Reply::Done(0, 0, 0))
            }
            Ask::Back { store, at, piece, pieces, words } => {
                let name = (addr, store.incarnation);
                let all = {
                    let mut arriving = self.chains.arriving();
                    let (next, all) = arriving.entry(name).or_default();
                    if piece == 0 {
                        (*next, *all) = (0, Vec::new());
                    }
                    if piece != *next || store.addr != addr {
                        return Err(Refusal::NotAnAllocation);
                    }
                    *next += 1;
                    all.extend(words);
                    if *next < pieces {
                        return Ok(Reply::Done(0, 0, 0));
                    }
                    arriving.remove(&name).expect("it is there").1
                };
                self.begin_backup(store, at, &all)
            }
            Ask::Do { store, thread, number, call } => {
                let server = self.server_of(addr, &store).ok_or(Refusal::Unallocated)?;
                match server.call(self.now(), client_id(from, incarnation, thread), number, call) {
                    Ok(Some(answer)) => Ok(Reply::Words(answer_words(&answer).into())),
                    Ok(None) => Err(Refusal::Locked),
                    Err(Failure::Refused(why)) => Err(why),
                    Err(_) => Err(Refusal::NodeDown),
                }
            }
            Ask::Connect(Connect { thread, to_memory, to_client, outstanding, store, generation }) => {
                let pair = ChainPair { owner: self.id(), peer: from, end: End::Memory, thread };
                let (to_owner, to_peer) = (to_memory, to_client);
                let beginning = Beginning { to_owner, to_peer, outstanding, store, generation };
                self.verbs.enter().connect_chain(pair, incarnation, beginning)?;
                Ok(Reply::Done(0, 0, 0))
            }
            Ask::Fence { node, incarnation } => {
                self.verbs.enter().end_chains_of(node, incarnation);
                Ok(Reply::Done(0, 0, 0))
            }
            Ask::End { store } => {
                let server = self.server_of(addr, &store).ok_or(Refusal::Unallocated)?;
                self.chains.servers().remove(&(addr, server.store().incarnation));
                server.end();
                Ok(Reply::Done(0, 0, 0))
            }
            Ask::Follow { store, batch } => {
                let server = self.server_of(addr, &store).ok_or(Refusal::Unallocated)?;
                let has = server.follow(self.now(), batch)?;
                Ok(Reply::Words([has].into()))
            }
            Ask::Told { .. } => unreachable!("nobody answers that"),
        }
    }

    fn server_or_why(&self, addr: GlobalAddr, life: Option<Incarnation>) -> Result<Arc<Server>, Refusal> {
        // Of this node's own ones, the last; or one that this node has taken over.
        let mut servers = self.servers_at(addr);
        servers.retain(|server| life.is_none_or(|life| server.store().incarnation == life));
        if let Some(server) = servers.iter().rev().find(|server| server.leads()) {
            return Ok(Arc::clone(server));
        }
        if !servers.is_empty() {
            return Err(Refusal::Locked);
        }
        match self.with_node(|node| node.discipline_of(self.memory().cache.block_size().tag(addr))) {
            Some(Discipline::Chain) | None => Err(Refusal::Unallocated),
            Some(_) => Err(Refusal::WrongDiscipline),
        }
    }

    /// Begins a backup of a store that there is.
    fn begin_backup(&self, store: Store, at: Nanos, words: &[u64]) -> Result<Reply, Refusal> {
        let former = self.server_of(store.addr, &store.name);
        if former.as_ref().is_some_and(|server| server.leads()) {
            return Err(Refusal::NotAnAllocation);
        }
        let thread = self.chains.pools.thread().map_err(|_| Refusal::OutOfMemory)?;
        let server =
            Server::joins(Arc::new(store), thread, self.chains.decide_after, (self.now(), at), words);
        let server = server.ok_or(Refusal::NotAnAllocation)?;
        // One that was about to become a backup when its primary died.
        if let Some(former) = former {
            let store = former.store();
            self.chains.servers().remove(&(store.addr, store.incarnation));
            former.end();
        }
        self.begin_server(server)
    }

    /// Begins a store's metadata server, or a backup of it.
    fn begin_server(&self, server: Server) -> Result<Reply, Refusal> {
        let server = Arc::new(server);
        let store = server.store();
        let name = (store.addr, store.incarnation);
        let mut servers = self.chains.servers();
        if servers.contains_key(&name) {
            return Err(Refusal::NotAnAllocation);
        }
        let (node, of) = (self.this.clone(), Arc::clone(&server));
        let thread = std::thread::Builder::new().name(format!("chains {}", self.id()));
        let Ok(thread) = thread.spawn(move || serve_store(&node, &of)) else {
            return Err(Refusal::OutOfMemory);
        };
        self.chains.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        servers.insert(name, server);
        Ok(Reply::Done(0, 0, 0))
    }
}
