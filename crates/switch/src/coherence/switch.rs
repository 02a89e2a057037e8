//! The machine: packets in, effects out.
//!
//! # Passes
//! Requests take one pass. An UNLOCK takes a second one, because the score lies behind the locks; so does an
//! ADD-TO-SWITCH that found capacity, because the first empty way is known only behind the last. Other packets may
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

use alloc::sync::Arc;
use alloc::vec::Vec;

use wire::{AllRules, NodeId, Packet, PacketKind, Rule, Rules, SlotId, SwitchEpoch};

use super::counters::Counters;
use super::deparser;
use super::layout::{Fields, WAYS, route, score};
use super::parser::Parser;
use super::pass::Pass;
use super::program::{self, Arrays};
use crate::pipeline::stage_map::PacketPasses;
use crate::pipeline::tally::Tally;
use crate::pipeline::{BuildError, Chip, InSoftware, Phv, Plan, Program, StageMap, alu};

/// What a switch is built for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SwitchConfig {
    /// Nodes of the rack, 1 to 64.
    pub nodes: usize,
    /// Entries of the directory; rounded up to whole sets of 7.
    pub entries: usize,
    /// The switch's incarnation: packets of another one are dropped.
    pub epoch: SwitchEpoch,
    /// Conflicting requests wait in a queue behind the holder of the lock, and are not refused (see [`wait_queue`](mod@super::wait_queue)).
    pub queue: bool,
    /// Slots of a node for block locks besides those that all nodes have, in multiples of as many; none with `queue`, which has no
    /// names for them, and in the kernel.
    pub lock_slots: usize,
    /// The program knows PEEK.
    pub peeks: bool,
    /// The rack has memories with copies, as many as nodes, whose ids follow those of the nodes.
    pub copies: bool,
}

impl SwitchConfig {
    /// The paper's directory: 1.5 GB of 4 KiB blocks (Concordia, section 6).
    pub const DEFAULT_ENTRIES: usize = 375_000;

    /// A switch of the paper's size in its first incarnation.
    pub const fn for_nodes(nodes: usize) -> Self {
        Self {
            nodes,
            entries: Self::DEFAULT_ENTRIES,
            epoch: SwitchEpoch(0),
            queue: false,
            lock_slots: 0,
            peeks: false,
            copies: false,
        }
    }
}

/// What the switch wants done.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
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

impl Carried {
    /// What a packet of this kind carries.
    fn by(kind: PacketKind, what: u64) -> Self {
        match kind {
            PacketKind::AddToSwitch => Self::Way(u8::try_from(what).expect("a location has 4 bits")),
            _ => Self::Score(u16::try_from(what).expect("a score has 16 bits")),
        }
    }

    fn word(self) -> u64 {
        match self {
            Self::Score(score) => u64::from(score),
            Self::Way(way) => u64::from(way),
        }
    }
}

/// The switch's coherence program, with its state.
#[derive(Clone, Debug)]
pub struct Switch<R: Rules = AllRules> {
    pub(super) rules: R,
    pub(super) parser: Parser<R>,
    pub(super) config: SwitchConfig,
    pub(super) sets: usize,
    pub(super) program: Program,
    /// The program for each kind of pass.
    plans: Arc<[Plan]>,
    pub(super) fields: Fields,
    pub(super) arrays: Arrays,
    pub(super) occupied: usize,
    /// Of the pass that runs; kept because it is cheaper to clear than to make.
    phv: Phv,
    counters: Counters,
    /// The node that keeps the shadow of the TAG arrays.
    shadow: NodeId,
}

impl Switch {
    /// A switch without entries.
    ///
    /// # Errors
    /// If the chip cannot hold so many entries, or a copyset so many nodes, or there are none of either.
    pub fn new(config: &SwitchConfig) -> Result<Self, BuildError> {
        Self::with_rules(AllRules, config)
    }
}

