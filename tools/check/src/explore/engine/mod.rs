//! From a state to all states that can follow it: one engine for the racks of all protocols.
//!
//! An action changes one component, and what is outside of all of them (a write also ages the other copies of what it writes).
//! What an input does to a local state is worked out once, by the real machines, and looked up from then on: the same
//! local states meet the same inputs in very many states of the rack.
//!
//! | file | holds |
//! | --- | --- |
//! | `mod` | local states and local steps |
//! | `rack` | what a protocol brings along |
//! | `successors` | what can happen in any rack: packets arrive, are lost, come twice |
//! | `action` | one thing that happens, as a line of a trace |

mod action;
mod rack;
mod successors;

use std::hash::Hash;
use std::rc::Rc;

pub(super) use self::action::{Action, end, lock_end};
pub(super) use self::rack::{After, Input, Machines, OutsideOf, Packets, Plan, Rack, Successors};
use super::hashing::{Interner, Table};
use super::world::{Item, NODES, Outside, THREADS, ThreadState, World};
use crate::rack::caught;

/// The state that follows, or what is wrong with it.
pub(super) type Next = Result<World, String>;

/// What can happen, and what follows.
pub(super) type Finds<R> = Vec<(Action<<R as Rack>::Timer>, Next)>;

/// A local step.
pub(super) struct Step<R: Rack> {
    pub(super) local: u32,
    sends: Vec<Item>,
    again: Vec<Item>,
    pub(super) told: R::Told,
}

type Steps<R> = Result<Rc<[Step<R>]>, String>;

/// What a node was called with, and in which state it was; and the thread that did it, in which turn.
pub(super) struct Call<'a, R: Rack> {
    pub(super) node: usize,
    pub(super) before: u32,
    pub(super) input: &'a Input<Item, R::Input>,
    pub(super) thread: Option<(usize, u8)>,
}

/// A component: its states, what is asked of them, and what inputs do to them.
pub(super) struct Component<R: Rack, T, F, I> {
    pub(super) locals: Interner<T>,
    pub(super) facts: Vec<F>,
    steps: Table<(u32, I), Steps<R>>,
}

type NodeComponent<R> = Component<R, <R as Rack>::Local, <R as Rack>::Facts, Input<Item, <R as Rack>::Input>>;

/// The rack, explored.
pub(super) struct Engine<R: Rack> {
    pub(super) scope: R::Scope,
    plan: Plan,
    pub(super) machines: Box<R::Machines>,
    pub(super) nodes: Vec<NodeComponent<R>>,
    pub(super) switch: Component<R, R::Switch, R::SwitchFacts, Item>,
    outsides: Interner<OutsideOf<R>>,
    pub(super) packets: R::Packets,
    pub(super) coverage: R::Coverage,
    /// What the protocol keeps beside.
    pub(super) own: R,
}

impl<R: Rack, T: Hash + Eq, F, I> Component<R, T, F, I> {
    fn new() -> Self {
        Self { locals: Interner::new(), facts: Vec::new(), steps: Table::default() }
    }
}

impl<R: Rack> Engine<R> {
    /// The engine, and the state that everything begins in.
    pub(super) fn new(
        (scope, plan): (R::Scope, Plan),
        machines: Box<R::Machines>,
        (locals, switch): (Vec<R::Local>, R::Switch),
        packets: R::Packets,
        (own, more): (R, R::More),
    ) -> (Self, World) {
        let outside = Outside { threads: [ThreadState::default(); THREADS], left: plan.left, more };
        let mut engine = Self {
            scope,
            plan,
            machines,
            nodes: locals.iter().map(|_| Component::new()).collect(),
            switch: Component::new(),
            outsides: Interner::new(),
            packets,
            coverage: R::Coverage::default(),
            own,
        };
        let mut nodes = [0; NODES];
        for (at, local) in locals.into_iter().enumerate() {
            nodes[at] = engine.intern_local(at, local);
        }
        let switch = engine.intern_switch(switch);
        let outside = engine.intern_outside(outside);
        (engine, World::new(nodes, switch, outside))
    }

    pub(super) fn threads(&self) -> usize {
        self.plan.threads.len()
    }

