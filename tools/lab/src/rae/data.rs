//! Two figures about the data: misses against its size, and graphs of another kind and size.
//!
//! The paper gives neither the sizes of its arrays nor its graphs. Misses depend on both most.

use super::{NODES, accesses, average, percent, report, rows, saved};
use crate::figure::chart::Chart;
use crate::figure::claim::{Claim, number};
use crate::figure::measured::Measured;
use crate::figure::point::{Data, Kernel, Load, Point, Subject};
use crate::figure::{Figure, FigureReport, Results, Table};

/// Misses against the size of the data.
pub(super) struct Sizes;
/// Uniform graphs, and a smaller one.
pub(super) struct Graphs;

/// Patterns with one random element in an iteration.
const RANDOM: [Kernel; 3] = [Kernel::Rand, Kernel::Scatter, Kernel::Gather];
/// Whose next element follows from the last.
const CHAINED: [Kernel; 2] = [Kernel::Sg, Kernel::PtrChase];
const REGULAR: [Kernel; 3] = [Kernel::Stride1, Kernel::StrideN, Kernel::Central];

/// Of a node's part of an array, in percent of the engine's cache.
const PARTS: [u16; 5] = [50, 100, 200, 400, LARGE];
/// With arrays as large as this, accesses to random elements miss as often as the paper says: 1 - 1 / 6.69 = 85.05 %.
const LARGE: u16 = 669;
/// An array that fits.
const SMALL: u16 = 50;
/// How often random patterns go through the list of indexes.
const TWICE: u16 = 2;
/// And regular ones through their array.
const TIMES: [u16; 4] = [1, 4, 16, OFTEN];
/// Fitted: nearly the paper's number, for arrays that fit.
const OFTEN: u16 = 64;

/// Graph kernels, and the logarithms of the vertices that they have.
const GROWING: [(Kernel, &[u16]); 3] =
    [(Kernel::Pr, &[12, 14, 16, GREATEST]), (Kernel::Bfs, &[12, 14, 16]), (Kernel::Cc, &[12, 14, 16])];
/// A node's part of an array is 341 KiB then.
const GREATEST: u16 = 18;

const fn pattern(kernel: Kernel, size: u16, times: u16) -> Load {
    Load::Requests(Data { kernel, is_uniform: false, size, times })
}

const fn graph(kernel: Kernel, is_uniform: bool, size: u16) -> Data {
    Data { kernel, is_uniform, size, times: 1 }
}

fn misses(results: &Results, load: Load) -> f64 {
    let it = results.at(Subject::Rae, load);
    percent(it.count("misses of remote requests"), it.count("remote requests"))
}

const KINDS: [(&str, bool); 2] = [("Kronecker", false), ("uniform", true)];

impl Figure for Sizes {
    fn name(&self) -> &'static str {
        "rae-sizes"
    }

    fn title(&self) -> &'static str {
        "Misses of lines that are kept, against the size of the data"
    }

    fn points(&self) -> Vec<Point> {
        let random = RANDOM.into_iter().chain(CHAINED);
        let random = random.flat_map(|kernel| PARTS.map(|size| pattern(kernel, size, TWICE)));
        let regular = REGULAR.into_iter().flat_map(|kernel| {
            TIMES
                .into_iter()
                .map(move |times| pattern(kernel, SMALL, times))
                .chain([pattern(kernel, LARGE, 4)])
        });
        let graphs = GROWING.into_iter().flat_map(|(kernel, scales)| {
            KINDS.into_iter().flat_map(move |(_, is_uniform)| {
                scales.iter().map(move |scale| Load::Requests(graph(kernel, is_uniform, *scale)))
            })
        });
        random.chain(regular).chain(graphs).map(|load| Point::new(Subject::Rae, load)).collect()
    }

    fn report(&self, results: &Results) -> FigureReport {
        let of = |kernel, size, times| misses(results, pattern(kernel, size, times));
        let mut by_size = Chart::new(
            "rae-sizes",
            "Misses of random patterns",
            "a node's part of the array, % of the engine's cache",
            "% of remote requests",
        );
        for kernel in RANDOM.into_iter().chain(CHAINED) {
            by_size =
                by_size.line(kernel.name(), PARTS.map(|size| (f64::from(size), of(kernel, size, TWICE))));
        }
        let mut by_times = Chart::new(
            "rae-times",
            "Misses of regular patterns, on half as much as the engine's cache",
            "times that the array is gone through",
            "% of remote requests",
        );
        for kernel in REGULAR {
            by_times =
                by_times.line(kernel.name(), TIMES.map(|times| (f64::from(times), of(kernel, SMALL, times))));
        }
        let mut by_scale = Chart::new(
            "rae-scales",
            "Misses of graph kernels",
            "logarithm of the vertices",
            "% of remote requests",
        );
        let of_graph =
            |kernel, is_uniform, scale| misses(results, Load::Requests(graph(kernel, is_uniform, scale)));
        for (kernel, scales) in GROWING {
            for (kind, is_uniform) in KINDS {
                let points =
                    scales.iter().map(|scale| (f64::from(*scale), of_graph(kernel, is_uniform, *scale)));
                by_scale = by_scale.line(&format!("{}, {kind}", kernel.name()), points);
            }
        }
        let mean =
            |kernels: &[Kernel], size, times| average(kernels.iter().map(|kernel| of(*kernel, size, times)));
        let remark = format!(
            "No one size gives both of the paper's numbers. Arrays of {LARGE} % of the cache, gone \
             through four times: regular patterns miss {} %. Arrays of {SMALL} %: random ones miss {} \
             %.",
            number(mean(&REGULAR, LARGE, 4)),
            number(mean(&RANDOM, SMALL, TWICE)),
        );
        FigureReport {
            charts: vec![by_size, by_times, by_scale],
            claims: vec![
                Claim::quantity(
                    &format!("rand, scatter, gather: arrays of {LARGE} % of the cache"),
                    85.05,
                    mean(&RANDOM, LARGE, TWICE),
                    "%",
                )
                .calibrated(),
                Claim::quantity(
                    "pr: uniform graph, 2^18 vertices",
                    85.05,
                    of_graph(Kernel::Pr, true, GREATEST),
                    "%",
                )
                .calibrated(),
                Claim::quantity(
                    &format!("sg: arrays of {LARGE} % of the cache"),
                    85.05,
                    of(Kernel::Sg, LARGE, TWICE),
                    "%",
                )
                .calibrated()
                .because(CHAINS),
                Claim::quantity(
                    &format!("ptrchase: arrays of {LARGE} % of the cache"),
                    85.05,
                    of(Kernel::PtrChase, LARGE, TWICE),
                    "%",
                )
                .calibrated()
                .because(CHAINS),
                Claim::quantity(
                    &format!("regular patterns, arrays of {SMALL} %, {OFTEN} times"),
                    0.11,
                    mean(&REGULAR, SMALL, OFTEN),
                    "%",
                )
                .calibrated(),
            ],
            remarks: vec![remark],
            ..report(self, SIZES)
        }
    }
}

