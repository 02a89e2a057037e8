//! The control plane of the little rack: what stops, who finds out, and who is told when.

use node::{Node, View};
use switch::flowcc::Dump;
use wire::{Copyset, Endpoint, Incarnation, NodeId, Rules, SwitchEpoch};

use super::PlainStore;
use super::run::Rack;
use super::threads::Doing;

/// What the control plane knows and does.
#[derive(Clone, Debug)]
pub(super) struct Control {
    /// The rack as it was announced last.
    view: View,
    /// The life that each node is in, or was in last.
    lives: Vec<Incarnation>,
    /// The nodes that run.
    up: Copyset,
    /// The switch runs.
    pub(super) switch_up: bool,
    /// Something has stopped or started that nobody has been told of.
    changed: bool,
    /// Nodes that have not been told of the last view.
    untold: Copyset,
    /// What the switch knew at the end of epochs that some node may still be in.
    dumps: Vec<Dump>,
    /// The epoch that each node is in.
    epochs: Vec<SwitchEpoch>,
    pub(super) restarts: Stops,
}

/// What stopped, how often.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Stops {
    pub switch: u64,
    pub nodes: u64,
    pub returns: u64,
    pub shadow: u64,
    pub epochs: u64,
}

impl Stops {
    /// Adds another run's.
    pub fn add(&mut self, other: &Self) {
        self.switch += other.switch;
        self.nodes += other.nodes;
        self.returns += other.returns;
        self.shadow += other.shadow;
        self.epochs += other.epochs;
    }

    /// Places that stopped or started.
    pub fn total(&self) -> u64 {
        self.switch + self.nodes + self.returns + self.shadow
    }
}

/// The first epoch. Nodes that come back are made in epoch 0, in which nobody is.
pub(super) const FIRST: SwitchEpoch = SwitchEpoch(1);

impl Control {
    pub(super) fn new(nodes: usize) -> Self {
        let view = View { epoch: FIRST, lives: vec![Some(Incarnation(0)); nodes], shadow: NodeId(0) };
        Self {
            up: view.live(),
            view,
            lives: vec![Incarnation(0); nodes],
            switch_up: true,
            changed: false,
            untold: Copyset::EMPTY,
            dumps: Vec::new(),
            epochs: vec![FIRST; nodes],
            restarts: Stops::default(),
        }
    }

    pub(super) fn is_up(&self, node: NodeId) -> bool {
        self.up.contains(node)
    }

    /// True if the node has been told of the life that it is in.
    pub(super) fn works(&self, node: NodeId) -> bool {
        self.up.contains(node) && self.epochs[node.index()] >= FIRST
    }

    pub(super) fn is_settled(&self) -> bool {
        self.switch_up && !self.changed && self.untold.is_empty()
    }

    /// The epoch that a node is in.
    pub(super) fn epoch_of(&self, node: NodeId) -> SwitchEpoch {
        self.epochs[node.index()]
    }

    /// True if what this node thinks is the home's memory is still there.
    pub(super) fn remembers(&self, home: NodeId, life: Incarnation) -> bool {
        self.up.contains(home) && self.lives[home.index()] == life
    }
}

impl<R: Rules> Rack<R> {
    /// Something stops, or starts again, or the control plane does something about it.
    pub(super) fn control(&mut self) {
        let restarts = self.plan.restarts;
        let mut happens = |times: u32| self.random.below(10_000) < times as usize;
        let (switch, node, shadow) =
            (happens(restarts.switch), happens(restarts.node), happens(restarts.shadow));
        if switch && self.control.switch_up {
            self.stop_switch();
        }
        if node {
            let node = NodeId(self.random.below(self.nodes.len()) as u16);
            if !self.control.is_up(node) {
                self.start_node(node);
            } else if self.control.up.len() > 1 {
                self.stop_node(node);
            }
        }
        if shadow && self.control.switch_up {
            self.restart_shadow();
        }
        if !self.control.is_settled() {
            match self.random.below(40) {
                0 => self.announce(),
                1..=3 => self.tell_somebody(),
                _ => {}
            }
        }
        if self.control.up.len() < self.nodes.len() && self.random.below(1500) == 0 {
            let down = |node: &NodeId| !self.control.is_up(*node);
            if let Some(node) = (0..self.nodes.len() as u16).map(NodeId).find(down) {
                self.start_node(node);
            }
        }
    }

    /// Tells everybody everything, at once.
    pub(super) fn settle_control(&mut self) {
        self.announce();
        while !self.control.untold.is_empty() {
            self.tell_somebody();
        }
    }

    fn trace_control(&self, what: &str) {
        if self.plan.trace {
            eprintln!("{:>9} === {what}", self.now.0);
        }
    }

    /// The switch loses all that it knows.
    pub fn stop_switch(&mut self) {
        self.trace_control("the switch stops");
        self.control.switch_up = false;
        self.control.changed = true;
        self.control.restarts.switch += 1;
        self.resubmits.clear();
    }

