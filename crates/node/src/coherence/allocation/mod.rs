//! Allocation as messages: what a node's [`Allocator`] needs from the homes, and what other nodes need from it
//! (Concordia, section 6, "Global memory allocation").
//!
//! | file | what happens |
//! | --- | --- |
//! | `on_alloc.rs` | a thread allocates: from what this node has, or after asking the home for a chunk |
//! | `on_free.rs` | a thread frees; the allocator that has the chunk takes the allocation back |
//! | `reclaim.rs` | blocks that became empty: purged from all caches, ended at the home, reusable |
//! | `on_new_epoch.rs` | the switch or a node was restarted |
//!
//! Calls to a home are numbered by their requester and answered once; they are repeated until they are
//! answered, like everything else.
//!
//! What must always hold: no address is handed out before its home knows that its blocks are live; no block is
//! used again while some node may still have a copy of what it held; `free` is answered when a block that it
//! emptied can no longer be read anywhere.

pub(crate) mod canonical;
mod on_alloc;
mod on_free;
mod on_new_epoch;
mod reclaim;

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use wire::{
    Discipline, Endpoint, GlobalAddr, Nanos, NodeId, Packet, PacketKind, RequesterId, Rule, Rules, Seq,
    SlotId,
};

use crate::allocator::{Allocator, BlockRange};
use crate::coherence::config::NodeConfig;
use crate::coherence::context::Context;
use crate::coherence::copies::waiting::Then;
use crate::store::Store;

/// What an application thread called.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Call {
    /// `alloc`, with the address once there is one that only waits for its blocks to be marked.
    Alloc { len: u64, home: NodeId, discipline: Discipline, waiting: Option<(GlobalAddr, BlockRange)> },
    /// `free`.
    Free,
}

/// The allocation side of one node.
pub(crate) struct Allocation {
    node: NodeId,
    pub(crate) allocator: Allocator,
    /// Numbers of the last calls, by slot.
    seqs: [Seq; SlotId::PER_NODE],
    /// No call in flight is overdue before this.
    due: Nanos,
    /// Calls in flight, by slot.
    pending: [Option<Pending>; SlotId::PER_NODE],
    /// The last FREE of every requester, and its answer if it has one.
    frees: Box<[Option<Freeing>]>,
    /// Blocks to purge, oldest first; the first one is being worked on.
    reclaim: VecDeque<reclaim::Job>,
    /// Threads that wait for another thread's chunk look again then.
    retry: Nanos,
    /// Which slots do so, one bit each.
    retrying: u64,
}

/// A call that is not answered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Pending {
    packet: Packet,
    deadline: Nanos,
    /// It is not made yet: what this node has written must be committed before.
    waits: bool,
}

/// A FREE that came to this allocator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Freeing {
    seq: Seq,
    answer: Option<Packet>,
}

impl Allocation {
    pub(crate) fn new(config: &NodeConfig) -> Self {
        Self {
            node: config.id,
            allocator: Allocator::new(config.memory, config.block, config.chunk),
            seqs: [Seq::NONE; SlotId::PER_NODE],
            due: Nanos::MAX,
            pending: [None; SlotId::PER_NODE],
            frees: core::iter::repeat_n(None, config.nodes * SlotId::PER_NODE).collect(),
            reclaim: VecDeque::new(),
            retry: Nanos::MAX,
            retrying: 0,
        }
    }

    /// The requester's node has started a new incarnation: its numbers begin again.
    pub(crate) fn forget(&mut self, node: NodeId) {
        self.frees[node.index() * SlotId::PER_NODE..(node.index() + 1) * SlotId::PER_NODE].fill(None);
    }

    /// True if no call is in flight and nothing waits to be reclaimed.
    pub(crate) fn is_quiet(&self) -> bool {
        self.pending.iter().all(Option::is_none) && self.reclaim.is_empty() && self.retrying == 0
    }

    /// When something is to be done if nothing comes.
    #[inline]
    pub(crate) fn next_deadline(&self) -> Nanos {
        self.due.min(self.retry)
    }

    /// Sends a call to a home and waits for its answer.
    fn call<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        slot: SlotId,
        kind: PacketKind,
        home: NodeId,
        about: impl FnOnce(Packet) -> Packet,
    ) {
        let seq = self.seqs[slot.index()].next();
        self.seqs[slot.index()] = seq;
        let requester = RequesterId { node: self.node, slot };
        let packet = about(Packet {
            from: Endpoint::Allocator(self.node),
            to: Endpoint::HomeAgent(home),
            epoch: cx.config.switch_epoch,
            incarnation: cx.config.incarnation,
            ..Packet::request(kind, wire::BlockTag::from_bits(0), requester, seq)
        });
        assert!(self.pending[slot.index()].is_none(), "slot {slot:?} calls twice at once");
        self.pending[slot.index()] = Some(Pending { packet, deadline: Nanos::MAX, waits: true });
        let is_effect = kind == PacketKind::Free && cx.rules.holds(Rule::CommitBeforeFree);
        match if is_effect && cx.copies.is_on() { cx.want_batch() } else { Seq::NONE } {
            Seq::NONE => self.make_call(cx, slot, seq),
            batch => cx.copies.wait(batch, Then::Call(slot, seq)),
        }
    }

    /// The call with this number is made, unless it is over by now.
    pub(crate) fn make_call<S, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, slot: SlotId, seq: Seq) {
        let waits = |pending: &&mut Pending| pending.waits && pending.packet.seq == seq;
        let Some(pending) = self.pending[slot.index()].as_mut().filter(waits) else { return };
        pending.waits = false;
        pending.deadline = cx.repeat_at();
        self.due = self.due.min(pending.deadline);
        cx.send(pending.packet);
    }

    /// Takes the answer to a slot's call, if it is one.
    fn answered(&mut self, packet: &Packet) -> Option<Packet> {
        let pending = &mut self.pending[packet.requester.slot.index()];
        let asked =
            pending.filter(|it| it.packet.seq == packet.seq && it.packet.kind == packet.event)?.packet;
        *pending = None;
        Some(asked)
    }

    /// Repeats what is overdue.
    pub(crate) fn repeat_calls<S, R: Rules>(&mut self, cx: &mut Context<'_, S, R>) {
        if cx.now < self.due {
            return;
        }
        self.due = Nanos::MAX;
        for pending in self.pending.iter_mut().flatten() {
            if pending.deadline <= cx.now {
                pending.deadline = cx.repeat_at();
                cx.counters.retransmissions += 1;
                cx.send(pending.packet);
            }
            self.due = self.due.min(pending.deadline);
        }
    }
}
