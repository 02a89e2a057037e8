//! The rack of a scenario, and the pencil that writes down what happens on it.
//!
//! What must always hold: nothing that happens while the stage is set is drawn; times count from the first thing that
//! is.

use std::cell::RefCell;
use std::rc::Rc;

use node::Access;
use sim::coherence::{Config, Contents, FlowCc, SimMessage};
use sim::fault::{Rules, drop_all, nth, only};
use sim::rack::{Rack, Setup, Trace, Until};
use sim::system::{Fault, Place, ThreadId};
use wire::{BlockSize, Discipline, GlobalAddr, Nanos, NodeId, PacketKind, Status};

use super::Scenario;
use super::chart::{Chart, Step, What};

/// Threads on each node.
const THREADS: u16 = 2;
/// Frames of a cache: one bucket.
const FRAMES: u64 = 8;

/// What a scenario plays on.
pub(super) struct Stage {
    rack: Rack<FlowCc>,
    rules: Option<Rules<SimMessage>>,
    paper: Rc<RefCell<Paper>>,
}

/// What has been written down.
#[derive(Default)]
struct Paper {
    steps: Vec<Step>,
    /// Messages in flight, with their steps.
    open: Vec<(SimMessage, usize)>,
    switch: usize,
}

impl Stage {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let nodes = scenario.nodes;
        let block = BlockSize::MIN;
        let config = Config {
            threads: usize::from(THREADS),
            block,
            cache: FRAMES * block.bytes(),
            memory: 1 << 16,
            contents: Contents::Bytes,
            switch_entries: 70,
            directory: scenario.directory,
            queue: scenario.queue,
            check: true,
            ..Config::new(nodes)
        };
        let setup = Setup { threads: usize::from(THREADS), check: true, ..Setup::new(nodes).exact() };
        let paper = Paper { switch: nodes.min(1), ..Paper::default() };
        Self {
            rack: Rack::new(setup, FlowCc::new(config)),
            rules: Some(Rules::none()),
            paper: Rc::new(RefCell::new(paper)),
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

    /// Plays what was set up, and returns what was written down.
    pub(super) fn end(mut self, title: &str) -> Chart {
        let begin = self.rack.now();
        let paper = Rc::clone(&self.paper);
        self.rack.observe(Box::new(move |at, trace| paper.borrow_mut().write(at, trace)));
        self.rack.set_rules(self.rules.take().unwrap_or_default());
        self.rack.run(Until::WorkersDone);
        // What follows asynchronously: unlocks and their acknowledgements.
        let rest = self.rack.now() + Nanos::from_micros(12);
        self.idle_until(rest);
        let nodes = self.rack.setup().nodes;
        let switch = self.paper.borrow().switch;
        let mut columns: Vec<String> = (0..nodes).map(|node| format!("node {node}")).collect();
        columns.insert(switch, "switch".into());
        let mut steps = std::mem::take(&mut self.paper.borrow_mut().steps);
        steps.sort_by_key(|step| step.at);
        let first = steps.first().map_or(begin, |step| step.at);
        for step in &mut steps {
            step.at = step.at.saturating_sub(first);
            if let What::Message { handled: Some(handled), .. } = &mut step.what {
                *handled = handled.saturating_sub(first);
            }
        }
        Chart { title: title.into(), columns, steps }
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

fn column(node: NodeId, switch: usize) -> usize {
    let index = node.index();
    if index < switch { index } else { index + 1 }
}

fn note(paper: &Rc<RefCell<Paper>>, at: Nanos, column: usize, text: String) {
    paper.borrow_mut().steps.push(Step { at, what: What::Note { column, text } });
}

impl Paper {
    fn write(&mut self, at: Nanos, trace: &Trace<'_, SimMessage>) {
        match trace {
            Trace::Sent { message: sim_message @ SimMessage::Message(message), envelope } => {
                let (from, to) = (self.place(envelope.from), self.place(envelope.to));
                let what = What::Message {
                    from,
                    to,
                    handled: None,
                    label: label(sim_message),
                    block: message.data.is_some(),
                };
                self.open.push((**sim_message, self.steps.len()));
                self.steps.push(Step { at, what });
            }
            Trace::Handled { message: sim_message @ SimMessage::Message(_), .. } => {
                if let Some(step) = self.close(sim_message)
                    && let What::Message { handled, .. } = &mut self.steps[step].what
                {
                    *handled = Some(at);
                }
            }
            Trace::Lost { message, .. } => {
                self.close(message);
            }
            Trace::Handled { message: SimMessage::Again(_), .. } => {
                let what = What::Note { column: self.switch, text: "second pass".into() };
                self.steps.push(Step { at, what });
            }
            Trace::Fault(fault) => {
                let (column, text) = self.fault(*fault);
                self.steps.push(Step { at, what: What::Note { column, text } });
            }
            _ => {}
        }
    }

    fn close(&mut self, sim_message: &SimMessage) -> Option<usize> {
        let same = |open: &SimMessage| open.packet() == sim_message.packet();
        let index = self.open.iter().position(|(open, _)| same(open))?;
        Some(self.open.remove(index).1)
    }

    fn place(&self, place: Place) -> usize {
        match place {
            Place::Switch => self.switch,
            Place::Node(node) => column(node, self.switch),
        }
    }

    fn fault(&self, fault: Fault) -> (usize, String) {
        match fault {
            Fault::NodeStops(node) => (column(node, self.switch), "dies".into()),
            Fault::NodeRestarts(node) => (column(node, self.switch), "is back, empty".into()),
            Fault::SwitchStops => (self.switch, "dies".into()),
            Fault::SwitchRestarts => (self.switch, "is back, empty; a new epoch".into()),
            Fault::ShadowStops => (column(NodeId(0), self.switch), "loses the shadow".into()),
            Fault::ShadowRestarts => (column(NodeId(0), self.switch), "reads the shadow anew".into()),
        }
    }
}

/// What a packet says, in a few words.
fn label(sim_message: &SimMessage) -> String {
    let packet = sim_message.packet();
    let mut label = name(packet.kind);
    if matches!(
        packet.kind,
        PacketKind::Ack
            | PacketKind::WriteBack
            | PacketKind::WriteBackAck
            | PacketKind::Close
            | PacketKind::CloseAck
    ) {
        if let SimMessage::Message(message) = sim_message
            && message.data.is_some()
        {
            label += " + block";
        }
    } else if packet.provider && packet.kind.is_request() {
        label += " (give data)";
    }
    if let Status::Refused(why) = packet.status
        && packet.kind == PacketKind::Ack
    {
        label += &format!(": refused, {why:?}");
    }
    label
}

/// A kind as the paper writes it: `ReadMiss` is READ-MISS.
fn name(kind: PacketKind) -> String {
    let mut out = String::new();
    for (at, letter) in format!("{kind:?}").chars().enumerate() {
        if letter.is_uppercase() && at > 0 {
            out.push('-');
        }
        out.push(letter.to_ascii_uppercase());
    }
    out
}