    /// A node dies, with its threads.
    pub fn stop_node(&mut self, node: NodeId) {
        self.trace_control(&format!("{node} dies"));
        self.control.up = self.control.up.without(node);
        self.control.changed = true;
        self.control.restarts.nodes += 1;
        for index in 0..self.threads.len() {
            if self.threads[index].node == node {
                if let Doing::Holding { tag, on_paper: false, .. } = self.threads[index].doing {
                    self.let_go(tag);
                }
                self.threads[index].doing = Doing::Idle;
            }
        }
        self.live.retain(|addr| addr.home() != node);
        self.report.protocol.add(self.nodes[node.index()].0.counters());
    }

    /// A node comes back, with empty memory.
    pub fn start_node(&mut self, node: NodeId) {
        self.trace_control(&format!("{node} comes back"));
        let life = &mut self.control.lives[node.index()];
        *life = Incarnation(life.0 + 1);
        let config = node::Config {
            incarnation: *life,
            switch_epoch: SwitchEpoch(0),
            ..self.nodes[node.index()].0.config().clone()
        };
        let store = PlainStore::new(config.block, self.plan.buckets);
        self.nodes[node.index()] = (Node::with_rules(config), store);
        self.lives_known[node.index()].fill(Incarnation(0));
        self.control.epochs[node.index()] = SwitchEpoch(0);
        self.control.up = self.control.up.with(node);
        self.control.untold = self.control.untold.without(node);
        self.control.changed = true;
        self.control.restarts.returns += 1;
    }

    fn restart_shadow(&mut self) {
        let shadow = self.control.view.shadow;
        if self.control.works(shadow) && self.control.is_settled() {
            self.control.restarts.shadow += 1;
            let tags: Vec<_> = self.switch.entries().map(|(tag, _)| tag).collect();
            self.nodes[shadow.index()].0.on_shadow_restarted(tags);
        }
    }

    /// The control plane has found out: a new epoch begins. The switch is in it at once.
    fn announce(&mut self) {
        if !self.control.changed {
            return;
        }
        self.trace_control("a new epoch");
        let control = &mut self.control;
        if control.switch_up {
            control.dumps.push(self.switch.dump());
        }
        let oldest = control.up.iter().map(|node| control.epochs[node.index()]).min().unwrap_or(FIRST);
        control.dumps.retain(|dump| dump.epoch >= oldest);
        let view = &mut control.view;
        view.epoch = SwitchEpoch(view.epoch.0 + 1);
        for (node, life) in view.lives.iter_mut().enumerate() {
            *life = control.up.contains(NodeId(node as u16)).then_some(control.lives[node]);
        }
        if !control.up.contains(view.shadow) {
            view.shadow = control.up.iter().next().expect("one node is always up");
        }
        self.switch.restart(view.epoch);
        self.switch.set_shadow(view.shadow);
        control.switch_up = true;
        control.changed = false;
        control.untold = control.up;
        control.restarts.epochs += 1;
    }

    /// One node hears of the epoch.
    fn tell_somebody(&mut self) {
        let Some(node) = self.control.untold.pick(self.random.bits() as u32) else { return };
        self.trace_control(&format!("{node} hears of the epoch"));
        self.control.untold = self.control.untold.without(node);
        let view = self.control.view.clone();
        let left = self.control.epochs[node.index()];
        let dump = self.control.dumps.iter().find(|dump| dump.epoch == left).cloned();
        self.control.epochs[node.index()] = view.epoch;
        self.forget_locks_of_the_dead(node, &view);
        self.call(node, |node, at, store, out| node.on_new_epoch(at, &view, dump.as_ref(), store, out));
    }

    /// Threads of a node hold locks of dead homes on paper only.
    fn forget_locks_of_the_dead(&mut self, node: NodeId, view: &View) {
        for index in 0..self.threads.len() {
            let thread = self.threads[index];
            if let Doing::Holding { slot, tag, until, on_paper: false } = thread.doing
                && thread.node == node
                && view.lives[tag.home().index()] != Some(self.lives_known[node.index()][tag.home().index()])
            {
                self.let_go(tag);
                self.threads[index].doing = Doing::Holding { slot, tag, until, on_paper: true };
            }
        }
        for (known, life) in self.lives_known[node.index()].iter_mut().zip(&view.lives) {
            *known = life.unwrap_or(*known);
        }
    }

    pub(crate) fn is_up(&self, node: NodeId) -> bool {
        self.control.is_up(node)
    }

    /// True if a node has died since the rack began.
    pub(crate) fn has_lost_a_node(&self) -> bool {
        self.control.restarts.nodes > 0
    }

    /// True if a packet reaches somebody there.
    pub(super) fn arrives(&self, to: Endpoint) -> bool {
        match to.node() {
            None => self.control.switch_up,
            Some(node) => self.control.is_up(node),
        }
    }
}
