//! The machine: packets of the store's connections go in, in both directions, and leave as they are, rewritten, or not at all.
//!
//! One thread owns it, in the switch's process. What must always hold: a packet that is not a step of an append leaves as it came.

use alloc::sync::Arc;
use core::marker::PhantomData;

use wire::chain::{EntryVersion, Location, Reply, Word};
use wire::roce::{Key, Opcode, Packet, Psn};
use wire::{Faithful, Nanos, NodeId, SteerRules};

use super::connections::{Connection, Connections, End};
use super::counters::{Counters, Unsteered};
use super::deparser;
use super::expiry::Expiry;
use super::keys::{self, Keys};
use super::layout::{self, Fields, WAYS, class, state, verdict};
use super::parser::{self, Append, Seen};
use super::program::{self, Arrays, Sizes};
use crate::pipeline::stage_map::PacketPasses;
use crate::pipeline::{BuildError, Phv, Plan, Program, StageMap};

/// Where a WRITE's payload says whose entry it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyAt {
    /// In the entry's head.
    Head,
    /// In the first eight bytes of the value, as the published prototype expects it.
    Value,
}

impl KeyAt {
    pub(super) const fn offset(self) -> usize {
        match self {
            Self::Head => 8,
            Self::Value => wire::chain::ENTRY_HEAD as usize,
        }
    }
}

/// What the program is built for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Places for keys. None: nothing is steered.
    pub keys: usize,
    /// The hottest keys that are held; 0 is the store without steering, and as many as there are places is all that fit.
    pub top: usize,
    /// Connections that are steered; those of others pass as they are.
    pub connections: usize,
    /// Numbers that a requester has under way at most (its window, and the packets of one READ request): a power of two.
    pub window: u32,
    /// Cells for entries that are outstanding: a power of two, 256 or more.
    pub slots: usize,
    /// Where the key is.
    pub key_at: KeyAt,
    /// Reads of so many bytes at most are sent to the tail, too: no more than a packet carries, or a value would be put together of two.
    /// 0: none. Clients must expect it, and slots must rest for longer than a cursor counts, and `lifetime`, and a request is under way.
    pub reads: u32,
    /// How long the switch may take what it knows of tails for true: less than it takes to use a slot 256 times, each with a rest.
    pub lifetime: Nanos,
    /// The same of whose entry was written to a slot, in such times: reads are not made wrong by that, and need it for longer.
    pub slot_lifetimes: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            keys: 100_000,
            top: usize::MAX,
            connections: 64,
            window: 256,
            slots: 1 << 14,
            key_at: KeyAt::Head,
            reads: 0,
            lifetime: Nanos::from_millis(1000),
            slot_lifetimes: 1,
        }
    }
}

/// What becomes of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Action {
    /// It goes on, as it is now.
    Forward,
    /// It does not. Its receiver asks again.
    Drop,
}

/// The program, with its state.
#[derive(Clone, Debug)]
pub struct Steering<R: SteerRules = Faithful> {
    rules: PhantomData<R>,
    pub(super) config: Config,
    pub(super) sizes: Sizes,
    pub(super) program: Program,
    /// The program for each kind of pass.
    plans: Arc<[Plan]>,
    pub(super) fields: Fields,
    pub(super) arrays: Arrays,
    pub(super) connections: Connections,
    pub(super) keys: Keys,
    pub(super) counters: Counters,
    phv: Phv,
    pub(super) expiry: Expiry,
    /// The connection that was made last: it says where the memory is.
    last: Option<Connection>,
}

impl Steering {
    /// A program that knows nothing.
    ///
    /// # Errors
    /// If the chip cannot hold so much.
    pub fn new(config: &Config) -> Result<Self, BuildError> {
        Self::with_rules(config)
    }
}

