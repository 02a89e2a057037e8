//! The control plane of a rack: what stops, who finds out, and who is told when.
//!
//! What must always hold: a node hears of epochs in order, and one that comes back does nothing before it has heard of
//! the one that it lives in.

use node::{Kept, Placement, View};
use wire::{Copyset, Incarnation, NodeId, SwitchEpoch};

use super::{Fault, Place, Rack, World};

/// The first epoch. Nodes that come back are made in epoch 0, in which nobody is.
pub const FIRST: SwitchEpoch = SwitchEpoch(1);

/// What a node has been told.
#[derive(Clone, Debug)]
pub struct Known {
    /// The epoch that it is in.
    pub epoch: SwitchEpoch,
    /// Who is up in it.
    pub live: Copyset,
    /// The last incarnation of every node that it has heard of.
    pub incarnations: Vec<Incarnation>,
    /// The same of memories with copies.
    pub lives: Vec<Incarnation>,
}

/// What the control plane knows and does.
#[derive(Clone, Debug)]
pub struct Control {
    /// The rack as it was announced last.
    view: View,
    /// The incarnation that each node is in, or was in last.
    incarnations: Vec<Incarnation>,
    /// The nodes that run.
    up: Copyset,
    /// The switch runs.
    switch_up: bool,
    /// Something has stopped or started that nobody has been told of.
    changed: bool,
    /// Nodes that have not been told of the last view.
    untold: Copyset,
    /// What each node has been told.
    known: Vec<Known>,
    /// Which nodes have each memory with copies whole; those that have died do not.
    memories: Vec<Kept>,
}

impl Control {
    pub(super) fn new(nodes: usize, copies: usize) -> Self {
        let memories = if copies > 1 { nodes } else { 0 };
        let up = (0..nodes as u16).map(NodeId).collect();
        let who = Placement { nodes, copies, up, draining: Copyset::EMPTY };
        let anew = |i| Kept::anew(Incarnation(0), i, &who);
        let memories: Vec<Kept> = (0..memories).map(anew).collect();
        let incarnations = vec![Incarnation(0); nodes];
        let view = View {
            epoch: FIRST,
            incarnations: incarnations.iter().copied().map(Some).collect(),
            shadow: NodeId(0),
            memories: memories.clone(),
        };
        let known = Known {
            epoch: FIRST,
            live: view.live(),
            incarnations: incarnations.clone(),
            lives: lives(&memories),
        };
        Self {
            up: view.live(),
            view,
            incarnations,
            switch_up: true,
            changed: false,
            untold: Copyset::EMPTY,
            known: vec![known; nodes],
            memories,
        }
    }

    /// What it knows when everybody has been told of this; and the incarnation that each node is in, or was in last.
    pub(crate) fn settled(view: View, incarnations: Vec<Incarnation>) -> Self {
        let (live, lives) = (view.live(), lives(&view.memories));
        let known = Known { epoch: view.epoch, live, incarnations: incarnations.clone(), lives };
        Self {
            up: view.live(),
            known: vec![known; incarnations.len()],
            view,
            incarnations,
            switch_up: true,
            changed: false,
            untold: Copyset::EMPTY,
            memories: Vec::new(),
        }
    }

    /// True if packets reach a place.
    pub fn is_up(&self, place: Place) -> bool {
        place.map_or(self.switch_up, |node| self.up.contains(node))
    }

    /// The nodes that run.
    pub fn up(&self) -> Copyset {
        self.up
    }

    /// True if a node has died since the rack began.
    pub fn has_lost_a_node(&self) -> bool {
        self.up.len() < self.incarnations.len()
            || self.incarnations.iter().any(|incarnation| *incarnation > Incarnation(0))
    }

    /// True if the node runs, and has been told of the incarnation that it is in.
    pub fn works(&self, node: NodeId) -> bool {
        self.up.contains(node) && self.known(node).epoch >= FIRST
    }

    /// True if everything runs that is to run, and everybody knows.
    pub fn is_settled(&self) -> bool {
        self.switch_up && !self.changed && self.untold.is_empty()
    }

    /// The rack as it was announced last.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// What a node has been told.
    pub fn known(&self, node: NodeId) -> &Known {
        &self.known[node.index()]
    }

