//! The machine: packets of the store's connections go in, in both directions, and leave as they are, rewritten, or not at all.
//!
//! One thread owns it, in the switch's process. What must always hold: a packet that is not a step of an append leaves as it came.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use wire::chains::{EntryVersion, Reply};
use wire::roce::{Opcode, Packet, Psn};
use wire::{AllRules, Nanos, NodeId, Rule, Rules};

use super::binding::{Bound, Sent};
use super::config::SteeringConfig;
use super::connections::{Connection, Connections, End};
use super::counters::{Counters, Unsteered};
use super::deparser;
use super::expiry::Expiry;
use super::keys::Keys;
use super::layout::{Fields, WAYS, class};
use super::parser::{self, Seen};
use super::program::{self, Arrays, Sizes};
use super::waiting::Waiting;
use crate::pipeline::stage_map::PacketPasses;
use crate::pipeline::{BuildError, Phv, Plan, Program, StageMap};

/// What becomes of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Action {
    /// It goes on, as it is now.
    Forward,
    /// It goes on, as it is now, without its payload: an answer that became a refusal.
    Bare,
    /// It does not. Its receiver asks again.
    Drop,
}

/// The program, with its state.
#[derive(Clone, Debug)]
pub struct Steering<R: Rules = AllRules> {
    pub(super) rules: R,
    pub(super) config: SteeringConfig,
    pub(super) sizes: Sizes,
    pub(super) program: Program,
    /// The program for each kind of pass.
    plans: Arc<[Plan]>,
    pub(super) fields: Fields,
    pub(super) arrays: Arrays,
    pub(super) connections: Connections,
    pub(super) keys: Keys,
    pub(super) counters: Counters,
    pub(super) phv: Phv,
    /// Bound queue pairs, where they are made.
    pub(super) bound: Vec<Option<Bound>>,
    /// Packets of its own that wait to be sent.
    pub(super) sent: VecDeque<Sent>,
    /// Compare-and-swaps for which a bound queue pair has no capacity, in their order.
    pub(super) waiting: VecDeque<Waiting>,
    pub(super) expiry: Expiry,
    /// Until then, what reads bring to unknown peers may be of another incarnation; none: nobody has asked.
    pub(super) strange_until: Option<Nanos>,
    /// The connection that was made last: it says where the memory is.
    pub(super) last: Option<Connection>,
}

impl Steering {
    /// A program that knows nothing.
    ///
    /// # Errors
    /// If the chip cannot hold so much.
    pub fn new(config: &SteeringConfig) -> Result<Self, BuildError> {
        Self::with_rules(AllRules, config)
    }
}

impl<R: Rules> Steering<R> {
    /// A program in which some rules may not hold: for checkers.
    ///
    /// # Errors
    /// As for [`Steering::new`].
    ///
    /// # Panics
    /// If window, slots or atomics are no power of two, or too small, or there are more records than 24 bits can name.
    pub fn with_rules(rules: R, config: &SteeringConfig) -> Result<Self, BuildError> {
        assert!(config.window.is_power_of_two(), "the window is a power of two");
        assert!(config.slots.is_power_of_two() && config.slots >= 256, "256 cells for slots, or 512, ...");
        let records = config.connections * config.window as usize;
        assert!(records < 1 << 24, "a record has a number of 24 bits");
        let binding = config.binding;
        assert!(binding.window.is_power_of_two(), "a bound queue pair's window is a power of two");
        assert!(binding.atomics.is_power_of_two(), "so many atomics take turns: a power of two");
        assert!(config.window <= 1 << 15, "16 bits tell a connection's numbers apart");
        assert!(config.keys < 1 << 23, "an index has a number of 24 bits");
        let sizes = Sizes {
            connections: config.connections,
            slots: config.slots,
            records,
            bound: binding.queue_pairs,
            numbers: binding.window as usize,
            atomics: binding.atomics as usize,
            // The first way shares its stage with TAIL, and is half as long as the others.
            ways: [1, 2, 2].map(|part| (config.keys * part).div_ceil(5).max(1)),
        };
        let (program, fields, arrays) = program::build(rules, sizes)?;
        let plan = |class| program.plan(&[(fields.class, class)], &fields.results(), &[]);
        let plans: Result<_, _> = (0..=class::LAST).map(plan).collect();
        Ok(Self {
            plans: plans?,
            rules,
            config: *config,
            sizes,
            program,
            fields,
            arrays,
            connections: Connections::new(config.connections),
            keys: Keys::default(),
            counters: Counters::default(),
            phv: Phv::new(),
            bound: vec![None; binding.queue_pairs],
            sent: VecDeque::new(),
            waiting: VecDeque::new(),
            expiry: Expiry::default(),
            strange_until: None,
            last: None,
        })
    }

    // Packets.

