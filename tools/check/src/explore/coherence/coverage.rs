//! Which rows of the check and forward tables were reached, at the switch and at homes.

use std::collections::BTreeSet;

use switch::coherence::tables::{CHECK, FORWARD};
use wire::{Endpoint, GlobalStatus, Packet, PacketKind, Refusal, Status};

use crate::explore::search::Reached;

/// What a request found under its lock, as whoever forwarded it told.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Row {
    /// The switch decided; false: a home.
    pub in_switch: bool,
    /// The request.
    pub event: PacketKind,
    /// The state of the block.
    pub status: GlobalStatus,
    /// Whether the requester's node had a copy.
    pub member: bool,
}

/// The rows that were reached.
#[derive(Clone, Default, Debug)]
pub struct Coverage {
    rows: BTreeSet<Row>,
    outdated: BTreeSet<PacketKind>,
}

impl Coverage {
    /// A packet was sent: by a node's machines, or by the switch.
    pub(super) fn note(&mut self, packet: &Packet, node: Option<usize>) {
        let decided = match packet.from {
            Endpoint::Switch => node.is_none() && packet.in_switch,
            Endpoint::HomeAgent(_) => !packet.in_switch,
            _ => false,
        };
        let forwarded = packet.kind == packet.event;
        if !decided || !packet.event.is_request() || !(forwarded || packet.kind == PacketKind::Ack) {
            return;
        }
        match packet.status {
            Status::Granted if packet.event != PacketKind::AddToSwitch => {
                self.rows.insert(Row {
                    in_switch: packet.in_switch,
                    event: packet.event,
                    status: packet.global_status,
                    member: packet.copyset.contains(packet.requester.node),
                });
            }
            Status::Refused(Refusal::Outdated) => {
                self.outdated.insert(packet.event);
            }
            _ => {}
        }
    }

    /// What was reached.
    pub fn rows(&self) -> impl Iterator<Item = Row> + '_ {
        self.rows.iter().copied()
    }
}

impl Reached for Coverage {
    fn add(&mut self, other: &Self) {
        self.rows.extend(&other.rows);
        self.outdated.extend(&other.outdated);
    }

    fn table(&self) -> Vec<(String, bool, bool)> {
        let reached = |in_switch: bool, fits: &dyn Fn(&Row) -> bool| {
            self.rows.iter().any(|row| row.in_switch == in_switch && fits(row))
        };
        let any = |status: Option<GlobalStatus>| status.map_or("any state".into(), |it| format!("{it:?}"));
        let check = CHECK.iter().map(|want| {
            let fits = |row: &Row| {
                row.event == want.event
                    && want.status.is_none_or(|status| status == row.status)
                    && want.member.is_none_or(|member| member == row.member)
            };
            let member = match want.member {
                Some(true) => ", with a copy",
                Some(false) => ", without a copy",
                None => "",
            };
            let name = format!("check {:?}, {}{member}", want.event, any(want.status));
            (name, reached(true, &fits), reached(false, &fits))
        });
        let forward = FORWARD.iter().map(|want| {
            let fits =
                |row: &Row| row.event == want.event && want.status.is_none_or(|status| status == row.status);
            let name = format!("forward {:?}, {} to {:?}", want.event, any(want.status), want.to);
            (name, reached(true, &fits), reached(false, &fits))
        });
        let refused = [
            PacketKind::ReadMiss,
            PacketKind::WriteMiss,
            PacketKind::WriteShared,
            PacketKind::EvictShared,
            PacketKind::EvictModified,
        ];
        let refused = refused.into_iter().filter(|kind| self.outdated.contains(kind));
        let refused: Vec<String> = refused.map(|kind| format!("{kind:?}")).collect();
        let none =
            (format!("check: no row, refused as outdated ({})", refused.join(", ")), !refused.is_empty());
        check.chain(forward).chain([(none.0, none.1, none.1)]).collect()
    }
}
