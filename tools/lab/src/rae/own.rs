//! Two figures of our own: throughput against nodes, and merging against the heat of a word.

use super::{percent, report};
use crate::figure::chart::Chart;
use crate::figure::claim::Claim;
use crate::figure::measured::Measured;
use crate::figure::point::{Kernel, Load, Point, Program, Subject};
use crate::figure::{Figure, FigureReport, Results};

/// Throughput against nodes.
pub(super) struct Nodes;
/// Merging against heat.
pub(super) struct Merging;

const NODE_COUNTS: [u8; 7] = [1, 2, 4, 8, 16, 32, 64];
const LINES: [(Subject, Kernel, &str); 4] = [
    (Subject::Rae, Kernel::Rand, "rand, RAE"),
    (Subject::LibraryNear, Kernel::Rand, "rand, OpenSHMEM, shared memory"),
    (Subject::Rae, Kernel::Central, "central, RAE"),
    (Subject::LibraryNear, Kernel::Central, "central, OpenSHMEM, shared memory"),
];

const HEATS: [u8; 7] = [0, 10, 25, 50, 75, 90, 100];
const MOST: u8 = 64;
const ENGINES: [Subject; 2] = [Subject::Rae, Subject::RaeUnmerged];

const fn load(kernel: Kernel, nodes: u8) -> Load {
    Load::Program(Program { kernel, nodes })
}

impl Figure for Nodes {
    fn name(&self) -> &'static str {
        "rae-nodes"
    }

    fn title(&self) -> &'static str {
        "Atomics a second against nodes"
    }

    fn points(&self) -> Vec<Point> {
        let of = |(subject, kernel, _): (Subject, Kernel, &str)| {
            NODE_COUNTS.map(|nodes| Point::new(subject, load(kernel, nodes)))
        };
        LINES.into_iter().flat_map(of).collect()
    }

    fn report(&self, results: &Results) -> FigureReport {
        let rate = |subject, kernel, nodes| results.at(subject, load(kernel, nodes)).mops();
        let title = ("rae-nodes", "Atomics a second against nodes", "nodes", "millions a second, all nodes");
        let chart = LINES.into_iter().fold(
            Chart::new(title.0, title.1, title.2, title.3),
            |chart, (subject, kernel, name)| {
                chart.line(name, NODE_COUNTS.map(|nodes| (f64::from(nodes), rate(subject, kernel, nodes))))
            },
        );
        let ahead = |kernel| rate(Subject::Rae, kernel, 64) / rate(Subject::LibraryNear, kernel, 64);
        let claims = vec![
            Claim::ahead("rand, 64 nodes: RAE over OpenSHMEM, shared memory", ahead(Kernel::Rand)).of_ours(),
            Claim::ahead("central, 64 nodes: RAE over OpenSHMEM, shared memory", ahead(Kernel::Central))
                .of_ours(),
        ];
        FigureReport {
            charts: vec![chart],
            claims,
            ..report(
                self,
                "Not in the paper. rand: random elements over all nodes. central: one word of node 0. \
                 One node uses its own engine.",
            )
        }
    }
}

impl Figure for Merging {
    fn name(&self) -> &'static str {
        "rae-merging"
    }

    fn title(&self) -> &'static str {
        "Merging against the heat of a word"
    }

    fn points(&self) -> Vec<Point> {
        let of = |subject| HEATS.map(|heat| Point::new(subject, load(Kernel::Words(heat), MOST)));
        ENGINES.into_iter().flat_map(of).collect()
    }

    fn report(&self, results: &Results) -> FigureReport {
        let it = |subject, heat: u8| -> &Measured { results.at(subject, load(Kernel::Words(heat), MOST)) };
        let title = (
            "rae-merging",
            "64 nodes, some of their additions to one word",
            "% of additions to one word",
            "millions a second",
        );
        let chart =
            ENGINES.into_iter().fold(Chart::new(title.0, title.1, title.2, title.3), |chart, subject| {
                chart.line(subject.name(), HEATS.map(|heat| (f64::from(heat), it(subject, heat).mops())))
            });
        let share =
            |heat| percent(it(Subject::Rae, heat).count("merged"), it(Subject::Rae, heat).count("requests"));
        let merged = Chart::new("rae-merged", "Requests that joined others on their line", title.2, "%")
            .line("RAE", HEATS.map(|heat| (f64::from(heat), share(heat))));
        let times = it(Subject::Rae, 100).mops() / it(Subject::RaeUnmerged, 100).mops();
        FigureReport {
            charts: vec![chart, merged],
            claims: vec![Claim::target("one word, 64 nodes: with merging over without", 4.0, times)],
            ..report(
                self,
                "Not in the paper. Fetch-and-adds to the hot word or to random words. Without merging a \
                 miss-status register has one subentry, and the next request for its line waits.",
            )
        }
    }
}
