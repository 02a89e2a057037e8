//! Not in the paper: all threads on one block. Nothing but conflict, and whether somebody starves.

use node::HoldTime;

use super::compare::Axis;
use crate::figure::chart::Chart;
use crate::figure::claim::Claim;
use crate::figure::point::{Conflict, Load, Point, Subject};
use crate::figure::{Figure, Report, Results, Table};

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

/// What a turn is.
fn turn() -> String {
    let HoldTime { pause, most } = HoldTime::PUBLISHED_HARDWARE;
    format!(
        "On the `rackmem` line a node that is asked for the word through the line keeps it as long as its own threads write in \
         it without a pause of {} ns, but at most {} us longer. A line that hands a block over after each access does not: it \
         has the shortest waits, and moves the block all the time. How the two times were chosen is in ARCHITECTURE.md, \
         \"Standing in line\".",
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

    fn report(&self, results: &Results) -> Report {
        let chart = |axis: Axis, part, what| {
            let title = format!("All threads on one word, {what}");
            let empty = Chart::new(&format!("{}{part}", self.name()), &title, "nodes", "Mops");
            axis.throughput(empty, results, &SUBJECTS)
        };
        let ours =
            |axis: &Axis| axis.ratios(results, Subject::Rackmem, Subject::Concordia, NODES).last().copied();
        let ahead = |what: &str, axis| {
            let what = format!("8 nodes, {what}: rackmem over Concordia (our own mark)");
            Claim::mark(&what, 1.3, ours(axis).unwrap_or(0.0))
        };
        Report {
            figure: self.name().to_owned(),
            title: self.title().to_owned(),
            notes: vec![
                "Four threads on each node access the same 8 bytes again and again. Grappa sends every operation to the one \
                 thread that has the word."
                    .to_owned(),
                turn(),
            ],
            tables: vec![
                table("The longest operation of any thread, half of them reads, in ms", &HALF, results, |it| it.longest / 1e3),
                table("The same, writes only", &WRITING, results, |it| it.longest / 1e3),
                table("What the thread that did least did of an equal share, half reads", &HALF, results, |it| it.least),
                table("The same, writes only", &WRITING, results, |it| it.least),
            ],
            remarks: Vec::new(),
            charts: vec![chart(HALF, "-half", "half of the operations read"), chart(WRITING, "-writes", "writes only")],
            claims: vec![ahead("half reads", &HALF), ahead("writes only", &WRITING)],
        }
    }
}