impl<R: SteerRules> Steering<R> {
    /// A program in which some rules may not hold: for checkers.
    ///
    /// # Errors
    /// As for [`Steering::new`].
    ///
    /// # Panics
    /// If window or slots are no power of two, or too small, or there are more records than 24 bits can name.
    pub fn with_rules(config: &Config) -> Result<Self, BuildError> {
        assert!(config.window.is_power_of_two(), "the window is a power of two");
        assert!(config.slots.is_power_of_two() && config.slots >= 256, "256 cells for slots, or 512, ...");
        let records = config.connections * config.window as usize;
        assert!(records < 1 << 24, "a record has a number of 24 bits");
        assert!(config.keys < 1 << 23, "a place has a number of 24 bits");
        let sizes = Sizes {
            connections: config.connections,
            slots: config.slots,
            records,
            // The first way shares its stage with TAIL, and is half as long as the others.
            ways: [1, 2, 2].map(|part| (config.keys * part).div_ceil(5).max(1)),
        };
        let (program, fields, arrays) = program::build::<R>(sizes)?;
        let plan = |class| program.plan(&[(fields.class, class)], &fields.results());
        let plans: Result<_, _> = (0..=class::LAST).map(plan).collect();
        Ok(Self {
            plans: plans?,
            rules: PhantomData,
            config: *config,
            sizes,
            program,
            fields,
            arrays,
            connections: Connections::new(config.connections),
            keys: Keys::default(),
            counters: Counters::default(),
            phv: Phv::new(),
            expiry: Expiry::default(),
            last: None,
        })
    }

    // The control plane.

    /// A connection begins, before its first packet; one without a region (key 0) passes as it is. False if there is no number left for it: then its packets pass as they are.
    pub fn connect(&mut self, connection: Connection) -> bool {
        self.disconnect(connection.client);
        self.disconnect(connection.memory);
        if connection.region != Key(0) {
            self.last = Some(connection);
        }
        let number = self.connections.add(connection);
        if let Some(number) = number {
            let next = u64::from(connection.first_psn.get()) << 8 | 1;
            self.program.set_cell(self.arrays.numbers, number, next);
        }
        number.is_some()
    }

    /// Reads of this client are never sent elsewhere: it follows chains entry by entry, as the metadata server does. Until it is connected
    /// anew.
    pub fn read_as_asked(&mut self, client: End) {
        self.connections.read_as_asked(client);
    }

    /// The connection of this end is over. Who stands behind its appends cannot be told what became of them.
    pub fn disconnect(&mut self, end: End) {
        let Some(number) = self.connections.remove(end) else { return };
        self.program.set_cell(self.arrays.numbers, number, 0);
        let first = self.record(number, Psn::new(0)) as usize;
        let records = first..first + self.config.window as usize;
        let Arrays { appends, of_keys, behind, states, tails, .. } = self.arrays;
        for record in records.clone() {
            for array in [appends, of_keys, behind, states] {
                self.program.set_cell(array, record, 0);
            }
        }
        for place in 1..=self.sizes.places() {
            let tail = self.program.cell(tails, place).and_then(layout::parse_tail);
            if tail.is_some_and(|(.., record)| records.contains(&(record as usize))) {
                self.program.set_cell(tails, place, 0);
            }
        }
        // Its client may use its slots for other keys, without being seen.
        self.forget_outstanding();
    }

    /// Somebody has found this entry at the end of a key's chain, not long ago: it is taken for the tail, if none is known. If it is none
    /// any more, the next append is refused, and that ends it. False if the key has no place, or its tail is known.
    pub fn preload(&mut self, key: u64, at: Location, version: EntryVersion) -> bool {
        if !self.admit(key) {
            return false;
        }
        let place = self.keys.place(key).expect("it was let in") as usize;
        let is_unknown = self.program.cell(self.arrays.tails, place) == Some(0);
        if is_unknown {
            self.program.set_cell(self.arrays.tails, place, layout::tail(at, version, 0));
            self.counters.preloaded += 1;
        }
        is_unknown
    }

    /// A new life of the switch: nothing is known, and nobody.
    pub fn restart(&mut self) {
        self.program.clear();
        self.connections = Connections::new(self.config.connections);
        self.keys.clear();
        self.expiry = Expiry::default();
    }

    // Packets.

