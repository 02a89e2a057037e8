//! Memory in the place of what has died: copies of a store are made anew, by its metadata server's thread; and backups of that.
//!
//! ```text
//!   memory at another node is allocated,                    or: another node is told all that the server knows
//!   and gets what the copy has that `Replica::source` names,
//!   in passes, while clients go on (`Copying`)
//!   stop      no client of the store is connected to any memory of it, and none begins that goes by what it was
//!   copy      what has changed since the last pass
//!   reform    servers know of the new memory, and of the new backup; then clients are told that ask
//! ```
//! One copy at a time; between two pieces of it the server does its other work. What must always hold: what counts as a copy is what its
//! source was when nobody was connected to that any more; whoever may take over knows of memory and of servers before clients do; and
//! whatever fails, the store goes on with what it has.

use std::ops::Range;

use nic::regions::{Call, Reply};
use sorted::Set;
use wire::chains::UNIT;
use wire::{Discipline, Incarnation, Nanos, NodeId, Refusal};

use crate::actor::{Allocated, Failure, ThreadContext};
use crate::chains::{Ask, Copying, Fabric as _, Home, LAST_PASS, MOST_CHANGED, Server, Setup, Store};
use crate::memory::regions::Shape;
use crate::networked::node::NetworkedNode;

/// Words of what a backup is to know that it is told at a time.
const PIECE: usize = 1024;
/// How often a new backup is sent what it lacks, until it has what the others have.
const ROUNDS: usize = 64;

/// How far a copy has come.
#[derive(PartialEq, Eq)]
enum Step {
    /// It is not time to go on.
    Waits,
    Taken,
    /// The copy counts.
    Ended,
}

/// The units that a home has, and that were ever given to clients: behind those nothing was written.
fn used(setup: &Setup, number: usize, server: &Server) -> Range<u32> {
    let (part, _) = setup.copy_at(number);
    let Range { start, end } = Setup::units_of(setup.each, part, setup.parts());
    start..end.min(server.units_made() + 1).max(start)
}

impl NetworkedNode {
    /// Its node is in the rack, or comes into it with an epoch that this node has not heard of yet.
    pub(super) fn lives(&self, home: &Home) -> bool {
        !self.is_over(home.addr.home(), home.incarnation)
    }

    /// Copies and backups of a store that have died, and that nothing has come in the place of; and the bytes of those copies.
    pub(super) fn missing(&self, server: &Server) -> (u64, u64) {
        let store = server.store();
        let servers = usize::from(store.setup.copies).saturating_sub(self.servers_up(&store).len());
        let homes = &store.setup.homes;
        let dead = (0..homes.len()).filter(|number| !self.lives(&homes[*number]));
        let units: Vec<u64> = dead.map(|number| used(&store.setup, number, server).len() as u64).collect();
        ((units.len() + servers) as u64, units.iter().sum::<u64>() * UNIT)
    }

    fn servers_up(&self, store: &Store) -> Vec<(NodeId, Incarnation)> {
        store.servers.iter().filter(|(node, its)| !self.is_over(*node, *its)).copied().collect()
    }

    /// Looks for memory in the place of a home that is dead, or copies some of what that had. True if there was anything to do.
    pub(super) fn replace_the_dead(
        &self,
        context: &mut ThreadContext,
        server: &Server,
        copying: &mut Option<Copying>,
    ) -> Result<bool, Failure> {
        let Some(mut this) = copying.take() else {
            *copying = self.begin_copying(context, server)?;
            return Ok(copying.is_some());
        };
        match self.go_on_copying(context, server, &mut this) {
            Ok(Step::Ended) => self.chains.pools.give_back(this.thread()),
            Ok(step) => {
                *copying = Some(this);
                return Ok(step == Step::Taken);
            }
            Err(why) => {
                self.give_up_copying(context, &this);
                if why == Failure::Fenced {
                    return Err(why);
                }
            }
        }
        Ok(true)
    }

