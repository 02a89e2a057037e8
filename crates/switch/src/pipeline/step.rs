//! What a program is made of, as its author writes it.

use alloc::string::String;
use alloc::vec::Vec;

use super::alu::Alu;
use super::phv::Field;
use super::primitive::Primitive;

/// A register array: memory cells that belong to one stage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Array {
    /// What it is called.
    pub name: String,
    /// Its stage, from 0.
    pub stage: usize,
    /// Bits of a cell.
    pub bits: u32,
    /// Cells.
    pub entries: usize,
}

/// Names a register array of a program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ArrayId(pub(super) usize);

impl ArrayId {
    pub(crate) const fn index(self) -> usize {
        self.0
    }
}

/// A condition on one field. A step whose gate is closed does not happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gate {
    pub(crate) field: Field,
    pub(crate) mask: u64,
    pub(crate) value: u64,
    pub(crate) inverted: bool,
}

impl Gate {
    /// Open if the field has this value.
    pub const fn is(field: Field, value: u64) -> Self {
        Self { field, mask: u64::MAX, value, inverted: false }
    }

    /// Open if the field has another value.
    pub const fn is_not(field: Field, value: u64) -> Self {
        Self { field, mask: u64::MAX, value, inverted: true }
    }

    /// Open if all these bits of the field are set.
    pub const fn has(field: Field, bits: u64) -> Self {
        Self { field, mask: bits, value: bits, inverted: false }
    }

    /// True if no packet finds both open.
    pub(super) const fn excludes(self, other: Self) -> bool {
        if self.field.0 != other.field.0 {
            return false;
        }
        match (self.inverted, other.inverted) {
            (false, false) => (self.value ^ other.value) & self.mask & other.mask != 0,
            (true, true) => false,
            _ => self.mask == other.mask && self.value == other.value,
        }
    }
}

/// One read-modify-write of a register array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rmw {
    /// The array. Its stage is the step's.
    pub array: ArrayId,
    /// Which cell. An index beyond the array's end touches nothing.
    pub index: Field,
    /// Whether at all.
    pub gate: Option<Gate>,
    /// Which of the programs, by the field's value. A value without a program touches nothing.
    pub select: Field,
    /// The programs.
    pub cases: Vec<(u64, Alu)>,
    /// Where the output goes. Without an output the field keeps its value.
    pub out: Option<Field>,
}

/// Instructions on PHV fields, side by side.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Compute {
    /// What it is called.
    pub name: String,
    /// Its stage.
    pub stage: usize,
    /// Whether at all.
    pub gate: Option<Gate>,
    /// The instructions.
    pub primitives: Vec<Primitive>,
}

/// A match-action table: the first row that matches the key fields gives the action.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    /// What it is called.
    pub name: String,
    /// Its stage.
    pub stage: usize,
    /// Whether at all.
    pub gate: Option<Gate>,
    /// The fields that are matched.
    pub key: Vec<Field>,
    /// The rows, first match wins.
    pub rows: Vec<Row>,
    /// What happens if no row matches.
    pub default: Vec<Primitive>,
}

impl Table {
    /// True if a row leaves bits of the key open: the table needs ternary memory.
    pub fn is_ternary(&self) -> bool {
        self.rows.iter().flat_map(|row| &row.key).any(|m| !matches!(m, Match::Is(_)))
    }
}

/// A row of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// What each key field has to be.
    pub key: Vec<Match>,
    /// What happens then: instructions, side by side.
    pub action: Vec<Primitive>,
}

/// What a key field has to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Match {
    /// This value.
    Is(u64),
    /// These bits set.
    Has(u64),
    /// Anything.
    Any,
}

impl Match {
    /// Mask and value in a field of so many bits.
    pub(crate) const fn ternary(self, field_mask: u64) -> (u64, u64) {
        match self {
            Self::Is(value) => (field_mask, value),
            Self::Has(bits) => (bits, bits),
            Self::Any => (0, 0),
        }
    }
}

/// A step of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    Rmw(Rmw),
    Compute(Compute),
    Table(Table),
}

impl Step {
    pub(crate) const fn gate(&self) -> Option<Gate> {
        match self {
            Self::Rmw(rmw) => rmw.gate,
            Self::Compute(compute) => compute.gate,
            Self::Table(table) => table.gate,
        }
    }
}
