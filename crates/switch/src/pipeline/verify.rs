//! The rules of the chip, each as one check over the program's steps.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use super::budget::Budget;
use super::builder::ProgramBuilder;
use super::code::SELECTORS;
use super::error::BuildError;
use super::phv::{Field, Phv};
use super::primitive::Primitive;
use super::stage_map::StageMap;
use super::step::{Rmw, Step, Table};

/// The widest key that the model packs.
const KEY_BITS: u32 = 64;
/// Rows that a table can have: the action number is a byte, and 0 is the default action.
const ROWS: usize = 255;

/// Checks everything that does not depend on how much memory there is.
pub(super) fn steps(program: &ProgramBuilder, budget: &Budget) -> Result<(), BuildError> {
    fields(program, budget)?;
    arrays(program, budget)?;
    names(program)?;
    order(program, budget)?;
    for step in &program.steps {
        match step {
            Step::Rmw(rmw) => programs(program, rmw, budget)?,
            Step::Compute(compute) => side_by_side(program, &compute.name, &compute.primitives)?,
            Step::Table(table) => rows(program, table)?,
        }
    }
    one_access_per_array(program)?;
    dataflow(program)?;
    writers(program)
}

fn fields(program: &ProgramBuilder, budget: &Budget) -> Result<(), BuildError> {
    if program.fields.len() > Phv::FIELDS {
        return Err(BuildError::TooManyFields { have: program.fields.len(), most: Phv::FIELDS });
    }
    for field in &program.fields {
        if !(1..=64).contains(&field.bits) {
            return Err(BuildError::FieldWidth { field: field.name.clone(), bits: field.bits });
        }
    }
    let bits = program.fields.iter().map(|field| field.bits).sum();
    if bits > budget.phv_bits {
        return Err(BuildError::PhvTooWide { bits, most: budget.phv_bits });
    }
    Ok(())
}

fn arrays(program: &ProgramBuilder, budget: &Budget) -> Result<(), BuildError> {
    for array in &program.arrays {
        let name = || array.name.clone();
        if array.stage >= budget.stages {
            let (stage, stages) = (array.stage, budget.stages);
            return Err(BuildError::StageBeyondChip { what: name(), stage, stages });
        }
        let most = budget.cell_bits.min(64);
        if array.bits == 0 || array.bits > most {
            return Err(BuildError::CellTooWide { array: name(), bits: array.bits, most });
        }
        if array.entries == 0 {
            return Err(BuildError::EmptyArray { array: name() });
        }
    }
    Ok(())
}

/// Every array and field named is one of this program's: the checks after this one may index.
fn names(program: &ProgramBuilder) -> Result<(), BuildError> {
    for (at, step) in program.steps.iter().enumerate() {
        if let Step::Rmw(rmw) = step
            && rmw.array.0 >= program.arrays.len()
        {
            return Err(BuildError::Unknown { step: alloc::format!("step {at}") });
        }
        let mut named = reads(step);
        named.extend(writes(step));
        if named.iter().any(|field| field.index() >= program.fields.len()) {
            return Err(BuildError::Unknown { step: program.name_of(step).to_owned() });
        }
    }
    Ok(())
}

fn order(program: &ProgramBuilder, budget: &Budget) -> Result<(), BuildError> {
    let name = |step| String::from(program.name_of(step));
    for step in &program.steps {
        let (stage, stages) = (program.stage_of(step), budget.stages);
        if stage >= stages {
            return Err(BuildError::StageBeyondChip { what: name(step), stage, stages });
        }
    }
    for pair in program.steps.windows(2) {
        let (after_stage, stage) = (program.stage_of(&pair[0]), program.stage_of(&pair[1]));
        if stage < after_stage {
            return Err(BuildError::StepBack {
                step: name(&pair[1]),
                stage,
                after: name(&pair[0]),
                after_stage,
            });
        }
    }
    Ok(())
}

