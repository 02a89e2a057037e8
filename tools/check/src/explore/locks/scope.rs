//! What is explored: a rack of locks small enough for all of its states.

use wire::{LockKind, Mode};

use crate::bytecode::Beside;
use crate::explore::thread;

/// What a thread may do in one turn, and with which lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LocksStep {
    /// Be inside to read.
    Read(u8),
    /// Be inside to write.
    Write(u8),
    /// Be inside to read, if that needs no waiting for others.
    TryRead(u8),
    /// Be inside to write, if that needs no waiting for others.
    TryWrite(u8),
    /// Be inside to write, and end the lock: when all other threads are done.
    Free(u8),
    /// Be inside to write, and end the lock: whoever waits for it is refused.
    End(u8),
    /// Be inside to write: of the next lock at the same place, when the region of this one has been given back.
    Anew(u8),
}

impl LocksStep {
    /// True if the lock is no more then.
    pub(super) const fn ends(self) -> bool {
        matches!(self, Self::Free(_) | Self::End(_))
    }

    /// The lock, what for, and whether not to wait.
    pub(super) const fn wants(self) -> (u8, Mode, bool) {
        match self {
            Self::Read(lock) => (lock, Mode::Read, false),
            Self::Write(lock) | Self::Free(lock) | Self::End(lock) | Self::Anew(lock) => {
                (lock, Mode::Write, false)
            }
            Self::TryRead(lock) => (lock, Mode::Read, true),
            Self::TryWrite(lock) => (lock, Mode::Write, true),
        }
    }
}

/// An application thread.
pub type Thread = crate::explore::Thread<LocksStep>;

/// Who keeps the locks' entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keeper {
    /// Their home, which asks nobody.
    Home,
    /// The switch.
    Switch,
    /// Their home, because the switch is full.
    Full,
}

/// A small rack: who does what, and what may go wrong, how often.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// Nodes, 2 or 3. Node 0 is home of all locks.
    pub nodes: u8,
    /// Locks, 1 or 2.
    pub locks: u8,
    /// The locks guard data.
    pub data: bool,
    /// Copies that each node has capacity for.
    pub room: u8,
    /// Who keeps the entries.
    pub keeper: Keeper,
    /// Threads of the holder that may go first.
    pub preference: u32,
    /// Threads, at most six.
    pub threads: &'static [Thread],
    /// Packets overtake each other; otherwise they keep their order from each place to each other one.
    pub reorder: bool,
    /// Packets that may be lost. Then time-outs are free when nothing else can happen; without losses nobody may depend on
    /// one.
    pub losses: u8,
    /// Packets that may be delivered once more.
    pub duplicates: u8,
    /// The only kind of packet that may be; `None`: any.
    pub twice: Option<LockKind>,
    /// Time-outs that may be premature.
    pub premature: u8,
    /// Threads that may give up waiting.
    pub cancels: u8,
    /// Times that a node may send home what it holds, as if it were about to leave the rack.
    pub leaves: u8,
    /// Times that the switch may stop and start again, empty.
    pub restarts: u8,
    /// Times that a full switch may get capacity for one entry.
    pub vacancies: u8,
    /// Whether an approved MOVE must name exactly those who wait. Only false to see what follows if it does not.
    pub judges_moves: bool,
    /// What runs beside the switch, from the same states.
    pub beside: Beside,
}

impl Scope {
    pub(super) fn ends_locks(&self) -> bool {
        self.threads.iter().any(|thread| thread.may.iter().any(|turn| turn.ends()))
    }

    /// What stays unanswered is sent again: where packets are lost, or come when nobody expects them.
    pub(super) const fn repeats(&self) -> bool {
        self.losses > 0 || self.duplicates > 0 || self.premature > 0 || self.restarts > 0
    }
}

use LocksStep::{Anew, End, Free, Read, TryRead, TryWrite, Write};

const READ: &[LocksStep] = &[Read(0)];
const WRITE: &[LocksStep] = &[Write(0)];
const BOTH: &[LocksStep] = &[Read(0), Write(0)];
const TRY: &[LocksStep] = &[TryRead(0), TryWrite(0)];
const TWO_LOCKS: &[LocksStep] = &[Read(0), Write(0), Read(1), Write(1)];
const FREE: &[LocksStep] = &[Free(0)];
const END: &[LocksStep] = &[End(0)];
const ANEW: &[LocksStep] = &[Anew(0)];

