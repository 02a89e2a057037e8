//! Another node reads a few words of a block that this node has modified, and keeps no copy.
//!
//! What must always hold: what is answered is what this node had at one moment since the request came, and no half of a
//! write. Nothing about the frame changes.

use wire::{Endpoint, Packet, PacketKind, Refusal, Rule, Rules, Status};

use super::{Answer, CacheAgent, Executed};
use crate::coherence::context::Context;
use crate::coherence::counters::Drop;
use crate::coherence::requester::peek::Words;
use crate::store::Store;

impl CacheAgent {
    /// A PEEK that the switch or a home has forwarded here.
    pub(super) fn on_peek<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, packet: &Packet) {
        let last = self.last(cx.rules, packet.requester, packet.seq);
        if cx.rules.holds(Rule::AgentIgnoresOld) && packet.seq < last.seq {
            return cx.counters.drop(Drop::Stale);
        }
        match last.answer {
            // It was read then, and its requester still waits, or does not mind.
            Answer::Retained(data, _) if packet.seq == last.seq => {
                let version = 0;
                if !cx.copies.will_answer(packet) {
                    Self::show(cx, packet, data, version);
                }
                return;
            }
            Answer::Retained(data, _) => cx.store.discard(data),
            _ if packet.seq == last.seq && !cx.rules.holds(Rule::PeekIsRefusedAgain) => {
                return cx.counters.drop(Drop::Stale);
            }
            _ => {}
        }
        *last = Executed { seq: packet.seq, answer: Answer::None };
        let copy = cx.store.lookup(packet.tag);
        let read = copy.and_then(|(frame, _)| Some((cx.store.read(frame).ok()?, cx.store.writes(frame))));
        let batch = if read.is_some() { cx.batch_before_giving(packet.tag) } else { None };
        // It has left, or a thread is writing in it this moment.
        let Some((data, writes)) = read else {
            let to = Endpoint::Requester(packet.requester.node);
            let refused = packet.reply(PacketKind::Ack, Endpoint::CacheAgent(self.node), to);
            return cx.send(Packet { status: Status::Refused(Refusal::Locked), ..refused });
        };
        self.last(cx.rules, packet.requester, packet.seq).answer = Answer::Retained(data, packet.tag);
        cx.counters.peeked += 1;
        if let Some(batch) = batch {
            return cx.copies.answer_after(batch, packet);
        }
        // Other owners count other writes.
        #[allow(clippy::cast_possible_truncation, reason = "a number that differs is enough")]
        let version = (writes as u32).wrapping_mul(64).wrapping_add(u32::from(self.node.0));
        Self::show(cx, packet, data, version);
    }

    fn show<S, R: Rules>(
        cx: &mut Context<'_, S, R>,
        packet: &Packet,
        data: crate::store::DataRef,
        version: u32,
    ) {
        let from = packet.to;
        let ack = packet.reply(PacketKind::Ack, from, Endpoint::Requester(packet.requester.node));
        let words = Words::of(packet);
        cx.send_words(Packet { arg: words.beside(version), ..ack }, data, words.len());
    }
}
