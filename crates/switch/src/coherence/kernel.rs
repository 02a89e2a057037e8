//! The coherence program for the kernel's virtual machine: the same parser, plans and deparser, written down.

use wire::header::Place;
use wire::packet::{self, HEADER_BYTES};
use wire::{Discipline, HeaderField, HeaderFields, PacketKind, Refusal, Rules, SlotId};

use super::counters::{Counted, Drop};
use super::deparser;
use super::layout::Fields;
use super::parser::Parser;
use super::pass::Pass;
use super::switch::Switch;
use super::tables::{FORWARD, Forward};
use crate::ebpf::{Emitter, Frames, Hook, KernelProgram, Label, StateLayout, TooLong, Word};
use crate::pipeline::{Headers, Means};

const DROPS: usize = Drop::ALL.len();

/// The counter of the state that counts something.
pub(super) const fn counter_of(what: Counted) -> usize {
    match what {
        Counted::Drop(cause) => cause as usize,
        Counted::Refusal(why) => DROPS + why as usize,
        Counted::Resubmit => COUNTERS - 1,
    }
}

const COUNTERS: usize = DROPS + Refusal::ALL.len() + 2;

impl<R: Rules> Switch<R> {
    /// The program for a kernel. It is built for what this
    /// switch is built for; what the switch holds at the moment is not part of it.
    ///
    /// # Errors
    /// If the program is longer than the virtual machine's jumps.
    pub fn for_kernel(&self, frames: Frames) -> Result<KernelProgram, TooLong> {
        assert_eq!(self.config.lock_slots, 0, "programs in the kernel are for live racks");
        let layout = StateLayout::new(COUNTERS, self.config.nodes, self.program.arrays());
        let emitter = Emitter::new(&layout, (HEADER_BYTES, None), self.config.nodes, frames, counter_of);
        let emitter = emitter.with_servers(self.config.copies);
        let (parser, f) = (self.parser, self.fields);
        let code = emitter.program(
            is_well_formed,
            |m| {
                let first = parser.first_pass(m);
                let ran = m.dispatch(first, Pass::COUNT, |m, pass| {
                    self.run_in_kernel(
                        m,
                        parser,
                        &f,
                        Pass::from_index(pass).filter(|pass| pass.may_be_first()),
                    )
                });
                m.when(ran, |m| deparser::resubmit(m, &f));
                let again = m.is_again();
                m.when(again, |m| {
                    let second = parser.second_pass(m);
                    m.dispatch(second, Pass::COUNT, |m, pass| {
                        self.run_in_kernel(
                            m,
                            parser,
                            &f,
                            Pass::from_index(pass).filter(|pass| pass.may_be_second()),
                        )
                    });
                });
                ran
            },
            |m, ran| m.when(ran, |m| deparser::deparse(m, self.rules, &f)),
        )?;
        Ok(KernelProgram { code, layout, header: HEADER_BYTES, hook: frames.hook() })
    }

    /// How many packets the program has dropped, for whatever cause.
    pub fn drops_in_kernel(layout: &StateLayout, state: &[u8]) -> u64 {
        (0..DROPS).map(|cause| layout.counter(state, cause)).sum()
    }

    /// One pass. 1 if there is such a kind.
    fn run_in_kernel(
        &self,
        m: &mut Emitter<'_, Counted, HeaderField>,
        parser: Parser<R>,
        f: &Fields,
        pass: Option<Pass>,
    ) -> Word {
        let Some(pass) = pass else { return m.number(0) };
        m.clear_phv(&self.program);
        parser.parse(m, f, pass);
        m.run(&self.program, &pass.constants(self.rules, f), &f.results(), &[]);
        m.number(1)
    }
}

/// True if what comes of a packet of this kind is one packet at most: no row of the forward table sends it to several nodes, and the
/// shadow does not hear of it.
fn becomes_one(kind: PacketKind) -> bool {
    let to_several = [Forward::AllSharersOneProvides, Forward::OtherSharers, Forward::AllSharers];
    kind != PacketKind::AddToSwitch
        && !FORWARD.iter().any(|row| row.event == kind && to_several.contains(&row.to))
}

/// Jumps elsewhere with what [`wire::Packet::parse`] refuses, and with a packet that has a payload: that is for the process.
fn is_well_formed(m: &mut Emitter<'_, Counted, HeaderField>, elsewhere: Label) {
    let kinds = |is_in: fn(PacketKind) -> bool| {
        PacketKind::ALL.into_iter().filter(|kind| is_in(*kind)).fold(0, |set, kind| set | 1 << kind as u64)
    };
    let word = |field: HeaderField| {
        let Place { at, bytes, .. } = field.place();
        (at, bytes)
    };
    let (kind, event) = (word(HeaderField::Kind), word(HeaderField::Event));
    let [magic, version] = [packet::MAGIC_AT, packet::VERSION_AT];
    m.is_number(magic, 2, i32::from(u16::from_le_bytes(packet::MAGIC)), elsewhere);
    m.is_number(version, 1, i32::from(packet::VERSION), elsewhere);
    let handled = match m.hook() {
        Hook::TrafficControl => kinds(|_| true),
        Hook::Driver => kinds(becomes_one),
    };
    m.is_one_of(kind.0, kind.1, handled, elsewhere);
    m.is_one_of(event.0, event.1, kinds(|_| true), elsewhere);
    m.is_same_as(kinds(PacketKind::is_request), kind, event, elsewhere);
    let statuses = Refusal::ALL.into_iter().fold(1, |set, why| set | 1 << why as u64);
    let (status, state) = (word(HeaderField::Status), word(HeaderField::GlobalStatus));
    m.is_one_of(status.0, status.1, statuses, elsewhere);
    m.is_one_of(word(HeaderField::Provider).0, 1, 0b1111_1111, elsewhere);
    m.is_one_of(state.0, state.1, 0b111, elsewhere);
    let (node, slot) = (word(HeaderField::RequesterNode), word(HeaderField::RequesterSlot));
    m.is_one_of(node.0, node.1, u64::MAX, elsewhere);
    m.is_one_of(slot.0, slot.1, u64::MAX >> (64 - SlotId::PER_NODE), elsewhere);
    for (node, agent) in [HeaderField::FROM, HeaderField::TO] {
        let (node, agent) = ((node.at, node.bytes), (agent.at, agent.bytes));
        m.is_one_of(node.0, node.1, u64::MAX, elsewhere);
        m.is_one_of(agent.0, agent.1, 0b11_1111, elsewhere);
        m.is_not_of_nothing(agent, node, elsewhere);
    }
    let disciplines =
        (1..64).filter(|byte| Discipline::from_wire(*byte).is_some()).fold(1, |set, at| set | 1 << at);
    m.is_one_of(packet::DISCIPLINE_AT, 1, disciplines, elsewhere);
    m.is_number(packet::RESERVED_AT, 1, 0, elsewhere);
    let payload = word(HeaderField::Payload);
    m.is_number(payload.0, payload.1, 0, elsewhere);
}