    /// A packet passes on its way to a node, with these first bytes of its payload: 32, if it has so many.
    pub fn on_packet(&mut self, now: Nanos, to: NodeId, packet: &mut Packet, head: &[u8]) -> Action {
        self.counters.packets += 1;
        if self.rules.holds(Rule::KnowledgeExpires) && now >= self.expiry.at {
            self.expire(now);
        }
        let end = End { node: to, queue_pair: packet.to };
        if let Some(at) = self.bound.iter().position(|bound| bound.is_some_and(|bound| bound.switch == end)) {
            return self.on_bound(at, packet);
        }
        let is_bound = self.sizes.bound > 0;
        let Some(&(number, connection)) = self.connections.find(end) else {
            return self.pass_unknown_peer(now, packet, head);
        };
        let seen = parser::see(packet, head, &connection, self.config.reads);
        let Some(number) = number else {
            match seen {
                Seen::Write { unit, .. } if self.rules.holds(Rule::LastWriteCounts) => {
                    self.learn(class::LEARN, unit, [0; WAYS], [0; WAYS]);
                }
                Seen::Swap(_) if is_bound && self.rules.holds(Rule::AllAreBound) => {
                    return self.put_off(packet, Unsteered::Full);
                }
                Seen::Filled if is_bound => return self.indeterminate(packet),
                Seen::Swap(Some(_)) => self.counters.leave(Unsteered::Full),
                _ => {}
            }
            return Action::Forward;
        };
        match seen {
            Seen::Write { unit, version, key } if key != u64::MAX => {
                self.on_entry(number, packet.psn, unit, version, key);
                Action::Forward
            }
            Seen::Swap(append) if is_bound => {
                self.on_bound_swap(number, &connection, packet, append.is_some())
            }
            Seen::Filled if is_bound => self.on_filled(number, packet),
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
            Seen::Brought(entry) if self.config.reads_ahead => {
                self.on_brought(number, &connection, packet, entry)
            }
            Seen::Broken => {
                self.counters.broken += 1;
                self.disconnect(end);
                Action::Forward
            }
            Seen::Filled | Seen::Brought(_) | Seen::Other => Action::Forward,
        }
    }

    fn pass_unknown_peer(&mut self, now: Nanos, packet: &mut Packet, head: &[u8]) -> Action {
        // Its slots are not what they were.
        if let Some(connection) = self.last
            && let Seen::Write { unit, .. } = parser::see(packet, head, &connection, 0)
        {
            self.learn(class::LEARN, unit, [0; WAYS], [0; WAYS]);
        }
        match packet.opcode {
            Opcode::CompareSwap if self.sizes.bound > 0 && self.rules.holds(Rule::AllAreBound) => {
                return self.put_off(packet, Unsteered::UnknownPeer);
            }
            Opcode::ReadResponseOnly if self.sizes.bound > 0 && head.is_empty() => {
                return self.indeterminate(packet);
            }
            Opcode::ReadResponseOnly if !head.is_empty() => {
                return self.on_brought_to_unknown_peer(now, packet);
            }
            Opcode::CompareSwap => self.counters.leave(Unsteered::UnknownPeer),
            Opcode::AtomicAcknowledge if self.rules.holds(Rule::AppendsOfUnknownPeersAreIndeterminate) => {
                self.counters.indeterminate += 1;
                deparser::reply(packet, Reply::Indeterminate);
            }
            _ => {}
        }
        Action::Forward
    }

    pub(super) fn pass(&mut self, class: u64, parse: impl FnOnce(&Fields, &mut Phv)) {
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
    pub const fn config(&self) -> &SteeringConfig {
        &self.config
    }

    /// The program's resource use on the chip.
    pub fn stage_map(&self) -> StageMap {
        let passes = [
            ("WRITE of an entry", 2),
            ("CmpSwap", 1),
            ("READ, or another request", 1),
            ("what a READ brings", 1),
            ("what a READ that was sent to a tail that was not acknowledged brings", 2),
            ("of those, the ones that are sent once more", 3),
            ("atomic acknowledgement without a record", 1),
            ("of an append that was not steered, or behind one that was acknowledged", 2),
            ("of an append behind one that was not acknowledged yet", 3),
            ("bound: CmpSwap that becomes a WRITE", 4),
            ("bound: CmpSwap", 6),
            ("bound: answer to what stands for it", 2),
            ("bound: answer on the bound queue pair", 3),
            ("bound: of an append behind one that was not acknowledged yet", 4),
        ];
        let passes = passes.map(|(packet, passes)| PacketPasses { packet: packet.into(), passes });
        StageMap { passes: passes.into(), ..self.program.stage_map().clone() }
    }
}

pub(super) fn number_of(f: &Fields, phv: &mut Phv, number: usize, psn: Psn) {
    phv.set(f.connection, number as u64);
    phv.set(f.sequence, u64::from(psn.get()) << 8);
}

pub(super) fn mark(compared: EntryVersion, state: u64) -> u64 {
    u64::from(compared.0) << 8 | state
}
