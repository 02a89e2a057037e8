//! The directory as a machine: packets in, effects out.
//!
//! It stands in the switch, and a second one of the same kind at each home, for the locks that the switch has no capacity
//! for. Entries come and go by the control plane ([`Directory::insert`], [`Directory::remove`]), as in the paper, where the
//! allocator is in the switch's control plane; packets change what they say.

use alloc::sync::Arc;
use alloc::vec::Vec;

use sorted::Map;
use wire::{AllRules, Copyset, GlobalAddr, LockEnd, LockKind, LockPacket, NodeId, Rules, SwitchEpoch, Term};

use super::deparser;
use super::layout::{Fields, SETTLED, WAYS, class, ownership};
use super::parser::{Parser, Slot};
use super::program::{self, Arrays};
use crate::pipeline::primitive::spread;
use crate::pipeline::stage_map::PacketPasses;
use crate::pipeline::tally::Tally;
use crate::pipeline::{BuildError, Chip, Counts, Field, InSoftware, Phv, Plan, Program, StageMap};

/// What a directory is built for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DirectoryConfig {
    /// The switch, or a home.
    pub at: LockEnd,
    /// Nodes of the rack.
    pub nodes: usize,
    /// Entries that there is capacity for. A home's directory grows beyond that.
    pub entries: usize,
    /// The incarnation of the switch.
    pub epoch: SwitchEpoch,
}

/// What a packet brings about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Send this.
    Send(LockPacket),
    /// Put it in again, before or after others.
    Resubmit(Resubmit),
}

/// A MOVE on its way to its second pass.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Resubmit {
    /// The MOVE.
    pub packet: LockPacket,
    /// Its sender knows everybody who waits.
    pub approved: bool,
}

wire::listed! {
    /// Why a packet was dropped.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum Drop {
        /// Not a packet for a directory.
        Kind,
        /// Of another incarnation of the switch.
        Epoch,
        /// It names nodes that the rack does not have, or what no holder would send: data, for one.
        Nonsense,
    }
}

/// How many packets were dropped, by cause.
#[derive(Clone, Debug)]
pub(super) struct Drops([u64; Drop::ALL.len()]);

impl Counts for Drops {
    type Counted = Drop;

    fn count(&mut self, what: Drop) {
        self.0[what as usize] += 1;
    }
}

/// A lock directory, with its state.
#[derive(Clone, Debug)]
pub struct Directory<R: Rules = AllRules> {
    pub(super) rules: R,
    pub(super) config: DirectoryConfig,
    pub(super) sets: usize,
    pub(super) program: Program,
    /// The program for each kind of pass.
    plans: Arc<[Plan]>,
    pub(super) fields: Fields,
    pub(super) arrays: Arrays,
    /// At a home: where each entry is, and cells that are free again.
    placed: Map<GlobalAddr, usize>,
    vacant: Vec<usize>,
    occupied: usize,
    /// The last INSTALL of each home: an earlier one, or a late copy of one, makes no entry any more.
    pub(super) installed: Map<NodeId, u32>,
    pub(super) phv: Phv,
    pub(super) drops: Drops,
    /// Packets that made a pass, and passes.
    passes: u64,
}

impl Directory {
    /// A directory without entries.
    ///
    /// # Errors
    /// If the chip cannot hold so many, or there are none.
    pub fn new(config: &DirectoryConfig) -> Result<Self, BuildError> {
        Self::with_rules(AllRules, config)
    }
}

impl<R: Rules> Directory<R> {
    /// A directory without entries, in which some rules may not hold: for checkers.
    ///
    /// # Errors
    /// As for [`Directory::new`].
    pub fn with_rules(rules: R, config: &DirectoryConfig) -> Result<Self, BuildError> {
        let sets = config.entries.div_ceil(WAYS);
        let (program, fields, arrays) = program::build(rules, sets)?;
        let plan = |class| program.plan(&Self::known(&fields, class), &fields.results(), &fields.decisions());
        let plans: Result<_, _> = (0..=class::LOOK).map(plan).collect();
        Ok(Self {
            rules,
            plans: plans?,
            config: *config,
            sets,
            program,
            fields,
            arrays,
            placed: Map::new(),
            vacant: Vec::new(),
            occupied: 0,
            installed: Map::new(),
            phv: Phv::new(),
            drops: Drops([0; Drop::ALL.len()]),
            passes: 0,
        })
    }

    /// What the parser supplies in every pass of a class.
    pub(super) const fn known(f: &Fields, class: u64) -> [(Field, u64); 3] {
        [(f.class, class), (f.one, 1), (f.holder_bits, SETTLED - 1)]
    }

