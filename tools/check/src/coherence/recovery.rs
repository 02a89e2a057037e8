//! What stops and starts again, as far as blocks are concerned.

use node::{Node, View};
use switch::coherence::Dump;
use wire::{Incarnation, NodeId, Rules, SwitchEpoch};

use super::PlainStore;
use super::blocks::Blocks;
use super::threads::Doing;
use crate::rack::{Bench, Control, FIRST, Known};

impl<R: Rules> Blocks<R> {
    /// A node dies, with its threads.
    pub(super) fn stop(&mut self, control: &Control, node: NodeId) {
        self.survival.died(Self::life(control, node));
        for index in 0..self.threads.len() {
            if self.threads[index].node == node {
                if let Doing::Holding { tag, on_paper: false, .. } = self.threads[index].doing {
                    self.let_go(tag);
                }
                self.threads[index].doing = Doing::Idle;
            }
        }
        let nodes = self.nodes.len();
        let is_there =
            |home: NodeId| if home.index() < nodes { home != node } else { control.has_copy(home) };
        self.live.retain(|addr| is_there(addr.home()));
        let gone: Vec<_> = self.latest.keys().copied().filter(|tag| !is_there(tag.home())).collect();
        gone.into_iter().for_each(|tag| self.survival.zeroed(tag));
        self.others.retain(|addr, _| addr.home() != node);
        self.guests.retain(|(caller, _), _| *caller != node);
        self.seen.protocol.add(self.nodes[node.index()].0.counters());
    }

    /// A node comes back, with empty memory.
    pub(super) fn start_anew(&mut self, node: NodeId, incarnation: Incarnation) {
        let config = node::NodeConfig {
            incarnation,
            switch_epoch: SwitchEpoch(0),
            ..self.nodes[node.index()].0.config().clone()
        };
        let store = PlainStore::new(config.block, self.plan.buckets);
        self.nodes[node.index()] = (Node::with_rules(self.rules, config), store);
    }

    /// An epoch ends: what the switch knows is kept for those who are still in it.
    pub(super) fn dump(&mut self, control: &Control) {
        if control.is_up(None) {
            self.dumps.push(self.switch.dump());
        }
        let oldest = control.up().iter().map(|node| control.known(node).epoch).min().unwrap_or(FIRST);
        self.dumps.retain(|dump| dump.epoch >= oldest);
    }

    /// One node hears of the epoch: what it is told.
    pub(crate) fn hears<M: Copy>(
        &mut self,
        bench: &mut Bench<M>,
        node: NodeId,
        before: &Known,
    ) -> (View, Option<Dump>) {
        let view = bench.view().clone();
        let dump = self.dumps.iter().find(|dump| dump.epoch == before.epoch).cloned();
        // Threads of a node hold locks of dead homes on paper only.
        for index in 0..self.threads.len() {
            let thread = self.threads[index];
            if let Doing::Holding { slot, tag, until, on_paper: false } = thread.doing
                && thread.node == node
                && match tag.home().index().checked_sub(self.nodes.len()) {
                    Some(nth) => view.memories[nth].life != before.lives[nth],
                    None => {
                        let home = tag.home().index();
                        view.incarnations[home] != Some(before.incarnations[home])
                    }
                }
            {
                self.let_go(tag);
                self.threads[index].doing = Doing::Holding { slot, tag, until, on_paper: true };
            }
        }
        (view, dump)
    }
}
