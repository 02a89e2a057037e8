//! Clients and a memory of words on both sides of the program, packet by packet, without NICs: the memory executes each number of a
//! connection once, and replays what it has said.

use std::collections::BTreeMap;

use switch::chains::{Action, Connection, End, Steering, SteeringConfig};
use wire::chains::{Class, EntryHead, EntryKind, EntryVersion, Location, Next, Reply, Word};
use wire::roce::{Aeth, AtomicEth, Extension, Key, NakCode, Opcode, Packet, Psn, QpNumber, Reth, Syndrome};
use wire::{Nanos, NodeId, Rules};

pub(crate) const MEMORY: NodeId = NodeId(0);
pub(crate) const REGION: Key = Key(0x501);
pub(crate) const BASE: u64 = 0x7f00_0000_0000;

/// An entry: in a slot of 64 bytes at this unit, in this use of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Entry(pub(crate) u32, pub(crate) u8);

impl Entry {
    pub(crate) fn at(self) -> Location {
        Location::new(Class::new(0).unwrap(), self.0)
    }

    pub(crate) const fn version(self) -> EntryVersion {
        EntryVersion(self.1)
    }

    pub(crate) fn next(self) -> Next {
        Next::Entry(self.at(), self.version())
    }
}

/// What becomes of what a READ has brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Brought {
    Passed,
    /// It was dropped, and the READ is sent again, to this entry.
    Again(Entry),
    /// It became a refusal: the connection ends.
    Refused,
}

#[derive(Clone)]
pub(crate) struct Rig<R: Rules> {
    pub(crate) switch: Steering<R>,
    /// The first word of each slot that was written.
    pub(crate) words: BTreeMap<u32, Word>,
    /// What was said to each connection's atomics.
    said: BTreeMap<(u16, u32), u64>,
    next: BTreeMap<u16, Psn>,
    pub(crate) now: Nanos,
}

pub(crate) fn client_end(client: u16) -> End {
    End { node: NodeId(client), queue_pair: QpNumber::new(100 + u32::from(client)) }
}

pub(crate) fn memory_end(client: u16) -> End {
    End { node: MEMORY, queue_pair: QpNumber::new(200 + u32::from(client)) }
}

impl<R: Rules> Rig<R> {
    /// Some clients, numbered from 1, and no key that is held.
    pub(crate) fn new(rules: R, clients: u16, keys: usize) -> Self {
        Self::with(rules, clients, keys, |_| {})
    }

    /// The same, with something changed in the switch's configuration.
    pub(crate) fn with(
        rules: R,
        clients: u16,
        keys: usize,
        change: impl FnOnce(&mut SteeringConfig),
    ) -> Self {
        let mut config = SteeringConfig {
            keys,
            top: 0,
            connections: usize::from(clients),
            window: 8,
            slots: 256,
            lifetime: Nanos(1_000),
            reads: 1_024,
            ..SteeringConfig::default()
        };
        change(&mut config);
        let mut rig = Self {
            switch: Steering::with_rules(rules, &config).unwrap(),
            words: BTreeMap::new(),
            said: BTreeMap::new(),
            next: BTreeMap::new(),
            now: Nanos(1),
        };
        (1..=clients).for_each(|client| rig.connect(client));
        rig
    }

    pub(crate) fn connect(&mut self, client: u16) {
        let first_psn = *self.next.entry(client).or_insert(Psn::new((1 << 24) - 2));
        let (client, memory) = (client_end(client), memory_end(client));
        assert!(self.switch.connect(Connection { client, memory, first_psn, region: REGION, base: BASE }));
    }

    pub(crate) fn number(&mut self, client: u16) -> Psn {
        let next = self.next.get_mut(&client).unwrap();
        let psn = *next;
        *next = psn.plus(1);
        psn
    }

