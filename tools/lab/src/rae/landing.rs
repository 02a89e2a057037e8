//! Figure 9: where requests of SCATTER land in node 0's memory.

use super::{NODES, report};
use crate::figure::chart::Chart;
use crate::figure::claim::{Claim, number};
use crate::figure::point::{Kernel, Load, Point, Program, Subject};
use crate::figure::{Figure, FigureReport, Results};

/// Figure 9.
pub(super) struct Landing;

const SCATTER: Load = Load::Landing(Program { kernel: Kernel::Scatter, nodes: NODES });
/// Of those that are taken, every so many is drawn.
const DRAWN: usize = 20;
const LINE: u64 = 64;

impl Figure for Landing {
    fn name(&self) -> &'static str {
        "rae-9"
    }

    fn title(&self) -> &'static str {
        "Where requests of SCATTER land at node 0"
    }

    fn points(&self) -> Vec<Point> {
        vec![Point::new(Subject::Rae, SCATTER)]
    }

    fn report(&self, results: &Results) -> FigureReport {
        let places = &results.at(Subject::Rae, SCATTER).places;
        let title = ("rae-9", "Requests at node 0", "request", "KiB from the beginning of the heap");
        let drawn = places.iter().step_by(DRAWN).map(|(at, offset)| (*at as f64, *offset as f64 / 1024.0));
        let mut lines: Vec<u64> = places.iter().map(|(_, offset)| offset / LINE).collect();
        let after = lines.windows(2).filter(|two| two[0] == two[1]).count();
        let near = 100.0 * after as f64 / lines.len().saturating_sub(1).max(1) as f64;
        let all = lines.len();
        lines.sort_unstable();
        lines.dedup();
        let chart = Chart::new(title.0, title.1, title.2, title.3).line("requests", drawn).dots();
        let claim = Claim::over(
            "requests to another line than the one before (\"sparsely scattered\")",
            50.0,
            100.0 - near,
            "%",
        );
        let remark = format!(
            "{all} requests to {} lines; {} % of them to the same line as the request before.",
            lines.len(),
            number(near)
        );
        FigureReport {
            charts: vec![chart],
            claims: vec![claim],
            remarks: vec![remark],
            ..report(
                self,
                "Six nodes. Every twentieth of an even sample of at most ten thousand remote requests. \
                 An iteration has an atomic on the indexes and one on the values, both in order (the \
                 rising lines), and one on a random value. The paper draws compare-and-swaps; \
                 fetch-and-adds land in the same locations.",
            )
        }
    }
}
