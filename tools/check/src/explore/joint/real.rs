//! The real machines of the explored rack: whole nodes, put into a state and given one input through [`RackNode`], and
//! the switch's two programs.
//!
//! They are those of a world of random runs, so that at rest its properties look at them. What must hold: nothing of
//! one state is left when the next one is loaded.

use std::collections::VecDeque;
use std::rc::Rc;

use node::allocator::ChunkSize;
use node::coherence::canonical::NOW;
use node::{
    Backoff, Effect, LockEffect, LockMessage, Message, Moment, Node, NodeConfig, RackNode, Retransmission,
    Ticket, View,
};
use switch::coherence::{Dump, Switch};
use switch::locks::Directory;
use wire::{Endpoint, Incarnation, LockEnd, Nanos, NodeId, Rules, SwitchEpoch};

use super::Both;
use super::copied::Copied;
use super::machines::{
    BLOCK, FIRST, Facts, HOME, LEN, Local, Outwards, Own, SwitchState, ToThread, Told, block, region,
};
use super::packets::{Again, Packet};
use super::scope::Scope;
use super::world::{Control, Memory};
use crate::coherence::{self, PlainStore};
use crate::explore::engine::{After, Input, Machines};
use crate::joint::{Joint, Plan};
use crate::locks::{self, PlainLocks};
use crate::rack::{self, Faults, World, template};

const MOMENT: Moment = Moment { now: NOW, random: 0 };
/// Copies of locks that a node has capacity for.
const ROOM: usize = 1;

pub(super) struct Real<R: Rules> {
    scope: Scope,
    both: Joint<R>,
}

impl<R: Rules> Real<R> {
    pub(super) fn new(rules: R, scope: &Scope) -> Self {
        let nodes = usize::from(scope.nodes);
        let mut plan = Plan::with_restarts(0);
        plan.rack.nodes = nodes;
        plan.rack.copies = scope.copies.into();
        plan.rack.faults = Faults { lose: u32::from(scope.losses > 0), ..Faults::default() };
        plan.world.locks.locks = 1;
        plan.world.locks.room = ROOM;
        let mut both = Joint::new(rules, &plan);
        let switch = switch::coherence::SwitchConfig {
            nodes,
            entries: 7,
            epoch: FIRST,
            queue: false,
            lock_slots: 0,
            peeks: false,
            copies: scope.copies > 1,
        };
        both.blocks.switch = template::copy_of(rules, &switch, |rules, config| {
            Switch::with_rules(rules, config).expect("the program fits the chip")
        });
        let switch = switch::locks::DirectoryConfig { at: LockEnd::Switch, nodes, entries: 2, epoch: FIRST };
        both.locks.switch = template::copy_of(rules, &switch, |rules, config| {
            Directory::with_rules(rules, config).expect("a small directory fits")
        });
        let mut real = Self { scope: *scope, both };
        for node in 0..nodes {
            real.make(node, Incarnation(0));
        }
        real
    }

    /// Makes a node anew.
    fn make(&mut self, node: usize, incarnation: Incarnation) {
        let Scope { nodes, directory, copies, .. } = self.scope;
        let nodes = usize::from(nodes);
        let id = NodeId(u16::try_from(node).expect("few nodes"));
        let epoch = if incarnation > Incarnation(0) { SwitchEpoch(0) } else { FIRST };
        let retransmission = match self.scope.repeats() {
            true => Retransmission::AfterRoundTrips { floor: Nanos(1000), most: Nanos::MAX },
            false => Retransmission::Never,
        };
        let rules = self.both.blocks.rules;
        self.both.blocks.nodes[node].0 = Node::with_rules(
            rules,
            NodeConfig {
                block: BLOCK,
                chunk: ChunkSize::new(BLOCK.bytes()).expect("a power of two"),
                directory,
                switch_entries: 7,
                epoch: Nanos(1 << 50),
                hottest: 0,
                retransmission,
                backoff: Backoff { first: Nanos(1), most: Nanos(1) },
                switch_epoch: epoch,
                incarnation,
                copies: copies.into(),
                ..NodeConfig::new(id, nodes, 2 * BLOCK.bytes())
            },
        );
        let locks = node::locks::LockNodeConfig {
            in_switch: self.scope.locks_in_switch,
            retransmission,
            epoch,
            ..node::locks::LockNodeConfig::new(id, nodes)
        };
        self.both.locks.nodes[node].0 =
            template::copy_of(rules, &locks, |rules, config| node::LockNode::with_rules(rules, *config));
    }

    fn load(&mut self, at: usize, local: &Local) {
        self.both.blocks.nodes[at].0.load_all(&local.state, &local.rest);
        self.both.locks.nodes[at].0.load(&local.locks);
    }

