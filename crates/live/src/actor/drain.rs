//! The loop over a node's inbox, for the thread that has entered the node's actor.
//!
//! What must always hold: when this returns, nothing that was left before the last look is left, every effect has been
//! dispatched under the lock of the actor, and the actor knows its deadline.

use wire::NodeId;

use super::operations::Driver;
use super::{Input, NodeMachines, ThreadContext};

/// Dispatches what follows from a call, and lets the machines handle what is left for them, also what they leave for
/// themselves meanwhile. What follows from one input is dispatched before the next: that keeps messages from one actor to
/// another in order.
pub(crate) fn drain(
    driver: &impl Driver,
    node: NodeId,
    machines: &mut NodeMachines,
    context: &mut ThreadContext,
) {
    let (left, store) = (driver.actor(node), &mut driver.store(node));
    let (mut batch, mut next) = (std::mem::take(&mut context.batch), 0);
    loop {
        if !context.effects.is_empty() || !context.lock_effects.is_empty() {
            driver.dispatch(machines, store, context);
        }
        if next == batch.len() {
            batch.clear();
            left.collect(&mut batch);
            next = 0;
        }
        let Some(input) = batch.get(next) else { break };
        next += 1;
        let at = machines.again(context);
        let (mut all, kept) = machines.all();
        match input {
            Input::Message(message) => {
                all.on_packet(at, message, store, &mut context.effects);
                machines.show_peeked(&message.packet, &context.effects, store);
            }
            Input::Unpinned(frame) => all.node.on_unpinned(at, *frame, store, &mut context.effects),
            Input::Lock(message) => {
                all.on_lock_packet(at, message, &mut store.of_locks(kept), &mut context.lock_effects);
            }
            Input::Left(lock) => {
                all.locks.on_left(at, *lock, &mut store.of_locks(kept), &mut context.lock_effects);
            }
        }
    }
    context.batch = batch;
    left.set_deadline(machines.all().0.next_deadline());
}