    /// A copy is not made after all.
    pub(super) fn give_up_copying(&self, context: &mut ThreadContext, copying: &Copying) {
        let [_, home] = copying.homes();
        self.give_back(context, home);
        self.chains.pools.give_back(copying.thread());
    }

    fn begin_copying(
        &self,
        context: &mut ThreadContext,
        server: &Server,
    ) -> Result<Option<Copying>, Failure> {
        let store = server.store();
        let Setup { copies, homes, .. } = &store.setup;
        let Some(number) = homes.iter().position(|home| !self.lives(home)) else { return Ok(None) };
        if *copies == 1 || !server.may_try(self.now()) {
            return Ok(None);
        }
        let (part, dead) = store.setup.copy_at(number);
        let lives = |other| self.lives(&homes[store.setup.number_of(part, other)]);
        let source = dead.source(*copies, lives).ok_or(Refusal::NodeDown)?;
        let from = store.setup.number_of(part, source);
        let Some(home) = self.home_for(context, &store.setup, number) else { return Ok(None) };
        let Ok(thread) = self.chains.pools.thread() else {
            self.give_back(context, home);
            return Ok(None);
        };
        let (units, rate) = (used(&store.setup, number, server), self.chains.refill);
        let name = (self.next_number(), thread);
        let copying = Copying::new(&store, (number, home, from), (units, rate), name);
        match self.changed(context, &copying, 0) {
            Ok(_) => Ok(Some(copying)),
            Err(why) => {
                self.give_up_copying(context, &copying);
                if why == Failure::Fenced { Err(why) } else { Ok(None) }
            }
        }
    }

    /// Copies a piece if it is time, or what is left with clients stopped.
    fn go_on_copying(
        &self,
        context: &mut ThreadContext,
        server: &Server,
        copying: &mut Copying,
    ) -> Result<Step, Failure> {
        if server.has_ended() || !copying.homes().iter().all(|home| self.lives(home)) {
            return Err(Refusal::NodeDown.into());
        }
        if copying.wait(self.now()) > Nanos::ZERO {
            return Ok(Step::Waits);
        }
        // Another generation may have begun meanwhile, with another backup.
        copying.follow(&server.store());
        if !copying.has_passed() {
            server.count_recopied(0, copying.step(self, context)?);
        } else {
            self.begin_pass(context, copying)?;
        }
        if !copying.is_near() {
            return Ok(Step::Taken);
        }
        let servers = server.store().servers.clone();
        self.reform(context, server, Some(copying), servers)?;
        Ok(Step::Ended)
    }

    fn begin_pass(&self, context: &mut ThreadContext, copying: &mut Copying) -> Result<(), Failure> {
        let changed = self.changed(context, copying, copying.next_pass())?;
        copying.begin_pass(changed);
        Ok(())
    }

    /// What has changed at a copy's source before that pass began.
    fn changed(
        &self,
        context: &mut ThreadContext,
        copying: &Copying,
        pass: u32,
    ) -> Result<Vec<Range<u32>>, Failure> {
        let ([home, _], copy) = (copying.homes(), copying.name);
        let mut units: Vec<Range<u32>> = Vec::new();
        loop {
            let first = units.last().map_or(0, |last| last.end);
            let ask = Ask::Changed { home, copy, pass, first };
            let at = (home.addr.home(), home.incarnation, home.addr);
            match self.ask_until_over(context, at, &ask)? {
                Some(Ok(Reply::Words(words))) => {
                    units.extend(words.iter().map(|word| (word >> 32) as u32..*word as u32));
                    if words.len() < MOST_CHANGED {
                        return Ok(units);
                    }
                }
                Some(Ok(_)) => return Err(Failure::Broken),
                Some(Err(why)) => return Err(why.into()),
                None => return Err(Refusal::NodeDown.into()),
            }
        }
    }

