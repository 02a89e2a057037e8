//! One superstep of PageRank on a simulated rack, as a timeline: what each thread does, and what passes between nodes.
//!
//! The graph's engine is that of `crates/apps`, on the machines and the timing of the figures. Caches and directory have
//! seen a whole run before.
//!
//! What must always hold: everything drawn was seen: work where it was charged, waits between an operation that could not
//! be done and its end, messages from posting to handling.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::rc::Rc;

use apps::graph::input::{Input, InputError};
use apps::graph::{Partition, TOLERANCE};
use rackmem::BlockSize;
use sim::coherence::{Contents, FlowCcConfig, SimMessage};
use sim::rack::{Setup, Trace};
use sim::system::{Envelope, Place, Processor};
use simulated::WorkTime;
use wire::{Nanos, Packet};

use crate::figure::input::Inputs;
use crate::figure::run::Watch;
use crate::systems::coherence::{self, FlowCcKind};
use crate::systems::graph::{Built, charged, room};

/// The timeline of a superstep.
#[derive(Clone, PartialEq, Debug)]
pub struct Timeline {
    /// What was run.
    pub title: String,
    /// Threads of a node.
    threads: usize,
    /// When it began.
    begin: Nanos,
    /// When it was over.
    pub end: Nanos,
    /// Of each thread: when it worked on edges and vertices, from and to.
    pub work: Vec<Vec<(Nanos, Nanos)>>,
    /// And when it waited for a block.
    pub waits: Vec<Vec<(Nanos, Nanos)>>,
    /// In the order in which they were sent.
    pub messages: Vec<Sent>,
}

/// A message that was seen.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sent {
    packet: Packet,
    /// It had a block's contents with it.
    pub has_block: bool,
    envelope: Envelope,
    at: Nanos,
    /// None: it is on its way, or was lost.
    pub handled: Option<Nanos>,
}

/// What an observer writes down.
#[derive(Default)]
struct Notes {
    work: Vec<Vec<(Nanos, Nanos)>>,
    waits: Vec<Vec<(Nanos, Nanos)>>,
    waiting: Vec<Option<Nanos>>,
    messages: Vec<Sent>,
}

impl Notes {
    fn write(&mut self, at: Nanos, trace: &Trace<'_, SimMessage>) {
        match trace {
            Trace::Waits { thread } => {
                self.waiting[usize::from(thread.0)].get_or_insert(at);
            }
            Trace::Done { thread, .. } => {
                let thread = usize::from(thread.0);
                if let Some(since) = self.waiting[thread].take() {
                    self.waits[thread].push((since, at));
                }
            }
            Trace::Sent { message, envelope } if envelope.from != envelope.to => {
                let has_block = matches!(message, SimMessage::Message(message) if message.data.is_some());
                let packet = *message.packet();
                let sent = Sent { packet, has_block, envelope: **envelope, at, handled: None };
                self.messages.push(sent);
            }
            Trace::Handled { message, envelope } => {
                let is_this = |sent: &&mut Sent| {
                    sent.handled.is_none() && sent.envelope == **envelope && sent.packet == *message.packet()
                };
                if let Some(sent) = self.messages.iter_mut().find(is_this) {
                    sent.handled = Some(at);
                }
            }
            _ => {}
        }
    }
}