    /// The incarnation that a node is in, or was in last.
    pub fn incarnation(&self, node: NodeId) -> Incarnation {
        self.incarnations[node.index()]
    }

    /// True if this memory has copies, and one of them is left.
    pub fn has_copy(&self, memory: NodeId) -> bool {
        let nth = memory.index().checked_sub(self.incarnations.len());
        nth.and_then(|nth| self.memories.get(nth)).is_some_and(|kept| !kept.by.is_empty())
    }

    /// The incarnation of a home, as far as a node knows.
    pub fn known_incarnation(&self, node: NodeId, home: NodeId) -> Incarnation {
        let Known { incarnations, lives, .. } = self.known(node);
        incarnations.get(home.index()).copied().unwrap_or_else(|| lives[home.index() - incarnations.len()])
    }

    /// True if what this node thinks is the home's memory is still there.
    pub fn remembers(&self, home: NodeId, incarnation: Incarnation) -> bool {
        if let Some(nth) = home.index().checked_sub(self.incarnations.len()) {
            return self.has_copy(home) && self.memories[nth].life == incarnation;
        }
        self.up.contains(home) && self.incarnation(home) == incarnation
    }
}

impl<W: World<M, Message = M>, M: Copy> Rack<W, M> {
    /// Something stops, or starts again, or the control plane does something about it.
    pub(super) fn control_step(&mut self) -> Result<(), String> {
        let restarts = self.bench.restarts();
        let mut happens = |times: u32| self.bench.random.below(10_000) < times as usize;
        let (switch, node, shadow) =
            (happens(restarts.switch), happens(restarts.node), happens(restarts.shadow));
        if switch && self.bench.control.switch_up {
            self.stop_switch();
        }
        let nodes = self.bench.plan.nodes;
        if node {
            let node = NodeId(self.bench.random.below(nodes) as u16);
            if !self.bench.control.up.contains(node) {
                self.start_node(node);
            } else if self.bench.control.up.len() > 1 {
                self.stop_node(node);
            }
        }
        if shadow && self.bench.control.switch_up {
            self.restart_shadow();
        }
        if !self.bench.control.is_settled() {
            match self.bench.random.below(40) {
                0 => self.announce()?,
                1..=3 => self.tell_somebody()?,
                _ => {}
            }
        }
        if self.bench.control.up.len() < nodes && self.bench.random.below(1500) == 0 {
            let down = |node: &NodeId| !self.bench.control.up.contains(*node);
            if let Some(node) = (0..nodes as u16).map(NodeId).find(down) {
                self.start_node(node);
            }
        }
        Ok(())
    }

    /// Nodes die whose time has come.
    pub(super) fn scheduled_deaths(&mut self, step: usize) {
        for (_, node) in self.bench.plan.deaths.into_iter().flatten().filter(|(at, _)| *at == step) {
            if self.bench.control.up.contains(node) && self.bench.control.up.len() > 1 {
                self.stop_node(node);
            }
        }
    }

    /// Some nodes come back, and everybody is told of everything.
    pub(super) fn settle_control(&mut self) -> Result<(), String> {
        for node in (0..self.bench.plan.nodes as u16).map(NodeId) {
            if !self.bench.control.up.contains(node) && self.bench.random.per_mille(500) {
                self.start_node(node);
            }
        }
        self.announce()?;
        while !self.bench.control.untold.is_empty() {
            self.tell_somebody()?;
        }
        Ok(())
    }

    /// The switch loses all that it knows.
    fn stop_switch(&mut self) {
        self.bench.note(None, || "=== the switch stops".to_owned());
        self.bench.control.switch_up = false;
        self.bench.control.changed = true;
        self.bench.counts.note(Fault::SwitchStopped);
        self.world.on_switch_stopped(&mut self.bench);
    }

    /// What nodes have copied since the epoch began.
    fn hear_of_copies(&mut self) {
        let nodes = self.bench.plan.nodes as u16;
        for node in (0..nodes).map(NodeId) {
            let (epoch, whole) = self.world.whole_memories(node);
            let control = &mut self.bench.control;
            if control.works(node) && epoch == control.view.epoch {
                for nth in whole.iter() {
                    let kept = &mut control.memories[nth.index()];
                    kept.by = kept.by.with(node);
                }
            }
        }
    }

