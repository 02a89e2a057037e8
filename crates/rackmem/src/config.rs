//! How a rack is set up, and what can be wrong with that.

use std::fmt;
use std::time::Duration;

use live::RackConfig;
use live::scheduling::{NoRealtime, Scheduling};
use membership::Timing;
use wire::{BlockSize, Copyset, Nanos};

pub use node::Directory;

/// A rack's configuration. The defaults are a small rack that fits on a laptop: 8 nodes, 4 KiB
/// blocks, 64 MiB of cache and 256 MiB of memory each (memory is taken from the system as it is used).
#[derive(Clone, Debug)]
pub struct Config {
    /// How many nodes: 1 to 64.
    pub nodes: usize,
    /// The unit of coherence and of atomicity.
    pub block_size: BlockSize,
    /// Bytes of cache on every node.
    pub cache: u64,
    /// Bytes of memory that every node contributes, and is home of.
    pub memory: u64,
    /// Directory entries that the switch has room for.
    pub switch_entries: usize,
    /// Where directory entries are kept.
    pub directory: Directory,
    /// What becomes of a request for a block of the switch that another node is just getting: it waits in line for
    /// its turn, or it is refused and tried again (as in Concordia).
    pub queue: bool,
    /// Small reads of a block that other nodes keep writing are done where the block is, and bring no copy (PEEK). That takes fewer
    /// messages where the same records are read and written. Up to half a block, and 2 KiB.
    pub peek: bool,
    /// How often homes and the switch exchange hot and cold blocks.
    pub epoch: Nanos,
    /// Bytes on every node for copies of what locks guard.
    pub lock_copies: u64,
    /// Locks whose entries the switch has room for. The homes of others keep theirs.
    pub lock_entries: usize,
    /// Keys of chains whose tails the switch holds, to send each append to the true one: the so many hottest, or all of them
    /// (`usize::MAX`), up to 100 thousand. None: it steers nothing.
    pub steering: Option<usize>,
    /// It sends reads to the tail, too: those of entries that fit a packet. Slots of a store then rest for seconds longer
    /// ([`NodeHandle::least_rest`](crate::NodeHandle::least_rest)). Only where it steers.
    pub steer_reads: bool,
    /// When the switch was restarted, metadata servers tell it the tails of the keys that are written to most. Only where it steers.
    pub preload: bool,
    /// Bytes of the largest region that a lock guards between processes: rings and buffers are made for it. At most 1 MiB.
    pub lock_region: u64,
    /// Fixes every random choice that does not depend on how the threads of this process are scheduled.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            nodes: 8,
            block_size: BlockSize::DEFAULT,
            cache: 64 << 20,
            memory: 256 << 20,
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
            seed: 1,
        }
    }
}

/// What a process of a rack of processes needs to know beside the rack's [`Config`]. The same at all places, but for
/// `strict`, `scheduling` and `patience`.
#[derive(Clone, Copy, Debug)]
pub struct ProcessConfig {
    /// When a node that is not heard of is given up, and what follows from that.
    pub timing: Timing,
    /// Every access looks at the clock, so that none is ever stale, not even in a process that was stopped for a while
    /// and declared dead meanwhile. Without this such a process may be given what it had cached until it has heard
    /// that it was declared dead.
    pub strict: bool,
    /// How the threads are scheduled that answer other nodes. Threads of applications ask for themselves:
    /// [`Scheduling::ask`].
    pub scheduling: Scheduling,
    /// How long a node may take to join.
    pub patience: Duration,
}

impl Default for ProcessConfig {
    /// A second until a node is given up, no strict leases, nothing of real time, half a minute to join.
    fn default() -> Self {
        Self {
            timing: Timing::new(Nanos(1_000_000_000)),
            strict: false,
            scheduling: Scheduling::Fair,
            patience: Duration::from_secs(30),
        }
    }
}

/// Entries that the published chip has room for beside nothing else (section 6 of the paper, rounded up to
/// what 7 ways of 64 Ki entries hold in their stages).
pub const MOST_SWITCH_ENTRIES: usize = 7 * 65_536;

/// Entries of the lock directory that the chip has room for beside a full FlowCC.
pub const MOST_LOCK_ENTRIES: usize = 65_536;

/// Frames in a bucket of the cache: the smallest cache there can be.
const FRAMES_PER_BUCKET: u64 = 8;

