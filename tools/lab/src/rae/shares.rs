//! Figures 1 and 2: how many instructions are atomics, and how many of those go to other nodes.

use super::{NODES, at, average, percent, points, report, rows};
use crate::figure::chart::Chart;
use crate::figure::claim::Claim;
use crate::figure::measured::Measured;
use crate::figure::point::{Kernel, Load, Point, Program, Subject};
use crate::figure::{Figure, FigureReport, Results};

/// Figure 1.
pub(super) struct Atomics;
/// Figure 2.
pub(super) struct Remote;

const NODE_COUNTS: [u8; 7] = [1, 2, 4, 8, 16, 32, 64];

const WHOLE: &str = "For each access ours divide, to find a vertex's node, and set an extension \
    register. The paper's GAPBS does neither, nor do the bars \"one address space\".";
const LOOPS: &str = "Even of PageRank's innermost loop the atomic is one instruction in seven, 14.3 % \
    (`rackmem-lab riscv disasm tools/riscv/programs/prebuilt/graph-local.elf`). The paper does not say \
    which instructions it counts.";

impl Figure for Atomics {
    fn name(&self) -> &'static str {
        "rae-1"
    }

    fn title(&self) -> &'static str {
        "Atomics among the instructions of graph kernels"
    }

    fn points(&self) -> Vec<Point> {
        let ours = points(&[Subject::Rae], &Kernel::GRAPH);
        let threads = Kernel::GRAPH.map(|kernel| Point::new(Subject::OneAddressSpace, alone(kernel)));
        [ours, threads.into()].concat()
    }

    fn report(&self, results: &Results) -> FigureReport {
        let share = |it: &Measured| {
            percent(it.count("atomics") + it.count("local atomics"), it.count("instructions"))
        };
        let ours = |kernel| share(at(results, Subject::Rae, kernel));
        let threads = |kernel| share(results.at(Subject::OneAddressSpace, alone(kernel)));
        let accesses = |kernel| {
            let it = at(results, Subject::Rae, kernel);
            percent(super::accesses(it), it.count("instructions"))
        };
        // All but triangles, which have none.
        let some = || Kernel::GRAPH.into_iter().filter(|kernel| *kernel != Kernel::Tc);
        let claim = |what: &str, ours| Claim::quantity(what, 17.46, ours, "%");
        FigureReport {
            charts: vec![
                Chart::bars(
                    ("rae-1", "Of the instructions of the whole kernel", "%"),
                    &["RAE: atomics", "RAE: all accesses of shared memory", "one address space: atomics"],
                    rows(&Kernel::GRAPH, |kernel| vec![ours(kernel), accesses(kernel), threads(kernel)]),
                )
                .stated_at("17.46 % on average", 0.0, 17.46),
            ],
            claims: vec![
                claim("atomics, average of the kernels", average(Kernel::GRAPH.map(ours))).because(WHOLE),
                claim("one address space, average without tc", average(some().map(threads))).because(LOOPS),
                claim("one address space, the most", some().map(threads).fold(0.0, f64::max)).because(LOOPS),
            ],
            ..report(
                self,
                &format!(
                    "{NODES} nodes, RAE, Kronecker graph, without building it. One address space: the \
                     same sources on one node with the processor's own atomics; a compare-and-swap is \
                     lr and sc, two atomics, as in GAP."
                ),
            )
        }
    }
}

/// With one node's memory.
const fn alone(kernel: Kernel) -> Load {
    Load::Program(Program { kernel, nodes: 1 })
}

impl Figure for Remote {
    fn name(&self) -> &'static str {
        "rae-2"
    }

    fn title(&self) -> &'static str {
        "Atomics of SCATTER that are remote"
    }

    fn points(&self) -> Vec<Point> {
        NODE_COUNTS.map(|nodes| Point::new(Subject::Rae, scatter(nodes))).into()
    }

    fn report(&self, results: &Results) -> FigureReport {
        let share = |nodes| {
            let it: &Measured = results.at(Subject::Rae, scatter(nodes));
            100.0 - percent(it.count("to itself"), super::accesses(it))
        };
        let title = ("rae-2", "Atomics of SCATTER that are remote", "nodes", "%");
        let chart = Chart::new(title.0, title.1, title.2, title.3)
            .line("remote", NODE_COUNTS.map(|nodes| (f64::from(nodes), share(nodes))))
            .stated("0 and 98.44 %", [(1.0, 0.0, 0.0), (64.0, 98.44, 98.44)]);
        FigureReport {
            charts: vec![chart],
            claims: vec![
                Claim::quantity("remote, one PE", 0.0, share(1), "%").by_construction(),
                Claim::quantity("remote, 64 PEs", 98.44, share(64), "%").by_construction(),
            ],
            ..report(self, "The array is interleaved over all nodes; indexes are random.")
        }
    }
}

const fn scatter(nodes: u8) -> Load {
    Load::Program(Program { kernel: Kernel::Scatter, nodes })
}