    /// A packet passes on its way to a node, with these first bytes of its payload: 32, if it has so many.
    pub fn on_packet(&mut self, now: Nanos, to: NodeId, packet: &mut Packet, head: &[u8]) -> Action {
        self.counters.packets += 1;
        if R::KNOWLEDGE_EXPIRES && now >= self.expiry.at {
            self.expire(now);
        }
        let end = End { node: to, queue_pair: packet.to };
        let Some(&(number, connection)) = self.connections.find(end) else {
            return self.pass_stranger(packet, head);
        };
        let seen = parser::see(packet, head, &connection, self.config.key_at, self.config.reads);
        let Some(number) = number else {
            match seen {
                Seen::Write { unit, .. } if R::LAST_WRITE_COUNTS => {
                    self.learn(class::LEARN, unit, [0; WAYS], [0; WAYS]);
                }
                Seen::Swap(Some(_)) => self.counters.leave(Unsteered::NoRoom),
                _ => {}
            }
            return Action::Forward;
        };
        match seen {
            Seen::Write { unit, version, key } if key != u64::MAX => {
                self.on_entry(number, packet.psn, unit, version, key);
                Action::Forward
            }
            Seen::Swap(append) => {
                self.on_swap(number, &connection, packet, append);
                Action::Forward
            }
            Seen::Read(at) => {
                self.on_read(number, &connection, packet, at);
                Action::Forward
            }
            Seen::Write { .. } | Seen::Request => {
                self.pass(class::REQUEST, |f, phv| number_of(f, phv, number, packet.psn));
                Action::Forward
            }
            Seen::Answer(original) => self.on_answer(number, packet, original),
            Seen::Broken => {
                self.counters.broken += 1;
                self.disconnect(end);
                Action::Forward
            }
            Seen::Other => Action::Forward,
        }
    }

    fn pass_stranger(&mut self, packet: &mut Packet, head: &[u8]) -> Action {
        // Its slots are not what they were.
        if let Some(connection) = self.last
            && let Seen::Write { unit, .. } = parser::see(packet, head, &connection, self.config.key_at, 0)
        {
            self.learn(class::LEARN, unit, [0; WAYS], [0; WAYS]);
        }
        match packet.opcode {
            Opcode::CompareSwap => self.counters.leave(Unsteered::Stranger),
            Opcode::AtomicAcknowledge if R::STRANGERS_ARE_DOUBTED => {
                self.counters.doubted += 1;
                deparser::reply(packet, Reply::Doubted);
            }
            _ => {}
        }
        Action::Forward
    }

    fn pass(&mut self, class: u64, parse: impl FnOnce(&Fields, &mut Phv)) {
        self.phv.clear();
        self.phv.set(self.fields.class, class);
        // What no pass names is beyond its array.
        for cell in [self.fields.connection, self.fields.slot, self.fields.record] {
            self.phv.set(cell, u64::MAX);
        }
        for cell in self.fields.sets {
            self.phv.set(cell, u64::MAX);
        }
        parse(&self.fields, &mut self.phv);
        #[cfg(test)]
        let as_written = (self.program.clone(), self.phv.clone());
        let plan = &self.plans[usize::try_from(class).expect("there are few classes")];
        self.program.run_plan(plan, &mut self.phv);
        self.counters.passes += 1;
        #[cfg(test)]
        self.compare(as_written);
    }

    /// The pass that was made by its plan did what the program does as it was written.
    #[cfg(test)]
    fn compare(&self, (mut program, mut phv): (Program, Phv)) {
        program.run(&mut phv);
        assert_eq!(program.all_cells(), self.program.all_cells());
        for field in self.fields.results() {
            assert_eq!(phv.get(field), self.phv.get(field), "{field:?}");
        }
    }

    /// An entry is on its way to its slot.
    fn on_entry(&mut self, number: usize, psn: Psn, unit: u32, version: EntryVersion, key: u64) {
        let (sizes, bits) = (self.sizes, self.sizes.slots.trailing_zeros());
        let cells = keys::cells(key, &sizes.ways);
        self.pass(class::WRITE, |f, phv| {
            number_of(f, phv, number, psn);
            phv.set(f.key, !key);
            for (field, cell) in f.sets.into_iter().zip(cells) {
                phv.set(field, cell as u64);
            }
        });
        let f = &self.fields;
        let is_new = self.phv.get(f.new) != 0 || !R::NUMBERS_ARE_NEW;
        let held = f.hit.map(|hit| self.phv.get(hit));
        let tag = layout::outstanding(unit, version, bits);
        let places: [u32; WAYS] = core::array::from_fn(|way| sizes.place(way, cells[way]));
        let candidates = places.map(|place| tag | u64::from(place));
        match held.iter().position(|held| *held == 1) {
            Some(way) if is_new => {
                self.keys.name(places[way]);
                self.counters.learned += 1;
                self.learn(class::LEARN, unit, held, candidates);
            }
            _ if !R::LAST_WRITE_COUNTS => {}
            // Where no way holds the key, this leaves nothing.
            _ => self.learn(if is_new { class::LEARN } else { class::KEEP }, unit, held, candidates),
        }
        if is_new {
            self.on_write(key, held.contains(&1));
        }
    }

