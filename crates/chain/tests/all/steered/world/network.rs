//! Connections, packets and their ways, and what a NIC is asked for.

use chain::{Outcome, Replica, Verb};
use nic::verbs::{
    Completion, Depth, Effect, Mtu, Operation as Work, Payload, Remote, Span, Status, ToReceive, ToSend,
    WorkId, WorkRequest,
};
use switch::chains::{Action, Connection, End};
use wire::chains::EntryHead;
use wire::roce::{AtomicEth, Extension, Key, Opcode, Packet, Psn};
use wire::{Nanos, NodeId, Rules};

use super::{BUFFER, DECIDE_AFTER, Event, Flight, MEMORY, OpId, World};
use crate::steered::nic::{BASE, Bytes, address};

impl<R: Rules> World<R> {
    // Connections.

    /// Makes a connection of a node to the memory, anew.
    pub(super) fn connect(&mut self, at: usize) {
        if self.others.is_dead(Replica::FIRST) {
            return;
        }
        let depth = Depth { sends: 64, receives: 1 };
        // Some of them come round.
        let psn = [(); 2].map(|()| Psn::new((1 << 24) - 2_000 + self.random.below(4_000) as u32));
        let pairs = [at, MEMORY].map(|node| {
            let nic = &mut self.nics[node];
            nic.device.create_queue_pair(nic.queue, nic.queue, depth)
        });
        for (side, node) in [at, MEMORY].into_iter().enumerate() {
            let peer = NodeId([at, MEMORY][1 - side] as u16);
            let device = &mut self.nics[node].device;
            let receive = ToReceive::new(peer, pairs[1 - side], Mtu::B256, psn[1 - side]);
            let send = ToSend {
                timeout: Nanos(400),
                retries: 5,
                outstanding: 8,
                window: 32,
                read_chunk: 16,
                ..ToSend::new(psn[side])
            };
            device.init(pairs[side]).unwrap();
            device.ready_to_receive(pairs[side], receive).unwrap();
            device.ready_to_send(pairs[side], send).unwrap();
        }
        self.links[at] = Some((pairs[0], pairs[1]));
        let client = End { node: NodeId(at as u16), queue_pair: pairs[0] };
        self.switch.connect(Connection {
            client,
            memory: End { node: NodeId(MEMORY as u16), queue_pair: pairs[1] },
            first_psn: psn[0],
            region: self.nics[MEMORY].key,
            base: BASE,
        });
        self.send_own();
        if at == self.nics.len() - 1 || self.copies > 1 {
            // The metadata server follows chains, and gets read another copy.
            self.switch.read_as_asked(client);
        }
    }

    /// Ends a node's connection: nothing of what was asked and not executed ever will be.
    pub(super) fn disconnect(&mut self, at: usize) {
        let Some((own, peer)) = self.links[at].take() else { return };
        self.broken += 1;
        self.switch.disconnect(End { node: NodeId(at as u16), queue_pair: own });
        self.send_own();
        for (node, pair) in [(MEMORY, peer), (at, own)] {
            let mut out = std::mem::take(&mut self.out);
            self.nics[node].device.fail(Nanos(self.now), pair, &mut out).unwrap();
            self.carry_out(node, &[], out);
        }
    }

    pub(super) fn reconnect(&mut self, at: usize) {
        self.disconnect(at);
        self.connect(at);
    }

    // Packets.

    pub(super) fn carry_out(&mut self, at: usize, payload: &[u8], mut out: Vec<Effect>) {
        let mut broken = false;
        for effect in out.drain(..) {
            let nic = &mut self.nics[at];
            match effect {
                Effect::Send { to, packet, payload, .. } => {
                    let bytes = match payload {
                        Some(Payload::Region(span)) => nic.bytes.at(span.address, span.len).to_vec(),
                        _ => Vec::new(),
                    };
                    let flight = Flight { from: at, to: usize::from(to.0), packet, bytes };
                    self.travel(flight, Event::AtSwitch);
                }
                Effect::Place { at: span } => {
                    nic.bytes.at(span.address, span.len).copy_from_slice(payload);
                }
                Effect::Store { at: span, value } => *nic.bytes.word(span.address) = value.to_le_bytes(),
                Effect::Notify { .. } => {}
                Effect::Broken { .. } => broken = true,
            }
        }
        self.out = out;
        if broken && at != MEMORY {
            // The others hear of it before anybody is told that something is indeterminate.
            self.disconnect(at);
            self.connect(at);
        }
        let queue = self.nics[at].queue;
        while let Some(completion) = self.nics[at].device.poll(queue) {
            self.complete(at, completion);
        }
        self.nics[at].device.invariants();
    }

    pub(super) fn travel(&mut self, flight: Flight, arrives: fn(Flight) -> Event) {
        if self.random.per_mille(self.faults.loss) {
            return;
        }
        if self.random.per_mille(self.faults.duplication) {
            let way = self.way();
            self.schedule(way, arrives(flight.clone()));
        }
        let way = self.way();
        self.schedule(way, arrives(flight));
    }

    pub(super) fn way(&mut self) -> u64 {
        let late = if self.random.per_mille(self.faults.delay) { self.random.below(900) } else { 0 };
        5 + self.random.below(self.faults.jitter + 1) + late
    }

