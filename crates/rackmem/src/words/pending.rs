//! Operations that nobody waits for yet.

use nic::words::{Operands, Operation};

use super::Word;
use super::far::BatchIndex;
use crate::attach::AskedIndex;
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

/// An operation in flight: its word's former value is to come.
///
/// Any number may be in flight at a time. Where the words are within reach of this processor every operation is done at once, and
/// there is nothing to wait for. It may be waited for with any handle of the same process.
#[must_use = "whether it succeeded is known when it was waited for"]
#[derive(Clone)]
pub struct Pending<W> {
    state: PendingState<W>,
}

#[derive(Clone)]
enum PendingState<W> {
    Done(W),
    Begun(Place),
}

/// Where the outcome of an operation is to be found that was not done at once.
#[derive(Clone)]
pub(super) enum Place {
    /// In an answer of its home.
    Far(BatchIndex),
    /// In an answer of the daemon that this process is attached to.
    Asked(AskedIndex),
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
        Self { state: PendingState::Done(old) }
    }

    pub(super) const fn begun(place: Place) -> Self {
        Self { state: PendingState::Begun(place) }
    }

    /// What the word was before, if that is known already. Receives what has come, but waits for nothing; of an attached handle,
    /// only for the daemon's answer.
    #[inline]
    pub fn poll(&self, node: &mut NodeHandle) -> Option<Result<W, Error>> {
        match &self.state {
            PendingState::Done(old) => Some(Ok(*old)),
            PendingState::Begun(Place::Asked(place)) => Some(place.wait().map(W::of_bits)),
            PendingState::Begun(Place::Far(place)) => node
                .sent(|joined, context, _| place.poll(joined, context))
                .map(|outcome| outcome.map(W::of_bits)),
        }
    }

    /// Waits for what the word was before.
    ///
    /// # Errors
    /// As for [`Words::fetch_add`](super::Words::fetch_add), for what shows only at the home.
    #[inline]
    pub fn wait(self, node: &mut NodeHandle) -> Result<W, Error> {
        match self.state {
            PendingState::Done(old) => Ok(old),
            PendingState::Begun(Place::Asked(place)) => place.wait().map(W::of_bits),
            PendingState::Begun(Place::Far(place)) => {
                node.sent(|joined, context, _| place.wait(joined, context)).map(W::of_bits)
            }
        }
    }
}

impl<W: Word> std::fmt::Debug for Pending<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let is_done = matches!(self.state, PendingState::Done(_));
        f.debug_struct("Pending").field("is_done", &is_done).finish_non_exhaustive()
    }
}

impl NodeHandle {
    /// Waits until every operation on words that was begun through this handle has taken effect: the posted ones, and the
    /// forms that fetch nothing. Where the words are within reach they have when they return.
    ///
    /// # Errors
    /// The first error of an operation that fetches nothing, since the last flush. Of posted ones, [`Pending::wait`] says it.
    #[inline]
    pub fn flush(&mut self) -> Result<(), Error> {
        if self.pipeline.is_empty() { Ok(()) } else { self.flush_far() }
    }

    #[cold]
    #[inline(never)]
    fn flush_far(&mut self) -> Result<(), Error> {
        if self.is_attached() {
            self.send_asked();
            return self.pipeline.take_failure();
        }
        self.sent(|joined, context, pipeline| pipeline.flush(joined, context))
    }
}
