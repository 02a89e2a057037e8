//! A program's resource use, stage by stage: for people, for tools, and for the resource checks.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use super::budget::Budget;
use super::builder::ProgramBuilder;
use super::cells::bits_taken;
use super::error::BuildError;
use super::step::{Array, Step, Table};
use super::tally::Around;
use super::verify;

/// The stages of a program, and the totals.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StageMap {
    /// The program's name.
    pub program: String,
    /// What the chip has.
    pub budget: Budget,
    /// One entry a stage, up to the chip's last.
    pub stages: Vec<StageUse>,
    /// What it needs before and behind them, if the program says that in a switch's means.
    pub around: Option<Around>,
    /// How often each type of packet goes through the pipeline.
    pub passes: Vec<PacketPasses>,
    /// Sums over the stages.
    pub totals: Totals,
}

/// What a program has in one stage.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StageUse {
    /// Register arrays.
    pub arrays: Vec<ArrayUse>,
    /// Match-action tables.
    pub tables: Vec<TableUse>,
    /// Computations on PHV fields.
    pub computes: Vec<String>,
    /// SRAM blocks.
    pub sram_blocks: usize,
    /// TCAM blocks.
    pub tcam_blocks: usize,
}

/// A register array and what it takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArrayUse {
    /// Its name.
    pub name: String,
    /// Bits of a cell.
    pub bits: u32,
    /// Cells.
    pub entries: usize,
    /// Bytes of all cells.
    pub bytes: usize,
    /// SRAM blocks that they take.
    pub sram_blocks: usize,
    /// The programs of its stateful ALU.
    pub programs: Vec<String>,
}

/// A match-action table and what it takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableUse {
    /// Its name.
    pub name: String,
    /// Bits of its key.
    pub key_bits: u32,
    /// Its rows.
    pub rows: usize,
    /// Whether it needs ternary memory.
    pub ternary: bool,
    /// SRAM blocks: the rows of an exact table, and the actions.
    pub sram_blocks: usize,
    /// TCAM blocks: the rows of a ternary table.
    pub tcam_blocks: usize,
}

/// How often a type of packet goes through the pipeline.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PacketPasses {
    /// The type.
    pub packet: String,
    /// Passes, resubmissions included.
    pub passes: u32,
}

/// Sums over the stages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Stages with anything in them.
    pub stages: usize,
    /// Stages with register arrays.
    pub stages_with_arrays: usize,
    /// Bytes of all register arrays.
    pub register_bytes: usize,
    /// SRAM blocks.
    pub sram_blocks: usize,
    /// TCAM blocks.
    pub tcam_blocks: usize,
    /// Bits of all PHV fields.
    pub phv_bits: u32,
}

impl StageUse {
    /// True if the stage is empty.
    pub const fn is_empty(&self) -> bool {
        self.arrays.is_empty() && self.tables.is_empty() && self.computes.is_empty()
    }

    pub(super) fn largest_in_sram(&self) -> String {
        let arrays = self.arrays.iter().map(|array| (array.sram_blocks, &array.name));
        let tables = self.tables.iter().map(|table| (table.sram_blocks, &table.name));
        arrays.chain(tables).max().map(|(_, name)| name.clone()).unwrap_or_default()
    }

    pub(super) fn largest_in_tcam(&self) -> String {
        let largest = self.tables.iter().max_by_key(|table| table.tcam_blocks);
        largest.map(|table| table.name.clone()).unwrap_or_default()
    }
}

impl StageMap {
    /// Holds what is used against what there is.
    ///
    /// # Errors
    /// The first resource that there is too little of.
    pub fn verify(&self) -> Result<(), BuildError> {
        verify::resources(self)
    }
}

pub(super) fn of(program: &ProgramBuilder, budget: &Budget) -> StageMap {
    let mut stages = vec![StageUse::default(); budget.stages];
    for (at, array) in program.arrays.iter().enumerate() {
        stages[array.stage].arrays.push(array_use(program, at, array, budget));
    }
    for step in &program.steps {
        match step {
            Step::Rmw(_) => {}
            Step::Compute(compute) => stages[compute.stage].computes.push(compute.name.clone()),
            Step::Table(table) => stages[table.stage].tables.push(table_use(program, table, budget)),
        }
    }
    for stage in &mut stages {
        let (arrays, tables) = (stage.arrays.iter(), stage.tables.iter());
        stage.sram_blocks = total(arrays.map(|a| a.sram_blocks).chain(tables.map(|t| t.sram_blocks)));
        stage.tcam_blocks = stage.tables.iter().map(|table| table.tcam_blocks).sum();
    }
    let totals = Totals {
        stages: stages.iter().filter(|stage| !stage.is_empty()).count(),
        stages_with_arrays: stages.iter().filter(|stage| !stage.arrays.is_empty()).count(),
        register_bytes: total(stages.iter().flat_map(|stage| &stage.arrays).map(|array| array.bytes)),
        sram_blocks: total(stages.iter().map(|stage| stage.sram_blocks)),
        tcam_blocks: stages.iter().map(|stage| stage.tcam_blocks).sum(),
        phv_bits: program.fields.iter().map(|field| field.bits).sum(),
    };
    StageMap {
        program: program.name.clone(),
        budget: *budget,
        stages,
        around: None,
        passes: Vec::new(),
        totals,
    }
}

