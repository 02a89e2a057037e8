//! The way of a sim_message: from machine to machine, through the switch.
//!
//! What must always hold: payloads between two machines stay in their order.

use chain::metadata::{self, CallId, ClientId};
use chain::{Answer, Outcome, Verb};
use nic::verbs::{self, Payload};
use switch::chains::{Action, Sent};
use wire::Nanos;
use wire::chains::{EntryHead, Next, Word};

use super::entries::{self, Entries};
use super::event::{Event, Machine, Roce, SimMessage};
use super::testbed::Testbed;

/// Bytes behind the headers of a packet: its checksum.
const ICRC: u64 = 4;
/// Bytes of a message with its headers: about 40 B of ours.
const MESSAGE: u64 = 60;
/// Bytes of a slot that is given, in an answer.
const SLOT: u64 = 8;
/// Bytes of an entry in a completion queue, as the NIC's programming manual has it.
const COMPLETION: u64 = 64;

impl SimMessage {
    /// Bytes above Ethernet's, IP's and UDP's headers.
    fn bytes(&self) -> u64 {
        match self {
            Self::Roce(roce) => roce.packet.header_bytes() as u64 + u64::from(roce.payload) + ICRC,
            Self::Answer(_, Answer::Slots(slots)) => MESSAGE + SLOT * slots.len() as u64,
            Self::Call(..) | Self::Answer(..) | Self::Notice(..) => MESSAGE,
        }
    }
}

impl Testbed {
    /// A message of a processor that posts it now.
    pub(super) fn send_message(&mut self, from: Machine, now: Nanos, sim_message: SimMessage) {
        let hardware = &self.bench.hardware;
        let ready = now + hardware.post_datagram + hardware.doorbell;
        self.send(from, ready, sim_message);
    }

    /// A sim_message is at its machine's NIC then: it goes to the switch.
    pub(super) fn send(&mut self, from: Machine, ready: Nanos, sim_message: SimMessage) {
        let bytes = sim_message.bytes();
        let arrives = self.pass(from, Machine::Tor, ready, bytes);
        let hardware = &self.bench.hardware;
        let seen = arrives + hardware.pcie.span(bytes + COMPLETION) + hardware.pcie_write;
        self.push(seen, Event::AtTor(sim_message));
    }

    /// From a NIC to another one, through the Onyx switch: when the other knows what has come.
    fn pass(&mut self, from: Machine, to: Machine, ready: Nanos, bytes: u64) -> Nanos {
        let left = self.adapters[from as usize].leaves(ready, bytes) + self.bench.hardware.cable;
        let there = self.onyx.route(left, to as u16, bytes);
        let there = there.expect("the switch's buffer holds all that 64 threads have in flight");
        self.adapters[to as usize].arrives(there)
    }

    /// The program in the switch sees a sim_message.
    pub(super) fn on_tor(&mut self, mut sim_message: SimMessage) {
        if !self.tor.is_up() {
            match sim_message {
                SimMessage::Roce(_) => self.tally.dropped += 1,
                // Messages travel on queue pairs, too, which send them again; those are not modelled.
                _ => self.push(self.now + self.bench.timeout, Event::AtTor(sim_message)),
            }
            return;
        }
        let bytes = sim_message.bytes();
        self.tally.bytes += bytes;
        let mut goes_on = true;
        if let SimMessage::Roce(roce) = &mut sim_message {
            self.tally.packets += 1;
            let action = self.tor.see(self.now, roce);
            goes_on = action != Action::Drop;
            if action == Action::Bare {
                (roce.payload, roce.at) = (0, None);
            }
            self.tally.dropped += u64::from(!goes_on && roce.to != Machine::Tor);
        }
        if goes_on {
            self.leave_tor(sim_message);
        }
        while let Some(Sent { from, to, packet, word }) = self.tor.next_sent() {
            let [from, to] = [from, to].map(|node| Machine::of(node.0));
            let (payload, words) = (if word.is_some() { 8 } else { 0 }, [word.unwrap_or(0), 0, 0, 0]);
            self.leave_tor(SimMessage::Roce(Roce { from, to, packet, payload, words, at: None }));
        }
    }

    /// A sim_message leaves the switch.
    fn leave_tor(&mut self, sim_message: SimMessage) {
        let bytes = sim_message.bytes();
        let done = self.tor.forward(self.now);
        let to = match &sim_message {
            SimMessage::Roce(roce) => roce.to,
            SimMessage::Call(..) | SimMessage::Notice(..) => Machine::Server,
            SimMessage::Answer(thread, _) => self.threads[usize::from(*thread)].machine,
        };
        let hardware = self.bench.hardware;
        let ready = done + hardware.doorbell + hardware.pcie_read + hardware.pcie.span(bytes);
        let known = self.pass(Machine::Tor, to, ready, bytes);
        let visible = known + hardware.pcie.span(bytes + COMPLETION) + hardware.pcie_write;
        let (at, event) = match sim_message {
            SimMessage::Roce(roce) if to == Machine::Server => {
                (self.server.executes(&self.bench, known, &roce.packet), Event::Execute(roce))
            }
            SimMessage::Roce(roce) => (visible, Event::Seen(roce)),
            SimMessage::Call(..) | SimMessage::Notice(..) => (visible, Event::AtMetadata(sim_message)),
            SimMessage::Answer(thread, answer) => {
                (visible + hardware.poll + self.bench.step, Event::Answered { thread, answer })
            }
        };
        self.push(at, event);
    }

