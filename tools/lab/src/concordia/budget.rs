//! Not in the paper: where the time of an operation goes when everything is shared, and in the key-value store.

use crate::figure::claim::Claim;
use crate::figure::point::{Load, Micro, Point, Store, Subject};
use crate::figure::{Figure, FigureReport, Results, Table};

/// The budget.
pub(super) struct Spent;

const LOAD: Load = Load::Budget(Micro::sharing(100));
/// Where conflict is the bottleneck: the key-value store of Figure 14, half of the operations GETs.
const STORE: Load = Load::StoreBudget(Store { nodes: 8, gets: 50 });
const SUBJECTS: [Subject; 5] =
    [Subject::Concordia, Subject::HomeOnly, Subject::Rackmem, Subject::PartFirst, Subject::Shipped];

/// The access itself.
pub(crate) const ACCESS: &str = "access in place";
/// See `sim::rack::Budget`, as all of these.
pub(crate) const HANDLING: &str = "work on messages: posting, finding, handlers";
/// Processors that do something else.
pub(crate) const BUSY: &str = "waiting for a processor";
/// Messages without bytes.
pub(crate) const WAY: &str = "way of messages: doorbells, NICs, cables, pipeline";
/// Their bytes.
pub(crate) const TRANSFER: &str = "blocks: fetched, on two links, written";
/// Contention for NICs and links.
pub(crate) const QUEUES: &str = "waiting for NICs and links";
/// The rest.
pub(crate) const WAITING: &str = "refused, backing off, in line";
/// The sum.
pub(crate) const ALL: &str = "an operation";

const CAUSES: [&str; 8] = [ACCESS, HANDLING, BUSY, WAY, TRANSFER, QUEUES, WAITING, ALL];

impl Figure for Spent {
    fn name(&self) -> &'static str {
        "concordia-budget"
    }

    fn title(&self) -> &'static str {
        "Not in the paper: where the time of an operation goes, half of the operations read"
    }

    fn points(&self) -> Vec<Point> {
        [LOAD, STORE].into_iter().flat_map(|load| SUBJECTS.map(|subject| Point::new(subject, load))).collect()
    }

    fn report(&self, results: &Results) -> FigureReport {
        let table = |load, title: &str| {
            let it = |subject| results.at(subject, load);
            let row =
                |cause: &str| (cause.to_owned(), SUBJECTS.map(|subject| it(subject).cause(cause)).to_vec());
            let mops = SUBJECTS.map(|subject| it(subject).mops()).to_vec();
            Table {
                title: title.to_owned(),
                columns: SUBJECTS.map(|subject| subject.name().to_owned()).into(),
                rows: CAUSES.map(row).into_iter().chain([("throughput (Mops)".to_owned(), mops)]).collect(),
            }
        };
        let over =
            |load, subject| results.at(subject, load).mops() / results.at(Subject::Concordia, load).mops();
        FigureReport {
            figure: self.name().to_owned(),
            title: self.title().to_owned(),
            notes: vec![
                "Times are measured along the chain of messages that each operation waited for, \
                 including another thread's fetch of the same block. Hits count, with their access \
                 alone; a store operation has two accesses."
                    .to_owned(),
            ],
            charts: Vec::new(),
            tables: vec![
                table(
                    LOAD,
                    "Nanoseconds of an operation of the micro benchmark at 100 % sharing, on average",
                ),
                table(
                    STORE,
                    "Nanoseconds of an operation of the key-value store on 8 nodes (Figure 14), half of them GETs",
                ),
            ],
            claims: vec![
                Claim::target("100 % sharing: rackmem over Concordia", 1.3, over(LOAD, Subject::Rackmem)),
                Claim::target(
                    "100 % sharing: words first, an estimate, over Concordia",
                    1.3,
                    over(LOAD, Subject::PartFirst),
                ),
                Claim::target(
                    "100 % sharing: operations shipped, an estimate, over Concordia",
                    1.3,
                    over(LOAD, Subject::Shipped),
                ),
                Claim::target("Key-value store: rackmem over Concordia", 1.3, over(STORE, Subject::Rackmem)),
            ],
            remarks: REMARKS.map(str::to_owned).into(),
        }
    }
}

const REMARKS: [&str; 5] = [
    "At 100 % uniform sharing a miss costs two messages in a row through the switch, and a block of 4 \
     KiB; conflicts cost little. In the store, operations on the hottest keys also wait for the blocks \
     of those before them.",
    "*PEEK*, on the `rackmem` line: a node that has modified a block answers a read of a few of its \
     words with the words. No lock is taken, no copy is made and no block goes home. Nodes remember for \
     which blocks this pays. Writes still move blocks. On this line a locked entry moves to the switch \
     at its unlock.",
    "The last two columns are *estimates*: rackmem's code with other times for blocks on the wire \
     (`sim::rack::Blocks`).",
    "*Words first*: a requester goes on with its words; the block follows. It assumes that no thread \
     needs the rest earlier. With PEEK only writes gain.",
    "*Operations shipped*: no block travels, as in Grappa. It loses wherever a block is used again, so \
     a node would have to predict reuse.",
];
