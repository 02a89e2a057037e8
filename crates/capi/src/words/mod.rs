//! Words that anybody changes by atomic operations where they are.
//!
//! | file | holds |
//! | --- | --- |
//! | `wide.rs` | operations on words of 64 bits |
//! | `narrow.rs` | operations on words of 32 bits |
//! | `posted.rs` | operations that nobody waits for yet |
//!
//! Each operation is a function of its own, so that it is as short as in Rust where the words are within reach: no failure, no
//! message, no frame on the stack. All else is left to one call behind it.
#![allow(unsafe_code)]

pub mod narrow;
pub mod posted;
pub mod wide;

use std::ffi::c_void;

use rackmem::{GlobalAddr, NodeId, Word, WordOperation, Words};

pub(crate) use self::posted::Posted;
use crate::handles::{Align256, Slot, Turn, ask, close, end, kind, with, with_thread};
use crate::pointer::{To, bytes, bytes_mut};
use crate::rack::RackmemThread;
use crate::status::{Failure, RackmemStatus};

/// Words in the memory of one node, 64 bits each or two of 32. They belong to the `rackmem_thread` that they were opened through; other
/// threads open the same words by their address.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RackmemWords {
    /// 0: null.
    pub id: u64,
}

/// What is done to a word.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RackmemOperation {
    /// Adds, and wraps around.
    Add = 1,
    /// Bitwise.
    And = 2,
    /// Bitwise.
    Or = 3,
    /// Bitwise.
    Xor = 4,
    /// The smaller one, as signed numbers.
    Min = 5,
    /// The larger one, as signed numbers.
    Max = 6,
    /// Stores.
    Swap = 7,
    /// Stores, if the word is what was expected.
    CompareExchange = 8,
    /// Changes nothing.
    Load = 9,
}

/// Open words, of both widths.
pub(crate) struct WordsHere {
    wide: Words<u64>,
    narrow: Words<u32>,
}

kind!(WordsHere, 5, Align256, 1 << 16);

pub(crate) const NO_WORDS: RackmemWords = RackmemWords { id: 0 };

/// What the two widths have in common.
pub(crate) trait Width: Word {
    fn of(words: &WordsHere) -> &Words<Self>;
}

impl Width for u64 {
    #[inline(always)]
    fn of(words: &WordsHere) -> &Words<Self> {
        &words.wide
    }
}

impl Width for u32 {
    #[inline(always)]
    fn of(words: &WordsHere) -> &Words<Self> {
        &words.narrow
    }
}

/// An operation and its operands, as they fit registers.
#[derive(Clone, Copy)]
pub(crate) struct Asked<W> {
    which: RackmemOperation,
    operand: W,
    expected: W,
}

impl<W: Width> Asked<W> {
    #[inline(always)]
    pub(crate) fn to(which: RackmemOperation, operand: W) -> Self {
        Self { which, operand, expected: operand }
    }

    #[inline(always)]
    pub(crate) fn if_equal(expected: W, new: W) -> Self {
        Self { which: RackmemOperation::CompareExchange, operand: new, expected }
    }

    #[inline(always)]
    pub(crate) fn operation(self) -> WordOperation<W> {
        let Self { which, operand, expected } = self;
        match which {
            RackmemOperation::Add => WordOperation::Add(operand),
            RackmemOperation::And => WordOperation::And(operand),
            RackmemOperation::Or => WordOperation::Or(operand),
            RackmemOperation::Xor => WordOperation::Xor(operand),
            RackmemOperation::Min => WordOperation::Min(operand),
            RackmemOperation::Max => WordOperation::Max(operand),
            RackmemOperation::Swap => WordOperation::Swap(operand),
            RackmemOperation::CompareExchange => WordOperation::CompareExchange { expected, new: operand },
            RackmemOperation::Load => WordOperation::Load,
        }
    }
}

/// Executes it at once, if that is possible.
#[inline(always)]
fn here<W: Width>(id: u64, index: usize, asked: Asked<W>) -> Option<W> {
    let slot = Slot::<WordsHere>::find(id)?;
    // SAFETY: both handles are open, and stay so while the one OS thread that uses them is in here; what is looked at of the thread
    // never changes.
    let (words, thread) = unsafe { (slot.value(), slot.thread().value()) };
    W::of(words).run_here(&thread.handle, index, asked.operation())
}

/// Executes it; the word's former value is wanted.
///
/// # Safety
/// `old` is null, or may be written.
#[inline(always)]
pub(crate) unsafe fn fetch<W: Width>(
    words: RackmemWords,
    index: usize,
    asked: Asked<W>,
    old: *mut W,
) -> RackmemStatus {
    if !old.is_null()
        && let Some(was) = here(words.id, index, asked)
    {
        // SAFETY: the caller promises it.
        unsafe { old.write(was) };
        return RackmemStatus::Ok;
    }
    // SAFETY: passed on.
    unsafe { fetch_anyhow(words, index, old, asked.which, asked.operand, asked.expected) }
}

#[cold]
#[inline(never)]
unsafe fn fetch_anyhow<W: Width>(
    words: RackmemWords,
    index: usize,
    old: *mut W,
    which: RackmemOperation,
    operand: W,
    expected: W,
) -> RackmemStatus {
    with::<WordsHere>(words.id, |turn, words| {
        // SAFETY: the caller promises it.
        let to = unsafe { To::at(old, "the place for what the word was") }?;
        let operation = Asked { which, operand, expected }.operation();
        let handle = turn.handle();
        to.set(W::of(words).post(handle, index, operation)?.wait(handle)?);
        Ok(RackmemStatus::Ok)
    })
}

