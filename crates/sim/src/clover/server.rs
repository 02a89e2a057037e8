//! The server: a NIC that executes requests, the memory, and the metadata server's processor.
//!
//! What must always hold: requests of a queue pair are executed in the order of their arrival.

use chain::metadata::{self, Metadata};
use nic::verbs::{Access, Device, Region};
use wire::Nanos;
use wire::chain::{Class, UNIT, UNITS};
use wire::roce::{Key, Opcode, Packet};

use super::atomics::Atomics;
use super::bench::Bench;
use super::entries::{BASE, Entries};
use crate::hardware::Processor;

/// The memory's machine.
pub(super) struct Server {
    pub(super) device: Device,
    pub(super) region: Key,
    pub(super) entries: Entries,
    pub(super) metadata: Metadata,
    pub(super) atomics: Atomics,
    pub(super) core: Processor,
}

impl Server {
    /// For values of this class. Where a switch steers, the metadata server must wait when it is in doubt.
    pub(super) fn new(bench: &Bench, class: Class, is_steered: bool) -> Self {
        let mut device = Device::new(1);
        let region = Region { base: BASE, len: u64::from(UNITS) * UNIT, access: Access::ALL };
        let region = device.register(region).expect("a first region");
        let doubt = if is_steered { bench.doubt() } else { Nanos::ZERO };
        let config = metadata::Config { units: UNITS - 2, rest: bench.rest, patience: bench.patience, doubt };
        Self {
            device,
            region,
            entries: Entries::new(class),
            metadata: Metadata::new(config),
            atomics: Atomics::new(bench),
            core: Processor::new(),
        }
    }

    /// When a request is executed that the NIC knows of now.
    pub(super) fn executes(&mut self, bench: &Bench, now: Nanos, packet: &Packet) -> Nanos {
        let hardware = &bench.hardware;
        match packet.opcode {
            Opcode::CompareSwap | Opcode::FetchAdd => self.atomics.execute(now, packet.to),
            Opcode::ReadRequest => {
                now + hardware.pcie_read + hardware.pcie.span(self.entries.class().bytes())
            }
            // A WRITE is posted to PCIe, which keeps the order.
            _ => now,
        }
    }
}
