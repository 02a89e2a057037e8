//! The thread of a node that works when no other does: it receives what comes while nobody waits for anything, does
//! what is due, beats, and drops what the node has when it was declared dead.

use std::sync::Weak;
use std::sync::atomic::Ordering;

use wire::Nanos;

use super::node::NetworkedNode;
use crate::actor::{Driver, ThreadContext};
use crate::scheduling::Scheduling;
use crate::waiting::{SpinThenPark, Step, is_all};

/// The longest sleep: a deadline that another thread has set meanwhile is not later than this.
const LONGEST_SLEEP: Nanos = Nanos::from_millis(5);

/// Serves until the node is gone, or told to stop.
///
/// # Panics
/// If it may not be scheduled so, which was found out to be permitted before the node joined.
pub(super) fn serve(node: &Weak<NetworkedNode>, mut context: ThreadContext, scheduling: Scheduling) {
    scheduling.ask().expect("was permitted a moment ago");
    let mut spin_then_park = SpinThenPark::without_spins();
    let mut dropped = false;
    loop {
        let Some(node) = node.upgrade() else { return };
        if node.stop.load(Ordering::Acquire) {
            return;
        }
        if node.lease.is_fenced() && !dropped {
            dropped = node.drop_copies();
        }
        let clock = || node.now();
        let now = spin_then_park.now(clock);
        node.run_due(node.id, &mut context, now);
        let beat = node.on_member_deadline(&mut context, now);
        match node.poll(&mut context, now) {
            0 => {}
            messages => {
                spin_then_park.again();
                if !is_all(messages) {
                    continue;
                }
            }
        }
        let due = node.deadline().min(beat);
        match spin_then_park.step(now, Nanos::MAX, &node.oversubscription) {
            Step::Spin => std::hint::spin_loop(),
            Step::Yield => spin_then_park.give_way(now, &node.oversubscription, clock),
            Step::Sleep(_) => {
                // Whoever was woken by the clock alone goes back to sleep at once.
                node.transport.wait(due.saturating_sub(node.now()).min(LONGEST_SLEEP));
            }
        }
    }
}
