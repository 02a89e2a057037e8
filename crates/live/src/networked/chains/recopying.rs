//! Memory in the place of what has died: copies of a store are made anew, by its metadata server's thread; and backups of that.
//!
//! ```text
//!   memory at another node is allocated                     or: another node is told all that the server knows
//!   stop      no client of the store is connected to any memory of it, and none begins that goes by what it was
//!   copy      from the copy that `Replica::source` names
//!   reform    servers know of the new memory, and of the new backup; then clients are told that ask
//! ```
//! While memory is copied, clients wait. What must always hold: the server has nothing else in flight; nobody is connected to memory of
//! which is copied; whoever may take over knows of memory and of servers before clients do; and whatever fails, the store goes on with what it has.

use std::sync::Arc;

use nic::regions::{Call, Reply};
use wire::{Discipline, Incarnation, NodeId, Refusal};

use crate::actor::{Allocated, Failure, ThreadContext};
use crate::chains::{Ask, Fabric as _, Home, Server, Setup, Store};
use crate::memory::regions::Shape;
use crate::networked::node::NetworkedNode;

/// Words of what a backup is to know that it is told at a time.
const PIECE: usize = 1024;
/// How often a new backup is sent what it lacks, until it has what the others have.
const ROUNDS: usize = 64;

impl NetworkedNode {
    pub(super) fn is_up(&self, home: &Home) -> bool {
        self.incarnation_of(home.addr.home()) == Some(home.incarnation)
    }

    /// Copies and backups of a store that have died, and that nothing has come in the place of.
    pub(super) fn missing(&self, store: &Store) -> u64 {
        let servers = usize::from(store.setup.copies).saturating_sub(self.servers_up(store).len());
        (self.missing_copies(&store.setup) + servers) as u64
    }

    fn missing_copies(&self, setup: &Setup) -> usize {
        setup.homes.iter().filter(|home| !self.is_up(home)).count()
    }

    fn servers_up(&self, store: &Store) -> Vec<(NodeId, Incarnation)> {
        let is_up = |(node, its): &&(NodeId, Incarnation)| self.incarnation_of(*node) == Some(*its);
        store.servers.iter().filter(is_up).copied().collect()
    }

    /// Looks for memory in the place of homes that are dead, and copies to it what they had.
    pub(super) fn replace_the_dead(
        &self,
        context: &mut ThreadContext,
        server: &Server,
    ) -> Result<(), Failure> {
        let store = server.store();
        let missing = self.missing_copies(&store.setup);
        if missing == 0 || store.setup.copies == 1 || !server.may_try(self.now()) {
            return Ok(());
        }
        let mut setup = store.setup.clone();
        let mut found = Vec::new();
        for number in 0..setup.homes.len() {
            if !self.is_up(&setup.homes[number])
                && let Some(home) = self.home_for(context, &setup, number)
            {
                setup.homes[number] = home;
                found.push((number, home));
            }
        }
        if found.is_empty() { Ok(()) } else { self.reform(context, server, found, store.servers.clone()) }
    }

    /// Memory for what this home had, at a node that has no other copy of it: that with the fewest homes of the store.
    fn home_for(&self, context: &mut ThreadContext, setup: &Setup, number: usize) -> Option<Home> {
        let parts = setup.parts();
        let shape = Setup::shape(setup.each, number % parts, parts);
        let homes_at = |node: NodeId| {
            let its = |home: &&Home| home.addr.home() == node && self.is_up(home);
            setup.homes.iter().filter(its).count()
        };
        let has_none = |node: &NodeId| {
            !setup.copies_of(number).any(|home| home.addr.home() == *node && self.is_up(home))
        };
        let all = (0..self.nodes_known() as u16).map(NodeId);
        let mut nodes: Vec<NodeId> =
            all.filter(|node| self.incarnation_of(*node).is_some()).filter(has_none).collect();
        nodes.sort_by_key(|node| homes_at(*node));
        nodes.into_iter().find_map(|node| self.allocate_home(context, node, shape).ok())
    }

