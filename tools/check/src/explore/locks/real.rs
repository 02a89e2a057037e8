//! The real machines of the explored rack: put into a state, given one input, and looked at afterwards.
//!
//! What must hold: nothing of one state is left when the next one is loaded.

use std::rc::Rc;

use node::coherence::canonical::NOW;
use node::locks::LockNodeConfig;
use node::{LockEffect, LockMessage, LockNode, Moment, Retransmission, View};
use switch::ebpf::{Frames, Hook, KernelProgram, TooLong};
use switch::locks::{Directory, Effect, EntryView, Resubmit};
use wire::{
    Copyset, GlobalAddr, Incarnation, LockEnd, LockKind, LockPacket, Mode, Nanos, NodeId, Rules, SwitchEpoch,
    Term,
};

use super::Regions;
use super::machines::{Facts, Local, LockFacts, Outwards, Own, SwitchFacts, SwitchState, Told};
use super::scope::{Keeper, Scope};
use super::shape::{LATEST, lock_at, lock_number};
use crate::bytecode::model::encoded_lock;
use crate::bytecode::{Made, Replay};
use crate::explore::engine::{After, Input, Machines};
use crate::locks::PlainLocks;

/// Bytes of a region that has any.
const LEN: u32 = 8;
const FIRST: SwitchEpoch = SwitchEpoch(1);

pub(super) struct Real<R: Rules> {
    scope: Scope,
    nodes: Vec<LockNode<R>>,
    switch: Directory<R>,
    replay: Option<Replay>,
}

impl Made for switch::locks::DirectoryConfig {
    fn made<R: Rules>(&self, rules: R) -> Result<KernelProgram, TooLong> {
        let directory = Directory::with_rules(rules, self).expect("a small directory fits");
        directory.for_kernel(Frames::Bare(Hook::TrafficControl, 0))
    }
}

impl<R: Rules> Real<R> {
    pub(super) fn new(rules: R, scope: &Scope) -> Self {
        let count = usize::from(scope.nodes);
        let retransmission = match scope.repeats() {
            true => Retransmission::AfterRoundTrips { floor: Nanos(1000), most: Nanos::MAX },
            false => Retransmission::Never,
        };
        let nodes = (0..scope.nodes).map(|id| {
            LockNode::with_rules(
                rules,
                LockNodeConfig {
                    in_switch: scope.keeper != Keeper::Home,
                    preference: scope.preference,
                    retransmission,
                    epoch: FIRST,
                    ..LockNodeConfig::new(NodeId(u16::from(id)), count)
                },
            )
        });
        let switch =
            switch::locks::DirectoryConfig { at: LockEnd::Switch, nodes: count, entries: 2, epoch: FIRST };
        let mut real = Self {
            scope: *scope,
            nodes: nodes.collect(),
            switch: Directory::with_rules(rules, &switch).expect("a small directory fits"),
            replay: Replay::of(scope.beside, &switch),
        };
        real.fill_switch();
        real
    }

    /// The initial state of every node and of the switch.
    pub(super) fn start(&mut self) -> (Vec<Local>, SwitchState) {
        let mut stores: Vec<_> =
            self.nodes.iter().map(|_| PlainLocks::new(usize::from(self.scope.room))).collect();
        for lock in 0..self.scope.locks {
            stores[0].home.insert(lock_at(lock), LATEST);
            assert_eq!(lock_number(lock_at(lock)), lock, "locks are counted from 0");
        }
        let locals = self.nodes.iter().zip(stores).map(|(node, store)| Local { state: node.save(), store });
        (locals.collect(), SwitchState { directory: self.switch.save(), epoch: FIRST })
    }

    /// If the switch is to be full, it is full of locks that nobody wants.
    fn fill_switch(&mut self) {
        for other in 0..if self.scope.keeper == Keeper::Full { 2 } else { 0 } {
            assert!(self.switch.insert(other_lock(other), Term::NONE, None, Copyset::EMPTY), "it is empty");
        }
    }

    fn entries(&self, state: &SwitchState) -> Vec<Option<EntryView>> {
        let entry = |lock| {
            let mut entries = state.directory.entries().iter();
            entries.find(|(at, _)| *at == lock_at(lock)).map(|(_, entry)| *entry)
        };
        (0..self.scope.locks).map(entry).collect()
    }

    fn len(&self) -> u32 {
        if self.scope.data { LEN } else { 0 }
    }

