//! The address extension and remote atomics: what goes to which node.
//!
//! An extended address is an extension register and an integer register. 0 in the extension register means the node's own memory,
//! and the core does it by itself; n + 1 means node n, and a request goes to the engine beside that node's memory, also if it is
//! the core's own node.
//!
//! What must always hold: a request that leaves a core can be executed: address and node were checked, so traps are precise.

use nic::words::{Operands, Operation, Width};

use super::rare::{may, read, write};
use super::run::refused;
use super::{Core, FIRST_EXTENSION, Port, Stop};
use crate::code::{Op, SINK};
use crate::isa::Kind;
use crate::memory::Memory;
use crate::trap::{Access, Cause};

/// What a core wants of another node's memory.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Remote {
    /// Whose.
    pub(crate) node: usize,
    pub(crate) address: u64,
    pub(crate) what: What,
}

/// What is done there.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum What {
    Load { bytes: u64, is_signed: bool, to: Answer },
    Store { bytes: u64, value: u64 },
    Atomic { operation: Operation, width: Width, operands: Operands, to: Answer },
}

/// Where an answer goes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Answer {
    Integer(u8),
    Extension(u8),
}

/// Executes an instruction of the address extension, or a remote atomic.
pub(super) fn extended<P: Port>(
    core: &mut Core,
    op: Op,
    memory: &mut Memory,
    port: &mut P,
) -> Result<(), Stop> {
    use Kind::*;
    let constant = i64::from(op.imm).cast_unsigned();
    let near = core.get(op.rs1).wrapping_add(constant);
    match op.kind {
        Eaddi => {
            let value = extension(core, op.rs1)?.wrapping_add(constant);
            core.set(op.rd, value);
            Ok(())
        }
        Eaddie => set_extension(core, op.rd, near),
        Eaddix => {
            let value = extension(core, op.rs1)?.wrapping_add(constant);
            set_extension(core, op.rd, value)
        }
        Ele => {
            usable(op.rd)?;
            may(memory, port, Access::Load, near, 8)?;
            set_extension(core, op.rd, read(memory, near, Width::Double))
        }
        Ese => {
            let value = extension(core, op.rs2)?;
            may(memory, port, Access::Store, near, 8)?;
            write(memory, near, Width::Double, value);
            Ok(())
        }
        Elb | Elh | Elw | Eld | Elbu | Elhu | Erlb | Erlh | Erlw | Erld | Erlbu | Erlhu | Erle => {
            let (bytes, is_signed) = match op.kind {
                Elb | Erlb => (1, true),
                Elh | Erlh => (2, true),
                Elw | Erlw => (4, true),
                Elbu | Erlbu => (1, false),
                Elhu | Erlhu => (2, false),
                _ => (8, false),
            };
            let (register, address) =
                if is_raw(op.kind) { (op.rs2, core.get(op.rs1)) } else { (op.rs1, near) };
            let to = if op.kind == Erle { Answer::Extension(op.rd) } else { Answer::Integer(op.rd) };
            if op.kind == Erle {
                usable(op.rd)?;
            }
            go(core, memory, port, register, address, What::Load { bytes, is_signed, to })
        }
        Esb | Esh | Esw | Esd | Ersb | Ersh | Ersw | Ersd | Erse => {
            let bytes = match op.kind {
                Esb | Ersb => 1,
                Esh | Ersh => 2,
                Esw | Ersw => 4,
                _ => 8,
            };
            let (register, address, value) = match op.kind {
                Erse => (op.rd, core.get(op.rs2), extension(core, op.rs1)?),
                kind if is_raw(kind) => (op.rd, core.get(op.rs2), core.get(op.rs1)),
                _ => (op.rs1, near, core.get(op.rs2)),
            };
            go(core, memory, port, register, address, What::Store { bytes, value })
        }
        kind => {
            let Some((operation, width)) = remote_atomic(kind) else {
                return Err(Stop::Trap(Cause::Illegal));
            };
            // Of a compare-and-swap rd holds what is expected, as in Zacas; `zero` expects zero.
            let expected = if op.rd == SINK { 0 } else { core.get(op.rd) };
            let operands = Operands { operand: core.get(op.rs2), expected };
            let what = What::Atomic { operation, width, operands, to: Answer::Integer(op.rd) };
            go(core, memory, port, op.rs1, core.get(op.rs1), what)
        }
    }
}

