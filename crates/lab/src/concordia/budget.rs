//! Not in the paper: where the time of an operation goes when everything is shared, and what could be saved there.

use crate::figure::claim::Claim;
use crate::figure::point::{Load, Micro, Point, Store, Subject};
use crate::figure::{Figure, Report, Results, Table};

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
        "Not in the paper: where the time of an operation goes at 100 % sharing, half of the operations read"
    }

    fn points(&self) -> Vec<Point> {
        [LOAD, STORE].into_iter().flat_map(|load| SUBJECTS.map(|subject| Point::new(subject, load))).collect()
    }

    fn report(&self, results: &Results) -> Report {
        let it = |subject| results.at(subject, LOAD);
        let row = |cause: &str| (cause.to_owned(), SUBJECTS.map(|subject| it(subject).cause(cause)).to_vec());
        let throughput =
            ("throughput (Mops)".to_owned(), SUBJECTS.map(|subject| it(subject).mops()).to_vec());
        let over = |subject| it(subject).mops() / it(Subject::Concordia).mops();
        Report {
            figure: self.name().to_owned(),
            title: self.title().to_owned(),
            notes: vec![
                "Measured along the chain of messages that each operation waited for: a message has the path of what it was \
                 sent upon, and a thread that of the message that woke it. Hits count, too: an operation in seven has nothing \
                 but its access. Where an operation waits for another thread's fetch of the same block, that one's path is \
                 counted."
                    .to_owned(),
            ],
            charts: Vec::new(),
            tables: vec![Table {
                title: "Nanoseconds of an operation, on average".to_owned(),
                columns: SUBJECTS.map(|subject| subject.name().to_owned()).into(),
                rows: CAUSES.map(row).into_iter().chain([throughput]).collect(),
            }],
            claims: vec![
                Claim::mark("rackmem over Concordia (our own mark)", 1.3, over(Subject::Rackmem)),
                Claim::mark("words first, an estimate, over Concordia (our own mark)", 1.3, over(Subject::PartFirst)),
                Claim::mark("operations shipped, an estimate, over Concordia (our own mark)", 1.3, over(Subject::Shipped)),
            ],
            remarks: REMARKS.map(str::to_owned).into(),
        }
    }
}

const REMARKS: [&str; 5] = [
    "Conflict is not what costs here: the line has nothing to win at 100 % uniform sharing. What costs is that a miss is two \
     messages in a row through the switch, and a block of 4 KiB: 1.3 us of an operation, the biggest term that a protocol can \
     do something about. (The way of empty messages is bigger, but hardware's.)",
    "The last two columns are *estimates*, not protocols: the real machines run and only the times of blocks on the wire differ \
     (`sim::rack::Blocks`). Nothing of them is in the product.",
    "*Words first*: whoever asked gets the words that it asked for in a small inlined message and goes on, and the whole block \
     follows. That saves the transfer and gives more than a third of it back: small messages stand behind whole blocks on the links, which \
     are busier with more operations. Not enough for the mark. Priorities in NICs and switch ports would give that back; they \
     are not modelled. The estimate is high in that nobody needs the rest before it is there.",
    "*Operations shipped*: no block travels at all, a read or write of a word is sent to where its block is. It reaches the mark. \
     The estimate keeps Concordia's messages and its hits: 14.4 % of the operations. A real one would find the block in place \
     in 12.5 % (one node in eight), and would save the unlock. It is what Grappa does, on FlowCC's agents; and it loses \
     wherever a block is used again, so a node would have to know beforehand that it will not be.",
    "Not tried: sending only what changed since the requester's copy was current, which helps only those who have an old one. \
     Smaller blocks: GAM's 512 B are in Figure 9, where they make no difference to it.",
];