    fn call(&mut self, at: usize, local: &Local, input: Input<LockMessage, Own>) -> After<Regions, Local> {
        let (len, nodes) = (self.len(), self.nodes.len());
        let judges = self.scope.judges_moves;
        let node = &mut self.nodes[at];
        node.load(&local.state);
        let passes = node.directory().passes();
        let mut store = local.store.clone();
        let (mut effects, mut told) = (Vec::new(), Vec::new());
        let moment = Moment { now: NOW, random: 0 };
        let out = &mut effects;
        match input {
            Input::Packet(message) => {
                let before = node.entry(message.packet.lock);
                node.on_packet(moment, &message, &mut store, out);
                let after = node.entry(message.packet.lock);
                let moved = before.is_some() && after.map(|it| it.term) != before.map(|it| it.term);
                if message.packet.kind == LockKind::Move && moved && judges {
                    judge(&message.packet, before);
                }
            }
            Input::Own(Own::Want(ticket, lock, mode, once)) => {
                if store.enter(lock_at(lock), mode) {
                    told.push(LockEffect::Entered(ticket));
                } else {
                    node.on_lock(moment, (ticket, mode, once), (lock_at(lock), len), &mut store, out);
                }
            }
            Input::Own(Own::Leave(lock, mode)) => {
                let wrote = (mode == Mode::Write).then_some(LATEST);
                if store.leave(lock_at(lock), mode, wrote) {
                    node.on_left(moment, lock_at(lock), &mut store, out);
                }
            }
            Input::Own(Own::Cancel(ticket, lock)) => {
                let waited = node.on_cancel(moment, ticket, lock_at(lock), &mut store, out);
                assert!(waited, "a thread that waits is known to its node");
            }
            Input::Own(Own::End(ticket, lock)) => {
                store.end(lock_at(lock));
                node.on_free(moment, (ticket, false), lock_at(lock), &mut store, out);
            }
            Input::Own(Own::Fire(timer)) => node.fire(timer, &mut store, out),
            Input::Own(Own::Leaving) => {
                node.on_leaving(moment, &mut store, out);
            }
            Input::Own(Own::Hear(epoch)) => {
                let incarnations = vec![Some(Incarnation(0)); nodes];
                let view = View { epoch, incarnations, shadow: NodeId(0), memories: Vec::new() };
                node.on_new_epoch(moment, &view, &mut store, out);
            }
        }
        node.invariants();
        let pass = (node.directory().passes() > passes).then(|| node.directory().last_row()).flatten();
        let mut sends = Vec::new();
        for effect in effects {
            match effect {
                LockEffect::Send(message) => sends.push(message),
                other => told.push(other),
            }
        }
        store.canonical(|_, value| value);
        let local = Local { state: node.save(), store };
        After { local, sends, again: Vec::new(), told: Told { told, pass } }
    }

    fn pass(
        &mut self,
        state: &SwitchState,
        input: Result<LockMessage, Resubmit>,
    ) -> After<Regions, SwitchState> {
        let switch = &mut self.switch;
        switch.restart(state.epoch);
        switch.load(&state.directory);
        if let (Some(replay), Ok(message)) = (&mut self.replay, &input)
            && message.packet.payload == 0
        {
            replay.run(switch, state.epoch.0, &encoded_lock(&message.packet));
            switch.restart(state.epoch);
            switch.load(&state.directory);
        }
        let passes = switch.passes();
        let mut effects = Vec::new();
        match input {
            Ok(message) => {
                let before = switch.entry(message.packet.lock);
                switch.on_packet(&message.packet, &mut effects);
                let approved = |effect: &Effect| matches!(effect, Effect::Resubmit(again) if again.approved);
                if self.scope.judges_moves && effects.iter().any(approved) {
                    judge(&message.packet, before);
                }
            }
            Err(again) => switch.on_resubmit(&again, &mut effects),
        }
        let pass = (switch.passes() > passes).then(|| switch.last_row()).flatten();
        let (mut sends, mut again) = (Vec::new(), Vec::new());
        for effect in effects {
            match effect {
                Effect::Send(packet) => sends.push(LockMessage { packet, data: None }),
                Effect::Resubmit(it) => again.push(it),
            }
        }
        let local = SwitchState { directory: switch.save(), epoch: state.epoch };
        After { local, sends, again, told: Told { told: Vec::new(), pass } }
    }
}

/// A lock that nobody wants.
fn other_lock(number: u64) -> GlobalAddr {
    GlobalAddr::new(NodeId(1), 4096 + 64 * number)
}

/// A MOVE that is approved is the holder's, of this term, and names exactly those who wait (GCS, section 4.2).
fn judge(packet: &LockPacket, entry: Option<EntryView>) {
    let entry = entry.expect("a MOVE that is approved is of an entry");
    assert!(
        entry.holder == Some(packet.node) && entry.term == packet.term && entry.waiting == packet.waiting,
        "a MOVE is approved that does not know who waits: {packet:?}, {entry:?}"
    );
}

impl<R: Rules> Machines<Regions> for Real<R> {
    fn at_node(
        &mut self,
        node: usize,
        local: &Local,
        input: Input<LockMessage, Own>,
    ) -> Vec<After<Regions, Local>> {
        vec![self.call(node, local, input)]
    }

