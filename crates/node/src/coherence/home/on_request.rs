//! A request reaches the home: from the switch for data, or because the switch does not have the entry.

use switch::coherence::fan_out::fan_out;
use switch::coherence::tables;
use wire::{Discipline, Endpoint, NodeId, Packet, PacketKind, Refusal, Rule, Rules, Status};

use super::directory::Keeper;
use super::{Decided, Decision, HomeAgent};
use crate::coherence::context::Context;
use crate::coherence::counters::Drop;
use crate::store::Store;

impl HomeAgent {
    pub(crate) fn on_request<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, packet: &Packet) {
        if packet.tag.home() != self.node || !self.directory.is_entry_for(packet.event, packet.tag) {
            return cx.counters.drop(Drop::Nonsense);
        }
        if packet.in_switch {
            return match packet.event {
                // The switch holds the lock; the home only has the data.
                PacketKind::ReadMiss | PacketKind::WriteMiss => self.answer_with_data(cx, packet),
                _ => cx.counters.drop(Drop::Nonsense),
            };
        }
        if packet.event == PacketKind::Peek {
            return self.on_peek(cx, packet);
        }
        let row = Self::row(packet.requester, packet.seq);
        let decided = self.decided[row];
        if decided.contradicts(packet) {
            return cx.counters.drop(Drop::Nonsense);
        }
        let closed = packet.seq == decided.seq && decided.how == Decision::Closed;
        if cx.rules.holds(Rule::HomeRemembersUnlocks) && (packet.seq < decided.seq || closed) {
            return cx.counters.drop(Drop::Stale);
        }
        let repeated = cx.rules.holds(Rule::HomeDecidesOnce) && packet.seq == decided.seq;
        let decision = if repeated { decided.how } else { self.decide(cx.rules, packet) };
        self.decided[row] = Decided::new(packet, decision);
        match decision {
            Decision::Granted => self.forward(cx, packet, repeated),
            Decision::Refused(why) => {
                let to = Endpoint::Requester(packet.requester.node);
                cx.send(Packet {
                    status: Status::Refused(why),
                    ..packet.reply(PacketKind::Ack, self.me(), to)
                });
            }
            Decision::Closed => unreachable!("returned above"),
        }
    }

    /// A PEEK takes no lock and changes nothing, so nothing of it is remembered.
    fn on_peek<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, packet: &Packet) {
        let entry = self.directory.get(packet.tag);
        let refused = match self.allowed(packet) {
            Err(why) => Some(why),
            Ok(()) if cx.rules.holds(Rule::HomeAwaitsReports) && self.is_rebuilding() => {
                Some(Refusal::Recovering)
            }
            Ok(()) if entry.keeper == Keeper::Switch => Some(Refusal::NotOwner),
            Ok(()) => {
                let member = entry.copyset.contains(packet.requester.node);
                (!tables::check(packet.event, entry.status, member)).then_some(Refusal::Outdated)
            }
        };
        match refused {
            Some(why) => {
                let to = Endpoint::Requester(packet.requester.node);
                cx.send(Packet {
                    status: Status::Refused(why),
                    ..packet.reply(PacketKind::Ack, self.me(), to)
                });
            }
            None if cx.rules.holds(Rule::OwnerAnswersPeek) => self.forward(cx, packet, false),
            None => Self::send_data(cx, self.node, packet),
        }
    }

    /// Lock and check. Unlike the switch, which gives the lock of an outdated request back when the requester
    /// unlocks, a processor can look before it locks; the answers are the same.
    fn decide<R: Rules>(&mut self, rules: R, packet: &Packet) -> Decision {
        if rules.holds(Rule::HomeAwaitsReports) && self.is_rebuilding() {
            return Decision::Refused(Refusal::Recovering);
        }
        if let Err(why) = self.allowed(packet) {
            return Decision::Refused(why);
        }
        let entry = self.directory.entry(packet.tag);
        if rules.holds(Rule::HomeKnowsKeeper) && entry.keeper == Keeper::Switch {
            return Decision::Refused(Refusal::NotOwner);
        }
        let member = entry.copyset.contains(packet.requester.node);
        let valid = if rules.holds(Rule::CheckTable) {
            tables::check(packet.event, entry.status, member)
        } else {
            tables::forward(packet.event, entry.status).is_some()
        };
        if !entry.try_lock(packet.event.takes_read_lock(rules)) {
            return Decision::Refused(Refusal::Locked);
        }
        if !valid {
            entry.unlock(packet.event.takes_read_lock(rules));
            return Decision::Refused(Refusal::Outdated);
        }
        Decision::Granted
    }

    /// The block must belong to an allocation, and one that may be used this way.
    fn allowed(&self, packet: &Packet) -> Result<(), Refusal> {
        let block = wire::BlockTag::from_bits(packet.tag.addr().bits());
        let have = self.chunks.discipline_of(block);
        match packet.event {
            PacketKind::ReadMiss | PacketKind::WriteMiss | PacketKind::Peek => match have {
                None => Err(Refusal::Unallocated),
                Some(Discipline::Coherent) if !self.lost.is_empty() && self.lost.contains(&block) => {
                    Err(Refusal::Lost)
                }
                Some(Discipline::Coherent) => Ok(()),
                Some(_) => Err(Refusal::WrongDiscipline),
            },
            PacketKind::LockRead | PacketKind::LockWrite => have.map(|_| ()).ok_or(Refusal::Unallocated),
            // What is cached was allocated. It may have been freed by now: then it is being purged.
            PacketKind::WriteShared
            | PacketKind::EvictShared
            | PacketKind::EvictModified
            | PacketKind::Purge
                if self.directory.covers(block) =>
            {
                Ok(())
            }
            // The switch does not have what it shall give back; or there is no such block.
            _ => Err(Refusal::NotOwner),
        }
    }

    /// Sends a granted request on, as the switch would, and counts how much traffic the block causes.
    fn forward<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, packet: &Packet, repeated: bool) {
        let entry = self.directory.entry(packet.tag);
        let found = Packet {
            global_status: entry.status,
            copyset: entry.copyset,
            in_switch: false,
            repeated: cx.rules.holds(Rule::ForwarderSaysRepeated) && repeated,
            ..*packet
        };
        let to = tables::forward(packet.event, entry.status).expect("what passes the check has a row");
        let me = Endpoint::HomeAgent(self.node);
        let mut receivers = 0;
        fan_out(&found, to, me, |forwarded| {
            if forwarded.to == me {
                Self::send_data(cx, self.node, &forwarded);
            } else {
                receivers += u32::from(matches!(forwarded.to, Endpoint::CacheAgent(_)));
                cx.send(forwarded);
            }
        });
        // Entries of memory with copies stay here.
        if receivers > 0 && !cx.config.is_copied(self.node) {
            if entry.heat == 0 {
                self.warm.push(packet.tag);
            }
            entry.heat = entry.heat.saturating_add(receivers);
        }
    }

    /// Nobody caches the block: its data is in this node's memory.
    fn answer_with_data<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, packet: &Packet) {
        match self.allowed(packet) {
            Ok(()) => Self::send_data(cx, self.node, packet),
            Err(why) => {
                let to = Endpoint::Requester(packet.requester.node);
                cx.send(Packet {
                    status: Status::Refused(why),
                    ..packet.reply(PacketKind::Ack, self.me(), to)
                });
            }
        }
    }

    fn send_data<S: Store, R: Rules>(cx: &mut Context<'_, S, R>, node: NodeId, packet: &Packet) {
        let to = Endpoint::Requester(packet.requester.node);
        let data = cx.store.home_contents(packet.tag);
        cx.send_block(packet.reply(PacketKind::Ack, Endpoint::HomeAgent(node), to), data);
    }
}
