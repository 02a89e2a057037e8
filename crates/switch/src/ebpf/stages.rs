//! The steps of a plan as instructions: what the stages of the pipeline do to the PHV and the register arrays.

use wire::HeaderFields;

use alloc::vec::Vec;

use super::assembler::Label;
use super::emitter::{Emitter, Word, phv};
use super::instruction::{Arithmetic, If, R0, R1, R2, R3, R4, R5, Register, SCRATCH, STATE, Width};
use super::memory::ArrayLayout;
use crate::pipeline::alu::{
    ACQUIRED, Alu, BUSY, FOLLOWED, HIT, MISS, MOST_READERS, NEWER, OLDER, PRESENT, SAME, TAKEN, VACANT,
    WRITER,
};
use crate::pipeline::compile::DECIDED;
use crate::pipeline::primitive::GOLDEN;
use crate::pipeline::specialize::Block;
use crate::pipeline::step::{Gate, Rmw, Step, Table};
use crate::pipeline::verify::mask;
use crate::pipeline::{Field, Primitive, Program};

/// The old cell, and the new one.
const CELL: Register = R4;
/// What the ALU is given.
const OPERAND: Register = R5;
/// What it puts out.
const OUTPUT: Register = R0;
/// The cell's address.
const ADDRESS: Register = R3;

