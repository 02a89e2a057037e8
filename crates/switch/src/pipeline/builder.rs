//! Collects a program; [`ProgramBuilder::build`] verifies it and makes it run.

use alloc::string::String;
use alloc::vec::Vec;

use super::budget::Budget;
use super::error::BuildError;
use super::phv::{Field, Phv};
use super::program::Program;
use super::step::{Array, ArrayId, Compute, Rmw, Step, Table};
use super::{compile, stage_map, verify};

/// A field's declaration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct FieldDecl {
    pub(super) name: String,
    pub(super) bits: u32,
    pub(super) parsed: bool,
}

/// A program under construction. Nothing is checked before [`ProgramBuilder::build`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgramBuilder {
    pub(super) name: String,
    pub(super) fields: Vec<FieldDecl>,
    pub(super) arrays: Vec<Array>,
    pub(super) steps: Vec<Step>,
}

impl ProgramBuilder {
    /// An empty program.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), fields: Vec::new(), arrays: Vec::new(), steps: Vec::new() }
    }

    /// A field that the parser sets.
    pub fn parsed(&mut self, name: impl Into<String>, bits: u32) -> Field {
        self.declare(name.into(), bits, true)
    }

    /// A field that only steps write. It is 0 when a pass begins.
    pub fn metadata(&mut self, name: impl Into<String>, bits: u32) -> Field {
        self.declare(name.into(), bits, false)
    }

    fn declare(&mut self, name: String, bits: u32, parsed: bool) -> Field {
        let index = self.fields.len().min(Phv::FIELDS);
        self.fields.push(FieldDecl { name, bits, parsed });
        Field(u8::try_from(index).unwrap_or(Field::SINK.0))
    }

    /// A register array.
    pub fn array(&mut self, array: Array) -> ArrayId {
        self.arrays.push(array);
        ArrayId(self.arrays.len() - 1)
    }

    /// The next step: a read-modify-write.
    pub fn rmw(&mut self, rmw: Rmw) {
        self.steps.push(Step::Rmw(rmw));
    }

    /// The next step: instructions on PHV fields.
    pub fn compute(&mut self, compute: Compute) {
        self.steps.push(Step::Compute(compute));
    }

    /// The next step: a match-action table.
    pub fn table(&mut self, table: Table) {
        self.steps.push(Step::Table(table));
    }

    /// Verifies the program against the rules and a chip's resources, and makes it run.
    ///
    /// A field may have several writers in different stages: the last one to run wins, and readers must come
    /// after all of them. In one stage it may have several only if their gates exclude each other.
    ///
    /// # Errors
    /// The first rule that the program breaks, with the offender's name.
    pub fn build(self, budget: &Budget) -> Result<Program, BuildError> {
        verify::steps(&self, budget)?;
        let map = stage_map::of(&self, budget);
        verify::resources(&map)?;
        compile::program(self, map)
    }

    pub(super) fn stage_of(&self, step: &Step) -> usize {
        match step {
            Step::Rmw(rmw) => self.arrays[rmw.array.0].stage,
            Step::Compute(compute) => compute.stage,
            Step::Table(table) => table.stage,
        }
    }

    pub(super) fn name_of<'a>(&'a self, step: &'a Step) -> &'a str {
        match step {
            Step::Rmw(rmw) => &self.arrays[rmw.array.0].name,
            Step::Compute(compute) => &compute.name,
            Step::Table(table) => &table.name,
        }
    }
}
