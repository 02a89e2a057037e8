//! What a node is in the middle of, in words: for whoever looks at a rack that does not get on.
//!
//! Runs in any thread of a node's process. What must always hold: it waits for nobody, as a thread that is stuck may hold
//! what it wants to look at.

use std::fmt::Write as _;
use std::sync::TryLockError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use membership::Member;
use transport::Cause;

use super::node::NetworkedNode;

/// How often a lock is tried, and how long it takes until the next time: holders stay for microseconds.
const LOOKS: u32 = 500;
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

impl NetworkedNode {
    /// What this node waits for, what its machines wait for, and what they have counted. For people: no program should
    /// read it.
    pub fn in_flight(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.describe(&mut text);
        text
    }

    fn describe(&self, out: &mut String) -> std::fmt::Result {
        let now = self.now();
        writeln!(out, "{} at {now} of its clock", self.id)?;
        let (lease, stopping) = (self.lease(), self.stop.load(Ordering::Acquire));
        writeln!(
            out,
            "lease until {}, holds: {}, fenced: {}, leaving: {}, stopping: {stopping}",
            lease.until(),
            lease.holds(now),
            lease.is_fenced(),
            self.leaving.load(Ordering::Acquire),
        )?;
        match patiently(|| ready(self.member.try_lock())) {
            Some(member) => describe_member(&member, out)?,
            None => writeln!(out, "membership: a thread is at it, and stays")?,
        }
        let (due, left) = (self.actor.deadline(), self.actor.is_waiting());
        writeln!(out, "machines: due at {due}, something left for it: {left}")?;
        match patiently(|| self.actor.try_enter()) {
            Some(machines) => {
                let waited_for: Vec<_> = machines.waited_for().collect();
                writeln!(out, "threads that wait (slot, threads): {waited_for:?}")?;
                writeln!(out, "contents kept: {}", machines.kept.len())?;
                writeln!(out, "{:#?}", machines.node)?;
                writeln!(out, "{:#?}", machines.node.counters())?;
                writeln!(out, "{:#?}", machines.locks.machine)?;
            }
            None => writeln!(out, "machines: a thread is at them, and stays")?,
        }
        if let Some(pages) = self.memory().pages() {
            writeln!(out, "{pages:?}")?;
        }
        let asleep = self.blocking.try_lock().is_err();
        writeln!(out, "a thread waits in the transport: {asleep}")?;
        let counts = self.transport.counters().counts();
        let dropped: Vec<_> = Cause::ALL.iter().map(|cause| cause.name()).zip(counts.dropped).collect();
        writeln!(out, "transport: {counts:?}\ndropped: {dropped:?}")
    }
}

fn describe_member(member: &Member, out: &mut String) -> std::fmt::Result {
    writeln!(
        out,
        "membership: in epoch {}, lease {:?}, beats next at {}, over: {}, dropped {}",
        member.epoch().0,
        member.lease(),
        member.next_deadline(),
        member.is_over(),
        member.dropped(),
    )?;
    writeln!(out, "{:#?}", member.roster())
}

fn ready<T>(tried: Result<T, TryLockError<T>>) -> Option<T> {
    match tried {
        Ok(it) => Some(it),
        Err(TryLockError::Poisoned(it)) => Some(it.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// What may be had now and then.
fn patiently<T>(mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    for _ in 0..LOOKS {
        if let Some(it) = attempt() {
            return Some(it);
        }
        std::thread::sleep(BETWEEN_LOOKS);
    }
    None
}
