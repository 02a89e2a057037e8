//! What must hold in a rack of locks after every step: one property a file, each looking at the rack from outside.
//!
//! That a thread inside finds what the last release left is checked where it enters and leaves.

mod asked;
mod bypass;
mod exclusive;
mod losses;
mod reigns;
mod rest;
mod tenures;

use wire::LockRules;

use super::LockRack;
pub use asked::Asked;
pub use bypass::Waits;
pub use losses::Losses;
pub use tenures::Tenures;

/// Checks everything that must hold at any moment.
///
/// # Errors
/// What does not hold.
pub fn check<R: LockRules>(rack: &mut LockRack<R>) -> Result<(), String> {
    for (machine, _) in &rack.nodes {
        machine.invariants();
    }
    bypass::check(rack);
    asked::check(rack)?;
    exclusive::check(rack)?;
    reigns::check(rack)?;
    losses::check(rack)?;
    tenures::check(rack)
}

/// Checks everything that must hold when nothing is under way.
///
/// # Errors
/// What does not hold.
pub fn check_at_rest<R: LockRules>(rack: &mut LockRack<R>) -> Result<(), String> {
    check(rack)?;
    rest::check(rack)
}
