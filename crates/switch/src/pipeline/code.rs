//! The flat form of a program, and the loop that runs a packet through it.
//!
//! Steps that share a gate stand behind it, so that a way whose tag does not match costs one comparison.
//! Nothing is allocated in a pass.

use alloc::boxed::Box;

use super::alu::{HIT, MISS, Work};
use super::cells::Cells;
use super::phv::{Field, Phv};
use super::primitive::Primitive;
use super::step::Gate;

/// Values that can pick a program of an array: they are below this.
pub(super) const SELECTORS: usize = 16;

/// Parts of a table's key that are read without a loop.
pub(super) const KEY_PARTS: usize = 4;

#[derive(Clone, Debug)]
pub(super) struct Code {
    pub(super) steps: Box<[Body]>,
    /// Where a pass begins.
    pub(super) start: usize,
    pub(super) ways: Box<[Way]>,
    pub(super) selects: Box<[[Option<Case>; SELECTORS]]>,
    pub(super) tables: Box<[FlatTable]>,
    pub(super) primitives: Box<[Primitive]>,
    pub(super) targets: Box<[u16]>,
}

/// A step. The tag has a byte of its own: finding out what a step is must not take longer than doing it.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(super) enum Body {
    /// If the gate is closed, so many steps do not happen.
    Gate { gate: Gate, skip: u16 },
    /// The field, of one bit, says where it goes on.
    Branch { field: Field, to: [u16; 2] },
    /// The field says where it goes on, by `targets` from `to` on.
    Decide { field: Field, mask: u16, to: u16 },
    /// The pass is over.
    End,
    /// A program of an array.
    Rmw { array: u8, index: Field, case: Case },
    /// `MatchTag` in several arrays that share index and operand: the lookup in a set's ways.
    Lookup { index: Field, operand: Field, ways: Range },
    /// One of several programs of an array, or none.
    Select { array: u8, index: Field, select: Field, cases: u8 },
    /// A table.
    Table(u8),
    /// The instructions, from here on: first the field that each writes. A constant.
    Set(Field, u64),
    /// Another field's value.
    Copy([Field; 2]),
    /// Bitwise and.
    And([Field; 3]),
    /// Bitwise or.
    Or([Field; 3]),
    /// Sum.
    Add([Field; 3]),
    /// Whether two fields are equal.
    Equals([Field; 3]),
    /// Whether one is 0.
    IsZero([Field; 2]),
    /// One of two others, which a third picks.
    OneOf([Field; 4]),
    /// A number below so many.
    Hash([Field; 2], u64),
}

impl From<Primitive> for Body {
    fn from(primitive: Primitive) -> Self {
        match primitive {
            Primitive::Set { to, value } => Self::Set(to, value),
            Primitive::Copy { to, from } => Self::Copy([to, from]),
            Primitive::And { to, a, b } => Self::And([to, a, b]),
            Primitive::Or { to, a, b } => Self::Or([to, a, b]),
            Primitive::Add { to, a, b } => Self::Add([to, a, b]),
            Primitive::Equals { to, a, b } => Self::Equals([to, a, b]),
            Primitive::IsZero { to, from } => Self::IsZero([to, from]),
            Primitive::Select { to, by, yes, no } => Self::OneOf([to, by, yes, no]),
            Primitive::Hash { to, from, buckets } => Self::Hash([to, from], buckets),
        }
    }
}

/// A way of a lookup.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) array: u8,
    pub(super) out: Field,
}

/// A program of an array.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) work: Work,
    pub(super) operand: Field,
    pub(super) out: Field,
}

/// Part of a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub(super) from: u16,
    pub(super) to: u16,
}

#[derive(Clone, Debug)]
pub(super) struct FlatTable {
    /// The first parts of the key. Parts that there are not have an empty mask.
    pub(super) key: [KeyPart; KEY_PARTS],
    pub(super) more_key: Box<[KeyPart]>,
    pub(super) rows: Rows,
    pub(super) actions: Actions,
}

