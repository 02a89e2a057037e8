//! Figure 3: memory of the switch against keys, as the program declares it.

use switch::chains::{Steering, SteeringConfig};
use switch::pipeline::StageMap;

use crate::figure::chart::Chart;
use crate::figure::claim::Claim;
use crate::figure::point::Point;
use crate::figure::{Figure, FigureReport, Results, Table};

/// Figure 3.
pub(super) struct Memory;

const KEYS: [usize; 7] = [1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000];
/// What the paper has for a switch (section 4.2).
const SWITCH: f64 = 64e6;

fn map(keys: usize) -> StageMap {
    let config = SteeringConfig { keys, top: keys, ..SteeringConfig::default() };
    Steering::new(&config).expect("100,000 keys fit the chip").stage_map()
}

/// Bytes of the arrays whose names begin so.
fn bytes(map: &StageMap, names: &[&str]) -> f64 {
    let arrays = map.stages.iter().flat_map(|stage| &stage.arrays);
    let of = |array: &&switch::pipeline::stage_map::ArrayUse| {
        names.iter().any(|name| array.name.starts_with(name))
    };
    arrays.filter(of).map(|array| array.bytes as f64).sum()
}

/// State of keys.
const OF_KEYS: [&str; 2] = ["KEY", "TAIL"];
/// State of what is in flight.
const OF_APPENDS: [&str; 6] = ["OUTSTANDING", "APPEND", "OF KEY", "BEHIND", "STATE", "NEXT PSN"];

impl Figure for Memory {
    fn name(&self) -> &'static str {
        "steering-3"
    }

    fn title(&self) -> &'static str {
        "Memory of the switch against keys"
    }

    fn points(&self) -> Vec<Point> {
        Vec::new()
    }

    fn report(&self, _: &Results) -> FigureReport {
        let maps = KEYS.map(|keys| (keys as f64, map(keys)));
        let per_key = maps.iter().map(|(keys, map)| bytes(map, &OF_KEYS) / keys).fold(0.0, f64::max);
        let [.., (_, largest)] = &maps;
        let line = |names: &'static [&'static str]| {
            maps.iter().map(move |(keys, map)| (*keys, bytes(map, names) / 1e6))
        };
        let row = |name: &&str| ((*name).to_owned(), vec![bytes(largest, &[*name]) / 1e3]);
        FigureReport {
            figure: self.name().to_owned(),
            title: self.title().to_owned(),
            notes: vec![
                "Register arrays of the program, in whole cells. Packets in flight have arrays for 64 \
                 connections of 256; more pass unsteered. A key may be in one of three cells, of which \
                 nine tenths fill (a test of the program)."
                    .to_owned(),
            ],
            tables: vec![Table {
                title: "Arrays, for 100,000 keys and 64 connections, in kB".to_owned(),
                columns: vec!["kB".to_owned()],
                rows: OF_KEYS.iter().chain(&OF_APPENDS).map(row).collect(),
            }],
            remarks: Vec::new(),
            charts: vec![
                Chart::new(self.name(), "State of the switch", "keys", "MB")
                    .line("keys and tails", line(&OF_KEYS))
                    .line("appends in flight", line(&OF_APPENDS))
                    .stated_at("2.5 % of 64 MB", 100_000.0, 0.025 * SWITCH / 1e6),
            ],
            claims: vec![
                Claim::quantity(
                    "100 K keys (2.5 % of 64 MB)",
                    0.025 * SWITCH / 1e6,
                    bytes(largest, &OF_KEYS) / 1e6,
                    "MB",
                )
                .by_construction(),
                Claim::quantity("a key, at most (64 bits each for key and tail)", 16.0, per_key, "B")
                    .by_construction(),
            ],
        }
    }
}
