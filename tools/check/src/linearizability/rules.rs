//! Which steps lead from a configuration to the next, and which of them need not be tried.
//!
//! What must always hold for each rule: if some order of the remaining operations explains the rest of the
//! history, then one does that begins with a step that the rule leaves. The reasons are exchange arguments,
//! stated at each rule. In them, a value is *settled* in a configuration if every operation that produces
//! it has happened, so that it never comes back once it is overwritten; a *blind* operation is one that
//! observes no particular value: an insert, an update that succeeded, a delete.

use super::register::{Access, Value};
use super::search::{Configuration, Search, Slot};

/// Who still has to do with a value in some configuration.
struct Outlook {
    /// Operations that must still observe it, now or later.
    observers: u32,
    /// Operations that may or may not observe it and change it.
    optional: u32,
    /// Nothing produces it any more.
    is_settled: bool,
}

impl Search<'_> {
    /// Adds the configurations that one step leads to, when the step is to help `due` to happen.
    pub(super) fn successors(&self, from: &Configuration, due: u32, next: &mut Vec<Configuration>) {
        let outlook = self.outlook(from, from.value);
        // A settled value must not be overwritten while someone has yet to observe it.
        let may_leave = |observer: &Access| {
            let itself = u32::from(observer.required && observer.observes == Some(from.value));
            !outlook.is_settled || outlook.observers == itself
        };
        let observers = self.enabled(from).filter(|(_, _, access)| {
            access.observes == Some(from.value) && access.produces.is_some() && may_leave(access)
        });
        let mut steps: Vec<(Slot, u32, &Access)> = observers.collect();
        if !outlook.is_settled || outlook.observers == 0 {
            let mut played = from.clone();
            if self.play_whole_chains(&mut played) {
                // Any order that goes on with a blind step goes on as well from here.
                self.settle(&mut played);
                next.push(played);
            } else {
                steps.extend(self.enabled(from).filter(|(_, index, access)| {
                    access.observes.is_none()
                        && !(access.needs_present && from.value == Value::ABSENT)
                        && !self.gets_stuck(*index, access, due)
                }));
            }
        }
        self.keep_one_of_a_kind(&mut steps);
        for (slot, _, access) in steps {
            let mut configuration = from.clone();
            configuration.mark(slot);
            configuration.value = access.produces.expect("reads are no steps: they happen at once");
            self.settle(&mut configuration);
            next.push(configuration);
        }
    }

    fn outlook(&self, configuration: &Configuration, value: Value) -> Outlook {
        if value == Value::UNOBSERVED {
            return Outlook { observers: 0, optional: 0, is_settled: true };
        }
        let mut observers = self.observers_left[value.index()];
        let mut optional = self.register.optional_observers[value.index()];
        let mut producers = self.producers_left[value.index()];
        for (slot, open) in self.slots.iter().enumerate() {
            let Some(index) = *open else { continue };
            if configuration.has_happened(slot) {
                let access = self.access(index);
                if access.observes == Some(value) {
                    *(if access.required { &mut observers } else { &mut optional }) -= 1;
                }
                producers -= u32::from(access.produces == Some(value));
            }
        }
        Outlook { observers, optional, is_settled: producers == 0 }
    }

    /// Lets all reads of the value happen that may, and forgets a value that nobody is going to observe.
    ///
    /// Reads change nothing, so in any order that has one of them later, it may as well be first.
    pub(super) fn settle(&self, configuration: &mut Configuration) {
        if configuration.value == Value::UNOBSERVED {
            return;
        }
        loop {
            let value = Some(configuration.value);
            let is_read = |access: &Access| access.observes == value && access.produces.is_none();
            let reads: Vec<Slot> = self
                .enabled(configuration)
                .filter(|(.., access)| is_read(access))
                .map(|(slot, ..)| slot)
                .collect();
            if reads.is_empty() {
                break;
            }
            // Again afterwards: a read may have been what another one of its client waited for.
            reads.into_iter().for_each(|slot| configuration.mark(slot));
        }
        if configuration.value != Value::ABSENT {
            let outlook = self.outlook(configuration, configuration.value);
            if outlook.observers + outlook.optional == 0 {
                configuration.value = Value::UNOBSERVED;
            }
        }
    }

    /// Whether a blind step leads nowhere before `due` has to happen: it leaves a value that only it produces and
    /// that someone not yet invoked must observe. Until then nothing else may be written, so `due` could only
    /// be the step itself or another observer of the value.
    fn gets_stuck(&self, index: u32, access: &Access, due: u32) -> bool {
        let Some(produced) = access.produces else { return false };
        self.has_one_origin(produced)
            && self.observers_open[produced.index()] < self.observers_left[produced.index()]
            && index != due
            && self.access(due).observes != Some(produced)
    }

    /// Of steps that observe and leave the same, keeps the one that must return first. In an order that takes
    /// another first, the two can change places: both are open.
    fn keep_one_of_a_kind(&self, steps: &mut Vec<(Slot, u32, &Access)>) {
        if steps.len() < 2 {
            return;
        }
        let kind = |access: &Access| {
            let produced = access
                .produces
                .map(|value| if self.is_unobserved(value) { Value::UNOBSERVED } else { value });
            (access.observes, access.needs_present, produced)
        };
        steps.sort_unstable_by_key(|(_, index, access)| (kind(access), access.ret, *index));
        let mut first: Option<&Access> = None;
        steps.retain(|(_, _, access)| {
            if let Some(first) = first.filter(|first| kind(first) == kind(access)) {
                // At one instant, something else of its client may wait for the other: then both are tried.
                return first.ret == access.ret && access.has_successor;
            }
            first = Some(access);
            true
        });
    }

    /// Whether nobody is going to observe the value, in any configuration.
    fn is_unobserved(&self, value: Value) -> bool {
        value != Value::ABSENT
            && self.observers_left[value.index()] + self.register.optional_observers[value.index()] == 0
    }

    /// Whether one operation only produces the value. The history's beginning would be another origin, and absence
    /// is never treated so: what it means to updates depends on more than who observes it.
    fn has_one_origin(&self, value: Value) -> bool {
        value != Value::ABSENT
            && value != self.register.initial
            && self.register.producers[value.index()] == 1
    }

    /// Plays every chain that is open as a whole: a blind write, everybody who observes its value, the
    /// read-modify-write among them that turns it into the next value, and so on to a value that nobody
    /// observes. Returns whether there was any.
    ///
    /// Called where the value is about to be overwritten by a blind step. In any order that goes on so,
    /// a chain's operations stand side by side, as its values have no other origin. Move them all to
    /// the front: what stood first does not care what it overwrites, and what stood behind the chain was a blind
    /// step too. Only an update cares whether the key is present. What it now follows may be a delete if there are
    /// deletes, unless the chain began with an update itself, which shows that the key was present there.
    fn play_whole_chains(&self, configuration: &mut Configuration) -> bool {
        let inserts_may_move = !(self.register.has_deletes && self.register.has_updates);
        let mut played = false;
        loop {
            let heads: Vec<(Slot, &Access)> = self
                .enabled(configuration)
                .filter(|(.., access)| {
                    access.observes.is_none() && (access.needs_present || inserts_may_move)
                })
                .map(|(slot, _, access)| (slot, access))
                .collect();
            let mut progress = false;
            for (head, access) in heads {
                if access.needs_present && configuration.value == Value::ABSENT {
                    continue;
                }
                if let Some(observers) = self.whole_chain(configuration, access) {
                    configuration.mark(head);
                    observers.into_iter().for_each(|slot| configuration.mark(slot));
                    configuration.value = Value::UNOBSERVED;
                    progress = true;
                }
            }
            // Again afterwards: updates had to wait for the key to be present.
            if !progress {
                return played;
            }
            played = true;
        }
    }

    /// Everybody who observes the head's value, or what one of them turns it into, and so on: if all are open,
    /// and nobody else can come in between.
    fn whole_chain(&self, configuration: &Configuration, head: &Access) -> Option<Vec<Slot>> {
        let mut value = head.produces?;
        let mut slots = Vec::new();
        loop {
            let left = self.observers_left[value.index()];
            if !self.has_one_origin(value)
                || self.register.optional_observers[value.index()] > 0
                || self.observers_open[value.index()] < left
            {
                return None;
            }
            if left == 0 {
                return Some(slots);
            }
            let before = slots.len();
            let mut turned_into = None;
            for (slot, _, access) in self.enabled(configuration) {
                if access.observes == Some(value) {
                    slots.push(slot);
                    if access.produces.is_some() && turned_into.replace(access.produces).is_some() {
                        return None; // Two replaced the same value: no order has that.
                    }
                }
            }
            if slots.len() - before < left as usize {
                return None;
            }
            match turned_into.flatten() {
                Some(next) => value = next,
                None => return Some(slots),
            }
        }
    }
}
