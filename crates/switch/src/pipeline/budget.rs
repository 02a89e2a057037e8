//! What a chip has to offer.

/// The resources that a program may use.
///
/// The numbers of [`Budget::PUBLISHED`] are public: 12 stages and 10-20 MB of SRAM from Concordia's section 2.2;
/// a PHV of 4 Kbit from the RMT paper (Bosshart et al., SIGCOMM 2013); per stage, 80 SRAM blocks of 1024 words
/// of 128 bits, 24 TCAM blocks of 512 words of 44 bits, 4 stateful ALUs and 16 tables from the Tofino back end
/// of the open P4 compiler (p4lang/p4c, `backends/tofino`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// Match-action stages.
    pub stages: usize,
    /// SRAM blocks in a stage.
    pub sram_blocks_per_stage: usize,
    /// SRAM blocks that the program may use in all stages together.
    pub sram_blocks: usize,
    /// Bytes in an SRAM block.
    pub sram_block_bytes: usize,
    /// TCAM blocks in a stage.
    pub tcam_blocks_per_stage: usize,
    /// Rows of a TCAM block.
    pub tcam_block_rows: usize,
    /// Key bits of a TCAM block.
    pub tcam_block_bits: u32,
    /// Register arrays that a stage can serve.
    pub stateful_alus_per_stage: usize,
    /// Match-action tables that a stage can hold; a register array occupies one too.
    pub tables_per_stage: usize,
    /// Different programs that an array's stateful ALU can hold.
    pub programs_per_array: usize,
    /// Widest cell of a register array, in bits.
    pub cell_bits: u32,
    /// Bits of the packet header vector.
    pub phv_bits: u32,
}

impl Budget {
    /// The published chip.
    pub const PUBLISHED: Self = Self {
        stages: 12,
        sram_blocks_per_stage: 80,
        sram_blocks: 12 * 80,
        sram_block_bytes: 16 << 10,
        tcam_blocks_per_stage: 24,
        tcam_block_rows: 512,
        tcam_block_bits: 44,
        stateful_alus_per_stage: 4,
        tables_per_stage: 16,
        programs_per_array: 4,
        cell_bits: 64,
        phv_bits: 4096,
    };

    /// Bytes of SRAM that the program may use.
    pub const fn bytes(&self) -> usize {
        self.sram_blocks * self.sram_block_bytes
    }
}