    pub(super) fn at_switch(&mut self, mut flight: Flight) {
        let to = NodeId(flight.to as u16);
        let missing: Vec<usize> = self.switch.unbound().collect();
        let had_bound: Vec<usize> = (0..self.bound.len()).filter(|at| !missing.contains(at)).collect();
        let head = &flight.bytes[..flight.bytes.len().min(32)];
        match self.switch.on_packet(Nanos(self.now), to, &mut flight.packet, head) {
            Action::Drop => {}
            // Of a bound queue pair that is no more.
            Action::Forward if flight.to == self.switch_node() => {}
            action @ (Action::Forward | Action::Bare) => {
                if action == Action::Bare {
                    flight.bytes.clear();
                }
                self.spoil(&mut flight);
                self.travel(flight, Event::AtNode);
            }
        }
        self.send_own();
        let is_missing = |world: &Self, at: usize| world.switch.unbound().any(|missing| missing == at);
        if had_bound.iter().any(|at| is_missing(self, *at)) {
            self.bind_later();
        }
    }

    /// Now and then what is sent to the memory is refused.
    pub(super) fn spoil(&mut self, flight: &mut Flight) {
        if self.random.below(1_000_000) < self.faults.naks
            && let Extension::Reth(reth) = &mut flight.packet.extension
        {
            reth.key = Key(0);
        }
    }

    pub(super) fn at_node(&mut self, flight: Flight) {
        let Flight { from, to, packet, bytes } = flight;
        let mut out = std::mem::take(&mut self.out);
        let nic = &mut self.nics[to];
        let (from, len) = (NodeId(from as u16), bytes.len() as u32);
        nic.device.on_packet(Nanos(self.now), from, &packet, len, &mut nic.bytes, &mut out);
        if let (MEMORY, Opcode::CompareSwap) = (to, packet.opcode)
            && !out.is_empty()
        {
            let posted = self.posted.get(&(usize::from(from.0), packet.to, packet.psn.get()));
            let age = self.now - posted.copied().unwrap_or(self.now);
            assert!(age < DECIDE_AFTER, "a request was in flight for {age}");
        }
        self.carry_out(to, &bytes, out);
    }

    // Work.

    pub(super) fn post(&mut self, at: usize, id: u64, verb: Verb, buffer: u64, value: u64) {
        let (own, peer) = self.links[at].expect("it is connected");
        let key = self.nics[MEMORY].key;
        let nic = &mut self.nics[at];
        let local = |len: u32| Span { key: nic.key, address: buffer, len };
        let remote = |location| Remote { key, address: address(location) };
        let operation = match verb {
            Verb::Read(location) => {
                Work::Read { local: local(location.class().bytes() as u32), remote: remote(location) }
            }
            Verb::Write(location, head) => {
                let local = local(24 + head.len);
                nic.bytes.put_entry(buffer, &head, value);
                Work::Write { local, remote: remote(location), immediate: None }
            }
            Verb::CompareSwap { at, expected, new } => Work::CompareSwap {
                remote: remote(at),
                compare: expected.to_bits(),
                swap: new.to_bits(),
                result: None,
            },
        };
        let mut out = std::mem::take(&mut self.out);
        let request = WorkRequest::new(WorkId(id), operation);
        nic.device.post_send(Nanos(self.now), own, request, &mut out).unwrap();
        for effect in &out {
            if let Effect::Send {
                packet: Packet { extension: Extension::Atomic(AtomicEth { .. }), psn, .. },
                ..
            } = effect
            {
                self.posted.insert((at, peer, psn.get()), self.now);
            }
        }
        self.carry_out(at, &[], out);
    }

    fn complete(&mut self, at: usize, completion: Completion) {
        if at == MEMORY {
            return;
        }
        let id = completion.id.0;
        let is_done = completion.status == Status::Success;
        if at == self.metadata_node() {
            let outcome = match completion.original {
                _ if !is_done => self.without_first(),
                Some(found) => Outcome::Swapped(found),
                None => Outcome::Read(self.nics[at].bytes.head(BASE + id * BUFFER)),
            };
            return self.schedule(1, Event::Walked(id, outcome));
        }
        let without = self.without_first();
        let worker = &mut self.workers[at - 1];
        // Work of a client that died before.
        let Some(running) = worker.running.get_mut(&OpId(id)) else { return };
        let bytes = &mut self.nics[at].bytes;
        let (outcome, value) = match (completion.original, completion.len) {
            _ if !is_done => (without, 0),
            (Some(found), _) => (Outcome::Swapped(found), 0),
            // What a READ brings is as long as its slot; a WRITE has a head of 24 bytes.
            (None, len) if len % 64 == 0 => {
                let head = bytes.head(running.buffer);
                let (value, is_torn) = value_of(bytes, running.buffer, head.as_ref(), len);
                running.is_torn = is_torn;
                (Outcome::Read(head), value)
            }
            _ => (Outcome::Written, 0),
        };
        let id_of_client = worker.id;
        self.schedule(1, Event::Outcome(id_of_client, OpId(id), outcome, value));
    }
}

/// What an entry's value stands for, and whether it is more than one.
pub(super) fn value_of(bytes: &mut Bytes, at: u64, head: Option<&EntryHead>, len: u32) -> (u64, bool) {
    let Some(head) = head.filter(|head| 24 + head.len <= len && head.len >= 8) else { return (0, false) };
    let value = u64::from_le_bytes(*bytes.word(at + 24));
    let parts = bytes.at(at + 24, head.len).chunks_exact(8);
    let is_torn = parts.into_iter().any(|part| *part != value.to_le_bytes());
    (value, is_torn)
}
