//! What can be shown.

use node::{Access, Directory};
use sim::system::Fault;
use wire::{Nanos, NodeId, PacketKind};

use super::stage::Stage;

/// Something worth looking at.
pub struct Scenario {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// What to look at.
    pub about: &'static str,
    pub(super) nodes: usize,
    pub(super) directory: Directory,
    /// Conflicting requests stand in line.
    pub(super) queue: bool,
    pub(super) play: fn(&mut Stage),
}

const START: Nanos = Nanos::ZERO;

/// All of them.
pub static SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "read-miss",
        title: "A read miss of a block that nobody caches",
        about: "The switch locks the entry for reading and passes the request on to the home, which has the data. \
                The thread goes on when the block is there; the unlock follows by itself, in two passes.",
        nodes: 2,
        directory: Directory::Auto,
        queue: false,
        play: |stage| {
            let block = stage.block(1);
            stage.in_switch(block);
            stage.read((0, 0), START, block);
        },
    },
    Scenario {
        name: "read-modified",
        title: "A read miss of a block that another node has modified",
        about: "The owner gives up the right to write, and sends the block to the reader and to the home. Until the \
                home has acknowledged it, its memory is stale: the unlock waits for that, the thread does not.",
        nodes: 3,
        directory: Directory::Auto,
        queue: false,
        play: |stage| {
            let block = stage.block(1);
            stage.in_switch(block);
            stage.cached(2, block, Access::Modified);
            stage.read((0, 0), START, block);
        },
    },
    Scenario {
        name: "write-shared",
        title: "A node writes what others have cached, too",
        about: "The example of Figure 4 of the paper: the switch multicasts the request to the other sharers, whose \
                answers go straight to the writer. One round trip in all; nothing passes through the home.",
        nodes: 3,
        directory: Directory::Auto,
        queue: false,
        play: |stage| {
            let block = stage.block(1);
            stage.in_switch(block);
            for node in 0..3 {
                stage.cached(node, block, Access::Shared);
            }
            stage.write((0, 0), START, block, 7);
        },
    },
    Scenario {
        name: "write-miss",
        title: "A node writes what two others have cached",
        about: "All sharers give up their copies, and one of them, which the requester's random number picks, sends \
                the block along.",
        nodes: 3,
        directory: Directory::Auto,
        queue: false,
        play: |stage| {
            let block = stage.block(1);
            stage.in_switch(block);
            stage.cached(1, block, Access::Shared);
            stage.cached(2, block, Access::Shared);
            stage.write((0, 0), START, block, 7);
        },
    },
    Scenario {
        name: "home-directory",
        title: "The same write, where the home keeps the entry",
        about: "The switch does not have the entry and passes the request on. The home does what the switch would \
                have done, with the same tables: one hop more, and the work of a processor.",
        nodes: 3,
        directory: Directory::Home,
        queue: false,
        play: |stage| {
            let block = stage.block(1);
            stage.cached(1, block, Access::Shared);
            stage.cached(2, block, Access::Shared);
            stage.write((0, 0), START, block, 7);
        },
    },
    Scenario {
        name: "evict-modified",
        title: "A miss must evict a modified block first",
        about: "The eviction is an event of its own, under the entry's write lock: the request comes straight back, \
                the block goes home, and only when the home has it is the entry unlocked, and the frame used.",
        nodes: 2,
        directory: Directory::Switch,
        queue: false,
        play: |stage| {
            // The first one in is the least recently used.
            for _ in 0..8 {
                let block = stage.block(1);
                stage.cached(0, block, Access::Modified);
            }
            let block = stage.block(1);
            stage.read((0, 0), START, block);
        },
    },
    Scenario {
        name: "conflict",
        title: "Two nodes write a block at the same time",
        about: "The second request finds the entry locked and is refused. A refused event is unlocked like any \
                other, and tried again after a random wait.",
        nodes: 3,
        directory: Directory::Auto,
        queue: false,
        play: |stage| {
            let block = stage.block(1);
            stage.in_switch(block);
            stage.cached(1, block, Access::Modified);
            stage.write((0, 0), START, block, 7);
            stage.write((2, 0), Nanos(300), block, 8);
        },
    },
    Scenario {
        name: "in-line",
        title: "Three nodes write a block at the same time, and stand in line",
        about: "With `queue` a request that meets a writer is not refused: whoever was last in line is told who stands \
                behind it (FOLLOW). When it is done it asks the agents for that one, as the switch would have done.",
        nodes: 3,
        directory: Directory::Auto,
        queue: true,
        play: |stage| {
            let block = stage.block(1);
            stage.in_switch(block);
            stage.cached(1, block, Access::Modified);
            stage.write((0, 0), START, block, 7);
            stage.write((2, 0), Nanos(300), block, 8);
            stage.write((1, 0), Nanos(2_500), block, 9);
        },
    },
    Scenario {
        name: "migration",
        title: "A block becomes hot, and its entry moves to the switch",
        about: "Node 0 and node 2 write in turn. At the end of the epoch the home hands the entry to the switch: \
                ADD inserts it locked, the unlock activates it. The next miss needs the home no more.",
        nodes: 3,
        directory: Directory::Auto,
        queue: false,
        play: |stage| {
            let block = stage.block(1);
            stage.cached(2, block, Access::Modified);
            stage.write((0, 0), Nanos::from_micros(9_990), block, 7);
            stage.read((2, 0), Nanos::from_micros(10_030), block);
        },
    },
    Scenario {
        name: "lost-request",
        title: "A request is lost",
        about: "After six round trips, and not under 50 us, the requester asks again, with the same number.",
        nodes: 3,
        directory: Directory::Auto,
        queue: false,
        play: |stage| {
            let block = stage.block(1);
            stage.in_switch(block);
            stage.cached(2, block, Access::Shared);
            stage.lose(PacketKind::WriteMiss, PacketKind::WriteMiss, 2);
            stage.write((0, 0), START, block, 7);
        },
    },
    Scenario {
        name: "lost-unlock",
        title: "An unlock is lost",
        about: "Until it is repeated the entry stays locked, and another node's request is refused. A repeated \
                unlock that had been executed would change nothing: LAST-UNLOCK knows its number.",
        nodes: 3,
        directory: Directory::Auto,
        queue: false,
        play: |stage| {
            let block = stage.block(1);
            stage.in_switch(block);
            stage.lose(PacketKind::Unlock, PacketKind::WriteMiss, 1);
            stage.write((0, 0), START, block, 7);
            stage.read((2, 0), Nanos::from_micros(45), block);
        },
    },
    Scenario {
        name: "lost-data",
        title: "The owner's answer is lost, with the only copy of the block",
        about: "The owner has given up its copy already. It keeps what it answered until the event is known to be \
                closed, and answers the repeated request with the same block.",
        nodes: 3,
        directory: Directory::Auto,
        queue: false,
        play: |stage| {
            let block = stage.block(1);
            stage.in_switch(block);
            stage.cached(2, block, Access::Modified);
            stage.lose(PacketKind::Ack, PacketKind::WriteMiss, 1);
            stage.write((0, 0), START, block, 7);
        },
    },
    Scenario {
        name: "switch-restart",
        title: "The switch dies in the middle of a write, and comes back empty",
        about: "A new epoch begins. Operations in flight are aborted and begin again; every node reports to each \
                home what it caches of it; the homes rebuild the entries and answer again (section 5.4).",
        nodes: 3,
        directory: Directory::Auto,
        queue: false,
        play: |stage| {
            let block = stage.block(1);
            stage.in_switch(block);
            stage.cached(2, block, Access::Modified);
            stage.write((0, 0), START, block, 7);
            stage.at(Nanos(1_500), Fault::SwitchStops);
            stage.at(Nanos::from_micros(10), Fault::SwitchRestarts);
        },
    },
    Scenario {
        name: "node-crash",
        title: "A node dies that has the only current copy of a block",
        about: "Whoever touches the block from then on is told that it is lost. Nobody is given its old contents \
                from the home's memory.",
        nodes: 3,
        directory: Directory::Auto,
        queue: false,
        play: |stage| {
            let block = stage.block(1);
            stage.in_switch(block);
            stage.cached(2, block, Access::Modified);
            stage.at(Nanos(500), Fault::NodeStops(NodeId(2)));
            stage.read((0, 0), Nanos::from_micros(40), block);
        },
    },
    Scenario {
        name: "lock-hand-over",
        title: "A node asks for a lock that another node holds for writing",
        about: "The switch sends the request on to the holder, where it waits. The holder leaves, and sends lock and data to \
                the switch, with whom it knows to wait. The switch compares that with its own list, and hands both on to \
                the next writer. The home has no part in it.",
        nodes: 3,
        directory: Directory::Auto,
        queue: false,
        play: |stage| {
            let stage = stage.locks();
            let lock = stage.held(1, 2);
            stage.write((2, 0), START, lock, Nanos(3_000));
            stage.write((0, 0), Nanos(300), lock, Nanos(500));
        },
    },
];
