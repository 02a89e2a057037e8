//! Another node reads or writes a block that this node has cached.

use wire::{Endpoint, GlobalStatus, Packet, PacketKind, Rule, Rules};

use super::{Answer, CacheAgent, Executed};
use crate::coherence::context::Context;
use crate::coherence::counters::Drop;
use crate::store::{Access, Pinned, Store};

impl CacheAgent {
    /// A request that the switch or a home has forwarded here.
    pub(crate) fn on_request<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, packet: &Packet) {
        if packet.event == PacketKind::Peek {
            return self.on_peek(cx, packet);
        }
        let last = self.last(cx.rules, packet.requester, packet.seq);
        if cx.rules.holds(Rule::AgentIgnoresOld) && packet.seq < last.seq {
            return cx.counters.drop(Drop::Stale);
        }
        if cx.rules.holds(Rule::AgentKeepsAnswers) && packet.seq == last.seq {
            let answer = last.answer;
            return self.answer_again(cx, packet, answer);
        }
        if let Answer::Retained(data, _) = last.answer {
            cx.store.discard(data);
        }
        *last = Executed { seq: packet.seq, answer: Answer::None };
        if !self.must_wait::<S, R>(cx, packet) {
            self.execute(cx, packet);
        }
    }

    /// The requester has what it needs: late copies of the request must not act (see the requester's
    /// `on_closing.rs`).
    pub(crate) fn on_close<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, packet: &Packet) {
        let last = self.last(cx.rules, packet.requester, packet.seq);
        let later = packet.seq > last.seq || packet.seq == last.seq && last.answer == Answer::Parked;
        if cx.rules.holds(Rule::AgentCloses) && later {
            if let Answer::Retained(data, _) = last.answer {
                cx.store.discard(data);
            }
            *last = Executed { seq: packet.seq, answer: Answer::None };
            let event = (packet.requester, packet.seq);
            self.parked.retain(|(_, parked)| (parked.requester, parked.seq) != event);
            self.held.retain(|waiting| (waiting.packet.requester, waiting.packet.seq) != event);
        }
        let to = Endpoint::Requester(packet.requester.node);
        cx.send(packet.reply(PacketKind::CloseAck, Endpoint::CacheAgent(self.node), to));
    }

    /// Does what the request asks, and answers; or parks it until a thread's access to the frame is over.
    pub(super) fn execute<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, packet: &Packet) {
        let Some((frame, access)) = cx.store.lookup(packet.tag) else {
            // A provider that the switch chose cannot have evicted the block: eviction needs the write lock
            // (PROTOCOLS.md, FlowCC 5). So this is a late copy of a request whose event is closed.
            return cx.counters.drop(Drop::NoSuchCopy);
        };
        let named =
            if packet.global_status == GlobalStatus::Modified { Access::Modified } else { Access::Shared };
        // A second READ-MISS may still name the state that the first one's downgrade has ended.
        let downgraded = packet.event == PacketKind::ReadMiss && access == Access::Shared;
        let own = cx.copies.access(packet.tag, access);
        if cx.rules.holds(Rule::AgentChecksState) && named != own && !downgraded {
            return cx.counters.drop(Drop::NoSuchCopy);
        }
        let batch = cx.batch_before_giving(packet.tag);
        let done = match packet.event {
            PacketKind::ReadMiss if !cx.rules.holds(Rule::AgentDowngrades) => {
                Ok(Answer::FromFrame(packet.tag))
            }
            PacketKind::ReadMiss => cx.store.downgrade(frame).map(|()| {
                cx.note_shared(frame, packet.tag);
                Answer::FromFrame(packet.tag)
            }),
            PacketKind::WriteMiss | PacketKind::WriteShared | PacketKind::Purge
                if !cx.rules.holds(Rule::AgentInvalidates) =>
            {
                Ok(if packet.provider { Answer::FromFrame(packet.tag) } else { Answer::Plain })
            }
            PacketKind::WriteMiss | PacketKind::WriteShared | PacketKind::Purge => {
                cx.store.withdraw(frame).map(|()| {
                    cx.note_leaving(frame, packet.tag, packet.event == PacketKind::Purge);
                    let answer = if packet.provider {
                        Answer::Retained(cx.store.retain(frame), packet.tag)
                    } else {
                        Answer::Plain
                    };
                    cx.store.release(frame);
                    answer
                })
            }
            _ => return cx.counters.drop(Drop::Nonsense),
        };
        let Ok(answer) = done else {
            let _: Result<Answer, Pinned> = done;
            cx.counters.parked += 1;
            self.last(cx.rules, packet.requester, packet.seq).answer = Answer::Parked;
            self.parked.push((frame, *packet));
            return;
        };
        if packet.event != PacketKind::ReadMiss {
            cx.counters.invalidations += 1;
            if packet.in_switch {
                self.heat.count(packet.tag);
            }
        }
        self.last(cx.rules, packet.requester, packet.seq).answer = answer;
        match batch {
            Some(batch) => cx.copies.answer_after(batch, packet),
            None => self.answer(cx, packet, answer),
        }
    }

    /// What a request waited for is committed.
    pub(crate) fn answer_now<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, packet: &Packet) {
        let last = *self.last(cx.rules, packet.requester, packet.seq);
        if last.seq == packet.seq && packet.event != PacketKind::Peek {
            self.answer_again(cx, packet, last.answer);
        } else if last.seq == packet.seq {
            self.on_peek(cx, packet);
        }
    }

    /// The request came twice: the same answer again, and no change of any state.
    fn answer_again<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        packet: &Packet,
        answer: Answer,
    ) {
        match answer {
            _ if cx.copies.will_answer(packet) => cx.counters.drop(Drop::Duplicate),
            Answer::None => cx.counters.drop(Drop::Stale),
            Answer::Parked => cx.counters.drop(Drop::Duplicate),
            // The event is closed if the block has left the cache since.
            Answer::FromFrame(_) if cx.store.lookup(packet.tag).is_none() => cx.counters.drop(Drop::Stale),
            answer => self.answer(cx, packet, answer),
        }
    }

    fn answer<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, packet: &Packet, answer: Answer) {
        let me = Endpoint::CacheAgent(self.node);
        let ack = packet.reply(PacketKind::Ack, me, Endpoint::Requester(packet.requester.node));
        let data = match answer {
            Answer::Plain | Answer::None | Answer::Parked => return cx.send(ack),
            Answer::Retained(data, _) => data,
            Answer::FromFrame(_) => {
                let (frame, _) = cx.store.lookup(packet.tag).expect("checked by the callers");
                cx.store.contents(frame)
            }
        };
        cx.counters.provided += 1;
        cx.send_block(ack, data);
        let home_is_stale =
            packet.event == PacketKind::ReadMiss && packet.global_status == GlobalStatus::Modified;
        if cx.rules.holds(Rule::AgentWritesBack) && home_is_stale && !cx.copies.has(packet.tag) {
            // The home's memory becomes current again; the requester's unlock waits for the home to say so.
            cx.send_block(
                packet.reply(PacketKind::WriteBack, me, Endpoint::HomeAgent(packet.tag.home())),
                data,
            );
        }
    }
}
