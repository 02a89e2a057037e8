//! The switch program as a program for the kernel's virtual machine (eBPF): at the ports of a Linux host, where packets
//! meet before any process sees them.
//!
//! | module | holds |
//! | --- | --- |
//! | `instruction`, `assembler` | the machine's instructions, jumps and labels |
//! | `emitter` | what parser, multicast engine and deparser say, as instructions |
//! | `stages` | what the stages do, as instructions |
//! | [`memory`] | where a program finds what in its maps |
//! | [`datagram`], `tag` | datagrams of the rack at a port, and what shows that they are |
//! | `locked` | one packet from its coming in to its going out |
//!
//! Nothing of a program is written a second time here: the parser and the deparser are those of the model
//! ([`crate::pipeline::Means`]), and the stages are the plans that the model runs, one for each kind of pass. This module writes
//! instructions and needs nothing of the kernel; loading them is somebody else's work.
//!
//! # What must always hold
//! - From the first look at the switch's state to the end of the last pass a program holds the one lock. LAST-UNLOCK and
//!   SCOREBOARD are indexed by slot and not by set, so a lock for each set would not do.
//! - Packets go out behind the lock, so two of them may leave in another order than their passes had. The protocol
//!   stands that: it stands networks that do it.
//! - No loop has more rounds than the rack has nodes, and no path skips the unlock.

mod assembler;
pub mod datagram;
mod emitter;
mod instruction;
mod locked;
pub mod memory;
mod stages;
mod tag;

use alloc::vec::Vec;

pub(crate) use assembler::Label;
pub use assembler::{Code, Map, Named, TooLong};
pub use datagram::DatagramTerms;
pub(crate) use emitter::{Emitter, List, Word};
pub use emitter::{Frames, Hook, Output};
pub use instruction::Instruction;
pub use memory::{ArrayLayout, Datagrams, SCRATCH_BYTES, StateLayout};

/// A program for the kernel, and what it needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelProgram {
    /// Its instructions.
    pub code: Code,
    /// Its state.
    pub layout: StateLayout,
    /// Bytes of a header.
    pub header: usize,
    /// Where it sees frames.
    pub hook: Hook,
}

/// One program that runs two, which are programs for a driver: a device's driver runs one only. The second sees what the first lets
/// go on. (Their maps have been put in: each has its own.)
pub fn in_turn(programs: [&[Instruction]; 2]) -> Vec<Instruction> {
    let [first, second] = programs;
    let mut all = assembler::calls_in_turn(first.len(), verdict::passed(Hook::Driver));
    all.extend_from_slice(first);
    all.extend_from_slice(second);
    all
}

/// What a program says of a packet when it is done with it.
pub mod verdict {
    use super::Hook;

    /// At the traffic control, the packet is the program's, and gone: what comes of it is sent.
    pub const TAKEN: u32 = taken(Hook::TrafficControl);
    /// There, the packet goes on, as if there were no program.
    pub const PASSED: u32 = passed(Hook::TrafficControl);
    /// In a driver, the packet leaves through another port.
    pub const LEAVES: u32 = 4;

    /// The packet was the program's, and is gone.
    pub const fn taken(hook: Hook) -> u32 {
        match hook {
            Hook::TrafficControl => 2,
            Hook::Driver => 1,
        }
    }

    /// The packet goes on, as if there were no program.
    pub const fn passed(hook: Hook) -> u32 {
        match hook {
            Hook::TrafficControl => u32::MAX,
            Hook::Driver => 2,
        }
    }
}