const ONE_EACH: &[Thread] = &[thread(0, 1, BOTH), thread(1, 1, BOTH)];
const AGAIN: &[Thread] = &[thread(1, 2, BOTH), thread(0, 1, READ)];
const THREE_EACH: &[Thread] = &[thread(0, 3, BOTH), thread(1, 3, BOTH)];
const READER_WRITER: &[Thread] = &[thread(0, 1, READ), thread(1, 1, WRITE)];
const ENDING: &[Thread] = &[thread(0, 1, BOTH), thread(1, 1, FREE), thread(0, 1, ANEW)];
const REFUSING: &[Thread] = &[thread(0, 1, BOTH), thread(1, 1, END), thread(1, 1, READ)];
const REPLACING: &[Thread] = &[thread(0, 1, BOTH), thread(1, 1, END), thread(0, 1, ANEW)];
const FREEING_ALONE: &[Thread] = &[thread(0, 1, BOTH), thread(1, 1, FREE)];
const AWAY: &[Thread] = &[thread(1, 1, WRITE), thread(2, 1, READ)];
const THREE_REFUSING: &[Thread] = &[thread(0, 1, BOTH), thread(1, 1, END), thread(2, 1, BOTH)];
const THREE_TURNS: &[Thread] = &[thread(0, 1, WRITE), thread(1, 1, WRITE), thread(2, 2, READ)];
const TWO_EACH: &[Thread] = &[thread(0, 2, BOTH), thread(1, 2, BOTH)];
const TWO_ON_EACH: &[Thread] =
    &[thread(0, 1, BOTH), thread(0, 1, BOTH), thread(1, 1, BOTH), thread(1, 1, BOTH)];
const TWO_ON_ONE: &[Thread] = &[thread(1, 1, BOTH), thread(1, 1, BOTH), thread(0, 1, BOTH)];
const TRYING: &[Thread] = &[thread(0, 1, BOTH), thread(1, 2, TRY)];
const EVICTING: &[Thread] = &[thread(1, 2, TWO_LOCKS), thread(0, 1, BOTH)];
const FREEING: &[Thread] = &[thread(0, 1, BOTH), thread(1, 1, BOTH), thread(1, 1, FREE)];
const THREE: &[Thread] = &[thread(0, 1, BOTH), thread(1, 1, BOTH), thread(2, 1, BOTH)];
const THREE_WRITERS: &[Thread] = &[thread(0, 2, WRITE), thread(1, 2, WRITE), thread(2, 2, WRITE)];
const THREE_READERS: &[Thread] = &[thread(0, 1, WRITE), thread(1, 1, READ), thread(2, 1, READ)];
const ONE_GOES_FIRST: &[Thread] =
    &[thread(0, 1, WRITE), thread(1, 1, WRITE), thread(1, 1, WRITE), thread(2, 1, WRITE)];
const TURNS: &[Thread] = &[thread(1, 2, WRITE), thread(0, 1, WRITE)];

/// Two nodes without faults: what all others begin with.
const PLAIN: Scope = Scope {
    name: "",
    about: "",
    nodes: 2,
    locks: 1,
    data: true,
    room: 2,
    keeper: Keeper::Switch,
    preference: 0,
    threads: ONE_EACH,
    reorder: true,
    losses: 0,
    duplicates: 0,
    twice: None,
    premature: 0,
    cancels: 0,
    leaves: 0,
    restarts: 0,
    vacancies: 0,
    judges_moves: true,
    beside: Beside::Nothing,
};

const HOME: Scope = Scope { keeper: Keeper::Home, ..PLAIN };

const THREE_NODES: Scope = Scope { nodes: 3, threads: THREE, ..PLAIN };