    fn learn(&mut self, class: u64, unit: u32, held: [u64; WAYS], candidates: [u64; WAYS]) {
        let slot = layout::slot(unit, self.sizes.slots.trailing_zeros());
        self.pass(class, |f, phv| {
            phv.set(f.slot, slot);
            for way in 0..WAYS {
                phv.set(f.held[way], held[way]);
                phv.set(f.candidates[way], candidates[way]);
            }
        });
    }

    /// An atomic on its way to the memory.
    fn on_swap(
        &mut self,
        number: usize,
        connection: &Connection,
        packet: &mut Packet,
        append: Option<Append>,
    ) {
        let (psn, record) = (packet.psn, self.record(number, packet.psn));
        let bits = self.sizes.slots.trailing_zeros();
        self.pass(class::SWAP, |f, phv| {
            number_of(f, phv, number, psn);
            phv.set(f.record, u64::from(record));
            if let Some(Append { at, version, compared }) = append {
                phv.set(f.slot, layout::slot(at.unit(), bits));
                phv.set(f.outstanding, layout::outstanding(at.unit(), version, bits));
                phv.set(f.append, layout::append(at, version, psn));
                phv.set(f.tail, layout::tail(at, version, record));
                phv.set(f.mark, mark(compared, state::PENDING));
            }
        });
        let Some(append) = append else { return };
        let (f, phv) = (&self.fields, &self.phv);
        let is_new = phv.get(f.new) != 0 || !R::NUMBERS_ARE_NEW;
        let (is_known, behind) = if is_new {
            (phv.get(f.place) != 0, phv.get(f.before))
        } else {
            let is_recorded = phv.get(f.same) != 0 && phv.get(f.of_key) != 0 && R::REPEATS_ARE_ALIKE;
            (is_recorded, phv.get(f.behind))
        };
        match (is_known, is_new, layout::parse_tail(behind)) {
            (true, _, Some((to, version, _))) => {
                let before = packet.extension;
                deparser::steer::<R>(packet, connection.base, (to, version), &append);
                self.counters.moved += u64::from(is_new && packet.extension != before);
                *(if is_new { &mut self.counters.steered } else { &mut self.counters.repeated }) += 1;
            }
            (true, true, None) => self.counters.leave(Unsteered::TailUnknown),
            (false, true, _) => self.counters.leave(Unsteered::NotOutstanding),
            (_, false, _) => self.counters.leave(Unsteered::NotNew),
        }
    }

    /// An entry is read that may not be the tail any more. What a read brings says itself what it is, so reads leave no record.
    fn on_read(&mut self, number: usize, connection: &Connection, packet: &mut Packet, at: Location) {
        let psn = packet.psn;
        let bits = self.sizes.slots.trailing_zeros();
        self.pass(class::READ, |f, phv| {
            number_of(f, phv, number, psn);
            phv.set(f.slot, layout::slot(at.unit(), bits));
            phv.set(f.outstanding, layout::appended(at.unit(), bits));
        });
        let tail = layout::parse_tail(self.phv.get(self.fields.before));
        if let Some((to, _, record)) = tail
            && (record == 0 || !R::READS_TAKE_WHAT_IS_ACKNOWLEDGED)
            && to.class() == at.class()
            && to != at
            && !self.connections.reads_as_asked(connection.client)
        {
            deparser::read(packet, connection.base, to);
            self.counters.reads += 1;
        }
    }

