//! The loop: fetches decoded operations and executes those that a core can execute by itself.
//!
//! Code between two jumps is a block. Inside one nothing is counted and no limit is looked at: instructions are counted, and the
//! core can be stopped, where a block ends (with `SINGLE`: after each instruction). Code is finite, so blocks are.
//!
//! What must always hold: whatever way the loop is left, `pc` and `retired` say which instructions have been executed.

use super::arithmetic::{div, divu, divuw, divw, mulh, mulhsu, mulhu, rem, remu, remuw, remw, word};
use super::rare::rare;
use super::{Core, Port, Stop};
use crate::code::Code;
use crate::isa::Kind;
use crate::memory::{Memory, Refused};
use crate::trap::{Access, Cause};

/// Executes until something else has to be done, or `budget` instructions, and the rest of the last block.
#[expect(clippy::too_many_lines, reason = "one arm an instruction")]
pub(crate) fn run<P: Port, const SINGLE: bool>(
    core: &mut Core,
    code: &Code,
    memory: &mut Memory,
    port: &mut P,
    budget: u64,
) -> Stop {
    let ops = code.ops();
    let mut retired = core.retired;
    let limit = retired.saturating_add(budget);
    let mut at = code.index(core.pc);
    // The first instruction that is not counted yet.
    let mut first = at;

    macro_rules! leave {
        ($stop:expr) => {{
            core.retired = retired + (at - first) as u64;
            core.pc = code.address(at);
            return $stop;
        }};
    }
    macro_rules! jump {
        ($to:expr) => {{
            let to = $to;
            retired += (at - first) as u64 + 1;
            at = to;
            first = to;
            if SINGLE || retired >= limit {
                leave!(Stop::Budget);
            }
            continue;
        }};
    }
    loop {
        let Some(op) = ops.get(at) else { leave!(Stop::Trap(Cause::NoCode)) };
        let (a, b) = (core.get(op.rs1), core.get(op.rs2));
        let constant = i64::from(op.imm).cast_unsigned();
        macro_rules! branch {
            ($taken:expr) => {
                if $taken {
                    if op.imm & 3 != 0 {
                        leave!(Stop::Trap(misaligned_target(code.address(at), op.imm)));
                    }
                    jump!(at.wrapping_add_signed((op.imm >> 2) as isize));
                }
            };
        }
        macro_rules! load {
            ($log:literal, $value:ident => $extended:expr) => {{
                let address = a.wrapping_add(constant);
                if !port.may_read(address) {
                    leave!(Stop::Held);
                }
                match memory.load::<$log>(address) {
                    Some($value) => core.set(op.rd, $extended),
                    None => leave!(refused(memory, Access::Load, address, 1 << $log)),
                }
            }};
        }
        macro_rules! store {
            ($log:literal) => {{
                let address = a.wrapping_add(constant);
                if !port.may_write(address) {
                    leave!(Stop::Held);
                }
                if memory.store::<$log>(address, b).is_none() {
                    leave!(refused(memory, Access::Store, address, 1 << $log));
                }
            }};
        }
        match op.kind {
            Kind::Lui => core.set(op.rd, constant),
            Kind::Auipc => core.set(op.rd, code.address(at).wrapping_add(constant)),
            Kind::Jal => {
                if op.imm & 3 != 0 {
                    leave!(Stop::Trap(misaligned_target(code.address(at), op.imm)));
                }
                core.set(op.rd, code.address(at).wrapping_add(4));
                jump!(at.wrapping_add_signed((op.imm >> 2) as isize));
            }
            Kind::Jalr => {
                let target = a.wrapping_add(constant) & !1;
                if target & 2 != 0 {
                    leave!(Stop::Trap(Cause::MisalignedTarget(target)));
                }
                core.set(op.rd, code.address(at).wrapping_add(4));
                jump!(code.index(target));
            }
            Kind::Beq => branch!(a == b),
            Kind::Bne => branch!(a != b),
            Kind::Blt => branch!(a.cast_signed() < b.cast_signed()),
            Kind::Bge => branch!(a.cast_signed() >= b.cast_signed()),
            Kind::Bltu => branch!(a < b),
            Kind::Bgeu => branch!(a >= b),
            Kind::Lb => load!(0, value => value as u8 as i8 as i64 as u64),
            Kind::Lh => load!(1, value => value as u16 as i16 as i64 as u64),
            Kind::Lw => load!(2, value => word(value)),
            Kind::Ld => load!(3, value => value),
            Kind::Lbu => load!(0, value => value),
            Kind::Lhu => load!(1, value => value),
            Kind::Lwu => load!(2, value => value),
            Kind::Sb => store!(0),
            Kind::Sh => store!(1),
            Kind::Sw => store!(2),
            Kind::Sd => store!(3),
            Kind::Addi => core.set(op.rd, a.wrapping_add(constant)),
            Kind::Slti => core.set(op.rd, u64::from(a.cast_signed() < constant.cast_signed())),
            Kind::Sltiu => core.set(op.rd, u64::from(a < constant)),
            Kind::Xori => core.set(op.rd, a ^ constant),
            Kind::Ori => core.set(op.rd, a | constant),
            Kind::Andi => core.set(op.rd, a & constant),
            Kind::Slli => core.set(op.rd, a << (constant & 63)),
            Kind::Srli => core.set(op.rd, a >> (constant & 63)),
            Kind::Srai => core.set(op.rd, (a.cast_signed() >> (constant & 63)).cast_unsigned()),
            Kind::Add => core.set(op.rd, a.wrapping_add(b)),
            Kind::Sub => core.set(op.rd, a.wrapping_sub(b)),
            Kind::Sll => core.set(op.rd, a << (b & 63)),
            Kind::Slt => core.set(op.rd, u64::from(a.cast_signed() < b.cast_signed())),
            Kind::Sltu => core.set(op.rd, u64::from(a < b)),
            Kind::Xor => core.set(op.rd, a ^ b),
            Kind::Srl => core.set(op.rd, a >> (b & 63)),
            Kind::Sra => core.set(op.rd, (a.cast_signed() >> (b & 63)).cast_unsigned()),
            Kind::Or => core.set(op.rd, a | b),
            Kind::And => core.set(op.rd, a & b),
            Kind::Addiw => core.set(op.rd, word(a.wrapping_add(constant))),
            Kind::Slliw => core.set(op.rd, word(a << (constant & 31))),
            Kind::Srliw => core.set(op.rd, word(u64::from(a as u32 >> (constant & 31)))),
            Kind::Sraiw => core.set(op.rd, (word(a).cast_signed() >> (constant & 31)).cast_unsigned()),
            Kind::Addw => core.set(op.rd, word(a.wrapping_add(b))),
            Kind::Subw => core.set(op.rd, word(a.wrapping_sub(b))),
            Kind::Sllw => core.set(op.rd, word(a << (b & 31))),
            Kind::Srlw => core.set(op.rd, word(u64::from(a as u32 >> (b & 31)))),
            Kind::Sraw => core.set(op.rd, (word(a).cast_signed() >> (b & 31)).cast_unsigned()),
            Kind::Mul => core.set(op.rd, a.wrapping_mul(b)),
            Kind::Mulh => core.set(op.rd, mulh(a, b)),
            Kind::Mulhsu => core.set(op.rd, mulhsu(a, b)),
            Kind::Mulhu => core.set(op.rd, mulhu(a, b)),
            Kind::Div => core.set(op.rd, div(a, b)),
            Kind::Divu => core.set(op.rd, divu(a, b)),
            Kind::Rem => core.set(op.rd, rem(a, b)),
            Kind::Remu => core.set(op.rd, remu(a, b)),
            Kind::Mulw => core.set(op.rd, word(a.wrapping_mul(b))),
            Kind::Divw => core.set(op.rd, divw(a, b)),
            Kind::Divuw => core.set(op.rd, divuw(a, b)),
            Kind::Remw => core.set(op.rd, remw(a, b)),
            Kind::Remuw => core.set(op.rd, remuw(a, b)),
            _ => {
                core.retired = retired + (at - first) as u64;
                if let Err(stop) = rare(core, *op, memory, port) {
                    leave!(stop);
                }
            }
        }
        at += 1;
        if SINGLE {
            leave!(Stop::Budget);
        }
    }
}

fn misaligned_target(from: u64, distance: i32) -> Cause {
    Cause::MisalignedTarget(from.wrapping_add_signed(i64::from(distance)))
}

/// The trap of an access that the memory has refused.
#[cold]
pub(super) fn refused(memory: &Memory, access: Access, address: u64, bytes: u64) -> Stop {
    let changes = !matches!(access, Access::Load);
    Stop::Trap(match memory.check(address, bytes, changes) {
        Err(Refused::Misaligned) => Cause::Misaligned(access, address, bytes),
        Err(Refused::ReadOnly) => Cause::ReadOnly(access, address),
        Err(Refused::Unmapped) | Ok(()) => Cause::Unmapped(access, address, bytes),
    })
}
