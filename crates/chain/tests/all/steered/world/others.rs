//! Where there are copies: all of them but the first one, which is behind the switch; and memories that die, and others in their places.
//!
//! The others do what a node has asked of them in its order. What must always hold: what is dead executes nothing; of another generation of the
//! store, everybody is connected anew.

use std::collections::{BTreeMap, VecDeque};

use chain::{Outcome, Replica, Verb};
use nic::verbs::Memory as _;
use wire::Rules;
use wire::roce::Key;

use super::network::value_of;
use super::{Event, MEMORY, OpId, World};
use crate::steered::nic::{Bytes, address};

/// What a node has asked.
struct Asked {
    id: u64,
    verb: Verb,
    value: u64,
}

pub(crate) struct Others {
    /// Of the first copy nothing.
    memories: Vec<Bytes>,
    dead: Vec<bool>,
    asked: BTreeMap<(usize, Replica), VecDeque<Asked>>,
}

impl Others {
    /// A copy does what was asked of it: how that ended, and what was read.
    fn execute(&mut self, replica: Replica, asked: &Asked) -> (Outcome, u64) {
        let bytes = &mut self.memories[usize::from(replica.0)];
        match asked.verb {
            Verb::Read(at) => {
                let (head, len) = (bytes.head(address(at)), at.class().bytes() as u32);
                let (value, _) = value_of(bytes, address(at), head.as_ref(), len);
                (Outcome::Read(head), value)
            }
            Verb::Write(at, head) => {
                bytes.put_entry(address(at), &head, asked.value);
                (Outcome::Written, 0)
            }
            Verb::CompareSwap { at, expected, new } => {
                let found = bytes.compare_swap(Key(0), address(at), expected.to_bits(), new.to_bits());
                (Outcome::Swapped(found), 0)
            }
        }
    }

    pub(super) fn new(copies: u8, len: usize) -> Self {
        let memories = (0..copies).map(|copy| Bytes(vec![0; if copy > 0 { len } else { 0 }])).collect();
        Self { memories, dead: vec![false; copies.into()], asked: BTreeMap::new() }
    }

    pub(super) fn is_dead(&self, replica: Replica) -> bool {
        self.dead[usize::from(replica.0)]
    }

    /// A node is another one: nothing of what it has asked will be executed.
    pub(super) fn forget(&mut self, at: usize) {
        self.asked.retain(|(asker, _), _| *asker != at);
    }
}

impl<R: Rules> World<R> {
    /// What a verb that was not answered has come to, at the first copy.
    pub(super) fn without_first(&self) -> Outcome {
        match self.others.is_dead(Replica::FIRST) {
            true => Outcome::Dead,
            false if self.is_reforming => Outcome::Superseded,
            false => Outcome::Unknown,
        }
    }

    /// A node asks something of a copy.
    pub(super) fn ask(
        &mut self,
        at: usize,
        id: u64,
        (replica, verb): (Replica, Verb),
        buffer: u64,
        value: u64,
    ) {
        if self.others.is_dead(replica) {
            self.ended(at, id, Outcome::Dead, 0);
        } else if replica == Replica::FIRST {
            self.post(at, id, verb, buffer, value);
        } else {
            self.others.asked.entry((at, replica)).or_default().push_back(Asked { id, verb, value });
            let way = self.way();
            self.schedule(way, Event::AtOther(at, replica));
        }
    }

    /// What a node has asked is over.
    pub(super) fn ended(&mut self, at: usize, id: u64, outcome: Outcome, value: u64) {
        let way = self.way();
        let event = if at == self.metadata_node() {
            Event::Walked(id, outcome)
        } else {
            Event::Outcome(self.workers[at - 1].id, OpId(id), outcome, value)
        };
        self.schedule(way, event);
    }

    /// The next one of what it has asked of that copy is executed.
    pub(super) fn at_other(&mut self, at: usize, replica: Replica) {
        let next = self.others.asked.get_mut(&(at, replica)).and_then(VecDeque::pop_front);
        let Some(asked) = next else { return };
        let (outcome, value) = self.others.execute(replica, &asked);
        self.ended(at, asked.id, outcome, value);
    }

    /// Whatever a node has asked of the other copies ends like that, executed or not.
    fn end_others(&mut self, of: impl Fn(usize, Replica) -> bool, outcome: Outcome, may_be_done: bool) {
        let pairs: Vec<(usize, Replica)> = self.others.asked.keys().copied().collect();
        for (at, replica) in pairs.into_iter().filter(|(at, replica)| of(*at, *replica)) {
            let asked = self.others.asked.remove(&(at, replica)).unwrap_or_default();
            // Those in front may have been, and nobody has heard of it.
            let done = if may_be_done { self.random.below(asked.len() as u64 + 1) } else { 0 };
            for (number, asked) in (0..).zip(asked) {
                if number < done {
                    self.others.execute(replica, &asked);
                }
                self.ended(at, asked.id, outcome, 0);
            }
        }
    }

    /// A node's connections to the other copies break.
    pub(super) fn break_others(&mut self, at: usize) {
        self.end_others(|asker, _| asker == at, Outcome::Unknown, true);
    }

    /// A memory dies, if another one is left then.
    pub(super) fn memory_dies(&mut self) {
        let of = Replica(self.random.below(u64::from(self.copies)) as u8);
        let live = self.others.dead.iter().filter(|dead| !**dead).count();
        if self.others.is_dead(of) || live < 2 {
            return;
        }
        self.others.dead[usize::from(of.0)] = true;
        self.dead_memories += 1;
        if of == Replica::FIRST {
            (1..self.nics.len()).for_each(|at| self.disconnect(at));
        } else {
            self.end_others(|_, replica| replica == of, Outcome::Dead, false);
        }
        let after = 1 + self.random.below(4_000);
        self.schedule(after, Event::Reform);
    }

    /// Memories come in the places of dead ones: with copies of others, to which nobody is connected meanwhile.
    pub(super) fn reform(&mut self) {
        self.generation += 1;
        self.is_reforming = true;
        let first_died = self.others.is_dead(Replica::FIRST);
        if !first_died {
            (1..self.nics.len()).for_each(|at| self.disconnect(at));
        }
        self.end_others(|_, _| true, Outcome::Superseded, true);
        self.is_reforming = false;
        for of in (0..self.copies).map(Replica) {
            if self.others.is_dead(of) {
                let source = of.source(self.copies, |other| !self.others.is_dead(other));
                let bytes = match source.expect("a copy is left") {
                    Replica::FIRST => self.nics[MEMORY].bytes.0.clone(),
                    Replica(source) => self.others.memories[usize::from(source)].0.clone(),
                };
                match of {
                    Replica::FIRST => self.nics[MEMORY].bytes.0 = bytes,
                    Replica(of) => self.others.memories[usize::from(of)].0 = bytes,
                }
            }
        }
        self.others.dead.fill(false);
        // Another memory is another store, for the switch.
        if first_died {
            self.switch.forget();
        }
        (1..self.nics.len()).for_each(|at| self.connect(at));
    }
}
