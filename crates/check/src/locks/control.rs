//! The control plane of the rack of locks: what stops, who finds out, and who is told when.
//!
//! What must hold in it: a node hears of epochs in order, and one that comes back does nothing before it has heard of
//! the one that it lives in. A lock lives as long as its home does: everything here that is about a lock is
//! about one life of its home.

use node::{LockNode, View};
use wire::{Copyset, Incarnation, LockRules, NodeId, SwitchEpoch};

use super::run::LockRack;
use super::{PlainLocks, Thread};

/// The first epoch. Nodes that come back are made in epoch 0, in which nobody is.
pub(super) const FIRST: SwitchEpoch = SwitchEpoch(1);

/// What the control plane knows and does.
#[derive(Clone, Debug)]
pub(super) struct Control {
    /// The rack as it was announced last.
    view: View,
    /// The life that each node is in, or was in last.
    lives: Vec<Incarnation>,
    /// The nodes that run.
    up: Copyset,
    switch_up: bool,
    /// Something has stopped or started that nobody has been told of.
    changed: bool,
    /// Nodes that have not been told of the last view.
    untold: Copyset,
    /// The last view that each node was told of.
    told: Vec<View>,
    /// For each node, the last life of every other one that it was told of.
    known: Vec<Vec<Incarnation>>,
    pub(super) stops: LockStops,
}

/// What stopped, how often.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct LockStops {
    pub switch: u64,
    pub nodes: u64,
    pub returns: u64,
    pub epochs: u64,
}

impl LockStops {
    /// Adds another run's.
    pub fn add(&mut self, other: &Self) {
        self.switch += other.switch;
        self.nodes += other.nodes;
        self.returns += other.returns;
        self.epochs += other.epochs;
    }
}

impl Control {
    pub(super) fn new(nodes: usize) -> Self {
        let lives = vec![Incarnation(0); nodes];
        let view = View { epoch: FIRST, lives: lives.iter().copied().map(Some).collect(), shadow: NodeId(0) };
        Self {
            up: view.live(),
            told: vec![view.clone(); nodes],
            known: vec![lives.clone(); nodes],
            view,
            lives,
            switch_up: true,
            changed: false,
            untold: Copyset::EMPTY,
            stops: LockStops::default(),
        }
    }

    /// True if packets reach a place: a node, or else the switch.
    pub(super) fn is_up(&self, place: Option<NodeId>) -> bool {
        place.map_or(self.switch_up, |node| self.up.contains(node))
    }

    /// True if the node runs, and has been told of the life that it is in.
    pub(super) fn works(&self, node: NodeId) -> bool {
        self.up.contains(node) && self.told[node.index()].epoch >= FIRST
    }

    pub(super) fn is_settled(&self) -> bool {
        self.switch_up && !self.changed && self.untold.is_empty()
    }

    /// The life of a home, as far as a node knows.
    pub(super) fn life(&self, node: NodeId, home: NodeId) -> Incarnation {
        self.known[node.index()][home.index()]
    }

    /// True if the node was told that this home is up.
    pub(super) fn is_known_up(&self, node: NodeId, home: NodeId) -> bool {
        self.told[node.index()].live().contains(home)
    }
}

impl<R: LockRules> LockRack<R> {
    /// Something stops, or starts again, or the control plane does something about it.
    pub(super) fn control_step(&mut self) -> Result<(), String> {
        let restarts = self.plan.restarts;
        let mut happens = |times: u32| self.random.below(10_000) < times as usize;
        let (switch, node) = (happens(restarts.switch), happens(restarts.node));
        if switch && self.control.switch_up {
            self.stop_switch();
        }
        if node {
            let node = NodeId(self.random.below(self.nodes.len()) as u16);
            if !self.control.up.contains(node) {
                self.start_node(node);
            } else if self.control.up.len() > 1 {
                self.stop_node(node);
            }
        }
        if self.control.is_settled() {
            return Ok(());
        }
        match self.random.below(40) {
            0 => self.announce()?,
            1..=3 => self.tell_somebody()?,
            _ => {}
        }
        Ok(())
    }

