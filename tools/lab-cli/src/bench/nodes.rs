//! A rack that is measured, in this process or in a process for each node, and what the command asks of its nodes.
//!
//! What a node does is a benchmark's business ([`Work`]); it is the same in one process and in several. One order, one answer: the
//! command waits for all that it has asked.

use std::error::Error;
use std::ffi::OsString;
use std::ops::{Add, Range, Sub};
use std::thread;
use std::time::Duration;

use rackmem::{BlockSize, NodeHandle, NodeId, Rack, Scheduling};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::rounds::rack;
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::processes::child::{Never, Reason};
use cli::processes::place::{Assignment, Joined, RackSpec};
use cli::processes::rendezvous::RuntimeDir;
use cli::processes::{OnInterrupt, Orders, Rendezvous, Teller, TransportKind, Under, Workers};
use cli::ycsb::Directory;

/// What an order comes to: an answer, as [`answer`] makes it.
pub(crate) type Obeyed = Result<Value, Box<dyn Error + Send + Sync>>;

/// What one node of a rack does for a benchmark.
pub(crate) trait Work: Sized + Send {
    /// The name of the task: no two have the same.
    const NAME: &'static str;
    /// What it knows from the start.
    type Setup: Clone + Serialize + DeserializeOwned;
    /// What the command may want of it.
    type Order: Clone + Send + Serialize + DeserializeOwned;

    /// At the start.
    fn new(node: Node, setup: Self::Setup) -> Self;

    /// Does it.
    fn obey(&mut self, order: Self::Order) -> Obeyed;
}

/// An answer to the command, which has to ask for the same type.
pub(crate) fn answer(answer: impl Serialize) -> Obeyed {
    Ok(serde_json::to_value(answer)?)
}

/// A node, as those who work on it see it.
pub(crate) struct Node {
    rack: Rack,
    pub(crate) id: NodeId,
}

impl Node {
    /// One more thread's way into the rack.
    pub(crate) fn handle(&self) -> NodeHandle {
        self.rack.node(self.id)
    }

    /// The rack.
    pub(crate) fn rack(&self) -> &Rack {
        &self.rack
    }

    /// How many nodes the rack has.
    pub(crate) fn nodes(&self) -> u16 {
        u16::try_from(self.rack.config().nodes).expect("at most 64 nodes")
    }

    /// What has reached this node so far. In one process there is only the switch's program to ask, once.
    pub(crate) fn counted(&self) -> Counted {
        if let Some(counts) = self.rack.transport_counts() {
            return Counted { messages: counts.received, bytes: counts.received_bytes };
        }
        let switch = self.rack.counters().switch.filter(|_| self.id.index() == 0);
        Counted { messages: switch.map_or(0, |switch| switch.packets_sent), bytes: 0 }
    }
}

/// Messages that have reached a node, or all.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Counted {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
}

impl Add for Counted {
    type Output = Self;
    fn add(self, more: Self) -> Self {
        Self { messages: self.messages + more.messages, bytes: self.bytes + more.bytes }
    }
}

impl Sub for Counted {
    type Output = Self;
    fn sub(self, before: Self) -> Self {
        Self { messages: self.messages - before.messages, bytes: self.bytes - before.bytes }
    }
}

/// How far a node is with what takes long.
#[derive(Serialize, Deserialize)]
pub(crate) struct Far<E> {
    /// How much is done, in whatever unit.
    pub(crate) done: u64,
    /// What it has come to, if it is over.
    pub(crate) ended: Option<E>,
}

/// Between two looks at how far nodes are.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// How the processes of a rack are started.
#[derive(Clone, Copy)]
pub(crate) struct How<'a> {
    /// Messages wait for another one to travel with (only over UDP).
    pub(crate) coalescing: bool,
    /// Packets to and from the switch travel alone, as a program in the kernel needs them (only over wires).
    pub(crate) alone: bool,
    /// Those who answer are real-time threads, and who asks, too.
    pub(crate) realtime: bool,
    /// Who has a fault of mapped memory resolves it.
    pub(crate) faults_in_place: bool,
    /// The process of node 1 runs under this program.
    pub(crate) under: &'a [OsString],
}

impl Default for How<'_> {
    fn default() -> Self {
        Self { coalescing: true, alone: false, realtime: false, faults_in_place: false, under: &[] }
    }
}

/// All nodes of a rack.
pub(crate) enum Nodes<W: Work> {
    /// In this process.
    Here(Vec<W>),
    /// In a process for each; the switch is the first child.
    Processes { workers: Workers<W::Order, Event>, nodes: u16 },
}

/// The child that is node 0, as they were started.
pub(super) const NODE_0: usize = 1;

impl<W: Work> Nodes<W> {
    pub(crate) fn start(
        transport: TransportKind,
        spec: &RackSpec,
        setup: &W::Setup,
        interrupt: &Interrupt,
    ) -> Result<Self, Fault> {
        Self::start_as(How::default(), transport, spec, setup, interrupt)
    }