const SIZES: &str = "Six nodes, RAE, without timing. A direct-mapped cache of 1024 lines of 64 B; a \
    node's requests to itself are not counted. Patterns are the paper's a[b[i]] = c[i] (section II-B), \
    with a over all nodes, b and c a node's own. Array sizes and passes were fitted to the paper's \
    numbers: those claims are calibrated.";

const CHAINS: &str = "SG reads first what it added to last. PTRCHASE ends in a cycle of some hundred \
    elements, as chains in random maps do. Both find these lines in the cache.";

impl Figure for Graphs {
    fn name(&self) -> &'static str {
        "rae-graphs"
    }

    fn title(&self) -> &'static str {
        "Graphs of another kind, and of another size"
    }

    fn points(&self) -> Vec<Point> {
        let each = |(_, is_uniform, scale): (&str, bool, u16)| {
            Kernel::GRAPH.into_iter().flat_map(move |kernel| {
                SUBJECTS.map(|subject| Point::new(subject, Load::Data(graph(kernel, is_uniform, scale))))
            })
        };
        GRAPHS.into_iter().flat_map(each).collect()
    }

    fn report(&self, results: &Results) -> FigureReport {
        let column = |kernel, (_, is_uniform, scale): (&str, bool, u16), number: fn(&Measured) -> f64| {
            let [ours, theirs] = SUBJECTS
                .map(|subject| number(results.at(subject, Load::Data(graph(kernel, is_uniform, scale)))));
            saved(ours, theirs)
        };
        let instructions = |it: &Measured| it.count("instructions") as f64;
        let cycles = |it: &Measured| it.count("cycles") as f64;
        let table = |what: &str, number: fn(&Measured) -> f64| Table {
            title: what.to_owned(),
            columns: GRAPHS.map(|(name, ..)| name.to_owned()).into(),
            rows: rows(&Kernel::GRAPH, |kernel| GRAPHS.map(|graph| column(kernel, graph, number)).into()),
        };
        let tables = vec![
            table("Instructions saved, in percent of those with the library, whole kernels", instructions),
            table("Time saved, in percent of the library's, whole kernels", cycles),
        ];
        let few = |table: &Table| {
            let atomic = table.rows.iter().filter(|(name, _)| name != "tc" && name != "average");
            atomic.flat_map(|(_, row)| row.clone()).fold(f64::INFINITY, f64::min)
        };
        let all = GRAPHS.into_iter().flat_map(|(_, is_uniform, scale)| {
            Kernel::GRAPH.map(|kernel| Load::Data(graph(kernel, is_uniform, scale)))
        });
        let all: u64 = all.map(|load| accesses(results.at(Subject::Rae, load))).sum();
        FigureReport {
            claims: vec![
                Claim::over(
                    "instructions saved, the least of all kernels but tc",
                    89.71,
                    few(&tables[0]),
                    "%",
                )
                .of_ours(),
                Claim::over("time saved, the least of all kernels but tc", 17.61, few(&tables[1]), "%")
                    .of_ours(),
            ],
            tables,
            remarks: vec![format!("{all} accesses of shared memory in all.")],
            ..report(
                self,
                &format!(
                    "Not in the paper: {NODES} nodes, against OpenSHMEM over shared memory, on graphs \
                     of other kind and size than in rae-7 and rae-8."
                ),
            )
        }
    }
}

const SUBJECTS: [Subject; 2] = [Subject::Rae, Subject::LibraryNear];
/// What they are called, whether they are uniform, and the logarithm of their vertices.
const GRAPHS: [(&str, bool, u16); 3] =
    [("Kronecker, 1024 vertices", false, 10), ("uniform, 1024", true, 10), ("uniform, 4096", true, 12)];
