//! From a state to all states that can follow it.
//!
//! An action changes one place (a write also ages the other copies of its block). What an input does to a local
//! state is worked out once, by the real machines, and looked up from then on: the same local states meet the same
//! inputs in very many states of the rack.
//!
//! | file | holds |
//! | --- | --- |
//! | `mod` | local states and local steps |
//! | `happening` | what can happen next in a state of the rack |
//! | `alike` | what makes two states one |
//! | `properties` | what must hold in every state, and at rest |

mod alike;
mod happening;
mod properties;

use std::collections::BTreeSet;
use std::rc::Rc;

use node::canonical::{Timer, Use};
use node::{Access, Effect, Outcome, Started};
use switch::flowcc;
use wire::Rules;

use crate::explore::flowcc::action::Action;
use crate::explore::flowcc::coverage::Coverage;
use crate::explore::flowcc::machines::{Input, Local, Machines, Real};
use crate::explore::flowcc::scope::Scope;
use crate::explore::flowcc::shape::{Shapes, block_number, is_latest};
use crate::explore::flowcc::world::{Budgets, World};
use crate::explore::hashing::{Interner, Table};
use crate::explore::search::Space;
use crate::explore::world::{Item, NODES, Size, THREADS};

/// What is asked of a local state again and again.
struct Facts {
    numbers: Vec<(u16, u8, Use)>,
    timers: Vec<Timer>,
    is_quiet: bool,
    /// Copies that can be hit: block, writable, latest.
    copies: Vec<(u64, bool, bool)>,
    /// Requesters of whose events the switch has something.
    scored: Vec<u16>,
}

/// A local step.
struct Step {
    local: u32,
    sends: Vec<Item>,
    again: Vec<Item>,
    completed: Vec<(u8, Outcome)>,
    started: Option<Started>,
}

type Steps = Result<Rc<[Step]>, String>;

/// What an input is, as a key: its kind in the upper half.
type Key = (u32, u64);

struct Place<T> {
    locals: Interner<T>,
    facts: Vec<Facts>,
    steps: Table<Key, Steps>,
    renumbered: Table<Box<[u8]>, u32>,
}

/// The rack, explored.
pub(in crate::explore::flowcc) struct Engine {
    pub(in crate::explore::flowcc) scope: Scope,
    pub(in crate::explore::flowcc) size: Size,
    machines: Box<dyn Machines>,
    nodes: Vec<Place<Local>>,
    switch: Place<flowcc::canonical::State>,
    pub(in crate::explore::flowcc) shapes: Shapes,
    aged: Table<Key, u32>,
    knows_parities: bool,
    pub(in crate::explore::flowcc) coverage: Coverage,
    checked_at_rest: BTreeSet<([u32; NODES], u32, bool)>,
    key: Vec<u8>,
}

/// A successor, or what is wrong with it.
pub(in crate::explore::flowcc) type Next = Result<World, String>;

impl<T: std::hash::Hash + Eq> Place<T> {
    fn new() -> Self {
        Self {
            locals: Interner::new(),
            facts: Vec::new(),
            steps: Table::default(),
            renumbered: Table::default(),
        }
    }
}

