//! What programs can ask of the machine: `ecall`, the number in a7, arguments from a0, the result in a0 (and a1).
//!
//! | a7 | call | |
//! | --- | --- | --- |
//! | 64 | write | a0 1 or 2, a1 where, a2 how many bytes; as Linux has it |
//! | 93 | exit | a0 the code; as Linux has it |
//! | 94 | exit of all nodes | a0 their code; as Linux has it for the threads of a process |
//! | 1000 | node | which node this is |
//! | 1001 | nodes | how many there are |
//! | 1002 | clock | cycles |
//! | 1003 | barrier | returns when all nodes have called it, after their stores |
//! | 1005 | mark | the machine notes what it has counted so far, under the number in a0 |
//! | 1004 | heap | where the symmetric heap begins (a0) and ends (a1) |
//!
//! What must always hold: a call that is not known traps.

use super::config::Layout;
use super::node::{CoreState, Node};
use crate::trap::{Access, Cause};

const A0: u8 = 10;
const A1: u8 = 11;
const A2: u8 = 12;
const A7: u8 = 17;

/// Bytes that a program writes at once, at most.
const MOST_WRITTEN: u64 = 1 << 20;

/// What becomes of a core after a call.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum After {
    /// It goes on.
    GoOn,
    /// It has written this, and goes on.
    Written(Vec<u8>),
    /// It has asked for what was counted to be noted, under this number, and goes on.
    Marked(u64),
    /// It does not go on for the moment.
    Waits,
    /// No core goes on: the program has ended with this code.
    EndsAll(i32),
}

/// Carries out the call at which the core of a node stands.
pub(super) fn call(node: &mut Node, index: usize, layout: &Layout) -> Result<After, Cause> {
    let core = &mut node.core;
    match core.get(A7) {
        64 => {
            let (address, count) = (core.get(A1), core.get(A2));
            let unmapped = Cause::Unmapped(Access::Load, address, count);
            if count > MOST_WRITTEN {
                return Err(unmapped);
            }
            let bytes = node.memory.bytes(address, count).ok_or(unmapped)?;
            core.give(A0, count);
            core.finish();
            return Ok(After::Written(bytes));
        }
        93 => {
            let code = core.get(A0) as u32;
            core.finish();
            node.state = CoreState::Exited(code.cast_signed());
            return Ok(After::Waits);
        }
        94 => {
            let code = core.get(A0) as u32;
            core.finish();
            return Ok(After::EndsAll(code.cast_signed()));
        }
        1000 => core.give(A0, index as u64),
        1001 => core.give(A0, core.nodes),
        1002 => core.give(A0, core.clock()),
        1003 => {
            node.state = if core.posted > 0 { CoreState::Draining } else { CoreState::AtBarrier };
            return Ok(After::Waits);
        }
        1004 => {
            core.give(A0, layout.heap.start);
            core.give(A1, layout.heap.end);
        }
        1005 => {
            core.finish();
            return Ok(After::Marked(core.get(A0)));
        }
        unknown => return Err(Cause::UnknownCall(unknown)),
    }
    core.finish();
    Ok(After::GoOn)
}
