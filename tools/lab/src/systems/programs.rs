//! Programs on RISC-V cores with remote atomics, or with a library in their place.
//!
//! What must always hold: what is counted is between two barriers around the kernel, on all nodes; a program that says that its result
//! is wrong has no numbers; both paths run the same sources.

use riscv::library::Library;
use riscv::machine::{EngineConfig, Machine, MachineConfig, NodeStats, Observer, Schedule, Sent};
use riscv::prebuilt;
use riscv::program::Program as Elf;
use riscv::timing::Chip;

use crate::figure::input::Inputs;
use crate::figure::measured::Measured;
use crate::figure::point::{Data, Kernel, Load, Program, Subject};
use crate::figure::run::{Interrupted, Watch};
use crate::sizes::Sizes;

/// What the programs mark.
const BEGIN: u64 = 1;
const END: u64 = 2;
/// Bytes of a node's memory: programs with their arrays fit.
const MEMORY: u64 = 32 << 20;
/// Bytes of a line, words in it, and lines of an engine's cache: Table I.
const LINE: u64 = 64;
const WORDS: u64 = 8;
const LINES: u64 = 1024;
/// Nodes of programs that have data of their own size: Table I.
const NODES: u8 = 6;
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

/// Lines of the cache whose misses are counted, in runs that are about the size of data: at full size the engine's, otherwise less, as
/// everything is.
fn lines(sizes: &Sizes) -> u64 {
    (sizes.operations / 256).next_power_of_two().clamp(4, LINES)
}

/// The library of a subject.
pub(crate) fn library(subject: Subject) -> Option<Library> {
    let name = match subject {
        Subject::Rae | Subject::RaeUnmerged | Subject::OneAddressSpace => return None,
        Subject::LibraryNear => "openmpi-shm",
        Subject::LibraryTcp => "openmpi-tcp",
        _ => panic!("{subject:?} runs no programs"),
    };
    Some(Library::counted(name).expect("it is one of those that were counted"))
}

/// The program with its arguments.
fn elf(load: Load, subject: Subject, sizes: &Sizes) -> Elf {
    let (Program { kernel, nodes }, data) = program(load);
    let is_graph = Kernel::GRAPH.contains(&kernel);
    let with_library = library(subject).is_some();
    let file = match (kernel, is_graph) {
        (Kernel::Words(_), _) if with_library => panic!("this one is for instructions only"),
        (Kernel::Words(_), _) => prebuilt::HOT_WORD,
        (_, true) if subject == Subject::OneAddressSpace => prebuilt::GRAPH_LOCAL,
        (_, true) if with_library => prebuilt::GRAPH_SOFTWARE,
        (_, true) => prebuilt::GRAPH,
        (_, false) if with_library => prebuilt::CIRCUSTENT_SOFTWARE,
        (_, false) => prebuilt::CIRCUSTENT,
    };
    let (names, numbers): (&[&str], Vec<u64>) = match (kernel, data) {
        (Kernel::Words(heat), _) => (&[], vec![iterations(sizes), heat.into(), elements(sizes, nodes)]),
        (_, None) if is_graph => (&["kron"], vec![scale(sizes).into(), DEGREE]),
        (_, Some(data)) if is_graph => {
            let smaller = scale(&Sizes::FULL) - scale(sizes);
            let scale = u64::from(data.size).saturating_sub(smaller.into()).max(5);
            (if data.is_uniform { &["uniform"] } else { &["kron"] }, vec![scale, DEGREE])
        }
        (_, None) => (&["add", "global"], vec![iterations(sizes), elements(sizes, nodes)]),
        (_, Some(data)) => {
            let all = lines(sizes) * WORDS * u64::from(data.size) / 100;
            // No power of two, so that nodes that go through it do not meet in the same places of the cache.
            let elements = all - all / 64;
            (&["add", "own"], vec![elements * u64::from(data.times), elements])
        }
    };
    let name = if matches!(kernel, Kernel::Words(_)) { None } else { Some(kernel.name()) };
    let words = ["program"].into_iter().chain(name).chain(names.iter().copied()).map(str::to_owned);
    let arguments = words.chain(numbers.iter().map(u64::to_string)).collect();
    Elf::from_elf(file).expect("our own programs can be loaded").with_arguments(arguments)
}

/// Which program that is, on how many nodes, and what its data is if it is not that of all figures.
fn program(load: Load) -> (Program, Option<Data>) {
    match load {
        Load::Program(program) | Load::Landing(program) | Load::Far(program) => (program, None),
        Load::Data(data) | Load::Requests(data) => {
            (Program { kernel: data.kernel, nodes: NODES }, Some(data))
        }
        other => panic!("{other:?} is no program"),
    }
}