    /// The first step of an append, through to the memory.
    pub(crate) fn write(&mut self, client: u16, entry: Entry, key: u64) {
        let psn = self.number(client);
        let mut packet = write_packet(client, psn, entry);
        let head = head(entry, key);
        assert_eq!(self.switch.on_packet(self.now, MEMORY, &mut packet, &head), Action::Forward);
        self.words.insert(entry.0, Word::tail(entry.version()));
    }

    /// The second step, behind what the client takes for the tail: what it is told, if anything.
    pub(crate) fn swap(&mut self, client: u16, tail: Entry, entry: Entry) -> Option<Reply> {
        let psn = self.number(client);
        self.swap_as(client, psn, tail, entry)
    }

    pub(crate) fn swap_as(&mut self, client: u16, psn: Psn, tail: Entry, entry: Entry) -> Option<Reply> {
        let packet = self.pass_to_memory(client, psn, tail, entry);
        let original = self.execute(client, &packet);
        self.pass_to_client(client, psn, original)
    }

    /// A client reads an entry: which one does it get?
    pub(crate) fn read(&mut self, client: u16, entry: Entry) -> Entry {
        let (psn, mut at) = self.ask_for(client, entry);
        loop {
            match self.bring(client, psn, at) {
                Brought::Passed => return at,
                Brought::Again(to) => at = to,
                Brought::Refused => panic!("{client} is known, and has read {entry:?}"),
            }
        }
    }

    /// A READ passes the switch: its number, and the entry that it is sent to.
    pub(crate) fn ask_for(&mut self, client: u16, entry: Entry) -> (Psn, Entry) {
        let psn = self.number(client);
        (psn, self.ask_for_as(client, psn, entry))
    }

    pub(crate) fn ask_for_as(&mut self, client: u16, psn: Psn, entry: Entry) -> Entry {
        let reth = Reth { address: BASE + entry.at().offset(), key: REGION, length: 64 };
        let mut packet =
            Packet::new(Opcode::ReadRequest, memory_end(client).queue_pair, psn, Extension::Reth(reth));
        assert_eq!(self.switch.on_packet(self.now, MEMORY, &mut packet, &[]), Action::Forward);
        self.sent_to(&packet)
    }

    /// What is at the place that a READ is sent to.
    fn sent_to(&self, packet: &Packet) -> Entry {
        let Extension::Reth(reth) = packet.extension else { panic!("{packet:?}") };
        assert_eq!((reth.key, reth.length), (REGION, 64));
        let unit = ((reth.address - BASE) / 64) as u32;
        Entry(unit, self.words.get(&unit).map_or(0, |word| word.entry.0))
    }

    /// A READ brings this entry: what does the switch make of it?
    pub(crate) fn bring(&mut self, client: u16, psn: Psn, entry: Entry) -> Brought {
        let aeth = Aeth { syndrome: Syndrome::NO_CREDITS, messages: 1 };
        let to = client_end(client);
        let mut packet = Packet::new(Opcode::ReadResponseOnly, to.queue_pair, psn, Extension::Aeth(aeth));
        match self.switch.on_packet(self.now, to.node, &mut packet, &head(entry, 7)) {
            Action::Forward => Brought::Passed,
            Action::Bare => {
                let Extension::Aeth(Aeth { syndrome, .. }) = packet.extension else { panic!("{packet:?}") };
                assert_eq!((packet.opcode, packet.psn), (Opcode::Acknowledge, psn));
                assert_eq!(syndrome, Syndrome::Nak(NakCode::RemoteOperation));
                Brought::Refused
            }
            Action::Drop => {
                let sent = self.switch.next_sent().expect("what was read is not lost");
                assert_eq!((sent.from, sent.to, sent.packet.psn), (to.node, MEMORY, psn));
                assert_eq!(sent.packet.to, memory_end(client).queue_pair);
                Brought::Again(self.sent_to(&sent.packet))
            }
        }
    }

    /// A compare-and-swap passes the switch: as it leaves.
    pub(crate) fn pass_to_memory(&mut self, client: u16, psn: Psn, tail: Entry, entry: Entry) -> Packet {
        let mut packet = swap_packet(client, psn, tail, entry);
        assert_eq!(self.switch.on_packet(self.now, MEMORY, &mut packet, &[]), Action::Forward);
        packet
    }

