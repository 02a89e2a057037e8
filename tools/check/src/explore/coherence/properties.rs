//! What must hold in every state, and what when everything is over; and all else that the engine is told.

use super::world::PURGE;
use super::{Blocks, Call, Engine, Finds, Step};
use crate::explore::engine::Successors;
use crate::explore::world::{Item, World};

impl Successors<Blocks> for Engine {
    fn may_come_twice(&self, item: Item) -> bool {
        self.scope.twice.is_none_or(|only| only == self.packets.of(item).packet.kind)
    }

    fn thread(&mut self, world: &World, thread: usize, found: &mut Finds<Blocks>) {
        self.go_on(world, thread, found);
    }

    fn others(&mut self, world: &World, found: &mut Finds<Blocks>) {
        self.timers(world, found);
        self.control(world, found);
    }

    fn take(&mut self, next: &mut World, call: &Call<Blocks>, step: &Step<Blocks>) -> Result<(), String> {
        self.tell_threads(next, call, step)
    }

    fn renumber(&mut self, world: &mut World) {
        self.make_small(world);
    }

    /// A single writer or many readers, and every copy is the latest.
    fn check(&self, world: &World) -> Result<(), String> {
        for block in 0..u64::from(self.scope.blocks) {
            let (mut copies, mut writers) = (0, 0);
            for node in 0..self.nodes.len() {
                for (_, writable, latest) in self.facts(world, node).copies.iter().filter(|it| it.0 == block)
                {
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

    fn is_over(&self, world: &World) -> bool {
        (0..self.nodes.len()).all(|node| self.facts(world, node).is_quiet)
            && self.all_are_done(&self.outside(world))
    }

    fn check_at_rest(&mut self, world: &World) -> Result<(), String> {
        let purged = self.outside(world).left.times(PURGE) < self.scope.purges;
        let locals = self.locals(world);
        self.machines.check_at_rest(&locals, self.switch.locals.get(world.switch), purged)
    }
}
