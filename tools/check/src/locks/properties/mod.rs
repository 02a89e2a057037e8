//! What must hold in a rack of locks after every step: one property a file, each looking at the rack from outside.
//!
//! That a thread inside finds what the last release left is checked where it enters and leaves.

mod asked;
mod bypass;
mod exclusive;
mod holders;
mod losses;
mod rest;
mod terms;

use wire::{NodeId, Rules};

use super::Locks;
use crate::rack::{Bench, Control, Touched};
pub use asked::Asked;
pub use bypass::Waits;
pub use losses::Losses;
pub use terms::Terms;

/// Checks what the last step can have broken: of the machines that it touched, and the locks of which something has changed.
pub(super) fn check_after<R: Rules, M: Copy>(locks: &mut Locks<R>, bench: &Bench<M>) -> Result<(), String> {
    let touched = std::mem::replace(&mut locks.touched, Touched::NOTHING);
    if touched.is_nothing() {
        return Ok(());
    }
    for node in touched.nodes.iter() {
        locks.nodes[node.index()].0.invariants();
    }
    let named = locks.named_at(touched);
    let mut changed = locks.refresh(touched, named);
    if std::mem::take(&mut locks.incarnations_changed) {
        changed = locks.all();
    }
    bypass::check(locks);
    exclusive::check(locks)?;
    terms::check(locks, touched, named)?;
    losses::check(locks, bench)?;
    for lock in changed.iter().map(NodeId::index) {
        asked::check(locks, lock)?;
        holders::check(locks, &bench.control, lock)?;
    }
    Ok(())
}

/// Checks everything that must hold when nothing is in flight.
pub(super) fn check_at_rest<R: Rules>(locks: &mut Locks<R>, control: &Control) -> Result<(), String> {
    assert!(locks.facts_are_so(), "a step has changed what it did not name");
    check_settled(locks, control)
}

/// The same, of machines that nobody has watched.
pub(crate) fn check_settled<R: Rules>(locks: &Locks<R>, control: &Control) -> Result<(), String> {
    rest::check(locks, control)
}
