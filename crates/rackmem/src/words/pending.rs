//! Operations that nobody waits for yet.

use nic::atomics::{Operands, Operation};

use super::Word;
use crate::error::Error;
use crate::handle::NodeHandle;

/// An operation on a word, as a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WordOperation<W> {
    /// Adds, and wraps around.
    Add(W),
    /// Bitwise.
    And(W),
    /// Bitwise.
    Or(W),
    /// Bitwise.
    Xor(W),
    /// The smaller one, as signed numbers.
    Min(W),
    /// The larger one, as signed numbers.
    Max(W),
    /// Stores the new value, if the word is what was expected.
    CompareExchange {
        /// What it must be.
        expected: W,
        /// What it becomes.
        new: W,
    },
    /// Stores.
    Swap(W),
    /// Changes nothing.
    Load,
}

/// An operation under way: its word's former value is to come.
///
/// Any number may be under way at a time. On an embedded rack every operation is done at once, and there is nothing to wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "whether it succeeded is known when it was waited for; to wait for all at once there is `NodeHandle::flush`"]
pub struct Pending<W> {
    old: W,
}

impl<W: Word> WordOperation<W> {
    #[inline(always)]
    pub(super) fn parts(self) -> (Operation, Operands) {
        let with = |operand: W| Operands { operand: operand.bits(), expected: 0 };
        match self {
            Self::Add(operand) => (Operation::Add, with(operand)),
            Self::And(operand) => (Operation::And, with(operand)),
            Self::Or(operand) => (Operation::Or, with(operand)),
            Self::Xor(operand) => (Operation::Xor, with(operand)),
            Self::Min(operand) => (Operation::Min, with(operand)),
            Self::Max(operand) => (Operation::Max, with(operand)),
            Self::CompareExchange { expected, new } => {
                (Operation::CompareSwap, Operands { operand: new.bits(), expected: expected.bits() })
            }
            Self::Swap(operand) => (Operation::Swap, with(operand)),
            Self::Load => (Operation::Load, Operands::default()),
        }
    }
}

impl<W: Word> Pending<W> {
    #[inline(always)]
    pub(super) const fn done(old: W) -> Self {
        Self { old }
    }

    /// What the word was before, if that is known already.
    #[inline]
    pub fn poll(&self, _node: &mut NodeHandle) -> Option<Result<W, Error>> {
        Some(Ok(self.old))
    }

    /// Waits for what the word was before.
    ///
    /// # Errors
    /// As for [`Words::fetch_add`](super::Words::fetch_add), for what shows only at the home.
    #[inline]
    pub fn wait(self, _node: &mut NodeHandle) -> Result<W, Error> {
        Ok(self.old)
    }
}

impl NodeHandle {
    /// Waits until every operation on words that was begun through this handle has taken effect: the posted ones, and the
    /// forms that fetch nothing. On an embedded rack they have when they return.
    ///
    /// # Errors
    /// The first error of an operation whose outcome nobody waited for.
    #[inline]
    pub fn flush(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