    /// Memory for what this home had, at a node that has no other copy of it: that with the fewest homes of the store.
    fn home_for(&self, context: &mut ThreadContext, setup: &Setup, number: usize) -> Option<Home> {
        let parts = setup.parts();
        let shape = Setup::shape(setup.each, number % parts, parts);
        let homes_at = |node: NodeId| {
            let its = |home: &&Home| home.addr.home() == node && self.lives(home);
            setup.homes.iter().filter(its).count()
        };
        let has_none = |node: &NodeId| {
            !setup.copies_of(number).any(|home| home.addr.home() == *node && self.lives(home))
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
            self.reform(context, server, None, servers)?;
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
            if let Err(why) = self.ask_life(context, (node, its, store.addr), &ask) {
                return if why == Failure::Fenced { Err(why) } else { Ok(false) };
            }
        }
        for _ in 0..ROUNDS {
            if self.is_over(node, its) || server.has_ended() {
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

    /// The store's next generation: with a copy in the place of a dead one, or with the same ones as before; and with these servers.
    ///
    /// # Errors
    /// If that copy cannot be made. The next generation has begun all the same.
    pub(super) fn reform(
        &self,
        context: &mut ThreadContext,
        server: &Server,
        mut copying: Option<&mut Copying>,
        servers: Vec<(NodeId, Incarnation)>,
    ) -> Result<(), Failure> {
        let store = server.store();
        if store.setup.copies == 1 {
            return Ok(());
        }
        let generation = self.stop(context, &store)?;
        let same = Store { servers, ..store.with(Setup { generation, ..store.setup.clone() }) };
        let copied = match &mut copying {
            Some(copying) => {
                copying.follow(&same);
                self.finish(context, server, copying)
            }
            None => Ok(()),
        };
        let now = match copying {
            Some(copying) if copied.is_ok() => {
                server.count_recopied(1, 0);
                copying.store().clone()
            }
            _ => same,
        };
        self.tell_servers(context, &now)?;
        server.adopt(now);
        // What it is to give back, who ends it has not heard of.
        if server.has_ended() { Err(Failure::Broken) } else { copied }
    }

    /// Nobody is connected to what is copied any more, nor is anybody going to be.
    fn finish(
        &self,
        context: &mut ThreadContext,
        server: &Server,
        copying: &mut Copying,
    ) -> Result<(), Failure> {
        let mut bytes = copying.end_pass(self, context)?;
        self.begin_pass(context, copying)?;
        bytes += copying.end_pass(self, context)?;
        server.count_recopied(0, bytes);
        // If nobody hears of that, what changes is noted for nothing, until it is copied again.
        let _ = self.changed(context, copying, LAST_PASS);
        Ok(())
    }

    /// Ends all connections of older generations than the next one, whose number this is.
    fn stop(&self, context: &mut ThreadContext, store: &Store) -> Result<u32, Failure> {
        let mut generation = store.setup.generation + 1;
        loop {
            let asked = generation;
            let ask = Ask::Stop { store: store.name, generation: asked };
            // Clients at nodes without memory of it would find out as well, but later.
            let all = (0..self.nodes_known() as u16).map(NodeId);
            let up = all.filter_map(|node| Some((node, self.incarnation_of(node)?)));
            let to_ask: Set<(NodeId, Incarnation)> = store.setup.nodes().chain(up).collect();
            for (node, life) in to_ask {
                match self.ask_until_over(context, (node, life, store.addr), &ask)? {
                    Some(Ok(Reply::Words(words))) if words.len() == 1 => {
                        generation = generation.max(u32::try_from(words[0]).unwrap_or(u32::MAX));
                    }
                    None => {}
                    Some(_) => return Err(Failure::Broken),
                }
            }
            if generation == asked {
                return Ok(generation);
            }
            // Another server had begun with it.
            generation += 1;
        }
    }

    /// All other servers know what the store is made of.
    fn tell_servers(&self, context: &mut ThreadContext, store: &Store) -> Result<(), Failure> {
        let ask = Ask::Reform { store: store.clone() };
        for (node, its) in store.servers.iter().filter(|(node, _)| *node != self.id()) {
            // It is over, knows, or is about to end with the store.
            self.ask_until_over(context, (*node, *its, store.addr), &ask)?;
        }
        Ok(())
    }
}