/// Executes it; nobody wants to know what the word was.
#[inline(always)]
pub(crate) fn begin<W: Width>(words: RackmemWords, index: usize, asked: Asked<W>) -> RackmemStatus {
    match here(words.id, index, asked) {
        Some(_) => RackmemStatus::Ok,
        None => begin_anyhow(words, index, asked.which, asked.operand, asked.expected),
    }
}

#[cold]
#[inline(never)]
fn begin_anyhow<W: Width>(
    words: RackmemWords,
    index: usize,
    which: RackmemOperation,
    operand: W,
    expected: W,
) -> RackmemStatus {
    with::<WordsHere>(words.id, |turn, words| {
        let (words, handle) = (W::of(words), turn.handle());
        match which {
            RackmemOperation::Add => words.add(handle, index, operand),
            RackmemOperation::And => words.and(handle, index, operand),
            RackmemOperation::Or => words.or(handle, index, operand),
            RackmemOperation::Xor => words.xor(handle, index, operand),
            RackmemOperation::Min => words.min(handle, index, operand),
            RackmemOperation::Max => words.max(handle, index, operand),
            RackmemOperation::Swap => words.store(handle, index, operand),
            RackmemOperation::CompareExchange => words.compare_store(handle, index, expected, operand),
            RackmemOperation::Load => Ok(()),
        }?;
        Ok(RackmemStatus::Ok)
    })
}

pub(crate) fn open(turn: &Turn, to: To<RackmemWords>, wide: Words<u64>) -> Result<RackmemStatus, Failure> {
    let narrow = wide.of_width();
    to.set(RackmemWords { id: Slot::open(WordsHere { wide, narrow }, Some(turn.slot()))? });
    Ok(RackmemStatus::Ok)
}

/// Allocates `count` words of 64 bits, zeroes, in the memory of node `home`. The OS thread that uses `thread`.
///
/// # Safety
/// `words` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_words_create(
    thread: RackmemThread,
    home: u16,
    count: usize,
    words: *mut RackmemWords,
) -> RackmemStatus {
    with_thread(thread.id, |turn| {
        // SAFETY: the caller promises it.
        let to = unsafe { To::cleared(words, "words", NO_WORDS) }?;
        let made = turn.handle().words(count, NodeId(home))?;
        open(turn, to, made)
    })
}

/// Opens the words at this address, which `rackmem_words_address` has named, in this or another process. The OS thread that uses
/// `thread`.
///
/// # Safety
/// `words` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_words_open(
    thread: RackmemThread,
    address: u64,
    words: *mut RackmemWords,
) -> RackmemStatus {
    with_thread(thread.id, |turn| {
        // SAFETY: the caller promises it.
        let to = unsafe { To::cleared(words, "words", NO_WORDS) }?;
        let found = turn.handle().words_at(GlobalAddr::from_bits(address))?;
        open(turn, to, found)
    })
}

/// Forgets words here; they stay, for others. Closing null does nothing. The OS thread that uses their thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_words_close(words: RackmemWords) -> RackmemStatus {
    close::<WordsHere>(words.id, |_, _| Ok(()))
}

/// Gives words back, and closes the handle. Operations on them are refused from then on, through whichever handle. If it fails, the
/// handle stays open. The OS thread that uses their thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_words_free(words: RackmemWords) -> RackmemStatus {
    end::<WordsHere>(words.id, |turn, words| Ok(words.wide.clone().free(turn.handle())?))
}

/// The address of words, for other threads and processes; 0 if there is no such handle. The OS thread that uses their thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_words_address(words: RackmemWords) -> u64 {
    ask::<WordsHere, _>(words.id, |words| words.wide.addr().bits())
}

/// How many words of 64 bits there are; 0 if there is no such handle. The OS thread that uses their thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_words_len(words: RackmemWords) -> usize {
    ask::<WordsHere, _>(words.id, |words| words.wide.len())
}

/// Reads bytes of words from word `index` (of 64 bits) on, whoever is writing them: each word is whole, and read behind the one in
/// front of it. At most 1 MiB. The OS thread that uses their thread.
///
/// # Safety
/// `len` bytes may be written at `into`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_words_read(
    words: RackmemWords,
    index: usize,
    into: *mut c_void,
    len: usize,
) -> RackmemStatus {
    with::<WordsHere>(words.id, |turn, words| {
        // SAFETY: the caller promises it.
        words.wide.read_bytes(turn.handle(), index, unsafe { bytes_mut(into, len, "into") }?)?;
        Ok(RackmemStatus::Ok)
    })
}

/// Writes bytes of words from word `index` (of 64 bits) on: each word behind the one in front of it. At most 1 MiB. The OS thread that
/// uses their thread.
///
/// # Safety
/// There are `len` bytes at `from`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_words_write(
    words: RackmemWords,
    index: usize,
    from: *const c_void,
    len: usize,
) -> RackmemStatus {
    with::<WordsHere>(words.id, |turn, words| {
        // SAFETY: the caller promises it.
        words.wide.write_bytes(turn.handle(), index, unsafe { bytes(from, len, "from") }?)?;
        Ok(RackmemStatus::Ok)
    })
}
