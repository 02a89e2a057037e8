//! The loop over a node's inbox, for whoever holds the node's place.
//!
//! What must always hold: when this returns, nothing that was left before the last look is left, every effect has been
//! dispatched under the lock of the place, and the place knows its deadline.

use node::Moment;
use wire::Nanos;

use super::{Courier, Input, NodePlace, Place};
use crate::memory::StoreOf;

impl Place<NodePlace> {
    /// Lets the machines handle what is left for them, also what they leave for themselves meanwhile. `on_lock` handles what
    /// is for the node's locks. `dispatch` is called after each input, for what follows from it: that keeps messages from one
    /// place to another in order.
    pub(crate) fn drain(
        &self,
        machine: &mut NodePlace,
        store: &mut StoreOf<'_>,
        courier: &mut Courier,
        now: Nanos,
        mut on_lock: impl FnMut(&mut NodePlace, &mut Courier, Moment, Input),
        mut dispatch: impl FnMut(&mut NodePlace, &mut Courier),
    ) {
        let now = machine.at(now);
        let mut batch = std::mem::take(&mut courier.batch);
        loop {
            self.collect(&mut batch);
            if batch.is_empty() {
                break;
            }
            for input in batch.drain(..) {
                let at = Moment { now, random: courier.random() };
                match input {
                    Input::Message(message) => {
                        machine.machines().on_packet(at, &message, store, &mut courier.effects);
                        machine.show_peeked(&message.packet, &courier.effects, store);
                    }
                    Input::Unpinned(frame) => {
                        machine.node.on_unpinned(at, frame, store, &mut courier.effects);
                    }
                    Input::Lock(_) | Input::Left(_) => on_lock(machine, courier, at, input),
                }
                dispatch(machine, courier);
            }
        }
        courier.batch = batch;
        self.set_deadline(machine.machines().next_deadline());
    }
}
