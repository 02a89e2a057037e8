//! What became of the threads' turns.

use wire::{Discipline, Refusal};

use crate::explore::search::Reached;

/// How something that a thread wanted has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// It has memory of this discipline.
    Allocated(Discipline),
    /// It is inside of the lock.
    Entered,
    /// It is inside of a lock that was lost.
    Taken,
    /// The lock is no more.
    Ended,
    /// It has given up what it had taken.
    GivenUp,
    /// It has left a lock of which there is no memory any more.
    LeftOnPaper,
    /// It has accessed the block.
    Accessed,
    /// It has had a block lock.
    Guarded,
    /// What its node had written is safe.
    Synced,
    /// Its node has begun to send home what only it has.
    SentHome,
    /// The memory is free.
    Freed,
    /// It wanted memory.
    NotAllocated(Refusal),
    /// It wanted to enter.
    NotEntered(Refusal),
    /// It wanted the block.
    NotAccessed(Refusal),
    /// It wanted the memory freed.
    NotFreed(Refusal),
}

use Ending::{
    Accessed, Allocated, Ended, Entered, Freed, GivenUp, Guarded, LeftOnPaper, NotAccessed, NotAllocated,
    NotEntered, NotFreed, SentHome, Synced, Taken,
};

/// Whatever a scope may reach.
const ALL: &[Ending] = &[
    Allocated(Discipline::Coherent),
    Allocated(Discipline::Locked),
    Allocated(Discipline::Word),
    Entered,
    Taken,
    Ended,
    GivenUp,
    LeftOnPaper,
    Accessed,
    SentHome,
    Guarded,
    Synced,
    Freed,
    NotAllocated(Refusal::OutOfMemory),
    NotEntered(Refusal::Unallocated),
    NotEntered(Refusal::WrongDiscipline),
    NotEntered(Refusal::Lost),
    NotEntered(Refusal::Outdated),
    NotEntered(Refusal::NodeDown),
    NotAccessed(Refusal::Unallocated),
    NotAccessed(Refusal::WrongDiscipline),
    NotAccessed(Refusal::Lost),
    NotAccessed(Refusal::NodeDown),
    NotFreed(Refusal::NodeDown),
    NotFreed(Refusal::NotAnAllocation),
];

/// What was reached.
#[derive(Clone, Default, Debug)]
pub struct Coverage(Vec<Ending>);

impl Coverage {
    pub(super) fn note(&mut self, ending: Ending) {
        if !self.0.contains(&ending) {
            self.0.push(ending);
        }
    }
}

impl Reached for Coverage {
    fn add(&mut self, other: &Self) {
        other.0.iter().for_each(|ending| self.note(*ending));
    }

    /// All of it happens at nodes.
    fn table(&self) -> Vec<(String, bool, bool)> {
        ALL.iter().map(|ending| (format!("{ending:?}"), false, self.0.contains(ending))).collect()
    }
}
