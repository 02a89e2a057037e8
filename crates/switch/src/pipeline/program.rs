//! A verified program with its arrays, and the loop that runs a packet through it.
//!
//! The steps are flat: a step whose gate is closed leads straight behind all following steps with the same
//! gate, so that a way whose tag does not match costs one comparison. Nothing is allocated in a pass.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::alu::Alu;
use super::cells::Cells;
use super::phv::{Field, Phv};
use super::primitive::Primitive;
use super::stage_map::StageMap;
use super::step::ArrayId;

/// Values that can pick a program of an array: they are below this.
pub(super) const SELECTORS: usize = 16;

/// A program that the chip can run, and the contents of its register arrays.
#[derive(Clone, Debug)]
pub struct Program {
    pub(super) steps: Box<[FlatStep]>,
    pub(super) tables: Box<[FlatTable]>,
    pub(super) primitives: Box<[Primitive]>,
    pub(super) arrays: Box<[Cells]>,
    pub(super) map: StageMap,
    pub(super) passes: u64,
}

#[derive(Clone, Debug)]
pub(super) struct FlatStep {
    pub(super) gate_mask: u64,
    pub(super) gate_value: u64,
    pub(super) gate_field: Field,
    pub(super) gate_inverted: bool,
    /// The step to go on with if the gate is closed.
    pub(super) closed: u16,
    pub(super) body: Body,
}

#[derive(Clone, Debug)]
pub(super) enum Body {
    Rmw { array: u8, index: Field, select: Field, cases: [Case; SELECTORS] },
    Compute(Range),
    Table(u8),
}

/// A program of an array; `None` leaves the array alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) alu: Option<Alu>,
    pub(super) out: Field,
}

/// Part of the list of primitives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub(super) from: u16,
    pub(super) to: u16,
}

#[derive(Clone, Debug)]
pub(super) struct FlatTable {
    pub(super) key: Box<[KeyPart]>,
    pub(super) lookup: Lookup,
    /// The default action, then those of the rows.
    pub(super) actions: Box<[Range]>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct KeyPart {
    pub(super) field: Field,
    pub(super) mask: u64,
    pub(super) shift: u32,
}

/// How a packed key finds its action.
#[derive(Clone, Debug)]
pub(super) enum Lookup {
    /// By the key itself, where it is short.
    Direct(Box<[u8]>),
    /// Row after row.
    Scan(Box<[(u64, u64)]>),
}

impl Program {
    /// Runs one pass. The parser has filled the fields that it supplies; the others are 0.
    #[inline]
    pub fn run(&mut self, phv: &mut Phv) {
        self.passes += 1;
        let Self { steps, tables, primitives, arrays, .. } = self;
        let mut at = 0;
        while let Some(step) = steps.get(at) {
            let open = (phv.get(step.gate_field) & step.gate_mask == step.gate_value) != step.gate_inverted;
            if !open {
                at = usize::from(step.closed);
                continue;
            }
            at += 1;
            match &step.body {
                Body::Rmw { array, index, select, cases } => {
                    if let Some(Case { alu: Some(alu), out }) = cases.get(to_index(phv.get(*select))) {
                        rmw(&mut arrays[usize::from(*array)], to_index(phv.get(*index)), *alu, *out, phv);
                    }
                }
                Body::Compute(range) => act(primitives, *range, phv),
                Body::Table(table) => {
                    let table = &tables[usize::from(*table)];
                    act(primitives, table.actions[table.lookup(phv)], phv);
                }
            }
        }
    }

    /// Passes run so far.
    pub const fn passes(&self) -> u64 {
        self.passes
    }

    /// What the program uses of the chip.
    pub const fn stage_map(&self) -> &StageMap {
        &self.map
    }

    /// A cell of an array, for inspection: no program can do this.
    pub fn cell(&self, array: ArrayId, index: usize) -> Option<u64> {
        self.arrays.get(array.0)?.get(index)
    }

    /// The cells of an array, for inspection.
    pub fn cells(&self, array: ArrayId) -> impl Iterator<Item = u64> {
        let cells = &self.arrays[array.0];
        (0..cells.len()).filter_map(|index| cells.get(index))
    }

    /// The contents of all arrays, for telling states apart.
    pub fn all_cells(&self) -> Vec<Vec<u64>> {
        (0..self.arrays.len()).map(|at| self.cells(ArrayId(at)).collect()).collect()
    }
}

impl FlatTable {
    #[inline]
    fn lookup(&self, phv: &Phv) -> usize {
        let key = self.key.iter().fold(0, |key, part| key | (phv.get(part.field) & part.mask) << part.shift);
        match &self.lookup {
            Lookup::Direct(actions) => usize::from(actions[to_index(key)]),
            Lookup::Scan(rows) => {
                rows.iter().position(|(mask, value)| key & mask == *value).map_or(0, |row| row + 1)
            }
        }
    }
}

#[inline(always)]
fn rmw(cells: &mut Cells, index: usize, alu: Alu, out: Field, phv: &mut Phv) {
    cells.update(index, |old| {
        let (new, output) = alu.run(old, phv);
        phv.set(out, output);
        new
    });
}

#[inline(always)]
fn act(primitives: &[Primitive], range: Range, phv: &mut Phv) {
    for primitive in &primitives[usize::from(range.from)..usize::from(range.to)] {
        primitive.run(phv);
    }
}

#[inline(always)]
fn to_index(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}
