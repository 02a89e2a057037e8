//! Programs on RISC-V cores with remote atomics, or with a library in their place.
//!
//! What must always hold: what is counted is between two barriers around the kernel, on all nodes; a program that says that its result
//! is wrong has no numbers; both paths run the same sources.

use riscv::library::Library;
use riscv::machine::{Config, EngineConfig, Machine, NodeStats, Observer, Schedule, Sent};
use riscv::prebuilt;
use riscv::program::Program as Elf;
use riscv::timing::Chip;

use crate::figure::measured::Measured;
use crate::figure::point::{Kernel, Load, Program, Subject};
use crate::figure::run::{Interrupted, Watch};
use crate::sizes::Sizes;

/// What the programs mark.
const BEGIN: u64 = 1;
const END: u64 = 2;
/// Bytes of a node's memory: programs with their arrays fit.
const MEMORY: u64 = 16 << 20;
/// Bytes of a line, and lines of an engine's cache: Table I.
const LINE: u64 = 64;
const LINES: u64 = 1024;
/// Requests that Figure 9 draws.
pub(crate) const LANDED: usize = 10_000;
/// Edges of a vertex: half of GAP's 16, so that the longest list of neighbours is one that the library's `getmem` was counted with.
pub(crate) const DEGREE: u64 = 8;

/// Iterations of CircusTent's patterns on each node.
pub(crate) fn iterations(sizes: &Sizes) -> u64 {
    (sizes.operations / 60).max(16)
}

/// Elements of their arrays on each of so many nodes: at full size nearly eight times what the engine's cache holds, and of more than eight
/// nodes as many together as of eight. No power of two, so that what nodes do one element after the other does not meet in the same places of
/// that cache.
pub(crate) fn elements(sizes: &Sizes, nodes: u8) -> u64 {
    let all = (sizes.operations / 5).next_power_of_two().clamp(256, 1 << 16);
    let each = all * 8 / u64::from(nodes).max(8);
    each - each / 64
}

/// Vertices of graphs: so many times two.
pub(crate) fn scale(sizes: &Sizes) -> u32 {
    sizes.operations.max(1).ilog2().saturating_sub(6).max(5)
}

/// The library of a subject.
pub(crate) fn library(subject: Subject) -> Option<Library> {
    let name = match subject {
        Subject::Rae | Subject::RaeUnmerged => return None,
        Subject::LibraryNear => "openmpi-shm",
        Subject::LibraryTcp => "openmpi-tcp",
        _ => panic!("{subject:?} runs no programs"),
    };
    Some(Library::counted(name).expect("it is one of those that were counted"))
}

/// The program with its arguments.
fn elf(Program { kernel, nodes }: Program, with_library: bool, sizes: &Sizes) -> Elf {
    let (file, arguments) = match kernel {
        Kernel::Words(heat) => {
            assert!(!with_library, "this one is for instructions only");
            let numbers = [iterations(sizes), u64::from(heat), elements(sizes, nodes)];
            (prebuilt::HOT_WORD, numbers.map(|number| number.to_string()).into())
        }
        kernel if Kernel::GRAPH.contains(&kernel) => {
            let file = if with_library { prebuilt::GRAPH_SOFTWARE } else { prebuilt::GRAPH };
            (file, vec![kernel.name().into(), "kron".into(), scale(sizes).to_string(), DEGREE.to_string()])
        }
        kernel => {
            let file = if with_library { prebuilt::CIRCUSTENT_SOFTWARE } else { prebuilt::CIRCUSTENT };
            let numbers = [iterations(sizes), elements(sizes, nodes)].map(|number| number.to_string());
            let names = [kernel.name(), "add", "global"].map(str::to_owned);
            (file, [names.as_slice(), numbers.as_slice()].concat())
        }
    };
    let arguments = [vec!["program".to_owned()], arguments].concat();
    Elf::from_elf(file).expect("our own programs can be loaded").with_arguments(arguments)
}

/// Who looks on: requests between the marks.
struct Onlooker {
    text: Vec<u8>,
    /// Nodes whose program is between the marks.
    inside: Vec<bool>,
    /// Of each engine: lines that it would have, if it kept them.
    kept: Vec<Vec<u64>>,
    misses: u64,
    /// When, and where: requests to node 0.
    landed: Vec<(u64, u64)>,
}

