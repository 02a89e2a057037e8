//! A memory is copied to one node more, in the background: that node asks for a few chunks and blocks after the other, and no faster
//! than it was told ([`NodeConfig::refill`](crate::NodeConfig::refill)).
//!
//! It gets all batches and all changes of what is allocated from the moment on at which it hears of the epoch, and what it gets that way
//! is newer than what the copying brings. It begins anew in every epoch.
//!
//! What must always hold: a node says that it has a memory whole only if it has all that was committed before.

use sorted::Set;
use wire::{
    BlockTag, Copyset, Discipline, Endpoint, GlobalAddr, Nanos, NodeId, Packet, PacketKind, RequesterId,
    Rule, Rules, Seq, SlotId, SwitchEpoch,
};

use crate::allocator::Step;
use crate::coherence::context::Context;
use crate::coherence::counters::Drop;
use crate::coherence::home::HomeAgent;
use crate::coherence::message::Message;
use crate::store::Store;

/// So many answers come to one question.
const RUN: usize = 8;
/// So many bytes of blocks may come at once.
const AT_ONCE: u64 = 256 << 10;

/// How long so many bytes take at this rate.
fn time_of(bytes: u64, rate: u64) -> Nanos {
    let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(rate.max(1));
    Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// How far it has come.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Refill {
    cursor: u64,
    /// Answers that are to come before it asks again.
    awaited: usize,
    /// Since when it goes on, and the bytes that have come.
    begun: Nanos,
    bytes: u64,
    /// Blocks that were committed since it began, and blocks that were marked.
    committed: Set<BlockTag>,
    marked: Set<BlockTag>,
    pub(super) deadline: Nanos,
}

impl<S: Store, R: Rules> Context<'_, S, R> {
    /// A new epoch begins: this node may be one that is to have a memory.
    pub(super) fn begin_refills(&mut self) {
        self.copies.refills.clear();
        self.copies.refilled = Copyset::EMPTY;
        let (me, now) = (self.config.id, self.now);
        for memory in self.copies.served().collect::<alloc::vec::Vec<_>>() {
            if self.copies.is_filling(memory, me) {
                let refill = Refill {
                    cursor: 0,
                    awaited: 0,
                    begun: now,
                    bytes: 0,
                    committed: Set::new(),
                    marked: Set::new(),
                    deadline: now,
                };
                self.copies.refills.insert(memory, refill);
            }
        }
        self.repeat_refills();
    }

    /// What this block has is newer here than what is still on its way.
    pub(super) fn note_committed(&mut self, tag: BlockTag) {
        if let Some(refill) = self.copies.refills.get_mut(&tag.home())
            && self.rules.holds(Rule::FreshIsKept)
        {
            refill.committed.insert(tag);
        }
    }

    /// The same of whether it is live.
    pub(crate) fn note_marked(&mut self, tag: BlockTag) {
        if let Some(refill) = self.copies.refills.get_mut(&tag.home())
            && self.rules.holds(Rule::FreshIsKept)
        {
            refill.marked.insert(tag);
        }
    }

    /// Asks, and asks again, for what comes next.
    pub(super) fn repeat_refills(&mut self) {
        let due = self.copies.refills.iter().filter(|(_, refill)| refill.deadline <= self.now);
        for memory in due.map(|(memory, _)| *memory).collect::<alloc::vec::Vec<_>>() {
            self.ask_for_more(memory);
        }
    }

    fn ask_for_more(&mut self, memory: NodeId) {
        let deadline = self.repeat_at();
        let Some(server) = self.copies.server(memory) else { return };
        let Some(refill) = self.copies.refills.get_mut(&memory) else { return };
        (refill.deadline, refill.awaited) = (deadline, RUN);
        let arg = refill.cursor;
        let requester = RequesterId { node: self.config.id, slot: SlotId::MIGRATION };
        let tag = self.config.block.tag(GlobalAddr::new(memory, 0));
        self.send(Packet {
            from: Endpoint::HomeAgent(self.config.id),
            to: Endpoint::HomeAgent(server),
            epoch: self.config.switch_epoch,
            incarnation: self.config.incarnation,
            arg,
            ..Packet::request(PacketKind::Refill, tag, requester, Seq(arg))
        });
    }
}

