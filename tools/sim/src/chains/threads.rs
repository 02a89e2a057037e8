//! Client machines and their threads: a NIC and a client of each machine, and of each thread a queue pair and what it does.
//!
//! What must always hold: a thread has one operation in flight.

use chain::Verb;
use chain::client::{self, Client, Request};
use nic::verbs::{Access, CqNumber, Depth, Device, Mtu, Region, ToReceive, ToSend};
use wire::chains::Location;
use wire::roce::{Key, Psn, QpNumber};
use wire::{Nanos, NodeId};

use super::bench::Bench;
use super::event::{Machine, Words};
use super::load::Ask;
use super::server::Server;
use super::tor::WINDOW;

/// Keys whose cursors a client remembers: all of them.
const CURSORS: usize = 1 << 24;
/// A thread's buffers, from which it writes, and to which it reads.
pub(super) const BUFFER: u64 = 1 << 22;

/// A client machine.
pub(super) struct Host {
    pub(super) device: Device,
    pub(super) client: Client,
    pub(super) region: Key,
    pub(super) queue: CqNumber,
}

/// A client thread.
pub(super) struct Thread {
    pub(super) machine: Machine,
    pub(super) queue_pair: QpNumber,
    pub(super) server_queue_pair: QpNumber,
    /// The number of its next packet.
    pub(super) next: Psn,
    /// The incarnation of the switch that knows its connection.
    pub(super) incarnation: u32,
    pub(super) ask: Ask,
    pub(super) began: Nanos,
    /// Round trips that it has taken, where it began again.
    pub(super) trips: u32,
    /// Versions of its key that were acknowledged to somebody when it began.
    pub(super) floor: u64,
    pub(super) verb: Option<Verb>,
    /// What it writes, and what it has read; and where that was, wherever it had asked for it.
    pub(super) writes: Words,
    pub(super) reads: Words,
    pub(super) written: Option<Location>,
    pub(super) read: Option<Location>,
}

impl Host {
    pub(super) fn new(bench: &Bench, reads_are_steered: bool) -> Self {
        let mut device = Device::new(1);
        let region = Region { base: 0, len: 4 * BUFFER, access: Access::LOCAL_WRITE };
        let region = device.register(region).expect("a first region");
        let queue = device.create_completion_queue(1 << 10);
        let config = client::ClientConfig { lease: bench.lease, slots: bench.slots, cursors: CURSORS };
        let mut client = Client::new(config).walking(bench.walk);
        if reads_are_steered {
            client.expect_steered_reads();
        }
        Self { device, client, region, queue }
    }
}

impl Thread {
    /// A thread with a connection to the server.
    pub(super) fn new(
        bench: &Bench,
        machine: Machine,
        host: &mut Host,
        server: &mut Server,
        random: u64,
    ) -> Self {
        let depth = Depth { sends: 4, receives: 1 };
        let queue_pair = host.device.create_queue_pair(host.queue, host.queue, depth);
        let queue = server.device.create_completion_queue(4);
        let server_queue_pair = server.device.create_queue_pair(queue, queue, depth);
        let mut thread = Self {
            machine,
            queue_pair,
            server_queue_pair,
            next: Psn::new(0),
            incarnation: 0,
            ask: Ask { key: 0, request: Request::Get },
            began: Nanos::ZERO,
            trips: 0,
            floor: 0,
            verb: None,
            writes: Words::default(),
            reads: Words::default(),
            written: None,
            read: None,
        };
        thread.begin_connection(bench, host, server, Psn::new(random as u32));
        thread
    }

    /// Its connection begins, anew if there was one: nothing that was asked before is executed any more.
    pub(super) fn begin_connection(
        &mut self,
        bench: &Bench,
        host: &mut Host,
        server: &mut Server,
        first: Psn,
    ) {
        self.next = first;
        let client_end = (&mut host.device, self.queue_pair, Machine::Server, self.server_queue_pair);
        let server_end = (&mut server.device, self.server_queue_pair, self.machine, self.queue_pair);
        for (device, own, peer, at_peer) in [client_end, server_end] {
            let receive = ToReceive::new(NodeId(peer as u16), at_peer, Mtu::B4096, first);
            let send = ToSend {
                timeout: bench.timeout,
                retries: bench.retries,
                window: WINDOW,
                read_chunk: WINDOW,
                ..ToSend::new(first)
            };
            device.reset(own).expect("a queue pair of this NIC");
            device.init(own).expect("in RESET");
            device.ready_to_receive(own, receive).expect("in INIT");
            device.ready_to_send(own, send).expect("in RTR");
        }
    }
}