impl Onlooker {
    fn new(nodes: usize) -> Self {
        Self {
            text: Vec::new(),
            inside: vec![false; nodes],
            kept: vec![vec![u64::MAX; LINES as usize]; nodes],
            misses: 0,
            landed: Vec::new(),
        }
    }
}

impl Observer for Onlooker {
    fn on_console(&mut self, _: usize, bytes: &[u8]) {
        self.text.extend_from_slice(bytes);
    }

    fn on_mark(&mut self, node: usize, number: u64) {
        self.inside[node] = number == BEGIN;
    }

    fn on_request(&mut self, request: &Sent) {
        if !self.inside[request.from] {
            return;
        }
        let line = request.offset / LINE;
        let place = &mut self.kept[request.to][(line % LINES) as usize];
        self.misses += u64::from(*place != line);
        *place = line;
        // One's own is no remote request.
        if request.to == 0 && request.from != 0 {
            self.landed.push((request.clock, request.offset));
        }
    }
}

/// Runs a point.
pub(super) fn run(
    (subject, load): (Subject, Load),
    sizes: &Sizes,
    watch: &dyn Watch,
) -> Result<Measured, Interrupted> {
    let (program, is_landing) = match load {
        Load::Program(program) => (program, false),
        Load::Landing(program) => (program, true),
        other => panic!("{other:?} is no program"),
    };
    let nodes = program.nodes;
    let library = library(subject);
    let subentries = if subject == Subject::RaeUnmerged { 1 } else { EngineConfig::PAPER.subentries };
    let config = Config {
        memory: MEMORY,
        schedule: Schedule::Timed(Chip::PAPER),
        engine: EngineConfig { subentries, ..EngineConfig::PAPER },
        ..Config::nodes(nodes.into())
    };
    let mut machine =
        Machine::new(elf(program, library.is_some(), sizes), &config).expect("programs fit into the memory");
    if let Some(library) = library {
        machine = machine.with_library(library);
    }
    let mut onlooker = Onlooker::new(nodes.into());
    let codes = machine.run(&mut onlooker).unwrap_or_else(|failure| panic!("{load:?}: {failure}"));
    let said = String::from_utf8_lossy(&onlooker.text);
    assert!(codes.iter().all(|code| *code == 0) && !said.contains("wrong"), "{load:?}: {said}");
    if !watch.advance(sizes.warm_up + sizes.operations) {
        return Err(Interrupted);
    }
    let each = machine.between(BEGIN, END).expect("every program marks its kernel");
    let total = each.iter().fold(NodeStats::default(), |sum, node| sum.plus(node));
    let places = if is_landing { thinned(onlooker.landed, machine.layout()) } else { Vec::new() };
    Ok(measured(&total, onlooker.misses, places))
}

/// So many requests as are drawn, evenly from all, in the order of their times: where they are from the beginning of the heap.
fn thinned(mut landed: Vec<(u64, u64)>, layout: &riscv::machine::Layout) -> Vec<(u64, u64)> {
    landed.sort_by_key(|(clock, _)| *clock);
    let (all, heap) = (landed.len(), layout.heap.start - layout.memory.start);
    let count = all.min(LANDED);
    let taken = (0..count).map(|at| landed[at * all / count].1);
    (0..).zip(taken.map(|offset| offset.saturating_sub(heap))).collect()
}

fn measured(total: &NodeStats, kept_misses: u64, places: Vec<(u64, u64)>) -> Measured {
    let counted = [
        ("instructions", total.instructions),
        ("charged", total.charged),
        ("routines", total.routines),
        ("atomics", total.remote_atomics),
        ("local atomics", total.local_atomics),
        ("loads", total.remote_loads),
        ("stores", total.remote_stores),
        ("to itself", total.to_itself),
        ("cycles", total.cycles),
        ("waited", total.waited),
        ("requests", total.engine.taken),
        ("merged", total.engine.merged),
        ("fetched", total.engine.fetched),
        ("misses of kept lines", kept_misses),
    ];
    Measured {
        operations: total.remote_atomics,
        seconds: total.cycles as f64 / (Chip::PAPER.cycles_per_microsecond as f64 * 1e6),
        events: total.instructions,
        counted: counted.map(|(name, count)| (name.to_owned(), count)).into(),
        places,
        ..Measured::default()
    }
}
