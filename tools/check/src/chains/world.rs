//! All of it: threads, metadata servers and the switch's relay, as the joint world calls them.

use std::collections::BTreeMap;

use node::Outcome;
use switch::chains::{self, Action, Sent, Steering};
use switch::relay::{HEAD, Introduction, Relay};
use wire::{AllRules, Incarnation, Nanos, NodeId, Rules};

use super::rig::{Common, Packets, Rig, Servers};
use super::threads::Thread;
use super::{ChainPlan, Seen, session, times};
use crate::coherence::Blocks;
use crate::rack::{Bench, Conditions, FIRST, template};
use crate::regions::{Body, Message, Payload, Regions};

/// Threads of a node that use stores.
const MOST_THREADS: usize = 2;

/// Stores of chains.
pub struct Chains<R: Rules = AllRules> {
    nodes: usize,
    each: usize,
    threads: Vec<Thread<R>>,
    servers: Servers<R>,
    common: Common<R>,
}

/// What the switch has for chains.
fn relay<R: Rules>(rules: R, plan: &ChainPlan, nodes: usize) -> Relay<R> {
    let config = |reads: bool| chains::SteeringConfig {
        keys: 16,
        connections: 24,
        window: 64,
        slots: 256,
        reads: if reads { 256 } else { 0 },
        lifetime: times::LIFETIME,
        slot_lifetimes: if reads { times::SLOT_LIFETIMES } else { 1 },
        binding: session::BINDING,
        ..chains::SteeringConfig::default()
    };
    let program = plan.is_steered().then(|| {
        template::copy_of(rules, &config(plan.steering > 1), |rules, config| {
            Steering::with_rules(rules, config).expect("the program fits the chip")
        })
    });
    Relay::with_rules(rules, nodes, program, times::FOUND)
}

impl<R: Rules> Chains<R> {
    /// `first` is the number of the first thread, to the allocator.
    pub(crate) fn new(rules: R, rack: &Conditions, plan: &ChainPlan, first: usize) -> Self {
        let (nodes, each) = (rack.nodes, rack.threads.min(MOST_THREADS));
        let count = if plan.stores > 0 { nodes * each } else { 0 };
        let thread = |at: usize| Thread::new(NodeId((at / each) as u16), first + at);
        let mut relay = relay(rules, plan, nodes);
        relay.begin_epoch(FIRST, &vec![Some(Incarnation(0)); nodes]);
        Self {
            nodes,
            each,
            threads: (0..count).map(thread).collect(),
            servers: (0..nodes).map(|_| BTreeMap::new()).collect(),
            common: Common::new(rules, *plan, nodes, relay),
        }
    }

    /// Of a thousand turns, those of chains.
    pub(crate) const fn turns(&self) -> u32 {
        if self.common.plan.stores == 0 { 0 } else { self.common.plan.turns }
    }

    fn is_none(&self) -> bool {
        self.threads.is_empty()
    }

    /// Does what follows from what has come to the NICs.
    pub(crate) fn take_in<M: Packets>(
        &mut self,
        bench: &mut Bench<M>,
        blocks: &mut Blocks<R>,
        words: &mut Regions<R>,
    ) {
        let Self { servers, common, .. } = self;
        Rig { bench, blocks, words, common, servers }.take_in();
    }

    /// Something has come to a node, or to the switch. True if it is for the node's NIC.
    pub(crate) fn arrives<M: Packets>(
        &mut self,
        bench: &mut Bench<M>,
        to: Option<NodeId>,
        message: &Message,
    ) -> bool {
        let is_old = |sent: Nanos| bench.now.saturating_sub(sent) > times::MAX_AGE;
        match (message.body, to) {
            (Body::Chain(_, _, sent), _) if is_old(sent) => false,
            (Body::Chain(packet, payload, sent), None) => {
                self.forward(bench, message.from, (packet, payload, sent));
                false
            }
            (Body::Said(said), None) => {
                bench.touch(None);
                bench.note(None, || format!("the switch is told {said:?} by {}", message.from));
                if let Some(answer) = self.common.relay.on_introduction(bench.now, message.from, &said) {
                    let body = Body::Said(answer);
                    bench.send(None, Some(message.from), Message { from: message.from, body });
                }
                false
            }
            (Body::Said(said), Some(node)) => {
                if let Introduction::Heard { number } = said {
                    self.common.hears(node, number);
                }
                false
            }
            _ => true,
        }
    }