    fn call(&mut self, at: usize, local: &Local, input: Input<Packet, Own>) -> After<Both, Local> {
        self.load(at, local);
        let (mut blocks, mut copies) = (local.blocks.clone(), local.copies.clone());
        let (node, locks) = (&mut self.both.blocks.nodes[at].0, &mut self.both.locks.nodes[at].0);
        let (mut out, mut lock_out) = (Vec::new(), Vec::new());
        let (mut started, mut walked_in) = (None, false);
        // Whoever runs has the memory.
        let is_of_locks = match &input {
            Input::Packet(packet) => packet.is_lock(),
            Input::Own(own) => own.is_of_locks(),
        };
        if is_of_locks {
            std::mem::swap(&mut blocks.home, &mut copies.home);
        }
        match input {
            Input::Packet(Packet::Block(message, _)) => {
                RackNode { node, locks }.on_packet(MOMENT, &message, &mut blocks, &mut out);
            }
            Input::Packet(Packet::Lock(message)) => {
                RackNode { node, locks }.on_lock_packet(MOMENT, &message, &mut copies, &mut lock_out);
            }
            Input::Own(Own::Allocate(home, discipline)) => {
                started = Some(node.on_alloc(MOMENT, BLOCK.bytes(), home, discipline, &mut blocks, &mut out));
            }
            Input::Own(Own::Free) => {
                started = Some(node.on_free(MOMENT, (region(), None), &mut blocks, &mut out))
            }
            Input::Own(Own::Fetch(tag, access)) => {
                started = Some(node.on_access(MOMENT, tag, access, &mut blocks, &mut out));
            }
            Input::Own(Own::Lock(tag)) => {
                started = Some(node.on_lock(MOMENT, tag, true, false, &mut blocks, &mut out));
            }
            Input::Own(Own::Release(slot)) => node.on_release(MOMENT, slot, &mut blocks, &mut out),
            Input::Own(Own::Sync) => started = Some(node.on_sync(MOMENT, &mut blocks, &mut out)),
            Input::Own(Own::Access(tag, frame, wrote)) => {
                let it = &mut blocks.frames[frame.0 as usize];
                let need = if wrote.is_some() { node::Access::Modified } else { node::Access::Shared };
                let may = it.published.is_some_and(|(holds, have)| holds == tag && have >= need);
                assert!(it.pinned && may, "a thread was promised the block for {need:?}: {it:?}");
                it.stamp = wrote.unwrap_or(it.stamp);
                if blocks.unpin(frame) {
                    node.on_unpinned(MOMENT, frame, &mut blocks, &mut out);
                }
            }
            Input::Own(Own::Enter(thread, mode)) => {
                walked_in = copies.enter(region(), mode);
                if !walked_in {
                    let who = (Ticket(thread.into()), mode, false);
                    locks.on_lock(MOMENT, who, (region(), LEN), &mut copies, &mut lock_out);
                }
            }
            Input::Own(Own::Reclaim(thread)) => {
                let ticket = Ticket(thread.into());
                locks.on_reclaim(MOMENT, ticket, (region(), LEN), &mut copies, &mut lock_out);
            }
            Input::Own(Own::Leave(mode, wrote)) => {
                if copies.leave(region(), mode, wrote) {
                    locks.on_left(MOMENT, region(), &mut copies, &mut lock_out);
                }
            }
            Input::Own(Own::End(thread, lost)) => {
                copies.end(region());
                let who = (Ticket(thread.into()), lost);
                locks.on_free(MOMENT, who, region(), &mut copies, &mut lock_out);
            }
            Input::Own(Own::SendHome) => {
                let (blocks, copies) = ((&mut blocks, &mut out), (&mut copies, &mut lock_out));
                RackNode { node, locks }.on_leaving(MOMENT, blocks, copies);
            }
            Input::Own(Own::Fire) => {
                node.make_all_due(&local.state);
                local.locks.timers().into_iter().for_each(|timer| locks.make_due(timer));
                let (blocks, copies) = ((&mut blocks, &mut out), (&mut copies, &mut lock_out));
                RackNode { node, locks }.on_deadline(MOMENT, blocks, copies);
            }
            Input::Own(Own::Hear(control)) => {
                let left = local.rest.epoch();
                let dump = control.dumps.iter().find(|dump| dump.epoch == left);
                let (blocks, copies) = ((&mut blocks, &mut out), (&mut copies, &mut lock_out));
                RackNode { node, locks }.on_new_epoch(MOMENT, (&control.view, dump), blocks, copies);
            }
        }
        if is_of_locks {
            std::mem::swap(&mut blocks.home, &mut copies.home);
        }
        assert!(copies.home.is_empty(), "locks have written without the node's memory");
        let (sends, told) = sorted(out, lock_out, |to| node.place_of(to));
        let zeroed = std::mem::take(&mut blocks.zeroed).contains(&block());
        let local = self.saved(at, blocks, copies);
        After { local, sends, again: Vec::new(), told: Told { told, started, walked_in, zeroed } }
    }

