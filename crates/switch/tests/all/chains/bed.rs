//! Clients and a memory on both sides of the program where words are bound to queue pairs, packet by packet: queue pairs of the memory
//! execute in the order of their numbers, once, and replay.
//!
//! A client's own queue pair has executed everything but what a test holds back, so that numbers of clients are no matter here. What the
//! switch has sent to the memory on bound queue pairs stays in `wires` until a test delivers it.

use std::collections::{BTreeMap, BTreeSet};

use switch::chains::{Action, Binding, Bound, Connection, End, Sent, Steering, SteeringConfig};
use wire::chains::{Next, Reply, Word};
use wire::roce::{Aeth, Extension, NakCode, Opcode, Packet, Psn, QpNumber, Syndrome};
use wire::{Nanos, NodeId, Rules};

use crate::chains::rig::{
    BASE, Entry, MEMORY, REGION, client_end, head, memory_end, swap_packet, write_packet,
};

const SWITCH: NodeId = NodeId(99);

/// What a packet of a bound queue pair does at the memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Does {
    Swap { unit: u32, compare: u64, swap: u64 },
    Write { unit: u32, word: u64 },
    Nothing,
}

/// A packet on its way to the memory: the bound queue pair there, its number, what it does.
pub(crate) type Wire = (u32, u32, Does);

/// A bound queue pair at the memory.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Responder {
    pub(crate) expected: u32,
    /// What each number was answered: what the word was, of an atomic.
    pub(crate) said: BTreeMap<u32, Option<u64>>,
}

#[derive(Clone)]
pub(crate) struct Bed<R: Rules> {
    pub(crate) switch: Steering<R>,
    pub(crate) words: BTreeMap<u32, Word>,
    /// By its number at the memory: those that live.
    pub(crate) bound: BTreeMap<u32, Responder>,
    incarnations: u32,
    next: BTreeMap<u16, Psn>,
    /// What the switch has sent to the memory itself.
    pub(crate) wires: BTreeSet<Wire>,
    /// And to clients: whom, about which number, what.
    pub(crate) told: Vec<(u16, u32, Reply)>,
}

impl<R: Rules> Bed<R> {
    pub(crate) fn new(rules: R, clients: u16, binding: Binding) -> Self {
        let config = SteeringConfig {
            keys: 5,
            top: 0,
            connections: usize::from(clients),
            window: 8,
            slots: 256,
            lifetime: Nanos(1_000),
            binding,
            ..SteeringConfig::default()
        };
        let mut bed = Self {
            switch: Steering::with_rules(rules, &config).unwrap(),
            words: BTreeMap::new(),
            bound: BTreeMap::new(),
            incarnations: 0,
            next: BTreeMap::new(),
            wires: BTreeSet::new(),
            told: Vec::new(),
        };
        bed.bind_all();
        (1..=clients).for_each(|client| bed.connect(client));
        bed
    }

    pub(crate) fn connect(&mut self, client: u16) {
        let first_psn = *self.next.entry(client).or_insert(Psn::new((1 << 24) - 2));
        let (client, memory) = (client_end(client), memory_end(client));
        assert!(self.switch.connect(Connection { client, memory, first_psn, region: REGION, base: BASE }));
        self.take_sent();
    }

    /// The bound queue pairs that are missing begin.
    pub(crate) fn bind_all(&mut self) {
        let missing: Vec<usize> = self.switch.unbound().collect();
        missing.into_iter().for_each(|at| self.begin_anew(at));
    }

    /// A bound queue pair begins, anew if there was one.
    pub(crate) fn begin_anew(&mut self, at: usize) {
        let number = |incarnations: u32| 300 + 100 * incarnations + at as u32;
        if let Some(incarnation) = self.bound.keys().copied().find(|key| key % 100 == at as u32) {
            self.bound.remove(&incarnation);
            self.wires.retain(|(to, ..)| *to != incarnation);
        }
        self.incarnations += 1;
        // Each incarnation is some numbers ahead of the one before.
        let first = ((1 << 24) - 2 + 4 * (self.incarnations - 1)) & 0xff_ffff;
        let end = |node, incarnations| End { node, queue_pair: QpNumber::new(number(incarnations)) };
        self.bound.insert(number(self.incarnations), Responder { expected: first, said: BTreeMap::new() });
        let (switch, memory) = (end(SWITCH, self.incarnations), end(MEMORY, self.incarnations));
        let first_psn = Psn::new(first);
        self.switch.bind(at, Bound { switch, memory, first_psn, region: REGION, base: BASE });
        self.take_sent();
    }