    fn allocate_home(
        &self,
        context: &mut ThreadContext,
        node: NodeId,
        shape: Shape,
    ) -> Result<Home, Failure> {
        let bytes = shape.bytes().ok_or(Refusal::OutOfMemory)?;
        let Allocated { addr, incarnation, zeroed } =
            self.at(context).alloc(bytes, node, Discipline::Chain)?;
        let begun = self.ask(context, node, Call::Begin { addr, incarnation, shape, zeroed }, &[]);
        let home = begun.and_then(|reply| {
            let (key, Shape::Chain { .. }) = reply.region().ok_or(Failure::Broken)? else {
                return Err(Failure::Broken);
            };
            Ok(Home { addr, key, incarnation })
        });
        if home.is_err() {
            self.give_back(context, Home { addr, key: wire::roce::Key(0), incarnation });
        }
        home
    }

    /// Memory that the store has no use for. That fails only with the node that has it.
    fn give_back(&self, context: &mut ThreadContext, Home { addr, incarnation, .. }: Home) {
        let _ = self.end_region(context, (addr, Some(incarnation)));
        let _ = self.at(context).free(addr, Some(incarnation));
    }

    /// Looks for a backup in the place of one that is dead, and tells it what this server knows.
    pub(super) fn replace_dead_backups(
        &self,
        context: &mut ThreadContext,
        server: &Server,
    ) -> Result<(), Failure> {
        let store = server.store();
        let mut servers = self.servers_up(&store);
        if servers.len() >= store.setup.copies.into() || !server.may_try(self.now()) {
            return Ok(());
        }
        let has_memory = |node: &NodeId| store.setup.nodes().any(|(memory, _)| memory == *node);
        let all = (0..self.nodes_known() as u16).map(NodeId);
        let is_none = |node: &NodeId| servers.iter().all(|(server, _)| server != node);
        let mut nodes: Vec<NodeId> =
            all.filter(|node| self.incarnation_of(*node).is_some()).filter(is_none).collect();
        nodes.sort_by_key(|node| !has_memory(node));
        let Some((node, its)) = nodes.first().and_then(|node| Some((*node, self.incarnation_of(*node)?)))
        else {
            return Ok(());
        };
        let is_backup = self.give(context, server, (node, its))?;
        if is_backup {
            servers.push((node, its));
            self.reform(context, server, Vec::new(), servers)?;
        } else {
            server.backup_has(node, None);
        }
        if !is_backup || server.has_ended() {
            // Nobody else knows of it. If it cannot be reached, it is dead, or about to be asked anew.
            let _ = self.ask_chain(context, (node, store.addr), &Ask::End { store: store.name });
        }
        Ok(())
    }

    /// Gives a node all that this server knows. True if it is a backup then.
    fn give(
        &self,
        context: &mut ThreadContext,
        server: &Server,
        (node, its): (NodeId, Incarnation),
    ) -> Result<bool, Failure> {
        let store = server.store();
        let (at, words) = server.add_backup(self.now(), node);
        let all = words.chunks(PIECE);
        let pieces = u32::try_from(all.len()).expect("as many as memory has room for");
        for (piece, words) in (0..).zip(all) {
            let ask = Ask::Back { store: (*store).clone(), at, piece, pieces, words: words.to_vec() };
            if let Err(why) = self.ask_chain(context, (node, store.addr), &ask) {
                return if why == Failure::Fenced { Err(why) } else { Ok(false) };
            }
        }
        for _ in 0..ROUNDS {
            if self.incarnation_of(node) != Some(its) || server.has_ended() {
                return Ok(false);
            }
            if server.backup_joins(node) {
                return Ok(true);
            }
            // Others may lack what it has.
            self.tell_backups(context, server, Some((node, its)))?;
        }
        Ok(false)
    }

