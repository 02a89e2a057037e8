//! What the machines were seen to do: rows of the tables, kinds of packets, causes of drops.

use switch::coherence::tables::{CHECK, FORWARD};
use switch::coherence::{Counters, Drop};
use wire::{Endpoint, Packet, PacketKind, Refusal, Status};

const KINDS: usize = PacketKind::Refilled as usize + 1;

/// How often each was seen.
#[derive(Clone, Debug)]
pub struct Coverage {
    /// Packets that arrived, by kind.
    pub kinds: [u64; KINDS],
    /// Rows of the check table that let a request pass.
    pub check: [u64; CHECK.len()],
    /// Rows of the forward table.
    pub forward: [u64; FORWARD.len()],
    /// Refusals, by reason.
    pub refusals: [u64; Refusal::ALL.len()],
    /// What the switch dropped, by cause.
    pub switch_drops: [u64; Drop::ALL.len()],
}

impl Default for Coverage {
    fn default() -> Self {
        Self {
            kinds: [0; KINDS],
            check: [0; CHECK.len()],
            forward: [0; FORWARD.len()],
            refusals: [0; Refusal::ALL.len()],
            switch_drops: [0; Drop::ALL.len()],
        }
    }
}

impl Coverage {
    /// A packet arrives.
    pub(super) fn note(&mut self, packet: &Packet) {
        self.kinds[packet.kind as usize] += 1;
        if let (PacketKind::Ack, Status::Refused(why)) = (packet.kind, packet.status) {
            self.refusals[why as usize - 1] += 1;
        }
        // What was locked and checked and comes from the one who did that.
        let decided = packet.kind.is_request() || packet.kind == PacketKind::Ack;
        let from_keeper = matches!(packet.from, Endpoint::Switch | Endpoint::HomeAgent(_));
        let at_work = !matches!(packet.to, Endpoint::HomeAgent(_)) || packet.in_switch;
        if decided && from_keeper && at_work && packet.status.is_granted() {
            let member = packet.copyset.contains(packet.requester.node);
            for (row, seen) in CHECK.iter().zip(&mut self.check) {
                *seen += u64::from(
                    row.event == packet.event
                        && row.status.is_none_or(|status| status == packet.global_status)
                        && row.member.is_none_or(|want| want == member),
                );
            }
            for (row, seen) in FORWARD.iter().zip(&mut self.forward) {
                *seen += u64::from(
                    row.event == packet.event
                        && row.status.is_none_or(|status| status == packet.global_status),
                );
            }
        }
    }

    pub(super) fn note_switch(&mut self, counters: &Counters) {
        for (sum, cause) in self.switch_drops.iter_mut().zip(Drop::ALL) {
            *sum += counters.drops(cause);
        }
    }

    /// Adds another run's.
    pub fn add(&mut self, other: &Self) {
        let sum = |a: &mut [u64], b: &[u64]| a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        sum(&mut self.kinds, &other.kinds);
        sum(&mut self.check, &other.check);
        sum(&mut self.forward, &other.forward);
        sum(&mut self.refusals, &other.refusals);
        sum(&mut self.switch_drops, &other.switch_drops);
    }
}
