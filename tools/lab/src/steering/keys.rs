//! Figure 4: throughput against keys that have state in the switch.

use super::axis::{Axis, PAPER, TRIPS};
use crate::figure::claim::Claim;
use crate::figure::point::{Chains, Point, Subject};
use crate::figure::{Figure, Report, Results};

/// Figure 4.
pub(super) struct Keys;

const AXIS: Axis =
    Axis { values: &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024], load: |held| Chains { held, ..PAPER } };

const STEERING: [Subject; 1] = [Subject::Steering];

/// Why ours differs.
const COLD: &str = "See steering-2: cold keys have conflicts here, too.";

impl Figure for Keys {
    fn name(&self) -> &'static str {
        "steering-4"
    }

    fn title(&self) -> &'static str {
        "Throughput against keys with state in the switch, 64 threads"
    }

    fn points(&self) -> Vec<Point> {
        [AXIS.points(&STEERING), AXIS.points(&[Subject::Clover])[..1].to_vec()].concat()
    }

    fn report(&self, results: &Results) -> Report {
        let gain = |held| AXIS.gain(results, held);
        let marginal = |few, many| (gain(many) - gain(few)) / f64::from(many - few);
        Report {
            figure: self.name().to_owned(),
            title: self.title().to_owned(),
            notes: vec![
                "The switch's control plane counts writes, and holds the hottest keys. Clover's line does not depend on the axis.".to_owned(),
            ],
            tables: vec![AXIS.table(results, ("By keys with state", ""), &STEERING, &TRIPS)],
            remarks: Vec::new(),
            charts: vec![AXIS.chart(
                results,
                (self.name(), "YCSB-A, zipf 0.75, 1024 keys", "keys with state"),
                &[Subject::Clover, Subject::Steering],
            )],
            claims: vec![
                Claim::ratio("8 keys: steering over Clover (calibrated)", 1.34, gain(8)).because(COLD),
                Claim::ratio("all keys: steering over Clover", 1.42, gain(1024)).because(COLD),
                Claim::ahead(
                    "the gain of a key among the first 8 over that of one among the others",
                    (gain(8) - 1.0) / 8.0 / marginal(8, 1024),
                ),
            ],
        }
    }
}
