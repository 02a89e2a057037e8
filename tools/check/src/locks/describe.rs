//! What is shown of a lock, to whoever asks why a run failed.

use std::fmt::Write as _;

use node::LockMessage;
use wire::Rules;

use super::facts::Fact;
use super::{Locks, Thread};

impl<R: Rules> Locks<R> {
    /// A page, and the lock that most wait for.
    pub(super) fn page(&self) -> (String, Option<u64>) {
        let mut page = String::new();
        let mut waiting = vec![0; self.locks.len()];
        for (index, thread) in self.threads.iter().enumerate() {
            let (want, does) = match thread {
                Thread::Idle => continue,
                Thread::Waiting(want) => (want, "waits to enter"),
                Thread::Inside(want, _) => (want, "is inside of"),
                Thread::Ending(want) => (want, "is about to end"),
                Thread::Returning(want, ..) => (want, "gives back the region of"),
                Thread::OnPaper(want) => (want, "is inside of what was"),
                Thread::Freeing(want, _) => (want, "waits for the end of"),
            };
            waiting[want.lock] += 1;
            let node = self.node_of(index);
            let _ = writeln!(page, "thread {index} of {node} {does} lock {} ({want:?})", want.lock);
        }
        for (at, (lock, len)) in self.locks.iter().enumerate() {
            let not_quiet =
                self.nodes.iter().any(|(machine, _)| machine.view(*lock).is_some_and(|it| it.asked));
            if waiting[at] == 0 && !not_quiet {
                continue;
            }
            let _ = writeln!(page, "lock {at}: {lock}, {len} bytes");
            let _ = writeln!(page, "  switch: {:?}", self.switch.entry(*lock));
            for (machine, store) in &self.nodes {
                let Fact { view, entry, home, lost } = Fact::of(machine, *lock);
                let (id, frame) = (machine.id(), store.frames.get(lock));
                if lock.home() == id {
                    let lost = if lost { ", lost" } else { "" };
                    let _ = writeln!(page, "  home {id}: entry {entry:?}, data of {home:?}{lost}");
                }
                if view.is_some() || frame.is_some() {
                    let _ = writeln!(page, "  {id}: {view:?} {frame:?}");
                }
            }
        }
        let most = (0..waiting.len()).max_by_key(|lock| waiting[*lock]);
        (page, most.map(|lock| self.locks[lock].0.bits()))
    }
}

/// A packet in a line.
pub(super) fn short(message: &LockMessage) -> String {
    let p = &message.packet;
    format!(
        "{:?} {:?} -> {:?} lock {:#x} node {} {:?} t{} nodes {:b} waiting {:b}/{:b} next {:?} queue {:?} once {} copy {} {:?}",
        p.kind,
        p.from,
        p.to,
        p.lock.bits(),
        p.node.0,
        p.mode,
        p.term.0,
        p.nodes.bits(),
        p.waiting.bits(),
        p.writers.bits(),
        p.next.map(|next| next.0),
        p.queue,
        p.once,
        p.has_copy,
        message.data.map(|data| data.0)
    )
}
