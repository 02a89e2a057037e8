//! Works a program out for packets of which some fields are known beforehand, and for a deparser that looks at some only.
//!
//! The parser supplies what an array is to do as a field, and for one type of packet that is always the same.
//! So most questions that the code asks in a pass, which program of this array, is this gate open, which of
//! these rows, have one answer per type of packet, and need not be asked again for every one.
//!
//! Of other fields the answer is found on the way. Where a step asks for one that the plan shall decide by, what follows is worked
//! out for each of its values: the plan is a tree of [`Block`]s, and asks for each field once.

use alloc::vec::Vec;

use super::builder::ProgramBuilder;
use super::compile::DECIDED;
use super::phv::{Field, Phv};
use super::primitive::Primitive;
use super::step::{Compute, Gate, Match, Row, Step, Table};
use super::verify::{reads, writes};

/// Steps that are left, and what follows.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Block {
    pub(crate) steps: Vec<Step>,
    pub(crate) next: Option<Split>,
    /// The fields that are read from here on, a bit for each.
    read: u64,
}

/// A decision: the numbers of the blocks that follow, by the values of a field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Split {
    pub(crate) field: Field,
    pub(crate) to: Vec<usize>,
}

/// The blocks of a plan. It begins with the last.
pub(crate) fn blocks(
    program: &ProgramBuilder,
    known: &[(Field, u64)],
    wanted: &[Field],
    decided_by: &[Field],
) -> Vec<Block> {
    let mut start = Known { values: Phv::new(), mask: 0, copies: Vec::new() };
    for (at, decl) in program.fields.iter().enumerate() {
        // Nobody has written a field that the parser does not supply.
        let field = Field(u8::try_from(at).expect("there are fewer fields"));
        let given = known.iter().find(|(which, _)| *which == field).map(|(_, value)| *value);
        start.learn(field, given.or((!decl.parsed).then_some(0)));
    }
    let mut planner = Planner { program, wanted: bits_of(wanted), decided_by, blocks: Vec::new() };
    planner.plan(&program.steps, start);
    planner.blocks
}

/// What is known of the fields at some place of a program.
#[derive(Clone)]
struct Known {
    values: Phv,
    /// A bit for each field that is known.
    mask: u64,
    /// Fields that have the value of another one, and that one: who is read is not written any more.
    copies: Vec<(Field, Field)>,
}

impl Known {
    fn value(&self, field: Field) -> Option<u64> {
        (self.mask & bit(field) != 0).then(|| self.values.get(field))
    }

    /// The field that this one is a copy of, or itself.
    fn original(&self, field: Field) -> Field {
        self.copies.iter().find(|(copy, _)| *copy == field).map_or(field, |(_, original)| *original)
    }

    fn learn(&mut self, field: Field, value: Option<u64>) {
        self.values.set(field, value.unwrap_or(0));
        self.mask = if value.is_some() { self.mask | bit(field) } else { self.mask & !bit(field) };
    }

    /// An instruction whose operands are known sets a constant; one that adds nothing copies.
    fn folded(&self, instruction: Primitive) -> Primitive {
        let to = instruction.writes();
        if instruction.reads().all(|field| self.value(field).is_some()) {
            let mut after = self.values.clone();
            instruction.run(&mut after);
            return Primitive::Set { to, value: after.get(to) };
        }
        match instruction {
            Primitive::Or { a, b, .. } if self.value(a) == Some(0) => Primitive::Copy { to, from: b },
            Primitive::Or { a, b, .. } if self.value(b) == Some(0) => Primitive::Copy { to, from: a },
            other => other,
        }
    }

    /// What is known behind a step.
    fn pass(&mut self, step: &Step) {
        for field in writes(step) {
            self.learn(field, None);
            self.copies.retain(|(copy, _)| *copy != field);
        }
        if let Step::Compute(Compute { gate: None, primitives, .. }) = step {
            for instruction in primitives {
                match *instruction {
                    Primitive::Set { to, value } => self.learn(to, Some(value)),
                    Primitive::Copy { to, from } => self.copies.push((to, self.original(from))),
                    _ => {}
                }
            }
        }
    }
}

struct Planner<'a> {
    program: &'a ProgramBuilder,
    wanted: u64,
    decided_by: &'a [Field],
    blocks: Vec<Block>,
}

