//! The check and forward tables (Tables 2 and 3 of the paper; Table 3 as PROTOCOLS.md restores it).
//!
//! They stand here once: the switch program compiles them into match-action tables of its pipeline, and the
//! home agent, which runs the same protocol for blocks that the switch does not own, looks them up directly.

use wire::GlobalStatus::{self, Modified, Shared, Unshared};
use wire::PacketKind::{self, *};

/// One row of the check table: a request that finds this state under its lock is valid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CheckRow {
    /// The request.
    pub event: PacketKind,
    /// The state that it must find; `None`: any.
    pub status: Option<GlobalStatus>,
    /// Whether the requester's node must have a copy; `None`: either way.
    pub member: Option<bool>,
}

const fn valid(event: PacketKind, status: Option<GlobalStatus>, member: Option<bool>) -> CheckRow {
    CheckRow { event, status, member }
}

/// Table 2, and the rows of the requests that the paper treats in its text (5.2) or that we add (locks, purge, peeks).
/// What no row matches is refused as outdated.
pub const CHECK: [CheckRow; 10] = [
    valid(ReadMiss, None, Some(false)),
    valid(WriteMiss, None, Some(false)),
    valid(WriteShared, Some(Shared), Some(true)),
    valid(EvictShared, Some(Shared), Some(true)),
    valid(EvictModified, Some(Modified), Some(true)),
    valid(LockRead, None, None),
    valid(LockWrite, None, None),
    valid(Purge, None, None),
    valid(RemoveFromSwitch, None, None),
    valid(Peek, Some(Modified), Some(false)),
];

/// Where a valid request goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Forward {
    /// To the home agent, for the data in its memory.
    Home = 1,
    /// To the one node that has it modified, which provides the data.
    Owner = 2,
    /// To one sharer, picked at random, which provides the data.
    OneSharer = 3,
    /// To all sharers; one of them, picked at random, provides the data.
    AllSharersOneProvides = 4,
    /// To all sharers but the requester, for invalidation only; if there is none, an answer to the requester.
    OtherSharers = 5,
    /// To all sharers, for invalidation only; if there is none, an answer to the requester.
    AllSharers = 6,
    /// Back to the requester: the lock was all that it needed.
    Requester = 7,
}

/// One row of the forward table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ForwardRow {
    /// The request.
    pub event: PacketKind,
    /// The state of the block; `None`: any.
    pub status: Option<GlobalStatus>,
    /// Where to.
    pub to: Forward,
}

const fn row(event: PacketKind, status: Option<GlobalStatus>, to: Forward) -> ForwardRow {
    ForwardRow { event, status, to }
}

/// Table 3, and the rows of the requests beyond it.
pub const FORWARD: [ForwardRow; 16] = [
    row(ReadMiss, Some(Unshared), Forward::Home),
    row(WriteMiss, Some(Unshared), Forward::Home),
    row(ReadMiss, Some(Modified), Forward::Owner),
    row(WriteMiss, Some(Modified), Forward::Owner),
    row(ReadMiss, Some(Shared), Forward::OneSharer),
    row(WriteMiss, Some(Shared), Forward::AllSharersOneProvides),
    row(WriteShared, Some(Shared), Forward::OtherSharers),
    row(EvictShared, Some(Shared), Forward::Requester),
    row(EvictModified, Some(Modified), Forward::Requester),
    row(LockRead, None, Forward::Requester),
    row(LockWrite, None, Forward::Requester),
    row(Purge, Some(Unshared), Forward::Requester),
    row(Purge, Some(Shared), Forward::AllSharers),
    row(Purge, Some(Modified), Forward::AllSharers),
    row(RemoveFromSwitch, None, Forward::Requester),
    row(Peek, Some(Modified), Forward::Owner),
];

impl CheckRow {
    /// The row of a table that does not check: for mutants.
    #[must_use]
    pub const fn unchecked(self) -> Self {
        Self { status: None, member: None, ..self }
    }
}

/// Looks up the check table.
pub fn check(event: PacketKind, status: GlobalStatus, member: bool) -> bool {
    CHECK.iter().any(|row| {
        row.event == event
            && row.status.is_none_or(|want| want == status)
            && row.member.is_none_or(|want| want == member)
    })
}

/// Looks up the forward table. Every request that passes the check has a row.
pub fn forward(event: PacketKind, status: GlobalStatus) -> Option<Forward> {
    FORWARD
        .iter()
        .find(|row| row.event == event && row.status.is_none_or(|want| want == status))
        .map(|row| row.to)
}
