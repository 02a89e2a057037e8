//! The real machines of the explored rack: put into a state, given one input, and looked at afterwards.

use std::collections::VecDeque;
use std::rc::Rc;

use node::allocator::ChunkSize;
use node::coherence::canonical::{NOW, Use};
use node::coherence::home::directory::Keeper;
use node::{
    Access, Backoff, Effect, Message, Moment, Node, NodeConfig, Outcome, Peeks, Retransmission, Started,
    Store,
};
use switch::coherence::{self, Resubmit, Switch};
use switch::ebpf::{Frames, Hook, KernelProgram, TooLong};
use wire::{
    BlockTag, Copyset, Discipline, Endpoint, GlobalStatus, Nanos, NodeId, Packet, PacketKind, RequesterId,
    Rules, Seq, SlotId, SwitchEpoch,
};

use super::Blocks;
use super::machines::{AtRest, BLOCK, Facts, Local, Own, SwitchFacts, Told};
use super::scope::{CoherenceStep, Scope};
use super::shape::{block_number, contents, is_latest};
use crate::bytecode::model::encoded;
use crate::bytecode::{Made, Replay};
use crate::coherence::PlainStore;
use crate::explore::engine::{After, Input, Machines};

/// All of that, as the machines say it.
struct Called {
    local: Local,
    effects: Vec<Effect>,
    started: Option<Started>,
}

pub(super) struct Real<R: Rules> {
    scope: Scope,
    nodes: Vec<Node<R>>,
    switch: Switch<R>,
    replay: Option<Replay>,
    tags: Vec<BlockTag>,
}

impl Made for coherence::SwitchConfig {
    fn made<R: Rules>(&self, rules: R) -> Result<KernelProgram, TooLong> {
        let switch = Switch::with_rules(rules, self).expect("the program fits the chip");
        switch.for_kernel(Frames::Bare(Hook::TrafficControl, 0))
    }
}

impl<R: Rules> Real<R> {
    pub(super) fn new(rules: R, scope: &Scope) -> Self {
        let count = usize::from(scope.nodes);
        let nodes = (0..scope.nodes).map(|id| {
            Node::with_rules(
                rules,
                NodeConfig {
                    block: BLOCK,
                    chunk: ChunkSize::new(4 * BLOCK.bytes()).expect("a power of two"),
                    directory: scope.directory,
                    switch_entries: 7,
                    epoch: Nanos(1 << 50),
                    hottest: 0,
                    retransmission: Retransmission::AfterRoundTrips { floor: Nanos(1000), most: Nanos::MAX },
                    backoff: Backoff { first: Nanos(1), most: Nanos(1) },
                    queue: scope.queue,
                    refusals_before_queue: 1,
                    peeks: if scope.peeks { Peeks::ALWAYS } else { Peeks::NEVER },
                    persistent: scope.persistent,
                    ..NodeConfig::new(NodeId(u16::from(id)), count, 16 * BLOCK.bytes())
                },
            )
        });
        let Scope { queue, peeks, .. } = *scope;
        let switch = coherence::SwitchConfig {
            nodes: count,
            entries: 7,
            epoch: SwitchEpoch(0),
            queue,
            lock_slots: 0,
            peeks,
            copies: false,
        };
        Self {
            scope: *scope,
            nodes: nodes.collect(),
            switch: Switch::with_rules(rules, &switch).expect("the program fits the chip"),
            replay: Replay::of(scope.beside, &switch),
            tags: Vec::new(),
        }
    }

    fn moment() -> Moment {
        Moment { now: NOW, random: 0 }
    }

    fn tag(&self, block: u8) -> BlockTag {
        self.tags[usize::from(block)]
    }