/// Loads and stores that name their extension register.
const fn is_raw(kind: Kind) -> bool {
    use Kind::*;
    matches!(kind, Erlb | Erlh | Erlw | Erld | Erlbu | Erlhu | Erle | Ersb | Ersh | Ersw | Ersd | Erse)
}

const fn remote_atomic(kind: Kind) -> Option<(Operation, Width)> {
    use Width::{Double, Word};
    Some(match kind {
        Kind::EamoXorW => (Operation::Xor, Word),
        Kind::EamoAndW => (Operation::And, Word),
        Kind::EamoOrW => (Operation::Or, Word),
        Kind::EamoMinW => (Operation::Min, Word),
        Kind::EamoMaxW => (Operation::Max, Word),
        Kind::EamoCasW => (Operation::CompareSwap, Word),
        Kind::EamoAddW => (Operation::Add, Word),
        Kind::EamoXorD => (Operation::Xor, Double),
        Kind::EamoAndD => (Operation::And, Double),
        Kind::EamoOrD => (Operation::Or, Double),
        Kind::EamoMinD => (Operation::Min, Double),
        Kind::EamoMaxD => (Operation::Max, Double),
        Kind::EamoCasD => (Operation::CompareSwap, Double),
        Kind::EamoAddD => (Operation::Add, Double),
        _ => return None,
    })
}

const fn usable(register: u8) -> Result<(), Stop> {
    if register < FIRST_EXTENSION { Err(Stop::Trap(Cause::ReservedRegister(register))) } else { Ok(()) }
}

fn extension(core: &Core, register: u8) -> Result<u64, Stop> {
    usable(register)?;
    Ok(core.e[usize::from(register & 31)])
}

fn set_extension(core: &mut Core, register: u8, value: u64) -> Result<(), Stop> {
    usable(register)?;
    core.e[usize::from(register & 31)] = value;
    Ok(())
}

impl What {
    pub(crate) const fn access(self) -> Access {
        match self {
            Self::Load { .. } => Access::Load,
            Self::Store { .. } => Access::Store,
            Self::Atomic { .. } => Access::Atomic,
        }
    }

    pub(crate) const fn bytes(self) -> u64 {
        match self {
            Self::Load { bytes, .. } | Self::Store { bytes, .. } => bytes,
            Self::Atomic { width, .. } => width.bytes(),
        }
    }
}

impl Core {
    /// Writes an answer.
    pub(crate) fn accept(&mut self, to: Answer, value: u64) {
        match to {
            Answer::Integer(register) => self.set(register, value),
            Answer::Extension(register) => self.e[usize::from(register & 31)] = value,
        }
    }
}

/// Does it here, or has it done where its extension register says.
fn go<P: Port>(
    core: &mut Core,
    memory: &mut Memory,
    port: &mut P,
    register: u8,
    address: u64,
    what: What,
) -> Result<(), Stop> {
    let extended = extension(core, register)?;
    if extended > core.nodes {
        return Err(Stop::Trap(Cause::UnknownNode(extended)));
    }
    let (access, bytes) = (what.access(), what.bytes());
    if extended > 0 {
        // All nodes have the same layout.
        memory
            .check(address, bytes, access != Access::Load)
            .map_err(|_| refused(memory, access, address, bytes))?;
        return Err(Stop::Remote(Remote { node: (extended - 1) as usize, address, what }));
    }
    may(memory, port, access, address, bytes)?;
    match what {
        What::Load { bytes, is_signed, to } => {
            let value = match bytes {
                1 => memory.load::<0>(address),
                2 => memory.load::<1>(address),
                4 => memory.load::<2>(address),
                _ => memory.load::<3>(address),
            };
            core.accept(to, extend(value.expect("it was checked"), bytes, is_signed));
        }
        What::Store { bytes, value } => {
            let stored = match bytes {
                1 => memory.store::<0>(address, value),
                2 => memory.store::<1>(address, value),
                4 => memory.store::<2>(address, value),
                _ => memory.store::<3>(address, value),
            };
            stored.expect("it was checked");
        }
        What::Atomic { operation, width, operands, to } => {
            let old = read(memory, address, width);
            write(memory, address, width, operation.apply(width, old, operands));
            core.accept(to, old);
            core.local_atomics += 1;
        }
    }
    Ok(())
}

/// The lowest bytes of a value, extended to 64 bits.
pub(crate) const fn extend(value: u64, bytes: u64, is_signed: bool) -> u64 {
    let unused = 64 - 8 * bytes as u32;
    if is_signed {
        (value.cast_signed() << unused >> unused).cast_unsigned()
    } else {
        value << unused >> unused
    }
}