/// Who looks on: requests between the marks.
struct Onlooker {
    text: Vec<u8>,
    /// Nodes whose program is between the marks.
    inside: Vec<bool>,
    /// Of each engine: lines that it would have, if it kept them.
    kept: Vec<Vec<u64>>,
    misses: u64,
    /// Requests of other nodes than the engine's, and those of them that miss.
    remote: u64,
    remote_misses: u64,
    /// When, and where: requests to node 0.
    landed: Vec<(u64, u64)>,
}

impl Onlooker {
    fn new(nodes: usize, lines: u64) -> Self {
        Self {
            text: Vec::new(),
            inside: vec![false; nodes],
            kept: vec![vec![u64::MAX; lines as usize]; nodes],
            misses: 0,
            remote: 0,
            remote_misses: 0,
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
        let kept = &mut self.kept[request.to];
        let place = (line % kept.len() as u64) as usize;
        let missed = u64::from(kept[place] != line);
        kept[place] = line;
        self.misses += missed;
        if request.to != request.from {
            self.remote += 1;
            self.remote_misses += missed;
        }
        // One's own is no remote request.
        if request.to == 0 && request.from != 0 {
            self.landed.push((request.clock, request.offset));
        }
    }
}

/// Runs a point.
pub(super) fn run(
    (subject, load): (Subject, Load),
    (sizes, inputs): (&Sizes, &Inputs),
    watch: &dyn Watch,
) -> Result<Measured, Interrupted> {
    let (Program { nodes, .. }, _) = program(load);
    let library = library(subject);
    let subentries = if subject == Subject::RaeUnmerged { 1 } else { EngineConfig::PAPER.subentries };
    let config = MachineConfig {
        memory: MEMORY,
        schedule: match load {
            Load::Requests(_) => Schedule::Turns,
            // A machine whose network is slow.
            Load::Far(_) => {
                Schedule::Timed(Chip { packetizer: inputs.riscv.packetizer + inputs.far, ..inputs.riscv })
            }
            _ => Schedule::Timed(inputs.riscv),
        },
        engine: EngineConfig { subentries, ..EngineConfig::PAPER },
        ..MachineConfig::nodes(nodes.into())
    };
    let mut machine = Machine::new(elf(load, subject, sizes), &config).expect("programs fit into the memory");
    if let Some(library) = library {
        machine = machine.with_library(library);
    }
    let lines = if matches!(load, Load::Requests(_)) { lines(sizes) } else { LINES };
    let mut onlooker = Onlooker::new(nodes.into(), lines);
    let codes = machine.run(&mut onlooker).unwrap_or_else(|failure| panic!("{load:?}: {failure}"));
    let said = String::from_utf8_lossy(&onlooker.text);
    assert!(codes.iter().all(|code| *code == 0) && !said.contains("wrong"), "{load:?}: {said}");
    if !watch.advance(sizes.warm_up + sizes.operations) {
        return Err(Interrupted);
    }
    let each = machine.between(BEGIN, END).expect("every program marks its kernel");
    let total = each.iter().fold(NodeStats::default(), |sum, node| sum.plus(node));
    let is_landing = matches!(load, Load::Landing(_));
    let landed = core::mem::take(&mut onlooker.landed);
    let places = if is_landing { thinned(landed, machine.layout()) } else { Vec::new() };
    Ok(measured(&total, &onlooker, places, inputs.riscv.cycles_per_microsecond))
}

/// So many requests as are drawn, evenly from all, in the order of their times: where they are from the beginning of the heap.
fn thinned(mut landed: Vec<(u64, u64)>, layout: &riscv::machine::Layout) -> Vec<(u64, u64)> {
    landed.sort_by_key(|(clock, _)| *clock);
    let (all, heap) = (landed.len(), layout.heap.start - layout.memory.start);
    let count = all.min(LANDED);
    let taken = (0..count).map(|at| landed[at * all / count].1);
    (0..).zip(taken.map(|offset| offset.saturating_sub(heap))).collect()
}

fn measured(total: &NodeStats, onlooker: &Onlooker, places: Vec<(u64, u64)>, clock: u64) -> Measured {
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
        ("misses of kept lines", onlooker.misses),
        ("remote requests", onlooker.remote),
        ("misses of remote requests", onlooker.remote_misses),
    ];
    Measured {
        operations: total.remote_atomics,
        seconds: total.cycles as f64 / (clock as f64 * 1e6),
        events: total.instructions,
        counted: counted.map(|(name, count)| (name.to_owned(), count)).into(),
        places,
        ..Measured::default()
    }
}
