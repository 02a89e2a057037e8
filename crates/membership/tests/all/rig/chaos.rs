//! What goes wrong in a random run, besides messages: processes are stopped, killed, started; links are cut.

use wire::{Nanos, NodeId};

use super::world::{Rig, TIMEOUT};

pub(crate) struct Chaos {
    pub(crate) next: u64,
    pub(crate) kinds: [u32; 11],
}

impl Rig {
    /// From now on things go wrong.
    pub(crate) fn unleash(&mut self) {
        self.chaos = Some(Chaos { next: self.now, kinds: [0; 11] });
    }

    /// Nothing more goes wrong: what is stopped goes on, what is cut is joined, what is not there is started.
    pub(crate) fn calm(&mut self) {
        self.chaos = None;
        self.list(self.nodes);
        self.faults = super::Faults::default();
        self.cut.clear();
        self.narrow.clear();
        if self.control.is_none() {
            self.start_coordinator();
        }
        if let Some(control) = &mut self.control {
            control.stopped_until = control.stopped_until.min(self.now);
        }
        for process in &mut self.processes {
            process.stopped_until = process.stopped_until.min(self.now);
        }
    }

    /// Every node without a process gets one.
    pub(crate) fn fill(&mut self) {
        for node in (0..self.nodes).map(NodeId) {
            if !self.running().any(|it| it.node == node) {
                self.start(node, true);
            }
        }
    }

    fn some_process(&mut self) -> Option<usize> {
        let running: Vec<_> = (0..self.processes.len()).filter(|at| self.is_running(*at)).collect();
        let at = self.random.below(running.len() as u64) as usize;
        running.get(at).copied()
    }

    fn is_running(&self, at: usize) -> bool {
        !self.processes[at].killed && !self.processes[at].member.is_over()
    }

    fn span(&mut self) -> Nanos {
        let most = [TIMEOUT.0 / 20, TIMEOUT.0, 3 * TIMEOUT.0][self.random.below(3) as usize];
        Nanos(self.random.below(most))
    }

    pub(crate) fn wreak(&mut self) {
        let kind = self.random.below(18);
        let span = self.span();
        let node = NodeId(self.random.below(self.nodes.into()) as u16);
        let until = self.now + span.0;
        let counted = match kind {
            0..=2 => {
                if let Some(at) = self.some_process() {
                    self.stop_for(at, span);
                }
                0
            }
            3 | 4 => {
                if let Some(at) = self.some_process() {
                    self.processes[at].killed = true;
                }
                1
            }
            5..=8 => {
                let alone = !self.running().any(|it| it.node == node);
                // Now and then a second process of a node, where none has made sure that it is alone.
                let open = self.running().filter(|it| it.node == node).all(|it| !it.sole);
                let few = self.running().filter(|it| it.node == node).count() < 2;
                if alone || open && few && self.random.per_mille(200) {
                    let sole = alone && self.random.per_mille(500);
                    self.start(node, sole);
                }
                2
            }
            9 => {
                if let Some(at) = self.some_process() {
                    self.leave(at);
                }
                3
            }
            10 | 11 => {
                let from = self.random.per_mille(500);
                self.cut(node, from, span);
                if self.random.per_mille(500) {
                    self.cut(node, !from, span);
                }
                4
            }
            12 => {
                if let Some(control) = &mut self.control {
                    control.stopped_until = until;
                }
                5
            }
            13 if self.random.per_mille(500) => {
                self.control = None;
                6
            }
            14 => {
                self.narrow.insert(node, until);
                8
            }
            16 => {
                if let Some(at) = self.some_process() {
                    let draining = self.random.per_mille(500);
                    self.drain(at, draining);
                }
                9
            }
            17 => {
                self.list(self.listed + 1);
                10
            }
            _ => {
                if self.control.is_none() {
                    self.start_coordinator();
                }
                7
            }
        };
        let next = self.now + self.random.below(TIMEOUT.0 / 2);
        if let Some(chaos) = &mut self.chaos {
            chaos.next = next;
            chaos.kinds[counted] += 1;
        }
    }
}