impl Planner<'_> {
    fn bits(&self, field: Field) -> u32 {
        self.program.fields[field.index()].bits
    }

    /// Plans the rest of a program, and returns the number of the block that it begins with.
    fn plan(&mut self, rest: &[Step], mut known: Known) -> usize {
        let (mut steps, mut next, mut read) = (Vec::new(), None, self.wanted);
        for (at, step) in rest.iter().enumerate() {
            let Some(step) = simplify(step, &known, &|field| self.bits(field)) else { continue };
            if let Some(field) = self.decision(&step) {
                let to = self.split(&rest[at..], &known, field);
                if to.iter().all(|block| *block == to[0]) {
                    // Nothing depends on it.
                    let only = &self.blocks[to[0]];
                    (next, read) = (only.next.clone(), only.read);
                    steps.extend(only.steps.iter().cloned());
                } else {
                    read = to.iter().fold(bit(field), |read, block| read | self.blocks[*block].read);
                    next = Some(Split { field, to });
                }
                break;
            }
            known.pass(&step);
            steps.push(step);
        }
        let mut seen = Vec::with_capacity(steps.len());
        for step in steps.into_iter().rev() {
            if let Some(step) = needed(step, read) {
                read |= bits_of(&reads(&step));
                seen.push(step);
            }
        }
        seen.reverse();
        self.place(Block { steps: seen, next, read })
    }

    /// The first field of those that the plan decides by that a step asks for.
    fn decision(&self, step: &Step) -> Option<Field> {
        let key = match step {
            Step::Table(table) => &table.key[..],
            _ => &[],
        };
        let mut asked = step.gate().map(|gate| gate.field).into_iter().chain(key.iter().copied());
        asked.find(|field| self.decided_by.contains(field))
    }

    /// What follows each value of a field.
    fn split(&mut self, rest: &[Step], known: &Known, field: Field) -> Vec<usize> {
        let values = 1 << self.bits(field);
        let follow = |value| {
            let mut known = known.clone();
            known.learn(field, Some(value));
            self.plan(rest, known)
        };
        (0..values).map(follow).collect()
    }

    /// Equal blocks are one.
    fn place(&mut self, block: Block) -> usize {
        self.blocks.iter().position(|other| *other == block).unwrap_or_else(|| {
            self.blocks.push(block);
            self.blocks.len() - 1
        })
    }
}

fn bit(field: Field) -> u64 {
    1 << field.index()
}

fn bits_of(fields: &[Field]) -> u64 {
    fields.iter().fold(0, |bits, field| bits | bit(*field))
}

/// A step without the results that nobody reads behind it, or `None` if nothing is left.
fn needed(mut step: Step, read: u64) -> Option<Step> {
    let is_read = |instruction: &Primitive| read & bit(instruction.writes()) != 0;
    let leaves_something = match &mut step {
        Step::Rmw(rmw) => {
            rmw.out = rmw.out.filter(|out| read & bit(*out) != 0);
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
fn simplify(step: &Step, known: &Known, bits: &impl Fn(Field) -> u32) -> Option<Step> {
    let value = |field| known.value(field);
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
            rmw.index = known.original(rmw.index);
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
        Step::Compute(compute) => fold(known, &mut compute.primitives)?,
        Step::Table(table) => {
            known_keys(table, &value, bits);
            // The first row matches whatever comes, or there is none.
            if table.key.is_empty() || table.rows.is_empty() {
                let Table { name, stage, gate, rows, default, .. } = table.clone();
                let mut primitives = rows.into_iter().next().map_or(default, |row| row.action);
                fold(known, &mut primitives)?;
                return Some(Step::Compute(Compute { name, stage, gate, primitives }));
            }
        }
    }
    Some(step)
}

/// Instructions side by side; `None` if there are none.
fn fold(known: &Known, instructions: &mut [Primitive]) -> Option<()> {
    instructions.iter_mut().for_each(|it| *it = known.folded(*it));
    (!instructions.is_empty()).then_some(())
}

/// Keeps the rows that can still match, and of the key what is still asked.
fn known_keys(table: &mut Table, value: &impl Fn(Field) -> Option<u64>, bits: &impl Fn(Field) -> u32) {
    for (at, field) in table.key.iter().enumerate() {
        if let Some(value) = value(*field) {
            let field_mask = super::verify::mask(bits(*field));
            table.rows.retain(|row| {
                let (mask, want) = row.key[at].ternary(field_mask);
                value & mask == want
            });
        }
    }
    // What is asked of the others: only what tells the rows apart that are left.
    let asks = |row: &Row, at: usize| row.key[at] != Match::Any && value(table.key[at]).is_none();
    if let Some(last) = table.rows.iter().position(|row| !(0..row.key.len()).any(|at| asks(row, at))) {
        table.rows.truncate(last + 1);
    }
    let asked: Vec<bool> =
        (0..table.key.len()).map(|at| table.rows.iter().any(|row| asks(row, at))).collect();
    let mut keep = asked.iter();
    table.key.retain(|_| keep.next() == Some(&true));
    for row in &mut table.rows {
        let mut keep = asked.iter();
        row.key.retain(|_| keep.next() == Some(&true));
    }
}
