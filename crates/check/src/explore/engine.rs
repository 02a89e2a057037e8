//! From a state to all states that can follow it.
//!
//! An action changes one place (a write also ages the other copies of its block). What an input does to a local
//! state is worked out once, by the real machines, and looked up from then on: the same local states meet the same
//! inputs in very many states of the rack.

use std::collections::BTreeSet;
use std::rc::Rc;

use node::canonical::{Timer, Use};
use node::{Access, Effect, FrameId, Outcome, Started};
use switch::flowcc;
use wire::{Endpoint, Rules};

use super::action::Action;
use super::coverage::Coverage;
use super::hashing::{Interner, Table};
use super::machines::{Input, Local, Machines, Real, age};
use super::numbers::UnderWay;
use super::scope::{Scope, Turn};
use super::shape::{Item, Shapes, block_number, is_latest, seq_of, with_seq};
use super::world::{Budgets, Doing, NODES, Size, THREADS, World};

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
pub(super) struct Engine {
    pub(super) scope: Scope,
    pub(super) size: Size,
    machines: Box<dyn Machines>,
    nodes: Vec<Place<Local>>,
    switch: Place<flowcc::canonical::State>,
    pub(super) shapes: Shapes,
    aged: Table<Key, u32>,
    knows_parities: bool,
    pub(super) coverage: Coverage,
    checked_at_rest: BTreeSet<([u32; NODES], u32, bool)>,
    key: Vec<u8>,
}

