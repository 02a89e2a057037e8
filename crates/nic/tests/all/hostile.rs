//! A million packets that nobody means well with: random bytes, damaged frames, and well-formed packets with random
//! contents near what is expected. What must hold: no panic, nothing is written outside what may be written, every
//! packet is counted, and a connection beside the one that is attacked works as before.
//!
//! `RACKMEM_SEED=N` draws other packets.

use crate::pair;

use nic::verbs::*;
use pair::{Dice, Faults, Link, Pair};
use wire::roce::batch::{ADDRESSES, Entry, Operation as Atomic, Writer};
use wire::roce::frame::{ICRC_BYTES, MOST_OVERHEAD, OUTER_BYTES, icrc};
use wire::roce::opcode::Layout;
use wire::roce::*;
use wire::{AllRules, NodeId};

const PACKETS: u64 = 1_000_000;
const BASE: u64 = 0x1000;
const LEN: u64 = 4096;

/// The keys at the node that is attacked: all may be done; READ only; nothing from afar (its own messages come from the
/// first of these, and what it receives goes into the second); deregistered.
struct Keys {
    open: Key,
    readable: Key,
    source: Key,
    private: Key,
    former: Key,
}

struct Attack {
    pair: Pair<AllRules>,
    random: Dice,
    victim: Link,
    keys: Keys,
    /// Where the responder of the victim is, as far as its answers say.
    near: Psn,
    /// The last request of ours that the victim has sent, and which packets of an answer come next.
    asked: Option<(Opcode, Psn)>,
    answer: std::ops::Range<u32>,
}

impl Attack {
    fn connect(&mut self) {
        let number = self.victim.0[1];
        let device = &mut self.pair.nodes[1].device;
        device.reset(number).unwrap();
        device.init(number).unwrap();
        let to_receive = ToReceive {
            longest: 2048,
            remembered: 4,
            ..ToReceive::new(NodeId(0), self.victim.0[0], Mtu::B256, self.near)
        };
        device.ready_to_receive(number, to_receive).unwrap();
        device.ready_to_send(number, ToSend::new(self.near)).unwrap();
    }

    fn key(&mut self) -> Key {
        match self.random.below(16) {
            0..9 => self.keys.open,
            9 | 10 => self.keys.readable,
            11 if self.random.percent(50) => self.keys.source,
            11 => self.keys.private,
            12 => self.keys.former,
            13 => Key(self.keys.open.0 ^ 1 << self.random.below(32)),
            _ => Key(self.random.next() as u32),
        }
    }

    fn address(&mut self) -> u64 {
        match self.random.below(8) {
            0 => self.random.next(),
            1 => (BASE + LEN).wrapping_sub(self.random.below(300)),
            2 => BASE.wrapping_sub(self.random.below(300)),
            _ => BASE + self.random.below(LEN / 8) * 8,
        }
    }

    fn length(&mut self) -> u32 {
        match self.random.below(8) {
            0 => self.random.next() as u32,
            1 => self.random.below(2500) as u32,
            2 => 0,
            _ => self.random.below(700) as u32,
        }
    }

    fn extension(&mut self, layout: Layout) -> Extension {
        let reth = Reth { address: self.address(), key: self.key(), length: self.length() };
        let syndrome = loop {
            if let Some(syndrome) = Syndrome::from_wire(self.random.next() as u8) {
                break syndrome;
            }
        };
        let syndrome = if self.random.percent(70) { Syndrome::NO_CREDITS } else { syndrome };
        let aeth = Aeth { syndrome, messages: self.random.next() as u32 & 0xff_ffff };
        match layout {
            Layout::Plain => Extension::Plain,
            Layout::Immediate => Extension::Immediate(7),
            Layout::Reth => Extension::Reth(reth),
            Layout::RethImmediate => Extension::RethImmediate(reth, 7),
            Layout::Atomic => Extension::Atomic(AtomicEth {
                address: reth.address,
                key: reth.key,
                swap_or_add: self.random.next(),
                compare: 0,
            }),
            Layout::Aeth => Extension::Aeth(aeth),
            Layout::AethAtomic => Extension::AethAtomic(aeth, self.random.next()),
        }
    }

