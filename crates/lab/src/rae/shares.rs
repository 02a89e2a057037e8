//! Figures 1 and 2: how many instructions are atomics, and how many of those go to other nodes.

use super::{NODES, at, average, percent, points, report, rows};
use crate::figure::chart::Chart;
use crate::figure::claim::Claim;
use crate::figure::measured::Measured;
use crate::figure::point::{Kernel, Load, Point, Program, Subject};
use crate::figure::{Figure, Report, Results, Table};

/// Figure 1.
pub(super) struct Atomics;
/// Figure 2.
pub(super) struct Remote;

const NODE_COUNTS: [u8; 7] = [1, 2, 4, 8, 16, 32, 64];

const WHOLE: &str = "The paper counts assembly instructions of GAPBS, which is OpenMP on one machine; its kernels are other programs. Ours \
    build queues and compute where a vertex is, and triangles are counted without atomics, one at each node apart.";

impl Figure for Atomics {
    fn name(&self) -> &'static str {
        "rae-1"
    }

    fn title(&self) -> &'static str {
        "Atomics among the instructions of graph kernels"
    }

    fn points(&self) -> Vec<Point> {
        points(&[Subject::Rae], &Kernel::GRAPH)
    }

    fn report(&self, results: &Results) -> Report {
        let share = |kernel| {
            let it = at(results, Subject::Rae, kernel);
            percent(it.count("atomics") + it.count("local atomics"), it.count("instructions"))
        };
        let accesses = |kernel| {
            let it = at(results, Subject::Rae, kernel);
            percent(super::accesses(it), it.count("instructions"))
        };
        let claim =
            Claim::quantity("atomics, average of the kernels", 17.46, average(Kernel::GRAPH.map(share)), "%");
        Report {
            tables: vec![Table {
                title: "Of the instructions of the whole kernel, in percent".to_owned(),
                columns: ["atomics", "all accesses of shared memory"].map(str::to_owned).into(),
                rows: rows(&Kernel::GRAPH, |kernel| vec![share(kernel), accesses(kernel)]),
            }],
            claims: vec![claim.because(WHOLE)],
            ..report(
                self,
                &format!("{NODES} nodes, RAE, on a Kronecker graph. Building the graph is not counted."),
            )
        }
    }
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

    fn report(&self, results: &Results) -> Report {
        let share = |nodes| {
            let it: &Measured = results.at(Subject::Rae, scatter(nodes));
            100.0 - percent(it.count("to itself"), super::accesses(it))
        };
        let title = ("rae-2", "Atomics of SCATTER that are remote", "nodes", "%");
        let chart = Chart::new(title.0, title.1, title.2, title.3)
            .line("remote", NODE_COUNTS.map(|nodes| (f64::from(nodes), share(nodes))));
        Report {
            charts: vec![chart],
            claims: vec![
                Claim::quantity("remote, one PE", 0.0, share(1), "%"),
                Claim::quantity("remote, 64 PEs", 98.44, share(64), "%"),
            ],
            ..report(
                self,
                "The array is spread over all nodes, an element at a time, and indexes are random.",
            )
        }
    }
}

const fn scatter(nodes: u8) -> Load {
    Load::Program(Program { kernel: Kernel::Scatter, nodes })
}