impl<C, F: HeaderFields> Emitter<'_, C, F> {
    /// One pass of packets of which the parser knows something beforehand: see [`Program::plan`].
    pub(crate) fn run(
        &mut self,
        program: &Program,
        known: &[(Field, u64)],
        wanted: &[Field],
        decided_by: &[Field],
    ) {
        let blocks = program.blocks(known, wanted, decided_by);
        self.stages(program, &blocks);
    }

    /// The blocks of a plan, of which the last is the first to run: each leads to some before it.
    fn stages(&mut self, program: &Program, blocks: &[Block]) {
        let end = self.code.label();
        let labels: Vec<Label> = blocks.iter().map(|_| self.code.label()).collect();
        for (block, label) in blocks.iter().zip(&labels).rev() {
            self.code.bind(*label);
            for step in &block.steps {
                self.step(program, step);
            }
            match &block.next {
                None => self.code.jump(end),
                Some(split) => {
                    self.get(R1, split.field);
                    let (last, others) = split.to.split_last().expect("a field has values");
                    for (value, to) in others.iter().enumerate() {
                        self.code.jump_if_number(If::Equal, R1, value as i32, labels[*to]);
                    }
                    self.code.jump(labels[*last]);
                }
            }
        }
        self.code.bind(end);
    }

    fn get(&mut self, to: Register, field: Field) {
        self.code.load(Width::Double, to, SCRATCH, phv(field.index()));
    }

    fn set(&mut self, field: Field, from: Register) {
        if field != Field::SINK {
            self.code.store(Width::Double, SCRATCH, phv(field.index()), from);
        }
    }

    fn step(&mut self, program: &Program, step: &Step) {
        let end = self.code.label();
        if let Some(Gate { field, mask, value, inverted }) = step.gate() {
            self.get(R1, field);
            if mask != u64::MAX {
                self.code.number(R2, mask);
                self.code.by(Arithmetic::And, R1, R2);
            }
            self.code.number(R2, value);
            self.code.jump_if(if inverted { If::Equal } else { If::Different }, R1, R2, end);
        }
        match step {
            Step::Rmw(rmw) => self.rmw(rmw, end),
            Step::Compute(compute) => compute.primitives.iter().for_each(|it| self.primitive(it)),
            Step::Table(table) => self.table(program, table, end),
        }
        self.code.bind(end);
    }

    fn rmw(&mut self, rmw: &Rmw, end: Label) {
        let array = self.layout.arrays[rmw.array.index()];
        self.get(R1, rmw.index);
        self.code.number(R2, array.entries as u64);
        self.code.jump_if(If::AtLeast, R1, R2, end);
        self.code.by_number(Arithmetic::Shl, R1, array.cell.trailing_zeros() as i32);
        self.code.by_number(Arithmetic::Add, R1, array.at as i32);
        self.code.by(Arithmetic::Move, ADDRESS, STATE);
        self.code.by(Arithmetic::Add, ADDRESS, R1);
        self.code.load(Width::of_bytes(array.cell), CELL, ADDRESS, 0);
        for (selector, alu) in &rmw.cases {
            let next = self.code.label();
            if rmw.select != DECIDED {
                self.get(R1, rmw.select);
                self.code.jump_if_number(If::Different, R1, *selector as i32, next);
            }
            self.alu(*alu, array, rmw.out);
            self.code.jump(end);
            self.code.bind(next);
        }
    }

    /// One program of a stateful ALU, on the cell that is loaded.
    fn alu(&mut self, alu: Alu, array: ArrayLayout, out: Option<Field>) {
        if let Some(operand) = alu.operand() {
            self.get(OPERAND, operand);
        }
        self.work(alu);
        if !alu.only_looks() {
            let bits = mask(array.bits);
            if array.cell * 8 != array.bits as usize {
                self.code.number(R1, bits);
                self.code.by(Arithmetic::And, CELL, R1);
            }
            self.code.store(Width::of_bytes(array.cell), ADDRESS, 0, CELL);
        }
        if let Some(out) = out.filter(|_| alu.has_output()) {
            self.set(out, OUTPUT);
        }
    }

    /// What [`Alu::code`] does.
    fn work(&mut self, alu: Alu) {
        let done = self.code.label();
        match alu {
            Alu::Read => self.code.by(Arithmetic::Move, OUTPUT, CELL),
            Alu::Set(_) => {
                self.code.by(Arithmetic::Move, CELL, OPERAND);
                self.code.by(Arithmetic::Move, OUTPUT, CELL);
            }
            Alu::Or(_) | Alu::And(_) => {
                let what = if matches!(alu, Alu::Or(_)) { Arithmetic::Or } else { Arithmetic::And };
                self.code.by(what, CELL, OPERAND);
                self.code.by(Arithmetic::Move, OUTPUT, CELL);
            }
            Alu::Compare(_) => {
                self.code.number(OUTPUT, NEWER);
                self.code.jump_if(If::Above, OPERAND, CELL, done);
                self.code.number(OUTPUT, OLDER);
            }
            Alu::Raise(_) => {
                self.code.number(OUTPUT, OLDER);
                self.code.jump_if(If::Below, OPERAND, CELL, done);
                self.code.number(OUTPUT, SAME);
                self.code.jump_if(If::Equal, OPERAND, CELL, done);
                self.code.number(OUTPUT, NEWER);
                self.code.by(Arithmetic::Move, CELL, OPERAND);
            }
            Alu::MatchTag(_) => {
                self.code.number(OUTPUT, HIT);
                self.code.jump_if(If::Equal, OPERAND, CELL, done);
                self.code.number(OUTPUT, MISS);
            }
            Alu::ProbeTag(_) => {
                self.code.number(OUTPUT, PRESENT);
                self.code.jump_if(If::Equal, OPERAND, CELL, done);
                self.code.number(OUTPUT, VACANT);
                self.code.jump_if_number(If::Equal, CELL, 0, done);
                self.code.number(OUTPUT, TAKEN);
            }
            Alu::ClaimIfEmpty(_) => {
                self.code.number(OUTPUT, MISS);
                self.code.jump_if_number(If::Different, CELL, 0, done);
                self.code.by(Arithmetic::Move, CELL, OPERAND);
                self.code.number(OUTPUT, HIT);
            }
            Alu::ClearIfEqual(_) => {
                self.code.number(OUTPUT, MISS);
                self.code.jump_if(If::Different, CELL, OPERAND, done);
                self.code.number(CELL, 0);
                self.code.number(OUTPUT, HIT);
            }
            Alu::TryReadLock => {
                self.code.number(OUTPUT, BUSY);
                self.code.jump_if_number(If::AtLeast, CELL, MOST_READERS as i32, done);
                self.code.by_number(Arithmetic::Add, CELL, 1);
                self.code.number(OUTPUT, ACQUIRED);
            }
            Alu::TryWriteLock => {
                self.code.number(OUTPUT, BUSY);
                self.code.jump_if_number(If::Different, CELL, 0, done);
                self.code.number(CELL, WRITER);
                self.code.number(OUTPUT, ACQUIRED);
            }
            Alu::Release(_) => {
                self.code.jump_if(If::Above, OPERAND, CELL, done);
                self.code.by(Arithmetic::Move, R1, CELL);
                self.code.by(Arithmetic::Xor, R1, OPERAND);
                self.code.by_number(Arithmetic::And, R1, WRITER as i32);
                self.code.jump_if_number(If::Different, R1, 0, done);
                self.code.by(Arithmetic::Sub, CELL, OPERAND);
            }
            Alu::JoinWriters(_) => {
                let taken = self.code.label();
                self.code.number(OUTPUT, ACQUIRED);
                self.code.jump_if_number(If::Equal, CELL, 0, taken);
                self.code.number(OUTPUT, BUSY);
                self.code.jump_if_number(If::AtMost, CELL, WRITER as i32, done);
                self.code.by(Arithmetic::Move, OUTPUT, CELL);
                self.code.bind(taken);
                self.code.by(Arithmetic::Move, CELL, OPERAND);
            }
            Alu::Leave(_) => {
                self.code.number(OUTPUT, FOLLOWED);
                self.code.jump_if(If::Different, CELL, OPERAND, done);
                self.code.number(CELL, 0);
                self.code.number(OUTPUT, 0);
            }
            Alu::CountOrMark(_) => {
                let (count, write_out) = (self.code.label(), self.code.label());
                self.code.jump_if_number(If::Equal, OPERAND, ACQUIRED as i32, count);
                self.code.jump_if_number(If::Different, CELL, 0, write_out);
                self.code.by(Arithmetic::Move, CELL, OPERAND);
                self.code.jump(write_out);
                self.code.bind(count);
                self.code.by_number(Arithmetic::Add, CELL, 1);
                self.code.bind(write_out);
                self.code.by(Arithmetic::Move, OUTPUT, CELL);
            }
            Alu::TakeIfMost(_) | Alu::LookIfHigh(_) => self.look(alu, done),
            Alu::Passed(_) | Alu::Advance(_) => self.ahead(alu, done),
            Alu::KeepIfEqual(_) => {
                let keep = self.code.label();
                self.code.jump_if(If::Equal, CELL, OPERAND, keep);
                self.code.number(CELL, 0);
                self.code.bind(keep);
                self.code.by(Arithmetic::Move, OUTPUT, CELL);
            }
            Alu::TakeIfEqual(_)
            | Alu::TakeIfFree(_)
            | Alu::MarkIfEqual(_)
            | Alu::SetIfZero(_)
            | Alu::SetIfAny(_)
            | Alu::LowerIfEqual(_) => {
                self.code.by(Arithmetic::Move, OUTPUT, CELL);
                self.change(alu, done);
            }
        }
        self.code.bind(done);
    }

    /// Programs that put out the old cell.
    fn change(&mut self, alu: Alu, done: Label) {
        match alu {
            Alu::TakeIfEqual(_) => {
                self.code.jump_if(If::Different, CELL, OPERAND, done);
                self.code.number(CELL, 0);
            }
            Alu::TakeIfFree(_) => {
                self.code.by(Arithmetic::Move, R1, CELL);
                self.code.by_number(Arithmetic::And, R1, 0xff);
                self.code.jump_if_number(If::Different, R1, 0, done);
                self.code.by_number(Arithmetic::Add, CELL, 0x100);
                self.code.by(Arithmetic::Add, CELL, OPERAND);
            }
            Alu::MarkIfEqual(_) => {
                self.code.jump_if(If::Different, CELL, OPERAND, done);
                self.code.by_number(Arithmetic::Sub, CELL, 128);
            }
            Alu::SetIfZero(_) => {
                self.code.jump_if_number(If::Different, CELL, 0, done);
                self.code.by(Arithmetic::Move, CELL, OPERAND);
            }
            Alu::SetIfAny(_) => {
                self.code.jump_if_number(If::Equal, CELL, 0, done);
                self.code.by(Arithmetic::Move, CELL, OPERAND);
            }
            _ => {
                self.code.jump_if(If::Different, CELL, OPERAND, done);
                self.code.by_number(Arithmetic::Shr, CELL, 24);
                self.code.by_number(Arithmetic::Shl, CELL, 24);
            }
        }
    }

    /// Programs that put out the low 24 bits, if the others are as they should be.
    fn look(&mut self, alu: Alu, done: Label) {
        let takes = matches!(alu, Alu::TakeIfMost(_));
        self.code.number(OUTPUT, 0);
        self.code.by(Arithmetic::Move, R1, CELL);
        self.code.by(Arithmetic::Xor, R1, OPERAND);
        self.code.by_number(Arithmetic::Shr, R1, if takes { 24 } else { 32 });
        self.code.jump_if_number(If::Different, R1, 0, done);
        self.code.by(Arithmetic::Move, OUTPUT, CELL);
        self.code.by_number(Arithmetic::And, OUTPUT, 0xff_ffff);
        if takes {
            self.code.number(R1, 1 << 62);
            self.code.by(Arithmetic::Add, CELL, R1);
        }
    }

    /// Programs that ask how far a number is behind the cell.
    fn ahead(&mut self, alu: Alu, done: Label) {
        self.code.by(Arithmetic::Move, R1, OPERAND);
        self.code.by_number(Arithmetic::Add, R1, 255);
        self.code.by(Arithmetic::Sub, R1, CELL);
        // The sign of 32 bits.
        self.code.by_number(Arithmetic::Shr, R1, 31);
        self.code.by_number(Arithmetic::And, R1, 1);
        if matches!(alu, Alu::Passed(_)) {
            self.code.by(Arithmetic::Move, OUTPUT, R1);
            return;
        }
        self.code.number(OUTPUT, MISS);
        self.code.jump_if_number(If::Equal, CELL, 0, done);
        self.code.jump_if_number(If::Different, R1, 0, done);
        self.code.by(Arithmetic::Move, CELL, OPERAND);
        self.code.by_number(Arithmetic::Add, CELL, 257);
        self.code.number(OUTPUT, HIT);
    }

    fn primitive(&mut self, primitive: &Primitive) {
        match *primitive {
            Primitive::Set { to, value } => {
                return self.put(phv(to.index()), Word::Number(value));
            }
            Primitive::Copy { from, .. } => self.get(R0, from),
            Primitive::And { a, b, .. } => self.both(Arithmetic::And, a, b),
            Primitive::Or { a, b, .. } => self.both(Arithmetic::Or, a, b),
            Primitive::Add { a, b, .. } => self.both(Arithmetic::Add, a, b),
            Primitive::Equals { a, b, .. } => {
                self.get(R1, a);
                self.get(R2, b);
                self.truth(R0, If::Equal);
            }
            Primitive::IsZero { from, .. } => {
                self.get(R1, from);
                self.code.number(R2, 0);
                self.truth(R0, If::Equal);
            }
            Primitive::Select { by, yes, no, .. } => {
                let end = self.code.label();
                self.get(R1, by);
                self.get(R0, yes);
                self.code.jump_if_number(If::Different, R1, 0, end);
                self.get(R0, no);
                self.code.bind(end);
            }
            // See `primitive::spread`.
            Primitive::Hash { from, buckets, .. } => {
                self.get(R0, from);
                self.code.number(R1, GOLDEN);
                self.code.by(Arithmetic::Mul, R0, R1);
                self.code.by_number(Arithmetic::Shr, R0, 32);
                self.code.number(R1, buckets & 0xffff_ffff);
                self.code.by(Arithmetic::Mul, R0, R1);
                self.code.by_number(Arithmetic::Shr, R0, 32);
            }
        }
        self.set(primitive.writes(), R0);
    }

    fn both(&mut self, what: Arithmetic, a: Field, b: Field) {
        self.get(R0, a);
        self.get(R1, b);
        self.code.by(what, R0, R1);
    }

    fn table(&mut self, program: &Program, table: &Table, end: Label) {
        for row in &table.rows {
            let next = self.code.label();
            for (field, wants) in table.key.iter().zip(&row.key) {
                let all = mask(program.bits(*field));
                let (bits, value) = wants.ternary(all);
                if bits == 0 {
                    continue;
                }
                self.get(R1, *field);
                if bits != u64::MAX {
                    self.code.number(R2, bits);
                    self.code.by(Arithmetic::And, R1, R2);
                }
                self.code.number(R2, value);
                self.code.jump_if(If::Different, R1, R2, next);
            }
            row.action.iter().for_each(|it| self.primitive(it));
            self.code.jump(end);
            self.code.bind(next);
        }
        table.default.iter().for_each(|it| self.primitive(it));
    }
}

const _: () = assert!(BUSY == WRITER && i32::MAX as u64 > WRITER);