    /// Some nodes come back, and everybody is told of everything.
    pub(super) fn settle_control(&mut self) -> Result<(), String> {
        for node in 0..self.nodes.len() {
            let node = NodeId(node as u16);
            if !self.control.up.contains(node) && self.random.per_mille(500) {
                self.start_node(node);
            }
        }
        self.announce()?;
        while !self.control.untold.is_empty() {
            self.tell_somebody()?;
        }
        Ok(())
    }

    fn stop_switch(&mut self) {
        self.tell(|| "=== the switch stops".to_owned());
        self.control.switch_up = false;
        self.control.changed = true;
        self.control.stops.switch += 1;
        self.again.clear();
    }

    /// A node dies, with its threads and all that it had.
    fn stop_node(&mut self, node: NodeId) {
        self.tell(|| format!("=== {node} dies"));
        self.control.up = self.control.up.without(node);
        self.control.untold = self.control.untold.without(node);
        self.control.changed = true;
        self.control.stops.nodes += 1;
        for thread in node.index() * self.plan.threads..(node.index() + 1) * self.plan.threads {
            if let Thread::Ending(want) | Thread::Freeing(want, _) = self.threads[thread] {
                self.losses.orphan(want.lock, want.life);
            }
            self.threads[thread] = Thread::Idle;
            self.waits.end(thread);
        }
        self.count(node.index());
        let config = node::locks::Config { epoch: SwitchEpoch(0), ..*self.nodes[node.index()].0.config() };
        self.nodes[node.index()] = (LockNode::with_rules(config), PlainLocks::new(self.plan.room));
        self.tenures.forget(Some(node));
    }

    /// A node comes back, with empty memory.
    fn start_node(&mut self, node: NodeId) {
        self.tell(|| format!("=== {node} comes back"));
        let control = &mut self.control;
        let life = &mut control.lives[node.index()];
        *life = Incarnation(life.0 + 1);
        control.told[node.index()].epoch = SwitchEpoch(0);
        control.known[node.index()].fill(Incarnation(0));
        control.up = control.up.with(node);
        control.changed = true;
        control.stops.returns += 1;
    }

    /// The control plane has found out: a new epoch begins. The switch is in it at once.
    fn announce(&mut self) -> Result<(), String> {
        if !self.control.changed {
            return Ok(());
        }
        let control = &mut self.control;
        let view = &mut control.view;
        view.epoch = SwitchEpoch(view.epoch.0 + 1);
        for (node, life) in view.lives.iter_mut().enumerate() {
            *life = control.up.contains(NodeId(node as u16)).then_some(control.lives[node]);
        }
        control.switch_up = true;
        control.changed = false;
        control.untold = control.up;
        control.stops.epochs += 1;
        let view = control.view.clone();
        self.tell(|| format!("=== {view:?}"));
        self.switch.restart(view.epoch);
        self.again.clear();
        self.tenures.forget(None);
        // What nobody sends again must not come before its receiver knows of the epoch.
        while !self.plan.repeats && !self.control.untold.is_empty() {
            self.tell_somebody()?;
        }
        Ok(())
    }

    /// One node hears of the epoch.
    fn tell_somebody(&mut self) -> Result<(), String> {
        let Some(node) = self.control.untold.pick(self.random.bits() as u32) else { return Ok(()) };
        self.tell(|| format!("=== {node} hears of the epoch"));
        let view = self.control.view.clone();
        let control = &mut self.control;
        control.untold = control.untold.without(node);
        let mut deaths = false;
        for (known, life) in control.known[node.index()].iter_mut().zip(&view.lives) {
            deaths |= *life != Some(*known);
            *known = life.unwrap_or(*known);
        }
        if deaths {
            self.losses.hears_of_death(node);
        }
        let control = &mut self.control;
        control.told[node.index()] = view.clone();
        self.tenures.forget_packets_of(node);
        let at = self.moment();
        let (machine, store) = &mut self.nodes[node.index()];
        machine.on_new_epoch(at, &view, store, &mut self.out);
        self.drain(node.index())
    }
}
