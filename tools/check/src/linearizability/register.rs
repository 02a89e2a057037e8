//! The operations of one key in the form that the search needs: values as small numbers, effects as
//! (what it observes, what it produces), time as a sequence of invocations and returns.
//!
//! What must always hold: the register is linearizable if and only if the operations that it was made from
//! are. Operations that never returned are left out where nothing could tell that they took effect.

use crate::history::{Digest, Op, Operation};

/// A value of this key: absent, or the index of one of its digests.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Value(pub(super) u32);

impl Value {
    /// No value.
    pub(super) const ABSENT: Self = Self(0);
    /// Some value that no operation is going to observe any more, whichever it is.
    pub(super) const UNOBSERVED: Self = Self(u32::MAX);

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// One operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    /// The value that it must find.
    pub(super) observes: Option<Value>,
    /// It must find some value.
    pub(super) needs_present: bool,
    /// The value that it leaves; `None`: it changes nothing.
    pub(super) produces: Option<Value>,
    /// Whether it must have happened: it returned, or its effect was seen.
    pub(super) required: bool,
    /// The operation of the same client that returned at the instant at which this one was invoked.
    pub(super) after: Option<u32>,
    /// Whether it is the `after` of another.
    pub(super) has_successor: bool,
    /// `u64::MAX`: never, or at the end of time.
    pub(super) ret: u64,
}

/// A moment at which the history changes. Of those at one instant, invocations come first: operations that
/// only touch are concurrent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Event {
    pub(super) at: u64,
    pub(super) is_return: bool,
    /// Index of the access.
    pub(super) access: u32,
}

/// Everything that the search needs to know about one key.
#[derive(Debug)]
pub(super) struct Register {
    pub(super) initial: Value,
    pub(super) accesses: Vec<Access>,
    pub(super) events: Vec<Event>,
    /// For each value, how many accesses observe it and must happen.
    pub(super) observers: Vec<u32>,
    /// For each value, how many accesses observe it and change it, and may or may not have happened.
    pub(super) optional_observers: Vec<u32>,
    /// For each value, how many accesses produce it.
    pub(super) producers: Vec<u32>,
    pub(super) has_deletes: bool,
    pub(super) has_updates: bool,
}

impl Register {
    /// # Panics
    /// If there are 2^32 operations or more on one key.
    pub(super) fn new(initial: Option<Digest>, operations: &[Operation<()>]) -> Self {
        let digests = digests(initial, operations);
        let value = |digest: Option<Digest>| match digest {
            None => Value::ABSENT,
            Some(digest) => {
                let place = digests.binary_search(&digest).expect("every digest of the key was collected");
                Value(small(place) + 1)
            }
        };
        let accesses = operations.iter().map(|operation| Access::new(operation, value)).collect();
        let mut register = Self {
            initial: value(initial),
            accesses,
            events: Vec::new(),
            observers: vec![0; digests.len() + 1],
            optional_observers: vec![0; digests.len() + 1],
            producers: vec![0; digests.len() + 1],
            has_deletes: false,
            has_updates: false,
        };
        register.keep_client_order(operations);
        register.count();
        let matters = register.settle_unreturned();
        register.order_events(operations, &matters);
        register
    }

    /// Operations of one client that touch are in order; `at` alone would make them concurrent.
    fn keep_client_order(&mut self, operations: &[Operation<()>]) {
        let mut order: Vec<u32> = (0..small(operations.len())).collect();
        order.sort_unstable_by_key(|&index| {
            let access = &self.accesses[index as usize];
            let operation = &operations[index as usize];
            (operation.client, operation.invoke, access.ret, index)
        });
        // The operation of this client that returned last, of those that did.
        let mut last: Option<u32> = None;
        for index in order {
            let operation = &operations[index as usize];
            last = last.filter(|&before| operations[before as usize].client == operation.client);
            if let Some(before) = last
                && operations[before as usize].ret == Some(operation.invoke)
            {
                self.accesses[index as usize].after = Some(before);
                self.accesses[before as usize].has_successor = true;
            }
            if operation.ret.is_some() {
                last = Some(index);
            }
        }
    }