/// Runs PageRank on this graph to its end, and then the superstep that is drawn. None if whoever watches has ended it.
///
/// # Errors
/// If a file of edges cannot be read.
///
/// # Panics
/// If a file of edges changes meanwhile.
pub fn superstep(
    input: &Input,
    partition: Partition,
    block: BlockSize,
    watch: &dyn Watch,
) -> Result<Option<Timeline>, InputError> {
    let (nodes, threads, workers) = (partition.nodes(), partition.threads(), partition.workers());
    let parts = (0..workers).map(|worker| input.part(worker, workers));
    let parts: Result<Vec<_>, _> = parts.map(|part| part.map(Some)).collect();
    let parts = RefCell::new(parts?);
    let part = |worker: usize| parts.borrow_mut()[worker].take().expect("each worker has a part");
    let inputs = Inputs::declared();
    let setup = Setup { threads, ..inputs.setup(nodes) };
    let room = room(&partition, input.stored(), block);
    let machines = coherence::config(&setup, inputs.flowcc, FlowCcKind::Rackmem, room, Contents::Bytes);
    let notes = Rc::new(RefCell::new(Notes::default()));
    let work = |worker: usize| {
        let (notes, mut charged) = (Rc::clone(&notes), charged(inputs.graph));
        let noted = move |now: Nanos, done| {
            let time = charged(now, done);
            if let Some(work) = notes.borrow_mut().work.get_mut(worker) {
                work.push((now, now + time));
            }
            time
        };
        Box::new(noted) as WorkTime
    };
    let how = (partition, input.undirected());
    let Ok(mut built) = Built::new(setup, FlowCcConfig { block, ..machines }, how, (part, work), watch)
    else {
        return Ok(None);
    };
    if built.pagerank(TOLERANCE, false, watch).is_err() {
        return Ok(None);
    }
    let begin = built.rack.now();
    *notes.borrow_mut() = Notes {
        work: vec![Vec::new(); workers],
        waits: vec![Vec::new(); workers],
        waiting: vec![None; workers],
        messages: Vec::new(),
    };
    let theirs = Rc::clone(&notes);
    built.rack.observe(Box::new(move |at, trace| theirs.borrow_mut().write(at, trace)));
    if built.pagerank(TOLERANCE, true, watch).is_err() {
        return Ok(None);
    }
    let Notes { work, waits, messages, .. } = core::mem::take(&mut *notes.borrow_mut());
    let ends = waits.iter().chain(&work).flatten().map(|(_, end)| *end);
    let end = ends.max().unwrap_or(begin);
    let title = format!(
        "One superstep of PageRank: {} vertices, {} edges, {nodes} nodes of {threads} threads, blocks of {} KiB",
        input.vertices(),
        input.stored(),
        block.bytes() / 1024
    );
    Ok(Some(Timeline { title, threads, begin, end, work, waits, messages }))
}

/// Pixels: of the whole width, left of it, of a thread's row, of what handles messages, and between nodes.
const WIDTH: u64 = 1100;
const LEFT: u64 = 90;
const ROW: u64 = 14;
const AGENTS: u64 = 8;
const GAP: u64 = 14;
/// Where the switch is, and where nodes begin.
const SWITCH: u64 = 76;
const TOP: u64 = 100;

const STYLE: &str = "text{font:12px sans-serif;fill:#222}.head{font-weight:bold;font-size:13px}.time{fill:#888;font-size:10px}\
.row{fill:#eee}.work{fill:#2166ac}.wait{fill:#f4a582}.agents{fill:#ddd}.m{stroke:#999;stroke-width:.6}.b{stroke:#1b7837;stroke-width:1.4}";

impl Timeline {
    fn x(&self, at: Nanos) -> f64 {
        let all = (self.end.0 - self.begin.0).max(1) as f64;
        LEFT as f64 + at.saturating_sub(self.begin).0 as f64 / all * WIDTH as f64
    }

    fn y_of_node(&self, node: usize) -> u64 {
        TOP + node as u64 * (self.threads as u64 * ROW + AGENTS + GAP)
    }

    fn y_of_thread(&self, thread: usize) -> u64 {
        self.y_of_node(thread / self.threads) + (thread % self.threads) as u64 * ROW
    }

    /// Where a message begins or ends.
    fn y(&self, place: Place, processor: Processor) -> u64 {
        match (place, processor) {
            (Place::Switch, _) => SWITCH,
            (_, Processor::Thread(thread)) => self.y_of_thread(usize::from(thread.0)) + ROW / 2,
            (Place::Node(node), _) => self.y_of_node(node.index()) + self.threads as u64 * ROW + AGENTS / 2,
        }
    }

    /// The share of all threads' time in which they work on edges and vertices, and that in which they wait for blocks.
    pub fn shares(&self) -> (f64, f64) {
        let all = ((self.end - self.begin).0 * self.work.len() as u64).max(1) as f64;
        let sum =
            |of: &[Vec<(Nanos, Nanos)>]| of.iter().flatten().map(|(from, to)| (*to - *from).0).sum::<u64>();
        (sum(&self.work) as f64 / all, sum(&self.waits) as f64 / all)
    }