    /// The server's NIC executes a request.
    pub(super) fn on_execute(&mut self, roce: &Roce) {
        let mut effects = core::mem::take(&mut self.effects);
        let server = &mut self.server;
        let from = wire::NodeId(roce.from as u16);
        let (packet, payload) = (&roce.packet, roce.payload);
        server.device.on_packet(self.now, from, packet, payload, &mut server.entries, &mut effects);
        for effect in effects.drain(..) {
            match effect {
                verbs::Effect::Place { at } => {
                    let (len, at) = (at.len, self.server.entries.location(at.address));
                    match len {
                        8 => self.server.entries.put_word(at, roce.words[0]),
                        _ => self.server.entries.write(at, roce.words),
                    }
                }
                verbs::Effect::Send { packet, payload, .. } => {
                    let at = match payload {
                        Some(Payload::Region(span)) => Some(self.server.entries.location(span.address)),
                        _ => None,
                    };
                    let words = at.map(|at| self.server.entries.read(at)).unwrap_or_default();
                    let payload = payload.map_or(0, |payload| payload.bytes());
                    let roce = Roce { from: Machine::Server, to: roce.from, packet, payload, words, at };
                    self.send(Machine::Server, self.now, SimMessage::Roce(roce));
                }
                verbs::Effect::Store { .. } | verbs::Effect::Notify { .. } => {}
                verbs::Effect::Broken { queue_pair } => panic!("{queue_pair:?} of the server is broken"),
            }
        }
        self.effects = effects;
    }

    // The metadata server.

    /// It can see a sim_message.
    pub(super) fn on_metadata(&mut self, sim_message: SimMessage) {
        let cost =
            if matches!(sim_message, SimMessage::Call(..)) { self.bench.call } else { self.bench.notice };
        let done = self.server.core.run(self.now, cost + self.bench.hardware.poll);
        self.push(done, Event::Serve(sim_message));
    }

    pub(super) fn on_serve(&mut self, sim_message: SimMessage) {
        let mut out = Vec::new();
        let metadata = &mut self.server.metadata;
        match sim_message {
            SimMessage::Call(thread, call) => {
                let client = ClientId(self.threads[usize::from(thread)].machine as u64);
                metadata.on_call(self.now, CallId { client, number: thread.into() }, call, &mut out);
            }
            SimMessage::Notice(machine, notice) => {
                metadata.on_notice(self.now, ClientId(machine as u64), notice, &mut out);
            }
            SimMessage::Roce(_) | SimMessage::Answer(..) => unreachable!("not for the metadata server"),
        }
        self.serve(out);
    }

    pub(super) fn on_walked(&mut self, key: u64, outcome: Outcome) {
        let mut out = Vec::new();
        self.server.metadata.on_outcome(self.now, key, outcome, &mut out);
        self.serve(out);
        let is_end =
            matches!(outcome, Outcome::Read(Some(EntryHead { word: Word { next: Next::Tail, .. }, .. })));
        if is_end && self.scanned.remove(&key) {
            let (at, version) = self.server.metadata.tail(key).expect("it was walked");
            self.push(self.now + self.bench.control, Event::Found { key, at, version });
        }
    }

    pub(super) fn on_scan(&mut self) {
        let mut out = Vec::new();
        for key in &self.scanned {
            self.server.metadata.scan(*key, &mut out);
        }
        self.serve(out);
    }

    pub(super) fn on_metadata_tick(&mut self) {
        let mut out = Vec::new();
        self.server.metadata.on_deadline(self.now, &mut out);
        self.serve(out);
    }

    fn serve(&mut self, out: Vec<metadata::Effect>) {
        for effect in out {
            match effect {
                metadata::Effect::Answer(CallId { number, .. }, answer) => {
                    self.send_message(Machine::Server, self.now, SimMessage::Answer(number as u16, answer));
                }
                metadata::Effect::Verb(key, _, verb) => {
                    let is_swap = matches!(verb, Verb::CompareSwap { .. });
                    assert!(!is_swap || !self.tor.binds(), "it would pass beside the bound queue pair");
                    let outcome = at_once(&mut self.server.entries, verb);
                    self.push(self.now + self.bench.local, Event::Walked { key, outcome });
                }
            }
        }
    }
}

/// Does something to the memory on the spot.
pub(super) fn at_once(memory: &mut Entries, verb: Verb) -> Outcome {
    match verb {
        Verb::Read(at) => entries::outcome(memory.read(at)),
        Verb::Write(at, head) => {
            memory.write(at, entries::words(&head));
            Outcome::Written
        }
        Verb::CompareSwap { at, expected, new } => {
            Outcome::Swapped(memory.swap(at, expected.to_bits(), new.to_bits()))
        }
    }
}
