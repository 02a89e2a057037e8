//! One shared memory for a rack of machines, kept consistent in the network: the public API.
//!
//! A [`Rack`] is a set of nodes whose memories form one address space. [`Rack::node`] gives a [`NodeHandle`]
//! for one thread; through it the thread allocates, reads and writes any address of the rack. What it has
//! accessed lately is cached on its node, and the rack keeps the caches coherent.
//!
//! An application that shall not be a node uses the node of a daemon beside it: [`Rack::attach`].
//!
//! Applications that shall run on simulated racks as well are written against [`Memory`].
#![warn(missing_docs)]

mod addresses;
mod allocating;
mod at_hand;
pub mod attach;
mod chains;
mod config;
mod copies;
mod drain;
mod error;
mod handle;
mod joining;
mod lock;
mod locked;
mod mapping;
mod memory;
pub mod named;
mod objects;
mod peers;
mod rack;
pub mod rack_file;
mod regions;
mod report;
mod switch_process;
mod up;
mod words;

pub use at_hand::AtHand;
pub use attach::{AttachError, Attachments};
pub use chains::{Chains, ChainsConfig};
pub use config::{Config, ConfigError, Directory, MOST_LOCK_ENTRIES, MOST_SWITCH_ENTRIES, ProcessConfig};
pub use drain::{DrainError, Drained, Rest};
pub use error::{Error, JoinError};
pub use handle::{NodeHandle, WaitingAgent};
pub use lock::{BlockLock, LockMode};
pub use locked::{
    BytesReadGuard, BytesWriteGuard, HeldLock, HeldRegions, LockError, Locked, LockedBytes, LockedParts,
    LockedReadGuard, LockedRegions, LockedWriteGuard, Many, MappedReadGuard, MappedRegions, MappedWriteGuard,
    Part, Parts, PartsGuard, PartsReadGuard, PartsWriteGuard, RegionsError, RegionsReadGuard,
    RegionsWriteGuard, region_of,
};
pub use memory::{BlockMemory, LockMemory, Memory, block_on};
/// Bytes that a node's cache keeps for every block that it has capacity for, beside the block.
pub const METADATA_BYTES_PER_FRAME: usize = live::memory::Cache::METADATA_BYTES_PER_FRAME;
pub use dataplane;
pub use live::chains::{ServerCounts as ChainCounts, SteeringCounts};
pub use live::memory::locks::{MOST_WATCHED as MOST_WATCHED_LOCKS, Times as LockTimes, WatchedLock};
pub use live::memory::pages::MappedCounts;
pub use live::networked::verbs::NicCounts;
pub use live::networked::{
    Draining, Ended, MemoryStatus, NodeReport, NodeStatus, PlaneReport, SwitchReport, Watch,
};
#[cfg(target_os = "linux")]
pub use live::scheduling::{NoRealtime, Scheduling, ask_for_short_slice};
pub use mapping::{MapError, Mapping, PinnedBytes, PinnedRange, can_map};
pub use membership::Timing;
pub use membership::coordinator::{Counters as MembershipCounters, Phase};
pub use named::{ByteValue, NameError, NameMode, Nameable, Named, NamedInfo, NamedSpec, Region, Value};
pub use node::{Counters as ProtocolCounters, Window};
pub use objects::{ByteObjects, ObjectWriter, Objects, ReadError, Retry};
pub use peers::{PeerEvent, PeerWatch};
pub use rack::{Counters, MOST_NODES, NodeCounters, Rack, SwitchCounters};
pub use rack_file::{RackFile, RackFileError, StartError};
pub use switch_process::SwitchProcess;
pub use transport;
pub use up::{Processes, Up, UpError};
pub use wire::{BlockSize, Discipline, GlobalAddr, Nanos, NoAddress, NodeId};
pub use words::{Pending, Word, WordOperation, Words};
/// What the derives of [`FromBytes`] and the like (feature `derive`) need: `#[zerocopy(crate = "rackmem::zerocopy")]`.
pub use zerocopy;
pub use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The examples of pages, tested with those of the documentation.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/running.md")]
    struct Running;
    #[doc = include_str!("../../../docs/locks.md")]
    struct Locks;
}