    fn count(&mut self) {
        for access in &self.accesses {
            if let Some(value) = access.observes {
                if access.required {
                    self.observers[value.index()] += 1;
                } else if access.produces.is_some() {
                    self.optional_observers[value.index()] += 1;
                }
            }
            if let Some(value) = access.produces {
                self.producers[value.index()] += 1;
                self.has_deletes |= value == Value::ABSENT;
            }
            self.has_updates |= access.needs_present;
        }
    }

    /// Decides which of the operations that never returned matter: one whose value was seen must have happened
    /// if nothing else wrote that value; one whose effect nothing can see is left out, or it would stay open
    /// for ever. Returns which accesses remain.
    fn settle_unreturned(&mut self) -> Vec<bool> {
        let mut matters = vec![true; self.accesses.len()];
        let mut open: Vec<usize> = (0..self.accesses.len()).filter(|&i| !self.accesses[i].required).collect();
        loop {
            let before = open.len();
            open.retain(|&index| {
                let access = self.accesses[index];
                let Some(produced) = access.produces else {
                    matters[index] = false; // A read whose result nobody got.
                    return false;
                };
                let seen = self.observers[produced.index()];
                let may_be_seen = seen + self.optional_observers[produced.index()] > 0;
                // An update that succeeded saw that the key was present, whatever made it so.
                let makes_present = match access.observes {
                    None => produced != Value::ABSENT && !access.needs_present,
                    Some(observed) => observed == Value::ABSENT,
                };
                if seen > 0 && self.producers[produced.index()] == 1 && produced != self.initial {
                    self.accesses[index].required = true;
                    if let Some(observed) = access.observes {
                        self.optional_observers[observed.index()] -= 1;
                        self.observers[observed.index()] += 1;
                    }
                    return false;
                }
                let may_matter = may_be_seen || (makes_present && self.has_updates);
                if !may_matter {
                    matters[index] = false;
                    self.producers[produced.index()] -= 1;
                    if let Some(observed) = access.observes {
                        self.optional_observers[observed.index()] -= 1;
                    }
                    return false;
                }
                true
            });
            if open.len() == before {
                return matters;
            }
        }
    }

    fn order_events(&mut self, operations: &[Operation<()>], matters: &[bool]) {
        self.events.reserve(2 * operations.len());
        for (index, operation) in operations.iter().enumerate().filter(|(index, _)| matters[*index]) {
            let access = small(index);
            self.events.push(Event { at: operation.invoke.0, is_return: false, access });
            if let Some(ret) = operation.ret {
                self.events.push(Event { at: ret.0, is_return: true, access });
            }
        }
        self.events.sort_unstable();
    }
}

impl Access {
    fn new(operation: &Operation<()>, value: impl Fn(Option<Digest>) -> Value) -> Self {
        let (observes, needs_present, produces) = match operation.op {
            Op::Read { value: seen } => (Some(value(seen)), false, None),
            Op::Update { value: None } => (Some(Value::ABSENT), false, None),
            Op::Insert { value: new } => (None, false, Some(value(Some(new)))),
            Op::Update { value: new } => (None, true, Some(value(new))),
            Op::Delete => (None, false, Some(Value::ABSENT)),
            // One that leaves what it finds is a read.
            Op::Rmw { value: seen, new } if seen == Some(new) => (Some(value(seen)), false, None),
            Op::Rmw { value: seen, new } => (Some(value(seen)), false, Some(value(Some(new)))),
        };
        Self {
            observes,
            needs_present,
            produces,
            required: operation.ret.is_some(),
            after: None,
            has_successor: false,
            ret: operation.ret.map_or(u64::MAX, |ret| ret.0),
        }
    }
}

/// The different digests of this key, sorted.
fn digests(initial: Option<Digest>, operations: &[Operation<()>]) -> Vec<Digest> {
    let mut digests: Vec<Digest> = initial.into_iter().collect();
    for operation in operations {
        match operation.op {
            Op::Read { value } | Op::Update { value } => digests.extend(value),
            Op::Insert { value } => digests.push(value),
            Op::Delete => {}
            Op::Rmw { value, new } => {
                digests.extend(value);
                digests.push(new);
            }
        }
    }
    digests.sort_unstable();
    digests.dedup();
    digests
}

fn small(index: usize) -> u32 {
    u32::try_from(index).expect("one key has fewer than 2^32 operations")
}
