//! What must hold in a rack of locks after every step: one property a file, each looking at the rack from outside.
//!
//! That a thread inside finds what the last release left is checked where it enters and leaves.

mod asked;
mod bypass;
mod exclusive;
mod reigns;
mod rest;
mod tenures;

use wire::LockRules;

use super::Locks;
use crate::rack::{Bench, Control};
pub use asked::Asked;
pub use bypass::Waits;
pub use tenures::Tenures;

/// Checks what the last step can have broken.
pub(super) fn check_after<R: LockRules, M: Copy>(
    locks: &mut Locks<R>,
    bench: &Bench<M>,
) -> Result<(), String> {
    for (machine, _) in &locks.nodes {
        machine.invariants();
    }
    bypass::check(locks);
    asked::check(locks)?;
    exclusive::check(locks)?;
    reigns::check(locks, &bench.control)?;
    tenures::check(locks)
}

/// Checks everything that must hold when nothing is in flight.
pub(super) fn check_at_rest<R: LockRules>(locks: &Locks<R>, control: &Control) -> Result<(), String> {
    rest::check(locks, control)
}