    pub(super) fn node_of(&self, thread: usize) -> usize {
        self.plan.threads[thread].0.into()
    }

    /// A thread has no more turns.
    pub(super) fn is_done(&self, outside: &OutsideOf<R>, thread: usize) -> bool {
        let it = outside.threads[thread];
        it.doing == R::Doing::default() && it.turn == self.plan.threads[thread].1
    }

    pub(super) fn all_are_done(&self, outside: &OutsideOf<R>) -> bool {
        (0..self.threads()).all(|thread| self.is_done(outside, thread))
    }

    pub(super) fn intern_local(&mut self, at: usize, local: R::Local) -> u32 {
        let component = &mut self.nodes[at];
        let (number, new) = component.locals.intern(local);
        if new {
            component.facts.push(self.machines.facts(at, component.locals.get(number)));
        }
        number
    }

    pub(super) fn intern_switch(&mut self, state: R::Switch) -> u32 {
        let (number, new) = self.switch.locals.intern(state);
        if new {
            self.switch.facts.push(self.machines.switch_facts(self.switch.locals.get(number)));
        }
        number
    }

    pub(super) fn intern_outside(&mut self, outside: OutsideOf<R>) -> u32 {
        self.outsides.intern(outside).0
    }

    pub(super) fn outside(&self, world: &World) -> OutsideOf<R> {
        **self.outsides.get(world.outside)
    }

    pub(super) fn facts(&self, world: &World, node: usize) -> &R::Facts {
        &self.nodes[node].facts[world.nodes[node] as usize]
    }

    /// What is said of a state of a node that is in no state of the rack, maybe.
    pub(super) fn facts_of(&self, node: usize, local: u32) -> &R::Facts {
        &self.nodes[node].facts[local as usize]
    }

    pub(super) fn switch_facts(&self, world: &World) -> &R::SwitchFacts {
        &self.switch.facts[world.switch as usize]
    }

    pub(super) fn locals(&self, world: &World) -> Vec<Rc<R::Local>> {
        self.nodes
            .iter()
            .zip(world.nodes)
            .map(|(component, local)| Rc::clone(component.locals.get(local)))
            .collect()
    }

    // What machines do

    fn at_node(&mut self, node: usize, local: u32, input: &Input<Item, R::Input>) -> Steps<R> {
        let key = (local, input.clone());
        if let Some(steps) = self.nodes[node].steps.get(&key) {
            return steps.clone();
        }
        let before = Rc::clone(self.nodes[node].locals.get(local));
        let input = match input {
            Input::Packet(item) => Input::Packet(self.packets.packet(*item)),
            Input::Own(input) => Input::Own(input.clone()),
        };
        let machines = &mut self.machines;
        let steps = caught(|| machines.at_node(node, &before, input)).map(|all| {
            let intern = |engine: &mut Self, local| engine.intern_local(node, local);
            all.into_iter().map(|after| self.step(Some(node), after, intern)).collect()
        });
        self.nodes[node].steps.insert(key, Steps::clone(&steps));
        steps
    }

    /// A packet at the switch, or one that makes its second pass: their numbers are not the same.
    fn at_switch(&mut self, state: u32, item: Item, again: bool) -> Steps<R> {
        if let Some(steps) = self.switch.steps.get(&(state, item)) {
            return steps.clone();
        }
        let before = Rc::clone(self.switch.locals.get(state));
        let input = if again { Err(self.packets.again(item)) } else { Ok(self.packets.packet(item)) };
        let machines = &mut self.machines;
        let steps = caught(|| machines.at_switch(&before, input))
            .map(|after| Rc::from([self.step(None, after, Self::intern_switch)]));
        self.switch.steps.insert((state, item), Steps::clone(&steps));
        steps
    }

    fn step<T>(
        &mut self,
        node: Option<usize>,
        after: After<R, T>,
        intern: impl Fn(&mut Self, T) -> u32,
    ) -> Step<R> {
        let After { local, sends, again, told } = after;
        R::note(&mut self.coverage, node, &sends, &told);
        let sends = sends.iter().filter_map(|message| self.packets.message(message)).collect();
        let again = again.iter().map(|it| self.packets.resubmit(it)).collect();
        Step { local: intern(self, local), sends, again, told }
    }
}
