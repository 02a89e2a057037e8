//! Bound queue pairs: the switch's own, with their ends at the memory.
//!
//! What must always hold: the memory's end of one is reset before the next one begins.

use nic::verbs::{Depth, Mtu, ToReceive, ToSend};
use switch::chains::{Bound, End, Sent};
use wire::roce::{Psn, QpNumber};
use wire::{Nanos, NodeId, Rules};

use super::{Event, Flight, MEMORY, World};
use crate::steered::nic::BASE;

impl<R: Rules> World<R> {
    /// The switch's number as a node.
    pub(super) const fn switch_node(&self) -> usize {
        self.nics.len()
    }

    /// A bound queue pair begins, anew if there was one.
    pub(super) fn bind(&mut self, at: usize) {
        if let Some(old) = self.bound[at].take() {
            let mut out = std::mem::take(&mut self.out);
            self.nics[MEMORY].device.fail(Nanos(self.now), old, &mut out).unwrap();
            self.carry_out(MEMORY, &[], out);
        }
        let first_psn = Psn::new((1 << 24) - 200 + self.random.below(400) as u32);
        let node = NodeId(self.switch_node() as u16);
        let own = QpNumber::new(1 + self.random.below(1 << 20) as u32);
        let nic = &mut self.nics[MEMORY];
        let pair = nic.device.create_queue_pair(nic.queue, nic.queue, Depth { sends: 1, receives: 1 });
        let binding = self.switch.config().binding;
        let receive = ToReceive {
            remembered: binding.atomics,
            ack_every: 1,
            ..ToReceive::new(node, own, Mtu::B256, first_psn)
        };
        nic.device.init(pair).unwrap();
        nic.device.ready_to_receive(pair, receive).unwrap();
        nic.device.ready_to_send(pair, ToSend::new(first_psn)).unwrap();
        let region = nic.key;
        self.bound[at] = Some(pair);
        let memory = End { node: NodeId(MEMORY as u16), queue_pair: pair };
        let switch = End { node, queue_pair: own };
        self.switch.bind(at, Bound { switch, memory, first_psn, region, base: BASE });
        self.send_own();
    }

    /// Those that are missing begin, at once or after a while.
    pub(super) fn bind_later(&mut self) {
        for at in self.switch.unbound().collect::<Vec<_>>() {
            let after = if self.random.below(2) == 0 { 1 } else { 1 + self.random.below(1_500) };
            self.schedule(after, Event::Bind(at));
        }
    }

    /// What the switch sends by itself goes on its way.
    pub(super) fn send_own(&mut self) {
        while let Some(Sent { from, to, packet, word }) = self.switch.next_sent() {
            let bytes = word.map(|word| word.to_le_bytes().to_vec()).unwrap_or_default();
            let mut flight = Flight { from: from.0.into(), to: to.0.into(), packet, bytes };
            self.spoil(&mut flight);
            self.travel(flight, Event::AtNode);
        }
    }
}
