//! A thread allocates.

use wire::{Discipline, Nanos, NodeId, Packet, PacketKind, Refusal, Rules, SlotId, Status};

use super::{Allocation, Call};
use crate::allocator::{BlockRange, Outcome as Found};
use crate::coherence::context::Context;
use crate::coherence::counters::Drop;
use crate::coherence::message::{Outcome, Started};
use crate::coherence::requester::{Requesters, Work};
use crate::store::Store;

/// How long a thread waits before it looks whether another thread's chunk has come.
const LOOK_AGAIN: Nanos = Nanos(500);

impl Allocation {
    pub(crate) fn on_alloc<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        requesters: &mut Requesters,
        len: u64,
        home: NodeId,
        discipline: Discipline,
    ) -> Started {
        let call = Call::Alloc { len, home, discipline, waiting: None };
        let Some(slot) = requesters.occupy(Work::Call(call)) else { return Started::Full };
        self.try_alloc(cx, requesters, slot, len, home, discipline);
        Started::Slot(slot)
    }

    fn try_alloc<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        requesters: &mut Requesters,
        slot: SlotId,
        len: u64,
        home: NodeId,
        discipline: Discipline,
    ) {
        if discipline != Discipline::Coherent && cx.config.is_copied(home) {
            return self.fail(cx, requesters, slot, Refusal::WrongDiscipline);
        }
        if cx.down.contains(home) {
            return self.fail(cx, requesters, slot, Refusal::NodeDown);
        }
        match self.allocator.alloc(len, home, discipline) {
            Found::Done { addr, fresh: None } => {
                requesters.finish_work(slot);
                cx.completed(
                    slot,
                    Outcome::Allocated { addr, zeroed: false, incarnation: cx.incarnations[home.index()] },
                );
            }
            Found::Done { addr, fresh: Some(range) } => {
                requesters.set_work(
                    slot,
                    Work::Call(Call::Alloc { len, home, discipline, waiting: Some((addr, range)) }),
                );
                let bytes = range.bytes(cx.config.block);
                self.call(cx, slot, PacketKind::Mark, home, |packet| Packet {
                    tag: range.first,
                    arg: bytes,
                    discipline: Some(discipline),
                    ..packet
                });
            }
            Found::NeedChunk { bytes } if self.chunk_is_coming(home) => {
                let _ = bytes;
                self.retrying |= 1 << slot.0;
                self.retry = self.retry.min(cx.now + LOOK_AGAIN);
            }
            Found::NeedChunk { bytes } => {
                self.call(cx, slot, PacketKind::ChunkRequest, home, |packet| Packet {
                    arg: bytes,
                    discipline: Some(discipline),
                    ..packet
                });
            }
            Found::TooBig => {
                requesters.finish_work(slot);
                cx.completed(slot, Outcome::Failed(Refusal::OutOfMemory));
            }
        }
    }

    /// True if another thread has asked this home for a chunk.
    fn chunk_is_coming(&self, home: NodeId) -> bool {
        self.pending.iter().flatten().any(|pending| {
            pending.packet.kind == PacketKind::ChunkRequest
                && pending.packet.to == wire::Endpoint::HomeAgent(home)
        })
    }

    /// Threads that waited for another thread's chunk look again.
    pub(crate) fn retry_allocs<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        requesters: &mut Requesters,
    ) {
        if cx.now < self.retry {
            return;
        }
        self.retry = Nanos::MAX;
        let mut rest = core::mem::take(&mut self.retrying);
        while rest != 0 {
            let slot = SlotId(rest.trailing_zeros() as u16);
            rest &= rest - 1;
            if let Work::Call(Call::Alloc { len, home, discipline, .. }) = requesters.slot(slot).work {
                self.try_alloc(cx, requesters, slot, len, home, discipline);
            }
        }
    }

    /// A home has answered a call.
    pub(crate) fn on_home_reply<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        requesters: &mut Requesters,
        packet: &Packet,
    ) {
        let Some(asked) = self.answered(packet) else { return cx.counters.drop(Drop::Stale) };
        let slot = packet.requester.slot;
        if slot == SlotId::RECLAIM {
            return self.on_ended(cx, requesters);
        }
        let Work::Call(Call::Alloc { len, home, discipline, waiting }) = requesters.slot(slot).work else {
            panic!("slot {slot:?} made no allocation call, and has the answer {packet:?}");
        };
        match (asked.kind, packet.status, waiting) {
            (PacketKind::ChunkRequest, Status::Granted, _) => {
                let range = BlockRange::of_bytes(packet.tag, packet.arg, cx.config.block);
                match self.allocator.add_chunk(range, discipline) {
                    Ok(()) => self.try_alloc(cx, requesters, slot, len, home, discipline),
                    // A home that grants what it must not: nothing of ours is at stake but this call.
                    Err(_) => self.fail(cx, requesters, slot, Refusal::OutOfMemory),
                }
            }
            (PacketKind::Mark, Status::Granted, Some((addr, range))) => {
                self.allocator.marked(range);
                requesters.finish_work(slot);
                cx.completed(
                    slot,
                    Outcome::Allocated { addr, zeroed: true, incarnation: cx.incarnations[home.index()] },
                );
            }
            (_, Status::Refused(why), waiting) => {
                if let Some((addr, range)) = waiting {
                    // Nobody has seen the address: the blocks can go straight back.
                    let freed = self.allocator.free(addr);
                    assert!(freed.is_ok(), "{addr} was allocated for this call");
                    let reclaimed = self.allocator.reclaim(range);
                    assert!(reclaimed.is_ok(), "{range:?} held nothing else: {reclaimed:?}");
                }
                self.fail(cx, requesters, slot, why);
            }
            (kind, ..) => panic!("the answer {packet:?} to a {kind:?} that slot {slot:?} did not make"),
        }
    }

    fn fail<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        requesters: &mut Requesters,
        slot: SlotId,
        why: Refusal,
    ) {
        requesters.finish_work(slot);
        cx.completed(slot, Outcome::Failed(why));
    }
}
