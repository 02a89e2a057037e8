//! From a state to all states that can follow it.
//!
//! An action changes one place, and what is outside of all places. What an input does to a local state is worked out
//! once, by the real machines, and looked up from then on.
//!
//! | file | holds |
//! | --- | --- |
//! | `mod` | local states and local steps |
//! | `happening` | what can happen next: packets, time-outs, restarts and deaths |
//! | `threads` | what threads do, and what they are told |
//! | `properties` | what must hold in every state, and at rest |

mod happening;
mod properties;
mod threads;

use std::collections::HashSet;
use std::rc::Rc;

use node::{Started, View};
use wire::{Copyset, Incarnation, LockRules, NodeId, Rules};

use super::action::Action;
use super::coverage::Coverage;
use super::machines::{FIRST, Facts, Input, Local, Machines, SwitchState, Told};
use super::packets::Packets;
use super::real::Real;
use super::scope::Scope;
use super::world::{Budgets, Control, Doing, Memory, Outside, ThreadState, World};
use crate::explore::hashing::{Interner, Table};
use crate::explore::search::Space;
use crate::explore::world::{Item, NODES};

/// A local step.
struct Step {
    local: u32,
    sends: Vec<Item>,
    told: Vec<Told>,
    started: Option<Started>,
    walked_in: bool,
    zeroed: bool,
}

type Steps = Result<Rc<Step>, String>;
/// The state that follows, or what is wrong with it.
type Next = Result<World, String>;

/// A node: its states, and what inputs do to them.
struct Place {
    locals: Interner<Local>,
    facts: Vec<Facts>,
    steps: Table<(u32, Input), Steps>,
}

pub(super) struct Engine {
    scope: Scope,
    machines: Box<dyn Machines>,
    nodes: Vec<Place>,
    switches: Interner<SwitchState>,
    passes: Table<(u32, Item), Steps>,
    controls: Interner<Control>,
    outsides: Interner<Outside>,
    packets: Packets,
    checked_at_rest: HashSet<([u32; NODES], u32, u32, Memory)>,
    coverage: Coverage,
}

impl Engine {
    pub(super) fn new<R: Rules, L: LockRules>(scope: &Scope) -> (Self, World) {
        let count = usize::from(scope.nodes);
        let mut machines: Box<dyn Machines> = Box::new(Real::<R, L>::new(scope));
        let locals: Vec<Local> = (0..count).map(|node| machines.blank(node, Incarnation(0))).collect();
        let mut switches = Interner::new();
        let (switch, _) = switches.intern(machines.empty_switch(FIRST, NodeId(0)));
        let lives = vec![Incarnation(0); count];
        let view = View { epoch: FIRST, lives: lives.iter().copied().map(Some).collect(), shadow: NodeId(0) };
        let (mut controls, mut outsides) = (Interner::new(), Interner::new());
        let up = view.live();
        let (control, _) = controls.intern(Control { view, lives, up, changed: false, dumps: Vec::new() });
        let threads = scope.threads.iter().map(|_| ThreadState { doing: Doing::Idle, turn: 0 });
        let Scope { losses, duplicates, restarts, dies, returns, .. } = *scope;
        let left = Budgets {
            losses,
            duplicates,
            restarts,
            deaths: u8::from(dies.is_some()),
            returns: u8::from(returns),
        };
        let threads = threads.collect();
        let (memory, timed_out) = (Memory::default(), Copyset::EMPTY);
        let (outside, _) = outsides.intern(Outside { memory, threads, left, timed_out });
        let place = || Place { locals: Interner::new(), facts: Vec::new(), steps: Table::default() };
        let mut engine = Self {
            scope: *scope,
            machines,
            nodes: (0..count).map(|_| place()).collect(),
            switches,
            passes: Table::default(),
            controls,
            outsides,
            packets: Packets::new(),
            checked_at_rest: HashSet::new(),
            coverage: Coverage::default(),
        };
        let mut nodes = [0; NODES];
        for (node, local) in locals.into_iter().enumerate() {
            nodes[node] = engine.intern_local(node, local);
        }
        (engine, World { nodes, switch, control, outside, packets: Vec::new() })
    }

    fn intern_local(&mut self, node: usize, local: Local) -> u32 {
        let (number, is_new) = self.nodes[node].locals.intern(local);
        if is_new {
            let local = Rc::clone(self.nodes[node].locals.get(number));
            let facts = self.machines.facts(node, &local);
            self.nodes[node].facts.push(facts);
        }
        number
    }

    fn facts(&self, world: &World, node: usize) -> &Facts {
        &self.nodes[node].facts[world.nodes[node] as usize]
    }

    fn control(&self, world: &World) -> &Rc<Control> {
        self.controls.get(world.control)
    }

    fn outside(&self, world: &World) -> &Rc<Outside> {
        self.outsides.get(world.outside)
    }

    fn up(&self, world: &World) -> Copyset {
        self.control(world).up
    }

    // What machines do

    fn at_node(&mut self, world: &World, node: usize, input: Input) -> Steps {
        let local = world.nodes[node];
        if let Some(step) = self.nodes[node].steps.get(&(local, input)) {
            return step.clone();
        }
        let before = Rc::clone(self.nodes[node].locals.get(local));
        let control = Rc::clone(self.control(world));
        let step = self.machines.at_node(node, &before, input, &control).map(|after| {
            let sends = after.sends.into_iter().map(|packet| self.packets.item(packet)).collect();
            let (told, started) = (after.told, after.started);
            let (walked_in, zeroed) = (after.walked_in, after.zeroed);
            let local = self.intern_local(node, after.local);
            Rc::new(Step { local, sends, told, started, walked_in, zeroed })
        });
        self.nodes[node].steps.insert((local, input), step.clone());
        step
    }

    fn at_switch(&mut self, state: u32, item: Item) -> Steps {
        if let Some(step) = self.passes.get(&(state, item)) {
            return step.clone();
        }
        let (before, packet) = (Rc::clone(self.switches.get(state)), *self.packets.of(item));
        let step = self.machines.at_switch(&before, &packet).map(|after| {
            let sends = after.sends.into_iter().map(|packet| self.packets.item(packet)).collect();
            let (local, _) = self.switches.intern(after.local);
            let (told, started) = (after.told, after.started);
            Rc::new(Step { local, sends, told, started, walked_in: false, zeroed: false })
        });
        self.passes.insert((state, item), step.clone());
        step
    }
}

impl Space for Engine {
    type State = World;
    type Action = Action;
    type Coverage = Coverage;

    fn encode(&self, world: &World, words: &mut Vec<u32>) {
        world.encode(words);
    }

    fn decode(&self, words: &[u32]) -> World {
        World::decode(words)
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
        action.tell(&self.scope, &self.packets)
    }

    fn local_states(&self) -> Vec<usize> {
        self.nodes.iter().map(|place| place.locals.len()).chain([self.switches.len()]).collect()
    }

    fn coverage(&self) -> Coverage {
        self.coverage.clone()
    }
}
