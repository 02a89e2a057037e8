//! How application threads take locks that carry their data, when the copy on their node does not let them in.

use node::Outcome;
use wire::{GlobalAddr, Mode, Nanos, NodeId, Refusal};

use super::courier::Courier;
use super::operations::{Carrier, await_outcome};
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
    let ticket = carrier.visit(node, courier, now, |it| {
        let ticket = it.place.locks.ticket_for(bell);
        if wait == Wait::Reclaim {
            it.place.locks.machine.on_reclaim(it.at, ticket, lock, it.locks.0, it.locks.1);
        } else {
            it.place.locks.machine.on_lock(
                it.at,
                (ticket, mode, wait == Wait::Not),
                lock,
                it.locks.0,
                it.locks.1,
            );
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
            let waited = carrier.visit(node, courier, now, |it| {
                let waited = it.place.locks.machine.on_cancel(it.at, ticket, lock.0, it.locks.0, it.locks.1);
                if waited {
                    it.place.locks.forget(ticket);
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
    carrier.visit(node, courier, carrier.now(), |it| {
        let ticket = it.place.locks.ticket_for(bell);
        it.place.locks.machine.on_free(it.at, (ticket, is_lost), lock, it.locks.0, it.locks.1);
    });
    let outcome = await_outcome(carrier, node, courier, &mut patience);
    carrier.end_wait(courier);
    match outcome? {
        Outcome::Freed => Ok(()),
        Outcome::Failed(why) => Err(why.into()),
        Outcome::Retry => Err(Failure::Fenced),
        other => panic!("the end of a lock ended with {other:?}"),
    }
}
