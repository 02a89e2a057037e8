//! A verified program with its arrays.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::builder::ProgramBuilder;
use super::cells::Cells;
use super::code::Code;
use super::error::BuildError;
use super::phv::{Field, Phv};
use super::stage_map::StageMap;
use super::step::ArrayId;
use super::{compile, specialize};

/// A program that the chip can run, and the contents of its register arrays.
#[derive(Clone, Debug)]
pub struct Program {
    pub(super) source: Arc<ProgramBuilder>,
    pub(super) code: Code,
    pub(super) arrays: Box<[Cells]>,
    pub(super) map: StageMap,
    pub(super) passes: u64,
}

/// A program's code for packets of which the parser knows something beforehand: see [`Program::plan`].
#[derive(Clone, Debug)]
pub struct Plan(Code);

impl Program {
    /// Runs one pass. The parser has filled the fields that it supplies; the others are 0.
    pub fn run(&mut self, phv: &mut Phv) {
        self.passes += 1;
        self.code.run(&mut self.arrays, phv);
    }

    /// The program, worked out as far as it goes for packets whose parser supplies these values, and of which the
    /// deparser looks at the `wanted` fields only: steps that such a packet never takes, or that nobody sees anything
    /// of, are gone. To the arrays, and the wanted fields that are not known, it does what [`Program::run`] does,
    /// sooner. Where a step asks for fields of few bits that the plan is `decided_by`, what follows is worked out for each of
    /// their values.
    ///
    /// # Errors
    /// None that the program itself did not have.
    pub fn plan(
        &self,
        known: &[(Field, u64)],
        wanted: &[Field],
        decided_by: &[Field],
    ) -> Result<Plan, BuildError> {
        let blocks = self.blocks(known, wanted, decided_by);
        let blocks = blocks.iter().map(|block| (&block.steps[..], block.next.as_ref()));
        Ok(Plan(compile::code(&self.source, blocks)?))
    }

    /// The steps of such a plan.
    pub(crate) fn blocks(
        &self,
        known: &[(Field, u64)],
        wanted: &[Field],
        decided_by: &[Field],
    ) -> Vec<specialize::Block> {
        specialize::blocks(&self.source, known, wanted, decided_by)
    }

    /// How many fields its PHV has.
    pub(crate) fn fields(&self) -> usize {
        self.source.fields.len()
    }

    /// Bits of a field.
    pub(crate) fn bits(&self, field: Field) -> u32 {
        self.source.fields[field.index()].bits
    }

    /// Bits of a cell and cells of every array.
    pub(crate) fn arrays(&self) -> impl Iterator<Item = (u32, usize)> {
        self.source.arrays.iter().map(|array| (array.bits, array.entries))
    }

    /// Runs one pass by a plan of this program. The parser has filled the fields that it supplies; of those that
    /// the plan knows, it may leave out the ones that only gates, selectors and keys use.
    #[inline]
    pub fn run_plan(&mut self, plan: &Plan, phv: &mut Phv) {
        self.passes += 1;
        plan.0.run(&mut self.arrays, phv);
    }

    /// Passes run so far.
    pub const fn passes(&self) -> u64 {
        self.passes
    }

    /// The program's resource use on the chip.
    pub const fn stage_map(&self) -> &StageMap {
        &self.map
    }

    /// All arrays are 0 again, as after a restart of the chip.
    pub fn clear(&mut self) {
        self.arrays.iter_mut().for_each(Cells::clear);
    }

    /// A cell of an array, for inspection: no program can do this.
    pub fn cell(&self, array: ArrayId, index: usize) -> Option<u64> {
        self.arrays.get(array.0)?.get(index)
    }

    /// Sets a cell of an array, for checkers that put a switch into a state: no program can do this.
    pub fn set_cell(&mut self, array: ArrayId, index: usize, value: u64) {
        self.arrays[array.0].change(index, |_| (value, 0));
    }

    /// The same, of an array by its number.
    pub(crate) fn set_cell_of(&mut self, array: usize, index: usize, value: u64) {
        self.set_cell(ArrayId(array), index, value);
    }

    /// What is in a cell of an array by its number.
    pub(crate) fn cell_of(&self, array: usize, index: usize) -> u64 {
        self.cell(ArrayId(array), index).expect("the index is inside the array")
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