/// A successor, or what is wrong with it.
pub(super) type Next = Result<World, String>;

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
    pub(super) fn new<R: Rules>(scope: &Scope) -> (Self, World) {
        let mut machines: Box<dyn Machines> = Box::new(Real::<R>::new(scope));
        let (locals, switch) = machines.start();
        let size = Size { nodes: usize::from(scope.nodes), threads: scope.threads.len() };
        let mut engine = Self {
            scope: *scope,
            size,
            knows_parities: machines.knows_parities(),
            machines,
            nodes: (0..size.nodes).map(|_| Place::new()).collect(),
            switch: Place::new(),
            shapes: Shapes::new(),
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

    /// How many local states there are: of each node, of the switch.
    pub(super) fn local_states(&self) -> Vec<usize> {
        self.nodes.iter().map(|place| place.locals.len()).chain([self.switch.locals.len()]).collect()
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
                            step.sends.extend(self.shapes.message(&message, self.size.nodes));
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
        let again = key >> 32 == kind::AGAIN;
        let input = if again { Err(self.shapes.again(item)) } else { Ok(self.shapes.packet(item).packet) };
        let steps = self.machines.at_switch(&before, input).map(|(state, effects)| {
            let (mut sends, mut again) = (Vec::new(), Vec::new());
            for effect in effects {
                match effect {
                    flowcc::Effect::Send(packet) => {
                        self.coverage.note(&packet, None);
                        sends.extend(self.shapes.message(&packet.into(), self.size.nodes));
                    }
                    flowcc::Effect::Resubmit(it) => again.push(self.shapes.resubmit(&it, self.size.nodes)),
                }
            }
            let local = self.intern_switch(state);
            Rc::from([Step { local, sends, again, completed: Vec::new(), started: None }])
        });
        self.switch.steps.insert((state, key), steps.clone());
        steps
    }

    // What makes states alike

    fn make_canonical(&mut self, world: &mut World) {
        let mut under_way = UnderWay::new(self.knows_parities);
        let nodes = self.nodes.iter().zip(world.nodes).map(|(place, local)| &place.facts[local as usize]);
        for facts in nodes {
            for (requester, seq, how) in &facts.numbers {
                if *how == Use::UnderWay {
                    under_way.add(usize::from(*requester), u64::from(*seq));
                }
            }
        }
        for requester in &self.switch.facts[world.switch as usize].scored {
            under_way.keep_parity(usize::from(*requester));
        }
        let items = || world.packets.as_slice().iter().chain(world.again.as_slice());
        for item in items() {
            under_way.add(self.shapes.of(*item).packet.requester.index(), seq_of(*item));
        }
        for at in 0..self.size.nodes {
            world.nodes[at] = self.renumber_node(at, world.nodes[at], &under_way);
        }
        world.switch = self.renumber_switch(world.switch, &under_way);
        let small = |item: &mut Item| {
            let requester = self.shapes.of(*item).packet.requester.index();
            *item = with_seq(*item, under_way.small(requester, seq_of(*item), Use::UnderWay));
        };
        world.again.as_mut_slice().iter_mut().for_each(small);
        world.packets.as_mut_slice().iter_mut().for_each(small);
        if self.scope.reorder {
            world.packets.as_mut_slice().sort_unstable();
        } else {
            // Stable: packets between the same two places keep their order.
            let way = |item: &Item| self.shapes.way(*item);
            world.packets.as_mut_slice().sort_by_key(way);
        }
    }

    fn renumber_node(&mut self, at: usize, local: u32, under_way: &UnderWay) -> u32 {
        let place = &self.nodes[at];
        if !small_key(&place.facts[local as usize], local, under_way, &mut self.key) {
            return local;
        }
        if let Some(number) = place.renumbered.get(self.key.as_slice()) {
            return *number;
        }
        let mut it = Local::clone(place.locals.get(local));
        it.state.renumber(&under_way.of());
        let number = self.intern_local(at, it);
        self.nodes[at].renumbered.insert(self.key.as_slice().into(), number);
        number
    }

    fn renumber_switch(&mut self, state: u32, under_way: &UnderWay) -> u32 {
        if !small_key(&self.switch.facts[state as usize], state, under_way, &mut self.key) {
            return state;
        }
        if let Some(number) = self.switch.renumbered.get(self.key.as_slice()) {
            return *number;
        }
        let mut it = flowcc::canonical::State::clone(self.switch.locals.get(state));
        let to = under_way.of();
        it.renumber(&|requester, seq| to(requester, seq, Use::Remembered));
        let number = self.intern_switch(it);
        self.switch.renumbered.insert(self.key.as_slice().into(), number);
        number
    }

    fn age(&mut self, at: usize, local: u32, block: u64) -> u32 {
        let key = (local, (at as u64) << 32 | block);
        if let Some(number) = self.aged.get(&key) {
            return *number;
        }
        let it = age(self.nodes[at].locals.get(local), block);
        let number = self.intern_local(at, it);
        self.aged.insert(key, number);
        number
    }

    // Actions

    /// All that can happen next.
    pub(super) fn expand(&mut self, world: &World, found: &mut Vec<(Action, Next)>) {
        found.clear();
        self.deliveries(world, found);
        if let Some(item) = world.again.as_slice().first() {
            let mut next = *world;
            next.again.remove(0);
            self.switch_step(
                next,
                kind::AGAIN << 32 | u64::from(*item),
                *item,
                Action::Resubmit(*item),
                found,
            );
        }
        for thread in 0..self.size.threads {
            self.thread(world, thread, found);
        }
        self.timers(world, found);
        self.control(world, found);
    }

    fn deliveries(&mut self, world: &World, found: &mut Vec<(Action, Next)>) {
        let packets = world.packets.as_slice();
        for (at, item) in packets.iter().enumerate() {
            let before = at.checked_sub(1).map(|before| packets[before]);
            let waits = match before {
                Some(before) if self.scope.reorder => before == *item,
                Some(before) => self.shapes.way(before) == self.shapes.way(*item),
                None => false,
            };
            if waits {
                continue;
            }
            let mut without = *world;
            without.packets.remove(at);
            self.deliver(without, *item, Action::Deliver(*item), found);
            let may_be_doubled = {
                let kind = self.shapes.of(*item).packet.kind;
                self.scope.twice.is_none_or(|only| only == kind)
            };
            if world.left.duplicates > 0 && may_be_doubled {
                let mut with = *world;
                with.left.duplicates -= 1;
                self.deliver(with, *item, Action::Duplicate(*item), found);
            }
            if world.left.losses > 0 {
                let mut next = without;
                next.left.losses -= 1;
                found.push((Action::Lose(*item), Ok(next)));
            }
        }
    }

    fn deliver(&mut self, next: World, item: Item, action: Action, found: &mut Vec<(Action, Next)>) {
        let key = kind::PACKET << 32 | u64::from(item);
        match self.shapes.of(item).packet.to.node() {
            None => self.switch_step(next, key, item, action, found),
            Some(node) => {
                let input = Input::Packet(self.shapes.packet(item));
                self.node_step(next, node.index(), key, input, None, action, found);
            }
        }
    }

    fn switch_step(
        &mut self,
        before: World,
        key: u64,
        item: Item,
        action: Action,
        found: &mut Vec<(Action, Next)>,
    ) {
        let next = self.at_switch(before.switch, key, item).and_then(|steps| {
            let (mut next, step) = (before, &steps[0]);
            next.switch = step.local;
            step.sends.iter().try_for_each(|item| next.packets.push(*item))?;
            step.again.iter().try_for_each(|item| next.again.push(*item))?;
            Ok(next)
        });
        found.push((action, next));
    }

    /// An input at a node; `thread` is the one whose turn it is.
    #[allow(clippy::too_many_arguments, reason = "all of them are what the step is about")]
    fn node_step(
        &mut self,
        before: World,
        node: usize,
        key: u64,
        input: Input,
        thread: Option<(usize, u8)>,
        action: Action,
        found: &mut Vec<(Action, Next)>,
    ) {
        match self.at_node(node, before.nodes[node], key, input) {
            Err(what) => found.push((action, Err(what))),
            Ok(steps) => {
                for step in steps.iter() {
                    let next = self.after(before, node, step, thread);
                    found.push((action, next));
                }
            }
        }
    }

    fn after(&self, before: World, node: usize, step: &Step, thread: Option<(usize, u8)>) -> Next {
        let mut next = before;
        next.nodes[node] = step.local;
        step.sends.iter().try_for_each(|item| next.packets.push(*item))?;
        if let (Some((at, turn)), Some(started)) = (thread, step.started) {
            next.threads[at].doing = match started {
                Started::Slot(slot) => Doing::Waiting { slot: slot.0 as u8, turn },
                Started::Join(slot) => Doing::Joining { slot: slot.0 as u8 },
                Started::Pinned(frame) => Doing::Pinned { frame: frame.0 as u8, turn },
                Started::Retry | Started::Full => Doing::Idle,
            };
        }
        for (slot, outcome) in &step.completed {
            self.complete(&mut next, node, *slot, *outcome)?;
        }
        Ok(next)
    }

    fn complete(&self, next: &mut World, node: usize, slot: u8, outcome: Outcome) -> Result<(), String> {
        let size = self.size.threads;
        for (thread, plan) in next.threads[..size].iter_mut().zip(self.scope.threads) {
            if usize::from(plan.node) != node {
                continue;
            }
            thread.doing = match (thread.doing, outcome) {
                (Doing::Joining { slot: waits_for }, _) if waits_for == slot => Doing::Idle,
                (Doing::Waiting { slot: waits_for, turn }, outcome) if waits_for == slot => match outcome {
                    Outcome::Pinned(frame) => Doing::Pinned { frame: frame.0 as u8, turn },
                    Outcome::Retry => Doing::Idle,
                    Outcome::Locked => Doing::Holding { slot, turn },
                    outcome => return Err(format!("an operation of node {node} ended with {outcome:?}")),
                },
                (doing, _) => doing,
            };
        }
        let held = next.threads[..size].iter().zip(self.scope.threads).filter_map(|(thread, plan)| {
            let Doing::Holding { turn, .. } = thread.doing else { return None };
            Some(plan.may[usize::from(turn)])
        });
        let held: Vec<Turn> = held.collect();
        let alone = held.iter().all(|it| match it {
            Turn::LockWrite(block) => {
                let same = |it: &&Turn| matches!(it, Turn::LockRead(b) | Turn::LockWrite(b) if b == block);
                held.iter().filter(same).count() == 1
            }
            _ => true,
        });
        if alone { Ok(()) } else { Err(format!("a lock is held by several: {held:?}")) }
    }

    fn thread(&mut self, world: &World, at: usize, found: &mut Vec<(Action, Next)>) {
        let (thread, plan) = (world.threads[at], self.scope.threads[at]);
        let node = usize::from(plan.node);
        match thread.doing {
            Doing::Idle if thread.turns > 0 => {
                for (turn, what) in (0..).zip(plan.may) {
                    let key = kind::TURN << 32 | turn_key(*what);
                    let action = Action::Begin(at as u8, turn);
                    self.node_step(*world, node, key, Input::Turn(*what), Some((at, turn)), action, found);
                }
            }
            Doing::Pinned { frame, turn } => {
                let mut next = *world;
                next.threads[at].doing = Doing::Idle;
                next.threads[at].turns -= 1;
                let (block, write) = match plan.may[usize::from(turn)] {
                    Turn::Write(block) => (block, true),
                    Turn::Read(block) | Turn::LockRead(block) | Turn::LockWrite(block) => (block, false),
                };
                if write {
                    self.write(&mut next, u64::from(block));
                }
                let key =
                    kind::ACCESS << 32 | u64::from(frame) << 16 | u64::from(block) << 8 | u64::from(write);
                let frame = FrameId(u32::from(frame));
                let input = Input::Access { frame, block, write };
                self.node_step(next, node, key, input, None, Action::Access(at as u8, turn), found);
            }
            Doing::Holding { slot, .. } => {
                let mut next = *world;
                next.threads[at].doing = Doing::Idle;
                next.threads[at].turns -= 1;
                let input = Input::Release(wire::SlotId(u16::from(slot)));
                let key = kind::RELEASE << 32 | u64::from(slot);
                self.node_step(next, node, key, input, None, Action::Release(at as u8), found);
            }
            Doing::Idle | Doing::Waiting { .. } | Doing::Joining { .. } => {}
        }
    }

    /// All that there is of the block is old from now on.
    fn write(&mut self, next: &mut World, block: u64) {
        for at in 0..self.size.nodes {
            next.nodes[at] = self.age(at, next.nodes[at], block);
        }
        let shapes = &self.shapes;
        next.packets.as_mut_slice().iter_mut().for_each(|item| *item = shapes.aged(*item, block));
    }

    fn timers(&mut self, world: &World, found: &mut Vec<(Action, Next)>) {
        let busy = |doing| matches!(doing, Doing::Pinned { .. } | Doing::Holding { .. });
        let nothing_else = world.packets.as_slice().is_empty()
            && world.again.as_slice().is_empty()
            && !world.threads.iter().any(|thread| busy(thread.doing));
        for node in 0..self.size.nodes {
            let timers = self.nodes[node].facts[world.nodes[node] as usize].timers.clone();
            for timer in &timers {
                let timer = *timer;
                let overlaps = |other: &Timer| matches!((timer, other), (Timer::Backoff(slot), Timer::Unlock(its, _)) if slot == *its);
                if self.scope.patient && timers.iter().any(overlaps) {
                    continue;
                }
                let mut next = *world;
                let free = matches!(timer, Timer::Backoff(_) | Timer::Epoch) || nothing_else;
                if !free {
                    if world.left.premature == 0 {
                        continue;
                    }
                    next.left.premature -= 1;
                }
                let key = kind::FIRE << 32 | timer_key(timer);
                let action = Action::Fire(node as u8, timer);
                self.node_step(next, node, key, Input::Fire(timer), None, action, found);
            }
        }
    }

    /// What nobody in the rack decides: which entries move, which blocks are freed.
    fn control(&mut self, world: &World, found: &mut Vec<(Action, Next)>) {
        for block in 0..self.scope.blocks {
            let low = u64::from(block);
            if world.left.adds > 0 {
                let mut next = *world;
                next.left.adds -= 1;
                let key = kind::HOT << 32 | low;
                self.node_step_if_it_changes(next, key, Input::Hot(block), Action::Hot(block), found);
            }
            if world.left.removes > 0 {
                let mut next = *world;
                next.left.removes -= 1;
                let key = kind::COLD << 32 | low;
                self.node_step_if_it_changes(next, key, Input::Cold(block), Action::Cold(block), found);
            }
            // Its life is over, so nobody accesses it any more; but events may still be closing.
            let done = world.threads[..self.size.threads].iter().all(|thread| thread.is_done());
            if world.left.purges > block && done {
                let mut next = *world;
                next.left.purges = block;
                let key = kind::PURGE << 32 | low;
                self.node_step(next, 0, key, Input::Purge(block), None, Action::Purge(block), found);
            }
        }
    }

    fn node_step_if_it_changes(
        &mut self,
        before: World,
        key: u64,
        input: Input,
        action: Action,
        found: &mut Vec<(Action, Next)>,
    ) {
        let at = found.len();
        self.node_step(before, 0, key, input, None, action, found);
        if matches!(&found[at].1, Ok(next) if next.nodes[0] == before.nodes[0]) {
            found.truncate(at);
        }
    }

    // What must hold

    /// Makes a new state canonical, and checks it: a single writer or many readers, and every copy is the latest.
    pub(super) fn admit(&mut self, world: &mut World) -> Result<(), String> {
        self.make_canonical(world);
        for block in 0..u64::from(self.scope.blocks) {
            let (mut copies, mut writers) = (0, 0);
            for (node, local) in world.nodes[..self.size.nodes].iter().enumerate() {
                let facts = &self.nodes[node].facts[*local as usize];
                for (_, writable, latest) in facts.copies.iter().filter(|copy| copy.0 == block) {
                    copies += 1;
                    writers += u32::from(*writable);
                    if !latest {
                        return Err(format!("node {node} has block {block}, and not as it was written last"));
                    }
                }
            }
            if writers > 0 && copies > 1 {
                return Err(format!("block {block} has {copies} copies, {writers} of which may be written"));
            }
        }
        Ok(())
    }

    /// True if everything is over.
    pub(super) fn is_at_rest(&self, world: &World) -> bool {
        world.packets.as_slice().is_empty()
            && world.again.as_slice().is_empty()
            && world.threads[..self.size.threads].iter().all(|thread| thread.is_done())
            && self.nodes.iter().zip(world.nodes).all(|(place, local)| place.facts[local as usize].is_quiet)
    }

    /// What must hold then.
    pub(super) fn check_at_rest(&mut self, world: &World) -> Result<(), String> {
        let purged = world.left.purges < self.scope.purges;
        if !self.checked_at_rest.insert((world.nodes, world.switch, purged)) {
            return Ok(());
        }
        let locals = self.nodes.iter().zip(world.nodes).map(|(place, local)| &**place.locals.get(local));
        let locals: Vec<&Local> = locals.collect();
        self.machines.check_at_rest(&locals, self.switch.locals.get(world.switch), purged)
    }

    /// What cannot go on, for messages.
    pub(super) fn describe(&self, world: &World) -> String {
        let mut text = String::new();
        for (node, (place, local)) in self.nodes.iter().zip(world.nodes).enumerate() {
            text += &format!("node {node}: {:?}\n", place.locals.get(local));
        }
        text + &format!("switch: {:?}\n", self.switch.locals.get(world.switch))
    }
}

/// The kinds of input, as the upper half of a key.
mod kind {
    pub(super) const PACKET: u64 = 0;
    pub(super) const AGAIN: u64 = 1;
    pub(super) const TURN: u64 = 2;
    pub(super) const ACCESS: u64 = 3;
    pub(super) const RELEASE: u64 = 4;
    pub(super) const FIRE: u64 = 5;
    pub(super) const HOT: u64 = 6;
    pub(super) const COLD: u64 = 7;
    pub(super) const PURGE: u64 = 8;
}

fn turn_key(turn: Turn) -> u64 {
    match turn {
        Turn::Read(block) => u64::from(block),
        Turn::Write(block) => 1 << 8 | u64::from(block),
        Turn::LockRead(block) => 2 << 8 | u64::from(block),
        Turn::LockWrite(block) => 3 << 8 | u64::from(block),
    }
}

fn timer_key(timer: Timer) -> u64 {
    match timer {
        Timer::Backoff(slot) => u64::from(slot.0),
        Timer::Event(slot) => 1 << 8 | u64::from(slot.0),
        Timer::Unlock(slot, parity) => (2 + parity as u64) << 8 | u64::from(slot.0),
        Timer::Move => 4 << 8,
        Timer::Epoch => 5 << 8,
    }
}

/// Makes the key of a local state and its small numbers; false if those are what it has.
fn small_key(facts: &Facts, local: u32, under_way: &UnderWay, key: &mut Vec<u8>) -> bool {
    key.clear();
    key.extend_from_slice(&local.to_le_bytes());
    let mut differs = false;
    for (requester, seq, how) in &facts.numbers {
        let small = under_way.small(usize::from(*requester), u64::from(*seq), *how) as u8;
        differs |= small != *seq;
        key.push(small);
    }
    differs
}

impl Shapes {
    /// From which place to which a packet goes.
    fn way(&self, item: Item) -> (u16, u16) {
        let place = |endpoint: Endpoint| endpoint.node().map_or(u16::MAX, |node| node.0);
        let packet = &self.of(item).packet;
        (place(packet.from), place(packet.to))
    }
}