/// What a table does: its default action, then those of the rows.
#[derive(Clone, Debug)]
pub(super) enum Actions {
    /// Where all set the same field to a constant, or do nothing: the constants.
    Set { to: Field, values: Box<[Option<u64>]> },
    /// Instructions.
    Any(Box<[Range]>),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct KeyPart {
    pub(super) field: Field,
    pub(super) mask: u64,
    pub(super) shift: u32,
}

/// How a packed key finds its row.
#[derive(Clone, Debug)]
pub(super) enum Rows {
    /// By the key itself, where it is short.
    Direct(Box<[u8]>),
    /// Row after row.
    Scan(Box<[(u64, u64)]>),
}

impl Code {
    #[inline(never)]
    pub(super) fn run(&self, arrays: &mut [Cells], phv: &mut Phv) {
        let mut rest = self.steps[self.start..].iter();
        while let Some(step) = rest.next() {
            match step {
                Body::Gate { gate, skip } => {
                    if (phv.get(gate.field) & gate.mask == gate.value) == gate.inverted {
                        rest = rest.as_slice()[usize::from(*skip)..].iter();
                    }
                }
                Body::Branch { field, to } => {
                    let next = to[(phv.get(*field) & 1) as usize];
                    rest = self.steps[usize::from(next)..].iter();
                }
                Body::Decide { field, mask, to } => {
                    let value = phv.get(*field) & u64::from(*mask);
                    let next = self.targets[usize::from(*to) + value as usize];
                    rest = self.steps[usize::from(next)..].iter();
                }
                Body::End => return,
                Body::Rmw { array, index, case } => rmw(arrays, *array, *index, *case, phv),
                Body::Lookup { index, operand, ways } => {
                    let (index, tag) = (to_index(phv.get(*index)), phv.get(*operand));
                    for way in ways.of(&self.ways) {
                        let cells = arrays.get(usize::from(way.array));
                        if let Some(cell) = cells.and_then(|cells| cells.get(index)) {
                            phv.set(way.out, if cell == tag { HIT } else { MISS });
                        }
                    }
                }
                Body::Select { array, index, select, cases } => {
                    let cases = &self.selects[usize::from(*cases)];
                    if let Some(Some(case)) = cases.get(to_index(phv.get(*select))) {
                        rmw(arrays, *array, *index, *case, phv);
                    }
                }
                Body::Table(table) => self.table(&self.tables[usize::from(*table)], phv),
                &Body::Set(to, value) => Primitive::Set { to, value }.run(phv),
                &Body::Copy([to, from]) => Primitive::Copy { to, from }.run(phv),
                &Body::And([to, a, b]) => Primitive::And { to, a, b }.run(phv),
                &Body::Or([to, a, b]) => Primitive::Or { to, a, b }.run(phv),
                &Body::Add([to, a, b]) => Primitive::Add { to, a, b }.run(phv),
                &Body::Equals([to, a, b]) => Primitive::Equals { to, a, b }.run(phv),
                &Body::IsZero([to, from]) => Primitive::IsZero { to, from }.run(phv),
                &Body::OneOf([to, by, yes, no]) => Primitive::Select { to, by, yes, no }.run(phv),
                &Body::Hash([to, from], buckets) => Primitive::Hash { to, from, buckets }.run(phv),
            }
        }
    }

    #[inline(always)]
    fn table(&self, table: &FlatTable, phv: &mut Phv) {
        let row = table.matching(phv);
        match &table.actions {
            Actions::Set { to, values } => {
                if let Some(value) = values[row] {
                    phv.set(*to, value);
                }
            }
            Actions::Any(ranges) => self.act(ranges[row], phv),
        }
    }

    #[inline]
    fn act(&self, range: Range, phv: &mut Phv) {
        for primitive in range.of(&self.primitives) {
            primitive.run(phv);
        }
    }
}

impl Range {
    #[inline(always)]
    fn of<T>(self, list: &[T]) -> &[T] {
        &list[usize::from(self.from)..usize::from(self.to)]
    }
}

impl KeyPart {
    #[inline(always)]
    fn of(self, phv: &Phv) -> u64 {
        (phv.get(self.field) & self.mask) << self.shift
    }
}

impl FlatTable {
    /// The number of the row that matches, from 1; 0 if none does.
    #[inline(always)]
    fn matching(&self, phv: &Phv) -> usize {
        let [a, b, c, d] = self.key.map(|part| part.of(phv));
        let key = self.more_key.iter().fold(a | b | c | d, |key, part| key | part.of(phv));
        match &self.rows {
            Rows::Direct(rows) => usize::from(rows[to_index(key)]),
            Rows::Scan(rows) => {
                rows.iter().position(|(mask, value)| key & mask == *value).map_or(0, |row| row + 1)
            }
        }
    }
}

#[inline(always)]
fn rmw(arrays: &mut [Cells], array: u8, index: Field, case: Case, phv: &mut Phv) {
    let (index, operand) = (to_index(phv.get(index)), phv.get(case.operand));
    if let Some(cells) = arrays.get_mut(usize::from(array))
        && let Some(output) = cells.change(index, |cell| (case.work)(cell, operand))
    {
        phv.set(case.out, output);
    }
}

#[inline(always)]
fn to_index(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}
