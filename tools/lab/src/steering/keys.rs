//! Figure 4: throughput against keys that have state in the switch.

use super::axis::{Axis, PAPER};
use crate::figure::chart::Chart;
use crate::figure::claim::Claim;
use crate::figure::point::{Chains, Point, Subject};
use crate::figure::{Figure, FigureReport, Results};

/// Figure 4.
pub(super) struct Keys;

const AXIS: Axis =
    Axis { values: &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024], load: |held| Chains { held, ..PAPER } };

/// The same with faster and slower atomics of the NIC: no source gives their time.
const FAST: Axis = Axis { load: |held| Chains { held, apart: 250, ..PAPER }, ..AXIS };
const SLOW: Axis = Axis { load: |held| Chains { held, apart: 500, ..PAPER }, ..AXIS };

const STEERING: [Subject; 1] = [Subject::Steering];

/// Why ours differs.
const COLD: &str = "As in steering-2: cold keys have conflicts, too.";

/// The gain, where a NIC's atomics of different queue pairs are 250, 350 and 500 ns apart.
fn band(results: &Results) -> Chart {
    let gains = |axis: &Axis| {
        axis.values.iter().map(|held| (f64::from(*held), axis.gain(results, *held))).collect::<Vec<_>>()
    };
    let title = "The gain of steering, for three NICs";
    Chart::new("steering-4-band", title, "keys with state", "times Clover's throughput")
        .line("atomics 250 ns apart", gains(&FAST))
        .line("350 ns: all other figures", gains(&AXIS))
        .line("500 ns", gains(&SLOW))
        .stated("8 keys 1.34x, all 1.42x", [(8.0, 1.34, 1.34), (1024.0, 1.42, 1.42)])
}

impl Figure for Keys {
    fn name(&self) -> &'static str {
        "steering-4"
    }

    fn title(&self) -> &'static str {
        "Throughput against keys with state in the switch, 64 threads"
    }

    fn points(&self) -> Vec<Point> {
        [&AXIS, &FAST, &SLOW]
            .into_iter()
            .flat_map(|axis| [axis.points(&STEERING), axis.points(&[Subject::Clover])[..1].to_vec()].concat())
            .collect()
    }

    fn report(&self, results: &Results) -> FigureReport {
        let gain = |held| AXIS.gain(results, held);
        let all: Vec<f64> =
            AXIS.values[..].iter().map(|held| AXIS.at(results, Subject::Steering, *held).mops()).collect();
        let marginal = |few, many| (gain(many) - gain(few)) / f64::from(many - few);
        FigureReport {
            figure: self.name().to_owned(),
            title: self.title().to_owned(),
            notes: vec!["The control plane counts writes, and holds state for the hottest keys.".to_owned()],
            tables: Vec::new(),
            remarks: Vec::new(),
            charts: vec![
                AXIS.chart(
                    results,
                    (self.name(), "YCSB-A, zipf 0.75, 1024 keys", "keys with state"),
                    &[Subject::Clover, Subject::Steering],
                )
                .stated_ratio("steering with 8 keys, of Clover", Subject::Clover.name(), (1.34, 1.34), [8.0])
                .stated_ratio(
                    "with all keys",
                    Subject::Clover.name(),
                    (1.42, 1.42),
                    [1024.0],
                ),
                band(results),
            ],
            claims: vec![
                Claim::ratio("8 keys: steering over Clover", 1.34, gain(8)).calibrated().because(COLD),
                Claim::rises("steering rises with every doubling of keys", &all),
                Claim::ratio("all keys: steering over Clover", 1.42, gain(1024)).because(COLD),
                Claim::ahead(
                    "the gain of a key among the first 8 over that of one among the others",
                    (gain(8) - 1.0) / 8.0 / marginal(8, 1024),
                ),
            ],
        }
    }
}