fn programs(program: &ProgramBuilder, rmw: &Rmw, budget: &Budget) -> Result<(), BuildError> {
    let array = &program.arrays[rmw.array.0];
    let mut distinct: Vec<_> = rmw.cases.iter().map(|(_, alu)| *alu).collect();
    distinct.sort_unstable();
    distinct.dedup();
    if distinct.len() > budget.programs_per_array {
        let (have, most) = (distinct.len(), budget.programs_per_array);
        return Err(BuildError::TooManyPrograms { array: array.name.clone(), have, most });
    }
    for (at, (value, _)) in rmw.cases.iter().enumerate() {
        if *value >= SELECTORS as u64 || rmw.cases[..at].iter().any(|(earlier, _)| earlier == value) {
            let limit = SELECTORS as u64;
            return Err(BuildError::BadSelector { array: array.name.clone(), value: *value, limit });
        }
    }
    if let Some(out) = rmw.out {
        let field = &program.fields[out.index()];
        let bits = distinct.iter().map(|alu| alu.output_bits(array.bits)).max().unwrap_or(0);
        if field.bits < bits {
            return Err(BuildError::OutputTooNarrow {
                step: array.name.clone(),
                field: field.name.clone(),
                field_bits: field.bits,
                bits,
            });
        }
    }
    Ok(())
}

fn side_by_side(program: &ProgramBuilder, step: &str, list: &[Primitive]) -> Result<(), BuildError> {
    for (at, primitive) in list.iter().enumerate() {
        let others = || list.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, other)| other);
        let to = primitive.writes();
        if others().any(|other| other.writes() == to || other.reads().any(|field| field == to)) {
            let field = program.fields[to.index()].name.clone();
            return Err(BuildError::Chained { step: step.to_owned(), field });
        }
    }
    Ok(())
}

fn rows(program: &ProgramBuilder, table: &Table) -> Result<(), BuildError> {
    let widths: Vec<u32> = table.key.iter().map(|field| program.fields[field.index()].bits).collect();
    let bits = widths.iter().sum();
    if bits > KEY_BITS {
        return Err(BuildError::KeyTooWide { table: table.name.clone(), bits, most: KEY_BITS });
    }
    if table.rows.len() > ROWS {
        let have = table.rows.len();
        return Err(BuildError::TooManyRows { table: table.name.clone(), have, most: ROWS });
    }
    for (at, row) in table.rows.iter().enumerate() {
        let fits = row.key.len() == widths.len()
            && row.key.iter().zip(&widths).all(|(m, bits)| m.ternary(0).1 & !mask(*bits) == 0);
        if !fits {
            return Err(BuildError::BadRow { table: table.name.clone(), row: at });
        }
        side_by_side(program, &table.name, &row.action)?;
    }
    side_by_side(program, &table.name, &table.default)
}

fn one_access_per_array(program: &ProgramBuilder) -> Result<(), BuildError> {
    for (at, array) in program.arrays.iter().enumerate() {
        let accesses = program.steps.iter().filter(|s| matches!(s, Step::Rmw(rmw) if rmw.array.0 == at));
        if accesses.count() > 1 {
            return Err(BuildError::ArrayTwice { array: array.name.clone() });
        }
    }
    Ok(())
}

/// Whoever uses a field comes after everyone who writes it, and somebody does.
fn dataflow(program: &ProgramBuilder) -> Result<(), BuildError> {
    for (at, step) in program.steps.iter().enumerate() {
        for field in reads(step) {
            let decl = &program.fields[field.index()];
            let mut defined = decl.parsed;
            for (other_at, other) in program.steps.iter().enumerate() {
                if !writes(other).contains(&field) {
                    continue;
                }
                defined = true;
                let (stage, writer_stage) = (program.stage_of(step), program.stage_of(other));
                if other_at != at && writer_stage >= stage {
                    return Err(BuildError::UsedTooEarly {
                        step: program.name_of(step).to_owned(),
                        stage,
                        field: decl.name.clone(),
                        writer: program.name_of(other).to_owned(),
                        writer_stage,
                    });
                }
            }
            if !defined {
                let step = program.name_of(step).to_owned();
                return Err(BuildError::Undefined { step, field: decl.name.clone() });
            }
        }
    }
    Ok(())
}

