//! What leaves the loop: atomics on the node's own memory, fences, control registers, calls, and whatever may go to another
//! node.
//!
//! What must always hold: an instruction that is not executed has changed nothing.

use nic::words::{Operands, Operation, Width};

use super::remote::extended;
use super::run::refused;
use super::{Core, Port, Stop};
use crate::code::{Op, SINK};
use crate::isa::Kind;
use crate::library::REGISTER;
use crate::memory::Memory;
use crate::trap::{Access, Cause};

/// Of a fence's predecessors, and of an atomic's rl: stores.
const ORDERS_STORES: i32 = 0b0101;
const RELEASE: i32 = 0b01;

/// The control register that counts instructions.
const INSTRET: i32 = 0xc02;

/// Executes one instruction.
pub(super) fn rare<P: Port>(core: &mut Core, op: Op, memory: &mut Memory, port: &mut P) -> Result<(), Stop> {
    match op.kind {
        // What is posted to other nodes is memory and may be a device's: both kinds of stores are waited for.
        Kind::Fence if core.posted > 0 && op.imm & ORDERS_STORES != 0 => Err(Stop::Drain),
        Kind::Fence | Kind::FenceI => Ok(()),
        Kind::Ecall => Err(Stop::Call),
        Kind::Ebreak => Err(Stop::Trap(Cause::Breakpoint)),
        Kind::Csrrwi if op.imm == REGISTER && op.rd == SINK => Err(Stop::Routine(u64::from(op.rs1))),
        Kind::Csrrw if op.imm == REGISTER && op.rd == SINK => Err(Stop::Routine(core.get(op.rs1))),
        Kind::Csrrs | Kind::Csrrc | Kind::Csrrsi | Kind::Csrrci if op.rs1 == 0 => read_counter(core, op),
        Kind::LrW | Kind::LrD => load_reserved(core, op, memory, port),
        Kind::ScW | Kind::ScD => store_conditional(core, op, memory, port),
        kind => match local(kind) {
            Some((change, width)) => atomic(core, op, memory, port, change, width),
            None => extended(core, op, memory, port),
        },
    }
}

/// The counters of Zicntr. `time` counts cycles, too. Without timing an instruction takes one.
fn read_counter(core: &mut Core, op: Op) -> Result<(), Stop> {
    if !(0xc00..=0xc02).contains(&op.imm) {
        return Err(Stop::Trap(Cause::Illegal));
    }
    core.set(op.rd, if op.imm == INSTRET { core.retired } else { core.clock() });
    Ok(())
}

/// What an atomic makes of a word and its operand.
#[derive(Clone, Copy)]
pub(super) enum Change {
    /// What the engine knows, too.
    Shared(Operation),
    MinUnsigned,
    MaxUnsigned,
}

impl Change {
    fn apply(self, width: Width, old: u64, operand: u64) -> u64 {
        // Unsigned order is the same on sign-extended words.
        let extended = |value| width.signed(value).cast_unsigned();
        match self {
            Self::Shared(operation) => operation.apply(width, old, Operands { operand, expected: 0 }),
            Self::MinUnsigned => extended(old).min(extended(operand)),
            Self::MaxUnsigned => extended(old).max(extended(operand)),
        }
    }
}

