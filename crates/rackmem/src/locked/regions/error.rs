//! Why a list of regions was not changed.

use std::fmt;

use wire::GlobalAddr;

use crate::error::Error;

/// Why a list of regions was not changed: it is as it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RegionsError {
    /// There are [`LockedRegions::MOST`](crate::LockedRegions::MOST) already.
    TooMany,
    /// They do not fit.
    NoRoom {
        /// Bytes that all of them would take, with their list.
        needed: usize,
        /// Bytes of room.
        room: usize,
    },
    /// There is no region with this number.
    NoSuchRegion {
        /// The number.
        number: usize,
        /// How many there are.
        count: usize,
    },
    /// Part of that memory is guarded by this lock already.
    Overlaps {
        /// Where the region begins that has it, or the lock's own memory.
        addr: GlobalAddr,
    },
    /// That region was not taken from anywhere, so it cannot go back.
    HasNoMemory {
        /// Its number.
        number: usize,
    },
    /// That region was taken from memory, and has the length of that.
    HasMemory {
        /// Its number.
        number: usize,
    },
    /// That region is one value, and has its length.
    IsOne {
        /// Its number.
        number: usize,
    },
    /// The lock is held to read only.
    IsRead,
    /// The memory cannot be had.
    Failed(Error),
}

impl From<Error> for RegionsError {
    fn from(why: Error) -> Self {
        Self::Failed(why)
    }
}

impl fmt::Display for RegionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany => {
                write!(f, "a lock guards at most {} regions: remove one first", super::list::MOST)
            }
            Self::NoRoom { needed, room } => write!(
                f,
                "the regions would take {needed} bytes with their list, and the lock was made with room for {room}"
            ),
            Self::NoSuchRegion { number, count } => {
                write!(f, "there is no region {number}: the lock guards {count}, counted from 0")
            }
            Self::Overlaps { addr } => {
                write!(f, "the lock guards part of that memory already: what begins at {addr}")
            }
            Self::HasNoMemory { number } => {
                write!(
                    f,
                    "region {number} was made by this lock, and not taken from memory: remove it instead"
                )
            }
            Self::HasMemory { number } => {
                write!(
                    f,
                    "region {number} has the length of the memory that it was taken from: give it back first"
                )
            }
            Self::IsOne { number } => {
                write!(f, "part {number} is one value, which neither grows nor shrinks: make it a `Many`")
            }
            Self::IsRead => f.write_str("the lock is held to read: take it to write"),
            Self::Failed(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for RegionsError {}
