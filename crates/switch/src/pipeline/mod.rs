//! The switch ASIC as a machine: a pipeline of match-action stages with register arrays.
//!
//! A program is data: fields of the packet header vector (PHV), register arrays, match-action tables and one
//! ordered list of steps. [`ProgramBuilder::build`] checks it against the rules of the chip and refuses what
//! the chip could not run, naming the offender; what it returns, a [`Program`], runs packets.
//!
//! | module | holds |
//! | --- | --- |
//! | [`budget`] | what the published chip has: stages, memory, ALUs |
//! | [`means`] | what a switch can do with a packet before and behind the stages: parser, multicast engine, deparser |
//! | `in_software` | that, done to a packet |
//! | [`phv`] | fields, and the vector of one packet |
//! | [`alu`] | what a stateful ALU can do to a cell |
//! | [`primitive`] | what a stage's ALUs can do to PHV fields |
//! | [`step`](mod@step) | gates, read-modify-writes, computations, tables: what a program is made of |
//! | [`builder`] | collects them |
//! | [`error`] | why a program is refused |
//! | [`program`] | a verified program with its arrays: what runs |
//! | [`stage_map`] | a program's resource use, stage by stage |
//!
//! # What must always hold
//! These are the properties that Concordia (section 2.2) builds on; a program that breaks one is not built.
//! - A register array belongs to one stage, and a packet does at most one read-modify-write on it per pass.
//! - A packet visits the stages in order. Touching an earlier stage again takes a resubmission.
//! - What a step computes is seen by later stages only, never by another step of its own stage.
//! - An array's operations are at most four programs of a stateful ALU; there are four such ALUs a stage.
//! - Everything fits the memory of its stage, and of the chip.
//!
//! One packet finishes its pass before the next begins. In the chip passes overlap, but no packet overtakes
//! another (the ordering property P2), so that the outcome is the same.
//!
//! # What the model leaves out
//! The layout of fields in PHV containers, the match crossbar, hash bits, action data, instruction memory and
//! the rows and columns in which memories lie (a compiler for the chip places register arrays in part of a
//! stage's SRAM columns only). A cell of 64 bits is taken as one value, where the chip has a pair of 32.

pub mod alu;
pub mod budget;
pub mod builder;
mod cells;
mod code;
pub(crate) mod compile;
pub mod error;
mod in_software;
pub mod means;
pub mod phv;
pub mod primitive;
pub mod program;
pub(crate) mod specialize;
pub mod stage_map;
pub mod step;
pub mod tally;
pub(crate) mod verify;

pub use alu::Alu;
pub use budget::Budget;
pub use builder::ProgramBuilder;
pub use error::BuildError;
pub(crate) use in_software::{Chip, Counts, InSoftware};
pub use means::{Headers, Means, Op};
pub use phv::{Field, Phv};
pub use primitive::Primitive;
pub use program::{Plan, Program};
pub use stage_map::StageMap;
pub use step::{Array, Compute, Gate, Match, Rmw, Row, Table};
