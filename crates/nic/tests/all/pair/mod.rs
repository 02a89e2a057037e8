//! Two nodes whose devices are joined by a network that a seed makes faulty. Every packet travels as the bytes of a
//! frame. What must always hold: a run follows from its seed; memory is touched only through registered keys, which
//! are kept here a second time, so that a device that is wrong about them is found out.
#![allow(dead_code, reason = "each test uses its part")]

mod memory;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use nic::verbs::*;
use wire::roce::frame::MOST_OVERHEAD;
use wire::roce::{Frame, Key, Opcode, Packet, Psn, QpNumber, Route};
use wire::{Nanos, NodeId, Rules};

pub(crate) use self::memory::NodeMemory;
pub(crate) use random::Dice;

/// What the network does to packets, in percent.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Faults {
    pub(crate) loss: u64,
    pub(crate) duplication: u64,
    /// Packets that are held back much longer than others.
    pub(crate) delay: u64,
    /// Time on the way is anything up to this.
    pub(crate) jitter: Nanos,
}

/// A node: its device, its memory, and what happened there.
pub(crate) struct Node<R: Rules> {
    pub(crate) device: Device<R>,
    pub(crate) memory: NodeMemory,
    pub(crate) queue: CqNumber,
    pub(crate) completions: Vec<Completion>,
    pub(crate) broken: Vec<QpNumber>,
    /// Every placement: where, and what.
    pub(crate) placed: Vec<(Span, Vec<u8>)>,
    /// Whatever left in a packet.
    pub(crate) exposed: Vec<Span>,
}

impl<R: Rules> Node<R> {
    pub(crate) fn register(&mut self, base: u64, len: u64, access: Access) -> Key {
        let region = Region { base, len, access };
        let key = self.device.register(region).expect("room");
        self.memory.add(key, region);
        key
    }

    pub(crate) fn deregister(&mut self, key: Key) {
        self.device.deregister(key).expect("it is registered");
        self.memory.regions.remove(&key);
    }
}

/// A queue pair at each node, connected.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link(pub(crate) [QpNumber; 2]);

pub(crate) struct Pair<R: Rules> {
    pub(crate) nodes: [Node<R>; 2],
    pub(crate) now: Nanos,
    pub(crate) faults: Faults,
    pub(crate) random: Dice,
    /// By time of arrival, then in the order of sending.
    network: BTreeMap<(Nanos, u64), (usize, Vec<u8>)>,
    sent: u64,
    /// Loses these packets, once each: counted from 1 by opcode.
    pub(crate) lose: Vec<(Opcode, usize)>,
    seen: BTreeMap<Opcode, usize>,
    /// Every frame as it was sent, with the time.
    pub(crate) frames: Vec<(Nanos, Vec<u8>)>,
    pub(crate) record: bool,
    out: Vec<Effect>,
}

/// Time on the way, at least.
const WAY: Nanos = Nanos(2_000);

pub(crate) fn address(node: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, node as u8 + 1)
}

fn route(from: usize, link: QpNumber) -> Route {
    let mac = |node: usize| [2, 0, 0, 0, 0, node as u8 + 1];
    Route {
        source_mac: mac(from),
        destination_mac: mac(1 - from),
        ..Route::new(address(from), address(1 - from), 0xc000 + link.get() as u16)
    }
}

impl<R: Rules> Pair<R> {
    pub(crate) fn new(rules: R, seed: u64, faults: Faults) -> Self {
        let node = || {
            let mut device = Device::with_rules(rules, 64);
            let queue = device.create_completion_queue(4096);
            Node {
                device,
                memory: NodeMemory::default(),
                queue,
                completions: Vec::new(),
                broken: Vec::new(),
                placed: Vec::new(),
                exposed: Vec::new(),
            }
        };
        Self {
            nodes: [node(), node()],
            now: Nanos(1),
            faults,
            random: Dice::new(seed),
            network: BTreeMap::new(),
            sent: 0,
            lose: Vec::new(),
            seen: BTreeMap::new(),
            frames: Vec::new(),
            record: false,
            out: Vec::new(),
        }
    }

    /// Makes a queue pair at each node and connects them.
    pub(crate) fn connect(
        &mut self,
        mtu: Mtu,
        psn: [Psn; 2],
        receive: impl Fn(&mut ToReceive),
        send: impl Fn(&mut ToSend),
    ) -> Link {
        let depth = Depth { sends: 128, receives: 128 };
        let pairs = [0, 1].map(|node: usize| {
            let node = &mut self.nodes[node];
            node.device.create_queue_pair(node.queue, node.queue, depth)
        });
        for at in [0, 1] {
            let device = &mut self.nodes[at].device;
            let mut to_receive = ToReceive::new(NodeId(1 - at as u16), pairs[1 - at], mtu, psn[1 - at]);
            receive(&mut to_receive);
            let mut to_send = ToSend { timeout: Nanos::from_micros(100), ..ToSend::new(psn[at]) };
            send(&mut to_send);
            device.init(pairs[at]).unwrap();
            device.ready_to_receive(pairs[at], to_receive).unwrap();
            device.ready_to_send(pairs[at], to_send).unwrap();
        }
        Link(pairs)
    }

