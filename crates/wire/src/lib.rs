//! What every place in the rack agrees on: addresses, ids, time, and the packets between places.
//!
//! This crate is values only. It turns bytes into checked values and values into bytes; it decides nothing.
//! Everything else in the protocol core builds on it.
//!
//! | module | holds |
//! | --- | --- |
//! | [`addr`] | global addresses, block sizes, block tags and the directory tags made from them |
//! | [`ids`] | nodes, requesters, sequence numbers, switch epochs, incarnations |
//! | [`copyset`] | which nodes hold a copy of a block |
//! | [`time`] | integer nanoseconds |
//! | [`coherence`] | request kinds, global status, refusal reasons: the vocabulary of FlowCC |
//! | [`rules`] | the protocol's rules by name: what a mutant leaves out |
//! | [`locks`] | packets of the locks that carry their data |
//! | [`chains`] | words and entries of chains: versions of a value, one behind the other |
//! | [`chain_pair`] | queue pairs between clients of chains and memory, by number |
//! | [`packet`] | the packet itself and its fixed little-endian layout |
//! | [`roce`] | packets of one-sided operations, as RDMA NICs write them |
//!
//! What must always hold: [`packet::Packet::parse`] never panics, whatever the bytes are, and a packet that
//! parses encodes to the same bytes again.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod addr;
pub mod chain_pair;
pub mod chains;
pub mod coherence;
pub mod copyset;
pub mod header;
pub mod ids;
mod listed;
pub mod locks;
pub mod packet;
pub mod roce;
pub mod rules;
pub mod time;

pub use addr::{BlockSize, BlockTag, Discipline, GlobalAddr, NoAddress};
pub use coherence::{BatchFate, GlobalStatus, PacketKind, Refusal, Status};
pub use copyset::Copyset;
pub use header::{Headed, HeaderField, HeaderFields, LockField};
pub use ids::{Endpoint, Incarnation, NodeId, RequesterId, Seq, SlotId, SwitchEpoch};
pub use locks::{LockEnd, LockKind, LockPacket, Mode, SIZED, Term, WaitList, region_bytes};
pub use packet::{Packet, ParseError};
pub use rules::{AllRules, Rule, Rules, Without};
pub use time::Nanos;

// What maps and sets are ordered by.
sorted::key!(
    BlockTag: u64 = |it| it.bits(),
    GlobalAddr: u64 = |it| it.bits(),
    NodeId: u16 = |it| it.0,
    RequesterId: (NodeId, u16) = |it| (it.node, it.slot.0),
    Seq: u64 = |it| it.0,
    SwitchEpoch: u32 = |it| it.0,
    Incarnation: u32 = |it| it.0,
    Nanos: u64 = |it| it.0,
    chains::Location: u32 = |it| it.to_bits(),
    roce::QpNumber: u32 = |it| it.get(),
    roce::Key: u32 = |it| it.0,
);
