//! What is explored: a rack small enough for all of its states.

use node::Directory;
use wire::PacketKind;

use crate::bytecode::Beside;
use crate::explore::thread;

/// What a thread may do in one turn, and with which block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CoherenceStep {
    /// Read it.
    Read(u8),
    /// Write it.
    Write(u8),
    /// Take its application lock for reading, and release it.
    LockRead(u8),
    /// Take its application lock for writing, and release it.
    LockWrite(u8),
}

/// An application thread.
pub type Thread = crate::explore::Thread<CoherenceStep>;

/// A small rack: who does what, and what may go wrong, how often.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// Nodes, 2 or 3. Node 0 is home of all blocks.
    pub nodes: u8,
    /// Blocks.
    pub blocks: u8,
    /// Frames of each cache: 1 or 2.
    pub frames: u8,
    /// Where entries are kept at first: [`Directory::Home`] or [`Directory::Switch`].
    pub directory: Directory,
    /// Requests that meet a writer wait in a queue, a READ-MISS when it has been refused once.
    pub queue: bool,
    /// Reads of blocks that another node has modified are done there.
    pub peeks: bool,
    /// An entry that is locked when it is to move to the switch moves when it is free.
    pub persistent: bool,
    /// Threads, at most six.
    pub threads: &'static [Thread],
    /// Packets overtake each other; otherwise they keep their order from each place to each other one.
    pub reorder: bool,
    /// A refused request is tried again only when the refused event's unlock is acknowledged: fewer events overlap.
    pub patient: bool,
    /// Packets that may be lost.
    pub losses: u8,
    /// Packets that may be delivered once more.
    pub duplicates: u8,
    /// The only kind of packet that may be; `None`: any.
    pub twice: Option<PacketKind>,
    /// Time-outs that may be premature. Where packets may be lost, time-outs when nothing else can happen are free.
    pub premature: u8,
    /// Entries that may move to the switch.
    pub adds: u8,
    /// Entries that may move back.
    pub removes: u8,
    /// Blocks that may be purged when all threads are done.
    pub purges: u8,
    /// What runs beside the switch, from the same states.
    pub beside: Beside,
}

use CoherenceStep::{LockRead, LockWrite, Read, Write};

const READ_WRITE: &[CoherenceStep] = &[Read(0), Write(0)];
const READ: &[CoherenceStep] = &[Read(0)];
const WRITE: &[CoherenceStep] = &[Write(0)];
const TWO_BLOCKS: &[CoherenceStep] = &[Read(0), Write(0), Read(1), Write(1)];
const LOCKS: &[CoherenceStep] = &[LockRead(0), LockWrite(0)];

const ONE_EACH: &[Thread] = &[thread(0, 1, READ_WRITE), thread(1, 1, READ_WRITE)];
const TWO_EACH: &[Thread] = &[thread(0, 2, READ_WRITE), thread(1, 2, READ_WRITE)];
const TWO_ON_ONE: &[Thread] = &[thread(1, 1, READ_WRITE), thread(1, 1, READ_WRITE), thread(0, 1, READ_WRITE)];
const EVICTING: &[Thread] = &[thread(1, 2, TWO_BLOCKS), thread(0, 1, READ_WRITE)];
const LOCKING: &[Thread] = &[thread(0, 1, LOCKS), thread(1, 1, LOCKS)];
const THREE: &[Thread] = &[thread(0, 1, READ_WRITE), thread(1, 1, READ_WRITE), thread(2, 1, READ_WRITE)];
const THREE_READ_WRITE: &[Thread] = &[thread(0, 1, WRITE), thread(1, 1, READ), thread(2, 1, READ_WRITE)];
const WRITERS: &[Thread] = &[thread(0, 1, WRITE), thread(1, 1, WRITE)];
/// A copy of one reader's request may come when the other has ended, and the owner owns again.
const READERS: &[Thread] = &[thread(1, 2, WRITE), thread(2, 1, READ), thread(0, 1, READ)];
/// A copy of a request, or of a write-back, may come when later ones have been executed.
const TAKING_TURNS: &[Thread] = &[thread(1, 2, WRITE), thread(0, 3, READ)];
const WRITING_TURNS: &[Thread] = &[thread(0, 2, WRITE), thread(1, 2, WRITE)];
/// A copy of what the switch says of an event may come in the one of the same parity.
const MANY_WRITES: &[Thread] = &[thread(0, 3, WRITE), thread(1, 2, WRITE)];
const THREE_WRITERS: &[Thread] = &[thread(0, 1, WRITE), thread(1, 1, WRITE), thread(2, 1, WRITE)];
const SWITCH: Directory = Directory::Switch;