    /// A frame that is one, with contents that are nearly right.
    fn frame(&mut self) -> Vec<u8> {
        let opcode = Opcode::ALL[self.random.below(Opcode::ALL.len() as u64) as usize];
        let psn = match self.random.below(8) {
            0 => Psn::new(self.random.next() as u32),
            1 | 2 => self.near.plus(self.random.below(12) as u32),
            3 => Psn::new(self.near.get().wrapping_sub(self.random.below(12) as u32)),
            _ => self.near,
        };
        let to = if self.random.percent(97) {
            self.victim.0[1]
        } else {
            QpNumber::new(self.random.next() as u32 & 0xff)
        };
        let mut extension = self.extension(opcode.layout());
        let mut payload = match self.random.below(6) {
            0 => 256,
            1 => self.random.below(600) as usize,
            _ => self.random.below(256) as usize,
        };
        if let (Extension::Reth(reth) | Extension::RethImmediate(reth, _), true) =
            (&mut extension, self.random.percent(60))
        {
            // As long as it says.
            payload = payload.min(256);
            reth.length = if opcode == Opcode::WriteFirst { 600 } else { payload as u32 };
        }
        if opcode == Opcode::WriteFirst && self.random.percent(60) {
            payload = 256;
        }
        if opcode == Opcode::SabreRequest && self.random.percent(60) {
            extension = self.object();
        }
        let mut content = vec![self.random.next() as u8; payload];
        if opcode == Opcode::RaeRequest && self.random.percent(80) {
            content = self.batch();
        }
        if opcode == Opcode::RaeResponse && self.random.percent(60) {
            content = vec![0; 16];
        }
        let payload = if opcode.carries_payload() { content.len() } else { 0 };
        // Not to the other connection: who can say what is right there is trusted.
        let to = if to == QpNumber::new(self.victim.0[1].get() + 1) { self.victim.0[1] } else { to };
        let packet =
            Packet { ack_request: self.random.percent(50), ..Packet::new(opcode, to, psn, extension) };
        let from = if self.random.percent(97) { 0 } else { self.random.next() as u8 as usize % 9 + 1 };
        let route = Route::new(pair::address(from), pair::address(1), 0xc000);
        let mut bytes = vec![0; payload + MOST_OVERHEAD];
        let length = Frame { route, packet }.encode(&content[..payload], &mut bytes);
        bytes.truncate(length);
        bytes
    }

    /// An object that is where objects are, and aligned; not all of it is always in its region.
    fn object(&mut self) -> Extension {
        let address = BASE + self.random.below(LEN / 8) * 8;
        let key = if self.random.percent(80) { self.keys.open } else { self.key() };
        Extension::Reth(Reth { address, key, length: self.random.below(700) as u32 })
    }

    /// Operations most of which may be: then now and then all of them may; or bytes that nearly are that.
    fn batch(&mut self) -> Vec<u8> {
        let mut writer = Writer::new(250);
        let wild = self.random.percent(50);
        for _ in 0..self.random.below(8) {
            let (key, address) = if wild && self.random.percent(20) {
                (self.key(), self.address() & (ADDRESSES - 1))
            } else {
                (self.keys.open, BASE + self.random.below(LEN / 8) * 8)
            };
            let operation = Atomic::ALL[self.random.below(9) as usize];
            let entry = Entry {
                address,
                operation,
                is_wide: self.random.percent(50),
                fetches: self.random.percent(50),
                operand: self.random.next(),
                expected: self.random.next(),
            };
            let _ = writer.push(key, &entry);
        }
        let mut bytes = writer.bytes().to_vec();
        if !bytes.is_empty() && self.random.percent(20) {
            let at = self.random.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << self.random.below(8);
        }
        if self.random.percent(10) {
            bytes.truncate(self.random.below(bytes.len() as u64 + 1) as usize);
        }
        bytes
    }

