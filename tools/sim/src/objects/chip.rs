//! What the chips are made of, and how long everything takes on them.
//!
//! What must always hold: all numbers of the testbed are here or in [`Software`](super::Software), with their source.

use wire::Nanos;

use crate::hardware::{Bandwidth, Picos};

/// Bytes of a block.
pub(super) const BLOCK: u64 = nic::objects::BLOCK;
/// Cores of a chip, each on a tile with a bank of the last-level cache (section 6: 16 cores, one bank a tile).
pub(super) const CORES: u8 = 16;
/// Tiles of a row and of a column. Figure 6 draws a square.
const SIDE: u8 = 4;
/// R2P2s, and back ends of RGP and RCP: one of each at the end of each row (Table 2: four across the edge).
pub(super) const EDGES: u8 = 4;
/// Channels of the memory (Table 2).
pub(super) const CHANNELS: u8 = 4;

/// The hardware of two chips that are connected directly. They are alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chip {
    /// Clock of cores, caches and mesh. Table 2: 2 GHz.
    pub cycles_per_microsecond: u64,
    /// Clock of the RMC's pipelines. Table 2: 1 GHz. Each takes one packet, or asks for one block, in a cycle.
    pub rmc_cycles_per_microsecond: u64,
    /// Cycles of a hop on the mesh. Table 2: 3.
    pub hop: u64,
    /// Bytes that a link of the mesh moves in a cycle. Table 2: 16.
    pub flit: u64,
    /// Cycles of a first-level cache. Table 2: 3, tag and data.
    pub first_level: u64,
    /// Cycles of a bank of the last-level cache. Table 2: 6.
    pub bank: u64,
    /// Bytes of the last-level cache. Table 2: 2 MB.
    pub cache: u64,
    /// Blocks of a set. Table 2: 16 ways.
    pub ways: usize,
    /// Latency of the memory. Table 2: 50 ns.
    pub memory: Nanos,
    /// Bandwidth of one of the memory's four channels. Table 2: 25.6 GB/s.
    pub channel: Bandwidth,
    /// Cycles in the coherence port of an R2P2 (tags, miss registers, both ways together). Estimated: what is left of the 90 ns of
    /// an average access (section 5.1) after mesh, bank, channel and memory. So the 90 ns contain the 50 ns.
    pub port: u64,
    /// What an R2P2 moves at its peak. Section 5.1: 20 GB/s.
    pub r2p2: Bandwidth,
    /// Blocks that an R2P2 has asked the memory for and not got. Estimated: twice what 20 GB/s and 90 ns need, so that it
    /// is not what bounds it.
    pub outstanding: u32,
    /// Between the chips. Table 2: 35 ns a hop, and there is one.
    pub between: Nanos,
    /// Bandwidth between the chips, in each direction. Table 2: 100 GB/s.
    pub link: Bandwidth,
    /// Bytes of a packet's header, and of a packet without a block. Estimated: with more than 10, SABRes of two blocks, which need a
    /// packet more than reads, could not have the reads' throughput over this link, as they do in Figure 7b.
    pub header: u64,
    /// Cycles of the RMC's clock that a packet spends in RGP, R2P2 or RCP, each. Estimated, with the two after it, from one sentence: a read
    /// starts at three to four times an access to local memory (section 2.3), so at 270 ns or somewhat more.
    pub pipeline: u64,
    /// Cycles of a core to post an operation, until the RGP's front end beside it has seen it. Estimated, as above.
    pub post: u64,
    /// Cycles of a core from a completion's entry until the core has taken it. Estimated: as posting.
    pub poll: u64,
    /// Cycles of a core to write a block that is its own: eight stores, one in a cycle. Estimated: no store is delayed.
    pub store: u64,
    /// Cycles of a writer between objects, and for its compare-and-swap. Estimated.
    pub turn: u64,
    /// Blocks that a writer asks for ahead of the one that it writes. Estimated: what a store buffer prefetches.
    pub ahead: u32,
}

impl Chip {
    /// The paper's (Table 2).
    pub const PAPER: Self = Self {
        cycles_per_microsecond: 2_000,
        rmc_cycles_per_microsecond: 1_000,
        hop: 3,
        flit: 16,
        first_level: 3,
        bank: 6,
        cache: 2 << 20,
        ways: 16,
        memory: Nanos(50),
        channel: Bandwidth::megabits(204_800),
        port: 14,
        r2p2: Bandwidth::megabits(160_000),
        outstanding: 64,
        between: Nanos(35),
        link: Bandwidth::megabits(800_000),
        header: 8,
        pipeline: 16,
        post: 40,
        poll: 40,
        store: 8,
        turn: 20,
        ahead: 4,
    };

    /// So many cycles of a core.
    pub(super) const fn cycles(&self, count: u64) -> Picos {
        Picos(count * 1_000_000 / self.cycles_per_microsecond)
    }

    /// So many cycles of an RMC.
    pub(super) const fn rmc(&self, count: u64) -> Picos {
        Picos(count * 1_000_000 / self.rmc_cycles_per_microsecond)
    }

    /// How long a packet's first flit is in flight.
    pub(super) fn way(&self, from: Position, to: Position) -> Picos {
        self.cycles(self.hop * from.hops(to))
    }

    /// How long a block and its header take to pass a link of the mesh, one flit after the other.
    pub(super) const fn flits(&self) -> Picos {
        self.cycles(1 + BLOCK / self.flit)
    }

    /// A block of the last-level cache, as a core gets it on average: 2.5 hops away.
    pub(super) const fn cached(&self) -> Picos {
        self.cycles(self.first_level + self.hop * 5 + self.bank).plus(self.flits())
    }
}

/// Where something is on a chip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Position {
    column: i8,
    row: i8,
}

impl Position {
    pub(super) const fn tile(number: u8) -> Self {
        Self { column: (number % SIDE) as i8, row: (number / SIDE) as i8 }
    }

    /// The bank of a block. Blocks are spread over banks one by one; the bits above decide, too, lest objects whose size is a
    /// power of two had all headers in one bank.
    pub(super) const fn bank(block: u64) -> Self {
        Self::tile(((block ^ block >> 4 ^ block >> 8 ^ block >> 12) % CORES as u64) as u8)
    }

    /// An R2P2, or a back end of RGP or RCP.
    pub(super) const fn edge(number: u8) -> Self {
        Self { column: -1, row: number as i8 }
    }

    /// The controller of a channel, at the other end of a row. Figure 6 does not draw them: estimated.
    pub(super) const fn channel(number: u8) -> Self {
        Self { column: SIDE as i8, row: number as i8 }
    }

    const fn hops(self, to: Self) -> u64 {
        self.column.abs_diff(to.column) as u64 + self.row.abs_diff(to.row) as u64
    }
}

/// The channel of a block.
pub(super) const fn channel_of(block: u64) -> u8 {
    ((block ^ block >> 2 ^ block >> 5 ^ block >> 9) % CHANNELS as u64) as u8
}