fn writers(program: &ProgramBuilder) -> Result<(), BuildError> {
    for (at, second) in program.steps.iter().enumerate() {
        let stage = program.stage_of(second);
        for first in program.steps[..at].iter().filter(|step| program.stage_of(step) == stage) {
            let exclusive = match (first.gate(), second.gate()) {
                (Some(one), Some(other)) => one.excludes(other),
                _ => false,
            };
            let shared = writes(second).into_iter().find(|field| writes(first).contains(field));
            if let Some(field) = shared.filter(|_| !exclusive) {
                return Err(BuildError::WriteConflict {
                    field: program.fields[field.index()].name.clone(),
                    first: program.name_of(first).to_owned(),
                    second: program.name_of(second).to_owned(),
                    stage,
                });
            }
        }
    }
    Ok(())
}

/// Checks what the stage map adds up to.
pub(super) fn resources(map: &StageMap) -> Result<(), BuildError> {
    let budget = &map.budget;
    for (stage, used) in map.stages.iter().enumerate() {
        let (arrays, tables) = (used.arrays.len(), used.arrays.len() + used.tables.len());
        if arrays > budget.stateful_alus_per_stage {
            let names: Vec<&str> = used.arrays.iter().map(|array| array.name.as_str()).collect();
            let (arrays, have, most) = (names.join(", "), arrays, budget.stateful_alus_per_stage);
            return Err(BuildError::TooManyArrays { stage, arrays, have, most });
        }
        if tables > budget.tables_per_stage {
            return Err(BuildError::TooManyTables { stage, have: tables, most: budget.tables_per_stage });
        }
        if used.sram_blocks > budget.sram_blocks_per_stage {
            let largest = used.largest_in_sram();
            let (blocks, most) = (used.sram_blocks, budget.sram_blocks_per_stage);
            return Err(BuildError::StageSram { stage, largest, blocks, most });
        }
        if used.tcam_blocks > budget.tcam_blocks_per_stage {
            let largest = used.largest_in_tcam();
            let (blocks, most) = (used.tcam_blocks, budget.tcam_blocks_per_stage);
            return Err(BuildError::StageTcam { stage, largest, blocks, most });
        }
    }
    if map.totals.sram_blocks > budget.sram_blocks {
        return Err(BuildError::ChipSram { blocks: map.totals.sram_blocks, most: budget.sram_blocks });
    }
    Ok(())
}

/// A mask of so many low bits, 1 to 64.
pub(crate) const fn mask(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

pub(super) fn reads(step: &Step) -> Vec<Field> {
    let mut fields: Vec<Field> = step.gate().map(|gate| gate.field).into_iter().collect();
    match step {
        Step::Rmw(rmw) => {
            fields.extend([rmw.index, rmw.select]);
            fields.extend(rmw.cases.iter().filter_map(|(_, alu)| alu.operand()));
        }
        Step::Compute(compute) => fields.extend(compute.primitives.iter().flat_map(|p| p.reads())),
        Step::Table(table) => {
            fields.extend(&table.key);
            fields.extend(actions(table).flat_map(Primitive::reads));
        }
    }
    fields
}

pub(super) fn writes(step: &Step) -> Vec<Field> {
    match step {
        Step::Rmw(rmw) => rmw.out.into_iter().collect(),
        Step::Compute(compute) => compute.primitives.iter().map(|p| p.writes()).collect(),
        Step::Table(table) => actions(table).map(Primitive::writes).collect(),
    }
}

fn actions(table: &Table) -> impl Iterator<Item = Primitive> {
    table.rows.iter().flat_map(|row| &row.action).chain(&table.default).copied()
}