    /// A new incarnation of the switch. The memory's ends of bound queue pairs are reset before it has any.
    pub(crate) fn restart(&mut self) {
        self.switch.restart();
        self.bound.clear();
        self.wires.clear();
    }

    pub(crate) fn number(&mut self, client: u16) -> Psn {
        let next = self.next.entry(client).or_insert(Psn::new(7));
        let psn = *next;
        *next = psn.plus(1);
        psn
    }

    pub(crate) fn take_sent(&mut self) {
        while let Some(Sent { to, packet, word, .. }) = self.switch.next_sent() {
            match packet.extension {
                Extension::AethAtomic(_, reply) => {
                    self.told.push((to.0, packet.psn.get(), Reply::from_bits(reply)))
                }
                Extension::Atomic(atomic) => {
                    let unit = ((atomic.address - BASE) / 64) as u32;
                    let does = Does::Swap { unit, compare: atomic.compare, swap: atomic.swap_or_add };
                    self.wires.insert((packet.to.get(), packet.psn.get(), does));
                }
                Extension::Reth(reth) => {
                    assert_eq!((packet.opcode, to), (Opcode::WriteOnly, MEMORY));
                    assert_eq!(reth.length, if word.is_some() { 8 } else { 0 });
                    let unit = ((reth.address - BASE) / 64) as u32;
                    let does = word.map_or(Does::Nothing, |word| Does::Write { unit, word });
                    self.wires.insert((packet.to.get(), packet.psn.get(), does));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn pass(&mut self, to: NodeId, packet: &mut Packet, head: &[u8]) -> Action {
        let action = self.switch.on_packet(Nanos(1), to, packet, head);
        self.take_sent();
        action
    }

    /// The first step of an append, through to the memory.
    pub(crate) fn write(&mut self, client: u16, entry: Entry, key: u64) {
        let psn = self.number(client);
        let mut packet = write_packet(client, psn, entry);
        assert_eq!(self.pass(MEMORY, &mut packet, &head(entry, key)), Action::Forward);
        self.words.insert(entry.0, Word::tail(entry.version()));
    }

    /// A compare-and-swap comes to the switch: does something go on, in its own queue pair?
    pub(crate) fn ask(&mut self, client: u16, psn: Psn, tail: Entry, next: Next) -> Option<Packet> {
        let mut packet = swap_packet(client, psn, tail, Entry(1, 0));
        if let Extension::Atomic(atomic) = &mut packet.extension {
            atomic.swap_or_add = Word::tail(tail.version()).followed_by(next).to_bits();
        }
        (self.pass(MEMORY, &mut packet, &[]) == Action::Forward).then_some(packet)
    }

    /// What stands for it in the client's own queue pair is answered: what the client is told.
    pub(crate) fn fill(&mut self, client: u16, psn: Psn) -> Option<Reply> {
        let aeth = Aeth { syndrome: Syndrome::NO_CREDITS, messages: 1 };
        let to = client_end(client);
        let mut packet = Packet::new(Opcode::ReadResponseOnly, to.queue_pair, psn, Extension::Aeth(aeth));
        match self.pass(to.node, &mut packet, &[]) {
            Action::Drop | Action::Bare => None,
            Action::Forward => {
                let Extension::AethAtomic(_, word) = packet.extension else { panic!("{packet:?}") };
                assert_eq!(packet.opcode, Opcode::AtomicAcknowledge);
                Some(Reply::from_bits(word))
            }
        }
    }

    /// A packet comes to the memory.
    pub(crate) fn deliver(&mut self, (to, psn, does): Wire) {
        let Some(responder) = self.bound.get_mut(&to) else { return };
        if psn != responder.expected {
            return;
        }
        responder.expected = (psn + 1) & 0xff_ffff;
        let original = match does {
            Does::Nothing => None,
            Does::Write { unit, word } => {
                self.words.insert(unit, Word::from_bits(word).expect("a chain's word"));
                None
            }
            Does::Swap { unit, compare, swap } => {
                let word = self.words.get_mut(&unit).expect("a slot that was written");
                let found = word.to_bits();
                if found == compare {
                    *word = Word::from_bits(swap).expect("a chain's word");
                }
                Some(found)
            }
        };
        responder.said.insert(psn, original);
    }

    /// What the memory has said to a number comes to the switch.
    pub(crate) fn answer(&mut self, from: u32, psn: u32) {
        let original = self.bound[&from].said[&psn];
        let aeth = Aeth { syndrome: Syndrome::NO_CREDITS, messages: 1 };
        let (opcode, extension) = match original {
            Some(original) => (Opcode::AtomicAcknowledge, Extension::AethAtomic(aeth, original)),
            None => (Opcode::Acknowledge, Extension::Aeth(aeth)),
        };
        let mut packet = Packet::new(opcode, QpNumber::new(from), Psn::new(psn), extension);
        assert_eq!(self.pass(SWITCH, &mut packet, &[]), Action::Drop);
    }

    /// The memory asks for the number that it expects, or refuses something for good.
    pub(crate) fn nak(&mut self, from: u32, code: NakCode) {
        let aeth = Aeth { syndrome: Syndrome::Nak(code), messages: 1 };
        let psn = Psn::new(self.bound[&from].expected);
        let mut packet = Packet::new(Opcode::Acknowledge, QpNumber::new(from), psn, Extension::Aeth(aeth));
        if code != NakCode::SequenceError {
            self.bound.remove(&from);
            self.wires.retain(|(to, ..)| *to != from);
        }
        assert_eq!(self.pass(SWITCH, &mut packet, &[]), Action::Drop);
    }

    /// Everything that is in flight on bound queue pairs arrives, in its order, and so do the answers.
    pub(crate) fn settle(&mut self) {
        while self.arrive() {}
    }

    /// The next packet of a bound queue pair arrives, and its answer does. False if there is none.
    pub(crate) fn arrive(&mut self) -> bool {
        let due = self
            .wires
            .iter()
            .copied()
            .find(|(to, psn, _)| self.bound.get(to).is_some_and(|responder| responder.expected == *psn));
        let Some(wire) = due else { return false };
        self.deliver(wire);
        self.wires.remove(&wire);
        self.answer(wire.0, wire.1);
        true
    }

    /// An append, or a closing, and everything arrives: what the client is told, if anything.
    pub(crate) fn swap(&mut self, client: u16, tail: Entry, next: Next) -> Option<Reply> {
        let psn = self.number(client);
        self.ask(client, psn, tail, next)?;
        self.told.clear();
        let early = self.fill(client, psn);
        self.settle();
        let late = self.told.iter().find(|(whose, of, _)| (*whose, *of) == (client, psn.get()));
        early.or(late.map(|(.., reply)| *reply))
    }

    /// An atomic comes to the memory on its client's own queue pair: what the client is told.
    pub(crate) fn execute(&mut self, client: u16, packet: &Packet) -> Option<Reply> {
        let Extension::Atomic(atomic) = packet.extension else { panic!("{packet:?}") };
        let unit = ((atomic.address - BASE) / 64) as u32;
        let word = self.words.get_mut(&unit).expect("a slot that was written");
        let found = word.to_bits();
        if found == atomic.compare {
            *word = Word::from_bits(atomic.swap_or_add).expect("a chain's word");
        }
        let mut answer = crate::chains::rig::answer_packet(client, packet.psn, found);
        match self.pass(client_end(client).node, &mut answer, &[]) {
            Action::Drop | Action::Bare => None,
            Action::Forward => {
                let Extension::AethAtomic(_, word) = answer.extension else { panic!("{answer:?}") };
                Some(Reply::from_bits(word))
            }
        }
    }

    /// The entries of a chain from this one on.
    pub(crate) fn chain(&self, from: Entry) -> Vec<Entry> {
        crate::chains::rig::chain_in(&self.words, from)
    }
}
