//! What is explored: how small the rack is, what its threads do, and what may go wrong, how often.

use node::Directory;
use wire::{Discipline, Mode};

/// One thing that a thread does. There is one block of memory, on node 0: everything is about that.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum JointStep {
    /// Allocates the block; if that fails, the thread is done.
    Allocate(Discipline),
    /// The same, but not before the thread's node has heard of an epoch.
    AllocateAnew(Discipline),
    /// Frees it.
    Free,
    /// Reads it, as a coherent block.
    Read,
    /// Writes it, as a coherent block.
    Write,
    /// Has the node send home what only it has, as it does before it leaves the rack.
    SendHome,
    /// Reads a block with copies. With as many memories as nodes: these numbers are those of their first blocks, which are live
    /// from the beginning; and then come their second ones.
    ReadCopied(u8),
    /// Writes it.
    WriteCopied(u8),
    /// Takes its block lock to write, and releases it.
    Guard(u8),
    /// Allocates it; if that fails, the thread is done.
    AllocateCopied(u8),
    /// Waits until all that its node has written is safe.
    Sync,
    /// Enters the lock that it is, and leaves again.
    Enter(Mode),
    /// Enters it to write; if it is lost, takes it all the same.
    Take,
    /// Enters it to write, and frees it. If that fails, leaves.
    EnterAndFree,
    /// The same; if it is lost, takes it all the same.
    TakeAndFree,
}

impl JointStep {
    /// The block with copies that it is about.
    pub(super) const fn copied(self) -> Option<u8> {
        match self {
            Self::ReadCopied(nth) | Self::WriteCopied(nth) | Self::Guard(nth) | Self::AllocateCopied(nth) => {
                Some(nth)
            }
            _ => None,
        }
    }

    /// How the lock is entered, if it is.
    pub(super) const fn enters(self) -> Option<Mode> {
        match self {
            Self::Enter(mode) => Some(mode),
            Self::Take | Self::EnterAndFree | Self::TakeAndFree => Some(Mode::Write),
            _ => None,
        }
    }

    pub(super) const fn reclaims(self) -> bool {
        matches!(self, Self::Take | Self::TakeAndFree)
    }

    pub(super) const fn frees_inside(self) -> bool {
        matches!(self, Self::EnterAndFree | Self::TakeAndFree)
    }
}

/// Reports after a restart that arrive before anything else does: what they tell is not what a scope is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quick {
    /// None.
    Nothing,
    /// Those about blocks.
    Blocks,
    /// Those about locks.
    Locks,
    /// All but the last ones to homes of memory with copies.
    ButLast,
}

/// A thread.
#[derive(Clone, Copy, Debug)]
pub struct Thread {
    /// Where it runs.
    pub node: u8,
    /// What it does, in order.
    pub does: &'static [JointStep],
}

/// A small rack.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// Its name.
    pub name: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// Nodes.
    pub nodes: u8,
    /// Threads.
    pub threads: &'static [Thread],
    /// Where entries of blocks are kept.
    pub directory: Directory,
    /// The switch keeps the entries of locks.
    pub locks_in_switch: bool,
    /// Which reports arrive at once.
    pub quick: Quick,
    /// Packets that may be lost.
    pub losses: u8,
    /// Packets that may come twice.
    pub duplicates: u8,
    /// Restarts of the switch.
    pub restarts: u8,
    /// The nodes that may die.
    pub dies: &'static [u8],
    /// How many of them.
    pub deaths: u8,
    /// And that one may come back.
    pub returns: bool,
    /// How many nodes keep each memory with copies; 1: there are none.
    pub copies: u8,
    /// The memories with copies that are there.
    pub memories: &'static [u8],
}

const fn thread(node: u8, does: &'static [JointStep]) -> Thread {
    Thread { node, does }
}