    pub(crate) fn start_as(
        how: How<'_>,
        transport: TransportKind,
        spec: &RackSpec,
        setup: &W::Setup,
        interrupt: &Interrupt,
    ) -> Result<Self, Fault> {
        spec.check().map_err(Fault::usage)?;
        let nodes = u16::try_from(spec.nodes).expect("at most 64 nodes");
        if transport == TransportKind::Inline {
            let rack = rack(spec.config())?;
            let node = |id| W::new(Node { rack: rack.clone(), id: NodeId(id) }, setup.clone());
            return Ok(Self::Here((0..nodes).map(node).collect()));
        }
        let task = |assignment| Task::<W> {
            assignment,
            realtime: how.realtime,
            faults_in_place: how.faults_in_place,
            setup: setup.clone(),
        };
        Ok(Self::Processes { workers: assignment_all(how, transport, spec, task, "", interrupt)?, nodes })
    }

    /// The node's process ends without a word. What it is asked for later, nobody answers.
    ///
    /// # Panics
    /// If it has none of its own.
    pub(crate) fn kill(&mut self, node: u16) {
        match self {
            Self::Here(_) => panic!("node {node} is in this process"),
            Self::Processes { workers, .. } => workers.kill(NODE_0 + usize::from(node)),
        }
    }

    /// What one node answers.
    pub(crate) fn ask<T: DeserializeOwned>(&mut self, node: u16, order: W::Order) -> Result<T, Fault> {
        let answers = self.ask_each([(node, order)])?;
        Ok(answers.into_iter().next().expect("one was asked"))
    }

    /// What all nodes answer, asked the same.
    pub(crate) fn ask_all<T: DeserializeOwned>(&mut self, order: &W::Order) -> Result<Vec<T>, Fault> {
        let nodes = match self {
            Self::Here(nodes) => nodes.len() as u16,
            Self::Processes { nodes, .. } => *nodes,
        };
        self.ask_each((0..nodes).map(|node| (node, order.clone())))
    }

    /// What these nodes answer, in their order; they are at work at the same time.
    pub(crate) fn ask_each<T: DeserializeOwned>(
        &mut self,
        orders: impl IntoIterator<Item = (u16, W::Order)>,
    ) -> Result<Vec<T>, Fault> {
        let mut orders: Vec<_> = orders.into_iter().collect();
        orders.sort_by_key(|(node, _)| *node);
        let answers = match self {
            Self::Here(nodes) => here(nodes, orders)?,
            Self::Processes { workers, .. } => {
                let child = |(node, order)| (NODE_0 + usize::from(node), order);
                hear(workers, orders.into_iter().map(child).collect())?
            }
        };
        understood(answers)
    }
}

impl<W: Work> Nodes<W> {
    /// Gives these nodes an order that begins something, and asks by another one how far they are, until it has ended at all of
    /// them.
    pub(crate) fn until_ended<E: DeserializeOwned>(
        &mut self,
        nodes: Range<u16>,
        [begin, ask]: [W::Order; 2],
        interrupt: &Interrupt,
        mut show: impl FnMut(u64),
    ) -> Result<Vec<E>, Fault> {
        self.ask_each::<()>(nodes.clone().map(|node| (node, begin.clone())))?;
        let mut ended: Vec<Option<E>> = nodes.clone().map(|_| None).collect();
        let mut done = vec![0; ended.len()];
        while ended.iter().any(Option::is_none) {
            thread::sleep(LOOK_EVERY);
            if interrupt.requested() {
                return Err(Fault::Interrupted);
            }
            let open: Vec<usize> = (0..ended.len()).filter(|at| ended[*at].is_none()).collect();
            let orders = open.iter().map(|at| (nodes.start + *at as u16, ask.clone()));
            let far: Vec<Far<E>> = self.ask_each(orders)?;
            for (at, far) in open.into_iter().zip(far) {
                (done[at], ended[at]) = (far.done, far.ended);
            }
            show(done.iter().sum());
        }
        Ok(ended.into_iter().flatten().collect())
    }
}

/// What one child answers.
pub(super) fn ask_child<O: Serialize, T: DeserializeOwned>(
    workers: &mut Workers<O, Event>,
    child: usize,
    order: O,
) -> Result<T, Fault> {
    let answers = ask_children(workers, vec![(child, order)])?;
    Ok(answers.into_iter().next().expect("one was asked"))
}

/// What several children answer, in the order in which they are asked.
pub(super) fn ask_children<O: Serialize, T: DeserializeOwned>(
    workers: &mut Workers<O, Event>,
    orders: Vec<(usize, O)>,
) -> Result<Vec<T>, Fault> {
    understood(hear(workers, orders)?)
}

fn understood<T: DeserializeOwned>(answers: Vec<Value>) -> Result<Vec<T>, Fault> {
    let understood = answers.into_iter().map(serde_json::from_value).collect::<Result<_, _>>();
    understood.map_err(|error| Fault::failed(format_args!("an answer that makes no sense: {error}")))
}