const fn local(kind: Kind) -> Option<(Change, Width)> {
    use Change::{MaxUnsigned, MinUnsigned, Shared};
    use Width::{Double, Word};
    Some(match kind {
        Kind::AmoSwapW => (Shared(Operation::Swap), Word),
        Kind::AmoAddW => (Shared(Operation::Add), Word),
        Kind::AmoXorW => (Shared(Operation::Xor), Word),
        Kind::AmoAndW => (Shared(Operation::And), Word),
        Kind::AmoOrW => (Shared(Operation::Or), Word),
        Kind::AmoMinW => (Shared(Operation::Min), Word),
        Kind::AmoMaxW => (Shared(Operation::Max), Word),
        Kind::AmoMinuW => (MinUnsigned, Word),
        Kind::AmoMaxuW => (MaxUnsigned, Word),
        Kind::AmoSwapD => (Shared(Operation::Swap), Double),
        Kind::AmoAddD => (Shared(Operation::Add), Double),
        Kind::AmoXorD => (Shared(Operation::Xor), Double),
        Kind::AmoAndD => (Shared(Operation::And), Double),
        Kind::AmoOrD => (Shared(Operation::Or), Double),
        Kind::AmoMinD => (Shared(Operation::Min), Double),
        Kind::AmoMaxD => (Shared(Operation::Max), Double),
        Kind::AmoMinuD => (MinUnsigned, Double),
        Kind::AmoMaxuD => (MaxUnsigned, Double),
        _ => return None,
    })
}

/// Checks an access of the node's own memory that is no plain load or store, and whether the core may make it now.
pub(super) fn may<P: Port>(
    memory: &Memory,
    port: &mut P,
    access: Access,
    address: u64,
    bytes: u64,
) -> Result<(), Stop> {
    let changes = access != Access::Load;
    memory.check(address, bytes, changes).map_err(|_| refused(memory, access, address, bytes))?;
    let may = if changes { port.may_write(address) } else { port.may_read(address) };
    if may { Ok(()) } else { Err(Stop::Held) }
}

/// A word of the node's memory, sign-extended; it was checked.
pub(super) fn read(memory: &Memory, address: u64, width: Width) -> u64 {
    let value = match width {
        Width::Word => memory.load::<2>(address),
        Width::Double => memory.load::<3>(address),
    };
    width.signed(value.expect("it was checked")).cast_unsigned()
}

pub(super) fn write(memory: &mut Memory, address: u64, width: Width, value: u64) {
    let stored = match width {
        Width::Word => memory.store::<2>(address, value),
        Width::Double => memory.store::<3>(address, value),
    };
    stored.expect("it was checked");
}

fn atomic<P: Port>(
    core: &mut Core,
    op: Op,
    memory: &mut Memory,
    port: &mut P,
    change: Change,
    width: Width,
) -> Result<(), Stop> {
    let address = core.get(op.rs1);
    may(memory, port, Access::Atomic, address, width.bytes())?;
    release(core, op)?;
    let old = read(memory, address, width);
    write(memory, address, width, change.apply(width, old, core.get(op.rs2)));
    core.set(op.rd, old);
    core.local_atomics += 1;
    Ok(())
}

fn load_reserved<P: Port>(core: &mut Core, op: Op, memory: &Memory, port: &mut P) -> Result<(), Stop> {
    let (address, width) = (core.get(op.rs1), if op.kind == Kind::LrW { Width::Word } else { Width::Double });
    may(memory, port, Access::Load, address, width.bytes())?;
    release(core, op)?;
    core.set(op.rd, read(memory, address, width));
    core.reservation = Some(address);
    core.local_atomics += 1;
    Ok(())
}

fn store_conditional<P: Port>(
    core: &mut Core,
    op: Op,
    memory: &mut Memory,
    port: &mut P,
) -> Result<(), Stop> {
    let (address, width) = (core.get(op.rs1), if op.kind == Kind::ScW { Width::Word } else { Width::Double });
    may(memory, port, Access::Atomic, address, width.bytes())?;
    release(core, op)?;
    let reserved = core.reservation.take() == Some(address);
    if reserved {
        write(memory, address, width, core.get(op.rs2));
    }
    core.local_atomics += 1;
    core.set(op.rd, u64::from(!reserved));
    Ok(())
}

/// With rl, what was stored before is there before this is.
const fn release(core: &Core, op: Op) -> Result<(), Stop> {
    if op.imm & RELEASE != 0 && core.posted > 0 { Err(Stop::Drain) } else { Ok(()) }
}