    /// A packet of an answer that the victim waits for: often the right one.
    fn answer(&mut self, (opcode, psn): (Opcode, Psn), step: u32) -> Vec<u8> {
        let offset = if self.random.percent(90) { step } else { self.random.below(4) as u32 };
        let aeth = Aeth { syndrome: Syndrome::NO_CREDITS, messages: 0 };
        let verdict = Extension::AethAtomic(aeth, self.random.next());
        let (opcode, extension, payload) = match (opcode, offset) {
            (Opcode::RaeRequest, _) => (Opcode::RaeResponse, Extension::Aeth(aeth), 16),
            (_, 0) if self.random.percent(70) => (Opcode::SabreResponse, Extension::Plain, 256),
            (_, 1) => (Opcode::SabreResponse, Extension::Plain, 44),
            _ => (Opcode::SabreValidation, verdict, 0),
        };
        let offset = if opcode == Opcode::SabreValidation { 2 } else { offset };
        let packet = Packet::new(opcode, self.victim.0[1], psn.plus(offset), extension);
        let route = Route::new(pair::address(0), pair::address(1), 0xc000);
        let mut bytes = vec![0; payload + MOST_OVERHEAD];
        let length = Frame { route, packet }.encode(&vec![1; payload], &mut bytes);
        bytes.truncate(length);
        bytes
    }

    fn bytes(&mut self) -> Vec<u8> {
        if let Some(asked) = self.asked {
            if let Some(step) = self.answer.next() {
                return self.answer(asked, step);
            }
            self.answer = 0..if self.random.percent(3) { 3 } else { 0 };
        }
        match self.random.below(20) {
            0 => (0..self.random.below(200)).map(|_| self.random.next() as u8).collect(),
            1 => {
                let mut bytes = self.frame();
                bytes.truncate(self.random.below(bytes.len() as u64) as usize);
                bytes
            }
            2 => {
                let mut bytes = self.frame();
                let at = self.random.below(bytes.len() as u64) as usize;
                bytes[at] = self.random.next() as u8;
                bytes
            }
            3 => {
                // Damaged by somebody who knows the checksum.
                let mut bytes = self.frame();
                let end = bytes.len() - ICRC_BYTES;
                let at = OUTER_BYTES + self.random.below((end - OUTER_BYTES) as u64) as usize;
                bytes[at] = self.random.next() as u8;
                let icrc = icrc(&bytes[14..end]);
                bytes[end..].copy_from_slice(&icrc.to_le_bytes());
                bytes
            }
            _ => self.frame(),
        }
    }

    /// Learns from the answers which packet is expected.
    fn listen(&mut self) {
        for (_, bytes) in self.pair.frames.drain(..) {
            let (frame, _) = Frame::parse(&bytes).expect("we write frames");
            let packet = frame.packet;
            if matches!(packet.opcode, Opcode::RaeRequest | Opcode::SabreRequest) {
                self.asked = Some((packet.opcode, packet.psn));
            }
            let expected = match packet.extension {
                Extension::Aeth(Aeth { syndrome: Syndrome::Ack(_), .. }) | Extension::AethAtomic(..) => {
                    packet.psn.plus(1)
                }
                Extension::Aeth(_) => packet.psn,
                _ => continue,
            };
            if expected.since(self.near) > 0 || packet.opcode == Opcode::Acknowledge {
                self.near = expected;
            }
        }
    }
}