    /// A packet passes the switch.
    fn forward<M: Packets>(
        &mut self,
        bench: &mut Bench<M>,
        from: NodeId,
        (mut packet, payload, sent): (wire::roce::Packet, Payload, Nanos),
    ) {
        bench.touch(None);
        let bytes: Vec<u8> = match self.common.plan.is_steered() {
            true => payload.words().iter().flat_map(|word| word.to_le_bytes()).take(HEAD).collect(),
            false => Vec::new(),
        };
        let relay = &mut self.common.relay;
        let came = packet;
        let passed = relay.on_packet(bench.now, from, &mut packet, &bytes);
        bench.note(None, || format!("the switch gets {came:?} of {from}: {passed:?}, {packet:?}"));
        let send = |bench: &mut Bench<M>, to, packet, payload| {
            bench.send(None, Some(to), Message { from, body: Body::Chain(packet, payload, sent) });
        };
        match passed {
            Some((to, Action::Forward)) => send(bench, to, packet, payload),
            Some((to, Action::Bare)) => send(bench, to, packet, Payload::default()),
            Some((_, Action::Drop)) | None => {}
        }
        // Reads that are sent once more.
        while let Some(Sent { to, packet, .. }) = relay.next_sent() {
            send(bench, to, packet, Payload::default());
        }
    }

    /// A thread or a server takes its next step; false if all of them wait.
    pub(crate) fn take_turn<M: Packets>(
        &mut self,
        bench: &mut Bench<M>,
        blocks: &mut Blocks<R>,
        words: &mut Regions<R>,
    ) -> bool {
        if self.is_none() {
            return false;
        }
        let all = self.threads.len() + self.nodes;
        let first = bench.random.below(all);
        (0..all).any(|n| match (first + n) % all {
            at if at < self.nodes => self.step_servers(bench, blocks, words, NodeId(at as u16)),
            at => self.step_thread(bench, blocks, words, at - self.nodes),
        })
    }

    fn step_thread<M: Packets>(
        &mut self,
        bench: &mut Bench<M>,
        blocks: &mut Blocks<R>,
        words: &mut Regions<R>,
        at: usize,
    ) -> bool {
        let Self { threads, servers, common, .. } = self;
        let thread = &mut threads[at];
        bench.control.works(thread.node) && thread.step(&mut Rig { bench, blocks, words, common, servers })
    }

    fn step_servers<M: Packets>(
        &mut self,
        bench: &mut Bench<M>,
        blocks: &mut Blocks<R>,
        words: &mut Regions<R>,
        node: NodeId,
    ) -> bool {
        let Self { servers, common, .. } = self;
        if !bench.control.works(node) {
            return false;
        }
        let roots: Vec<_> = servers[node.index()].keys().copied().collect();
        let mut acted = false;
        for root in roots {
            let mut server = servers[node.index()].remove(&root).expect("it is one of them");
            acted |= server.step(&mut Rig { bench, blocks, words, common, servers }, node);
            if server.is_gone() {
                common.seen.swept += server.swept;
                common.free_thread(node, server.thread());
            } else {
                servers[node.index()].insert(root, server);
            }
        }
        acted
    }

    pub(crate) fn next_deadline(&self, node: NodeId) -> Nanos {
        if self.is_none() {
            return Nanos::MAX;
        }
        let its = &self.threads[node.index() * self.each..(node.index() + 1) * self.each];
        let clients = its.iter().map(|thread| thread.next_deadline(false));
        let servers = self.servers[node.index()].values().map(|server| server.next_deadline());
        clients.chain(servers).min().unwrap_or(Nanos::MAX)
    }

    pub(crate) fn on_deadline<M: Packets>(
        &mut self,
        bench: &mut Bench<M>,
        blocks: &mut Blocks<R>,
        words: &mut Regions<R>,
        node: NodeId,
    ) {
        if self.next_deadline(node) > bench.now {
            return;
        }
        for at in node.index() * self.each..(node.index() + 1) * self.each {
            if self.threads[at].next_deadline(bench.calm) <= bench.now {
                self.step_thread(bench, blocks, words, at);
            }
        }
        self.step_servers(bench, blocks, words, node);
    }

