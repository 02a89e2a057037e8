//! A home of a memory with copies has granted a chunk or marked blocks: whoever keeps a copy of that memory does the same.
//!
//! The call is answered when all of them have. Nothing is repeated from here: the caller repeats its call.
//!
//! What must always hold: what a caller was told stands in every copy.

use wire::{Copyset, Endpoint, Packet, PacketKind, Rule, Rules, Seq, Status};

use super::HomeAgent;
use crate::allocator::BlockRange;
use crate::coherence::context::Context;
use crate::coherence::counters::Drop;
use crate::store::Store;

/// A call whose effect not everybody has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Replicating {
    seq: Seq,
    reply: Packet,
    awaited: Copyset,
}

impl HomeAgent {
    /// Sends what the call changed to all other nodes that keep this memory. False if there is nobody, or nothing. A call that comes
    /// again is sent again, to those who have not said that they have it; by a home that has just taken over, to all.
    pub(super) fn replicate<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        call: &Packet,
        reply: &Packet,
    ) -> bool {
        let (row, me) = (call.requester.index(), cx.config.id);
        let others: Copyset = cx.copies.keepers(self.node).filter(|node| *node != me).collect();
        let last = self.replicating.get(&row).filter(|last| last.seq == call.seq);
        let awaited: Copyset = match last {
            Some(last) => others.iter().filter(|node| last.awaited.contains(*node)).collect(),
            None => others,
        };
        if awaited.is_empty() || reply.status != Status::Granted || !cx.rules.holds(Rule::CallsAreReplicated)
        {
            self.replicating.remove(&row);
            return false;
        }
        self.replicating.insert(row, Replicating { seq: call.seq, reply: *reply, awaited });
        for node in awaited.iter() {
            let packet = call.reply(PacketKind::Replicate, self.me(), Endpoint::HomeAgent(node));
            cx.send(Packet { event: call.kind, tag: reply.tag, arg: reply.arg, ..packet });
        }
        true
    }

    /// What the home that serves this memory has done.
    pub(crate) fn on_replicate<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        packet: &Packet,
    ) -> bool {
        let last = &self.calls[packet.requester.index()];
        let is_new = last.is_none_or(|last| last.seq < packet.seq);
        if is_new {
            let range = BlockRange::of_bytes(packet.tag, packet.arg, cx.config.block);
            let owner = packet.requester.node;
            let done = match (packet.event, packet.discipline) {
                (PacketKind::ChunkRequest, Some(discipline)) => {
                    self.chunks.grant_this(owner, range, discipline)
                }
                (PacketKind::Mark, discipline) => {
                    let marked = self.chunks.mark(owner, range, discipline).is_ok();
                    if marked && discipline.is_some() {
                        cx.store.zero_home(range.first, range.bytes(cx.config.block));
                    }
                    if marked {
                        range.tags(cx.config.block).for_each(|tag| cx.note_marked(tag));
                    }
                    marked
                }
                _ => false,
            };
            if !done {
                cx.counters.drop(Drop::Nonsense);
                return true;
            }
            let to = Endpoint::Allocator(owner);
            self.calls[packet.requester.index()] = Some(packet.reply(PacketKind::HomeReply, self.me(), to));
        }
        let Some(server) = cx.copies.server(self.node) else { return false };
        let me = Endpoint::HomeAgent(cx.config.id);
        cx.send(packet.reply(PacketKind::Replicated, me, Endpoint::HomeAgent(server)));
        true
    }

    /// One more has it.
    pub(crate) fn on_replicated<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        packet: &Packet,
    ) -> bool {
        let row = packet.requester.index();
        let Some(it) = self.replicating.get_mut(&row).filter(|it| it.seq == packet.seq) else {
            cx.counters.drop(Drop::Stale);
            return true;
        };
        it.awaited = packet.from.node().map_or(it.awaited, |node| it.awaited.without(node));
        if it.awaited.is_empty() {
            let reply = it.reply;
            self.replicating.remove(&row);
            cx.send(Packet { epoch: cx.config.switch_epoch, ..reply });
        }
        true
    }
}
