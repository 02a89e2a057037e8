//! Reads and writes: what Clover loses when there are writes, and what steering gains, for both distributions.

use super::axis::{Axis, PAPER};
use crate::figure::claim::Claim;
use crate::figure::point::{Chains, Point, Subject};
use crate::figure::{Figure, FigureReport, Results};

/// Beyond the paper's figures (its introduction).
pub(super) struct Writes;

const WRITES: &[u32] = &[0, 5, 20, 50, 80, 100];
const SUBJECTS: [Subject; 6] = [
    Subject::Clover,
    Subject::Steering,
    Subject::SteeringReads,
    Subject::SteeringBound,
    Subject::SteeringWrites,
    Subject::SteeringAll,
];
const MILD: Axis = Axis { values: WRITES, load: |writes| Chains { writes: writes as u8, ..PAPER } };
const HOT: Axis = Axis { values: WRITES, load: |writes| Chains { writes: writes as u8, zipf: 99, ..PAPER } };

/// Why Clover loses less with the milder distribution.
const MILDER: &str = "Clover's figure is of another testbed, and of zipf 0.99 (cited from memory): more \
    conflicts than with 0.75.";

impl Figure for Writes {
    fn name(&self) -> &'static str {
        "steering-writes"
    }

    fn title(&self) -> &'static str {
        "Throughput of 64 threads against the share of writes, zipf 0.75 and 0.99"
    }

    fn points(&self) -> Vec<Point> {
        [&MILD, &HOT].into_iter().flat_map(|axis| axis.points(&SUBJECTS)).collect()
    }

    fn report(&self, results: &Results) -> FigureReport {
        let loses =
            |axis: &Axis, subject| axis.at(results, subject, 0).mops() / axis.at(results, subject, 50).mops();
        let mut claims = vec![
            Claim::at_least(
                "zipf 0.99: Clover, read-only over half writes",
                4.0,
                loses(&HOT, Subject::Clover),
            ),
            Claim::at_least("zipf 0.75: the same", 4.0, loses(&MILD, Subject::Clover)).because(MILDER),
        ];
        for (zipf, axis) in [("0.75", &MILD), ("0.99", &HOT)] {
            let mops = |subject| axis.at(results, subject, 50).mops();
            let what = |with: &str, than: &str| format!("zipf {zipf}, half writes: {with}, over {than}");
            for (with, subject) in [
                ("reads steered, too", Subject::SteeringReads),
                ("words bound", Subject::SteeringBound),
                ("words bound, and WRITEs", Subject::SteeringWrites),
            ] {
                let gain = mops(subject) / mops(Subject::Steering);
                claims.push(Claim::ahead(&what(with, "steering of appends alone"), gain).of_ours());
            }
            let all = mops(Subject::SteeringAll);
            claims.push(Claim::target(&what("all mechanisms", "Clover"), 2.0, all / mops(Subject::Clover)));
            for writes in [5, 50, 100] {
                let what = format!("zipf {zipf}, {writes} % writes: steering over Clover");
                claims.push(Claim::ahead(&what, axis.gain(results, writes)).of_ours());
            }
        }
        FigureReport {
            figure: self.name().to_owned(),
            title: self.title().to_owned(),
            notes: vec![
                "Not in the paper, except the first claim (its introduction, of Clover's Figure \
                7). All are proposals of section 5. \"Reads too\": the switch sends a READ of an old \
                entry to the tail. \"Words bound\": all compare-and-swaps reach the memory on one queue \
                pair of the switch. \"WRITEs\": of those, an append to an acknowledged tail to which \
                nothing else was sent becomes a WRITE."
                    .to_owned(),
            ],
            tables: Vec::new(),
            remarks: vec![
                "Three claims stand at their bounds, all with zipf 0.99: words bound, and WRITEs (0.97x to 1.01x, by how many \
                 operations are run), and 5 % writes (1.01x). That much moves them says little about these inputs."
                    .to_owned(),
            ],
            charts: vec![
                MILD.chart(results, ("steering-writes-75", "zipf 0.75", "writes (%)"), &SUBJECTS),
                HOT.chart(results, ("steering-writes-99", "zipf 0.99", "writes (%)"), &SUBJECTS),
            ],
            claims,
        }
    }
}