    pub(crate) fn post(&mut self, at: usize, link: Link, request: WorkRequest) -> Result<(), PostError> {
        let mut out = std::mem::take(&mut self.out);
        let posted = self.nodes[at].device.post_send(self.now, link.0[at], request, &mut out);
        self.carry_out(at, &[], out);
        posted
    }

    pub(crate) fn post_receive(&mut self, at: usize, link: Link, receive: Receive) -> Result<(), PostError> {
        let mut out = std::mem::take(&mut self.out);
        let posted = self.nodes[at].device.post_receive(self.now, link.0[at], receive, &mut out);
        self.carry_out(at, &[], out);
        posted
    }

    /// The next thing happens: a packet arrives, or a deadline passes. False if nothing is left.
    pub(crate) fn step(&mut self) -> bool {
        let due = self.nodes.each_ref().map(|node| node.device.next_deadline());
        let arrival = self.network.first_key_value().map_or(Nanos::MAX, |(&(at, _), _)| at);
        let next = due[0].min(due[1]).min(arrival);
        if next == Nanos::MAX {
            return false;
        }
        self.now = self.now.max(next);
        if arrival == next {
            let (_, (to, bytes)) = self.network.pop_first().expect("it arrives");
            self.deliver(to, &bytes);
        } else {
            let at = usize::from(due[1] < due[0]);
            let mut out = std::mem::take(&mut self.out);
            self.nodes[at].device.on_deadline(self.now, &mut out);
            self.carry_out(at, &[], out);
        }
        true
    }

    /// Runs until nothing is left to happen.
    pub(crate) fn run(&mut self) {
        for _ in 0..1_000_000 {
            if !self.step() {
                return;
            }
        }
        panic!("it never comes to rest");
    }

    pub(crate) fn deliver(&mut self, to: usize, bytes: &[u8]) {
        let mut out = std::mem::take(&mut self.out);
        let node = &mut self.nodes[to];
        let mut payload_bytes: &[u8] = &[];
        match Frame::parse(bytes) {
            Ok((frame, payload)) => {
                payload_bytes = payload;
                node.memory.payload = payload.to_vec();
                let from = NodeId(u16::from(frame.route.source.octets()[3]) - 1);
                let len = payload.len() as u32;
                node.device.on_packet(self.now, from, &frame.packet, len, &mut node.memory, &mut out);
            }
            Err(why) => node.device.on_malformed(why),
        }
        self.carry_out(to, payload_bytes, out);
    }

    fn carry_out(&mut self, at: usize, payload: &[u8], mut out: Vec<Effect>) {
        for effect in out.drain(..) {
            let node = &mut self.nodes[at];
            match effect {
                Effect::Send { from, to, packet, payload } => {
                    assert_eq!(usize::from(to.0), 1 - at, "there is one other node");
                    let bytes = match payload {
                        Some(Payload::Region(span)) => {
                            node.exposed.push(span);
                            node.memory.bytes(span).map(|bytes| bytes.to_vec())
                        }
                        Some(Payload::Kept { slot, offset, len }) => node.memory.kept(slot, offset, len),
                        None => Some(Vec::new()),
                    };
                    if let Some(bytes) = bytes {
                        self.send(at, from, packet, &bytes);
                    }
                }
                Effect::Place { at: span } => {
                    assert_eq!(span.len as usize, payload.len(), "all of a payload is placed");
                    node.placed.push((span, payload.to_vec()));
                    if let Some(bytes) = node.memory.bytes(span) {
                        bytes.copy_from_slice(payload);
                    }
                }
                Effect::Store { at: span, value } => {
                    assert_eq!(span.len, 8);
                    node.memory.set_word(span.key, span.address, value);
                }
                Effect::Notify { .. } => {}
                Effect::Broken { queue_pair } => node.broken.push(queue_pair),
            }
        }
        self.out = out;
        let node = &mut self.nodes[at];
        while let Some(completion) = node.device.poll(node.queue) {
            node.completions.push(completion);
        }
        node.device.invariants();
    }

    fn send(&mut self, at: usize, from: QpNumber, packet: Packet, payload: &[u8]) {
        let frame = Frame { route: route(at, from), packet };
        let mut bytes = vec![0; payload.len() + MOST_OVERHEAD];
        let length = frame.encode(payload, &mut bytes);
        bytes.truncate(length);
        if self.record {
            self.frames.push((self.now, bytes.clone()));
        }
        let seen = self.seen.entry(packet.opcode).or_default();
        *seen += 1;
        if self.lose.contains(&(packet.opcode, *seen)) || self.random.percent(self.faults.loss) {
            return;
        }
        if self.random.percent(self.faults.duplication) {
            self.put_on_the_way(at, bytes.clone());
        }
        self.put_on_the_way(at, bytes);
    }

    fn put_on_the_way(&mut self, at: usize, bytes: Vec<u8>) {
        let jitter = Nanos(self.random.below(self.faults.jitter.0 + 1));
        let late = if self.random.percent(self.faults.delay) { 200_000 } else { 0 };
        self.sent += 1;
        self.network.insert((self.now + WAY + jitter + Nanos(late), self.sent), (1 - at, bytes));
    }

    /// What went wrong with memory.
    pub(crate) fn violations(&self) -> Option<&String> {
        self.nodes.iter().flat_map(|node| &node.memory.violations).next()
    }
}