/// Orders children to do something, and waits for the answers of all.
fn hear<O: Serialize>(workers: &mut Workers<O, Event>, orders: Vec<(usize, O)>) -> Result<Vec<Value>, Fault> {
    let asked: Vec<_> = orders.iter().map(|(child, _)| *child).collect();
    orders.into_iter().try_for_each(|(child, order)| workers.order(child, order))?;
    workers.answers(asked, OnInterrupt::End, |_, event| match event {
        Event::Answer(answer) => Ok(Some(answer)),
        Event::Joined => Ok(None),
    })
}

/// Lets nodes of this process do what they are told, all at the same time.
fn here<W: Work>(nodes: &mut [W], orders: Vec<(u16, W::Order)>) -> Result<Vec<Value>, Fault> {
    let mut orders = orders.into_iter().peekable();
    let told: Vec<_> = (0..)
        .zip(nodes)
        .filter_map(|(at, node)| orders.next_if(|(whom, _)| *whom == at).map(|(_, order)| (node, order)))
        .collect();
    let one = |(node, order): (&mut W, W::Order)| node.obey(order);
    let answers: Vec<_> = if told.len() == 1 {
        told.into_iter().map(one).collect()
    } else {
        thread::scope(|scope| {
            let at_work: Vec<_> = told.into_iter().map(|told| scope.spawn(move || one(told))).collect();
            at_work.into_iter().map(|node| node.join().expect("a node of the benchmark panicked")).collect()
        })
    };
    answers.into_iter().collect::<Result<_, _>>().map_err(|error| Fault::failed(failed(&*error)))
}

fn failed(error: &dyn Error) -> Reason {
    format!("an access of the benchmark failed: {error}")
}

/// A rack of two nodes with such blocks, and room for what most benchmarks do.
pub(crate) fn spec(block: BlockSize) -> RackSpec {
    RackSpec {
        nodes: 2,
        block_bytes: block.bytes(),
        cache: 1024 * block.bytes(),
        memory: (32768 * block.bytes()).max(64 << 20),
        copies: 1,
        switch_entries: 65_536,
        directory: Directory::Switch,
        queue: false,
        peek: false,
        lock_copies: RackSpec::LOCK_COPIES,
        lock_region: RackSpec::LOCK_REGION,
        own_first: 0,
        steering: None,
        seed: 1,
    }
}

/// Bytes that this machine can give away; none if it does not say.
pub(crate) fn available() -> Option<u64> {
    let about = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = about.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? << 10)
}

/// Starts a process for each place of a rack, with its task, and waits until they have found each other.
pub(super) fn assignment_all<T: cli::processes::Task, O: Serialize>(
    how: How<'_>,
    transport: TransportKind,
    spec: &RackSpec,
    task: impl Fn(Assignment) -> T,
    of: &str,
    interrupt: &Interrupt,
) -> Result<Workers<O, Event>, Fault> {
    let runtime = RuntimeDir::new()?;
    let rendezvous = Rendezvous::new(transport, spec.nodes, &runtime)?;
    let rendezvous = if how.coalescing { rendezvous } else { rendezvous.without_coalescing() };
    let rendezvous = if how.alone { rendezvous.with_packets_alone() } else { rendezvous };
    let tasks = Assignment::all(spec, &rendezvous);
    let tasks =
        tasks.into_iter().map(|(name, assignment)| (format!("{name}{of}"), task(assignment))).collect();
    let under = Under { at: NODE_0 + 1, program: how.under };
    let mut workers = Workers::start_under(tasks, runtime, interrupt, Some(under))?;
    let joined = |_, event| Ok(matches!(event, Event::Joined).then_some(()));
    workers.answers(0..=spec.nodes, OnInterrupt::End, joined)?;
    Ok(workers)
}

/// What a child is.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub(crate) struct Task<W: Work> {
    assignment: Assignment,
    realtime: bool,
    faults_in_place: bool,
    setup: W::Setup,
}

/// What a child says.
#[derive(Serialize, Deserialize)]
pub(crate) enum Event {
    /// The place is there.
    Joined,
    /// It has done what was ordered.
    Answer(Value),
}

impl<W: Work> cli::processes::Task for Task<W> {
    const NAME: &'static str = W::NAME;
}

/// Is a place of a rack until the process ends.
pub(crate) fn place<W: Work>(
    task: Task<W>,
    orders: &Orders<W::Order>,
    teller: &Teller<Event>,
) -> Result<Never, Reason> {
    let scheduling = if task.realtime { Scheduling::Realtime } else { Scheduling::Fair };
    let joined = task.assignment.take_as(scheduling, task.faults_in_place)?;
    teller.tell(Event::Joined);
    let Joined::Node(id, rack) = joined else {
        // The switch is at work in a thread of its own.
        loop {
            thread::park();
        }
    };
    scheduling.ask().map_err(|error| error.to_string())?;
    let mut work = W::new(Node { rack, id }, task.setup);
    loop {
        let answer = work.obey(orders.next()).map_err(|error| failed(&*error))?;
        teller.tell(Event::Answer(answer));
    }
}
