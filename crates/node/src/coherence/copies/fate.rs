//! A node is gone, and there are batches of it that nobody has said are committed: those who took part find out together.
//!
//! If somebody has committed it, all had it, and its node may have gone on: it takes effect. If everybody who is alive holds the whole of
//! it, that may be so: it takes effect. Else its node has not gone on: it is dropped.
//!
//! What must always hold: all who took part and are alive come to the same end.

use wire::{
    BatchFate, Copyset, Endpoint, Incarnation, Nanos, NodeId, Packet, PacketKind, RequesterId, Rule, Rules,
    Seq, SlotId,
};

use super::Life;
use crate::coherence::context::Context;
use crate::coherence::counters::Drop;
use crate::coherence::recovery::View;
use crate::store::Store;

/// Who has not answered yet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Inquiry {
    seq: Seq,
    awaited: Copyset,
    pub(super) deadline: Nanos,
}

impl<S: Store, R: Rules> Context<'_, S, R> {
    /// A new epoch begins: what became of the batches of those who are gone?
    pub(super) fn ask_for_the_dead(&mut self, view: &View, dead: Copyset) {
        // Where they have come back, they know nothing.
        for held in self.copies.held.values_mut() {
            held.participants = held.participants.without_all(dead);
        }
        let lives_on = |life: &Life| view.incarnations.get(life.0.index()) == Some(&Some(life.1));
        self.copies.inquiries.clear();
        let dead: alloc::vec::Vec<Life> =
            self.copies.held.keys().copied().filter(|life| !lives_on(life)).collect();
        for life in dead {
            let held = self.copies.held.get(&life).expect("it is one of them");
            if !self.holds_whole(held) {
                self.end_batch(life, false);
                continue;
            }
            let awaited = match self.rules.holds(Rule::FateIsAsked) {
                true => held.participants.without(self.config.id),
                false => Copyset::EMPTY,
            };
            self.copies.inquiries.insert(life, Inquiry { seq: held.seq, awaited, deadline: self.now });
            self.decide(life);
        }
        self.repeat_inquiries();
    }

    /// Asks, and asks again, whoever has not answered.
    pub(super) fn repeat_inquiries(&mut self) {
        let deadline = self.repeat_at();
        let requester = RequesterId { node: self.config.id, slot: SlotId::MIGRATION };
        let (mut inquiries, now) = (core::mem::take(&mut self.copies.inquiries), self.now);
        for (life, inquiry) in inquiries.iter_mut().filter(|(_, inquiry)| inquiry.deadline <= now) {
            inquiry.deadline = deadline;
            for node in inquiry.awaited.iter() {
                let tag = wire::BlockTag::from_bits(0);
                self.send(Packet {
                    from: Endpoint::HomeAgent(self.config.id),
                    to: Endpoint::HomeAgent(node),
                    epoch: self.config.switch_epoch,
                    incarnation: self.config.incarnation,
                    arg: name(*life),
                    ..Packet::request(PacketKind::Inquire, tag, requester, inquiry.seq)
                });
            }
        }
        self.copies.inquiries = inquiries;
    }

    /// Somebody who took part, too, asks.
    pub(super) fn on_inquire(&mut self, packet: &Packet) {
        let life = named(packet.arg);
        let held =
            self.copies.held.get(&life).filter(|held| held.seq == packet.seq && self.holds_whole(held));
        let fate = match (held, self.copies.ended.get(&life)) {
            (Some(_), _) => BatchFate::Prepared,
            (None, Some((seq, true))) if *seq >= packet.seq => BatchFate::Committed,
            _ => BatchFate::Discarded,
        };
        let arg = name(life) | (fate as u64) << 32;
        let to = Endpoint::HomeAgent(packet.requester.node);
        self.send(Packet {
            arg,
            ..packet.reply(PacketKind::Inquired, Endpoint::HomeAgent(self.config.id), to)
        });
    }

    /// The answer.
    pub(super) fn on_inquired(&mut self, packet: &Packet) {
        let life = named(packet.arg);
        let (Some(node), Some(inquiry)) = (packet.from.node(), self.copies.inquiries.get_mut(&life)) else {
            return self.counters.drop(Drop::Stale);
        };
        match BatchFate::from_wire(packet.arg >> 32 & 0xff) {
            Some(BatchFate::Prepared) => inquiry.awaited = inquiry.awaited.without(node),
            Some(BatchFate::Committed) => inquiry.awaited = Copyset::EMPTY,
            Some(BatchFate::Discarded) => {
                self.copies.inquiries.remove(&life);
                return self.end_batch(life, false);
            }
            None => return self.counters.drop(Drop::Nonsense),
        }
        self.decide(life);
    }

    /// Nobody is waited for any more: it takes effect.
    fn decide(&mut self, life: Life) {
        if self.copies.inquiries.get(&life).is_some_and(|inquiry| inquiry.awaited.is_empty()) {
            self.copies.inquiries.remove(&life);
            self.counters.inherited += 1;
            self.end_batch(life, true);
        }
    }
}

/// An incarnation of a node in an argument.
fn name((node, incarnation): Life) -> u64 {
    u64::from(node.0) << 48 | u64::from(incarnation.0)
}

fn named(arg: u64) -> Life {
    (NodeId((arg >> 48) as u16), Incarnation(arg as u32))
}
