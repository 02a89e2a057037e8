//! What must hold in every state, and what when everything is over.

use super::Engine;
use crate::explore::flowcc::machines::Local;
use crate::explore::flowcc::world::World;

impl Engine {
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
