//! From a state to all states that can follow it.
//!
//! An action changes one place (a release also ages the other copies of its region). What an input does to a local state is
//! worked out once, by the real machines, and looked up from then on.
//!
//! | file | holds |
//! | --- | --- |
//! | `mod` | local states and local steps |
//! | `happening` | what can happen next in a state of the rack |
//! | `numbers` | the numbers of requests, made small |
//! | `properties` | what must hold in every state, and at rest |

mod happening;
mod numbers;
mod properties;

use std::collections::BTreeSet;
use std::rc::Rc;

use node::LockEffect;
use node::locks::canonical::Timer;
use switch::locks::EntryView;
use wire::{LockRules, NodeId, SwitchEpoch};

use self::numbers::Numbers;
use super::action::Action;
use super::coverage::Coverage;
use super::machines::{
    After, Input, Local, LockFacts, Machines, SwitchState, with_allocation, with_contents,
};
use super::real::Real;
use super::scope::Scope;
use super::shape::Shapes;
use super::world::{Budgets, World};
use crate::explore::hashing::{Interner, Table};
use crate::explore::search::Space;
use crate::explore::world::{Item, NODES, Size, THREADS};

/// What is asked of a node's state again and again.
struct Facts {
    timers: Vec<Timer>,
    is_quiet: bool,
    epoch: SwitchEpoch,
    locks: Vec<LockFacts>,
    /// Requests of which something there has the number; and how many the node has asked.
    numbers: Numbers,
    asked: Numbers,
}

/// What is asked of the switch's.
struct SwitchFacts {
    epoch: SwitchEpoch,
    entries: Vec<Option<EntryView>>,
}

/// A local step.
struct Step {
    local: u32,
    sends: Vec<Item>,
    again: Vec<Item>,
    told: Vec<LockEffect>,
}

type Steps = Result<Rc<Step>, String>;

/// A local state, and an input: its kind in the upper half.
type Key = (u32, u64);

struct Place<T, F> {
    locals: Interner<T>,
    facts: Vec<F>,
    steps: Table<Key, Steps>,
}

impl<T: std::hash::Hash + Eq, F> Place<T, F> {
    fn new() -> Self {
        Self { locals: Interner::new(), facts: Vec::new(), steps: Table::default() }
    }
}

/// The rack, explored.
pub(super) struct Engine {
    scope: Scope,
    size: Size,
    machines: Box<dyn Machines>,
    nodes: Vec<Place<Local, Facts>>,
    switch: Place<SwitchState, SwitchFacts>,
    shapes: Shapes,
    changed: Table<Key, u32>,
    renumbered: Table<(usize, u32, Numbers), u32>,
    fences_epochs: bool,
    coverage: Coverage,
    checked_at_rest: BTreeSet<([u32; NODES], u32)>,
}

/// A successor, or what is wrong with it.
type Next = Result<World, String>;

impl Engine {
    pub(super) fn new<R: LockRules>(scope: &Scope) -> (Self, World) {
        let mut machines: Box<dyn Machines> = Box::new(Real::<R>::new(scope));
        let (locals, switch) = machines.start();
        let size = Size { nodes: usize::from(scope.nodes), threads: scope.threads.len() };
        let mut engine = Self {
            scope: *scope,
            size,
            fences_epochs: machines.fences_epochs(),
            machines,
            nodes: (0..size.nodes).map(|_| Place::new()).collect(),
            switch: Place::new(),
            shapes: Shapes::new(),
            changed: Table::default(),
            renumbered: Table::default(),
            coverage: Coverage::default(),
            checked_at_rest: BTreeSet::new(),
        };
        let mut nodes = [0; NODES];
        for (at, local) in locals.into_iter().enumerate() {
            nodes[at] = engine.intern_local(at, local);
        }
        let switch = engine.intern_switch(switch);
        let mut turns = [0; THREADS];
        for (turns, thread) in turns.iter_mut().zip(scope.threads) {
            *turns = thread.turns;
        }
        let Scope { losses, duplicates, premature, cancels, leaves, restarts, vacancies, .. } = *scope;
        let left = Budgets { losses, duplicates, premature, cancels, leaves, restarts, vacancies };
        (engine, World::new(nodes, switch, turns, left))
    }

    fn intern_local(&mut self, at: usize, local: Local) -> u32 {
        let place = &mut self.nodes[at];
        let (number, new) = place.locals.intern(local);
        if new {
            let local = Rc::clone(place.locals.get(number));
            let (locks, is_quiet) = self.machines.facts(at, &local);
            let (timers, epoch) = (local.state.timers(), local.state.epoch());
            let (me, mut numbers) = (NodeId(at as u16), Vec::new());
            local.state.numbers(me, |who, lock, number| numbers.push((who, lock, number)));
            let asked = local.state.asked().map(|(lock, number)| (me, lock, number)).collect();
            place.facts.push(Facts { timers, is_quiet, epoch, locks, numbers, asked });
        }
        number
    }