impl<R: Rules> Switch<R> {
    /// A switch without entries, in which some rules of the protocol may not hold: for checkers.
    ///
    /// # Errors
    /// As for [`Switch::new`].
    pub fn with_rules(rules: R, config: &SwitchConfig) -> Result<Self, BuildError> {
        assert!(
            config.lock_slots.is_multiple_of(SlotId::PER_NODE) && !(config.queue && config.lock_slots > 0),
            "{} more slots of a node, queue: {}",
            config.lock_slots,
            config.queue
        );
        let sets = config.entries.div_ceil(WAYS);
        let (program, fields, arrays) = program::build(rules, config, sets)?;
        let results = fields.results();
        let plan = |pass: Pass| program.plan(&pass.constants(rules, &fields), &results, &[]);
        let plans: Result<_, _> = Pass::all().map(plan).collect();
        Ok(Self {
            rules,
            parser: Parser::new(rules, config),
            plans: plans?,
            config: *config,
            sets,
            program,
            fields,
            arrays,
            occupied: 0,
            phv: Phv::new(),
            counters: Counters::new(),
            shadow: NodeId(0),
        })
    }

    /// The switch starts a new incarnation: empty, and deaf to packets of any other incarnation. Its counters go on.
    pub fn restart(&mut self, epoch: SwitchEpoch) {
        self.program.clear();
        self.occupied = 0;
        self.config.epoch = epoch;
    }

    /// Names the node that keeps the shadow of the TAG arrays; node 0 until somebody does.
    pub const fn set_shadow(&mut self, node: NodeId) {
        self.shadow = node;
    }

    /// A packet arrives.
    pub fn on_packet(&mut self, packet: &Packet, out: &mut Vec<Effect>) {
        self.counters.count_packet(packet.kind);
        self.pass(packet, None, out);
    }

    /// A packet arrives once more.
    pub fn on_resubmit(&mut self, again: Resubmit, out: &mut Vec<Effect>) {
        self.pass(&again.packet, Some(again.carried), out);
    }

    fn pass(&mut self, packet: &Packet, carried: Option<Carried>, out: &mut Vec<Effect>) {
        let (rules, f) = (self.rules, self.fields);
        let Some(pass) = self.kind_of_pass(packet, carried) else { return };
        self.run(packet, pass, carried);
        if !self.rules.holds(Rule::LastUnlockFiltersUnlocks) && self.is_stale_unlock(pass) {
            return self.release_again(packet, out);
        }
        let mut m = self.in_software(packet, carried, |packet| out.push(Effect::Send(*packet)));
        deparser::resubmit(&mut m, &f);
        deparser::deparse(&mut m, rules, &f);
        if let Some(what) = m.chip().carries {
            out.push(Effect::Resubmit(Resubmit { packet: *packet, carried: Carried::by(packet.kind, what) }));
        }
        self.forget_what_no_rule_keeps(packet);
    }

    /// None: the packet is dropped.
    fn kind_of_pass(&mut self, packet: &Packet, carried: Option<Carried>) -> Option<Pass> {
        let parser = self.parser;
        let mut m = self.in_software(packet, carried, |_| {});
        Pass::from_index(if carried.is_some() {
            parser.second_pass(&mut m)
        } else {
            parser.first_pass(&mut m)
        })
    }