    /// Draws it.
    pub fn svg(&self) -> String {
        let nodes = self.work.len() / self.threads;
        let (width, height) = (LEFT + WIDTH + 20, self.y_of_node(nodes) + 30);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\">\n\
             <style>{STYLE}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
             <text class=\"head\" x=\"12\" y=\"20\">{}</text>\n",
            self.title
        );
        let mut put = |line: std::fmt::Arguments<'_>| writeln!(out, "{line}").expect("text grows");
        let keys = [
            ("work", "works on edges and vertices"),
            ("wait", "waits for a block"),
            ("row", "accesses what is here, or looks whether all are there"),
        ];
        for (at, (class, text)) in (0_u64..).zip(keys) {
            let x = 12 + 230 * at;
            put(format_args!(
                "<rect class=\"{class}\" x=\"{x}\" y=\"34\" width=\"14\" height=\"12\"/><text x=\"{}\" y=\"44\">{text}</text>",
                x + 20
            ));
        }
        for (x, class, text) in [(830, "m", "message"), (950, "b", "message with a block")] {
            put(format_args!(
                "<line class=\"{class}\" x1=\"{x}\" y1=\"40\" x2=\"{}\" y2=\"40\"/><text x=\"{}\" y=\"44\">{text}</text>",
                x + 16,
                x + 22
            ));
        }
        put(format_args!(
            "<text x=\"12\" y=\"{}\">switch</text><line class=\"m\" x1=\"{LEFT}\" y1=\"{SWITCH}\" x2=\"{}\" y2=\"{SWITCH}\"/>",
            SWITCH + 4,
            LEFT + WIDTH
        ));
        for node in 0..nodes {
            let y = self.y_of_node(node);
            put(format_args!("<text x=\"12\" y=\"{}\">node {node}</text>", y + 12));
            let agents = y + self.threads as u64 * ROW;
            put(format_args!(
                "<rect class=\"agents\" x=\"{LEFT}\" y=\"{}\" width=\"{WIDTH}\" height=\"{}\"/>",
                agents + 1,
                AGENTS - 2
            ));
        }
        for thread in 0..self.work.len() {
            let y = self.y_of_thread(thread);
            put(format_args!(
                "<rect class=\"row\" x=\"{LEFT}\" y=\"{}\" width=\"{WIDTH}\" height=\"{}\"/>",
                y + 1,
                ROW - 2
            ));
            for (class, spans) in [("wait", &self.waits[thread]), ("work", &self.work[thread])] {
                for (from, to) in spans.iter().filter(|(from, to)| from < to) {
                    let (x, end) = (self.x(*from), self.x(*to));
                    put(format_args!(
                        "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{}\" width=\"{:.1}\" height=\"{}\"/>",
                        y + 1,
                        end - x,
                        ROW - 2
                    ));
                }
            }
        }
        for sent in &self.messages {
            let Some(handled) = sent.handled.filter(|handled| *handled <= self.end) else { continue };
            let class = if sent.has_block { "b" } else { "m" };
            let (y1, y2) = (
                self.y(sent.envelope.from, sent.envelope.sender),
                self.y(sent.envelope.to, sent.envelope.receiver),
            );
            put(format_args!(
                "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{y1}\" x2=\"{:.1}\" y2=\"{y2}\"/>",
                self.x(sent.at),
                self.x(handled)
            ));
        }
        let micros = (self.end.0 - self.begin.0) / 1000;
        // The first of 1, 2, 5, 10, 20 and so on that leaves ten marks at most.
        let steps = (0..).flat_map(|power| [1, 2, 5].map(|of| of * 10_u64.pow(power)));
        let step = steps.into_iter().find(|step| micros / step <= 10).expect("some power is as large");
        for at in (0..=micros).step_by(step as usize) {
            let x = self.x(self.begin + Nanos::from_micros(at));
            put(format_args!("<text class=\"time\" x=\"{x:.1}\" y=\"{}\">{at} us</text>", height - 12));
        }
        put(format_args!("</svg>"));
        out
    }
}
