//! Mishaps: the switch forgets and restarts, connections break, clients die and sleep, keys come and go. And the end, when all memory must
//! have come back.

use check::history::Operation;
use wire::{Nanos, Rules};

use super::faults::Faults;
use super::{DECIDE_AFTER, Event, QUARANTINE, World};

impl<R: Rules> World<R> {
    pub(super) fn mishap(&mut self) {
        let Faults { restarts, forgets, breaks, deaths, sleeps, keys, memories, .. } = self.faults;
        let anew = if self.switch.config().binding.queue_pairs > 0 { breaks } else { 0 };
        let at = self.random.below(self.workers.len() as u64) as usize;
        let mut left = self.random.below(1_000_000);
        let mut is = |chance: u64| {
            let now = left < chance;
            left = left.wrapping_sub(chance);
            now
        };
        if is(restarts) {
            self.switch.restart();
            self.bind_later();
            // Some connections are made anew; others find out later, or never.
            for at in 1..self.nics.len() {
                if self.random.below(3) > 0 {
                    self.reconnect(at);
                } else if !self.bound.is_empty() {
                    // Nothing that it sends reaches a word until then.
                    let after = 1 + self.random.below(4_000);
                    self.schedule(after, Event::Reconnect(at));
                }
            }
            // What the metadata server takes for tails may have others behind it.
            for key in 0..self.keys {
                if let Some((at, version)) = self.metadata.tail(key)
                    && self.copies == 1
                    && self.random.below(2) == 0
                {
                    self.switch.preload(key, at, version);
                }
            }
        } else if is(forgets) {
            self.switch.forget();
        } else if is(anew) {
            self.bind(0);
        } else if is(breaks) {
            self.reconnect(at + 1);
            self.break_others(at + 1);
        } else if is(deaths) {
            self.die(at);
        } else if is(sleeps) {
            // What it has not heard yet it hears in its order.
            let until = self.now + self.random.below(2 * QUARANTINE);
            let worker = &mut self.workers[at];
            worker.asleep = worker.asleep.max(until);
        } else if is(keys) {
            let key = self.random.below(self.keys);
            if self.switch.holds(key) { self.switch.evict(key) } else { _ = self.switch.admit(key) }
        } else if is(memories) && self.copies > 1 {
            self.memory_dies();
        }
    }

    /// A client dies, and another one comes.
    pub(crate) fn die(&mut self, at: usize) {
        let next = self.client();
        let dead = std::mem::replace(&mut self.workers[at], next);
        self.reconnect(at + 1);
        self.others.forget(at + 1);
        for (op, running) in dead.running {
            let client = dead.id.0 * 100_000 + op.0;
            let (key, invoke) = (running.key, Nanos(running.invoke));
            self.history.push(Operation { client, key, op: running.op, invoke, ret: None });
        }
        let mut effects = Vec::new();
        self.metadata.on_death(Nanos(self.now), dead.id, &mut effects);
        self.apply_metadata(effects);
    }

    /// True if no operation is in flight.
    pub(crate) fn is_quiet(&self) -> bool {
        self.workers.iter().all(|worker| worker.running.is_empty())
    }

    /// All clients die, and what they have comes back: how many units are neither free nor a chain's tail then.
    pub(crate) fn leaked(&mut self) -> u64 {
        for at in 0..self.workers.len() {
            self.die(at);
        }
        let until = self.now + 4 * (QUARANTINE + DECIDE_AFTER);
        while self.now < until && self.step() {}
        let (made, free) = self.metadata.memory();
        // The tail with the largest value has eight units.
        u64::from(made - free).saturating_sub(self.metadata.keys() as u64 * 8)
    }
}
