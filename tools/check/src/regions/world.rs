//! All of it: the NICs of a rack, their threads, and what the joint world has of them.

use std::collections::{BTreeMap, VecDeque};

use nic::regions::{self, Call};
use node::Node;
use wire::{AllRules, Copyset, GlobalAddr, Incarnation, Nanos, NodeId, Rules};

use super::chained::ForChains;
use super::memory::{During, Here, Own};
use super::nic::{Body, Event, Message, Nic, Payload, Work};
use super::threads::{Doing, Known, Use};
use super::truth::Truth;
use super::{RegionsPlan, Seen};
use crate::coherence::{Blocks, PlainStore};
use crate::rack::{Bench, Conditions};

/// Words and objects.
pub struct Regions<R: Rules = AllRules> {
    pub(super) rules: R,
    pub(super) plan: RegionsPlan,
    /// Threads of a node.
    each: usize,
    pub(super) nics: Vec<Nic<R>>,
    /// By node: what others have asked for, in the order in which it came.
    pub(super) asked: Vec<VecDeque<(NodeId, Payload)>>,
    /// By node.
    pub(super) own: Vec<Own>,
    pub(super) threads: Vec<Doing>,
    pub(super) uses: BTreeMap<GlobalAddr, Use>,
    pub(super) stale: Vec<Known>,
    /// Calls without a reply: who has asked whom.
    pub(super) calls: BTreeMap<u64, (usize, NodeId)>,
    pub(super) next_call: u64,
    pub(super) truth: Truth,
    /// What threads ask of the allocator.
    pub(super) frees: Vec<(usize, GlobalAddr)>,
    /// Nodes whose regions the step may have changed.
    pub(super) touched: Copyset,
    pub(super) seen: Seen,
    /// What has come of chains, and at which node.
    pub(crate) for_chains: Vec<(NodeId, ForChains)>,
}

impl<R: Rules> Regions<R> {
    pub(crate) fn new(rules: R, rack: &Conditions, plan: &RegionsPlan) -> Self {
        let nodes = rack.nodes;
        let mut nics: Vec<_> =
            (0..nodes).map(|node| Nic::new(rules, NodeId(node as u16), nodes, plan)).collect();
        nics.iter_mut().for_each(|nic| nic.on_view(Nanos(1), &vec![Some(Incarnation(0)); nodes]));
        nics.iter_mut().for_each(|nic| nic.events.clear());
        Self {
            rules,
            plan: *plan,
            each: rack.threads,
            nics,
            asked: vec![VecDeque::new(); nodes],
            own: vec![Own::new(); nodes],
            threads: vec![Doing::Idle; nodes * rack.threads],
            uses: BTreeMap::new(),
            stale: Vec::new(),
            calls: BTreeMap::new(),
            next_call: 1,
            truth: Truth::default(),
            frees: Vec::new(),
            touched: Copyset::EMPTY,
            seen: Seen::default(),
            for_chains: Vec::new(),
        }
    }

    /// Of a thousand turns, those of these threads.
    pub(crate) const fn turns(&self) -> u32 {
        self.plan.turns
    }

    /// The node of a thread.
    pub(crate) fn node_of(&self, thread: usize) -> NodeId {
        NodeId((thread / self.each) as u16)
    }

    pub(super) fn touch(&mut self, node: NodeId) {
        self.touched = self.touched.with(node);
    }

    // What comes.

    /// Something has come to a node's NIC.
    pub(crate) fn arrives<M: Copy + From<Message>>(
        &mut self,
        bench: &mut Bench<M>,
        blocks: &mut Blocks<R>,
        node: NodeId,
        message: &Message,
    ) {
        bench.note(None, || format!("{node} gets {message:?}"));
        self.touch(node);
        let store = &mut blocks.nodes[node.index()].1;
        let mut during = During { truth: &mut self.truth };
        self.nics[node.index()].on_packet(bench.now, message, &mut during, store);
        self.settle(bench, node);
    }

    pub(crate) fn next_deadline(&self, node: NodeId) -> Nanos {
        self.nics[node.index()].next_deadline()
    }

    pub(crate) fn on_deadline<M: Copy + From<Message>>(&mut self, bench: &mut Bench<M>, node: NodeId) {
        let nic = &mut self.nics[node.index()];
        if nic.next_deadline() <= bench.now {
            nic.on_deadline(bench.now);
            self.settle(bench, node);
        }
    }