    /// A packet on its way through this switch.
    #[inline(always)]
    fn in_software<'a, S: FnMut(&Packet)>(
        &'a mut self,
        packet: &'a Packet,
        carried: Option<Carried>,
        send: S,
    ) -> InSoftware<'a, Packet, S, Chip<'a, Counters>> {
        let chip = Chip {
            epoch: u64::from(self.config.epoch.0),
            shadow: u64::from(self.shadow.0),
            phv: &mut self.phv,
            counters: &mut self.counters,
            carried: carried.map_or(0, Carried::word),
            carries: None,
        };
        InSoftware::new(packet, send, chip)
    }

    fn run(&mut self, packet: &Packet, pass: Pass, carried: Option<Carried>) {
        self.parse(packet, pass, carried);
        self.program.run_plan(&self.plans[pass.index()], &mut self.phv);
        self.counters.passes += 1;
        match pass {
            Pass::Clear => self.occupied -= self.hits(),
            Pass::Claim(_) => self.occupied += self.hits(),
            _ => {}
        }
    }

    fn parse(&mut self, packet: &Packet, pass: Pass, carried: Option<Carried>) {
        let (parser, f) = (self.parser, self.fields);
        self.phv.clear();
        parser.parse(&mut self.in_software(packet, carried, |_| {}), &f, pass);
    }

    fn is_stale_unlock(&self, pass: Pass) -> bool {
        pass == Pass::Unlock && self.phv.get(self.fields.route) == route::STALE
    }

    /// In a mutant: an old unlock goes to its second pass, too.
    fn release_again(&self, packet: &Packet, out: &mut Vec<Effect>) {
        let slot = packet.requester.index() * 2 + packet.seq.parity();
        let score = self.program.cell(self.arrays.scoreboard, slot).unwrap_or(0);
        let carried = Carried::Score(u16::try_from(score).expect("a score has 16 bits"));
        out.push(Effect::Resubmit(Resubmit { packet: *packet, carried }));
    }

    /// In mutants: what the arrays keep only for the rule that is left out.
    fn forget_what_no_rule_keeps(&mut self, packet: &Packet) {
        let (to, cell) = (self.phv.get(self.fields.route), self.phv.get(self.fields.score));
        let refused = !self.rules.holds(Rule::RefusalSticks) && to == route::LOCKED && cell == score::REFUSED;
        let sent_home =
            !self.rules.holds(Rule::HomeMarkSticks) && to == route::TO_HOME && cell == score::HOME;
        if packet.kind.is_request() && (refused || sent_home) {
            self.run(packet, Pass::Reset, None);
        }
        let reported = packet.kind == PacketKind::RemoveFromSwitch && to == route::FORWARD;
        if !self.rules.holds(Rule::RemoveCommits) && reported {
            self.run(packet, Pass::Clear, None);
        }
    }

    /// The ways that the pass cleared or claimed.
    fn hits(&self) -> usize {
        self.fields.hit.iter().filter(|hit| self.phv.get(**hit) == alu::HIT).count()
    }

    /// What the switch was built for.
    pub const fn config(&self) -> &SwitchConfig {
        &self.config
    }

    /// Entries in the directory.
    pub const fn occupancy(&self) -> usize {
        self.occupied
    }

    /// Entries that the directory has capacity for, if they spread well.
    pub const fn capacity(&self) -> usize {
        self.sets * WAYS
    }

    /// What happened so far.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The program's resource use on the chip.
    pub fn stage_map(&self) -> StageMap {
        let passes = [
            ("request: a miss, an eviction, a lock, PURGE, REMOVE-FROM-SWITCH", 1),
            ("ADD-TO-SWITCH without room, or of a tag that is present", 1),
            ("ADD-TO-SWITCH with room", 2),
            ("UNLOCK", 2),
            ("UNLOCK repeated, or of an event that the switch never saw", 1),
        ];
        let passes = passes.map(|(packet, passes)| PacketPasses { packet: packet.into(), passes });
        let around = Tally::of(|m| {
            self.parser.first_pass(m);
            for pass in (0..Pass::COUNT).filter_map(Pass::from_index) {
                self.parser.parse(m, &self.fields, pass);
            }
            deparser::resubmit(m, &self.fields);
            self.parser.second_pass(m);
            deparser::deparse(m, self.rules, &self.fields);
        });
        let around = Some(around);
        StageMap { around, passes: passes.into(), ..self.program.stage_map().clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{BlockTag, Copyset, GlobalStatus, NodeId, Refusal, RequesterId, Seq, SlotId, Status};

    const CONFIG: SwitchConfig = SwitchConfig {
        nodes: 2,
        entries: 7,
        epoch: SwitchEpoch(0),
        queue: false,
        lock_slots: 0,
        peeks: true,
        copies: false,
    };

    struct Random(u64);

    impl Random {
        fn below(&mut self, n: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(self.0 >> 33).unwrap() % n
        }

        fn of<T: Copy>(&mut self, choices: &[T]) -> T {
            choices[self.below(choices.len())]
        }

        /// A packet of a small rack, in which numbers, blocks and requesters meet.
        fn packet(&mut self) -> Packet {
            let home = self.of(&[0, 1]);
            let tag = BlockTag::from_bits(home << 48 | (self.below(10) << 12) as u64);
            let node = NodeId(u16::try_from(home).unwrap());
            let requester = RequesterId { node, slot: SlotId(self.of(&[0, 1, 2])) };
            // Many ADDs, so that the ways fill up.
            let kind = match self.below(12) {
                0..4 => PacketKind::AddToSwitch,
                4 => PacketKind::Peek,
                _ => self.of(&PacketKind::ALL[..10]),
            };
            let request = Packet {
                in_switch: self.below(5) > 0,
                status: if self.below(5) > 0 { Status::Granted } else { Status::Refused(Refusal::Locked) },
                global_status: self.of(&[
                    GlobalStatus::Unshared,
                    GlobalStatus::Shared,
                    GlobalStatus::Modified,
                ]),
                copyset: Copyset::from_bits(self.of(&[0, 1, 2, 3])),
                repeated: self.below(5) == 0,
                ..Packet::request(kind, tag, requester, Seq(self.of(&[1, 2, 3, 4, 5, 6])))
            };
            if self.below(4) > 0 || kind == PacketKind::Peek {
                request
            } else {
                Packet { kind: PacketKind::Unlock, ..request }
            }
        }
    }

    /// One pass by the program as it was written, with every constant in its field.
    fn by_program(switch: &Switch, packet: &Packet, pass: Pass, carried: Option<Carried>) -> (Program, Phv) {
        let mut switch = switch.clone();
        switch.parse(packet, pass, carried);
        let Switch { mut program, mut phv, fields, .. } = switch;
        pass.constants(AllRules, &fields).into_iter().for_each(|(field, value)| phv.set(field, value));
        program.run(&mut phv);
        (program, phv)
    }

    #[test]
    fn the_plan_of_a_pass_does_what_the_program_does() {
        let seen = passes_compared(&CONFIG);
        let missing: Vec<_> = Pass::all().filter(|pass| !seen.contains(pass)).collect();
        let with_a_queue = [Pass::Handed, Pass::Leave, Pass::LeaveAndSet];
        assert_eq!(missing[0], Pass::Request(PacketKind::AddToSwitch), "which is never made");
        assert_eq!(missing[1..], with_a_queue);
    }

    #[test]
    fn so_it_does_with_a_queue() {
        let seen = passes_compared(&SwitchConfig { queue: true, ..CONFIG });
        for pass in [Pass::Handed, Pass::Leave, Pass::LeaveAndSet, Pass::ReleaseAndMerge] {
            assert!(seen.contains(&pass), "{pass:?}");
        }
    }

    fn passes_compared(config: &SwitchConfig) -> Vec<Pass> {
        let mut random = Random(1);
        let mut seen = Vec::new();
        for _ in 0..60 {
            let mut switch = Switch::new(config).unwrap();
            let (mut effects, mut waiting) = (Vec::new(), Vec::<Resubmit>::new());
            for _ in 0..250 {
                let again = if random.below(3) == 0 { waiting.pop() } else { None };
                let (packet, carried) = again
                    .map_or_else(|| (random.packet(), None), |again| (again.packet, Some(again.carried)));
                let Some(pass) = switch.kind_of_pass(&packet, carried) else { continue };
                let (program, phv) = by_program(&switch, &packet, pass, carried);
                switch.pass(&packet, carried, &mut effects);

                assert_eq!(program.all_cells(), switch.program.all_cells(), "{pass:?} of {packet:?}");
                let f = &switch.fields;
                let known = pass.constants(AllRules, f);
                for field in f.results() {
                    let same = phv.get(field) == switch.phv.get(field);
                    assert!(same || known.iter().any(|(known, _)| *known == field), "{field:?}, {pass:?}");
                }
                waiting.extend(effects.drain(..).filter_map(|effect| match effect {
                    Effect::Resubmit(again) => Some(again),
                    Effect::Send(_) => None,
                }));
                seen.push(pass);
            }
        }
        seen
    }
}