    /// One call, with everything put back as it was.
    fn call(&mut self, at: usize, local: &Local, input: Input<Message, Own>, random: u32) -> Called {
        let tag_of = |block: u8| self.tags[usize::from(block)];
        let node = &mut self.nodes[at];
        node.load(&local.state);
        let mut stored = local.store.clone();
        stored.retained = local.state.retained();
        let mut effects = Vec::new();
        let mut started = None;
        let moment = Moment { now: NOW, random };
        let out = &mut effects;
        let store = &mut stored;
        match input {
            Input::Packet(message) => node.on_packet(moment, &message, store, out),
            Input::Own(Own::Turn(CoherenceStep::Read(block))) => {
                started = Some(node.on_read(moment, tag_of(block), (0, 8), store, out));
            }
            Input::Own(Own::Turn(CoherenceStep::Write(block))) => {
                started = Some(node.on_access(moment, tag_of(block), Access::Modified, store, out));
            }
            Input::Own(Own::Turn(CoherenceStep::LockRead(block))) => {
                started = Some(node.on_lock(moment, tag_of(block), false, false, store, out));
            }
            Input::Own(Own::Turn(CoherenceStep::LockWrite(block))) => {
                started = Some(node.on_lock(moment, tag_of(block), true, false, store, out));
            }
            Input::Own(Own::Access { frame, block, write }) => {
                let need = if write { Access::Modified } else { Access::Shared };
                let it = &mut store.frames[frame.0 as usize];
                let may = it.published.is_some_and(|(holds, have)| holds == tag_of(block) && have >= need);
                assert!(it.pinned && may, "a thread was promised {block} for {need:?}: {it:?}");
                if write {
                    it.stamp = contents(u64::from(block), true).0;
                } else {
                    assert!(is_latest(it.stamp), "a thread reads old contents of block {block}");
                }
                if store.unpin(frame) {
                    node.on_unpinned(moment, frame, store, out);
                }
            }
            Input::Own(Own::Release(slot)) => node.on_release(moment, slot, store, out),
            Input::Own(Own::Fire(timer)) => node.fire(timer, random, store, out),
            Input::Own(Own::Hot(block)) => node.on_hot(moment, tag_of(block), store, out),
            Input::Own(Own::Cold(block)) => {
                let requester = RequesterId { node: NodeId(0), slot: SlotId::MIGRATION };
                let packet = Packet {
                    from: Endpoint::Shadow(NodeId(0)),
                    to: Endpoint::HomeAgent(NodeId(0)),
                    ..Packet::request(PacketKind::Demote, tag_of(block), requester, Seq::NONE)
                };
                node.on_packet(moment, &packet.into(), store, out);
            }
            Input::Own(Own::Purge(block)) => node.purge(moment, tag_of(block), store, out),
        }
        node.invariants(store);
        store.zeroed.clear();
        store.canonical(|stamp| stamp);
        Called { local: Local { state: node.save(), store: stored }, effects, started }
    }

    /// The initial state of every node and of the switch.
    pub(super) fn start(&mut self) -> (Vec<Local>, coherence::canonical::State) {
        let mut stores: Vec<PlainStore> = self.nodes.iter().map(|_| PlainStore::new(BLOCK, 1)).collect();
        for store in &mut stores {
            for frame in &mut store.frames[usize::from(self.scope.frames)..] {
                frame.reserved = true;
            }
        }
        let mut in_flight: VecDeque<Message> = VecDeque::new();
        for _ in 0..self.scope.blocks {
            let mut out = Vec::new();
            let (bytes, home) = (BLOCK.bytes(), NodeId(0));
            self.nodes[0].on_alloc(
                Self::moment(),
                bytes,
                home,
                Discipline::Coherent,
                &mut stores[0],
                &mut out,
            );
            loop {
                for effect in out.drain(..) {
                    match effect {
                        Effect::Send(message) => in_flight.push_back(message),
                        Effect::Completed { outcome: Outcome::Allocated { addr, .. }, .. } => {
                            self.tags.push(BLOCK.tag(addr));
                        }
                        Effect::Completed { outcome, .. } => panic!("the allocation ended with {outcome:?}"),
                    }
                }
                let Some(message) = in_flight.pop_front() else { break };
                match message.packet.to.node() {
                    Some(node) => {
                        let store = &mut stores[node.index()];
                        self.nodes[node.index()].on_packet(Self::moment(), &message, store, &mut out);
                    }
                    None => {
                        let mut effects = Vec::new();
                        self.switch.on_packet(&message.packet, &mut effects);
                        while let Some(effect) = effects.pop() {
                            match effect {
                                coherence::Effect::Send(packet) => in_flight.push_back(packet.into()),
                                coherence::Effect::Resubmit(again) => {
                                    self.switch.on_resubmit(again, &mut effects)
                                }
                            }
                        }
                    }
                }
            }
        }
        assert_eq!(self.tags.len(), usize::from(self.scope.blocks), "every block was allocated");
        for (block, tag) in (0..).zip(&self.tags) {
            assert_eq!(block_number(*tag), block, "blocks are counted from 0");
            stores[0].write_home(*tag, contents(block, true));
        }
        let locals = self.nodes.iter().zip(stores).map(|(node, mut store)| {
            store.zeroed.clear();
            store.canonical(|stamp| stamp);
            Local { state: node.save(), store }
        });
        (locals.collect(), self.switch.save())
    }
}

/// True for the first sending of a request that will choose a provider. In a queue, a WRITE-SHARED may become a
/// WRITE-MISS.
fn chooses(effect: &Effect, queue: bool) -> bool {
    let Effect::Send(Message { packet, .. }) = effect else { return false };
    let kind = match packet.kind {
        PacketKind::ReadMiss | PacketKind::WriteMiss => true,
        PacketKind::WriteShared => queue,
        _ => false,
    };
    kind && packet.to == Endpoint::Switch
}

impl<R: Rules> Machines<Blocks> for Real<R> {
    fn at_node(
        &mut self,
        node: usize,
        local: &Local,
        input: Input<Message, Own>,
    ) -> Vec<After<Blocks, Local>> {
        let queue = self.scope.queue;
        let mut all = vec![self.call(node, local, input, 0)];
        if self.scope.nodes > 2 && all[0].effects.iter().any(|effect| chooses(effect, queue)) {
            // Each random number is as good as a coin: in so many, both sides come up.
            for random in 1..40 {
                let after = self.call(node, local, input, random);
                if all.iter().all(|known| {
                    known.local != after.local || choices(known, queue) != choices(&after, queue)
                }) {
                    all.push(after);
                }
            }
        }
        all.into_iter().map(After::from).collect()
    }