/// Two nodes without faults: what all others begin with.
const PLAIN: Scope = Scope {
    name: "",
    about: "",
    nodes: 2,
    blocks: 1,
    frames: 2,
    directory: Directory::Home,
    queue: false,
    peeks: false,
    persistent: false,
    threads: ONE_EACH,
    reorder: true,
    patient: true,
    losses: 0,
    duplicates: 0,
    twice: None,
    premature: 0,
    adds: 0,
    removes: 0,
    purges: 0,
    beside: Beside::Nothing,
};

/// Blocks are read where they are.
const PEEK: Scope = Scope { peeks: true, threads: TAKING_TURNS, ..PLAIN };

/// Requests wait in a queue.
const QUEUE: Scope = Scope { queue: true, directory: SWITCH, ..PLAIN };

/// All scopes.
#[rustfmt::skip]
pub const SCOPES: &[Scope] = &[
    Scope { name: "home", about: "2 nodes, 1 turn each, entry at the home; retries overlap unlocks", patient: false, ..PLAIN },
    Scope { name: "home-in-order", about: "the same with 2 turns each, packets in order", threads: TWO_EACH, reorder: false, ..PLAIN },
    Scope { name: "home-two-turns", about: "2 turns each", threads: TWO_EACH, ..PLAIN },
    Scope { name: "home-loss", about: "2 packets may be lost", losses: 2, ..PLAIN },
    Scope { name: "home-duplicate", about: "1 packet may come twice", duplicates: 1, ..PLAIN },
    Scope { name: "home-timeout", about: "1 time-out may be premature", premature: 1, ..PLAIN },
    Scope { name: "home-loss-duplicate", about: "1 lost, 1 twice", losses: 1, duplicates: 1, ..PLAIN },
    Scope { name: "home-loss-timeout", about: "1 lost, 1 premature time-out", losses: 1, premature: 1, ..PLAIN },
    Scope { name: "home-evict", about: "2 blocks, caches of 1 frame", threads: EVICTING, blocks: 2, frames: 1, ..PLAIN },
    Scope { name: "home-evict-loss", about: "2 blocks, caches of 1 frame, 1 packet may be lost", threads: EVICTING, blocks: 2, frames: 1, losses: 1, ..PLAIN },
    Scope { name: "home-evict-duplicate", about: "2 blocks, caches of 1 frame, 1 packet may come twice", threads: EVICTING, blocks: 2, frames: 1, duplicates: 1, ..PLAIN },
    Scope { name: "home-threads", about: "2 threads on one node, 1 on the other", threads: TWO_ON_ONE, ..PLAIN },
    Scope { name: "home-purge", about: "the block is purged at last; 1 packet may come twice", purges: 1, duplicates: 1, ..PLAIN },
    Scope { name: "home-3", about: "3 nodes, 1 turn each", threads: THREE, nodes: 3, ..PLAIN },
    Scope { name: "home-3-purge", about: "3 nodes, the block is purged at last", threads: THREE_READ_WRITE, nodes: 3, purges: 1, ..PLAIN },
    Scope { name: "home-3-in-order-loss", about: "3 nodes, packets in order, 1 may be lost", threads: THREE, nodes: 3, reorder: false, losses: 1, ..PLAIN },
    Scope { name: "home-3-loss", about: "3 nodes, 1 packet may be lost", threads: THREE, nodes: 3, losses: 1, ..PLAIN },
    Scope { name: "home-3-duplicate", about: "3 nodes, 1 packet may come twice", threads: THREE, nodes: 3, duplicates: 1, ..PLAIN },
    Scope { name: "switch", about: "2 nodes, 1 turn each, entry in the switch; retries overlap unlocks", patient: false, directory: SWITCH, ..PLAIN },
    Scope { name: "switch-in-order", about: "the same with 2 turns each, packets in order", threads: TWO_EACH, reorder: false, directory: SWITCH, ..PLAIN },
    Scope { name: "switch-two-turns", about: "2 turns each", threads: TWO_EACH, directory: SWITCH, ..PLAIN },
    Scope { name: "switch-loss", about: "2 packets may be lost", losses: 2, directory: SWITCH, ..PLAIN },
    Scope { name: "switch-duplicate", about: "1 packet may come twice", duplicates: 1, directory: SWITCH, ..PLAIN },
    Scope { name: "switch-timeout", about: "1 time-out may be premature", premature: 1, directory: SWITCH, ..PLAIN },
    Scope { name: "switch-loss-duplicate", about: "1 lost, 1 twice", losses: 1, duplicates: 1, directory: SWITCH, ..PLAIN },
    Scope { name: "switch-loss-timeout", about: "1 lost, 1 premature time-out", losses: 1, premature: 1, directory: SWITCH, ..PLAIN },
    Scope { name: "switch-evict", about: "2 blocks, caches of 1 frame", threads: EVICTING, blocks: 2, frames: 1, directory: SWITCH, ..PLAIN },
    Scope { name: "switch-evict-loss", about: "2 blocks, caches of 1 frame, 1 packet may be lost", threads: EVICTING, blocks: 2, frames: 1, losses: 1, directory: SWITCH, ..PLAIN },
    Scope { name: "switch-evict-duplicate", about: "2 blocks, caches of 1 frame, 1 packet may come twice", threads: EVICTING, blocks: 2, frames: 1, duplicates: 1, directory: SWITCH, ..PLAIN },
    Scope { name: "switch-threads", about: "2 threads on one node, 1 on the other", threads: TWO_ON_ONE, directory: SWITCH, ..PLAIN },
    Scope { name: "switch-purge", about: "the block is purged at last; 1 packet may come twice", purges: 1, duplicates: 1, directory: SWITCH, ..PLAIN },
    Scope { name: "switch-3", about: "3 nodes, 1 turn each", threads: THREE, nodes: 3, directory: SWITCH, ..PLAIN },
    Scope { name: "switch-3-purge", about: "3 nodes, the block is purged at last", threads: THREE_READ_WRITE, nodes: 3, purges: 1, directory: SWITCH, ..PLAIN },
    Scope { name: "switch-3-in-order-loss", about: "3 nodes, packets in order, 1 may be lost", threads: THREE, nodes: 3, reorder: false, losses: 1, directory: SWITCH, ..PLAIN },
    Scope { name: "switch-3-loss", about: "3 nodes, 1 packet may be lost", threads: THREE, nodes: 3, losses: 1, directory: SWITCH, ..PLAIN },
    Scope { name: "switch-3-duplicate", about: "3 nodes, 1 packet may come twice", threads: THREE, nodes: 3, duplicates: 1, directory: SWITCH, ..PLAIN },
    Scope { name: "home-purge-unused", about: "a block that nobody has used is purged; 1 lost, 1 twice", threads: &[], purges: 1, losses: 1, duplicates: 1, ..PLAIN },
    Scope { name: "switch-purge-unused", about: "the same, entry in the switch", threads: &[], purges: 1, losses: 1, duplicates: 1, directory: SWITCH, ..PLAIN },
    Scope { name: "home-turns", about: "a writer and a reader in turns; 1 packet may come twice", threads: TAKING_TURNS, duplicates: 1, ..PLAIN },
    Scope { name: "switch-turns", about: "the same, entry in the switch", threads: TAKING_TURNS, duplicates: 1, directory: SWITCH, ..PLAIN },
    Scope { name: "home-3-readers", about: "a writer and 2 readers, packets in order, 1 may come twice", threads: READERS, nodes: 3, reorder: false, duplicates: 1, ..PLAIN },
    Scope { name: "switch-3-readers", about: "the same, entry in the switch", threads: READERS, nodes: 3, reorder: false, duplicates: 1, directory: SWITCH, ..PLAIN },
    Scope { name: "add-late-write", about: "2 writers, the entry may move to the switch, a WRITE-MISS may come twice", threads: WRITERS, adds: 1, duplicates: 1, twice: Some(PacketKind::WriteMiss), ..PLAIN },
    Scope { name: "home-late-write-back", about: "a writer and a reader in turns; a write-back may come twice", threads: TAKING_TURNS, duplicates: 1, twice: Some(PacketKind::WriteBack), ..PLAIN },
    Scope { name: "switch-late-read", about: "the same, entry in the switch; a READ-MISS may come twice", threads: TAKING_TURNS, duplicates: 1, twice: Some(PacketKind::ReadMiss), directory: SWITCH, ..PLAIN },
    Scope { name: "switch-late-write", about: "the same; a WRITE-SHARED may come twice", threads: TAKING_TURNS, duplicates: 1, twice: Some(PacketKind::WriteShared), directory: SWITCH, ..PLAIN },
    Scope { name: "switch-3-late-read", about: "a writer and 2 readers, packets in order; a READ-MISS may come twice", threads: READERS, nodes: 3, reorder: false, duplicates: 1, twice: Some(PacketKind::ReadMiss), directory: SWITCH, ..PLAIN },
    Scope { name: "locks", about: "application locks, 1 packet may come twice", threads: LOCKING, duplicates: 1, ..PLAIN },
    Scope { name: "locks-loss", about: "application locks, 1 packet may be lost", threads: LOCKING, losses: 1, ..PLAIN },
    Scope { name: "add", about: "the entry may move to the switch", adds: 1, ..PLAIN },
    Scope { name: "add-loss", about: "the same, 1 packet may be lost", adds: 1, losses: 1, ..PLAIN },
    Scope { name: "add-duplicate", about: "the same, 1 packet may come twice", adds: 1, duplicates: 1, ..PLAIN },
    Scope { name: "add-timeout", about: "the same, 1 time-out may be premature", adds: 1, premature: 1, ..PLAIN },
    Scope { name: "remove", about: "the entry may move back", directory: SWITCH, removes: 1, ..PLAIN },
    Scope { name: "remove-loss", about: "the same, 1 packet may be lost", directory: SWITCH, removes: 1, losses: 1, ..PLAIN },
    Scope { name: "remove-duplicate", about: "the same, 1 packet may come twice", directory: SWITCH, removes: 1, duplicates: 1, ..PLAIN },
    Scope { name: "to-and-fro", about: "the entry may move to the switch and back", adds: 1, removes: 1, ..PLAIN },
    Scope { name: "to-and-fro-duplicate", about: "the same, 1 packet may come twice", adds: 1, removes: 1, duplicates: 1, ..PLAIN },
    Scope { name: "add-3", about: "3 nodes, the entry may move to the switch", adds: 1, threads: THREE, nodes: 3, ..PLAIN },
    Scope { name: "remove-3", about: "3 nodes, the entry may move back", directory: SWITCH, removes: 1, threads: THREE, nodes: 3, ..PLAIN },
    Scope { name: "queue", about: "requests wait in a queue; 2 nodes, 1 turn each, retries overlap unlocks", patient: false, ..QUEUE },
    Scope { name: "queue-in-order", about: "the same with 2 turns each, packets in order", threads: TWO_EACH, reorder: false, ..QUEUE },
    Scope { name: "queue-two-turns", about: "2 turns each", threads: TWO_EACH, ..QUEUE },
    Scope { name: "queue-loss", about: "2 packets may be lost", losses: 2, ..QUEUE },
    Scope { name: "queue-duplicate", about: "1 packet may come twice", duplicates: 1, ..QUEUE },
    Scope { name: "queue-timeout", about: "1 time-out may be premature", premature: 1, ..QUEUE },
    Scope { name: "queue-loss-duplicate", about: "1 lost, 1 twice", losses: 1, duplicates: 1, ..QUEUE },
    Scope { name: "queue-evict", about: "2 blocks, caches of 1 frame", threads: EVICTING, blocks: 2, frames: 1, ..QUEUE },
    Scope { name: "queue-remove", about: "the entry may move back", removes: 1, ..QUEUE },
    Scope { name: "queue-threads", about: "2 threads on one node, 1 on the other", threads: TWO_ON_ONE, ..QUEUE },
    Scope { name: "queue-turns", about: "a writer and a reader in turns; 1 packet may come twice", threads: TAKING_TURNS, duplicates: 1, ..QUEUE },
    Scope { name: "queue-late-write", about: "2 writers in turns, packets in order, a WRITE-MISS may come twice", threads: WRITING_TURNS, reorder: false, duplicates: 1, twice: Some(PacketKind::WriteMiss), ..QUEUE },
    Scope { name: "queue-late-follow", about: "2 writers in turns, a FOLLOW may come twice", threads: MANY_WRITES, duplicates: 1, twice: Some(PacketKind::Follow), ..QUEUE },
    Scope { name: "queue-3-writers", about: "3 writers, packets in order", threads: THREE_WRITERS, nodes: 3, reorder: false, ..QUEUE },
    Scope { name: "queue-3-writers-loss", about: "3 writers, packets in order, 1 may be lost", threads: THREE_WRITERS, nodes: 3, reorder: false, losses: 1, ..QUEUE },
    Scope { name: "queue-3-writers-duplicate", about: "3 writers, packets in order, 1 may come twice", threads: THREE_WRITERS, nodes: 3, reorder: false, duplicates: 1, ..QUEUE },
    Scope { name: "queue-3-in-order", about: "3 nodes, 1 turn each, packets in order", threads: THREE, nodes: 3, reorder: false, ..QUEUE },
    Scope { name: "queue-3", about: "3 nodes, 1 turn each", threads: THREE, nodes: 3, ..QUEUE },
    Scope { name: "peek", about: "a writer, and a reader that peeks; entry at the home", ..PEEK },
    Scope { name: "peek-loss", about: "the same, 1 packet may be lost", losses: 1, ..PEEK },
    Scope { name: "peek-duplicate", about: "the same, 1 packet may come twice", duplicates: 1, ..PEEK },
    Scope { name: "peek-each", about: "2 nodes, 1 turn each, 1 lost, 1 twice", threads: ONE_EACH, losses: 1, duplicates: 1, ..PEEK },
    Scope { name: "peek-evict", about: "2 blocks, caches of 1 frame", threads: EVICTING, blocks: 2, frames: 1, ..PEEK },
    Scope { name: "peek-threads", about: "2 threads on one node, 1 on the other", threads: TWO_ON_ONE, ..PEEK },
    Scope { name: "peek-add", about: "the entry may move to the switch", adds: 1, threads: ONE_EACH, ..PEEK },
    Scope { name: "peek-remove", about: "the entry may move back", removes: 1, threads: ONE_EACH, directory: SWITCH, ..PEEK },
    Scope { name: "peek-purge", about: "the block is purged at last; 1 packet may come twice", purges: 1, duplicates: 1, threads: ONE_EACH, ..PEEK },
    Scope { name: "peek-3", about: "3 nodes", nodes: 3, threads: THREE_READ_WRITE, ..PEEK },
    Scope { name: "peek-switch", about: "a writer, and a reader that peeks; entry in the switch", directory: SWITCH, ..PEEK },
    Scope { name: "peek-switch-loss", about: "the same, 1 packet may be lost", directory: SWITCH, losses: 1, ..PEEK },
    Scope { name: "peek-switch-duplicate", about: "the same, 1 packet may come twice", directory: SWITCH, duplicates: 1, ..PEEK },
    Scope { name: "peek-switch-3", about: "3 nodes", nodes: 3, threads: THREE_READ_WRITE, directory: SWITCH, ..PEEK },
    Scope { name: "peek-queue", about: "the same with the queue, 2 nodes", queue: true, directory: SWITCH, ..PEEK },
    Scope { name: "peek-queue-duplicate", about: "with the queue, 1 turn each, 1 packet may come twice", queue: true, directory: SWITCH, threads: ONE_EACH, duplicates: 1, ..PEEK },
    Scope { name: "add-persistent", about: "the entry moves to the switch as soon as it is free", adds: 1, persistent: true, ..PLAIN },
    Scope { name: "add-persistent-duplicate", about: "the same, 1 packet may come twice", adds: 1, persistent: true, duplicates: 1, ..PLAIN },
];