const LOCKED: JointStep = JointStep::Allocate(Discipline::Locked);
const COHERENT: JointStep = JointStep::Allocate(Discipline::Coherent);
const ENTER: JointStep = JointStep::Enter(Mode::Write);
const LOOK: JointStep = JointStep::Enter(Mode::Read);
const READ_COPIED: JointStep = JointStep::ReadCopied(0);
const WRITE_COPIED: JointStep = JointStep::WriteCopied(0);
const WRITE_SECOND: JointStep = JointStep::WriteCopied(1);
const BLOCK_ANEW: JointStep = JointStep::AllocateAnew(Discipline::Coherent);
const LOCK_ANEW: JointStep = JointStep::AllocateAnew(Discipline::Locked);

const LOCK: &[Thread] = &[thread(1, &[LOCKED, ENTER, JointStep::EnterAndFree]), thread(0, &[ENTER])];
const LOCK_ONCE: &[Thread] = &[thread(1, &[LOCKED, JointStep::EnterAndFree]), thread(0, &[ENTER])];
const LOCK_ALONE: &[Thread] = &[thread(1, &[LOCKED, JointStep::EnterAndFree])];
const LOCK_AGAIN: &[Thread] =
    &[thread(1, &[LOCKED, JointStep::EnterAndFree, LOCKED, ENTER]), thread(0, &[LOOK])];
const LOCK_AWAY: &[Thread] = &[thread(0, &[LOCKED]), thread(1, &[JointStep::EnterAndFree])];
const LOCK_FREED_OUTSIDE: &[Thread] = &[thread(1, &[LOCKED, ENTER, JointStep::Free, JointStep::SendHome])];
const LOCK_FREED_ELSEWHERE: &[Thread] =
    &[thread(1, &[LOCKED]), thread(0, &[JointStep::EnterAndFree]), thread(0, &[ENTER])];
const LOCK_TAKEN: &[Thread] =
    &[thread(0, &[LOCKED]), thread(1, &[JointStep::EnterAndFree]), thread(0, &[JointStep::Take])];
const LOCK_LOST: &[Thread] =
    &[thread(1, &[LOCKED, ENTER]), thread(0, &[JointStep::TakeAndFree]), thread(0, &[JointStep::Take])];
const LOCK_THEN_BLOCK: &[Thread] = &[
    thread(1, &[LOCKED, JointStep::EnterAndFree]),
    thread(0, &[BLOCK_ANEW, JointStep::Write, JointStep::Read]),
];
const LOCK_AWAY_FROM_HOME: &[Thread] =
    &[thread(1, &[LOCKED, ENTER, JointStep::EnterAndFree]), thread(1, &[LOOK])];
const BLOCK_AWAY_FROM_HOME: &[Thread] =
    &[thread(1, &[COHERENT, JointStep::Write, JointStep::Free]), thread(1, &[JointStep::Read])];
const LOCK_THEN_BLOCK_AWAY: &[Thread] = &[thread(1, &[LOCKED, ENTER, BLOCK_ANEW, JointStep::Write])];
const BLOCK_THEN_LOCK_AWAY: &[Thread] = &[thread(1, &[COHERENT, JointStep::Write, LOCK_ANEW, ENTER])];
const BLOCK: &[Thread] = &[
    thread(1, &[COHERENT, JointStep::Write, JointStep::Free, COHERENT, JointStep::Read]),
    thread(0, &[JointStep::Write]),
];
const BLOCK_ONCE: &[Thread] =
    &[thread(1, &[COHERENT, JointStep::Write, JointStep::Free]), thread(0, &[JointStep::Read])];
const BLOCK_ALONE: &[Thread] = &[thread(1, &[COHERENT, JointStep::Write, JointStep::Free])];
const BLOCK_FREED_ELSEWHERE: &[Thread] = &[
    thread(1, &[COHERENT, JointStep::Write]),
    thread(0, &[JointStep::Free]),
    thread(0, &[BLOCK_ANEW, JointStep::Read]),
];
const BLOCK_THEN_LOCK: &[Thread] = &[
    thread(1, &[COHERENT, JointStep::Write, JointStep::Free]),
    thread(0, &[JointStep::Read]),
    thread(0, &[LOCK_ANEW, ENTER]),
];
const WORD: &[Thread] = &[
    thread(1, &[JointStep::Allocate(Discipline::Word), JointStep::Free]),
    thread(0, &[ENTER, JointStep::Read]),
];