    fn at_switch(
        &mut self,
        state: &coherence::canonical::State,
        input: Result<Message, Resubmit>,
    ) -> After<Blocks, coherence::canonical::State> {
        let mut effects = Vec::new();
        if let (Some(replay), Ok(message)) = (&mut self.replay, &input)
            && message.packet.payload == 0
        {
            self.switch.load(state);
            replay.run(&mut self.switch, 0, &encoded(&message.packet));
        }
        self.switch.load(state);
        match input {
            Ok(message) => self.switch.on_packet(&message.packet, &mut effects),
            Err(again) => self.switch.on_resubmit(again, &mut effects),
        }
        self.switch.invariants();
        let (mut sends, mut again) = (Vec::new(), Vec::new());
        for effect in effects {
            match effect {
                coherence::Effect::Send(packet) => sends.push(packet.into()),
                coherence::Effect::Resubmit(it) => again.push(it),
            }
        }
        After { local: self.switch.save(), sends, again, told: Told::default() }
    }

    fn facts(&mut self, _: usize, local: &Local) -> Facts {
        let mut numbers = Vec::new();
        local.state.numbers(&mut |requester, seq, how| {
            numbers.push((requester.index() as u16, seq.0 as u8, how));
        });
        let copies = local.store.frames.iter().filter_map(|frame| {
            let (tag, access) = frame.published?;
            Some((block_number(tag), access == Access::Modified, is_latest(frame.stamp)))
        });
        let copies = copies.collect();
        Facts { numbers, timers: local.state.timers(), is_quiet: local.state.is_quiet(), copies }
    }

    fn switch_facts(&mut self, state: &coherence::canonical::State) -> SwitchFacts {
        let (mut numbers, mut scored) = (Vec::new(), Vec::new());
        state.numbers(&mut |requester, seq| {
            numbers.push((requester.index() as u16, seq.0 as u8, Use::Remembered));
        });
        state.scored(&mut |requester| scored.push(requester.index() as u16));
        SwitchFacts { numbers, scored }
    }
}

impl<R: Rules> AtRest for Real<R> {
    fn check_at_rest(
        &mut self,
        locals: &[Rc<Local>],
        switch: &coherence::canonical::State,
        purged: bool,
    ) -> Result<(), String> {
        self.switch.load(switch);
        self.nodes[0].load(&locals[0].state);
        for block in 0..self.scope.blocks {
            let tag = self.tag(block);
            let home = self.nodes[0].directory().get(tag);
            let (locked, status, copyset) = match (home.keeper, self.switch.entry(tag)) {
                (Keeper::Home, None) => (home.is_locked(), home.status, home.copyset),
                (Keeper::Switch, Some(entry)) => (entry.lock != 0, entry.status, entry.copyset),
                (keeper, entry) => {
                    return Err(format!("block {block}: the home says {keeper:?}, the switch has {entry:?}"));
                }
            };
            let copies = locals.iter().enumerate().filter_map(|(node, local)| {
                let (_, access) = local.store.lookup(tag)?;
                Some((NodeId(u16::try_from(node).expect("few nodes")), access))
            });
            let copies: Vec<(NodeId, Access)> = copies.collect();
            let cached: Copyset = copies.iter().map(|copy| copy.0).collect();
            let writable = copies.iter().any(|copy| copy.1 == Access::Modified);
            if locked || copyset != cached || writable != (status == GlobalStatus::Modified) {
                return Err(format!(
                    "block {block} is {status:?} in {copyset:?}, locked: {locked}; there are copies {copies:?}"
                ));
            }
            let home_is_stale = !is_latest(locals[0].store.home_stamp(tag));
            if home_is_stale && status != GlobalStatus::Modified && !purged {
                return Err(format!("block {block} is {status:?}, and its home's memory is stale"));
            }
            if self.nodes[0].directory().get(tag.lock_entry()).is_locked() {
                return Err(format!("the lock of block {block} is taken, and nobody holds it"));
            }
        }
        Ok(())
    }
}

impl From<Called> for After<Blocks, Local> {
    fn from(Called { local, effects, started }: Called) -> Self {
        let (mut sends, mut completed) = (Vec::new(), Vec::new());
        for effect in effects {
            match effect {
                Effect::Send(message) => sends.push(message),
                Effect::Completed { slot, outcome } => completed.push((slot.0 as u8, outcome)),
            }
        }
        Self { local, sends, again: Vec::new(), told: Told { completed, started } }
    }
}

/// The choices of an input's outcome.
fn choices(after: &Called, queue: bool) -> Vec<u64> {
    let requests = after.effects.iter().filter(|effect| chooses(effect, queue));
    let args = requests.filter_map(|effect| match effect {
        Effect::Send(message) => Some(node::coherence::canonical::canonical_choice(message.packet.arg, 3)),
        Effect::Completed { .. } => None,
    });
    args.collect()
}
