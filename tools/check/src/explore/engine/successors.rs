//! What can happen in any rack; and the engine as what is searched.

use super::{Action, Call, Engine, Finds, Input, Packets, Rack, Step, Successors};
use crate::explore::search::Space;
use crate::explore::world::{DUPLICATE, Fault, Item, LOSS, World};

impl<R: Rack> Step<R> {
    /// Its packets are in flight.
    fn sent(&self, mut next: World) -> Result<World, String> {
        self.sends.iter().try_for_each(|item| next.packets.push(*item))?;
        self.again.iter().try_for_each(|item| next.again.push(*item))?;
        Ok(next)
    }
}

impl<R: Rack> Engine<R>
where
    Self: Successors<R>,
{
    /// The state in which this may happen once less, if it may.
    pub(in crate::explore) fn spend(&mut self, world: &World, fault: Fault) -> Option<World> {
        let mut outside = self.outside(world);
        outside.left = outside.left.without(fault)?;
        Some(World { outside: self.intern_outside(outside), ..*world })
    }

    fn deliveries(&mut self, world: &World, found: &mut Finds<R>) {
        let (lossy, twice) = (self.spend(world, LOSS), self.spend(world, DUPLICATE));
        let packets = world.packets.as_slice();
        for (at, item) in packets.iter().enumerate() {
            let before = at.checked_sub(1).map(|before| packets[before]);
            let waits = match before {
                Some(before) if self.plan.reorder => before == *item,
                Some(before) => self.packets.way(before) == self.packets.way(*item),
                None => false,
            };
            if waits || !self.may_arrive(world, *item) {
                continue;
            }
            let mut without = *world;
            without.packets.remove(at);
            self.deliver(&without, *item, Action::Deliver(*item), found);
            if let Some(twice) = &twice
                && self.may_come_twice(*item)
            {
                self.deliver(twice, *item, Action::Duplicate(*item), found);
            }
            if let Some(World { outside, .. }) = lossy {
                found.push((Action::Lose(*item), Ok(World { outside, ..without })));
            }
        }
    }

    fn second_passes(&mut self, world: &World, found: &mut Finds<R>) {
        let again = world.again.as_slice();
        for (at, item) in again.iter().enumerate().take(if R::PASSES_IN_ORDER { 1 } else { again.len() }) {
            let mut next = *world;
            next.again.remove(at);
            self.switch_step(&next, *item, Action::Resubmit(*item), found);
        }
    }

    fn deliver(&mut self, world: &World, item: Item, action: Action<R::Timer>, found: &mut Finds<R>) {
        match self.packets.to(item) {
            None => self.switch_step(world, item, action, found),
            Some(node) => self.node_step(world, node.index(), Input::Packet(item), action, found),
        }
    }

    fn switch_step(&mut self, world: &World, item: Item, action: Action<R::Timer>, found: &mut Finds<R>) {
        let steps = self.at_switch(world.switch, item, matches!(action, Action::Resubmit(_)));
        let next = steps.and_then(|steps| steps[0].sent(World { switch: steps[0].local, ..*world }));
        found.push((action, next));
    }

    /// Whatever can come of an input at a node.
    pub(in crate::explore) fn node_step(
        &mut self,
        world: &World,
        node: usize,
        input: Input<Item, R::Input>,
        action: Action<R::Timer>,
        found: &mut Finds<R>,
    ) {
        let thread = match action {
            Action::Thread(thread, turn, _) => Some((usize::from(thread), turn)),
            _ => None,
        };
        let call = Call { node, before: world.nodes[node], input: &input, thread };
        match self.at_node(node, call.before, &input) {
            Err(what) => found.push((action, Err(what))),
            Ok(steps) => {
                for step in steps.iter() {
                    let next = step.sent(*world).and_then(|mut next| {
                        next.nodes[node] = step.local;
                        self.take(&mut next, &call, step)?;
                        Ok(next)
                    });
                    found.push((action, next));
                }
            }
        }
    }

    /// The same for what the control plane wants, unless the node has nothing to do.
    pub(in crate::explore) fn node_step_if_it_changes(
        &mut self,
        world: &World,
        node: usize,
        input: R::Input,
        action: Action<R::Timer>,
        found: &mut Finds<R>,
    ) {
        let at = found.len();
        self.node_step(world, node, Input::Own(input), action, found);
        if matches!(&found[at].1, Ok(next) if next.nodes[node] == world.nodes[node]) {
            found.truncate(at);
        }
    }

    /// Puts packets in order, without those that nobody takes.
    pub(in crate::explore) fn make_canonical(&mut self, world: &mut World) {
        for at in (0..world.packets.as_slice().len()).rev() {
            if !self.counts(world, world.packets.as_slice()[at]) {
                world.packets.remove(at);
            }
        }
        self.renumber(world);
        if !R::PASSES_IN_ORDER {
            world.again.as_mut_slice().sort_unstable();
        }
        if self.plan.reorder {
            world.packets.as_mut_slice().sort_unstable();
        } else {
            // Stable: packets between the same two components keep their order.
            world.packets.as_mut_slice().sort_by_key(|item| self.packets.way(*item));
        }
    }
}

impl<R: Rack> Space for Engine<R>
where
    Self: Successors<R>,
{
    type State = World;
    type Action = Action<R::Timer>;
    type Coverage = R::Coverage;

    fn encode(&self, world: &World, words: &mut Vec<u32>) {
        world.encode(self.nodes.len(), words);
    }

    fn decode(&self, words: &[u32]) -> World {
        World::decode(self.nodes.len(), words)
    }

    fn expand(&mut self, world: &World, found: &mut Finds<R>) {
        found.clear();
        self.deliveries(world, found);
        self.second_passes(world, found);
        for thread in 0..self.threads() {
            self.thread(world, thread, found);
        }
        self.others(world, found);
    }

    fn admit(&mut self, world: &mut World) -> Result<(), String> {
        self.make_canonical(world);
        self.check(world)?;
        while let Some(at) = self.first(world) {
            let (item, mut without, mut found) = (world.packets.as_slice()[at], *world, Vec::new());
            without.packets.remove(at);
            self.deliver(&without, item, Action::Deliver(item), &mut found);
            let told = |what| format!("{what}\n  {}", self.line(Action::Deliver(item)));
            let [(_, next)] = found.as_mut_slice() else { unreachable!("chance decides nothing of it") };
            *world = std::mem::replace(next, Err(String::new())).map_err(told)?;
            self.make_canonical(world);
            self.check(world)?;
        }
        Ok(())
    }

    fn is_at_rest(&self, world: &World) -> bool {
        world.packets.is_empty() && world.again.is_empty() && self.is_over(world)
    }

    fn check_at_rest(&mut self, world: &World) -> Result<(), String> {
        Successors::check_at_rest(self, world)
    }

    fn describe(&self, world: &World) -> String {
        let mut text = format!("{:?}\n", self.outside(world));
        for (node, local) in self.locals(world).iter().enumerate() {
            text += &format!("node {node}: {local:?}\n");
        }
        text + &format!("switch: {:?}\n", self.switch.locals.get(world.switch))
    }

    fn tell(&self, action: Action<R::Timer>) -> String {
        self.line(action)
    }

    fn local_states(&self) -> Vec<usize> {
        self.nodes.iter().map(|component| component.locals.len()).chain([self.switch.locals.len()]).collect()
    }

    fn coverage(&self) -> R::Coverage {
        self.coverage.clone()
    }
}