    /// The state of a node, with these stores.
    fn saved(&self, at: usize, mut blocks: PlainStore, mut copies: PlainLocks) -> Local {
        let (node, locks) = (&self.both.blocks.nodes[at].0, &self.both.locks.nodes[at].0);
        node.invariants(&blocks);
        locks.invariants();
        let retained = blocks.retained;
        blocks.canonical(|stamp| stamp);
        blocks.retained = retained;
        copies.canonical(|_, value| value);
        let (state, rest) = node.save_all();
        Local { state, rest, locks: locks.save(), blocks, copies }
    }

    fn load_switch(&mut self, state: &SwitchState) {
        let (blocks, locks) = (&mut self.both.blocks.switch, &mut self.both.locks.switch);
        blocks.restart(state.epoch);
        blocks.set_shadow(state.shadow);
        blocks.load(&state.blocks);
        locks.restart(state.epoch);
        locks.load(&state.locks);
    }

    fn pass(&mut self, state: &SwitchState, input: Result<Packet, Again>) -> After<Both, SwitchState> {
        self.load_switch(state);
        let (blocks, locks) = (&mut self.both.blocks.switch, &mut self.both.locks.switch);
        let (mut out, mut lock_out) = (Vec::new(), Vec::new());
        match input {
            Ok(Packet::Block(message, _)) => blocks.on_packet(&message.packet, &mut out),
            Err(Again::Block(again)) => blocks.on_resubmit(again, &mut out),
            Ok(Packet::Lock(message)) => locks.on_packet(&message.packet, &mut lock_out),
            Err(Again::Lock(again)) => locks.on_resubmit(&again, &mut lock_out),
        }
        blocks.invariants();
        let (mut sends, mut again) = (Vec::new(), Vec::new());
        for effect in out {
            match effect {
                switch::coherence::Effect::Send(packet) => {
                    let to = state.place_of(packet.to);
                    sends.extend(to.map(|to| Packet::Block(Message::from(packet), to)));
                }
                switch::coherence::Effect::Resubmit(it) => again.push(Again::Block(it)),
            }
        }
        for effect in lock_out {
            match effect {
                switch::locks::Effect::Send(packet) => {
                    sends.push(Packet::Lock(LockMessage { packet, data: None }));
                }
                switch::locks::Effect::Resubmit(it) => again.push(Again::Lock(it)),
            }
        }
        let local = SwitchState { blocks: blocks.save(), locks: locks.save(), ..state.clone() };
        After { local, sends, again, told: Told::default() }
    }
}

impl SwitchState {
    /// The node that a packet goes to; `None`: nobody serves the memory that it names.
    fn place_of(&self, to: Endpoint) -> Option<Option<NodeId>> {
        let nth = |memory: NodeId| memory.index().checked_sub(self.servers.len());
        match to {
            Endpoint::HomeAgent(memory) if !self.servers.is_empty() => match nth(memory) {
                Some(nth) => self.servers[nth].map(Some),
                None => Some(Some(memory)),
            },
            to => Some(to.node()),
        }
    }
}

/// What is sent, and what threads are told. What is for a memory that nobody serves goes nowhere.
fn sorted(
    out: Vec<Effect>,
    lock_out: Vec<LockEffect>,
    place_of: impl Fn(Endpoint) -> Option<Option<NodeId>>,
) -> (Vec<Packet>, Vec<ToThread>) {
    let (mut sends, mut told) = (Vec::new(), Vec::new());
    for effect in out {
        match effect {
            Effect::Send(message) => {
                sends.extend(place_of(message.packet.to).map(|to| Packet::Block(message, to)));
            }
            Effect::Completed { slot, outcome } => told.push(ToThread::Block(slot, outcome)),
        }
    }
    for effect in lock_out {
        match effect {
            LockEffect::Send(message) => sends.push(Packet::Lock(message)),
            effect => told.push(ToThread::Lock(effect)),
        }
    }
    (sends, told)
}

impl<R: Rules> Machines<Both> for Real<R> {
    fn at_node(&mut self, node: usize, local: &Local, input: Input<Packet, Own>) -> Vec<After<Both, Local>> {
        vec![self.call(node, local, input)]
    }

    fn at_switch(&mut self, state: &SwitchState, input: Result<Packet, Again>) -> After<Both, SwitchState> {
        self.pass(state, input)
    }

