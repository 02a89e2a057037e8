//! What can be wrong with how a rack is set up.

use std::fmt;

use super::MOST_COPIES;

use wire::Copyset;

use crate::scheduling::NoRealtime;

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
    /// The rack may come to have fewer nodes than it begins with, or more than a copyset can name.
    MostNodes {
        /// How many were asked for.
        asked: usize,
        /// Those that it begins with.
        nodes: usize,
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
    /// So many nodes cannot keep so many copies.
    Copies {
        /// Copies asked for.
        asked: usize,
        /// Nodes of the rack.
        nodes: usize,
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
    /// Copies that are missing would never be made.
    Refill {
        /// Bytes a second.
        asked: u64,
        /// A block.
        least: u64,
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
    /// No node, or more than there are, would keep names.
    NameNodes {
        /// What was asked for.
        asked: usize,
        /// The nodes of the rack.
        most: usize,
    },
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
            Self::MostNodes { asked, nodes } => {
                write!(
                    f,
                    "a rack of {nodes} nodes cannot come to have {asked}: {nodes} to {} are possible; change `most_nodes`",
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
            Self::Copies { asked, nodes } => {
                write!(
                    f,
                    "{asked} copies on {nodes} nodes are not possible: 1 to {MOST_COPIES} are, on as many nodes or more, and with more than one the rack begins with at most {} nodes less `most_nodes`; change `copies`",
                    Copyset::NODES
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
            Self::Refill { asked, least } => {
                write!(
                    f,
                    "{asked} bytes a second of missing copies are not possible: {least} or more are; change `refill`"
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
            Self::NameNodes { asked, most } => {
                write!(f, "{asked} nodes cannot keep names: 1 to {most} can; change `name_nodes`")
            }
            Self::Epoch => write!(f, "epochs of no length are not possible: change `epoch`"),
        }
    }
}

impl std::error::Error for ConfigError {}
