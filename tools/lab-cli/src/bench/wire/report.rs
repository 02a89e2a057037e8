//! What `rackmem-lab bench wire` prints.

use serde::Serialize;

use crate::bench::pingpong::micros;
use crate::bench::rounds::{Against, table};

/// A miss, and a hand-over, may take so much of what they take with the programs in a process.
const MOST_OF_PROCESS: f64 = 0.8;
/// What homes may send and receive for an operation, and take of the processors, of what they do with the directory.
const MOST_MESSAGES: f64 = 0.25;
const MOST_PROCESSOR: f64 = 0.5;
/// How much faster memory is used that others have.
const LEAST_FASTER: f64 = 1.2;

#[derive(Debug, Serialize)]
pub(super) struct WireReport {
    pub(super) rounds: u64,
    pub(super) millis: u64,
    /// Nanoseconds of a miss's three messages through a process, and of two of them by forwarding alone.
    pub(super) bare: [f64; 2],
    /// Nanoseconds, in the kernel against in the process.
    pub(super) miss: Against,
    pub(super) hand_over: Against,
    pub(super) apart: Vec<Apart>,
}

/// Nodes that have memory, apart from those that use it: the directory in the switch, against at the homes.
#[derive(Debug, Serialize)]
pub(super) struct Apart {
    /// Per cent of accesses to what all users share.
    pub(super) sharing: u64,
    /// Operations a second.
    pub(super) rate: Against,
    /// Messages that homes send and receive for an operation.
    pub(super) messages: Against,
    /// Nanoseconds of processors that homes take for an operation.
    pub(super) processor_ns: Against,
}

impl WireReport {
    pub(super) fn text(&self) -> String {
        let [three, two] = self.bare.map(micros);
        let arms = [
            ("read of a block modified elsewhere", &self.miss),
            ("hand-over of a lock with 1 KiB", &self.hand_over),
        ];
        let arms = arms.map(|(what, took)| {
            let ratio = format!("{:.2}x", took.ratio);
            let met = met(took.ratio <= MOST_OF_PROCESS);
            vec![what.to_owned(), micros(took.measured), micros(took.yardstick), ratio, met]
        });
        let rows: Vec<Vec<String>> = self.apart.iter().flat_map(Apart::rows).collect();
        format!(
            "Racks over cables between network namespaces (medians of {} rounds)\n\n\
             bare, three messages through a process: {three}; two, forwarded: {two}\n\n{}\n\
             Two nodes have memory and two use it, {} ms in each round\n\n{}",
            self.rounds,
            table(
                &["", "in the kernel", "in the process", "ratio", &format!("at most {MOST_OF_PROCESS}x")],
                &arms
            ),
            self.millis,
            table(&["sharing", "", "in the switch", "at the homes", "ratio", "target", ""], &rows),
        )
    }
}

impl Apart {
    fn rows(&self) -> [Vec<String>; 3] {
        let row = |what: &str, of: &Against, as_text: fn(f64) -> String, target: String, is_met: bool| {
            let ratio = format!("{:.2}x", of.ratio);
            let values = [as_text(of.measured), as_text(of.yardstick), ratio, target, met(is_met)];
            let named = [format!("{} %", self.sharing), what.to_owned()];
            named.into_iter().chain(values).collect()
        };
        let most = |most: f64| format!("at most {most}x");
        let Self { rate, messages, processor_ns, .. } = self;
        let is_fast = rate.ratio >= LEAST_FASTER;
        [
            row("operations/s", rate, |it| format!("{it:.0}"), format!("at least {LEAST_FASTER}x"), is_fast),
            row(
                "messages of homes for one",
                messages,
                |it| format!("{it:.3}"),
                most(MOST_MESSAGES),
                messages.ratio <= MOST_MESSAGES,
            ),
            row(
                "processor time of homes for one",
                processor_ns,
                micros,
                most(MOST_PROCESSOR),
                processor_ns.ratio <= MOST_PROCESSOR,
            ),
        ]
    }
}

fn met(met: bool) -> String {
    if met { "met" } else { "missed" }.to_owned()
}
