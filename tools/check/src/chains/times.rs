//! How long things take in a store of chains, and how long what somebody knows of them counts: as live racks count it, and shorter,
//! for runs last some milliseconds.

use wire::Nanos;

use super::ChainPlan;

/// How long a client's cursor counts.
pub(super) const LEASE: Nanos = Nanos::from_micros(300);
/// No packet between a client and memory is on its way for longer: what the network keeps for longer is lost.
pub(super) const MAX_AGE: Nanos = Nanos::from_micros(400);
/// Longer than a request is in flight, with all its repetitions.
pub(super) const IN_FLIGHT: Nanos = Nanos::from_micros(2500);
/// How long the switch takes for true what it knows of slots.
pub(super) const LIFETIME: Nanos = Nanos::from_micros(1000);
/// How long a tail counts that a metadata server has found, from when it began to look.
pub(super) const FOUND: Nanos = Nanos::from_micros(1000);
/// Whose entries slots have, it takes for true for so many lifetimes.
pub(super) const SLOT_LIFETIMES: u32 = 4;
/// A client's append may go behind what it knew so many quarantines ago, where the switch steers.
const QUARANTINES: u64 = 64;

/// How long slots stay in quarantine.
pub(super) fn quarantine(plan: &ChainPlan) -> Nanos {
    let cursors = LEASE + Nanos(LEASE.0 / 8) + Nanos::from_micros(20);
    match plan.steering {
        0 => cursors,
        1 => cursors.max(Nanos(LIFETIME.0 / QUARANTINES)),
        _ => cursors + LIFETIME + IN_FLIGHT,
    }
}

/// How old a cursor of a client may be for its steered appends.
pub(super) fn old_cursors(plan: &ChainPlan) -> Nanos {
    Nanos(quarantine(plan).0 * QUARANTINES)
}

/// How long nobody decides what became of a slot, where the switch steers.
pub(super) fn decide_after(plan: &ChainPlan) -> Nanos {
    if plan.is_steered() { IN_FLIGHT } else { Nanos::ZERO }
}
