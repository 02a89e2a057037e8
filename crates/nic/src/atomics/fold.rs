//! Operations on one word as one change, for a memory whose processors change it, too.
//!
//! There no line can be had for oneself: whatever is done to a word is one atomic operation of the processor. So what is
//! pending for a word is folded: sums need one addition, whatever is mixed one compare-and-swap for all of it.
//!
//! What must always hold: the word goes from what it was to what all operations together make of it in one step, and each
//! requester gets what it would have got one after the other.

use alloc::vec::Vec;

use wire::Faithful;

use super::{Done, Operation, Request, Width};

/// What is pending for one word, in the order in which it came.
#[derive(Clone, Debug)]
pub struct Fold {
    address: u64,
    width: Width,
    requests: Vec<Request>,
}

impl Fold {
    /// The operations of one burst on one memory, by words; words in the order in which they were named first. Sorts what it
    /// is given. Requests whose address is no multiple of their width are left out: the driver has refused them.
    ///
    /// Words of different widths that overlap are folds of their own, in the order of their first requests: a burst is a
    /// set of requests that nobody has waited for, so any order of them is one that could have been.
    pub fn all(requests: &[Request]) -> Vec<Self> {
        let mut folds: Vec<Self> = Vec::new();
        let is_aligned = |request: &&Request| request.address.is_multiple_of(request.width.bytes());
        for request in requests.iter().filter(is_aligned) {
            let of_word = |fold: &&mut Self| fold.address == request.address && fold.width == request.width;
            match folds.iter_mut().find(of_word) {
                Some(fold) => fold.requests.push(*request),
                None => folds.push(Self {
                    address: request.address,
                    width: request.width,
                    requests: Vec::from([*request]),
                }),
            }
        }
        folds
    }

    /// Where the word is.
    pub const fn address(&self) -> u64 {
        self.address
    }

    /// How wide it is.
    pub const fn width(&self) -> Width {
        self.width
    }

    /// All of them are additions: what they add up to.
    pub fn sum(&self) -> Option<u64> {
        self.requests.iter().try_fold(0_u64, |sum, request| {
            (request.operation == Operation::Add).then(|| sum.wrapping_add(request.operands.operand))
        })
    }

    /// None of them changes the word.
    pub fn only_loads(&self) -> bool {
        self.requests.iter().all(|request| !request.operation.changes())
    }

    /// What the word becomes that was `old`.
    pub fn apply(&self, old: u64) -> u64 {
        self.requests
            .iter()
            .fold(old, |old, request| request.operation.apply(self.width, old, request.operands))
    }

    /// What each request gets, if the word was `old` before the first.
    pub fn done(&self, old: u64) -> impl Iterator<Item = Done> + '_ {
        self.requests.iter().scan(self.width.take::<Faithful>(old, false), |word, request| {
            let old = core::mem::replace(word, request.operation.apply(self.width, *word, request.operands));
            Some(Done { ticket: request.ticket, old })
        })
    }
}