    /// A node dies, with its threads and all that it had.
    fn stop_node(&mut self, node: NodeId) {
        self.bench.note(None, || format!("=== {node} dies"));
        self.hear_of_copies();
        let control = &mut self.bench.control;
        control.up = control.up.without(node);
        control.untold = control.untold.without(node);
        control.changed = true;
        for kept in &mut control.memories {
            kept.by = kept.by.without(node);
        }
        self.bench.counts.note(Fault::NodeDied);
        self.world.on_node_stopped(&mut self.bench, node);
    }

    /// A node comes back, with empty memory.
    fn start_node(&mut self, node: NodeId) {
        self.bench.note(None, || format!("=== {node} comes back"));
        let control = &mut self.bench.control;
        let incarnation = &mut control.incarnations[node.index()];
        *incarnation = Incarnation(incarnation.0 + 1);
        let known = &mut control.known[node.index()];
        known.epoch = SwitchEpoch(0);
        known.incarnations.fill(Incarnation(0));
        control.up = control.up.with(node);
        control.changed = true;
        self.bench.counts.note(Fault::NodeReturned);
        self.world.on_node_started(&mut self.bench, node);
    }

    fn restart_shadow(&mut self) {
        let shadow = self.bench.control.view.shadow;
        if self.bench.control.works(shadow) && self.bench.control.is_settled() {
            self.bench.counts.note(Fault::ShadowRestarted);
            self.world.on_shadow_restarted(&mut self.bench, shadow);
        }
    }

    /// The control plane has found out: a new epoch begins. The switch is in it at once.
    fn announce(&mut self) -> Result<(), String> {
        if !self.bench.control.changed {
            return Ok(());
        }
        self.hear_of_copies();
        self.world.on_epoch_ends(&mut self.bench);
        let control = &mut self.bench.control;
        let view = &mut control.view;
        let (nodes, copies, up) = (control.incarnations.len(), self.bench.plan.copies, control.up);
        let leaver = NodeId((view.epoch.0 as usize / 3 % nodes) as u16);
        let drains = self.bench.plan.drains && view.epoch.0.is_multiple_of(3);
        let draining = if drains { Copyset::only(leaver) } else { Copyset::EMPTY };
        let who = Placement { nodes, copies, up, draining };
        for (i, kept) in control.memories.iter_mut().enumerate().filter(|(_, kept)| kept.by.is_empty()) {
            *kept = Kept::anew(Incarnation(kept.life.0 + 1), i, &who);
        }
        for (i, kept) in control.memories.iter_mut().enumerate() {
            kept.place(i, &who);
        }
        view.memories.clone_from(&control.memories);
        view.epoch = SwitchEpoch(view.epoch.0 + 1);
        for (node, incarnation) in view.incarnations.iter_mut().enumerate() {
            *incarnation = control.up.contains(NodeId(node as u16)).then_some(control.incarnations[node]);
        }
        if !control.up.contains(view.shadow) {
            view.shadow = control.up.iter().next().expect("one node is always up");
        }
        control.switch_up = true;
        control.changed = false;
        control.untold = control.up;
        self.bench.note(None, || format!("=== {:?}", self.bench.control.view));
        self.bench.counts.note(Fault::Epoch);
        self.world.on_epoch_begins(&mut self.bench);
        while self.bench.plan.told_at_once && !self.bench.control.untold.is_empty() {
            self.tell_somebody()?;
        }
        Ok(())
    }

    /// One node hears of the epoch.
    fn tell_somebody(&mut self) -> Result<(), String> {
        let drawn = self.bench.random.bits() as u32;
        let control = &mut self.bench.control;
        let Some(node) = control.untold.pick(drawn) else { return Ok(()) };
        control.untold = control.untold.without(node);
        let known = &mut control.known[node.index()];
        let before = known.clone();
        known.epoch = control.view.epoch;
        known.live = control.view.live();
        known.lives = lives(&control.view.memories);
        for (known, incarnation) in known.incarnations.iter_mut().zip(&control.view.incarnations) {
            *known = incarnation.unwrap_or(*known);
        }
        self.bench.note(None, || format!("=== {node} hears of the epoch"));
        self.world.on_new_epoch(&mut self.bench, node, &before)
    }
}

fn lives(memories: &[Kept]) -> Vec<Incarnation> {
    memories.iter().map(|kept| kept.life).collect()
}
