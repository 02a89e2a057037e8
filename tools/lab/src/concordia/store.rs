//! Figure 14: the key-value store, skewed.

use super::compare::{Axis, GRAPPA_FASTER, STORES, from_to, never_behind};
use crate::figure::chart::Chart;
use crate::figure::claim::Claim;
use crate::figure::point::{Load, Point, Store, Subject};
use crate::figure::{Figure, FigureReport, Results, Table};

/// Figure 14.
pub(super) struct KeyValue;

const NODES: &[u8] = &[1, 2, 4, 6, 8];
/// "When there are more than 2 nodes".
const MANY: &[u8] = &[4, 6, 8];
const SUBJECTS: [Subject; 4] = [Subject::Rackmem, Subject::Concordia, Subject::Gam, Subject::Grappa];

fn reading(nodes: u8) -> Load {
    Load::Store(Store { nodes, gets: 95 })
}

fn writing(nodes: u8) -> Load {
    Load::Store(Store { nodes, gets: 50 })
}

const READING: Axis = Axis { values: NODES, load: reading };
const WRITING: Axis = Axis { values: NODES, load: writing };

/// The longest operation of each run.
fn waits(axis: &Axis, gets: &str, results: &Results) -> Table {
    let of = |subject: Subject| {
        let longest = axis.line(results, subject, |it| it.longest / 1e3).map(|(_, longest)| longest);
        (subject.name().to_owned(), longest.collect())
    };
    Table {
        title: format!("The longest operation of any thread, {gets}, in ms"),
        columns: axis.values.iter().map(|nodes| format!("{nodes} nodes")).collect(),
        rows: SUBJECTS.map(of).into(),
    }
}

impl Figure for KeyValue {
    fn name(&self) -> &'static str {
        "concordia-14"
    }

    fn title(&self) -> &'static str {
        "A key-value store against the number of nodes, keys by Zipf's law with 0.99"
    }

    fn points(&self) -> Vec<Point> {
        [READING.points(&SUBJECTS), WRITING.points(&SUBJECTS)].concat()
    }

    fn report(&self, results: &Results) -> FigureReport {
        let mut claims = Vec::new();
        for (axis, gets, grappa, gam) in
            [(READING, "95 % GET", (3.9, 5.0), (1.2, 2.5)), (WRITING, "50 % GET", (2.3, 2.6), (1.2, 4.2))]
        {
            for (other, paper, cause) in
                [(Subject::Grappa, grappa, GRAPPA_FASTER), (Subject::Gam, gam, STORES)]
            {
                let what = format!("{gets}, more than 2 nodes: Concordia over {}", other.name());
                let ratios = axis.ratios(results, Subject::Concordia, other, MANY);
                claims.extend(from_to(&what, paper, &ratios, cause));
            }
        }
        let all = |subject| {
            WRITING.line(results, subject, |it| it.mops()).map(|(_, mops)| mops).collect::<Vec<_>>()
        };
        claims.push(Claim::falls("50 % GET: GAM falls from 4 nodes to 8", &all(Subject::Gam)[2..]));
        let behind = WRITING.ratios(results, Subject::Grappa, Subject::Gam, &[8]);
        claims.push(Claim::ahead("50 % GET, 8 nodes: Grappa ahead of GAM", behind[0]));
        claims.push(Claim::rises("50 % GET: Concordia rises with every node", &all(Subject::Concordia)));
        let ours = |axis: &Axis| axis.ratios(results, Subject::Rackmem, Subject::Concordia, NODES);
        claims.push(never_behind(&[ours(&READING), ours(&WRITING)].concat()));
        let contended = ours(&WRITING).last().copied().unwrap_or(0.0);
        claims.push(Claim::target("50 % GET, 8 nodes: rackmem over Concordia", 1.3, contended));
        let chart = |axis: Axis, part, gets| {
            let title = format!("Key-value store, {gets}");
            let empty = Chart::new(&format!("{}{part}", self.name()), &title, "nodes", "Mops");
            let (grappa, gam) = if part == "a" { ((3.9, 5.0), (1.2, 2.5)) } else { ((2.3, 2.6), (1.2, 4.2)) };
            axis.throughput(empty, results, &SUBJECTS)
                .stated_ratio(
                    "Concordia, of Grappa",
                    Subject::Grappa.name(),
                    grappa,
                    MANY.iter().copied().map(f64::from),
                )
                .stated_ratio(
                    "Concordia, of GAM",
                    Subject::Gam.name(),
                    gam,
                    MANY.iter().copied().map(f64::from),
                )
        };
        FigureReport {
            figure: self.name().to_owned(),
            title: self.title().to_owned(),
            notes: vec![
                "FlowCC and GAM run the store of `crates/apps`. Grappa sends operations to the key's \
                 owner."
                    .to_owned(),
                "The most popular of the paper's 64 million keys keep their share of requests; the \
                 others share our fewer keys by a hash. So conflicts are the paper's. The cache is \
                 larger than in proportion, for as many hits as with the paper's sizes (3 in 4, \
                 `load::store`)."
                    .to_owned(),
            ],
            tables: [(READING, "95 % GET"), (WRITING, "50 % GET")]
                .into_iter()
                .map(|(axis, gets)| waits(&axis, gets, results))
                .collect(),
            remarks: Vec::new(),
            charts: vec![chart(READING, "a", "95 % GET"), chart(WRITING, "b", "50 % GET")],
            claims,
        }
    }
}