    /// What the memory says to an atomic.
    fn on_answer(&mut self, number: usize, packet: &mut Packet, original: u64) -> Action {
        let record = self.record(number, packet.psn);
        self.pass(class::ANSWER, |f, phv| phv.set(f.record, u64::from(record)));
        let (f, phv) = (&self.fields, &self.phv);
        let place = phv.get(f.of_key);
        let Some((at, version, psn)) = layout::parse_append(phv.get(f.appended)).filter(|_| place != 0)
        else {
            return Action::Forward;
        };
        let (found_state, behind) = (phv.get(f.found_state), phv.get(f.behind));
        let compared = EntryVersion((found_state >> 8) as u8);
        let front = layout::parse_tail(behind);
        let mut found = (0, 0);
        if let Some((at, version, 0)) = front {
            found = (layout::entry(at, version), state::APPENDED);
        } else if let Some((.., record)) = front {
            self.pass(class::FRONT, |f, phv| phv.set(f.record, u64::from(record)));
            let (f, phv) = (&self.fields, &self.phv);
            let entry = layout::parse_append(phv.get(f.appended))
                .map_or(0, |(at, version, _)| layout::entry(at, version));
            found = (entry, phv.get(f.found_state) & 0xff);
        }
        let expected = Word::tail(front.map_or(compared, |(_, version, _)| version));
        self.pass(class::SETTLE, |f, phv| {
            phv.set(f.record, u64::from(record));
            phv.set(f.number, u64::from(packet.psn.get()));
            phv.set(f.recorded_number, u64::from(psn.get()));
            phv.set(f.original, original);
            phv.set(f.expected, expected.to_bits());
            phv.set(f.front, front.map_or(0, |(at, version, _)| layout::entry(at, version)));
            phv.set(f.found_front, found.0);
            phv.set(f.front_state, found.1);
            phv.set(f.native, u64::from(front.is_none()));
            phv.set(f.state, found_state & 0xff);
            for (field, state) in f.marks.into_iter().zip([state::APPENDED, state::FAILED, state::LOST]) {
                phv.set(field, mark(compared, state));
            }
            phv.set(f.place, place);
            // What is learned has been acknowledged.
            phv.set(f.tail, layout::tail(at, version, if front.is_none() { 0 } else { record }));
        });
        let said = self.phv.get(self.fields.verdict);
        if said == verdict::AGAIN && place != self.nowhere() {
            let bits = self.sizes.slots.trailing_zeros();
            let candidate = layout::outstanding(at.unit(), version, bits) | place;
            self.learn(class::LEARN, at.unit(), [1, 0, 0], [candidate, 0, 0]);
        }
        let is_taught = self.phv.get(self.fields.tail_op) == layout::op::TEACH;
        self.counters.tails += u64::from(is_taught);
        let (reply, count) = match (said, front) {
            (verdict::STEERED, Some((at, version, _))) => {
                (Reply::Steered(at, version), &mut self.counters.appended)
            }
            (verdict::REFUSED, _) => (Reply::Refused, &mut self.counters.refused),
            (verdict::DOUBTED, _) => (Reply::Doubted, &mut self.counters.doubted),
            (verdict::WAIT, _) => {
                self.counters.waited += 1;
                return Action::Drop;
            }
            _ => return Action::Forward,
        };
        *count += 1;
        if R::ORIGINAL_IS_REWRITTEN {
            deparser::reply(packet, reply);
        }
        Action::Forward
    }

    /// The record of a connection's packet with this number.
    pub(super) const fn record(&self, number: usize, psn: Psn) -> u32 {
        let window = self.config.window;
        number as u32 * window + (psn.get() & (window - 1)) + 1
    }

    /// What was counted.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What it was built for.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// What the program uses of the chip.
    pub fn stage_map(&self) -> StageMap {
        let passes = [
            ("WRITE of an entry", 2),
            ("CmpSwap", 1),
            ("READ, or another request", 1),
            ("atomic acknowledgement without a record", 1),
            ("of an append that was not steered, or behind one that was acknowledged", 2),
            ("of an append behind one that was not acknowledged yet", 3),
        ];
        let passes = passes.map(|(packet, passes)| PacketPasses { packet: packet.into(), passes });
        StageMap { passes: passes.into(), ..self.program.stage_map().clone() }
    }
}

fn number_of(f: &Fields, phv: &mut Phv, number: usize, psn: Psn) {
    phv.set(f.connection, number as u64);
    phv.set(f.sequence, u64::from(psn.get()) << 8);
}

fn mark(compared: EntryVersion, state: u64) -> u64 {
    u64::from(compared.0) << 8 | state
}
