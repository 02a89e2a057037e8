//! A core: registers, and what it does until something else has to be done.
//!
//! | file | what |
//! | --- | --- |
//! | `run` | the loop: base instructions and multiplication |
//! | `arithmetic` | multiplication and division on values |
//! | `rare` | what leaves the loop: atomics, fences, control registers, calls |
//! | `remote` | the address extension and remote atomics: what goes to which node |
//!
//! Memory order: a core executes its instructions one after the other. Loads and atomics of other nodes' memory block it; stores
//! there do not, and are ordered only by `fence` (or by an atomic with `rl`) and with accesses of the same word. xBGAS asks for
//! no more ("purely weak", section 1.3).
//!
//! What must always hold: whoever looks at a core that has stopped sees the state between two instructions.

mod arithmetic;
mod rare;
mod remote;
mod run;

pub(crate) use remote::{Answer, Remote, What, extend};
pub(crate) use run::run;

use crate::code::SINK;
use crate::trap::Cause;

/// Extension registers below this are reserved (xBGAS, section 2).
pub(crate) const FIRST_EXTENSION: u8 = 10;

/// The registers of a core, and what else it remembers.
#[derive(Clone, Debug)]
pub(crate) struct Core {
    /// Integer registers, one that swallows what is written to `zero`, and room up to a power of two.
    x: [u64; 64],
    /// Extension registers.
    pub(crate) e: [u64; 32],
    pub(crate) pc: u64,
    /// Instructions executed.
    pub(crate) retired: u64,
    /// Cycles in which none was. Without timing there are no such cycles.
    pub(crate) stalled: u64,
    /// Of those: atomics on the node's own memory.
    pub(crate) local_atomics: u64,
    /// The word that `lr` reserved: its address.
    pub(crate) reservation: Option<u64>,
    /// Stores to other nodes that are in flight.
    pub(crate) posted: u32,
    /// Nodes of the machine.
    pub(crate) nodes: u64,
}

/// Why a core has stopped. It stands at the instruction that is to be executed next, but for what is said.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Stop {
    /// It has done as much as it was asked to.
    Budget,
    /// A line that it wants is the engine's for the moment.
    Held,
    /// It is at an access of another node's memory.
    Remote(Remote),
    /// It is at something that waits for its posted stores.
    Drain,
    /// It is at a call of a library: the routine, and above 8 bits how many bytes.
    Routine(u64),
    /// It is at an `ecall`.
    Call,
    /// It is at an instruction that cannot be executed.
    Trap(Cause),
}

/// What stands between a core and its node's memory.
pub(crate) trait Port {
    /// The core may read there now.
    fn may_read(&mut self, address: u64) -> bool;
    /// The core may write there now.
    fn may_write(&mut self, address: u64) -> bool;
}

impl Core {
    pub(crate) fn new(pc: u64, nodes: u64) -> Self {
        Self {
            x: [0; 64],
            e: [0; 32],
            pc,
            retired: 0,
            stalled: 0,
            local_atomics: 0,
            reservation: None,
            posted: 0,
            nodes,
        }
    }

    /// The integer registers.
    pub(crate) fn registers(&self) -> [u64; 32] {
        *self.x.first_chunk().expect("there are more than 32")
    }

    #[inline(always)]
    pub(crate) const fn get(&self, register: u8) -> u64 {
        self.x[(register & 63) as usize]
    }

    #[inline(always)]
    pub(crate) const fn set(&mut self, register: u8, value: u64) {
        self.x[(register & 63) as usize] = value;
    }

    /// Writes an argument register from outside.
    pub(crate) fn give(&mut self, register: u8, value: u64) {
        assert!(register != 0 && register < SINK, "x{register} is no register to be written");
        self.set(register, value);
    }

    /// Cycles since it began.
    pub(crate) const fn clock(&self) -> u64 {
        self.retired + self.stalled
    }

    /// It does nothing until then, if that is later.
    pub(crate) const fn stall_until(&mut self, clock: u64) {
        self.stalled += clock.saturating_sub(self.clock());
    }

    /// The instruction at which it stands is done.
    pub(crate) const fn finish(&mut self) {
        self.pc = self.pc.wrapping_add(4);
        self.retired += 1;
    }
}
