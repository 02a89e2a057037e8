//! Works a program out for packets of which some fields are known beforehand, and for a deparser that looks at some only.
//!
//! The parser supplies what an array is to do as a field, and for one type of packet that is always the same.
//! So most questions that the code asks in a pass, which program of this array, is this gate open, which of
//! these rows, have one answer per type of packet, and need not be asked again for every one.

use alloc::vec::Vec;

use super::builder::ProgramBuilder;
use super::compile::DECIDED;
use super::phv::Field;
use super::primitive::Primitive;
use super::step::{Compute, Gate, Match, Step, Table};
use super::verify::{reads, writes};

/// The steps that remain.
pub(super) fn with(program: &ProgramBuilder, known: &[(Field, u64)]) -> Vec<Step> {
    let mut steps = program.steps.clone();
    // Every round may drop the last writer of a field, which is then known to keep its first value.
    loop {
        let value = |field: Field| {
            let decl = &program.fields[field.index()];
            if steps.iter().any(|step| writes(step).contains(&field)) {
                return None;
            }
            let given = known.iter().find(|(which, _)| *which == field).map(|(_, value)| *value);
            given.or((!decl.parsed).then_some(0))
        };
        let bits = |field: Field| program.fields[field.index()].bits;
        let rest: Vec<Step> = steps.iter().filter_map(|step| simplify(step, &value, &bits)).collect();
        if rest == steps {
            return rest;
        }
        steps = rest;
    }
}

/// The steps of which something is seen: in an array, or in a field that is wanted, or read by such a step.
pub(super) fn seen_by(steps: Vec<Step>, wanted: &[Field]) -> Vec<Step> {
    let mut read: Vec<Field> = wanted.to_vec();
    let mut rest = Vec::with_capacity(steps.len());
    for step in steps.into_iter().rev() {
        if let Some(step) = needed(step, &read) {
            read.extend(reads(&step));
            rest.push(step);
        }
    }
    rest.reverse();
    rest
}

/// A step without the results that nobody reads behind it, or `None` if nothing is left.
fn needed(mut step: Step, read: &[Field]) -> Option<Step> {
    let is_read = |instruction: &Primitive| read.contains(&instruction.writes());
    let leaves_something = match &mut step {
        Step::Rmw(rmw) => {
            rmw.out = rmw.out.filter(|out| read.contains(out));
            rmw.out.is_some() || !rmw.cases.iter().all(|(_, alu)| alu.only_looks())
        }
        Step::Compute(compute) => {
            compute.primitives.retain(is_read);
            !compute.primitives.is_empty()
        }
        Step::Table(table) => {
            let rows = table.rows.iter_mut().map(|row| &mut row.action);
            rows.chain([&mut table.default]).fold(false, |something, action| {
                action.retain(is_read);
                something || !action.is_empty()
            })
        }
    };
    leaves_something.then_some(step)
}

/// A step as it is left by what is known, or `None` if such a packet never takes it.
fn simplify(
    step: &Step,
    value: &impl Fn(Field) -> Option<u64>,
    bits: &impl Fn(Field) -> u32,
) -> Option<Step> {
    let mut step = step.clone();
    let gate = match &mut step {
        Step::Rmw(rmw) => &mut rmw.gate,
        Step::Compute(compute) => &mut compute.gate,
        Step::Table(table) => &mut table.gate,
    };
    if let Some(Gate { field, mask, value: want, inverted }) = *gate
        && let Some(value) = value(field)
    {
        if (value & mask == want) == inverted {
            return None;
        }
        *gate = None;
    }
    match &mut step {
        Step::Rmw(rmw) => {
            if rmw.select != DECIDED
                && let Some(value) = value(rmw.select)
            {
                rmw.select = DECIDED;
                rmw.cases.retain(|(selector, _)| *selector == value);
                if rmw.cases.is_empty() {
                    return None;
                }
            }
        }
        Step::Compute(compute) if compute.primitives.is_empty() => return None,
        Step::Compute(_) => {}
        Step::Table(table) => {
            known_keys(table, value, bits);
            if table.rows.is_empty() {
                let Table { name, stage, gate, default, .. } = table.clone();
                return Some(Step::Compute(Compute { name, stage, gate, primitives: default }));
            }
        }
    }
    Some(step)
}

/// Keeps the rows that can still match, and of the key what is still asked.
fn known_keys(table: &mut Table, value: &impl Fn(Field) -> Option<u64>, bits: &impl Fn(Field) -> u32) {
    for at in (0..table.key.len()).rev() {
        let field = table.key[at];
        if let Some(value) = value(field) {
            let field_mask = super::verify::mask(bits(field));
            table.rows.retain(|row| {
                let (mask, want) = row.key[at].ternary(field_mask);
                value & mask == want
            });
        } else if !table.rows.iter().all(|row| row.key[at] == Match::Any) {
            continue;
        }
        table.key.remove(at);
        table.rows.iter_mut().for_each(|row| {
            row.key.remove(at);
        });
    }
}