impl HomeAgent {
    /// A node asks for what comes next. It is told nothing before this home knows that all batches of before are in its memory.
    pub(crate) fn on_refill<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        packet: &Packet,
    ) -> bool {
        let memory = packet.tag.home();
        let serves = cx.copies.server(memory) == Some(cx.config.id);
        if !serves || !cx.copies.is_filling(memory, packet.requester.node) {
            return false;
        }
        if self.is_rebuilding() && cx.rules.holds(Rule::RefillAwaitsBatches) {
            cx.counters.drop(Drop::Stale);
            return true;
        }
        let answer = packet.reply(
            PacketKind::Refilled,
            Endpoint::HomeAgent(cx.config.id),
            Endpoint::HomeAgent(packet.requester.node),
        );
        let mut place = packet.arg;
        for _ in 0..RUN {
            let answer = Packet { seq: Seq(place), ..answer };
            let Some(step) = self.chunks.step(place) else {
                cx.send(Packet { discipline: None, ..answer });
                break;
            };
            let answer = Packet {
                tag: step.first,
                copyset: Copyset::only(step.owner),
                repeated: step.orphaned,
                discipline: Some(step.discipline),
                provider: step.is_chunk,
                arg: step.taken_back.0.into(),
                ..answer
            };
            if step.is_chunk {
                cx.send(answer);
            } else {
                let data = cx.store.home_contents(step.first);
                cx.send_block(answer, data);
            }
            place = self.chunks.place_behind(step.first, step.is_chunk);
        }
        true
    }

    /// The answer.
    pub(crate) fn on_refilled<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        message: &Message,
    ) -> bool {
        let (packet, memory) = (&message.packet, message.packet.tag.home());
        let is_from_server = packet.from.node() == cx.copies.server(memory);
        let answered = |refill: &&mut Refill| is_from_server && Seq(refill.cursor) == packet.seq;
        let Some(refill) = cx.copies.refills.get_mut(&memory).filter(answered) else {
            cx.counters.drop(Drop::Stale);
            return true;
        };
        let Some(discipline) = packet.discipline else {
            cx.copies.refills.remove(&memory);
            let nth = memory.index() - cx.config.nodes;
            cx.copies.refilled = cx.copies.refilled.with(NodeId(nth as u16));
            cx.counters.refilled += 1;
            return true;
        };
        let Some(step) = step_in(packet, discipline) else { return false };
        let place = self.chunks.place_behind(step.first, step.is_chunk);
        if place <= refill.cursor || step.is_chunk != message.data.is_none() {
            return false;
        }
        // What was marked or committed meanwhile is as it is.
        let is_known = !step.is_chunk && refill.marked.contains(&step.first);
        let is_fresh = refill.committed.contains(&step.first);
        if !is_known && !self.chunks.take(&step) {
            return false;
        }
        (refill.cursor, refill.awaited) = (place, refill.awaited.saturating_sub(1));
        let asks = refill.awaited == 0;
        if refill.bytes == 0 {
            refill.begun = cx.now;
        }
        if !step.is_chunk {
            refill.bytes += cx.config.block.bytes();
        }
        // Has it been too fast, it asks a little later, so that then some come at once again.
        let (bytes, rate) = (refill.bytes, cx.config.refill);
        let waits = asks && refill.begun + time_of(bytes.saturating_sub(AT_ONCE), rate) > cx.now;
        if waits {
            refill.deadline = refill.begun + time_of(bytes - AT_ONCE / 2, rate);
        }
        if let Some(data) = message.data.filter(|_| !is_known && !is_fresh) {
            cx.store.write_home(step.first, data);
            cx.counters.refilled_blocks += 1;
        }
        if asks && !waits {
            cx.ask_for_more(memory);
        }
        true
    }
}

/// What an answer with something in it says.
fn step_in(packet: &Packet, discipline: Discipline) -> Option<Step> {
    Some(Step {
        first: packet.tag,
        owner: packet.copyset.iter().next()?,
        orphaned: packet.repeated,
        discipline,
        is_chunk: packet.provider,
        taken_back: SwitchEpoch(u32::try_from(packet.arg).ok()?),
    })
}
