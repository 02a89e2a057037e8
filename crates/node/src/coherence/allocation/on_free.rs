//! A thread frees, on any node: the call goes through the home to the allocator that has the chunk.

use wire::{Endpoint, GlobalAddr, Incarnation, Packet, PacketKind, Refusal, Rules, Status};

use super::{Allocation, Call, Freeing};
use crate::coherence::context::Context;
use crate::coherence::counters::Drop;
use crate::coherence::message::{Outcome, Started};
use crate::coherence::requester::{Requesters, Work};
use crate::store::Store;

impl Allocation {
    pub(crate) fn on_free<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        requesters: &mut Requesters,
        (addr, incarnation): (GlobalAddr, Option<Incarnation>),
    ) -> Started {
        let Some(slot) = requesters.occupy(Work::Call(Call::Free)) else { return Started::Full };
        // From here on the call fails with this incarnation of the home: it is not made again in another one.
        let is_gone =
            incarnation.is_some_and(|incarnation| cx.incarnations[addr.home().index()] != incarnation);
        if is_gone || cx.down.contains(addr.home()) {
            requesters.finish_work(slot);
            cx.completed(slot, Outcome::Failed(Refusal::NodeDown));
            return Started::Slot(slot);
        }
        // By then the address may belong to another allocation, if the allocator dies.
        let called_in = u64::from(cx.config.switch_epoch.0);
        self.call(cx, slot, PacketKind::Free, addr.home(), |packet| Packet {
            tag: wire::BlockTag::from_bits(addr.bits()),
            arg: called_in,
            ..packet
        });
        Started::Slot(slot)
    }

    /// A home has passed on a FREE of an allocation in one of our chunks.
    pub(crate) fn on_free_request<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        packet: &Packet,
    ) {
        let last = &mut self.frees[packet.requester.index()];
        match last {
            Some(freeing) if packet.seq < freeing.seq => return cx.counters.drop(Drop::Stale),
            Some(freeing) if packet.seq == freeing.seq => {
                match freeing.answer {
                    Some(answer) => cx.send(Packet { epoch: packet.epoch, ..answer }),
                    None => cx.counters.drop(Drop::Duplicate),
                }
                return;
            }
            _ => *last = Some(Freeing { seq: packet.seq, answer: None }),
        }
        // An address of ours is 16-byte aligned; bit 0 of a tag is not part of an address.
        let freed = match packet.tag.is_lock_entry() {
            true => Err(crate::allocator::NotAnAllocation),
            false => self.allocator.free(packet.tag.addr()),
        };
        match freed {
            Ok(freed) => match freed.empty {
                Some(range) => self.reclaim(cx, range, *packet),
                None => self.answer_free(cx, packet, Status::Granted),
            },
            Err(_) => self.answer_free(cx, packet, Status::Refused(Refusal::NotAnAllocation)),
        }
    }

    pub(super) fn answer_free<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        packet: &Packet,
        status: Status,
    ) {
        let to = Endpoint::Allocator(packet.requester.node);
        let epoch = cx.config.switch_epoch;
        let answer = Packet {
            status,
            epoch,
            ..packet.reply(PacketKind::FreeReply, Endpoint::Allocator(self.node), to)
        };
        if let Some(freeing) = &mut self.frees[packet.requester.index()]
            && freeing.seq == packet.seq
        {
            freeing.answer = Some(answer);
        }
        cx.send(answer);
    }

    /// Our own FREE has been answered.
    pub(crate) fn on_free_reply<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        requesters: &mut Requesters,
        packet: &Packet,
    ) {
        if self.answered(packet).is_none() {
            return cx.counters.drop(Drop::Stale);
        }
        let slot = packet.requester.slot;
        requesters.finish_work(slot);
        let outcome = match packet.status {
            Status::Granted => Outcome::Freed,
            Status::Refused(why) => Outcome::Failed(why),
        };
        cx.completed(slot, outcome);
    }
}
