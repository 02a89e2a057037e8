//! Operations on a word of memory that processors change, too: by their own atomics, never by fetching a line and writing it
//! back.
//!
//! What must always hold: an operation is one atomic change of the double word that its word lies in, to what
//! [`Operation::apply`] makes of it; the other half stays as it is.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use nic::words::{Fold, Operands, Operation, Width};
use wire::AllRules;

/// Executes an operation, on a double word or one half of it, and returns what the word was: sign-extended, if it has 32 bits.
///
/// What the processor has no instruction for is a compare-and-swap, tried until nobody comes between. In a word of 32 bits
/// that is the addition in the lower half, too, because of the carry.
#[inline(always)]
pub fn execute(
    double: &AtomicU64,
    width: Width,
    is_upper: bool,
    operation: Operation,
    operands: Operands,
) -> u64 {
    let operand = operands.operand;
    let shifted = width.put(AllRules, 0, is_upper, operand);
    // All ones where the word is not.
    let beside = match width {
        Width::Double => 0,
        Width::Word => width.put(AllRules, u64::MAX, is_upper, 0),
    };
    let old = match (operation, width, is_upper) {
        (Operation::Add, Width::Double, _) | (Operation::Add, Width::Word, true) => {
            double.fetch_add(shifted, SeqCst)
        }
        (Operation::And, ..) => double.fetch_and(shifted | beside, SeqCst),
        (Operation::Or, ..) => double.fetch_or(shifted, SeqCst),
        (Operation::Xor, ..) => double.fetch_xor(shifted, SeqCst),
        (Operation::Load, ..) => double.load(SeqCst),
        (Operation::Swap, Width::Double, _) => double.swap(operand, SeqCst),
        (Operation::CompareSwap, Width::Double, _) => {
            match double.compare_exchange(operands.expected, operand, SeqCst, SeqCst) {
                Ok(old) | Err(old) => old,
            }
        }
        _ => {
            let mut old = double.load(Relaxed);
            loop {
                let word = width.take(AllRules, old, is_upper);
                let new = width.put(AllRules, old, is_upper, operation.apply(width, word, operands));
                // Also where nothing changes: so it has its place among all operations.
                match double.compare_exchange_weak(old, new, SeqCst, Relaxed) {
                    Ok(_) => break old,
                    Err(found) => old = found,
                }
            }
        }
    };
    width.take(AllRules, old, is_upper)
}

/// Executes everything that is pending for a word as one change, and returns what the double word was that it lies in, of a
/// word of 32 bits its half: what [`Fold::done`] begins with.
pub fn execute_fold(double: &AtomicU64, fold: &Fold<'_>) -> u64 {
    let width = fold.width();
    let is_upper = !fold.address().is_multiple_of(8);
    if fold.only_loads() {
        return width.take(AllRules, double.load(SeqCst), is_upper);
    }
    if let (Some(sum), Width::Double) = (fold.sum(), width) {
        return double.fetch_add(sum, SeqCst);
    }
    let mut old = double.load(Relaxed);
    loop {
        let word = width.take(AllRules, old, is_upper);
        let new = width.put(AllRules, old, is_upper, fold.apply(word));
        match double.compare_exchange_weak(old, new, SeqCst, Relaxed) {
            Ok(_) => return word,
            Err(found) => old = found,
        }
    }
}

#[cfg(test)]
mod tests {
    use random::Random;

    use super::*;

    /// Of all bits, and again and again such that matter: equal ones, carries, signs.
    fn value(random: &mut Random) -> u64 {
        let bits = random.bits();
        match bits >> 61 {
            0 => bits & 1,
            1 => u64::MAX,
            2 => 0x8000_0000,
            3 => 0x7fff_ffff_ffff_ffff,
            _ => bits,
        }
    }

    #[test]
    fn every_operation_does_to_memory_what_it_does_to_values() {
        let mut random = Random::new(1);
        let operands = [(Width::Double, false), (Width::Word, false), (Width::Word, true)];
        for _ in 0..20_000 {
            for operation in Operation::ALL {
                for (width, is_upper) in operands {
                    let before = value(&mut random);
                    let mut operands = Operands { operand: value(&mut random), expected: value(&mut random) };
                    let old = width.take(AllRules, before, is_upper);
                    if random.below(3) == 0 {
                        operands.expected = old;
                    }
                    let new = operation.apply(width, old, operands);
                    let double = AtomicU64::new(before);
                    let what = (operation, width, is_upper, before, operands);
                    assert_eq!(execute(&double, width, is_upper, operation, operands), old, "{what:x?}");
                    assert_eq!(double.load(Relaxed), width.put(AllRules, before, is_upper, new), "{what:x?}");
                }
            }
        }
    }
}