/// Nodes 0 and 1 keep the memory with copies of number 0; nodes 1 and 2 that of number 1.
const COPIED: &[Thread] = &[thread(2, &[WRITE_COPIED, JointStep::Sync]), thread(1, &[READ_COPIED])];
const COPIED_ALONE: &[Thread] = &[thread(2, &[WRITE_COPIED, JointStep::Sync])];
const COPIED_AT_HOME: &[Thread] = &[thread(0, &[WRITE_COPIED, JointStep::Sync]), thread(2, &[READ_COPIED])];
const COPIED_BACKUP: &[Thread] = &[thread(1, &[WRITE_COPIED, JointStep::Sync]), thread(0, &[READ_COPIED])];
const COPIED_TWICE: &[Thread] = &[thread(2, &[WRITE_COPIED, WRITE_COPIED]), thread(1, &[READ_COPIED])];
const COPIED_BOTH: &[Thread] = &[thread(2, &[WRITE_COPIED, JointStep::Sync]), thread(1, &[WRITE_COPIED])];
const TWO_COPIED: &[Thread] = &[thread(2, &[WRITE_COPIED, WRITE_SECOND, JointStep::Sync])];
const TWO_COPIED_READ: &[Thread] =
    &[thread(2, &[WRITE_COPIED, WRITE_SECOND]), thread(0, &[JointStep::ReadCopied(1), READ_COPIED])];
/// One block of a batch may be written again while a thread writes in another one.
const COPIED_MOMENT: &[Thread] =
    &[thread(2, &[WRITE_COPIED, WRITE_COPIED]), thread(2, &[WRITE_SECOND]), thread(2, &[JointStep::Sync])];
const COPIED_GUARDED: &[Thread] =
    &[thread(2, &[WRITE_COPIED, JointStep::Guard(0)]), thread(1, &[JointStep::Guard(0), READ_COPIED])];
/// The second block of memory 0.
const COPIED_ALLOCATED: &[Thread] = &[thread(2, &[JointStep::AllocateCopied(3), JointStep::WriteCopied(3)])];

const PLAIN: Scope = Scope {
    name: "",
    about: "",
    nodes: 2,
    threads: LOCK,
    directory: Directory::Home,
    locks_in_switch: true,
    quick: Quick::Nothing,
    losses: 0,
    duplicates: 0,
    restarts: 0,
    dies: &[],
    deaths: 1,
    returns: false,
    copies: 1,
    memories: &[],
};

/// One memory with copies, and any node may die.
const COPIES: Scope = Scope {
    nodes: 3,
    threads: COPIED,
    quick: Quick::ButLast,
    dies: &[0, 1, 2],
    copies: 2,
    memories: &[0],
    ..PLAIN
};