    /// It comes to the memory: what that says.
    pub(crate) fn execute(&mut self, client: u16, packet: &Packet) -> u64 {
        if let Some(said) = self.said.get(&(client, packet.psn.get())) {
            return *said;
        }
        let Extension::Atomic(AtomicEth { address, compare, swap_or_add, key }) = packet.extension else {
            panic!("{packet:?}")
        };
        assert_eq!(key, REGION);
        let word = self.words.get_mut(&(((address - BASE) / 64) as u32)).expect("a slot that was written");
        let found = word.to_bits();
        if found == compare {
            *word = Word::from_bits(swap_or_add).expect("a chain's word");
        }
        self.said.insert((client, packet.psn.get()), found);
        found
    }

    /// Its answer passes the switch: what the client is told.
    pub(crate) fn pass_to_client(&mut self, client: u16, psn: Psn, original: u64) -> Option<Reply> {
        let mut packet = answer_packet(client, psn, original);
        match self.switch.on_packet(self.now, NodeId(client), &mut packet, &[]) {
            Action::Drop | Action::Bare => None,
            Action::Forward => {
                let Extension::AethAtomic(_, word) = packet.extension else { panic!("{packet:?}") };
                Some(Reply::from_bits(word))
            }
        }
    }

    pub(crate) fn said(&self, client: u16, psn: u32) -> Option<u64> {
        self.said.get(&(client, psn)).copied()
    }

    pub(crate) fn all_said(&self) -> impl Iterator<Item = u64> {
        self.said.iter().flat_map(|((client, psn), said)| [u64::from(*client) << 32 | u64::from(*psn), *said])
    }

    /// The entries of a chain from this one on.
    pub(crate) fn chain(&self, from: Entry) -> Vec<Entry> {
        chain_in(&self.words, from)
    }
}

/// The entries of the chain that begins with this one, in memory with these words.
pub(crate) fn chain_in(words: &BTreeMap<u32, Word>, from: Entry) -> Vec<Entry> {
    let mut entries = vec![from];
    let mut at = from;
    while let Some(Word { next: Next::Entry(next, version), .. }) = words.get(&at.0) {
        at = Entry(next.unit(), version.0);
        if entries.contains(&at) || words[&at.0].entry != *version {
            break;
        }
        entries.push(at);
    }
    entries
}

pub(crate) fn head(entry: Entry, key: u64) -> Vec<u8> {
    let (word, at) = (Word::tail(entry.version()), entry.at());
    let head = EntryHead { word, key, at, len: 8, kind: EntryKind::Value };
    head.to_words().into_iter().chain([key]).flat_map(u64::to_le_bytes).collect()
}

pub(crate) fn write_packet(client: u16, psn: Psn, entry: Entry) -> Packet {
    let reth = Reth { address: BASE + entry.at().offset(), key: REGION, length: 32 };
    Packet::new(Opcode::WriteOnly, memory_end(client).queue_pair, psn, Extension::Reth(reth))
}

pub(crate) fn swap_packet(client: u16, psn: Psn, tail: Entry, entry: Entry) -> Packet {
    let expected = Word::tail(tail.version());
    let word = AtomicEth {
        address: BASE + tail.at().offset(),
        key: REGION,
        swap_or_add: expected.followed_by(entry.next()).to_bits(),
        compare: expected.to_bits(),
    };
    Packet::new(Opcode::CompareSwap, memory_end(client).queue_pair, psn, Extension::Atomic(word))
}

pub(crate) fn answer_packet(client: u16, psn: Psn, original: u64) -> Packet {
    let aeth = Aeth { syndrome: Syndrome::NO_CREDITS, messages: 1 };
    let extension = Extension::AethAtomic(aeth, original);
    Packet::new(Opcode::AtomicAcknowledge, client_end(client).queue_pair, psn, extension)
}
