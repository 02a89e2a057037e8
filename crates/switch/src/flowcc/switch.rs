//! The machine: packets in, effects out.
//!
//! # Passes
//! Requests take one pass. An UNLOCK takes a second one, because the score lies behind the locks; so does an
//! ADD-TO-SWITCH that found room, because the first empty way is known only behind the last. Other packets may
//! run between the two, so the second pass trusts nothing but what it carries:
//! - LAST-UNLOCK keeps duplicates of a request from taking the lock between its unlock's passes.
//! - An ADD leaves a CLAIMING mark in its event's score on its first pass. A second copy that finds the mark is
//!   dropped: if both went on, and a way became empty in between, they could claim two ways for one tag. The
//!   first copy answers, and a copy that comes after that gets the same answer.
//! - An UNLOCK whose score is 0 has nothing to release and is acknowledged in its first pass. If it were sent
//!   through again, a duplicate could be acknowledged meanwhile, the next event of that parity begin, and lose
//!   its score to the late second pass.
//!
//! The driver feeds every [`Effect::Resubmit`] back, once.

use alloc::vec::Vec;

use wire::{Packet, SwitchEpoch};

use super::counters::Counters;
use super::layout::{Fields, WAYS, tag_op};
use super::program::{self, Arrays};
use super::{deparser, parser};
use crate::pipeline::stage_map::PacketPasses;
use crate::pipeline::{BuildError, Phv, Program, StageMap, alu};

/// What a switch is built for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Nodes of the rack, 1 to 64.
    pub nodes: usize,
    /// Entries of the directory; rounded up to whole sets of 7.
    pub entries: usize,
    /// The switch's life: packets of another one are dropped.
    pub epoch: SwitchEpoch,
}

impl Config {
    /// The paper's directory: 1.5 GB of 4 KiB blocks (Concordia, section 6).
    pub const DEFAULT_ENTRIES: usize = 375_000;

    /// A switch of the paper's size in its first life.
    pub const fn for_nodes(nodes: usize) -> Self {
        Self { nodes, entries: Self::DEFAULT_ENTRIES, epoch: SwitchEpoch(0) }
    }
}

/// What the switch wants done.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all effects are packets, and none is kept")]
pub enum Effect {
    /// Send this.
    Send(Packet),
    /// Hand this back to [`Switch::on_resubmit`].
    Resubmit(Resubmit),
}

/// A packet on its way to its second pass.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Resubmit {
    /// The packet.
    pub packet: Packet,
    /// What the first pass found.
    pub carried: Carried,
}

/// The header that a resubmitted packet carries.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Carried {
    /// An unlock's: its event's SCOREBOARD cell.
    Score(u16),
    /// An ADD-TO-SWITCH's: the way that was empty.
    Way(u8),
}

/// The switch's coherence program, with its state.
#[derive(Clone, Debug)]
pub struct Switch {
    pub(super) config: Config,
    pub(super) sets: usize,
    pub(super) program: Program,
    pub(super) fields: Fields,
    pub(super) arrays: Arrays,
    pub(super) occupied: usize,
    /// Of the pass that runs; kept because it is cheaper to clear than to make.
    phv: Phv,
    counters: Counters,
}

impl Switch {
    /// A switch without entries.
    ///
    /// # Errors
    /// If the chip cannot hold so many entries, or a copyset so many nodes, or there are none of either.
    pub fn new(config: &Config) -> Result<Self, BuildError> {
        let sets = config.entries.div_ceil(WAYS);
        let (program, fields, arrays) = program::build(config.nodes, sets)?;
        Ok(Self {
            config: *config,
            sets,
            program,
            fields,
            arrays,
            occupied: 0,
            phv: Phv::new(),
            counters: Counters::new(),
        })
    }

    /// A packet arrives. `random` picks a provider, where one is to be picked.
    pub fn on_packet(&mut self, packet: &Packet, random: u32, out: &mut Vec<Effect>) {
        self.counters.count_packet(packet.kind);
        self.pass(packet, None, random, out);
    }

    /// A packet arrives once more.
    pub fn on_resubmit(&mut self, again: Resubmit, random: u32, out: &mut Vec<Effect>) {
        self.pass(&again.packet, Some(again.carried), random, out);
    }

    fn pass(&mut self, packet: &Packet, carried: Option<Carried>, random: u32, out: &mut Vec<Effect>) {
        if let Err(cause) = parser::admit(packet, &self.config) {
            self.counters.count_drop(cause);
            return;
        }
        parser::parse(&self.fields, packet, carried, &self.config, &mut self.phv);
        self.program.run(&mut self.phv);
        self.counters.passes += 1;
        if carried.is_some() {
            self.count_entries();
        }
        deparser::deparse(&self.fields, &self.phv, packet, random, &mut self.counters, out);
    }

    /// Entries come and go in second passes only: a claim or a clear that hit.
    fn count_entries(&mut self) {
        let hits = || self.fields.hit.iter().filter(|hit| self.phv.get(**hit) == alu::HIT).count();
        match self.phv.get(self.fields.tag_op) {
            tag_op::CLEAR => self.occupied -= hits(),
            tag_op::CLAIM.. => self.occupied += hits(),
            _ => {}
        }
    }

    /// What the switch was built for.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Entries in the directory.
    pub const fn occupancy(&self) -> usize {
        self.occupied
    }

    /// Entries that the directory has room for, if they spread well.
    pub const fn capacity(&self) -> usize {
        self.sets * WAYS
    }

    /// What happened so far.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What the program uses of the chip.
    pub fn stage_map(&self) -> StageMap {
        let passes = [
            ("request: a miss, an eviction, a lock, PURGE, REMOVE-FROM-SWITCH", 1),
            ("ADD-TO-SWITCH without room, or of a tag that is present", 1),
            ("ADD-TO-SWITCH with room", 2),
            ("UNLOCK", 2),
            ("UNLOCK repeated, or of an event that the switch never saw", 1),
        ];
        let passes = passes.map(|(packet, passes)| PacketPasses { packet: packet.into(), passes });
        StageMap { passes: passes.into(), ..self.program.stage_map().clone() }
    }
}