/// All scopes.
#[rustfmt::skip]
pub const SCOPES: &[Scope] = &[
    Scope { name: "switch", about: "2 nodes, 1 turn each, entry in the switch", ..PLAIN },
    Scope { name: "switch-two-turns", about: "2 turns each", threads: TWO_EACH, ..PLAIN },
    Scope { name: "switch-three-turns", about: "3 turns each", threads: THREE_EACH, ..PLAIN },
    Scope { name: "switch-in-order", about: "3 turns each, packets in order", threads: THREE_EACH, reorder: false, ..PLAIN },
    Scope { name: "switch-threads", about: "2 threads on one node, 1 on the other", threads: TWO_ON_ONE, ..PLAIN },
    Scope { name: "switch-4-threads", about: "2 threads on each node", threads: TWO_ON_EACH, ..PLAIN },
    Scope { name: "switch-preference", about: "the same; 1 thread of the holder's node may go first", threads: TWO_ON_EACH, preference: 1, ..PLAIN },
    Scope { name: "switch-loss", about: "2 packets may be lost", losses: 2, ..PLAIN },
    Scope { name: "switch-duplicate", about: "1 packet may come twice", duplicates: 1, ..PLAIN },
    Scope { name: "switch-timeout", about: "1 time-out may be premature", premature: 1, ..PLAIN },
    Scope { name: "switch-loss-duplicate", about: "1 lost, 1 twice", losses: 1, duplicates: 1, ..PLAIN },
    Scope { name: "switch-turns-loss", about: "2 turns each, 1 packet may be lost", threads: TWO_EACH, losses: 1, ..PLAIN },
    Scope { name: "switch-turns-duplicate", about: "2 turns each, 1 packet may come twice", threads: TWO_EACH, duplicates: 1, ..PLAIN },
    Scope { name: "switch-turns-loss-duplicate", about: "2 turns each, 1 lost, 1 twice", threads: TWO_EACH, losses: 1, duplicates: 1, ..PLAIN },
    Scope { name: "switch-late-request", about: "a writer that reads or writes again, and a reader; a request may come twice", threads: AGAIN, duplicates: 1, twice: Some(LockKind::Acquire), ..PLAIN },
    Scope { name: "switch-late-request-loss", about: "the same, 1 packet may be lost", threads: AGAIN, duplicates: 1, twice: Some(LockKind::Acquire), losses: 1, ..PLAIN },
    Scope { name: "home-late-request-loss", about: "the same, entry at the home", threads: AGAIN, duplicates: 1, twice: Some(LockKind::Acquire), losses: 1, ..HOME },
    Scope { name: "home-leave", about: "2 turns each, locks may be sent home", threads: TWO_EACH, leaves: 1, ..HOME },
    Scope { name: "switch-cancel", about: "2 turns each, 1 thread may give up", threads: TWO_EACH, cancels: 1, ..PLAIN },
    Scope { name: "switch-cancel-loss", about: "the same, 1 packet may be lost", threads: TWO_EACH, cancels: 1, losses: 1, ..PLAIN },
    Scope { name: "switch-cancel-duplicate", about: "the same, 1 packet may come twice", threads: TWO_EACH, cancels: 1, duplicates: 1, ..PLAIN },
    Scope { name: "switch-try", about: "1 thread does not want to wait, and may do so twice", threads: TRYING, ..PLAIN },
    Scope { name: "switch-try-duplicate", about: "the same, 1 packet may come twice", threads: TRYING, duplicates: 1, ..PLAIN },
    Scope { name: "switch-leave", about: "2 turns each, locks may be sent home", threads: TWO_EACH, leaves: 1, ..PLAIN },
    Scope { name: "switch-leave-loss", about: "1 turn each, locks may be sent home, 1 packet may be lost", leaves: 1, losses: 1, ..PLAIN },
    Scope { name: "switch-leave-duplicate", about: "1 turn each, locks may be sent home, 1 packet may come twice", leaves: 1, duplicates: 1, ..PLAIN },
    Scope { name: "switch-late-forward", about: "a writer with 2 turns and one with 1, locks may be sent home twice", threads: TURNS, leaves: 2, ..PLAIN },
    Scope { name: "switch-evict", about: "2 locks, room for 1 copy", threads: EVICTING, locks: 2, room: 1, ..PLAIN },
    Scope { name: "switch-evict-loss", about: "the same, 1 packet may be lost", threads: EVICTING, locks: 2, room: 1, losses: 1, ..PLAIN },
    Scope { name: "switch-evict-duplicate", about: "the same, 1 packet may come twice", threads: EVICTING, locks: 2, room: 1, duplicates: 1, ..PLAIN },
    Scope { name: "switch-free", about: "the lock is ended at last", threads: FREEING, ..PLAIN },
    Scope { name: "switch-free-loss", about: "the same, 1 packet may be lost", threads: FREEING, losses: 1, ..PLAIN },
    Scope { name: "switch-free-duplicate", about: "the same, 1 packet may come twice", threads: FREEING, duplicates: 1, ..PLAIN },
    Scope { name: "switch-refuse", about: "the lock is ended, and whoever waits is refused", threads: REFUSING, ..PLAIN },
    Scope { name: "switch-refuse-loss", about: "the same, 1 packet may be lost", threads: REFUSING, losses: 1, ..PLAIN },
    Scope { name: "switch-refuse-duplicate", about: "the same, 1 packet may come twice", threads: REFUSING, duplicates: 1, ..PLAIN },
    Scope { name: "home-refuse", about: "the same, entry at the home; 1 lost, 1 twice", threads: REFUSING, losses: 1, duplicates: 1, ..HOME },
    Scope { name: "switch-3-refuse", about: "3 nodes, the lock is ended, and whoever waits is refused", threads: THREE_REFUSING, ..THREE_NODES },
    Scope { name: "switch-anew", about: "the lock is ended, and there is another one at its place", threads: ENDING, ..PLAIN },
    Scope { name: "switch-anew-loss", about: "the same, 1 packet may be lost", threads: ENDING, losses: 1, ..PLAIN },
    Scope { name: "switch-anew-duplicate", about: "the same, 1 packet may come twice", threads: ENDING, duplicates: 1, ..PLAIN },
    Scope { name: "home-anew-duplicate", about: "the same, entry at the home", threads: ENDING, duplicates: 1, ..HOME },
    Scope { name: "switch-next", about: "the lock is ended while others ask for it, and there is another one at its place", threads: REPLACING, ..PLAIN },
    Scope { name: "switch-next-loss", about: "the same, 1 packet may be lost", threads: REPLACING, losses: 1, ..PLAIN },
    Scope { name: "switch-next-duplicate", about: "the same, 1 packet may come twice", threads: REPLACING, duplicates: 1, ..PLAIN },
    Scope { name: "switch-next-restart", about: "the same, the switch may restart", threads: REPLACING, restarts: 1, ..PLAIN },
    Scope { name: "full-next", about: "the same, the switch has no room, and may get it; 1 packet may come twice", keeper: Keeper::Full, vacancies: 1, threads: REPLACING, duplicates: 1, ..PLAIN },
    Scope { name: "home-next-loss", about: "the same, entry at the home, 1 packet may be lost", threads: REPLACING, losses: 1, ..HOME },
    Scope { name: "home-next-duplicate", about: "the same, entry at the home, 1 packet may come twice", threads: REPLACING, duplicates: 1, ..HOME },
    Scope { name: "switch-restart", about: "the switch may restart", restarts: 1, ..PLAIN },
    Scope { name: "switch-restart-twice", about: "1 reader, 1 writer, the switch may restart twice", threads: READER_WRITER, restarts: 2, ..PLAIN },
    Scope { name: "switch-restart-loss", about: "1 reader, 1 writer, the switch may restart, 1 packet may be lost", threads: READER_WRITER, restarts: 1, losses: 1, ..PLAIN },
    Scope { name: "switch-restart-duplicate", about: "1 reader, 1 writer, the switch may restart, 1 packet may come twice", threads: READER_WRITER, restarts: 1, duplicates: 1, ..PLAIN },
    Scope { name: "switch-restart-free", about: "the lock is ended at last, the switch may restart", threads: FREEING_ALONE, restarts: 1, ..PLAIN },
    Scope { name: "switch-no-data", about: "the lock guards no data, 2 turns each", data: false, threads: TWO_EACH, ..PLAIN },
    Scope { name: "switch-no-data-loss", about: "the lock guards no data, 2 packets may be lost", data: false, losses: 2, ..PLAIN },
    Scope { name: "switch-no-data-duplicate", about: "the lock guards no data, 1 packet may come twice", data: false, duplicates: 1, ..PLAIN },
    Scope { name: "switch-no-data-leave", about: "the same with locks that may be sent home", data: false, duplicates: 1, leaves: 1, ..PLAIN },
    Scope { name: "switch-no-data-restart", about: "the lock guards no data, the switch may restart", data: false, restarts: 1, ..PLAIN },
    Scope { name: "full", about: "the switch has no room for the entry, 2 turns each", keeper: Keeper::Full, threads: TWO_EACH, ..PLAIN },
    Scope { name: "full-loss", about: "the same with 1 turn each, 2 packets may be lost", keeper: Keeper::Full, losses: 2, ..PLAIN },
    Scope { name: "full-duplicate", about: "the same, 1 packet may come twice", keeper: Keeper::Full, duplicates: 1, ..PLAIN },
    Scope { name: "full-vacancy", about: "the same, and the switch may get room", keeper: Keeper::Full, duplicates: 1, vacancies: 1, ..PLAIN },
    Scope { name: "full-vacancy-no-data", about: "the same, the lock guards no data", keeper: Keeper::Full, duplicates: 1, vacancies: 1, data: false, ..PLAIN },
    Scope { name: "full-vacancy-loss", about: "the same with data, 2 packets may be lost", keeper: Keeper::Full, losses: 2, vacancies: 1, ..PLAIN },
    Scope { name: "home", about: "2 nodes, 1 turn each, entry at the home", ..HOME },
    Scope { name: "home-two-turns", about: "2 turns each", threads: TWO_EACH, ..HOME },
    Scope { name: "home-loss", about: "2 packets may be lost", losses: 2, ..HOME },
    Scope { name: "home-duplicate", about: "1 packet may come twice", duplicates: 1, ..HOME },
    Scope { name: "home-turns-loss-duplicate", about: "2 turns each, 1 lost, 1 twice", threads: TWO_EACH, losses: 1, duplicates: 1, ..HOME },
    Scope { name: "home-evict", about: "2 locks, room for 1 copy", threads: EVICTING, locks: 2, room: 1, ..HOME },
    Scope { name: "home-free", about: "the lock is ended at last; 1 lost, 1 twice", threads: FREEING, losses: 1, duplicates: 1, ..HOME },
    Scope { name: "home-restart", about: "the switch may restart", restarts: 1, ..HOME },
    Scope { name: "switch-3", about: "3 nodes, 1 turn each", ..THREE_NODES },
    Scope { name: "switch-3-turns", about: "2 writers with 1 turn, and a reader with 2", threads: THREE_TURNS, ..THREE_NODES },
    Scope { name: "switch-3-writers", about: "3 writers, 2 turns each", threads: THREE_WRITERS, ..THREE_NODES },
    Scope { name: "switch-3-readers", about: "1 writer, 2 readers, locks may be sent home", threads: THREE_READERS, leaves: 1, ..THREE_NODES },
    Scope { name: "switch-3-preference", about: "3 nodes, 2 threads on one of them, and 1 of the holder's may go first", threads: ONE_GOES_FIRST, preference: 1, ..THREE_NODES },
    Scope { name: "switch-3-loss", about: "3 nodes, 1 packet may be lost", losses: 1, ..THREE_NODES },
    Scope { name: "switch-3-duplicate", about: "3 nodes, 1 packet may come twice", duplicates: 1, ..THREE_NODES },
    Scope { name: "switch-3-loss-duplicate", about: "1 writer, 2 readers, 1 lost, 1 twice", threads: THREE_READERS, losses: 1, duplicates: 1, ..THREE_NODES },
    Scope { name: "switch-3-cancel", about: "3 nodes, 1 thread may give up", cancels: 1, ..THREE_NODES },
    Scope { name: "switch-3-leave", about: "3 nodes, locks may be sent home", leaves: 1, ..THREE_NODES },
    Scope { name: "switch-3-restart", about: "a writer and a reader away from the home, packets in order, the switch may restart", threads: AWAY, reorder: false, restarts: 1, ..THREE_NODES },
    Scope { name: "switch-3-no-data", about: "3 nodes, the lock guards no data, 1 packet may come twice", data: false, duplicates: 1, ..THREE_NODES },
    Scope { name: "home-3", about: "3 nodes, 1 turn each, entry at the home", keeper: Keeper::Home, ..THREE_NODES },
    Scope { name: "home-3-loss", about: "the same, 1 packet may be lost", keeper: Keeper::Home, losses: 1, ..THREE_NODES },
    Scope { name: "home-3-duplicate", about: "the same, 1 packet may come twice", keeper: Keeper::Home, duplicates: 1, ..THREE_NODES },
];
