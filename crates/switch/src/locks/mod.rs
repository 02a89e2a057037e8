//! The lock directory in the switch: who has each lock, who keeps its wait queue, and who waits (GCS, sections 3
//! and 4).
//!
//! | stage | register arrays | tables |
//! | --- | --- | --- |
//! | 0 | LOCK TAG of ways 0 and 1 | |
//! | 1 | OWNERSHIP of ways 0 and 1: term and queue holder in one cell | found |
//! | 2 to 4 | | who holds; is it the requester |
//! | 5 | | operations |
//! | 8 | WAITERS | |
//! | 9 | WRITERS, SHARERS | |
//! | 10 | | route |
//!
//! It stands beside FlowCC, in what that leaves free of the stateful ALUs: [`beside`] puts the two stage maps together and
//! holds them against one chip.
//!
//! | module | holds |
//! | --- | --- |
//! | `layout` | fields and codes |
//! | `program` | the steps |
//! | `parser` | which packets it handles, and what the stages see of them |
//! | `deparser` | what a packet becomes |
//! | `kernel` | the program for the kernel's virtual machine |
//! | [`directory`] | the machine: packets in, effects out |
//! | [`inspect`] | entries, for tests, tools and checkers |
//!
//! # What an entry says
//! - *Nobody holds*: SHARERS may have copies to read, and the home's data are those of the term.
//! - *A node holds* (OWNERSHIP names it): it may write, or will, when the SHARERS' copies have ended; it keeps the queue.
//!   Everybody else is sent to it, and stands in WAITERS.
//!
//! # The version
//! In the paper the directory counts the requests that it has forwarded to the holder, and approves a move of the queue
//! if the holder has counted as many. Here the version is the set itself: WAITERS. The holder says in its MOVE of
//! whom it knows, and the MOVE is approved if that is everybody. A set needs no memory of which requests have been
//! counted, however often each is repeated; and a denial can name those who are missing, so that no forward has to
//! arrive. What the paper resets on success is the term that begins.
//!
//! # What must always hold
//! - A term has one holder, and only its MOVE ends it.
//! - A MOVE takes two passes: the first clears WAITERS if they are all known, and marks the OWNERSHIP; the second begins the
//!   next term, or takes the mark away. What comes in between is sent to the old holder, who sends it on. No other
//!   copy of a MOVE is looked at in between: it would find WAITERS without those who are being served, and be denied,
//!   and the holder would go on as if nothing had been approved.
//! - A denial names the MOVE that it denies by whom that knew of. WAITERS only grow in a term, so what was denied once is
//!   denied however often it comes.
//! - A bit of WAITERS without a request behind it (left by a late copy) costs a grant that nobody wanted: whoever gets one
//!   while it waits for something else asks again.

mod deparser;
pub mod directory;
pub mod inspect;
mod kernel;
mod layout;
mod parser;
mod program;

use alloc::string::String;
use alloc::vec::Vec;

pub use deparser::pass_on;
pub use directory::{Directory, DirectoryConfig, Drop, Effect, Resubmit};
pub use inspect::{DirectoryState, EntryView, Row};
pub use kernel::SINGLE_BYTES;

use crate::pipeline::stage_map::{PacketPasses, StageUse, Totals};
use crate::pipeline::{BuildError, StageMap};