    fn at_switch(
        &mut self,
        state: &SwitchState,
        input: Result<LockMessage, Resubmit>,
    ) -> After<Regions, SwitchState> {
        self.pass(state, input)
    }

    fn facts(&mut self, at: usize, local: &Local) -> Facts {
        let node = &mut self.nodes[at];
        node.load(&local.state);
        let locks = (0..self.scope.locks).map(|number| {
            let lock = lock_at(number);
            let frame = local.store.frames.get(&lock).copied().unwrap_or_default();
            let view = node.view(lock);
            LockFacts {
                readers: frame.users.readers > 0 || frame.gate.is_some(),
                writer: frame.users.writer || frame.gate == Some(Mode::Write),
                is_latest: frame.value == LATEST || !self.scope.data,
                holding: view.as_ref().and_then(|view| view.holding.clone()),
                copy: view.as_ref().and_then(|view| view.copy),
                asked: view.is_some_and(|view| view.asked),
                parked: local.state.parked(lock),
                entry: node.entry(lock),
            }
        });
        let locks = locks.collect();
        let (me, mut numbers) = (node.id(), Vec::new());
        local.state.numbers(me, |who, lock, number| numbers.push((who, lock, number)));
        let asked = local.state.asked().map(|(lock, number)| (me, lock, number)).collect();
        let (timers, epoch) = (local.state.timers(), local.state.epoch());
        Facts { timers, is_quiet: node.is_quiet(), epoch, locks, numbers, asked }
    }

    fn switch_facts(&mut self, state: &SwitchState) -> SwitchFacts {
        SwitchFacts { epoch: state.epoch, entries: self.entries(state) }
    }
}

impl<R: Rules> Outwards for Real<R> {
    fn restart(&mut self, state: &SwitchState) -> SwitchState {
        let epoch = SwitchEpoch(state.epoch.0 + 1);
        self.switch.restart(epoch);
        self.fill_switch();
        SwitchState { directory: self.switch.save(), epoch }
    }

    fn vacate(&mut self, state: &SwitchState) -> SwitchState {
        self.switch.restart(state.epoch);
        self.switch.load(&state.directory);
        self.switch.remove(other_lock(0));
        SwitchState { directory: self.switch.save(), epoch: state.epoch }
    }

    fn check_at_rest(&mut self, locals: &[Rc<Local>], switch: &SwitchState) -> Result<(), String> {
        for (node, local) in self.nodes.iter_mut().zip(locals) {
            node.load(&local.state);
        }
        let in_switch = self.entries(switch);
        for lock in 0..self.scope.locks {
            let (at, home) = (lock_at(lock), &self.nodes[0]);
            let entry = match (in_switch[usize::from(lock)], home.entry(at)) {
                (Some(_), Some(_)) => return Err(format!("two directories have lock {lock}")),
                (here, there) => here.or(there),
            };
            let Some(entry) = entry else {
                let holds = |node: &&LockNode<R>| node.held(at).is_some();
                if self.nodes.iter().any(|node| holds(&node)) {
                    return Err(format!("no directory has lock {lock}, and somebody has it"));
                }
                continue;
            };
            let wrong = |what: &str| Err(format!("at rest, {what}: lock {lock}, {entry:?}"));
            for (node, local) in self.nodes.iter().zip(locals) {
                let Some(view) = node.view(at) else { continue };
                match (&view.holding, entry.holder == Some(node.id())) {
                    (Some(holding), true) if holding.term != entry.term => {
                        return wrong("the holder is in another term");
                    }
                    (Some(holding), true) if !holding.known.without_all(entry.waiting).is_empty() => {
                        return wrong("the holder knows of somebody of whom the directory does not");
                    }
                    (Some(_), true) | (None, false) => {}
                    (Some(_), false) => return wrong("somebody holds it who is not the holder"),
                    // A late copy of a request may have made it the holder, and what that brought be lost: whoever asks next
                    // has it ask again.
                    (None, true) if self.scope.losses > 0 => {}
                    (None, true) => return wrong("the holder does not know that it is"),
                }
                if view.copy.is_some() && !entry.sharers.contains(node.id()) {
                    return wrong("somebody has a copy of whom the directory does not know");
                }
                let stale = local.store.frames.get(&at).is_some_and(|frame| frame.value != LATEST);
                if self.scope.data && node.held(at).is_some() && stale {
                    return wrong("a copy is not of the last release");
                }
            }
            if entry.holder.is_none() && self.scope.data {
                let term = home.home_of(at).map(|(term, _)| term);
                if term != Some(entry.term) || locals[0].store.home.get(&at) != Some(&LATEST) {
                    return wrong("nobody holds the lock, and its data are not at home");
                }
            }
        }
        Ok(())
    }
}
