//! How a rack is set up, whatever delivers its messages, and what can be wrong with that.

mod error;

use node::{Backoff, Directory, HoldTime, Peeks};
use switch::coherence::{self, Switch};
use wire::{BlockSize, Copyset, LockEnd, Nanos, NodeId, SwitchEpoch};

pub use error::ConfigError;

use crate::memory::NodeMemory;

/// Entries that the published chip has capacity for beside nothing else (section 6 of the paper, rounded up to
/// what 7 ways of 64 Ki entries hold in their stages).
pub const MOST_SWITCH_ENTRIES: usize = 7 * 65_536;

/// Entries of the lock directory that the chip has capacity for beside a full FlowCC.
pub const MOST_LOCK_ENTRIES: usize = 65_536;

/// Frames in a bucket of the cache: the smallest cache there can be.
const FRAMES_PER_BUCKET: u64 = 8;

/// On so many nodes memory with copies is kept at most.
pub const MOST_COPIES: usize = 3;

/// A rack with copies has at most so many nodes: its memories have ids behind theirs, and a set names 64.
pub const MOST_NODES_WITH_COPIES: usize = Copyset::NODES / 2;

/// Room for nodes that a rack has if it begins with no more.
const USUAL_PLACES: usize = 16;

/// The most bytes that are read where the block is.
const LONGEST_PEEK: u32 = 2048;

/// A rack's configuration. The defaults are a small rack that fits on a laptop: 8 nodes, 4 KiB
/// blocks, 64 MiB of cache and 256 MiB of memory each (memory is taken from the system as it is used).
#[derive(Clone, Debug)]
pub struct Config {
    /// How many nodes: 1 to 64. Of a rack of processes: those that it begins with.
    pub nodes: usize,
    /// How many nodes a rack of processes may come to have: others can be added while it runs. None: no more than it begins with.
    pub most_nodes: Option<usize>,
    /// The unit of coherence and of atomicity.
    pub block_size: BlockSize,
    /// Bytes of cache on every node.
    pub cache: u64,
    /// Bytes of memory that every node contributes, and is home of.
    pub memory: u64,
    /// On how many nodes what is allocated with copies is kept, 1 to 3; 1: nothing has copies. With more, every node contributes as
    /// much memory again for each copy, as it is used. Of a rack of processes: an embedded one dies as a whole.
    pub copies: usize,
    /// Bytes a second that come to a node of each memory with copies that too few have, at most; a block or more. Of a store of chains, at
    /// first; what clients change meanwhile comes twice as fast. Each node's own.
    pub refill: u64,
    /// Directory entries that the switch has capacity for.
    pub switch_entries: usize,
    /// Where directory entries are kept.
    pub directory: Directory,
    /// What becomes of a request for a block of the switch that another node is just getting: it waits in a queue for
    /// its turn, or it is refused and tried again (as in Concordia).
    pub queue: bool,
    /// Small reads of a block that other nodes keep writing are done where the block is, and bring no copy (PEEK). That takes fewer
    /// messages where the same records are read and written. Up to half a block, and 2 KiB.
    pub peek: bool,
    /// How often homes and the switch exchange hot and cold blocks.
    pub epoch: Nanos,
    /// Bytes on every node for copies of what locks guard.
    pub lock_copies: u64,
    /// Locks whose entries the switch has capacity for. The homes of others keep theirs.
    pub lock_entries: usize,
    /// Keys of chains whose tails the switch holds, to send each append to the true one: the so many hottest, or all of them
    /// (`usize::MAX`), up to 100 thousand. None: it steers nothing.
    pub steering: Option<usize>,
    /// It sends reads to the tail, too: those of entries that fit a packet. Slots of a store then stay in quarantine for seconds longer
    /// (`NodeHandle::least_quarantine`). Only where it steers.
    pub steer_reads: bool,
    /// When the switch was restarted, metadata servers tell it the tails of the keys that are written to most. Only where it steers.
    pub preload: bool,
    /// Bytes of the largest region that a lock guards between processes: rings and buffers are made for it. At most 1 MiB.
    pub lock_region: u64,
    /// Threads of the node that has a lock which go before another node that waits, each time the lock comes there. 0: all are served in
    /// the order in which they came. More saves trips where many threads of few nodes want one lock, and the others wait longer.
    pub own_first: u32,
    /// The first so many nodes keep names; none: all do. A name dies with its node, so those that come and go should keep none.
    pub name_nodes: Option<usize>,
    /// Fixes every random choice that does not depend on how the threads of this process are scheduled.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            nodes: 8,
            most_nodes: None,
            block_size: BlockSize::DEFAULT,
            cache: 64 << 20,
            memory: 256 << 20,
            copies: 1,
            refill: 20 << 20,
            switch_entries: 375_000,
            directory: Directory::Auto,
            queue: false,
            peek: false,
            epoch: Nanos::from_millis(10),
            lock_copies: 8 << 20,
            lock_entries: 65_536,
            steering: None,
            steer_reads: false,
            preload: false,
            lock_region: 64 << 10,
            own_first: 0,
            name_nodes: None,
            seed: 1,
        }
    }
}

