//! The control plane: what happens to the machines when one stops or comes back.
//!
//! It runs beside the rack's data path, and takes no time: it knows of a fault at the moment of the fault, reads the
//! switch's directory if the switch is alive, and tells every live node at once. What takes time is what the nodes then do
//! about it: reports and their handling, and operations that begin again. `node::recovery` says what that is.
//!
//! What must always hold: every change of who is alive begins a new epoch, once there is a switch; a node that stopped has
//! nothing of what it knew.

use node::{Node, View};
use switch::coherence::Dump;
use wire::{BlockTag, Incarnation, NodeId, Rules, SwitchEpoch};

use super::memory::Memory;
use super::{FlowCc, SimMessage};
use crate::home::Home;
use crate::system::{Call, Fault};

/// The epoch that a rack begins in. Nothing but a node that has not been told anything is in the one before.
pub(crate) const FIRST: SwitchEpoch = SwitchEpoch(1);

/// Who is alive.
pub(super) struct Control {
    epoch: SwitchEpoch,
    /// Each node's incarnation.
    incarnations: Vec<Incarnation>,
    up: Vec<bool>,
    shadow: NodeId,
    pub(super) shadow_up: bool,
    switch_up: bool,
}

impl Control {
    pub(super) fn new(nodes: usize, shadow: NodeId) -> Self {
        Self {
            epoch: FIRST,
            incarnations: vec![Incarnation(0); nodes],
            up: vec![true; nodes],
            shadow,
            shadow_up: true,
            switch_up: true,
        }
    }

    fn live(&self) -> impl Iterator<Item = NodeId> {
        self.up.iter().enumerate().filter(|(_, up)| **up).map(|(index, _)| id(index))
    }

    fn view(&self) -> View {
        let incarnation = |(incarnation, up): (&Incarnation, &bool)| up.then_some(*incarnation);
        View {
            epoch: self.epoch,
            incarnations: self.incarnations.iter().zip(&self.up).map(incarnation).collect(),
            shadow: self.shadow,
            memories: Vec::new(),
        }
    }
}

fn id(index: usize) -> NodeId {
    NodeId(u16::try_from(index).expect("at most 64 nodes"))
}

/// A new epoch begins: what every live node is to be told.
pub(crate) struct NewEpoch {
    pub(crate) view: View,
    /// What the switch knew, if it lives.
    pub(crate) dump: Option<Dump>,
}

impl<R: Rules> FlowCc<R> {
    /// What a fault does to the machines. The nodes that live are to be told of the epoch that begins.
    #[must_use]
    pub(crate) fn change(&mut self, fault: Fault) -> Option<NewEpoch> {
        match fault {
            Fault::NodeStops(node) => {
                self.control.up[node.index()] = false;
                self.forget(node);
                self.next_epoch()
            }
            Fault::NodeRestarts(node) => {
                self.control.up[node.index()] = true;
                self.next_epoch()
            }
            Fault::SwitchStops => {
                self.control.switch_up = false;
                None
            }
            Fault::SwitchRestarts => {
                self.switch.restart(self.control.epoch);
                self.control.switch_up = true;
                Some(self.new_epoch(None))
            }
            Fault::ShadowStops => {
                self.control.shadow_up = false;
                None
            }
            Fault::ShadowRestarts => {
                self.control.shadow_up = true;
                let tags: Vec<BlockTag> = self.switch.dump().entries.iter().map(|(tag, _)| *tag).collect();
                self.nodes[self.control.shadow.index()].on_shadow_restarted(tags);
                None
            }
        }
    }

    /// True until every live node has reported to every home, and every home has rebuilt its directory.
    pub fn is_recovering(&self) -> bool {
        self.control.live().any(|node| self.nodes[node.index()].is_recovering())
    }

    /// True unless the node has stopped.
    pub fn is_up(&self, node: NodeId) -> bool {
        self.control.up[node.index()]
    }

    /// A node's machines begin a new incarnation, and hear nothing until they are told of an epoch.
    fn forget(&mut self, node: NodeId) {
        let incarnation = &mut self.control.incarnations[node.index()];
        incarnation.0 += 1;
        let config = node::NodeConfig { incarnation: *incarnation, ..self.config.of_node(node) };
        let config = node::NodeConfig { switch_epoch: SwitchEpoch(0), ..config };
        self.nodes[node.index()] = Node::with_rules(self.rules, config);
        let coherence = &self.config;
        self.memories[node.index()] =
            Memory::new(coherence.block, (coherence.cache, coherence.placement), coherence.contents);
        self.homes[node.index()] = Home::new(coherence.block, coherence.memory, coherence.contents);
        self.waits.forget(node);
    }

    /// Somebody died or came back. While the switch is down, everything waits for it.
    fn next_epoch(&mut self) -> Option<NewEpoch> {
        self.control.switch_up.then(|| {
            let dump = self.switch.dump();
            self.new_epoch(Some(dump))
        })
    }

    pub(super) fn new_epoch(&mut self, dump: Option<Dump>) -> NewEpoch {
        let control = &mut self.control;
        control.epoch.0 += 1;
        if !control.up[control.shadow.index()] {
            let next = control.live().next();
            (control.shadow, control.shadow_up) = (next.unwrap_or(control.shadow), true);
        }
        self.switch.restart(control.epoch);
        self.switch.set_shadow(control.shadow);
        NewEpoch { view: control.view(), dump }
    }

    pub(super) fn tell_all(&mut self, call: &mut Call<'_, SimMessage>, new: &NewEpoch) {
        let NewEpoch { view, dump } = new;
        for node in view.live().iter() {
            self.call_node(call, node, |node, at, store, out| {
                node.on_new_epoch(at, view, dump.as_ref(), store, out);
            });
        }
    }
}