    pub(crate) fn on_new_epoch<M: Copy + From<Message>>(&mut self, bench: &mut Bench<M>, node: NodeId) {
        let nic = &mut self.nics[node.index()];
        nic.on_view(bench.now, &bench.view().incarnations);
        self.settle(bench, node);
    }

    /// A node dies, with its threads and all that it had.
    pub(crate) fn on_node_stopped(&mut self, blocks: &mut Blocks<R>, node: NodeId) {
        self.count(node);
        let nodes = self.nics.len();
        self.nics[node.index()] = Nic::new(self.rules, node, nodes, &self.plan);
        self.asked[node.index()].clear();
        self.own[node.index()].clear();
        self.truth.node_dies(node);
        for thread in node.index() * self.each..(node.index() + 1) * self.each {
            match std::mem::replace(&mut self.threads[thread], Doing::Idle) {
                Doing::Changing { changes } => {
                    changes.iter().flatten().for_each(|change| self.truth.indeterminate(change.word));
                }
                // Nobody else knows of such an allocation.
                Doing::Asking { call: Call::Begin { addr, .. }, earnest: true, .. } => {
                    self.uses.remove(&addr);
                    blocks.others.remove(&addr);
                }
                _ => {}
            }
            self.calls.retain(|_, (caller, _)| *caller != thread);
            self.uses.values_mut().filter(|it| **it == Use::Busy(thread)).for_each(|it| *it = Use::Unknown);
        }
        self.uses.retain(|addr, _| addr.home() != node);
    }

    /// Blocks of a node's memory have ended.
    pub(crate) fn on_blocks_ended(&mut self, blocks: &mut Blocks<R>, node: NodeId, incarnation: Incarnation) {
        let (machine, store) = &mut blocks.nodes[node.index()];
        let block = machine.config().block;
        for range in machine.ended() {
            let (first, bytes) = (range.first.addr(), range.bytes(block));
            self.truth.blocks_end(first, bytes);
            let rules = self.rules;
            let mut here = self.here((machine, store), incarnation);
            regions::on_blocks_ended(rules, &mut here, first, bytes);
        }
        self.touch(node);
    }

    pub(super) fn here<'a>(
        &'a mut self,
        (node, store): (&'a Node<R>, &'a mut PlainStore),
        incarnation: Incarnation,
    ) -> Here<'a, R> {
        let at = node.config().id.index();
        let Self { nics, own, truth, .. } = self;
        Here { node, store, nic: &mut nics[at], own: &mut own[at], truth, incarnation }
    }

    // What goes.

    /// Sends what a NIC wants sent, and does what follows from what it was told.
    pub(super) fn settle<M: Copy + From<Message>>(&mut self, bench: &mut Bench<M>, node: NodeId) {
        let nic = &mut self.nics[node.index()];
        for (to, body) in nic.out.drain(..) {
            // What is about chains passes the switch, which may steer it.
            let to = if let Body::Chain(..) = body { None } else { Some(to) };
            bench.send(Some(node), to, Message { from: node, body });
        }
        for event in std::mem::take(&mut nic.events) {
            match event {
                Event::Done(work, completion) => {
                    if let Some(thread) = work.thread {
                        let completion = completion.map(|it| (it.status, it.version));
                        self.work_ends(bench, thread, &work, completion);
                    }
                }
                Event::Verb(ticket, outcome) => {
                    self.for_chains.push((node, ForChains::Verb(ticket, outcome)));
                }
                Event::Came(peer, payload) => self.message_comes(bench, node, peer, payload),
                Event::Ended(peer) => {
                    self.for_chains.push((node, ForChains::Cut(peer)));
                    self.asked[node.index()].retain(|(from, _)| *from != peer);
                    let threads = &self.each;
                    let is_over = |_: &u64, (thread, asked): &mut (usize, NodeId)| {
                        *thread / threads == node.index() && *asked == peer
                    };
                    let over: Vec<_> = self.calls.extract_if(.., is_over).collect();
                    over.into_iter().for_each(|(_, (thread, _))| self.told(bench, thread, None));
                }
            }
        }
    }

    /// Posts work; the thread is told if that cannot be.
    pub(super) fn post<M: Copy + From<Message>>(&mut self, bench: &mut Bench<M>, node: NodeId, work: Work) {
        let nic = &mut self.nics[node.index()];
        if nic.post(bench.now, work).is_none()
            && let Some(thread) = work.thread
        {
            self.work_ends(bench, thread, &work, None);
        }
        self.settle(bench, node);
    }
}
