//! The cache agent of a node: it answers for the blocks that the node has cached, when other nodes read or
//! write them (Concordia, section 5.1.1, "invalidation and data transfer").
//!
//! What may happen to it: any request may come twice, late, or after a later one of the same requester. It
//! keeps the last event of every requester and parity, with its answer, data included, until a later number
//! shows that the event is closed (sections 5.3.1; PROTOCOLS.md, FlowCC 1 and 3).
//!
//! What must always hold: a copy is given up or downgraded before the answer that says so is sent, and never
//! while a thread is writing in it; a request that names a state which this node's copy is not in is a late
//! copy of a closed one, and changes nothing.

pub(crate) mod canonical;
mod heat;
mod hold_time;
mod on_new_epoch;
mod on_peek;
mod on_request;

use alloc::boxed::Box;
use alloc::vec::Vec;

use wire::{BlockTag, Endpoint, NodeId, Packet, PacketKind, RequesterId, Rule, Rules, Seq, SlotId};

use crate::coherence::context::Context;
use crate::coherence::requester::leaving::Given;
use crate::store::{DataRef, FrameId, Store};
use heat::Heat;
use hold_time::Waiting;

/// The state of one node's cache agent.
pub(crate) struct CacheAgent {
    node: NodeId,
    /// LAST-EXECUTED, by requester and parity.
    last: Box<[Executed]>,
    /// Requests that wait for a thread's access to a frame.
    pub(crate) parked: Vec<(FrameId, Packet)>,
    /// Requests that wait until this node's threads leave the block alone for a moment.
    held: Vec<Waiting>,
    /// Invalidations in this epoch, of blocks that the switch keeps.
    heat: Heat,
}

/// The last event executed for one requester and parity.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Executed {
    seq: Seq,
    answer: Answer,
}

/// What was, or is to be, answered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Answer {
    /// Nothing: the requester has closed the event, or it was never for us.
    None,
    /// Nothing yet: a thread is writing in the frame, or the node holds the block for a while.
    Parked,
    /// An acknowledgement.
    Plain,
    /// The block, from the frame that it is still in.
    FromFrame(BlockTag),
    /// The block, from a copy kept for this.
    Retained(DataRef, BlockTag),
}

impl CacheAgent {
    pub(crate) fn new(node: NodeId, nodes: usize) -> Self {
        let last = core::iter::repeat_n(
            Executed { seq: Seq::NONE, answer: Answer::None },
            nodes * SlotId::PER_NODE * 2,
        );
        Self { node, last: last.collect(), parked: Vec::new(), held: Vec::new(), heat: Heat::default() }
    }

    fn last<R: Rules>(&mut self, rules: R, requester: RequesterId, seq: Seq) -> &mut Executed {
        let parity = if rules.holds(Rule::AgentKnowsParities) { seq.parity() } else { 0 };
        &mut self.last[requester.index() * 2 + parity]
    }

    /// The requester's node has started a new incarnation: its numbers begin again.
    pub(crate) fn forget<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, node: NodeId) {
        let rows = node.index() * SlotId::PER_NODE * 2;
        for executed in &mut self.last[rows..rows + SlotId::PER_NODE * 2] {
            if let Answer::Retained(data, _) = executed.answer {
                cx.store.discard(data);
            }
            *executed = Executed { seq: Seq::NONE, answer: Answer::None };
        }
        self.parked.retain(|(_, packet)| packet.requester.node != node);
        self.held.retain(|waiting| waiting.packet.requester.node != node);
    }

    /// Blocks that others may not have got yet.
    pub(crate) fn given<S: Store>(&self, store: &S) -> Vec<Given> {
        let of = |executed: &Executed| match executed.answer {
            Answer::Retained(_, tag) => Some(Given { tag, is_kept: true }),
            Answer::FromFrame(tag) if store.lookup(tag).is_some() => Some(Given { tag, is_kept: false }),
            _ => None,
        };
        let mut given: Vec<Given> = self.last.iter().filter_map(of).collect();
        given.sort_unstable();
        given.dedup();
        given
    }

    /// They have got these.
    pub(crate) fn arrived<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, tags: &[BlockTag]) {
        for executed in &mut self.last {
            if let Answer::Retained(data, tag) = executed.answer
                && tags.contains(&tag)
            {
                cx.store.discard(data);
                executed.answer = Answer::None;
            }
        }
    }

    /// A thread has finished its access to a frame that requests wait for.
    pub(crate) fn on_unpinned<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, frame: FrameId) {
        let (ready, rest) = self.parked.iter().partition(|(waits_for, _)| *waits_for == frame);
        self.parked = rest;
        let ready: Vec<(FrameId, Packet)> = ready;
        for (_, packet) in ready {
            // Unless the event has been closed meanwhile.
            let last = self.last(cx.rules, packet.requester, packet.seq);
            if last.seq == packet.seq && last.answer == Answer::Parked {
                self.execute(cx, &packet);
            }
        }
    }

    /// The epoch is over: tells the shadow node how hot the switch's blocks were here (section 5.2.2).
    pub(crate) fn on_epoch<S, R: Rules>(&mut self, cx: &mut Context<'_, S, R>) {
        let requester = RequesterId { node: self.node, slot: SlotId::MIGRATION };
        self.heat.take(cx.config.block, |tag, counts| {
            cx.send(Packet {
                from: Endpoint::CacheAgent(self.node),
                to: Endpoint::Shadow(cx.config.shadow),
                arg: u64::from_le_bytes(counts),
                epoch: cx.config.switch_epoch,
                incarnation: cx.config.incarnation,
                ..Packet::request(PacketKind::HotReport, tag, requester, Seq::NONE)
            });
        });
    }

    pub(crate) fn invariants<S: Store>(&self, store: &S) {
        let held = self.held.iter().map(|waiting| (&waiting.frame, &waiting.packet));
        for (frame, packet) in self.parked.iter().map(|(frame, packet)| (frame, packet)).chain(held) {
            let last = &self.last[packet.requester.index() * 2 + packet.seq.parity()];
            assert!(last.seq >= packet.seq, "parked {packet:?}, but the last one is {last:?}");
            assert_eq!(store.tag_of(*frame), Some(packet.tag), "a parked request's block stays in its frame");
        }
    }
}