    /// A new incarnation of the switch: empty, and deaf to packets of any other.
    pub fn restart(&mut self, epoch: SwitchEpoch) {
        self.program.clear();
        self.placed.clear();
        self.vacant.clear();
        self.occupied = 0;
        self.installed.clear();
        self.config.epoch = epoch;
    }

    /// A packet arrives.
    pub fn on_packet(&mut self, packet: &LockPacket, out: &mut Vec<Effect>) {
        let parser = self.parser();
        match parser.first_pass(&mut self.in_software(packet, 0, |_: &LockPacket| {})) {
            0 => {}
            class::INSTALL | class::REMOVE => self.on_control(packet, out),
            class => self.pass(packet, class, 0, out),
        }
    }

    /// The control plane's work, beside the pipeline: entries come and go as their homes want.
    fn on_control(&mut self, packet: &LockPacket, out: &mut Vec<Effect>) {
        let home = LockEnd::Home(packet.lock.home());
        if packet.from != home {
            self.drops.count(Drop::Nonsense);
            return;
        }
        let (kind, status) = if packet.kind == LockKind::Remove {
            // A late one does not end the next lock of that name, whose terms begin behind those of this.
            if self.entry(packet.lock).is_some_and(|entry| entry.term <= packet.term) {
                self.remove(packet.lock);
            }
            (LockKind::Removed, packet.status)
        } else if self.install(packet) {
            (LockKind::Installed, wire::Status::Granted)
        } else {
            (LockKind::Installed, wire::Status::Refused(wire::Refusal::Collision))
        };
        out.push(Effect::Send(LockPacket { status, ..packet.reply(kind, self.config.at, home) }));
    }

    /// A home wants an entry kept. What it has called before is done, or has been refused: a late copy must not make an entry of
    /// a lock that is no more, or that the home keeps itself because there was no capacity.
    fn install(&mut self, packet: &LockPacket) -> bool {
        let last = self.installed.entry(packet.lock.home()).or_insert(packet.number.wrapping_sub(1));
        let is_new = packet.number.wrapping_sub(*last).cast_signed() > 0;
        if is_new {
            *last = packet.number;
        }
        self.find(packet.lock).is_some()
            || is_new && self.insert(packet.lock, packet.term, packet.next, packet.nodes)
    }

    /// A packet arrives once more.
    pub fn on_resubmit(&mut self, again: &Resubmit, out: &mut Vec<Effect>) {
        let (parser, carried) = (self.parser(), u64::from(again.approved));
        let class = parser.second_pass(&mut self.in_software(&again.packet, carried, |_: &LockPacket| {}));
        self.pass(&again.packet, class, carried, out);
    }

    pub(super) const fn parser(&self) -> Parser<R> {
        Parser { rules: self.rules, nodes: self.config.nodes }
    }

