//! How application threads take locks that carry their data, when the copy on their node does not let them in.

use node::Outcome;
use wire::{GlobalAddr, Mode, Nanos, NodeId, Refusal};

use super::courier::Courier;
use super::operations::Carrier;
use super::outcome::Failure;

/// How long a thread waits for a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// As long as it takes.
    Forever,
    /// Not for anybody who has it; only for messages to travel.
    Not,
    /// At most so long.
    AtMost(Nanos),
    /// As long as it takes, for a lock that is lost: whoever gets in knows that the data are gone. Refused as outdated if it is
    /// not lost any more.
    Reclaim,
}

/// Takes a lock: true if the thread is in.
pub(super) fn take<C: Carrier>(
    carrier: &C,
    node: NodeId,
    courier: &mut Courier,
    lock: (GlobalAddr, u32),
    mode: Mode,
    wait: Wait,
) -> Result<bool, Failure> {
    if carrier.is_fenced() {
        return Err(Failure::Fenced);
    }
    let now = carrier.now();
    carrier.run_due(node, courier, now);
    let bell = courier.bell_of_this_thread();
    // Before anything is sent: whoever is woken by it may get this core, and answer before this thread goes on.
    let mut patience = carrier.begin_wait();
    let ticket = carrier.visit_locks(node, courier, now, |locks, at, store, out| {
        let ticket = locks.ticket_for(bell);
        if wait == Wait::Reclaim {
            locks.machine.on_reclaim(at, ticket, lock, store, out);
        } else {
            locks.machine.on_lock(at, (ticket, mode, wait == Wait::Not), lock, store, out);
        }
        ticket
    });
    let mut until = match wait {
        Wait::AtMost(most) => now + most,
        Wait::Forever | Wait::Not | Wait::Reclaim => Nanos::MAX,
    };
    let outcome = loop {
        if let Some(outcome) = courier.bell.heard() {
            break Ok(outcome);
        }
        if carrier.is_fenced() {
            break Err(Failure::Fenced);
        }
        // Most have no end, and need not look at the clock.
        if until < Nanos::MAX
            && let now = carrier.now()
            && now >= until
        {
            let waited = carrier.visit_locks(node, courier, now, |locks, at, store, out| {
                let waited = locks.machine.on_cancel(at, ticket, lock.0, store, out);
                if waited {
                    locks.forget(ticket);
                }
                waited
            });
            if waited {
                break Ok(Outcome::Failed(Refusal::Locked));
            }
            // It was told so a moment ago.
            until = Nanos::MAX;
            continue;
        }
        carrier.pause(node, courier, &mut patience);
    };
    carrier.end_wait(courier);
    match outcome? {
        Outcome::Locked => Ok(true),
        Outcome::Failed(Refusal::Locked) => Ok(false),
        Outcome::Failed(why) => Err(why.into()),
        // Everybody who waits is told to look again when the node is declared dead.
        Outcome::Retry => Err(Failure::Fenced),
        other => panic!("a lock operation ended with {other:?}"),
    }
}

/// Ends a lock that this thread is inside of to write; or its data are lost, once more.
pub(super) fn end<C: Carrier>(
    carrier: &C,
    node: NodeId,
    courier: &mut Courier,
    lock: GlobalAddr,
    is_lost: bool,
) -> Result<(), Failure> {
    if carrier.is_fenced() {
        return Err(Failure::Fenced);
    }
    let bell = courier.bell_of_this_thread();
    let mut patience = carrier.begin_wait();
    carrier.visit_locks(node, courier, carrier.now(), |locks, at, store, out| {
        let ticket = locks.ticket_for(bell);
        locks.machine.on_free(at, (ticket, is_lost), lock, store, out);
    });
    let outcome = loop {
        if let Some(outcome) = courier.bell.heard() {
            break Ok(outcome);
        }
        if carrier.is_fenced() {
            break Err(Failure::Fenced);
        }
        carrier.pause(node, courier, &mut patience);
    };
    carrier.end_wait(courier);
    match outcome? {
        Outcome::Freed => Ok(()),
        Outcome::Failed(why) => Err(why.into()),
        Outcome::Retry => Err(Failure::Fenced),
        other => panic!("the end of a lock ended with {other:?}"),
    }
}