    fn facts(&mut self, at: usize, local: &Local) -> Facts {
        self.load(at, local);
        let (node, locks) = (&self.both.blocks.nodes[at].0, &self.both.locks.nodes[at].0);
        let copy = local.blocks.frames.iter().find_map(|frame| {
            let (tag, access) = frame.published?;
            (tag == block()).then_some((access, frame.stamp))
        });
        let cached = local.blocks.frames.iter().filter_map(|frame| {
            let (tag, cached) = frame.published?;
            node.config().is_copied(tag.home()).then(|| (tag, node.access(tag, cached), frame.stamp))
        });
        let armed =
            [!local.state.timers().is_empty(), local.rest.is_armed(), !local.locks.timers().is_empty()];
        Facts {
            epoch: local.rest.epoch(),
            is_quiet: node.is_quiet() && locks.is_quiet(),
            is_armed: armed.contains(&true),
            copy,
            value: local.copies.frames.get(&region()).map(|frame| frame.value),
            discipline: node.discipline_of(block()),
            memory: local.blocks.home_stamp(block()),
            has_lost: node.has_lost(block()),
            cached: cached.collect(),
            whole: local.rest.whole_memories(node.config().id),
        }
    }

    fn switch_facts(&mut self, state: &SwitchState) -> SwitchEpoch {
        state.epoch
    }
}

impl<R: Rules> Outwards for Real<R> {
    fn blank(&mut self, node: usize, incarnation: Incarnation) -> Local {
        self.make(node, incarnation);
        self.saved(node, PlainStore::new(BLOCK, 1), PlainLocks::new(ROOM))
    }

    fn empty_switch(&mut self, view: &View) -> SwitchState {
        let (blocks, locks) = (&mut self.both.blocks.switch, &mut self.both.locks.switch);
        let View { epoch, shadow, .. } = *view;
        blocks.restart(epoch);
        locks.restart(epoch);
        let servers = (0..view.memories.len()).map(|nth| view.hosts(nth).next());
        SwitchState { blocks: blocks.save(), locks: locks.save(), epoch, shadow, servers: servers.collect() }
    }

    fn settled(&mut self, control: &Rc<Control>) -> (Vec<Local>, SwitchState) {
        let mut switch = self.empty_switch(&control.view);
        let (mut locals, mut in_flight) = (Vec::new(), VecDeque::new());
        for at in 0..usize::from(self.scope.nodes) {
            let blank = self.blank(at, Incarnation(0));
            let After { local, sends, .. } = self.call(at, &blank, Input::Own(Own::Hear(Rc::clone(control))));
            locals.push(local);
            in_flight.extend(sends);
        }
        while let Some(packet) = in_flight.pop_front() {
            match packet.to() {
                Some(node) => {
                    let input = Input::Packet(packet);
                    let After { local, sends, .. } = self.call(node.index(), &locals[node.index()], input);
                    locals[node.index()] = local;
                    in_flight.extend(sends);
                }
                None => {
                    let After { local, sends, again, .. } = self.pass(&switch, Ok(packet));
                    assert!(again.is_empty(), "nobody has asked for anything");
                    switch = local;
                    in_flight.extend(sends);
                }
            }
        }
        (locals, switch)
    }

    fn dump(&mut self, state: &SwitchState) -> Dump {
        self.load_switch(state);
        self.both.blocks.switch.dump()
    }

    fn check_at_rest(
        &mut self,
        locals: &[Rc<Local>],
        switch: &SwitchState,
        control: &Control,
        memory: &Memory,
        copied: &Copied,
    ) -> Result<(), String> {
        self.load_switch(switch);
        for (at, local) in locals.iter().enumerate() {
            self.load(at, local);
            self.both.blocks.nodes[at].1 = local.blocks.clone();
            self.both.locks.nodes[at].1 = local.copies.clone();
            self.both.locks.nodes[at].1.home.clone_from(&local.blocks.home);
        }
        self.both.blocks.latest = [(block(), memory.latest)].into();
        self.both.blocks.latest.extend(&copied.latest);
        self.both.blocks.live = copied.latest.keys().map(|tag| tag.addr()).collect();
        self.both.blocks.survival = copied.survival.clone();
        // An odd number is that of no allocation.
        let changes = 1 + u32::from(memory.changes);
        self.both.locks.assume(0, control.incarnations[HOME.index()], (changes, memory.latest));
        let settled = rack::Control::settled(control.view.clone(), control.incarnations.clone());
        coherence::properties::check_settled(&mut self.both.blocks, &settled)?;
        locks::properties::check_settled(&self.both.locks, &settled)
    }
}