/// Why a rack cannot be set up this way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ConfigError {
    /// The process may not have threads that are scheduled so.
    Scheduling(NoRealtime),
    /// No nodes, or more than a copyset can name.
    Nodes {
        /// How many were asked for.
        asked: usize,
    },
    /// The cache does not hold one bucket, or has more frames than can be numbered.
    Cache {
        /// Bytes asked for.
        asked: u64,
        /// The least there must be.
        least: u64,
        /// The most there can be.
        most: u64,
    },
    /// A node's memory does not hold one usable block, or more than an address can name.
    Memory {
        /// Bytes asked for.
        asked: u64,
        /// The least there must be.
        least: u64,
        /// The most there can be.
        most: u64,
    },
    /// The switch would have no entries, or more than its memory holds.
    SwitchEntries {
        /// How many were asked for.
        asked: usize,
        /// The most there can be.
        most: usize,
    },
    /// The switch would keep no locks, or more than its memory holds.
    LockEntries {
        /// How many were asked for.
        asked: usize,
        /// The most there can be.
        most: usize,
    },
    /// Regions that no message can carry, or no multiple of 8.
    LockRegion {
        /// Bytes asked for.
        asked: u64,
        /// The most there can be.
        most: u64,
    },
    /// More copies of locks than slots can be numbered for.
    LockCopies {
        /// Bytes asked for.
        asked: u64,
        /// The most there can be.
        most: u64,
    },
    /// Epochs of no length.
    Epoch,
    /// Reads are to be steered, or tails told to the switch, and it does not steer.
    NotSteered,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nodes { asked } => {
                write!(
                    f,
                    "a rack of {asked} nodes is not possible: a copyset names 1 to {} nodes; change `nodes`",
                    Copyset::NODES
                )
            }
            Self::Cache { asked, least, most } => {
                write!(
                    f,
                    "a cache of {asked} bytes is not possible: one bucket takes {least} bytes, and {most} is the most; change `cache` or `block_size`"
                )
            }
            Self::Memory { asked, least, most } => {
                write!(
                    f,
                    "{asked} bytes of memory per node are not possible: {least} bytes is the least for this block size, {most} the most; change `memory` or `block_size`"
                )
            }
            Self::SwitchEntries { asked, most } => {
                write!(
                    f,
                    "{asked} switch entries are not possible: the chip holds 1 to {most}; change `switch_entries`, or keep all entries at the homes with `directory`"
                )
            }
            Self::LockEntries { asked, most } => {
                write!(
                    f,
                    "{asked} locks in the switch are not possible: it holds 1 to {most}; change `lock_entries`"
                )
            }
            Self::LockRegion { asked, most } => {
                write!(
                    f,
                    "regions of {asked} bytes are not possible: a multiple of 8 up to {most} is; change `lock_region`"
                )
            }
            Self::LockCopies { asked, most } => {
                write!(
                    f,
                    "{asked} bytes of copies for locks are not possible: {most} is the most; change `lock_copies`"
                )
            }
            Self::Scheduling(refused) => refused.fmt(f),
            Self::NotSteered => {
                write!(f, "a switch that does not steer cannot steer reads, or be told tails: set `steering`")
            }
            Self::Epoch => write!(f, "epochs of no length are not possible: change `epoch`"),
        }
    }
}

impl std::error::Error for ConfigError {}

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

    /// The shortest time for which slots of a store of chains rest on such a rack, whose clients use what they know for so long:
    /// [`NodeHandle::least_rest`](crate::NodeHandle::least_rest).
    pub fn least_rest(&self, lease: Nanos) -> Nanos {
        live::chain::least_rest(lease, self.steers())
    }

    fn steers(&self) -> Option<live::Steering> {
        let Self { steer_reads, preload, .. } = *self;
        self.steering.map(|keys| live::Steering { keys, reads: steer_reads, preload })
    }

    /// Checks everything that can be wrong.
    ///
    /// # Errors
    /// The first thing that is, and what to change.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.checked().map(|_| ())
    }

    pub(crate) fn checked(&self) -> Result<RackConfig, ConfigError> {
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
        Ok(RackConfig {
            nodes: self.nodes,
            block: self.block_size,
            cache: self.cache,
            memory: self.memory,
            switch_entries: self.switch_entries,
            directory: self.directory,
            epoch: self.epoch,
            queue: self.queue,
            peek: self.peek,
            lock_copies: self.lock_copies,
            lock_entries: self.lock_entries,
            steering: self.steers(),
        })
    }
}