/// A sum that absurd sizes do not wrap: the resource checks shall see them.
fn total(uses: impl Iterator<Item = usize>) -> usize {
    uses.fold(0, usize::saturating_add)
}

fn array_use(program: &ProgramBuilder, at: usize, array: &Array, budget: &Budget) -> ArrayUse {
    let bytes = array.entries.saturating_mul(bits_taken(array.bits) as usize / 8);
    let mut programs: Vec<String> = Vec::new();
    for step in &program.steps {
        if let Step::Rmw(rmw) = step
            && rmw.array.0 == at
        {
            for (_, alu) in &rmw.cases {
                if !programs.iter().any(|name| name == alu.name()) {
                    programs.push(alu.name().into());
                }
            }
        }
    }
    ArrayUse {
        name: array.name.clone(),
        bits: array.bits,
        entries: array.entries,
        bytes,
        sram_blocks: bytes.div_ceil(budget.sram_block_bytes),
        programs,
    }
}

fn table_use(program: &ProgramBuilder, table: &Table, budget: &Budget) -> TableUse {
    let key_bits: u32 = table.key.iter().map(|field| program.fields[field.index()].bits).sum();
    let ternary = table.is_ternary();
    let wide = key_bits.div_ceil(budget.tcam_block_bits).max(1) as usize;
    // An SRAM word has 16 bytes; the rows of an exact table and the actions of any table lie in SRAM.
    let words = budget.sram_block_bytes / 16;
    let deep = table.rows.len().max(1).div_ceil(words.max(1));
    TableUse {
        name: table.name.clone(),
        key_bits,
        rows: table.rows.len(),
        ternary,
        sram_blocks: if ternary { deep } else { 2 * deep },
        tcam_blocks: if ternary { wide * table.rows.len().div_ceil(budget.tcam_block_rows) } else { 0 },
    }
}

impl fmt::Display for StageMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let budget = &self.budget;
        writeln!(f, "{} on a chip of {} stages", self.program, budget.stages)?;
        writeln!(f)?;
        writeln!(
            f,
            "{:>5}  {:<26} {:>4} {:>8} {:>9} {:>5} {:>5}  programs or rows",
            "stage", "array or table", "bits", "entries", "bytes", "SRAM", "TCAM"
        )?;
        for (number, stage) in self.stages.iter().enumerate() {
            let mut label = Label(Some(number));
            for array in &stage.arrays {
                let ArrayUse { name, bits, entries, bytes, sram_blocks, .. } = array;
                write!(
                    f,
                    "{label:>5}  {name:<26} {bits:>4} {entries:>8} {bytes:>9} {sram_blocks:>5} {:>5}  ",
                    ""
                )?;
                writeln!(f, "{}", array.programs.join(", "))?;
                label = Label(None);
            }
            for table in &stage.tables {
                let TableUse { name, key_bits, rows, sram_blocks, tcam_blocks, .. } = table;
                let kind = if table.ternary { "ternary" } else { "exact" };
                write!(f, "{label:>5}  {name:<26} {key_bits:>4} {:>8} {:>9} {sram_blocks:>5} ", "", "")?;
                writeln!(f, "{tcam_blocks:>5}  {rows} rows, {kind}")?;
                label = Label(None);
            }
            for name in &stage.computes {
                writeln!(
                    f,
                    "{label:>5}  {name:<26} {:>4} {:>8} {:>9} {:>5} {:>5}  computed",
                    "", "", "", "", ""
                )?;
                label = Label(None);
            }
        }
        let Totals { stages, stages_with_arrays, register_bytes, sram_blocks, tcam_blocks, phv_bits } =
            self.totals;
        writeln!(f)?;
        writeln!(f, "stages       {stages} of {}, {stages_with_arrays} with register arrays", budget.stages)?;
        writeln!(f, "registers    {register_bytes} bytes")?;
        writeln!(
            f,
            "SRAM blocks  {sram_blocks} of {}; fullest stage {} of {}",
            budget.sram_blocks,
            self.stages.iter().map(|stage| stage.sram_blocks).max().unwrap_or(0),
            budget.sram_blocks_per_stage
        )?;
        writeln!(f, "TCAM blocks  {tcam_blocks} of {}", budget.stages * budget.tcam_blocks_per_stage)?;
        writeln!(f, "PHV bits     {phv_bits} of {}", budget.phv_bits)?;
        if let Some(around) = self.around {
            writeln!(f)?;
            write!(f, "{around}")?;
        }
        if !self.passes.is_empty() {
            writeln!(f)?;
            writeln!(f, "passes through the pipeline")?;
        }
        for PacketPasses { packet, passes } in &self.passes {
            writeln!(f, "{passes:>5}  {packet}")?;
        }
        Ok(())
    }
}

/// A stage's number on its first line only.
#[derive(Clone, Copy)]
struct Label(Option<usize>);

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(number) => f.pad(&alloc::format!("{number}")),
            None => f.pad(""),
        }
    }
}
