//! The search for an order of one key's operations.
//!
//! It walks through the invocations and returns in time order and keeps the set of configurations that the
//! register may be in: its value, and which of the open operations have happened. An invocation opens an
//! operation. A return drops every configuration in which the operation has not happened and cannot be made to
//! happen now, after other open operations if need be. No configuration left: there is no order.
//!
//! What must always hold: if an order exists that explains the rest of the history, one starts from a
//! configuration in the set; and all configurations in the set agree with the history so far.

use std::collections::HashSet;
use std::time::Instant;

use super::register::{Access, Register, Value};

/// How the search of one key ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    Linearizable,
    /// No order explains the history. No prefix that ends before this event shows it.
    Violation {
        event: usize,
    },
    /// More configurations than allowed.
    TooMany,
    /// The deadline passed.
    TooLate,
}

/// How often the clock is looked at: once per so many events or configurations.
const CLOCK_EVERY: usize = 1024;

/// Looks for an order. Without a deadline, for as long as it takes.
pub(super) fn run(register: &Register, configurations: usize, deadline: Option<Instant>) -> Outcome {
    let mut search = Search::new(register, configurations, deadline);
    for (index, event) in register.events.iter().enumerate() {
        if index % CLOCK_EVERY == CLOCK_EVERY - 1 && search.is_late() {
            return Outcome::TooLate;
        }
        if !event.is_return {
            search.on_invocation(event.access);
            continue;
        }
        if let Err(outcome) = search.on_return(event.access) {
            return outcome;
        }
        if search.configurations.is_empty() {
            return Outcome::Violation { event: index };
        }
    }
    Outcome::Linearizable
}

/// Where an open operation has its bit in every configuration.
pub(super) type Slot = usize;

/// One thing that the register may be.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Configuration {
    pub(super) value: Value,
    /// A bit for each slot: whether the operation there has happened. Empty slots have 0.
    happened: Vec<u64>,
}

impl Configuration {
    pub(super) fn has_happened(&self, slot: Slot) -> bool {
        self.happened[slot / 64] >> (slot % 64) & 1 == 1
    }

    pub(super) fn mark(&mut self, slot: Slot) {
        self.happened[slot / 64] |= 1 << (slot % 64);
    }

    fn clear(&mut self, slot: Slot) {
        self.happened[slot / 64] &= !(1 << (slot % 64));
    }
}

/// The state of the search between two events.
pub(super) struct Search<'a> {
    pub(super) register: &'a Register,
    /// The open operations: invoked, not yet returned.
    pub(super) slots: Vec<Option<u32>>,
    free: Vec<Slot>,
    /// Where each access is, while it is open; else [`NOT_YET`] or [`RETURNED`].
    slot_of: Vec<Slot>,
    /// For each value: its required observers that have not returned.
    pub(super) observers_left: Vec<u32>,
    /// For each value: those of them that are open.
    pub(super) observers_open: Vec<u32>,
    /// For each value: its producers that have not returned.
    pub(super) producers_left: Vec<u32>,
    configurations: Vec<Configuration>,
    most: usize,
    deadline: Option<Instant>,
}

impl<'a> Search<'a> {
    fn new(register: &'a Register, most: usize, deadline: Option<Instant>) -> Self {
        Self {
            register,
            slots: Vec::new(),
            free: Vec::new(),
            slot_of: vec![NOT_YET; register.accesses.len()],
            observers_left: register.observers.clone(),
            observers_open: vec![0; register.observers.len()],
            producers_left: register.producers.clone(),
            configurations: vec![Configuration { value: register.initial, happened: Vec::new() }],
            most,
            deadline,
        }
    }

    fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() > deadline)
    }

    pub(super) fn access(&self, index: u32) -> &'a Access {
        &self.register.accesses[index as usize]
    }

    /// The open operations that have not happened in a configuration and may happen now.
    pub(super) fn enabled<'s>(
        &'s self,
        configuration: &'s Configuration,
    ) -> impl Iterator<Item = (Slot, u32, &'a Access)> + 's {
        self.slots.iter().enumerate().filter_map(move |(slot, open)| {
            let index = (*open)?;
            let access = self.access(index);
            let may = !configuration.has_happened(slot) && self.is_enabled(configuration, access);
            may.then_some((slot, index, access))
        })
    }

    /// Whether the operation of the same client that came before it at the same instant, if any, has happened.
    fn is_enabled(&self, configuration: &Configuration, access: &Access) -> bool {
        access.after.is_none_or(|before| match self.slot_of[before as usize] {
            NOT_YET => false,
            RETURNED => true,
            slot => configuration.has_happened(slot),
        })
    }

    fn on_invocation(&mut self, index: u32) {
        let access = self.access(index);
        let slot = self.free.pop().unwrap_or(self.slots.len());
        if slot == self.slots.len() {
            self.slots.push(None);
            if slot.is_multiple_of(64) {
                self.configurations.iter_mut().for_each(|c| c.happened.push(0));
            }
        }
        self.slots[slot] = Some(index);
        self.slot_of[index as usize] = slot;
        let Some(observed) = access.observes else { return };
        if access.required {
            self.observers_open[observed.index()] += 1;
        }
        // A read that finds its value now may happen now: that takes no choice from anybody.
        if access.produces.is_none() {
            let mut configurations = std::mem::take(&mut self.configurations);
            for configuration in &mut configurations {
                if configuration.value == observed && self.is_enabled(configuration, access) {
                    configuration.mark(slot);
                }
            }
            self.configurations = configurations;
        }
    }

    /// Afterwards, all configurations are such that the operation has happened. None: it could not.
    fn on_return(&mut self, index: u32) -> Result<(), Outcome> {
        let slot = self.slot_of[index as usize];
        debug_assert_eq!(self.slots[slot], Some(index), "an operation returns once, after its invocation");
        if !self.configurations.iter().all(|c| c.has_happened(slot)) {
            self.make_happen(slot, index)?;
        }
        for configuration in &mut self.configurations {
            configuration.clear(slot);
        }
        self.slots[slot] = None;
        self.free.push(slot);
        self.slot_of[index as usize] = RETURNED;
        let access = self.access(index);
        if let Some(observed) = access.observes {
            self.observers_left[observed.index()] -= 1;
            self.observers_open[observed.index()] -= 1;
        }
        if let Some(produced) = access.produces {
            self.producers_left[produced.index()] -= 1;
        }
        Ok(())
    }

    /// Replaces every configuration in which the operation has not happened by those that follow from it in
    /// which it just has.
    fn make_happen(&mut self, slot: Slot, index: u32) -> Result<(), Outcome> {
        let mut configurations = std::mem::take(&mut self.configurations);
        configurations.iter_mut().for_each(|configuration| self.settle(configuration));
        let (mut arrived, mut waiting): (Vec<_>, Vec<_>) =
            configurations.into_iter().partition(|configuration| configuration.has_happened(slot));
        let mut seen: HashSet<Configuration> = arrived.iter().chain(&waiting).cloned().collect();
        let mut next = Vec::new();
        let mut looked_at = 0;
        while let Some(configuration) = waiting.pop() {
            looked_at += 1;
            if looked_at % CLOCK_EVERY == 0 && self.is_late() {
                return Err(Outcome::TooLate);
            }
            self.successors(&configuration, index, &mut next);
            for configuration in next.drain(..) {
                if !seen.insert(configuration.clone()) {
                    continue;
                }
                if configuration.has_happened(slot) {
                    arrived.push(configuration);
                } else {
                    waiting.push(configuration);
                }
            }
            if seen.len() > self.most {
                return Err(Outcome::TooMany);
            }
        }
        self.configurations = arrived;
        Ok(())
    }
}

/// In place of the slot of an operation that has not been invoked.
const NOT_YET: Slot = usize::MAX;
/// In place of the slot of an operation that has returned.
const RETURNED: Slot = usize::MAX - 1;
