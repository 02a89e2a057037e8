//! Memory in the place of what has died: copies of a store are made anew, by its metadata server's thread.
//!
//! ```text
//!   memory at another node is allocated
//!   stop      no client of the store is connected to any memory of it, and none begins that goes by what it was
//!   copy      from the copy that `Replica::source` names
//!   reform    backups know of the new memory; then clients are told that ask
//! ```
//! While it is copied, clients wait. What must always hold: the server has nothing else in flight; nobody is connected to memory of
//! which is copied; whoever may take over knows of memory before clients do; and whatever fails, the store goes on with what it has.

use std::sync::Arc;

use nic::regions::{Call, Reply};
use wire::{Discipline, NodeId, Refusal};

use crate::actor::{Allocated, Failure, ThreadContext};
use crate::chains::{Ask, Fabric as _, Home, Server, Setup, Store};
use crate::memory::regions::Shape;
use crate::networked::node::NetworkedNode;

impl NetworkedNode {
    fn is_up(&self, home: &Home) -> bool {
        self.incarnation_of(home.addr.home()) == Some(home.incarnation)
    }

    /// Looks for memory in the place of homes that are dead, and copies to it what they had.
    pub(super) fn replace_the_dead(
        &self,
        context: &mut ThreadContext,
        server: &Server,
    ) -> Result<(), Failure> {
        let store = server.store();
        let missing = store.setup.homes.iter().filter(|home| !self.is_up(home)).count();
        server.count_copies(missing, 0);
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
        if found.is_empty() { Ok(()) } else { self.reform(context, server, found) }
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

    /// The store's next generation: with these homes in the place of dead ones, or with the same ones as before.
    pub(super) fn reform(
        &self,
        context: &mut ThreadContext,
        server: &Server,
        found: Vec<(usize, Home)>,
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
        self.tell_backups_of(context, server, &setup)?;
        server.count_copies(setup.homes.iter().filter(|home| !self.is_up(home)).count(), copied.len());
        server.adopt(setup);
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

    /// All backups know what the store is made of.
    fn tell_backups_of(
        &self,
        context: &mut ThreadContext,
        server: &Server,
        setup: &Setup,
    ) -> Result<(), Failure> {
        let store = server.store();
        let ask = Ask::Reform { store: store.name, setup: setup.clone() };
        for (node, its) in &store.servers[server.place() + 1..] {
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