/// How a switch steers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Steering {
    /// Keys whose tails it holds, to send each append to the true one: the so many hottest.
    pub keys: usize,
    /// It sends reads to the tail, too.
    pub reads: bool,
    /// When it is another one, the metadata servers tell it the tails that they know.
    pub preload: bool,
}

impl Config {
    /// The most bytes that a message of this rack carries beside its head: a block, or the region of a lock. Transports of all
    /// its places are opened for this.
    pub fn most_payload(&self) -> u64 {
        self.block_size.bytes().max(self.lock_region)
    }

    /// Bytes of a ring in shared memory that suits this rack: room for eight blocks, or two of the largest regions. A ring
    /// that is no larger than it must be stays in the processor's caches.
    pub fn ring_bytes(&self) -> usize {
        /// More than a head takes, and a wait queue.
        const HEAD: u64 = 512;
        let control = 2 * (transport::MOST_CONTROL as u64 + HEAD);
        let blocks = 8 * (self.block_size.bytes() + HEAD);
        let bytes = blocks.max(2 * (self.most_payload() + HEAD)).max(control).max(256 << 10);
        usize::try_from(bytes.next_power_of_two()).expect("a ring fits memory")
    }

    /// The shortest time for which slots of a store of chains stay in quarantine on such a rack, whose clients use what they know for so long: `NodeHandle::least_quarantine`.
    pub fn least_quarantine(&self, lease: Nanos) -> Nanos {
        crate::chains::least_quarantine(lease, self.steers())
    }

    /// How the switch steers. None: it forwards packets of chains as they are.
    pub fn steers(&self) -> Option<Steering> {
        let Self { steer_reads, preload, .. } = *self;
        self.steering.map(|keys| Steering { keys, reads: steer_reads, preload })
    }

    /// Checks everything that can be wrong.
    ///
    /// # Errors
    /// The first thing that is, and what to change.
    pub fn check(&self) -> Result<(), ConfigError> {
        let block = self.block_size.bytes();
        if !(1..=Copyset::NODES).contains(&self.nodes) {
            return Err(ConfigError::Nodes { asked: self.nodes });
        }
        let (least, most) = (FRAMES_PER_BUCKET * block, (u64::from(u32::MAX) - FRAMES_PER_BUCKET) * block);
        if !(least..=most).contains(&self.cache) {
            return Err(ConfigError::Cache { asked: self.cache, least, most });
        }
        let (least, most) = (2 * block, 1 << wire::addr::OFFSET_BITS);
        if !(least..=most).contains(&self.memory) {
            return Err(ConfigError::Memory { asked: self.memory, least, most });
        }
        if !(self.nodes..=Copyset::NODES).contains(&self.places()) {
            return Err(ConfigError::MostNodes { asked: self.places(), nodes: self.nodes });
        }
        let most = self.nodes.min(MOST_COPIES);
        if !(1..=most).contains(&self.copies) || self.memories() > Copyset::NODES {
            return Err(ConfigError::Copies { asked: self.copies, nodes: self.nodes });
        }
        if self.refill < self.block_size.bytes() {
            return Err(ConfigError::Refill { asked: self.refill, least: self.block_size.bytes() });
        }
        if !(1..=MOST_SWITCH_ENTRIES).contains(&self.switch_entries) {
            return Err(ConfigError::SwitchEntries { asked: self.switch_entries, most: MOST_SWITCH_ENTRIES });
        }
        if !(1..=MOST_LOCK_ENTRIES).contains(&self.lock_entries) {
            return Err(ConfigError::LockEntries { asked: self.lock_entries, most: MOST_LOCK_ENTRIES });
        }
        let most = u64::from(wire::packet::MAX_PAYLOAD);
        if self.lock_region > most || !self.lock_region.is_multiple_of(8) {
            return Err(ConfigError::LockRegion { asked: self.lock_region, most });
        }
        // Slots have 32-bit numbers, and there may have to be more of them than planned.
        let most = u64::from(u32::MAX) * 64;
        if self.lock_copies > most {
            return Err(ConfigError::LockCopies { asked: self.lock_copies, most });
        }
        if self.epoch == Nanos::ZERO {
            return Err(ConfigError::Epoch);
        }
        if self.steering.is_none() && (self.steer_reads || self.preload) {
            return Err(ConfigError::NotSteered);
        }
        if let Some(asked) = self.name_nodes
            && !(1..=self.nodes).contains(&asked)
        {
            return Err(ConfigError::NameNodes { asked, most: self.nodes });
        }
        Ok(())
    }