    /// What the allocator says to a thread.
    pub(crate) fn on_told<M: Packets>(
        &mut self,
        bench: &mut Bench<M>,
        blocks: &mut Blocks<R>,
        words: &mut Regions<R>,
        (thread, outcome): (usize, Outcome),
    ) {
        let Self { threads, servers, common, .. } = self;
        threads[thread].on_told(&mut Rig { bench, blocks, words, common, servers }, outcome);
    }

    /// The switch has lost all that it knew.
    pub(crate) fn on_switch_stopped(&mut self) {
        self.count();
        self.common.relay = relay(self.common.rules, &self.common.plan, self.nodes);
    }

    /// The switch's part.
    pub(crate) fn relay(&mut self) -> &mut Relay<R> {
        &mut self.common.relay
    }

    /// A node dies, with its threads and its servers.
    pub(crate) fn on_node_stopped(&mut self, node: NodeId) {
        if self.is_none() {
            return;
        }
        for at in node.index() * self.each..(node.index() + 1) * self.each {
            self.threads[at].dies();
        }
        let servers = std::mem::take(&mut self.servers[node.index()]);
        self.common.seen.swept += servers.values().map(|server| server.swept).sum::<u64>();
        self.common.forget(node);
    }

    pub(crate) fn is_quiet<M: Copy>(&self, bench: &Bench<M>) -> bool {
        let (threads, plan) = (&self.threads, &self.common.plan);
        let has_read = |thread: &Thread<R>| {
            let reads = thread.session.as_ref().map(|session| session.last_reads);
            reads.is_none_or(|reads| reads >= plan.keys as u64)
        };
        let works = |thread: &&Thread<R>| bench.control.works(thread.node);
        threads.iter().filter(works).all(|thread| thread.is_idle() && has_read(thread))
            && self.servers.iter().flat_map(BTreeMap::values).all(super::server::Server::is_idle)
            && self.common.is_quiet()
    }

    pub(crate) fn check_after(&mut self) -> Result<(), String> {
        self.common.truth.wrong.take().map_or(Ok(()), Err)
    }

    /// Some order explains all that clients were told.
    pub(crate) fn check_at_rest(&self) -> Result<(), String> {
        for server in self.servers.iter().flat_map(BTreeMap::values) {
            server.invariants();
        }
        if let Some(program) = self.common.relay.program() {
            program.invariants();
        }
        self.common.truth.check()
    }

    fn counted(&self, seen: &mut Seen) {
        let relay = &self.common.relay;
        seen.forwarded += relay.forwarded();
        if let Some(program) = relay.program() {
            let its = program.counters();
            seen.steered += its.steered;
            seen.moved += its.moved;
            seen.reads += its.reads;
            seen.refused += its.refused + its.indeterminate;
            seen.preloaded += its.preloaded;
        }
    }

    /// The switch is about to be another one.
    fn count(&mut self) {
        let mut seen = std::mem::take(&mut self.common.seen);
        self.counted(&mut seen);
        self.common.seen = seen;
    }

    pub(crate) fn operations(&self) -> u64 {
        self.common.seen.operations()
    }

    pub(crate) fn seen(&self) -> Seen {
        let mut seen = self.common.seen.clone();
        self.counted(&mut seen);
        seen.swept += self.servers.iter().flat_map(BTreeMap::values).map(|server| server.swept).sum::<u64>();
        seen
    }

    /// Who waits for what, in a page.
    pub(crate) fn describe<M: Copy>(&self, bench: &Bench<M>) -> String {
        use std::fmt::Write as _;
        let mut page = String::new();
        for thread in &self.threads {
            if !thread.is_idle() && bench.control.works(thread.node) {
                let _ = writeln!(page, "a thread of chains: {thread:?}");
            }
        }
        for (node, servers) in self.servers.iter().enumerate() {
            for server in servers.values().filter(|server| !server.is_idle()) {
                let _ = writeln!(page, "at n{node}: {server:?}");
            }
        }
        for asked in self.common.asked() {
            let _ = writeln!(page, "{asked}");
        }
        page
    }
}