#[test]
fn a_million_hostile_packets_write_nothing_outside_and_are_counted() {
    let seed = std::env::var("RACKMEM_SEED").map_or(1, |seed| seed.parse().expect("a number"));
    let mut pair = Pair::new(AllRules, seed, Faults { loss: 100, ..Faults::default() });
    let node = &mut pair.nodes[1];
    let former = node.register(BASE, LEN, Access::ALL);
    node.deregister(former);
    let keys = Keys {
        former,
        open: node.register(BASE, LEN, Access::ALL),
        readable: node.register(BASE, LEN, Access::REMOTE_READ),
        source: node.register(BASE, LEN, Access::LOCAL_READ),
        private: node.register(BASE, LEN, Access::LOCAL_WRITE),
    };
    let own = pair.nodes[0].register(BASE, LEN, Access::ALL);
    let victim = pair.connect(Mtu::B256, [Psn::new(0); 2], |_| {}, |_| {});
    let beside = pair.connect(Mtu::B256, [Psn::new(0); 2], |_| {}, |_| {});
    let (near, random) = (Psn::new(0xff_fff0), Dice::new(seed));
    let mut attack = Attack { pair, random, victim, keys, near, asked: None, answer: 0..0 };
    attack.connect();
    attack.pair.record = true;
    // What a reader finds there may be whole or torn.
    for key in [attack.keys.open, attack.keys.readable] {
        attack.pair.nodes[1].memory.objects.insert(key);
    }
    let (mut broken, mut answered, mut torn, mut whole) = (0u64, 0u64, 0u64, 0u64);
    for number in 0..PACKETS {
        let (pair, keys) = (&mut attack.pair, &attack.keys);
        if number % 8 == 0 {
            // Work of its own, so that there is something to answer, and a receive.
            let local = Span { key: keys.private, address: BASE, len: 300 };
            let remote = Remote { key: Key(1), address: 0 };
            let source = Span { key: keys.source, ..local };
            let operation = match number / 8 % 5 {
                0 => Operation::Read { local, remote },
                1 => Operation::ReadObject { local, remote },
                2 => Operation::Atomics {
                    request: Span { len: 48, ..source },
                    answer: Span { len: 16, ..local },
                },
                3 => Operation::FetchAdd { remote, add: 1, result: Some(Span { len: 8, ..local }) },
                _ => Operation::Send { local: source, immediate: None },
            };
            // It may be full.
            let _ = pair.post(1, victim, WorkRequest::new(WorkId(number), operation));
            let _ = pair.post_receive(1, victim, Receive { id: WorkId(number), local });
        }
        if number % 64 == 0 {
            // Nobody answers: a deadline passes.
            pair.step();
        }
        let bytes = attack.bytes();
        let pair = &mut attack.pair;
        pair.deliver(1, &bytes);
        let node = &mut pair.nodes[1];
        assert_eq!(node.device.counters().received, number + 1);
        for (span, _) in node.placed.drain(..) {
            assert!(span.key == attack.keys.open || span.key == attack.keys.private, "{span:?}");
        }
        for span in node.exposed.drain(..) {
            let may = [attack.keys.open, attack.keys.readable, attack.keys.source];
            assert!(may.contains(&span.key), "{span:?}");
        }
        let placed_outside = node.memory.violations.first();
        assert_eq!(placed_outside, None, "packet {number} of seed {seed}");
        for completion in node.completions.drain(..).filter(|completion| !completion.receive) {
            torn += u64::from(completion.status == Status::Torn);
            answered += u64::from((completion.status, completion.len) == (Status::Success, 16));
            whole += u64::from(completion.version.is_some());
        }
        assert!(node.memory.slots.len() <= 4 + 16, "as many answers are kept as it was told");
        let state = node.device.state(victim.0[1]);
        attack.listen();
        // In error it stays for a while; and now and then it is connected anew without having been.
        let again = if state == Some(QueuePairState::Err) { 25 } else { 0 };
        if attack.random.percent(again) || number % 1000 == 0 {
            broken += u64::from(state == Some(QueuePairState::Err));
            attack.near = Psn::new(attack.random.next() as u32);
            attack.connect();
        }
    }
    let counters = attack.pair.nodes[1].device.counters().clone();
    println!("{broken} times in error; {counters:?}");
    let memory = &attack.pair.nodes[1].memory;
    let ours = [memory.batches, memory.snapshots, answered, torn, whole];
    println!("batches, snapshots, own batches, own objects torn and whole: {ours:?}");
    assert!(ours.iter().all(|&count| count > 100), "{ours:?}");
    assert!(counters.add_up());
    // Each cause was met, and a good part was near enough to be executed.
    assert!(counters.dropped.iter().all(|&count| count > 0), "{:?}", counters.dropped);
    assert!(counters.taken > PACKETS / 8, "{}", counters.taken);
    // The connection beside it does not know of all this.
    attack.pair.faults = Faults::default();
    attack.pair.nodes[1].memory.set_word(attack.keys.open, BASE, 41);
    let remote = Remote { key: attack.keys.open, address: BASE };
    let local = Span { key: own, address: BASE, len: 8 };
    attack.pair.nodes[0].completions.clear();
    attack.pair.post(0, beside, WorkRequest::new(WorkId(0), Operation::Read { local, remote })).unwrap();
    attack.pair.nodes[1].device.reset(victim.0[1]).unwrap();
    attack.pair.run();
    assert_eq!(attack.pair.nodes[0].memory.word(own, BASE), 41);
    assert_eq!(attack.pair.nodes[0].completions[0].status, Status::Success);
}