/// All scopes.
#[rustfmt::skip]
pub const SCOPES: &[Scope] = &[
    Scope { name: "lock", about: "a lock is allocated, entered, and freed inside, while another node wants to enter", ..PLAIN },
    Scope { name: "lock-again", about: "then there is another one at its place", threads: LOCK_AGAIN, ..PLAIN },
    Scope { name: "lock-loss", about: "a lock is allocated and freed, 1 packet may be lost", threads: LOCK_ONCE, losses: 1, ..PLAIN },
    Scope { name: "lock-duplicate", about: "the same, 1 packet may come twice", threads: LOCK_ONCE, duplicates: 1, ..PLAIN },
    Scope { name: "lock-alone-restart", about: "the same without the other node, the switch may restart", threads: LOCK_ALONE, restarts: 1, quick: Quick::Blocks, ..PLAIN },
    Scope { name: "lock-away-restart", about: "the same, its home has allocated it, and another node frees it", threads: LOCK_AWAY, restarts: 1, quick: Quick::Blocks, ..PLAIN },
    Scope { name: "lock-restart", about: "as lock-loss, the switch may restart", threads: LOCK_ONCE, restarts: 1, quick: Quick::Blocks, ..PLAIN },
    Scope { name: "lock-free-outside", about: "a lock is freed by somebody who is not inside, and sent home", threads: LOCK_FREED_OUTSIDE, ..PLAIN },
    Scope { name: "lock-free-death", about: "who has allocated a lock may die while another node frees it inside, where others wait", threads: LOCK_FREED_ELSEWHERE, dies: &[1], ..PLAIN },
    Scope { name: "lock-take-death", about: "who is inside, and frees, may die; another takes the lock that is lost, if there still is one", threads: LOCK_TAKEN, dies: &[1], ..PLAIN },
    Scope { name: "lock-lost-death", about: "who has allocated a lock, and may be inside, may die; two others take it, one to free it", threads: LOCK_LOST, dies: &[1], ..PLAIN },
    Scope { name: "lock-change-death", about: "who has freed a lock may die; then its memory is a block", threads: LOCK_THEN_BLOCK, dies: &[1], ..PLAIN },
    Scope { name: "lock-home-death", about: "the home of a lock may die", threads: LOCK_AWAY_FROM_HOME, dies: &[0], ..PLAIN },
    Scope { name: "lock-home-return", about: "it may come back; then its memory is a block", threads: LOCK_THEN_BLOCK_AWAY, dies: &[0], returns: true, quick: Quick::Blocks, ..PLAIN },
    Scope { name: "block-home-death", about: "the home of a block may die", threads: BLOCK_AWAY_FROM_HOME, dies: &[0], ..PLAIN },
    Scope { name: "block-home-return", about: "it may come back; then its memory is a lock", threads: BLOCK_THEN_LOCK_AWAY, dies: &[0], returns: true, quick: Quick::Locks, ..PLAIN },
    Scope { name: "lock-free-death-restart", about: "as lock-free-death, and the switch may restart", threads: LOCK_FREED_ELSEWHERE, dies: &[1], restarts: 1, quick: Quick::Blocks, ..PLAIN },
    Scope { name: "block", about: "a block is allocated, written, freed, and allocated again, while another node writes", threads: BLOCK, ..PLAIN },
    Scope { name: "block-in-switch", about: "a block is allocated, written and freed, while another node reads; its entry is in the switch", threads: BLOCK_ONCE, directory: Directory::Switch, ..PLAIN },
    Scope { name: "block-loss", about: "the same, entry at the home, 1 packet may be lost", threads: BLOCK_ONCE, losses: 1, ..PLAIN },
    Scope { name: "block-duplicate", about: "the same, 1 packet may come twice", threads: BLOCK_ONCE, duplicates: 1, ..PLAIN },
    Scope { name: "block-alone-restart", about: "the same without the other node, the switch may restart", threads: BLOCK_ALONE, restarts: 1, quick: Quick::Locks, ..PLAIN },
    Scope { name: "block-free-death", about: "who has allocated a block may die while another node frees it; then there is another one", threads: BLOCK_FREED_ELSEWHERE, dies: &[1], ..PLAIN },
    Scope { name: "block-change-death", about: "who frees a block may die while another node has it; then its memory is a lock", threads: BLOCK_THEN_LOCK, dies: &[1], ..PLAIN },
    Scope { name: "copies", about: "a node writes memory with copies on the two others, and waits until that is safe, one of which reads; any node may die", ..COPIES },
    Scope { name: "copies-again", about: "the same, and then another one, while the memory is being copied", deaths: 2, ..COPIES },
    Scope { name: "copies-alone", about: "the same with one death, and nobody reads", threads: COPIED_ALONE, ..COPIES },
    Scope { name: "copies-alone-again", about: "the same, and another death", threads: COPIED_ALONE, deaths: 2, ..COPIES },
    Scope { name: "copies-home", about: "the home writes, and a node without a copy reads; any may die", threads: COPIED_AT_HOME, ..COPIES },
    Scope { name: "copies-home-again", about: "the same, and then another one", threads: COPIED_AT_HOME, deaths: 2, ..COPIES },
    Scope { name: "copies-backup", about: "the node that keeps the other copy writes, and the home reads; any may die", threads: COPIED_BACKUP, ..COPIES },
    Scope { name: "copies-backup-again", about: "the same, and then another one", threads: COPIED_BACKUP, deaths: 2, ..COPIES },
    Scope { name: "copies-twice", about: "a node writes a block twice, while another one reads it; any may die", threads: COPIED_TWICE, ..COPIES },
    Scope { name: "copies-both", about: "two nodes write; any may die", threads: COPIED_BOTH, ..COPIES },
    Scope { name: "copies-return", about: "as copies, and the node that has died comes back", returns: true, ..COPIES },
    Scope { name: "copies-return-home", about: "as copies-alone; the home dies, comes back, and may die once more", threads: COPIED_ALONE, returns: true, deaths: 2, dies: &[0], ..COPIES },
    Scope { name: "copies-return-alone", about: "as copies-alone, and the node that has died comes back", threads: COPIED_ALONE, returns: true, ..COPIES },
    Scope { name: "copies-restart", about: "as copies, and the switch may restart", restarts: 1, ..COPIES },
    Scope { name: "copies-loss", about: "as copies-alone, 1 packet may be lost", threads: COPIED_ALONE, losses: 1, ..COPIES },
    Scope { name: "copies-duplicate", about: "as copies-alone, 1 packet may come twice", threads: COPIED_ALONE, duplicates: 1, ..COPIES },
    Scope { name: "copies-three", about: "as copies, with three copies", copies: 3, ..COPIES },
    Scope { name: "copies-three-again", about: "the same, and two deaths", copies: 3, deaths: 2, ..COPIES },
    Scope { name: "copies-two", about: "a node writes in two memories, with homes of their own, and waits until that is safe; any may die", threads: TWO_COPIED, memories: &[0, 1], ..COPIES },
    Scope { name: "copies-two-again", about: "the same, and then another one", threads: TWO_COPIED, memories: &[0, 1], deaths: 2, ..COPIES },
    Scope { name: "copies-two-read", about: "a node writes in two memories, and another one reads in the opposite order; the writer may die", threads: TWO_COPIED_READ, memories: &[0, 1], dies: &[2], ..COPIES },
    Scope { name: "copies-two-read-any", about: "the same, any may die", threads: TWO_COPIED_READ, memories: &[0, 1], ..COPIES },
    Scope { name: "copies-moment", about: "three threads of a node write in two memories, and wait until that is safe; it may die", threads: COPIED_MOMENT, memories: &[0, 1], dies: &[2], ..COPIES },
    Scope { name: "copies-guard", about: "a node writes, and has a block lock; another one has it then, and reads; the writer may die", threads: COPIED_GUARDED, dies: &[2], ..COPIES },
    Scope { name: "copies-guard-any", about: "the same, any may die", threads: COPIED_GUARDED, ..COPIES },
    Scope { name: "copies-guard-again", about: "the same, and then another one", threads: COPIED_GUARDED, deaths: 2, ..COPIES },
    Scope { name: "copies-allocate", about: "a node allocates memory with copies, and writes it; any may die", threads: COPIED_ALLOCATED, ..COPIES },
    Scope { name: "copies-allocate-again", about: "the same, and then another one", threads: COPIED_ALLOCATED, deaths: 2, ..COPIES },
    Scope { name: "word", about: "a word is allocated and freed, while another node takes it for a lock, and for a block", threads: WORD, ..PLAIN },
];

impl Scope {
    /// Something may be lost, so that what stays unanswered is sent again.
    pub(super) const fn repeats(&self) -> bool {
        self.losses > 0 || self.restarts > 0 || !self.dies.is_empty()
    }
}
