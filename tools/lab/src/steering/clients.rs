//! Figure 2: throughput against client threads.

use super::axis::{Axis, BOTH, PAPER, TRIPS};
use crate::figure::claim::Claim;
use crate::figure::point::{Chains, Point, Subject};
use crate::figure::{Figure, FigureReport, Results};

/// Figure 2.
pub(super) struct Clients;

const AXIS: Axis =
    Axis { values: &[1, 2, 4, 8, 16, 32, 64], load: |threads| Chains { threads: threads as u16, ..PAPER } };

/// Why ours differs.
const MORE: &str = "Ours also gains for cold keys: a tail that a client knows is old once the other \
    machine has written the key. How much depends on the NIC's atomics (steering-nic).";

impl Figure for Clients {
    fn name(&self) -> &'static str {
        "steering-2"
    }

    fn title(&self) -> &'static str {
        "Throughput against client threads, half writes, zipf 0.75"
    }

    fn points(&self) -> Vec<Point> {
        AXIS.points(&BOTH)
    }

    fn report(&self, results: &Results) -> FigureReport {
        FigureReport {
            figure: self.name().to_owned(),
            title: self.title().to_owned(),
            notes: vec![
                "One operation is in flight a thread. Packets pass the same software switch without \
                 steering."
                    .to_owned(),
            ],
            tables: vec![AXIS.table(results, ("By client threads", ""), &BOTH, &TRIPS)],
            remarks: Vec::new(),
            charts: vec![
                AXIS.chart(results, (self.name(), "YCSB-A, 1024 keys", "client threads"), &BOTH)
                    .stated_ratio("steering, of Clover", Subject::Clover.name(), (1.42, 1.42), [64.0]),
            ],
            claims: vec![
                Claim::ratio("64 threads: steering over Clover", 1.42, AXIS.gain(results, 64)).because(MORE),
                Claim::ahead(
                    "the gain at 64 threads over that at 8 (conflicts grow with clients)",
                    AXIS.gain(results, 64) / AXIS.gain(results, 8),
                ),
            ],
        }
    }
}
