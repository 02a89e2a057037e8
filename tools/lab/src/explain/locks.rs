//! The rack of a scenario of locks that carry their data.
//!
//! What must always hold: nothing that happens while the stage is set is drawn.

use std::cell::RefCell;
use std::rc::Rc;

use sim::locks::{self, Costs, Locks, SimLocksConfig, SimMessage};
use sim::rack::{Rack, Setup, Until};
use sim::system::{ThreadId, Want};
use wire::{GlobalAddr, Mode, Nanos, NodeId};

use super::chart::Chart;
use super::paper::{Paper, column, note};
use super::stage::THREADS;

/// What a scenario of locks plays on.
pub(super) struct LockStage {
    rack: Rack<Locks>,
    paper: Rc<RefCell<Paper<SimMessage>>>,
}

impl LockStage {
    /// As racks of processes are: a home's processor answers for its memory.
    pub(super) fn new(nodes: usize) -> Self {
        let threads = usize::from(THREADS);
        let config = SimLocksConfig {
            threads,
            blades: false,
            costs: Costs::LIBRARY,
            check: true,
            ..SimLocksConfig::new(nodes)
        };
        let setup = Setup { threads, agents: locks::AGENTS, check: true, ..Setup::new(nodes).exact() };
        let paper = Rc::new(RefCell::new(Paper::new(nodes)));
        Self { rack: Rack::new(setup, Locks::new(config)), paper }
    }

    /// A lock whose home is this node, which another node has had for writing last.
    pub(super) fn held(&mut self, home: u16, holder: u16) -> (GlobalAddr, u32) {
        let lock = self.rack.with_system_mut(|system| system.allocate(NodeId(home))).expect("there is room");
        let region = (lock, self.rack.with_system(|system| system.config().len));
        self.rack.run_one(ThreadId(holder * THREADS), move |mut handle| async move {
            let inside = handle.enter(region, Mode::Write, Want::Waits).await.expect("nobody has it");
            handle.leave(inside).await;
            // What follows asynchronously.
            let rest = handle.now() + Nanos::from_micros(20);
            handle.sleep_until(rest).await;
        });
        region
    }

    /// A thread gets into the lock for writing, and stays so long.
    pub(super) fn write(
        &mut self,
        (node, thread): (u16, u16),
        at: Nanos,
        region: (GlobalAddr, u32),
        stays: Nanos,
    ) {
        let (paper, column) = (Rc::clone(&self.paper), column(NodeId(node), self.paper.borrow().switch));
        let at = self.rack.now() + at;
        self.rack.spawn(ThreadId(node * THREADS + thread), move |mut handle| async move {
            handle.sleep_until(at).await;
            note(&paper, handle.now(), column, format!("thread {thread} wants to write"));
            let inside = handle.enter(region, Mode::Write, Want::Waits).await.expect("it is there");
            note(&paper, handle.now(), column, format!("thread {thread} is inside"));
            let until = handle.now() + stays;
            handle.sleep_until(until).await;
            note(&paper, handle.now(), column, format!("thread {thread} leaves"));
            handle.leave(inside).await;
        });
    }

    /// Plays what was set up, and returns what was written down.
    pub(super) fn end(mut self, title: &str) -> Chart {
        let begin = self.rack.now();
        let paper = Rc::clone(&self.paper);
        self.rack.observe(Box::new(move |at, trace| paper.borrow_mut().write(at, trace)));
        self.rack.run(Until::WorkersDone);
        // What follows asynchronously.
        let rest = self.rack.now() + Nanos::from_micros(12);
        self.rack.run_one(ThreadId(0), |mut handle| async move { handle.sleep_until(rest).await });
        let nodes = self.rack.setup().nodes;
        self.paper.borrow_mut().chart(title, nodes, begin)
    }
}
