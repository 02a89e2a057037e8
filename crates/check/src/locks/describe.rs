//! What is shown of a lock, to whoever asks why a run failed.

use node::LockMessage;
use wire::LockRules;

use super::Locks;

impl<R: LockRules> Locks<R> {
    pub(super) fn describe_all(&self) -> String {
        let mut text = format!("threads are {:?}", self.threads);
        for (at, (lock, _)) in self.locks.iter().enumerate() {
            text += &format!("\nlock {at}: switch {:?}", self.switch.entry(*lock));
            for (machine, store) in &self.nodes {
                let id = machine.id();
                text += &format!("\n  {id}: {:?} {:?}", machine.view(*lock), store.frames.get(lock));
                text += &format!(" home {:?} entry {:?}", machine.home_of(*lock), machine.entry(*lock));
            }
        }
        text
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
        p.tenure.0,
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