impl Engine {
    pub(in crate::explore::flowcc) fn new<N: Rules, S: Rules>(scope: &Scope) -> (Self, World) {
        let mut machines: Box<dyn Machines> = Box::new(Real::<N, S>::new(scope));
        let (locals, switch) = machines.start();
        let size = Size { nodes: usize::from(scope.nodes), threads: scope.threads.len() };
        let mut engine = Self {
            scope: *scope,
            size,
            knows_parities: machines.knows_parities(),
            machines,
            nodes: (0..size.nodes).map(|_| Place::new()).collect(),
            switch: Place::new(),
            shapes: Shapes::new(size.nodes, scope.queue),
            aged: Table::default(),
            coverage: Coverage::default(),
            checked_at_rest: BTreeSet::new(),
            key: Vec::new(),
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
        let Scope { losses, duplicates, premature, adds, removes, purges, .. } = *scope;
        let left = Budgets { losses, duplicates, premature, adds, removes, purges };
        let mut world = World::new(nodes, switch, turns, left);
        engine.make_canonical(&mut world);
        (engine, world)
    }

    fn intern_local(&mut self, at: usize, local: Local) -> u32 {
        let place = &mut self.nodes[at];
        let (number, new) = place.locals.intern(local);
        if new {
            let local = place.locals.get(number);
            let mut numbers = Vec::new();
            local.state.numbers(&mut |requester, seq, how| {
                numbers.push((requester.index() as u16, seq.0 as u8, how));
            });
            let copies = local.store.frames.iter().filter_map(|frame| {
                let (tag, access) = frame.published?;
                Some((block_number(tag), access == Access::Modified, is_latest(frame.stamp)))
            });
            place.facts.push(Facts {
                numbers,
                timers: local.state.timers(),
                is_quiet: local.state.is_quiet(),
                copies: copies.collect(),
                scored: Vec::new(),
            });
        }
        number
    }

    fn intern_switch(&mut self, state: flowcc::canonical::State) -> u32 {
        let (number, new) = self.switch.locals.intern(state);
        if new {
            let mut numbers = Vec::new();
            self.switch.locals.get(number).numbers(&mut |requester, seq| {
                numbers.push((requester.index() as u16, seq.0 as u8, Use::Remembered));
            });
            let mut scored = Vec::new();
            let state = self.switch.locals.get(number);
            state.scored(&mut |requester| scored.push(requester.index() as u16));
            let (timers, copies) = (Vec::new(), Vec::new());
            self.switch.facts.push(Facts { numbers, timers, is_quiet: true, copies, scored });
        }
        number
    }

    // What machines do

    fn at_node(&mut self, node: usize, local: u32, key: u64, input: Input) -> Steps {
        if let Some(steps) = self.nodes[node].steps.get(&(local, key)) {
            return steps.clone();
        }
        let before = Rc::clone(self.nodes[node].locals.get(local));
        let steps = self.machines.at_node(node, &before, input).map(|all| {
            let steps = all.into_iter().map(|after| {
                let mut step = Step {
                    local: self.intern_local(node, after.local),
                    sends: Vec::new(),
                    again: Vec::new(),
                    completed: Vec::new(),
                    started: after.started,
                };
                for effect in after.effects {
                    match effect {
                        Effect::Send(message) => {
                            self.coverage.note(&message.packet, Some(node));
                            step.sends.extend(self.shapes.message(&message));
                        }
                        Effect::Completed { slot, outcome } => step.completed.push((slot.0 as u8, outcome)),
                    }
                }
                step
            });
            steps.collect::<Rc<[Step]>>()
        });
        self.nodes[node].steps.insert((local, key), steps.clone());
        steps
    }

    fn at_switch(&mut self, state: u32, key: u64, item: Item) -> Steps {
        if let Some(steps) = self.switch.steps.get(&(state, key)) {
            return steps.clone();
        }
        let before = Rc::clone(self.switch.locals.get(state));
        let again = key >> 32 == happening::kind::AGAIN;
        let input = if again { Err(self.shapes.again(item)) } else { Ok(self.shapes.packet(item).packet) };
        let steps = self.machines.at_switch(&before, input).map(|(state, effects)| {
            let (mut sends, mut again) = (Vec::new(), Vec::new());
            for effect in effects {
                match effect {
                    flowcc::Effect::Send(packet) => {
                        self.coverage.note(&packet, None);
                        sends.extend(self.shapes.message(&packet.into()));
                    }
                    flowcc::Effect::Resubmit(it) => again.push(self.shapes.resubmit(&it)),
                }
            }
            let local = self.intern_switch(state);
            Rc::from([Step { local, sends, again, completed: Vec::new(), started: None }])
        });
        self.switch.steps.insert((state, key), steps.clone());
        steps
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
        Engine::admit(self, world)
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
