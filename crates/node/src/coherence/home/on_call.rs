//! Allocators ask this home: for a chunk, to mark blocks, to free what some allocator of the rack allocated.
//!
//! A call is answered once, and the answer kept: a repeated call gets the same one.

use wire::{Endpoint, GlobalAddr, Packet, PacketKind, Refusal, Rule, Rules, Status, SwitchEpoch};

use super::HomeAgent;
use super::directory::Keeper;
use crate::allocator::{BlockRange, MarkRefused};
use crate::coherence::config;
use crate::coherence::context::Context;
use crate::coherence::counters::Drop;
use crate::store::Store;

impl HomeAgent {
    pub(crate) fn on_call<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, packet: &Packet) {
        if let Some(rebuilding) = &mut self.rebuilding {
            // What a dead node had may be granted anew: only when its copies are known.
            rebuilding.calls.insert(packet.requester.index(), *packet);
            return;
        }
        if let Some(last) = &self.calls[packet.requester.index()] {
            if packet.seq < last.seq {
                return cx.counters.drop(Drop::Stale);
            }
            if packet.seq == last.seq && packet.kind == last.event {
                // Who served this memory before may have died before everybody had it.
                let again = Packet { epoch: packet.epoch, ..*last };
                if !self.replicate(cx, packet, &again) {
                    cx.send(again);
                }
                return;
            }
        }
        let answer = match packet.kind {
            PacketKind::ChunkRequest => self.grant_chunk(cx, packet),
            PacketKind::Mark => self.mark(cx, packet),
            // Passed on to the allocator that has the chunk; it answers, and keeps its answer itself.
            PacketKind::Free => return self.pass_on(cx, packet),
            _ => return cx.counters.drop(Drop::Nonsense),
        };
        let (status, tag, arg) = match answer {
            Ok((range, bytes)) => (Status::Granted, range.first, bytes),
            Err(why) => (Status::Refused(why), packet.tag, 0),
        };
        let to = Endpoint::Allocator(packet.requester.node);
        let reply = Packet {
            status,
            tag,
            arg,
            event: packet.kind,
            ..packet.reply(PacketKind::HomeReply, self.me(), to)
        };
        self.calls[packet.requester.index()] = Some(reply);
        if !self.replicate(cx, packet, &reply) {
            cx.send(reply);
        }
    }

    fn grant_chunk<S, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        packet: &Packet,
    ) -> Result<(BlockRange, u64), Refusal> {
        let discipline = packet.discipline.ok_or(Refusal::WrongDiscipline)?;
        let range = self
            .chunks
            .grant(packet.requester.node, packet.arg, discipline)
            .map_err(|_| Refusal::OutOfMemory)?;
        Ok((range, range.bytes(cx.config.block)))
    }

    /// Blocks become live with a discipline, or end theirs. At birth they are zeroed. From their end on, misses
    /// on them are refused; the allocator then purges the copies that are left.
    fn mark<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        packet: &Packet,
    ) -> Result<(BlockRange, u64), Refusal> {
        let range = BlockRange::of_bytes(packet.tag, packet.arg, cx.config.block);
        if !cx.rules.holds(Rule::IncarnationEndsBeforePurge) && packet.discipline.is_none() {
            return Ok((range, packet.arg));
        }
        self.chunks.mark(packet.requester.node, range, packet.discipline).map_err(|why| match why {
            MarkRefused::NotGranted => Refusal::Unallocated,
            MarkRefused::WrongDiscipline => Refusal::WrongDiscipline,
        })?;
        if !self.lost.is_empty() {
            for tag in range.tags(cx.config.block) {
                self.lost.remove(&tag);
            }
        }
        if packet.discipline.is_some() {
            cx.store.zero_home(range.first, range.bytes(cx.config.block));
            if cx.config.directory == config::Directory::Switch && !cx.config.is_copied(self.node) {
                for tag in range.tags(cx.config.block) {
                    self.want_added(cx, tag);
                }
            }
        } else {
            self.ended.push(range);
            for tag in range.tags(cx.config.block) {
                if self.directory.get(tag).keeper == Keeper::Switch {
                    self.want_removed(cx, tag);
                }
            }
        }
        Ok((range, packet.arg))
    }

    fn pass_on<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, packet: &Packet) {
        let addr: GlobalAddr = packet.tag.addr();
        // When it was called; it may have been repeated over a restart, and have been executed before that.
        let called_in = SwitchEpoch(u32::try_from(packet.arg).unwrap_or(u32::MAX));
        let orphaned = self.chunks.is_orphaned(
            addr,
            if cx.rules.holds(Rule::FreesAreForTheirAllocator) { called_in } else { SwitchEpoch(u32::MAX) },
        );
        match self.chunks.owner_of(addr) {
            _ if orphaned => {
                let to = Endpoint::Allocator(packet.requester.node);
                let status = Status::Refused(Refusal::NodeDown);
                cx.send(Packet { status, ..packet.reply(PacketKind::FreeReply, self.me(), to) });
            }
            Some(owner) => cx.send(Packet { from: self.me(), to: Endpoint::Allocator(owner), ..*packet }),
            None => {
                let to = Endpoint::Allocator(packet.requester.node);
                let status = Status::Refused(Refusal::NotAnAllocation);
                cx.send(Packet { status, ..packet.reply(PacketKind::FreeReply, self.me(), to) });
            }
        }
    }
}
