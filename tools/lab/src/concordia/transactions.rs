//! Figure 15: TPC-C.

use super::compare::{Axis, extremes, never_behind};
use crate::figure::chart::Chart;
use crate::figure::claim::Claim;
use crate::figure::measured::Measured;
use crate::figure::point::{Load, Point, Subject, Transactions};
use crate::figure::{Figure, FigureReport, Results, Table};
use crate::systems::transactions::ABORTED;

/// Figure 15.
pub(super) struct Tpcc;

/// How often another warehouse is meant, in percent.
const DISTRIBUTION: &[u8] = &[0, 20, 60, 100];
const ABOVE: &[u8] = &[20, 60, 100];
const SUBJECTS: [Subject; 4] = [Subject::Rackmem, Subject::Concordia, Subject::HomeOnly, Subject::GamLarge];

/// Why ours differs.
const MEMORY_BOUND: &str = "An engine accesses the memory some 200 times in a transaction: ours does, and so does GAM's, counted \
    in its published source (8 times for a row, of which 4 or 5 in its index). GAM's local access, calibrated to Figure 12, takes nearly \
    six times FlowCC's, so GAM is behind without any sharing, also where Concordia travels for each lock.";
const LOCKS_OF_BLOCKS: &str = "A block's lock is that of all rows in it: of eleven of stock. All 32 threads are inside a transaction \
    all the time, however long it takes, so shorter transactions, by which the paper explains its difference, do not make fewer meet.";

fn load(distribution: u8) -> Load {
    Load::Transactions(Transactions { distribution })
}

const AXIS: Axis = Axis { values: DISTRIBUTION, load };

/// Attempts in vain, in percent of all.
fn aborted(it: &Measured) -> f64 {
    let aborted = it.count(ABORTED) as f64;
    aborted * 100.0 / (aborted + it.operations as f64)
}

impl Figure for Tpcc {
    fn name(&self) -> &'static str {
        "concordia-15"
    }

    fn title(&self) -> &'static str {
        "TPC-C against how often transactions are about other warehouses"
    }

    fn points(&self) -> Vec<Point> {
        AXIS.points(&SUBJECTS)
    }

    fn report(&self, results: &Results) -> FigureReport {
        let over_gam = |values: &[u8]| AXIS.ratios(results, Subject::Concordia, Subject::GamLarge, values);
        // A ratio needs some: none at all in a small run is one in ten thousand.
        let aborts = |subject| {
            AXIS.line(results, subject, aborted).map(|(_, share)| share.max(0.01)).collect::<Vec<_>>()
        };
        let (least, most) = extremes(&over_gam(ABOVE));
        let gam = "GAM";
        let mut claims = vec![
            Claim::ratio(&format!("0 %: Concordia over {gam} (almost the same)"), 1.0, over_gam(&[0])[0])
                .because(MEMORY_BOUND),
            Claim::ratio(&format!("above 0 %: Concordia over {gam}, at least"), 1.55, least)
                .because(MEMORY_BOUND),
            Claim::ratio(&format!("above 0 %: Concordia over {gam}, at most"), 2.0, most)
                .because(MEMORY_BOUND),
        ];
        let (ours, theirs) = (aborts(Subject::Concordia), aborts(Subject::GamLarge));
        let fewer: Vec<f64> = theirs.iter().zip(&ours).skip(1).map(|(gam, ours)| gam / ours).collect();
        let worst = extremes(&fewer).0;
        let aborts_less = Claim::ahead("above 0 %: aborts of GAM over Concordia's, at the worst", worst);
        claims.push(aborts_less.because(LOCKS_OF_BLOCKS));
        for (subject, aborts) in [(Subject::Concordia, &ours), (Subject::GamLarge, &theirs)] {
            let what = format!("{} aborts more with every step of distribution", subject.name());
            claims.push(Claim::rises(&what, &aborts[1..]));
        }
        claims.push(never_behind(&AXIS.ratios(results, Subject::Rackmem, Subject::Concordia, DISTRIBUTION)));
        let x = "distribution (%)";
        let chart =
            |part: &str, title: &str, y: &str| Chart::new(&format!("{}{part}", self.name()), title, x, y);
        let throughput = SUBJECTS
            .iter()
            .fold(chart("a", "TPC-C: throughput", "thousand transactions/s"), |chart, subject| {
                chart.line(subject.name(), AXIS.line(results, *subject, |it| it.mops() * 1e3))
            });
        let above = ABOVE.iter().copied().map(f64::from);
        let throughput =
            throughput.stated_ratio("Concordia, of GAM", Subject::GamLarge.name(), (1.55, 2.0), above);
        let ratio = SUBJECTS
            .iter()
            .fold(chart("b", "TPC-C: aborts", "aborted, of all attempts (%)"), |chart, subject| {
                chart.line(subject.name(), AXIS.line(results, *subject, aborted))
            });
        let table = |title: &str, of: fn(&Measured) -> u64| {
            let row = |subject: Subject| {
                let counts = AXIS.line(results, subject, |it| it.per_operation(of(it)));
                (subject.name().to_owned(), counts.map(|(_, count)| count).collect())
            };
            Table {
                title: title.to_owned(),
                columns: DISTRIBUTION.iter().map(|value| format!("{value} %")).collect(),
                rows: SUBJECTS.map(row).into(),
            }
        };
        FigureReport {
            figure: self.name().to_owned(),
            title: self.title().to_owned(),
            notes: vec![
                "All run the engine of `crates/apps` ([tpcc.md](tpcc.md)) in blocks of 4 KiB: two-phase locking, and \
                 whoever finds a lock taken begins again, after a pause. Transactions are new orders and payments, 45 \
                 to 43, as in the engine that the paper ports (GAM's, `TpccConstants.h`). Each thread has a warehouse, \
                 so there are 32; with fewer rows than specified. Throughput is of all transactions."
                    .to_owned(),
                "Concordia and home-only lock rows as the paper does, by FlowCC's locks of their blocks (section 6): \
                 each is asked for, and held in a slot of its own, of which nodes have 256 here. GAM and `rackmem` have \
                 words in rows; so a lock is where the row is cached, as GAM's own is (`cache.cc`)."
                    .to_owned(),
                "GAM has blocks of 4 KiB, too: with its own 512 B, indices would be deeper and it would be slower."
                    .to_owned(),
            ],
            tables: vec![
                table("Accesses that needed nobody but the thread, for a transaction", |it| it.hits),
                table("Messages of nodes and switch for a transaction", |it| it.packets),
            ],
            remarks: Vec::new(),
            charts: vec![throughput, ratio],
            claims,
        }
    }
}
