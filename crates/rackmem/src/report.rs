//! What a rack says of itself in numbers: those that nodes of processes put into their beats, also of a rack without any.

use live::networked::{NodeReport, NodeStatus, SwitchReport};
use membership::coordinator::Phase;
use wire::{Incarnation, Nanos, SwitchEpoch};

use crate::rack::{Places, Rack};

impl Rack {
    /// What the nodes in this process have counted, in order: of an attached process none.
    pub fn reports(&self) -> Vec<NodeReport> {
        match &self.inner.places {
            Places::Embedded(rack) => {
                let of = |id| NodeReport {
                    hits: self.inner.hits(id, 0),
                    chains: rack.chain_counts(id),
                    ..rack.with_node(id, NodeReport::of)
                };
                self.inner.here().map(of).collect()
            }
            Places::Joined { node, .. } => vec![node.report()],
            Places::Attached(_) => Vec::new(),
        }
    }

    /// What the switch's process would say of an embedded rack, which has none; of other racks nothing: theirs says it.
    pub fn embedded_report(&self) -> Option<SwitchReport> {
        let Places::Embedded(rack) = &self.inner.places else { return None };
        let of = |(node, report)| NodeStatus {
            node,
            alive: true,
            incarnation: Incarnation(1),
            silence: Some(Nanos::ZERO),
            epoch: SwitchEpoch::default(),
            drain: None,
            report: Some(report),
        };
        let chains = rack.steering_counts();
        let nodes = self.inner.here().zip(self.reports()).map(of).collect();
        Some(rack.with_switch(|switch, received, sent| SwitchReport {
            copies: 1,
            memories: Vec::new(),
            phase: Phase::Running,
            epoch: SwitchEpoch::default(),
            nodes,
            occupancy: switch.occupancy() as u64,
            entries: self.inner.config.switch_entries as u64,
            packets_received: received,
            packets_sent: sent,
            plane: None,
            program_dropped: switch.counters().all_drops(),
            chains,
            membership: membership::coordinator::Counters::default(),
            transport: transport::Counts::default(),
        }))
    }
}
