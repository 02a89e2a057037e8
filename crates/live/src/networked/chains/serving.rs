//! What other nodes ask of this one about chains, and what it is answered: on the thread that received it.
//!
//! What must always hold: an answer waits for nobody; what has to wait is refused as locked, and asked again.

use std::sync::{Arc, PoisonError};

use wire::chain_pair::{ChainPair, End};
use wire::{Discipline, GlobalAddr, Incarnation, NodeId, Refusal};

use super::server_thread::serve_store;
use crate::actor::Failure;
use crate::chains::{Ask, Connect, Fabric as _, Server, Setup, Store, answer_words, client_id, setup_words};
use crate::networked::node::NetworkedNode;
use crate::networked::verbs::chain_work::Beginning;
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
        let Some(incarnation) = self.incarnation_of(from) else {
            return Some(Reply::Refused(Refusal::NodeDown));
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
                let is_up = |node, incarnation| self.incarnation_of(node) == Some(incarnation);
                if incarnation != self.incarnation
                    || !setup.homes.iter().all(|home| is_up(home.addr.home(), home.incarnation))
                {
                    return Err(Refusal::NodeDown);
                }
                self.begin_server(addr, setup)
            }
            Ask::Describe => {
                let server = self.server_or_why(addr)?;
                let words = [vec![self.incarnation.0.into()], setup_words(&server.store.setup)];
                Ok(Reply::Words(words.concat().into()))
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
            Ask::Connect(Connect { thread, to_memory, to_client, outstanding }) => {
                let pair = ChainPair { owner: self.id(), peer: from, end: End::Memory, thread };
                let beginning = Beginning { to_owner: to_memory, to_peer: to_client, outstanding };
                let begun = self.verbs.enter().connect_chain(pair, incarnation, beginning);
                if begun { Ok(Reply::Done(0, 0, 0)) } else { Err(Refusal::NodeDown) }
            }
            Ask::Fence { node, incarnation } => {
                self.verbs.enter().end_chains_of(node, incarnation);
                Ok(Reply::Done(0, 0, 0))
            }
            Ask::End { store } => {
                let mut servers = self.chains.servers();
                let known = servers.get(&addr).is_some_and(|server| server.store.setup.first() == store);
                known.then(|| servers.remove(&addr)).flatten().ok_or(Refusal::Unallocated)?.end();
                Ok(Reply::Done(0, 0, 0))
            }
            Ask::Told { .. } => unreachable!("nobody answers that"),
        }
    }

    fn server_or_why(&self, addr: GlobalAddr) -> Result<Arc<Server>, Refusal> {
        if let Some(server) = self.server(addr) {
            return Ok(server);
        }
        match self.with_node(|node| node.discipline_of(self.memory().cache.block_size().tag(addr))) {
            Some(Discipline::Chain) | None => Err(Refusal::Unallocated),
            Some(_) => Err(Refusal::WrongDiscipline),
        }
    }

    fn begin_server(&self, addr: GlobalAddr, setup: Setup) -> Result<Reply, Refusal> {
        let tag = self.memory().cache.block_size().tag(addr);
        if addr.home() != self.id()
            || self.with_node(|node| node.discipline_of(tag)) != Some(Discipline::Chain)
        {
            return Err(Refusal::NotAnAllocation);
        }
        let thread = self.chains.pools.thread().map_err(|_| Refusal::OutOfMemory)?;
        let store = Arc::new(Store { addr, incarnation: self.incarnation, setup });
        let server = Arc::new(Server::new(store, thread, self.chains.decide_after));
        let mut servers = self.chains.servers();
        if servers.contains_key(&addr) {
            return Err(Refusal::NotAnAllocation);
        }
        let (node, of) = (self.this.clone(), Arc::clone(&server));
        let name = format!("chains {}", self.id());
        let serve = move || serve_store(&node, &of);
        let Ok(thread) = std::thread::Builder::new().name(name).spawn(serve) else {
            return Err(Refusal::OutOfMemory);
        };
        self.chains.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        servers.insert(addr, server);
        Ok(Reply::Done(0, 0, 0))
    }
}
