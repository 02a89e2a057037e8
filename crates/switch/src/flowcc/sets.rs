//! Where in the switch's arrays an entry may stand: one hash set, with one place in each way.

use wire::BlockTag;

/// Ways of the set-associative arrays, each in a stage of its own.
pub const WAYS: usize = 7;

/// Sets that a switch of `entries` entries has.
pub const fn sets_of(entries: usize) -> usize {
    let sets = entries.div_ceil(WAYS);
    if sets == 0 { 1 } else { sets }
}

/// The set that `tag` falls into. Neighbouring blocks fall into sets far apart (a multiplicative hash), and
/// any number of sets is used evenly (multiply and shift).
pub fn set_of(entries: usize, tag: BlockTag) -> usize {
    let bits = tag.bits();
    let hash = (bits ^ (bits >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((u128::from(hash) * sets_of(entries) as u128) >> 64) as usize
}
