//! A node: core, memory, engine, and what its core waits for.

use nic::words::{Operation, Width};
use wire::roce::batch::Entry;

use super::engine::Engine;
use crate::core::{Answer, Core, Remote, What, extend};
use crate::memory::Memory;

/// A node of a machine.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) core: Core,
    pub(super) memory: Memory,
    pub(super) engine: Engine,
    pub(super) state: CoreState,
    pub(super) sent: Sent,
}

/// What a core does.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum CoreState {
    Running,
    /// It waits for an answer.
    Waiting(Pending),
    /// It waits for its posted stores, to execute its instruction then.
    Draining,
    /// It is at a barrier.
    AtBarrier,
    /// The program has ended, with this code.
    Exited(i32),
}

/// What becomes of the answer that a core waits for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Pending {
    /// Bytes of the word go to a register.
    Load { shift: u32, bytes: u64, is_signed: bool, to: Answer },
    /// The word goes to a register.
    Atomic { to: Answer },
    /// Bytes of the word are exchanged: the engine knows whole words, so it is a load and compare-and-swaps until one succeeds.
    Part { node: usize, offset: u64, mask: u64, value: u64, guess: Option<u64> },
}

/// Requests that a core has sent.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Sent {
    pub(super) loads: u64,
    pub(super) stores: u64,
    pub(super) atomics: u64,
    /// Of these, to the engine of its own node.
    pub(super) to_itself: u64,
    /// Routines of a library that it has called.
    pub(super) routines: u64,
    /// Instructions that were charged for those.
    pub(super) charged: u64,
    /// Cycles that the core has waited for answers.
    pub(super) waited: u64,
}

/// A request, and what the core does until it is answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing {
    pub(super) node: usize,
    pub(super) entry: Entry,
    /// None: a posted store.
    pub(super) pending: Option<Pending>,
}

fn entry(offset: u64, width: Width, operation: Operation, operand: u64, expected: u64) -> Entry {
    Entry {
        address: offset,
        operation: operation.to_wire(),
        is_wide: width == Width::Double,
        fetches: true,
        operand,
        expected: if operation == Operation::CompareSwap { expected } else { 0 },
    }
}

impl Outgoing {
    /// The request of an instruction.
    pub(super) fn of(remote: Remote, offset: u64) -> Self {
        let Remote { node, what, .. } = remote;
        // Bytes and halves are in words of four bytes.
        let (word, shift) = (offset & !3, (offset & 3) as u32 * 8);
        match what {
            What::Load { bytes, is_signed, to } => {
                let (offset, shift, width) =
                    if bytes == 8 { (offset, 0, Width::Double) } else { (word, shift, Width::Word) };
                let pending = Pending::Load { shift, bytes, is_signed, to };
                Self { node, entry: entry(offset, width, Operation::Load, 0, 0), pending: Some(pending) }
            }
            What::Store { bytes, value } if bytes >= 4 => {
                let width = if bytes == 8 { Width::Double } else { Width::Word };
                let entry = Entry { fetches: false, ..entry(offset, width, Operation::Swap, value, 0) };
                Self { node, entry, pending: None }
            }
            What::Store { bytes, value } => {
                let mask = ((1 << (8 * bytes)) - 1) << shift;
                let value = value << shift & mask;
                let pending = Pending::Part { node, offset: word, mask, value, guess: None };
                Self { node, entry: entry(word, Width::Word, Operation::Load, 0, 0), pending: Some(pending) }
            }
            What::Atomic { operation, width, operands, to } => {
                let entry = entry(offset, width, operation, operands.operand, operands.expected);
                Self { node, entry, pending: Some(Pending::Atomic { to }) }
            }
        }
    }
}

impl Node {
    /// The core's request is answered, at a time. Returns another one, if that is not enough.
    pub(super) fn on_answer(&mut self, old: u64, now: u64) -> Option<Outgoing> {
        let pending = match self.state {
            CoreState::Waiting(pending) => pending,
            // The program has ended while this was in flight.
            CoreState::Exited(_) => return None,
            state => unreachable!("the core waits for nothing: {state:?}"),
        };
        self.sent.waited += now.saturating_sub(self.core.clock());
        self.core.stall_until(now);
        match pending {
            Pending::Load { shift, bytes, is_signed, to } => {
                self.core.accept(to, extend(old >> shift, bytes, is_signed));
            }
            Pending::Atomic { to } => self.core.accept(to, old),
            Pending::Part { node, offset, mask, value, guess } if guess != Some(old) => {
                let pending = Pending::Part { node, offset, mask, value, guess: Some(old) };
                let new = old & !mask | value;
                let entry = entry(offset, Width::Word, Operation::CompareSwap, new, old);
                return Some(Outgoing { node, entry, pending: Some(pending) });
            }
            Pending::Part { .. } => {}
        }
        self.core.finish();
        self.state = CoreState::Running;
        None
    }

    /// A posted store is done, at a time.
    pub(super) fn on_stored(&mut self, now: u64) {
        self.core.posted -= 1;
        if self.core.posted == 0 && self.state == CoreState::Draining {
            self.core.stall_until(now);
            self.state = CoreState::Running;
        }
    }
}
