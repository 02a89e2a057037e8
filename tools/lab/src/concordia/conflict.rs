//! Not in the paper: all threads on one block. It shows throughput under conflict alone, and starvation.

use node::HoldTime;

use super::compare::Axis;
use crate::figure::chart::Chart;
use crate::figure::claim::Claim;
use crate::figure::point::{Conflict, Load, Point, Subject};
use crate::figure::{Figure, FigureReport, Results, Table};

/// The experiment.
pub(super) struct OneBlock;

const NODES: &[u8] = &[2, 4, 6, 8];
const SUBJECTS: [Subject; 5] =
    [Subject::Rackmem, Subject::Concordia, Subject::HomeOnly, Subject::Gam, Subject::Grappa];

fn half(nodes: u8) -> Load {
    Load::Conflict(Conflict { nodes, reads: 50 })
}

fn writing(nodes: u8) -> Load {
    Load::Conflict(Conflict { nodes, reads: 0 })
}

const HALF: Axis = Axis { values: NODES, load: half };
const WRITING: Axis = Axis { values: NODES, load: writing };

/// One number of every run.
fn table(
    title: &str,
    axis: &Axis,
    results: &Results,
    number: fn(&crate::figure::measured::Measured) -> f64,
) -> Table {
    let of = |subject: Subject| {
        let numbers = axis.line(results, subject, number).map(|(_, value)| value);
        (subject.name().to_owned(), numbers.collect())
    };
    Table {
        title: title.to_owned(),
        columns: axis.values.iter().map(|nodes| format!("{nodes} nodes")).collect(),
        rows: SUBJECTS.map(of).into(),
    }
}

/// What the hold time is.
fn turn() -> String {
    let HoldTime { pause, most } = HoldTime::PUBLISHED_HARDWARE;
    format!(
        "On the `rackmem` line a node that is asked through the wait queue keeps the word while its own \
         threads write it without a pause of {} ns, at most {} us longer: waits are longer, and the \
         block moves less. ARCHITECTURE.md says how these times were chosen.",
        pause.0,
        most.0 / 1000
    )
}

impl Figure for OneBlock {
    fn name(&self) -> &'static str {
        "concordia-conflict"
    }

    fn title(&self) -> &'static str {
        "Not in the paper: all threads on one word"
    }

    fn points(&self) -> Vec<Point> {
        [HALF.points(&SUBJECTS), WRITING.points(&SUBJECTS)].concat()
    }

    fn report(&self, results: &Results) -> FigureReport {
        let chart = |axis: Axis, part, what| {
            let title = format!("All threads on one word, {what}");
            let empty = Chart::new(&format!("{}{part}", self.name()), &title, "nodes", "Mops");
            axis.throughput(empty, results, &SUBJECTS)
        };
        let ours =
            |axis: &Axis| axis.ratios(results, Subject::Rackmem, Subject::Concordia, NODES).last().copied();
        let ahead = |what: &str, axis| {
            let what = format!("8 nodes, {what}: rackmem over Concordia");
            Claim::target(&what, 1.3, ours(axis).unwrap_or(0.0))
        };
        FigureReport {
            figure: self.name().to_owned(),
            title: self.title().to_owned(),
            notes: vec![
                "Four threads a node access the same 8 bytes. Grappa sends operations to the word's \
                 owner."
                    .to_owned(),
                turn(),
            ],
            tables: vec![
                table(
                    "The longest operation of any thread, half of them reads, in ms",
                    &HALF,
                    results,
                    |it| it.longest / 1e3,
                ),
                table("The same, writes only", &WRITING, results, |it| it.longest / 1e3),
                table("Operations of the slowest thread over the mean, half reads", &HALF, results, |it| {
                    it.least
                }),
                table("The same, writes only", &WRITING, results, |it| it.least),
            ],
            remarks: Vec::new(),
            charts: vec![
                chart(HALF, "-half", "half of the operations read"),
                chart(WRITING, "-writes", "writes only"),
            ],
            claims: vec![ahead("half reads", &HALF), ahead("writes only", &WRITING)],
        }
    }
}