/// The stage map of two programs that share one chip.
///
/// # Errors
/// If together they need more of some stage, or of the chip, than there is.
pub fn beside(one: &StageMap, other: &StageMap) -> Result<StageMap, BuildError> {
    let stages: Vec<StageUse> = one
        .stages
        .iter()
        .zip(&other.stages)
        .map(|(one, other)| StageUse {
            arrays: one.arrays.iter().chain(&other.arrays).cloned().collect(),
            tables: one.tables.iter().chain(&other.tables).cloned().collect(),
            computes: one.computes.iter().chain(&other.computes).cloned().collect(),
            sram_blocks: one.sram_blocks + other.sram_blocks,
            tcam_blocks: one.tcam_blocks + other.tcam_blocks,
        })
        .collect();
    let (a, b) = (one.totals, other.totals);
    let totals = Totals {
        stages: stages.iter().filter(|stage| !stage.is_empty()).count(),
        stages_with_arrays: stages.iter().filter(|stage| !stage.arrays.is_empty()).count(),
        register_bytes: a.register_bytes + b.register_bytes,
        sram_blocks: a.sram_blocks + b.sram_blocks,
        tcam_blocks: a.tcam_blocks + b.tcam_blocks,
        phv_bits: a.phv_bits + b.phv_bits,
    };
    let passes: Vec<PacketPasses> = one.passes.iter().chain(&other.passes).cloned().collect();
    let mut program = String::from(one.program.as_str());
    program.push_str(" and ");
    program.push_str(&other.program);
    let around = one.around.zip(other.around).map(|(one, other)| one.and(other));
    let map = StageMap { program, budget: one.budget, stages, around, passes, totals };
    map.verify()?;
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coherence;
    use wire::{Copyset, GlobalAddr, LockEnd, LockKind, LockPacket, Mode, NodeId, SwitchEpoch, Term};

    #[test]
    fn both_programs_fit_one_chip_and_no_more_than_fits_is_accepted() {
        let epoch = SwitchEpoch(0);
        let locks = |entries| {
            let config = DirectoryConfig { at: LockEnd::Switch, nodes: 64, entries, epoch };
            Directory::new(&config).map(|directory| directory.stage_map())
        };
        for queue in [false, true] {
            let usual = coherence::SwitchConfig::for_nodes(64);
            let config = coherence::SwitchConfig { queue, peeks: queue, ..usual };
            let coherence = coherence::Switch::new(&config).unwrap().stage_map();
            let both = beside(&coherence, &locks(64 << 10).unwrap()).unwrap();
            assert!(both.totals.register_bytes > coherence.totals.register_bytes);
            assert!(
                both.stages.iter().all(|stage| stage.arrays.len() <= both.budget.stateful_alus_per_stage)
            );
            assert!(beside(&coherence, &coherence).is_err(), "two coherence programs need twice the ALUs");
            assert!(beside(&coherence, &locks(1 << 20).unwrap_or_else(|_| coherence.clone())).is_err());
        }
    }

    #[test]
    fn every_pass_by_its_plan_does_what_the_program_does() {
        let config = DirectoryConfig { at: LockEnd::Switch, nodes: 3, entries: 4, epoch: SwitchEpoch(0) };
        let mut directory = Directory::new(&config).unwrap();
        let locks = [0, 1, 2].map(|at| GlobalAddr::new(NodeId(at % 2), 64 + u64::from(at) * 64));
        assert!(directory.insert(locks[0], Term(1), None, Copyset::only(NodeId(2))));
        assert!(directory.insert(locks[1], Term(5), Some(NodeId(1)), Copyset::EMPTY));
        let mut state = 1_u64;
        let mut below = |most: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % most
        };
        let node = |below: &mut dyn FnMut(u64) -> u64| NodeId(below(3) as u16);
        let mut rows = alloc::collections::BTreeSet::new();
        for _ in 0..20_000 {
            let lock = locks[below(3) as usize];
            let entry = directory.entry(lock);
            let who = entry.and_then(|it| it.holder).filter(|_| below(4) > 0).unwrap_or(node(&mut below));
            let is_move = below(2) == 0;
            let next = (below(3) > 0).then(|| node(&mut below));
            let knows = entry.map_or(Copyset::EMPTY, |it| it.waiting);
            let packet = LockPacket {
                mode: if below(2) == 0 { Mode::Read } else { Mode::Write },
                term: entry.filter(|_| below(8) > 0).map_or(Term(3), |it| it.term),
                waiting: if below(4) > 0 { knows } else { Copyset::EMPTY },
                nodes: Copyset::from_bits(below(8)),
                next,
                ..LockPacket::new(if is_move { LockKind::Move } else { LockKind::Acquire }, lock, 64, who)
            };
            let mut effects = Vec::new();
            let mut again = directory.compare(&packet, None, &mut effects);
            rows.extend(directory.last_row());
            while let Some(resubmit) = again.take() {
                effects.clear();
                again = directory.compare(&resubmit.packet, Some(resubmit), &mut effects);
                rows.extend(directory.last_row());
            }
        }
        assert!(rows.len() >= 12, "{rows:?}");
    }

    impl Directory {
        /// One pass, beside the program as it was written.
        fn compare(
            &mut self,
            packet: &LockPacket,
            again: Option<Resubmit>,
            out: &mut Vec<Effect>,
        ) -> Option<Resubmit> {
            let mut other = self.clone();
            match &again {
                None => self.on_packet(packet, out),
                Some(again) => self.on_resubmit(again, out),
            }
            let class = self.phv.get(self.fields.class);
            other.parse(packet, class);
            other.program.run(&mut other.phv);
            assert_eq!(other.program.all_cells(), self.program.all_cells(), "{packet:?}");
            for field in self.fields.results() {
                assert_eq!(other.phv.get(field), self.phv.get(field), "{field:?} of {packet:?}");
            }
            out.iter().find_map(|effect| match effect {
                Effect::Resubmit(again) => Some(*again),
                Effect::Send(_) => None,
            })
        }
    }
}
