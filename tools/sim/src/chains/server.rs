//! The server: a NIC that executes requests, the memory, and the metadata server's processor.
//!
//! What must always hold: requests of a queue pair are executed in the order of their arrival.

use chain::metadata::{self, Metadata};
use nic::verbs::{Access, Depth, Device, Mtu, Region, ToReceive, ToSend};
use switch::chains::{Bound, End};
use wire::chains::{Class, UNIT, UNITS};
use wire::roce::{Extension, Key, Opcode, Packet, Psn, QpNumber, Reth};
use wire::{Nanos, NodeId};

use super::bench::Bench;
use super::entries::{BASE, Entries};
use super::event::Machine;
use super::words::Atomics;
use crate::hardware::Processor;

/// The memory's machine.
pub(super) struct Server {
    pub(super) device: Device,
    pub(super) region: Key,
    pub(super) entries: Entries,
    pub(super) metadata: Metadata,
    pub(super) atomics: Atomics,
    /// Its ends of the switch's queue pairs, on which many requests are in flight: each waits for the one before.
    bound: Vec<(QpNumber, Nanos)>,
    pub(super) core: Processor,
}

impl Server {
    /// For values of this class. Where a switch steers, the metadata server must wait when an append is indeterminate.
    pub(super) fn new(bench: &Bench, class: Class, is_steered: bool) -> Self {
        let mut device = Device::new(1);
        let region = Region { base: BASE, len: u64::from(UNITS) * UNIT, access: Access::ALL };
        let region = device.register(region).expect("a first region");
        let decide_after = if is_steered { bench.longest_flight() } else { Nanos::ZERO };
        let config = metadata::MetadataConfig {
            units: UNITS - 2,
            quarantine: bench.quarantine,
            timeout: bench.append_timeout,
            decide_after,
        };
        Self {
            device,
            region,
            entries: Entries::new(class),
            metadata: Metadata::new(config),
            atomics: Atomics::new(bench),
            bound: Vec::new(),
            core: Processor::new(),
        }
    }

    /// A bound queue pair of the switch begins, anew if there was one.
    pub(super) fn bind(&mut self, at: usize, first_psn: Psn, remembered: u32) -> Bound {
        let device = &mut self.device;
        if let Some((old, _)) = self.bound.get(at) {
            device.fail(Nanos::ZERO, *old, &mut Vec::new()).expect("it was connected");
            self.bound.truncate(at);
        }
        let queue = device.create_completion_queue(4);
        let queue_pair = device.create_queue_pair(queue, queue, Depth { sends: 1, receives: 1 });
        let switch = End { node: NodeId(Machine::Tor as u16), queue_pair };
        let receive = ToReceive {
            ack_every: 1,
            remembered,
            ..ToReceive::new(switch.node, switch.queue_pair, Mtu::B4096, first_psn)
        };
        device.init(queue_pair).expect("a new queue pair");
        device.ready_to_receive(queue_pair, receive).expect("in INIT");
        device.ready_to_send(queue_pair, ToSend::new(first_psn)).expect("in RTR");
        self.bound.push((queue_pair, Nanos::ZERO));
        let memory = End { node: NodeId(Machine::Server as u16), queue_pair };
        Bound { switch, memory, first_psn, region: self.region, base: BASE }
    }

    /// When a request is executed that the NIC knows of now.
    pub(super) fn executes(&mut self, bench: &Bench, now: Nanos, packet: &Packet) -> Nanos {
        let done = self.begins(bench, now, packet);
        match self.bound.iter_mut().find(|(queue_pair, _)| *queue_pair == packet.to) {
            Some((_, last)) => {
                *last = done.max(*last);
                *last
            }
            None => done,
        }
    }

    fn begins(&mut self, bench: &Bench, now: Nanos, packet: &Packet) -> Nanos {
        let hardware = &bench.hardware;
        match (packet.opcode, packet.extension) {
            (Opcode::CompareSwap | Opcode::FetchAdd, _) => self.atomics.execute(now, packet.to),
            // It reads nothing: a message like any other.
            (Opcode::ReadRequest, Extension::Reth(Reth { length: 0, .. })) => now,
            (Opcode::ReadRequest, _) => {
                now + hardware.pcie_read + hardware.pcie.span(self.entries.class().bytes())
            }
            // A WRITE is posted to PCIe, which keeps the order.
            _ => now,
        }
    }
}
