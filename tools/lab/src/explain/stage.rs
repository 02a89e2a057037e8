//! The rack of a scenario.
//!
//! What must always hold: nothing that happens while the stage is set is drawn; times count from the first thing that
//! is.

use std::cell::RefCell;
use std::rc::Rc;

use node::Access;
use sim::coherence::{Contents, FlowCc, FlowCcConfig, SimMessage};
use sim::fault::{Rules, drop_all, nth, only};
use sim::rack::{Rack, Setup, Until};
use sim::system::{Fault, ThreadId};
use wire::{BlockSize, Discipline, GlobalAddr, Nanos, NodeId, PacketKind};

use super::Scenario;
use super::chart::Chart;
use super::locks::LockStage;
use super::paper::{Paper, column, note};

/// Threads on each node.
pub(super) const THREADS: u16 = 2;
/// Frames of a cache: one bucket.
const FRAMES: u64 = 8;

/// What a scenario plays on.
pub(super) struct Stage {
    rack: Rack<FlowCc>,
    rules: Option<Rules<SimMessage>>,
    paper: Rc<RefCell<Paper<SimMessage>>>,
    locks: Option<LockStage>,
}

impl Stage {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let nodes = scenario.nodes;
        let block = BlockSize::MIN;
        let config = FlowCcConfig {
            threads: usize::from(THREADS),
            block,
            cache: FRAMES * block.bytes(),
            memory: 1 << 16,
            contents: Contents::Bytes,
            switch_entries: 70,
            directory: scenario.directory,
            queue: scenario.queue,
            check: true,
            ..FlowCcConfig::new(nodes)
        };
        let setup = Setup { threads: usize::from(THREADS), check: true, ..Setup::new(nodes).exact() };
        Self {
            rack: Rack::new(setup, FlowCc::new(config)),
            rules: Some(Rules::none()),
            paper: Rc::new(RefCell::new(Paper::new(nodes))),
            locks: None,
        }
    }

    // Setting the stage

    /// A block whose home is this node.
    pub(super) fn block(&mut self, home: u16) -> GlobalAddr {
        self.rack.with_system_mut(|system| {
            system
                .preload(1)
                .alloc(NodeId(home), BlockSize::MIN.bytes(), NodeId(home), Discipline::Coherent)
                .expect("the memory is empty")
        })
    }

    /// This node has the block cached.
    pub(super) fn cached(&mut self, node: u16, block: GlobalAddr, access: Access) {
        self.rack.with_system_mut(|system| {
            system.preload(1).cache(NodeId(node), block, access).expect("the block is allocated");
        });
    }

    /// The switch keeps the block's entry.
    pub(super) fn in_switch(&mut self, block: GlobalAddr) {
        self.rack.with_system_mut(|system| system.preload(1).to_switch(block));
    }

    /// The number-th packet of this kind (and of an event of that kind) is lost.
    pub(super) fn lose(&mut self, kind: PacketKind, event: PacketKind, number: u64) {
        let meant = move |sim_message: &SimMessage| {
            sim_message.packet().kind == kind && sim_message.packet().event == event
        };
        let rules = self.rules.take().unwrap_or_default();
        self.rules = Some(rules.with(only(meant, nth(number, drop_all()))));
    }

    /// Something stops or comes back.
    pub(super) fn at(&mut self, at: Nanos, fault: Fault) {
        let now = self.rack.now();
        self.rack.schedule(now + at, fault);
    }

    // What threads do

    /// A thread reads a word of the block.
    pub(super) fn read(&mut self, thread: (u16, u16), at: Nanos, block: GlobalAddr) {
        self.touch(thread, at, block, Access::Shared, 0);
    }

    /// A thread writes a word of the block.
    pub(super) fn write(&mut self, thread: (u16, u16), at: Nanos, block: GlobalAddr, value: u64) {
        self.touch(thread, at, block, Access::Modified, value);
    }

    fn touch(
        &mut self,
        (node, thread): (u16, u16),
        at: Nanos,
        block: GlobalAddr,
        access: Access,
        value: u64,
    ) {
        let (paper, column) = (Rc::clone(&self.paper), column(NodeId(node), self.paper.borrow().switch));
        let at = self.rack.now() + at;
        self.rack.spawn(ThreadId(node * THREADS + thread), move |mut handle| async move {
            handle.sleep_until(at).await;
            let verb = if access == Access::Shared { "reads" } else { "writes" };
            note(&paper, handle.now(), column, format!("thread {thread} {verb}"));
            let mut seen = 0;
            let done = handle
                .touch(block, 8, access, &mut |window| {
                    if access == Access::Modified {
                        window.set_word(0, value);
                    }
                    seen = window.word(0);
                })
                .await;
            let outcome = match (done, access) {
                (Ok(()), Access::Shared) => format!("thread {thread} has read {seen}"),
                (Ok(()), Access::Modified) => format!("thread {thread} has written {seen}"),
                (Err(why), _) => format!("thread {thread}: refused, {why:?}"),
            };
            note(&paper, handle.now(), column, outcome);
        });
    }

    /// The stage for locks that carry their data: what is played there is shown, and nothing else.
    pub(super) fn locks(&mut self) -> &mut LockStage {
        let nodes = self.rack.setup().nodes;
        self.locks.insert(LockStage::new(nodes))
    }

    /// Plays what was set up, and returns what was written down.
    pub(super) fn end(mut self, title: &str) -> Chart {
        if let Some(locks) = self.locks {
            return locks.end(title);
        }
        let begin = self.rack.now();
        let paper = Rc::clone(&self.paper);
        self.rack.observe(Box::new(move |at, trace| paper.borrow_mut().write(at, trace)));
        self.rack.set_rules(self.rules.take().unwrap_or_default());
        self.rack.run(Until::WorkersDone);
        // What follows asynchronously: unlocks and their acknowledgements.
        let rest = self.rack.now() + Nanos::from_micros(12);
        self.idle_until(rest);
        let nodes = self.rack.setup().nodes;
        self.paper.borrow_mut().chart(title, nodes, begin)
    }

    /// Lets the rack run with a thread that only waits.
    fn idle_until(&mut self, end: Nanos) {
        let nodes = self.rack.setup().nodes;
        let up = (0..nodes).rev().find(|node| {
            let node = NodeId(u16::try_from(*node).expect("few nodes"));
            self.rack.with_system(|system| system.is_up(node))
        });
        if let Some(node) = up {
            let thread = ThreadId(u16::try_from(node).expect("few nodes") * THREADS);
            self.rack.run_one(thread, |mut handle| async move { handle.sleep_until(end).await });
        }
    }
}
