//! Operations on one word as one change, for a memory whose processors change it, too.
//!
//! There no line can be had for oneself: whatever is done to a word is one atomic operation of the processor. So what is
//! pending for a word is folded: sums need one addition, whatever is mixed one compare-and-swap for all of it.
//!
//! What must always hold: the word goes from what it was to what all operations together make of it in one step, and each
//! requester gets what it would have got one after the other.

use alloc::vec::Vec;
use core::ops::Range;

use wire::AllRules;

use super::{Done, Operation, Request, Width};

/// What is pending for one word, in the order in which it came.
#[derive(Clone, Copy, Debug)]
pub struct Fold<'a> {
    requests: &'a [Request],
    /// Which of them are for this word: one at least.
    of_word: &'a [Position],
}

/// Sorts bursts of operations by words, and keeps the memory that it needs for that.
#[derive(Clone, Default, Debug)]
pub struct Folder {
    /// Those for one word beside each other, in the order in which they came.
    order: Vec<Position>,
    words: Vec<Word>,
}

/// A request: its word, and where it is in its burst. Sorted by that.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Position {
    word: u64,
    index: u32,
}

/// A word: which request names it first, and which positions are its.
#[derive(Clone, Debug)]
struct Word {
    named: u32,
    positions: Range<u32>,
}

impl Folder {
    /// The operations of one burst on one memory, by words; words in the order in which they were named first. Requests whose
    /// address is no multiple of their width are left out: the driver has refused them. Takes n log n steps.
    ///
    /// Words of different widths that overlap are folds of their own, in the order of their first requests: a burst is a
    /// set of requests that nobody has waited for, so any order of them is one that could have been.
    ///
    /// # Panics
    /// If those are 2^32 requests or more.
    pub fn fold<'a>(&'a mut self, requests: &'a [Request]) -> impl ExactSizeIterator<Item = Fold<'a>> {
        let Self { order, words } = self;
        assert!(u32::try_from(requests.len()).is_ok(), "a burst of fewer than 2^32 requests");
        order.clear();
        order.extend((0..).zip(requests).filter_map(|(index, request)| {
            let is_aligned = request.address.is_multiple_of(request.width.bytes());
            is_aligned.then(|| Position { word: word(request), index })
        }));
        order.sort_unstable();
        words.clear();
        let mut end = 0;
        for of_word in order.chunk_by(|one, other| one.word == other.word) {
            let first = end;
            end += of_word.len() as u32;
            words.push(Word { named: of_word[0].index, positions: first..end });
        }
        words.sort_unstable_by_key(|word| word.named);
        words.iter().map(|Word { positions, .. }| Fold {
            requests,
            of_word: &order[positions.start as usize..positions.end as usize],
        })
    }
}

/// Tells words from each other: by their addresses, and in the lowest bit, which no address of a word has, by their widths.
const fn word(request: &Request) -> u64 {
    request.address | matches!(request.width, Width::Double) as u64
}

impl Fold<'_> {
    /// Where the word is.
    pub fn address(&self) -> u64 {
        self.first().address
    }

    /// How wide it is.
    pub fn width(&self) -> Width {
        self.first().width
    }

    fn first(&self) -> &Request {
        &self.requests[self.of_word[0].index as usize]
    }

    fn all(&self) -> impl Iterator<Item = &Request> + '_ {
        self.of_word.iter().map(|position| &self.requests[position.index as usize])
    }

    /// How many requests those are.
    pub const fn len(&self) -> usize {
        self.of_word.len()
    }

    /// Never: a fold has a request.
    pub const fn is_empty(&self) -> bool {
        self.of_word.is_empty()
    }

    /// All of them are additions: what they add up to.
    pub fn sum(&self) -> Option<u64> {
        self.all().try_fold(0_u64, |sum, request| {
            (request.operation == Operation::Add).then(|| sum.wrapping_add(request.operands.operand))
        })
    }

    /// None of them changes the word.
    pub fn only_loads(&self) -> bool {
        self.all().all(|request| !request.operation.changes())
    }

    /// What the word becomes that was `old`.
    pub fn apply(&self, old: u64) -> u64 {
        self.all().fold(old, |old, request| request.operation.apply(self.width(), old, request.operands))
    }

    /// What each request gets, if the word was `old` before the first.
    pub fn done(&self, old: u64) -> impl Iterator<Item = Done> + '_ {
        self.all().scan(self.width().take(AllRules, old, false), |word, request| {
            let old =
                core::mem::replace(word, request.operation.apply(self.width(), *word, request.operands));
            Some(Done { ticket: request.ticket, old })
        })
    }
}
