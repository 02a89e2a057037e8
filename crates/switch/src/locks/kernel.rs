//! The lock directory for the kernel's virtual machine: the same parser, plans and deparser, written down.
//!
//! Entries come and go by the control plane, in the switch's process: [`Directory::entry_cells`] says which cells it has to look at
//! and to write for a lock. A new entry's TAG is written last, and nobody finds the entry before; an old one's is
//! cleared first, and nobody writes its other cells until every pass that had found it is over.

use alloc::vec::Vec;

use wire::locks::{self, HEADER_BYTES};
use wire::{GlobalAddr, HeaderFields, LockEnd, LockField, LockKind, Refusal, Rules};

use super::deparser;
use super::directory::{Directory, Drop};
use super::layout::{WAYS, class};
use super::parser::Parser;
use crate::ebpf::{Emitter, Frames, Hook, KernelProgram, Label, List, StateLayout, TooLong, Word};
use crate::pipeline::{Headers, Means};

/// Bytes of a header with room for the longest list of nodes: what a single packet about a lock has.
pub const SINGLE_BYTES: usize = HEADER_BYTES + MOST_LISTED;
const MOST_LISTED: usize = 64;
const LIST: List = List { length_at: 6, at: HEADER_BYTES, most: MOST_LISTED };

/// Classes are below this.
const CLASSES: u64 = class::LOOK + 1;

const fn counter_of(cause: Drop) -> usize {
    cause as usize
}

type Emits<'a> = Emitter<'a, Drop, LockField>;

impl<R: Rules> Directory<R> {
    /// The program for a kernel. It is built for what this directory is built for; what that holds at the moment is not
    /// part of it.
    ///
    /// # Errors
    /// If the program is longer than the virtual machine's jumps.
    ///
    /// # Panics
    /// If it is not the switch's.
    pub fn for_kernel(&self, frames: Frames) -> Result<KernelProgram, TooLong> {
        assert_eq!(self.config.at, LockEnd::Switch, "homes keep their directories themselves");
        let nodes = self.config.nodes;
        let layout = StateLayout::new(Drop::ALL.len(), nodes, self.program.arrays());
        let emitter = Emitter::new(&layout, (SINGLE_BYTES, Some(LIST)), nodes, frames, counter_of);
        let (parser, f) = (self.parser(), self.fields);
        let code = emitter.program(
            is_well_formed,
            |m| {
                let first = parser.first_pass(m);
                let ran = m.dispatch(first, CLASSES, |m, class| match class {
                    class::READ | class::WRITE | class::MOVE => self.run_in_kernel(m, parser, class),
                    _ => m.number(0),
                });
                m.when(ran, |m| deparser::resubmit(m, &f));
                let again = m.is_again();
                m.when(again, |m| {
                    let second = parser.second_pass(m);
                    m.dispatch(second, CLASSES, |m, class| match class {
                        class::COMMIT | class::LOOK => self.run_in_kernel(m, parser, class),
                        _ => m.number(0),
                    });
                });
                ran
            },
            |m, ran| m.when(ran, |m| deparser::deparse(m, self.rules, &f, LockEnd::Switch)),
        )?;
        Ok(KernelProgram { code, layout, header: SINGLE_BYTES, hook: frames.hook() })
    }

    /// One pass. 1, for there is such a class.
    fn run_in_kernel(&self, m: &mut Emits<'_>, parser: Parser<R>, class: u64) -> Word {
        let f = &self.fields;
        m.clear_phv(&self.program);
        let slot = parser.slot(m, self.sets);
        parser.parse(m, f, class, slot);
        m.run(&self.program, &Self::known(f, class), &f.results(), &f.decisions());
        m.number(1)
    }

    /// The cells of the set that a lock's entry is in, or would be: arrays and indices. Those of TAG are the first.
    pub fn entry_cells(&self, lock: GlobalAddr) -> Vec<(usize, usize)> {
        let (set, _) = self.slot_of(lock);
        let arrays = &self.arrays;
        let by_set = arrays.tags.into_iter().chain(arrays.ownerships).map(|array| (array.index(), set));
        let by_cell = [arrays.waiters, arrays.writers, arrays.sharers]
            .into_iter()
            .flat_map(|array| (0..WAYS).map(move |way| (array.index(), set * WAYS + way)));
        by_set.chain(by_cell).collect()
    }

    /// How many of [`Directory::entry_cells`] are TAGs.
    pub const TAGS: usize = WAYS;

    /// What is in a cell.
    pub fn cell(&self, array: usize, index: usize) -> u64 {
        self.program.cell_of(array, index)
    }

    /// Sets a cell, to what it is in a program that was made of this directory.
    pub fn set_cell(&mut self, array: usize, index: usize, value: u64) {
        self.program.set_cell_of(array, index, value);
    }
}

/// Jumps elsewhere with what [`wire::LockPacket::parse`] refuses, with a packet that has a payload, and with what the control plane
/// does: all that is for the process.
fn is_well_formed(m: &mut Emits<'_>, elsewhere: Label) {
    let word = |field: LockField| (field.place().at, field.place().bytes);
    m.is_number(locks::MAGIC_AT, 2, i32::from(u16::from_le_bytes(locks::MAGIC)), elsewhere);
    m.is_number(locks::VERSION_AT, 1, i32::from(locks::VERSION), elsewhere);
    let control = [LockKind::Install, LockKind::Remove];
    let is_handled = |kind: &LockKind| match m.hook() {
        Hook::TrafficControl => !control.contains(kind),
        Hook::Driver => *kind == LockKind::Move,
    };
    let kinds = LockKind::ALL.into_iter().filter(is_handled).fold(0, |set, kind| set | 1 << kind as u64);
    let statuses = Refusal::ALL.into_iter().fold(1, |set, why| set | 1 << why as u64);
    for (field, set) in [
        (LockField::Kind, kinds),
        (LockField::Writes, 0b1111_1111),
        (LockField::Status, statuses),
        (LockField::Node, u64::MAX),
    ] {
        let (at, bytes) = word(field);
        m.is_one_of(at, bytes, set, elsewhere);
    }
    let next = word(LockField::Next);
    m.is_at_most(next.0, next.1, 0, 64, elsewhere);
    // 56 bits.
    m.is_number(word(LockField::Term).0 + 7, 1, 0, elsewhere);
    let len = word(LockField::Len);
    m.is_at_most(len.0, len.1, u64::from(locks::SIZED), wire::packet::MAX_PAYLOAD as i32, elsewhere);
    let payload = word(LockField::Payload);
    m.is_number(payload.0, payload.1, 0, elsewhere);
    for (node, agent) in [LockField::FROM, LockField::TO] {
        let (node, agent) = ((node.at, node.bytes), (agent.at, agent.bytes));
        m.is_one_of(node.0, node.1, u64::MAX, elsewhere);
        m.is_one_of(agent.0, agent.1, 0b111, elsewhere);
        m.is_not_of_nothing(agent, node, elsewhere);
    }
    m.is_list(LIST, elsewhere);
    if m.hook() == Hook::Driver {
        // Readers who wait hear of a MOVE, each in a packet; and of an ACQUIRE those who have copies, which the header does not say.
        let readers = word(LockField::Nodes);
        m.is_number(readers.0, readers.1, 0, elsewhere);
    }
}