    fn intern_switch(&mut self, state: SwitchState) -> u32 {
        let (number, new) = self.switch.locals.intern(state);
        if new {
            let state = self.switch.locals.get(number);
            let (epoch, entries) = (state.epoch, self.machines.entries(state));
            self.switch.facts.push(SwitchFacts { epoch, entries });
        }
        number
    }

    fn facts(&self, world: &World) -> impl Iterator<Item = (usize, &Facts)> {
        let facts = self.nodes.iter().zip(world.nodes).map(|(place, local)| &place.facts[local as usize]);
        facts.enumerate()
    }

    // What machines do

    fn at_node(&mut self, node: usize, local: u32, key: u64, input: Input) -> Steps {
        if let Some(steps) = self.nodes[node].steps.get(&(local, key)) {
            return steps.clone();
        }
        let before = Rc::clone(self.nodes[node].locals.get(local));
        let step = self.machines.at_node(node, &before, input).map(|after| {
            let After { local, sends, told, pass, .. } = after;
            pass.into_iter().for_each(|row| self.coverage.note_pass(false, row));
            sends.iter().for_each(|message| self.coverage.note_packet(false, &message.packet));
            let sends = sends.iter().map(|message| self.shapes.message(message)).collect();
            let local = self.intern_local(node, local);
            Rc::new(Step { local, sends, again: Vec::new(), told })
        });
        self.nodes[node].steps.insert((local, key), step.clone());
        step
    }

    fn at_switch(&mut self, state: u32, key: u64, item: Item) -> Steps {
        if let Some(steps) = self.switch.steps.get(&(state, key)) {
            return steps.clone();
        }
        let before = Rc::clone(self.switch.locals.get(state));
        let message = self.shapes.packet(item);
        let again = key >> 32 == happening::kind::AGAIN;
        let input = if again { Err((self.shapes.again(item), message.data)) } else { Ok(message) };
        let step = self.machines.at_switch(&before, input).map(|after| {
            let After { local, sends, again, pass, .. } = after;
            pass.into_iter().for_each(|row| self.coverage.note_pass(true, row));
            sends.iter().for_each(|message| self.coverage.note_packet(true, &message.packet));
            let sends = sends.iter().map(|message| self.shapes.message(message)).collect();
            let again = again.iter().map(|(it, data)| self.shapes.resubmit(it, *data)).collect();
            let local = self.intern_switch(local);
            Rc::new(Step { local, sends, again, told: Vec::new() })
        });
        self.switch.steps.insert((state, key), step.clone());
        step
    }

    /// At the locks' home, the region belongs to an allocation, or to none.
    fn with_allocation(&mut self, local: u32, lock: u8, allocated: bool) -> u32 {
        let it = with_allocation(self.nodes[0].locals.get(local), lock, allocated);
        self.intern_local(0, it)
    }

    /// All contents of a region become these.
    fn with_contents(&mut self, at: usize, local: u32, lock: u8, contents: u64) -> u32 {
        let key = (local, (at as u64) << 32 | contents << 8 | u64::from(lock));
        if let Some(number) = self.changed.get(&key) {
            return *number;
        }
        let it = with_contents(self.nodes[at].locals.get(local), lock, contents);
        let number = self.intern_local(at, it);
        self.changed.insert(key, number);
        number
    }
}

impl Space for Engine {
    type State = World;
    type Action = Action;
    type Coverage = Coverage;

    fn encode(&self, world: &World, words: &mut Vec<u32>) {
        world.encode(self.size, words);
    }

    fn decode(&self, words: &[u32]) -> World {
        World::decode(self.size, words)
    }

    fn expand(&mut self, world: &World, found: &mut Vec<(Action, Next)>) {
        Engine::expand(self, world, found);
    }

    fn admit(&mut self, world: &mut World) -> Result<(), String> {
        self.make_canonical(world);
        Engine::check(self, world)
    }

    fn is_at_rest(&self, world: &World) -> bool {
        Engine::is_at_rest(self, world)
    }

    fn check_at_rest(&mut self, world: &World) -> Result<(), String> {
        Engine::check_at_rest(self, world)
    }

    fn describe(&self, world: &World) -> String {
        Engine::describe(self, world)
    }

    fn tell(&self, action: Action) -> String {
        action.tell(&self.scope, &self.shapes)
    }

    fn local_states(&self) -> Vec<usize> {
        self.nodes.iter().map(|place| place.locals.len()).chain([self.switch.locals.len()]).collect()
    }

    fn coverage(&self) -> Coverage {
        self.coverage.clone()
    }
}