    /// A packet on its way through this directory.
    #[inline(always)]
    fn in_software<'a, S: FnMut(&LockPacket)>(
        &'a mut self,
        packet: &'a LockPacket,
        carried: u64,
        send: S,
    ) -> InSoftware<'a, LockPacket, S, Chip<'a, Drops>> {
        let epoch = u64::from(self.config.epoch.0);
        let (phv, counters) = (&mut self.phv, &mut self.drops);
        InSoftware::new(packet, send, Chip { epoch, shadow: 0, phv, counters, carried, carries: None })
    }

    fn pass(&mut self, packet: &LockPacket, class: u64, carried: u64, out: &mut Vec<Effect>) {
        self.parse(packet, class);
        let plan = usize::try_from(class).expect("there are few classes");
        self.program.run_plan(&self.plans[plan], &mut self.phv);
        self.passes += 1;
        let (rules, f, me) = (self.rules, self.fields, self.config.at);
        let send = |packet: &LockPacket| out.push(Effect::Send(*packet));
        let mut m = self.in_software(packet, carried, send);
        deparser::resubmit(&mut m, &f);
        match m.chip().carries {
            Some(approved) => {
                out.push(Effect::Resubmit(Resubmit { packet: *packet, approved: approved != 0 }));
            }
            None => deparser::deparse(&mut m, rules, &f, me),
        }
    }

    pub(super) fn parse(&mut self, packet: &LockPacket, class: u64) {
        let (set, way) = self.slot_of(packet.lock);
        let cells = core::array::from_fn(|at| (set * WAYS + way.unwrap_or(at)) as u64);
        let (parser, f) = (self.parser(), self.fields);
        self.phv.clear();
        let mut m = self.in_software(packet, 0, |_: &LockPacket| {});
        parser.parse(&mut m, &f, class, Slot { set: set as u64, cells });
    }

    /// The set of an entry, and, at a home, its way.
    pub(super) fn slot_of(&self, lock: GlobalAddr) -> (usize, Option<usize>) {
        if self.config.at == LockEnd::Switch {
            let set = spread(key(lock), self.sets as u64);
            return (usize::try_from(set).expect("there are no more sets than entries"), None);
        }
        // A home looks its entries up; a slot that there is not touches nothing.
        self.placed.get(&lock).map_or((self.sets, None), |cell| (cell / WAYS, Some(cell % WAYS)))
    }

    /// Makes an entry, for a lock that nobody holds or that `holder` does. False if there is no capacity. An entry that is
    /// there already stays as it is.
    pub fn insert(&mut self, lock: GlobalAddr, term: Term, holder: Option<NodeId>, sharers: Copyset) -> bool {
        if self.find(lock).is_some() {
            return true;
        }
        let slot = if self.config.at == LockEnd::Switch {
            let (set, _) = self.slot_of(lock);
            (0..WAYS)
                .find(|way| self.program.cell(self.arrays.tags[*way], set) == Some(0))
                .map(|way| (set, way))
        } else {
            let cell = self.vacant.pop().unwrap_or(self.placed.len());
            if cell >= self.sets * WAYS {
                self.grow();
            }
            self.placed.insert(lock, cell);
            Some((cell / WAYS, cell % WAYS))
        };
        let Some((set, way)) = slot else { return false };
        self.occupied += 1;
        let Arrays { tags, ownerships, waiters, writers, sharers: shared } = self.arrays;
        let cell = set * WAYS + way;
        for (array, index, value) in [
            (tags[way], set, key(lock)),
            (ownerships[way], set, ownership(term, holder)),
            (waiters, cell, 0),
            (writers, cell, 0),
            (shared, cell, sharers.bits()),
        ] {
            self.program.set_cell(array, index, value);
        }
        true
    }

    /// Ends an entry.
    pub fn remove(&mut self, lock: GlobalAddr) {
        let Some((set, way)) = self.find(lock) else { return };
        self.program.set_cell(self.arrays.tags[way], set, 0);
        self.occupied -= 1;
        if let Some(cell) = self.placed.remove(&lock) {
            self.vacant.push(cell);
        }
    }

    /// Where an entry is.
    pub(super) fn find(&self, lock: GlobalAddr) -> Option<(usize, usize)> {
        let (set, _) = self.slot_of(lock);
        let way = (0..WAYS).find(|way| self.program.cell(self.arrays.tags[*way], set) == Some(key(lock)))?;
        Some((set, way))
    }

    /// A home's directory gets twice the capacity.
    fn grow(&mut self) {
        let sets = self.sets * 2;
        let (mut program, fields, arrays) =
            program::build(self.rules, sets).expect("a home's directory needs less than a chip has");
        for (old, new) in self.arrays.all().zip(arrays.all()) {
            for (index, value) in self.program.cells(old).enumerate().filter(|(_, value)| *value != 0) {
                program.set_cell(new, index, value);
            }
        }
        (self.program, self.fields, self.arrays, self.sets) = (program, fields, arrays, sets);
    }

    /// What it was built for.
    pub const fn config(&self) -> &DirectoryConfig {
        &self.config
    }

    /// Entries.
    pub const fn occupancy(&self) -> usize {
        self.occupied
    }

    /// Packets dropped for this reason.
    pub const fn dropped(&self, cause: Drop) -> u64 {
        self.drops.0[cause as usize]
    }

    /// Passes through the pipeline.
    pub const fn passes(&self) -> u64 {
        self.passes
    }

    /// The program's resource use on the chip.
    pub fn stage_map(&self) -> StageMap {
        let passes = [("ACQUIRE", 1), ("MOVE", 2), ("MOVE repeated after it was approved", 1)];
        let passes = passes.map(|(packet, passes)| PacketPasses { packet: packet.into(), passes });
        let (parser, me) = (self.parser(), self.config.at);
        let around = Tally::of(|m| {
            parser.first_pass(m);
            for class in class::READ..=class::LOOK {
                let slot = parser.slot(m, self.sets);
                parser.parse(m, &self.fields, class, slot);
            }
            deparser::resubmit(m, &self.fields);
            parser.second_pass(m);
            deparser::deparse(m, self.rules, &self.fields, me);
        });
        let around = Some(around);
        StageMap { around, passes: passes.into(), ..self.program.stage_map().clone() }
    }
}

/// What TAG holds: the complement, so that an empty cell is 0.
pub(super) const fn key(lock: GlobalAddr) -> u64 {
    !lock.bits()
}
