//! Operations on words of 64 bits.
#![allow(unsafe_code)]

use super::{Asked, RackmemOperation, RackmemWords, begin, fetch};
use crate::status::RackmemStatus;

/// Adds. `*old` is what the word was. The OS thread that uses its thread.
///
/// # Safety
/// `old` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_words_fetch_add(
    words: RackmemWords,
    index: usize,
    operand: u64,
    old: *mut u64,
) -> RackmemStatus {
    // SAFETY: passed on.
    unsafe { fetch(words, index, Asked::to(RackmemOperation::Add, operand), old) }
}

/// Adds; at `rackmem_flush` at the latest. The OS thread that uses its thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_words_add(words: RackmemWords, index: usize, operand: u64) -> RackmemStatus {
    begin(words, index, Asked::to(RackmemOperation::Add, operand))
}

/// Keeps the bits that both have. `*old` is what the word was. The OS thread that uses its thread.
///
/// # Safety
/// `old` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_words_fetch_and(
    words: RackmemWords,
    index: usize,
    operand: u64,
    old: *mut u64,
) -> RackmemStatus {
    // SAFETY: passed on.
    unsafe { fetch(words, index, Asked::to(RackmemOperation::And, operand), old) }
}

/// Keeps the bits that both have; at `rackmem_flush` at the latest. The OS thread that uses its thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_words_and(words: RackmemWords, index: usize, operand: u64) -> RackmemStatus {
    begin(words, index, Asked::to(RackmemOperation::And, operand))
}

/// Sets bits. `*old` is what the word was. The OS thread that uses its thread.
///
/// # Safety
/// `old` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_words_fetch_or(
    words: RackmemWords,
    index: usize,
    operand: u64,
    old: *mut u64,
) -> RackmemStatus {
    // SAFETY: passed on.
    unsafe { fetch(words, index, Asked::to(RackmemOperation::Or, operand), old) }
}

/// Sets bits; at `rackmem_flush` at the latest. The OS thread that uses its thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_words_or(words: RackmemWords, index: usize, operand: u64) -> RackmemStatus {
    begin(words, index, Asked::to(RackmemOperation::Or, operand))
}

/// Inverts bits. `*old` is what the word was. The OS thread that uses its thread.
///
/// # Safety
/// `old` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_words_fetch_xor(
    words: RackmemWords,
    index: usize,
    operand: u64,
    old: *mut u64,
) -> RackmemStatus {
    // SAFETY: passed on.
    unsafe { fetch(words, index, Asked::to(RackmemOperation::Xor, operand), old) }
}

/// Inverts bits; at `rackmem_flush` at the latest. The OS thread that uses its thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_words_xor(words: RackmemWords, index: usize, operand: u64) -> RackmemStatus {
    begin(words, index, Asked::to(RackmemOperation::Xor, operand))
}

/// Keeps the smaller one, as signed numbers. `*old` is what the word was. The OS thread that uses its thread.
///
/// # Safety
/// `old` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_words_fetch_min(
    words: RackmemWords,
    index: usize,
    operand: u64,
    old: *mut u64,
) -> RackmemStatus {
    // SAFETY: passed on.
    unsafe { fetch(words, index, Asked::to(RackmemOperation::Min, operand), old) }
}

/// Keeps the smaller one, as signed numbers; at `rackmem_flush` at the latest. The OS thread that uses its thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_words_min(words: RackmemWords, index: usize, operand: u64) -> RackmemStatus {
    begin(words, index, Asked::to(RackmemOperation::Min, operand))
}

/// Keeps the larger one, as signed numbers. `*old` is what the word was. The OS thread that uses its thread.
///
/// # Safety
/// `old` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_words_fetch_max(
    words: RackmemWords,
    index: usize,
    operand: u64,
    old: *mut u64,
) -> RackmemStatus {
    // SAFETY: passed on.
    unsafe { fetch(words, index, Asked::to(RackmemOperation::Max, operand), old) }
}

/// Keeps the larger one, as signed numbers; at `rackmem_flush` at the latest. The OS thread that uses its thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_words_max(words: RackmemWords, index: usize, operand: u64) -> RackmemStatus {
    begin(words, index, Asked::to(RackmemOperation::Max, operand))
}

/// Stores. `*old` is what the word was. The OS thread that uses its thread.
///
/// # Safety
/// `old` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_words_swap(
    words: RackmemWords,
    index: usize,
    operand: u64,
    old: *mut u64,
) -> RackmemStatus {
    // SAFETY: passed on.
    unsafe { fetch(words, index, Asked::to(RackmemOperation::Swap, operand), old) }
}

/// Stores; at `rackmem_flush` at the latest. The OS thread that uses its thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_words_store(words: RackmemWords, index: usize, operand: u64) -> RackmemStatus {
    begin(words, index, Asked::to(RackmemOperation::Swap, operand))
}

/// Stores `desired` if the word is `expected`. `*old` is what it was: `expected`, if it was changed. The OS thread that uses its thread.
///
/// # Safety
/// `old` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_words_compare_exchange(
    words: RackmemWords,
    index: usize,
    expected: u64,
    desired: u64,
    old: *mut u64,
) -> RackmemStatus {
    // SAFETY: passed on.
    unsafe { fetch(words, index, Asked::if_equal(expected, desired), old) }
}

/// Stores `desired` if the word is `expected`; at `rackmem_flush` at the latest. The OS thread that uses its thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_words_compare_store(
    words: RackmemWords,
    index: usize,
    expected: u64,
    desired: u64,
) -> RackmemStatus {
    begin(words, index, Asked::if_equal(expected, desired))
}

/// The word. The OS thread that uses its thread.
///
/// # Safety
/// `value` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_words_load(
    words: RackmemWords,
    index: usize,
    value: *mut u64,
) -> RackmemStatus {
    // SAFETY: passed on.
    unsafe { fetch(words, index, Asked::to(RackmemOperation::Load, 0), value) }
}