    /// The store's next generation: with these homes in the place of dead ones, or with the same ones as before; and with these servers.
    pub(super) fn reform(
        &self,
        context: &mut ThreadContext,
        server: &Server,
        found: Vec<(usize, Home)>,
        servers: Vec<(NodeId, Incarnation)>,
    ) -> Result<(), Failure> {
        let store = server.store();
        if store.setup.copies == 1 {
            return Ok(());
        }
        let generation = self.stop(context, &store)?;
        let mut setup = Setup { generation, ..store.setup.clone() };
        for (number, home) in &found {
            setup.homes[*number] = *home;
        }
        let next = Arc::new(store.with(setup.clone()));
        let mut copied = Vec::new();
        for (number, home) in found {
            match self.copy(context, server, (&store, &next), number) {
                Ok(()) => copied.push(home),
                Err(why) => {
                    setup.homes[number] = store.setup.homes[number];
                    self.give_back(context, home);
                    if why == Failure::Fenced {
                        return Err(why);
                    }
                }
            }
        }
        let now = Store { servers, ..store.with(setup) };
        server.count_recopied(copied.len());
        self.tell_servers(context, &now)?;
        server.adopt(now);
        if server.has_ended() {
            copied.into_iter().for_each(|home| self.give_back(context, home));
        }
        Ok(())
    }

    /// Ends all connections of older generations than the next one, whose number this is.
    fn stop(&self, context: &mut ThreadContext, store: &Store) -> Result<u32, Failure> {
        let mut generation = store.setup.generation + 1;
        loop {
            let asked = generation;
            for node in (0..self.nodes_known() as u16).map(NodeId) {
                let is_memory = || {
                    let its = |home: &&Home| home.addr.home() == node;
                    store.setup.homes.iter().find(its).is_some_and(|home| self.is_up(home))
                };
                while self.incarnation_of(node).is_some() {
                    let ask = Ask::Stop { store: store.name, generation: asked };
                    match self.ask_chain(context, (node, store.addr), &ask) {
                        Ok(Reply::Words(words)) if words.len() == 1 => {
                            generation = generation.max(u32::try_from(words[0]).unwrap_or(u32::MAX));
                            break;
                        }
                        Err(why @ Failure::Fenced) => return Err(why),
                        Err(Failure::Broken) => self.pass_time(context),
                        // Others than memories hear of it when they ask those.
                        _ if is_memory() => self.pass_time(context),
                        _ => break,
                    }
                }
            }
            if generation == asked {
                return Ok(generation);
            }
            // Another server had begun with it.
            generation += 1;
        }
    }

    /// Copies what a home had to the one in its place.
    fn copy(
        &self,
        context: &mut ThreadContext,
        server: &Server,
        (store, next): (&Store, &Arc<Store>),
        number: usize,
    ) -> Result<(), Failure> {
        let Setup { each, copies, homes, .. } = &store.setup;
        let (part, dead) = store.setup.copy_at(number);
        let lives = |other| self.is_up(&homes[store.setup.number_of(part, other)]);
        let source = dead.source(*copies, lives).ok_or(Refusal::NodeDown)?;
        let Shape::Chain { first, units } = Setup::shape(*each, part, store.setup.parts()) else {
            unreachable!("that is what it is made of")
        };
        let end = (first + units).min(server.units_made() + 1);
        let from = store.setup.number_of(part, source);
        server.copy((self, context), next, (from, number), first..end.max(first))
    }

    /// All other servers know what the store is made of.
    fn tell_servers(&self, context: &mut ThreadContext, store: &Store) -> Result<(), Failure> {
        let ask = Ask::Reform { store: store.clone() };
        for (node, its) in store.servers.iter().filter(|(node, _)| *node != self.id()) {
            while self.incarnation_of(*node) == Some(*its) {
                match self.ask_chain(context, (*node, store.addr), &ask) {
                    // The store is about to end.
                    Ok(_) | Err(Failure::Refused(Refusal::Unallocated)) => break,
                    Err(why @ Failure::Fenced) => return Err(why),
                    Err(_) => self.pass_time(context),
                }
            }
        }
        Ok(())
    }
}
