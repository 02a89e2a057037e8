//! What nodes and mesh are made of, and how long everything takes on them.
//!
//! What must always hold: all numbers of the timing are here, with their source. What Table I of the RAE paper does not say is
//! said to be estimated, and from what.

use crate::isa::Kind;

/// The hardware of a machine, in cycles of its cores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chip {
    /// Clock of cores, caches, engines and mesh. Table I: 2 GHz.
    pub cycles_per_microsecond: u64,
    /// Bytes of the first-level data cache. Table I: 16 KB.
    pub first_level: u64,
    /// Bytes of the second level. Table I: 8 MB.
    pub second_level: u64,
    /// Lines of a set, in both. Table I: 8-way.
    pub ways: usize,
    /// Cycles that a core waits for a line of the second level; one of the first costs it nothing, because a pipeline hides it.
    /// Estimated: 10 ns, as 8 MB of SRAM take at this clock.
    pub second_level_cycles: u64,
    /// Cycles from a request until the memory's line is there. Table I says DDR4. DDR4-2400 at 17-17-17 (JESD79-4): 17 clocks to open
    /// a row, 17 to the first data, 4 for a burst of 8 are 31.7 ns; and 10 ns for the controller, estimated.
    pub memory_cycles: u64,
    /// Cycles for which a line occupies the memory's channel: 64 B at 19.2 GB/s (DDR4-2400, 8 B wide) are 3.3 ns.
    pub channel_cycles: u64,
    /// Cycles of a multiplication beyond the first. Estimated: a pipelined multiplier of an in-order core.
    pub multiplication: u64,
    /// Cycles of a division beyond the first. Estimated: four bits a cycle.
    pub division: u64,
    /// Cycles of the packetizer, to pack and to unpack, each. Estimated.
    pub packetizer: u64,
    /// Cycles of the engine's core for an operation on a line that is here: load, operation, store. Estimated: one each.
    pub operation: u64,
    /// Bytes of a flit; one passes in a cycle. Table I: 32 bits.
    pub flit: u64,
    /// Cycles of a hop on the mesh, router and link. The paper says none; 3 as in soNUMA's mesh at the same clock (SABRes, Table 2).
    pub hop: u64,
    /// Bytes of a packet before what it carries: route, nodes, operation, ticket. Estimated.
    pub header: u64,
}

impl Chip {
    /// The paper's.
    pub const PAPER: Self = Self {
        cycles_per_microsecond: 2_000,
        first_level: 16 << 10,
        second_level: 8 << 20,
        ways: 8,
        second_level_cycles: 20,
        memory_cycles: 84,
        channel_cycles: 7,
        multiplication: 2,
        division: 15,
        packetizer: 4,
        operation: 3,
        flit: 4,
        hop: 3,
        header: 8,
    };

    /// Cycles in which nothing that a node sends can reach another.
    pub(crate) const fn lookahead(&self) -> u64 {
        self.packetizer + self.hop + self.header / self.flit
    }

    /// Cycles of an instruction beyond its first, without those of memory.
    pub(crate) const fn beyond(&self, kind: Kind) -> u64 {
        match kind {
            Kind::Mul | Kind::Mulh | Kind::Mulhsu | Kind::Mulhu | Kind::Mulw => self.multiplication,
            Kind::Div | Kind::Divu | Kind::Rem | Kind::Remu => self.division,
            Kind::Divw | Kind::Divuw | Kind::Remw | Kind::Remuw => self.division,
            _ => 0,
        }
    }
}
