//! Flattens a verified program for the loop that runs it.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::builder::ProgramBuilder;
use super::cells::Cells;
use super::error::BuildError;
use super::phv::Field;
use super::primitive::Primitive;
use super::program::{Body, Case, FlatStep, FlatTable, KeyPart, Lookup, Program, Range, SELECTORS};
use super::stage_map::StageMap;
use super::step::{Gate, Rmw, Step, Table};
use super::verify::mask;

/// Keys of up to so many bits are looked up directly.
const DIRECT_BITS: u32 = 14;

/// A gate that is always open.
const OPEN: Gate = Gate { field: Field::SINK, mask: 0, value: 0, inverted: false };

pub(super) fn program(source: &ProgramBuilder, map: StageMap) -> Result<Program, BuildError> {
    let mut flat = Flattener { source, tables: Vec::new(), primitives: Vec::new() };
    let mut steps = Vec::with_capacity(source.steps.len());
    for (at, step) in source.steps.iter().enumerate() {
        let gate = step.gate().unwrap_or(OPEN);
        let following = source.steps[at..].iter();
        let same = following.take_while(|other| other.gate() == step.gate()).count();
        steps.push(FlatStep {
            gate_mask: gate.mask,
            gate_value: gate.value,
            gate_field: gate.field,
            gate_inverted: gate.inverted,
            closed: small(at + same)?,
            body: match step {
                Step::Rmw(rmw) => body(rmw)?,
                Step::Compute(compute) => Body::Compute(flat.action(&compute.primitives)?),
                Step::Table(table) => flat.table(table)?,
            },
        });
    }
    Ok(Program {
        steps: steps.into(),
        tables: flat.tables.into(),
        primitives: flat.primitives.into(),
        arrays: source.arrays.iter().map(|array| Cells::new(array.bits, array.entries)).collect(),
        map,
        passes: 0,
    })
}

fn body(rmw: &Rmw) -> Result<Body, BuildError> {
    let mut cases = [Case { alu: None, out: Field::SINK }; SELECTORS];
    for (value, alu) in &rmw.cases {
        let out = rmw.out.filter(|_| alu.has_output()).unwrap_or(Field::SINK);
        cases[small::<usize, _>(*value)?] = Case { alu: Some(*alu), out };
    }
    Ok(Body::Rmw { array: small(rmw.array.0)?, index: rmw.index, select: rmw.select, cases })
}

struct Flattener<'a> {
    source: &'a ProgramBuilder,
    tables: Vec<FlatTable>,
    primitives: Vec<Primitive>,
}

impl Flattener<'_> {
    fn action(&mut self, list: &[Primitive]) -> Result<Range, BuildError> {
        let from = small(self.primitives.len())?;
        self.primitives.extend_from_slice(list);
        Ok(Range { from, to: small(self.primitives.len())? })
    }

    fn table(&mut self, table: &Table) -> Result<Body, BuildError> {
        let mut key = Vec::with_capacity(table.key.len());
        let mut bits = 0;
        for field in &table.key {
            let width = self.source.fields[field.index()].bits;
            key.push(KeyPart { field: *field, mask: mask(width), shift: bits });
            bits += width;
        }
        let rows: Vec<(u64, u64)> = table
            .rows
            .iter()
            .map(|row| {
                row.key.iter().zip(&key).fold((0, 0), |packed, (part, place)| {
                    let (mask, value) = part.ternary(place.mask);
                    (packed.0 | mask << place.shift, packed.1 | value << place.shift)
                })
            })
            .collect();
        let mut actions = vec![self.action(&table.default)?];
        for row in &table.rows {
            actions.push(self.action(&row.action)?);
        }
        let lookup = if bits <= DIRECT_BITS { direct(&rows, bits)? } else { Lookup::Scan(rows.into()) };
        self.tables.push(FlatTable { key: key.into(), lookup, actions: actions.into() });
        Ok(Body::Table(small(self.tables.len() - 1)?))
    }
}

fn direct(rows: &[(u64, u64)], bits: u32) -> Result<Lookup, BuildError> {
    let action = |key: u64| rows.iter().position(|(mask, value)| key & mask == *value);
    let all: Result<Box<[u8]>, _> =
        (0..1 << bits).map(|key| action(key).map_or(Ok(0), |row| small(row + 1))).collect();
    Ok(Lookup::Direct(all?))
}

/// A number in the narrower form of the flat program.
fn small<T: TryFrom<V>, V>(value: V) -> Result<T, BuildError> {
    T::try_from(value).map_err(|_| BuildError::TooLarge)
}
