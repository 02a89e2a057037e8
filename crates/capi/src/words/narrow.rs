//! Operations on words of 32 bits: number `2 * n` is the lower half of word `n` of 64.
#![allow(unsafe_code)]

use super::{Asked, RackmemOperation, RackmemWords, begin, fetch};
use crate::status::RackmemStatus;

/// Adds. `*old` is what the word of 32 bits was. The OS thread that uses its thread.
///
/// # Safety
/// `old` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_words_fetch_add32(
    words: RackmemWords,
    index: usize,
    operand: u32,
    old: *mut u32,
) -> RackmemStatus {
    // SAFETY: passed on.
    unsafe { fetch(words, index, Asked::to(RackmemOperation::Add, operand), old) }
}

/// Adds; at `rackmem_flush` at the latest. The OS thread that uses its thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_words_add32(words: RackmemWords, index: usize, operand: u32) -> RackmemStatus {
    begin(words, index, Asked::to(RackmemOperation::Add, operand))
}

/// Keeps the bits that both have. `*old` is what the word of 32 bits was. The OS thread that uses its thread.
///
/// # Safety
/// `old` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_words_fetch_and32(
    words: RackmemWords,
    index: usize,
    operand: u32,
    old: *mut u32,
) -> RackmemStatus {
    // SAFETY: passed on.
    unsafe { fetch(words, index, Asked::to(RackmemOperation::And, operand), old) }
}

/// Keeps the bits that both have; at `rackmem_flush` at the latest. The OS thread that uses its thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_words_and32(words: RackmemWords, index: usize, operand: u32) -> RackmemStatus {
    begin(words, index, Asked::to(RackmemOperation::And, operand))
}

/// Sets bits. `*old` is what the word of 32 bits was. The OS thread that uses its thread.
///
/// # Safety
/// `old` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_words_fetch_or32(
    words: RackmemWords,
    index: usize,
    operand: u32,
    old: *mut u32,
) -> RackmemStatus {
    // SAFETY: passed on.
    unsafe { fetch(words, index, Asked::to(RackmemOperation::Or, operand), old) }
}

/// Sets bits; at `rackmem_flush` at the latest. The OS thread that uses its thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_words_or32(words: RackmemWords, index: usize, operand: u32) -> RackmemStatus {
    begin(words, index, Asked::to(RackmemOperation::Or, operand))
}

/// Inverts bits. `*old` is what the word of 32 bits was. The OS thread that uses its thread.
///
/// # Safety
/// `old` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_words_fetch_xor32(
    words: RackmemWords,
    index: usize,
    operand: u32,
    old: *mut u32,
) -> RackmemStatus {
    // SAFETY: passed on.
    unsafe { fetch(words, index, Asked::to(RackmemOperation::Xor, operand), old) }
}

/// Inverts bits; at `rackmem_flush` at the latest. The OS thread that uses its thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_words_xor32(words: RackmemWords, index: usize, operand: u32) -> RackmemStatus {
    begin(words, index, Asked::to(RackmemOperation::Xor, operand))
}

/// Keeps the smaller one, as signed numbers. `*old` is what the word of 32 bits was. The OS thread that uses its thread.
///
/// # Safety
/// `old` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_words_fetch_min32(
    words: RackmemWords,
    index: usize,
    operand: u32,
    old: *mut u32,
) -> RackmemStatus {
    // SAFETY: passed on.
    unsafe { fetch(words, index, Asked::to(RackmemOperation::Min, operand), old) }
}

/// Keeps the smaller one, as signed numbers; at `rackmem_flush` at the latest. The OS thread that uses its thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_words_min32(words: RackmemWords, index: usize, operand: u32) -> RackmemStatus {
    begin(words, index, Asked::to(RackmemOperation::Min, operand))
}

/// Keeps the larger one, as signed numbers. `*old` is what the word of 32 bits was. The OS thread that uses its thread.
///
/// # Safety
/// `old` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_words_fetch_max32(
    words: RackmemWords,
    index: usize,
    operand: u32,
    old: *mut u32,
) -> RackmemStatus {
    // SAFETY: passed on.
    unsafe { fetch(words, index, Asked::to(RackmemOperation::Max, operand), old) }
}

/// Keeps the larger one, as signed numbers; at `rackmem_flush` at the latest. The OS thread that uses its thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_words_max32(words: RackmemWords, index: usize, operand: u32) -> RackmemStatus {
    begin(words, index, Asked::to(RackmemOperation::Max, operand))
}

/// Stores. `*old` is what the word of 32 bits was. The OS thread that uses its thread.
///
/// # Safety
/// `old` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_words_swap32(
    words: RackmemWords,
    index: usize,
    operand: u32,
    old: *mut u32,
) -> RackmemStatus {
    // SAFETY: passed on.
    unsafe { fetch(words, index, Asked::to(RackmemOperation::Swap, operand), old) }
}

/// Stores; at `rackmem_flush` at the latest. The OS thread that uses its thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_words_store32(words: RackmemWords, index: usize, operand: u32) -> RackmemStatus {
    begin(words, index, Asked::to(RackmemOperation::Swap, operand))
}

/// Stores `desired` if the word is `expected`. `*old` is what it was: `expected`, if it was changed. The OS thread that uses its thread.
///
/// # Safety
/// `old` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_words_compare_exchange32(
    words: RackmemWords,
    index: usize,
    expected: u32,
    desired: u32,
    old: *mut u32,
) -> RackmemStatus {
    // SAFETY: passed on.
    unsafe { fetch(words, index, Asked::if_equal(expected, desired), old) }
}

/// Stores `desired` if the word is `expected`; at `rackmem_flush` at the latest. The OS thread that uses its thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_words_compare_store32(
    words: RackmemWords,
    index: usize,
    expected: u32,
    desired: u32,
) -> RackmemStatus {
    begin(words, index, Asked::if_equal(expected, desired))
}

/// The word. The OS thread that uses its thread.
///
/// # Safety
/// `value` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_words_load32(
    words: RackmemWords,
    index: usize,
    value: *mut u32,
) -> RackmemStatus {
    // SAFETY: passed on.
    unsafe { fetch(words, index, Asked::to(RackmemOperation::Load, 0), value) }
}
