//! The requester ends an event on a block that the home keeps.

use wire::{Endpoint, GlobalStatus, Packet, PacketKind, Rule, Rules};

use super::directory::Keeper;
use super::{Decided, Decision, HomeAgent};
use crate::coherence::context::Context;
use crate::coherence::counters::Drop;
use crate::store::Store;

impl HomeAgent {
    pub(crate) fn on_unlock<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, packet: &Packet) {
        if packet.tag.home() != self.node || packet.in_switch {
            return cx.counters.drop(Drop::Nonsense);
        }
        let row = Self::row(packet.requester, packet.seq);
        let decided = self.decided[row];
        if decided.contradicts(packet) {
            return cx.counters.drop(Drop::Nonsense);
        }
        if packet.seq < decided.seq {
            return cx.counters.drop(Drop::Stale);
        }
        let released = packet.seq == decided.seq && decided.how == Decision::Granted;
        if released {
            self.release(cx.rules, packet);
        }
        // From here on no late copy of the request is decided any more.
        self.decided[row] = Decided::new(packet, Decision::Closed);
        let to = Endpoint::Requester(packet.requester.node);
        cx.send(Packet { provider: false, ..packet.reply(PacketKind::UnlockAck, self.me(), to) });
        if released && cx.config.persistent && !packet.tag.is_lock_entry() {
            self.on_free_entry(cx, packet.tag);
        }
        self.directory.tidy(packet.tag);
    }

    fn release<R: Rules>(&mut self, rules: R, packet: &Packet) {
        let entry = self.directory.entry(packet.tag);
        assert_eq!(entry.keeper, Keeper::Home, "a locked entry stays where it is: {packet:?}");
        entry.unlock(packet.event.takes_read_lock(rules));
        if !packet.status.is_granted() {
            return;
        }
        match packet.event {
            PacketKind::ReadMiss if rules.holds(Rule::ReadUnlockMerges) => {
                entry.status = GlobalStatus::Shared;
                entry.copyset = entry.copyset.union(packet.copyset);
            }
            PacketKind::LockRead | PacketKind::LockWrite => {}
            _ => {
                entry.status = packet.global_status;
                entry.copyset = packet.copyset;
            }
        }
    }
}