    /// The nodes that the rack may come to have: what counts nodes by their numbers counts to this.
    pub fn places(&self) -> usize {
        self.most_nodes.unwrap_or(self.nodes)
    }

    /// The nodes that a rack may come to have that begins with so many, if nobody says: room for some more.
    pub const fn usual_places(nodes: usize, copies: usize) -> usize {
        match (nodes, copies) {
            (0..=USUAL_PLACES, _) => USUAL_PLACES,
            (_, 0..=1) => Copyset::NODES,
            (MOST_NODES_WITH_COPIES.., _) => nodes,
            _ => MOST_NODES_WITH_COPIES,
        }
    }

    /// How many memories addresses of a rack of processes name: one of each node that there may be, and one with copies for each that the
    /// rack begins with, if there are such.
    pub fn memories(&self) -> usize {
        self.places() + if self.copies > 1 { self.nodes } else { 0 }
    }

    /// True for an address in memory with copies, of a rack of processes.
    pub fn has_copies(&self, memory: NodeId) -> bool {
        (self.places()..self.memories()).contains(&memory.index())
    }

    /// The numbers of the nodes.
    pub fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes).map(|id| NodeId(u16::try_from(id).expect("at most 64 nodes")))
    }

    /// How the machines of one node are set up, over a transport that loses nothing.
    pub(crate) fn node(&self, id: NodeId) -> node::NodeConfig {
        node::NodeConfig {
            block: self.block_size,
            chunk: node::allocator::ChunkSize::for_memory(self.memory, self.block_size),
            directory: self.directory,
            switch_entries: self.switch_entries,
            epoch: self.epoch,
            queue: self.queue,
            peeks: self.peeks(),
            // A turn ends at a deadline, and nobody runs a node's deadlines while all its threads hit: an embedded rack
            // would notice a millisecond late.
            hold_time: HoldTime::NONE,
            backoff: Backoff { first: Nanos(400), most: Nanos::from_micros(50) },
            copied: self.nodes,
            ..node::NodeConfig::new(id, self.places(), self.memory)
        }
    }

    /// Which reads are done where the block is: of less than half a block, so that much of it stays where it is; and not of so much
    /// that copying it twice takes longer than fetching it. Of as many blocks as there is cache for, a node remembers how they are used.
    fn peeks(&self) -> Peeks {
        if !self.peek {
            return Peeks::NEVER;
        }
        let half = u32::try_from(self.block_size.bytes() / 2).expect("a block has at most 1 MiB");
        let frames = usize::try_from(self.cache / self.block_size.bytes()).unwrap_or(usize::MAX);
        let Peeks { rows, tries, .. } = Peeks::LEARNED;
        Peeks { most: half.min(LONGEST_PEEK), rows: frames.clamp(256, rows), tries }
    }

    /// How the locks of one node are set up, over a transport that loses nothing.
    pub(crate) fn locks(&self, id: NodeId) -> node::locks::LockNodeConfig {
        node::locks::LockNodeConfig {
            in_switch: self.directory != Directory::Home,
            preference: self.own_first,
            ..node::locks::LockNodeConfig::new(id, self.places())
        }
    }

    /// The memory of one node.
    pub(crate) fn memory(&self) -> NodeMemory {
        let memory = NodeMemory::new(self.block_size, self.cache, self.memory);
        memory.with_lock_copies(self.lock_copies)
    }

    /// The same with places for memories with copies.
    pub(crate) fn memory_with_copies(&self) -> NodeMemory {
        let memories = if self.copies > 1 { self.nodes } else { 0 };
        self.memory().with_copies(self.places(), memories)
    }

    /// What the lock directory of the rack's switch is built for.
    pub fn lock_config(&self) -> switch::locks::DirectoryConfig {
        switch::locks::DirectoryConfig {
            at: LockEnd::Switch,
            nodes: self.places(),
            entries: self.lock_entries,
            epoch: SwitchEpoch(0),
        }
    }

    /// What the coherence program of the rack's switch is built for.
    pub fn switch_config(&self) -> coherence::SwitchConfig {
        coherence::SwitchConfig {
            nodes: self.places(),
            entries: self.switch_entries,
            epoch: SwitchEpoch(0),
            queue: self.queue,
            lock_slots: 0,
            peeks: self.peek,
            copies: self.copies > 1,
        }
    }

    /// The switch's directories, of blocks and of locks.
    ///
    /// # Panics
    /// If the chip has no capacity for them.
    pub(crate) fn directories(&self) -> (Switch, switch::locks::Directory) {
        let (coherence, locks) = (self.switch_config(), self.lock_config());
        (
            Switch::new(&coherence).expect("the FlowCC program fits the chip"),
            switch::locks::Directory::new(&locks).expect("the lock program fits the chip"),
        )
    }
}
